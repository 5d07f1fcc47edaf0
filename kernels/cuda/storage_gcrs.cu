// SPDX-License-Identifier: Apache-2.0
// G-CRS (Liu, Wang, Chu, Leung): its kernel with each of its three optimisations there or not, so
// that its ladder and its Figure 14 can be run. A thread makes the word of one output packet.
//   Bitmatrix        the bit matrix as columns of 32-bit words in constant memory, applied by a
//                    mask; without: an int (or char) for each bit in global memory, and a branch
//   EfficientAccess  a block brings the words of its groups to shared memory, each once; without:
//                    every thread reads the w words of its group from global memory
//   Bandwidth        a thread makes that word of all m parity shards from one reading of the data;
//                    without: of one shard, so that data is read m times
#include "kernels/cuda/batch.cuh"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/storage_packets.cuh"

namespace {

enum { Threads = WEFT_PACKETS_THREADS, ColumnWords = 6144, OutputsAtOnce = 16 };

enum Form { Ints, Chars, Packed };

struct Args {
  weft_packets packets;
  const void *bits; // Ints, Chars: (m * w, k * w) in global memory
  uint32_t column_words;
  uint32_t
      columns[ColumnWords]; // Packed: (k * w, column_words): bit r % 32 of word r / 32 is row r
};

template <int F>
__device__ __forceinline__ uint64_t chosen(const Args &args, uint32_t row, uint32_t column,
                                           uint64_t value) {
  if (F == Packed) {
    const uint32_t word = args.columns[column * args.column_words + row / 32];
    return value & (0 - static_cast<uint64_t>(word >> (row % 32) & 1));
  }
  const uint32_t columns = args.packets.k * args.packets.w;
  const size_t at = static_cast<size_t>(row) * columns + column;
  const bool one = F == Ints ? static_cast<const int *>(args.bits)[at]
                             : static_cast<const char *>(args.bits)[at];
  if (one)
    return value;
  return 0;
}

// Without EfficientAccess.
template <int F, bool All>
__global__ void __launch_bounds__(Threads) direct_kernel(const __grid_constant__ Args args) {
  const weft_packets &p = args.packets;
  const uint64_t at = static_cast<uint64_t>(blockIdx.x) * Threads + threadIdx.x;
  if (at >= p.total)
    return;
  const weft_packet_place place = weft_packet_place_of(p, at);
  for (uint32_t i0 = All ? 0 : blockIdx.y; i0 < p.m; i0 += All ? OutputsAtOnce : gridDim.y) {
    uint64_t sum[All ? OutputsAtOnce : 1] = {};
    const uint32_t some = All ? min(p.m - i0, static_cast<uint32_t>(OutputsAtOnce)) : 1;
    for (uint32_t j = 0; j < p.k; j++)
      for (uint32_t c = 0; c < p.w; c++) {
        const uint64_t value = p.x[j][place.first + c * p.words];
#pragma unroll
        for (uint32_t i = 0; i < (All ? OutputsAtOnce : 1); i++)
          if (i < some)
            sum[i] ^= chosen<F>(args, (i0 + i) * p.w + place.l, j * p.w + c, value);
      }
#pragma unroll
    for (uint32_t i = 0; i < (All ? OutputsAtOnce : 1); i++)
      if (i < some)
        weft_packet_put(p, i0 + i, at, sum[i]);
  }
}

// With it; packets of one word, so that the words of whole groups are neighbours. A block has
// Threads / w groups.
template <int F, bool All>
__global__ void __launch_bounds__(Threads) shared_kernel(const __grid_constant__ Args args) {
  __shared__ uint64_t words[2][Threads];
  const weft_packets &p = args.packets;
  const uint32_t used = Threads / p.w * p.w, tid = threadIdx.x;
  const uint64_t at = static_cast<uint64_t>(blockIdx.x) * used + tid;
  const bool active = tid < used && at < p.total;
  const uint32_t l = tid % p.w, group = tid - l;
  for (uint32_t i0 = All ? 0 : blockIdx.y; i0 < p.m; i0 += All ? OutputsAtOnce : gridDim.y) {
    uint64_t sum[All ? OutputsAtOnce : 1] = {};
    const uint32_t some = All ? min(p.m - i0, static_cast<uint32_t>(OutputsAtOnce)) : 1;
    uint64_t next = active && p.k ? p.x[0][at] : 0;
    for (uint32_t j = 0; j < p.k; j++) {
      uint64_t *const here = words[j & 1];
      here[tid] = next;
      if (active && j + 1 < p.k)
        next = p.x[j + 1][at];
      __syncthreads();
      for (uint32_t c = 0; c < p.w; c++) {
        const uint64_t value = here[min(group + c, Threads - 1u)];
#pragma unroll
        for (uint32_t i = 0; i < (All ? OutputsAtOnce : 1); i++)
          if (i < some)
            sum[i] ^= chosen<F>(args, (i0 + i) * p.w + l, j * p.w + c, value);
      }
    }
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < (All ? OutputsAtOnce : 1); i++)
      if (i < some && active)
        weft_packet_put(p, i0 + i, at, sum[i]);
  }
}

