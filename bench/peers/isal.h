// SPDX-License-Identifier: Apache-2.0
// Intel's ISA-L, opened at run time if present: weft never requires it.
#ifndef WEFT_BENCH_PEERS_ISAL_H
#define WEFT_BENCH_PEERS_ISAL_H

#include <stddef.h>
#include <stdint.h>

typedef struct weft_bench_isal weft_bench_isal;

// Opens a shared library. NULL: the system's (libisal.so.2); "": none. Returns NULL after a line
// that says what is missing.
weft_bench_isal *weft_bench_isal_open(const char *file);
void weft_bench_isal_close(weft_bench_isal *isal); // accepts NULL

// A product with its tables already computed, as ISA-L's users keep them.
typedef struct weft_bench_isal_product {
  const weft_bench_isal *isal;
  size_t m, n, k;
  uint8_t *tables; // (n * m, 32)
  uint8_t **x;     // (n)
  uint8_t **y;     // (m)
} weft_bench_isal_product;

// Y(m, k) = A(m, n) X(n, k)
void weft_bench_isal_prepare(const weft_bench_isal *isal, weft_bench_isal_product *product,
                             size_t m, size_t n, size_t k, const uint8_t *a, size_t a_stride,
                             uint8_t *x, size_t x_stride, uint8_t *y, size_t y_stride);
void weft_bench_isal_call(void *product);
void weft_bench_isal_release(weft_bench_isal_product *product);

#endif
