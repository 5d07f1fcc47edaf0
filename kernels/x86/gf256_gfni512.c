// SPDX-License-Identifier: Apache-2.0
// Row `gfni512`: multiplication by a coefficient is an 8x8 bit matrix, applied to 64 bytes by one
// GF2P8AFFINEQB; two products and the accumulator merge in one ternary xor. (GF2P8MULB is useless
// here: its polynomial is fixed to 0x11B.)
#include "kernels/gf256.h"
#include "kernels/host_kernels.h"
#include "kernels/x86/cores.h"
#include "kernels/x86/vec_avx512.h"

typedef vec src;
typedef __m512i con;

static inline src src_make(vec x) { return x; }
static inline con con_of(uint64_t bits) {
  con c = _mm512_set1_epi64((long long)bits);
  INTRINSICS_APART(c);
  return c;
}
static inline con con_make(uint8_t c) { return con_of(weft_gf256_affine[c]); }
static inline vec product(src x, con c) { return _mm512_gf2p8affine_epi64_epi8(x, c, 0); }
static inline vec bits_of(con blocks, vec x) { return product(blocks, x); }
static inline vec mac(vec acc, src x, con c) { return vec_xor(acc, product(x, c)); }
static inline vec mac2(vec acc, src x, con c, src z, con d) {
  return vec_xor3(acc, product(x, c), product(z, d));
}

#define TILE_PAIRS 1
#define TILE_ROWS 12
#define TILE_VECS 2
#define STREAM_SOURCES 6
#include "kernels/tile.h"

#include "kernels/chacha_lanes.h"
#include "kernels/packet_spread.h"
#define STEPS_WIDE 16
#define STEPS_FETCHES core_is_zen4()
#ifndef STEPS_STAGES // tests stage on other cores, too, and in shorter runs
#define STEPS_STAGES core_is_zen5()
#define STEPS_STAGED 1024
#define STEPS_AHEAD (core_is_zen5() ? 256 : 0)
#endif
#include "kernels/steps.h"
#define KEPT_SHAPES(of)                                                                            \
  of(2, 1) of(3, 1) of(4, 1) of(5, 1) of(6, 1) of(7, 1) of(8, 1) of(9, 1) of(10, 1) of(2, 2)       \
      of(3, 2) of(4, 2) of(5, 2) of(6, 2) of(7, 2) of(8, 2) of(9, 2) of(10, 2) of(2, 3) of(3, 3)   \
          of(4, 3) of(5, 3) of(6, 3) of(2, 4) of(3, 4) of(4, 4) of(5, 4)
enum { KEPT_SOURCES = 10, KEPT_ROWS = 4, KEPT_MATRICES = 20 };
#ifndef KEPT_NEAR // measured only on Zen 4
#define KEPT_NEAR (core_is_zen4() ? (size_t)1 << 20 : 0)
#endif
#include "kernels/x86/kept_products.h"

#include "kernels/x86/few_rows_gfni512.h"

#define BITS_TILE 2
#include "kernels/x86/bit_blocks_affine.h"
#include "kernels/x86/rebuild_vbmi2.h"

const weft_host_kernel weft_host_gfni512 = {.panel = few_or_tile_panel,
                                            .scratch = many_scratch,
                                            .difference = tile_difference,
                                            .xor_rows = tile_xor_rows,
                                            .spread = spread_packets,
                                            .expand = expand_dense,
                                            .rebuild = rebuild_lost,
                                            .steps = steps_run,
                                            .entry = few_entry,
                                            .steps_product = 24,
                                            .steps_sum = 5,
                                            .steps_wide = 24,
                                            .steps_entry = 12,
                                            .steps_least = 128,
                                            .steps_act = 15000,
                                            .steps_past = STEPS_PAST_CACHES,
                                            .detour_repays = 4 << 20,
                                            .factors_repay = 24 << 20,
                                            .steps_narrow = 1024,
                                            .steps_near = 1024,
                                            .wide_rows = STEPS_WIDE,
                                            .winograd_half = 112,
                                            .bits = bits_panel,
                                            .bits_one = 5,
                                            .bits_input = 92,
                                            .bits_output = 52,
                                            .bits_block = 62,
                                            .compile = weft_xor_compile_avx512,
                                            .compile_most = 16 << 20};
