// SPDX-License-Identifier: Apache-2.0
// Packets times a bit matrix by GF2P8AFFINEQB; a technique's file includes this after its vectors.
//
// The instruction multiplies 8 x 8 bits by 8 x 8 bits in every qword. Cauchy Reed-Solomon has bits
// that belong together in packets, the bytes of which lie far apart. So eight packets at a time are
// interleaved, byte by byte, until each qword holds a byte of each of the eight (bits_zip); then it
// is turned over, since the instruction wants columns of one factor. What is left is what these
// rows do for coefficients of GF(2^8), but with blocks of any bits; the sums, which have output
// packets for rows, are taken apart again (bits_unzip). Where a block's bits come from does not
// matter: packets of several shards meet in one where w is not 8. Its cost does not depend on how
// many bits are set, which XOR programs pay for one by one.
//
// The including file defines, besides what tile.h says:
//   vec_lo8, vec_hi8, vec_lo16, vec_hi16, vec_lo32, vec_hi32: interleave the elements of the lower
//     or upper halves of two vectors, in parts of 16 bytes
//   bits_of(blocks, vec): in every qword the product of the 8 x 8 bits in both
//   con_of(uint64_t): a qword in every qword
//   BITS_TILE: output blocks whose sums fit the registers, 8 vectors each
#ifndef WEFT_KERNELS_X86_BIT_BLOCKS_H
#define WEFT_KERNELS_X86_BIT_BLOCKS_H

#include "kernels/backend.h"
#include "kernels/unroll.h"
#include "kernels/zigzag.h"

enum {
  BITS = 8,             // rows and columns of a block
  BITS_COLUMNS = 4,     // vectors of a packet read one after the other, where the scratch allows
  BITS_AHEAD = 8 << 10, // bytes of all inputs to fetch ahead: a part of the first-level cache
  BITS_LINE = 64        // where stores past the caches fill less, they are not worth it
};

// Where a vector of every packet lies: `at` bytes after the packet of group 0; or, when part is not
// 0, it is the last `part` bytes before `end`. What is read some vectors later lies at `ahead`,
// which is byte `column` of its packet.
typedef struct bits_place {
  size_t at, end, part;
  size_t ahead, column;
  bool past; // outputs are stored past the caches
} bits_place;

WEFT_INLINE size_t bits_blocks(size_t packets) { return (packets + BITS - 1) / BITS; }

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

// The way back. Each step brings one bit of the column from the vector's number to the byte's.
WEFT_INLINE void bits_unzip(vec *r) {
  vec a[BITS];
  WEFT_UNROLL for (size_t step = 0; step < 4; step++) {
    WEFT_UNROLL for (size_t i = 0; i < 4; i++) {
      a[2 * i] = vec_lo8(r[i], r[i + 4]);
      a[2 * i + 1] = vec_hi8(r[i], r[i + 4]);
    }
    WEFT_UNROLL for (size_t i = 0; i < BITS; i++) r[i] = a[i];
  }
}

// The next vector of every packet, and the one to fetch: after a packet's last comes its first of
// the next group, beyond what belongs to other packets.
WEFT_INLINE void bits_next(const weft_bit_panel *p, bits_place *place) {
  place->at += VEC_BYTES;
  place->ahead += VEC_BYTES;
  place->column += VEC_BYTES;
  if (place->column >= p->end) {
    place->ahead += p->gap + p->end - place->column;
    place->column = p->begin;
  }
}

// Eight input packets at one place, as columns of bits.
WEFT_INLINE void bits_read(const uint8_t *const *x, const bits_place place, bool far, vec *r) {
  const con turn = con_of(UINT64_C(0x0102040810204080)); // bit i of byte j: bit 7 - j of byte 7 - i
  if (far)
    WEFT_UNROLL for (size_t i = 0; i < BITS; i++) __builtin_prefetch(x[i] + place.ahead);
  WEFT_UNROLL for (size_t i = 0; i < BITS; i++) r[i] =
      place.part ? vec_load_end(x[i], place.end, place.part) : vec_load(x[i] + place.at);
  bits_zip(r);
  WEFT_UNROLL for (size_t i = 0; i < BITS; i++) r[i] = bits_of(turn, r[i]);
}

// Output packets at one place from their sums: `blocks` blocks of 8 from block `first` on, of the
// last of which only `left` packets are there.
WEFT_INLINE void bits_write(const weft_bit_panel *p, size_t first, const size_t blocks, size_t left,
                            bits_place place, vec *sums) {
  WEFT_UNROLL for (size_t b = 0; b < blocks; b++) {
    uint8_t *const *const y = p->y + (first + b) * BITS;
    vec *const r = sums + b * BITS;
    bits_unzip(r);
    WEFT_UNROLL for (size_t i = 0; i < BITS; i++) {
      if (b + 1 == blocks && i >= left)
        break;
      if (place.part)
        vec_store_end(y[i], place.end, place.part, r[i]);
      else if (place.past)
        vec_store_past(y[i] + place.at, r[i]);
      else
        vec_store(y[i] + place.at, r[i]);
    }
  }
}

// The products of one input's vectors and the blocks of `near`, added to sums unless they begin
// them.
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

