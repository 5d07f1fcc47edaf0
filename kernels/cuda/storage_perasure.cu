// SPDX-License-Identifier: Apache-2.0
// PErasure (Chu, Liu, Ouyang et al.): its two kernels. A thread makes one 8-byte word of one packet
// of one parity shard.
//   GMPE  data and bit matrix through the texture path (on today's chips the read-only loads of the
//         first cache; texture references are gone), any k * m
//   SMPE  data in shared memory, the bit matrix as a byte for each bit in constant memory, which
//         bounds k * m
#include "kernels/cuda/batch.cuh"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/storage_packets.cuh"

namespace {

enum { Threads = WEFT_PACKETS_THREADS, ConstantBytes = 24576 };

struct GlobalArgs {
  weft_packets packets;
  const uint8_t *bits; // (m * w, k * w) in global memory
};

struct SharedArgs {
  weft_packets packets;
  uint8_t bits[ConstantBytes];
};

__global__ void __launch_bounds__(Threads) gmpe_kernel(const __grid_constant__ GlobalArgs args) {
  const weft_packets &p = args.packets;
  const uint64_t at = static_cast<uint64_t>(blockIdx.x) * Threads + threadIdx.x;
  if (at >= p.total)
    return;
  const weft_packet_place place = weft_packet_place_of(p, at);
  const uint32_t columns = p.k * p.w;
  for (uint32_t i = blockIdx.y; i < p.m; i += gridDim.y) {
    const uint8_t *row = args.bits + (static_cast<size_t>(i) * p.w + place.l) * columns;
    uint64_t sum = 0;
    for (uint32_t j = 0; j < p.k; j++)
      for (uint32_t c = 0; c < p.w; c++)
        if (__ldg(row + j * p.w + c))
          sum ^= __ldg(reinterpret_cast<const unsigned long long *>(p.x[j]) + place.first +
                       c * p.words);
    weft_packet_put(p, i, at, sum);
  }
}

// A block has words [first, first + span) of the w packets of one group, or, where packets are
// short, whole groups: `span` words of each packet lie in shared memory, packet after packet.
__global__ void __launch_bounds__(Threads) smpe_kernel(const __grid_constant__ SharedArgs args) {
  __shared__ uint64_t words[Threads];
  const weft_packets &p = args.packets;
  const uint32_t columns = p.k * p.w, per_group = p.w * p.words, tid = threadIdx.x;
  const bool short_groups = per_group <= Threads;
  const uint32_t span = short_groups ? 0 : Threads / p.w; // words of each packet
  uint64_t at;
  uint32_t l, packet_step, first; // first: shared word of packet 0 of this thread
  bool active;
  if (short_groups) {
    const uint32_t used = Threads / per_group * per_group;
    at = static_cast<uint64_t>(blockIdx.x) * used + tid;
    l = tid % per_group / p.words;
    packet_step = p.words;
    first = tid - l * p.words;
    active = tid < used && at < p.total;
  } else {
    const uint32_t parts = (p.words + span - 1) / span;
    const uint64_t group = blockIdx.x / parts;
    const uint32_t word = blockIdx.x % parts * span + tid % span;
    l = tid / span;
    at = (group * p.w + l) * p.words + word;
    packet_step = span;
    first = tid % span;
    active = l < p.w && word < p.words;
  }
  for (uint32_t i = blockIdx.y; i < p.m; i += gridDim.y) {
    const uint8_t *row = args.bits + (active ? i * p.w + l : 0) * columns;
    uint64_t sum = 0;
    for (uint32_t j = 0; j < p.k; j++) {
      __syncthreads();
      words[tid] = active ? p.x[j][at] : 0;
      __syncthreads();
      for (uint32_t c = 0; active && c < p.w; c++)
        if (row[j * p.w + c])
          sum ^= words[first + c * packet_step];
    }
    if (active)
      weft_packet_put(p, i, at, sum);
  }
}

weft_status gmpe(const weft_exec *exec, const weft_xorm *xorm) {
  GlobalArgs args;
  WEFT_TRY(weft_packets_of(xorm, &args.packets));
  if (xorm->m == 0 || xorm->len == 0)
    return WEFT_OK;
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  weft_scratch scratch(exec);
  const size_t rows = xorm->m * xorm->w, columns = xorm->k * xorm->w;
  WEFT_TRY(scratch.alloc(rows * columns));
  if (xorm->bits_stride == columns) {
    WEFT_TRY(weft_cuda_upload(exec, scratch.as<void>(), xorm->bits, rows * columns));
  } else {
    for (size_t r = 0; r < rows; r++)
      WEFT_CUDA_TRY(cudaMemcpyAsync(scratch.as<uint8_t>() + r * columns,
                                    xorm->bits + r * xorm->bits_stride, columns,
                                    cudaMemcpyHostToDevice, weft_cuda_stream(exec)));
  }
  args.bits = scratch.as<const uint8_t>();
  const uint64_t blocks = (args.packets.total + Threads - 1) / Threads;
  if (blocks > INT32_MAX)
    return WEFT_E_ARGUMENT;
  gmpe_kernel<<<dim3(static_cast<unsigned>(blocks), args.packets.m), Threads, 0,
                weft_cuda_stream(exec)>>>(args);
  return WEFT_CUDA_LAUNCHED();
}

weft_status smpe(const weft_exec *exec, const weft_xorm *xorm) {
  SharedArgs args;
  WEFT_TRY(weft_packets_of(xorm, &args.packets));
  if (xorm->m == 0 || xorm->len == 0)
    return WEFT_OK;
  const size_t rows = xorm->m * xorm->w, columns = xorm->k * xorm->w;
  if (rows * columns > ConstantBytes)
    return WEFT_E_UNSUPPORTED; // beyond its k * m
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < columns; c++)
      args.bits[r * columns + c] = xorm->bits[r * xorm->bits_stride + c] & 1u;
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  const uint64_t per_group = args.packets.w * args.packets.words;
  uint64_t blocks;
  if (per_group <= Threads) {
    const uint64_t used = Threads / per_group * per_group;
    blocks = (args.packets.total + used - 1) / used;
  } else {
    const uint64_t span = Threads / args.packets.w;
    blocks = args.packets.total / per_group * ((args.packets.words + span - 1) / span);
  }
  if (blocks > INT32_MAX)
    return WEFT_E_ARGUMENT;
  smpe_kernel<<<dim3(static_cast<unsigned>(blocks), args.packets.m), Threads, 0,
                weft_cuda_stream(exec)>>>(args);
  return WEFT_CUDA_LAUNCHED();
}

} // namespace

extern "C" weft_status weft_cuda_gmpe_xorm(const weft_backend *row, const weft_exec *exec,
                                           const weft_xorm *xorm) {
  (void)row;
  return gmpe(exec, xorm);
}

extern "C" weft_status weft_cuda_smpe_xorm(const weft_backend *row, const weft_exec *exec,
                                           const weft_xorm *xorm) {
  (void)row;
  return smpe(exec, xorm);
}
