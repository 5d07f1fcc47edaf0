// SPDX-License-Identifier: Apache-2.0
// cuda-nibble-prmt: split nibble tables held in registers and looked up by PRMT, four bytes at
// once. PRMT chooses among eight bytes, so a nibble's table of 16 would take two of them and a
// choice. The tables are linear: a nibble's fourth bit adds its own product, and the two fourth
// bits of a byte share a third table of four. So 3 + 3 + 2 bits, three PRMT, per four bytes and
// coefficient, and one and a half LOP3 to add them. Limited by the ALU.
//
// Prepared data holds the selectors, 16 bits for four bytes and table; per 512 columns three planes
// of 256 bytes, in each of which a thread finds the selectors of its 16 bytes as one 8-byte word.
#include "kernels/cuda/log_domain.cuh"
#include "kernels/cuda/nibbles.cuh"

namespace {

struct Layout {
  __device__ static void write(const weft_cuda_pack &pack, uint32_t j, uint32_t column,
                               uint2 bytes) {
    uint8_t *out = pack.out + j * pack.out_stride + column / 512 * 768 + column % 512 / 2;
    const weft_selectors x = weft_select(bytes.x), y = weft_select(bytes.y);
    *reinterpret_cast<uint32_t *>(out) = x.low | y.low << 16;
    *reinterpret_cast<uint32_t *>(out + 256) = x.high | y.high << 16;
    *reinterpret_cast<uint32_t *>(out + 512) = x.fourth | y.fourth << 16;
  }
};

struct Policy {
  enum { ROWS = 8, BYTES = 16, ACC = 4, CHUNK = 128, COEF_WORDS = 5 };
  enum { TABLE_BYTES = 0, GROUP_BYTES = 768 };
  typedef weft_cuda_no_tables Tables;
  struct Data {
    uint2 plane[3];
  };

  __device__ Policy(const uint8_t *, const Tables &) {}
  __device__ static void fill(uint8_t *, const Tables &) {}
  __device__ static uint32_t coefficient(const uint8_t *a, size_t at) { return a[at]; }

  __device__ static void expand(uint32_t *block, uint32_t r, uint32_t c, const uint8_t *) {
    uint32_t power[8];
    weft_nibble_powers(power, c);
    const weft_nibble_tables tables = weft_nibble_tables_of(power);
    reinterpret_cast<uint4 *>(block)[r] = tables.nibbles;
    block[4 * ROWS + r] = tables.fourth;
  }
  __device__ static size_t offset(uint32_t column, uint32_t lane) {
    return static_cast<size_t>(column / 512) * 768 + 8 * lane;
  }
  __device__ static Data load(const uint8_t *x) {
    const uint2 *planes = reinterpret_cast<const uint2 *>(x);
    return {{planes[0], planes[32], planes[64]}};
  }
  __device__ static void unpack(uint32_t (&selector)[3][4], const Data &data) {
#pragma unroll
    for (int p = 0; p < 3; p++) {
      selector[p][0] = data.plane[p].x; // PRMT reads the low half only
      selector[p][1] = data.plane[p].x >> 16;
      selector[p][2] = data.plane[p].y;
      selector[p][3] = data.plane[p].y >> 16;
    }
  }
  __device__ static void mac(uint32_t (&acc)[ROWS][ACC], const Data &first, const Data &second,
                             const uint32_t *block0, const uint32_t *block1) {
    uint32_t s0[3][4], s1[3][4];
    unpack(s0, first);
    unpack(s1, second);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      const uint4 t0 = reinterpret_cast<const uint4 *>(block0)[r];
      const uint4 t1 = reinterpret_cast<const uint4 *>(block1)[r];
      const uint32_t f0 = block0[4 * ROWS + r], f1 = block1[4 * ROWS + r];
#pragma unroll
      for (int w = 0; w < 4; w++) {
        uint32_t sum = acc[r][w];
        sum ^= weft_prmt(t0.x, t0.y, s0[0][w]) ^ weft_prmt(t0.z, t0.w, s0[1][w]);
        sum ^= weft_prmt(f0, 0, s0[2][w]) ^ weft_prmt(t1.x, t1.y, s1[0][w]);
        sum ^= weft_prmt(t1.z, t1.w, s1[1][w]) ^ weft_prmt(f1, 0, s1[2][w]);
        acc[r][w] = sum;
      }
    }
  }
  __device__ static uint32_t word(const uint32_t (&acc)[ACC], uint32_t w) { return acc[w]; }
};

} // namespace

WEFT_CUDA_TABLE_ROW(nibble_prmt, Policy, false, weft_cuda_pack_launch<Layout>, WEFT_OK)
