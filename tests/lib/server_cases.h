// SPDX-License-Identifier: Apache-2.0
// The suite of the streaming server on host lanes, in five parts, and the helpers that they share.
// A lane is one thread of the server that codes packets on one context.
#ifndef WEFT_TESTS_LIB_SERVER_CASES_H
#define WEFT_TESTS_LIB_SERVER_CASES_H

#include <check.h>
#include <stdatomic.h>

#include "tests/support/test_allocator.h"
#include "weft/server.h"
#include "weft/weft.h"

enum { N = 16, K = 200, SEGMENT_BYTES = N * K };

void server_add_failure_tests(TCase *cases);
void server_add_meeting_tests(TCase *cases);
void server_add_memory_tests(TCase *cases);
void server_add_waiting_tests(TCase *cases);

int64_t server_clock_us(void *user);
weft_segment_id server_id(uint64_t segment); // (N, K)
weft_ctx *server_context(const char *backend, const weft_allocator *allocator);
weft_server *server_on(weft_ctx *const *contexts, size_t count,
                       void (*change)(weft_server_options *));
void server_push(weft_server *server, uint64_t segment, const uint8_t *data, size_t bytes);
void server_request(weft_server *server, uint64_t segment, uint64_t client, uint32_t packets);
// Waits for the descriptor, then takes a few packets at a time until `see` has been given `count`.
void server_take_all(weft_server *server, size_t count,
                     void (*see)(void *user, const weft_server_packet *packet), void *user);
// For server_take_all: user is a size_t[2], packets made and packets that failed.
void server_count_status(void *user, const weft_server_packet *packet);

// Memory with limits.
typedef struct server_memory {
  test_allocator memory;
  weft_allocator allocator; // to be passed on; points back here
  atomic_size_t live_bytes, limit_bytes;
  atomic_size_t peak_bytes; // of live_bytes
  atomic_size_t most_bytes; // limit of one block
  atomic_size_t large;      // blocks of SLAB_BYTES or more that were allocated
} server_memory;

enum { SLAB_BYTES = 1 << 20 }; // what a host lane allocates for 4096 packets of (N, K)

void server_memory_init(server_memory *memory);

#endif
