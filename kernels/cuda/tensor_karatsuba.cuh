// SPDX-License-Identifier: Apache-2.0
// The Karatsuba step of the binary tensor product: 48 bit products a byte instead of 64.
//
// With h_m the coefficient of 2^7 in c * 2^m, the eight bits h_i(y) of a product y = c * x are a
// Hankel matrix (h_(i+j)) times the bits of x. A Hankel matrix of 2 x 2 blocks has two equal blocks
// beside its diagonal, H = [H0 H1; H1 H2], so that three products of 4 x 4 bits give both halves:
//   Q0 = (H0 + H1) low(x), Q1 = H1 (low(x) + high(x)), Q2 = (H1 + H2) high(x);
//   the upper half is Q0 + Q1, the lower Q1 + Q2.
// That is Karatsuba over GF((2^4)^2) without its change of basis: the data keep their bits, and the
// upper half is y's high nibble h (rows in reverse order). The lower half is y's low nibble, but
// for h + h / 2 + h / 4, which 0x11D has left in it.
//
// So the same pipeline as tensor_wgmma.cuh runs bursts of three kinds: Q2, then Q1, which stays in
// the accumulators when Q0 is added to it. A burst has 64 coded blocks of four bits.
#ifndef WEFT_KERNELS_CUDA_TENSOR_KARATSUBA_CUH
#define WEFT_KERNELS_CUDA_TENSOR_KARATSUBA_CUH

#include "kernels/cuda/tensor_wgmma.cuh"

enum {
  WEFT_KARATSUBA_REGISTERS_FEED = 24, // 24 + 2 * 240 = 3 * 168
  WEFT_KARATSUBA_REGISTERS_MATH = 240
};

// Four coefficients at once: byte i of low has h_0..h_7 of c_i as its bits, high has h_8..h_14.
__device__ __forceinline__ void weft_karatsuba_hankel(uint32_t c, uint32_t &low, uint32_t &high) {
  const uint32_t reversed = __byte_perm(__brev(c), 0, 0x0123), top = reversed & 0x0f0f0f0fu;
  low = reversed ^ (((top << 4) ^ (top << 5) ^ (top << 6)) & 0xf0f0f0f0u);
  // h_(m+8) = h_m + h_(m+2) + h_(m+3) + h_(m+4), as 2^8 = 2^4 + 2^3 + 2^2 + 1.
  const uint32_t part =
      low ^ ((low >> 2) & 0x3f3f3f3fu) ^ ((low >> 3) & 0x1f1f1f1fu) ^ ((low >> 4) & 0x0f0f0f0fu);
  const uint32_t fed = part & 0x07070707u;
  high = part ^ (((fed << 4) ^ (fed << 5) ^ (fed << 6)) & 0x70707070u);
}

// Nibbles of a at bits s.. of its bytes into the low halves of bytes, of b into the high ones.
template <int Shift>
__device__ __forceinline__ uint32_t weft_karatsuba_nibbles(uint32_t a, uint32_t b) {
  return weft_tensor_select(0x0f0f0f0fu, a >> Shift, b << (4 - Shift));
}

// The rows of Q2, Q1 and Q0 for coefficients of blocks i (a) and 16 + i (b): rows[4 * (2 - k) + t]
// is the mask of Qk's bit t.
__device__ __forceinline__ void weft_karatsuba_masks(uint32_t a, uint32_t b, uint32_t (&rows)[12]) {
  uint32_t low_a, high_a, low_b, high_b;
  weft_karatsuba_hankel(a, low_a, high_a);
  weft_karatsuba_hankel(b, low_b, high_b);
  // Bits h_4..h_11, of which windows across the two bytes are cut.
  const uint32_t mid_a = weft_tensor_select(0x0f0f0f0fu, low_a >> 4, high_a << 4);
  const uint32_t mid_b = weft_tensor_select(0x0f0f0f0fu, low_b >> 4, high_b << 4);
  const uint32_t h[12] = {
      // h[s]: h_s..h_(s+3)
      weft_karatsuba_nibbles<0>(low_a, low_b),   weft_karatsuba_nibbles<1>(low_a, low_b),
      weft_karatsuba_nibbles<2>(low_a, low_b),   weft_karatsuba_nibbles<3>(low_a, low_b),
      weft_karatsuba_nibbles<0>(mid_a, mid_b),   weft_karatsuba_nibbles<1>(mid_a, mid_b),
      weft_karatsuba_nibbles<2>(mid_a, mid_b),   weft_karatsuba_nibbles<3>(mid_a, mid_b),
      weft_karatsuba_nibbles<0>(high_a, high_b), weft_karatsuba_nibbles<1>(high_a, high_b),
      weft_karatsuba_nibbles<2>(high_a, high_b), weft_karatsuba_nibbles<3>(high_a, high_b)};
#pragma unroll
  for (int t = 0; t < 4; t++) {
    rows[t] = h[7 - t] ^ h[11 - t];
    rows[4 + t] = h[7 - t];
    rows[8 + t] = h[3 - t] ^ h[7 - t];
  }
}

