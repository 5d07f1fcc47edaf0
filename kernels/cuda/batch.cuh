// SPDX-License-Identifier: Apache-2.0
// A batch of products as the table, loop and nibble kernels see it, and the host side that they
// share: operands brought to one dense layout, descriptors on the device, tiles counted.
#ifndef WEFT_KERNELS_CUDA_BATCH_CUH
#define WEFT_KERNELS_CUDA_BATCH_CUH

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/operand.cuh"

enum {
  WEFT_CUDA_WARPS = 16,         // of one product block, which is alone on its multiprocessor
  WEFT_CUDA_COLUMN_PAD = 512,   // dense rows are padded with zero bytes to a multiple of this
  WEFT_CUDA_GROUPS_LOG = 2,     // 4 groups of rows per tile
  WEFT_CUDA_GROUPS_LOG_MAX = 4, // up to 16 where rows are short, with fewer source rows per pass
};

// Parts of one allocation begin at multiples of 16 bytes.
static inline size_t weft_align16(size_t bytes) { return (bytes + 15) & ~static_cast<size_t>(15); }

struct weft_cuda_job {
  const uint8_t *a;                    // (m, k)
  const uint8_t *x;                    // (k) rows in the technique's layout, padded
  uint8_t *y;                          // (m, len)
  uint8_t *const *y_ptr;               // m row addresses, or NULL
  size_t a_stride, x_stride, y_stride; // bytes
  uint32_t m, k, len;
  uint32_t first_tile;   // of this job among the batch's
  uint32_t column_tiles; // per group of rows
  uint32_t groups_log;   // log2 of the groups of rows in a tile
  bool accumulate;
};

struct weft_cuda_batch {
  weft_cuda_job one;         // the job, when there is one
  const weft_cuda_job *jobs; // (count), or NULL
  uint32_t count, tiles;
};

// X as the caller has it, and where its layout goes.
struct weft_cuda_pack {
  const uint8_t *x;
  const uint8_t *const *x_ptr; // device, or NULL
  size_t x_stride;
  uint8_t *out;
  size_t out_stride; // bytes
  uint32_t k, len, padded;
};

// What a technique adds to the common host side.
struct weft_cuda_technique {
  uint32_t rows;        // per thread, so per group of a tile
  uint32_t bytes;       // columns per thread
  uint32_t group_bytes; // of the layout, per WEFT_CUDA_COLUMN_PAD columns
  bool raw;             // the layout is the bytes themselves
  weft_status (*pack)(cudaStream_t stream, const weft_cuda_pack &pack);
  weft_status (*launch)(const weft_exec *exec, const weft_cuda_batch &batch);
};

// The gemm, prepare and release of a row whose kernels take weft_cuda_batch.
weft_status weft_cuda_product(const weft_cuda_technique &technique, const weft_backend *row,
                              const weft_exec *exec, const weft_gemm *gemms, size_t count);
weft_status weft_cuda_prepare(const weft_cuda_technique &technique, const weft_backend *row,
                              const weft_exec *exec, size_t k, size_t len, const weft_const_rows *x,
                              weft_operand **out);

// An operand for X(k, len) with `bytes` of device memory, where the layout is still to be made.
// *out: NULL on an error.
weft_status weft_cuda_operand_new(const weft_backend *row, const weft_exec *exec, size_t k,
                                  size_t len, size_t stride, size_t bytes, weft_operand **out);
extern "C" void weft_cuda_release(const weft_backend *row, const weft_exec *exec,
                                  weft_operand *operand);

// Whether the device can take the product as it is, and its prepared operand is this row's.
weft_status weft_cuda_check(const weft_backend *row, const weft_gemm &gemm);
// Whether the device can prepare X(k, len) as it is.
weft_status weft_cuda_check_source(size_t k, size_t len, const weft_const_rows &x);

// Coefficients in other memory than the device's, densely to `to`.
weft_status weft_cuda_bring_a(const weft_exec *exec, const weft_gemm &gemm, void *to);

// Writes host bytes to device memory in stream order, without a wait and without keeping `from`.
weft_status weft_cuda_upload(const weft_exec *exec, void *to, const void *from, size_t bytes);

// Copies the bytes to dense, padded rows.
weft_status weft_cuda_pack_raw(cudaStream_t stream, const weft_cuda_pack &pack);

static inline uint32_t weft_cuda_padded(size_t len) {
  return static_cast<uint32_t>((len + WEFT_CUDA_COLUMN_PAD - 1) / WEFT_CUDA_COLUMN_PAD *
                               WEFT_CUDA_COLUMN_PAD);
}

// Eight bytes of row j from `column` on, zero past the end.
__device__ __forceinline__ uint2 weft_cuda_pack_load(const weft_cuda_pack &pack, uint32_t j,
                                                     uint32_t column) {
  const uint8_t *from = (pack.x_ptr ? pack.x_ptr[j] : pack.x + j * pack.x_stride) + column;
  uint2 words = make_uint2(0, 0);
  if (column + 8 <= pack.len && (reinterpret_cast<uintptr_t>(from) & 7) == 0)
    return *reinterpret_cast<const uint2 *>(from);
  for (uint32_t i = 0; i < 8 && column + i < pack.len; i++) {
    const uint32_t byte = from[i];
    if (i < 4)
      words.x |= byte << (8 * i);
    else
      words.y |= byte << (8 * i - 32);
  }
  return words;
}

// One thread per eight bytes: Layout::write(pack, row j, column, the bytes).
template <class Layout>
__global__ void __launch_bounds__(256) weft_cuda_pack_kernel(const weft_cuda_pack pack) {
  const uint64_t chunks = pack.padded / 8, total = chunks * pack.k;
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < total;
       i += step) {
    const uint32_t j = static_cast<uint32_t>(i / chunks);
    const uint32_t column = static_cast<uint32_t>(i % chunks) * 8;
    Layout::write(pack, j, column, weft_cuda_pack_load(pack, j, column));
  }
}

template <class Layout>
weft_status weft_cuda_pack_launch(cudaStream_t stream, const weft_cuda_pack &pack) {
  const uint64_t threads = static_cast<uint64_t>(pack.padded / 8) * pack.k;
  if (threads == 0)
    return WEFT_OK;
  const uint64_t blocks = (threads + 255) / 256;
  const unsigned grid = static_cast<unsigned>(blocks < 8192 ? blocks : 8192);
  weft_cuda_pack_kernel<Layout><<<grid, 256, 0, stream>>>(pack);
  return WEFT_CUDA_LAUNCHED();
}

#endif
