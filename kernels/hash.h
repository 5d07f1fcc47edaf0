// SPDX-License-Identifier: Apache-2.0
// A hash for caches, which compare the keys themselves, too. It is no defence against keys made to
// collide.
#ifndef WEFT_KERNELS_HASH_H
#define WEFT_KERNELS_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// FNV-1a over words of eight bytes. The shift mixes the high half, where the product's bits gather,
// back into the low one.
#define WEFT_HASH_BEGIN UINT64_C(0xcbf29ce484222325)

static inline uint64_t weft_hash_word(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * UINT64_C(0x100000001b3);
  return hash ^ hash >> 32;
}

static inline uint64_t weft_hash(const void *bytes, size_t count) {
  uint64_t hash = WEFT_HASH_BEGIN;
  for (size_t i = 0, n; i < count; i += n) {
    uint64_t word = 0;
    n = count - i < sizeof word ? count - i : sizeof word;
    memcpy(&word, (const uint8_t *)bytes + i, n);
    hash = weft_hash_word(hash, word);
  }
  return hash;
}

#endif
