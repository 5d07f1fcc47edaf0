// SPDX-License-Identifier: Apache-2.0
// Progressive elimination of [C | X] on the device, many states at once. Packets of one state
// follow each other, so each takes two launches: a block per state works on the vectors and notes
// by which factors rows are added to rows; then a thread per four bytes of payload does that to X.
//
// A thread keeps the sum of eight bit planes of factors (row p goes into plane b where bit b of its
// factor is set), so that a source word costs eight LOP3 and the doublings are done once at the
// end.
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/gf256.cuh"

namespace {

enum { VectorThreads = 256, PayloadThreads = 128 };

// What the vectors say of one packet, for the payloads.
struct Step {
  uint32_t pivot; // WEFT_NO_PIVOT: nothing to do
  uint32_t scale;
};

struct Args {
  weft_eliminate o;
  Step *steps;      // (count)
  uint8_t *reduce;  // (count, k): factors of the known rows in the packet, 0 for others
  uint8_t *clear;   // (count, k): of the packet in the known rows
  uint32_t arrival; // which packet
};

struct Field {
  uint8_t exp[512], log[256];
};

__device__ void fill(Field *field) {
  for (uint32_t i = threadIdx.x; i < 512; i += blockDim.x)
    field->exp[i] = i < WEFT_CUDA_LOG_ZERO ? weft_cuda_global_tables.exp[i] : 0;
  for (uint32_t i = threadIdx.x; i < 256; i += blockDim.x)
    field->log[i] = weft_cuda_global_tables.log[i];
}

__device__ __forceinline__ uint8_t multiply(const Field &field, uint8_t a, uint8_t b) {
  return a && b ? field.exp[field.log[a] + field.log[b]] : 0;
}

__global__ void __launch_bounds__(VectorThreads) vector_kernel(const Args args) {
  __shared__ Field field;
  __shared__ uint8_t work[WEFT_PANEL_ROWS], factors[WEFT_PANEL_ROWS];
  __shared__ uint32_t first;
  const uint32_t k = static_cast<uint32_t>(args.o.k), state = blockIdx.x;
  const size_t at = static_cast<size_t>(state) * args.o.arrivals + args.arrival;
  const uint8_t *a = args.o.a + at * k;
  uint8_t *known = args.o.known + static_cast<size_t>(state) * k;
  uint8_t *matrix = args.o.c + static_cast<size_t>(state) * k * k;
  uint8_t *reduce = args.reduce + static_cast<size_t>(state) * k;
  uint8_t *clear = args.clear + static_cast<size_t>(state) * k;
  fill(&field);
  if (threadIdx.x == 0)
    first = k;
  for (uint32_t p = threadIdx.x; p < k; p += blockDim.x)
    reduce[p] = factors[p] = known[p] ? a[p] : 0;
  __syncthreads();
  for (uint32_t c = threadIdx.x; c < k; c += blockDim.x) {
    uint8_t sum = a[c];
    for (uint32_t p = 0; p < k; p++)
      if (factors[p])
        sum ^= multiply(field, factors[p], matrix[static_cast<size_t>(p) * k + c]);
    work[c] = sum;
    if (sum)
      atomicMin(&first, c);
  }
  __syncthreads();
  const uint32_t pivot = first;
  if (pivot == k) {
    if (threadIdx.x == 0) {
      args.steps[state] = {WEFT_NO_PIVOT, 0};
      args.o.pivot[at] = WEFT_NO_PIVOT;
    }
    return;
  }
  const uint8_t scale = field.exp[255 - field.log[work[pivot]]];
  __syncthreads(); // all have read work[pivot]
  for (uint32_t c = threadIdx.x; c < k; c += blockDim.x)
    matrix[static_cast<size_t>(pivot) * k + c] = work[c] = multiply(field, work[c], scale);
  for (uint32_t p = threadIdx.x; p < k; p += blockDim.x)
    clear[p] = factors[p] = known[p] ? matrix[static_cast<size_t>(p) * k + pivot] : 0;
  __syncthreads();
  for (uint32_t c = threadIdx.x; c < k; c += blockDim.x)
    for (uint32_t p = 0; p < k; p++)
      if (factors[p])
        matrix[static_cast<size_t>(p) * k + c] ^= multiply(field, factors[p], work[c]);
  if (threadIdx.x == 0) {
    known[pivot] = 1;
    args.steps[state] = {pivot, scale};
    args.o.pivot[at] = static_cast<uint16_t>(pivot);
  }
}

// Four bytes from column `at` on, zero past the end.
template <bool WORDS>
__device__ __forceinline__ uint32_t load(const uint8_t *row, uint32_t at, uint32_t len) {
  if constexpr (WORDS) {
    return *reinterpret_cast<const uint32_t *>(row + at);
  } else {
    uint32_t word = 0;
    for (uint32_t i = 0; i < 4 && at + i < len; i++)
      word |= static_cast<uint32_t>(row[at + i]) << (8 * i);
    return word;
  }
}

template <bool WORDS>
__device__ __forceinline__ void store(uint8_t *row, uint32_t at, uint32_t len, uint32_t word) {
  if constexpr (WORDS)
    *reinterpret_cast<uint32_t *>(row + at) = word;
  else
    for (uint32_t i = 0; i < 4 && at + i < len; i++)
      row[at + i] = static_cast<uint8_t>(word >> (8 * i));
}

__device__ __forceinline__ uint32_t mask(uint32_t factor, int bit) {
  return 0u - (factor >> bit & 1u);
}

// WORDS: rows are aligned to four bytes and whole numbers of them.
template <bool WORDS>
__global__ void __launch_bounds__(PayloadThreads) payload_kernel(const Args args) {
  __shared__ uint8_t reduce[WEFT_PANEL_ROWS], clear[WEFT_PANEL_ROWS];
  const uint32_t k = static_cast<uint32_t>(args.o.k), len = static_cast<uint32_t>(args.o.len);
  const uint32_t state = blockIdx.y;
  const Step step = args.steps[state];
  if (step.pivot == WEFT_NO_PIVOT)
    return;
  for (uint32_t p = threadIdx.x; p < k; p += PayloadThreads) {
    reduce[p] = args.reduce[static_cast<size_t>(state) * k + p];
    clear[p] = args.clear[static_cast<size_t>(state) * k + p];
  }
  __syncthreads();
  const uint32_t at = 4 * (blockIdx.x * PayloadThreads + threadIdx.x);
  if (at >= len)
    return;
  uint8_t *x = args.o.x + static_cast<size_t>(state) * k * len;
  const uint8_t *y = args.o.y + (static_cast<size_t>(state) * args.o.arrivals + args.arrival) * len;
  uint32_t plane[8] = {};
  for (uint32_t p = 0; p < k; p++) {
    const uint32_t factor = reduce[p];
    if (!factor)
      continue;
    const uint32_t word = load<WORDS>(x + static_cast<size_t>(p) * len, at, len);
#pragma unroll
    for (int bit = 0; bit < 8; bit++)
      plane[bit] ^= word & mask(factor, bit);
  }
  uint32_t sum = plane[7];
#pragma unroll
  for (int bit = 6; bit >= 0; bit--)
    sum = weft_gf256_double4(sum) ^ plane[bit];
  sum ^= load<WORDS>(y, at, len);
  uint32_t power = sum, scaled = 0;
#pragma unroll
  for (int bit = 0; bit < 8; bit++) {
    scaled ^= power & mask(step.scale, bit);
    power = weft_gf256_double4(power);
  }
  store<WORDS>(x + static_cast<size_t>(step.pivot) * len, at, len, scaled);
#pragma unroll
  for (int bit = 0; bit < 8; bit++) {
    plane[bit] = scaled;
    scaled = weft_gf256_double4(scaled);
  }
  for (uint32_t p = 0; p < k; p++) {
    const uint32_t factor = clear[p];
    if (!factor)
      continue;
    uint8_t *row = x + static_cast<size_t>(p) * len;
    uint32_t word = load<WORDS>(row, at, len);
#pragma unroll
    for (int bit = 0; bit < 8; bit++)
      word ^= plane[bit] & mask(factor, bit);
    store<WORDS>(row, at, len, word);
  }
}

weft_status launch(cudaStream_t stream, const Args &args) {
  const weft_eliminate &o = args.o;
  const unsigned count = static_cast<unsigned>(o.count);
  vector_kernel<<<count, VectorThreads, 0, stream>>>(args);
  WEFT_TRY(WEFT_CUDA_LAUNCHED());
  if (o.len == 0)
    return WEFT_OK;
  const unsigned columns =
      static_cast<unsigned>((o.len + 4 * PayloadThreads - 1) / (4 * PayloadThreads));
  const bool words = o.len % 4 == 0 &&
                     (reinterpret_cast<uintptr_t>(o.x) | reinterpret_cast<uintptr_t>(o.y)) % 4 == 0;
  if (words)
    payload_kernel<true><<<dim3(columns, count), PayloadThreads, 0, stream>>>(args);
  else
    payload_kernel<false><<<dim3(columns, count), PayloadThreads, 0, stream>>>(args);
  return WEFT_CUDA_LAUNCHED();
}

} // namespace

extern "C" weft_status weft_cuda_eliminate(const weft_backend *row, const weft_exec *exec,
                                           const weft_eliminate *o) {
  enum { MostStates = 65535 }; // a grid's second dimension
  (void)row;
  if (o->k < 1 || o->k > WEFT_PANEL_ROWS || o->len > UINT32_MAX / 8 || o->count > MostStates)
    return WEFT_E_ARGUMENT;
  if (o->mem == WEFT_MEM_HOST)
    return WEFT_E_UNSUPPORTED;
  if (o->count == 0 || o->arrivals == 0)
    return WEFT_OK;
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  weft_scratch scratch(exec);
  WEFT_TRY(scratch.alloc(o->count * (sizeof(Step) + 2 * o->k)));
  Args args = {*o, scratch.as<Step>(), nullptr, nullptr, 0};
  args.reduce = reinterpret_cast<uint8_t *>(args.steps + o->count);
  args.clear = args.reduce + o->count * o->k;
  for (; args.arrival < o->arrivals; args.arrival++)
    WEFT_TRY(launch(weft_cuda_stream(exec), args));
  return WEFT_OK;
}
