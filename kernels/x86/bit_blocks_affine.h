// SPDX-License-Identifier: Apache-2.0
// Blocks of bits by GF2P8AFFINEQB, which multiplies 8 x 8 bits by 8 x 8 bits in every qword. A
// technique's file includes this after its vectors.
//
// Eight packets are interleaved, byte by byte, until each qword holds a byte of each (bits_zip).
// Each qword is then transposed, since the instruction takes one factor by columns. Sums are
// separated again.
//
// The including file defines, in addition to what tile.h asks for:
//   vec_lo8, vec_hi8, vec_lo16, vec_hi16, vec_lo32, vec_hi32: interleave the elements of the lower
//     or upper halves of two vectors, in parts of 16 bytes
//   bits_of(blocks, vec): in every qword the product of the 8 x 8 bits in both
//   con_of(uint64_t): a vector of one repeated qword
//   BITS_TILE: number of output blocks whose sums fit the registers, 8 vectors each
#ifndef WEFT_KERNELS_X86_BIT_BLOCKS_AFFINE_H
#define WEFT_KERNELS_X86_BIT_BLOCKS_AFFINE_H

#include "kernels/backend.h"
#include "kernels/unroll.h"

#define BITS_FEW BITS_TILE
enum {
  BITS = 8, // rows and columns of a block
  BITS_PARTS = BITS,
  BITS_ROOM = 32 << 10
};

// Byte c of the packets r[0..8) becomes the qword of column c. Of every 16 columns, column
// 8 * b3 + 4 * b2 + 2 * b1 + b0 ends up in r[4 * b3 + 2 * b2 + b1], qword b0.
WEFT_INLINE void bits_zip(vec *r) {
  vec a[BITS], b[BITS];
  WEFT_UNROLL for (size_t i = 0; i < 4; i++) {
    a[2 * i] = vec_lo8(r[2 * i], r[2 * i + 1]);
    a[2 * i + 1] = vec_hi8(r[2 * i], r[2 * i + 1]);
  }
  WEFT_UNROLL for (size_t i = 0; i < 4; i++) {
    const size_t from = i / 2 * 4 + i % 2;
    b[2 * i] = vec_lo16(a[from], a[from + 2]);
    b[2 * i + 1] = vec_hi16(a[from], a[from + 2]);
  }
  WEFT_UNROLL for (size_t i = 0; i < 4; i++) {
    r[2 * i] = vec_lo32(b[i], b[i + 4]);
    r[2 * i + 1] = vec_hi32(b[i], b[i + 4]);
  }
}

// The inverse of bits_zip. Each step moves one bit of the column's number from the vector's number
// to the byte's.
WEFT_INLINE void bits_turn_back(vec *r) {
  vec a[BITS];
  WEFT_UNROLL for (size_t step = 0; step < 4; step++) {
    WEFT_UNROLL for (size_t i = 0; i < 4; i++) {
      a[2 * i] = vec_lo8(r[i], r[i + 4]);
      a[2 * i + 1] = vec_hi8(r[i], r[i + 4]);
    }
    WEFT_UNROLL for (size_t i = 0; i < BITS; i++) r[i] = a[i];
  }
}

WEFT_INLINE void bits_turn(vec *r, vec *parts) {
  const con turn = con_of(UINT64_C(0x0102040810204080)); // bit i of byte j: bit 7 - j of byte 7 - i
  bits_zip(r);
  WEFT_UNROLL for (size_t i = 0; i < BITS; i++) parts[i] = bits_of(turn, r[i]);
}

// Multiplies one input block's vectors by the blocks at `near`; the products are added to sums or
// begin them.
WEFT_INLINE void bits_add(const uint64_t *near, const size_t blocks, const vec *r, const bool begin,
                          vec *sums) {
  WEFT_UNROLL for (size_t b = 0; b < blocks; b++) {
    const con c = con_of(near[b]);
    WEFT_UNROLL for (size_t i = 0; i < BITS; i++) {
      const vec v = bits_of(c, r[i]);
      sums[b * BITS + i] = begin ? v : vec_xor(sums[b * BITS + i], v);
    }
  }
}

WEFT_INLINE void bits_sum(const weft_bit_panel *p, size_t first, const size_t blocks,
                          const uint8_t *x, vec *sums) {
  const size_t stride = (p->m + BITS - 1) / BITS, count = (p->k + BITS - 1) / BITS;
  const uint64_t *near = p->blocks + first;
  WEFT_UNROLL for (size_t i = 0; i < blocks * BITS; i++) sums[i] = vec_zero();
  size_t j = 0;
#ifdef VEC_TERNARY
  for (; j + 2 <= count; j += 2, near += 2 * stride, x += 2 * WEFT_BIT_SCRATCH) {
    WEFT_UNROLL for (size_t b = 0; b < blocks; b++) {
      const con c = con_of(near[b]), d = con_of(near[stride + b]);
      WEFT_UNROLL for (size_t i = 0; i < BITS; i++) sums[b * BITS + i] =
          vec_xor3(sums[b * BITS + i], bits_of(c, vec_load(x + i * VEC_BYTES)),
                   bits_of(d, vec_load(x + WEFT_BIT_SCRATCH + i * VEC_BYTES)));
    }
  }
#endif
  for (; j < count; j++, near += stride, x += WEFT_BIT_SCRATCH) {
    vec r[BITS];
    WEFT_UNROLL for (size_t i = 0; i < BITS; i++) r[i] = vec_load(x + i * VEC_BYTES);
    bits_add(near, blocks, r, false, sums);
  }
}

#include "kernels/bit_blocks.h"

#endif
