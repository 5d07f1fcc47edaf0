// SPDX-License-Identifier: Apache-2.0
// The CUDA rows of the table, as initialisers that table.c lists; no CUDA types.
#ifndef WEFT_KERNELS_CUDA_ROWS_H
#define WEFT_KERNELS_CUDA_ROWS_H

#ifdef __cplusplus
extern "C" {
#endif
#include "kernels/backend.h"

// Shared by the rows.
weft_status weft_cuda_xorm(const weft_backend *row, const weft_exec *exec, const weft_xorm *xorm);
weft_status weft_cuda_xorm_many(const weft_backend *row, const weft_exec *exec,
                                const weft_xorm *xorms, size_t count);
weft_status weft_cuda_invert(const weft_backend *row, const weft_exec *exec,
                             const weft_invert *invert);
weft_status weft_cuda_eliminate(const weft_backend *row, const weft_exec *exec,
                                const weft_eliminate *eliminate);
weft_status weft_cuda_row_expand(const weft_backend *row, const weft_exec *exec,
                                 const weft_expansion *expansion);
void weft_cuda_release(const weft_backend *row, const weft_exec *exec, weft_operand *operand);

#define WEFT_CUDA_DECLARE(id)                                                                      \
  weft_status weft_cuda_##id##_gemm(const weft_backend *row, const weft_exec *exec,                \
                                    const weft_gemm *gemms, size_t count);                         \
  weft_status weft_cuda_##id##_prepare(const weft_backend *row, const weft_exec *exec, size_t k,   \
                                       size_t len, const weft_const_rows *x, weft_operand **out);

#define WEFT_CUDA_DECLARE_TENSOR(id)                                                               \
  WEFT_CUDA_DECLARE(id)                                                                            \
  weft_status weft_cuda_##id##_prepare_many(const weft_backend *row, const weft_exec *exec,        \
                                            size_t k, size_t len, const uint8_t *const *x,         \
                                            size_t x_stride, size_t count, weft_operand **out);

WEFT_CUDA_DECLARE_TENSOR(b1)
WEFT_CUDA_DECLARE_TENSOR(b1_wgmma)
WEFT_CUDA_DECLARE_TENSOR(b1_wgmma_karatsuba)
WEFT_CUDA_DECLARE_TENSOR(b1_mma)
WEFT_CUDA_DECLARE(nibble_prmt)
WEFT_CUDA_DECLARE(table_32)
WEFT_CUDA_DECLARE(loop)
WEFT_CUDA_DECLARE(table_5)
WEFT_CUDA_DECLARE(table_bytes16)
WEFT_CUDA_DECLARE(table_4)
WEFT_CUDA_DECLARE(table_3)
WEFT_CUDA_DECLARE(table_2)
WEFT_CUDA_DECLARE(table_1)
WEFT_CUDA_DECLARE(table_0)
WEFT_CUDA_DECLARE(table_0_init)
WEFT_CUDA_DECLARE(logexp_global)
WEFT_CUDA_DECLARE(logexp_texture)
WEFT_CUDA_DECLARE(logexp_constant)

#define WEFT_CUDA_ROW(id, row_name, what) WEFT_CUDA_ROW_OF(id, row_name, what, 0)

// With `bytes` of a block's shared memory, more than every device has.
#define WEFT_CUDA_ROW_OF(id, row_name, what, bytes)                                                \
  { WEFT_CUDA_MEMBERS(id, row_name, what, 80, 999), .block_bytes = bytes }
enum { WEFT_CUDA_TABLE_32_BYTES = 144 << 10 };

