// SPDX-License-Identifier: Apache-2.0
// Gauss-Jordan elimination of [C | R] in shared memory, one block each, with row exchanges left
// implicit. For one segment R is the block's columns of the coded blocks and C a private copy, so
// that blocks need not wait for each other (paper, 4.2.2); for a batch R is the identity. Rows are
// multiplied four bytes at a time by the PRMT tables of invert_panel.cuh.
#include "kernels/cuda/decode.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/invert_panel.cuh"

namespace {

enum { Threads = 512, Warps = Threads / 32 };

struct Args {
  const uint8_t *c, *r; // r NULL: the identity
  uint8_t *out, *singular;
  size_t r_stride, out_stride;
  uint32_t k, len, slice_words; // len of R in bytes; words per block
  uint32_t count, slices;       // matrices; blocks per matrix
};

struct State {
  weft_invert_tables tables;
  uint32_t pivot;      // row of this step
  uint8_t picked[256]; // rows that were pivots
  uint8_t order[256];  // row of step p
  uint8_t factor[256]; // the cached column
};

// What follows State in shared memory.
struct Layout {
  uint32_t row_words;     // of [C | R]
  uint32_t *matrix;       // (k, row_words)
  weft_selectors *scaled; // (row_words): the pivot row's selectors
};

__device__ Layout layout_of(const Args &args, uint8_t *memory) {
  Layout layout;
  layout.row_words = (args.k + 3) / 4 + args.slice_words;
  layout.matrix = reinterpret_cast<uint32_t *>(memory + sizeof(State));
  layout.scaled = reinterpret_cast<weft_selectors *>(layout.matrix + args.k * layout.row_words);
  return layout;
}

// Four bytes from `column` on, zero past the end.
__device__ uint32_t read_word(const uint8_t *row, uint32_t column, uint32_t len) {
  const uint8_t *from = row + column;
  if (column + 4 <= len && reinterpret_cast<uintptr_t>(from) % 4 == 0)
    return *reinterpret_cast<const uint32_t *>(from);
  uint32_t word = 0;
  for (uint32_t e = 0; e < 4 && column + e < len; e++)
    word |= static_cast<uint32_t>(from[e]) << (8 * e);
  return word;
}

__device__ void load(const Args &args, const Layout &layout, uint32_t matrix, uint32_t first) {
  const uint32_t k = args.k, c_words = (k + 3) / 4;
  const uint8_t *c = args.c + static_cast<size_t>(matrix) * k * k;
  for (uint32_t i = threadIdx.x; i < k * layout.row_words; i += Threads) {
    const uint32_t row = i / layout.row_words, at = i % layout.row_words;
    const bool left = at < c_words;
    const uint32_t column = 4 * (left ? at : first + at - c_words);
    uint32_t word = 0;
    if (left || args.r)
      word =
          read_word(left ? c + row * k : args.r + row * args.r_stride, column, left ? k : args.len);
    else if (column / 4 == row / 4)
      word = 1u << (8 * (row % 4));
    layout.matrix[i] = word;
  }
}

__device__ uint32_t entry(const Layout &layout, uint32_t row, uint32_t column) {
  return (layout.matrix[row * layout.row_words + column / 4] >> (8 * (column % 4))) & 255;
}

// The first row that has not been a pivot and is not zero in this column; k when there is none.
template <bool ATOMIC>
__device__ uint32_t find_pivot(State *state, const Layout &layout, uint32_t k, uint32_t p) {
  if (threadIdx.x == 0)
    state->pivot = k;
  __syncthreads();
  if (ATOMIC) {
    for (uint32_t row = threadIdx.x; row < k; row += Threads) {
      const uint32_t value = entry(layout, row, p);
      state->factor[row] = static_cast<uint8_t>(value);
      if (value && !state->picked[row])
        atomicMin(&state->pivot, row);
    }
  } else if (threadIdx.x == 0) {
    uint32_t row = 0;
    while (row < k && (state->picked[row] || entry(layout, row, p) == 0))
      row++;
    state->pivot = row;
  }
  __syncthreads();
  return state->pivot;
}

template <bool ATOMIC>
__device__ bool eliminate(State *state, const Layout &layout, uint32_t k) {
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x & 31;
  for (uint32_t p = 0; p < k; p++) {
    const uint32_t pivot = find_pivot<ATOMIC>(state, layout, k, p);
    if (pivot == k)
      return false;
    uint32_t *row = layout.matrix + pivot * layout.row_words;
    const uint32_t scale = weft_log_quotient(
        0, state->tables.log[ATOMIC ? state->factor[pivot] : entry(layout, pivot, p)]);
    __syncthreads(); // all have the pivot's value
    // Columns before p / 4 * 4 are done: zero in the pivot row.
    for (uint32_t w = p / 4 + threadIdx.x; w < layout.row_words; w += Threads) {
      const weft_selectors from = weft_select(row[w]);
      const uint32_t word = weft_lookup(state->tables.nibbles[scale], state->tables.fourth[scale],
                                        from.low, from.high, from.fourth);
      row[w] = word;
      layout.scaled[w] = weft_select(word);
    }
    if (threadIdx.x == 0) {
      state->picked[pivot] = 1;
      state->order[p] = static_cast<uint8_t>(pivot);
    }
    __syncthreads();
    for (uint32_t i = warp; i < k; i += Warps) {
      if (i == pivot)
        continue;
      const uint32_t factor = ATOMIC ? state->factor[i] : entry(layout, i, p);
      __syncwarp(); // the factor's own word is about to change
      if (factor == 0)
        continue;
      const uint32_t log = state->tables.log[factor];
      const uint4 nibbles = state->tables.nibbles[log];
      const uint32_t fourth = state->tables.fourth[log];
      for (uint32_t w = p / 4 + lane; w < layout.row_words; w += 32) {
        const weft_selectors s = layout.scaled[w];
        layout.matrix[i * layout.row_words + w] ^=
            weft_lookup(nibbles, fourth, s.low, s.high, s.fourth);
      }
    }
    __syncthreads();
  }
  return true;
}

__device__ void store(const Args &args, const State *state, const Layout &layout, uint32_t matrix,
                      uint32_t first) {
  const uint32_t c_words = (args.k + 3) / 4, words = layout.row_words - c_words;
  uint8_t *out = args.out + (args.r ? 0 : static_cast<size_t>(matrix) * args.k * args.k);
  for (uint32_t i = threadIdx.x; i < args.k * words; i += Threads) {
    const uint32_t p = i / words, w = i % words, column = 4 * (first + w);
    const uint32_t word = layout.matrix[state->order[p] * layout.row_words + c_words + w];
    uint8_t *to = out + p * args.out_stride + column;
    if (column + 4 <= args.len)
      *reinterpret_cast<uint32_t *>(to) = word;
    else
      for (uint32_t e = 0; column + e < args.len; e++)
        to[e] = static_cast<uint8_t>(word >> (8 * e));
  }
}

template <bool ATOMIC>
__global__ void __launch_bounds__(Threads, 2)
    gauss_jordan_kernel(const __grid_constant__ Args args) {
  extern __shared__ __align__(16) uint8_t memory[];
  State *state = reinterpret_cast<State *>(memory);
  const Layout layout = layout_of(args, memory);
  weft_invert_fill(&state->tables);
  for (uint32_t i = blockIdx.x; i < args.count * args.slices; i += gridDim.x) {
    const uint32_t matrix = i / args.slices, first = i % args.slices * args.slice_words;
    __syncthreads();
    load(args, layout, matrix, first);
    for (uint32_t row = threadIdx.x; row < args.k; row += Threads)
      state->picked[row] = 0;
    __syncthreads();
    const bool regular = eliminate<ATOMIC>(state, layout, args.k);
    if (regular)
      store(args, state, layout, matrix, first);
    if (threadIdx.x == 0 && first == 0)
      args.singular[matrix] = !regular;
  }
}

size_t shared_bytes(const Args &args) {
  const size_t row_words = (args.k + 3) / 4 + args.slice_words;
  return sizeof(State) + 4 * args.k * row_words + sizeof(weft_selectors) * row_words;
}

template <bool ATOMIC>
weft_status launch(const weft_exec *exec, const Args &args, uint32_t grid, size_t shared) {
  WEFT_TRY(weft_device_allow_shared(exec, gauss_jordan_kernel<ATOMIC>));
  gauss_jordan_kernel<ATOMIC><<<grid, Threads, shared, weft_cuda_stream(exec)>>>(args);
  return WEFT_CUDA_LAUNCHED();
}

weft_status launch_as(weft_cuda_pivoting pivoting, const weft_exec *exec, const Args &args,
                      uint32_t grid, size_t shared) {
  return pivoting == WEFT_CUDA_PIVOT_ATOMIC_MIN ? launch<true>(exec, args, grid, shared)
                                                : launch<false>(exec, args, grid, shared);
}

} // namespace

