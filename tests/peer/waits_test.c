// SPDX-License-Identifier: Apache-2.0
// How long a fetch over a lossy path waits at its beginning, when its first words are lost, and at
// its end, when the last packets are; and that nobody goes on talking about either for ever.
#include <stdio.h>
#include <stdlib.h>

#include "peer/engine/messages.h"
#include "tests/peer/swarm.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { SEGMENT = 1024, SEGMENTS = 60, INPUT_BYTES = SEGMENTS * SEGMENT - 300, VIEWER = 1, K = 64 };
static const int64_t SECOND = 1000000;
static uint8_t input[INPUT_BYTES];

static void setup(void) {
  test_rng rng = test_rng_new(test_seed(), 47);
  test_rng_fill(&rng, input, sizeof input);
}

// A source, and a viewer that fetches from it.
static swarm *fetch(uint64_t salt, const weft_policy *policy) {
  swarm *s = swarm_new(input, sizeof input, salt);
  s->options.window = 64;
  s->options.policy = policy;
  return s;
}

static void begin(swarm *s) {
  const weft_engine_self self = {.upload_bits_per_s = 1000000};
  swarm_start(s, &self);
  EXPECT(swarm_add(s, &self) == VIEWER);
  swarm_connect(s, VIEWER, 0);
}

// Ends the fetch; returns how long it took.
static int64_t end(swarm *s) {
  swarm_run_until_read(s, VIEWER, SEGMENTS);
  EXPECT(!s->node[VIEWER].wrong);
  const int64_t took_us = s->now_us;
  swarm_free(s);
  return took_us;
}

// Of the messages of these kinds from node `from`, those numbered first .. end - 1 are lost.
// Others take 20 ms, of these kinds delay_us.
static struct {
  uint8_t from, least, most;
  size_t first, end, count;
  int64_t delay_us;
} lost;

static fixture_fate some_lost(swarm *s, size_t from, size_t to) {
  (void)to;
  const bool such = from == lost.from && s->kind >= lost.least && s->kind <= lost.most;
  const size_t number = such ? lost.count++ : 0;
  return (fixture_fate){.copies = !(such && number >= lost.first && number < lost.end),
                        .delay_us = such ? lost.delay_us : 20000};
}

static void lose(swarm *s, uint8_t from, uint8_t kind, size_t first, size_t until) {
  const bool data = kind == WEFT_MESSAGE_DATA;
  lost.from = from;
  lost.least = data ? 0 : kind;
  lost.most = data ? WEFT_PACKET_SPARSE : kind;
  lost.first = first;
  lost.end = until;
  lost.count = 0;
  lost.delay_us = 20000;
  s->fate = some_lost;
}

// --- The beginning

static int64_t begins_after_us(swarm *s) {
  begin(s);
  swarm_run_until_read(s, VIEWER, 1);
  const int64_t took_us = s->now_us;
  swarm_free(s);
  return took_us;
}

// A neighbour whose first map is lost is greeted again, and answers with another.
START_TEST(lost_first_maps_are_soon_repeated) {
  for (uint8_t many = 1; many <= 3; many++) {
    swarm *s = fetch(1, &weft_policy_push);
    lose(s, VIEWER, WEFT_MESSAGE_MAP, 0, many);
    EXPECT(begins_after_us(s) < many * SECOND / 4 + SECOND / 10);
    s = fetch(2, &weft_policy_pull);
    lose(s, 0, WEFT_MESSAGE_MAP, 0, many);
    EXPECT(begins_after_us(s) < many * SECOND / 4 + SECOND / 10);
  }
}
END_TEST

// So is one whose map came before its HELLO, and was not understood.
START_TEST(a_map_that_overtakes_its_hello_is_soon_repeated) {
  swarm *s = fetch(3, &weft_policy_pull);
  lose(s, 0, WEFT_MESSAGE_HELLO, 0, 1);
  lost.delay_us = 30000;
  EXPECT(begins_after_us(s) < SECOND / 2);
}
END_TEST

// One that never sends a map is not asked for ever.
START_TEST(who_never_sends_a_map_is_greeted_for_a_while) {
  enum { MOST = 6000000 / 200000 + 1 }; // `silent` and `hello`
  swarm *s = fetch(4, &weft_policy_push);
  lose(s, VIEWER, WEFT_MESSAGE_MAP, 0, SIZE_MAX);
  begin(s);
  swarm_run(s, 10 * SECOND);
  lost.from = 0;
  lost.least = lost.most = WEFT_MESSAGE_HELLO;
  lost.count = 0;
  lost.end = 0;
  swarm_run(s, 30 * SECOND);
  EXPECT(lost.count == 0);
  swarm_free(s);
  s = fetch(4, &weft_policy_push);
  lose(s, VIEWER, WEFT_MESSAGE_MAP, 0, SIZE_MAX);
  begin(s);
  swarm_run(s, 10 * SECOND);
  EXPECT(lost.count <= 10 + MOST); // what `map_idle` repeats, and an answer to each HELLO
  swarm_free(s);
}
END_TEST

