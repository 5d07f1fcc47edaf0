// SPDX-License-Identifier: Apache-2.0
// Viewers of a signed live stream who come and go without a word. Three things cost them most of
// what they missed: a newcomer asked for what it plays first only when that was due, the places of
// the dead at the source stayed taken while the living were refused, and all asked the few that
// have everything first, until these answered too late and nobody had anything to pass on
// (docs/sim/churn.md).
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/model.h"
#include "tests/sim/fixture.h"
#include "tests/support/test_main.h"

enum { RUNS = 8 };

// What was mended showed most where addresses are asked for every 5 s, not every second as real
// nodes and the shipped scenario do.
#define ASK_SELDOM "exchange-every", "0"

// The part of what was due that came in time, of all viewers together.
static double in_time(const weft_sim_parameters *p, uint64_t least_due) {
  const weft_sim_options options = {.parameters = p, .threads = 2};
  weft_sim_result result;
  weft_sim_swarm *swarm = sim_fixture_run(&options, &result);
  const weft_engine_statistics all = result.totals.peers;
  weft_sim_swarm_free(swarm);
  EXPECT(all.due > least_due);
  return (double)all.in_time / (double)all.due;
}

// Of 24 runs the mean was 0.994, the least 0.980 (before: of twelve 0.892 and 0.479). A run may
// fall behind by chance all the same, so they are judged together.
START_TEST(viewers_come_and_go_and_miss_little) {
  double sum = 0;
  int good = 0;
  for (uint64_t number = 0; number < RUNS; number++) {
    const char *const settings[] = {ASK_SELDOM, "sampled", "0", NULL};
    weft_sim_parameters p = sim_fixture_with("churn", settings);
    p.seed += number;
    const double continuity = in_time(&p, 32 * 150);
    sum += continuity;
    good += continuity >= 0.975;
  }
  EXPECT_LEAST(sum / RUNS, 0.97);
  EXPECT_LEAST(good, RUNS - 2);
}
END_TEST

// `churn` and `agreement` are both networks of real nodes: what engines do is the same, and known.
START_TEST(engines_do_what_real_nodes_do) {
  const char *const nothing[] = {NULL};
  const weft_sim_parameters churn = sim_fixture_with("churn", nothing),
                            agreement = sim_fixture_with("agreement", nothing);
  for (size_t i = 0; i < weft_sim_key_count(); i++) {
    char one[WEFT_SIM_TEXT], other[WEFT_SIM_TEXT];
    weft_sim_key_text(&churn, i, one);
    weft_sim_key_text(&agreement, i, other);
    ck_assert_msg(strcmp(weft_sim_key_at(i).group, "engine") != 0 || strcmp(one, other) == 0,
                  "%s is %s in churn and %s in agreement", weft_sim_key_at(i).name, one, other);
  }
}
END_TEST

// Of 24 runs the least had 0.99989.
START_TEST(the_shipped_scenario_misses_next_to_nothing) {
  double sum = 0;
  for (uint64_t number = 0; number < RUNS / 2; number++) {
    const char *const settings[] = {"sampled", "0", NULL};
    weft_sim_parameters p = sim_fixture_with("churn", settings);
    p.seed += number;
    sum += in_time(&p, 32 * 150);
  }
  EXPECT_LEAST(sum / (RUNS / 2), 0.998);
}
END_TEST

typedef struct visit {
  double from, to; // seconds; to 0: stays
} visit;

static int by_coming(const void *a, const void *b) {
  const double x = ((const visit *)a)->from, y = ((const visit *)b)->from;
  return (x > y) - (x < y);
}

// 32 viewers; every ten seconds some nine are gone, and as many newcomers there at once. Returns
// how many came.
static size_t write_trace(const char *path, test_rng *rng) {
  enum { VIEWERS = 32, GONE = 9, TIMES = 3 };
  visit visits[VIEWERS + GONE * TIMES] = {0};
  size_t here[VIEWERS], count = 0;
  for (; count < VIEWERS; count++) {
    here[count] = count;
    visits[count].from = 1 + 0.02 * (double)count;
  }
  for (int at = 11; at < 11 + 10 * TIMES; at += 10)
    for (int i = 0; i < GONE; i++) {
      size_t *one = &here[test_rng_below(rng, VIEWERS)];
      if (visits[*one].from >= at)
        continue; // gone at this time already
      visits[*one].to = at;
      *one = count;
      visits[count++].from = at + 0.05;
    }
  qsort(visits, count, sizeof *visits, by_coming);
  FILE *file = fopen(path, "w");
  EXPECT(file);
  for (size_t i = 0; i < count; i++)
    EXPECT(visits[i].to > 0
               ? fprintf(file, "%.3f %.3f\n", visits[i].from, visits[i].to - visits[i].from) > 0
               : fprintf(file, "%.3f\n", visits[i].from) > 0);
  EXPECT(fclose(file) == 0);
  return count;
}

