// SPDX-License-Identifier: Apache-2.0
// The memory of a server: what it keeps for reuse, gives back when memory lacks, and needs at once.
#define _POSIX_C_SOURCE 200809L
#include <poll.h>

#include "tests/lib/server_cases.h"

// Memory used to measure lanes is freed: a server without segments takes little more than its
// context.
START_TEST(what_lanes_are_measured_with_goes) {
  server_memory tight;
  server_memory_init(&tight);
  weft_ctx *ctx = server_context(NULL, &tight.allocator);
  weft_server *server = server_on(&ctx, 1, NULL);
  ck_assert_uint_lt(atomic_load(&tight.live_bytes), 2 << 20);
  weft_server_free(server);
  weft_ctx_free(ctx);
  ck_assert_int_eq(test_allocator_live(&tight.memory), 0);
}
END_TEST

enum { STRIDE = 256 }; // of a datagram of (N, K) in a product

static void uncalibrated(weft_server_options *options) { options->repeatable = true; }

static void serve(weft_server *server, uint32_t packets) {
  size_t counts[2] = {0};
  server_request(server, 0, 0, packets);
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  server_take_all(server, packets, server_count_status, counts);
  ck_assert_uint_eq(counts[0], packets);
}

// Returns a server that keeps slabs of eight sizes below SLAB_BYTES.
static weft_server *with_spares(weft_ctx *const *ctx) {
  weft_server *server = server_on(ctx, 1, uncalibrated);
  const uint8_t data[SEGMENT_BYTES] = {1};
  server_push(server, 0, data, sizeof data);
  for (uint32_t packets = 16; packets < 4096; packets *= 2)
    serve(server, packets);
  return server;
}

// A new size of slab is kept in place of those no longer used.
START_TEST(sizes_that_come_are_kept_for_those_that_went) {
  server_memory tight;
  server_memory_init(&tight);
  weft_ctx *ctx = server_context(NULL, &tight.allocator);
  weft_server *server = with_spares(&ctx);
  for (int i = 0; i < 3; i++)
    serve(server, 4096);
  ck_assert_uint_eq(atomic_load(&tight.large), 1);
  weft_server_free(server);
  weft_ctx_free(ctx);
  ck_assert_int_eq(test_allocator_live(&tight.memory), 0);
}
END_TEST

static void room_for_13_slabs(weft_server_options *options) {
  options->repeatable = true;
  options->ready_bytes = (size_t)16 * SLAB_BYTES;
}

// All slabs in use at once are kept if they are a small part of ready_bytes; otherwise only FEW
// are.
START_TEST(small_slabs_are_kept_for_all_that_are_under_way) {
  enum { SLABS = 13, FEW = 8, PACKETS = SLABS * 4096 };
  static weft_server_packet packets[PACKETS];
  for (int small = 0; small < 2; small++) {
    server_memory tight;
    server_memory_init(&tight);
    weft_ctx *ctx = server_context(NULL, &tight.allocator);
    weft_server *server = server_on(&ctx, 1, small ? uncalibrated : room_for_13_slabs);
    const uint8_t data[SEGMENT_BYTES] = {1};
    server_push(server, 0, data, sizeof data);
    for (int round = 0; round < 2; round++) {
      server_request(server, 0, 0, PACKETS);
      ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
      for (size_t held = 0, got = 0; held < PACKETS; held += got) {
        struct pollfd fd = {.fd = weft_server_fd(server), .events = POLLIN};
        ck_assert_int_eq(poll(&fd, 1, 10000), 1);
        ck_assert_int_eq(weft_server_take(server, packets + held, PACKETS - held, &got), WEFT_OK);
      }
      weft_server_release(server, packets, PACKETS);
    }
    ck_assert_uint_eq(atomic_load(&tight.large), small ? SLABS : 2 * SLABS - FEW);
    weft_server_free(server);
    weft_ctx_free(ctx);
    ck_assert_int_eq(test_allocator_live(&tight.memory), 0);
  }
}
END_TEST

// Leaves a server so much memory beyond what it holds.
static void leave(server_memory *memory, size_t bytes) {
  atomic_store(&memory->limit_bytes, atomic_load(&memory->live_bytes) + bytes);
}

static void push_a_large_segment(weft_server *server) {
  const weft_segment_id id = {7, 1, 16, SLAB_BYTES / 16};
  const uint8_t data[1] = {1};
  ck_assert_int_eq(weft_server_push(server, &id, data, 1, 0, 1000), WEFT_OK);
}

