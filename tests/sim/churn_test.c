// SPDX-License-Identifier: Apache-2.0
// Viewers of a signed live stream come and go without notice. Three faults had cost them most of
// what they missed: a newcomer asked for the first segments it plays only when they were due;
// places of dead viewers at the source stayed taken while living ones were refused; and all viewers
// asked the few that have everything first, until those answered too late and nobody had anything
// to pass on (docs/sim/churn.md).
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/model.h"
#include "tests/sim/fixture.h"
#include "tests/support/test_main.h"

enum { RUNS = 8 };

// The faults showed most when addresses are asked for every 5 s, instead of every second as real
// nodes and the shipped scenario do.
#define ASK_SELDOM "exchange-every", "0"

// Returns the part of what was due that arrived in time, over all viewers.
static double in_time(const weft_sim_parameters *p, uint64_t least_due) {
  const weft_sim_options options = {.parameters = p, .threads = 2};
  weft_sim_result result;
  weft_sim_swarm *swarm = sim_fixture_run(&options, &result);
  const weft_engine_statistics all = result.totals.peers;
  weft_sim_swarm_free(swarm);
  EXPECT(all.due > least_due);
  return (double)all.in_time / (double)all.due;
}

// Viewers that come and go miss little: of 24 runs the mean was 0.994, the worst 0.980 (before the
// fixes, of twelve: 0.892 and 0.479). As a run may fall behind by chance, several are judged
// together.
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

// Scenarios `churn` and `agreement` both describe networks of real nodes: their engines must have
// the same settings.
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

// Of 24 runs the worst had 0.99989.
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

// Writes a trace of 32 viewers; every ten seconds about nine of them leave, and as many newcomers
// come at once. Returns how many viewers came.
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
        continue; // has already left at this time
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

// Newcomers ask in time for the first segments they play. Of 20 runs the mean was 0.9995 and the
// worst 0.9964; the mean was 0.9964 when a newcomer asked for them only once it had their
// manifests.
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

// With more viewers than a node has places, those that get new segments first must not divide their
// uplink among so many that none has enough to pass on (with 48 places 0.46 arrived in time).
START_TEST(more_viewers_than_places_miss_nothing) {
  const char *const settings[] = {ASK_SELDOM, "peers",     "60",   "arrival",
                                  "together", "departure", "stay", "duration",
                                  "25 s",     "sampled",   "0",    NULL};
  const weft_sim_parameters p = sim_fixture_with("churn", settings);
  EXPECT_LEAST(in_time(&p, 60 * 80), 0.999);
}
END_TEST

// At the start there are no more viewers than the source has places. It refuses none, so it refers
// them to no others, and those that waited 5 s before asking lived until then on a sixteenth of the
// source's uplink (0.82 arrived in time, of 12 runs; now 1.0000 in each).
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

// Pareto's law: stays are never shorter than the least stay, the mean is alpha / (alpha - 1) times
// that, and one in 2^alpha stays is at least twice as long.
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
