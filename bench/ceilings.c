// SPDX-License-Identifier: Apache-2.0
// The table of ceilings: the only place in bench/ that chooses loops by instruction set.
#include "bench/ceilings.h"

#include <string.h>

#include "bench/ceiling_loops.h"
#include "kernels/cpu.h"

const weft_bench_ceiling weft_bench_ceilings[] = {
#if defined(__x86_64__)
    {"gfni512", "GF2P8AFFINEQB + VPTERNLOGQ, 512 bit", WEFT_CPU_GFNI | WEFT_CPU_AVX512F,
     WEFT_BENCH_GFNI512_PRODUCTS, weft_bench_loop_gfni512},
    {"gfni256-ternary", "GF2P8AFFINEQB + VPTERNLOGQ, 256 bit",
     WEFT_CPU_GFNI | WEFT_CPU_AVX2 | WEFT_CPU_AVX512F | WEFT_CPU_AVX512VL,
     WEFT_BENCH_GFNI256_TERNARY_PRODUCTS, weft_bench_loop_gfni256_ternary},
    {"gfni256", "GF2P8AFFINEQB + VPXOR, 256 bit", WEFT_CPU_GFNI | WEFT_CPU_AVX2,
     WEFT_BENCH_GFNI256_PRODUCTS, weft_bench_loop_gfni256},
    {"avx512", "2 VPSHUFB + VPTERNLOGQ, 512 bit", WEFT_CPU_AVX512F | WEFT_CPU_AVX512BW,
     WEFT_BENCH_AVX512_PRODUCTS, weft_bench_loop_avx512},
    {"avx2", "2 VPSHUFB + 2 VPXOR, 256 bit", WEFT_CPU_AVX2, WEFT_BENCH_AVX2_PRODUCTS,
     weft_bench_loop_avx2},
    {"gfni128", "GF2P8AFFINEQB + PXOR, 128 bit", WEFT_CPU_GFNI | WEFT_CPU_SSSE3,
     WEFT_BENCH_GFNI128_PRODUCTS, weft_bench_loop_gfni128},
    {"ssse3", "2 PSHUFB + 2 PXOR, 128 bit", WEFT_CPU_SSSE3, WEFT_BENCH_SSSE3_PRODUCTS,
     weft_bench_loop_ssse3},
#endif
    {"table", "one lookup in a 512-byte table + XOR, a byte at a time", 0,
     WEFT_BENCH_TABLE_PRODUCTS, weft_bench_loop_table},
};

const size_t weft_bench_ceiling_count = sizeof weft_bench_ceilings / sizeof *weft_bench_ceilings;

// Each row of the kernels' table with the loop that bounds its technique, and needs no more of the
// CPU. A row that is not listed has no such bound.
static const struct {
  const char *row, *ceiling;
} bounds[] = {
    {"gfni512", "gfni512"}, {"gfni256", "gfni256"}, {"avx512", "avx512"}, {"avx2", "avx2"},
    {"gfni128", "gfni128"}, {"ssse3", "ssse3"},     {"logexp", "table"},  {"logdomain", "table"},
};

const weft_bench_ceiling *weft_bench_ceiling_for(const char *row) {
  for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++)
    for (size_t c = 0; c < weft_bench_ceiling_count; c++)
      if (strcmp(bounds[b].row, row) == 0 &&
          strcmp(bounds[b].ceiling, weft_bench_ceilings[c].name) == 0)
        return &weft_bench_ceilings[c];
  return NULL;
}

weft_bench_read weft_bench_read_widest(uint32_t machine_cpu, const char **name) {
#if defined(__x86_64__)
  if (machine_cpu & WEFT_CPU_AVX512F) {
    *name = "512-bit loads";
    return weft_bench_read_avx512;
  }
  if (machine_cpu & WEFT_CPU_AVX2) {
    *name = "256-bit loads";
    return weft_bench_read_avx2;
  }
#endif
  (void)machine_cpu;
  *name = "compiler's loads";
  return weft_bench_read_portable;
}

weft_bench_write weft_bench_write_widest(uint32_t machine_cpu, bool change) {
#if defined(__x86_64__)
  if (machine_cpu & WEFT_CPU_AVX512F)
    return change ? weft_bench_change_avx512 : weft_bench_write_avx512;
  if (machine_cpu & WEFT_CPU_AVX2)
    return change ? weft_bench_change_avx2 : weft_bench_write_avx2;
#endif
  (void)machine_cpu;
  return change ? weft_bench_change_portable : weft_bench_write_portable;
}

weft_bench_write weft_bench_stream_widest(uint32_t machine_cpu) {
#if defined(__x86_64__)
  if (machine_cpu & WEFT_CPU_AVX512F)
    return weft_bench_stream_avx512;
  if (machine_cpu & WEFT_CPU_AVX2)
    return weft_bench_stream_avx2;
#endif
  (void)machine_cpu;
  return NULL;
}
