// SPDX-License-Identifier: Apache-2.0
// Waiting requests: segments take turns, clients and segments can be withdrawn early, and the
// number of packets waiting is limited.
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "tests/lib/server_cases.h"

static int64_t still_clock(void *user) {
  (void)user;
  return 0;
}

// Lanes are not calibrated, so that none counts as busy, and one lane makes products in the order
// they were started.
static void in_fours(weft_server_options *options) {
  options->now_us = still_clock;
  options->repeatable = true;
  options->batch_packets = 4;
}

enum { STRIDE = 256 }; // of a datagram of (N, K) in a product

static void in_fours_few_ready(weft_server_options *options) {
  in_fours(options);
  options->ready_bytes = (size_t)16 * STRIDE;
}

static void in_fours_gathered(weft_server_options *options) {
  in_fours(options);
  options->gather_us = 500;
}

static void at_most_ten(weft_server_options *options) {
  in_fours(options);
  options->pending_packets = 10;
}

typedef struct one_lane {
  weft_ctx *ctx;
  weft_server *server;
} one_lane;

// Returns a lane with segments 0 to 2, which expire at 1000.
static one_lane open_lane(void (*change)(weft_server_options *)) {
  static const uint8_t data[SEGMENT_BYTES] = {1};
  one_lane lane = {.ctx = server_context(NULL, NULL)};
  lane.server = server_on(&lane.ctx, 1, change);
  for (uint64_t i = 0; i < 3; i++)
    server_push(lane.server, i, data, sizeof data);
  return lane;
}

static void close_lane(one_lane *lane) {
  weft_server_free(lane->server);
  weft_ctx_free(lane->ctx);
}

static weft_status request_at(weft_server *server, uint64_t segment, uint64_t client,
                              uint32_t packets, int64_t now_us) {
  const weft_server_request want = {7, segment, client, packets};
  size_t accepted = 9;
  const weft_status status = weft_server_request_many(server, &want, 1, now_us, &accepted);
  ck_assert_uint_eq(accepted, status == WEFT_OK);
  return status;
}

static size_t pending(weft_server *server) {
  weft_server_stats stats;
  weft_server_get_stats(server, &stats);
  return stats.pending_packets;
}

enum { SEEN_MOST = 64 };

// Records the clients of packets in order. For each of the first `more` packets, another of segment
// 0 is requested.
typedef struct sequence {
  weft_server *server;
  size_t more;
  size_t count;
  uint64_t client[SEEN_MOST];
} sequence;

static void note_client(void *user, const weft_server_packet *packet) {
  sequence *seen = user;
  ck_assert_int_eq(packet->status, WEFT_OK);
  ck_assert_uint_lt(seen->count, SEEN_MOST);
  seen->client[seen->count++] = packet->client;
  if (seen->more > 0) {
    seen->more--;
    server_request(seen->server, 0, 9, 1);
  }
}

// --- turns ---

// A segment that is requested all the time, and always has work left, does not keep others waiting.
START_TEST(a_hot_segment_lets_others_have_their_turn) {
  one_lane lane = open_lane(in_fours_few_ready);
  sequence seen = {.server = lane.server, .more = 16};
  server_request(lane.server, 0, 0, 40);
  ck_assert_int_eq(weft_server_process(lane.server, 0), WEFT_OK);
  ck_assert_uint_eq(pending(lane.server), 40 - 16);
  server_request(lane.server, 1, 1, 1);
  server_take_all(lane.server, 40 + 16 + 1, note_client, &seen);
  size_t at = 0;
  while (seen.client[at] != 1)
    at++;
  ck_assert_uint_eq(at, 16 + 4); // those already started, and one product that was due before it
  close_lane(&lane);
}
END_TEST

