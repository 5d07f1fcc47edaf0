// SPDX-License-Identifier: Apache-2.0
// The laws of the model one by one, over thousands of draws: who comes and fails when, how far two
// peers are apart, and whom a tracker names.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/model.h"
#include "tests/sim/fixture.h"
#include "tests/support/test_main.h"

enum { PEERS = 20000 };

static weft_sim_parameters with(const char *const *settings) {
  weft_sim_parameters p = sim_fixture_with(NULL, settings);
  p.peers = PEERS;
  return p;
}

static weft_sim_model model_of(const weft_sim_parameters *p) {
  weft_sim_model m;
  EXPECT(weft_sim_model_init(&m, p) == WEFT_OK);
  return m;
}

typedef struct moments {
  double count, mean, variance;
} moments;

static void take(moments *m, double value) {
  const double before = m->mean;
  m->count++;
  m->mean += (value - before) / m->count;
  m->variance += ((value - before) * (value - m->mean) - m->variance) / m->count;
}

// The gaps of a Poisson process have their mean as their deviation, and a part of exp(-1) exceeds
// it.
START_TEST(arrivals_come_by_chance) {
  const char *const settings[] = {"arrival", "poisson", "arrivals-per-s", "20", NULL};
  const weft_sim_parameters p = with(settings);
  weft_sim_model m = model_of(&p);
  moments gaps = {0};
  double longer = 0;
  for (uint32_t i = 1; i <= PEERS; i++) {
    const double gap_s = (double)(m.arrive_us[i] - m.arrive_us[i - 1]) / 1e6;
    take(&gaps, gap_s);
    longer += gap_s > 0.05;
  }
  EXPECT(fabs(gaps.mean / 0.05 - 1) < 0.05 && fabs(sqrt(gaps.variance) / 0.05 - 1) < 0.08);
  EXPECT(fabs(longer / PEERS - exp(-1)) < 0.02);
  weft_sim_model_clear(&m);
}
END_TEST

// The flash's share comes evenly within its time; the others come as without it, from the start.
START_TEST(a_flash_comes_within_its_time) {
  const char *const settings[] = {"arrival", "flash",          "flash-share", "0.6", "flash-within",
                                  "30 s",    "arrivals-per-s", "10",          NULL};
  const weft_sim_parameters p = with(settings);
  weft_sim_model m = model_of(&p);
  const double flash = 0.6 * PEERS;
  for (int64_t second = 5; second <= 30; second += 5) {
    const double wanted = flash * (double)second / 30 + 10.0 * (double)second;
    EXPECT(fabs(weft_sim_arrived(&m, second * 1000000) - wanted) < 6 * sqrt(wanted));
  }
  const double late = weft_sim_arrived(&m, 430000000) - weft_sim_arrived(&m, 30000000);
  EXPECT(fabs(late / 4000 - 1) < 0.1);
  weft_sim_model_clear(&m);
}
END_TEST

// At the time of failure the given share of those present fails.
START_TEST(a_share_of_those_who_are_there_fails) {
  const char *const settings[] = {"arrival",    "poisson",     "arrivals-per-s", "50",
                                  "departure",  "exponential", "stay-mean",      "200 s",
                                  "failure-at", "200 s",       "failure-share",  "0.3",
                                  NULL};
  weft_sim_parameters p = with(settings);
  weft_sim_model m = model_of(&p);
  p.failure_us = WEFT_SIM_NEVER;
  weft_sim_model none = model_of(&p);
  double there = 0, failed = 0;
  for (uint32_t i = 1; i <= PEERS; i++) {
    const bool present = m.arrive_us[i] < 200000000 && none.leave_us[i] > 200000000;
    there += present;
    if (present && m.leave_us[i] == 200000000) {
      EXPECT(weft_sim_is_failing(&m, i));
      failed++;
    }
    if (!present || m.leave_us[i] != 200000000)
      EXPECT(m.leave_us[i] == none.leave_us[i]);
    EXPECT(!present || m.leave_us[i] == 200000000 || !weft_sim_is_failing(&m, i));
  }
  EXPECT(there > 1000 && fabs(failed / there - 0.3) < 6 * sqrt(0.3 * 0.7 / there));
  weft_sim_model_clear(&m);
  weft_sim_model_clear(&none);
}
END_TEST

// Measures the delays of many pairs; the access delays of both ends (none with `plain`) are
// additional.
static moments delays_of(const weft_sim_parameters *p, const weft_sim_model *m, bool mates) {
  moments delay = {0};
  for (uint32_t a = 1; a < PEERS; a++) {
    const uint32_t b = 1 + (a * 7919 + 13) % PEERS;
    if (a == b || (weft_sim_isp_of(m, a) == weft_sim_isp_of(m, b)) != mates)
      continue;
    const int64_t us = weft_sim_delay_us(m, a, b);
    EXPECT(us >= p->delay_min_us && us <= p->delay_max_us);
    take(&delay, (double)us / 1000);
  }
  EXPECT(delay.count > 500);
  return delay;
}

