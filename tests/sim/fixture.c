// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/fixture.h"

weft_sim_parameters sim_fixture_with(const char *scenario, const char *const *settings) {
  weft_sim_parameters p;
  char why[WEFT_SIM_TEXT];
  weft_sim_defaults(&p);
  if (scenario && !weft_sim_load_scenario(&p, scenario, why))
    ck_abort_msg("%s", why);
  p.seed = test_seed() >> 12;
  for (; *settings; settings += 2)
    if (!weft_sim_set(&p, settings[0], settings[1], why))
      ck_abort_msg("%s", why);
  if (!weft_sim_check(&p, why))
    ck_abort_msg("%s", why);
  return p;
}

weft_sim_swarm *sim_fixture_run(const weft_sim_options *options, weft_sim_result *result) {
  weft_sim_swarm *swarm;
  EXPECT(weft_sim_swarm_new(options, &swarm) == WEFT_OK);
  EXPECT(weft_sim_swarm_run(swarm) == WEFT_OK);
  EXPECT(weft_sim_swarm_result(swarm, result) == WEFT_OK);
  return swarm;
}
