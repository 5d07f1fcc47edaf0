// SPDX-License-Identifier: Apache-2.0
// How the binary tensor product lays out its operands, for the kernels that write the layouts,
// those that multiply them and the host code that sizes them.
//
// A byte times a coefficient is a vector of 8 bits times an 8x8 bit matrix, so Y = A * X over
// GF(2^8) is a product of bit matrices whose sums are taken mod 2. Both operands are kept as core
// matrices of 8 rows x 16 bytes, 128 contiguous bytes, which wgmma descriptors (without swizzle)
// and ldmatrix read without bank conflicts. The inner dimension, source blocks, is padded with
// zeros to steps of 32 bytes = 256 bits.
//
// Data: X(n, len) becomes pairs of tiles; a pair holds 128 byte positions, each as its n_pad source
// bytes. In CuTe terms, position p = s + 2h + 4r + 32w and block j = jb + 16 jg of a pair lie at
//   ((s, h, r, w), (jb, jg)) : ((128, 64 * n_pad, 16, 256), (1, 1024))    s, h < 2; r < 8; w < 4
// A thread of the tensor fragment owns rows r and r + 8 of warp w in both tiles h: four adjacent
// bytes of a coded block.
//
// Coefficients: 32 coded blocks make a chunk of 256 bit rows. Bit b of coded block 4g + q lies at
//   ((b % 2, q, b / 2, g), (jb, jg)) : ((16, 32, 128, 512), (1, 4096))    q < 4; g < 8
// A thread owns columns 2q and 2q + 1 of every 8: all 8 bits of its byte.
//
// More than 8 steps, or what the device has shared memory for, are cut into panels of equal steps,
// each a product of its own that adds to Y.
//
// The Karatsuba product (tensor_karatsuba.cuh) takes three products of 4 x 4 bits a byte instead of
// 8 x 8 bits, so that a source block is 4 bits of the inner dimension and a step is 64 of them:
//   data: a tile of a pair is three planes (high nibbles, both xored, low nibbles) of 64 positions;
//     byte i of 16 holds the nibbles of blocks 32 jg + i (low) and 32 jg + 16 + i (high);
//   coefficients: 64 coded blocks make a chunk, three matrices of 256 bit rows. Bit b of coded
//     block 4g + q of a matrix lies at
//     ((b % 2, q, b / 2, g), (i, jg)) : ((16, 32, 128, 256), (1, 4096))
#ifndef WEFT_KERNELS_CUDA_TENSOR_LAYOUT_H
#define WEFT_KERNELS_CUDA_TENSOR_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  WEFT_TENSOR_STEP = 32,              // source blocks per tensor instruction
  WEFT_TENSOR_STEPS_MAX = 8,          // per panel
  WEFT_TENSOR_PAIR = 128,             // byte positions per pair of tiles
  WEFT_TENSOR_CHUNK = 32,             // coded blocks per chunk of coefficients
  WEFT_TENSOR_STAGES_MAX = 8,         // pairs of tiles in shared memory
  WEFT_TENSOR_SLOTS_MAX = 16,         // chunks in shared memory
  WEFT_TENSOR_FEW = 144,              // products whose descriptors fit into a launch's parameters
  WEFT_TENSOR_COEF_BYTES = 128 << 10, // of a group of chunks that work on the same tiles
  WEFT_KARATSUBA_STEP = 64,
  WEFT_KARATSUBA_STEPS_MAX = 4,
  WEFT_KARATSUBA_CHUNK = 64
};

// Bytes of a pair of tiles, and of a chunk.
#define WEFT_TENSOR_PAIR_BYTES(steps) ((uint32_t)(steps) * (WEFT_TENSOR_STEP * WEFT_TENSOR_PAIR))
#define WEFT_TENSOR_CHUNK_BYTES(steps) ((uint32_t)(steps) * (WEFT_TENSOR_STEP * 256u))
// Of a tile (half a pair) and a chunk of the Karatsuba product.
#define WEFT_KARATSUBA_TILE_BYTES(steps) ((uint32_t)(steps) * (3u * 64 * WEFT_KARATSUBA_STEP / 2))
#define WEFT_KARATSUBA_CHUNK_BYTES(steps) ((uint32_t)(steps) * (3u * 256 * WEFT_KARATSUBA_STEP / 2))

// One product; all pointers are device memory.
typedef struct weft_tensor_job {
  const uint8_t *a; // (m, n)
  const uint8_t *x; // pairs of tiles; where they are made: (n, len)
  uint8_t *y;       // (m, len); where tiles are made: the pairs
} weft_tensor_job;

// Products of one shape and equal strides.
typedef struct weft_tensor_batch {
  weft_tensor_job few[WEFT_TENSOR_FEW]; // they travel with the launch, or
  const weft_tensor_job *jobs;          // (count) in device memory; NULL when they are few
  const uint8_t *const *x_ptr;          // of a single product: n row addresses, or NULL
  uint8_t *const *y_ptr;                // of a single product: m row addresses, or NULL
  size_t a_stride, x_stride, y_stride;  // bytes
  uint32_t count, m, n, len;
  uint32_t steps;                 // of the inner dimension
  bool a_words, x_words, y_words; // rows are words at aligned addresses, strides below 2^30
  bool accumulate;
  bool y_device; // not pinned memory, which has no atomic xor
} weft_tensor_batch;

// Powers of two that the compiler cannot see: it would turn the products by them into shifts on the
// ALU pipe, which LOP3 and PRMT need; IMAD runs beside it.
typedef struct weft_tensor_powers {
  uint32_t p1, p2, p4, p16; // 2^1, 2^2, ...
} weft_tensor_powers;

// How a batch is cut. The work is a line of units (product, group of chunks, pair of tiles); every
// block takes an equal run of it.
typedef struct weft_tensor_plan {
  uint32_t chunks; // of coded blocks
  uint32_t group;  // chunks per group
  uint32_t groups; // ceil(chunks / group)
  uint32_t pairs;  // ceil(len / 128)
  uint32_t total;  // count * groups * pairs
  uint32_t stages, slots;
  bool alone; // an expanding warp makes whole chunks, or all of them share each
  weft_tensor_powers power;
} weft_tensor_plan;

// Steps of a panel at most: of `limit` those of which a chunk and two pairs of tiles, `step_bytes`
// of shared memory for each step, fit into a block of the device. Cards of sm_86 and sm_89 have 99
// KiB, sm_80 163 and sm_90 227. Where not even one fits, that one is refused (weft_tensor_cut).
static inline uint32_t weft_tensor_steps_most(uint32_t limit, uint32_t step_bytes,
                                              uint32_t shared_bytes) {
  const uint32_t fit = shared_bytes / step_bytes;
  return fit == 0 ? 1 : fit < limit ? fit : limit;
}

// What a kernel keeps in shared memory.
typedef struct weft_tensor_sizes {
  uint32_t chunk_blocks, chunk_bytes; // coded blocks of a chunk of coefficients, and its bytes
  uint32_t stage_bytes, parts;        // of the ring of tiles, and how many make a pair
} weft_tensor_sizes;

typedef struct weft_tensor_args {
  weft_tensor_batch batch;
  weft_tensor_plan plan;
} weft_tensor_args;

#endif
