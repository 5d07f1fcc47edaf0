// SPDX-License-Identifier: Apache-2.0
// Products with few coded blocks by wgmma, m64nNk256 on bits: a block is one warpgroup, whose
// positions come from registers and whose bit rows of coefficients lie in shared memory.
//
// A warp copies 128 bytes of every source at a time into a ring of its own, some tiles ahead
// (cp.async, a line to a line), and takes them from there 32 positions a step: lane (g, q) = (lane
// / 4, lane % 4) reads a word of sources 16h + 4i + q and transposes four of them, which gives the
// 32 bits of quarter h at positions 4g..4g+3 that the fragments want. Quarters beyond k multiply
// whatever lies there by zeros. Columns are arranged as in storage_tensor.cu.
//
// A step is two products of 64 positions: one has positions 4g + 2 and 4g + 3 of every lane, the
// other those before them. Four sums become one word by two instructions on two pipes, and eight
// such words one word of coded bytes while the next product runs. Words hold sums in bytes, so that
// no row of bits may have more than 255 ones; codes have about four in each byte.
//
// With up to 16 sources half of the inner dimension is left over. It counts odd bits once more,
// which puts their parity where it is wanted.
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/gf256.cuh"
#include "kernels/cuda/storage_tensor.cuh"
#include "kernels/cuda/storage_wgmma_ptx.cuh"
#include "kernels/cuda/tensor_expand.cuh"
#include "kernels/cuda/tensor_ptx.cuh"

namespace {

enum {
  Quarter = WEFT_STORAGE_QUARTER,
  Quad = WEFT_STORAGE_QUAD,
  Threads = 32 * WEFT_STORAGE_WARPS,
  WarpTile = WEFT_STORAGE_POSITIONS,
  Tile = WEFT_STORAGE_WARPS * WarpTile,
  Step = 32,                   // positions of a warp
  GroupBytes = 512,            // of four sources in a warp's stage
  BlocksOfSm = 2048 / Threads, // at most
  SumMost = 255
};

// The last tile ends where the last 16 whole bytes do, and overlaps the one before it.
struct Cut {
  uint32_t run;       // tiles of a block
  uint32_t tiles;     // of the launch
  uint32_t last_move; // bytes from the last tile but one to the last
  bool overlaps;      // waits for the kernel before it only at its end (weft_device_may_overlap)
};

// Passes are products of Quads each, with the same positions; One: see weft_storage_wgmma_step.
template <int Quarters, int Quads, int Passes, int Stages, bool One>
struct Walk {
  enum {
    QuadsAll = Quads * Passes,
    Steps = (Quarters + 1) / 2,        // of 256 bits
    HalfBytes = GroupBytes * QuadsAll, // of coefficients: 128 bits of every row
    CoefficientBytes = 2 * Steps * HalfBytes,
    Sums = 16 * Quads,
    Twice = Quarters == 1 // odd bits are counted twice
  };

  const weft_storage_args &args;
  const Cut &cut;
  const uint32_t lane, warp, g, q;
  const uint32_t stage_bytes; // of a warp
  const uint32_t first, here; // tiles of this block
  uint32_t put, rows, get;    // shared addresses: this lane's place in stage 0, row table, fragment
  uint64_t from;              // offset in every source of what is copied next
  uint32_t coefficients;      // descriptor
  uint32_t zero;
  uint32_t d[Sums], packed[8 * Quads], raw[Quarters][4], fragment[Quarters][4];
  uint8_t *to[QuadsAll]; // where the next word of each quad's row goes

  __device__ __forceinline__ Walk(const weft_storage_args &args_, const Cut &cut_)
      : args(args_), cut(cut_), lane(threadIdx.x & 31), warp(threadIdx.x >> 5), g(lane >> 2),
        q(lane & 3), stage_bytes((args_.k + 3) / 4 * GroupBytes), first(blockIdx.x * cut_.run),
        here(min(cut_.run, cut_.tiles - first)), from(start() + warp * WarpTile + (lane & 7) * 16),
        zero(args_.power.p1 >> 8) {}

  // Of the block's first tile.
  __device__ __forceinline__ uint64_t start() const {
    const uint64_t at = static_cast<uint64_t>(first) * Tile;
    return first > 0 && first + 1 == cut.tiles ? at - Tile + cut.last_move : at;
  }
  // Bytes to the tile after this one.
  __device__ __forceinline__ uint32_t move(uint32_t tile) const {
    return first + tile + 2 == cut.tiles ? cut.last_move : uint32_t{Tile};
  }

