// SPDX-License-Identifier: Apache-2.0
// Blocks of bits by tables of 16 entries, for techniques that look up nibbles.
//
// Four packets' vectors are turned by two rounds, which swap every other bit and every other pair,
// so that a nibble holds the bits of one column; the nibble of the other four packets is at the
// same place in another vector. A block then has the form of a coefficient of GF(2^8): a table for
// either nibble. A sum's bytes are columns; a third round turns eight of them into packets.
//
// The including file defines, in addition to what tile.h asks for:
//   vec_and, vec_up(v, n), vec_down(v, n): shift bits by n places, within bytes or further
//   src_make(vec): .low and .high, the nibbles of every byte
//   con_load(const uint8_t *): .low and .high, tables of 16 bytes one after the other
//   lookup(table, nibbles)
//   vec_kept(vec): the same vector, forced into a register
//   vec_of(uint8_t): a vector of one repeated byte
#ifndef WEFT_KERNELS_BIT_BLOCKS_NIBBLES_H
#define WEFT_KERNELS_BIT_BLOCKS_NIBBLES_H

#include "kernels/backend.h"
#include "kernels/unroll.h"

#define BITS_TILE 1
#define BITS_FEW 0
enum {
  BITS = 8, // rows and columns of a block
  BITS_HALF = BITS / 2,
  BITS_PARTS = 2 * BITS,
  BITS_ROOM = 20 << 10 // of a first-level cache of 32 KiB, as measured
};

// In every 2 n bits of a and b, swaps the upper n of a with the lower n of b; `lower` is a mask of
// the lower ones.
WEFT_INLINE void bits_swap(vec *a, vec *b, const int n, const vec lower) {
  const vec t = vec_and(vec_xor(vec_down(*a, n), *b), lower);
  *b = vec_xor(*b, t);
  *a = vec_xor(*a, vec_up(t, n));
}

// Two rounds: bit c of r[i] becomes bit i of r[c % 4], in the lower nibble where c is below 4.
WEFT_INLINE void bits_turn_half(vec *r) {
  const vec m1 = vec_of(0x55), m2 = vec_of(0x33);
  bits_swap(&r[0], &r[1], 1, m1);
  bits_swap(&r[2], &r[3], 1, m1);
  bits_swap(&r[0], &r[2], 2, m2);
  bits_swap(&r[1], &r[3], 2, m2);
}

// Parts 2 c and 2 c + 1 are column c of the first and of the second four packets.
WEFT_INLINE void bits_turn(vec *r, vec *parts) {
  WEFT_UNROLL for (size_t half = 0; half < 2; half++) {
    bits_turn_half(r + half * BITS_HALF);
    WEFT_UNROLL for (size_t c = 0; c < BITS_HALF; c++) {
      const src s = src_make(r[half * BITS_HALF + c]);
      parts[2 * c + half] = s.low;
      parts[2 * (c + BITS_HALF) + half] = s.high;
    }
  }
}

WEFT_INLINE void bits_turn_back(vec *r) {
  const vec m4 = vec_of(0x0f);
  bits_turn_half(r);
  bits_turn_half(r + BITS_HALF);
  WEFT_UNROLL for (size_t i = 0; i < BITS_HALF; i++) bits_swap(&r[i], &r[i + BITS_HALF], 4, m4);
}

WEFT_INLINE void bits_sum(const weft_bit_panel *p, size_t first, const size_t blocks,
                          const uint8_t *x, vec *sums) {
  (void)blocks; // one
  const size_t stride = (p->m + BITS - 1) / BITS, count = (p->k + BITS - 1) / BITS;
  const uint64_t *near = p->blocks + first * WEFT_BIT_TABLE_WORDS;
  WEFT_UNROLL for (size_t i = 0; i < BITS; i++) sums[i] = vec_zero();
  for (size_t j = 0; j < count; j++, near += stride * WEFT_BIT_TABLE_WORDS, x += WEFT_BIT_SCRATCH) {
    const con c = con_load((const uint8_t *)near);
    WEFT_UNROLL for (size_t i = 0; i < BITS; i++) {
      const vec low = lookup(c.low, vec_load(x + 2 * i * VEC_BYTES));
      const vec high = lookup(c.high, vec_load(x + (2 * i + 1) * VEC_BYTES));
      sums[i] = vec_kept(vec_xor(sums[i], low)); // otherwise a sum is spilled in every step
      sums[i] = vec_kept(vec_xor(sums[i], high));
    }
  }
}

#include "kernels/bit_blocks.h"

#endif
