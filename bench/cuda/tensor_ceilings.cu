// SPDX-License-Identifier: Apache-2.0
// Measures what the units that the binary tensor rows rely on can do at most.
#include "bench/cuda/tensor_bench.h"

#include <algorithm>
#include <cuda_runtime.h>

#include "bench/cuda/check.cuh"
#include "kernels/cuda/tensor_ptx.cuh"

namespace {

enum { Bursts = 1000, Rounds = 2000, Reps = 9, Operands = 40960 };

[[maybe_unused]] __device__ void fill(uint32_t *words, uint32_t count) {
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    uint32_t x = (i + 1) * 2654435761u + blockIdx.x * 40503u;
    x ^= x >> 15;
    words[i] = x * 2246822519u;
  }
}

// Bursts of 4 steps, as for n = 128, on random operands that stay in shared memory.
__global__ void __launch_bounds__(256, 1) wgmma_kernel(uint32_t *out) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint8_t memory[];
  fill(reinterpret_cast<uint32_t *>(memory), Operands / 4);
  weft_fence_async_proxy();
  __syncthreads();
  const uint32_t a = weft_wgmma_operand(weft_shared_address(memory), 1024);
  const uint32_t b = weft_wgmma_operand(weft_shared_address(memory) + 8192, 4096);
  uint32_t d[128];
#pragma unroll
  for (int i = 0; i < 128; i++)
    d[i] = 0;
  weft_wgmma_fence();
#pragma unroll 1
  for (int burst = 0; burst < Bursts; burst++) {
#pragma unroll
    for (int step = 0; step < 4; step++)
      weft_wgmma_n256(d, weft_wgmma_descriptor(a + step * 128),
                      weft_wgmma_descriptor(b + step * 512), 1);
    weft_wgmma_commit();
  }
  weft_wgmma_wait<0>();
  weft_pin(d);
  uint32_t sum = 0;
#pragma unroll
  for (int i = 0; i < 128; i++)
    sum += d[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
#else
  (void)out;
#endif
}

__global__ void __launch_bounds__(512, 2) mma_kernel(uint32_t *out) {
  uint32_t d[8][4] = {}, operand[6];
  for (uint32_t i = 0; i < 6; i++)
    operand[i] = (threadIdx.x * 6 + i + 1) * 2654435761u;
#pragma unroll 1
  for (int round = 0; round < Rounds; round++)
#pragma unroll
    for (int i = 0; i < 8; i++)
      asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
                   "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                   : "+r"(d[i][0]), "+r"(d[i][1]), "+r"(d[i][2]), "+r"(d[i][3])
                   : "r"(operand[0]), "r"(operand[1]), "r"(operand[2]), "r"(operand[3]),
                     "r"(operand[4]), "r"(operand[5]));
  uint32_t sum = 0;
  for (int i = 0; i < 32; i++)
    sum += d[i / 4][i % 4];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Alternates LOP3 on the ALU pipe with IMAD on the other, as in the rows' epilogue.
__global__ void __launch_bounds__(512) epilogue_kernel(uint32_t *out, uint32_t x, uint32_t y) {
  uint32_t v[8];
  for (uint32_t i = 0; i < 8; i++)
    v[i] = threadIdx.x * (i + 1) + x;
#pragma unroll 1
  for (int round = 0; round < Rounds; round++)
#pragma unroll
    for (int i = 0; i < 32; i++) {
      if (i & 1)
        asm volatile("lop3.b32 %0, %0, %1, %2, 0x78;" : "+r"(v[i & 7]) : "r"(x), "r"(y));
      else
        asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(v[i & 7]) : "r"(x), "r"(y));
    }
  uint32_t sum = 0;
  for (int i = 0; i < 8; i++)
    sum += v[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void __launch_bounds__(512) copy_kernel(uint4 *to, const uint4 *from, size_t count) {
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    to[i] = from[i];
}

template <class Launch>
double median_s(cudaStream_t stream, Launch launch) {
  cudaEvent_t from, to;
  CHECK(cudaEventCreate(&from));
  CHECK(cudaEventCreate(&to));
  float ms[Reps];
  for (int i = -2; i < Reps; i++) {
    CHECK(cudaEventRecord(from, stream));
    launch();
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(to, stream));
    CHECK(cudaEventSynchronize(to));
    if (i >= 0)
      CHECK(cudaEventElapsedTime(&ms[i], from, to));
  }
  CHECK(cudaEventDestroy(from));
  CHECK(cudaEventDestroy(to));
  std::sort(ms, ms + Reps);
  return 1e-3 * static_cast<double>(ms[Reps / 2]);
}

} // namespace

static int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  CHECK(cudaGetDevice(&device));
  CHECK(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

double bench_tensor_queue_wgmma(void *stream, void *out, int launches) {
  if (attribute(cudaDevAttrComputeCapabilityMajor) != 9)
    return 0;
  const int sms = attribute(cudaDevAttrMultiProcessorCount);
  for (int i = 0; i < launches; i++)
    wgmma_kernel<<<sms, 256, Operands, static_cast<cudaStream_t>(stream)>>>(
        static_cast<uint32_t *>(out));
  CHECK(cudaGetLastError());
  return 2.0 * sms * Bursts * 4 * 64 * 256 * 256;
}

const char *bench_tensor_ceiling(void *stream_, int i, double *rate) {
  const cudaStream_t stream = static_cast<cudaStream_t>(stream_);
  const int sms = attribute(cudaDevAttrMultiProcessorCount);
  const int major = attribute(cudaDevAttrComputeCapabilityMajor);
  const size_t copied = static_cast<size_t>(2) << 30;
  uint8_t *memory;
  CHECK(cudaMalloc(&memory, 2 * copied));
  CHECK(cudaMemset(memory, 0x5a, 2 * copied));
  uint32_t *out = reinterpret_cast<uint32_t *>(memory);
  const char *name = "";
  *rate = 0;
  if (i == 0 && major == 9) {
    name = "b1 wgmma";
    double products = 0;
    const double seconds =
        median_s(stream, [&] { products = bench_tensor_queue_wgmma(stream, out, 1); });
    *rate = products / seconds;
  } else if (i == 1) {
    name = "b1 mma.sync";
    *rate = 32.0 * sms * Rounds * 8 * 16 * 8 * 256 /
            median_s(stream, [&] { mma_kernel<<<2 * sms, 512, 0, stream>>>(out); });
  } else if (i == 2) {
    name = "lop3 and imad";
    *rate = 4.0 * 512 * sms * Rounds * 32 / median_s(stream, [&] {
              epilogue_kernel<<<4 * sms, 512, 0, stream>>>(out, 0x1234567, 0x7654321);
            });
  } else if (i == 3) {
    name = "copy, read + write";
    *rate = 2.0 * static_cast<double>(copied) / median_s(stream, [&] {
              copy_kernel<<<16 * sms, 512, 0, stream>>>(reinterpret_cast<uint4 *>(memory),
                                                        reinterpret_cast<uint4 *>(memory + copied),
                                                        copied / 16);
            });
  }
  CHECK(cudaFree(memory));
  return name;
}
