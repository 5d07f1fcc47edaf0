// SPDX-License-Identifier: Apache-2.0
// Products with few coded blocks, as erasure codes have them, by binary tensor cores: on sm_90 by
// storage_wgmma.cu where it takes them, else here. Sources are read once, as they lie: a thread
// takes 16 bytes of four rows at a time and transposes them in registers, which gives it the
// fragments that mma wants, so that data never passes through shared memory and no tiles are made.
//
// mma.m16n8k256 (and, popc) wants of lane (g, q) = (lane / 4, lane % 4) the bits of rows g and g +
// 8 at 32q and 128 + 32q. Rows are byte positions and 32 bits are four sources: quarter h of the
// inner dimension is sources 16h + 4q + i, i < 4, byte i. Lane (g, q) loads positions 16g..16g+15
// of its sources and has fragments for 8 tiles of 16 positions. Columns are arranged so that a
// thread owns the 8 bits of one byte: bit 2t + e of coded block 4c + q is column 2q + e of tile t
// of quad c.
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/storage_tensor.cuh"
#include "kernels/cuda/tensor_expand.cuh"
#include "kernels/cuda/transpose.cuh"
#include "kernels/smaller.h"

#include <string.h>

namespace {

enum {
  Quarter = WEFT_STORAGE_QUARTER,
  Warps = WEFT_STORAGE_WARPS,
  Positions = WEFT_STORAGE_POSITIONS,
  Quad = WEFT_STORAGE_QUAD
};
using Args = weft_storage_args;

// The first step of a sum starts from zero: in the instruction, not by clearing registers.
__device__ __forceinline__ void mma_k256(int (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1, bool first) {
  if (first)
    asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(0));
  else
    asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void mma_k128(int (&d)[4], uint32_t a0, uint32_t a1, uint32_t b,
                                         bool first) {
  if (first)
    asm("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, "
        "{%4, %5}, {%6}, {%7, %7, %7, %7};"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
        : "r"(a0), "r"(a1), "r"(b), "r"(0));
  else
    asm("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, "
        "{%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a0), "r"(a1), "r"(b));
}

// The last bytes of a row, fewer than 16, padded with zeros.
__device__ __noinline__ uint4 load_part(const uint8_t *from, uint32_t bytes) {
  uint64_t low = 0, high = 0;
  for (uint32_t i = 0; i < bytes && i < 8; i++)
    low |= static_cast<uint64_t>(from[i]) << (8 * i);
  for (uint32_t i = 8; i < bytes; i++)
    high |= static_cast<uint64_t>(from[i]) << (8 * i - 64);
  return make_uint4(static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
                    static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32));
}

__device__ __forceinline__ void store16(uint8_t *row, uint64_t at, uint64_t len, uint4 v,
                                        bool accumulate) {
  if (at + 16 <= len) {
    uint4 *to = reinterpret_cast<uint4 *>(row + at);
    if (accumulate) {
      const uint4 old = *to;
      v = make_uint4(v.x ^ old.x, v.y ^ old.y, v.z ^ old.z, v.w ^ old.w);
    }
    __stcs(to, v);
    return;
  }
  const uint32_t word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (uint32_t i = 0; i < 16; i++)
    if (at + i < len) {
      const uint32_t byte = word[i / 4] >> (8 * (i % 4));
      row[at + i] = static_cast<uint8_t>(accumulate ? row[at + i] ^ byte : byte);
    }
}

// data[h][p]: the four sources of quarter h at position p of the thread's 16.
template <int H>
__device__ __forceinline__ void load_tile(uint32_t (&data)[H][16], const uint8_t *const *rows,
                                          uint32_t q, uint32_t k, uint64_t at, uint64_t len) {
  const bool whole = at + 16 <= len;
#pragma unroll
  for (int h = 0; h < H; h++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const uint32_t j = Quarter * h + 4 * q + i;
      uint4 v = make_uint4(0, 0, 0, 0);
      if (whole && j < k)
        v = __ldcs(reinterpret_cast<const uint4 *>(rows[j] + at));
      data[h][i] = v.x, data[h][4 + i] = v.y, data[h][8 + i] = v.z, data[h][12 + i] = v.w;
    }
  if (!whole && at < len)
#pragma unroll
    for (int h = 0; h < H; h++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const uint32_t j = Quarter * h + 4 * q + i;
        uint4 v = make_uint4(0, 0, 0, 0);
        if (j < k)
          v = load_part(rows[j] + at, static_cast<uint32_t>(len - at));
        data[h][i] = v.x, data[h][4 + i] = v.y, data[h][8 + i] = v.z, data[h][12 + i] = v.w;
      }
}

template <int H>
__device__ __forceinline__ void transpose_tile(uint32_t (&data)[H][16],
                                               const uint32_t (&rows)[H][16]) {
#pragma unroll
  for (int h = 0; h < H; h++)
#pragma unroll
    for (int i = 0; i < 16; i += 4) {
      uint32_t w[4] = {rows[h][i], rows[h][i + 1], rows[h][i + 2], rows[h][i + 3]};
      weft_transpose(w); // four words of four rows to four positions
      data[h][i] = w[0], data[h][i + 1] = w[1], data[h][i + 2] = w[2], data[h][i + 3] = w[3];
    }
}

// Bits of the four positions of a thread to bytes: d[tile][bit pair][fragment]. Sums of less than
// 32 sources fit a byte; wider ones are kept 12 bits apart, so that every other byte has its bits
// in the upper half until the end.
template <bool Wide>
__device__ __forceinline__ uint32_t pack(const int (&d)[2][4][4], const weft_tensor_powers &power) {
  uint32_t bit[8];
#pragma unroll
  for (int b = 0; b < 8; b++) {
    const int t = b >> 1, e = b & 1;
    const float apart = Wide ? 4096.0f : 256.0f;
    const uint32_t low = weft_storage_shift_add(d[0][t][2 + e], apart, d[0][t][e]);
    const uint32_t high = weft_storage_shift_add(d[1][t][2 + e], apart, d[1][t][e]);
    bit[b] = __byte_perm(low, high, 0x5410);
  }
  const uint32_t one = Wide ? 0x10011001u : 0x01010101u, three = 3 * one;
  uint32_t two[4];
#pragma unroll
  for (int i = 0; i < 4; i++)
    two[i] = weft_tensor_select(one, bit[2 * i], bit[2 * i + 1] * power.p1);
  const uint32_t low = weft_tensor_select(three, two[0], two[1] * power.p2);
  const uint32_t high = weft_tensor_select(three, two[2], two[3] * power.p2);
  if (!Wide)
    return weft_tensor_select(0x0f0f0f0fu, low, high * power.p4);
  const uint32_t even = weft_tensor_select(0x000f000fu, low, high * power.p4);
  const uint32_t odd = weft_tensor_select(0x0f000f00u, low >> 4, high);
  return weft_tensor_select(0x00ff00ffu, even, odd);
}

// The bit rows of the coefficients as fragments: word t of (quad c, quarter h, lane).
__device__ void make_fragments(uint32_t *fragments, const Args &args, uint32_t quads, uint32_t H) {
  for (uint32_t i = threadIdx.x; i < quads * H * 16; i += blockDim.x) {
    const uint32_t q = i & 3, block = i >> 2 & 3, h = (i >> 4) % H, c = (i >> 4) / H;
    const uint32_t row = Quad * c + block, j = Quarter * h + 4 * q;
    uint32_t coefficients = 0, bits[8];
    for (uint32_t s = 0; s < 4; s++)
      if (row < args.m && j + s < args.k)
        coefficients |= static_cast<uint32_t>(args.a[row * args.k + j + s]) << (8 * s);
    weft_tensor_masks(coefficients, bits);
    uint32_t *to = fragments + ((c * H + h) * 32 + 8 * block + q) * 4;
    for (int b = 0; b < 8; b++)
      to[16 * (b & 1) + (b >> 1)] = bits[b];
  }
}

template <int H, bool Wide, int BlocksPerSm>
__global__ void __launch_bounds__(32 * Warps, BlocksPerSm)
    tensor_kernel(const __grid_constant__ Args args) {
  extern __shared__ uint4 shared[];
  const uint8_t **rows = reinterpret_cast<const uint8_t **>(shared);
  uint8_t **outs = reinterpret_cast<uint8_t **>(shared + WEFT_STORAGE_SOURCES / 2);
  uint32_t *fragments = reinterpret_cast<uint32_t *>(outs + WEFT_STORAGE_OUTPUTS);
  const uint32_t quads = (args.m + Quad - 1) / Quad;
  for (uint32_t i = threadIdx.x; i < args.k; i += blockDim.x)
    rows[i] = args.x[i];
  for (uint32_t i = threadIdx.x; i < args.m; i += blockDim.x)
    outs[i] = args.y[i];
  make_fragments(fragments, args, quads, H);
  __syncthreads();
  const uint32_t lane = threadIdx.x & 31, g = lane >> 2, q = lane & 3;
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * Warps;
  uint64_t tile = static_cast<uint64_t>(blockIdx.x) * Warps + threadIdx.x / 32;
  if (tile >= args.tiles)
    return;
  uint32_t next[H][16];
  load_tile<H>(next, rows, q, args.k, tile * Positions + 16 * g, args.len);
  for (; tile < args.tiles; tile += step) {
    const uint64_t at = tile * Positions + 16 * g;
    uint32_t data[H][16];
    transpose_tile<H>(data, next);
    if (H == 1 && tile + step < args.tiles)
      load_tile<H>(next, rows, q, args.k, at + step * Positions, args.len);
    for (uint32_t c = 0; c < quads; c++) {
      uint4 b[H];
#pragma unroll
      for (int h = 0; h < H; h++)
        b[h] = shared[(WEFT_STORAGE_SOURCES + WEFT_STORAGE_OUTPUTS) / 2 + (c * H + h) * 32 + lane];
      uint32_t word[4];
#pragma unroll
      for (int p = 0; p < 4; p++) {
        int d[2][4][4];
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
          for (int h = 0; h < H; h += 2) {
            const int low = 4 * p + 2 * t;
            if (h + 1 < H) {
              const uint32_t a[4] = {data[h][low], data[h][low + 1], data[h + 1][low],
                                     data[h + 1][low + 1]};
              mma_k256(d[t][0], a, b[h].x, b[h + 1].x, h == 0);
              mma_k256(d[t][1], a, b[h].y, b[h + 1].y, h == 0);
              mma_k256(d[t][2], a, b[h].z, b[h + 1].z, h == 0);
              mma_k256(d[t][3], a, b[h].w, b[h + 1].w, h == 0);
            } else {
              mma_k128(d[t][0], data[h][low], data[h][low + 1], b[h].x, h == 0);
              mma_k128(d[t][1], data[h][low], data[h][low + 1], b[h].y, h == 0);
              mma_k128(d[t][2], data[h][low], data[h][low + 1], b[h].z, h == 0);
              mma_k128(d[t][3], data[h][low], data[h][low + 1], b[h].w, h == 0);
            }
          }
        word[p] = pack<Wide>(d, args.power);
      }
      if (Quad * c + q < args.m)
        store16(outs[Quad * c + q], at, args.len, make_uint4(word[0], word[1], word[2], word[3]),
                args.accumulate);
    }
    if (H > 1 && tile + step < args.tiles)
      load_tile<H>(next, rows, q, args.k, at + step * Positions, args.len);
  }
}

template <int H, bool Wide, int BlocksPerSm>
weft_status launch(const weft_exec *exec, const Args &args) {
  const size_t quads = (args.m + Quad - 1) / Quad;
  const size_t shared =
      (WEFT_STORAGE_SOURCES + WEFT_STORAGE_OUTPUTS) * sizeof(void *) + quads * H * 512;
  const uint64_t most =
      static_cast<uint64_t>(weft_device_get_shape(exec->device)->sms) * BlocksPerSm;
  const uint64_t blocks = (args.tiles + Warps - 1) / Warps;
  tensor_kernel<H, Wide, BlocksPerSm><<<static_cast<unsigned>(blocks < most ? blocks : most),
                                        32 * Warps, shared, weft_cuda_stream(exec)>>>(args);
  return WEFT_CUDA_LAUNCHED();
}

weft_status run(const weft_exec *exec, const Args &args) {
  switch ((args.k + Quarter - 1) / Quarter) {
  case 1:
    return launch<1, false, 6>(exec, args);
  case 2:
    return args.k < 32 ? launch<2, false, 5>(exec, args) : launch<2, true, 5>(exec, args);
  case 3:
    return launch<3, true, 4>(exec, args);
  default:
    return launch<4, true, 3>(exec, args);
  }
}

size_t ceil_div(size_t a, size_t b) { return (a + b - 1) / b; }

} // namespace

extern "C" weft_status weft_storage_tensor(const weft_exec *exec, const weft_gemm *gemm) {
  if (gemm->x_prepared || gemm->a_mem == WEFT_MEM_DEVICE || gemm->k == 0 ||
      gemm->x.mem == WEFT_MEM_HOST || gemm->y.mem == WEFT_MEM_HOST)
    return WEFT_E_UNSUPPORTED;
  if (weft_storage_address_bits(gemm->x, gemm->k, gemm->y, gemm->m) % 16)
    return WEFT_E_UNSUPPORTED;
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  Args args;
  args.len = gemm->len;
  args.tiles = (gemm->len + Positions - 1) / Positions;
  args.power = {2, 4, 16, 1u << 16};
  // A panel's coefficients travel with the launch; panels of sources add up. Outputs are dealt
  // evenly, because a launch's time goes by quads of them.
  for (size_t from = 0; from < gemm->k && args.tiles; from += args.k) {
    const size_t left = gemm->k - from;
    args.k = static_cast<uint32_t>(weft_smaller(left, WEFT_STORAGE_SOURCES));
    args.accumulate = gemm->accumulate || from > 0;
    const size_t outputs = weft_storage_wgmma_suits(exec, args.len, args.accumulate)
                               ? size_t{WEFT_STORAGE_WGMMA_OUTPUTS}
                               : size_t{WEFT_STORAGE_OUTPUTS};
    const size_t room = weft_smaller(WEFT_STORAGE_PARAMETERS / args.k, outputs);
    const size_t most = gemm->m ? ceil_div(gemm->m, ceil_div(gemm->m, room)) : 1;
    for (uint32_t j = 0; j < args.k; j++)
      args.x[j] = weft_const_row(&gemm->x, from + j);
    for (size_t row = 0; row < gemm->m; row += args.m) {
      args.m = static_cast<uint32_t>(weft_smaller(gemm->m - row, most));
      for (uint32_t i = 0; i < args.m; i++) {
        args.y[i] = weft_row(&gemm->y, row + i);
        memcpy(args.a + i * args.k, gemm->a + (row + i) * gemm->a_stride + from, args.k);
      }
      const weft_status status = weft_storage_wgmma(exec, args);
      WEFT_TRY(status == WEFT_E_UNSUPPORTED ? run(exec, args) : status);
    }
  }
  return WEFT_OK;
}
