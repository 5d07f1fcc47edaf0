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

// Which of `count` is visited at place `at`: 0, count - 1, 1, count - 2, ...
static inline size_t weft_zigzag(size_t at, size_t count) {
  return at % 2 ? count - 1 - at / 2 : at / 2;
}

#endif
