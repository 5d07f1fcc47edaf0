// SPDX-License-Identifier: Apache-2.0
// The statistical fidelity against exact ranks in whole swarms that its constant was not fitted to:
// the figures used in studies must agree, or the model has drifted.
#include <math.h>
#include <stdio.h>

#include "sim/report/metrics.h"
#include "tests/sim/fixture.h"
#include "tests/support/test_main.h"

enum { SEEDS = 8, FIGURES = 6 };
enum { CONTINUITY, STARTUP_P50, STARTUP_P95, SOURCE_BYTES, DEPENDENT, USEFUL };
static const char *const names[FIGURES] = {"continuity",   "startup_p50_s",   "startup_p95_s",
                                           "source_bytes", "share_dependent", "share_useful"};

typedef struct shape {
  const char *blocks, *window, *neighbours, *most, *loss, *batch, *classes;
} shape;

static const shape shapes[] = {{"40", "32", "7", "10", "0.03", "8", "cable:1"},
                               {"112", "16", "4", "6", "0.01", "16", "plain:1"},
                               {"64", "24", "20", "24", "0.05", "4", "cable:1 fibre:1"}};

static void run(const shape *s, const char *fidelity, uint64_t number, double out[FIGURES]) {
  const char *const settings[] = {
      "segment-blocks", s->blocks,  "window",   s->window,  "neighbours", s->neighbours,
      "neighbours-max", s->most,    "loss",     s->loss,    "batch",      s->batch,
      "classes",        s->classes, "fidelity", fidelity,   "peers",      "120",
      "duration",       "16 s",     "arrival",  "together", "departure",  "stay",
      "source-upload",  "8M",       "lag",      "6 s",      "startup",    "1500 ms",
      "sampled",        "0",        NULL};
  weft_sim_parameters p = sim_fixture_with(NULL, settings);
  p.seed += number;
  const weft_sim_options options = {.parameters = &p, .threads = 2};
  weft_sim_result result;
  weft_sim_metrics metrics = {0};
  weft_sim_swarm *swarm = sim_fixture_run(&options, &result);
  EXPECT(weft_sim_measure(&p, &result, &metrics) == WEFT_OK);
  for (size_t f = 0; f < FIGURES; f++) {
    const double value = weft_sim_metric_of(&metrics, names[f]);
    EXPECT(isfinite(value));
    out[f] += value / SEEDS;
  }
  weft_sim_swarm_free(swarm);
}

// The bounds are slightly above the errors in docs/studies/rank-agreement.csv, and hold for its
// other swarms as well. With four seeds per side the second shape came within 3.3 deviations of two
// of them.
START_TEST(rank_agrees_with_coefficients_in_other_swarms) {
  double exact[FIGURES] = {0}, rank[FIGURES] = {0};
  for (uint64_t number = 0; number < SEEDS; number++) {
    run(&shapes[_i], "coefficients", number, exact);
    run(&shapes[_i], "rank", number, rank);
  }
  printf("n %s, neighbours %s:", shapes[_i].blocks, shapes[_i].most);
  for (size_t f = 0; f < FIGURES; f++)
    printf(" %s %.6g (%.6g)", names[f], rank[f], exact[f]);
  putchar('\n');
  EXPECT_BELOW(fabs(rank[CONTINUITY] - exact[CONTINUITY]), 0.01);
  EXPECT_BELOW(fabs(rank[STARTUP_P50] / exact[STARTUP_P50] - 1), 0.02);
  EXPECT_BELOW(fabs(rank[STARTUP_P95] / exact[STARTUP_P95] - 1), 0.02);
  EXPECT_BELOW(fabs(rank[SOURCE_BYTES] / exact[SOURCE_BYTES] - 1), 0.1);
  EXPECT_BELOW(fabs(rank[DEPENDENT] - exact[DEPENDENT]), 0.006);
  EXPECT_BELOW(fabs(rank[DEPENDENT] / exact[DEPENDENT] - 1), 0.3);
  EXPECT_BELOW(fabs((1 / rank[USEFUL] - 1) / (1 / exact[USEFUL] - 1) - 1), 0.03);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("rank");
  TCase *t = tcase_create("rank");
  tcase_add_loop_test(t, rank_agrees_with_coefficients_in_other_swarms, 0,
                      sizeof shapes / sizeof *shapes);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
