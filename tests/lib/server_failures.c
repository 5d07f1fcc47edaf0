// SPDX-License-Identifier: Apache-2.0
// Failing lanes, products and allocations that fail, and invalid arguments.
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

#include "tests/lib/server_cases.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_signals.h"

// Every product takes one tick of this clock, and each tick is a quarter of the previous one, down
// to 2.5 ms. On any machine, the lane that is calibrated last is by far the fastest and gets all
// the work.
static int64_t quickening_clock(void *user) {
  const unsigned n = atomic_fetch_add((atomic_uint *)user, 1);
  const int64_t whole = INT64_C(1) << 40;
  return 2500 * (int64_t)n + whole - (n < 20 ? whole >> 2 * n : 0);
}

static void second_lane(weft_server_options *options) {
  static atomic_uint ticks;
  atomic_store(&ticks, 0);
  options->now_us = quickening_clock;
  options->user = &ticks;
}

static void second_lane_alone(weft_server_options *options) {
  second_lane(options);
  options->fall_over = false;
}

static void single_packets(weft_server_options *options) {
  options->batch_packets = 1;
  options->ready_bytes = SIZE_MAX;
}

START_TEST(a_lane_that_fails_loses_no_packet) {
  for (int fall_over = 0; fall_over < 2; fall_over++) {
    server_memory tight;
    server_memory_init(&tight);
    weft_ctx *contexts[2] = {server_context("scalar", NULL),
                             server_context(NULL, &tight.allocator)};
    weft_server *server = server_on(contexts, 2, fall_over ? second_lane : second_lane_alone);
    const uint8_t data[SEGMENT_BYTES] = {1};
    server_push(server, 0, data, sizeof data);
    const weft_segment_id id = server_id(0);
    ck_assert_uint_eq(weft_server_predict_lane(server, &id, 100), 1);
    atomic_store(&tight.limit_bytes, 0);
    server_request(server, 0, 0, 100);
    ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
    size_t counts[2] = {0};
    server_take_all(server, 100, server_count_status, counts);
    ck_assert_uint_eq(counts[fall_over ? 0 : 1], 100);
    weft_server_stats stats;
    weft_server_get_stats(server, &stats);
    ck_assert_uint_eq(stats.fallen_over, (uint64_t)fall_over);
    ck_assert(!stats.lane[1].failed); // memory may become available again
    weft_server_free(server);
    weft_ctx_free(contexts[0]);
    weft_ctx_free(contexts[1]);
    ck_assert_int_eq(test_allocator_live(&tight.memory), 0);
  }
}
END_TEST

// A packet that no lane can make gets an error status, after each lane has tried once.
START_TEST(what_no_lane_can_make_has_a_status) {
  enum { LANES = 3 };
  server_memory tight;
  server_memory_init(&tight);
  weft_ctx *contexts[LANES];
  for (size_t i = 0; i < LANES; i++)
    contexts[i] = server_context("scalar", &tight.allocator);
  weft_server *server = server_on(contexts, LANES, second_lane);
  const uint8_t data[SEGMENT_BYTES] = {1};
  server_push(server, 0, data, sizeof data);
  atomic_store(&tight.most_bytes, 4000); // less than any slab needs
  server_request(server, 0, 0, 1);
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  size_t counts[2] = {0};
  server_take_all(server, 1, server_count_status, counts);
  ck_assert_uint_eq(counts[1], 1);
  weft_server_stats stats;
  weft_server_get_stats(server, &stats);
  ck_assert_uint_eq(stats.fallen_over, LANES - 1);
  weft_server_free(server);
  for (size_t i = 0; i < LANES; i++)
    weft_ctx_free(contexts[i]);
  ck_assert_int_eq(test_allocator_live(&tight.memory), 0);
}
END_TEST

// A lane's memory that blocks its thread until the server is being freed, and then returns nothing.
typedef struct late_memory {
  test_allocator memory;
  weft_allocator allocator;
  pthread_t caller;
  atomic_bool asked, freeing;
} late_memory;

static void *late_alloc(void *user, size_t bytes, size_t align) {
  late_memory *self = user;
  if (pthread_equal(pthread_self(), self->caller))
    return self->memory.allocator.alloc(self->memory.allocator.user, bytes, align);
  const struct timespec turn = {.tv_nsec = 1000000}, others_end = {.tv_nsec = 100000000};
  atomic_store(&self->asked, true);
  while (!atomic_load(&self->freeing))
    nanosleep(&turn, NULL);
  nanosleep(&others_end, NULL);
  return NULL;
}

static void late_free(void *user, void *bytes) {
  late_memory *self = user;
  self->memory.allocator.free(self->memory.allocator.user, bytes);
}

