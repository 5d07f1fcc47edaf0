// SPDX-License-Identifier: Apache-2.0
// Inverses on host rows: Gauss-Jordan in place on n x n bytes, with row pivoting; the rank-1
// updates run on the row's own panel kernel. Matrices of a batch are shared among threads.
#include <string.h>

#include "kernels/gf256.h"
#include "kernels/host_kernels.h"

// One matrix at work. Row r of the matrix is rows[r]; swaps are recorded and undone at the end,
// since a swap of rows of A is a swap of columns of its inverse.
typedef struct gauss_jordan {
  const weft_host_kernel *kernel;
  size_t n;
  uint8_t *rows[WEFT_PANEL_ROWS];
  uint8_t factor[WEFT_PANEL_ROWS]; // column of the pivot
  uint8_t pivot[WEFT_PANEL_ROWS];  // the scaled pivot row
  uint16_t swapped[WEFT_PANEL_ROWS];
} gauss_jordan;

static void swap_bytes(uint8_t *a, uint8_t *b, size_t len) {
  for (size_t i = 0; i < len; i++) {
    const uint8_t t = a[i];
    a[i] = b[i];
    b[i] = t;
  }
}

// Brings a row with a nonzero entry in column p to row p; false when there is none.
static bool find_pivot(gauss_jordan *s, size_t p) {
  size_t r = p;
  while (r < s->n && s->rows[r][p] == 0)
    r++;
  if (r == s->n)
    return false;
  s->swapped[p] = (uint16_t)r;
  if (r != p)
    swap_bytes(s->rows[r], s->rows[p], s->n);
  return true;
}

static void rank1(gauss_jordan *s, size_t m, const uint8_t *a, const uint8_t *x, uint8_t *const *y,
                  bool accumulate) {
  const weft_panel panel = {.m = m,
                            .k = 1,
                            .begin = 0,
                            .end = s->n,
                            .a = a,
                            .a_stride = 1,
                            .x = &x,
                            .y = y,
                            .accumulate = accumulate};
  s->kernel->panel(&panel);
}

// Scales the pivot row and takes it out of all others; the column that becomes a unit vector makes
// room for the inverse's.
static void eliminate(gauss_jordan *s, size_t p) {
  const uint8_t inverse = weft_gf256_inv[s->rows[p][p]];
  uint8_t *const pivot = s->pivot;
  s->rows[p][p] = 1;
  rank1(s, 1, &inverse, s->rows[p], &pivot, false);
  for (size_t r = 0; r < s->n; r++) {
    s->factor[r] = s->rows[r][p];
    s->rows[r][p] = 0;
  }
  // The pivot row becomes 0 + 1 * pivot in the same update.
  memset(s->rows[p], 0, s->n);
  s->factor[p] = 1;
  rank1(s, s->n, s->factor, pivot, s->rows, true);
}

static void undo_swaps(const gauss_jordan *s) {
  for (size_t p = s->n; p-- > 0;)
    if (s->swapped[p] != p)
      for (size_t r = 0; r < s->n; r++)
        swap_bytes(&s->rows[r][p], &s->rows[r][s->swapped[p]], 1);
}

static bool invert_in_place(const weft_host_kernel *kernel, uint8_t *matrix, size_t n) {
  gauss_jordan s;
  s.kernel = kernel;
  s.n = n;
  for (size_t r = 0; r < n; r++)
    s.rows[r] = matrix + r * n;
  for (size_t p = 0; p < n; p++) {
    if (!find_pivot(&s, p))
      return false;
    eliminate(&s, p);
  }
  undo_swaps(&s);
  return true;
}

typedef struct invert_job {
  const weft_host_kernel *kernel;
  const weft_invert *invert;
} invert_job;

static void invert_task(void *user, size_t index) {
  const invert_job *job = user;
  const weft_invert *o = job->invert;
  const size_t bytes = o->k * o->k;
  uint8_t *out = o->out + index * bytes;
  if (o->out != o->in && bytes > 0)
    memcpy(out, o->in + index * bytes, bytes);
  o->singular[index] = !invert_in_place(job->kernel, out, o->k);
}

weft_status weft_host_invert(const weft_backend *row, const weft_exec *exec, const weft_invert *o) {
  if (o->mem == WEFT_MEM_DEVICE)
    return WEFT_E_UNSUPPORTED;
  if (o->k > WEFT_PANEL_ROWS)
    return WEFT_E_ARGUMENT;
  invert_job job = {.kernel = row->host, .invert = o};
  weft_pool_run(exec->pool, o->count, invert_task, &job);
  return WEFT_OK;
}
