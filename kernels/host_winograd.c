// SPDX-License-Identifier: Apache-2.0
// Y = A X with A, X and Y cut in four. Where sums are exclusive-ors, Winograd's form has
//
//   S1 = A21 + A22   S2 = S1 + A11    S3 = A11 + A21   S4 = A12 + S2
//   T1 = X12 + X11   T2 = X22 + T1    T3 = X22 + X12   T4 = T2 + X21
//
//   Y11 = A11 X11 + A12 X21           U = A11 X11 + S2 T2
//   Y12 = U + S1 T1 + S4 X22          Y21 = U + S3 T3 + A22 T4
//                                     Y22 = U + S3 T3 + S1 T1
//
// X and Y are halved in rows and in columns. The columns that are halved are only those worked on
// at a time, so that everything stays in the second-level cache. Only one T exists at a time;
// products that are not yet summed wait in Y.
#include "kernels/host_winograd.h"

#include <stdint.h>

enum {
  COLUMNS = 4096,    // worked on at a time
  COLUMN_STEP = 128, // so that halves begin on a cache line
  APART = 64,        // bytes between rows of T, so that they share no sets of a cache
  LINE = 64
};

// Rows of X or Y from column `at` on.
typedef struct sources {
  const uint8_t *const *row;
  size_t at;
} sources;
typedef struct targets {
  uint8_t *const *row;
  size_t at;
} targets;

typedef struct product {
  size_t m, k, columns;
  const uint8_t *a;
  size_t a_stride;
  sources x;
  targets y;
} product;

// Returns whether one level pays: it saves one of eight products of halves, and costs four sums of
// rows on either side.
static bool pays(const weft_host_kernel *kernel, size_t m, size_t k, size_t columns) {
  return columns >= WEFT_WINOGRAD_COLUMNS && columns % COLUMN_STEP == 0 &&
         weft_host_winograd_pays(kernel, m, k);
}

static size_t t_stride(size_t columns) { return columns / 2 + APART; }

// Returns the bytes of one level's S1 to S4 and T.
static size_t level_bytes(size_t m, size_t k, size_t columns) {
  const size_t sums = 4 * (m / 2) * (k / 2);
  return (sums + LINE - 1) / LINE * LINE + (k / 2) * t_stride(columns);
}

static size_t scratch_bytes(const weft_host_kernel *kernel, size_t m, size_t k, size_t columns) {
  size_t bytes = 0;
  for (; pays(kernel, m, k, columns); m /= 2, k /= 2, columns /= 2)
    bytes += level_bytes(m, k, columns);
  return bytes;
}

// --- Entry by entry

static void multiply(const weft_host_kernel *kernel, const product *p, bool accumulate) {
  const uint8_t *x[WEFT_PACK_ROWS];
  uint8_t *y[WEFT_PANEL_ROWS];
  for (size_t k0 = 0; k0 < p->k; k0 += WEFT_PACK_ROWS) {
    const size_t left = p->k - k0, k = left < WEFT_PACK_ROWS ? left : WEFT_PACK_ROWS;
    for (size_t j = 0; j < k; j++)
      x[j] = p->x.row[k0 + j] + p->x.at;
    for (size_t i = 0; i < p->m; i++)
      y[i] = p->y.row[i] + p->y.at;
    const weft_panel panel = {.m = p->m,
                              .k = k,
                              .end = p->columns,
                              .row_bytes = p->columns,
                              .a = p->a + k0,
                              .a_stride = p->a_stride,
                              .x = x,
                              .y = y,
                              .packed = k > 1, // rows are as far apart as in the whole product
                              .accumulate = accumulate || k0 > 0};
    kernel->panel(&panel);
  }
}

// --- Sums

static void sum(uint8_t *restrict out, const uint8_t *restrict a, const uint8_t *restrict b,
                size_t count) {
  for (size_t i = 0; i < count; i++)
    out[i] = a[i] ^ b[i];
}

// Makes S1 to S4, (m / 2, k / 2) each.
static void sums_of_a(const product *p, uint8_t *s) {
  const size_t mh = p->m / 2, kh = p->k / 2, each = mh * kh;
  for (size_t i = 0; i < mh; i++, s += kh) {
    const uint8_t *a11 = p->a + i * p->a_stride, *a12 = a11 + kh;
    const uint8_t *a21 = a11 + mh * p->a_stride, *a22 = a21 + kh;
    sum(s, a21, a22, kh);
    sum(s + each, s, a11, kh);
    sum(s + 2 * each, a11, a21, kh);
    sum(s + 3 * each, a12, s + each, kh);
  }
}

// Makes rows of T = rows of a + rows of b.
static void make_t(const weft_host_kernel *kernel, uint8_t *const *t, size_t rows, size_t columns,
                   sources a, sources b) {
  for (size_t j = 0; j < rows; j++) {
    const uint8_t *const both[] = {a.row[j] + a.at, b.row[j] + b.at};
    kernel->xor_rows(t[j], both, 2, 0, columns, false);
  }
}

static void add_rows(const weft_host_kernel *kernel, targets to, size_t rows, size_t columns,
                     sources what) {
  for (size_t i = 0; i < rows; i++) {
    const uint8_t *const one = what.row[i] + what.at;
    kernel->xor_rows(to.row[i] + to.at, &one, 1, 0, columns, true);
  }
}

static sources read_back(targets y) { return (sources){(const uint8_t *const *)y.row, y.at}; }

// --- One level

typedef struct level {
  const weft_host_kernel *kernel;
  uint8_t *scratch; // of the levels below
  size_t mh, kh, half;
} level;

static void winograd(const weft_host_kernel *kernel, const product *p, uint8_t *scratch);