// A product that fails while the server is being freed is not passed to a lane that has already
// ended.
START_TEST(nothing_is_left_of_what_fails_in_the_end) {
  late_memory late = {.allocator = {late_alloc, late_free, &late}, .caller = pthread_self()};
  test_allocator memory;
  test_allocator_init(&memory, 0);
  test_allocator_init(&late.memory, 0);
  weft_ctx *contexts[2] = {server_context("scalar", &memory.allocator),
                           server_context(NULL, &late.allocator)};
  weft_server *server = server_on(contexts, 2, second_lane);
  const uint8_t data[SEGMENT_BYTES] = {1};
  server_push(server, 0, data, sizeof data);
  server_request(server, 0, 0, 100);
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  while (!atomic_load(&late.asked))
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  atomic_store(&late.freeing, true);
  weft_server_free(server);
  weft_ctx_free(contexts[0]);
  weft_ctx_free(contexts[1]);
  ck_assert_int_eq(test_allocator_live(&memory), 0);
  ck_assert_int_eq(test_allocator_live(&late.memory), 0);
}
END_TEST

// Work that waits for a lane that has ended is dropped while the other lane still finishes its own
// work of the same segment.
START_TEST(lanes_end_one_by_one) {
  for (int round = 0; round < 20; round++) {
    test_allocator memory;
    test_allocator_init(&memory, 0);
    weft_ctx *contexts[2] = {server_context("scalar", &memory.allocator),
                             server_context("scalar", &memory.allocator)};
    weft_server *server = server_on(contexts, 2, single_packets);
    const uint8_t data[SEGMENT_BYTES] = {1};
    server_push(server, 0, data, sizeof data);
    server_request(server, 0, 0, 2000);
    ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
    weft_server_free(server);
    weft_ctx_free(contexts[0]);
    weft_ctx_free(contexts[1]);
    ck_assert_int_eq(test_allocator_live(&memory), 0);
  }
}
END_TEST

static void batches_of_three(weft_server_options *options) { options->batch_packets = 3; }

static void take_all(weft_server *server, weft_server_packet *packets, size_t count) {
  for (size_t got = 0, more; got < count; got += more) {
    struct pollfd fd = {.fd = weft_server_fd(server), .events = POLLIN};
    ck_assert_int_eq(poll(&fd, 1, 10000), 1);
    ck_assert_int_eq(weft_server_take(server, packets + got, count - got, &more), WEFT_OK);
  }
}

// Packets that the caller never released are freed with the server, whether their product was taken
// completely or in part.
START_TEST(nothing_is_left_of_what_was_not_released) {
  for (size_t taken = 0; taken <= 12; taken++) {
    test_allocator memory;
    test_allocator_init(&memory, 0);
    weft_ctx *ctx = server_context(NULL, &memory.allocator);
    weft_server *server = server_on(&ctx, 1, batches_of_three);
    const uint8_t data[SEGMENT_BYTES] = {1};
    server_push(server, 0, data, sizeof data);
    server_request(server, 0, 0, 12);
    ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
    weft_server_packet packets[12];
    take_all(server, packets, taken);
    // Of the first product all packets but one are released, of the others every other one.
    for (size_t i = 1; i < taken; i += i < 3 ? 1 : 2)
      weft_server_release(server, &packets[i], 1);
    weft_server_free(server);
    weft_ctx_free(ctx);
    ck_assert_int_eq(test_allocator_live(&memory), 0);
  }
}
END_TEST

// Products can be released in any order; those left are freed with the server.
START_TEST(products_are_released_in_any_order) {
  static const size_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                      {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (size_t go = 0; go <= 3; go++) {
    test_allocator memory;
    test_allocator_init(&memory, 0);
    weft_ctx *ctx = server_context(NULL, &memory.allocator);
    weft_server *server = server_on(&ctx, 1, batches_of_three);
    const uint8_t data[SEGMENT_BYTES] = {1};
    server_push(server, 0, data, sizeof data);
    server_request(server, 0, 0, 9);
    ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
    weft_server_packet packets[9];
    take_all(server, packets, 9);
    for (size_t i = 0; i < go; i++)
      weft_server_release(server, &packets[orders[_i][i] * 3], 3);
    weft_server_free(server);
    weft_ctx_free(ctx);
    ck_assert_int_eq(test_allocator_live(&memory), 0);
  }
}
END_TEST

static void endless_batches(weft_server_options *options) {
  options->batch_packets = SIZE_MAX;
  options->ready_bytes = SIZE_MAX;
  options->pending_packets = SIZE_MAX;
}

// A product whose packets would take more bytes than size_t holds, or than any memory has, fails
// with a status.
START_TEST(products_are_no_larger_than_a_size) {
  enum { REQUESTS = 3000, BLOCK = 1 << 20 }; // of 2^32 packets of 2^20 bytes each
  weft_ctx *ctx = server_context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, endless_batches);
  const weft_segment_id id = {7, 0, 1, BLOCK};
  const uint8_t data[1] = {1};
  ck_assert_int_eq(weft_server_push(server, &id, data, 1, 0, 1000), WEFT_OK);
  for (size_t i = 0; i < REQUESTS; i++)
    server_request(server, 0, i, UINT32_MAX);
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  weft_server_packet packet;
  size_t got = 0;
  struct pollfd fd = {.fd = weft_server_fd(server), .events = POLLIN};
  ck_assert_int_eq(poll(&fd, 1, 10000), 1);
  ck_assert_int_eq(weft_server_take(server, &packet, 1, &got), WEFT_OK);
  ck_assert_uint_eq(got, 1);
  ck_assert_int_eq(packet.status, WEFT_E_NOMEM);
  weft_server_free(server);
  weft_ctx_free(ctx);
}
END_TEST

