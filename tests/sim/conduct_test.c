// SPDX-License-Identifier: Apache-2.0
// Who misbehaves does so in every fidelity and scheme.
#include "tests/sim/fixture.h"
#include "tests/support/test_main.h"

static const char *const fidelities[] = {"bytes", "coefficients", "rank"};

// Polluters are banned, with checksums and without, and nobody plays what they made.
START_TEST(polluters_pollute_and_are_banned) {
  static const char *const checksums[] = {"250 ms", "0"};
  const char *const settings[] = {
      "peers", "24",       "duration",         "15 s",           "polluters",
      "0.3",   "fidelity", fidelities[_i % 3], "checksum-every", checksums[_i / 3],
      NULL};
  const weft_sim_parameters p = sim_fixture_with("polluted", settings);
  const weft_sim_options options = {.parameters = &p, .threads = 2};
  weft_sim_result r;
  weft_sim_swarm *swarm = sim_fixture_run(&options, &r);
  const weft_engine_statistics *s = &r.totals.peers;
  const uint64_t found = p.checksum_us ? s->received_polluted : s->hash_failures;
  if (found == 0 || s->banned == 0 || r.totals.wrong_bytes > 0)
    ck_abort_msg("%s, checksums every %s: %llu packets or segments found out, %llu banned, %llu "
                 "bytes wrong (WEFT_TEST_SEED=%#llx)",
                 settings[7], settings[9], (unsigned long long)found, (unsigned long long)s->banned,
                 (unsigned long long)r.totals.wrong_bytes, (unsigned long long)test_seed());
  weft_sim_swarm_free(swarm);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("conduct");
  TCase *t = tcase_create("conduct");
  tcase_add_loop_test(t, polluters_pollute_and_are_banned, 0, 6);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
