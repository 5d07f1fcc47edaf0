// SPDX-License-Identifier: Apache-2.0
// Big-endian numbers, as used by all of weft's formats.
#ifndef WEFT_LIB_BIG_ENDIAN_H
#define WEFT_LIB_BIG_ENDIAN_H

#include <stddef.h>
#include <stdint.h>

// A number of 1 to 8 bytes.
static inline uint64_t weft_get_number(const uint8_t *p, size_t bytes) {
  uint64_t v = 0;
  for (size_t i = 0; i < bytes; i++)
    v = v << 8 | p[i];
  return v;
}
static inline void weft_put_number(uint8_t *p, size_t bytes, uint64_t v) {
  for (size_t i = bytes; i-- > 0; v >>= 8)
    p[i] = (uint8_t)v;
}

static inline uint16_t weft_get16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }
static inline uint32_t weft_get24(const uint8_t *p) { return (uint32_t)weft_get16(p) << 8 | p[2]; }
static inline uint32_t weft_get32(const uint8_t *p) {
  return (uint32_t)weft_get16(p) << 16 | weft_get16(p + 2);
}
static inline uint64_t weft_get64(const uint8_t *p) {
  return (uint64_t)weft_get32(p) << 32 | weft_get32(p + 4);
}
static inline void weft_put16(uint8_t *p, uint16_t v) {
  p[0] = (uint8_t)(v >> 8);
  p[1] = (uint8_t)v;
}
static inline void weft_put24(uint8_t *p, uint32_t v) {
  weft_put16(p, (uint16_t)(v >> 8));
  p[2] = (uint8_t)v;
}
static inline void weft_put32(uint8_t *p, uint32_t v) {
  weft_put16(p, (uint16_t)(v >> 16));
  weft_put16(p + 2, (uint16_t)v);
}
static inline void weft_put64(uint8_t *p, uint64_t v) {
  weft_put32(p, (uint32_t)(v >> 32));
  weft_put32(p + 4, (uint32_t)v);
}

#endif
