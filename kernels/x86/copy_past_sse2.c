// SPDX-License-Identifier: Apache-2.0
// SSE2 is part of x86-64, and as wide a store as any fills a line that goes past the caches.
#include <emmintrin.h>
#include <string.h>

#include "kernels/copy_past.h"

enum { LINE = 64, SHORT = 4 * LINE };

static size_t copy_lines(uint8_t *to, const uint8_t *from, size_t bytes) {
  size_t at = 0;
  for (; bytes - at >= LINE; at += LINE) {
    const __m128i *x = (const __m128i *)(const void *)(from + at);
    __m128i *y = (__m128i *)(void *)(to + at);
    const __m128i a = _mm_loadu_si128(x), b = _mm_loadu_si128(x + 1), c = _mm_loadu_si128(x + 2),
                  d = _mm_loadu_si128(x + 3);
    _mm_stream_si128(y, a);
    _mm_stream_si128(y + 1, b);
    _mm_stream_si128(y + 2, c);
    _mm_stream_si128(y + 3, d);
  }
  _mm_sfence(); // before whoever hears of these bytes reads them
  return at;
}

void weft_copy_past(uint8_t *to, const uint8_t *from, size_t bytes) {
  size_t at = 0;
  if (bytes >= SHORT) {
    at = (size_t)(-(uintptr_t)to % LINE);
    memcpy(to, from, at);
    at += copy_lines(to + at, from + at, bytes - at);
  }
  memcpy(to + at, from + at, bytes - at);
}
