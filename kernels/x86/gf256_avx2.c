// SPDX-License-Identifier: Apache-2.0
// Row `avx2`: the product of a byte is the xor of two 16-entry tables, one per nibble, looked up
// for 32 bytes at once by VPSHUFB.
#include "kernels/gf256.h"
#include "kernels/host_kernels.h"
#include "kernels/unroll.h"
#include "kernels/x86/vec_avx2.h"

typedef struct nibbles {
  __m256i low, high;
} src, con;

static inline vec lookup(vec table, vec nibbles) { return _mm256_shuffle_epi8(table, nibbles); }
static inline src src_make(vec x) {
  const vec mask = _mm256_set1_epi8(15);
  return (src){_mm256_and_si256(x, mask), _mm256_and_si256(_mm256_srli_epi64(x, 4), mask)};
}
// The same: the product by 2^12 has the upper nibble in its upper half. AMD's cores shift where
// they shuffle, of which there is more than enough to do, but multiply elsewhere. The factor takes
// a register.
static inline src multiplied_src(vec x) {
  const vec mask = _mm256_set1_epi8(15), factor = _mm256_set1_epi16(1 << 12);
  return (src){_mm256_and_si256(x, mask), _mm256_and_si256(_mm256_mulhi_epu16(x, factor), mask)};
}
#define SPARE_SRC(x) multiplied_src(x)
static inline vec half_load(const uint8_t *table) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i_u *)table));
}
static inline con con_load(const uint8_t *table) {
  return (con){half_load(table), half_load(table + 16)};
}
static inline con con_make(uint8_t c) { return con_load(weft_gf256_nibble[c]); }
static inline vec mac(vec acc, src x, con c) {
  acc = vec_xor(acc, lookup(c.low, x.low));
  return vec_xor(acc, lookup(c.high, x.high));
}

static inline void src_store(uint8_t *to, src x) {
  vec_store(to, x.low);
  vec_store(to + VEC_BYTES, x.high);
}
static inline src src_load(const uint8_t *from) {
  return (src){vec_load(from), vec_load(from + VEC_BYTES)};
}

// Keeps the compiler from moving a vector or merging it with what is added next.
static inline vec vec_kept(vec v) {
  __asm__("" : "+x"(v));
  return v;
}

// Looks up all vectors in one table; the products are added to the sums or begin them. The sums are
// kept in order: as a tree they take more registers than there are.
WEFT_INLINE void half_row(vec *acc, const src *x, vec table, const bool high, const bool begin,
                          const size_t vecs) {
  WEFT_UNROLL for (size_t v = 0; v < vecs; v++) {
    const vec p = lookup(table, high ? x[v].high : x[v].low);
    acc[v] = begin ? p : vec_xor(acc[v], p);
  }
  WEFT_UNROLL for (size_t v = 0; v < vecs; v++) acc[v] = vec_kept(acc[v]);
}
WEFT_INLINE void mac_row(vec *acc, const src *x, con c, const size_t vecs) {
  half_row(acc, x, c.low, false, false, vecs);
  half_row(acc, x, c.high, true, false, vecs);
}
#define FEW_TABLE 32 // bytes
WEFT_INLINE const void *few_table(uint8_t c) { return weft_gf256_nibble[c]; }
WEFT_INLINE void few_row(vec *acc, const src *x, const uint8_t *table, const bool begin,
                         const size_t vecs) {
  half_row(acc, x, half_load(table), false, begin, vecs);
  half_row(acc, x, half_load(table + 16), true, false, vecs);
}

#define TILE_PAIRS 0
#define TILE_MADE 1
#define TILE_MADE_BYTES (2 * VEC_BYTES)
#define TILE_CHUNK 2
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

static inline vec vec_and(vec a, vec b) { return _mm256_and_si256(a, b); }
static inline vec vec_of(uint8_t byte) { return _mm256_set1_epi8((char)byte); }
static inline vec vec_up(vec v, int n) { return _mm256_slli_epi64(v, n); }
static inline vec vec_down(vec v, int n) { return _mm256_srli_epi64(v, n); }
#include "kernels/bit_blocks_nibbles.h"

const weft_host_kernel weft_host_avx2 = {.panel = few_or_tile_panel,
                                         .difference = tile_difference,
                                         .xor_rows = tile_xor_rows,
                                         .spread = spread_packets,
                                         .expand = expand_dense,
                                         .steps = steps_run,
                                         .steps_product = 10,
                                         .steps_sum = 3,
                                         .steps_entry = 6,
                                         .steps_act = 3000,
                                         .steps_past = STEPS_PAST_CACHES,
                                         .detour_repays = 1 << 20,
                                         .factors_repay = 1 << 20,
                                         .steps_narrow = 2048,
                                         .winograd_half = 40,
                                         .bits = bits_panel,
                                         .bits_form = WEFT_BIT_TABLES,
                                         .bits_one = 4,
                                         .bits_input = 201,
                                         .bits_output = 51,
                                         .bits_block = 61,
                                         .bits_gather = 12,
                                         .compile = weft_xor_compile_avx2};
