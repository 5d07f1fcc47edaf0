// SPDX-License-Identifier: Apache-2.0
// Inversion of matrices over GF(2^8) in place, by exchange steps: A x = y; step p picks a row r
// whose entry in column p is not zero and solves it for x_p, so that after all steps row r_p gives
// x_p and column p belongs to y_(r_p). Rows never move; the two orders are undone when it is
// written.
//
// Steps are taken 32 columns (a panel) at a time on these columns alone, one thread per row with
// its 32 bytes in registers; then all other columns follow at once, as a product with inner
// dimension 32 = 256 bits on the binary tensor cores:
//   A[i, j] = (i picked in this panel ? 0 : A[i, j]) + sum_q Panel[i, q] * Old[r_q, j].
#ifndef WEFT_KERNELS_CUDA_INVERT_PANEL_CUH
#define WEFT_KERNELS_CUDA_INVERT_PANEL_CUH

#include "kernels/cuda/gf256.cuh"
#include "kernels/cuda/nibbles.cuh"
#include "kernels/cuda/transpose.cuh"

enum { WEFT_PANEL_COLUMNS = 32, WEFT_PANEL_WORDS = 8, WEFT_PANEL_NONE = 0xffff };

// Tables that a block makes once. Products by 2^e by PRMT (three tables of 8, 8 and 4 bytes, see
// nibbles.cuh) are found under e, because a quotient of bytes is a difference of logs; under 255
// there are zeros. masks[c] is the bit matrix of c (byte b: the mask of the input bits whose parity
// is output bit b).
struct weft_invert_tables {
  uint4 nibbles[256];
  uint2 masks[256];
  uint32_t fourth[256];
  uint8_t log[256]; // of 0: 255
  // Powers of two that the compiler cannot see, so that it multiplies where it would shift:
  // products run beside the ALU, which the rest of the kernel keeps busy.
  uint32_t power[5]; // 2, 4, 8, 16, 2^16
};

struct weft_update_powers {
  uint32_t p1, p2, p3, p4, p16;
};

__device__ __forceinline__ weft_update_powers
weft_update_powers_of(const weft_invert_tables *tables) {
  const volatile uint32_t *power = tables->power;
  return {power[0], power[1], power[2], power[3], power[4]};
}