// Expands the chunk of coded blocks row0..row0+63: a piece is 8 of them by 32 source blocks, a
// lane's share of it 2 x 4 coefficients of one coded block.
template <int Reads, class BeforeStore>
__device__ __forceinline__ void
weft_karatsuba_expand(uint8_t *chunk, const weft_tensor_batch &batch, const weft_tensor_job &job,
                      uint32_t row0, uint32_t warp, uint32_t warps, BeforeStore before_store) {
  enum { Flight = 2 }; // pieces whose loads are on their way at once
  const uint32_t lane = threadIdx.x & 31, quad = lane & 3, q = lane >> 2 & 3, half = lane >> 4;
  const uint32_t pieces = 16 * batch.steps, product = 8192 * batch.steps;
  const uint32_t row = row0 + 4 * half + q;
  uint8_t *to = chunk + half * 256 + q * 32 + quad * 4;
  bool waited = false;
  for (uint32_t first = warp; first < pieces; first += Flight * warps) {
    uint32_t c[Flight][2];
#pragma unroll
    for (uint32_t i = 0; i < Flight; i++) {
      const uint32_t piece = min(first + i * warps, pieces - 1);
      const uint32_t j = 32 * (piece >> 3) + 4 * quad, at = row + 8 * (piece & 7);
      c[i][0] = weft_tensor_quad<Reads>(batch, job, at, j);
      c[i][1] = weft_tensor_quad<Reads>(batch, job, at, j + 16);
    }
    if (!waited)
      before_store();
    waited = true;
#pragma unroll
    for (uint32_t i = 0; i < Flight; i++) {
      const uint32_t piece = first + i * warps;
      if (piece >= pieces)
        continue;
      uint32_t rows[12];
      weft_karatsuba_masks(c[i][0], c[i][1], rows);
      uint8_t *here = to + (piece >> 3) * 4096 + (piece & 7) * 512;
#pragma unroll
      for (uint32_t k = 0; k < 3; k++)
#pragma unroll
        for (uint32_t b = 0; b < 4; b++)
          *reinterpret_cast<uint32_t *>(here + k * product + (b >> 1) * 128 + (b & 1) * 16) =
              rows[4 * k + b];
    }
  }
  if (!waited)
    before_store();
}

template <class BeforeStore>
__device__ __forceinline__ void
weft_karatsuba_expand_chunk(uint8_t *chunk, const weft_tensor_batch &batch,
                            const weft_tensor_job &job, uint32_t row0, uint32_t warp,
                            uint32_t warps, BeforeStore before_store) {
  const bool words = batch.a_words && batch.n % 4 == 0;
  if (words && row0 + WEFT_KARATSUBA_CHUNK <= batch.m &&
      WEFT_KARATSUBA_STEP * batch.steps == batch.n)
    weft_karatsuba_expand<WEFT_TENSOR_WHOLE>(chunk, batch, job, row0, warp, warps, before_store);
  else if (words)
    weft_karatsuba_expand<WEFT_TENSOR_WORDS>(chunk, batch, job, row0, warp, warps, before_store);
  else
    weft_karatsuba_expand<WEFT_TENSOR_BYTES>(chunk, batch, job, row0, warp, warps, before_store);
}

// All steps of one plane of a tile against one matrix of a chunk, added to what d holds or not.
template <int Steps>
__device__ __forceinline__ void weft_karatsuba_burst(uint32_t (&d)[128], uint32_t a, uint32_t b,
                                                     uint32_t keep) {
  weft_wgmma_fence();
#pragma unroll
  for (int step = 0; step < Steps; step++)
    weft_wgmma_n256(d, weft_wgmma_descriptor(a + step * (2 * 1024 >> 4)),
                    weft_wgmma_descriptor(b + step * (2 * 4096 >> 4)), step ? 1 : keep);
  weft_wgmma_commit();
}

// Nibble words (see weft_tensor_nibbles) of groups g and g + 4 in one.
__device__ __forceinline__ uint32_t weft_karatsuba_both(const uint32_t (&pair)[64], int g,
                                                        const weft_tensor_powers &power) {
  const uint32_t first = weft_tensor_nibbles(pair, g, power);
  return weft_tensor_select(0x0f0f0f0fu, first, weft_tensor_nibbles(pair, g + 4, power) * power.p4);
}