// Nor does a segment of which one client requests many packets, even if no limit holds packets
// back.
START_TEST(a_large_request_lets_others_have_their_turn) {
  one_lane lane = open_lane(in_fours);
  sequence seen = {.server = lane.server};
  server_request(lane.server, 0, 0, 40);
  server_request(lane.server, 1, 1, 6);
  ck_assert_int_eq(weft_server_process(lane.server, 0), WEFT_OK);
  server_take_all(lane.server, 46, note_client, &seen);
  for (size_t i = 0; i < 46; i++)
    ck_assert_uint_eq(seen.client[i], (i >= 4 && i < 8) || (i >= 12 && i < 14));
  close_lane(&lane);
}
END_TEST

// By this clock every product takes long, and the lane starts none before the gate opens.
static struct {
  pthread_t caller;
  atomic_uint ticks;
  atomic_bool open;
} gate;

static int64_t gate_clock(void *user) {
  (void)user;
  while (!pthread_equal(pthread_self(), gate.caller) && !atomic_load(&gate.open))
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  return 2500 * (int64_t)atomic_fetch_add(&gate.ticks, 1);
}

static void behind_the_gate(weft_server_options *options) {
  options->now_us = gate_clock;
  options->batch_packets = 4;
}

static void behind_the_gate_gathered(weft_server_options *options) {
  behind_the_gate(options);
  options->gather_us = 500;
}

// Returns a lane with a product of segment 2 on it, busy for long.
static one_lane open_busy_lane(void (*change)(weft_server_options *)) {
  gate.caller = pthread_self();
  atomic_store(&gate.open, false);
  one_lane lane = open_lane(change);
  server_request(lane.server, 2, 0, 4);
  ck_assert_int_eq(weft_server_process(lane.server, 0), WEFT_OK);
  ck_assert_uint_eq(pending(lane.server), 0);
  return lane;
}

// Full products, which are started even on busy lanes, do not delay requests that are due.
START_TEST(full_products_do_not_overtake_what_is_due) {
  one_lane lane = open_busy_lane(behind_the_gate);
  sequence seen = {.server = lane.server};
  server_request(lane.server, 0, 1, 3);
  ck_assert_int_eq(weft_server_process(lane.server, 0), WEFT_OK);
  ck_assert_uint_eq(pending(lane.server), 3);
  server_request(lane.server, 1, 2, 4);
  ck_assert_int_le(weft_server_deadline(lane.server), 0);
  ck_assert_int_eq(weft_server_process(lane.server, 0), WEFT_OK);
  ck_assert_uint_eq(pending(lane.server), 0);
  atomic_store(&gate.open, true);
  server_take_all(lane.server, 4 + 3 + 4, note_client, &seen);
  for (size_t i = 0; i < seen.count; i++)
    ck_assert_uint_eq(seen.client[i], i < 4 ? 0 : i < 4 + 3 ? 1 : 2);
  close_lane(&lane);
}
END_TEST

// A full product starts before requests that still gather.
START_TEST(full_products_overtake_what_is_gathered) {
  one_lane lane = open_busy_lane(behind_the_gate_gathered);
  sequence seen = {.server = lane.server};
  server_request(lane.server, 0, 1, 3);
  server_request(lane.server, 1, 2, 4);
  ck_assert_int_eq(weft_server_process(lane.server, 0), WEFT_OK);
  ck_assert_uint_eq(pending(lane.server), 3);
  ck_assert_int_eq(weft_server_deadline(lane.server), 1000); // the expiry, as the lane is busy
  atomic_store(&gate.open, true);
  server_take_all(lane.server, 4 + 4, note_client, &seen);
  ck_assert_int_eq(weft_server_deadline(lane.server), 500);
  ck_assert_int_eq(weft_server_process(lane.server, 500), WEFT_OK);
  server_take_all(lane.server, 3, note_client, &seen);
  close_lane(&lane);
}
END_TEST

