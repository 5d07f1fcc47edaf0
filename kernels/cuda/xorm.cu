// SPDX-License-Identifier: Apache-2.0
// The product over GF(2) on packets, the same for every CUDA row: a block of threads has one output
// packet of some groups and adds the input packets that its list names. Lists, not bits, because
// good bit matrices are sparse. Inputs are read from the second cache by all but the first block.
#include "kernels/cuda/batch.cuh"
#include "kernels/cuda/storage.h"

namespace {

struct Args {
  const uint8_t *x;
  const uint8_t *const *x_ptr;
  uint8_t *y;
  uint8_t *const *y_ptr;
  size_t x_stride, y_stride;
  const uint32_t *lists; // (m * w + 1) starts, then packet numbers j * w + c
  uint32_t w, outputs;   // packets per group; output packets
  uint64_t packet_words, groups;
  bool accumulate;
};

// Word is what packets and addresses are multiples of.
template <class Word>
__global__ void __launch_bounds__(256) xorm_kernel(const __grid_constant__ Args args) {
  const uint64_t total = args.packet_words * args.groups;
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint32_t output = blockIdx.y; output < args.outputs; output += gridDim.y) {
    const uint32_t begin = args.lists[output], end = args.lists[output + 1];
    const uint32_t i = output / args.w, l = output % args.w;
    Word *y = reinterpret_cast<Word *>(args.y_ptr ? args.y_ptr[i] : args.y + i * args.y_stride);
    for (uint64_t at = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; at < total;
         at += step) {
      const uint64_t group = at / args.packet_words * args.w;
      const uint64_t word = at % args.packet_words;
      Word *to = y + (group + l) * args.packet_words + word;
      Word sum = {};
      if (args.accumulate)
        sum = *to;
      for (uint32_t e = begin; e < end; e++) {
        const uint32_t packet = args.lists[e], j = packet / args.w, c = packet % args.w;
        const Word *x =
            reinterpret_cast<const Word *>(args.x_ptr ? args.x_ptr[j] : args.x + j * args.x_stride);
        const Word more = x[(group + c) * args.packet_words + word];
        if constexpr (sizeof(Word) == 16) {
          sum.x ^= more.x, sum.y ^= more.y, sum.z ^= more.z, sum.w ^= more.w;
        } else {
          sum ^= more;
        }
      }
      *to = sum;
    }
  }
}

template <class Word>
weft_status launch(const weft_exec *exec, Args args, size_t packet_bytes) {
  args.packet_words = packet_bytes / sizeof(Word);
  const uint64_t blocks = (args.packet_words * args.groups + 255) / 256;
  const dim3 grid(static_cast<unsigned>(blocks < 65536 ? blocks : 65536),
                  args.outputs < 65535 ? args.outputs : 65535);
  xorm_kernel<Word><<<grid, 256, 0, weft_cuda_stream(exec)>>>(args);
  return WEFT_CUDA_LAUNCHED();
}

// The low bits of every address and distance that the kernel forms.
template <class Rows>
uintptr_t address_bits(const Rows &rows, size_t count) {
  if (!rows.ptr)
    return reinterpret_cast<uintptr_t>(rows.base) | (count > 1 ? rows.stride : 0);
  uintptr_t bits = 0;
  for (size_t i = 0; i < count; i++)
    bits |= reinterpret_cast<uintptr_t>(rows.ptr[i]);
  return bits;
}

size_t count_bits(const weft_xorm &xorm) {
  size_t ones = 0;
  for (size_t o = 0; o < xorm.m * xorm.w; o++)
    for (size_t p = 0; p < xorm.k * xorm.w; p++)
      ones += xorm.bits[o * xorm.bits_stride + p] & 1u;
  return ones;
}

void write_lists(const weft_xorm &xorm, uint32_t *lists) {
  const size_t outputs = xorm.m * xorm.w, packets = xorm.k * xorm.w;
  uint32_t at = static_cast<uint32_t>(outputs + 1);
  for (size_t o = 0; o < outputs; o++) {
    lists[o] = at;
    for (size_t p = 0; p < packets; p++)
      if (xorm.bits[o * xorm.bits_stride + p] & 1u) // as they were counted
        lists[at++] = static_cast<uint32_t>(p);
  }
  lists[outputs] = at;
}