START_TEST(delays_are_as_far_as_asked) {
  const char *const settings[] = {"latency", "uniform", "delay-min", "10 ms", "delay-max",
                                  "90 ms",   "classes", "plain:1",   NULL};
  weft_sim_parameters p = with(settings);
  weft_sim_model m = model_of(&p);
  const moments even = delays_of(&p, &m, true); // all are of one provider
  EXPECT(fabs(even.mean - 50) < 1 && fabs(sqrt(even.variance) - 80 / sqrt(12)) < 1);
  // Two points of the unit square are 0.5214 apart on average, and at most sqrt(2).
  p.latency = WEFT_SIM_PLANE;
  const moments square = delays_of(&p, &m, true);
  EXPECT(fabs(square.mean - (10 + 80 * 0.5214 / sqrt(2))) < 1);
  // Each provider covers a square 0.3 wide.
  p.isps = 20;
  const moments near = delays_of(&p, &m, true), far = delays_of(&p, &m, false);
  EXPECT(fabs(near.mean - (10 + 80 * 0.3 * 0.5214 / sqrt(2))) < 1 && far.mean > near.mean + 5);
  weft_sim_model_clear(&m);
}
END_TEST

// The source has its own access delay, or the first class's; windows are as long as the shortest
// path, which may be one of the source's.
START_TEST(the_source_is_as_far_as_asked) {
  static const struct {
    const char *delay;
    int64_t source_us, window_us;
  } cases[] = {
      {"class", 12000, 9000}, {"40 ms", 40000, 9000}, {"0", 0, 7000}, {"1 ms", 1000, 8000}};
  const int64_t access_us[] = {12000, 2000};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    const char *const settings[] = {
        "latency",      "uniform",      "delay-min", "5 ms", "classes", "dsl:1 fibre:1",
        "source-delay", cases[c].delay, "delay-max", "5 ms", NULL};
    const weft_sim_parameters p = with(settings);
    weft_sim_model m = model_of(&p);
    EXPECT(m.window_us == cases[c].window_us);
    for (uint32_t a = 1; a < 100; a++) {
      const int64_t own_us = access_us[weft_sim_class_of(&m, a)];
      EXPECT(weft_sim_delay_us(&m, 0, a) == 5000 + cases[c].source_us + own_us);
      EXPECT(weft_sim_delay_us(&m, a, 0) == weft_sim_delay_us(&m, 0, a));
      EXPECT(weft_sim_delay_us(&m, a, a + 1) ==
             5000 + own_us + access_us[weft_sim_class_of(&m, a + 1)]);
    }
    weft_sim_model_clear(&m);
  }
}
END_TEST

START_TEST(regions_are_as_far_as_the_matrix_says) {
  const char *const settings[] = {"latency", "matrix", "matrix",  "5 20 70; 20 6 40; 70 40 7",
                                  "isps",    "7",      "classes", "dsl:1 fibre:1",
                                  NULL};
  const weft_sim_parameters p = with(settings);
  weft_sim_model m = model_of(&p);
  const int64_t ms[3][3] = {{5, 20, 70}, {20, 6, 40}, {70, 40, 7}}, access_ms[2] = {12, 2};
  size_t met[3][3] = {{0}};
  for (uint32_t a = 1; a < PEERS; a++) {
    const uint32_t b = a + 1, of_a = weft_sim_isp_of(&m, a) % 3, of_b = weft_sim_isp_of(&m, b) % 3;
    EXPECT(weft_sim_isp_of(&m, a) < 7);
    EXPECT(weft_sim_delay_us(&m, a, b) ==
           1000 * (ms[of_a][of_b] + access_ms[weft_sim_class_of(&m, a)] +
                   access_ms[weft_sim_class_of(&m, b)]));
    met[of_a][of_b]++;
  }
  for (size_t i = 0; i < 9; i++)
    EXPECT(met[i / 3][i % 3] > 100);
  EXPECT(m.window_us == 5000 + 2 * 2000); // the least of all
  weft_sim_model_clear(&m);
}
END_TEST

// The given share of a tracker's answers is of the asker's provider, and the others are random.
START_TEST(trackers_name_neighbours) {
  enum { ANSWERS = 20000 };
  const char *const settings[] = {"arrival", "together", "isps", "5", "isp-local", "0.6", NULL};
  const weft_sim_parameters p = with(settings);
  weft_sim_model m = model_of(&p);
  weft_sim_rng rng = {.state = test_seed()};
  double local = 0;
  for (uint32_t i = 1; i <= ANSWERS; i++) {
    const uint32_t who = weft_sim_find_peer(&m, i, 1000000, &rng);
    EXPECT(who != i && who <= PEERS);
    local += weft_sim_isp_of(&m, who) == weft_sim_isp_of(&m, i);
  }
  EXPECT(fabs(local / ANSWERS - (0.6 + 0.4 / 5)) < 0.02);
  weft_sim_model_clear(&m);
}
END_TEST

