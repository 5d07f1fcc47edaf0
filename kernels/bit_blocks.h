// SPDX-License-Identifier: Apache-2.0
// Packets times a bit matrix by blocks of 8 x 8 bits. A technique's file includes this through
// bit_blocks_affine.h or bit_blocks_nibbles.h.
//
// In Cauchy Reed-Solomon, bits that belong together are in different packets, whose bytes are far
// apart. Therefore eight packets at a time are turned (transposed), until the bits of a column are
// side by side. Products by blocks of arbitrary bits are then what these techniques do for
// coefficients of GF(2^8). The sums, whose rows are output packets, are turned back. It does not
// matter where a block's bits come from: if w is not 8, packets of several shards meet in one. The
// cost does not depend on how many bits are set, whereas XOR programs pay for each.
//
// Those files define, in addition to what tile.h asks for:
//   BITS_PARTS: number of vectors (parts) that eight packets' vectors are turned into
//   bits_turn(r, parts): turns r[0..8), a vector of each packet, into parts; overwrites r
//   bits_turn_back(sums): turns the vectors of 8 output packets back, in place
//   BITS_TILE: output blocks that are summed at once, 8 vectors each
//   bits_sum(panel, first, blocks, x, sums): sums for `blocks` output blocks from block `first` on;
//     x holds the parts of all inputs, WEFT_BIT_SCRATCH bytes for eight packets
//   BITS_ROOM: bytes of the parts of all inputs at once, if more than one vector of each is taken
//   BITS_FEW: maximum number of output blocks whose sums fit the registers together with the parts
//     of eight inputs; if not 0, also bits_add(near, blocks, parts, begin, sums): multiplies the
//     parts by the blocks at `near` and adds the products to sums, or begins them
#ifndef WEFT_KERNELS_BIT_BLOCKS_H
#define WEFT_KERNELS_BIT_BLOCKS_H

#include "kernels/backend.h"
#include "kernels/unroll.h"
#include "kernels/zigzag.h"

enum {
  BITS_COLUMNS = 4,     // vectors of a packet read one after the other, where the scratch allows
  BITS_AHEAD = 8 << 10, // bytes of all inputs to prefetch: a part of the first-level cache
  BITS_LINE = 64        // stores past the caches that fill less than this do not pay
};

// Where a vector of every packet is: `at` bytes after the packet of group 0; or, if part is not 0,
// the last `part` bytes before `end`. What is read some vectors later is at `ahead`, which is byte
// `column` of its packet.
typedef struct bits_place {
  size_t at, end, part;
  size_t ahead, column;
  bool past; // outputs are stored past the caches
} bits_place;

WEFT_INLINE size_t bits_blocks(size_t packets) { return (packets + BITS - 1) / BITS; }

// Advances to the next vector of every packet, and of what to prefetch: after a packet's last
// vector comes the first one of the next group's, beyond what belongs to other packets.
WEFT_INLINE void bits_next(const weft_bit_panel *p, bits_place *place) {
  place->at += VEC_BYTES;
  place->ahead += VEC_BYTES;
  place->column += VEC_BYTES;
  if (place->column >= p->end) {
    place->ahead += p->gap + p->end - place->column;
    place->column = p->begin;
  }
}

// Reads eight input packets at one place and turns them.
WEFT_INLINE void bits_read(const uint8_t *const *x, const bits_place place, bool far, vec *parts) {
  vec r[BITS];
  if (far)
    WEFT_UNROLL for (size_t i = 0; i < BITS; i++) __builtin_prefetch(x[i] + place.ahead);
  WEFT_UNROLL for (size_t i = 0; i < BITS; i++) r[i] =
      place.part ? vec_load_end(x[i], place.end, place.part) : vec_load(x[i] + place.at);
  bits_turn(r, parts);
}

