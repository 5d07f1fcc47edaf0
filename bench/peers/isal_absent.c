// SPDX-License-Identifier: Apache-2.0
// In place of isal.c where nothing can be opened at run time: a statically linked program.
#include "bench/peers/isal.h"

#include <stdio.h>

weft_bench_isal *weft_bench_isal_open(const char *file) {
  if (!file || *file)
    printf("isa-l is left out: this program is linked statically and opens no libraries\n");
  return NULL;
}

void weft_bench_isal_close(weft_bench_isal *isal) { (void)isal; }

void weft_bench_isal_prepare(const weft_bench_isal *isal, weft_bench_isal_product *product,
                             size_t m, size_t n, size_t k, const uint8_t *a, size_t a_stride,
                             uint8_t *x, size_t x_stride, uint8_t *y, size_t y_stride) {
  (void)isal, (void)m, (void)n, (void)k, (void)a, (void)a_stride, (void)x, (void)x_stride;
  (void)y, (void)y_stride;
  *product = (weft_bench_isal_product){0};
}

void weft_bench_isal_call(void *product) { (void)product; }

void weft_bench_isal_release(weft_bench_isal_product *product) { (void)product; }
