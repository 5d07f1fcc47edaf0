// SPDX-License-Identifier: Apache-2.0
// Ceiling of the 256-bit nibble shuffle (two shuffles and two XORs per 32 products; the split into
// nibbles is left out, as it is shared by all rows that use a source), and 256-bit reads.
#include <immintrin.h>

#include "bench/ceiling_loops.h"

#define VEC __m256i
#define SET_BYTES _mm256_set1_epi8
#define SET_WORDS _mm256_set1_epi64x
#define LOOK_UP(table, n) _mm256_shuffle_epi8((table), (n))
#define ADD(sum, p) ((sum) = _mm256_xor_si256((sum), (p)))
#include "bench/x86/ceiling_shuffles.h"

void weft_bench_loop_avx2(size_t iterations) { shuffle_loop(iterations); }

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

void weft_bench_stream_avx2(uint8_t *data, size_t bytes) {
  const __m256i v = _mm256_setzero_si256();
  size_t i = -(uintptr_t)data % 32 < bytes ? -(uintptr_t)data % 32 : bytes;
  weft_bench_write_portable(data, i);
  for (; i + 32 <= bytes; i += 32)
    _mm256_stream_si256((void *)(data + i), v);
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
