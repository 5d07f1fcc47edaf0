// SPDX-License-Identifier: Apache-2.0
// What the suites of whole swarms share: parameters from settings, and a run.
#ifndef WEFT_TESTS_SIM_FIXTURE_H
#define WEFT_TESTS_SIM_FIXTURE_H

#include <check.h>
#include <stdio.h>

#include "sim/scenario/scenario.h"
#include "sim/swarm/swarm.h"
#include "tests/support/test_rng.h"

// Fails with the condition and the seed to reproduce it.
#define EXPECT(condition)                                                                          \
  do {                                                                                             \
    if (!(condition))                                                                              \
      ck_abort_msg("%s (WEFT_TEST_SEED=%#llx)", #condition, (unsigned long long)test_seed());      \
  } while (0)

// Checks a figure that depends on chance, and always prints it: its distance from the bound shows
// how often it will miss it.
#define EXPECT_BOUND(value, relation, bound)                                                       \
  do {                                                                                             \
    const double value_is_ = (value), bound_is_ = (bound);                                         \
    printf("%s:%d: %.6g " #relation " %.6g: " #value "\n", __func__, __LINE__, value_is_,          \
           bound_is_);                                                                             \
    EXPECT(value_is_ relation bound_is_);                                                          \
  } while (0)
#define EXPECT_LEAST(value, least) EXPECT_BOUND(value, >=, least)
#define EXPECT_BELOW(value, limit) EXPECT_BOUND(value, <, limit)

// Returns a scenario (NULL: the defaults) with changes: names and values alternate, and NULL ends
// the list. The seed is that of the test run.
weft_sim_parameters sim_fixture_with(const char *scenario, const char *const *settings);

// Runs a swarm to its end and gives its result; the caller frees the swarm.
weft_sim_swarm *sim_fixture_run(const weft_sim_options *options, weft_sim_result *result);

#endif
