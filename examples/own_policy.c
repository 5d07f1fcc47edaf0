// SPDX-License-Identifier: Apache-2.0
// A policy of one's own in the simulator: what a peer sends next is decided here, not in weft. The
// same swarm runs with weft's random push and with this policy, and the differences are told.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/scenario/scenario.h"
#include "sim/swarm/swarm.h"

// Packets of a segment that a neighbour can still use and we have news of.
static size_t useful(const weft_policy_view *view, const weft_policy_neighbour *to,
                     uint64_t segment) {
  const size_t at = (size_t)(segment % view->window);
  const weft_policy_segment *ours = &view->segments[at];
  const weft_policy_want *want = &to->wants[at];
  const unsigned has = want->rank + want->in_flight;
  if (view->number[at] != segment || !want->accepts || ours->blocks == 0 || has >= ours->rank)
    return 0;
  return ours->rank - has;
}

// To whom most is news goes first; of equals, a random one.
static bool most_behind(void *user, const weft_policy_view *view, const weft_rng *rng,
                        weft_policy_choice *out) {
  size_t most = 0;
  const size_t start = view->neighbours ? (size_t)weft_rng_below(rng, view->neighbours) : 0;
  (void)user;
  for (size_t i = 0; i < view->neighbours; i++) {
    const size_t index = (start + i) % view->neighbours;
    const weft_policy_neighbour *to = &view->neighbour[index];
    for (uint64_t s = view->first; to->open && s < view->first + view->count; s++) {
      const bool known = s >= to->first && s < to->first + to->count && s < view->horizon;
      const size_t count = known ? useful(view, to, s) : 0;
      if (count > most) {
        most = count;
        *out = (weft_policy_choice){.neighbour = index, .segment = s, .count = count};
      }
    }
  }
  out->count = out->count < view->batch_max ? out->count : view->batch_max;
  return most > 0;
}

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
      status = WEFT_E_STATE; // nobody saw anything
  }
  weft_sim_swarm_free(swarm);
  return status;
}

int main(void) {
  static const weft_policy own = {.name = "most-behind", .pick = most_behind};
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
    status = simulate(&parameters, &own);
  if (status != WEFT_OK)
    fprintf(stderr, "%s\n", weft_status_text(status));
  return status == WEFT_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