// Bytes of y of group g: from the lower half, two groups in one, and the pairs of the upper.
__device__ __forceinline__ uint32_t weft_karatsuba_bytes(const uint32_t (&lower)[4],
                                                         const uint32_t (&pair)[64], int g,
                                                         const weft_tensor_powers &power) {
  const uint32_t mine = g < 4 ? lower[g] : lower[g - 4] >> 4;
  const uint32_t high = weft_tensor_nibbles(pair, g, power) & 0x0f0f0f0fu;
  const uint32_t low = (mine ^ high ^ (high >> 1) ^ (high >> 2)) & 0x0f0f0f0fu;
  return high * power.p4 + low;
}

// Eight words of a thread, put aside in shared memory: registers are short.
struct weft_karatsuba_aside {
  uint32_t at;
  __device__ __forceinline__ void put(const uint32_t (&word)[8]) const {
#pragma unroll
    for (int i = 0; i < 8; i += 4)
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at + i * 4 * 256), "r"(word[i]),
                   "r"(word[i + 1]), "r"(word[i + 2]), "r"(word[i + 3])
                   : "memory");
  }
  __device__ __forceinline__ void get(uint32_t (&word)[8]) const {
#pragma unroll
    for (int i = 0; i < 8; i += 4)
      asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(word[i]), "=r"(word[i + 1]), "=r"(word[i + 2]), "=r"(word[i + 3])
                   : "r"(at + i * 4 * 256)
                   : "memory");
  }
};

template <int Steps>
__device__ __forceinline__ void weft_karatsuba_consume(const weft_tensor_args &args, uint32_t coef,
                                                       uint32_t tiles, uint32_t barriers,
                                                       uint32_t aside_at, uint32_t group) {
  enum {
    Tile = WEFT_KARATSUBA_TILE_BYTES(Steps) >> 4,
    Plane = Tile / 3,
    Chunk = WEFT_KARATSUBA_CHUNK_BYTES(Steps) >> 4,
    Matrix = Chunk / 3
  };
  const weft_tensor_batch &batch = args.batch;
  const weft_tensor_powers &power = args.plan.power;
  const uint32_t a0 = weft_opaque(weft_wgmma_operand(tiles, 1024));
  const uint32_t b0 = weft_opaque(weft_wgmma_operand(coef, 4096));
  const weft_karatsuba_aside aside = {weft_opaque(aside_at)};
  weft_wgmma_walk<2> walk(args, weft_opaque(barriers), group);
  uint32_t d[128], pair[64], lower[4];
#pragma unroll
  for (int i = 0; i < 128; i++)
    d[i] = pair[i / 2] = lower[i / 32] = 0;
  uint32_t done = 0; // the task before this one: 16 * pair + chunk of the item

  const auto store = [&]() {
    const uint32_t row = (walk.chunk0() + done % WEFT_TENSOR_SLOTS_MAX) * WEFT_KARATSUBA_CHUNK;
    const uint32_t at = done / WEFT_TENSOR_SLOTS_MAX * WEFT_TENSOR_PAIR;
    const bool whole = batch.y_words && at + WEFT_TENSOR_PAIR <= batch.len &&
                       row + WEFT_KARATSUBA_CHUNK <= batch.m;
    const uint32_t warp = threadIdx.x >> 5 & 3, r = threadIdx.x >> 2 & 7, q = threadIdx.x & 3;
    const uint32_t stride4 = static_cast<uint32_t>(batch.y_stride) * 4;
    uint8_t *to = weft_wgmma_job(batch, walk.run.product).y + (row + q) * batch.y_stride + at +
                  warp * 32 + r * 4;
    uint32_t tile0[8];
    aside.get(tile0);
    const auto each = [&](auto put) {
#pragma unroll
      for (int g = 0; g < 8; g++) {
        const uint32_t tile1 = weft_karatsuba_bytes(lower, pair, g, power);
        put(2 * g, __byte_perm(tile0[g], tile1, 0x5410));
        put(2 * g + 1, __byte_perm(tile0[g], tile1, 0x7632));
      }
    };
    if (whole && !batch.accumulate)
      each([&](int, uint32_t word) {
        asm volatile("st.global.b32 [%0], %1;" ::"l"(to), "r"(word) : "memory");
        to += stride4;
      });
    else if (whole && batch.y_device) // nothing waits for old bytes, and nobody else writes these
      each([&](int, uint32_t word) {
        asm volatile("red.global.xor.b32 [%0], %1;" ::"l"(to), "r"(word) : "memory");
        to += stride4;
      });
    else
      each([&](int i, uint32_t word) {
        const uint32_t one[1] = {word};
        weft_tensor_store<1>(batch, weft_wgmma_job(batch, walk.run.product), row + q + 4 * i,
                             at + warp * 32 + r * 4, one);
      });
  };

  // Half a task is one tile, and three bursts. There is one place in the code for all of them, so
  // that accumulators and pairs keep their registers; what a burst left is packed during the next.
  enum Left { Nothing, Tile0, Task }; // what the last three bursts were
  uint32_t left = Nothing, burst = 0; // 0, 1, 2: Q2, Q1, Q0
  walk.find_task();
  if (walk.run.unit >= walk.end())
    return;
  uint32_t a = a0 + walk.stage * Tile, b = b0 + walk.slot_of(walk.task) * Chunk;
  for (;;) {
    weft_karatsuba_burst<Steps>(d, a, b, burst == 2);
    weft_pin(pair);
    a += Plane;
    b += Matrix;
    if (burst != 0) {
#pragma unroll
      for (int g = 0; g < 4; g++)
        lower[g] ^= weft_karatsuba_both(pair, g, power);
    } else {
      if (left == Tile0) {
        uint32_t tile0[8];
#pragma unroll
        for (int g = 0; g < 8; g++)
          tile0[g] = weft_karatsuba_bytes(lower, pair, g, power);
        aside.put(tile0);
      } else {
        if (left == Task)
          store();
        done = walk.run.pair * WEFT_TENSOR_SLOTS_MAX + walk.task;
      }
#pragma unroll
      for (int g = 0; g < 4; g++)
        lower[g] = 0;
    }
    if (burst == 2) { // what comes next is waited for while the product runs
      if (left != Tile0) {
        walk.await_part(1);
      } else {
        const uint32_t next = walk.task + WEFT_WGMMA_GROUPS, here = walk.here();
        if (next >= here && next - here < here && !walk.at_last_unit())
          walk.await_part(2);
      }
    }
    weft_wgmma_wait<0>();
    weft_pin(d);
    weft_tensor_pairs(pair, d, power);
    weft_pin(pair);
    if (++burst < 3)
      continue;
    burst = 0;
    const uint32_t next = walk.task + WEFT_WGMMA_GROUPS, here = walk.here();
    const bool same = next < here;
    if (left != Tile0) {
      left = Tile0;
      if (!same)
        walk.release_part(0);
      a = a0 + walk.stage_of(1) * Tile;
      b -= Chunk;
      continue;
    }
    const bool last = walk.at_last_unit();
    if (last)
      walk.release_chunks(min(next, here));
    if (same) { // of the same tiles
      left = Task;
      walk.task = next;
    } else if (!last && next - here < here) { // of the item's next pair
      left = Task;
      walk.task = next - here;
      walk.release_tiles(1);
      walk.run.unit++;
      walk.run.pair++;
    } else {
      left = Nothing;
      store();
      walk.task = next - here;
      walk.leave_unit(1);
      walk.find_task();
      if (walk.run.unit >= walk.end())
        return;
    }
    if (walk.run.unit < walk.first + WEFT_WGMMA_GROUPS) // later ones have met every chunk
      walk.await_chunk(walk.task);
    a = a0 + walk.stage * Tile;
    b = b0 + walk.slot_of(walk.task) * Chunk;
  }
}

