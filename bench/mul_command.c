// SPDX-License-Identifier: Apache-2.0
// `weft bench mul`: every multiplication technique side by side, called directly through the rows:
// single products, the multiply-accumulate of every host row on one shape, and that of every row of
// a GPU.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "bench/ceiling_cases.h"
#include "bench/check.h"
#include "bench/commands.h"
#include "bench/group.h"
#include "bench/mul_cases.h"
#include "bench/peers/isal.h"
#include "bench/rows.h"
#include "kernels/backend.h"

// One shape's operands; every row overwrites y.
typedef struct product {
  size_t m, n, k;
  uint8_t *a; // (m, n) nonzero coefficients
  uint8_t *x; // (n, k)
  uint8_t *y; // (m, k)
} product;

typedef struct row_state {
  const weft_backend *row;
  weft_exec exec;
  weft_gemm gemm;
  weft_operand *prepared; // X, prepared once
} row_state;

static void call_gemm(void *user) {
  const row_state *const state = user;
  weft_bench_must(state->row->name, state->row->gemm(state->row, &state->exec, &state->gemm, 1));
}

static void call_prepare(void *user) {
  const row_state *const state = user;
  weft_operand *operand = NULL;
  weft_bench_must(state->row->name, state->row->prepare(state->row, &state->exec, state->gemm.k,
                                                        state->gemm.len, &state->gemm.x, &operand));
  state->row->release(state->row, &state->exec, operand);
}

static product product_new(size_t m, size_t n, size_t k, uint64_t seed) {
  const product p = {
      m, n, k, weft_bench_alloc(m, n), weft_bench_alloc(n, k), weft_bench_alloc(m, k)};
  weft_bench_random random;
  weft_bench_random_seed(&random, seed);
  weft_bench_random_nonzero(&random, p.a, m * n);
  weft_bench_random_bytes(&random, p.x, n * k);
  return p;
}

static weft_bench_case product_case(const product *p, const char *operation, const char *row,
                                    const char *variant) {
  return (weft_bench_case){
      .operation = operation,
      .row = row,
      .variant = variant,
      .n = p->n,
      .k = p->k,
      .m = p->m,
      .threads = 1,
      .amount = {[WEFT_BENCH_OUTPUT] = (double)(p->m * p->k),
                 [WEFT_BENCH_PRODUCTS] = (double)(p->m * p->n) * (double)p->k,
                 [WEFT_BENCH_INPUT] = (double)(p->n * p->k)},
      .ceiling = -1,
      .bound_by = WEFT_BENCH_PRODUCTS,
      .work = {.regions = {{p->a, p->m * p->n}, {p->x, p->n * p->k}, {p->y, p->m * p->k}},
               .region_count = 3},
  };
}

// Runs the row once, checks the result, and adds the case.
static int add_product(weft_bench_group *group, const product *p, row_state *state,
                       const char *variant) {
  weft_bench_case entry = product_case(p, "gemm", state->row->name, variant);
  memset(p->y, 0xa5, p->m * p->k);
  call_gemm(state);
  entry.checked = weft_bench_check_product(state->row->name, p->m, p->n, p->k, p->a, p->n, p->x,
                                           p->k, p->y, p->k);
  entry.ceiling = weft_bench_add_row_ceiling(group, state->row->name);
  entry.work.call = call_gemm;
  entry.work.user = state;
  return weft_bench_group_add(group, &entry);
}

// states[2]: the row on plain X and, if the row has its own layout, on prepared X.
static int add_row(weft_bench_group *group, const product *p, const weft_backend *row,
                   row_state *states) {
  states[0] = (row_state){
      .row = row,
      .exec = {.allocator = &weft_bench_allocator},
      .gemm = {.m = p->m,
               .k = p->n,
               .len = p->k,
               .a = p->a,
               .a_stride = p->n,
               .x = {.base = p->x, .stride = p->k},
               .y = {.base = p->y, .stride = p->k}},
  };
  const int plain = add_product(group, p, &states[0], "");
  if (!row->prepare)
    return plain;
  states[1] = states[0];
  weft_bench_must(row->name, row->prepare(row, &states[1].exec, p->n, p->k, &states[1].gemm.x,
                                          &states[1].prepared));
  states[1].gemm.x_prepared = states[1].prepared;
  const int prepared = add_product(group, p, &states[1], "prepared");
  weft_bench_case entry = product_case(p, "prepare", row->name, "");
  entry.amount[WEFT_BENCH_OUTPUT] = entry.amount[WEFT_BENCH_INPUT];
  entry.amount[WEFT_BENCH_PRODUCTS] = 0;
  entry.checked = "by the product of the prepared operand";
  entry.work.call = call_prepare;
  entry.work.user = &states[0];
  weft_bench_group_add(group, &entry);
  return prepared;
}

typedef struct chosen_rows {
  const weft_backend **row;
  size_t count;
} chosen_rows;

// Rows that work byte by byte have the same rate for any m, and would take seconds per call.
enum { BYTEWISE_ROWS_MAX = 4 };

static product rows_of(const product *p, const weft_backend *row) {
  product out = *p;
  if (row->align == 1 && !row->prepare && out.m > BYTEWISE_ROWS_MAX)
    out.m = BYTEWISE_ROWS_MAX;
  return out;
}

