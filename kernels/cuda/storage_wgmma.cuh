// SPDX-License-Identifier: Apache-2.0
// Products with few coded blocks by wgmma, m64nNk256 on bits: a block is one warpgroup, whose
// positions come from registers and whose bit rows of coefficients lie in shared memory.
//
// A warp copies 128 bytes of every source at a time into a ring of its own, some tiles ahead
// (cp.async, a line to a line), and takes them from there 32 positions a step. Turned matrices of
// eight sources and 16 positions (ldmatrix) give lane (g, q) = (lane / 4, lane % 4) two positions,
// 2g and 2g + 1, of sources 2q and 2q + 1; two of them make the words of four sources that the
// fragments want, 32 bits of quarter h: sources 16h + 2q, + 1, + 8, + 9. Quarters beyond k multiply
// whatever lies there by zeros. Columns are arranged as in storage_tensor.cu.
//
// A step is two products of 64 positions, of the first and the second 16 of every warp. Four sums
// become one word by two instructions on two pipes, and eight such words one word of coded bytes,
// which the same matrices turn back into rows (stmatrix), while the next product runs: sums have
// two places. Words hold sums in bytes, so that no row of bits may have more than 255 ones; codes
// have about four in each byte.
//
// With up to 16 sources half of the inner dimension is left over. It counts odd bits once more,
// which puts their parity where it is wanted.
#ifndef WEFT_KERNELS_CUDA_STORAGE_WGMMA_CUH
#define WEFT_KERNELS_CUDA_STORAGE_WGMMA_CUH

#include "kernels/cuda/gf256.cuh"
#include "kernels/cuda/storage_tensor.cuh"
#include "kernels/cuda/storage_wgmma_ptx.cuh"
#include "kernels/cuda/tensor_expand.cuh"
#include "kernels/cuda/tensor_ptx.cuh"

// What all shapes have in common.
struct weft_storage_block {
  enum {
    Quarter = WEFT_STORAGE_QUARTER,
    Quad = WEFT_STORAGE_QUAD,
    Threads = 32 * WEFT_STORAGE_WARPS,
    WarpTile = WEFT_STORAGE_POSITIONS,
    Tile = WEFT_STORAGE_WARPS * WarpTile,
    Step = 32, // positions of a warp
    StepsOfTile = WarpTile / Step,
    GroupBytes = 512 // of four sources in a warp's stage
  };
};

// The last tile ends where the last 16 whole bytes do, and overlaps the one before it.
struct weft_storage_cut {
  uint32_t run;       // tiles of a block
  uint32_t tiles;     // of the launch
  uint32_t last_move; // bytes from the last tile but one to the last
  bool overlaps;      // the wait for the kernel before comes last
};

// Passes are products of Quads each, with the same positions.
template <int Quarters, int Quads, int Passes, int Stages>
struct weft_storage_walk : weft_storage_block {
  enum {
    QuadsAll = Quads * Passes,
    Steps = (Quarters + 1) / 2,        // of 256 bits
    HalfBytes = GroupBytes * QuadsAll, // of coefficients: 128 bits of every row
    CoefficientBytes = 2 * Steps * HalfBytes,
    StagingBytes = 32 * Quad * QuadsAll, // of a warp: a step of every row
    Sums = 16 * Quads,
    Twice = Quarters == 1 // odd bits are counted twice
  };

  const weft_storage_args &args;
  const weft_storage_cut &cut;
  const uint32_t lane, warp, g, q;
  const uint32_t stage_bytes; // of a warp
  const uint32_t first, here; // tiles of this block
  // Shared addresses of this lane: where it copies to in stage 0, its sources in the row table, the
  // row that it gives in stage 0, its 16 bytes of the staging.
  uint32_t put, rows, get, out;
  uint32_t last;         // from the row that it gives in the first quarter to that in the last
  uint64_t from;         // offset in every source of what is copied next
  uint32_t coefficients; // descriptor
  uint32_t zero;
  uint32_t sums[2][Sums], packed[8 * Quads];
  uint32_t raw[Quarters][4], fragment[2][Quarters][4]; // of this step and the next, in turn
  uint8_t *to;                                         // this lane's half of a row, at the tile