template <int Steps>
__global__ void __launch_bounds__(WEFT_WGMMA_THREADS, 1)
    weft_karatsuba_kernel(const __grid_constant__ weft_tensor_args args) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint8_t memory[];
  __shared__ weft_wgmma_shared barriers;
  __shared__ uint4 aside[2 * 256];
  uint8_t *tiles = memory + args.plan.slots * WEFT_KARATSUBA_CHUNK_BYTES(Steps);
  weft_wgmma_start(args.plan, &barriers);
  const uint32_t warpgroup = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
  if (warpgroup == 0) {
    weft_registers_give<WEFT_KARATSUBA_REGISTERS_FEED>();
    const uint32_t warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
    if (warp > 0)
      weft_wgmma_expand(args, memory, WEFT_KARATSUBA_CHUNK_BYTES(Steps), &barriers, warp - 1,
                        [&](uint8_t *to, const weft_tensor_job &job, uint32_t chunk, uint32_t share,
                            uint32_t warps, auto wait) {
                          weft_karatsuba_expand_chunk(to, args.batch, job,
                                                      chunk * WEFT_KARATSUBA_CHUNK, share, warps,
                                                      wait);
                        });
    else if (threadIdx.x == 0)
      weft_wgmma_feed<2>(args, weft_shared_address(tiles), WEFT_KARATSUBA_TILE_BYTES(Steps),
                         &barriers);
  } else {
    weft_registers_take<WEFT_KARATSUBA_REGISTERS_MATH>();
    weft_karatsuba_consume<Steps>(args, weft_shared_address(memory), weft_shared_address(tiles),
                                  weft_shared_address(&barriers),
                                  weft_shared_address(aside + threadIdx.x - 128), warpgroup - 1);
  }
#else
  (void)args;
#endif
}

#endif
