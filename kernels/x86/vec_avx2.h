// SPDX-License-Identifier: Apache-2.0
// 32 bytes: what the 256-bit techniques share.
#ifndef WEFT_KERNELS_X86_VEC_AVX2_H
#define WEFT_KERNELS_X86_VEC_AVX2_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/x86/intrinsics.h"

#define VEC_BYTES 32
typedef __m256i vec;

static inline vec vec_zero(void) { return _mm256_setzero_si256(); }
static inline vec vec_load(const uint8_t *p) { return _mm256_loadu_si256((const __m256i_u *)p); }
static inline void vec_store(uint8_t *p, vec v) { _mm256_storeu_si256((__m256i_u *)p, v); }
// Stores past the caches (non-temporal). Aligned; vec_fence() before other threads read.
static inline void vec_store_past(uint8_t *p, vec v) {
  _mm256_stream_si256((__m256i *)(void *)p, v);
}
static inline void vec_fence(void) { _mm_sfence(); }
static inline vec vec_xor(vec a, vec b) { return _mm256_xor_si256(a, b); }

// Interleave the elements of the lower or upper halves of every 16 bytes of a and b.
static inline vec vec_lo8(vec a, vec b) { return _mm256_unpacklo_epi8(a, b); }
static inline vec vec_hi8(vec a, vec b) { return _mm256_unpackhi_epi8(a, b); }
static inline vec vec_lo16(vec a, vec b) { return _mm256_unpacklo_epi16(a, b); }
static inline vec vec_hi16(vec a, vec b) { return _mm256_unpackhi_epi16(a, b); }
static inline vec vec_lo32(vec a, vec b) { return _mm256_unpacklo_epi32(a, b); }
static inline vec vec_hi32(vec a, vec b) { return _mm256_unpackhi_epi32(a, b); }

#include "kernels/tail_copy.h"

#endif