// Of 20 runs the mean was 0.9995 and the least 0.9964; 0.9964 on the mean where a newcomer asks for
// what it plays first only once its manifests are there.
START_TEST(newcomers_ask_in_time_for_what_they_play_first) {
  const char *folder = getenv("TEST_TMPDIR");
  char path[512];
  snprintf(path, sizeof path, "%s/churn.%d.trace", folder ? folder : "/tmp", (int)getpid());
  test_rng rng = test_rng_new(test_seed(), 5);
  double sum = 0;
  for (uint64_t number = 0; number < RUNS; number++) {
    char peers[16];
    snprintf(peers, sizeof peers, "%zu", write_trace(path, &rng));
    const char *const settings[] = {ASK_SELDOM, "peers",   peers, "duration",  "44 s", "arrival",
                                    "trace",    "trace",   path,  "departure", "stay", "polite",
                                    "0",        "sampled", "0",   NULL};
    weft_sim_parameters p = sim_fixture_with("churn", settings);
    p.seed += number;
    sum += in_time(&p, 32 * 150);
  }
  unlink(path);
  EXPECT_LEAST(sum / RUNS, 0.998);
}
END_TEST

// More viewers than anybody has places for: who gets new segments first must not divide its uplink
// among so many that nobody has enough to pass on (with 48 places 0.46 came in time).
START_TEST(more_viewers_than_places_miss_nothing) {
  const char *const settings[] = {ASK_SELDOM, "peers",     "60",   "arrival",
                                  "together", "departure", "stay", "duration",
                                  "25 s",     "sampled",   "0",    NULL};
  const weft_sim_parameters p = sim_fixture_with("churn", settings);
  EXPECT_LEAST(in_time(&p, 60 * 80), 0.999);
}
END_TEST

// No more viewers at the beginning than the source has places for: it refuses nobody, so it names
// nobody to them, and who waits 5 s before asking lives until then on a sixteenth of the source's
// uplink (0.82 came in time, of 12 runs; now 1.0000 in each).
START_TEST(who_the_source_takes_find_each_other_at_once) {
  double sum = 0;
  for (uint64_t number = 0; number < RUNS; number++) {
    const char *const settings[] = {ASK_SELDOM, "peers",    "16",   "flash-share", "1", "departure",
                                    "stay",     "duration", "20 s", "sampled",     "0", NULL};
    weft_sim_parameters p = sim_fixture_with("churn", settings);
    p.seed += number;
    sum += in_time(&p, 16 * 70);
  }
  EXPECT_LEAST(sum / RUNS, 0.998);
}
END_TEST

// Pareto's law: nobody stays for less than the least stay, of which the mean is alpha / (alpha - 1)
// times as much, and one in 2^alpha stays for twice that.
START_TEST(heavy_tails_are_as_heavy_as_asked) {
  static const char *const settings[] = {
      "peers", "20000", "departure", "pareto", "stay-mean", "90 s", "pareto-alpha", "3", NULL};
  const double least_s = 60;
  weft_sim_parameters p = sim_fixture_with(NULL, settings);
  weft_sim_model m;
  EXPECT(weft_sim_model_init(&m, &p) == WEFT_OK);
  double mean_s = 0, longer = 0;
  for (uint32_t i = 1; i <= p.peers; i++) {
    const double stay_s = (double)(m.leave_us[i] - m.arrive_us[i]) / 1e6;
    EXPECT(stay_s > least_s - 1e-5);
    mean_s += stay_s / p.peers;
    longer += stay_s >= 2 * least_s;
  }
  EXPECT(fabs(mean_s / 90 - 1) < 0.03 && fabs(longer / p.peers - 0.125) < 0.0125);
  weft_sim_model_clear(&m);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("churn");
  TCase *t = tcase_create("churn");
  tcase_add_test(t, heavy_tails_are_as_heavy_as_asked);
  tcase_add_test(t, viewers_come_and_go_and_miss_little);
  tcase_add_test(t, the_shipped_scenario_misses_next_to_nothing);
  tcase_add_test(t, engines_do_what_real_nodes_do);
  tcase_add_test(t, newcomers_ask_in_time_for_what_they_play_first);
  tcase_add_test(t, more_viewers_than_places_miss_nothing);
  tcase_add_test(t, who_the_source_takes_find_each_other_at_once);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
