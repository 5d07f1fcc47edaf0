// SPDX-License-Identifier: Apache-2.0
// The product that the table, loop and nibble techniques share; each is a policy P:
//   ROWS, BYTES        coded rows and columns that one thread owns
//   ACC                32-bit accumulators per coded row; CHUNK source rows per pass (of 4 groups)
//   COEF_WORDS         shared words per coefficient
//   TABLE_BYTES        shared memory for tables; Tables is the kernel's extra argument
//   fill(shared, tables)                 builds the tables, all threads of the block
//   expand(block, r, c)                  coefficient c of row r into its group's words
//   P(shared, tables)                    a thread's own state
//   Data load(address, columns from it), mac(acc, data, block), word(acc of a row, i)
//
// One persistent block per multiprocessor. Its 16 warps form groups of rows; warps of a group sit
// side by side on the columns, so warps of other groups find the same data in the first cache.
#ifndef WEFT_KERNELS_CUDA_PRODUCT_CUH
#define WEFT_KERNELS_CUDA_PRODUCT_CUH

#include "kernels/cuda/batch.cuh"
#include "kernels/cuda/gf256.cuh"

__device__ __forceinline__ const weft_cuda_job &weft_cuda_job_of(const weft_cuda_batch &batch,
                                                                 uint32_t tile) {
  if (!batch.jobs)
    return batch.one;
  uint32_t low = 0, high = batch.count; // the last job whose first tile is not past this one
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    if (batch.jobs[middle].first_tile <= tile)
      low = middle;
    else
      high = middle;
  }
  return batch.jobs[low];
}

// Stores BYTES coded bytes, as words where the row allows it.
template <int WORDS>
__device__ __forceinline__ void weft_cuda_store(uint8_t *to, uint32_t left, uint32_t (&word)[WORDS],
                                                bool accumulate) {
  if (left >= 4 * WORDS && (reinterpret_cast<uintptr_t>(to) & (4 * WORDS - 1)) == 0) {
    if constexpr (WORDS == 4) {
      uint4 *at = reinterpret_cast<uint4 *>(to);
      const uint4 old = accumulate ? *at : make_uint4(0, 0, 0, 0);
      *at = make_uint4(old.x ^ word[0], old.y ^ word[1], old.z ^ word[2], old.w ^ word[3]);
    } else {
      uint2 *at = reinterpret_cast<uint2 *>(to);
      const uint2 old = accumulate ? *at : make_uint2(0, 0);
      *at = make_uint2(old.x ^ word[0], old.y ^ word[1]);
    }
    return;
  }
#pragma unroll
  for (uint32_t i = 0; i < 4 * WORDS; i++) {
    if (i < left) {
      const uint8_t byte = static_cast<uint8_t>(word[i / 4] >> (8 * (i % 4)));
      to[i] = accumulate ? to[i] ^ byte : byte;
    }
  }
}

