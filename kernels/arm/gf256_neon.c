// SPDX-License-Identifier: Apache-2.0
// Row `neon`: the product of a byte is the xor of two 16-entry tables, one per nibble, looked up
// for 16 bytes at once by TBL.
#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/gf256.h"
#include "kernels/host_kernels.h"
#include "kernels/unroll.h"

#define VEC_BYTES 16
typedef uint8x16_t vec;

static inline vec vec_zero(void) { return vdupq_n_u8(0); }
static inline vec vec_load(const uint8_t *p) { return vld1q_u8(p); }
static inline void vec_store(uint8_t *p, vec v) { vst1q_u8(p, v); }
static inline void vec_store_past(uint8_t *p, vec v) { vec_store(p, v); }
static inline void vec_fence(void) {}
static inline vec vec_xor(vec a, vec b) { return veorq_u8(a, b); }

#include "kernels/tail_copy.h"

typedef struct nibbles {
  uint8x16_t low, high;
} src, con;

static inline src src_make(vec x) { return (src){vandq_u8(x, vdupq_n_u8(15)), vshrq_n_u8(x, 4)}; }
static inline con con_make(uint8_t c) {
  return (con){vld1q_u8(weft_gf256_nibble[c]), vld1q_u8(weft_gf256_nibble[c] + 16)};
}
static inline vec mac(vec acc, src x, con c) {
  acc = vec_xor(acc, vqtbl1q_u8(c.low, x.low));
  return vec_xor(acc, vqtbl1q_u8(c.high, x.high));
}

#define FEW_TABLE 32 // bytes
#define FEW_BLOCK_ROWS 6
WEFT_INLINE const void *few_table(uint8_t c) { return weft_gf256_nibble[c]; }
WEFT_INLINE void few_row(vec *acc, const src *x, const uint8_t *table, const bool begin,
                         const size_t vecs) {
  const con c = {vld1q_u8(table), vld1q_u8(table + 16)};
  WEFT_UNROLL for (size_t v = 0; v < vecs; v++) acc[v] =
      begin ? vec_xor(vqtbl1q_u8(c.low, x[v].low), vqtbl1q_u8(c.high, x[v].high))
            : mac(acc[v], x[v], c);
}

#define TILE_PAIRS 0
#define TILE_ROWS 4
#define TILE_VECS 4
#define STREAM_SOURCES 8
#include "kernels/tile.h"

#include "kernels/chacha_lanes.h"
#include "kernels/few_rows_tables.h"
#include "kernels/packet_spread.h"
#include "kernels/steps.h"

// The same costs as ssse3's, whose products take as many instructions. Nothing is stored past the
// caches: there is no intrinsic for it.
const weft_host_kernel weft_host_neon = {.panel = few_or_tile_panel,
                                         .difference = tile_difference,
                                         .xor_rows = tile_xor_rows,
                                         .spread = spread_packets,
                                         .expand = expand_dense,
                                         .steps = steps_run,
                                         .steps_product = 10,
                                         .steps_sum = 3,
                                         .steps_entry = 6,
                                         .steps_act = 1000,
                                         .steps_past = SIZE_MAX,
                                         .detour_repays = 1 << 20,
                                         .factors_repay = 1 << 20,
                                         .steps_narrow = 2048};