extern "C" weft_status weft_cuda_decode_single(const weft_exec *exec,
                                               const weft_cuda_decode *decode) {
  if (decode->k == 0 || decode->k > 256 || decode->len == 0 || decode->len > UINT32_MAX / 2 ||
      decode->x_stride % 4 != 0)
    return WEFT_E_ARGUMENT;
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  const weft_device_shape *shape = weft_device_get_shape(exec->device);
  Args args = {};
  args.c = decode->c;
  args.r = decode->y;
  args.out = decode->x;
  args.singular = decode->singular;
  args.r_stride = decode->y_stride;
  args.out_stride = decode->x_stride;
  args.k = static_cast<uint32_t>(decode->k);
  args.len = static_cast<uint32_t>(decode->len);
  args.count = 1;
  // Columns spread evenly over the multiprocessors, as far as shared memory allows.
  const uint32_t words = (args.len + 3) / 4, sms = static_cast<uint32_t>(shape->sms);
  args.slice_words = (words + sms - 1) / sms;
  while (args.slice_words > 1 &&
         shared_bytes(args) > static_cast<size_t>(shape->block_shared_bytes))
    args.slice_words = (args.slice_words + 1) / 2;
  args.slices = (words + args.slice_words - 1) / args.slice_words;
  const uint32_t grid = args.slices < sms ? args.slices : sms;
  return launch_as(decode->pivoting, exec, args, grid, shared_bytes(args));
}

