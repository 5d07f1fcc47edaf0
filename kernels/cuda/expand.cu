// SPDX-License-Identifier: Apache-2.0
// Coefficients from ChaCha20 (RFC 8439) on the device. A seed's keystream is the one of libsodium's
// randombytes_buf_deterministic: nonce "LibsodiumDRG", counter from 0. Fresh coefficients share one
// key and differ in the nonce, which is the row's number. The keystream is read as 16-bit words u,
// little-endian; dense: c = 1 + (u * 255 >> 16); sparse: nonzero if u < density, then c from the
// next.
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/expand.h"

#include <string.h>

namespace {

enum { SparseWarps = 4, BlockUnits = 32 }; // 16-bit units per ChaCha20 block

struct Args {
  weft_cuda_expansion expansion;
  uint32_t key[8];
};

__device__ __forceinline__ uint32_t rotate(uint32_t x, int bits) {
  return __funnelshift_l(x, x, bits);
}

__device__ __forceinline__ void quarter(uint32_t &a, uint32_t &b, uint32_t &c, uint32_t &d) {
  a += b, d = rotate(d ^ a, 16);
  c += d, b = rotate(b ^ c, 12);
  a += b, d = rotate(d ^ a, 8);
  c += d, b = rotate(b ^ c, 7);
}

// Block `counter` of row `row`'s keystream.
__device__ void chacha20(uint32_t (&out)[16], const Args &args, size_t row, uint32_t counter) {
  uint32_t in[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  if (args.expansion.seeds) {
    const weft_cuda_seed seed = args.expansion.seeds[row];
    const uint64_t part[3] = {seed.stream, seed.segment, seed.seed};
#pragma unroll
    for (int i = 0; i < 3; i++) {
      in[4 + 2 * i] = static_cast<uint32_t>(part[i]);
      in[5 + 2 * i] = static_cast<uint32_t>(part[i] >> 32);
    }
    in[10] = in[11] = 0;
    in[13] = 0x7362694c, in[14] = 0x7569646f, in[15] = 0x4752446d; // "Libs" "odiu" "mDRG"
  } else {
#pragma unroll
    for (int i = 0; i < 8; i++)
      in[4 + i] = args.key[i];
    in[13] = static_cast<uint32_t>(row);
    in[14] = static_cast<uint32_t>(static_cast<uint64_t>(row) >> 32);
    in[15] = 0;
  }
  in[12] = counter;
#pragma unroll
  for (int i = 0; i < 16; i++)
    out[i] = in[i];
#pragma unroll
  for (int round = 0; round < 10; round++) {
    quarter(out[0], out[4], out[8], out[12]);
    quarter(out[1], out[5], out[9], out[13]);
    quarter(out[2], out[6], out[10], out[14]);
    quarter(out[3], out[7], out[11], out[15]);
    quarter(out[0], out[5], out[10], out[15]);
    quarter(out[1], out[6], out[11], out[12]);
    quarter(out[2], out[7], out[8], out[13]);
    quarter(out[3], out[4], out[9], out[14]);
  }
#pragma unroll
  for (int i = 0; i < 16; i++)
    out[i] += in[i];
}

__device__ __forceinline__ uint32_t nonzero(uint32_t u) { return 1 + (u * 255 >> 16); }

// One thread per ChaCha20 block: 32 coefficients of one row.
__global__ void __launch_bounds__(128) dense_kernel(const __grid_constant__ Args args) {
  const size_t blocks = (args.expansion.k + BlockUnits - 1) / BlockUnits;
  const size_t total = blocks * args.expansion.count;
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < total;
       i += step) {
    const size_t row = i / blocks, block = i % blocks, at = block * BlockUnits;
    uint32_t stream[16];
    chacha20(stream, args, row, static_cast<uint32_t>(block));
    uint32_t word[8];
#pragma unroll
    for (int j = 0; j < 8; j++)
      word[j] = nonzero(stream[2 * j] & 0xffff) | nonzero(stream[2 * j] >> 16) << 8 |
                nonzero(stream[2 * j + 1] & 0xffff) << 16 | nonzero(stream[2 * j + 1] >> 16) << 24;
    uint8_t *to = args.expansion.out + row * args.expansion.out_stride + at;
    if (at + BlockUnits <= args.expansion.k && reinterpret_cast<uintptr_t>(to) % 16 == 0) {
      reinterpret_cast<uint4 *>(to)[0] = make_uint4(word[0], word[1], word[2], word[3]);
      reinterpret_cast<uint4 *>(to)[1] = make_uint4(word[4], word[5], word[6], word[7]);
    } else {
#pragma unroll
      for (uint32_t j = 0; j < BlockUnits; j++)
        if (at + j < args.expansion.k)
          to[j] = static_cast<uint8_t>(word[j / 4] >> (8 * (j % 4)));
    }
  }
}

// Of 32 units in order, those that are values: the ones after a hit that is itself no value. `hits`
// marks units under the density; `carry` says whether the first is a value. In a run of hits every
// second unit is a value, starting with its second: runs that begin at odd places are told from
// those at even ones by adding the run's first bit and looking where the carry comes out.
__device__ __forceinline__ uint32_t values_of(uint32_t hits, uint32_t &carry) {
  const uint32_t even = 0x55555555u;
  const uint32_t open = hits & ~carry; // the first unit, as a value, opens nothing
  const uint32_t follows = open << 1 | carry;
  const uint32_t odd_starts = open & ~even & ~follows;
  const uint64_t sum = static_cast<uint64_t>(odd_starts) + open;
  const uint32_t even_runs = static_cast<uint32_t>(sum);
  const uint32_t invert = even_runs << 1;
  const uint32_t values = (even ^ invert) & follows;
  carry = static_cast<uint32_t>(sum >> 32);
  return values;
}

// One warp per row: its lanes make 32 blocks of keystream, then the warp walks them 32 units at a
// time.
__global__ void __launch_bounds__(32 * SparseWarps)
    sparse_kernel(const __grid_constant__ Args args) {
  __shared__ uint16_t units[SparseWarps][32 * BlockUnits + 2];
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x & 31;
  const uint32_t k = static_cast<uint32_t>(args.expansion.k);
  const size_t step = static_cast<size_t>(gridDim.x) * SparseWarps;
  for (size_t row = static_cast<size_t>(blockIdx.x) * SparseWarps + warp;
       row < args.expansion.count; row += step) {
    uint8_t *out = args.expansion.out + row * args.expansion.out_stride;
    uint32_t made = 0, carry = 0, block = 0, last = 0; // last: where a value still missing belongs
    while (made < k || carry) {
      uint32_t stream[16];
      chacha20(stream, args, row, block + lane);
      block += 32;
      __syncwarp();
#pragma unroll
      for (int j = 0; j < 16; j++) {
        units[warp][lane * BlockUnits + 2 * j] = static_cast<uint16_t>(stream[j]);
        units[warp][lane * BlockUnits + 2 * j + 1] = static_cast<uint16_t>(stream[j] >> 16);
      }
      __syncwarp();
      for (uint32_t at = 0; at < 32 * BlockUnits && (made < k || carry); at += 32) {
        const uint32_t unit = units[warp][at + lane];
        const bool hit = unit < args.expansion.density_q16;
        const uint32_t before = carry;
        const uint32_t hits = __ballot_sync(0xffffffffu, hit);
        const uint32_t values = values_of(hits, carry);
        const uint32_t below = (1u << lane) - 1;
        const uint32_t slot = made + __popc(~values & below); // of a unit that decides
        if (values >> lane & 1) {
          const uint32_t owner = lane == 0 && before ? last : slot - 1;
          if (owner < k)
            out[owner] = static_cast<uint8_t>(nonzero(unit));
        } else if (!hit && slot < k) {
          out[slot] = 0;
        }
        made += __popc(~values);
        last = made - 1;
        if (made > k)
          carry = 0; // what follows belongs to nobody
      }
    }
  }
}

} // namespace

extern "C" weft_status weft_cuda_expand(const weft_exec *exec,
                                        const weft_cuda_expansion *expansion) {
  if (expansion->count == 0 || expansion->k == 0)
    return WEFT_OK;
  if (expansion->k > UINT32_MAX / 4 || expansion->out_stride < expansion->k)
    return WEFT_E_ARGUMENT;
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  Args args;
  args.expansion = *expansion;
  memcpy(args.key, expansion->key, sizeof args.key);
  const bool dense = expansion->density_q16 == 0;
  const size_t wanted =
      dense ? ((expansion->k + BlockUnits - 1) / BlockUnits * expansion->count + 127) / 128
            : (expansion->count + SparseWarps - 1) / SparseWarps;
  const unsigned grid = static_cast<unsigned>(wanted < 65536 ? wanted : 65536);
  if (dense)
    dense_kernel<<<grid, 128, 0, weft_cuda_stream(exec)>>>(args);
  else
    sparse_kernel<<<grid, 32 * SparseWarps, 0, weft_cuda_stream(exec)>>>(args);
  return WEFT_CUDA_LAUNCHED();
}
