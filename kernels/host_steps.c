// SPDX-License-Identifier: Apache-2.0
// Products by factors: decides whether they pay, and prepares what the technique executes.
#include <stdatomic.h>
#include <string.h>

#include "kernels/cpu.h"
#include "kernels/host_steps.h"

static size_t butterflies_cost(const weft_host_kernel *kernel, const weft_acts *acts) {
  size_t products = acts->work.products, sums = acts->work.sums, rows = 0;
  for (size_t size = 0; size < kernel->wide_rows / 8; size++) {
    const weft_acts_work *wide = &acts->wide[size].work;
    // A little of this is work on zeros, which acts->work leaves out.
    products -= wide->products < products ? wide->products : products;
    sums -= wide->sums < sums ? wide->sums : sums;
    rows += acts->wide[size].rows;
  }
  return kernel->steps_product * products + kernel->steps_sum * sums + kernel->steps_wide * rows;
}

// Returns what acts cost per column of so many, beyond what the other weights count: those were
// measured with WEIGHED columns and more. 0 columns: not known yet.
static size_t acts_cost(const weft_host_kernel *kernel, const weft_acts *acts, size_t columns) {
  enum { WEIGHED = 4096 };
  return columns == 0 || columns >= WEIGHED
             ? 0
             : kernel->steps_act * acts->count * (WEIGHED - columns) / (WEIGHED * columns);
}

static size_t entries_cost(const weft_host_kernel *kernel, size_t m, size_t k, size_t row_bytes) {
  return m * k * (kernel->entry ? kernel->entry(m, k, row_bytes) : 8);
}

// A product costs more as a step than entry by entry, since slots are read and written. `columns`:
// of the row, that are worked on at once.
static bool steps_pay(const weft_host_kernel *kernel, size_t m, size_t k, size_t row_bytes,
                      size_t columns, const weft_factors *factors, size_t entries) {
  const weft_acts *acts = factors->acts;
  if (!kernel->steps || !acts || k > WEFT_ACT_ROWS || m > WEFT_ACT_ROWS ||
      m * k < kernel->steps_least) // before weighing entries, which short shards would notice
    return false;
  return entries_cost(kernel, m, k, row_bytes) >=
         butterflies_cost(kernel, acts) + acts_cost(kernel, acts, columns) +
             kernel->steps_entry * (acts->entries + entries);
}

bool weft_host_steps_pay(const weft_host_kernel *kernel, size_t m, size_t k, size_t row_bytes,
                         const weft_factors *factors, size_t entries) {
  return steps_pay(kernel, m, k, row_bytes, row_bytes, factors, entries);
}

// Returns whether the last columns, too few for acts, are better computed by acts together with
// columns before them, once more, than entry by entry. (An entry costs half as much again for a
// column of so few.)
static bool rest_pays(const weft_host_kernel *kernel, const weft_gemm *g, size_t rest) {
  const weft_acts *acts = g->factors->acts;
  return entries_cost(kernel, g->m, g->k, g->len) * rest * 3 / 2 >=
         kernel->steps_act * acts->count +
             WEFT_ACT_STEP * (butterflies_cost(kernel, acts) + kernel->steps_entry * acts->entries);
}

// Which slots are better kept in the first-level cache, although rows are then read in shorter runs
// (measured): of all rows where both caches are large, of rows that the second-level cache holds
// where that has 1 MiB; none with a first-level cache of 32 KiB.
typedef enum first_level { UNKNOWN, NEVER, OF_NEAR_ROWS, ALWAYS } first_level;

static first_level first_level_pays(void) {
  static atomic_int known;
  first_level answer = (first_level)atomic_load_explicit(&known, memory_order_relaxed);
  if (answer == UNKNOWN) {
    const weft_cpu_caches caches = weft_cpu_caches_told();
    answer = caches.first < (48 << 10) || caches.second < (1 << 20) ? NEVER
             : caches.second < (2 << 20)                            ? OF_NEAR_ROWS
                                                                    : ALWAYS;
    atomic_store_explicit(&known, (int)answer, memory_order_relaxed);
  }
  return answer;
}

// Returns how many columns of at least WEFT_ACT_STEP to work on at once. `bytes`: of all rows of X
// and Y.
static size_t strip_width(const weft_host_kernel *kernel, const weft_acts *acts, size_t columns,
                          size_t bytes, bool past) {
  const size_t first = WEFT_ACT_FIRST / acts->slots,
               least = past ? WEFT_ACT_NARROW_PAST : kernel->steps_narrow;
  const first_level pays = first_level_pays();
  size_t width = WEFT_ACT_SCRATCH / acts->slots;
  if (pays == ALWAYS)
    width = first > least ? first : least;
  else if (pays == OF_NEAR_ROWS && kernel->steps_near && bytes <= (1 << 20))
    width = kernel->steps_near;
  width = width < WEFT_ACT_COLUMNS ? width : WEFT_ACT_COLUMNS;
  return (width < columns ? width : columns) / WEFT_ACT_STEP * WEFT_ACT_STEP;
}

size_t weft_host_steps(const weft_host_kernel *kernel, weft_scratch *scratch,
                       const weft_allocator *allocator, const weft_gemm *g, size_t begin,
                       size_t end) {
  const uint8_t *x[WEFT_ACT_ROWS];
  uint8_t *y[WEFT_ACT_ROWS];
  const size_t columns = end - begin, rest = columns % WEFT_ACT_STEP;
  if (!g->factors || g->x_prepared || g->accumulate || columns < WEFT_STEPS_COLUMNS ||
      !steps_pay(kernel, g->m, g->k, g->len, columns, g->factors, 0))
    return begin;
  const weft_acts *acts = g->factors->acts;
  const size_t bytes = (g->k + g->m) * g->len;
  const bool past = bytes >= kernel->steps_past;
  const size_t stop = rest == 0 || rest_pays(kernel, g, rest) ? end : end - rest;
  const size_t width = strip_width(kernel, acts, columns, bytes, past);
  uint8_t *const slots =
      weft_scratch_take(scratch, allocator, (acts->slots + acts->zeros) * WEFT_ACT_STRIDE);
  if (!slots) // entry by entry needs none
    return begin;
  if (acts->zeros)
    memset(slots + acts->slots * WEFT_ACT_STRIDE, 0, width);
  for (size_t j = 0; j < g->k; j++)
    x[j] = weft_const_row(&g->x, j);
  for (size_t i = 0; i < g->m; i++)
    y[i] = weft_row(&g->y, i);
  const weft_strip strip = {.acts = acts,
                            .panel = kernel->panel,
                            .k = g->k,
                            .m = g->m,
                            .x = x,
                            .y = y,
                            .begin = begin,
                            .end = stop,
                            .width = width,
                            .past = past,
                            .scratch = slots};
  kernel->steps(&strip);
  weft_scratch_give(scratch, allocator, slots);
  return stop;
}