// Question: do tables beat loops here? The two of a pair differ only in that.
static const struct {
  const char *name, *table, *loop;
} table_or_loop[] = {
    {"table / loop, vectors: nibble shuffle 32 bytes / SIMD loop", "avx2", "loop-avx2"},
    {"table / loop, vectors: nibble shuffle 16 bytes / SIMD loop", "ssse3", "loop-sse2"},
    {"table / loop, no vectors: log domain / word-parallel loop", "logdomain", "loop-word64"},
    {"table / loop, byte by byte: 64 KiB table / peasant", "mul-full-table", "mul-peasant"},
};

static void ask_table_or_loop(weft_bench_group *group) {
  for (size_t q = 0; q < sizeof table_or_loop / sizeof *table_or_loop; q++)
    weft_bench_group_ask(
        group, table_or_loop[q].name, weft_bench_group_find(group, "gemm", table_or_loop[q].table),
        weft_bench_group_find(group, "gemm", table_or_loop[q].loop), WEFT_BENCH_PRODUCTS);
}

static void run_shape(weft_bench_report *report, const weft_bench_options *options,
                      const weft_bench_machine *machine, const chosen_rows *rows,
                      weft_bench_isal *isal, size_t m, size_t n, size_t k) {
  const weft_machine offered = {.cpu = machine->features};
  const product p = product_new(m, n, k, options->seed);
  row_state *const states = weft_bench_alloc(2 * rows->count, sizeof *states);
  char *const title = weft_bench_text("Y(%zu, %zu) = A(%zu, %zu) X, one thread", m, k, m, n);
  weft_bench_group *const group = weft_bench_group_new(title);
  const weft_backend *best = NULL;
  weft_bench_must("best row", weft_backend_select(&offered, WEFT_MEM_HOST, NULL, &best));
  int best_case = -1;
  for (size_t i = 0; i < rows->count; i++) {
    const weft_backend *const row = rows->row[i];
    const product some = rows_of(&p, row);
    const int added = add_row(group, &some, row, &states[2 * i]);
    if (row == best)
      best_case = added;
  }
  weft_bench_isal_product peer = {0};
  if (isal) {
    weft_bench_case entry = product_case(&p, "gemm", "isa-l", "");
    if (best_case >= 0) // ISA-L uses the same instructions as the best row
      entry.ceiling = group->cases[best_case].ceiling;
    weft_bench_isal_prepare(isal, &peer, m, n, k, p.a, n, p.x, k, p.y, k);
    entry.work.call = weft_bench_isal_call;
    entry.work.user = &peer;
    memset(p.y, 0xa5, m * k);
    weft_bench_isal_call(&peer);
    entry.checked = weft_bench_check_product("isa-l", m, n, k, p.a, n, p.x, k, p.y, k);
    weft_bench_group_ask(group, "best row / isa-l", best_case, weft_bench_group_add(group, &entry),
                         WEFT_BENCH_PRODUCTS);
  }
  ask_table_or_loop(group);
  weft_bench_report_run(report, options, group);
  for (size_t i = 0; i < 2 * rows->count; i++)
    if (states[i].prepared)
      states[i].row->release(states[i].row, &states[i].exec, states[i].prepared);
  weft_bench_isal_release(&peer);
  weft_bench_group_free(group);
  free(states), free(title), free(p.a), free(p.x), free(p.y);
}

int weft_bench_mul_command(int argc, char **argv) {
  weft_bench_options options;
  const int parsed = weft_bench_options_parse(&options, argc, argv);
  if (parsed != 0)
    return parsed == 1 ? 0 : parsed;
  weft_bench_sizes_default(&options.n, (const size_t[]){128}, 1);
  weft_bench_sizes_default(&options.k, (const size_t[]){1024, 4096}, options.quick ? 1 : 2);
  const bool everything = !options.rows || strcmp(options.rows, "all") == 0;
  weft_bench_sizes_default(&options.m, (const size_t[]){options.quick ? 16 : 128}, 1);
  weft_bench_machine machine;
  weft_bench_machine_read(&machine);
  chosen_rows rows;
  rows.row = weft_bench_rows_choose("mul", options.rows ? options.rows : "all", machine.features,
                                    &rows.count);
  if (!rows.row)
    return WEFT_BENCH_USAGE;
  weft_bench_pin(&machine, 0);
  weft_bench_report report;
  weft_bench_report_begin(&report, &options, &machine);
  weft_bench_mul_singles(&report, &options, rows.row, rows.count);
  weft_bench_isal *const isal = weft_bench_isal_open(options.isal);
  for (size_t n = 0; n < options.n.count; n++)
    for (size_t k = 0; k < options.k.count; k++)
      for (size_t m = 0; m < options.m.count; m++)
        run_shape(&report, &options, &machine, &rows, isal, options.m.value[m], options.n.value[n],
                  options.k.value[k]);
  weft_bench_isal_close(isal);
  if (everything && options.timing.cold)
    printf("\nrows of a GPU: left out, --cold is for the CPU\n");
  else if (everything)
    weft_bench_mul_devices(&report, &options);
  weft_bench_unpin(&machine);
  free(rows.row);
  return weft_bench_report_end(&report, &options);
}
