// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "bench/check.h"
#include "bench/mul_cases.h"
#include "kernels/gf256.h"

// With the largest table, 64 KiB, this still fits every second-level cache.
enum { PAIRS = 16384 };

typedef struct single_state {
  const weft_backend *row;
  const uint8_t *a, *b; // (PAIRS)
  uint8_t *y;           // (PAIRS)
} single_state;

static void call_pairs(void *user) {
  const single_state *const state = user;
  state->row->host->pairs(state->y, state->a, state->b, PAIRS);
}

static void must_be_right(const single_state *state) {
  memset(state->y, 0xa5, PAIRS);
  call_pairs((void *)(uintptr_t)state); // call_pairs casts it back to const
  for (size_t i = 0; i < PAIRS; i++)
    if (state->y[i] != weft_gf256_mul(state->a[i], state->b[i])) {
      fprintf(stderr, "weft bench: %s gave a wrong product; nothing is timed\n", state->row->name);
      exit(WEFT_BENCH_WRONG);
    }
}

static int add_single(weft_bench_group *group, single_state *state) {
  must_be_right(state);
  return weft_bench_group_add(
      group, &(weft_bench_case){
                 .operation = "single",
                 .row = state->row->name,
                 .variant = "",
                 .n = 1,
                 .k = PAIRS,
                 .m = 1,
                 .threads = 1,
                 .amount = {[WEFT_BENCH_OUTPUT] = PAIRS, [WEFT_BENCH_PRODUCTS] = PAIRS},
                 .ceiling = -1,
                 .bound_by = WEFT_BENCH_PRODUCTS,
                 .work = {.call = call_pairs,
                          .user = state,
                          .regions = {{state->a, PAIRS}, {state->b, PAIRS}, {state->y, PAIRS}},
                          .region_count = 3},
                 .checked = WEFT_BENCH_CHECKED_ALL,
             });
}

void weft_bench_mul_singles(weft_bench_report *report, const weft_bench_options *options,
                            const weft_backend *const *rows, size_t count) {
  uint8_t *const bytes = weft_bench_alloc(3, PAIRS);
  single_state *const states = weft_bench_alloc(count, sizeof *states);
  weft_bench_random random;
  weft_bench_random_seed(&random, options->seed);
  weft_bench_random_bytes(&random, bytes, 2 * PAIRS); // including zeros, as in data
  weft_bench_group *const group =
      weft_bench_group_new("single products of random bytes, one thread");
  for (size_t i = 0; i < count; i++) {
    if (!rows[i]->host->pairs)
      continue;
    states[i] = (single_state){rows[i], bytes, bytes + PAIRS, bytes + 2 * PAIRS};
    add_single(group, &states[i]);
  }
  weft_bench_group_ask(group, "64 KiB table / peasant",
                       weft_bench_group_find(group, "single", "mul-full-table"),
                       weft_bench_group_find(group, "single", "mul-peasant"), WEFT_BENCH_PRODUCTS);
  if (group->case_count > 0)
    weft_bench_report_run(report, options, group);
  weft_bench_group_free(group);
  free(states), free(bytes);
}
