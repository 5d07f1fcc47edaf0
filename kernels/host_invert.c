// SPDX-License-Identifier: Apache-2.0
// Inverses on host rows: Gauss-Jordan in place on n x n bytes, with row pivoting, using the backend
// row's own panel kernel. The matrices of a batch are shared among threads.
//
// A step with pivot d in row and column p replaces every row R by R + f X, all rows alike: X is the
// pivot row over d with X[p] = 1 + 1/d, and f is the row's entry in column p, or 1 + d for the
// pivot row itself. (That puts f/d into column p, where the inverse grows, and the scaled pivot row
// into its place.) A few steps are collected and applied to the whole matrix as one product; until
// then only the column and the row that the next step needs are brought up to date.
#include <string.h>

#include "kernels/gf256.h"
#include "kernels/host_kernels.h"
#include "kernels/smaller.h"
#include "kernels/unroll.h"

enum {
  STEPS_SMALL = 8, // applied at once up to SMALL_N; measured (docs/performance/cpu-kernels.md)
  STEPS_MAX = 16,
  SMALL_N = 192,
  NARROW = 32,
  LINE = 64
};

// One inversion. Row r of the matrix is rows[r]; swaps are recorded and undone at the end, since a
// swap of rows of A is a swap of columns of its inverse.
typedef struct gauss_jordan {
  const weft_host_kernel *kernel;
  size_t n, width; // width: bytes of a row; what is in columns from n on does not matter
  size_t at_once;  // most steps collected
  uint8_t *rows[WEFT_PANEL_ROWS];
  uint16_t swapped[WEFT_PANEL_ROWS];
  // The steps not yet applied: factors[t][r] is f of row r, pivots[t] is X.
  uint8_t *factors[STEPS_MAX], *pivots[STEPS_MAX];
  uint8_t *by_row; // the factors, those of a row side by side
} gauss_jordan;

static size_t step_bytes(size_t n) { return (n + LINE - 1) / LINE * LINE; }

// Collects up to `at_once` steps in `memory`: 3 * at_once * step_bytes(n) bytes.
static void place_steps(gauss_jordan *s, uint8_t *memory, size_t at_once) {
  const size_t each = step_bytes(s->n);
  s->at_once = at_once;
  for (size_t t = 0; t < at_once; t++) {
    s->factors[t] = memory + t * each;
    s->pivots[t] = memory + (at_once + t) * each;
  }
  s->by_row = memory + 2 * at_once * each;
}

static void product(const gauss_jordan *s, size_t m, size_t k, const uint8_t *a,
                    const uint8_t *const *x, uint8_t *const *y, bool accumulate) {
  const weft_panel panel = {.m = m,
                            .k = k,
                            .begin = 0,
                            .end = s->width,
                            .row_bytes = s->width,
                            .a = a,
                            .a_stride = k,
                            .x = x,
                            .y = y,
                            .accumulate = accumulate};
  if (m > 0 && k > 0)
    s->kernel->panel(&panel);
}

static void swap_bytes(uint8_t *a, uint8_t *b, size_t len) {
  for (size_t i = 0; i < len; i++) {
    const uint8_t t = a[i];
    a[i] = b[i];
    b[i] = t;
  }
}

// Brings column p = first + t up to date in factors[t], which holds it as it was before the steps.
static void update_column(gauss_jordan *s, size_t first, size_t t) {
  const uint8_t *x[STEPS_MAX];
  uint8_t a[STEPS_MAX], *y = s->factors[t];
  for (size_t i = 0; i < t; i++) {
    x[i] = s->factors[i];
    a[i] = s->pivots[i][first + t];
  }
  product(s, 1, t, a, x, &y, true);
}

// Swaps a row with a nonzero entry in column p to row p; returns false if there is none.
static bool find_pivot(gauss_jordan *s, size_t first, size_t steps, size_t t) {
  const size_t p = first + t;
  size_t r = p;
  while (r < s->n && s->factors[t][r] == 0)
    r++;
  if (r == s->n)
    return false;
  s->swapped[p] = (uint16_t)r;
  if (r == p)
    return true;
  swap_bytes(s->rows[r], s->rows[p], s->n);
  for (size_t i = 0; i < steps; i++)
    swap_bytes(&s->factors[i][r], &s->factors[i][p], 1);
  return true;
}