extern "C" weft_status weft_cuda_invert_augmented(const weft_exec *exec, const weft_invert *invert,
                                                  unsigned per_sm, weft_cuda_pivoting pivoting) {
  if (invert->k == 0 || invert->k % 4 != 0 || invert->k > 128 || per_sm < 1 || per_sm > 2 ||
      invert->count > UINT32_MAX / 2)
    return WEFT_E_ARGUMENT;
  if (invert->count == 0)
    return WEFT_OK;
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  const weft_device_shape *shape = weft_device_get_shape(exec->device);
  Args args = {};
  args.c = invert->in;
  args.out = invert->out;
  args.singular = invert->singular;
  args.k = args.len = static_cast<uint32_t>(invert->k);
  args.out_stride = invert->k;
  args.slice_words = args.k / 4;
  args.count = static_cast<uint32_t>(invert->count);
  args.slices = 1;
  // Asking for more than half of a multiprocessor's memory leaves room for one block only.
  size_t shared = shared_bytes(args);
  const size_t half = static_cast<size_t>(shape->sm_shared_bytes) / 2;
  if (per_sm == 1 && shared <= half)
    shared = half + 1024;
  const uint32_t most = static_cast<uint32_t>(shape->sms) * per_sm;
  return launch_as(pivoting, exec, args, args.count < most ? args.count : most, shared);
}
