// SPDX-License-Identifier: Apache-2.0
// Computes the matrix that rebuilds lost shards of a code given by points, with all shards side by
// side in one vector.
//
// Products and inverses are computed in the AES field, for which processors have instructions;
// GF(2^8) by 0x11d is isomorphic to it. VPCOMPRESSB picks the shards to read out of all.
#ifndef WEFT_KERNELS_X86_REBUILD_VBMI2_H
#define WEFT_KERNELS_X86_REBUILD_VBMI2_H

#include "kernels/backend.h"
#include "kernels/gf256.h"

static const _Alignas(64) uint8_t rebuild_ids[WEFT_LOSS_SHARDS] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
    44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

static inline __m512i rebuild_inverse(__m512i v) { // bit i of byte j: i + j = 7
  return _mm512_gf2p8affineinv_epi64_epi8(v, con_of(UINT64_C(0x0102040810204080)), 0);
}

// Returns the differences of all shards' points from that of shard s, with 1 for s itself.
static inline __m512i rebuild_differences(const weft_point_code *c, __m512i point, size_t s) {
  const __m512i d = _mm512_xor_si512(point, _mm512_set1_epi8((char)c->point[s]));
  return _mm512_mask_mov_epi8(product(d, con_of(weft_gf256_aes)), UINT64_C(1) << s,
                              _mm512_set1_epi8(1));
}

static inline size_t rebuild_first(uint64_t shards) { return (size_t)__builtin_ctzll(shards); }

static void rebuild_lost(const weft_point_code *c, uint64_t lost, uint64_t wanted, uint8_t *ids,
                         uint8_t *matrix) {
  const uint64_t data = ~UINT64_C(0) >> (WEFT_LOSS_SHARDS - c->k);
  const uint64_t all = ~UINT64_C(0) >> (WEFT_LOSS_SHARDS - c->k - c->m);
  const __m512i point = _mm512_loadu_si512(c->point);
  __m512i over = product(_mm512_loadu_si512(c->scale), con_of(weft_gf256_aes));
  __m512i under = _mm512_set1_epi8(1);
  uint64_t unread = all & ~lost & ~data; // parity shards that stand in for none
  for (uint64_t left = lost & data; left; left &= left - 1, unread &= unread - 1) {
    over = _mm512_gf2p8mul_epi8(over, rebuild_differences(c, point, rebuild_first(left)));
    under = _mm512_gf2p8mul_epi8(under, rebuild_differences(c, point, rebuild_first(unread)));
  }
  const __m512i weight = _mm512_gf2p8mul_epi8(over, rebuild_inverse(under));
  const __mmask64 in = all & ~lost & ~unread;
  _mm512_storeu_si512(ids, _mm512_maskz_compress_epi8(in, _mm512_load_si512(rebuild_ids)));
  ids += c->k;
  for (uint64_t left = wanted; left; left &= left - 1, matrix += c->k) {
    const size_t out = rebuild_first(left);
    const __m512i own = _mm512_permutexvar_epi8(_mm512_set1_epi8((char)out), weight);
    const __m512i entries = _mm512_gf2p8mul_epi8(
        weight, rebuild_inverse(_mm512_gf2p8mul_epi8(rebuild_differences(c, point, out), own)));
    _mm512_storeu_si512(matrix,
                        _mm512_maskz_compress_epi8(in, product(entries, con_of(weft_gf256_aes))));
    *ids++ = (uint8_t)out;
  }
}

#endif
