// SPDX-License-Identifier: Apache-2.0
// Bit matrices in the forms that host techniques take.
#include <string.h>

#include "kernels/host_kernels.h"

enum { BITS = 8, HALF = BITS / 2, ENTRIES = 1 << HALF };

static size_t blocks_of(size_t packets) { return (packets + BITS - 1) / BITS; }

static size_t words_of(weft_bit_form form) {
  return form == WEFT_BIT_TABLES ? WEFT_BIT_TABLE_WORDS : 1;
}

size_t weft_bit_words(weft_bit_form form, size_t m, size_t k) {
  return blocks_of(m) * blocks_of(k) * words_of(form);
}

// Sets bit (i, j) of a block: row i of all entries whose number has the bit of column j.
static void add_to_tables(uint64_t *block, size_t i, size_t j) {
  uint8_t *const table = (uint8_t *)block + j / HALF * ENTRIES;
  for (size_t n = 0; n < ENTRIES; n++)
    table[n] ^= (uint8_t)((n >> j % HALF & 1) << i);
}

void weft_bit_blocks(weft_bit_form form, const uint8_t *bits, size_t stride, size_t m, size_t k,
                     uint64_t *out) {
  const size_t across = blocks_of(m);
  memset(out, 0, weft_bit_words(form, m, k) * sizeof *out);
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < k; j++) {
      uint64_t *const block = out + (j / BITS * across + i / BITS) * words_of(form);
      const uint64_t bit = bits[i * stride + j];
      if (form == WEFT_BIT_ROWS)
        *block |= bit << (i % BITS * BITS + (BITS - 1 - j % BITS));
      else if (bit)
        add_to_tables(block, i % BITS, j % BITS);
    }
}
