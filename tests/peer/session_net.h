// SPDX-License-Identifier: Apache-2.0
// Three nodes of the session layer and a network that a test scripts, in virtual time.
#ifndef WEFT_TESTS_PEER_SESSION_NET_H
#define WEFT_TESTS_PEER_SESSION_NET_H

#include "tests/peer/fixture.h"
#include "weft/peer_session.h"

enum { NODES = 3, QUEUE = 512, SECOND = 1000000 };
enum { REKEY_OFTEN_US = 3 * SECOND };
enum { INIT = 0x71, RETRY = 0x72, ACCEPT = 0x73, CONFIRM = 0x74, DATA = 0x75, CLOSE = 0x76 };

typedef struct parcel {
  size_t from, to, bytes;
  int64_t due_us;
  uint8_t data[WEFT_SESSION_DATAGRAM_BYTES];
} parcel;

typedef struct net {
  weft_ctx *ctx;
  weft_sessions *node[NODES];
  weft_identity identity[NODES];
  weft_rng_chacha chacha[NODES], chance;
  weft_session_event opened[NODES], lost[NODES]; // the last events
  size_t opens[NODES], losses[NODES], moves[NODES], received[NODES];
  uint8_t last[NODES][WEFT_SESSION_PLAIN_BYTES];
  size_t last_bytes[NODES];
  parcel *queue; // (QUEUE)
  size_t queued;
  int64_t now_us;
  // The script: loses the n-th datagram of a type (from 1), and delays at random.
  uint8_t lose_type;
  unsigned lose_nth, seen;
  int64_t jitter_us;
  uint16_t port[NODES]; // where a NAT has moved it; 0: nowhere. What is sent elsewhere is lost
  size_t astray[NODES]; // bytes sent to where the node is not
  uint8_t own[NODES];   // at which of its addresses (own[15]) it is called
  uint8_t from[NODES];  // the one that it sent the last datagram from; 0: any
  // What was sent, for tampering and replays.
  parcel sent[256];
  size_t sent_count;
} net;

// The address of a node.
weft_address net_address(size_t node);
// The options of a node; its identity and random numbers follow from its index and the seed.
weft_sessions_options net_options(net *n, size_t i, const weft_rng *rng);
// Makes NODES nodes without links; `adjust` may change their options.
weft_status net_new(net *n, const weft_allocator *allocator,
                    void (*adjust)(weft_sessions_options *options, size_t node));
// For `adjust`: replaces keys every REKEY_OFTEN_US.
void net_rekey_often(weft_sessions_options *options, size_t node);
void net_free(net *n);
// Delivers a datagram and notes what came out of it.
weft_status net_deliver(net *n, const parcel *p);
// Handles the timers, events and datagrams of every node.
void net_turn(net *n);
// Takes turns and delivers datagrams for that long.
void net_run(net *n, int64_t for_us);
// Takes the next datagram of that type out of the network, and drops all others.
parcel net_take_next(net *n, uint8_t type);
// Begins a link and returns it.
size_t net_open(net *n, size_t from, size_t to, const uint8_t *expected);
// Sends a plain message over an open link.
void net_send(net *n, size_t from, size_t link, const void *text, size_t bytes);
// Expects one link between the two, with the right identities, that carries messages both ways.
void net_expect_open(net *n, size_t a, size_t b);
// Makes a net whose nodes 0 and 1 have a link.
void net_new_open(net *n);

#endif
