// SPDX-License-Identifier: Apache-2.0
// The table of backend rows, best first, and the choice among them. The only file of kernels/ that
// depends on the architecture it is compiled for.
#include <string.h>

#include "kernels/host_kernels.h"

#if WEFT_HAVE_CUDA
#include "kernels/cuda/rows.h" // WEFT_CUDA_ROWS: initialisers, best first, a comma after each
#else
#define WEFT_CUDA_ROWS
#endif

#define HOST_ROW(name_, needs, align_, kernel, technique_)                                         \
  {                                                                                                \
    .name = name_, .technique = technique_, .cpu = (needs), .mem = WEFT_MEM_HOST, .align = align_, \
    .host = &(kernel), .gemm = weft_host_gemm, .xorm = weft_host_xorm, .invert = weft_host_invert, \
    .eliminate = weft_host_eliminate, .expand = weft_host_expand                                   \
  }

#define HOST_ROW_PREPARED(name_, needs, align_, kernel, technique_)                                \
  {                                                                                                \
    .name = name_, .technique = technique_, .cpu = (needs), .mem = WEFT_MEM_HOST, .align = align_, \
    .host = &(kernel), .gemm = weft_host_gemm, .xorm = weft_host_xorm, .invert = weft_host_invert, \
    .eliminate = weft_host_eliminate, .expand = weft_host_expand, .prepare = weft_host_prepare,    \
    .release = weft_host_release                                                                   \
  }

static const weft_backend table[] = {
    WEFT_CUDA_ROWS
#if defined(__x86_64__)
        HOST_ROW("gfni512",
                 WEFT_CPU_AVX512F | WEFT_CPU_AVX512BW | WEFT_CPU_AVX512VBMI | WEFT_CPU_AVX512VBMI2 |
                     WEFT_CPU_GFNI,
                 64, weft_host_gfni512, "8x8 bit matrix per coefficient, 64 bytes (GF2P8AFFINEQB)"),
    HOST_ROW("gfni256", WEFT_CPU_AVX2 | WEFT_CPU_GFNI, 32, weft_host_gfni256,
             "8x8 bit matrix per coefficient, 32 bytes (GF2P8AFFINEQB)"),
    HOST_ROW("avx512", WEFT_CPU_AVX512F | WEFT_CPU_AVX512BW, 64, weft_host_avx512,
             "nibble tables in registers, 64 bytes (VPSHUFB)"),
    HOST_ROW("avx2", WEFT_CPU_AVX2, 32, weft_host_avx2,
             "nibble tables in registers, 32 bytes (VPSHUFB)"),
    HOST_ROW("gfni128", WEFT_CPU_SSSE3 | WEFT_CPU_GFNI, 16, weft_host_gfni128,
             "8x8 bit matrix per coefficient, 16 bytes (GF2P8AFFINEQB)"),
    HOST_ROW("ssse3", WEFT_CPU_SSSE3, 16, weft_host_ssse3,
             "nibble tables in registers, 16 bytes (PSHUFB)"),
    HOST_ROW("loop-avx2", WEFT_CPU_AVX2, 32, weft_host_loop_avx2,
             "loop-based multiplication of 32 bytes (Shojania & Li)"),
    HOST_ROW("loop-sse2", WEFT_CPU_SSE2, 16, weft_host_loop_sse2,
             "loop-based multiplication of 16 bytes (Shojania & Li)"),
#endif
#if defined(__aarch64__)
    HOST_ROW("neon", WEFT_CPU_NEON, 16, weft_host_neon,
             "nibble tables in registers, 16 bytes (TBL)"),
#endif
    HOST_ROW_PREPARED("logdomain", 0, 1, weft_host_logdomain,
                      "log and exp tables, sources turned into logarithms once (Shojania & Li)"),
    HOST_ROW("logexp", 0, 1, weft_host_logexp, "log and exp tables"),
    HOST_ROW("loop-word64", 0, 8, weft_host_loop_word64,
             "loop-based multiplication of 8 bytes in a general register (Shojania & Li)"),
    HOST_ROW("mul-full-table", 0, 1, weft_host_mul_full_table,
             "byte by byte: table of all 65,536 products"),
    HOST_ROW("mul-half-tables", 0, 1, weft_host_mul_half_tables,
             "byte by byte: two tables, by halves of one factor"),
    HOST_ROW("mul-exp-branch-free", 0, 1, weft_host_mul_exp_branch_free,
             "byte by byte: log and exp of 1021 entries, no test for zero"),
    HOST_ROW("mul-exp-doubled", 0, 1, weft_host_mul_exp_doubled,
             "byte by byte: log and exp of 510 entries, no modulo"),
    HOST_ROW("mul-exp-fold", 0, 1, weft_host_mul_exp_fold,
             "byte by byte: log and exp, modulo by AND and shift"),
    HOST_ROW("mul-exp-modulo", 0, 1, weft_host_mul_exp_modulo,
             "byte by byte: log and exp, modulo 255"),
    HOST_ROW("mul-peasant", 0, 1, weft_host_mul_peasant,
             "byte by byte: loop over the bits (Russian peasant)"),
    HOST_ROW("scalar", 0, 1, weft_host_scalar, "the definition: the specification of all rows"),
};

const weft_backend *const weft_backends = table;
const size_t weft_backend_count = sizeof table / sizeof table[0];

bool weft_backend_runs_on(const weft_backend *row, const weft_machine *machine) {
  if ((machine->cpu & row->cpu) != row->cpu)
    return false;
  if (row->mem != WEFT_MEM_DEVICE)
    return true;
  return machine->sm != 0 && machine->sm >= row->sm_min && machine->sm <= row->sm_max &&
         machine->block_bytes >= row->block_bytes;
}

static weft_status select_forced(const weft_machine *machine, weft_mem mem, const char *forced,
                                 const weft_backend **out) {
  for (size_t i = 0; i < weft_backend_count; i++) {
    const weft_backend *row = &weft_backends[i];
    if (strcmp(row->name, forced) != 0)
      continue;
    if (row->mem != mem)
      return WEFT_E_UNSUPPORTED;
    if (!weft_backend_runs_on(row, machine))
      return WEFT_E_BACKEND_ABSENT;
    *out = row;
    return WEFT_OK;
  }
  return WEFT_E_BACKEND_UNKNOWN;
}

weft_status weft_backend_select(const weft_machine *machine, weft_mem mem, const char *forced,
                                const weft_backend **out) {
  *out = NULL;
  if (forced && forced[0] != '\0')
    return select_forced(machine, mem, forced, out);
  for (size_t i = 0; i < weft_backend_count; i++)
    if (weft_backends[i].mem == mem && weft_backend_runs_on(&weft_backends[i], machine)) {
      *out = &weft_backends[i];
      return WEFT_OK;
    }
  return WEFT_E_BACKEND_ABSENT;
}