__device__ __forceinline__ void weft_invert_fill(weft_invert_tables *tables) {
  if (threadIdx.x < 5)
    tables->power[threadIdx.x] = threadIdx.x < 4 ? 2u << threadIdx.x : 1u << 16;
  for (uint32_t c = threadIdx.x; c < 256; c += blockDim.x) {
    uint32_t power[8];
    weft_nibble_powers(power, c);
    const weft_nibble_tables own = weft_nibble_tables_of(power);
    uint32_t mask[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
      for (int b = 0; b < 8; b++)
        mask[b / 4] |= ((power[i] >> b) & 1) << (8 * (b % 4) + i);
    const uint32_t log = weft_cuda_global_tables.log[c];
    tables->nibbles[log] = own.nibbles;
    tables->fourth[log] = own.fourth;
    tables->masks[c] = make_uint2(mask[0], mask[1]);
    tables->log[c] = static_cast<uint8_t>(log);
  }
}

// The log of 2^log / 2^by; that of 0 stays 255.
__device__ __forceinline__ uint32_t weft_log_quotient(uint32_t log, uint32_t by) {
  return log == 255 ? 255 : log >= by ? log - by : log + 255 - by;
}

__device__ __forceinline__ uint32_t weft_lookup(const uint4 &nibbles, uint32_t fourth, uint32_t low,
                                                uint32_t high, uint32_t third) {
  return weft_prmt(nibbles.x, nibbles.y, low) ^ weft_prmt(nibbles.z, nibbles.w, high) ^
         weft_prmt(fourth, 0, third);
}

// What the threads of a block tell each other in a step; two, so that one barrier can be saved.
struct weft_panel_exchange {
  uint4 selectors[2]; // of the pivot row's 8 words: low | high << 16
  uint2 fourth[2];    // two words each: 16 bits a word
  uint4 row[2];       // the pivot row itself
  uint16_t first[32]; // per warp: its first row that could be the pivot
};

// The pivot's warp: scales the pivot row and leaves it, and its selectors, in shared memory.
__device__ __forceinline__ void weft_panel_scale(const weft_invert_tables *tables,
                                                 weft_panel_exchange *exchange,
                                                 const uint32_t (&word)[WEFT_PANEL_WORDS],
                                                 uint32_t source, uint32_t pivot, int at) {
  const uint32_t lane = threadIdx.x & 31;
  uint32_t mine = 0;
#pragma unroll
  for (int j = 0; j < WEFT_PANEL_WORDS; j++) {
    const uint32_t value = __shfl_sync(0xffffffffu, word[j], source);
    if (lane == j)
      mine = value;
  }
  if (lane >= WEFT_PANEL_WORDS)
    return;
  if (lane == 0) // the column becomes y's: its own entry is the inverse
    mine = (mine & ~(255u << at)) | 1u << at;
  const uint32_t scale = weft_log_quotient(0, tables->log[pivot]);
  const weft_selectors from = weft_select(mine);
  const uint32_t scaled =
      weft_lookup(tables->nibbles[scale], tables->fourth[scale], from.low, from.high, from.fourth);
  const weft_selectors to = weft_select(scaled);
  reinterpret_cast<uint32_t *>(exchange->row)[lane] = scaled;
  reinterpret_cast<uint32_t *>(exchange->selectors)[lane] = to.low | to.high << 16;
  reinterpret_cast<uint16_t *>(exchange->fourth)[lane] = static_cast<uint16_t>(to.fourth);
}

// row ^= factor * pivot row, the entry in the pivot's column cleared before.
__device__ __forceinline__ void weft_panel_add(const weft_invert_tables *tables,
                                               const weft_panel_exchange *exchange,
                                               uint32_t (&word)[WEFT_PANEL_WORDS], uint32_t factor,
                                               int at) {
  const uint32_t log = tables->log[factor];
  const uint4 nibbles = tables->nibbles[log];
  const uint32_t fourth = tables->fourth[log];
  word[0] &= ~(255u << at);
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const uint4 quad = exchange->selectors[half];
    const uint2 thirds = exchange->fourth[half];
    const uint32_t selector[4] = {quad.x, quad.y, quad.z, quad.w};
    const uint32_t third[4] = {thirds.x, thirds.x >> 16, thirds.y, thirds.y >> 16};
#pragma unroll
    for (int j = 0; j < 4; j++)
      word[4 * half + j] ^= weft_lookup(nibbles, fourth, selector[j], selector[j] >> 16, third[j]);
  }
}

// All steps of one panel. Thread i holds row i's 32 bytes; picked[i] is set when row i is a pivot,
// pivots[s] tells the row of step s. False: no inverse (the same for all threads).
__device__ __forceinline__ bool weft_panel_eliminate(const weft_invert_tables *tables,
                                                     weft_panel_exchange *exchanges,
                                                     uint32_t (&word)[WEFT_PANEL_WORDS],
                                                     bool *picked, uint16_t *pivots) {
  const uint32_t row = threadIdx.x, lane = row & 31, warp = row / 32, warps = blockDim.x / 32;
#pragma unroll 1
  for (int q = 0; q < WEFT_PANEL_WORDS; q++) {
#pragma unroll
    for (int b = 0; b < 4; b++) {
      weft_panel_exchange *exchange = exchanges + (b & 1);
      const uint32_t factor = (word[0] >> (8 * b)) & 255;
      const uint32_t candidates = __ballot_sync(0xffffffffu, factor != 0 && !*picked);
      if (lane == 0)
        exchange->first[warp] = static_cast<uint16_t>(
            candidates ? row + __ffs(static_cast<int>(candidates)) - 1 : WEFT_PANEL_NONE);
      __syncthreads();
      uint32_t pivot_row = WEFT_PANEL_NONE;
      for (uint32_t w = 0; w < warps && pivot_row == WEFT_PANEL_NONE; w++)
        pivot_row = exchange->first[w];
      if (pivot_row == WEFT_PANEL_NONE)
        return false;
      if (warp == pivot_row / 32)
        weft_panel_scale(tables, exchange, word, pivot_row & 31,
                         __shfl_sync(0xffffffffu, factor, pivot_row & 31), 8 * b);
      __syncthreads();
      if (row == pivot_row) {
        const uint4 low = exchange->row[0], high = exchange->row[1];
        word[0] = low.x, word[1] = low.y, word[2] = low.z, word[3] = low.w;
        word[4] = high.x, word[5] = high.y, word[6] = high.z, word[7] = high.w;
        *picked = true;
        pivots[4 * q + b] = static_cast<uint16_t>(row);
      } else {
        weft_panel_add(tables, exchange, word, factor, 8 * b);
      }
    }
    const uint32_t done = word[0]; // the word of the next steps comes to the front
#pragma unroll
    for (int j = 0; j + 1 < WEFT_PANEL_WORDS; j++)
      word[j] = word[j + 1];
    word[WEFT_PANEL_WORDS - 1] = done;
  }
  return true;
}