// All output packets where registers hold their sums: no scratch.
WEFT_INLINE void bits_few(const weft_bit_panel *p, const size_t blocks, const bits_place place) {
  const size_t count = bits_blocks(p->k);
  vec r[BITS], sums[BITS_TILE * BITS];
  bits_read(p->x, place, p->far, r);
  bits_add(p->blocks, blocks, r, true, sums);
  for (size_t at = 1; at < count; at++) {
    const size_t j = weft_zigzag(at, count);
    bits_read(p->x + j * BITS, place, p->far, r);
    bits_add(p->blocks + j * blocks, blocks, r, false, sums);
  }
  bits_write(p, 0, blocks, p->m - (blocks - 1) * BITS, place, sums);
}

// `blocks` blocks of output packets, of the last of which `left` are there, where x holds all
// inputs.
WEFT_INLINE void bits_tile(const weft_bit_panel *p, size_t first, const size_t blocks, size_t left,
                           const bits_place place, const uint8_t *x) {
  const size_t stride = bits_blocks(p->m), count = bits_blocks(p->k);
  const uint64_t *near = p->blocks + first;
  vec sums[BITS_TILE * BITS];
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
  bits_write(p, first, blocks, left, place, sums);
}

// All output packets by way of the scratch, `columns` vectors of each. Packets that lie a power of
// two apart share few sets of the caches, so what comes along with one vector is better used soon.
WEFT_INLINE void bits_many(const weft_bit_panel *p, const bits_place place, size_t columns) {
  const size_t blocks = bits_blocks(p->m), left = p->m - (blocks - 1) * BITS;
  const size_t each = bits_blocks(p->k) * WEFT_BIT_SCRATCH;
  uint8_t *x = p->scratch;
  for (size_t j = 0; j < p->k; j += BITS, x += WEFT_BIT_SCRATCH) {
    bits_place now = place;
    for (size_t c = 0; c < columns; c++, bits_next(p, &now)) {
      vec r[BITS];
      bits_read(p->x + j, now, p->far, r);
      WEFT_UNROLL for (size_t i = 0; i < BITS; i++) vec_store(x + c * each + i * VEC_BYTES, r[i]);
    }
  }
  for (size_t b = 0; b < blocks; b += BITS_TILE) {
    bits_place now = place;
    for (size_t c = 0; c < columns; c++, now.at += VEC_BYTES) {
      if (b + BITS_TILE <= blocks)
        bits_tile(p, b, BITS_TILE, b + BITS_TILE < blocks ? BITS : left, now,
                  p->scratch + c * each);
      else
        bits_tile(p, b, 1, left, now, p->scratch + c * each);
    }
  }
}

// Some vectors of every packet, or a part of one.
WEFT_INLINE void bits_at(const weft_bit_panel *p, const bits_place place, size_t columns) {
  const size_t blocks = bits_blocks(p->m);
  if (blocks == 1)
    bits_few(p, 1, place);
  else if (blocks <= BITS_TILE)
    bits_few(p, BITS_TILE, place);
  else
    bits_many(p, place, columns);
}

__attribute__((noinline)) static void bits_part(const weft_bit_panel *p, const bits_place place) {
  bits_at(p, place, 1);
}

// Whether outputs go past the caches: of those that are far and few, since many keep loads waiting,
// and aligned.
static bool bits_past(const weft_bit_panel *p) {
  bool past = p->far && VEC_BYTES == BITS_LINE && p->m <= BITS_TILE * BITS;
  for (size_t i = 0; i < p->m && past; i++)
    past = (((uintptr_t)p->y[i] + p->begin) | p->group_bytes) % VEC_BYTES == 0;
  return past;
}

// Where to begin, `columns` vectors of every packet at a time. Fetched is what comes after those
// and BITS_AHEAD more.
static bits_place bits_first(const weft_bit_panel *p, size_t columns) {
  bits_place place = {.ahead = p->begin, .column = p->begin, .past = bits_past(p)};
  const size_t there = (p->end - p->begin) / VEC_BYTES;
  const size_t lead = (there < columns ? there : columns) + BITS_AHEAD / VEC_BYTES / p->k;
  for (size_t i = 0; i < lead; i++)
    bits_next(p, &place);
  return place;
}

static void bits_panel(const weft_bit_panel *panel) {
  const weft_bit_panel own = *panel, *const p = &own; // which no store can alter
  const size_t part = (p->end - p->begin) % VEC_BYTES, whole = p->end - part;
  const size_t fit = p->scratch_bytes / (bits_blocks(p->k) * WEFT_BIT_SCRATCH);
  const size_t most = p->m <= BITS_TILE * BITS ? 1 : fit < BITS_COLUMNS ? fit : BITS_COLUMNS;
  bits_place now = bits_first(p, most);
  for (size_t g = 0; g < p->groups; g++) {
    now.at = g * p->group_bytes + p->begin;
    for (size_t column = p->begin, n; column < whole; column += n * VEC_BYTES) {
      const size_t there = (whole - column) / VEC_BYTES;
      n = there < most ? there : most;
      bits_at(p, now, n);
      for (size_t i = 0; i < n; i++)
        bits_next(p, &now);
    }
    if (part) {
      const size_t end = g * p->group_bytes + p->end;
      bits_part(panel,
                (bits_place){.at = end - part, .end = end, .part = part, .ahead = now.ahead});
      bits_next(p, &now);
    }
  }
  if (now.past)
    vec_fence();
}

#endif
