// SPDX-License-Identifier: Apache-2.0
// 16 bytes: what the 128-bit techniques share.
#ifndef WEFT_KERNELS_X86_VEC_SSE2_H
#define WEFT_KERNELS_X86_VEC_SSE2_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/x86/intrinsics.h"

#define VEC_BYTES 16
typedef __m128i vec;

static inline vec vec_zero(void) { return _mm_setzero_si128(); }
static inline vec vec_load(const uint8_t *p) { return _mm_loadu_si128((const __m128i_u *)p); }
static inline void vec_store(uint8_t *p, vec v) { _mm_storeu_si128((__m128i_u *)p, v); }
// Stores past the caches (non-temporal). Aligned; vec_fence() before other threads read.
static inline void vec_store_past(uint8_t *p, vec v) { _mm_stream_si128((__m128i *)(void *)p, v); }
static inline void vec_fence(void) { _mm_sfence(); }
static inline vec vec_xor(vec a, vec b) { return _mm_xor_si128(a, b); }

#include "kernels/tail_copy.h"

#endif