// The same if there are very few mates: with 100 providers one peer in 100 is one.
START_TEST(trackers_name_neighbours_of_many_providers) {
  const char *const settings[] = {"arrival", "together", "isps", "100", "isp-local", "1", NULL};
  const weft_sim_parameters p = with(settings);
  weft_sim_model m = model_of(&p);
  weft_sim_rng rng = {.state = test_seed()};
  for (uint32_t i = 1; i <= PEERS; i++)
    EXPECT(weft_sim_isp_of(&m, weft_sim_find_peer(&m, i, 1000000, &rng)) == weft_sim_isp_of(&m, i));
  weft_sim_model_clear(&m);
}
END_TEST

// A tracker names all who are present equally often, and nobody else, however many came and left
// before: 200 come every second and stay for one.
START_TEST(trackers_name_who_is_there) {
  enum { DRAWS = 200 };
  const char *const settings[] = {
      "arrival", "poisson", "arrivals-per-s", "200", "departure", "exponential", "stay-mean", "1 s",
      "isps",    "5",       "isp-local",      "0.5", NULL};
  const weft_sim_parameters p = with(settings);
  weft_sim_model m = model_of(&p);
  uint32_t *named = calloc(PEERS + 1, sizeof *named);
  EXPECT(named);
  for (int64_t now_us = 500000; now_us < 90000000; now_us += 11000000) {
    weft_sim_rng rng = {.state = test_seed() + (uint64_t)now_us};
    const uint32_t came = weft_sim_arrived(&m, now_us);
    memset(named, 0, (PEERS + 1) * sizeof *named);
    double there = 1, local = 0; // the source is present
    for (uint32_t i = 1; i <= came; i++)
      there += m.leave_us[i] > now_us;
    EXPECT(there > 50);
    // The asker has just come; all peers of its provider are others.
    for (int i = 0; i < DRAWS * (int)there; i++) {
      const uint32_t who = weft_sim_find_peer(&m, came + 1, now_us, &rng);
      EXPECT(who <= came && m.leave_us[who] > now_us);
      named[who]++;
      local += weft_sim_isp_of(&m, who) == weft_sim_isp_of(&m, came + 1);
    }
    double mates = 0;
    for (uint32_t i = 0; i <= came; i++)
      mates += m.leave_us[i] > now_us && weft_sim_isp_of(&m, i) == weft_sim_isp_of(&m, came + 1);
    EXPECT(fabs(local / (DRAWS * there) - (0.5 + 0.5 * mates / there)) < 0.02);
    for (uint32_t i = 0; i <= came; i++)
      if (m.leave_us[i] > now_us) {
        const bool mate = weft_sim_isp_of(&m, i) == weft_sim_isp_of(&m, came + 1);
        const double wanted = DRAWS * (0.5 + (mate ? 0.5 * there / mates : 0));
        EXPECT(fabs(named[i] - wanted) < 7 * sqrt(wanted));
      }
  }
  free(named);
  weft_sim_model_clear(&m);
}
END_TEST

// Times that overflow are WEFT_SIM_NEVER.
START_TEST(never_is_never) {
  EXPECT(weft_sim_after(5, 7.9) == 12 && weft_sim_after(0, 0) == 0);
  EXPECT(weft_sim_after(0, 8e18) == INT64_C(8000000000000000000));
  EXPECT(weft_sim_after(INT64_C(4000000000000000000), 8e18) == WEFT_SIM_NEVER);
  EXPECT(weft_sim_after(5, 1e19) == WEFT_SIM_NEVER &&
         weft_sim_after(5, INFINITY) == WEFT_SIM_NEVER);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("model");
  TCase *t = tcase_create("model");
  tcase_add_test(t, arrivals_come_by_chance);
  tcase_add_test(t, a_flash_comes_within_its_time);
  tcase_add_test(t, a_share_of_those_who_are_there_fails);
  tcase_add_test(t, delays_are_as_far_as_asked);
  tcase_add_test(t, the_source_is_as_far_as_asked);
  tcase_add_test(t, regions_are_as_far_as_the_matrix_says);
  tcase_add_test(t, trackers_name_neighbours);
  tcase_add_test(t, trackers_name_neighbours_of_many_providers);
  tcase_add_test(t, trackers_name_who_is_there);
  tcase_add_test(t, never_is_never);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
