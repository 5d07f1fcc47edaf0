// SPDX-License-Identifier: Apache-2.0
// A node on the loopback, and strangers: sessions on sockets of their own, which do what no node
// does.
#ifndef WEFT_TESTS_PEER_STRANGER_H
#define WEFT_TESTS_PEER_STRANGER_H

#include "peer/engine/messages.h"
#include "tests/peer/fixture.h"
#include "weft/peer_node.h"

enum { ANNOUNCE = 64, LIST = 65, MEET = 66, MAPPED = 67 }; // docs/peer/tracker.md
enum { BLOCKS = 16, BLOCK_BYTES = 1024, BLOB = 76, STRANGERS = 24, SECOND = 1000000 };

typedef struct stranger {
  int fd;
  weft_sessions *sessions;
  weft_rng_chacha chance;
  weft_address address;
  size_t link;
  bool open, refused;
  size_t opens, lists, announces;
  uint8_t told[WEFT_DATAGRAM_MAX]; // the last LIST, MEET, MAPPED or REFER
  size_t told_bytes;
} stranger;

int64_t now_us(void);

// Writes a description of stream 5, as a stranger gives it.
void stranger_describes(uint8_t blob[BLOB], uint8_t role, uint8_t flags, const uint8_t *source_key);

// The public key of the stranger with that number.
void stranger_key(uint64_t number, uint8_t out[32]);

// Opens a stranger at the IPv4 address, with an identity that follows from the number.
void stranger_at(stranger *x, weft_ctx *ctx, uint32_t ip, uint64_t number,
                 const uint8_t blob[BLOB]);
void stranger_new(stranger *x, weft_ctx *ctx, uint64_t number, const uint8_t blob[BLOB]);
// The same, and it opens a session with a node.
void stranger_calls(stranger *x, weft_ctx *ctx, uint64_t number, const uint8_t blob[BLOB],
                    const weft_address *node);
void stranger_free(stranger *x);
// Moves it to another port, as a NAT does.
void stranger_moves(stranger *x);
void stranger_turn(stranger *x);
void stranger_says(stranger *x, const uint8_t *message, size_t bytes);
// Greets, so that it becomes a neighbour and stays one.
void stranger_greets(stranger *x);

// Makes a node of stream 5, live, with four neighbours.
weft_node *node_new(weft_ctx *ctx, const char *listen, weft_node_role role,
                    const weft_address *bootstrap, const uint8_t *source_key);
// Makes a joining node whose application receives events.
weft_node *node_of_host(weft_ctx *ctx, const weft_address *host, size_t count);
weft_node *node_telling(weft_ctx *ctx, const weft_address *bootstrap,
                        void (*event)(void *user, const weft_node_event *event), void *user);
void turn(weft_node *node);
void nap(void);
void turn_for(weft_node *node, stranger *x, size_t strangers, int64_t for_us);

#endif
