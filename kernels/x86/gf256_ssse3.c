// SPDX-License-Identifier: Apache-2.0
// Row `ssse3`: the product of a byte is the xor of two 16-entry tables, one per nibble, looked up
// for 16 bytes at once by PSHUFB.
#include "kernels/gf256.h"
#include "kernels/host_kernels.h"
#include "kernels/x86/vec_sse2.h"

typedef struct nibbles {
  __m128i low, high;
} src, con;

static inline src src_make(vec x) {
  const vec mask = _mm_set1_epi8(15);
  return (src){_mm_and_si128(x, mask), _mm_and_si128(_mm_srli_epi64(x, 4), mask)};
}
static inline con con_make(uint8_t c) {
  return (con){vec_load(weft_gf256_nibble[c]), vec_load(weft_gf256_nibble[c] + 16)};
}
static inline vec mac(vec acc, src x, con c) {
  acc = vec_xor(acc, _mm_shuffle_epi8(c.low, x.low));
  return vec_xor(acc, _mm_shuffle_epi8(c.high, x.high));
}

#define TILE_PAIRS 0
#define TILE_ROWS 4
#define FAN_ROWS 4
#define FAN_VECS 1
#define TILE_VECS 2
#define STREAM_SOURCES 4
#include "kernels/tile.h"

#include "kernels/packet_spread.h"

const weft_host_kernel weft_host_ssse3 = {
    .panel = tile_panel, .xor_rows = tile_xor_rows, .spread = spread_packets, .winograd_half = 32};
