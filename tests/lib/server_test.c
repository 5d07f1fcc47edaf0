// SPDX-License-Identifier: Apache-2.0
// The streaming server's coder on host lanes: packets decode to the bytes pushed, budgets hold, the
// descriptor and the deadline drive a loop, and a lane that fails loses no packet.
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"
#include "weft/server.h"
#include "weft/weft.h"

enum { N = 16, K = 200, SEGMENT_BYTES = N * K, CLIENTS = 5, CROWD = 20 };

static int64_t clock_us(void *user) {
  (void)user;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static weft_segment_id id_of(uint64_t segment) { return (weft_segment_id){7, segment, N, K}; }

static weft_ctx *context(const char *backend, const weft_allocator *allocator) {
  const weft_ctx_options options = {.backend = backend, .allocator = allocator};
  weft_ctx *ctx = NULL;
  ck_assert_int_eq(weft_ctx_new(&ctx, &options), WEFT_OK);
  return ctx;
}

static weft_server *server_on(weft_ctx *const *contexts, size_t count,
                              void (*change)(weft_server_options *)) {
  weft_server_options options = {
      .contexts = contexts, .context_count = count, .now_us = clock_us, .fall_over = true};
  if (change)
    change(&options);
  weft_server *server = NULL;
  ck_assert_int_eq(weft_server_new(&options, &server), WEFT_OK);
  return server;
}

static void push(weft_server *server, uint64_t segment, const uint8_t *data, size_t bytes) {
  const weft_segment_id id = id_of(segment);
  ck_assert_int_eq(weft_server_push(server, &id, data, bytes, 0, 1000), WEFT_OK);
}

static void request(weft_server *server, uint64_t segment, uint64_t client, uint32_t packets) {
  const weft_server_request want = {7, segment, client, packets};
  size_t accepted = 0;
  ck_assert_int_eq(weft_server_request_many(server, &want, 1, 0, &accepted), WEFT_OK);
  ck_assert_uint_eq(accepted, 1);
}

// Waits for the descriptor, then takes one packet at a time until `count` were handed to `see`.
static void take_all(weft_server *server, size_t count,
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

static void decode(void *user, const weft_server_packet *packet) {
  weft_decoder **decoders = user;
  ck_assert_int_eq(packet->status, WEFT_OK);
  ck_assert_uint_lt(packet->client, CLIENTS);
  const weft_status status =
      weft_decoder_add_datagram(decoders[packet->client], packet->datagram, packet->bytes);
  ck_assert_msg(status == WEFT_OK || status == WEFT_DEPENDENT, "%s", weft_status_name(status));
}

// Every client asks for n packets and one more of its segment, decodes, and compares.
static void serve_everyone(weft_ctx *const *contexts, size_t count, uint64_t seed) {
  weft_server *server = server_on(contexts, count, NULL);
  test_rng rng = test_rng_new(seed, 1);
  uint8_t data[2][SEGMENT_BYTES] = {{0}};
  const size_t bytes[2] = {SEGMENT_BYTES, SEGMENT_BYTES - K - 3};
  weft_decoder *decoders[CLIENTS];
  for (uint64_t s = 0; s < 2; s++) {
    test_rng_fill(&rng, data[s], bytes[s]);
    push(server, s, data[s], bytes[s]);
  }
  for (uint64_t c = 0; c < CLIENTS; c++) {
    const weft_decoder_options options = {.id = id_of(c % 2)};
    ck_assert_int_eq(weft_decoder_new(contexts[0], &options, &decoders[c]), WEFT_OK);
    request(server, c % 2, c, N + 3);
  }
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  take_all(server, CLIENTS * (N + 3), decode, decoders);
  for (uint64_t c = 0; c < CLIENTS; c++) {
    uint8_t out[SEGMENT_BYTES];
    ck_assert_int_eq(weft_decoder_read(decoders[c], 0, SEGMENT_BYTES, out), WEFT_OK);
    ck_assert_mem_eq(out, data[c % 2], SEGMENT_BYTES);
    weft_decoder_free(decoders[c]);
  }
  weft_server_stats stats;
  weft_server_get_stats(server, &stats);
  ck_assert_uint_eq(stats.ready_bytes, 0);
  ck_assert_uint_eq(stats.pending_packets, 0);
  ck_assert_uint_eq(stats.segments, 2);
  weft_server_free(server);
}

START_TEST(packets_decode_to_the_bytes_pushed) {
  for (size_t lanes = 1; lanes <= 3; lanes++) {
    weft_ctx *contexts[3] = {context(NULL, NULL), context("scalar", NULL),
                             context("logdomain", NULL)};
    serve_everyone(contexts, lanes, test_seed());
    for (size_t i = 0; i < 3; i++)
      weft_ctx_free(contexts[i]);
  }
}
END_TEST

static void small_batches(weft_server_options *options) { options->batch_packets = 4; }

static void count_client(void *user, const weft_server_packet *packet) { // counts: (CROWD)
  size_t *counts = user;
  ck_assert_int_eq(packet->status, WEFT_OK);
  ck_assert_uint_lt(packet->client, CROWD);
  counts[packet->client]++;
}

START_TEST(split_requests_keep_their_counts) {
  weft_ctx *ctx = context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, small_batches);
  const uint8_t data[SEGMENT_BYTES] = {1};
  push(server, 0, data, sizeof data);
  const uint32_t wanted[CLIENTS] = {1, 9, 2, 30, 4};
  size_t total = 0, counts[CROWD] = {0};
  for (uint64_t c = 0; c < CLIENTS; c++) {
    request(server, 0, c, wanted[c]);
    total += wanted[c];
  }
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  take_all(server, total, count_client, counts);
  for (size_t c = 0; c < CLIENTS; c++)
    ck_assert_uint_eq(counts[c], wanted[c]);
  weft_server_free(server);
  weft_ctx_free(ctx);
}
END_TEST

static void gather_for_100(weft_server_options *options) { options->gather_us = 100; }

START_TEST(requests_wait_for_company_until_the_deadline) {
  weft_ctx *ctx = context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, gather_for_100);
  const uint8_t data[SEGMENT_BYTES] = {1};
  ck_assert(weft_server_deadline(server) == INT64_MAX);
  push(server, 0, data, sizeof data);
  ck_assert_int_eq(weft_server_deadline(server), 1000);
  request(server, 0, 0, 1);
  ck_assert_int_eq(weft_server_deadline(server), 100);
  request(server, 0, 1, 1);
  weft_server_stats stats;
  ck_assert_int_eq(weft_server_process(server, 99), WEFT_OK);
  weft_server_get_stats(server, &stats);
  ck_assert_uint_eq(stats.pending_packets, 2);
  ck_assert_int_eq(weft_server_process(server, 100), WEFT_OK);
  size_t counts[CROWD] = {0};
  take_all(server, 2, count_client, counts);
  weft_server_get_stats(server, &stats);
  ck_assert_uint_eq(stats.lane[0].batches, 1); // one product for both
  ck_assert_int_eq(weft_server_deadline(server), 1000);
  weft_server_free(server);
  weft_ctx_free(ctx);
}
END_TEST

