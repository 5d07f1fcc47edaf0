// SPDX-License-Identifier: Apache-2.0
// 64 bytes with byte masks: what the 512-bit techniques share.
#ifndef WEFT_KERNELS_X86_VEC_AVX512_H
#define WEFT_KERNELS_X86_VEC_AVX512_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/x86/intrinsics.h"

#define VEC_BYTES 64
#define VEC_TERNARY
typedef __m512i vec;

static inline vec vec_zero(void) { return _mm512_setzero_si512(); }
static inline vec vec_load(const uint8_t *p) { return _mm512_loadu_si512(p); }
static inline void vec_store(uint8_t *p, vec v) { _mm512_storeu_si512(p, v); }
// Stores past the caches (non-temporal). Aligned; vec_fence() before other threads read.
static inline void vec_store_past(uint8_t *p, vec v) {
  _mm512_stream_si512((__m512i *)(void *)p, v);
}
static inline void vec_fence(void) { _mm_sfence(); }
static inline vec vec_xor(vec a, vec b) { return _mm512_xor_si512(a, b); }
static inline vec vec_xor3(vec a, vec b, vec c) { return _mm512_ternarylogic_epi64(a, b, c, 0x96); }

// Interleave the elements of the lower or upper halves of every 16 bytes of a and b.
static inline vec vec_lo8(vec a, vec b) { return _mm512_unpacklo_epi8(a, b); }
static inline vec vec_hi8(vec a, vec b) { return _mm512_unpackhi_epi8(a, b); }
static inline vec vec_lo16(vec a, vec b) { return _mm512_unpacklo_epi16(a, b); }
static inline vec vec_hi16(vec a, vec b) { return _mm512_unpackhi_epi16(a, b); }
static inline vec vec_lo32(vec a, vec b) { return _mm512_unpacklo_epi32(a, b); }
static inline vec vec_hi32(vec a, vec b) { return _mm512_unpackhi_epi32(a, b); }

// The tail is in the first n lanes; masked lanes are neither read nor written.
static inline __mmask64 vec_first(size_t n) { return ~UINT64_C(0) >> (VEC_BYTES - n); }
static inline vec vec_load_end(const uint8_t *row, size_t end, size_t n) {
  return _mm512_maskz_loadu_epi8(vec_first(n), row + end - n);
}
static inline vec vec_load_own_end(const uint8_t *row, size_t end, size_t n) {
  return vec_load_end(row, end, n);
}
static inline void vec_store_end(uint8_t *row, size_t end, size_t n, vec v) {
  _mm512_mask_storeu_epi8(row + end - n, vec_first(n), v);
}

#endif
