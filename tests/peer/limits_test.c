// SPDX-License-Identifier: Apache-2.0
// What an engine does with numbers at their limits, with endless requests, and when the machine
// fails it.
#include <limits.h>
#include <string.h>

#include "tests/peer/scene.h"
#include "tests/support/test_main.h"

// Segment numbers that do not fit into a message are refused: all nodes would refuse the messages.
START_TEST(segments_that_no_message_can_name_are_refused) {
  const uint64_t most = UINT64_C(1) << 48;
  const struct {
    weft_engine_self self;
    weft_status status;
  } cases[] = {{{.start = most}, WEFT_OK},
               {{.start = most + 1}, WEFT_E_ARGUMENT},
               {{.start = WEFT_START_OLDEST - 1}, WEFT_E_ARGUMENT},
               {{.start = WEFT_START_OLDEST}, WEFT_OK},
               {{.source = true, .start = most + 1}, WEFT_OK}, // that option is for receivers
               {{.source = true, .stream_bytes = most * N * K - 1}, WEFT_OK},
               {{.source = true, .stream_bytes = UINT64_MAX}, WEFT_E_ARGUMENT}};
  scene s;
  scene_new(&s, WEFT_MODE_VOD, false, false, 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    weft_engine *engine;
    weft_engine_self self = cases[i].self;
    self.rng = weft_rng_chacha_table(&s.chacha);
    EXPECT_STATUS(weft_engine_new(s.ctx, &s.options, &self, &engine), cases[i].status);
    weft_engine_free(engine);
  }
  scene_free(&s);
}
END_TEST

// No datagram is the caller's mistake, an empty one is its sender's.
START_TEST(no_datagram_is_refused_as_an_argument) {
  const uint8_t empty = 0;
  scene s;
  scene_new(&s, WEFT_MODE_BULK, false, false, 0);
  scene_add(&s, 0, 0, WINDOW);
  EXPECT_STATUS(scene_say(&s, 0, NULL, 0), WEFT_E_ARGUMENT);
  EXPECT_STATUS(scene_say(&s, 0, NULL, 5), WEFT_E_ARGUMENT);
  EXPECT_STATUS(scene_say(&s, 0, &empty, 0), WEFT_E_MALFORMED);
  EXPECT(scene_statistics(&s).refused == 1);
  scene_free(&s);
}
END_TEST

// As peer_options.h says: more than the window, and more than there is room for, are as much as
// there is.
START_TEST(options_beyond_others_are_as_much_as_these) {
  scene s;
  weft_engine *engine;
  scene_new(&s, WEFT_MODE_BULK, false, false, 0);
  s.options.ahead = WINDOW + 1;
  s.options.neighbours_target = MOST + 1;
  const weft_engine_self self = {.rng = weft_rng_chacha_table(&s.chacha)};
  EXPECT_OK(weft_engine_new(s.ctx, &s.options, &self, &engine));
  weft_engine_free(s.engine);
  s.engine = engine;
  for (uint8_t i = 0; i < 2 * MOST; i++)
    weft_engine_add_address(engine, &(weft_peer_address){.length = 1, .bytes = {i}});
  scene_add(&s, 0, 0, WINDOW);
  scene_run(&s, SECOND / 10);
  EXPECT(s.dials > 0 && s.map_count <= WINDOW && s.hello_window <= WINDOW);
  for (size_t i = 1; i < MOST; i++)
    scene_add(&s, i, 0, WINDOW);
  const size_t dials = s.dials;
  scene_run(&s, 5 * SECOND);
  EXPECT(s.dials == dials);
  scene_free(&s);
}
END_TEST

static unsigned most_in_flight, least_in_flight;

static bool watch(void *user, const weft_policy_view *view, const weft_rng *rng,
                  weft_policy_choice *out) {
  (void)user, (void)rng, (void)out;
  const unsigned in_flight = view->neighbour[0].wants[0].in_flight;
  least_in_flight = in_flight < most_in_flight ? in_flight : least_in_flight;
  most_in_flight = in_flight > most_in_flight ? in_flight : most_in_flight;
  return false;
}

