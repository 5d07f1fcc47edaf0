// SPDX-License-Identifier: Apache-2.0
// cuda-table-2: one test per word of four bytes skips the tests of words without zeros.
// Random data has a zero in some word of 39 % of the warps, which then take both ways.
#include "kernels/cuda/zero_test.cuh"

typedef weft_cuda_zero_test<true> Policy;

WEFT_CUDA_TABLE_ROW(table_2, Policy, false, weft_cuda_pack_launch<Policy::Layout>, WEFT_OK)
