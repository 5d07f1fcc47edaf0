// SPDX-License-Identifier: Apache-2.0
// The binary tensor product by mma.sync (b1, and.popc), for sm_80 to sm_90: the layouts and the
// line of units of tensor_wgmma.cuh, without its asynchrony. Eight warps share a block; a warp's
// task is 2 tiles x 32 positions by 64 bit rows, so that all four bytes of its words are its own.
#include "kernels/cuda/tensor.cuh"
#include "kernels/cuda/tensor_expand.cuh"
#include "kernels/cuda/tensor_pack.cuh"
#include "kernels/cuda/tensor_ptx.cuh"

namespace {

enum { Warps = 8, ColumnsPerTask = 64, TasksPerChunk = 2 * 256 / ColumnsPerTask };

__device__ __forceinline__ void load_matrices(uint32_t (&m)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(address));
}

__device__ __forceinline__ void multiply(uint32_t (&d)[32], int at, const uint32_t (&a)[4],
                                         uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+r"(d[at]), "+r"(d[at + 1]), "+r"(d[at + 2]), "+r"(d[at + 3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// All threads of the block: one pair of tiles on its way into shared memory.
__device__ __forceinline__ void fetch(uint32_t to, const uint8_t *from, uint32_t bytes) {
  for (uint32_t i = threadIdx.x * 16; i < bytes; i += 32 * Warps * 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + i), "l"(from + i)
                 : "memory");
}

// pair: 2 tiles; w: the first of two 16-row slices of each; columns: 64 bit rows of a chunk.
__device__ __forceinline__ void task_product(uint32_t (&d)[2][2][32], uint32_t pair, uint32_t w,
                                             uint32_t columns, uint32_t steps) {
  const uint32_t lane = threadIdx.x & 31, row = lane & 7, low = lane >> 3 & 1, high = lane >> 4;
  // Matrices of A: rows 0-7 and 8-15, then the second half of K; of B: K first, then the rows.
  const uint32_t a = pair + (2 * w + low) * 128 + high * 1024 + row * 16;
  const uint32_t b = columns + low * 4096 + high * 128 + row * 16;
  const uint32_t tile = 64 * WEFT_TENSOR_STEP * steps;
#pragma unroll
  for (int h = 0; h < 2; h++)
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int k = 0; k < 32; k++)
        d[h][i][k] = 0;
#pragma unroll 1
  for (uint32_t step = 0; step < steps; step++) {
    uint32_t rows[2][2][4];
#pragma unroll
    for (uint32_t h = 0; h < 2; h++)
#pragma unroll
      for (uint32_t i = 0; i < 2; i++)
        load_matrices(rows[h][i], a + h * tile + i * 256 + step * 2048);
#pragma unroll
    for (uint32_t j = 0; j < 8; j += 2) {
      uint32_t bits[4]; // two groups of 8 columns, two halves of K
      load_matrices(bits, b + j * 128 + step * 8192);
#pragma unroll
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
          multiply(d[h][i], 4 * j, rows[h][i], bits[0], bits[1]);
          multiply(d[h][i], 4 * j + 4, rows[h][i], bits[2], bits[3]);
        }
    }
  }
}

