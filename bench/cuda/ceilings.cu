// SPDX-License-Identifier: Apache-2.0
// Measures what the units that the table techniques rely on can do at most.
#include "bench/cuda/table_bench.h"

#include <algorithm>
#include <cuda_runtime.h>
#include <stdint.h>

#include "bench/cuda/check.cuh"

enum { Threads = 1024, Rounds = 512, Chains = 8 };

// Looks up one word per lane, each lane in its own bank. The index does not depend on any result,
// so this measures throughput, not latency.
__global__ void __launch_bounds__(Threads) shared_kernel(uint32_t *out, uint32_t seed) {
  __shared__ uint32_t table[32 * 256];
  for (uint32_t i = threadIdx.x; i < 32 * 256; i += Threads)
    table[i] = i * seed;
  __syncthreads();
  const uint32_t base = static_cast<uint32_t>(__cvta_generic_to_shared(table));
  uint32_t at = base + threadIdx.x % 32 * 4, sum[Chains] = {};
  for (int round = 0; round < Rounds; round++) {
#pragma unroll
    for (int i = 0; i < Chains; i++) {
      uint32_t value;
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(at + 128 * i));
      sum[i] ^= value;
    }
    at = base + ((at - base + 1024) & 0x3fff);
  }
  uint32_t all = 0;
  for (int i = 0; i < Chains; i++)
    all ^= sum[i];
  out[blockIdx.x * Threads + threadIdx.x] = all;
}

template <bool PRMT>
__global__ void __launch_bounds__(Threads) alu_kernel(uint32_t *out, uint32_t a, uint32_t b) {
  uint32_t x[Chains];
  for (int i = 0; i < Chains; i++)
    x[i] = threadIdx.x + i * a;
#pragma unroll 8
  for (int round = 0; round < Rounds; round++) {
#pragma unroll
    for (int i = 0; i < Chains; i++)
      if (PRMT)
        asm volatile("prmt.b32 %0, %0, %1, %2;" : "+r"(x[i]) : "r"(a), "r"(b));
      else
        asm volatile("lop3.b32 %0, %0, %1, %2, 0x6a;" : "+r"(x[i]) : "r"(a), "r"(b));
  }
  uint32_t all = 0;
  for (int i = 0; i < Chains; i++)
    all ^= x[i];
  out[blockIdx.x * Threads + threadIdx.x] = all;
}

__global__ void __launch_bounds__(Threads)
    texture_kernel(uint32_t *out, cudaTextureObject_t texture, uint32_t seed) {
  uint32_t at = threadIdx.x * seed, sum = 0;
  for (int round = 0; round < Rounds; round++) {
#pragma unroll
    for (int i = 0; i < Chains; i++)
      sum ^= tex1Dfetch<unsigned char>(texture, static_cast<int>((at >> (2 * i)) & 511));
    at = at * 1664525u + 1013904223u;
  }
  out[blockIdx.x * Threads + threadIdx.x] = sum;
}

__global__ void __launch_bounds__(Threads)
    global_kernel(uint32_t *out, const uint8_t *__restrict__ table, uint32_t seed) {
  uint32_t at = threadIdx.x * seed, sum = 0;
  for (int round = 0; round < Rounds; round++) {
#pragma unroll
    for (int i = 0; i < Chains; i++)
      sum ^= __ldg(table + ((at >> (2 * i)) & 511));
    at = at * 1664525u + 1013904223u;
  }
  out[blockIdx.x * Threads + threadIdx.x] = sum;
}

bench_timing bench_time(void *stream, int reps, void (*call)(void *user), void *user) {
  cudaStream_t s = static_cast<cudaStream_t>(stream);
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  double seconds[BENCH_REPS_MAX];
  for (int i = -1; i < reps; i++) {
    CHECK(cudaEventRecord(begin, s));
    call(user);
    CHECK(cudaEventRecord(end, s));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaGetLastError());
    float ms;
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    if (i >= 0)
      seconds[i] = ms * 1e-3;
  }
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  std::sort(seconds, seconds + reps);
  return {seconds[reps / 2], seconds[0], seconds[reps - 1]};
}

int bench_multiprocessors(void) {
  int device, count;
  CHECK(cudaGetDevice(&device));
  CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

namespace {
struct Ceiling {
  int which, sms;
  cudaStream_t stream;
  uint32_t *out;
  uint8_t *from, *to, *table;
  size_t bytes;
  cudaTextureObject_t texture;
};

void run(void *user) {
  const Ceiling *c = static_cast<const Ceiling *>(user);
  const int grid = 2 * c->sms * 8;
  if (c->which == 0)
    shared_kernel<<<grid, Threads, 0, c->stream>>>(c->out, 3);
  else if (c->which == 1)
    alu_kernel<false><<<grid, Threads, 0, c->stream>>>(c->out, 0x1234567, 0x89abcdef);
  else if (c->which == 2)
    alu_kernel<true><<<grid, Threads, 0, c->stream>>>(c->out, 0x1234567, 0x5301);
  else if (c->which == 3)
    texture_kernel<<<grid, Threads, 0, c->stream>>>(c->out, c->texture, 2654435761u);
  else if (c->which == 4)
    global_kernel<<<grid, Threads, 0, c->stream>>>(c->out, c->table, 2654435761u);
  else
    CHECK(cudaMemcpyAsync(c->to, c->from, c->bytes, cudaMemcpyDeviceToDevice, c->stream));
}
} // namespace

const char *bench_ceiling(void *stream, int i, double *rate) {
  static const char *const names[BENCH_CEILINGS] = {
      "shared_lookups_conflict_free", "lop3_lane_ops",  "prmt_lane_ops", "texture_lookups",
      "global_lookups_cached",        "dram_copy_bytes"};
  Ceiling c = {};
  c.which = i;
  c.stream = static_cast<cudaStream_t>(stream);
  c.sms = bench_multiprocessors();
  c.bytes = size_t{1} << 30;
  const size_t lanes = static_cast<size_t>(16) * c.sms * Threads;
  CHECK(cudaMalloc(&c.out, 4 * lanes));
  CHECK(cudaMalloc(&c.from, i == 5 ? c.bytes : 1024));
  CHECK(cudaMalloc(&c.to, i == 5 ? c.bytes : 1024));
  c.table = c.from;
  CHECK(cudaMemset(c.from, 0x5a, i == 5 ? c.bytes : 1024));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = c.from;
  resource.res.linear.desc = cudaCreateChannelDesc<unsigned char>();
  resource.res.linear.sizeInBytes = 1024;
  cudaTextureDesc description = {};
  CHECK(cudaCreateTextureObject(&c.texture, &resource, &description, nullptr));
  const bench_timing t = bench_time(stream, 9, run, &c);
  *rate =
      (i == 5 ? 2.0 * static_cast<double>(c.bytes) : static_cast<double>(lanes) * Rounds * Chains) /
      t.median_s;
  CHECK(cudaDestroyTextureObject(c.texture));
  CHECK(cudaFree(c.out));
  CHECK(cudaFree(c.from));
  CHECK(cudaFree(c.to));
  return names[i];
}
