// SPDX-License-Identifier: Apache-2.0
// The order in which a loop over few sources visits them: from both ends in turn.
//
// Shards of a stripe lie evenly apart, so the load in a loop over them strides evenly. Cores that
// follow strides of any length (AMD's Zen 5 does) then fetch what lies behind the last source, at
// every column anew: lines that nobody reads, which drive out those that somebody will. From both
// ends in turn no two strides are alike. docs/performance/storage-few-rows.md has what that gains.
#ifndef WEFT_KERNELS_ZIGZAG_H
#define WEFT_KERNELS_ZIGZAG_H

#include <stddef.h>
#include <stdint.h>

// Lists k sources in groups of `group`, in each of them first, last, second, last but one, ...,
// `together` neighbours (1, 2) counting as one; what is less than that comes last.
static inline void weft_zigzag(size_t k, size_t group, const size_t together, uint16_t *order) {
  for (size_t first = 0; first < k; first += group) {
    const size_t count = k - first < group ? k - first : group, steps = count / together;
    size_t at = first;
    for (size_t s = 0; s < steps; s++)
      for (size_t i = 0; i < together; i++)
        order[at++] = (uint16_t)(first + (s % 2 ? steps - 1 - s / 2 : s / 2) * together + i);
    for (; at < first + count; at++)
      order[at] = (uint16_t)at;
  }
}

#endif