  __device__ __forceinline__ weft_storage_walk(const weft_storage_args &args_,
                                               const weft_storage_cut &cut_)
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

  // A row of a stage is a line. Its chunks of 16 bytes are turned, so that eight rows of one chunk
  // lie in all banks.
  __device__ __forceinline__ static uint32_t turned(uint32_t group, uint32_t row, uint32_t chunk) {
    return group * GroupBytes + row * 128 + ((chunk * 16) ^ (row * 32) ^ (group % 2 * 16));
  }

  // Eight lanes copy a line, and each takes a row of a matrix: of eight sources and a chunk.
  // Sources that are not there are the last group's.
  __device__ __forceinline__ void place(uint32_t shared, uint32_t row_table) {
    const uint32_t staging = shared + CoefficientBytes;
    const uint32_t ring = staging + WEFT_STORAGE_WARPS * StagingBytes + warp * Stages * stage_bytes;
    const uint32_t source = lane & 15, chunk = lane >> 4, group = source >> 2;
    const uint32_t far = min(4 * (Quarters - 1) + group, (args.k - 1) / 4);
    put = weft_opaque(ring + turned(0, lane >> 3, lane & 7));
    rows = weft_opaque(row_table + (lane >> 3) * 16);
    get = weft_opaque(ring + turned(group, source & 3, chunk));
    last = weft_opaque(ring + turned(far, source & 3, chunk) - get);
    out = weft_opaque(staging + warp * StagingBytes + lane * 16);
  }