// Makes X and f of step t from the pivot row and column.
static void make_step(gauss_jordan *s, size_t first, size_t t) {
  const size_t p = first + t;
  const uint8_t d = s->factors[t][p], inverse = weft_gf256_inv[d];
  const uint8_t *const scaled = weft_gf256_product[inverse];
  const uint8_t *x[STEPS_MAX + 1];
  uint8_t a[STEPS_MAX + 1], *y = s->pivots[t];
  for (size_t i = 0; i < t; i++) {
    x[i] = s->pivots[i];
    a[i] = scaled[s->factors[i][p]];
  }
  x[t] = s->rows[p];
  a[t] = inverse;
  product(s, 1, t + 1, a, x, &y, false);
  s->pivots[t][p] = inverse ^ 1;
  s->factors[t][p] = d ^ 1;
}

// Transposes bytes (8, 8): each row is one little-endian number, of which halves, quarters and then
// bytes are swapped.
static void transpose_8x8(const uint8_t *const from[8], uint8_t *const to[8]) {
  static const uint64_t masks[3] = {0x00000000FFFFFFFF, 0x0000FFFF0000FFFF, 0x00FF00FF00FF00FF};
  uint64_t w[8];
  for (size_t i = 0; i < 8; i++)
    memcpy(&w[i], from[i], 8);
  WEFT_UNROLL for (size_t level = 0; level < 3; level++) {
    const size_t apart = 4u >> level, shift = 32u >> level;
    WEFT_UNROLL for (size_t i = 0; i < 8; i++) if (!(i & apart)) {
      const uint64_t swap = ((w[i] >> shift) ^ w[i + apart]) & masks[level];
      w[i] ^= swap << shift;
      w[i + apart] ^= swap;
    }
  }
  for (size_t i = 0; i < 8; i++)
    memcpy(to[i], &w[i], 8);
}

static void factors_by_row(gauss_jordan *s, size_t steps) {
  const size_t t8 = steps / 8 * 8, r8 = s->n / 8 * 8;
  for (size_t t0 = 0; t0 < t8; t0 += 8)
    for (size_t r0 = 0; r0 < r8; r0 += 8) {
      const uint8_t *from[8];
      uint8_t *to[8];
      for (size_t i = 0; i < 8; i++) {
        from[i] = s->factors[t0 + i] + r0;
        to[i] = s->by_row + (r0 + i) * steps + t0;
      }
      transpose_8x8(from, to);
    }
  for (size_t r = 0; r < s->n; r++)
    for (size_t t = r < r8 ? t8 : 0; t < steps; t++)
      s->by_row[r * steps + t] = s->factors[t][r];
}

static void columns_to_factors(gauss_jordan *s, size_t first, size_t steps) {
  const size_t t8 = steps / 8 * 8, r8 = s->n / 8 * 8;
  for (size_t t0 = 0; t0 < t8; t0 += 8)
    for (size_t r0 = 0; r0 < r8; r0 += 8) {
      const uint8_t *from[8];
      uint8_t *to[8];
      for (size_t i = 0; i < 8; i++) {
        from[i] = s->rows[r0 + i] + first + t0;
        to[i] = s->factors[t0 + i] + r0;
      }
      transpose_8x8(from, to);
    }
  for (size_t r = 0; r < s->n; r++)
    for (size_t t = r < r8 ? t8 : 0; t < steps; t++)
      s->factors[t][r] = s->rows[r][first + t];
}

static void apply_steps(gauss_jordan *s, size_t steps) {
  const uint8_t *x[STEPS_MAX];
  for (size_t t = 0; t < steps; t++)
    x[t] = s->pivots[t];
  if (steps > 1)
    factors_by_row(s, steps);
  product(s, s->n, steps, steps > 1 ? s->by_row : s->factors[0], x, s->rows, true);
}

