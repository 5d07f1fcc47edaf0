// SPDX-License-Identifier: Apache-2.0
// Expands a seed into coefficients: the keystream of libsodium's randombytes_buf_deterministic,
// under a key made of stream, segment and seed, read as 16-bit numbers (docs/wire.md).
#include "lib/coefficients.h"

#include <sodium.h>
#include <string.h>

static void put_u64_le(uint8_t *out, uint64_t value) {
  for (size_t i = 0; i < 8; i++)
    out[i] = (uint8_t)(value >> (8 * i));
}

static void keystream(const weft_segment_id *id, uint64_t seed, uint8_t *out, size_t bytes) {
  uint8_t key[randombytes_SEEDBYTES] = {0};
  put_u64_le(key, id->stream);
  put_u64_le(key + 8, id->segment);
  put_u64_le(key + 16, seed);
  randombytes_buf_deterministic(out, bytes, key);
}

static unsigned u16_le(const uint8_t *at) { return (unsigned)at[0] | (unsigned)at[1] << 8; }

static uint8_t nonzero(unsigned u16) { return (uint8_t)(1 + (u16 * 255 >> 16)); }

void weft_coefficients_dense(const weft_segment_id *id, uint64_t seed, uint8_t *out) {
  uint8_t stream[2 * WEFT_MAX_BLOCKS];
  keystream(id, seed, stream, 2 * (size_t)id->blocks);
  for (size_t i = 0; i < id->blocks; i++)
    out[i] = nonzero(u16_le(stream + 2 * i));
}

// Each coefficient consumes one 16-bit number, each nonzero one a second. The first keystream is
// long enough for nearly all seeds; the others generate it again at its maximum length.
void weft_coefficients_sparse(const weft_segment_id *id, uint64_t seed, uint16_t density_q16,
                              uint8_t *out) {
  uint8_t stream[4 * WEFT_MAX_BLOCKS];
  const size_t n = id->blocks, likely = n + (n * density_q16 >> 16) + n / 32 + 8;
  const size_t numbers = likely < 2 * n ? likely : 2 * n;
  keystream(id, seed, stream, 2 * numbers);
  const uint8_t *at = stream, *const last = stream + 2 * (numbers - 1);
  bool whole = numbers == 2 * n;
  for (size_t i = 0; i < n; i++, at += 2) {
    if (at >= last && !whole) {
      keystream(id, seed, stream, 4 * n);
      whole = true;
    }
    out[i] = 0;
    if (u16_le(at) < density_q16) {
      at += 2;
      out[i] = nonzero(u16_le(at));
    }
  }
}

void weft_coefficients_named(const weft_packet *packet, uint8_t *out) {
  if (packet->mode == WEFT_PACKET_SYSTEMATIC) {
    memset(out, 0, packet->id.blocks);
    out[packet->index] = 1;
  } else if (packet->mode == WEFT_PACKET_DENSE) {
    weft_coefficients_dense(&packet->id, packet->seed, out);
  } else {
    weft_coefficients_sparse(&packet->id, packet->seed, packet->density_q16, out);
  }
}

// Until the first nonzero coefficient each one consumes a single number, so the first n numbers
// decide; nearly always one block of keystream is enough.
bool weft_coefficients_sparse_none(const weft_segment_id *id, uint64_t seed, uint16_t density_q16) {
  enum { KEYSTREAM_BLOCK = 32 }; // numbers
  uint8_t stream[2 * WEFT_MAX_BLOCKS];
  const size_t n = id->blocks;
  size_t seen = 0;
  for (size_t upto = n < KEYSTREAM_BLOCK ? n : KEYSTREAM_BLOCK; seen < n; upto = n) {
    keystream(id, seed, stream, 2 * upto);
    for (; seen < upto; seen++)
      if (u16_le(stream + 2 * seen) < density_q16)
        return false;
  }
  return true;
}

bool weft_all_zero(const uint8_t *bytes, size_t count) {
  if (count > 0 && bytes[0] != 0) // the case of nearly all vectors
    return false;
  uint8_t any = 0;
  for (size_t i = 0; i < count; i++)
    any |= bytes[i];
  return any == 0;
}
