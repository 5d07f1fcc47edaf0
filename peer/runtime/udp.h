// SPDX-License-Identifier: Apache-2.0
// A UDP socket at speed. Datagrams wait in a queue until the turn ends, sorted by where they go, so
// that bursts to one neighbour join: one system call (sendmmsg) then sends many runs of equally
// long datagrams, each run to one address (UDP_SEGMENT). One call receives many, each perhaps a run
// of its own (recvmmsg, UDP_GRO). A run that is refused goes one by one; where that works and no
// run does, runs are left alone for a while.
#ifndef WEFT_PEER_UDP_H
#define WEFT_PEER_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peer/runtime/kernel_address.h"
#include "weft/context.h"
#include "weft/peer_session.h"

// Datagrams in one run: the kernel takes 64, and 65507 bytes.
#define WEFT_UDP_RUN 48u
// Datagrams that wait, and addresses that they go to: what more comes flushes the queue.
#define WEFT_UDP_QUEUE 128u
#define WEFT_UDP_WAYS 32u

typedef struct weft_udp_statistics {
  uint64_t sent, sent_bytes, send_calls, send_errors;
  uint64_t received, received_bytes, receive_calls;
  int send_error; // errno of the last of send_errors
} weft_udp_statistics;

// What waits for one address, in order: places of the queue, chained by `next`. What is as long as
// the run goes before shorter ones that came between (the end of a burst), so that bursts join.
typedef struct weft_udp_way {
  weft_address to;
  uint16_t first, last, count;
  uint16_t run_last; // the last one of the run's length
  bool one_by_one;   // a run was refused: longer than the path takes, a device without them, ...
  bool doubted;      // it is not known yet whether they go one by one
} weft_udp_way;

typedef struct weft_udp {
  weft_ctx *ctx;
  int fd;
  sa_family_t family;   // AF_INET: the machine has no IPv6
  unsigned refused;     // runs, one after the other, whose datagrams then went one by one
  unsigned plain_turns; // flushes without runs that are left
  bool blocked;         // the queue waits until the socket takes it
  uint8_t *queue;       // WEFT_UDP_QUEUE * WEFT_SESSION_DATAGRAM_BYTES
  uint16_t bytes[WEFT_UDP_QUEUE], next[WEFT_UDP_QUEUE];
  size_t queued; // places taken
  weft_udp_way ways[WEFT_UDP_WAYS];
  size_t way_count, way; // way: whom the room was given for
  uint8_t *in;           // room for what one call receives
  weft_udp_statistics statistics;
} weft_udp;

// *error: an errno, when the status is WEFT_E_IO. Port 0: any; udp_address tells it afterwards.
weft_status weft_udp_open(weft_ctx *ctx, const weft_address *address, weft_udp *out, int *error);
void weft_udp_close(weft_udp *udp);
weft_status weft_udp_own_address(const weft_udp *udp, weft_address *out);

// Has the kernel drop what cannot be a session's datagram before anybody is woken for it: another
// first byte, too short, an INIT without its zeros, a key id beyond `places`. What it lets through
// is checked all the same.
void weft_udp_filter(weft_udp *udp, size_t places);

// Room for the next datagram to `to`; NULL while the socket is blocked. What cannot be reached from
// here is a send error.
uint8_t *weft_udp_room(weft_udp *udp, const weft_address *to);
void weft_udp_filled(weft_udp *udp, size_t bytes); // the room holds a datagram of so many bytes
void weft_udp_flush(weft_udp *udp);

// Calls back for each datagram that has come, up to about `most`; returns their number.
size_t weft_udp_receive(weft_udp *udp, size_t most,
                        void (*take)(void *user, const weft_address *from, uint8_t *datagram,
                                     size_t bytes),
                        void *user);

#endif