// The requests left over when a full product is started gather from their own arrival on.
START_TEST(the_rest_of_a_product_gathers_from_its_own_time_on) {
  one_lane lane = open_lane(in_fours_gathered);
  sequence seen = {.server = lane.server};
  ck_assert_int_eq(request_at(lane.server, 0, 0, 4, 0), WEFT_OK);
  ck_assert_int_eq(request_at(lane.server, 0, 1, 2, 300), WEFT_OK);
  ck_assert_int_eq(request_at(lane.server, 1, 2, 1, 350), WEFT_OK);
  ck_assert_int_eq(weft_server_process(lane.server, 400), WEFT_OK);
  ck_assert_uint_eq(pending(lane.server), 3);
  // Although 1, due at 850, is ahead of it in turn.
  ck_assert_int_eq(weft_server_deadline(lane.server), 800);
  ck_assert_int_eq(request_at(lane.server, 0, 3, 1, 700), WEFT_OK);
  ck_assert_int_eq(weft_server_process(lane.server, 800), WEFT_OK);
  ck_assert_uint_eq(pending(lane.server), 1);
  ck_assert_int_eq(weft_server_process(lane.server, 850), WEFT_OK);
  server_take_all(lane.server, 8, note_client, &seen);
  weft_server_stats stats;
  weft_server_get_stats(lane.server, &stats);
  ck_assert_uint_eq(stats.lane[0].batches, 3);
  close_lane(&lane);
}
END_TEST

// --- releasing ---

static bool is_readable(weft_server *server) {
  struct pollfd fd = {.fd = weft_server_fd(server), .events = POLLIN};
  return poll(&fd, 1, 0) == 1;
}

static void take_held(weft_server *server, weft_server_packet *held, size_t count) {
  for (size_t got = 0, more; got < count; got += more) {
    struct pollfd fd = {.fd = weft_server_fd(server), .events = POLLIN};
    ck_assert_int_eq(poll(&fd, 1, 10000), 1);
    ck_assert_int_eq(weft_server_take(server, held + got, count - got, &more), WEFT_OK);
  }
}

// A release that lets requests go on wakes a loop that waits for the descriptor alone, since it
// computed its timeout while there was nothing to wait for; and it stays awake until it has called
// process, though it finds nothing to take.
START_TEST(a_release_wakes_who_sleeps) {
  one_lane lane = open_lane(in_fours_few_ready);
  weft_server_packet held[20];
  size_t got = 9;
  server_request(lane.server, 0, 0, 20);
  ck_assert_int_eq(weft_server_process(lane.server, 0), WEFT_OK);
  take_held(lane.server, held, 16);
  ck_assert_int_eq(weft_server_deadline(lane.server), 1000);
  ck_assert(!is_readable(lane.server));
  weft_server_release(lane.server, held, 3); // not yet a whole product
  ck_assert(!is_readable(lane.server));
  weft_server_release(lane.server, held + 3, 1);
  ck_assert(is_readable(lane.server));
  ck_assert_int_eq(weft_server_take(lane.server, held + 16, 4, &got), WEFT_OK);
  ck_assert(got == 0 && is_readable(lane.server));
  ck_assert_int_eq(weft_server_process(lane.server, 0), WEFT_OK);
  take_held(lane.server, held + 16, 4);
  ck_assert_uint_eq(pending(lane.server), 0);
  weft_server_release(lane.server, held + 4, 16); // nothing waits for this
  ck_assert(!is_readable(lane.server));
  close_lane(&lane);
}
END_TEST

// --- cancelling ---

