// SPDX-License-Identifier: Apache-2.0
// Row `loop-avx2`: the paper's SIMD loop-based multiplication, 32 bytes at once.
#include "kernels/gf256.h"
#include "kernels/host_kernels.h"
#include "kernels/x86/vec_avx2.h"
#include "kernels/xor_words.h"

// Lanes with the top bit set are negative: they take the polynomial after the shift.
static inline vec vec_double(vec x) {
  const vec carry = _mm256_cmpgt_epi8(_mm256_setzero_si256(), x);
  return vec_xor(_mm256_add_epi8(x, x),
                 _mm256_and_si256(carry, _mm256_set1_epi8(WEFT_GF256_POLY & 0xFF)));
}

#include "kernels/loop_tile.h"

const weft_host_kernel weft_host_loop_avx2 = {.panel = loop_panel, .xor_rows = weft_xor_words};