// With very many packets in flight, the count that a policy sees is capped and does not wrap.
START_TEST(more_packets_in_flight_than_are_counted_are_many) {
  static const uint8_t data[N * K];
  const weft_policy watching = {.name = "watching", .pick = watch};
  scene s;
  scene_new(&s, WEFT_MODE_BULK, true, true, 0);
  weft_engine_free(s.engine);
  s.options.flights_max = 4096;
  s.options.batch = N;
  s.options.policy = &watching;
  const weft_engine_self self = {.source = true, .rng = weft_rng_chacha_table(&s.chacha)};
  EXPECT_OK(weft_engine_new(s.ctx, &s.options, &self, &s.engine));
  EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
  scene_add(&s, 0, 0, WINDOW);
  most_in_flight = 0;
  least_in_flight = UINT_MAX;
  scene_run(&s, STEP_US);
  for (int i = 0; i < 4000; i++) {
    weft_burst burst;
    scene_ask(&s, 0, 0, N);
    while (weft_engine_output(s.engine, s.now_us, &burst) == WEFT_OK)
      ;
  }
  EXPECT(most_in_flight >= (1 << 15) - N && least_in_flight == UINT_MAX);
  scene_free(&s);
}
END_TEST

// Counts the answers to a repeated request; greetings and addresses, too, are not paced by the
// uplink.
static size_t answers(weft_message_kind kind, const uint8_t *question, size_t bytes) {
  enum { QUESTIONS = 10000, APART_US = 1000 }; // for ten seconds
  size_t count = 0;
  scene s;
  scene_new_source(&s, WEFT_MODE_VOD, 1000000);
  for (size_t i = 0; i < 2; i++)
    scene_add(&s, i, 0, 0);
  scene_run(&s, STEP_US);
  for (int i = 0; i < QUESTIONS; i++, s.now_us += APART_US) {
    weft_burst burst;
    EXPECT_OK(scene_say(&s, 0, question, bytes));
    weft_engine_tick(s.engine, s.now_us);
    while (weft_engine_output(s.engine, s.now_us, &burst) == WEFT_OK)
      for (size_t k = 0; k < burst.count && burst.neighbour == 0; k++)
        count += burst.datagrams[k].data[1] == kind;
  }
  scene_free(&s);
  return count;
}

// A neighbour gets as many answers as an honest one may want, 12 in a tenth of a second, and no
// more.
START_TEST(nobody_is_answered_as_often_as_he_asks) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_hello hello = {
      .answer_wanted = true, .stream = 5, .blocks = N, .block_bytes = K, .stamps = {.stamp = 1}};
  size_t bytes = weft_hello_write(&hello, out);
  const size_t greetings = answers(WEFT_MESSAGE_HELLO, out, bytes);
  EXPECT(greetings >= 1000 && greetings <= 1250);
  bytes = weft_refer_write(WEFT_MESSAGE_REFER, WEFT_REFER_WANTED, NULL, 0, out);
  const size_t addresses = answers(WEFT_MESSAGE_REFER, out, bytes);
  EXPECT(addresses >= 1000 && addresses <= 1250);
}
END_TEST

// --- Without memory

static weft_status (*sums_of)(void *user, void *segment, uint64_t seed, uint8_t *sums);
static size_t sums_left;

static weft_status sums_without_memory(void *user, void *segment, uint64_t seed, uint8_t *sums) {
  if (sums_left == 0)
    return WEFT_E_NOMEM;
  sums_left--;
  return sums_of(user, segment, seed, sums);
}

// Returns what neighbour 0 gets for a request for segment 0's checksum; 0: nothing.
static size_t told_checksum(scene *s, uint8_t out[WEFT_DATAGRAM_MAX]) {
  const weft_request r = {.segment = 0, .kind = WEFT_REQUEST_CHECKSUM};
  weft_burst burst;
  size_t bytes = 0;
  EXPECT_OK(scene_say(s, 0, out, weft_request_write(&r, 1, out)));
  while (weft_engine_output(s->engine, s->now_us, &burst) == WEFT_OK)
    for (size_t i = 0; i < burst.count; i++)
      if (burst.datagrams[i].data[1] == WEFT_MESSAGE_CHECKSUM) {
        bytes = burst.datagrams[i].bytes;
        memcpy(out, burst.datagrams[i].data, bytes);
      }
  return bytes;
}

