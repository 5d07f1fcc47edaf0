// SPDX-License-Identifier: Apache-2.0
// Row `gfni256`: the bit matrix of a coefficient applied to 32 bytes by GF2P8AFFINEQB in its VEX
// form, for chips with GFNI but without AVX-512.
#include "kernels/gf256.h"
#include "kernels/host_kernels.h"
#include "kernels/unroll.h"
#include "kernels/x86/cores.h"
#include "kernels/x86/vec_avx2.h"

typedef vec src;
typedef __m256i con;

static inline src src_make(vec x) { return x; }
static inline con con_of(uint64_t bits) { return _mm256_set1_epi64x((long long)bits); }
static inline con con_make(uint8_t c) { return con_of(weft_gf256_affine[c]); }
static inline vec product(src x, con c) { return _mm256_gf2p8affine_epi64_epi8(x, c, 0); }
static inline vec bits_of(con blocks, vec x) { return product(blocks, x); }
static inline vec mac(vec acc, src x, con c) { return vec_xor(acc, product(x, c)); }
static inline vec mac2(vec acc, src x, con c, src z, con d) { return mac(mac(acc, x, c), z, d); }

#include "kernels/x86/few_rows_affine.h"

#define TILE_PAIRS 0
#define TILE_ROWS 6
#define TILE_VECS 2
#define STREAM_SOURCES 8
#include "kernels/tile.h"

#include "kernels/chacha_lanes.h"
#include "kernels/packet_spread.h"
#define STEPS_WIDE 8
#define STEPS_FETCHES __builtin_cpu_is("amd")
#include "kernels/steps.h"
#define KEPT_SHAPES(of)                                                                            \
  of(2, 1) of(3, 1) of(4, 1) of(5, 1) of(6, 1) of(7, 1) of(8, 1) of(9, 1) of(10, 1) of(2, 2)       \
      of(3, 2) of(4, 2) of(5, 2) of(2, 3) of(3, 3) of(2, 4)
enum { KEPT_SOURCES = 10, KEPT_ROWS = 4, KEPT_MATRICES = 10 };
#define KEPT_NEAR (core_is_zen4() ? (size_t)1 << 20 : 0)
#include "kernels/few_rows_tables.h"
#include "kernels/x86/kept_products.h"

static void kept_few_or_tile_panel(const weft_panel *p) {
  if (kept_fits(p))
    kept_panel(p);
  else
    few_or_tile_panel(p);
}

#define BITS_TILE 1
#include "kernels/x86/bit_blocks_affine.h"

// Returns the cost of a matrix entry in comparison with steps, as measured. Rows that are left over
// from tiles of six and four are slow.
static size_t few_or_tile_entry(size_t m, size_t k, size_t row_bytes) {
  enum { SIX = 42, FOUR = 28, TWO = 26, ONE = 18 };
  if (few_pays(m, k, row_bytes ? row_bytes : FEW_GROUPED))
    return m == 4 && k > FEW_AT_ONCE ? 8 : m > 5 && m <= 8 ? 6 : 7;
  const size_t rest = m % 6 % 4;
  const size_t all = m / 6 * SIX + m % 6 / 4 * FOUR + rest / 2 * TWO + rest % 2 * ONE;
  return (all + m / 2) / m;
}

const weft_host_kernel weft_host_gfni256 = {.panel = kept_few_or_tile_panel,
                                            .difference = tile_difference,
                                            .xor_rows = tile_xor_rows,
                                            .spread = spread_packets,
                                            .expand = expand_dense,
                                            .steps = steps_run,
                                            .entry = few_or_tile_entry,
                                            .steps_product = 10,
                                            .steps_sum = 2,
                                            .steps_wide = 16,
                                            .steps_entry = 6,
                                            .steps_act = 12000,
                                            .steps_past = STEPS_PAST_CACHES,
                                            .detour_repays = 2 << 20,
                                            .factors_repay = 5 << 19,
                                            .steps_narrow = 1024,
                                            .wide_rows = STEPS_WIDE,
                                            .winograd_half = 56,
                                            .bits = bits_panel,
                                            .bits_one = 7,
                                            .bits_input = 132,
                                            .bits_output = 52,
                                            .bits_block = 80,
                                            .compile = weft_xor_compile_avx2,
                                            .compile_most = 3 << 20};
