// SPDX-License-Identifier: Apache-2.0
// The published techniques of storage coding on GPUs, as rows of the table. Those for packets
// multiply over GF(2^8) as cuda-nibble-prmt does, the one for bytes adds packets as all rows do.
#ifndef WEFT_KERNELS_CUDA_STORAGE_ROWS_H
#define WEFT_KERNELS_CUDA_STORAGE_ROWS_H

#define WEFT_CUDA_DECLARE_XORM(id)                                                                 \
  weft_status weft_cuda_##id##_xorm(const weft_backend *row, const weft_exec *exec,                \
                                    const weft_xorm *xorm);

WEFT_CUDA_DECLARE(gibraltar)
WEFT_CUDA_DECLARE_XORM(gmpe)
WEFT_CUDA_DECLARE_XORM(smpe)
WEFT_CUDA_DECLARE_XORM(gcrs_base)
WEFT_CUDA_DECLARE_XORM(gcrs_char)
WEFT_CUDA_DECLARE_XORM(gcrs_bitmatrix)
WEFT_CUDA_DECLARE_XORM(gcrs_access)
WEFT_CUDA_DECLARE_XORM(gcrs_bandwidth)
WEFT_CUDA_DECLARE_XORM(gcrs_full)
WEFT_CUDA_DECLARE_XORM(gcrs_no_bitmatrix)
WEFT_CUDA_DECLARE_XORM(gcrs_no_access)
WEFT_CUDA_DECLARE_XORM(gcrs_no_bandwidth)

#define WEFT_CUDA_PACKET_ROW(id, row_name, what)                                                   \
  {                                                                                                \
    .name = row_name, .technique = what, .sm_min = 80, .sm_max = 999, .mem = WEFT_MEM_DEVICE,      \
    .align = 8, .gemm = weft_cuda_nibble_prmt_gemm, .xorm = weft_cuda_##id##_xorm,                 \
    .invert = weft_cuda_invert, .prepare = weft_cuda_nibble_prmt_prepare,                          \
    .release = weft_cuda_release, .expand = weft_cuda_row_expand                                   \
  }

#define WEFT_CUDA_STORAGE_ROWS                                                                     \
  WEFT_CUDA_ROW(gibraltar, "cuda-gibraltar",                                                       \
                "log/exp in shared memory, compiled for each k and m (Curry et al., Gibraltar)"),  \
      WEFT_CUDA_PACKET_ROW(gcrs_full, "cuda-gcrs", "all of G-CRS (Liu et al.)"),                   \
      WEFT_CUDA_PACKET_ROW(gcrs_no_bitmatrix, "cuda-gcrs-no-bitmatrix",                            \
                           "G-CRS without its packed bit matrix"),                                 \
      WEFT_CUDA_PACKET_ROW(gcrs_no_access, "cuda-gcrs-no-access",                                  \
                           "G-CRS without its efficient access through shared memory"),            \
      WEFT_CUDA_PACKET_ROW(gcrs_no_bandwidth, "cuda-gcrs-no-bandwidth",                            \
                           "G-CRS reading data once for each parity shard"),                       \
      WEFT_CUDA_PACKET_ROW(gcrs_bitmatrix, "cuda-gcrs-bitmatrix",                                  \
                           "G-CRS Base and the packed bit matrix in constant memory"),             \
      WEFT_CUDA_PACKET_ROW(gcrs_access, "cuda-gcrs-access",                                        \
                           "G-CRS Base and access through shared memory"),                         \
      WEFT_CUDA_PACKET_ROW(gcrs_bandwidth, "cuda-gcrs-bandwidth",                                  \
                           "G-CRS Base, all parity shards from one reading"),                      \
      WEFT_CUDA_PACKET_ROW(gcrs_base, "cuda-gcrs-base",                                            \
                           "G-CRS Base: an int for each bit, global memory"),                      \
      WEFT_CUDA_PACKET_ROW(gcrs_char, "cuda-gcrs-char", "G-CRS Base with a char for each bit"),    \
      WEFT_CUDA_PACKET_ROW(                                                                        \
          smpe, "cuda-perasure-smpe",                                                              \
          "data in shared, bit matrix in constant memory (Chu et al., PErasure)"),                 \
      WEFT_CUDA_PACKET_ROW(gmpe, "cuda-perasure-gmpe",                                             \
                           "data and bit matrix by the texture path (Chu et al., PErasure)")

#endif
