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
  size_t packet_bytes; // a multiple of 4; 0: bytes of GF(2^8), sliced into bits by the kernel
  const uint8_t *bits; // (m * w, k * w), row stride bits_stride
  size_t bits_stride;
  const weft_factors *factors; // of the same bytes' matrix, instead of bits; or NULL
  bool accumulate;             // outputs are added to what is there
} weft_program_shape;

enum {
  WEFT_PROGRAM_SUMS = 128,  // m * w, at most: they lie in registers
  WEFT_PROGRAM_SLOTS = 29,  // of factors, likewise
  WEFT_PROGRAM_SHARDS = 256 // k + m, of all stripes of a launch: addresses that travel with it
};

// What the words of a warp's lanes are in memory: of each packet a line of 128 bytes, whole groups,
// or neither.
typedef enum weft_program_way {
  WEFT_PROGRAM_WORDS,
  WEFT_PROGRAM_LINES,
  WEFT_PROGRAM_GROUPS // of at least 32 words of each packet in all
} weft_program_way;

// How the kernel works, which follows from the shape without its bits.
typedef struct weft_program_plan {
  size_t threads, blocks_per_sm; // of a block; blocks that there must be registers for
  size_t ahead;                  // shards that there is room for in the ring, two or more
  weft_program_way way;          // packets
  size_t meet;          // packets: the warps of a block meet after so many shards; 0: never
  size_t slice, unroll; // bytes: shards that a loop slices, in steps of so many
  size_t leave;         // bytes: outputs that a loop turns back into bytes
} weft_program_plan;

// Errors: WEFT_E_UNSUPPORTED (too many outputs for registers, packets that do not suit).
weft_status weft_program_plan_for(const weft_program_shape *shape, weft_program_plan *plan);

// Shared memory of a block.
size_t weft_program_ring_bytes(const weft_program_shape *shape, const weft_program_plan *plan);

// Blocks for `length` bytes or groups.
size_t weft_program_blocks(const weft_program_shape *shape, const weft_program_plan *plan,
                           size_t length);

// The source, zero-terminated, from the allocator.
weft_status weft_program_source(const weft_program_shape *shape, const weft_program_plan *plan,
                                const weft_allocator *allocator, char **source);

#ifdef __cplusplus
}
#endif
#endif