  // Eight lanes take a line; chunks are turned by 2q, so that a fragment's lanes read all banks.
  __device__ __forceinline__ void place(uint32_t shared, uint32_t row_table) {
    const uint32_t ring = shared + CoefficientBytes + warp * Stages * stage_bytes;
    const uint32_t row = lane >> 3, chunk = lane & 7;
    put = weft_opaque(ring + row * 128 + ((chunk * 16) ^ (row * 32)));
    rows = weft_opaque(row_table + row * 8);
    get = weft_opaque(ring + q * (128 + 32) + g * 4);
  }

  // Tiles are filled in order.
  __device__ __forceinline__ void fill(uint32_t tile, uint32_t slot) {
    if (tile < here) {
      const uint32_t stage = put + slot * stage_bytes;
#pragma unroll
      for (int i = 0; i < 4 * Quarters; i++)
        if (i < 4 * (Quarters - 1) || i * 4 < args.k) {
          uint64_t row;
          asm volatile("ld.shared.b64 %0, [%1];" : "=l"(row) : "r"(rows + i * 32));
          asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(stage + i * GroupBytes),
                       "l"(row + from)
                       : "memory");
        }
      from += move(tile);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }

  __device__ __forceinline__ void await_oldest() {
    asm volatile("cp.async.wait_group %0;" ::"n"(Stages - 1) : "memory");
    __syncwarp();
  }

  // The bit rows as core matrices: bit b of coded block 4c + r is row 2r + b % 2 of matrix 4c + b
  // / 2; four sources of a quarter are a word of it.
  __device__ __forceinline__ void make_coefficients(uint32_t shared) {
    for (uint32_t i = threadIdx.x; i < CoefficientBytes / 32; i += Threads) {
      const uint32_t word = i & 3, r = i >> 2 & 3, c = (i >> 4) % QuadsAll;
      const uint32_t half = (i >> 4) / QuadsAll, row = min(Quad * c + r, args.m - 1);
      const uint32_t source = (Twice ? 0 : Quarter * half) + word;
      uint32_t some = 0, bits[8];
      for (uint32_t s = 0; s < 4; s++)
        if (source + 4 * s < args.k)
          some |= static_cast<uint32_t>(args.a[row * args.k + source + 4 * s]) << (8 * s);
      weft_tensor_masks(some, bits);
      const uint32_t at = shared + half * HalfBytes + c * 512 + r * 32 + word * 4;
#pragma unroll
      for (int b = 0; b < 8; b++)
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(at + (b >> 1) * 128 + (b & 1) * 16),
                     "r"(Twice && half == 1 && b % 2 == 0 ? 0 : bits[b])
                     : "memory");
    }
    coefficients = weft_opaque(weft_wgmma_operand(shared, HalfBytes));
  }

  __device__ __forceinline__ void load(uint32_t at) {
#pragma unroll
    for (int h = 0; h < Quarters; h++)
#pragma unroll
      for (int i = 0; i < 4; i++)
        asm volatile("ld.shared.b32 %0, [%1];"
                     : "=r"(raw[h][i])
                     : "r"(at + (4 * h + i) * GroupBytes)
                     : "memory");
  }

  __device__ __forceinline__ void transpose() {
#pragma unroll
    for (int h = 0; h < Quarters; h++) {
#pragma unroll
      for (int i = 0; i < 4; i++)
        fragment[h][i] = raw[h][i];
      weft_storage_transpose(fragment[h]);
    }
  }

  // Starts the sums of positions `low` and low + 1 of every four.
  __device__ __forceinline__ void multiply(int low, int pass) {
    if (One)
      weft_pin(d);
    else
      weft_pin_undefined(d);
    weft_wgmma_fence();
#pragma unroll
    for (int step = 0; step < Steps; step++) {
      const int h = 2 * step, other = h + 1 < Quarters ? h + 1 : h;
      const uint32_t a[4] = {fragment[h][low], fragment[h][low + 1], fragment[other][low],
                             fragment[other][low + 1]};
      const uint32_t b = coefficients + (step * 2 * HalfBytes + pass * Quads * 512) / 16;
      weft_storage_wgmma_step(d, a, weft_wgmma_descriptor(b), step > 0 ? 1 : One ? zero : 0);
    }
    weft_wgmma_commit();
    weft_pin(packed);
  }

  __device__ __forceinline__ void await_sums() {
    weft_wgmma_wait<0>();
    weft_pin(d);
  }

  // The upper two bytes of each word, in the lower half until the others come.
  __device__ __forceinline__ void pack_upper() {
#pragma unroll
    for (int i = 0; i < 8 * Quads; i++) {
      const int at = i / 2 * 4 + i % 2;
      packed[i] =
          weft_storage_shift_add(static_cast<int>(d[at + 2]), 256.0f, static_cast<int>(d[at]));
    }
    weft_pin(packed);
  }

  __device__ __forceinline__ void pack_lower() {
#pragma unroll
    for (int i = 0; i < 8 * Quads; i++) {
      const int at = i / 2 * 4 + i % 2;
      asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %0;" : "+r"(packed[i]) : "r"(d[at + 2]), "r"(d[at]));
    }
    weft_pin(packed);
  }

