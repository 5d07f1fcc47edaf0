// SPDX-License-Identifier: Apache-2.0
// Learns and predicts how long a product takes on a lane. A device has a minimum duration below
// which size does not matter, a CPU hardly any, so durations are kept per power of two of the work,
// and predictions interpolate between the nearest known classes.
#include <math.h>

#include "lib/server/internal.h"

// The newest duration has a weight of one quarter: the estimate follows a lane's changing load
// within a few products, while one slow product does not change the choice of lane.
static const double NEWEST = 0.25;
// A duration counts as at most this many times the mean: more is a disturbance and not typical of
// the size.
static const double MOST = 3;

double weft_cost_work(const weft_segment_id *id, size_t packets) {
  return (double)packets * (double)id->blocks * (double)id->block_bytes;
}

static size_t bucket_of(double work) {
  int exponent = 0;
  (void)frexp(work, &exponent);
  if (exponent < 0)
    return 0;
  return exponent < WEFT_COST_BUCKETS ? (size_t)exponent : WEFT_COST_BUCKETS - 1;
}

double weft_cost_predict(const weft_lane_cost *cost, double work) {
  const size_t bucket = bucket_of(work);
  size_t below = bucket + 1, above = bucket + 1;
  while (below > 0 && cost->work[below - 1] <= 0)
    below--;
  while (above < WEFT_COST_BUCKETS && cost->work[above] <= 0)
    above++;
  if (below > 0) {
    // Known at this size or below: larger work takes at least as long, and at most proportionally
    // longer.
    const size_t known = below - 1;
    if (known == bucket || above == WEFT_COST_BUCKETS)
      return cost->us[known] * (work > cost->work[known] ? work / cost->work[known] : 1);
    const double part = (work - cost->work[known]) / (cost->work[above] - cost->work[known]);
    return cost->us[known] + part * (cost->us[above] - cost->us[known]);
  }
  return above < WEFT_COST_BUCKETS ? cost->us[above] : 0;
}

void weft_cost_learn(weft_lane_cost *cost, double work, double us) {
  const size_t bucket = bucket_of(work);
  const double weight = cost->work[bucket] > 0 ? NEWEST : 1;
  if (cost->work[bucket] > 0 && us > MOST * cost->us[bucket])
    us = MOST * cost->us[bucket];
  cost->work[bucket] += weight * (work - cost->work[bucket]);
  cost->us[bucket] += weight * (us - cost->us[bucket]);
}
