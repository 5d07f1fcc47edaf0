// SPDX-License-Identifier: Apache-2.0
// Row `ssse3`: the product of a byte is the xor of two 16-entry tables, one per nibble, looked up
// for 16 bytes at once by PSHUFB.
#include "kernels/gf256.h"
#include "kernels/host_kernels.h"
#include "kernels/unroll.h"
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
static inline vec lookup(vec table, vec nibbles) { return _mm_shuffle_epi8(table, nibbles); }
static inline vec mac(vec acc, src x, con c) {
  acc = vec_xor(acc, lookup(c.low, x.low));
  return vec_xor(acc, lookup(c.high, x.high));
}

// Looks up all vectors in one table; the products are added to the sums or begin them.
WEFT_INLINE void half_row(vec *acc, const src *x, vec table, const bool high, const bool begin,
                          const size_t vecs) {
  WEFT_UNROLL for (size_t v = 0; v < vecs; v++) {
    const vec p = lookup(table, high ? x[v].high : x[v].low);
    acc[v] = begin ? p : vec_xor(acc[v], p);
    INTRINSICS_IN_ORDER(acc[v]);
  }
}
#define FEW_TABLE 32 // bytes
WEFT_INLINE const void *few_table(uint8_t c) { return weft_gf256_nibble[c]; }
WEFT_INLINE void few_row(vec *acc, const src *x, const uint8_t *table, const bool begin,
                         const size_t vecs) {
  half_row(acc, x, vec_load(table), false, begin, vecs);
  half_row(acc, x, vec_load(table + 16), true, false, vecs);
}

#define TILE_PAIRS 0
#define TILE_ROWS 4
#define FAN_ROWS 4
#define FAN_VECS 1
#define TILE_VECS 2
#define STREAM_SOURCES 4
#include "kernels/tile.h"

#include "kernels/chacha_lanes.h"
#include "kernels/few_rows_tables.h"
#include "kernels/packet_spread.h"
#include "kernels/steps.h"

const weft_host_kernel weft_host_ssse3 = {.panel = few_or_tile_panel,
                                          .difference = tile_difference,
                                          .xor_rows = tile_xor_rows,
                                          .spread = spread_packets,
                                          .expand = expand_dense,
                                          .steps = steps_run,
                                          .steps_product = 10,
                                          .steps_sum = 3,
                                          .steps_entry = 6,
                                          .steps_act = 1000,
                                          .steps_past = STEPS_PAST_CACHES,
                                          .detour_repays = 1 << 19,
                                          .factors_repay = 1 << 19,
                                          .steps_narrow = 2048,
                                          .winograd_half = 32};