// A client that cancels gets no more packets, except those that are already being made.
START_TEST(who_cancels_waits_for_nothing) {
  one_lane lane = open_lane(in_fours_gathered);
  sequence seen = {.server = lane.server};
  server_request(lane.server, 0, 1, 1);
  server_request(lane.server, 0, 2, 2);
  server_request(lane.server, 0, 1, 1);
  server_request(lane.server, 1, 1, 1000);
  ck_assert_int_le(weft_server_deadline(lane.server), 0); // some products are full
  ck_assert_int_eq(weft_server_cancel(lane.server, 5), WEFT_OK);
  ck_assert_uint_eq(pending(lane.server), 1004);
  ck_assert_int_eq(weft_server_cancel(lane.server, 1), WEFT_OK);
  ck_assert_uint_eq(pending(lane.server), 2);
  ck_assert_int_eq(weft_server_deadline(lane.server), 500);
  ck_assert_int_eq(weft_server_cancel(lane.server, 2), WEFT_OK);
  ck_assert_int_eq(weft_server_deadline(lane.server), 1000);
  server_request(lane.server, 0, 3, 5);
  ck_assert_int_eq(weft_server_process(lane.server, 0), WEFT_OK);
  ck_assert_int_eq(weft_server_cancel(lane.server, 3), WEFT_OK); // four are being made
  ck_assert_int_eq(weft_server_process(lane.server, 500), WEFT_OK);
  server_take_all(lane.server, 4, note_client, &seen);
  for (size_t i = 0; i < 4; i++)
    ck_assert_uint_eq(seen.client[i], 3);
  ck_assert_uint_eq(pending(lane.server), 0);
  ck_assert_int_eq(weft_server_cancel(NULL, 3), WEFT_E_ARGUMENT);
  close_lane(&lane);
}
END_TEST

// A client that cancels one segment still gets packets of the others, and other clients of that
// one.
START_TEST(who_cancels_one_segment_waits_for_the_others) {
  one_lane lane = open_lane(in_fours_gathered);
  sequence seen = {.server = lane.server};
  server_request(lane.server, 0, 1, 1);
  server_request(lane.server, 0, 2, 1);
  server_request(lane.server, 0, 1, 1);
  server_request(lane.server, 1, 1, 1);
  const struct {
    uint64_t client, stream, segment, left;
  } cancels[] = {{1, 7, 2, 4}, {1, 8, 0, 4}, {1, 7, 9, 4}, {3, 7, 0, 4}, // nothing waits for these
                 {1, 7, 0, 2}, {1, 7, 0, 2}};
  for (size_t i = 0; i < sizeof cancels / sizeof cancels[0]; i++) {
    ck_assert_int_eq(weft_server_cancel_segment(lane.server, cancels[i].client, cancels[i].stream,
                                                cancels[i].segment),
                     WEFT_OK);
    ck_assert_uint_eq(pending(lane.server), cancels[i].left);
  }
  ck_assert_int_eq(weft_server_process(lane.server, 500), WEFT_OK);
  server_take_all(lane.server, 2, note_client, &seen);
  ck_assert(seen.client[0] == 2 && seen.client[1] == 1);
  ck_assert_int_eq(weft_server_cancel_segment(NULL, 1, 7, 0), WEFT_E_ARGUMENT);
  // A segment that was kept only for that request goes.
  ck_assert_int_eq(request_at(lane.server, 0, 1, 1, 900), WEFT_OK);
  ck_assert_int_eq(weft_server_cancel_segment(lane.server, 1, 7, 0), WEFT_OK);
  ck_assert_int_eq(weft_server_process(lane.server, 1000), WEFT_OK);
  ck_assert(!weft_server_has(lane.server, 7, 0));
  close_lane(&lane);
}
END_TEST

// A segment that was kept only for a client's requests is removed once that client cancels.
START_TEST(who_cancels_keeps_no_segment) {
  one_lane lane = open_lane(in_fours_gathered);
  ck_assert_int_eq(request_at(lane.server, 0, 1, 1, 900), WEFT_OK);
  ck_assert_int_eq(weft_server_process(lane.server, 1000), WEFT_OK);
  ck_assert(weft_server_has(lane.server, 7, 0) && !weft_server_has(lane.server, 7, 1));
  ck_assert_int_eq(weft_server_cancel(lane.server, 1), WEFT_OK);
  ck_assert_int_le(weft_server_deadline(lane.server), 1000);
  ck_assert_int_eq(weft_server_process(lane.server, 1000), WEFT_OK);
  ck_assert(!weft_server_has(lane.server, 7, 0));
  close_lane(&lane);
}
END_TEST

