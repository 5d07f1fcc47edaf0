// SPDX-License-Identifier: Apache-2.0
// Gibraltar (Curry, Ward, Skjellum, Brightwell): log/exp tables in shared memory, a kernel for each
// (k, m) compiled at run time, so that sums and loops are registers and straight lines. A thread
// has four bytes of every shard. Without NVRTC, or for products that are not storage's, the row's
// general kernel with tables in global memory.
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/batch.cuh"
#include "kernels/cuda/gf256.cuh"
#include "kernels/cuda/nvrtc.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/storage.h"

namespace {

enum { ShardsMax = 256, ProductsMax = 8192, Threads = 256, OutputsMax = 64 };

// As the source declares it.
struct Args {
  uint64_t rows[ShardsMax]; // k inputs, then m outputs
  uint64_t words;           // of four bytes
  uint32_t accumulate, unused;
  uint8_t log[ProductsMax]; // of the coefficients, (m, k); of 0: 255
};

struct Shape {
  uint32_t k, m;
};

const char source[] = R"(
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
struct Args { u64 rows[256]; u64 words; u32 accumulate, unused; u8 log[8192]; };
extern "C" __global__ void __launch_bounds__(256) weft_kernel(const __grid_constant__ Args args) {
  __shared__ u8 log_of[256], exp_of[512];
  if (threadIdx.x == 0) {
    u32 power = 1;
    for (u32 i = 0; i < 255; i++) {
      exp_of[i] = exp_of[i + 255] = (u8)power;
      log_of[power] = (u8)i;
      power = power << 1 ^ (power & 0x80 ? 0x11d : 0);
    }
  }
  __syncthreads();
  for (u64 at = (u64)blockIdx.x * 256 + threadIdx.x; at < args.words; at += (u64)gridDim.x * 256) {
    u32 out[M] = {};
#pragma unroll
    for (u32 j = 0; j < K; j++) {
      const u32 in = ((const u32 *)args.rows[j])[at];
#pragma unroll
      for (u32 b = 0; b < 4; b++) {
        const u32 x = in >> (8 * b) & 255;
        if (x == 0) continue;
        const u32 log = log_of[x];
#pragma unroll
        for (u32 i = 0; i < M; i++) {
          const u32 c = args.log[i * K + j];
          if (c != 255) out[i] ^= (u32)exp_of[c + log] << (8 * b);
        }
      }
    }
#pragma unroll
    for (u32 i = 0; i < M; i++) {
      u32 *to = (u32 *)args.rows[K + i] + at;
      *to = args.accumulate ? *to ^ out[i] : out[i];
    }
  }
}
)";

weft_status write_source(void *user, const weft_allocator *allocator, char **out) {
  const Shape *shape = static_cast<const Shape *>(user);
  const size_t room = sizeof source + 64;
  char *text = static_cast<char *>(allocator->alloc(allocator->user, room, 16));
  if (!text)
    return WEFT_E_NOMEM;
  snprintf(text, room, "#define K %uu\n#define M %uu\n%s", shape->k, shape->m, source);
  *out = text;
  return WEFT_OK;
}

bool suits(const weft_gemm &gemm) {
  return !gemm.x_prepared && gemm.a_mem != WEFT_MEM_DEVICE && gemm.k && gemm.m <= OutputsMax &&
         gemm.k + gemm.m <= ShardsMax && gemm.k * gemm.m <= ProductsMax && gemm.len % 4 == 0 &&
         gemm.x.mem != WEFT_MEM_HOST && gemm.y.mem != WEFT_MEM_HOST &&
         weft_storage_address_bits(gemm.x, gemm.k, gemm.y, gemm.m) % 4 == 0;
}

weft_status run(const weft_exec *exec, const weft_gemm &gemm) {
  static constexpr weft_cuda_tables tables = weft_cuda_make_tables();
  if (!suits(gemm))
    return WEFT_E_UNSUPPORTED;
  if (!gemm.m || !gemm.len)
    return WEFT_OK;
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  struct {
    char name[16];
    Shape shape;
  } key = {"gibraltar", {static_cast<uint32_t>(gemm.k), static_cast<uint32_t>(gemm.m)}};
  weft_kernel_want want = {};
  want.key = &key;
  want.key_bytes = sizeof key;
  want.source = write_source;
  want.user = &key.shape;
  want.now = true;
  weft_held_kernel held(exec->device);
  WEFT_TRY(weft_device_kernel(exec->device, &want, &held.kernel));
  if (!held.kernel)
    return WEFT_E_UNSUPPORTED;
  Args args = {};
  for (size_t j = 0; j < gemm.k; j++)
    args.rows[j] = reinterpret_cast<uint64_t>(weft_const_row(&gemm.x, j));
  for (size_t i = 0; i < gemm.m; i++) {
    args.rows[gemm.k + i] = reinterpret_cast<uint64_t>(weft_row(&gemm.y, i));
    for (size_t j = 0; j < gemm.k; j++)
      args.log[i * gemm.k + j] = tables.log[gemm.a[i * gemm.a_stride + j]];
  }
  args.words = gemm.len / 4;
  args.accumulate = gemm.accumulate;
  const uint64_t blocks = (args.words + Threads - 1) / Threads;
  const uint64_t most = 16ull * static_cast<uint64_t>(weft_device_get_shape(exec->device)->sms);
  void *list[] = {&args};
  return WEFT_CUDA(cudaLaunchKernel(static_cast<const void *>(held.kernel),
                                    dim3(static_cast<unsigned>(blocks < most ? blocks : most)),
                                    dim3(Threads), list, 0, weft_cuda_stream(exec)));
}

} // namespace

extern "C" weft_status weft_cuda_gibraltar_gemm(const weft_backend *row, const weft_exec *exec,
                                                const weft_gemm *gemms, size_t count) {
  for (size_t i = 0; i < count; i++) {
    weft_status status = run(exec, gemms[i]);
    if (status == WEFT_E_UNSUPPORTED)
      status = weft_cuda_logexp_global_gemm(row, exec, &gemms[i], 1);
    WEFT_TRY(status);
  }
  return WEFT_OK;
}

extern "C" weft_status weft_cuda_gibraltar_prepare(const weft_backend *row, const weft_exec *exec,
                                                   size_t k, size_t len, const weft_const_rows *x,
                                                   weft_operand **out) {
  return weft_cuda_logexp_global_prepare(row, exec, k, len, x, out);
}