// --- The end

enum { PACKETS = (INPUT_BYTES + K - 1) / K };
static const size_t LAST = 3;

// Of the last packets that a neighbour lacks, the source sends none before `holds` more of its maps
// have come: as suppliers that share them do by chance.
static struct {
  size_t holds;
  uint32_t maps; // when it first lacked so few
} moody;

static size_t lacks(const weft_policy_view *view, const weft_policy_neighbour *n) {
  size_t sum = 0;
  for (uint64_t segment = n->first; segment < n->first + n->count; segment++) {
    const size_t at = (size_t)(segment % view->window);
    if (n->wants[at].accepts)
      sum += view->segments[at].blocks - n->wants[at].rank;
  }
  return sum;
}

static bool pick_moodily(void *user, const weft_policy_view *view, const weft_rng *rng,
                         weft_policy_choice *out) {
  const weft_policy_neighbour *n = &view->neighbour[0];
  if (view->source && n->known && lacks(view, n) <= LAST) {
    moody.maps = moody.maps ? moody.maps : n->maps;
    if (n->maps - moody.maps < moody.holds)
      return false;
  }
  return weft_policy_push.pick(user, view, rng, out);
}
static const weft_policy moody_policy = {.name = "moody", .pick = pick_moodily};

static int64_t ends_after_us(size_t lost_packets, size_t holds) {
  swarm *s = fetch(5, &moody_policy);
  moody.holds = holds;
  moody.maps = 0;
  lose(s, 0, WEFT_MESSAGE_DATA, PACKETS - lost_packets, PACKETS);
  begin(s);
  return end(s);
}

// If the last packets are lost, or none are sent, maps soon say so: after one and a half round
// trips, and then after twice as long each time.
START_TEST(the_last_packets_are_soon_sent_again) {
  const int64_t least_us = ends_after_us(0, 0);
  EXPECT(ends_after_us(LAST, 0) < least_us + 3 * SECOND / 20);
  EXPECT(ends_after_us(LAST, 1) < least_us + SECOND / 4);
  EXPECT(ends_after_us(LAST, 3) < least_us + 3 * SECOND / 4);
}
END_TEST

// What never comes is not announced much more often than each second.
START_TEST(what_never_comes_is_lacked_in_peace) {
  enum { SECONDS = 20, MORE = 5 };
  swarm *s = fetch(6, &moody_policy);
  moody.holds = SIZE_MAX;
  moody.maps = 0;
  lose(s, 0, WEFT_MESSAGE_DATA, PACKETS - LAST, PACKETS);
  begin(s);
  while (s->now_us < 5 * SECOND && lost.count < PACKETS)
    swarm_run(s, s->now_us + SECOND / 200);
  swarm_run(s, s->now_us + SECOND / 40); // what is on its way arrives
  lost.from = VIEWER;
  lost.least = lost.most = WEFT_MESSAGE_MAP;
  lost.end = lost.count = 0;
  swarm_run(s, s->now_us + SECONDS * SECOND);
  EXPECT(s->node[VIEWER].read < SEGMENTS && lost.count >= SECONDS);
  EXPECT(lost.count <= SECONDS + MORE);
  swarm_free(s);
}
END_TEST

// --- Both

static int by_size(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

// Where one packet in twenty is lost: of a hundred fetches, 95 take no longer than this. Without
// losses, each takes 0.72 s.
START_TEST(losses_cost_a_fetch_little) {
  enum { FETCHES = 100, FIRST = 94, MOST_US = 1100000 };
  int64_t took_us[FETCHES];
  for (uint64_t i = 0; i < FETCHES; i++) {
    swarm *s = fetch(100 + i, &weft_policy_push);
    s->fate = swarm_lossy;
    s->loss_percent = 5;
    begin(s);
    took_us[i] = end(s);
  }
  qsort(took_us, FETCHES, sizeof *took_us, by_size);
  printf("median %.3f, 95th percentile %.3f, longest %.3f s\n", (double)took_us[FETCHES / 2] / 1e6,
         (double)took_us[FIRST] / 1e6, (double)took_us[FETCHES - 1] / 1e6);
  fflush(stdout);
  EXPECT(took_us[FIRST] <= MOST_US);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("waits");
  TCase *t = tcase_create("waits");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, setup, NULL);
  tcase_add_test(t, lost_first_maps_are_soon_repeated);
  tcase_add_test(t, a_map_that_overtakes_its_hello_is_soon_repeated);
  tcase_add_test(t, who_never_sends_a_map_is_greeted_for_a_while);
  tcase_add_test(t, the_last_packets_are_soon_sent_again);
  tcase_add_test(t, what_never_comes_is_lacked_in_peace);
  tcase_add_test(t, losses_cost_a_fetch_little);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