START_TEST(a_segment_is_dropped_before_its_time) {
  one_lane lane = open_lane(in_fours_gathered);
  const weft_segment_id id = server_id(0);
  const uint8_t data[1] = {1};
  weft_server_stats stats;
  ck_assert_int_eq(weft_server_drop(NULL, 7, 0), WEFT_E_ARGUMENT);
  ck_assert_int_eq(weft_server_drop(lane.server, 7, 3), WEFT_E_FOREIGN);
  ck_assert_int_eq(weft_server_drop(lane.server, 8, 0), WEFT_E_FOREIGN);
  ck_assert_int_eq(weft_server_drop(lane.server, 7, 0), WEFT_OK);
  ck_assert(!weft_server_has(lane.server, 7, 0) && weft_server_has(lane.server, 7, 1));
  weft_server_get_stats(lane.server, &stats);
  ck_assert(stats.segments == 2 && stats.segment_bytes == 2 * SEGMENT_BYTES && stats.expired == 1);
  ck_assert_int_eq(weft_server_drop(lane.server, 7, 0), WEFT_E_FOREIGN);
  ck_assert_int_eq(weft_server_push(lane.server, &id, data, 1, 0, 1000), WEFT_OK);
  close_lane(&lane);
}
END_TEST

// Packets requested before their segment is dropped are delivered, as when it expires.
START_TEST(what_was_promised_outlives_a_drop) {
  one_lane lane = open_lane(in_fours_gathered);
  sequence seen = {.server = lane.server};
  server_request(lane.server, 0, 0, 6);
  ck_assert_int_eq(weft_server_process(lane.server, 0), WEFT_OK); // four are being made
  const weft_segment_id id = server_id(0);
  const uint8_t data[1] = {1};
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq(weft_server_drop(lane.server, 7, 0), WEFT_OK);
    ck_assert_int_eq(request_at(lane.server, 0, 1, 1, 0), WEFT_E_FOREIGN);
    ck_assert_int_eq(weft_server_process(lane.server, 499), WEFT_OK);
    ck_assert(weft_server_has(lane.server, 7, 0));
    ck_assert_int_eq(weft_server_push(lane.server, &id, data, 1, 0, 1000), WEFT_E_STATE);
  }
  ck_assert_int_eq(weft_server_process(lane.server, 500), WEFT_OK);
  ck_assert(!weft_server_has(lane.server, 7, 0));
  server_take_all(lane.server, 6, note_client, &seen);
  server_request(lane.server, 1, 0, 3);
  ck_assert_int_eq(weft_server_drop(lane.server, 7, 1), WEFT_OK);
  ck_assert_int_eq(weft_server_cancel(lane.server, 0), WEFT_OK);
  ck_assert_int_eq(weft_server_deadline(lane.server), 0); // the time of the last call, not earlier
  ck_assert_int_eq(weft_server_process(lane.server, 0), WEFT_OK);
  ck_assert(!weft_server_has(lane.server, 7, 1));
  weft_server_stats stats;
  weft_server_get_stats(lane.server, &stats);
  ck_assert(stats.segment_bytes == SEGMENT_BYTES && stats.expired == 2);
  close_lane(&lane);
}
END_TEST

// --- limits on waiting requests ---