template <int F, bool Shared, bool All>
weft_status launch(const weft_exec *exec, const Args &args) {
  const weft_packets &p = args.packets;
  const uint64_t used = Shared ? Threads / p.w * p.w : uint64_t{Threads};
  const uint64_t blocks = (p.total + used - 1) / used;
  if (blocks > INT32_MAX)
    return WEFT_E_ARGUMENT;
  const dim3 grid(static_cast<unsigned>(blocks), All ? 1 : p.m);
  if (Shared)
    shared_kernel<F, All><<<grid, Threads, 0, weft_cuda_stream(exec)>>>(args);
  else
    direct_kernel<F, All><<<grid, Threads, 0, weft_cuda_stream(exec)>>>(args);
  return WEFT_CUDA_LAUNCHED();
}

weft_status pack_columns(const weft_xorm &xorm, Args *args) {
  const size_t rows = xorm.m * xorm.w, columns = xorm.k * xorm.w, words = (rows + 31) / 32;
  if (columns * words > ColumnWords)
    return WEFT_E_UNSUPPORTED; // more than the constant memory of a launch
  args->column_words = static_cast<uint32_t>(words);
  for (size_t i = 0; i < columns * words; i++)
    args->columns[i] = 0;
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < columns; c++)
      args->columns[c * words + r / 32] |= (xorm.bits[r * xorm.bits_stride + c] & 1u) << (r % 32);
  return WEFT_OK;
}

// The matrix as a number for each bit, in device scratch.
template <class Number>
weft_status send_numbers(const weft_exec *exec, const weft_xorm &xorm, weft_scratch *scratch) {
  const size_t rows = xorm.m * xorm.w, columns = xorm.k * xorm.w;
  const size_t bytes = rows * columns * sizeof(Number);
  const weft_allocator *allocator = exec->allocator;
  Number *numbers =
      static_cast<Number *>(allocator->alloc(allocator->user, bytes ? bytes : 1, alignof(Number)));
  if (!numbers)
    return WEFT_E_NOMEM;
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < columns; c++)
      numbers[r * columns + c] = static_cast<Number>(xorm.bits[r * xorm.bits_stride + c] & 1u);
  weft_status status = scratch->alloc(bytes);
  if (status == WEFT_OK)
    status = weft_cuda_upload(exec, scratch->as<void>(), numbers, bytes);
  allocator->free(allocator->user, numbers);
  return status;
}

template <int F, bool Shared, bool All>
weft_status run(const weft_exec *exec, const weft_xorm *xorm) {
  Args args;
  WEFT_TRY(weft_packets_of(xorm, &args.packets));
  if (xorm->m == 0 || xorm->len == 0)
    return WEFT_OK;
  if (Shared && args.packets.words != 1)
    return WEFT_E_UNSUPPORTED; // its layout has packets of 8 bytes
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  weft_scratch scratch(exec);
  args.bits = nullptr;
  args.column_words = 0;
  if (F == Packed)
    WEFT_TRY(pack_columns(*xorm, &args));
  else if (F == Ints)
    WEFT_TRY(send_numbers<int>(exec, *xorm, &scratch));
  else
    WEFT_TRY(send_numbers<char>(exec, *xorm, &scratch));
  args.bits = scratch.as<const void>();
  return launch<F, Shared, All>(exec, args);
}

} // namespace

#define GCRS(id, form, shared, all)                                                                \
  extern "C" weft_status weft_cuda_gcrs_##id##_xorm(                                               \
      const weft_backend *row, const weft_exec *exec, const weft_xorm *xorm) {                     \
    (void)row;                                                                                     \
    return run<form, shared, all>(exec, xorm);                                                     \
  }

GCRS(base, Ints, false, false)
GCRS(char, Chars, false, false)
GCRS(bitmatrix, Packed, false, false)
GCRS(access, Ints, true, false)
GCRS(bandwidth, Ints, false, true)
GCRS(full, Packed, true, true)
GCRS(no_bitmatrix, Ints, true, true)
GCRS(no_access, Packed, false, true)
GCRS(no_bandwidth, Packed, true, false)
