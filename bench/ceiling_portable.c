// SPDX-License-Identifier: Apache-2.0
// Ceilings in plain C: one table lookup per product, and reading memory in words.
#include <string.h>

#include "bench/ceiling_loops.h"
#include "kernels/gf256.h"

// The index comes from a register and the table is in the first-level cache. What remains is the
// lookup and the XOR that any log/exp technique needs for each product.
void weft_bench_loop_table(size_t iterations) {
  const uint8_t *table = weft_gf256_exp;
  uint64_t word = 0x0123456789abcdefu;
  unsigned sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
  for (size_t i = 0; i < iterations; i++)
    for (size_t step = 0; step < WEFT_BENCH_TABLE_PRODUCTS / 8; step++) {
      __asm__ volatile("" : "+r"(word), "+r"(table));
      sum0 ^= table[word & 255];
      sum1 ^= table[word >> 8 & 255];
      sum2 ^= table[word >> 16 & 255];
      sum3 ^= table[word >> 24 & 255];
      sum0 ^= table[word >> 32 & 255];
      sum1 ^= table[word >> 40 & 255];
      sum2 ^= table[word >> 48 & 255];
      sum3 ^= table[word >> 56];
    }
  __asm__ volatile("" : : "r"(sum0), "r"(sum1), "r"(sum2), "r"(sum3));
}

void weft_bench_read_portable(const uint8_t *data, size_t bytes) {
  uint64_t sum[8] = {0};
  size_t i = 0;
  for (; i + 64 <= bytes; i += 64) {
    uint64_t words[8];
    memcpy(words, data + i, 64);
    for (size_t w = 0; w < 8; w++)
      sum[w] ^= words[w];
  }
  for (; i < bytes; i++)
    sum[0] ^= data[i];
  for (size_t w = 0; w < 8; w++)
    __asm__ volatile("" : : "r"(sum[w]));
}

void weft_bench_write_portable(uint8_t *data, size_t bytes) {
  memset(data, 0, bytes);
  __asm__ volatile("" : : "r"(data) : "memory");
}

void weft_bench_change_portable(uint8_t *data, size_t bytes) {
  uint8_t v = 0;
  __asm__ volatile("" : "+r"(v));
  for (size_t i = 0; i < bytes; i++)
    data[i] ^= v;
}
