// SPDX-License-Identifier: Apache-2.0
// A mesh of a thousand peers with six to eight neighbours each and uplinks that are nearly full
// must go on as it began: each segment begins its way while those before it are still being
// completed. When it waited for them, every segment was a little later than the one before, until
// after a minute or two none came in time (docs/scale.md).
#include "tests/sim/fixture.h"
#include "tests/support/test_main.h"

START_TEST(segments_do_not_wait_for_those_before_them) {
  enum { PEERS = 1000, DUE = 13 }; // segments, of 5.46 s each, that each viewer sees due
  const char *const settings[] = {"fidelity",    "rank",      "segment-blocks", "128",
                                  "block-bytes", "4096",      "rate",           "768k",
                                  "duration",    "100 s",     "window",         "8",
                                  "batch",       "16",        "neighbours",     "6",
                                  "flights",     "8",         "neighbours-max", "8",
                                  "requests",    "2",         "addresses",      "12",
                                  "lag",         "24 s",      "startup",        "6 s",
                                  "map-every",   "1 s",       "map-idle",       "3 s",
                                  "silence",     "20 s",      "peers",          "1000",
                                  "classes",     "plain:100", "source-upload",  "1G",
                                  "delay-min",   "20 ms",     "arrival",        "together",
                                  "departure",   "stay",      "sampled",        "0",
                                  NULL};
  weft_sim_parameters p = sim_fixture_with(NULL, settings);
  p.classes[0].up_bits_per_s = 950000; // 1.24 streams; 1.19 are needed, with all that is in vain
  const weft_sim_options options = {.parameters = &p, .threads = 2};
  weft_sim_result result;
  weft_sim_swarm *swarm = sim_fixture_run(&options, &result);
  const weft_engine_statistics *all = &result.totals.peers;
  EXPECT(all->due >= PEERS * DUE);
  EXPECT((double)all->in_time >= 0.999 * (double)all->due);
  // What adds nothing: less than a fifth of what does.
  EXPECT(5 * (all->received_dependent + all->received_late) < all->received_innovative);
  weft_sim_swarm_free(swarm);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("mesh");
  TCase *t = tcase_create("mesh");
  tcase_add_test(t, segments_do_not_wait_for_those_before_them);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
