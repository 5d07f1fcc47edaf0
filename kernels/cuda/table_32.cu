// SPDX-License-Identifier: Apache-2.0
// cuda-table-32: 32 word-wide copies of exp, one bank per lane, so that lookups never conflict: 128
// KiB that the paper's hardware did not have. Limited by one lookup per bank and clock.
#include "kernels/cuda/log_domain.cuh"
#include "kernels/cuda/rows.h"

typedef weft_cuda_log_domain<weft_cuda_word_copies<32>> Policy;
static_assert(weft_cuda_product_bytes<Policy>() == WEFT_CUDA_TABLE_32_BYTES, "what rows.h says");

WEFT_CUDA_TABLE_ROW(table_32, Policy, false, weft_cuda_pack_launch<Policy::Layout>, WEFT_OK)
