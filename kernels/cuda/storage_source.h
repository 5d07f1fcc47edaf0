// SPDX-License-Identifier: Apache-2.0
// CUDA source for one bit matrix: a kernel that knows every 1 of it (no CUDA types here).
#ifndef WEFT_KERNELS_CUDA_STORAGE_SOURCE_H
#define WEFT_KERNELS_CUDA_STORAGE_SOURCE_H

#ifdef __cplusplus
extern "C" {
#endif
#include "kernels/backend.h"

// What a kernel is made for.
typedef struct weft_program_shape {
  size_t k, m, w;
  size_t packet_bytes; // a multiple of 16; 0: bytes of GF(2^8), sliced into bits by the kernel
  const uint8_t *bits; // (m * w, k * w), row stride bits_stride
  size_t bits_stride;
  size_t sm_shared_bytes; // of the device
  size_t blocks_per_sm;   // 0: what is best
} weft_program_shape;

// How its data is cut, which follows from the shape.
typedef struct weft_program_plan {
  size_t threads, blocks_per_sm, stages, stage_bytes, shared_bytes;
  size_t tile_words;      // of a packet: threads that have work; RS: of an eighth of the bytes
  size_t groups;          // whole groups in a tile; 0: a tile is part of one group
  size_t tiles_per_group; // where groups is 0
} weft_program_plan;

// Errors: WEFT_E_UNSUPPORTED (too many outputs for registers, packets that do not suit).
weft_status weft_program_plan_for(const weft_program_shape *shape, size_t sm_shared_bytes,
                                  weft_program_plan *plan);

// The source, zero-terminated, from the allocator.
weft_status weft_program_source(const weft_program_shape *shape, const weft_program_plan *plan,
                                const weft_allocator *allocator, char **source);

#ifdef __cplusplus
}
#endif
#endif
