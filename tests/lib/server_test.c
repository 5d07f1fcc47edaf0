// SPDX-License-Identifier: Apache-2.0
// The streaming server's coder on host lanes: packets decode to the bytes pushed, limits hold, the
// descriptor and the deadline suffice for an event loop, and a failing lane loses no packet.
#include "tests/lib/server_cases.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { CLIENTS = 5, CROWD = 20 };

static void decode(void *user, const weft_server_packet *packet) {
  weft_decoder **decoders = user;
  ck_assert_int_eq(packet->status, WEFT_OK);
  ck_assert_uint_lt(packet->client, CLIENTS);
  const weft_status status =
      weft_decoder_add_datagram(decoders[packet->client], packet->datagram, packet->bytes);
  ck_assert_msg(status == WEFT_OK || status == WEFT_DEPENDENT, "%s", weft_status_name(status));
}

// Every client requests n packets and one more of its segment, decodes them, and compares.
static void serve_everyone(weft_ctx *const *contexts, size_t count, uint64_t seed) {
  weft_server *server = server_on(contexts, count, NULL);
  test_rng rng = test_rng_new(seed, 1);
  uint8_t data[2][SEGMENT_BYTES] = {{0}};
  const size_t bytes[2] = {SEGMENT_BYTES, SEGMENT_BYTES - K - 3};
  weft_decoder *decoders[CLIENTS];
  for (uint64_t s = 0; s < 2; s++) {
    test_rng_fill(&rng, data[s], bytes[s]);
    server_push(server, s, data[s], bytes[s]);
  }
  for (uint64_t c = 0; c < CLIENTS; c++) {
    const weft_decoder_options options = {.id = server_id(c % 2)};
    ck_assert_int_eq(weft_decoder_new(contexts[0], &options, &decoders[c]), WEFT_OK);
    server_request(server, c % 2, c, N + 3);
  }
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  server_take_all(server, CLIENTS * (N + 3), decode, decoders);
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
    weft_ctx *contexts[3] = {server_context(NULL, NULL), server_context("scalar", NULL),
                             server_context("logdomain", NULL)};
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

// Requests divided among several products get exactly as many packets as requested.
START_TEST(split_requests_keep_their_counts) {
  weft_ctx *ctx = server_context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, small_batches);
  const uint8_t data[SEGMENT_BYTES] = {1};
  server_push(server, 0, data, sizeof data);
  const uint32_t wanted[CLIENTS] = {1, 9, 2, 30, 4};
  size_t total = 0, counts[CROWD] = {0};
  for (uint64_t c = 0; c < CLIENTS; c++) {
    server_request(server, 0, c, wanted[c]);
    total += wanted[c];
  }
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  server_take_all(server, total, count_client, counts);
  for (size_t c = 0; c < CLIENTS; c++)
    ck_assert_uint_eq(counts[c], wanted[c]);
  weft_server_free(server);
  weft_ctx_free(ctx);
}
END_TEST

static void gather_for_100(weft_server_options *options) { options->gather_us = 100; }

// Requests gather for gather_us and then share a product.
START_TEST(requests_wait_for_company_until_the_deadline) {
  weft_ctx *ctx = server_context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, gather_for_100);
  const uint8_t data[SEGMENT_BYTES] = {1};
  ck_assert(weft_server_deadline(server) == INT64_MAX);
  server_push(server, 0, data, sizeof data);
  ck_assert_int_eq(weft_server_deadline(server), 1000);
  server_request(server, 0, 0, 1);
  ck_assert_int_eq(weft_server_deadline(server), 100);
  server_request(server, 0, 1, 1);
  weft_server_stats stats;
  ck_assert_int_eq(weft_server_process(server, 99), WEFT_OK);
  weft_server_get_stats(server, &stats);
  ck_assert_uint_eq(stats.pending_packets, 2);
  ck_assert_int_eq(weft_server_process(server, 100), WEFT_OK);
  size_t counts[CROWD] = {0};
  server_take_all(server, 2, count_client, counts);
  weft_server_get_stats(server, &stats);
  ck_assert_uint_eq(stats.lane[0].batches, 1); // one product for both
  ck_assert_int_eq(weft_server_deadline(server), 1000);
  weft_server_free(server);
  weft_ctx_free(ctx);
}
END_TEST