#define WEFT_CUDA_TENSOR_ROW(id, row_name, what, from, to)                                         \
  { WEFT_CUDA_MEMBERS(id, row_name, what, from, to), .prepare_many = weft_cuda_##id##_prepare_many }

#define WEFT_CUDA_MEMBERS(id, row_name, what, from, to)                                            \
  .name = row_name, .technique = what, .sm_min = from, .sm_max = to, .mem = WEFT_MEM_DEVICE,       \
  .align = 16, .gemm = weft_cuda_##id##_gemm, .xorm = weft_cuda_xorm,                              \
  .xorm_many = weft_cuda_xorm_many, .invert = weft_cuda_invert,                                    \
  .prepare = weft_cuda_##id##_prepare, .release = weft_cuda_release,                               \
  .eliminate = weft_cuda_eliminate, .expand = weft_cuda_row_expand

// Best first; the binary tensor rows come before these.
#define WEFT_CUDA_TABLE_ROWS                                                                       \
  WEFT_CUDA_ROW(nibble_prmt, "cuda-nibble-prmt",                                                   \
                "split nibble tables in registers, looked up by PRMT four bytes at once"),         \
      WEFT_CUDA_ROW_OF(                                                                            \
          table_32, "cuda-table-32",                                                               \
          "exp in 32 word-wide shared copies, one bank per lane; log domain, no test",             \
          WEFT_CUDA_TABLE_32_BYTES),                                                               \
      WEFT_CUDA_ROW(loop, "cuda-loop",                                                             \
                    "Russian peasant on words of four bytes (Shojania and Li, loop-based)"),       \
      WEFT_CUDA_ROW(table_5, "cuda-table-5",                                                       \
                    "exp in 8 word-wide shared copies (Shojania and Li, table-based-5)"),          \
      WEFT_CUDA_ROW(table_bytes16, "cuda-table-bytes16",                                           \
                    "exp in 16 byte-wide shared copies (Shojania and Li, 5.1.3)"),                 \
      WEFT_CUDA_ROW(table_3, "cuda-table-3",                                                       \
                    "log domain, zeros without a test (Shojania and Li, table-based-3)"),          \
      WEFT_CUDA_ROW(table_2, "cuda-table-2",                                                       \
                    "log domain, one zero test per word (Shojania and Li, table-based-2)"),        \
      WEFT_CUDA_ROW(table_1, "cuda-table-1",                                                       \
                    "log domain, one zero test per byte (Shojania and Li, table-based-1)"),        \
      WEFT_CUDA_ROW(                                                                               \
          table_4, "cuda-table-4",                                                                 \
          "as cuda-table-3 with exp in texture memory (Shojania and Li, table-based-4)"),          \
      WEFT_CUDA_ROW(table_0, "cuda-table-0",                                                       \
                    "log/exp in shared memory, copied (Shojania and Li, table-based-0)"),          \
      WEFT_CUDA_ROW(table_0_init, "cuda-table-0-init",                                             \
                    "log/exp in shared memory, made by every block"),                              \
      WEFT_CUDA_ROW(logexp_global, "cuda-logexp-global", "log/exp in global memory"),              \
      WEFT_CUDA_ROW(logexp_texture, "cuda-logexp-texture", "log/exp in texture memory"),           \
      WEFT_CUDA_ROW(logexp_constant, "cuda-logexp-constant", "log/exp in constant memory")

#include "kernels/cuda/storage_rows.h"

#define WEFT_CUDA_TENSOR_ROWS                                                                      \
  WEFT_CUDA_TENSOR_ROW(b1, "cuda-b1", "the quicker of the next two rows by the number of blocks",  \
                       90, 90),                                                                    \
      WEFT_CUDA_TENSOR_ROW(b1_wgmma, "cuda-b1-wgmma",                                              \
                           "8x8 bit matrices multiplied by binary tensor cores (wgmma, and.popc)", \
                           90, 90),                                                                \
      WEFT_CUDA_TENSOR_ROW(b1_wgmma_karatsuba, "cuda-b1-wgmma-karatsuba",                          \
                           "the same, three 4x4 bit matrices each (Karatsuba)", 90, 90),           \
      WEFT_CUDA_TENSOR_ROW(                                                                        \
          b1_mma, "cuda-b1-mma",                                                                   \
          "8x8 bit matrices multiplied by binary tensor cores (mma.sync, and.popc)", 80, 90)

// What table.c lists: a comma after each.
#define WEFT_CUDA_ROWS WEFT_CUDA_TENSOR_ROWS, WEFT_CUDA_TABLE_ROWS, WEFT_CUDA_STORAGE_ROWS,

#ifdef __cplusplus
}
#endif
#endif