// Requests one packet for each of `count` clients.
static void request_of_many(weft_server *server, size_t count) {
  enum { MOST = 4096 };
  static weft_server_request wants[MOST];
  size_t accepted = 0;
  ck_assert_uint_le(count, MOST);
  for (size_t i = 0; i < count; i++)
    wants[i] = (weft_server_request){7, 0, i, 1};
  ck_assert_int_eq(weft_server_request_many(server, wants, count, 0, &accepted), WEFT_OK);
  ck_assert_uint_eq(accepted, count);
}

static void take_made(weft_server *server, size_t packets) {
  size_t counts[2] = {0};
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  server_take_all(server, packets, server_count_status, counts);
  ck_assert_uint_eq(counts[0], packets);
}

// Kept slabs are freed when memory lacks, whatever for: a segment, the packets of a product, its
// coefficients, its list of clients, or requests.
START_TEST(kept_slabs_are_given_back_when_memory_lacks) {
  server_memory tight;
  server_memory_init(&tight);
  weft_ctx *ctx = server_context(NULL, &tight.allocator);
  weft_server *server = with_spares(&ctx);
  const size_t before = atomic_load(&tight.live_bytes);
  if (_i == 0) {
    leave(&tight, SLAB_BYTES / 4);
    push_a_large_segment(server);
  } else if (_i == 1) {
    leave(&tight, SLAB_BYTES / 4);
    serve(server, 4096);
    ck_assert_uint_eq(atomic_load(&tight.large), 1);
  } else if (_i == 2) {
    leave(&tight, 16 << 10); // a slab is there; coefficients of 2048 packets are twice this
    serve(server, 2048);
  } else if (_i == 3) {
    request_of_many(server, 1024);
    leave(&tight, 16 << 10);
    take_made(server, 1024);
  } else {
    leave(&tight, 16 << 10);
    request_of_many(server, 4096);
  }
  ck_assert_uint_lt(atomic_load(&tight.live_bytes), before + SLAB_BYTES / 2);
  weft_server_free(server);
  weft_ctx_free(ctx);
  ck_assert_int_eq(test_allocator_live(&tight.memory), 0);
}
END_TEST

// A product whose packets find room, but not the next power of two, is made. Its memory is not
// kept: no other product could use it.
START_TEST(packets_that_just_fit_are_made) {
  enum { PACKETS = SLAB_BYTES / 2 / STRIDE + 1, BYTES = PACKETS * STRIDE };
  server_memory tight;
  server_memory_init(&tight);
  weft_ctx *ctx = server_context(NULL, &tight.allocator);
  weft_server *server = server_on(&ctx, 1, uncalibrated);
  const uint8_t data[SEGMENT_BYTES] = {1};
  server_push(server, 0, data, sizeof data);
  serve(server, 16); // what the server needs besides is there
  const size_t before = atomic_load(&tight.live_bytes);
  leave(&tight, BYTES + (64 << 10)); // and their coefficients
  serve(server, PACKETS);
  ck_assert_uint_lt(atomic_load(&tight.live_bytes), before + (64 << 10));
  leave(&tight, SIZE_MAX / 2);
  serve(server, PACKETS);
  ck_assert_uint_eq(atomic_load(&tight.large), 1);
  weft_server_free(server);
  weft_ctx_free(ctx);
  ck_assert_int_eq(test_allocator_live(&tight.memory), 0);
}
END_TEST

// --- requests ---

static void small_products(weft_server_options *options) {
  uncalibrated(options);
  options->batch_packets = 64;
  options->ready_bytes = (size_t)4 * 64 * STRIDE;
}

// The memory of requests is given back when they have been served, or withdrawn; but as much as
// usual traffic needs is kept.
START_TEST(memory_of_requests_goes_with_them) {
  enum { MANY = 40000, USUAL = 1000, WANT_BYTES = 24, KEPT = 24 << 10, SLABS = 64 << 10 };
  server_memory roomy;
  server_memory_init(&roomy);
  weft_ctx *ctx = server_context(NULL, &roomy.allocator);
  weft_server *server = server_on(&ctx, 1, small_products);
  const uint8_t data[SEGMENT_BYTES] = {1};
  server_push(server, 0, data, sizeof data);
  const size_t before = atomic_load(&roomy.live_bytes);
  for (size_t i = 0; i < MANY; i++)
    server_request(server, 0, _i == 0 ? i : 1, 1);
  ck_assert_uint_ge(atomic_load(&roomy.live_bytes), before + (size_t)MANY * WANT_BYTES);
  if (_i == 0)
    take_made(server, MANY);
  else
    ck_assert_int_eq(weft_server_cancel(server, 1), WEFT_OK);
  ck_assert_uint_lt(atomic_load(&roomy.live_bytes), before + KEPT + SLABS + (16 << 10));
  for (int round = 0; round < 3; round++) {
    request_of_many(server, USUAL);
    take_made(server, USUAL);
    atomic_store(&roomy.most_bytes, USUAL * WANT_BYTES - 1);
  }
  weft_server_free(server);
  weft_ctx_free(ctx);
  ck_assert_int_eq(test_allocator_live(&roomy.memory), 0);
}
END_TEST