// Requests for more than pending_packets packets in all are refused.
START_TEST(what_waits_has_a_bound) {
  one_lane lane = open_lane(at_most_ten);
  sequence seen = {.server = lane.server};
  const weft_server_request wants[] = {{7, 0, 0, 6}, {7, 1, 1, 4}, {7, 2, 2, 1}, {7, 0, 3, 1}};
  size_t accepted = 0;
  ck_assert_int_eq(weft_server_request_many(lane.server, wants, 4, 0, &accepted), WEFT_E_BUFFER);
  ck_assert_uint_eq(accepted, 2);
  ck_assert_uint_eq(pending(lane.server), 10);
  ck_assert_int_eq(weft_server_cancel(lane.server, 0), WEFT_OK);
  ck_assert_int_eq(request_at(lane.server, 0, 0, 7, 0), WEFT_E_BUFFER);
  ck_assert_int_eq(request_at(lane.server, 0, 0, 6, 0), WEFT_OK);
  ck_assert_int_eq(weft_server_process(lane.server, 0), WEFT_OK);
  // Even a server in which nothing waits cannot take these.
  ck_assert_int_eq(request_at(lane.server, 0, 0, 11, 0), WEFT_E_ARGUMENT);
  ck_assert_int_eq(request_at(lane.server, 0, 0, UINT32_MAX, 0), WEFT_E_ARGUMENT);
  ck_assert_int_eq(request_at(lane.server, 0, 0, 10, 0), WEFT_OK);
  // Segment 3 is unknown, whatever room there is.
  ck_assert_int_eq(request_at(lane.server, 3, 0, 1, 0), WEFT_E_FOREIGN);
  ck_assert_int_eq(weft_server_process(lane.server, 0), WEFT_OK);
  server_take_all(lane.server, 20, note_client, &seen);
  close_lane(&lane);
}
END_TEST

// Of a batch of requests one is refused, because its segment has gone: as embedding.md says, the
// caller goes on after it.
START_TEST(requests_go_on_after_one_that_is_refused) {
  one_lane lane = open_lane(in_fours);
  sequence seen = {.server = lane.server};
  const weft_server_request wants[] = {{7, 9, 0, 1}, {7, 0, 1, 1}, {7, 8, 0, 1},
                                       {7, 9, 0, 1}, {7, 1, 1, 2}, {7, 9, 0, 1}};
  const size_t count = sizeof wants / sizeof wants[0];
  size_t at = 0, accepted = 0, gone = 0;
  weft_status status = WEFT_OK;
  while (at < count && status == WEFT_OK) {
    status = weft_server_request_many(lane.server, wants + at, count - at, 0, &accepted);
    at += accepted;
    if (status == WEFT_E_FOREIGN) {
      at++;
      gone++;
      status = WEFT_OK;
    }
  }
  ck_assert(at == count && status == WEFT_OK && gone == 4);
  ck_assert_uint_eq(pending(lane.server), 3);
  ck_assert_int_eq(weft_server_process(lane.server, 0), WEFT_OK);
  server_take_all(lane.server, 3, note_client, &seen);
  close_lane(&lane);
}
END_TEST

// By default 2^24 packets may be pending.
START_TEST(the_bound_of_what_waits_is_large) {
  one_lane lane = open_lane(in_fours);
  ck_assert_int_eq(request_at(lane.server, 0, 0, 1u << 24, 0), WEFT_OK);
  ck_assert_int_eq(request_at(lane.server, 0, 0, 1, 0), WEFT_E_BUFFER);
  close_lane(&lane);
}
END_TEST

void server_add_waiting_tests(TCase *cases) {
  tcase_add_test(cases, a_hot_segment_lets_others_have_their_turn);
  tcase_add_test(cases, a_large_request_lets_others_have_their_turn);
  tcase_add_test(cases, full_products_do_not_overtake_what_is_due);
  tcase_add_test(cases, full_products_overtake_what_is_gathered);
  tcase_add_test(cases, the_rest_of_a_product_gathers_from_its_own_time_on);
  tcase_add_test(cases, a_release_wakes_who_sleeps);
  tcase_add_test(cases, who_cancels_waits_for_nothing);
  tcase_add_test(cases, who_cancels_one_segment_waits_for_the_others);
  tcase_add_test(cases, who_cancels_keeps_no_segment);
  tcase_add_test(cases, a_segment_is_dropped_before_its_time);
  tcase_add_test(cases, what_was_promised_outlives_a_drop);
  tcase_add_test(cases, what_waits_has_a_bound);
  tcase_add_test(cases, requests_go_on_after_one_that_is_refused);
  tcase_add_test(cases, the_bound_of_what_waits_is_large);
}
