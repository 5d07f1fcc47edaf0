// SPDX-License-Identifier: Apache-2.0
// What memory traffic alone costs an encoder: of a stripe of k + m rows, the first k are read and
// the others written, with one XOR per word read.
#include "bench/cuda/table_bench.h"

#include <cuda_runtime.h>
#include <stdint.h>

namespace {

enum { Threads = 256, AtOnce = 4 }; // 16-byte loads of a thread in flight

__device__ __forceinline__ void add(uint4 *sum, uint4 word) {
  sum->x ^= word.x;
  sum->y ^= word.y;
  sum->z ^= word.z;
  sum->w ^= word.w;
}

// A block takes `Words` times 4 KiB of every row of a stripe: more if rows are few, to keep enough
// loads in flight. Blocks of one stripe follow each other.
template <int Words>
__global__ void __launch_bounds__(Threads, Words == 1 ? 8 : 4)
    mix_kernel(uint4 *rows, size_t row_words, unsigned k, unsigned m) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  const size_t at = static_cast<size_t>(blockIdx.x) * Threads * Words + threadIdx.x;
  uint4 *x = rows + static_cast<size_t>(blockIdx.y) * (k + m) * row_words + at;
  // The sums must not end up as 0, whatever other cases left in these rows.
  const uint32_t seed = static_cast<uint32_t>(at) * 0x9e3779b9u + blockIdx.y;
  uint4 sum[Words];
#pragma unroll
  for (int w = 0; w < Words; w++)
    sum[w] = make_uint4(seed, seed + w, ~seed, seed ^ w);
  for (unsigned i = 0; i < k; i += AtOnce / Words, x += AtOnce / Words * row_words) {
    uint4 word[AtOnce] = {};
#pragma unroll
    for (int j = 0; j < AtOnce; j++)
      if (i + j / Words < k)
        word[j] = x[j / Words * row_words + j % Words * Threads];
#pragma unroll
    for (int j = 0; j < AtOnce; j++)
      add(&sum[j % Words], word[j]);
  }
  x = rows + (static_cast<size_t>(blockIdx.y) * (k + m) + k) * row_words + at;
  for (unsigned i = 0; i < m; i++, x += row_words)
#pragma unroll
    for (int w = 0; w < Words; w++)
      x[w * Threads] = sum[w];
#pragma unroll
  for (int w = 0; w < Words; w++)
    if (m == 0 && (sum[w].x & sum[w].y & sum[w].z & sum[w].w) == ~0u) // practically never
      rows[at] = sum[w];
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

template <int Words>
int launch_words(void *stream, const bench_mix *mix, unsigned first, dim3 grid, unsigned early) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  const size_t row_words = mix->bytes / sizeof(uint4);
  cudaLaunchConfig_t config = {};
  grid.x = static_cast<unsigned>(row_words / (Threads * Words));
  config.gridDim = grid;
  config.blockDim = dim3(Threads);
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &attribute;
  config.numAttrs = early;
  uint4 *rows = static_cast<uint4 *>(mix->rows) + first * (mix->k + mix->m) * row_words;
  return cudaLaunchKernelEx(&config, mix_kernel<Words>, rows, row_words, mix->k, mix->m) ==
         cudaSuccess;
}

int launch(void *stream, const bench_mix *mix, unsigned first, dim3 grid, unsigned early) {
  return mix->k < 2   ? launch_words<4>(stream, mix, first, grid, early)
         : mix->k < 4 ? launch_words<2>(stream, mix, first, grid, early)
                      : launch_words<1>(stream, mix, first, grid, early);
}

} // namespace

extern "C" int bench_mix_all(void *stream, const bench_mix *mix, unsigned passes) {
  return launch(stream, mix, 0, dim3(1, mix->stripes, passes), 0);
}

extern "C" int bench_mix_one(void *stream, const bench_mix *mix, unsigned i) {
  return launch(stream, mix, i % mix->stripes, dim3(1), 1);
}