// The same for one warp whose 32 rows are to give all 32 pivots, without a barrier of the block:
// the usual case, because a random block has an inverse with probability 0.996. The pivot row is
// passed on unscaled, which takes the division off the longest chain. False, with word[] useless:
// no inverse in these rows alone.
__device__ __forceinline__ bool weft_block_eliminate(const weft_invert_tables *tables,
                                                     weft_panel_exchange *exchanges,
                                                     uint32_t (&word)[WEFT_PANEL_WORDS],
                                                     uint32_t first_row, uint16_t *pivots) {
  const uint32_t lane = threadIdx.x & 31;
  bool picked = false;
#pragma unroll 1
  for (int q = 0; q < WEFT_PANEL_WORDS; q++) {
#pragma unroll
    for (int b = 0; b < 4; b++) {
      weft_panel_exchange *exchange = exchanges + (b & 1);
      const uint32_t factor = (word[0] >> (8 * b)) & 255;
      const uint32_t log = tables->log[factor];
      const uint32_t candidates = __ballot_sync(0xffffffffu, factor != 0 && !picked);
      if (candidates == 0)
        return false;
      const uint32_t source = __ffs(static_cast<int>(candidates)) - 1;
      const bool mine = lane == source;
      const uint32_t pivot_log = __shfl_sync(0xffffffffu, log, source);
      uint32_t pivot[WEFT_PANEL_WORDS];
#pragma unroll
      for (int j = 0; j < WEFT_PANEL_WORDS; j++)
        pivot[j] = __shfl_sync(0xffffffffu, word[j], source);
      pivot[0] = (pivot[0] & ~(255u << (8 * b))) | 1u << (8 * b); // the column becomes y's
      // Every lane makes the selectors of one word, lane % 8.
      const bool odd = lane & 1, second = lane & 2, upper = lane & 4;
      const uint32_t even_part = second ? (odd ? pivot[3] : pivot[2]) : (odd ? pivot[1] : pivot[0]);
      const uint32_t upper_part =
          second ? (odd ? pivot[7] : pivot[6]) : (odd ? pivot[5] : pivot[4]);
      const weft_selectors to = weft_select(upper ? upper_part : even_part);
      if (lane < WEFT_PANEL_WORDS) {
        reinterpret_cast<uint32_t *>(exchange->selectors)[lane] = to.low | to.high << 16;
        reinterpret_cast<uint16_t *>(exchange->fourth)[lane] = static_cast<uint16_t>(to.fourth);
      }
      if (mine) {
        pivots[4 * q + b] = static_cast<uint16_t>(first_row + lane);
        picked = true;
      }
      // The pivot row is replaced by itself over the pivot, all others add their share of it.
      const uint32_t share = weft_log_quotient(mine ? 0 : log, pivot_log);
      const uint4 nibbles = tables->nibbles[share];
      const uint32_t fourth = tables->fourth[share];
      const uint32_t keep = mine ? 0 : 0xffffffffu;
      __syncwarp();
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const uint4 quad = exchange->selectors[half];
        const uint2 thirds = exchange->fourth[half];
        const uint32_t selector[4] = {quad.x, quad.y, quad.z, quad.w};
        const uint32_t third[4] = {thirds.x, thirds.x >> 16, thirds.y, thirds.y >> 16};
#pragma unroll
        for (int j = 0; j < 4; j++) {
          const int at = 4 * half + j;
          const uint32_t stays = at == 0 ? keep & ~(255u << (8 * b)) : keep;
          word[at] = (word[at] & stays) ^
                     weft_lookup(nibbles, fourth, selector[j], selector[j] >> 16, third[j]);
        }
      }
    }
    const uint32_t done = word[0]; // the word of the next steps comes to the front
#pragma unroll
    for (int j = 0; j + 1 < WEFT_PANEL_WORDS; j++)
      word[j] = word[j + 1];
    word[WEFT_PANEL_WORDS - 1] = done;
  }
  return true;
}

