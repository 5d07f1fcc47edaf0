// SPDX-License-Identifier: Apache-2.0
// Ceiling of the 256-bit nibble shuffle (two shuffles and two XORs per 32 products; the split into
// nibbles is left out, as it is shared by all rows that use a source), and 256-bit reads.
#include <immintrin.h>

#include "bench/ceiling_loops.h"

// On the sums too: it ends a step, so that the compiler does not form all products first and spill.
#define OPAQUE4(a, b, c, d) __asm__ volatile("" : "+x"(a), "+x"(b), "+x"(c), "+x"(d))
#define MULADD(sum, low, high, tl, th)                                                             \
  ((sum) = _mm256_xor_si256((sum), _mm256_xor_si256(_mm256_shuffle_epi8((tl), (low)),              \
                                                    _mm256_shuffle_epi8((th), (high)))))

void weft_bench_loop_avx2(size_t iterations) {
  __m256i l0 = _mm256_set1_epi8(3), h0 = _mm256_set1_epi8(5);
  __m256i l1 = _mm256_set1_epi8(9), h1 = _mm256_set1_epi8(7);
  __m256i a0 = _mm256_set1_epi64x(0x0102040810204081), b0 = _mm256_set1_epi64x(0x1122448811224488);
  __m256i a1 = _mm256_set1_epi64x(0x3162448c18224680), b1 = _mm256_set1_epi64x(0x5102440a19214083);
  __m256i s0 = l0, s1 = l1, s2 = h0, s3 = h1;
  OPAQUE4(a0, b0, a1, b1);
  for (size_t i = 0; i < iterations; i++)
    for (int step = 0; step < 4; step++) {
      OPAQUE4(l0, h0, l1, h1);
      MULADD(s0, l0, h0, a0, b0);
      MULADD(s1, l0, h0, a1, b1);
      MULADD(s2, l1, h1, a0, b0);
      MULADD(s3, l1, h1, a1, b1);
      OPAQUE4(s0, s1, s2, s3);
    }
  __asm__ volatile("" : : "x"(s0), "x"(s1), "x"(s2), "x"(s3));
}

void weft_bench_read_avx2(const uint8_t *data, size_t bytes) {
  __m256i s0 = _mm256_setzero_si256(), s1 = s0, s2 = s0, s3 = s0;
  size_t i = 0;
  for (; i + 128 <= bytes; i += 128) {
    s0 = _mm256_xor_si256(s0, _mm256_loadu_si256((const __m256i *)(const void *)(data + i)));
    s1 = _mm256_xor_si256(s1, _mm256_loadu_si256((const __m256i *)(const void *)(data + i + 32)));
    s2 = _mm256_xor_si256(s2, _mm256_loadu_si256((const __m256i *)(const void *)(data + i + 64)));
    s3 = _mm256_xor_si256(s3, _mm256_loadu_si256((const __m256i *)(const void *)(data + i + 96)));
  }
  __asm__ volatile("" : : "x"(s0), "x"(s1), "x"(s2), "x"(s3));
  weft_bench_read_portable(data + i, bytes - i);
}

void weft_bench_write_avx2(uint8_t *data, size_t bytes) {
  __m256i v = _mm256_setzero_si256();
  size_t i = 0;
  __asm__ volatile("" : "+x"(v)); // or the loop becomes a call of memset
  for (; i + 32 <= bytes; i += 32)
    _mm256_storeu_si256((__m256i *)(void *)(data + i), v);
  weft_bench_write_portable(data + i, bytes - i);
}

void weft_bench_change_avx2(uint8_t *data, size_t bytes) {
  __m256i v = _mm256_setzero_si256();
  size_t i = 0;
  __asm__ volatile("" : "+x"(v));
  for (; i + 32 <= bytes; i += 32)
    _mm256_storeu_si256(
        (__m256i *)(void *)(data + i),
        _mm256_xor_si256(v, _mm256_loadu_si256((const __m256i *)(const void *)(data + i))));
  weft_bench_change_portable(data + i, bytes - i);
}