template <class P>
__global__ void __launch_bounds__(32 * WEFT_CUDA_WARPS, 1)
    weft_cuda_product_kernel(const __grid_constant__ weft_cuda_batch batch,
                             const typename P::Tables tables) {
  extern __shared__ __align__(1024) uint8_t shared[];
  uint32_t *coefficients = reinterpret_cast<uint32_t *>(shared + P::TABLE_BYTES);
  constexpr uint32_t BlockWords = P::ROWS * P::COEF_WORDS;
  P::fill(shared, tables);
  P thread(shared, tables);
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  for (uint32_t tile = blockIdx.x; tile < batch.tiles; tile += gridDim.x) {
    const weft_cuda_job &job = weft_cuda_job_of(batch, tile);
    const uint32_t local = tile - job.first_tile, log = job.groups_log, groups = 1u << log;
    const uint32_t row0 = (local / job.column_tiles) * (P::ROWS << log);
    const uint32_t across = (local % job.column_tiles) * (WEFT_CUDA_WARPS >> log) + (warp >> log);
    const uint32_t group = warp & (groups - 1);
    const uint32_t column = across * 32 * P::BYTES; // of the warp
    const bool active = column < job.len;
    uint32_t acc[P::ROWS][P::ACC];
#pragma unroll
    for (uint32_t r = 0; r < P::ROWS; r++)
#pragma unroll
      for (uint32_t i = 0; i < P::ACC; i++)
        acc[r][i] = 0;

    const uint32_t chunk =
        P::CHUNK >> (log > WEFT_CUDA_GROUPS_LOG ? log - WEFT_CUDA_GROUPS_LOG : 0);
    for (uint32_t k0 = 0; k0 < job.k; k0 += chunk) {
      const uint32_t count = min(chunk, job.k - k0);
      // An even number of source rows: a row of zeros costs less than a special case.
      const uint32_t even = (count + 1) & ~1u;
      __syncthreads(); // the tables, or the last use of the coefficients
      for (uint32_t i = threadIdx.x; i < even * (P::ROWS << log); i += blockDim.x) {
        const uint32_t j = i % even, r = i / even;
        const bool real = row0 + r < job.m && j < count;
        const uint32_t c = real ? P::coefficient(job.a, (row0 + r) * job.a_stride + k0 + j) : 0;
        P::expand(coefficients + (j * groups + r / P::ROWS) * BlockWords, r % P::ROWS, c, shared);
      }
      __syncthreads();
      if (!active)
        continue;
      const uint8_t *x = job.x + k0 * job.x_stride + P::offset(column, lane);
      const uint32_t *block = coefficients + group * BlockWords;
      const uint32_t last = job.k - k0 - 1;
#pragma unroll 1
      for (uint32_t j = 0; j < even; j += 2) {
        const typename P::Data first = P::load(x + j * job.x_stride);
        const typename P::Data second = P::load(x + min(j + 1, last) * job.x_stride);
        thread.mac(acc, first, second, block + j * groups * BlockWords,
                   block + (j + 1) * groups * BlockWords);
      }
    }
    const uint32_t at = column + lane * P::BYTES;
    if (!active || at >= job.len)
      continue;
#pragma unroll
    for (uint32_t r = 0; r < P::ROWS; r++) {
      const uint32_t i = row0 + group * P::ROWS + r;
      if (i >= job.m)
        break;
      uint32_t word[P::BYTES / 4];
#pragma unroll
      for (uint32_t w = 0; w < P::BYTES / 4; w++)
        word[w] = P::word(acc[r], w);
      uint8_t *to = (job.y_ptr ? job.y_ptr[i] : job.y + i * job.y_stride) + at;
      weft_cuda_store(to, job.len - at, word, job.accumulate);
    }
  }
}

// Returns the shared memory of a block.
template <class P>
constexpr size_t weft_cuda_product_bytes() {
  return P::TABLE_BYTES +
         sizeof(uint32_t) * P::CHUNK * P::ROWS * P::COEF_WORDS * (1u << WEFT_CUDA_GROUPS_LOG);
}

template <class P>
weft_status weft_cuda_product_launch(const weft_exec *exec, const weft_cuda_batch &batch,
                                     const typename P::Tables &tables) {
  constexpr size_t shared = weft_cuda_product_bytes<P>();
  const weft_device_shape *shape = weft_device_get_shape(exec->device);
  if (shared > static_cast<size_t>(shape->block_shared_bytes))
    return WEFT_E_UNSUPPORTED;
  WEFT_TRY(weft_device_allow_shared(exec, weft_cuda_product_kernel<P>));
  const uint32_t sms = static_cast<uint32_t>(shape->sms);
  const uint32_t grid = batch.tiles < sms ? batch.tiles : sms;
  weft_cuda_product_kernel<P>
      <<<grid, 32 * WEFT_CUDA_WARPS, shared, weft_cuda_stream(exec)>>>(batch, tables);
  return WEFT_CUDA_LAUNCHED();
}

#endif
