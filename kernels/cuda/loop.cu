// SPDX-License-Identifier: Apache-2.0
// cuda-loop: the loop-based product of the paper, over 0x11D. Limited by the ALU.
#include "kernels/cuda/loop.cuh"

WEFT_CUDA_TABLE_ROW(loop, weft_cuda_loop, true, weft_cuda_pack_raw, WEFT_OK)
