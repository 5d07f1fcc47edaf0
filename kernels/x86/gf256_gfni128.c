// SPDX-License-Identifier: Apache-2.0
// Row `gfni128`: the bit matrix of a coefficient applied to 16 bytes by GF2P8AFFINEQB in its SSE
// form, for small cores (Tremont) that have GFNI but no AVX.
#include "kernels/gf256.h"
#include "kernels/host_kernels.h"
#include "kernels/unroll.h"
#include "kernels/x86/vec_sse2.h"

typedef vec src;
typedef __m128i con;

static inline src src_make(vec x) { return x; }
static inline con con_of(uint64_t bits) { return _mm_set1_epi64x((long long)bits); }
static inline con con_make(uint8_t c) { return con_of(weft_gf256_affine[c]); }
static inline vec product(src x, con c) { return _mm_gf2p8affine_epi64_epi8(x, c, 0); }
static inline vec mac(vec acc, src x, con c) { return vec_xor(acc, product(x, c)); }

#include "kernels/x86/few_rows_affine.h"

#define TILE_PAIRS 0
#define TILE_ROWS 6
#define TILE_VECS 2
#define STREAM_SOURCES 8
#include "kernels/tile.h"

#include "kernels/chacha_lanes.h"
#include "kernels/few_rows_tables.h"
#include "kernels/packet_spread.h"
#include "kernels/steps.h"

const weft_host_kernel weft_host_gfni128 = {.panel = few_or_tile_panel,
                                            .difference = tile_difference,
                                            .xor_rows = tile_xor_rows,
                                            .spread = spread_packets,
                                            .expand = expand_dense,
                                            .steps = steps_run,
                                            .steps_product = 10,
                                            .steps_sum = 3,
                                            .steps_entry = 7,
                                            .steps_act = 3000,
                                            .steps_past = STEPS_PAST_CACHES,
                                            .detour_repays = 1 << 20,
                                            .factors_repay = 1 << 20,
                                            .steps_narrow = 2048};
