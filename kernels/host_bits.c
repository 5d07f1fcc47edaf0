// SPDX-License-Identifier: Apache-2.0
// Bit matrices as host techniques take them.
#include <string.h>

#include "kernels/host_kernels.h"

enum { BITS = 8 };

static size_t blocks_of(size_t packets) { return (packets + BITS - 1) / BITS; }

size_t weft_bit_block_count(size_t m, size_t k) { return blocks_of(m) * blocks_of(k); }

// Byte i of a block is a row; its bits are columns, the first one uppermost.
void weft_bit_blocks(const uint8_t *bits, size_t stride, size_t m, size_t k, uint64_t *out) {
  const size_t across = blocks_of(m);
  memset(out, 0, blocks_of(k) * across * sizeof *out);
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < k; j++)
      out[j / BITS * across + i / BITS] |= (uint64_t)bits[i * stride + j]
                                           << (i % BITS * BITS + (BITS - 1 - j % BITS));
}