// Old rows of 32 columns as the tensor instruction takes them: column 4 * g + x of the 32, rows q =
// 4 * t .. 4 * t + 3 and 16 more (g = lane / 4, t = lane % 4). row(q) gives the word at column 4 g.
template <class Row>
__device__ __forceinline__ void weft_update_columns(uint32_t (&a)[2][4], Row row) {
  const uint32_t t = threadIdx.x & 3;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    uint32_t in[4];
#pragma unroll
    for (int e = 0; e < 4; e++)
      in[e] = row(16 * half + 4 * t + e);
    weft_transpose(in); // word e: column 4 g + e
    a[0][2 * half] = in[0];
    a[0][2 * half + 1] = in[1];
    a[1][2 * half] = in[2];
    a[1][2 * half + 1] = in[3];
  }
}

// The coefficients of four rows: `low` holds panel columns 4 t .. 4 t + 3 of row g / 2, `high` 16
// more. Tile s has bits 2 s and 2 s + 1 of each row.
__device__ __forceinline__ void weft_update_rows(uint32_t (&b)[4][2],
                                                 const weft_invert_tables *tables, uint32_t low,
                                                 uint32_t high) {
  const uint32_t odd = (threadIdx.x >> 2) & 1;
  const uint32_t even_pick = 0x40 + odd * 0x11, odd_pick = 0x62 + odd * 0x11;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const uint32_t word = half ? high : low;
    uint2 mask[4];
#pragma unroll
    for (int e = 0; e < 4; e++)
      mask[e] = tables->masks[(word >> (8 * e)) & 255];
    b[0][half] = __byte_perm(weft_prmt(mask[0].x, mask[1].x, even_pick),
                             weft_prmt(mask[2].x, mask[3].x, even_pick), 0x5410);
    b[1][half] = __byte_perm(weft_prmt(mask[0].x, mask[1].x, odd_pick),
                             weft_prmt(mask[2].x, mask[3].x, odd_pick), 0x5410);
    b[2][half] = __byte_perm(weft_prmt(mask[0].y, mask[1].y, even_pick),
                             weft_prmt(mask[2].y, mask[3].y, even_pick), 0x5410);
    b[3][half] = __byte_perm(weft_prmt(mask[0].y, mask[1].y, odd_pick),
                             weft_prmt(mask[2].y, mask[3].y, odd_pick), 0x5410);
  }
}

// Four bytes of row t of the four, at columns 4 g .. 4 g + 3 of the 32. Bit 0 of each sum counts;
// two sums share a register, so a tile of 16 sums becomes four nibbles in 8 steps on the ALU.
__device__ __forceinline__ uint32_t weft_update_word(const uint32_t (&a)[2][4],
                                                     const uint32_t (&b)[4][2],
                                                     const weft_update_powers &power) {
  uint32_t nibbles[2]; // low of both bytes, high of both
#pragma unroll
  for (int tile = 0; tile < 2; tile++) {
    uint32_t sum[4][4];
#pragma unroll
    for (int s = 0; s < 4; s++)
      asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
          "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
          : "=r"(sum[s][0]), "=r"(sum[s][1]), "=r"(sum[s][2]), "=r"(sum[s][3])
          : "r"(a[tile][0]), "r"(a[tile][1]), "r"(a[tile][2]), "r"(a[tile][3]), "r"(b[s][0]),
            "r"(b[s][1]), "r"(0));
    uint32_t bits[4];
#pragma unroll
    for (int bit = 0; bit < 4; bit++) {
      const int s = bit / 2, e = bit % 2;
      const uint32_t low = sum[s][2 + e] * power.p16 + sum[s][e];
      const uint32_t high = sum[s + 2][2 + e] * power.p16 + sum[s + 2][e];
      bits[bit] = __byte_perm(low, high, 0x6420) & 0x01010101u;
    }
    nibbles[tile] = bits[3] * power.p3 + (bits[2] * power.p2 + (bits[1] * power.p1 + bits[0]));
  }
  return __byte_perm(nibbles[0], nibbles[1], 0x7632) * power.p4 +
         __byte_perm(nibbles[0], nibbles[1], 0x5410);
}

#endif