// --- coefficients ---

enum { SEGMENTS = 8, BLOCKS = 1024, BLOCK = 64 };

// Returns a server in which `packets` packets of each of SEGMENTS segments wait.
static weft_server *with_segments(weft_ctx *const *ctx, uint32_t packets) {
  static const uint8_t data[BLOCKS * BLOCK] = {1};
  weft_server *server = server_on(ctx, 1, uncalibrated);
  for (uint64_t i = 0; i < SEGMENTS; i++) {
    const weft_segment_id id = {7, i, BLOCKS, BLOCK};
    ck_assert_int_eq(weft_server_push(server, &id, data, sizeof data, 0, 1000), WEFT_OK);
    server_request(server, i, 0, packets);
  }
  return server;
}

// Products that a lane would make together are made one by one if only the coefficients of one of
// them find room.
START_TEST(products_that_fit_alone_are_made) {
  enum { PACKETS = 256 };
  server_memory tight;
  server_memory_init(&tight);
  weft_ctx *ctx = server_context(NULL, &tight.allocator);
  weft_server *server = with_segments(&ctx, PACKETS);
  // For each product 32 KiB of packets, and 16 for everything small.
  leave(&tight, SEGMENTS * (32 + 16) << 10);
  atomic_fetch_add(&tight.limit_bytes, (size_t)PACKETS * BLOCKS);
  take_made(server, (size_t)SEGMENTS * PACKETS);
  leave(&tight, PACKETS * BLOCKS / 2); // not even one
  for (uint64_t i = 0; i < SEGMENTS; i++)
    server_request(server, i, 0, PACKETS);
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  size_t counts[2] = {0};
  server_take_all(server, (size_t)SEGMENTS * PACKETS, server_count_status, counts);
  ck_assert_uint_lt(counts[0], (size_t)SEGMENTS * PACKETS);
  atomic_store(&tight.limit_bytes, SIZE_MAX);
  server_request(server, 0, 0, PACKETS);
  take_made(server, PACKETS);
  weft_server_free(server);
  weft_ctx_free(ctx);
  ck_assert_int_eq(test_allocator_live(&tight.memory), 0);
}
END_TEST

// However many products wait, a lane holds few coefficients at a time.
START_TEST(coefficients_take_a_bounded_room) {
  enum { PACKETS = 1024, FLIGHT_BYTES = 4 << 20, SLABS = SEGMENTS * 128 << 10 };
  server_memory roomy;
  server_memory_init(&roomy);
  weft_ctx *ctx = server_context(NULL, &roomy.allocator);
  weft_server *server = with_segments(&ctx, PACKETS);
  const size_t before = atomic_load(&roomy.live_bytes);
  atomic_store(&roomy.peak_bytes, before);
  take_made(server, (size_t)SEGMENTS * PACKETS);
  _Static_assert(SEGMENTS * PACKETS * BLOCKS > FLIGHT_BYTES + 2 * SLABS, "more than the bound");
  ck_assert_uint_le(atomic_load(&roomy.peak_bytes) - before, FLIGHT_BYTES + SLABS + (64 << 10));
  weft_server_free(server);
  weft_ctx_free(ctx);
  ck_assert_int_eq(test_allocator_live(&roomy.memory), 0);
}
END_TEST

void server_add_memory_tests(TCase *cases) {
  tcase_add_test(cases, what_lanes_are_measured_with_goes);
  tcase_add_test(cases, sizes_that_come_are_kept_for_those_that_went);
  tcase_add_test(cases, small_slabs_are_kept_for_all_that_are_under_way);
  tcase_add_loop_test(cases, kept_slabs_are_given_back_when_memory_lacks, 0, 5);
  tcase_add_test(cases, packets_that_just_fit_are_made);
  tcase_add_loop_test(cases, memory_of_requests_goes_with_them, 0, 2);
  tcase_add_test(cases, products_that_fit_alone_are_made);
  tcase_add_test(cases, coefficients_take_a_bounded_room);
}
