// SPDX-License-Identifier: Apache-2.0
// cuda-table-5: eight word-wide copies of exp in shared memory, as the paper's best. With 32 banks
// four lanes share the four banks of a copy and still meet, where 16 banks left two lanes on two.
#include "kernels/cuda/log_domain.cuh"

typedef weft_cuda_log_domain<weft_cuda_word_copies<8>> Policy;

WEFT_CUDA_TABLE_ROW(table_5, Policy, false, weft_cuda_pack_launch<Policy::Layout>, WEFT_OK)
