// SPDX-License-Identifier: Apache-2.0
// Batches of inversions; see invert_panel.cuh for the method. Up to 256 rows a matrix stays in one
// block's shared memory and one launch does all; up to 1024 rows it stays in global memory, and
// each panel is two launches for the whole batch.
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/invert_panel.cuh"

namespace {

enum { SmallRows = 256, LargeRows = 1024, UpdateRows = 32, UpdateColumns = 256 };
// Threads of a multiprocessor among which the small kernel shares the registers out: a thread holds
// 8 columns of every other panel.
template <int PANELS>
constexpr int SmallThreads = PANELS > 4 ? 512 : 640;

struct Args {
  const uint8_t *in;
  uint8_t *out, *singular;
  uint32_t count, k;
  uint32_t sms;
};

// ---- up to 256 rows ----

template <int PANELS>
struct SmallShared {
  enum { Rows = 32 * PANELS, RowWords = 8 * PANELS + 8 };
  weft_invert_tables tables;
  weft_panel_exchange exchange[2];
  uint32_t matrix[Rows * RowWords];
  uint16_t pivots[Rows];   // row of step p
  uint16_t step[Rows];     // step of row r, WEFT_PANEL_NONE: not picked yet
  bool block_done[PANELS]; // whether a warp found all pivots of a panel in its own rows
};

// Reads one matrix, padded by the identity.
template <int PANELS>
__device__ void small_load(SmallShared<PANELS> *shared, const uint8_t *in, uint32_t k) {
  typedef SmallShared<PANELS> S;
  uint8_t *bytes = reinterpret_cast<uint8_t *>(shared->matrix);
  if (k == S::Rows && reinterpret_cast<uintptr_t>(in) % 16 == 0) {
    for (uint32_t i = threadIdx.x; i < S::Rows * S::Rows / 16; i += blockDim.x) {
      const uint32_t row = i / (S::Rows / 16), at = i % (S::Rows / 16) * 16;
      *reinterpret_cast<uint4 *>(bytes + row * S::RowWords * 4 + at) =
          reinterpret_cast<const uint4 *>(in)[i];
    }
    return;
  }
  for (uint32_t i = threadIdx.x; i < S::Rows * S::Rows; i += blockDim.x) {
    const uint32_t row = i / S::Rows, at = i % S::Rows;
    bytes[row * S::RowWords * 4 + at] =
        row < k && at < k ? in[row * k + at] : static_cast<uint8_t>(row == at);
  }
}

// inverse[p][c] = matrix[row of step p][step of row c].
template <int PANELS>
__device__ void small_store(const SmallShared<PANELS> *shared, uint8_t *out, uint32_t k) {
  typedef SmallShared<PANELS> S;
  const uint8_t *bytes = reinterpret_cast<const uint8_t *>(shared->matrix);
  if (k % 4 == 0 && reinterpret_cast<uintptr_t>(out) % 4 == 0) {
    const uint32_t words = k / 4;
    for (uint32_t i = threadIdx.x; i < k * words; i += blockDim.x) {
      const uint32_t p = i / words, c = i % words * 4;
      const uint8_t *row = bytes + shared->pivots[p] * S::RowWords * 4;
      uint32_t word = 0;
#pragma unroll
      for (int e = 0; e < 4; e++)
        word |= static_cast<uint32_t>(row[shared->step[c + e]]) << (8 * e);
      reinterpret_cast<uint32_t *>(out)[i] = word;
    }
    return;
  }
  for (uint32_t i = threadIdx.x; i < k * k; i += blockDim.x)
    out[i] = bytes[shared->pivots[i / k] * S::RowWords * 4 + shared->step[i % k]];
}

// Brings the columns outside panel b up to date; each warp its own 32 rows. FAST: the owner's rows
// were the pivots, and the panel of the others still has to follow: A[i, P] times the pivot rows'
// panel.
template <bool FAST, int PANELS>
__device__ void small_update(SmallShared<PANELS> *shared, int b, uint32_t owner) {
  typedef SmallShared<PANELS> S;
  const uint32_t lane = threadIdx.x & 31, g = lane / 4, t = lane & 3, warp = threadIdx.x / 32;
  const bool follows = FAST && warp != owner;
  const uint16_t *pivots = shared->pivots + 32 * b;
  const auto columns = [&](uint32_t(&a)[2][4], uint32_t at) {
    weft_update_columns(a,
                        [&](uint32_t q) { return shared->matrix[pivots[q] * S::RowWords + at]; });
  };
  uint32_t a[PANELS > 1 ? PANELS - 1 : 1][2][4], panel_a[2][4];
  if (FAST)
    columns(panel_a, 8 * b + g);
#pragma unroll
  for (int i = 0; i < PANELS - 1; i++)
    columns(a[i], 8 * (i + (i >= b)) + g);
  const weft_update_powers power = weft_update_powers_of(&shared->tables);
  __syncthreads(); // all have read the old rows
#pragma unroll 1
  for (uint32_t row = 32 * warp; row < 32 * warp + 32; row += 4) {
    uint32_t *own = shared->matrix + (row + t) * S::RowWords + g; // to be written
    const uint32_t *panel = shared->matrix + (row + g / 2) * S::RowWords + 8 * b + t;
    uint32_t rows[4][2];
    weft_update_rows(rows, &shared->tables, panel[0], panel[4]);
    if (follows) {
      __syncwarp();
      own[8 * b] = weft_update_word(panel_a, rows, power);
      __syncwarp();
      weft_update_rows(rows, &shared->tables, panel[0], panel[4]);
    }
    const bool keep = FAST ? follows : (shared->step[row + t] >> 5) != b;
#pragma unroll
    for (int i = 0; i < PANELS - 1; i++) {
      uint32_t *to = own + 8 * (i + (i >= b));
      const uint32_t word = weft_update_word(a[i], rows, power);
      *to = keep ? *to ^ word : word;
    }
  }
  __syncwarp(); // the next panel starts from the warp's own rows
}

// Panel b with full pivoting.
template <int PANELS>
__device__ bool small_general(SmallShared<PANELS> *shared, int b) {
  typedef SmallShared<PANELS> S;
  const uint32_t row = threadIdx.x;
  uint4 *at = reinterpret_cast<uint4 *>(shared->matrix + row * S::RowWords + 8 * b);
  const uint4 low = at[0], high = at[1];
  uint32_t word[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  uint16_t *pivots = shared->pivots + 32 * b;
  bool picked = shared->step[row] != WEFT_PANEL_NONE;
  if (!weft_panel_eliminate(&shared->tables, shared->exchange, word, &picked, pivots))
    return false;
  at[0] = make_uint4(word[0], word[1], word[2], word[3]);
  at[1] = make_uint4(word[4], word[5], word[6], word[7]);
  __syncthreads(); // pivots
  if (row < 32)
    shared->step[pivots[row]] = static_cast<uint16_t>(32 * b + row);
  __syncthreads();
  small_update<false>(shared, b, 0);
  return true;
}

// One warp alone: its rows as the pivots of panel b.
template <int PANELS>
__device__ bool small_block(SmallShared<PANELS> *shared, int b) {
  typedef SmallShared<PANELS> S;
  const uint32_t row = threadIdx.x;
  uint4 *at = reinterpret_cast<uint4 *>(shared->matrix + row * S::RowWords + 8 * b);
  const uint4 low = at[0], high = at[1];
  uint32_t word[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  uint16_t *pivots = shared->pivots + 32 * b;
  if (!weft_block_eliminate(&shared->tables, shared->exchange, word, row & ~31u, pivots))
    return false;
  at[0] = make_uint4(word[0], word[1], word[2], word[3]);
  at[1] = make_uint4(word[4], word[5], word[6], word[7]);
  __syncwarp();
  shared->step[pivots[row & 31]] = static_cast<uint16_t>(32 * b + (row & 31));
  return true;
}

// The first of the warps in `free` whose rows have an inverse in panel b; PANELS when none has.
template <int PANELS>
__device__ uint32_t small_owner(SmallShared<PANELS> *shared, int b, uint32_t free) {
  for (uint32_t owner = 0; owner < PANELS; owner++) {
    if (!(free >> owner & 1))
      continue;
    if (threadIdx.x / 32 == owner) {
      const bool done = small_block(shared, b);
      if (threadIdx.x % 32 == 0)
        shared->block_done[owner] = done;
    }
    __syncthreads();
    if (shared->block_done[owner])
      return owner;
  }
  return PANELS;
}

template <int PANELS>
__device__ bool small_invert(SmallShared<PANELS> *shared) {
  uint32_t free = (1u << PANELS) - 1; // warps whose rows have not been pivots
  bool general = false;               // from the first panel on for which no warp's rows do
  shared->step[threadIdx.x] = WEFT_PANEL_NONE;
  __syncthreads();
#pragma unroll 1
  for (int b = 0; b < PANELS; b++) {
    const uint32_t owner = general ? PANELS : small_owner(shared, b, free);
    if (owner < PANELS) {
      free &= ~(1u << owner);
      small_update<true>(shared, b, owner);
    } else {
      general = true;
      if (!small_general(shared, b))
        return false;
    }
  }
  __syncthreads();
  return true;
}

template <int PANELS>
__global__ void __launch_bounds__(32 * PANELS, SmallThreads<PANELS> / (32 * PANELS))
    small_kernel(const Args args) {
  extern __shared__ __align__(16) uint8_t memory[];
  SmallShared<PANELS> *shared = reinterpret_cast<SmallShared<PANELS> *>(memory);
  weft_invert_fill(&shared->tables);
  for (uint32_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const size_t at = static_cast<size_t>(i) * args.k * args.k;
    small_load(shared, args.in + at, args.k);
    __syncthreads();
    const bool regular = small_invert(shared);
    if (regular)
      small_store(shared, args.out + at, args.k);
    if (threadIdx.x == 0)
      args.singular[i] = !regular;
    __syncthreads(); // before the next matrix
  }
}

template <int PANELS>
weft_status small_launch(const weft_exec *exec, const Args &args) {
  const size_t shared = sizeof(SmallShared<PANELS>);
  WEFT_TRY(weft_device_allow_shared(exec, small_kernel<PANELS>));
  int resident = 0;
  WEFT_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, small_kernel<PANELS>,
                                                              32 * PANELS, shared));
  const uint32_t most = args.sms * static_cast<uint32_t>(resident ? resident : 1);
  const uint32_t grid = args.count < most ? args.count : most;
  small_kernel<PANELS><<<grid, 32 * PANELS, shared, weft_cuda_stream(exec)>>>(args);
  return WEFT_CUDA_LAUNCHED();
}

// ---- up to 1024 rows ----

struct Large {
  Args args;
  uint32_t rows;    // k rounded up to whole panels
  uint8_t *matrix;  // (count, rows, rows), padded by the identity
  uint8_t *old;     // (count, 32, rows): the panel's pivot rows before the update
  uint16_t *pivots; // (count, rows)
  uint16_t *step;   // (count, rows)
};

__global__ void large_load_kernel(const Large large) {
  const uint32_t rows = large.rows, k = large.args.k;
  const uint32_t row = blockIdx.x, i = blockIdx.y;
  const uint8_t *in = large.args.in + static_cast<size_t>(i) * k * k + static_cast<size_t>(row) * k;
  uint8_t *out = large.matrix + (static_cast<size_t>(i) * rows + row) * rows;
  for (uint32_t at = threadIdx.x; at < rows; at += blockDim.x)
    out[at] = row < k && at < k ? in[at] : static_cast<uint8_t>(row == at);
  if (threadIdx.x == 0) {
    large.step[static_cast<size_t>(i) * rows + row] = WEFT_PANEL_NONE;
    if (row == 0)
      large.args.singular[i] = 0;
  }
}

__global__ void __launch_bounds__(1024, 1) large_panel_kernel(const Large large, uint32_t b) {
  __shared__ weft_invert_tables tables;
  __shared__ weft_panel_exchange exchange[2];
  __shared__ uint16_t pivots[32];
  const uint32_t i = blockIdx.x, row = threadIdx.x, rows = large.rows;
  if (large.args.singular[i])
    return;
  weft_invert_fill(&tables);
  __syncthreads();
  uint8_t *matrix = large.matrix + static_cast<size_t>(i) * rows * rows;
  uint16_t *step = large.step + static_cast<size_t>(i) * rows;
  bool picked = step[row] != WEFT_PANEL_NONE;
  uint4 *at = reinterpret_cast<uint4 *>(matrix + static_cast<size_t>(row) * rows + 32 * b);
  const uint4 low = at[0], high = at[1];
  uint32_t word[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  if (!weft_panel_eliminate(&tables, exchange, word, &picked, pivots)) {
    if (row == 0)
      large.args.singular[i] = 1;
    return;
  }
  at[0] = make_uint4(word[0], word[1], word[2], word[3]);
  at[1] = make_uint4(word[4], word[5], word[6], word[7]);
  __syncthreads();
  if (row < 32) {
    large.pivots[static_cast<size_t>(i) * rows + 32 * b + row] = pivots[row];
    step[pivots[row]] = static_cast<uint16_t>(32 * b + row);
  }
  uint4 *old = reinterpret_cast<uint4 *>(large.old + static_cast<size_t>(i) * 32 * rows);
  const uint32_t quads = rows / 16;
  for (uint32_t j = row; j < 32 * quads; j += blockDim.x)
    old[j] = reinterpret_cast<const uint4 *>(matrix + static_cast<size_t>(pivots[j / quads]) *
                                                          rows)[j % quads];
}

// 32 rows by 256 columns per block; each warp has 8 rows and goes through the columns.
__global__ void __launch_bounds__(128) large_update_kernel(const Large large, uint32_t b) {
  __shared__ weft_invert_tables tables;
  const uint32_t i = blockIdx.z, rows = large.rows;
  if (large.args.singular[i])
    return;
  weft_invert_fill(&tables);
  __syncthreads();
  const uint32_t lane = threadIdx.x & 31, g = lane / 4, t = lane & 3, warp = threadIdx.x / 32;
  uint32_t *matrix =
      reinterpret_cast<uint32_t *>(large.matrix + static_cast<size_t>(i) * rows * rows);
  const uint32_t *old =
      reinterpret_cast<const uint32_t *>(large.old + static_cast<size_t>(i) * 32 * rows);
  const weft_update_powers power = weft_update_powers_of(&tables);
  const uint32_t words = rows / 4, first = blockIdx.y * UpdateRows + 8 * warp;
  uint32_t coefficient[2][4][2];
  bool keep[2];
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const uint32_t *panel = matrix + static_cast<size_t>(first + 4 * h + g / 2) * words + 8 * b + t;
    weft_update_rows(coefficient[h], &tables, panel[0], panel[4]);
    keep[h] = (large.step[static_cast<size_t>(i) * rows + first + 4 * h + t] >> 5) != b;
  }
  const uint32_t end = min(rows / 32, (blockIdx.x + 1) * (UpdateColumns / 32));
  for (uint32_t group = blockIdx.x * (UpdateColumns / 32); group < end; group++) {
    if (group == b)
      continue;
    uint32_t a[2][4];
    weft_update_columns(a, [&](uint32_t q) { return old[q * words + 8 * group + g]; });
#pragma unroll
    for (int h = 0; h < 2; h++) {
      uint32_t *to = matrix + static_cast<size_t>(first + 4 * h + t) * words + 8 * group + g;
      const uint32_t word = weft_update_word(a, coefficient[h], power);
      *to = keep[h] ? *to ^ word : word;
    }
  }
}

__global__ void large_store_kernel(const Large large) {
  const uint32_t rows = large.rows, k = large.args.k, p = blockIdx.x, i = blockIdx.y;
  if (large.args.singular[i])
    return;
  const uint16_t *step = large.step + static_cast<size_t>(i) * rows;
  const uint32_t from = large.pivots[static_cast<size_t>(i) * rows + p];
  const uint8_t *row = large.matrix + (static_cast<size_t>(i) * rows + from) * rows;
  uint8_t *out = large.args.out + static_cast<size_t>(i) * k * k + static_cast<size_t>(p) * k;
  for (uint32_t c = threadIdx.x; c < k; c += blockDim.x)
    out[c] = row[step[c]];
}

weft_status large_run(cudaStream_t stream, const Large &large) {
  const uint32_t rows = large.rows, count = large.args.count, k = large.args.k;
  large_load_kernel<<<dim3(rows, count), 256, 0, stream>>>(large);
  WEFT_TRY(WEFT_CUDA_LAUNCHED());
  const dim3 tiles((rows + UpdateColumns - 1) / UpdateColumns, rows / UpdateRows, count);
  for (uint32_t b = 0; b < rows / 32; b++) {
    large_panel_kernel<<<count, rows, 0, stream>>>(large, b);
    WEFT_TRY(WEFT_CUDA_LAUNCHED());
    large_update_kernel<<<tiles, 128, 0, stream>>>(large, b);
    WEFT_TRY(WEFT_CUDA_LAUNCHED());
  }
  large_store_kernel<<<dim3(k, count), 256, 0, stream>>>(large);
  return WEFT_CUDA_LAUNCHED();
}

// As many matrices at a time as a launch and a gigabyte of scratch can take.
weft_status large_launch(const weft_exec *exec, const Args &all) {
  const size_t rows = (all.k + 31u) / 32 * 32;
  const size_t each = rows * rows + 32 * rows + 4 * rows;
  const size_t fit = (size_t{1} << 30) / each;
  const uint32_t most = static_cast<uint32_t>(fit < 32768 ? fit : 32768);
  const uint32_t part = all.count < most ? all.count : most;
  weft_scratch scratch(exec);
  WEFT_TRY(scratch.alloc(part * each));
  Large large;
  large.rows = static_cast<uint32_t>(rows);
  large.matrix = scratch.as<uint8_t>();
  large.old = large.matrix + part * rows * rows;
  large.pivots = reinterpret_cast<uint16_t *>(large.old + part * 32 * rows);
  large.step = large.pivots + part * rows;
  for (uint32_t done = 0; done < all.count; done += part) {
    const size_t at = static_cast<size_t>(done) * all.k * all.k;
    large.args = {all.in + at,
                  all.out + at,
                  all.singular + done,
                  all.count - done < part ? all.count - done : part,
                  all.k,
                  all.sms};
    WEFT_TRY(large_run(weft_cuda_stream(exec), large));
  }
  return WEFT_OK;
}

} // namespace