  // Sums of bits 0 to 7, four positions a word, to four bytes.
  __device__ __forceinline__ uint32_t word(int c) const {
    uint32_t two[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const uint32_t odd = packed[8 * c + 2 * i + 1];
      two[i] =
          weft_tensor_select(0x01010101u, packed[8 * c + 2 * i], Twice ? odd : odd * args.power.p1);
    }
    const uint32_t low = weft_tensor_select(0x03030303u, two[0], two[1] * args.power.p2);
    const uint32_t high = weft_tensor_select(0x03030303u, two[2], two[3] * args.power.p2);
    return weft_tensor_select(0x0f0f0f0fu, low, high * args.power.p4);
  }

  // Stores what the pass before this one has packed, and moves its rows on. Before there is
  // anything, a word goes where the first one will go.
  __device__ __forceinline__ void store(int pass, int64_t by) {
#pragma unroll
    for (int c = 0; c < Quads; c++) {
      const int row = pass * Quads + c;
      __stcs(reinterpret_cast<uint32_t *>(to[row]), word(c));
      to[row] += by;
    }
  }

  __device__ __forceinline__ void run() {
    // Rows that are not there are the last one again.
#pragma unroll
    for (int c = 0; c < QuadsAll; c++)
      to[c] = args.y[min(Quad * c + q, args.m - 1)] + start() + warp * WarpTile + 4 * g;
#pragma unroll
    for (int i = 0; i < 8 * Quads; i++)
      packed[i] = 0;
#pragma unroll
    for (int i = 0; i < Sums && One; i++)
      d[i] = 0;
    uint32_t slot = 0;
    int64_t moved = 0;
    await_oldest();
    load(get);
    transpose();
#pragma unroll 1
    for (uint32_t tile = 0; tile < here; tile++) {
      const int64_t to_next = static_cast<int64_t>(move(tile)) - (WarpTile - Step);
      const uint32_t stage = weft_opaque(get + slot * stage_bytes);
#pragma unroll 1
      for (uint32_t step = 0; step < WarpTile / Step; step++) {
        const bool ends = step + 1 == WarpTile / Step;
        uint32_t next = stage ^ (Step * (step + 1));
        if (ends) { // the stage has been read
          __syncwarp();
          fill(tile + Stages, slot);
          slot = slot + 1 == Stages ? 0 : slot + 1;
          await_oldest();
          next = get + slot * stage_bytes;
        }
#pragma unroll
        for (int pass = 0; pass < Passes; pass++) {
          multiply(2, pass);
          if (pass == 0)
            store(Passes - 1, moved);
          else
            store(pass - 1, ends ? to_next : int64_t{Step});
          if (pass == Passes - 1)
            load(next);
          await_sums();
          pack_upper();
          multiply(0, pass);
          await_sums();
          pack_lower();
        }
        transpose();
        moved = ends ? to_next : int64_t{Step};
      }
    }
    store(Passes - 1, 0);
  }

  // The bytes after the last tile, fewer than 16 of every row.
  __device__ __noinline__ static void finish(const weft_storage_args &args) {
    const uint64_t whole = args.len & ~static_cast<uint64_t>(15);
    const uint32_t left = static_cast<uint32_t>(args.len - whole);
    for (uint32_t i = threadIdx.x; i < left * args.m; i += Threads) {
      const uint32_t row = i / left;
      const uint64_t at = whole + i % left;
      uint32_t sum = 0;
      for (uint32_t j = 0; j < args.k; j++) {
        uint32_t power = args.x[j][at];
        for (uint32_t c = args.a[row * args.k + j]; c; c >>= 1) {
          sum ^= c & 1 ? power : 0;
          power = weft_gf256_double4(power);
        }
      }
      args.y[row][at] = static_cast<uint8_t>(sum);
    }
  }
};

template <int Quarters, int Quads, int Passes, int Stages, bool One, int BlocksPerSm>
__global__ void __launch_bounds__(Threads, BlocksPerSm)
    wgmma_kernel(const __grid_constant__ weft_storage_args args, const Cut cut) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) uint8_t memory[];
  __shared__ const uint8_t *rows[Quarter * Quarters];
  if (threadIdx.x < Quarter * Quarters) // some sources are copied twice rather than asked about
    rows[threadIdx.x] = args.x[min(threadIdx.x, args.k - 1)];
  __syncthreads();
  // What is above and the next kernel's share of it run while the kernel before ends.
  asm volatile("griddepcontrol.launch_dependents;");
  if (!cut.overlaps)
    asm volatile("griddepcontrol.wait;" ::: "memory");
  using Own = Walk<Quarters, Quads, Passes, Stages, One>;
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

