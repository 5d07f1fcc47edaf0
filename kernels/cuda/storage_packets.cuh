// SPDX-License-Identifier: Apache-2.0
// What the published CRS techniques share: a thread has one 8-byte word of a packet, as their
// `long`, and addresses and the bit matrix come with the launch.
#ifndef WEFT_KERNELS_CUDA_STORAGE_PACKETS_CUH
#define WEFT_KERNELS_CUDA_STORAGE_PACKETS_CUH

#include "kernels/cuda/device.cuh"

enum { WEFT_PACKETS_SHARDS = 256, WEFT_PACKETS_THREADS = 256 };

struct weft_packets {
  const uint64_t *x[WEFT_PACKETS_SHARDS]; // k inputs
  uint64_t *y[WEFT_PACKETS_SHARDS];       // m outputs
  uint64_t total;                         // words of a shard
  uint32_t k, m, w;
  uint32_t words; // of a packet
  bool accumulate;
};

// Fills what follows from the product. WEFT_E_UNSUPPORTED: packets or addresses that are not words,
// memory that the device does not reach, too many shards.
static inline weft_status weft_packets_of(const weft_xorm *xorm, weft_packets *out) {
  if (xorm->w == 0 || xorm->w > 8 || xorm->packet_bytes == 0 ||
      xorm->len % (xorm->w * xorm->packet_bytes) != 0)
    return WEFT_E_ARGUMENT;
  if (xorm->packet_bytes % 8 || xorm->k + xorm->m > WEFT_PACKETS_SHARDS ||
      (xorm->k && xorm->x.mem == WEFT_MEM_HOST) || xorm->y.mem == WEFT_MEM_HOST)
    return WEFT_E_UNSUPPORTED;
  uintptr_t bits = 0;
  for (size_t j = 0; j < xorm->k; j++) {
    out->x[j] = reinterpret_cast<const uint64_t *>(weft_const_row(&xorm->x, j));
    bits |= reinterpret_cast<uintptr_t>(out->x[j]);
  }
  for (size_t i = 0; i < xorm->m; i++) {
    out->y[i] = reinterpret_cast<uint64_t *>(weft_row(&xorm->y, i));
    bits |= reinterpret_cast<uintptr_t>(out->y[i]);
  }
  out->total = xorm->len / 8;
  out->k = static_cast<uint32_t>(xorm->k);
  out->m = static_cast<uint32_t>(xorm->m);
  out->w = static_cast<uint32_t>(xorm->w);
  out->words = static_cast<uint32_t>(xorm->packet_bytes / 8);
  out->accumulate = xorm->accumulate;
  return bits % 8 ? WEFT_E_UNSUPPORTED : WEFT_OK;
}

// Where a thread's word lies: word `at` of a shard is word `word` of packet `l` of its group, whose
// packet c has it at first + c * words.
struct weft_packet_place {
  uint64_t first;
  uint32_t l;
};

__device__ __forceinline__ weft_packet_place weft_packet_place_of(const weft_packets &p,
                                                                  uint64_t at) {
  const uint64_t packet = at / p.words, group = packet / p.w;
  return {group * p.w * p.words + at % p.words, static_cast<uint32_t>(packet % p.w)};
}

__device__ __forceinline__ void weft_packet_put(const weft_packets &p, uint32_t i, uint64_t at,
                                                uint64_t value) {
  p.y[i][at] = p.accumulate ? p.y[i][at] ^ value : value;
}

#endif
