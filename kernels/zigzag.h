// SPDX-License-Identifier: Apache-2.0
// The order in which a loop over few sources visits them: from both ends in turn.
//
// Shards of a stripe are evenly spaced, so the load in a loop over them has a constant stride.
// Cores that follow strides of any length (AMD's Zen 5 does) then prefetch what comes after the
// last source, again at every column: lines that are never read, and evict lines that will be. From
// both ends in turn no two strides are equal. docs/performance/storage-few-rows.md says what that
// gains.
#ifndef WEFT_KERNELS_ZIGZAG_H
#define WEFT_KERNELS_ZIGZAG_H

#include <stddef.h>

// Returns which of `count` sources is visited at position `at`: 0, count - 1, 1, count - 2, ...
static inline size_t weft_zigzag(size_t at, size_t count) {
  return at % 2 ? count - 1 - at / 2 : at / 2;
}

#endif
