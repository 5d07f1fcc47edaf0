// SPDX-License-Identifier: Apache-2.0
// The schemes compared in a study must each be strong: with as many neighbours as real systems
// have, so that every peer knows the source, asking schemes must neither overload it nor ask in
// vain. And if places are short, no peer may be left without neighbours, whatever the scheme.
#include "tests/sim/fixture.h"
#include "tests/support/test_main.h"

static weft_sim_totals run(const weft_sim_parameters *p) {
  const weft_sim_options options = {.parameters = p, .threads = 2};
  weft_sim_result result;
  weft_sim_swarm *swarm = sim_fixture_run(&options, &result);
  EXPECT(result.totals.wrong_bytes == 0);
  const weft_sim_totals totals = result.totals;
  weft_sim_swarm_free(swarm);
  return totals;
}

static weft_sim_totals run_together(const char *scheme, const char *neighbours, const char *most,
                                    uint64_t seed) {
  const char *const settings[] = {
      "scheme",    scheme,    "neighbours", neighbours, "neighbours-max",
      most,        "peers",   "50",         "duration", "20 s",
      "loss",      "0.02",    "lag",        "4 s",      "startup",
      "1 s",       "classes", "cable:100",  "arrival",  "together",
      "departure", "stay",    "fidelity",   "bytes",    "source-upload",
      "6M",        "sampled", "0",          NULL};
  weft_sim_parameters p = sim_fixture_with(NULL, settings);
  p.seed = seed;
  const weft_sim_totals totals = run(&p);
  EXPECT(totals.peers.due > 50 * 15);
  return totals;
}

static const char *const schemes[] = {"rarest", "pull"};
static const char *const few_and_many[][2] = {{"12", "16"}, {"30", "50"}};

// Useless packets arrive while peers join, and their number varies: three runs are judged together.
START_TEST(asking_schemes_hold_with_many_neighbours) {
  uint64_t in_vain = 0, innovative = 0;
  for (uint64_t number = 0; number < 3; number++) {
    const weft_sim_totals t = run_together(schemes[_i / 2], few_and_many[_i % 2][0],
                                           few_and_many[_i % 2][1], (test_seed() >> 12) + number);
    const weft_engine_statistics *p = &t.peers, *s = &t.source;
    EXPECT((double)p->in_time >= 0.99 * (double)p->due);
    // Less than the 7.8 streams that its uplink carries without headers, and few useless packets.
    EXPECT((double)s->sent_payload_bytes < 5.5 * 20 * 768e3 / 8);
    in_vain += p->received_dependent + p->received_late;
    innovative += p->received_innovative;
  }
  EXPECT(10 * in_vain < innovative);
}
END_TEST

// One packet in five is lost, requests and answers alike. A loss must not be taken for a late
// answer: 0.30 to 0.55 arrived in time (82 runs of both schemes) when each such loss halved what is
// asked for at once, and was asked for again as late as of a slow neighbour. Senders take a loss of
// more than an eighth for congestion, so now and then one of the six falls behind: of 2,400 runs
// each, 0.9998 (pull) and 0.9978 (rarest) arrived in time, but 0.933 and 0.867 in the worst. Eight
// runs together had at least 0.992 and 0.982.
START_TEST(asking_schemes_hold_under_heavy_loss) {
  const char *const settings[] = {
      "scheme",  schemes[_i],     "peers",     "6",       "duration", "20 s",    "loss",
      "0.2",     "lag",           "6 s",       "startup", "1 s",      "classes", "server:100",
      "arrival", "together",      "departure", "stay",    "fidelity", "bytes",   "sampled",
      "0",       "source-upload", "8M",        NULL};
  weft_sim_parameters p = sim_fixture_with(NULL, settings);
  uint64_t in_time = 0, due = 0;
  for (uint64_t number = 0; number < 8; number++) {
    p.seed = (test_seed() >> 12) + number;
    const weft_sim_totals t = run(&p);
    EXPECT(t.peers.due > 6 * 15);
    in_time += t.peers.in_time;
    due += t.peers.due;
  }
  EXPECT((double)in_time >= 0.97 * (double)due);
}
END_TEST

// In these runs the connectable peers, a third of all, had taken all places from each other, and
// some peers behind NATs kept one neighbour for good: 0.967, 0.983 and 0.983 arrived in time.
START_TEST(nobody_is_left_with_one_neighbour) {
  static const uint64_t seeds[] = {459623297223, 72, 25};
  for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
    const weft_sim_totals t = run_together("pull", "12", "16", seeds[i]);
    EXPECT(t.peers.in_time == t.peers.due);
  }
}
END_TEST

// Viewers stay 25 s on average and leave without notice, and half of them cannot be connected to:
// newcomers need the places of those that left, and of those that can spare theirs. Of 40 runs the
// worst had 0.9960 (push) and 0.9858 (pull); without room for newcomers 0.862 and 0.766, and the
// mean 0.989 and 0.931.
START_TEST(newcomers_find_room_under_churn) {
  static const struct {
    const char *scheme;
    double least;
  } wanted[] = {{"push", 0.993}, {"pull", 0.975}};
  const char *const settings[] = {"scheme",
                                  wanted[_i].scheme,
                                  "peers",
                                  "150",
                                  "duration",
                                  "60 s",
                                  "fidelity",
                                  "coefficients",
                                  "lag",
                                  "4 s",
                                  "startup",
                                  "1 s",
                                  "neighbours",
                                  "8",
                                  "neighbours-max",
                                  "12",
                                  "loss",
                                  "0.02",
                                  "classes",
                                  "cable:100",
                                  "source-upload",
                                  "6M",
                                  "arrival",
                                  "flash",
                                  "flash-share",
                                  "0.4",
                                  "flash-within",
                                  "5 s",
                                  "arrivals-per-s",
                                  "2",
                                  "departure",
                                  "exponential",
                                  "stay-mean",
                                  "25 s",
                                  "polite",
                                  "0",
                                  "sampled",
                                  "0",
                                  NULL};
  const weft_sim_parameters p = sim_fixture_with(NULL, settings);
  const weft_sim_totals t = run(&p);
  EXPECT(t.peers.due > 2000);
  EXPECT((double)t.peers.in_time >= wanted[_i].least * (double)t.peers.due);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("schemes");
  TCase *t = tcase_create("schemes");
  tcase_add_loop_test(t, asking_schemes_hold_with_many_neighbours, 0, 4);
  tcase_add_loop_test(t, asking_schemes_hold_under_heavy_loss, 0, 2);
  tcase_add_test(t, nobody_is_left_with_one_neighbour);
  tcase_add_loop_test(t, newcomers_find_room_under_churn, 0, 2);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