static void gather_for_ever(weft_server_options *options) { options->gather_us = INT64_MAX; }

START_TEST(a_wait_without_end_does_not_overflow) {
  weft_ctx *ctx = server_context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, gather_for_ever);
  const uint8_t data[SEGMENT_BYTES] = {1};
  server_push(server, 0, data, sizeof data);
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
  weft_ctx *ctx = server_context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, room_for_two);
  const uint8_t data[SEGMENT_BYTES] = {1};
  server_push(server, 0, data, sizeof data);
  server_push(server, 1, data, sizeof data);
  weft_segment_id again = server_id(1);
  ck_assert_int_eq(weft_server_push(server, &again, data, 1, 0, 1000), WEFT_E_STATE);
  server_request(server, 0, 0, 1); // 1 is now the least recently requested one
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  size_t counts[CROWD] = {0};
  server_take_all(server, 1, count_client, counts); // so that 0 can be evicted as well
  server_push(server, 2, data, sizeof data);
  ck_assert(weft_server_has(server, 7, 0) && !weft_server_has(server, 7, 1));
  server_request(server, 0, 0, 1);
  server_request(server, 2, 0, 1);
  again = server_id(3); // both segments have packets pending
  ck_assert_int_eq(weft_server_push(server, &again, data, 1, 0, 1000), WEFT_E_NOMEM);
  size_t accepted = 9;
  const weft_server_request gone = {7, 1, 0, 1};
  ck_assert_int_eq(weft_server_request_many(server, &gone, 1, 0, &accepted), WEFT_E_FOREIGN);
  ck_assert_uint_eq(accepted, 0);
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  server_take_all(server, 2, count_client, counts);
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

// A segment that cannot fit whatever is evicted evicts nothing.
START_TEST(what_does_not_fit_evicts_nothing) {
  weft_ctx *ctx = server_context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, room_for_two);
  const uint8_t data[SEGMENT_BYTES] = {1};
  server_push(server, 0, data, sizeof data);
  server_push(server, 1, data, sizeof data);
  const weft_segment_id large = {7, 2, N, 3 * K}, two = {7, 3, N, 2 * K};
  ck_assert_int_eq(weft_server_push(server, &large, data, 1, 0, 1000), WEFT_E_NOMEM);
  ck_assert(weft_server_has(server, 7, 0) && weft_server_has(server, 7, 1));
  server_request(server, 0, 0, 1); // 0 stays now, which leaves room for one
  ck_assert_int_eq(weft_server_push(server, &two, data, 1, 0, 1000), WEFT_E_NOMEM);
  ck_assert(weft_server_has(server, 7, 0) && weft_server_has(server, 7, 1));
  server_push(server, 4, data, sizeof data);
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
  weft_ctx *ctx = server_context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, NULL);
  const uint8_t data[1] = {1};
  test_rng rng = test_rng_new(test_seed(), 2);
  uint64_t ids[MANY]; // random: consecutive ids would fill the table evenly
  for (size_t i = 0; i < MANY; i++) {
    const weft_segment_id id = server_id(ids[i] = test_rng_next(&rng));
    ck_assert_int_eq(weft_server_push(server, &id, data, 1, 0, i % 2 ? 1000 : 500), WEFT_OK);
  }
  for (size_t i = 0; i < MANY; i++)
    ck_assert(weft_server_has(server, 7, ids[i]) && !weft_server_has(server, 8, ids[i]));
  ck_assert_int_eq(weft_server_process(server, 500), WEFT_OK); // every other one expires
  for (size_t i = 0; i < MANY; i++)
    ck_assert(weft_server_has(server, 7, ids[i]) == (i % 2 == 1));
  weft_server_free(server);
  weft_ctx_free(ctx);
}
END_TEST

