// SPDX-License-Identifier: Apache-2.0
// Expands seeds to dense coefficients, written once for vectors of any width: every 32-bit lane
// computes a keystream block of its own (ChaCha20, RFC 8439), for whichever seed is next. A
// library's cipher takes one key at a time, for which a packet's few blocks are too short.
//
// The including file defines VEC_BYTES and gets expand_dense. With GNU C's vectors no intrinsics
// are needed here.
#ifndef WEFT_KERNELS_CHACHA_LANES_H
#define WEFT_KERNELS_CHACHA_LANES_H

#include <string.h>

#include "kernels/backend.h"
#include "kernels/unroll.h"

enum {
  CHACHA_LANES = VEC_BYTES / 4,
  CHACHA_GROUPS = 2, // vectors of lanes at a time: one alone waits for its own sums half the time
  CHACHA_BLOCKS = CHACHA_GROUPS * CHACHA_LANES,
  CHACHA_COEFFICIENTS = 32, // of a block
  CHACHA_NAMED = 6          // words of the key that say which seed; the other two are zero
};

typedef uint32_t chacha_lane __attribute__((vector_size(VEC_BYTES)));

// What the lanes start from, and what they produce.
typedef struct chacha_batch {
  uint32_t key[CHACHA_NAMED][CHACHA_BLOCKS], counter[CHACHA_BLOCKS];
  uint32_t made[CHACHA_COEFFICIENTS / 4][CHACHA_BLOCKS]; // four coefficients each
} chacha_batch;

WEFT_INLINE chacha_lane chacha_load(const uint32_t *words) {
  chacha_lane v;
  memcpy(&v, words, sizeof v);
  return v;
}

WEFT_INLINE chacha_lane chacha_all(uint32_t word) { return (chacha_lane){0} + word; }

WEFT_INLINE chacha_lane chacha_rotate(chacha_lane x, const int bits) {
  return x << bits | x >> (32 - bits);
}

WEFT_INLINE void chacha_quarter(chacha_lane *x, const size_t a, const size_t b, const size_t c,
                                const size_t d) {
  x[a] += x[b], x[d] = chacha_rotate(x[d] ^ x[a], 16);
  x[c] += x[d], x[b] = chacha_rotate(x[b] ^ x[c], 12);
  x[a] += x[b], x[d] = chacha_rotate(x[d] ^ x[a], 8);
  x[c] += x[d], x[b] = chacha_rotate(x[b] ^ x[c], 7);
}

// "expand 32-byte k", the key, the counter, and the nonce "LibsodiumDRG" (docs/wire.md).
WEFT_INLINE void chacha_start(chacha_lane x[16], const chacha_batch *batch, size_t lane) {
  static const uint32_t constant[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  static const uint32_t nonce[3] = {0x7362694c, 0x7569646f, 0x4752446d};
  WEFT_UNROLL for (size_t i = 0; i < 4; i++) x[i] = chacha_all(constant[i]);
  WEFT_UNROLL for (size_t i = 0; i < CHACHA_NAMED; i++) x[4 + i] =
      chacha_load(batch->key[i] + lane);
  x[10] = x[11] = chacha_all(0);
  x[12] = chacha_load(batch->counter + lane);
  WEFT_UNROLL for (size_t i = 0; i < 3; i++) x[13 + i] = chacha_all(nonce[i]);
}

// Returns, in the lower half of every lane, the coefficients 1 + (u * 255 >> 16) of its two 16-bit
// numbers u.
WEFT_INLINE chacha_lane chacha_nonzero(chacha_lane x) {
  const chacha_lane low = x & 0xffff, high = x >> 16;
  return (((low << 8) - low) >> 16 | ((high << 8) - high) >> 16 << 8) + 0x0101;
}

WEFT_INLINE void chacha_make(chacha_batch *batch, const size_t groups) {
  chacha_lane x[CHACHA_GROUPS][16];
  WEFT_UNROLL for (size_t g = 0; g < groups; g++) chacha_start(x[g], batch, g * CHACHA_LANES);
  for (int round = 0; round < 10; round++) {
    WEFT_UNROLL for (size_t g = 0; g < groups; g++) WEFT_UNROLL for (size_t i = 0; i < 4; i++)
        chacha_quarter(x[g], i, 4 + i, 8 + i, 12 + i);
    WEFT_UNROLL for (size_t g = 0; g < groups; g++) WEFT_UNROLL for (size_t i = 0; i < 4; i++)
        chacha_quarter(x[g], i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
  }
  WEFT_UNROLL for (size_t g = 0; g < groups; g++) {
    chacha_lane start[16];
    chacha_start(start, batch, g * CHACHA_LANES);
    WEFT_UNROLL for (size_t i = 0; i < 8; i++) {
      const chacha_lane first = chacha_nonzero(x[g][2 * i] + start[2 * i]);
      const chacha_lane four = first | chacha_nonzero(x[g][2 * i + 1] + start[2 * i + 1]) << 16;
      memcpy(batch->made[i] + g * CHACHA_LANES, &four, sizeof four);
    }
  }
}

static void chacha_name(chacha_batch *batch, size_t lane, const weft_expansion *e, size_t row,
                        size_t block) {
  weft_seed seed = e->seeds ? e->seeds[row] : e->first;
  if (!e->seeds)
    seed.seed += row;
  const uint64_t words[3] = {seed.stream, seed.segment, seed.seed};
  WEFT_UNROLL for (size_t i = 0; i < 3; i++) {
    batch->key[2 * i][lane] = (uint32_t)words[i];
    batch->key[2 * i + 1][lane] = (uint32_t)(words[i] >> 32);
  }
  batch->counter[lane] = (uint32_t)block;
}

// Expands rows [begin, end).
static void expand_dense(const weft_expansion *e, size_t begin, size_t end) {
  const size_t blocks = (e->k + CHACHA_COEFFICIENTS - 1) / CHACHA_COEFFICIENTS;
  const size_t total = (end - begin) * blocks;
  chacha_batch batch;
  memset(batch.key, 0, sizeof batch.key); // what unused lanes produce is never read
  memset(batch.counter, 0, sizeof batch.counter);
  for (size_t at = 0; at < total; at += CHACHA_BLOCKS) {
    const size_t count = total - at < CHACHA_BLOCKS ? total - at : CHACHA_BLOCKS;
    for (size_t lane = 0; lane < count; lane++)
      chacha_name(&batch, lane, e, begin + (at + lane) / blocks, (at + lane) % blocks);
    if (count <= CHACHA_LANES)
      chacha_make(&batch, 1);
    else
      chacha_make(&batch, CHACHA_GROUPS);
    for (size_t lane = 0; lane < count; lane++) {
      const size_t done = (at + lane) % blocks * CHACHA_COEFFICIENTS, left = e->k - done;
      uint8_t block[CHACHA_COEFFICIENTS]; // a lane's words are little-endian, as are x86's
      WEFT_UNROLL for (size_t i = 0; i < CHACHA_COEFFICIENTS / 4; i++)
          memcpy(block + 4 * i, &batch.made[i][lane], 4);
      memcpy(e->out + (begin + (at + lane) / blocks) * e->out_stride + done, block,
             left < sizeof block ? left : sizeof block);
    }
  }
}

#endif