static void gather_for_ever(weft_server_options *options) { options->gather_us = INT64_MAX; }

START_TEST(a_wait_without_end_does_not_overflow) {
  weft_ctx *ctx = context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, gather_for_ever);
  const uint8_t data[SEGMENT_BYTES] = {1};
  push(server, 0, data, sizeof data);
  const weft_server_request want = {7, 0, 0, 1}; // at 999 us, due 2^63 - 1 us later
  size_t accepted = 0;
  ck_assert_int_eq(weft_server_request_many(server, &want, 1, 999, &accepted), WEFT_OK);
  ck_assert_int_eq(weft_server_deadline(server), 1000);
  ck_assert_int_eq(weft_server_process(server, 999), WEFT_OK);
  weft_server_stats stats;
  weft_server_get_stats(server, &stats);
  ck_assert_uint_eq(stats.pending_packets, 1);
  ck_assert_uint_eq(weft_server_predict_lane(server, NULL, 3), 0);
  weft_server_free(server);
  weft_ctx_free(ctx);
}
END_TEST

static void room_for_two(weft_server_options *options) {
  options->memory_bytes = 2 * SEGMENT_BYTES + 1;
}

START_TEST(segments_are_evicted_by_age_and_by_budget) {
  weft_ctx *ctx = context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, room_for_two);
  const uint8_t data[SEGMENT_BYTES] = {1};
  push(server, 0, data, sizeof data);
  push(server, 1, data, sizeof data);
  weft_segment_id again = id_of(1);
  ck_assert_int_eq(weft_server_push(server, &again, data, 1, 0, 1000), WEFT_E_STATE);
  request(server, 0, 0, 1); // 1 is now the one least recently asked for
  push(server, 2, data, sizeof data);
  ck_assert(weft_server_has(server, 7, 0) && !weft_server_has(server, 7, 1));
  request(server, 2, 0, 1);
  again = id_of(3); // both that are there have packets pending
  ck_assert_int_eq(weft_server_push(server, &again, data, 1, 0, 1000), WEFT_E_NOMEM);
  size_t accepted = 9;
  const weft_server_request gone = {7, 1, 0, 1};
  ck_assert_int_eq(weft_server_request_many(server, &gone, 1, 0, &accepted), WEFT_E_FOREIGN);
  ck_assert_uint_eq(accepted, 0);
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  size_t counts[CROWD] = {0};
  take_all(server, 2, count_client, counts);
  ck_assert_int_eq(weft_server_process(server, 1000), WEFT_OK);
  ck_assert(!weft_server_has(server, 7, 0) && !weft_server_has(server, 7, 2));
  weft_server_stats stats;
  weft_server_get_stats(server, &stats);
  ck_assert_uint_eq(stats.segments, 0);
  ck_assert_uint_eq(stats.segment_bytes, 0);
  ck_assert_uint_eq(stats.evicted, 1);
  ck_assert_uint_eq(stats.expired, 2);
  weft_server_free(server);
  weft_ctx_free(ctx);
}
END_TEST