// Streams number their segments alike.
START_TEST(segments_of_one_number_are_told_apart) {
  weft_ctx *ctx = server_context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, NULL);
  const uint8_t data[1] = {1};
  test_rng rng = test_rng_new(test_seed(), 3);
  const uint64_t first = test_rng_next(&rng) | 1;
  for (uint64_t i = 0; i < MANY; i++) {
    const weft_segment_id id = {.stream = first + 2 * i, .segment = 5, N, K};
    ck_assert_int_eq(weft_server_push(server, &id, data, 1, 0, 1000), WEFT_OK);
  }
  for (uint64_t i = 0; i < 2 * MANY; i++)
    ck_assert(weft_server_has(server, first + i, 5) == (i % 2 == 0));
  for (uint64_t i = 0; i < MANY; i += 2)
    ck_assert_int_eq(weft_server_drop(server, first + 2 * i, 5), WEFT_OK);
  for (uint64_t i = 0; i < MANY; i++)
    ck_assert(weft_server_has(server, first + 2 * i, 5) == (i % 2 == 1));
  weft_server_free(server);
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(a_crowd_gets_what_each_asked_for) {
  weft_ctx *ctx = server_context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, NULL);
  const uint8_t data[SEGMENT_BYTES] = {1};
  size_t counts[CROWD] = {0}, all = 0;
  server_push(server, 0, data, sizeof data);
  for (uint32_t c = 0; c < CROWD; c++, all += c)
    server_request(server, 0, c, 1 + c);
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  server_take_all(server, all, count_client, counts);
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

static void sparse_batches_of_four(weft_server_options *options) {
  batches_of_four(options);
  options->density_q16 = 2000; // most seeds give only zeros and are skipped
}

// A full product is due at once, even if requests of another segment came before: a loop that
// follows the deadline codes it immediately.
START_TEST(a_full_product_is_due_at_once) {
  weft_ctx *ctx = server_context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, batches_of_four);
  const uint8_t data[SEGMENT_BYTES] = {1};
  size_t counts[CROWD] = {0};
  server_push(server, 0, data, sizeof data); // until 1000
  server_push(server, 1, data, sizeof data);
  server_request(server, 0, 0, 1);
  server_request(server, 1, 1, 3);
  ck_assert_int_eq(weft_server_deadline(server), 1000);
  server_request(server, 1, 2, 1);
  ck_assert_int_le(weft_server_deadline(server), 0);
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  ck_assert_int_eq(weft_server_deadline(server), 1000);
  server_take_all(server, 4, count_client, counts);
  ck_assert(counts[0] == 0 && counts[1] == 3 && counts[2] == 1);
  weft_server_free(server);
  weft_ctx_free(ctx);
}
END_TEST

static void note_seed(void *user, const weft_server_packet *packet) {
  uint64_t *seeds = user;
  weft_packet parsed;
  ck_assert_int_eq(weft_packet_parse(packet->datagram, packet->bytes, &parsed), WEFT_OK);
  for (size_t i = 1; i <= seeds[0]; i++)
    ck_assert_uint_ne(seeds[i], parsed.seed);
  seeds[++seeds[0]] = parsed.seed;
}

// A full product does not wait for further requests, and no two products contain the same packet.
START_TEST(full_products_start_and_differ) {
  weft_ctx *ctx = server_context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, _i == 0 ? batches_of_four : sparse_batches_of_four);
  const uint8_t data[SEGMENT_BYTES] = {1};
  uint64_t seeds[1 + 24] = {0};
  server_push(server, 0, data, sizeof data);
  for (int round = 0; round < 3; round++) {
    server_request(server, 0, 0, 8);
    ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
    server_take_all(server, 8, note_seed, seeds);
  }
  weft_server_free(server);
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(nothing_is_made_of_what_has_expired) {
  weft_ctx *ctx = server_context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, NULL);
  const uint8_t data[SEGMENT_BYTES] = {1};
  server_push(server, 0, data, sizeof data); // until 1000
  const weft_server_request late = {7, 0, 0, 1};
  size_t accepted = 1;
  ck_assert_int_eq(weft_server_request_many(server, &late, 1, 1000, &accepted), WEFT_E_FOREIGN);
  ck_assert_uint_eq(accepted, 0);
  // A packet that is being made when its segment expires is still delivered.
  for (uint64_t s = 1; s < 40; s++) {
    size_t counts[CROWD] = {0};
    server_push(server, s, data, sizeof data);
    server_request(server, s, 0, 50);
    ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
    ck_assert_int_eq(weft_server_process(server, 1000), WEFT_OK);
    ck_assert(!weft_server_has(server, 7, s));
    server_take_all(server, 50, count_client, counts);
  }
  weft_server_free(server);
  weft_ctx_free(ctx);
}
END_TEST