extern "C" weft_status weft_cuda_invert(const weft_backend *row, const weft_exec *exec,
                                        const weft_invert *invert) {
  (void)row;
  if (invert->count == 0 || invert->k == 0) {
    // The empty matrix is its own inverse.
    if (invert->count == 0 || invert->mem == WEFT_MEM_HOST)
      return invert->count == 0 ? WEFT_OK : WEFT_E_UNSUPPORTED;
    weft_device_scope scope(exec->device);
    WEFT_TRY(scope.status());
    return WEFT_CUDA(cudaMemsetAsync(invert->singular, 0, invert->count, weft_cuda_stream(exec)));
  }
  if (invert->mem == WEFT_MEM_HOST || invert->k > LargeRows)
    return WEFT_E_UNSUPPORTED;
  if (invert->count > UINT32_MAX / 2)
    return WEFT_E_ARGUMENT;
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  const Args args = {invert->in,
                     invert->out,
                     invert->singular,
                     static_cast<uint32_t>(invert->count),
                     static_cast<uint32_t>(invert->k),
                     static_cast<uint32_t>(weft_device_get_shape(exec->device)->sms)};
  switch (args.k <= SmallRows ? (args.k + 31) / 32 : 0) {
  case 1:
    return small_launch<1>(exec, args);
  case 2:
    return small_launch<2>(exec, args);
  case 3:
    return small_launch<3>(exec, args);
  case 4:
    return small_launch<4>(exec, args);
  case 5:
  case 6:
    return small_launch<6>(exec, args);
  case 7:
  case 8:
    return small_launch<8>(exec, args);
  default:
    return large_launch(exec, args);
  }
}
