// SPDX-License-Identifier: Apache-2.0
// Sums packets of one shard into those of others, for updates and encoding source by source. A
// technique's file includes this after tile.h.
//
// An output packet is the sum of at most eight others. There is a loop for each number of them,
// which keeps their addresses in registers and covers a piece of the source that stays in the
// first-level cache for all outputs. If packets are short, a run of vectors spans several groups.
// Outputs are taken in memory order: sorted by how many packets they sum, they were slower
// (docs/performance/crs-updates.md).
#ifndef WEFT_KERNELS_PACKET_SPREAD_H
#define WEFT_KERNELS_PACKET_SPREAD_H

#include <string.h>

#include "kernels/backend.h"
#include "kernels/unroll.h"

enum {
  SPREAD_PACKETS = 8,      // maximum number in a group
  SPREAD_RUN = 4,          // vectors that are worked on at once
  SPREAD_NEAR = 2048,      // bytes of each packet of the source for all outputs, as measured
  SPREAD_NEAR_SHORT = 1024 // likewise, of packets that are shorter than a run
};

// A part of every packet, in some groups.
typedef struct spread_piece {
  size_t group, groups_end; // bytes after the first group
  size_t begin, end;        // of every packet
} spread_piece;

// Computes `vecs` vectors of an output packet, `step` bytes apart, from its n sources.
WEFT_INLINE void spread_add(uint8_t *y, const uint8_t *const *x, const size_t n, const size_t vecs,
                            size_t at, const size_t step, const bool accumulate) {
  vec sum[SPREAD_RUN];
  WEFT_UNROLL for (size_t v = 0; v < vecs; v++) sum[v] =
      accumulate ? vec_load(y + at + v * step) : vec_zero();
  size_t j = 0;
#ifdef VEC_TERNARY
  WEFT_UNROLL for (; j + 2 <= n; j += 2) {
    WEFT_UNROLL for (size_t v = 0; v < vecs; v++) sum[v] =
        vec_xor3(sum[v], vec_load(x[j] + at + v * step), vec_load(x[j + 1] + at + v * step));
  }
#endif
  WEFT_UNROLL for (; j < n; j++) {
    WEFT_UNROLL for (size_t v = 0; v < vecs; v++) sum[v] =
        vec_xor(sum[v], vec_load(x[j] + at + v * step));
  }
  WEFT_UNROLL for (size_t v = 0; v < vecs; v++) vec_store(y + at + v * step, sum[v]);
}

// Computes the last `part` bytes before `end`, fewer than a vector.
WEFT_INLINE void spread_add_end(uint8_t *y, const uint8_t *const *x, const size_t n, size_t end,
                                size_t part, const bool accumulate) {
  vec sum = accumulate ? vec_load_own_end(y, end, part) : vec_zero();
  WEFT_UNROLL for (size_t j = 0; j < n; j++) sum = vec_xor(sum, vec_load_end(x[j], end, part));
  vec_store_end(y, end, part, sum);
}

// Computes eight bytes at once, which is a whole packet of G-CRS.
WEFT_INLINE void spread_add_word(uint8_t *y, const uint8_t *const *x, const size_t n, size_t at,
                                 const bool accumulate) {
  uint64_t sum = 0, word;
  if (accumulate)
    memcpy(&sum, y + at, sizeof sum);
  WEFT_UNROLL for (size_t j = 0; j < n; j++) {
    memcpy(&word, x[j] + at, sizeof word);
    sum ^= word;
  }
  memcpy(y + at, &sum, sizeof sum);
}

// Computes a piece of one output packet from n of the input packets.
WEFT_INLINE void spread_row(const weft_packet_spread *p, uint8_t *y, unsigned sources,
                            const size_t n, const spread_piece *piece, const bool accumulate) {
  const size_t group = p->w * p->packet_bytes, first = piece->group, last = piece->groups_end;
  const size_t part = (piece->end - piece->begin) % VEC_BYTES, whole = piece->end - part;
  const uint8_t *x[SPREAD_PACKETS];
  WEFT_UNROLL for (size_t j = 0; j < n; j++, sources &= sources - 1) x[j] =
      p->x + (size_t)__builtin_ctz(sources) * p->packet_bytes;
  if (whole - piece->begin >= SPREAD_RUN * VEC_BYTES)
    for (size_t g = first; g < last; g += group) {
      size_t at = g + piece->begin;
      for (; g + whole - at >= SPREAD_RUN * VEC_BYTES; at += SPREAD_RUN * VEC_BYTES)
        spread_add(y, x, n, SPREAD_RUN, at, VEC_BYTES, accumulate);
      for (; at < g + whole; at += VEC_BYTES)
        spread_add(y, x, n, 1, at, VEC_BYTES, accumulate);
    }
  else
    for (size_t column = piece->begin; column < whole; column += VEC_BYTES) {
      size_t at = first + column;
      for (; last + column - at >= SPREAD_RUN * group; at += SPREAD_RUN * group)
        spread_add(y, x, n, SPREAD_RUN, at, group, accumulate);
      for (; at < last + column; at += group)
        spread_add(y, x, n, 1, at, group, accumulate);
    }
  if (part == sizeof(uint64_t))
    for (size_t g = first; g < last; g += group)
      spread_add_word(y, x, n, g + whole, accumulate);
  else if (part)
    for (size_t g = first; g < last; g += group)
      spread_add_end(y, x, n, g + piece->end, part, accumulate);
}

// Computes a piece of any output packet.
WEFT_INLINE void spread_any(const weft_packet_spread *p, uint8_t *y, unsigned sources,
                            const spread_piece *piece, const bool accumulate) {
  switch (__builtin_popcount(sources)) {
  case 0:
    if (!accumulate)
      spread_row(p, y, sources, 0, piece, false);
    break;
  case 1:
    spread_row(p, y, sources, 1, piece, accumulate);
    break;
  case 2:
    spread_row(p, y, sources, 2, piece, accumulate);
    break;
  case 3:
    spread_row(p, y, sources, 3, piece, accumulate);
    break;
  case 4:
    spread_row(p, y, sources, 4, piece, accumulate);
    break;
  case 5:
    spread_row(p, y, sources, 5, piece, accumulate);
    break;
  case 6:
    spread_row(p, y, sources, 6, piece, accumulate);
    break;
  case 7:
    spread_row(p, y, sources, 7, piece, accumulate);
    break;
  default:
    spread_row(p, y, sources, 8, piece, accumulate);
  }
}

WEFT_INLINE void spread_all(const weft_packet_spread *p, const bool accumulate) {
  const size_t bytes = p->end - p->begin, group = p->w * p->packet_bytes;
  const size_t columns = bytes < SPREAD_RUN * VEC_BYTES ? SPREAD_NEAR_SHORT : SPREAD_NEAR;
  const size_t groups = columns / bytes ? columns / bytes : 1;
  for (size_t g = 0; g < p->groups; g += groups)
    for (size_t column = p->begin; column < p->end; column += columns) {
      const size_t last = p->groups - g < groups ? p->groups : g + groups;
      const spread_piece piece = {g * group, last * group, column,
                                  p->end - column < columns ? p->end : column + columns};
      for (size_t i = 0; i < p->m; i++)
        for (size_t l = 0; l < p->w; l++)
          spread_any(p, p->y[i] + l * p->packet_bytes, p->sources[i * p->w + l], &piece,
                     accumulate);
    }
}

static void spread_packets(const weft_packet_spread *spread) {
  const weft_packet_spread own = *spread, *const p = &own; // a copy that no store can alias
  if (p->accumulate)
    spread_all(p, true);
  else
    spread_all(p, false);
}

#endif
