// SPDX-License-Identifier: Apache-2.0
// A policy of your own in the simulator: most_behind.c decides, in place of weft, what a peer sends
// next. Runs the same swarm with weft's random push and with that policy, and prints both results.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/scenario/scenario.h"
#include "sim/swarm/swarm.h"

extern const weft_policy_file weft_policy_in_file; // in most_behind.c

static weft_status simulate(const weft_sim_parameters *parameters, const weft_policy *policy) {
  const weft_sim_options options = {.parameters = parameters, .threads = 1, .policy = policy};
  weft_sim_swarm *swarm;
  weft_sim_result result;
  WEFT_TRY(weft_sim_swarm_new(&options, &swarm));
  weft_status status = weft_sim_swarm_run(swarm);
  if (status == WEFT_OK)
    status = weft_sim_swarm_result(swarm, &result);
  if (status == WEFT_OK) {
    const weft_engine_statistics *all = &result.totals.peers;
    const double arrived = (double)(all->received_innovative + all->received_dependent);
    printf("%-12s  continuity %.4f  no news %4.1f %% of the packets  %" PRIu64 " segments due\n",
           policy ? policy->name : "push", (double)all->in_time / (double)all->due,
           100 * (double)all->received_dependent / arrived, all->due);
    if (all->due == 0 || all->in_time == 0)
      status = WEFT_E_STATE; // no viewer saw anything
  }
  weft_sim_swarm_free(swarm);
  return status;
}

int main(void) {
  static const char *const settings[][2] = {
      {"peers", "100"},        {"duration", "20 s"},     {"fidelity", "coefficients"},
      {"arrival", "together"}, {"departure", "stay"},    {"loss", "2%"},
      {"classes", "cable:1"},  {"source-upload", "20M"},
  };
  weft_sim_parameters parameters;
  char why[WEFT_SIM_TEXT];
  weft_sim_defaults(&parameters);
  bool good = true;
  for (size_t i = 0; good && i < sizeof settings / sizeof *settings; i++)
    good = weft_sim_set(&parameters, settings[i][0], settings[i][1], why);
  if (!good || !weft_sim_check(&parameters, why)) {
    fprintf(stderr, "%s\n", why);
    return EXIT_FAILURE;
  }
  weft_status status = simulate(&parameters, NULL);
  if (status == WEFT_OK)
    status = simulate(&parameters, &weft_policy_in_file.policy);
  if (status != WEFT_OK)
    fprintf(stderr, "%s\n", weft_status_text(status));
  return status == WEFT_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
