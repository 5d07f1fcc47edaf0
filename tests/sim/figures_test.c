// SPDX-License-Identifier: Apache-2.0
// Figures of a run made by hand, so that each is known: who counts as audience, what is counted for
// whom, and which quantile is which.
#include <math.h>
#include <string.h>

#include "sim/report/metrics.h"
#include "tests/sim/fixture.h"
#include "tests/support/test_main.h"

enum { VIEWERS = 5 };
#define S INT64_C(1000000)

static const weft_sim_viewer nobody = {.left_us = WEFT_SIM_NEVER,
                                       .done_us = WEFT_SIM_NEVER,
                                       .joined_us = WEFT_SIM_NEVER,
                                       .startup_us = -1,
                                       .lag_us = -1};

// Makes viewers of a run of two hours: one saw all, one half an hour from 1:00 on, and one never
// played; a polluter and one who never came are not audience.
static void make_viewers(weft_sim_viewer v[VIEWERS]) {
  for (size_t i = 0; i < VIEWERS; i++) {
    v[i] = nobody;
    v[i].peer = (uint32_t)i + 1;
    v[i].came = i != 4;
    v[i].joined_us = v[i].came ? 0 : WEFT_SIM_NEVER;
  }
  v[0].startup_us = 2 * S, v[0].lag_us = 6 * S, v[0].due = 100, v[0].in_time = 90;
  v[0].skipped = 10, v[0].stalls = 3, v[0].stalled_us = 36 * S, v[0].seek_wait_us = 18 * S;
  v[1].joined_us = 3600 * S, v[1].left = true, v[1].left_us = 5400 * S;
  v[1].startup_us = 4 * S, v[1].lag_us = 8 * S, v[1].due = 50, v[1].in_time = 45;
  v[1].skipped = 5, v[1].stalls = 6, v[1].stalled_us = 9 * S;
  v[1].done = true, v[1].done_us = 3610 * S;
  v[2].due = 10;
  v[3].polluter = true, v[3].due = 1000, v[3].in_time = 1, v[3].startup_us = 100 * S;
  v[3].lag_us = 100 * S, v[3].stalls = 99, v[3].done = true, v[3].done_us = 100 * S;
}

static double figure(const weft_sim_metrics *m, const char *name) {
  return weft_sim_metric_of(m, name);
}

static bool is(double value, double wanted) { return fabs(value - wanted) < 1e-12 * (1 + wanted); }

START_TEST(figures_are_of_the_audience) {
  weft_sim_parameters p = sim_fixture_with(NULL, (const char *const[]){NULL});
  weft_sim_viewer viewers[VIEWERS];
  weft_sim_metrics m = {0};
  make_viewers(viewers);
  weft_sim_result r = {.end_us = 7200 * S,
                       .segment_us = S,
                       .stream_bytes = 1000000,
                       .viewers = viewers,
                       .viewer_count = VIEWERS};
  EXPECT(weft_sim_measure(&p, &r, &m) == WEFT_OK);
  EXPECT(is(figure(&m, "continuity"), 135.0 / 160) && is(figure(&m, "skip_rate"), 15.0 / 160));
  const double watched_h = 2 + 0.5 + 2;
  EXPECT(is(figure(&m, "stalls_per_hour"), 9 / watched_h));
  EXPECT(is(figure(&m, "stalled_share"), 45.0 / 3600 / watched_h));
  EXPECT(is(figure(&m, "seek_wait_share"), 18.0 / 3600 / watched_h));
  EXPECT(figure(&m, "never_played") == 1 && figure(&m, "done") == 1);
  EXPECT(figure(&m, "startup_p50_s") == 2 && figure(&m, "startup_p95_s") == 4);
  EXPECT(figure(&m, "lag_p50_s") == 6 && figure(&m, "lag_p99_s") == 8);
  EXPECT(figure(&m, "done_p50_s") == 10); // from joining
  EXPECT(isnan(figure(&m, "no_progress")));
  // Bulk has no pace, and no viewer is late.
  r.segment_us = 0;
  EXPECT(weft_sim_measure(&p, &r, &m) == WEFT_OK);
  EXPECT(isnan(figure(&m, "continuity")) && isnan(figure(&m, "never_played")));
  EXPECT(figure(&m, "done_p99_s") == 10 && figure(&m, "no_progress") == 0);
  // A run that was ended early has no times, which would be those of the few that were done, and no
  // shares.
  r.no_progress = true;
  EXPECT(weft_sim_measure(&p, &r, &m) == WEFT_OK);
  EXPECT(figure(&m, "no_progress") == 1 && figure(&m, "done") == 1);
  EXPECT(isnan(figure(&m, "done_p50_s")) && isnan(figure(&m, "source_bytes")));
}
END_TEST