// Segments expire each at its own time, in whatever order they were pushed.
START_TEST(segments_expire_one_by_one) {
  static const int64_t until_us[] = {3000, 1000, 4000, 2000};
  weft_ctx *ctx = server_context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, NULL);
  const uint8_t data[1] = {1};
  for (uint64_t i = 0; i < 4; i++) {
    const weft_segment_id id = server_id(i);
    ck_assert_int_eq(weft_server_push(server, &id, data, 1, 0, until_us[i]), WEFT_OK);
  }
  for (int64_t now_us = 1000; now_us <= 4000; now_us += 1000) {
    ck_assert_int_eq(weft_server_deadline(server), now_us);
    ck_assert_int_eq(weft_server_process(server, now_us), WEFT_OK);
    for (uint64_t i = 0; i < 4; i++)
      ck_assert_int_eq(weft_server_has(server, 7, i), until_us[i] > now_us);
  }
  ck_assert_int_eq(weft_server_deadline(server), INT64_MAX);
  weft_server_free(server);
  weft_ctx_free(ctx);
}
END_TEST

static void gather_for_5000(weft_server_options *options) { options->gather_us = 5000; }

// Packets requested before their segment expires, at 1000, are delivered even if they are due
// later.
START_TEST(what_was_promised_outlives_its_segment) {
  weft_ctx *ctx = server_context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, gather_for_5000);
  const uint8_t data[SEGMENT_BYTES] = {1};
  server_push(server, 0, data, sizeof data);
  server_request(server, 0, 0, 3);
  ck_assert_int_eq(weft_server_process(server, 1000), WEFT_OK);
  ck_assert(weft_server_has(server, 7, 0));
  ck_assert_int_eq(weft_server_deadline(server), 5000);
  ck_assert_int_eq(weft_server_process(server, 5000), WEFT_OK);
  ck_assert(!weft_server_has(server, 7, 0)); // no request needs it any more
  size_t counts[CROWD] = {0};
  server_take_all(server, 3, count_client, counts);
  ck_assert_uint_eq(counts[0], 3);
  weft_server_stats stats;
  weft_server_get_stats(server, &stats);
  ck_assert(stats.segment_bytes == 0 && stats.expired == 1);
  weft_server_free(server);
  weft_ctx_free(ctx);
}
END_TEST

enum { STRIDE = 256 }; // of a datagram of (N, K) in a product

static void little_ready(weft_server_options *options) {
  options->batch_packets = 4;
  options->ready_bytes = (size_t)4 * STRIDE;
}

// Packets that the caller has not released count towards ready_bytes and delay further ones.
START_TEST(packets_not_released_hold_further_ones_back) {
  weft_ctx *ctx = server_context(NULL, NULL);
  weft_server *server = server_on(&ctx, 1, little_ready);
  const uint8_t data[SEGMENT_BYTES] = {1};
  server_push(server, 0, data, sizeof data);
  server_request(server, 0, 0, 10);
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  weft_server_stats stats;
  weft_server_get_stats(server, &stats);
  ck_assert_uint_eq(stats.pending_packets, 6);
  // The deadline is only the expiry: the other packets wait until the caller releases some.
  ck_assert_int_eq(weft_server_deadline(server), 1000);
  size_t counts[CROWD] = {0};
  server_take_all(server, 10, count_client, counts);
  ck_assert_uint_eq(counts[0], 10);
  weft_server_free(server);
  weft_ctx_free(ctx);
}
END_TEST

static size_t bound; // the ready_bytes of the next server

static void bound_ready(weft_server_options *options) {
  options->batch_packets = 7;
  options->ready_bytes = bound;
}

