// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "tests/lib/server_cases.h"

#include <malloc.h>
#include <poll.h>
#include <time.h>

int64_t server_clock_us(void *user) {
  (void)user;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

weft_segment_id server_id(uint64_t segment) { return (weft_segment_id){7, segment, N, K}; }

weft_ctx *server_context(const char *backend, const weft_allocator *allocator) {
  const weft_ctx_options options = {.backend = backend, .allocator = allocator};
  weft_ctx *ctx = NULL;
  ck_assert_int_eq(weft_ctx_new(&ctx, &options), WEFT_OK);
  return ctx;
}

weft_server *server_on(weft_ctx *const *contexts, size_t count,
                       void (*change)(weft_server_options *)) {
  weft_server_options options = {
      .contexts = contexts, .context_count = count, .now_us = server_clock_us, .fall_over = true};
  if (change)
    change(&options);
  weft_server *server = NULL;
  ck_assert_int_eq(weft_server_new(&options, &server), WEFT_OK);
  return server;
}

void server_push(weft_server *server, uint64_t segment, const uint8_t *data, size_t bytes) {
  const weft_segment_id id = server_id(segment);
  ck_assert_int_eq(weft_server_push(server, &id, data, bytes, 0, 1000), WEFT_OK);
}

void server_request(weft_server *server, uint64_t segment, uint64_t client, uint32_t packets) {
  const weft_server_request want = {7, segment, client, packets};
  size_t accepted = 0;
  ck_assert_int_eq(weft_server_request_many(server, &want, 1, 0, &accepted), WEFT_OK);
  ck_assert_uint_eq(accepted, 1);
}

void server_take_all(weft_server *server, size_t count,
                     void (*see)(void *user, const weft_server_packet *packet), void *user) {
  while (count > 0) {
    struct pollfd fd = {.fd = weft_server_fd(server), .events = POLLIN};
    ck_assert_int_eq(poll(&fd, 1, 10000), 1);
    weft_server_packet packets[3];
    size_t got = 0;
    ck_assert_int_eq(weft_server_take(server, packets, 3, &got), WEFT_OK);
    ck_assert_uint_le(got, count);
    for (size_t i = 0; i < got; i++)
      see(user, &packets[i]);
    weft_server_release(server, packets, got);
    ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
    count -= got;
  }
}

void server_count_status(void *user, const weft_server_packet *packet) {
  size_t *counts = user;
  counts[packet->status == WEFT_OK ? 0 : 1]++;
  ck_assert(packet->status == WEFT_OK || packet->datagram == NULL);
}

static void *limited_alloc(void *user, size_t bytes, size_t align) {
  server_memory *self = user;
  if (atomic_load(&self->live_bytes) + bytes > atomic_load(&self->limit_bytes) ||
      bytes > atomic_load(&self->most_bytes))
    return NULL;
  void *block = self->memory.allocator.alloc(self->memory.allocator.user, bytes, align);
  const size_t more = malloc_usable_size(block);
  const size_t live = atomic_fetch_add(&self->live_bytes, more) + more;
  size_t peak = atomic_load(&self->peak_bytes);
  while (live > peak && !atomic_compare_exchange_weak(&self->peak_bytes, &peak, live)) {
  }
  atomic_fetch_add(&self->large, bytes >= SLAB_BYTES);
  return block;
}

static void limited_free(void *user, void *block) {
  server_memory *self = user;
  atomic_fetch_sub(&self->live_bytes, malloc_usable_size(block));
  self->memory.allocator.free(self->memory.allocator.user, block);
}

void server_memory_init(server_memory *self) {
  *self = (server_memory){.allocator = {limited_alloc, limited_free, self},
                          .limit_bytes = SIZE_MAX,
                          .most_bytes = SIZE_MAX};
  test_allocator_init(&self->memory, 0);
}
