// SPDX-License-Identifier: Apache-2.0
// ISA-L's matrix products. Its functions are declared here, so its headers need not be installed.
#include "bench/peers/isal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/buffers.h"
#include "bench/peers/library.h"

typedef void (*init_tables)(int k, int rows, unsigned char *a, unsigned char *tables);
typedef void (*encode_data)(int len, int k, int rows, unsigned char *tables, unsigned char **data,
                            unsigned char **coding);

struct weft_bench_isal {
  void *library;
  init_tables init;
  encode_data encode;
};

weft_bench_isal *weft_bench_isal_open(const char *file) {
  if (file && !*file)
    return NULL;
  weft_bench_isal *const isal = weft_bench_alloc(1, sizeof *isal);
  const weft_bench_import functions[] = {{"ec_init_tables", &isal->init},
                                         {"ec_encode_data", &isal->encode}};
  if (!file)
    file = "libisal.so.2";
  isal->library = weft_bench_library_open("isa-l", file, "libisal2");
  if (isal->library && weft_bench_library_import(isal->library, "isa-l", file, functions,
                                                 sizeof functions / sizeof *functions))
    return isal;
  weft_bench_isal_close(isal);
  return NULL;
}

void weft_bench_isal_close(weft_bench_isal *isal) { free(isal); }

void weft_bench_isal_prepare(const weft_bench_isal *isal, weft_bench_isal_product *product,
                             size_t m, size_t n, size_t k, const uint8_t *a, size_t a_stride,
                             uint8_t *x, size_t x_stride, uint8_t *y, size_t y_stride) {
  *product = (weft_bench_isal_product){
      .isal = isal,
      .m = m,
      .n = n,
      .k = k,
      .tables = weft_bench_alloc(n * m, 32),
      .x = weft_bench_alloc(n, sizeof(uint8_t *)),
      .y = weft_bench_alloc(m, sizeof(uint8_t *)),
  };
  uint8_t *const dense = weft_bench_alloc(m, n);
  for (size_t i = 0; i < m; i++)
    memcpy(dense + i * n, a + i * a_stride, n);
  for (size_t i = 0; i < n; i++)
    product->x[i] = x + i * x_stride;
  for (size_t i = 0; i < m; i++)
    product->y[i] = y + i * y_stride;
  isal->init((int)n, (int)m, dense, product->tables);
  free(dense);
}

void weft_bench_isal_call(void *user) {
  const weft_bench_isal_product *const p = user;
  p->isal->encode((int)p->k, (int)p->n, (int)p->m, p->tables, p->x, p->y);
}

void weft_bench_isal_release(weft_bench_isal_product *product) {
  free(product->tables), free(product->x), free(product->y);
}
