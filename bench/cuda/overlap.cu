// SPDX-License-Identifier: Apache-2.0
// How far arithmetic hides behind memory accesses (G-CRS's rho): words are read and written with r
// dependent LOP3s on each; measured with memory alone, arithmetic alone, and both.
#include "bench/cuda/table_bench.h"

#include <cuda_runtime.h>
#include <stdint.h>

namespace {

enum { Threads = 256, BlocksPerSm = 8 };

__global__ void __launch_bounds__(Threads)
    overlap_kernel(const uint4 *from, uint4 *to, size_t words, int rounds, uint32_t a, bool keep) {
  const size_t step = static_cast<size_t>(gridDim.x) * Threads;
  for (size_t at = static_cast<size_t>(blockIdx.x) * Threads + threadIdx.x; at < words;
       at += step) {
    const uint32_t seed = static_cast<uint32_t>(at);
    uint4 v = keep ? from[at] : make_uint4(seed, seed + a, seed ^ a, ~seed);
#pragma unroll 4
    for (int i = 0; i < rounds; i++) {
      asm volatile("lop3.b32 %0, %0, %1, %2, 0x6a;" : "+r"(v.x) : "r"(a), "r"(v.y));
      asm volatile("lop3.b32 %0, %0, %1, %2, 0x6a;" : "+r"(v.y) : "r"(a), "r"(v.z));
      asm volatile("lop3.b32 %0, %0, %1, %2, 0x6a;" : "+r"(v.z) : "r"(a), "r"(v.w));
      asm volatile("lop3.b32 %0, %0, %1, %2, 0x6a;" : "+r"(v.w) : "r"(a), "r"(v.x));
    }
    if (keep || (v.x ^ v.y ^ v.z ^ v.w) == a) // without memory, practically never
      to[at] = v;
  }
}

} // namespace

extern "C" int bench_overlap(void *stream, const void *from, void *to, size_t bytes, int rounds,
                             int memory) {
  int device = 0, sms = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  overlap_kernel<<<sms * BlocksPerSm, Threads, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<const uint4 *>(from), static_cast<uint4 *>(to), bytes / sizeof(uint4), rounds,
      0x9e3779b9u, memory != 0);
  return cudaGetLastError() == cudaSuccess;
}
