// SPDX-License-Identifier: Apache-2.0
// Products with ISA-L's tables: 32 bytes for each coefficient, its multiples by 0..15, then by
// 0, 16..240. Only byte 1 is read here, which is the coefficient itself.
#include "isa-l/erasure_code.h"

#include <string.h>

#include "integrations/isal/product.h"
#include "kernels/gf256.h"

enum {
  TABLE_BYTES = 32,
  SOURCES = 256,  // of one product, at most
  ENTRIES = 16384 // of a matrix on the stack; no code of 256 shards has more
};

static size_t length(int n) { return n > 0 ? (size_t)n : 0; }

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

void ec_init_tables(int k, int rows, unsigned char *a, unsigned char *g_tbls) {
  for (size_t i = 0; i < length(k) * length(rows); i++)
    memcpy(g_tbls + i * TABLE_BYTES, weft_gf256_nibble[a[i]], TABLE_BYTES);
}

// Reads matrix(p->m, p->k) from tables, `stride` of which make a row.
static void read_tables(const weft_isal_product *p, const uint8_t *tables, size_t stride,
                        uint8_t *matrix) {
  for (size_t i = 0; i < p->m; i++)
    for (size_t j = 0; j < p->k; j++)
      matrix[i * p->k + j] = tables[(i * stride + j) * TABLE_BYTES + 1];
}

// Multiplies in parts of as many sources and rows as the matrix has room for.
static void multiply(const weft_isal_product *whole, const uint8_t *tables, size_t stride) {
  uint8_t matrix[ENTRIES];
  const size_t sources = smaller(whole->k, SOURCES);
  const size_t rows = smaller(whole->m, sources ? ENTRIES / sources : whole->m);
  if (!whole->len || !whole->m)
    return;
  for (size_t i = 0; i < whole->m; i += rows)
    for (size_t j = 0; j == 0 || j < whole->k; j += SOURCES) {
      weft_isal_product part = {.len = whole->len,
                                .k = smaller(whole->k - j, SOURCES),
                                .m = smaller(whole->m - i, rows),
                                .a = matrix,
                                .x = whole->x + j,
                                .y = whole->y + i,
                                .accumulate = whole->accumulate || j > 0};
      part.a_stride = part.k;
      read_tables(&part, tables + (i * stride + j) * TABLE_BYTES, stride, matrix);
      weft_isal_multiply(&part);
    }
}

void ec_encode_data(int len, int k, int rows, unsigned char *g_tbls, unsigned char **data,
                    unsigned char **coding) {
  const weft_isal_product product = {.len = length(len),
                                     .k = length(k),
                                     .m = length(rows),
                                     .x = (const uint8_t *const *)data,
                                     .y = coding};
  multiply(&product, g_tbls, product.k);
}

void ec_encode_data_update(int len, int k, int rows, int vec_i, unsigned char *g_tbls,
                           unsigned char *data, unsigned char **coding) {
  const uint8_t *const source = data;
  const weft_isal_product product = {
      .len = length(len), .k = 1, .m = length(rows), .x = &source, .y = coding, .accumulate = true};
  multiply(&product, g_tbls + length(vec_i) * TABLE_BYTES, length(k));
}

void gf_vect_dot_prod(int len, int vlen, unsigned char *g_tbls, unsigned char **src,
                      unsigned char *dest) {
  ec_encode_data(len, vlen, 1, g_tbls, src, &dest);
}

void gf_vect_mad(int len, int vec, int vec_i, unsigned char *g_tbls, unsigned char *src,
                 unsigned char *dest) {
  ec_encode_data_update(len, vec, 1, vec_i, g_tbls, src, &dest);
}

void ec_init_tables_base(int k, int rows, unsigned char *a, unsigned char *g_tbls) {
  ec_init_tables(k, rows, a, g_tbls);
}

void ec_encode_data_base(int len, int k, int rows, unsigned char *g_tbls, unsigned char **data,
                         unsigned char **coding) {
  ec_encode_data(len, k, rows, g_tbls, data, coding);
}

void ec_encode_data_update_base(int len, int k, int rows, int vec_i, unsigned char *g_tbls,
                                unsigned char *data, unsigned char **coding) {
  ec_encode_data_update(len, k, rows, vec_i, g_tbls, data, coding);
}

void gf_vect_dot_prod_base(int len, int vlen, unsigned char *g_tbls, unsigned char **src,
                           unsigned char *dest) {
  gf_vect_dot_prod(len, vlen, g_tbls, src, dest);
}

void gf_vect_mad_base(int len, int vec, int vec_i, unsigned char *g_tbls, unsigned char *src,
                      unsigned char *dest) {
  gf_vect_mad(len, vec, vec_i, g_tbls, src, dest);
}

void gf_vect_mul_init(unsigned char c, unsigned char *gftbl) { ec_init_tables(1, 1, &c, gftbl); }

int gf_vect_mul(int len, unsigned char *gftbl, void *src, void *dest) {
  unsigned char *source = src, *out = dest;
  if (len % TABLE_BYTES)
    return 1;
  ec_encode_data(len, 1, 1, gftbl, &source, &out);
  return 0;
}

void gf_vect_mul_init_base(unsigned char c, unsigned char *gftbl) { gf_vect_mul_init(c, gftbl); }

int gf_vect_mul_base(int len, unsigned char *gftbl, unsigned char *src, unsigned char *dest) {
  return gf_vect_mul(len, gftbl, src, dest);
}
