// SPDX-License-Identifier: Apache-2.0
// Ceilings of the binary tensor rows, measured together with them.
#ifndef WEFT_BENCH_CUDA_TENSOR_BENCH_H
#define WEFT_BENCH_CUDA_TENSOR_BENCH_H

#ifdef __cplusplus
extern "C" {
#endif

enum { BENCH_TENSOR_CEILINGS = 4 };
// Runs ceiling number i; returns its name, and its rate in bit multiply-accumulates, or bytes, per
// second.
const char *bench_tensor_ceiling(void *stream, int i, double *rate);
// Queues `launches` launches of ceiling 0, wgmma on bits, for a caller that times it among other
// work. Returns the bit products of one launch; 0: the device has no wgmma, and nothing was queued.
// `out`: device memory, 4 bytes for each of 256 threads per multiprocessor.
double bench_tensor_queue_wgmma(void *stream, void *out, int launches);

#ifdef __cplusplus
}
#endif
#endif
