// SPDX-License-Identifier: Apache-2.0
// Many copies in one launch, also over PCIe: a warp asks for 512 bytes at a time, and enough warps
// are at it that the bus stays full.
#include "kernels/cuda/device.cuh"

namespace {

enum { Threads = 256, ChunkBytes = 4096 }; // a block takes chunks of a piece

// Words at `to`, which is aligned to them; `from` need not be. Bytes outside of the piece are not
// touched, so its first and last word are put together from bytes.
__device__ void copy_shifted(uint8_t *to, const uint8_t *from, uint32_t bytes) {
  const uint32_t shift = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from) & 3);
  const uint32_t *words = reinterpret_cast<const uint32_t *>(from - shift);
  for (uint32_t at = 4 * threadIdx.x; at < bytes; at += 4 * Threads) {
    if (at >= shift && at + 8 <= bytes) {
      const uint32_t low = words[at / 4], high = words[at / 4 + 1];
      *reinterpret_cast<uint32_t *>(to + at) = __funnelshift_r(low, high, 8 * shift);
      continue;
    }
    for (uint32_t byte = at; byte < at + 4 && byte < bytes; byte++)
      to[byte] = from[byte];
  }
}

__device__ void copy_bytes(uint8_t *to, const uint8_t *from, uint32_t bytes) {
  for (uint32_t at = threadIdx.x; at < bytes; at += Threads)
    to[at] = from[at];
}

template <class Word>
__device__ void copy_words(uint8_t *to, const uint8_t *from, uint32_t bytes) {
  const uint32_t whole = bytes / sizeof(Word);
  for (uint32_t i = threadIdx.x; i < whole; i += Threads)
    reinterpret_cast<Word *>(to)[i] = reinterpret_cast<const Word *>(from)[i];
  const uint32_t at = whole * static_cast<uint32_t>(sizeof(Word)) + threadIdx.x;
  if (at < bytes)
    to[at] = from[at];
}

__device__ void clear_chunk(uint8_t *to, uint32_t bytes) {
  const uint32_t before = static_cast<uint32_t>(-reinterpret_cast<uintptr_t>(to) & 15);
  const uint32_t head = before < bytes ? before : bytes, whole = (bytes - head) / 16;
  for (uint32_t i = threadIdx.x; i < whole; i += Threads)
    reinterpret_cast<uint4 *>(to + head)[i] = make_uint4(0, 0, 0, 0);
  if (threadIdx.x < head)
    to[threadIdx.x] = 0;
  const uint32_t at = head + 16 * whole + threadIdx.x;
  if (at < bytes)
    to[at] = 0;
}

// Chunks of a piece have the alignment of its beginning.
__device__ void copy_chunk(uint8_t *to, const uint8_t *from, uint32_t bytes) {
  const uintptr_t both = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from);
  if (both % 16 == 0)
    copy_words<uint4>(to, from, bytes);
  else if (both % 8 == 0)
    copy_words<uint2>(to, from, bytes);
  else if (reinterpret_cast<uintptr_t>(to) % 4 == 0)
    copy_shifted(to, from, bytes);
  else
    copy_bytes(to, from, bytes);
}

__global__ void __launch_bounds__(Threads)
    copy_pieces_kernel(const weft_device_piece *pieces, size_t count) {
  for (size_t i = blockIdx.x; i < count; i += gridDim.x) {
    const weft_device_piece piece = pieces[i];
    uint8_t *to = static_cast<uint8_t *>(piece.to);
    const uint8_t *from = static_cast<const uint8_t *>(piece.from);
    for (size_t at = static_cast<size_t>(blockIdx.y) * ChunkBytes; at < piece.bytes;
         at += static_cast<size_t>(gridDim.y) * ChunkBytes) {
      const size_t left = piece.bytes - at;
      const uint32_t some = static_cast<uint32_t>(left < ChunkBytes ? left : ChunkBytes);
      if (from)
        copy_chunk(to + at, from + at, some);
      else
        clear_chunk(to + at, some);
    }
  }
}

} // namespace

extern "C" weft_status weft_device_copy_pieces(const weft_exec *exec,
                                               const weft_device_piece *pieces, size_t count) {
  if (count == 0)
    return WEFT_OK;
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  // Few pieces may be long; of many, each has a block that goes along it.
  const size_t most = 8192; // blocks
  const unsigned along = count < most / 64 ? 64 : 1;
  const unsigned grid = static_cast<unsigned>(count < most ? count : most);
  copy_pieces_kernel<<<dim3(grid, along), Threads, 0, weft_cuda_stream(exec)>>>(pieces, count);
  return WEFT_CUDA_LAUNCHED();
}