// Writes output packets at one place from their sums: `blocks` blocks of 8 from block `first` on,
// of the last of which only `left` packets exist.
WEFT_INLINE void bits_write(const weft_bit_panel *p, size_t first, const size_t blocks, size_t left,
                            bits_place place, vec *sums) {
  WEFT_UNROLL for (size_t b = 0; b < blocks; b++) {
    uint8_t *const *const y = p->y + (first + b) * BITS;
    vec *const r = sums + b * BITS;
    bits_turn_back(r);
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

#if BITS_FEW
// Computes all output packets if registers hold their sums: no scratch.
WEFT_INLINE void bits_few(const weft_bit_panel *p, const size_t blocks, const bits_place place) {
  const size_t count = bits_blocks(p->k);
  vec parts[BITS_PARTS], sums[BITS_FEW * BITS];
  bits_read(p->x, place, p->far, parts);
  bits_add(p->blocks, blocks, parts, true, sums);
  for (size_t at = 1; at < count; at++) {
    const size_t j = weft_zigzag(at, count);
    bits_read(p->x + j * BITS, place, p->far, parts);
    bits_add(p->blocks + j * blocks, blocks, parts, false, sums);
  }
  bits_write(p, 0, blocks, p->m - (blocks - 1) * BITS, place, sums);
}

#endif

// Computes `blocks` blocks of output packets, of the last of which `left` exist; x holds all
// inputs.
WEFT_INLINE void bits_tile(const weft_bit_panel *p, size_t first, const size_t blocks, size_t left,
                           const bits_place place, const uint8_t *x) {
  vec sums[BITS_TILE * BITS];
  bits_sum(p, first, blocks, x, sums);
  bits_write(p, first, blocks, left, place, sums);
}

// Computes all output packets through the scratch, `columns` vectors of each. Packets that are a
// power of two apart share few sets of the caches, so what is loaded along with one vector is
// better used soon.
WEFT_INLINE void bits_many(const weft_bit_panel *p, const bits_place place, size_t columns) {
  const size_t blocks = bits_blocks(p->m), left = p->m - (blocks - 1) * BITS;
  const size_t each = bits_blocks(p->k) * WEFT_BIT_SCRATCH;
  uint8_t *x = p->scratch;
  for (size_t j = 0; j < p->k; j += BITS, x += WEFT_BIT_SCRATCH) {
    bits_place now = place;
    for (size_t c = 0; c < columns; c++, bits_next(p, &now)) {
      vec parts[BITS_PARTS];
      bits_read(p->x + j, now, p->far, parts);
      WEFT_UNROLL for (size_t i = 0; i < BITS_PARTS; i++)
          vec_store(x + c * each + i * VEC_BYTES, parts[i]);
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

// Computes some vectors of every packet, or a part of one.
WEFT_INLINE void bits_at(const weft_bit_panel *p, const bits_place place, size_t columns) {
#if BITS_FEW
  const size_t blocks = bits_blocks(p->m);
  if (blocks == 1)
    bits_few(p, 1, place);
  else if (blocks <= BITS_FEW)
    bits_few(p, BITS_FEW, place);
  else
#endif
    bits_many(p, place, columns);
}

__attribute__((noinline)) static void bits_part(const weft_bit_panel *p, const bits_place place) {
  bits_at(p, place, 1);
}

// Returns whether outputs are stored past the caches: if they are far, aligned and few, since many
// make loads wait.
static bool bits_past(const weft_bit_panel *p) {
  bool past = p->far && VEC_BYTES == BITS_LINE && p->m <= BITS_FEW * BITS;
  for (size_t i = 0; i < p->m && past; i++)
    past = (((uintptr_t)p->y[i] + p->begin) | p->group_bytes) % VEC_BYTES == 0;
  return past;
}

// Returns where to begin, with `columns` vectors of every packet at a time. What is prefetched
// comes after those and BITS_AHEAD more.
static bits_place bits_first(const weft_bit_panel *p, size_t columns) {
  bits_place place = {.ahead = p->begin, .column = p->begin, .past = bits_past(p)};
  const size_t there = (p->end - p->begin) / VEC_BYTES;
  const size_t lead = (there < columns ? there : columns) + BITS_AHEAD / VEC_BYTES / p->k;
  for (size_t i = 0; i < lead; i++)
    bits_next(p, &place);
  return place;
}

// Returns how many vectors of every packet to take at a time; whole lines if there is room for
// them.
static size_t bits_columns(const weft_bit_panel *p) {
  const size_t each = bits_blocks(p->k) * WEFT_BIT_SCRATCH;
  const size_t room = p->scratch_bytes < BITS_ROOM ? p->scratch_bytes : BITS_ROOM;
  const size_t fit = room / each, line = BITS_LINE / VEC_BYTES;
  if (p->m <= BITS_FEW * BITS || fit <= 1)
    return 1;
  if (fit >= BITS_COLUMNS)
    return BITS_COLUMNS;
  return fit < line ? fit : fit / line * line;
}

static void bits_panel(const weft_bit_panel *panel) {
  const weft_bit_panel own = *panel, *const p = &own; // a copy that no store can alias
  const size_t part = (p->end - p->begin) % VEC_BYTES, whole = p->end - part;
  const size_t most = bits_columns(p);
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
