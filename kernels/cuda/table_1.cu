// SPDX-License-Identifier: Apache-2.0
// cuda-table-1: every byte of the segment is tested for zero; log-domain segment and coefficients,
// one persistent block per multiprocessor.
#include "kernels/cuda/zero_test.cuh"

typedef weft_cuda_zero_test<false> Policy;

WEFT_CUDA_TABLE_ROW(table_1, Policy, false, weft_cuda_pack_launch<Policy::Layout>, WEFT_OK)