static void fresh(const level *l, const uint8_t *a, size_t a_stride, sources x, targets y) {
  const product half = {l->mh, l->kh, l->half, a, a_stride, x, y};
  winograd(l->kernel, &half, l->scratch);
}

static void added(const level *l, const uint8_t *a, size_t a_stride, sources x, targets y) {
  const product half = {l->mh, l->kh, l->half, a, a_stride, x, y};
  multiply(l->kernel, &half, true);
}

static void halves(const weft_host_kernel *kernel, const product *p, uint8_t *scratch) {
  const size_t mh = p->m / 2, kh = p->k / 2, half = p->columns / 2, each = mh * kh;
  const uint8_t *const s = scratch;
  uint8_t *t_rows[WEFT_PANEL_ROWS / 2];
  sums_of_a(p, scratch);
  scratch += (4 * each + LINE - 1) / LINE * LINE;
  for (size_t j = 0; j < kh; j++, scratch += t_stride(p->columns))
    t_rows[j] = scratch;
  const level l = {kernel, scratch, mh, kh, half};
  const uint8_t *const a12 = p->a + kh, *const a22 = a12 + mh * p->a_stride;
  const sources x11 = p->x, x21 = {p->x.row + kh, p->x.at};
  const sources x12 = {x11.row, x11.at + half}, x22 = {x21.row, x21.at + half};
  const targets y11 = p->y, y21 = {p->y.row + mh, p->y.at};
  const targets y12 = {y11.row, y11.at + half}, y22 = {y21.row, y21.at + half};
  const targets t_out = {t_rows, 0};
  const sources t = read_back(t_out);
  make_t(kernel, t_rows, kh, half, x22, x12);
  fresh(&l, s + 2 * each, kh, t, y21); // S3 T3
  make_t(kernel, t_rows, kh, half, x12, x11);
  fresh(&l, s, kh, t, y22); // S1 T1
  add_rows(kernel, t_out, kh, half, x22);
  fresh(&l, s + each, kh, t, y12); // S2 T2
  fresh(&l, p->a, p->a_stride, x11, y11);
  for (size_t i = 0; i < mh; i++) { // row by row, while what was written is in a near cache
    const targets r11 = {y11.row + i, y11.at}, r12 = {y12.row + i, y12.at};
    const targets r21 = {y21.row + i, y21.at}, r22 = {y22.row + i, y22.at};
    add_rows(kernel, r12, 1, half, read_back(r11)); // U
    add_rows(kernel, r21, 1, half, read_back(r12)); // U + S3 T3
    add_rows(kernel, r12, 1, half, read_back(r22)); // U + S1 T1
    add_rows(kernel, r22, 1, half, read_back(r21));
  }
  added(&l, a12, p->a_stride, x21, y11);
  added(&l, s + 3 * each, kh, x22, y12);
  add_rows(kernel, t_out, kh, half, x21);
  added(&l, a22, p->a_stride, t, y21);
}

// Multiplies what an odd number of rows or sources leaves over.
static void leftover(const weft_host_kernel *kernel, const product *p) {
  product rest = *p;
  if (p->k % 2) {
    rest.m = p->m / 2 * 2, rest.k = 1;
    rest.a = p->a + p->k - 1;
    rest.x.row = p->x.row + p->k - 1;
    multiply(kernel, &rest, true);
  }
  if (p->m % 2) {
    rest = *p;
    rest.m = 1;
    rest.a = p->a + (p->m - 1) * p->a_stride;
    rest.y.row = p->y.row + p->m - 1;
    multiply(kernel, &rest, false);
  }
}

static void winograd(const weft_host_kernel *kernel, const product *p, uint8_t *scratch) {
  if (!pays(kernel, p->m, p->k, p->columns)) {
    multiply(kernel, p, false);
    return;
  }
  halves(kernel, p, scratch);
  leftover(kernel, p);
}

// Returns where pointers lie behind `bytes` bytes of scratch.
static size_t lists_at(size_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }

size_t weft_host_winograd(const weft_host_kernel *kernel, const weft_allocator *allocator,
                          const weft_gemm *g, size_t begin, size_t end) {
  const size_t all = (end - begin) / COLUMN_STEP * COLUMN_STEP;
  if (g->accumulate || g->x_prepared || g->m > WEFT_PANEL_ROWS || g->k > WEFT_PANEL_ROWS ||
      !pays(kernel, g->m, g->k, all))
    return begin;
  const size_t width = all < COLUMNS ? all : COLUMNS;
  const size_t bytes = scratch_bytes(kernel, g->m, g->k, width);
  const size_t lists = (g->k + g->m) * sizeof(uint8_t *);
  uint8_t *const scratch = allocator->alloc(allocator->user, lists_at(bytes) + lists, LINE);
  if (!scratch) // entry by entry needs none
    return begin;
  const uint8_t **const x = (const uint8_t **)(void *)(scratch + lists_at(bytes));
  uint8_t **const y = (uint8_t **)(void *)(x + g->k);
  for (size_t j = 0; j < g->k; j++)
    x[j] = weft_const_row(&g->x, j);
  for (size_t i = 0; i < g->m; i++)
    y[i] = weft_row(&g->y, i);
  product p = {.m = g->m, .k = g->k, .a = g->a, .a_stride = g->a_stride};
  for (size_t at = begin; at < begin + all; at += p.columns) {
    const size_t left = begin + all - at;
    p.columns = left < width ? left : width;
    p.x = (sources){x, at};
    p.y = (targets){y, at};
    winograd(kernel, &p, scratch);
  }
  allocator->free(allocator->user, scratch);
  return begin + all;
}