static bool eliminate(gauss_jordan *s, size_t first, size_t steps) {
  columns_to_factors(s, first, steps);
  for (size_t t = 0; t < steps; t++) {
    update_column(s, first, t);
    if (!find_pivot(s, first, steps, t))
      return false;
    make_step(s, first, t);
  }
  apply_steps(s, steps);
  return true;
}

static void undo_swaps(const gauss_jordan *s) {
  for (size_t p = s->n; p-- > 0;)
    for (size_t r = 0; r < s->n && s->swapped[p] != p; r++)
      swap_bytes(&s->rows[r][p], &s->rows[r][s->swapped[p]], 1);
}

static bool invert_rows(gauss_jordan *s) {
  for (size_t p = 0; p < s->n; p += s->at_once)
    if (!eliminate(s, p, weft_smaller(s->n - p, s->at_once)))
      return false;
  undo_swaps(s);
  return true;
}

typedef struct invert_job {
  const weft_host_kernel *kernel;
  const weft_exec *exec;
  const weft_invert *invert;
  bool narrow;
} invert_job;

static bool invert_in_place(const invert_job *job, uint8_t *matrix, size_t n) {
  // The steps of a large matrix would be much for a caller's stack. Without memory elsewhere fewer
  // are applied at once.
  _Alignas(64) uint8_t small[3 * STEPS_SMALL * SMALL_N];
  const size_t all = 3 * step_bytes(n);
  gauss_jordan s;
  s.kernel = job->kernel;
  s.n = s.width = n;
  uint8_t *large = NULL;
  if (n > SMALL_N)
    large = weft_scratch_take(job->exec->scratch, job->exec->allocator, STEPS_MAX * all);
  if (large)
    place_steps(&s, large, STEPS_MAX);
  else
    place_steps(&s, small, weft_smaller(STEPS_SMALL, sizeof small / all));
  for (size_t r = 0; r < n; r++)
    s.rows[r] = matrix + r * n;
  const bool inverted = invert_rows(&s);
  if (large)
    weft_scratch_give(job->exec->scratch, job->exec->allocator, large);
  return inverted;
}

// Does the same on copies of rows shorter than a vector, which techniques without masks would load
// and store through the stack each time (tail_copy.h; docs/performance/cpu-codec.md has the gain).
static bool invert_narrow(const invert_job *job, uint8_t *matrix, size_t n) {
  uint8_t rows[NARROW][NARROW] = {{0}};
  _Alignas(64) uint8_t steps[3 * STEPS_SMALL * LINE];
  gauss_jordan s;
  s.kernel = job->kernel;
  s.n = n;
  s.width = NARROW;
  place_steps(&s, steps, STEPS_SMALL);
  for (size_t r = 0; r < n; r++)
    s.rows[r] = memcpy(rows[r], matrix + r * n, n);
  for (size_t t = 0; t < STEPS_SMALL; t++)
    memset(s.factors[t] + n, 0, NARROW - n);
  if (!invert_rows(&s))
    return false;
  for (size_t r = 0; r < n; r++)
    memcpy(matrix + r * n, rows[r], n);
  return true;
}

static void invert_task(void *user, size_t index) {
  const invert_job *job = user;
  const weft_invert *o = job->invert;
  const size_t bytes = o->k * o->k;
  uint8_t *out = o->out + index * bytes;
  if (o->out != o->in && bytes > 0)
    memcpy(out, o->in + index * bytes, bytes);
  o->singular[index] = o->k > 0 && !(job->narrow ? invert_narrow : invert_in_place)(job, out, o->k);
}

weft_status weft_host_invert(const weft_backend *row, const weft_exec *exec, const weft_invert *o) {
  if (o->mem == WEFT_MEM_DEVICE)
    return WEFT_E_UNSUPPORTED;
  if (o->k > WEFT_PANEL_ROWS)
    return WEFT_E_ARGUMENT;
  // row->align is the size of the technique's vectors; those that are wider than NARROW have masks.
  const bool narrow = o->k < NARROW && row->align <= NARROW && o->k % row->align != 0;
  invert_job job = {.kernel = row->host, .exec = exec, .invert = o, .narrow = narrow};
  weft_pool_run(exec->pool, o->count, invert_task, &job);
  return WEFT_OK;
}
