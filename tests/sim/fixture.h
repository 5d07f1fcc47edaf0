// SPDX-License-Identifier: Apache-2.0
// What the suites of whole swarms share: parameters from settings, and a run.
#ifndef WEFT_TESTS_SIM_FIXTURE_H
#define WEFT_TESTS_SIM_FIXTURE_H

#include <check.h>
#include <stdio.h>

#include "sim/scenario/scenario.h"
#include "sim/swarm/swarm.h"
#include "tests/support/test_rng.h"

// What went wrong, with the seed to see it again.
#define EXPECT(condition)                                                                          \
  do {                                                                                             \
    if (!(condition))                                                                              \
      ck_abort_msg("%s (WEFT_TEST_SEED=%#llx)", #condition, (unsigned long long)test_seed());      \
  } while (0)

// A figure that hangs on chance, told in any case: how far it lies from its bound says how often it
// will miss that.
#define EXPECT_BOUND(value, relation, bound)                                                       \
  do {                                                                                             \
    const double value_is_ = (value), bound_is_ = (bound);                                         \
    printf("%s:%d: %.6g " #relation " %.6g: " #value "\n", __func__, __LINE__, value_is_,          \
           bound_is_);                                                                             \
    EXPECT(value_is_ relation bound_is_);                                                          \
  } while (0)
#define EXPECT_LEAST(value, least) EXPECT_BOUND(value, >=, least)
#define EXPECT_BELOW(value, limit) EXPECT_BOUND(value, <, limit)

// A scenario (NULL: the defaults) and what differs from it: names and values in turn, NULL behind
// the last. The seed is the test run's.
weft_sim_parameters sim_fixture_with(const char *scenario, const char *const *settings);

// A swarm that has run to its end, and what came of it; the caller frees the swarm.
weft_sim_swarm *sim_fixture_run(const weft_sim_options *options, weft_sim_result *result);

#endif
