// SPDX-License-Identifier: Apache-2.0
// Loops of constant length that must be unrolled completely, since their arrays of vectors would
// otherwise stay in memory instead of registers.
#ifndef WEFT_KERNELS_UNROLL_H
#define WEFT_KERNELS_UNROLL_H

#define WEFT_INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define WEFT_UNROLL _Pragma("unroll")
#else
#define WEFT_UNROLL _Pragma("GCC unroll 16")
#endif

#endif
