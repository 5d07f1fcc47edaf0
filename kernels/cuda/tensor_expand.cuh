// SPDX-License-Identifier: Apache-2.0
// Coefficients to bit rows, for the kernels of the binary tensor product to run beside their
// products: eight times the bytes, so they are made where they are used.
#ifndef WEFT_KERNELS_CUDA_TENSOR_EXPAND_CUH
#define WEFT_KERNELS_CUDA_TENSOR_EXPAND_CUH

#include "kernels/cuda/tensor_layout.h"

// Four coefficients at once: byte i of row[b] is the mask of the input bits whose parity is bit b
// of c_i * x, that is, bit t of the mask is bit b of c_i * 2^t. Multiplying by 2 shifts and feeds
// bit 7 back into bits 0, 2, 3 and 4 (0x11D), so each row is the one below shifted; row 7 comes
// first, from the recurrence unrolled.
__device__ __forceinline__ void weft_tensor_masks(uint32_t c, uint32_t (&row)[8]) {
  const uint32_t reversed = __byte_perm(__brev(c), 0, 0x0123);
  const uint32_t low = reversed & 0x0f0f0f0fu;
  const uint32_t top = reversed ^ (((low << 4) ^ (low << 5) ^ (low << 6)) & 0xf0f0f0f0u);
  const uint32_t fed = (top << 1) & 0xfefefefeu;
  row[0] = fed | (c & 0x01010101u);
#pragma unroll
  for (int b = 1; b < 7; b++) {
    const uint32_t below = b >= 2 && b <= 4 ? row[b - 1] ^ top : row[b - 1];
    row[b] = ((below << 1) & 0xfefefefeu) | ((c >> b) & 0x01010101u);
  }
  row[7] = top;
}

// How coefficients can be read.
enum weft_tensor_reads {
  WEFT_TENSOR_WHOLE, // all of a chunk are there, as words
  WEFT_TENSOR_WORDS, // words, of which some are outside (m, n)
  WEFT_TENSOR_BYTES
};

// Coefficients j..j+3 of one coded block; zero outside (m, n).
template <int Reads>
__device__ __forceinline__ uint32_t weft_tensor_quad(const weft_tensor_batch &batch,
                                                     const weft_tensor_job &job, uint32_t row,
                                                     uint32_t j) {
  if (Reads == WEFT_TENSOR_WHOLE)
    return *reinterpret_cast<const uint32_t *>(job.a + row * batch.a_stride + j);
  const bool inside = row < batch.m && j < batch.n;
  const uint8_t *from = job.a + (inside ? row * batch.a_stride + j : 0);
  if (Reads == WEFT_TENSOR_WORDS) {
    const uint32_t quad = *reinterpret_cast<const uint32_t *>(from);
    return inside ? quad : 0;
  }
  uint32_t quad = 0;
  for (uint32_t i = 0; i < 4 && inside && j + i < batch.n; i++)
    quad |= static_cast<uint32_t>(from[i]) << (8 * i);
  return quad;
}

// The loads of a lane for pieces first, first + warps, ...: all at once, because with a branch
// around each it would wait for the one before.
template <int Reads, int Flight>
__device__ __forceinline__ void
weft_tensor_quads(uint32_t (&c)[Flight], const weft_tensor_batch &batch, const weft_tensor_job &job,
                  uint32_t row, uint32_t j, uint32_t first, uint32_t warps, uint32_t pieces) {
#pragma unroll
  for (uint32_t i = 0; i < Flight; i++) {
    const uint32_t piece = min(first + i * warps, pieces - 1);
    c[i] = weft_tensor_quad<Reads>(batch, job, row + 4 * (piece & 7), j + 32 * (piece >> 3));
  }
}

// Expands the chunk of coded blocks row0..row0+31 into shared memory with `warps` warps, of which
// this is number `warp`. A lane takes 4 coefficients at a time; `before_store` runs once, when the
// first of them are on their way and before the first byte is written.
template <class BeforeStore>
__device__ __forceinline__ void
weft_tensor_expand_chunk(uint8_t *chunk, const weft_tensor_batch &batch, const weft_tensor_job &job,
                         uint32_t row0, uint32_t warp, uint32_t warps, BeforeStore before_store) {
  enum { Flight = 11 }; // loads in flight; 3 warps have 10 or 11 pieces of a chunk of 4 steps each
  const uint32_t lane = threadIdx.x & 31, quad = lane & 3, q = lane >> 2 & 3, half = lane >> 4;
  const uint32_t pieces = 8 * batch.steps; // of 4 coded blocks x 32 source blocks
  const bool words = batch.a_words && batch.n % 4 == 0;
  const bool whole =
      words && row0 + WEFT_TENSOR_CHUNK <= batch.m && WEFT_TENSOR_STEP * batch.steps == batch.n;
  const uint32_t row = row0 + q, j = 16 * half + 4 * quad;
  bool waited = false;
  for (uint32_t first = warp; first < pieces; first += Flight * warps) {
    uint32_t c[Flight];
    if (whole)
      weft_tensor_quads<WEFT_TENSOR_WHOLE>(c, batch, job, row, j, first, warps, pieces);
    else if (words)
      weft_tensor_quads<WEFT_TENSOR_WORDS>(c, batch, job, row, j, first, warps, pieces);
    else
      weft_tensor_quads<WEFT_TENSOR_BYTES>(c, batch, job, row, j, first, warps, pieces);
    if (!waited)
      before_store();
    waited = true;
#pragma unroll
    for (uint32_t i = 0; i < Flight; i++) {
      const uint32_t piece = first + i * warps, g = piece & 7, step = piece >> 3;
      if (piece >= pieces)
        continue;
      uint32_t bits[8];
      weft_tensor_masks(c[i], bits);
      uint32_t *to = reinterpret_cast<uint32_t *>(chunk + (2 * step + half) * 4096 + g * 512 +
                                                  q * 32 + quad * 4);
#pragma unroll
      for (int b = 0; b < 8; b++)
        to[(b >> 1) * 32 + (b & 1) * 4] = bits[b];
    }
  }
  if (!waited)
    before_store();
}

#endif