// A checksum that could not be made leaves the one before unchanged: a new seed with old sums would
// invalidate the source's own signature, and nodes that pass that on are banned.
START_TEST(a_checksum_that_fails_spoils_none) {
  static const uint8_t data[N * K] = {1};
  uint8_t before[WEFT_DATAGRAM_MAX], after[WEFT_DATAGRAM_MAX];
  scene s;
  scene_new(&s, WEFT_MODE_LIVE, true, true, 100000);
  sums_of = s.codec.checksum;
  s.codec.checksum = sums_without_memory;
  EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
  scene_add(&s, 0, 0, WINDOW);
  sums_left = 0;
  scene_run(&s, 150000);
  EXPECT(scene_statistics(&s).checksums == 0 && told_checksum(&s, before) == 0);
  sums_left = 1;
  scene_run(&s, 200000);
  const size_t bytes = told_checksum(&s, before);
  EXPECT(scene_statistics(&s).checksums == 1 && bytes > 0);
  scene_run(&s, SECOND);
  EXPECT(scene_statistics(&s).checksums == 1);
  EXPECT(told_checksum(&s, after) == bytes && memcmp(before, after, bytes) == 0);
  sums_left = 1;
  scene_run(&s, SECOND);
  EXPECT(told_checksum(&s, after) == bytes && memcmp(before, after, bytes) != 0);
  scene_free(&s);
}
END_TEST

static size_t digests;

static weft_status digest_without_memory(void *user, void *segment, size_t bytes,
                                         uint8_t out[WEFT_DIGEST_BYTES]) {
  (void)user, (void)segment, (void)bytes, (void)out;
  digests++;
  return WEFT_E_NOMEM;
}

// Expects that a complete segment for whose check memory ran out is checked again, but not all the
// time, as others use the memory; no neighbour need send anything for that, or be there.
static void expect_wait_for_memory(weft_engine_mode mode, int64_t checksum_us, bool alone) {
  scene s;
  scene_new(&s, mode, false, true, checksum_us);
  scene_add(&s, 0, 1, 0);   // it has segment 0
  scene_manifest(&s, 0, 0); // live: when to begin
  scene_manifest(&s, 0, 0);
  s.codec.digest = digest_without_memory;
  digests = 0;
  scene_whole(&s, 0, 0);
  if (alone)
    EXPECT_OK(weft_engine_remove_neighbour(s.engine, 0));
  scene_run(&s, STEP_US);
  EXPECT(weft_engine_deadline(s.engine) >= s.now_us);
  scene_run(&s, SECOND);
  EXPECT(s.decoded == 0 && digests >= 5 && digests <= 20);
  s.codec.digest = NULL;
  scene_run(&s, SECOND / 2);
  EXPECT(s.decoded == 1);
  scene_free(&s);
}

START_TEST(what_lacks_memory_waits_for_it) {
  for (int mode = WEFT_MODE_BULK; mode <= WEFT_MODE_LIVE; mode++)
    for (int alone = 0; alone < 2; alone++)
      expect_wait_for_memory((weft_engine_mode)mode, 0, alone);
  for (int alone = 0; alone < 2; alone++) // nothing is judged: no checksum comes
    expect_wait_for_memory(WEFT_MODE_LIVE, SECOND, alone);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("limits");
  TCase *t = tcase_create("limits");
  tcase_add_test(t, no_datagram_is_refused_as_an_argument);
  tcase_add_test(t, options_beyond_others_are_as_much_as_these);
  tcase_add_test(t, segments_that_no_message_can_name_are_refused);
  tcase_add_test(t, more_packets_in_flight_than_are_counted_are_many);
  tcase_add_test(t, nobody_is_answered_as_often_as_he_asks);
  tcase_add_test(t, a_checksum_that_fails_spoils_none);
  tcase_add_test(t, what_lacks_memory_waits_for_it);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
