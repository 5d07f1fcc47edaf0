// SPDX-License-Identifier: Apache-2.0
// ISA-L through dlopen. Its two functions are declared here, as its headers need not be installed.
#define _POSIX_C_SOURCE 200809L // dlopen
#include "bench/peers/isal.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/buffers.h"

typedef void (*init_tables)(int k, int rows, unsigned char *a, unsigned char *tables);
typedef void (*encode_data)(int len, int k, int rows, unsigned char *tables, unsigned char **data,
                            unsigned char **coding);

struct weft_bench_isal {
  void *library;
  init_tables init;
  encode_data encode;
};

// ISO C has no cast from an object pointer to a function's; POSIX promises that the bytes fit.
static void load(void *library, const char *name, void *out, size_t room) {
  void *const symbol = dlsym(library, name);
  memcpy(out, &symbol, room);
}

weft_bench_isal *weft_bench_isal_open(const char *file) {
  if (file && !*file)
    return NULL;
  weft_bench_isal *const isal = weft_bench_alloc(1, sizeof *isal);
  isal->library = dlopen(file ? file : "libisal.so.2", RTLD_NOW | RTLD_LOCAL);
  if (isal->library) {
    load(isal->library, "ec_init_tables", &isal->init, sizeof isal->init);
    load(isal->library, "ec_encode_data", &isal->encode, sizeof isal->encode);
  }
  if (isal->init && isal->encode)
    return isal;
  printf("isa-l is left out: %s is not here (Debian: libisal2)\n", file ? file : "libisal.so.2");
  weft_bench_isal_close(isal);
  return NULL;
}

void weft_bench_isal_close(weft_bench_isal *isal) {
  if (isal && isal->library)
    dlclose(isal->library);
  free(isal);
}

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