__global__ void __launch_bounds__(32 * Warps, 1)
    mma_kernel(const __grid_constant__ weft_tensor_args args) {
  extern __shared__ __align__(1024) uint8_t memory[];
  const weft_tensor_batch &batch = args.batch;
  const weft_tensor_plan &plan = args.plan;
  const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5, r = lane >> 2, q = lane & 3;
  const uint32_t pair_bytes = WEFT_TENSOR_PAIR_BYTES(batch.steps);
  const uint32_t chunk_bytes = WEFT_TENSOR_CHUNK_BYTES(batch.steps);
  const uint32_t coef = weft_shared_address(memory), tiles = coef + plan.group * chunk_bytes;
  uint32_t unit = static_cast<uint32_t>(static_cast<uint64_t>(plan.total) * blockIdx.x / gridDim.x);
  const uint32_t end =
      static_cast<uint32_t>(static_cast<uint64_t>(plan.total) * (blockIdx.x + 1) / gridDim.x);
  uint32_t stage = 0;
  while (unit < end) { // an item: one group of chunks of one product
    const uint32_t item = unit / plan.pairs, group = item % plan.groups;
    const weft_tensor_job job =
        batch.jobs ? batch.jobs[item / plan.groups] : batch.few[item / plan.groups];
    const uint32_t chunk0 = group * plan.group, here = min(plan.group, plan.chunks - chunk0);
    const uint32_t pair0 = unit - item * plan.pairs;
    const uint32_t pair_end = min(plan.pairs, pair0 + (end - unit));
    __syncthreads(); // the last item is done with the coefficients
    fetch(tiles + stage * pair_bytes, job.x + static_cast<size_t>(pair0) * pair_bytes, pair_bytes);
    asm volatile("cp.async.commit_group;" ::: "memory");
    for (uint32_t c = 0; c < here; c++)
      weft_tensor_expand_chunk(memory + c * chunk_bytes, batch, job,
                               (chunk0 + c) * WEFT_TENSOR_CHUNK, warp, Warps, [] {});
    for (uint32_t pair = pair0; pair < pair_end; pair++) {
      asm volatile("cp.async.wait_group 0;" ::: "memory");
      __syncthreads(); // this pair is there, and nobody reads the one before it
      if (pair + 1 < pair_end)
        fetch(tiles + (stage ^ 1) * pair_bytes, job.x + static_cast<size_t>(pair + 1) * pair_bytes,
              pair_bytes);
      asm volatile("cp.async.commit_group;" ::: "memory");
      for (uint32_t task = warp; task < here * TasksPerChunk; task += Warps) {
        const uint32_t w = 2 * (task & 1), columns = task >> 1 & 3, c = task >> 3;
        uint32_t d[2][2][32], nibbles[2][2][2];
        task_product(d, tiles + stage * pair_bytes, w, coef + c * chunk_bytes + columns * 1024,
                     batch.steps);
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
          for (int i = 0; i < 2; i++) {
            uint32_t pairs[16];
            weft_tensor_pairs(pairs, d[h][i], plan.power);
            nibbles[h][i][0] = weft_tensor_nibbles(pairs, 0, plan.power);
            nibbles[h][i][1] = weft_tensor_nibbles(pairs, 1, plan.power);
          }
#pragma unroll
        for (uint32_t i = 0; i < 2; i++) {
          const uint32_t word[2] = {
              weft_tensor_word(nibbles[0][i][0], nibbles[1][i][0], plan.power),
              weft_tensor_word(nibbles[0][i][1], nibbles[1][i][1], plan.power)};
          weft_tensor_store<2>(batch, job, (chunk0 + c) * WEFT_TENSOR_CHUNK + 8 * columns + q,
                               pair * WEFT_TENSOR_PAIR + (w + i) * 32 + 4 * r, word);
        }
      }
      stage ^= 1;
    }
    unit += pair_end - pair0;
  }
}

} // namespace

weft_status weft_tensor_mma(const weft_exec *exec, const weft_tensor_batch &batch) {
  const weft_device_shape *shape = weft_device_get_shape(exec->device);
  weft_tensor_args args = {batch, {}};
  const weft_tensor_sizes sizes = {WEFT_TENSOR_CHUNK, WEFT_TENSOR_CHUNK_BYTES(batch.steps),
                                   WEFT_TENSOR_PAIR_BYTES(batch.steps), 1};
  WEFT_TRY(weft_tensor_cut(batch, sizes, static_cast<uint32_t>(shape->sms),
                           static_cast<uint32_t>(shape->block_shared_bytes), &args.plan));
  const size_t shared = args.plan.group * WEFT_TENSOR_CHUNK_BYTES(batch.steps) +
                        2 * WEFT_TENSOR_PAIR_BYTES(batch.steps);
  WEFT_TRY(weft_device_allow_shared(exec, mma_kernel));
  const uint32_t sms = static_cast<uint32_t>(shape->sms);
  const uint32_t blocks = args.plan.total < sms ? args.plan.total : sms;
  mma_kernel<<<blocks, 32 * Warps, shared, weft_cuda_stream(exec)>>>(args);
  return WEFT_CUDA_LAUNCHED();
}
