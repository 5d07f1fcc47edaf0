// SPDX-License-Identifier: Apache-2.0
// Products and inverses of elements, the two kinds of generator matrix, and matrix inverses.
#include <stdbool.h>
#include <string.h>

#include "integrations/isal/product.h"
#include "isa-l/erasure_code.h"
#include "kernels/gf256.h"

unsigned char gf_mul(unsigned char a, unsigned char b) { return weft_gf256_product[a][b]; }

unsigned char gf_inv(unsigned char a) { return weft_gf256_inv[a]; }

// Writes rows 0..k-1 of the identity. Returns their size in bytes, 0 if the sizes are invalid.
static size_t put_identity(unsigned char *a, int m, int k) {
  if (k <= 0 || m < k)
    return 0;
  const size_t n = (size_t)k;
  memset(a, 0, n * n);
  for (size_t i = 0; i < n; i++)
    a[i * n + i] = 1;
  return n * n;
}

void gf_gen_rs_matrix(unsigned char *a, int m, int k) {
  unsigned char *at = a + put_identity(a, m, k);
  for (int i = 0; i < m - k; i++)
    for (int j = 0; j < k; j++)
      *at++ = weft_gf256_exp[(long)i * j % 255];
}

void gf_gen_cauchy1_matrix(unsigned char *a, int m, int k) {
  unsigned char *at = a + put_identity(a, m, k);
  for (int i = k; i < m; i++)
    for (int j = 0; j < k; j++)
      *at++ = weft_gf256_inv[(i ^ j) & 255];
}

// ---------------------------------------------------------------------------------------------
// Inverses. Recovery inverts k rows of a generator matrix. Most of them are rows of the identity,
// and each of these gives one row of the inverse directly: its column's shard is known. What is
// left is small: with the remaining rows R and columns C, and B = in[R][C], B^-1 and B^-1 * in[R]
// give the other rows of the inverse.

enum { LEFT = 32, SIDE = 256 }; // most rows in R, and in a matrix that is split

typedef struct parts {
  size_t n, left;     // left: the number of rows in R, and of columns in C
  uint8_t row[LEFT];  // R
  uint8_t col[LEFT];  // C
  bool is_unit[SIDE]; // by row
  uint8_t unit[SIDE]; // the column of its 1
} parts;

static int invert(const uint8_t *in, uint8_t *out, size_t n) {
  static const weft_allocator none;
  const weft_exec exec = {.allocator = &none};
  const weft_backend *const row = weft_isal_row();
  uint8_t singular = 0;
  const weft_invert all = {.count = 1, .k = n, .in = in, .out = out, .singular = &singular};
  return row->invert(row, &exec, &all) == WEFT_OK && !singular ? 0 : -1;
}

static bool is_unit(const uint8_t *row, size_t n, uint8_t *column) {
  size_t at = 0;
  unsigned others = 0;
  while (at < n && !row[at])
    at++;
  for (size_t j = at + 1; j < n; j++)
    others |= row[j];
  *column = (uint8_t)at;
  return at < n && row[at] == 1 && !others;
}

// Splits a matrix. Returns false if more than LEFT rows would be left.
static bool take_apart(const uint8_t *in, size_t n, parts *p) {
  bool known[SIDE] = {false};
  size_t columns = 0;
  p->n = n;
  p->left = 0;
  for (size_t r = 0; r < n; r++) {
    p->is_unit[r] = is_unit(in + r * n, n, &p->unit[r]) && !known[p->unit[r]];
    if (p->is_unit[r])
      known[p->unit[r]] = true;
    else if (p->left == LEFT)
      return false;
    else
      p->row[p->left++] = (uint8_t)r;
  }
  for (size_t j = 0; j < n; j++)
    if (!known[j])
      p->col[columns++] = (uint8_t)j; // as many as there are rows in R
  return true;
}

static int invert_parts(const parts *p, const uint8_t *in, uint8_t *out) {
  const size_t n = p->n, left = p->left;
  uint8_t square[LEFT * LEFT], inverse[LEFT * LEFT], made[LEFT * SIDE], *y[LEFT];
  const uint8_t *x[LEFT];
  for (size_t i = 0; i < left; i++) {
    x[i] = in + p->row[i] * n;
    y[i] = made + i * n;
    for (size_t j = 0; j < left; j++)
      square[i * left + j] = x[i][p->col[j]];
  }
  if (left && invert(square, inverse, left) != 0)
    return -1;
  if (left)
    weft_isal_multiply(&(weft_isal_product){
        .len = n, .k = left, .m = left, .a = inverse, .a_stride = left, .x = x, .y = y});
  memset(out, 0, n * n);
  for (size_t r = 0; r < n; r++)
    if (p->is_unit[r])
      out[p->unit[r] * n + r] = 1;
  for (size_t i = 0; i < left; i++) {
    uint8_t *const row = out + p->col[i] * n;
    for (size_t r = 0; r < n; r++)
      row[r] = y[i][p->unit[r]];
    for (size_t j = 0; j < left; j++)
      row[p->row[j]] = inverse[i * left + j];
  }
  return 0;
}

int gf_invert_matrix(unsigned char *in, unsigned char *out, const int n) {
  parts p;
  if (n <= 0)
    return n ? -1 : 0;
  if (n <= SIDE && take_apart(in, (size_t)n, &p))
    return invert_parts(&p, in, out);
  return invert(in, out, (size_t)n);
}
