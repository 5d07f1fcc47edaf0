// SPDX-License-Identifier: Apache-2.0
// Launches the product of storage_wgmma.cuh: which matrices it takes, and which variant for which
// shape.
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/storage_overlap.cuh"
#include "kernels/cuda/storage_wgmma.cuh"

namespace {

using Block = weft_storage_block;

template <int Quarters, int Quads, int Passes, int Stages, int BlocksPerSm>
__global__ void __launch_bounds__(Block::Threads, BlocksPerSm)
    wgmma_kernel(const __grid_constant__ weft_storage_args args, const weft_storage_cut cut) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) uint8_t memory[];
  // Of two groups, in turn. Some sources are copied twice rather than asked about.
  __shared__ __align__(16) const uint8_t *rows[Block::Quarter * Quarters];
  if (threadIdx.x < Block::Quarter * Quarters)
    rows[threadIdx.x / 8 * 8 + threadIdx.x % 4 * 2 + threadIdx.x / 4 % 2] =
        args.x[min(threadIdx.x, args.k - 1)];
  __syncthreads();
  // What is above and the next kernel's share of it run while the kernel before ends.
  if (!cut.overlaps)
    asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
  using Own = weft_storage_walk<Quarters, Quads, Passes, Stages>;
  Own walk(args, cut);
  const uint32_t shared = weft_shared_address(memory);
  walk.place(shared, weft_shared_address(rows));
#pragma unroll
  for (int stage = 0; stage < Stages; stage++)
    walk.fill(stage, stage);
  walk.make_coefficients(shared);
  weft_fence_async_proxy();
  __syncthreads();
  walk.run();
  if (blockIdx.x == 0)
    Own::finish(args);
  if (cut.overlaps)
    asm volatile("griddepcontrol.wait;" ::: "memory");
#else
  (void)args, (void)cut;
#endif
}

template <int Quarters, int Quads, int Passes, int Stages, int BlocksPerSm>
weft_status launch(const weft_exec *exec, const weft_storage_args &args, uint32_t run) {
  const auto kernel = wgmma_kernel<Quarters, Quads, Passes, Stages, BlocksPerSm>;
  const uint32_t groups = (args.k + 3) / 4;
  using Own = weft_storage_walk<Quarters, Quads, Passes, Stages>;
  const size_t shared = Own::CoefficientBytes + WEFT_STORAGE_WARPS * Own::StagingBytes +
                        WEFT_STORAGE_WARPS * Stages * groups * Own::GroupBytes;
  const weft_device_shape &device = *weft_device_get_shape(exec->device);
  const uint32_t sms = static_cast<uint32_t>(device.sms), room = sms * BlocksPerSm;
  const uint64_t whole = args.len / 16 * 16, tiles = (whole + Block::Tile - 1) / Block::Tile;
  weft_storage_cut cut = {run, static_cast<uint32_t>(tiles),
                          static_cast<uint32_t>(whole - (tiles - 1) * Block::Tile), false};
  while (cut.run > 1 && cut.tiles < cut.run * room)
    cut.run /= 2;
  WEFT_TRY(weft_device_allow_shared(exec, kernel));
  weft_storage_touch touch = {};
  for (uint32_t j = 0; j < args.k; j++)
    touch.reads.add(reinterpret_cast<uintptr_t>(args.x[j]), args.len);
  for (uint32_t i = 0; i < args.m; i++)
    touch.writes.add(reinterpret_cast<uintptr_t>(args.y[i]), args.len);
  touch.blocks = (cut.tiles + cut.run - 1) / cut.run;
  touch.fit = sms * (static_cast<size_t>(device.sm_shared_bytes) / shared);
  cut.overlaps = weft_storage_overlaps(exec, touch);
  void *list[] = {const_cast<weft_storage_args *>(&args), &cut};
  return weft_storage_launch(exec, reinterpret_cast<const void *>(kernel),
                             dim3(static_cast<unsigned>(touch.blocks)), Block::Threads, shared,
                             list);
}

// Ones of the bit rows of every coefficient's matrix, a byte for each of the eight.
struct Ones {
  uint64_t of[256];
};
constexpr Ones count_ones() {
  Ones ones = {};
  for (unsigned c = 0; c < 256; c++)
    for (unsigned t = 0, product = c; t < 8; t++) {
      for (unsigned b = 0; b < 8; b++)
        ones.of[c] += static_cast<uint64_t>(product >> b & 1) << (8 * b);
      product = (product << 1) ^ (product & 0x80 ? 0x11Du : 0);
    }
  return ones;
}

// Whether the sums of every row of bits fit a byte.
bool sums_fit(const weft_storage_args &args) {
  static constexpr Ones ones = count_ones();
  const uint64_t lanes = 0x00ff00ff00ff00ffu;
  for (uint32_t i = 0; i < args.m; i++) {
    uint64_t even = 0, odd = 0; // four sums of 16 bits each
    for (uint32_t j = 0; j < args.k; j++) {
      const uint64_t some = ones.of[args.a[i * args.k + j]];
      even += some & lanes;
      odd += some >> 8 & lanes;
    }
    if (args.k <= Block::Quarter)
      odd *= 2; // sums are at most 128
    if ((even | odd) & ~lanes)
      return false;
  }
  return true;
}

// Which variant is quickest was measured on an H200.
weft_status choose(const weft_exec *exec, const weft_storage_args &args) {
  const uint32_t quarters = (args.k + Block::Quarter - 1) / Block::Quarter;
  const uint32_t quads = (args.m + Block::Quad - 1) / Block::Quad;
  switch (4 * (quarters - 1) + quads - 1) {
  case 0:
    return launch<1, 1, 1, 4, 6>(exec, args, 4);
  case 1:
    return launch<1, 2, 1, 3, 4>(exec, args, 8);
  case 2:
    return launch<1, 1, 3, 3, 5>(exec, args, 8);
  case 3:
    return launch<1, 2, 2, 3, 4>(exec, args, 8);
  case 4:
    return launch<2, 1, 1, 2, 6>(exec, args, 4);
  case 5:
    return launch<2, 1, 2, 2, 6>(exec, args, 4);
  case 6:
    return launch<2, 1, 3, 2, 5>(exec, args, 8);
  case 7:
    return launch<2, 2, 2, 2, 4>(exec, args, 8);
  case 8:
    return launch<3, 1, 1, 2, 5>(exec, args, 4);
  case 9:
    return launch<3, 1, 2, 2, 4>(exec, args, 4);
  case 10:
    return launch<3, 1, 3, 2, 4>(exec, args, 8);
  case 11:
    return launch<3, 2, 2, 2, 4>(exec, args, 8);
  case 12:
    return launch<4, 1, 1, 2, 3>(exec, args, 4);
  case 13:
    return launch<4, 2, 1, 2, 3>(exec, args, 8);
  case 14:
    return launch<4, 1, 3, 2, 3>(exec, args, 8);
  case 15:
    return launch<4, 2, 2, 2, 3>(exec, args, 8);
  default:
    return WEFT_E_UNSUPPORTED;
  }
}

} // namespace

bool weft_storage_wgmma_suits(const weft_exec *exec, uint64_t len, bool accumulate) {
  return weft_device_sm(exec->device) == 90 && len >= Block::Tile && !accumulate;
}

weft_status weft_storage_wgmma(const weft_exec *exec, const weft_storage_args &args) {
  if (!weft_storage_wgmma_suits(exec, args.len, args.accumulate) ||
      args.m > WEFT_STORAGE_WGMMA_OUTPUTS || !sums_fit(args))
    return WEFT_E_UNSUPPORTED;
  return choose(exec, args);
}