// What finds no room whatever goes takes nobody else's.
START_TEST(what_does_not_fit_evicts_nothing) {
  weft_ctx *ctx = context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, room_for_two);
  const uint8_t data[SEGMENT_BYTES] = {1};
  push(server, 0, data, sizeof data);
  push(server, 1, data, sizeof data);
  const weft_segment_id large = {7, 2, N, 3 * K}, two = {7, 3, N, 2 * K};
  ck_assert_int_eq(weft_server_push(server, &large, data, 1, 0, 1000), WEFT_E_NOMEM);
  ck_assert(weft_server_has(server, 7, 0) && weft_server_has(server, 7, 1));
  request(server, 0, 0, 1); // which stays, and leaves room for one
  ck_assert_int_eq(weft_server_push(server, &two, data, 1, 0, 1000), WEFT_E_NOMEM);
  ck_assert(weft_server_has(server, 7, 0) && weft_server_has(server, 7, 1));
  push(server, 4, data, sizeof data);
  ck_assert(weft_server_has(server, 7, 0) && !weft_server_has(server, 7, 1));
  weft_server_stats stats;
  weft_server_get_stats(server, &stats);
  ck_assert_uint_eq(stats.evicted, 1);
  weft_server_free(server);
  weft_ctx_free(ctx);
}
END_TEST

// --- many of everything ---

enum { MANY = 200 };

START_TEST(many_segments_are_found) {
  weft_ctx *ctx = context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, NULL);
  const uint8_t data[1] = {1};
  test_rng rng = test_rng_new(test_seed(), 2);
  uint64_t ids[MANY]; // not in turn, which would go round the table
  for (size_t i = 0; i < MANY; i++) {
    const weft_segment_id id = id_of(ids[i] = test_rng_next(&rng));
    ck_assert_int_eq(weft_server_push(server, &id, data, 1, 0, i % 2 ? 1000 : 500), WEFT_OK);
  }
  for (size_t i = 0; i < MANY; i++)
    ck_assert(weft_server_has(server, 7, ids[i]) && !weft_server_has(server, 8, ids[i]));
  ck_assert_int_eq(weft_server_process(server, 500), WEFT_OK); // every other one goes
  for (size_t i = 0; i < MANY; i++)
    ck_assert(weft_server_has(server, 7, ids[i]) == (i % 2 == 1));
  weft_server_free(server);
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(a_crowd_gets_what_each_asked_for) {
  weft_ctx *ctx = context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, NULL);
  const uint8_t data[SEGMENT_BYTES] = {1};
  size_t counts[CROWD] = {0}, all = 0;
  push(server, 0, data, sizeof data);
  for (uint32_t c = 0; c < CROWD; c++, all += c)
    request(server, 0, c, 1 + c);
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  take_all(server, all, count_client, counts);
  for (size_t c = 0; c < CROWD; c++)
    ck_assert_uint_eq(counts[c], 1 + c);
  weft_server_free(server);
  weft_ctx_free(ctx);
}
END_TEST

