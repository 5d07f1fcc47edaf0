// SPDX-License-Identifier: Apache-2.0
#ifndef WEFT_KERNELS_SMALLER_H
#define WEFT_KERNELS_SMALLER_H

#include <stddef.h>

static inline size_t weft_smaller(size_t a, size_t b) { return a < b ? a : b; }

#endif