// The device's copy of what only the host has: lists, then row addresses.
weft_status enqueue(const weft_exec *exec, const weft_xorm &xorm, const uint32_t *lists,
                    size_t list_bytes) {
  const size_t x_at = (list_bytes + 15) & ~size_t{15};
  const size_t y_at = x_at + (xorm.x.ptr ? xorm.k * sizeof(uint8_t *) : 0);
  const size_t end = y_at + (xorm.y.ptr ? xorm.m * sizeof(uint8_t *) : 0);
  weft_scratch scratch(exec);
  WEFT_TRY(scratch.alloc(end));
  uint8_t *memory = scratch.as<uint8_t>();
  WEFT_TRY(weft_cuda_upload(exec, memory, lists, list_bytes));
  Args args = {};
  args.lists = scratch.as<const uint32_t>();
  args.x = xorm.x.base;
  args.x_stride = xorm.x.stride;
  args.y = xorm.y.base;
  args.y_stride = xorm.y.stride;
  if (xorm.x.ptr) {
    WEFT_TRY(weft_cuda_upload(exec, memory + x_at, xorm.x.ptr, y_at - x_at));
    args.x_ptr = reinterpret_cast<const uint8_t *const *>(memory + x_at);
  }
  if (xorm.y.ptr) {
    WEFT_TRY(weft_cuda_upload(exec, memory + y_at, xorm.y.ptr, end - y_at));
    args.y_ptr = reinterpret_cast<uint8_t *const *>(memory + y_at);
  }
  args.w = static_cast<uint32_t>(xorm.w);
  args.outputs = static_cast<uint32_t>(xorm.m * xorm.w);
  args.groups = xorm.len / (xorm.w * xorm.packet_bytes);
  args.accumulate = xorm.accumulate;
  const uintptr_t bits =
      address_bits(xorm.x, xorm.k) | address_bits(xorm.y, xorm.m) | xorm.packet_bytes;
  if (bits % 16 == 0)
    return launch<uint4>(exec, args, xorm.packet_bytes);
  if (bits % 4 == 0)
    return launch<uint32_t>(exec, args, xorm.packet_bytes);
  return launch<uint8_t>(exec, args, xorm.packet_bytes);
}

// Every output by its list: whatever the matrix, packets and addresses.
weft_status by_lists(const weft_exec *exec, const weft_xorm &xorm) {
  const size_t words = xorm.m * xorm.w + 1 + count_bits(xorm);
  const weft_allocator *allocator = exec->allocator;
  uint32_t *lists = static_cast<uint32_t *>(
      allocator->alloc(allocator->user, words * sizeof *lists, alignof(uint32_t)));
  if (!lists)
    return WEFT_E_NOMEM;
  write_lists(xorm, lists);
  const weft_status status = enqueue(exec, xorm, lists, words * sizeof *lists);
  allocator->free(allocator->user, lists);
  return status;
}

} // namespace

extern "C" weft_status weft_cuda_xorm_many(const weft_backend *row, const weft_exec *exec,
                                           const weft_xorm *xorms, size_t count) {
  (void)row;
  for (size_t i = 0; i < count; i++) {
    const weft_xorm &xorm = xorms[i];
    if (xorm.w == 0 || xorm.w > 8 || xorm.packet_bytes == 0 ||
        xorm.len % (xorm.w * xorm.packet_bytes) != 0 || xorm.m > UINT32_MAX / 16 ||
        xorm.k > UINT32_MAX / 16)
      return WEFT_E_ARGUMENT;
    if (xorm.m != 0 && xorm.len != 0 &&
        (xorm.y.mem == WEFT_MEM_HOST || (xorm.k && xorm.x.mem == WEFT_MEM_HOST)))
      return WEFT_E_UNSUPPORTED;
  }
  if (count == 0 || xorms->m == 0 || xorms->len == 0)
    return WEFT_OK;
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  const size_t most = weft_storage_program_stripes(xorms->k, xorms->m);
  for (size_t i = 0, some; i < count; i += some) {
    some = most == 0 ? 1 : count - i < most ? count - i : most;
    const weft_status made = weft_storage_program_xorm(exec, xorms + i, some);
    if (made != WEFT_E_UNSUPPORTED)
      WEFT_TRY(made);
    for (size_t j = i; j < i + some && made == WEFT_E_UNSUPPORTED; j++)
      WEFT_TRY(by_lists(exec, xorms[j]));
  }
  return WEFT_OK;
}

extern "C" weft_status weft_cuda_xorm(const weft_backend *row, const weft_exec *exec,
                                      const weft_xorm *xorm) {
  return weft_cuda_xorm_many(row, exec, xorm, 1);
}