static int64_t watching_clock(void *user) {
  test_signals_look(user);
  return server_clock_us(NULL);
}

// Lanes block all signals: those that an event loop waits for must not be delivered to a lane.
START_TEST(lanes_take_no_signals) {
  weft_ctx *ctx = server_context(NULL, NULL);
  test_signals watch;
  test_signals_init(&watch);
  const weft_server_options options = {
      .contexts = &ctx, .context_count = 1, .now_us = watching_clock, .user = &watch};
  weft_server *server = NULL;
  ck_assert_int_eq(weft_server_new(&options, &server), WEFT_OK);
  const uint8_t data[SEGMENT_BYTES] = {1};
  server_push(server, 0, data, sizeof data);
  server_request(server, 0, 0, 3);
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  size_t counts[2] = {0};
  server_take_all(server, 3, server_count_status, counts);
  weft_server_free(server);
  weft_ctx_free(ctx);
  ck_assert_uint_gt(atomic_load(&watch.looks), 0);
  ck_assert_uint_eq(atomic_load(&watch.open), 0);
  ck_assert(test_signals_open()); // the caller's own mask is unchanged
}
END_TEST

START_TEST(a_failed_allocation_is_a_status) {
  for (long n = 1;; n++) {
    test_allocator memory;
    test_allocator_init(&memory, n);
    const weft_ctx_options how = {.allocator = &memory.allocator};
    weft_ctx *ctx = NULL;
    weft_status status = weft_ctx_new(&ctx, &how);
    weft_server *server = NULL;
    const weft_server_options options = {
        .contexts = &ctx, .context_count = 1, .now_us = server_clock_us, .fall_over = true};
    if (status == WEFT_OK)
      status = weft_server_new(&options, &server);
    const uint8_t data[SEGMENT_BYTES] = {1};
    const weft_segment_id id = server_id(0);
    if (status == WEFT_OK)
      status = weft_server_push(server, &id, data, sizeof data, 0, 1000);
    const weft_server_request want = {7, 0, 0, 3};
    size_t accepted = 0;
    if (status == WEFT_OK)
      status = weft_server_request_many(server, &want, 1, 0, &accepted);
    if (status == WEFT_OK)
      status = weft_server_process(server, 0);
    if (status == WEFT_OK) {
      size_t counts[2] = {0};
      server_take_all(server, 3, server_count_status, counts);
      ck_assert(counts[0] == 3 || test_allocator_failed(&memory));
    } else {
      ck_assert_int_eq(status, WEFT_E_NOMEM);
    }
    weft_server_free(server);
    weft_ctx_free(ctx);
    ck_assert_int_eq(test_allocator_live(&memory), 0);
    if (!test_allocator_failed(&memory))
      break;
  }
}
END_TEST