// Of 1,000 packets of 100 bytes, each byte that left an uplink is counted in one share.
START_TEST(shares_are_of_all_that_left) {
  weft_sim_parameters p = sim_fixture_with(NULL, (const char *const[]){NULL});
  weft_sim_metrics m = {0};
  p.block_bytes = 100;
  p.overhead_bytes = 10;
  weft_sim_result r = {.stream_bytes = 50000};
  weft_sim_totals *t = &r.totals;
  t->source = (weft_engine_statistics){.sent_packets = 400,
                                       .sent_payload_bytes = 40000,
                                       .sent_header_bytes = 800,
                                       .sent_control = 20,
                                       .sent_control_bytes = 500};
  t->peers = (weft_engine_statistics){.sent_packets = 700,
                                      .sent_payload_bytes = 70000,
                                      .sent_header_bytes = 1400,
                                      .sent_control = 30,
                                      .sent_control_bytes = 700,
                                      .received_innovative = 600,
                                      .received_dependent = 50,
                                      .received_late = 30,
                                      .received_outside = 20,
                                      .received_waiting = 15,
                                      .received_polluted = 5};
  t->handshake_bytes = 3000;
  t->source_handshake_bytes = 1000;
  t->unsent_packets = 100; // the source's, with ten control messages of 20 bytes
  t->unsent_payload_bytes = 10000;
  t->unsent_header_bytes = 100 * (2 + 10) + 10 * 10;
  t->unsent_control_bytes = 200;
  t->source_unsent_bytes = 10000 + 1300 + 200;
  EXPECT(weft_sim_measure(&p, &r, &m) == WEFT_OK);
  const double source = 40000 + 800 + 500 + 10 * 420 + 1000 - 11500;
  const double header = 2200 + 10 * 1150 - 1300, control = 1200 + 3000 - 200;
  const double all = 100000 + header + control;
  EXPECT(figure(&m, "source_bytes") == source && figure(&m, "sent_bytes") == all);
  EXPECT(is(figure(&m, "source_streams"), source / 50000));
  EXPECT(is(figure(&m, "share_useful"), 60000 / all));
  EXPECT(is(figure(&m, "share_dependent"), 5000 / all));
  EXPECT(is(figure(&m, "share_duplicate"), 5000 / all));
  EXPECT(is(figure(&m, "share_polluted"), 500 / all));
  EXPECT(is(figure(&m, "share_header"), header / all));
  EXPECT(is(figure(&m, "share_control"), control / all));
  EXPECT(is(figure(&m, "share_lost"), (1000 - 705) * 100 / all)); // includes those still queued
  EXPECT(is(figure(&m, "dependent_per_innovative"), 50.0 / 600));
}
END_TEST

START_TEST(quantiles_are_of_the_nearest_rank) {
  double values[100];
  for (size_t i = 0; i < 100; i++)
    values[i] = (double)((i * 37) % 100 + 1);
  weft_sim_sort(values, 100);
  EXPECT(weft_sim_quantile(values, 100, 0.5) == 50 && weft_sim_quantile(values, 100, 0.95) == 95);
  EXPECT(weft_sim_quantile(values, 100, 0.951) == 96 && weft_sim_quantile(values, 100, 0) == 1);
  EXPECT(weft_sim_quantile(values, 100, 1) == 100 && weft_sim_quantile(values, 1, 0.99) == 1);
  EXPECT(weft_sim_quantile(values, 3, 0.5) == 2 && isnan(weft_sim_quantile(values, 0, 0.5)));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("figures");
  TCase *t = tcase_create("figures");
  tcase_add_test(t, figures_are_of_the_audience);
  tcase_add_test(t, shares_are_of_all_that_left);
  tcase_add_test(t, quantiles_are_of_the_nearest_rank);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
