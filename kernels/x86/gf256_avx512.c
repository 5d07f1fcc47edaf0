// SPDX-License-Identifier: Apache-2.0
// Row `avx512`: the product of a byte is the xor of two 16-entry tables, one per nibble, looked up
// for 64 bytes at once by VPSHUFB; both products and the accumulator merge in one ternary xor.
#include "kernels/gf256.h"
#include "kernels/host_kernels.h"
#include "kernels/unroll.h"
#include "kernels/x86/vec_avx512.h"

typedef struct nibbles {
  __m512i low, high;
} src, con;

static inline src src_make(vec x) {
  const vec mask = _mm512_set1_epi8(15);
  return (src){_mm512_and_si512(x, mask), _mm512_and_si512(_mm512_srli_epi64(x, 4), mask)};
}
static inline con con_load(const uint8_t *table) {
  return (con){_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i_u *)table)),
               _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i_u *)(table + 16)))};
}
static inline con con_make(uint8_t c) { return con_load(weft_gf256_nibble[c]); }
static inline vec mac(vec acc, src x, con c) {
  return vec_xor3(acc, _mm512_shuffle_epi8(c.low, x.low), _mm512_shuffle_epi8(c.high, x.high));
}

#define FEW_TABLE 32 // bytes
WEFT_INLINE const void *few_table(uint8_t c) { return weft_gf256_nibble[c]; }
WEFT_INLINE void few_row(vec *acc, const src *x, const uint8_t *table, const bool begin,
                         const size_t vecs) {
  const con c = con_load(table);
  WEFT_UNROLL for (size_t v = 0; v < vecs; v++) acc[v] =
      begin ? vec_xor(_mm512_shuffle_epi8(c.low, x[v].low), _mm512_shuffle_epi8(c.high, x[v].high))
            : mac(acc[v], x[v], c);
}

#define TILE_PAIRS 0
#define TILE_ROWS 8
#define TILE_VECS 2
#define STREAM_SOURCES 8
#include "kernels/tile.h"

#include "kernels/chacha_lanes.h"
#include "kernels/few_rows_tables.h"
#include "kernels/packet_spread.h"
#include "kernels/steps.h"

const weft_host_kernel weft_host_avx512 = {.panel = few_or_tile_panel,
                                           .difference = tile_difference,
                                           .xor_rows = tile_xor_rows,
                                           .spread = spread_packets,
                                           .expand = expand_dense,
                                           .steps = steps_run,
                                           .steps_product = 10,
                                           .steps_sum = 3,
                                           .steps_entry = 8,
                                           .steps_act = 6500,
                                           .steps_past = STEPS_PAST_CACHES,
                                           .detour_repays = 2 << 20,
                                           .factors_repay = 2 << 20,
                                           .steps_narrow = 1024,
                                           .winograd_half = 40,
                                           .compile = weft_xor_compile_avx512};
