// SPDX-License-Identifier: Apache-2.0
// The random linear functions of checksums: eight of them at once, one per byte of a 64-bit word.
// The sum over j of r_j * x_j, with r_j eight coefficients in one word and x_j one byte of payload,
// is gathered by bits of x: word b is the sum of the r_j whose x_j has bit b, and the result is the
// sum of 2^b * word b, with one multiplication by 2 in all eight lanes per bit.
#include "peer/engine/checksum_rows.h"

#include <sodium.h>
#include <string.h>

static uint64_t get_le(const uint8_t *p) {
  uint64_t v = 0;
  for (unsigned i = 0; i < 8; i++)
    v |= (uint64_t)p[i] << (8 * i);
  return v;
}

// Multiplies each byte by 2 in GF(2^8), polynomial 11D.
static uint64_t double_lanes(uint64_t v) {
  const uint64_t high = v & UINT64_C(0x8080808080808080);
  return ((v ^ high) << 1) ^ ((high >> 7) * 0x1D);
}

static uint64_t gather(const uint64_t word[8]) {
  uint64_t sum = 0;
  for (int b = 7; b >= 0; b--)
    sum = double_lanes(sum) ^ word[b];
  return sum;
}

static void scatter(uint64_t word[8], uint64_t row, uint8_t x) {
  for (unsigned b = 0; b < 8; b++)
    word[b] ^= row & (0 - (uint64_t)(x >> b & 1));
}

void weft_checksum_of(uint64_t seed, const uint8_t *payload, size_t bytes,
                      uint8_t out[WEFT_CHECKSUM_ROWS]) {
  enum { CHUNK = 512 };
  uint8_t key[crypto_stream_chacha20_KEYBYTES] = {0}, rows[CHUNK];
  uint64_t word[8] = {0};
  memcpy(key, "weft checksum", 13);
  for (unsigned i = 0; i < 8; i++)
    key[16 + i] = (uint8_t)(seed >> (8 * i));
  for (size_t at = 0; at < bytes; at += CHUNK / 8) { // rows of 64 bytes of payload
    uint8_t nonce[crypto_stream_chacha20_NONCEBYTES] = {0};
    for (unsigned i = 0; i < 8; i++)
      nonce[i] = (uint8_t)((uint64_t)at >> (8 * i));
    (void)crypto_stream_chacha20(rows, sizeof rows, nonce, key);
    for (size_t j = at; j < bytes && j < at + CHUNK / 8; j++)
      scatter(word, get_le(rows + 8 * (j - at)), payload[j]);
  }
  const uint64_t sum = gather(word);
  for (unsigned i = 0; i < 8; i++)
    out[i] = (uint8_t)(sum >> (8 * i));
}

void weft_checksum_combine(const uint8_t *coefficients, size_t blocks, const uint8_t *sums,
                           uint8_t out[WEFT_CHECKSUM_ROWS]) {
  uint64_t word[8] = {0};
  for (size_t i = 0; i < blocks; i++)
    scatter(word, get_le(sums + i * WEFT_CHECKSUM_ROWS), coefficients[i]);
  const uint64_t sum = gather(word);
  for (unsigned i = 0; i < 8; i++)
    out[i] = (uint8_t)(sum >> (8 * i));
}
