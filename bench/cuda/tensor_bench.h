// SPDX-License-Identifier: Apache-2.0
// Ceilings of the binary tensor rows, measured beside them.
#ifndef WEFT_BENCH_CUDA_TENSOR_BENCH_H
#define WEFT_BENCH_CUDA_TENSOR_BENCH_H

#ifdef __cplusplus
extern "C" {
#endif

enum { BENCH_TENSOR_CEILINGS = 4 };
// Runs ceiling number i: its name, and multiply-accumulates of bits, or bytes, per second.
const char *bench_tensor_ceiling(void *stream, int i, double *rate);

#ifdef __cplusplus
}
#endif
#endif