// A limit below four packets counts as four.
static size_t bound_of_four(void) {
  return bound < (size_t)4 * STRIDE ? (size_t)4 * STRIDE : bound;
}

typedef struct bounded {
  weft_server *server;
  size_t counts[CROWD];
} bounded;

static void check_bound(void *user, const weft_server_packet *packet) {
  bounded *b = user;
  weft_server_stats stats;
  weft_server_get_stats(b->server, &stats);
  ck_assert_msg(stats.ready_bytes <= bound_of_four(), "%zu held of %zu", stats.ready_bytes, bound);
  count_client(b->counts, packet);
}

// Coded packets stay within their limit while packets are released one by one.
START_TEST(coded_packets_keep_within_their_bound) {
  weft_ctx *ctx = server_context(NULL, NULL);
  const uint8_t data[SEGMENT_BYTES] = {1};
  for (bound = 1; bound < (size_t)60 * STRIDE; bound += 1 + bound / 3) {
    bounded b = {.server = server_on(&ctx, 1, bound_ready)};
    size_t total = 0;
    for (uint32_t s = 0; s < 2; s++)
      server_push(b.server, s, data, sizeof data);
    for (uint32_t c = 0; c < CROWD; total += 1 + c % 9, c++)
      server_request(b.server, c % 2, c, 1 + c % 9);
    ck_assert_int_eq(weft_server_process(b.server, 0), WEFT_OK);
    weft_server_stats stats;
    weft_server_get_stats(b.server, &stats);
    // As much is started as there is room for.
    ck_assert_uint_ge(stats.ready_bytes, bound_of_four() / 2);
    server_take_all(b.server, total, check_bound, &b);
    for (uint32_t c = 0; c < CROWD; c++)
      ck_assert_uint_eq(b.counts[c], 1 + c % 9);
    weft_server_free(b.server);
  }
  weft_ctx_free(ctx);
}
END_TEST

static int64_t still_clock(void *user) { return *(const int64_t *)user; }

static void repeatable(weft_server_options *options) {
  static int64_t now_us;
  options->now_us = still_clock;
  options->user = &now_us;
  options->repeatable = true;
}

// With repeatable lanes, what a call starts does not depend on their progress: a large product
// after a tiny one does not make the lane busy.
START_TEST(repeatable_lanes_are_not_measured) {
  weft_ctx *ctx = server_context("scalar", NULL);
  weft_server *server = server_on(&ctx, 1, repeatable);
  const uint8_t data[SEGMENT_BYTES] = {1};
  size_t counts[CROWD] = {0};
  for (uint32_t s = 0; s < 3; s++)
    server_push(server, s, data, sizeof data);
  server_request(server, 0, 0, 1);
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  server_take_all(server, 1, count_client, counts);
  server_request(server, 1, 1, 4096);
  server_request(server, 2, 2, 1);
  ck_assert_int_eq(weft_server_process(server, 0), WEFT_OK);
  weft_server_stats stats;
  weft_server_get_stats(server, &stats);
  ck_assert_uint_eq(stats.pending_packets, 0);
  server_take_all(server, 4097, count_client, counts);
  ck_assert(counts[0] == 1 && counts[1] == 4096 && counts[2] == 1);
  weft_server_free(server);
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
  tcase_add_test(tests, segments_of_one_number_are_told_apart);
  tcase_add_test(tests, a_crowd_gets_what_each_asked_for);
  tcase_add_test(tests, a_full_product_is_due_at_once);
  tcase_add_loop_test(tests, full_products_start_and_differ, 0, 2);
  tcase_add_test(tests, nothing_is_made_of_what_has_expired);
  tcase_add_test(tests, segments_expire_one_by_one);
  tcase_add_test(tests, what_was_promised_outlives_its_segment);
  tcase_add_test(tests, packets_not_released_hold_further_ones_back);
  tcase_add_test(tests, coded_packets_keep_within_their_bound);
  tcase_add_test(tests, repeatable_lanes_are_not_measured);
  server_add_failure_tests(tests);
  server_add_meeting_tests(tests);
  server_add_memory_tests(tests);
  server_add_waiting_tests(tests);
  suite_add_tcase(suite, tests);
  return test_main(suite);
}