  __device__ __forceinline__ void copy(int group, uint32_t stage, uint64_t row) {
    if (group < 4 * (Quarters - 1) || group * 4 < args.k)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(stage + group * GroupBytes),
                   "l"(row + from)
                   : "memory");
  }

  // Tiles are filled in order.
  __device__ __forceinline__ void fill(uint32_t tile, uint32_t slot) {
    if (tile < here) {
      const uint32_t even = put + slot * stage_bytes, odd = even ^ 16;
#pragma unroll
      for (int i = 0; i < 4 * Quarters; i += 4) {
        uint64_t row[4];
        asm volatile("ld.shared.v2.b64 {%0, %1}, [%2];"
                     : "=l"(row[0]), "=l"(row[1])
                     : "r"(rows + i * 32));
        asm volatile("ld.shared.v2.b64 {%0, %1}, [%2];"
                     : "=l"(row[2]), "=l"(row[3])
                     : "r"(rows + i * 32 + 64));
#pragma unroll
        for (int j = 0; j < 4; j++)
          copy(i + j, j % 2 == 0 ? even : odd, row[j]);
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
      const uint32_t source = (Twice ? 0 : Quarter * half) + 2 * word;
      uint32_t some = 0, bits[8];
      for (uint32_t s = 0; s < 4; s++) {
        const uint32_t j = source + s % 2 + s / 2 * 8;
        if (j < args.k)
          some |= static_cast<uint32_t>(args.a[row * args.k + j]) << (8 * s);
      }
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

  // Two positions of two sources a word: 2g and 2g + 1 of sources 2q and 2q + 1 of the first eight,
  // the same of the other eight, and both of the next chunk.
  __device__ __forceinline__ void load(uint32_t at) {
#pragma unroll
    for (int h = 0; h < Quarters; h++)
      weft_storage_load_turned(raw[h], at + (h + 1 < Quarters ? 4 * h * GroupBytes : last));
  }

  __device__ __forceinline__ void transpose(int f) {
#pragma unroll
    for (int h = 0; h < Quarters; h++)
#pragma unroll
      for (int i = 0; i < 4; i++)
        fragment[f][h][i] =
            __byte_perm(raw[h][i & 2], raw[h][(i & 2) + 1], i % 2 == 0 ? 0x6420 : 0x7531);
  }

  // Starts sums of step `f`: of the first 16 positions where `low` is 0, of the second where it is
  // 2. These have the first place, those the second.
  __device__ __forceinline__ void multiply(int f, int low, int pass) {
    uint32_t(&d)[Sums] = sums[low == 0];
    weft_pin(d);
    weft_wgmma_fence();
#pragma unroll
    for (int step = 0; step < Steps; step++) {
      const int h = 2 * step, other = h + 1 < Quarters ? h + 1 : h;
      uint32_t a[4] = {fragment[f][h][low], fragment[f][h][low + 1], fragment[f][other][low],
                       fragment[f][other][low + 1]};
      if (other == h && !Twice) // times zero
        asm volatile("" : "=r"(a[2]), "=r"(a[3]));
      const uint32_t b = coefficients + (step * 2 * HalfBytes + pass * Quads * 512) / 16;
      weft_storage_wgmma_step(d, a, weft_wgmma_descriptor(b), step > 0 ? 1 : zero);
    }
    weft_wgmma_commit();
    weft_pin(packed);
  }

  // Until `After` products are on their way.
  template <int After>
  __device__ __forceinline__ uint32_t (&await_sums(int place))[Sums] {
    weft_wgmma_wait<After>();
    weft_pin(sums[place]);
    return sums[place];
  }

  // The upper two bytes of each word, in the lower half until the others come.
  __device__ __forceinline__ void pack_upper(const uint32_t (&d)[Sums]) {
#pragma unroll
    for (int i = 0; i < 8 * Quads; i++) {
      const int at = i / 2 * 4 + i % 2;
      packed[i] =
          weft_storage_shift_add(static_cast<int>(d[at + 2]), 256.0f, static_cast<int>(d[at]));
    }
    weft_pin(packed);
  }

  __device__ __forceinline__ void pack_lower(const uint32_t (&d)[Sums]) {
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

  // What a pass has packed, to this warp's staging: 32 bytes of a row after those of another.
  __device__ __forceinline__ void leave(int pass) {
    uint32_t words[Quads];
#pragma unroll
    for (int c = 0; c < Quads; c++)
      words[c] = word(c);
    weft_storage_store_turned(out + pass * Quads * 128, words);
  }

  // All rows of a step from there to memory.
  __device__ __forceinline__ void send(uint32_t at, bool mine) {
    __syncwarp();
    if (mine) {
      uint4 v;
      asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                   : "r"(out)
                   : "memory");
      __stcs(reinterpret_cast<uint4 *>(to + at), v);
    }
    __syncwarp();
  }

  // All passes of a step whose first product is on its way. Then that of the next step is; not
  // across tiles, as the compiler waits for products that are on their way where a loop begins
  // anew.
  __device__ __forceinline__ void one_step(int step, bool mine) {
    const int f = step % 2;
#pragma unroll
    for (int pass = 0; pass < Passes; pass++) {
      multiply(f, 0, pass);
      pack_upper(await_sums<1>(0));
      if (pass + 1 < Passes) {
        multiply(f, 2, pass + 1);
        pack_lower(await_sums<1>(1));
      } else {
        transpose(1 - f);
        if (step + 1 < StepsOfTile) {
          multiply(1 - f, 2, 0);
          pack_lower(await_sums<1>(1));
        } else {
          pack_lower(await_sums<0>(1));
        }
      }
      leave(pass);
    }
    send(step * Step, mine);
  }

  __device__ __forceinline__ void run() {
    const bool mine = lane / 2 < args.m;
    to = args.y[min(lane / 2, args.m - 1)] + start() + warp * WarpTile + lane % 2 * 16;
#pragma unroll
    for (int i = 0; i < 8 * Quads; i++)
      packed[i] = 0;
#pragma unroll
    for (int i = 0; i < Sums; i++)
      sums[0][i] = sums[1][i] = 0;
    uint32_t slot = 0;
    await_oldest();
    load(get);
    transpose(0);
#pragma unroll 1
    for (uint32_t tile = 0; tile < here; tile++) {
      const uint32_t stage = weft_opaque(get + slot * stage_bytes);
      multiply(0, 2, 0);
#pragma unroll
      for (int step = 0; step < StepsOfTile; step++) {
        uint32_t next = stage ^ (Step * (step + 1));
        if (step + 1 == StepsOfTile) { // the stage has been read
          __syncwarp();
          fill(tile + Stages, slot);
          slot = slot + 1 == Stages ? 0 : slot + 1;
          await_oldest();
          next = get + slot * stage_bytes;
        }
        load(next);
        one_step(step, mine);
      }
      to += move(tile);
    }
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

#endif