static void batches_of_four(weft_server_options *options) {
  options->batch_packets = 4;
  options->gather_us = 1000000;
}

static void note_seed(void *user, const weft_server_packet *packet) {
  uint64_t *seeds = user;
  weft_packet parsed;
  ck_assert_int_eq(weft_packet_parse(packet->datagram, packet->bytes, &parsed), WEFT_OK);
  for (size_t i = 1; i <= seeds[0]; i++)
    ck_assert_uint_ne(seeds[i], parsed.seed);
  seeds[++seeds[0]] = parsed.seed;
}

// A product's worth of packets waits for no others; and no two products make the same packet.
START_TEST(full_products_start_and_differ) {
  weft_ctx *ctx = context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, batches_of_four);
  const uint8_t data[SEGMENT_BYTES] = {1};
  uint64_t seeds[1 + 24] = {0};
  push(server, 0, data, sizeof data);
  for (int round = 0; round < 3; round++) {
    request(server, 0, 0, 8);
    ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
    take_all(server, 8, note_seed, seeds);
  }
  weft_server_free(server);
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(nothing_is_made_of_what_has_expired) {
  weft_ctx *ctx = context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, NULL);
  const uint8_t data[SEGMENT_BYTES] = {1};
  push(server, 0, data, sizeof data); // until 1000
  const weft_server_request late = {7, 0, 0, 1};
  size_t accepted = 1;
  ck_assert_int_eq(weft_server_request_many(server, &late, 1, 1000, &accepted), WEFT_E_FOREIGN);
  ck_assert_uint_eq(accepted, 0);
  // What is in the making when its segment expires is made all the same.
  for (uint64_t s = 1; s < 40; s++) {
    size_t counts[CROWD] = {0};
    push(server, s, data, sizeof data);
    request(server, s, 0, 50);
    ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
    ck_assert_int_eq(weft_server_process(server, 1000), WEFT_OK);
    ck_assert(!weft_server_has(server, 7, s));
    take_all(server, 50, count_client, counts);
  }
  weft_server_free(server);
  weft_ctx_free(ctx);
}
END_TEST

static void little_ready(weft_server_options *options) {
  options->batch_packets = 4;
  options->ready_bytes = 1;
}

START_TEST(packets_not_released_hold_further_ones_back) {
  weft_ctx *ctx = context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, little_ready);
  const uint8_t data[SEGMENT_BYTES] = {1};
  push(server, 0, data, sizeof data);
  request(server, 0, 0, 10);
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  weft_server_stats stats;
  weft_server_get_stats(server, &stats);
  ck_assert_uint_eq(stats.pending_packets, 6);
  // Only the expiry waits for time: the rest waits for the caller to release packets.
  ck_assert_int_eq(weft_server_deadline(server), 1000);
  size_t counts[CROWD] = {0};
  take_all(server, 10, count_client, counts);
  ck_assert_uint_eq(counts[0], 10);
  weft_server_free(server);
  weft_ctx_free(ctx);
}
END_TEST

// Memory of a lane's context that is used up once the server runs.
typedef struct drying_memory {
  test_allocator memory;
  weft_allocator allocator;
  bool dry;
} drying_memory;

static void *drying_alloc(void *user, size_t bytes, size_t align) {
  drying_memory *self = user;
  return self->dry ? NULL : self->memory.allocator.alloc(self->memory.allocator.user, bytes, align);
}

static void drying_free(void *user, void *bytes) {
  drying_memory *self = user;
  self->memory.allocator.free(self->memory.allocator.user, bytes);
}

static void no_fall_over(weft_server_options *options) { options->fall_over = false; }

static void count_status(void *user, const weft_server_packet *packet) {
  size_t *counts = user;
  counts[packet->status == WEFT_OK ? 0 : 1]++;
  ck_assert(packet->status == WEFT_OK || packet->datagram == NULL);
}

