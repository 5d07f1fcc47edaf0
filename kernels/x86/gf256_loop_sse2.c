// SPDX-License-Identifier: Apache-2.0
// Row `loop-sse2`: the paper's SIMD loop-based multiplication, 16 bytes at once.
#include "kernels/gf256.h"
#include "kernels/host_kernels.h"
#include "kernels/x86/vec_sse2.h"
#include "kernels/xor_words.h"

// Lanes with the top bit set are negative: they take the polynomial after the shift.
static inline vec vec_double(vec x) {
  const vec carry = _mm_cmpgt_epi8(_mm_setzero_si128(), x);
  return vec_xor(_mm_add_epi8(x, x), _mm_and_si128(carry, _mm_set1_epi8(WEFT_GF256_POLY & 0xFF)));
}

#include "kernels/loop_tile.h"

const weft_host_kernel weft_host_loop_sse2 = {.panel = loop_panel, .xor_rows = weft_xor_words};
