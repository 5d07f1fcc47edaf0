// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/emulated/emulated_rows.h"

#include "kernels/host_kernels.h"

extern const weft_host_kernel weft_emulated_gfni512;
extern const weft_host_kernel weft_emulated_gfni256;
extern const weft_host_kernel weft_emulated_gfni128;
extern const weft_host_kernel weft_emulated_avx512;

#define EMULATED_ROW(name_, kernel)                                                                \
  {                                                                                                \
    .name = name_, .technique = "emulated", .align = 1, .host = &(kernel), .gemm = weft_host_gemm, \
    .xorm = weft_host_xorm, .invert = weft_host_invert, .eliminate = weft_host_eliminate,          \
    .expand = weft_host_expand                                                                     \
  }

const weft_backend weft_emulated_rows[] = {
    EMULATED_ROW("gfni512 (emulated)", weft_emulated_gfni512),
    EMULATED_ROW("gfni256 (emulated)", weft_emulated_gfni256),
    EMULATED_ROW("gfni128 (emulated)", weft_emulated_gfni128),
    EMULATED_ROW("avx512 (emulated)", weft_emulated_avx512),
};
const size_t weft_emulated_row_count = sizeof weft_emulated_rows / sizeof *weft_emulated_rows;