template <int Quarters, int Quads, int Passes, int Stages, bool One, int BlocksPerSm>
weft_status launch(const weft_exec *exec, const weft_storage_args &args, uint32_t run) {
  const auto kernel = wgmma_kernel<Quarters, Quads, Passes, Stages, One, BlocksPerSm>;
  const uint32_t groups = (args.k + 3) / 4;
  // Fragments of missing sources read beyond the last stage.
  const size_t shared = Walk<Quarters, Quads, Passes, Stages, One>::CoefficientBytes +
                        WEFT_STORAGE_WARPS * Stages * groups * GroupBytes +
                        (4 * Quarters - groups) * GroupBytes;
  const uint32_t room =
      static_cast<uint32_t>(weft_device_get_shape(exec->device)->sms) * BlocksPerSm;
  const uint64_t whole = args.len / 16 * 16, tiles = (whole + Tile - 1) / Tile;
  Cut cut = {run, static_cast<uint32_t>(tiles), static_cast<uint32_t>(whole - (tiles - 1) * Tile),
             false};
  while (cut.run > 1 && cut.tiles < cut.run * room)
    cut.run /= 2;
  WEFT_CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(shared)));
  cudaLaunchAttribute overlap;
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = (cut.tiles + cut.run - 1) / cut.run;
  config.blockDim = Threads;
  config.dynamicSmemBytes = shared;
  config.stream = static_cast<cudaStream_t>(exec->stream);
  config.attrs = &overlap;
  config.numAttrs = 1;
  const size_t sms = static_cast<size_t>(weft_device_get_shape(exec->device)->sms);
  cut.overlaps = weft_device_may_overlap(exec, weft_device_span_of(args.x, args.k, args.len),
                                         weft_device_span_of(args.y, args.m, args.len),
                                         config.gridDim.x > sms * BlocksOfSm);
  const weft_status status = WEFT_CUDA(cudaLaunchKernelEx(&config, kernel, args, cut));
  if (status != WEFT_OK)
    weft_device_overlap_ends(exec);
  return status;
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
    if (args.k <= Quarter)
      odd *= 2; // sums are at most 128
    if ((even | odd) & ~lanes)
      return false;
  }
  return true;
}

// Which variant is quickest was measured on an H200.
weft_status choose(const weft_exec *exec, const weft_storage_args &args) {
  const uint32_t quarters = (args.k + Quarter - 1) / Quarter, quads = (args.m + Quad - 1) / Quad;
  switch (4 * (quarters - 1) + quads - 1) {
  case 0:
    return launch<1, 1, 1, 4, true, 6>(exec, args, 4);
  case 1:
    return launch<1, 2, 1, 3, true, 6>(exec, args, 8);
  case 2:
    return launch<1, 1, 3, 3, true, 5>(exec, args, 8);
  case 3:
    return launch<1, 2, 2, 3, true, 6>(exec, args, 8);
  case 4:
    return launch<2, 1, 1, 2, true, 6>(exec, args, 4);
  case 5:
    return launch<2, 1, 2, 2, true, 6>(exec, args, 4);
  case 6:
    return launch<2, 1, 3, 2, true, 5>(exec, args, 8);
  case 7:
    return launch<2, 2, 2, 2, true, 5>(exec, args, 8);
  case 8:
    return launch<3, 1, 1, 2, true, 5>(exec, args, 4);
  case 9:
    return launch<3, 1, 2, 2, true, 4>(exec, args, 8);
  case 10:
    return launch<3, 1, 3, 2, true, 4>(exec, args, 8);
  case 11: // four blocks fit with the rings of up to 40 sources
    return args.k <= 40 ? launch<3, 2, 2, 2, true, 4>(exec, args, 8)
                        : launch<3, 4, 1, 2, false, 3>(exec, args, 8);
  case 12:
    return launch<4, 1, 1, 2, false, 3>(exec, args, 4);
  case 13:
    return launch<4, 2, 1, 2, false, 3>(exec, args, 8);
  case 14:
    return launch<4, 1, 3, 2, true, 3>(exec, args, 8);
  case 15:
    return launch<4, 4, 1, 2, false, 3>(exec, args, 8);
  default:
    return WEFT_E_UNSUPPORTED;
  }
}

} // namespace

bool weft_storage_wgmma_suits(const weft_exec *exec, uint64_t len, bool accumulate) {
  return weft_device_sm(exec->device) == 90 && len >= Tile && !accumulate;
}

weft_status weft_storage_wgmma(const weft_exec *exec, const weft_storage_args &args) {
  if (!weft_storage_wgmma_suits(exec, args.len, args.accumulate) ||
      args.m > WEFT_STORAGE_WGMMA_OUTPUTS || !sums_fit(args))
    return WEFT_E_UNSUPPORTED;
  return choose(exec, args);
}