START_TEST(a_lane_that_fails_loses_no_packet) {
  for (int fall_over = 0; fall_over < 2; fall_over++) {
    drying_memory drying = {.allocator = {drying_alloc, drying_free, &drying}};
    test_allocator_init(&drying.memory, 0);
    weft_ctx *contexts[2] = {context("scalar", NULL), context(NULL, &drying.allocator)};
    weft_server *server = server_on(contexts, 2, fall_over ? NULL : no_fall_over);
    const uint8_t data[SEGMENT_BYTES] = {1};
    push(server, 0, data, sizeof data);
    const weft_segment_id id = id_of(0);
    // The better row is the one that will fail, so it is the one chosen.
    ck_assert_uint_eq(weft_server_predict_lane(server, &id, 100), 1);
    drying.dry = true;
    request(server, 0, 0, 100);
    ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
    size_t counts[2] = {0};
    take_all(server, 100, count_status, counts);
    ck_assert_uint_eq(counts[fall_over ? 0 : 1], 100);
    weft_server_stats stats;
    weft_server_get_stats(server, &stats);
    ck_assert_uint_eq(stats.fallen_over, (uint64_t)fall_over);
    weft_server_free(server);
    weft_ctx_free(contexts[0]);
    weft_ctx_free(contexts[1]);
    ck_assert_int_eq(test_allocator_live(&drying.memory), 0);
  }
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
        .contexts = &ctx, .context_count = 1, .now_us = clock_us, .fall_over = true};
    if (status == WEFT_OK)
      status = weft_server_new(&options, &server);
    const uint8_t data[SEGMENT_BYTES] = {1};
    const weft_segment_id id = id_of(0);
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
      take_all(server, 3, count_status, counts);
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

START_TEST(arguments_are_checked) {
  weft_ctx *ctx = context(NULL, NULL);
  weft_server *server = NULL;
  weft_server_options options = {.contexts = &ctx, .context_count = 1};
  ck_assert_int_eq(weft_server_new(&options, &server), WEFT_E_ARGUMENT); // no clock
  options.now_us = clock_us;
  options.context_count = 0;
  ck_assert_int_eq(weft_server_new(&options, &server), WEFT_E_ARGUMENT);
  options.context_count = WEFT_SERVER_MAX_LANES + 1;
  ck_assert_int_eq(weft_server_new(&options, &server), WEFT_E_ARGUMENT);
  server = server_on(&ctx, 1, NULL);
  const uint8_t data[SEGMENT_BYTES] = {1};
  const weft_segment_id id = id_of(0), empty = {7, 0, 0, K};
  ck_assert_int_eq(weft_server_push(server, &empty, data, 1, 0, 1), WEFT_E_ARGUMENT);
  ck_assert_int_eq(weft_server_push(server, &id, data, 0, 0, 1), WEFT_E_ARGUMENT);
  ck_assert_int_eq(weft_server_push(server, &id, data, SEGMENT_BYTES + 1, 0, 1), WEFT_E_ARGUMENT);
  ck_assert_int_eq(weft_server_push(server, &id, data, 1, 5, 5), WEFT_E_ARGUMENT);
  push(server, 0, data, 1);
  const weft_server_request none = {7, 0, 0, 0};
  size_t accepted = 0;
  ck_assert_int_eq(weft_server_request_many(server, &none, 1, 0, &accepted), WEFT_E_ARGUMENT);
  weft_server_free(server);
  weft_server_free(NULL);
  weft_ctx_free(ctx);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("server");
  TCase *tests = tcase_create("server");
  tcase_add_test(tests, packets_decode_to_the_bytes_pushed);
  tcase_add_test(tests, split_requests_keep_their_counts);
  tcase_add_test(tests, requests_wait_for_company_until_the_deadline);
  tcase_add_test(tests, a_wait_without_end_does_not_overflow);
  tcase_add_test(tests, segments_are_evicted_by_age_and_by_budget);
  tcase_add_test(tests, what_does_not_fit_evicts_nothing);
  tcase_add_test(tests, many_segments_are_found);
  tcase_add_test(tests, a_crowd_gets_what_each_asked_for);
  tcase_add_test(tests, full_products_start_and_differ);
  tcase_add_test(tests, nothing_is_made_of_what_has_expired);
  tcase_add_test(tests, packets_not_released_hold_further_ones_back);
  tcase_add_test(tests, a_lane_that_fails_loses_no_packet);
  tcase_add_test(tests, a_failed_allocation_is_a_status);
  tcase_add_test(tests, arguments_are_checked);
  suite_add_tcase(suite, tests);
  return test_main(suite);
}