// When no file descriptor is available, creating a server fails with a status and leaks nothing.
START_TEST(no_descriptor_is_left) {
  struct rlimit before;
  ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
  test_allocator memory;
  test_allocator_init(&memory, 0);
  weft_ctx *ctx = server_context(NULL, &memory.allocator);
  const weft_server_options options = {
      .contexts = &ctx, .context_count = 1, .now_us = server_clock_us};
  const struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
  weft_server *server = NULL;
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
  const weft_status status = weft_server_new(&options, &server);
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
  ck_assert_int_eq(status, WEFT_E_DESCRIPTOR);
  ck_assert_ptr_null(server);
  ck_assert_int_eq(weft_server_new(&options, &server), WEFT_OK);
  weft_server_free(server);
  weft_ctx_free(ctx);
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

START_TEST(arguments_are_checked) {
  weft_ctx *ctx = server_context(NULL, NULL);
  weft_server *server = NULL;
  weft_server_options options = {.contexts = &ctx, .context_count = 1};
  ck_assert_int_eq(weft_server_new(&options, &server), WEFT_E_ARGUMENT); // no clock
  options.now_us = server_clock_us;
  options.gather_us = -1;
  ck_assert_int_eq(weft_server_new(&options, &server), WEFT_E_ARGUMENT);
  options.gather_us = 0;
  options.context_count = 0;
  ck_assert_int_eq(weft_server_new(&options, &server), WEFT_E_ARGUMENT);
  options.context_count = WEFT_SERVER_MAX_LANES + 1;
  ck_assert_int_eq(weft_server_new(&options, &server), WEFT_E_ARGUMENT);
  weft_ctx *const both[] = {ctx, ctx};
  options.contexts = both;
  options.context_count = 2;
  options.repeatable = true; // which of two lanes is first cannot be repeated
  ck_assert_int_eq(weft_server_new(&options, &server), WEFT_E_ARGUMENT);
  options.repeatable = false;
  weft_ctx *most[WEFT_SERVER_MAX_LANES];
  for (size_t i = 0; i < WEFT_SERVER_MAX_LANES; i++)
    most[i] = ctx;
  options.contexts = most;
  options.context_count = WEFT_SERVER_MAX_LANES;
  ck_assert_int_eq(weft_server_new(&options, &server), WEFT_OK);
  weft_server_free(server);
  most[WEFT_SERVER_MAX_LANES - 1] = NULL;
  ck_assert_int_eq(weft_server_new(&options, &server), WEFT_E_ARGUMENT);
  server = server_on(&ctx, 1, NULL);
  const uint8_t data[SEGMENT_BYTES] = {1};
  const weft_segment_id id = server_id(0), empty = {7, 0, 0, K};
  ck_assert_int_eq(weft_server_push(server, &empty, data, 1, 0, 1), WEFT_E_ARGUMENT);
  ck_assert_int_eq(weft_server_push(server, &id, data, 0, 0, 1), WEFT_E_ARGUMENT);
  ck_assert_int_eq(weft_server_push(server, &id, data, SEGMENT_BYTES + 1, 0, 1), WEFT_E_ARGUMENT);
  ck_assert_int_eq(weft_server_push(server, &id, data, 1, 5, 5), WEFT_E_ARGUMENT);
  server_push(server, 0, data, 1);
  const weft_server_request none = {7, 0, 0, 0};
  size_t accepted = 0;
  ck_assert_int_eq(weft_server_request_many(server, &none, 1, 0, &accepted), WEFT_E_ARGUMENT);
  // Whoever counts on by what was accepted or taken counts on by nothing.
  size_t counts[] = {7, 7, 7, 7};
  ck_assert_int_eq(weft_server_request_many(NULL, &none, 1, 0, &counts[0]), WEFT_E_ARGUMENT);
  ck_assert_int_eq(weft_server_request_many(server, NULL, 1, 0, &counts[1]), WEFT_E_ARGUMENT);
  ck_assert_int_eq(weft_server_take(NULL, NULL, 0, &counts[2]), WEFT_E_ARGUMENT);
  ck_assert_int_eq(weft_server_take(server, NULL, 1, &counts[3]), WEFT_E_ARGUMENT);
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
    ck_assert_uint_eq(counts[i], 0);
  ck_assert_int_eq(weft_server_request_many(server, &none, 1, 0, NULL), WEFT_E_ARGUMENT);
  ck_assert_int_eq(weft_server_take(server, NULL, 0, NULL), WEFT_E_ARGUMENT);
  weft_server_free(server);
  weft_server_free(NULL);
  weft_ctx_free(ctx);
}
END_TEST

void server_add_failure_tests(TCase *cases) {
  tcase_add_test(cases, a_lane_that_fails_loses_no_packet);
  tcase_add_test(cases, what_no_lane_can_make_has_a_status);
  tcase_add_test(cases, nothing_is_left_of_what_fails_in_the_end);
  tcase_add_test(cases, lanes_end_one_by_one);
  tcase_add_test(cases, nothing_is_left_of_what_was_not_released);
  tcase_add_loop_test(cases, products_are_released_in_any_order, 0, 6);
  tcase_add_test(cases, products_are_no_larger_than_a_size);
  tcase_add_test(cases, lanes_take_no_signals);
  tcase_add_test(cases, a_failed_allocation_is_a_status);
  tcase_add_test(cases, no_descriptor_is_left);
  tcase_add_test(cases, arguments_are_checked);
}
