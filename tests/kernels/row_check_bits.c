// SPDX-License-Identifier: Apache-2.0
// Checks products of packets by blocks of bits, which rows may support, against the same bits as
// coefficients on scalar: any numbers of packets, groups and bytes, flush with guard pages.
#include <stdio.h>
#include <string.h>

#include "tests/kernels/row_check_internal.h"
#include "tests/support/test_allocator.h"

enum { LINE = 64, BLOCK = 8, BLOCKS = ROW_CHECK_ROWS / BLOCK };

// Divides the rows of a product into groups, and each group's packets into two runs of bytes.
typedef struct bits_shape {
  size_t groups, group_bytes, cut;
  bool far;
  size_t times; // the scratch is so many times what is needed
} bits_shape;

static void multiply(const row_check *check, const row_check_rows *rows, const bits_shape *shape,
                     const uint8_t *bits, bool last_first) {
  const size_t scratch_bytes = shape->times * ((rows->k + BLOCK - 1) / BLOCK) * WEFT_BIT_SCRATCH;
  test_guard scratch = test_guard_new(scratch_bytes);
  uint64_t blocks[BLOCKS * BLOCKS * WEFT_BIT_TABLE_WORDS];
  const uint8_t *x[ROW_CHECK_ROWS + BLOCK];
  for (size_t j = 0; j < rows->k + BLOCK; j++)
    x[j] = rows->x[j < rows->k ? j : rows->k - 1];
  weft_bit_blocks(check->row->host->bits_form, bits, rows->k, rows->m, rows->k, blocks);
  weft_bit_panel panel = {.m = rows->m,
                          .k = rows->k,
                          .groups = shape->groups,
                          .group_bytes = shape->group_bytes,
                          .blocks = blocks,
                          .x = x,
                          .y = (uint8_t *const *)rows->y,
                          .far = shape->far,
                          .gap = shape->group_bytes - shape->cut,
                          .scratch = scratch.end - scratch_bytes,
                          .scratch_bytes = scratch_bytes};
  for (size_t half = 0; half < 2; half++) {
    const bool upper = (half == 1) != last_first;
    panel.begin = upper ? shape->cut : 0;
    panel.end = upper ? shape->group_bytes : shape->cut;
    if (panel.begin < panel.end)
      check->row->host->bits(&panel);
  }
  test_guard_free(&scratch);
}

static bool run(row_check *check, const row_check_shape *c, const bits_shape *shape,
                test_rng *rng) {
  uint8_t bits[ROW_CHECK_ROWS * ROW_CHECK_ROWS];
  test_rng_fill(rng, bits, c->m * c->k);
  for (size_t i = 0; i < c->m * c->k; i++)
    bits[i] &= 1;
  row_check_rows rows;
  row_check_rows_new(&rows, c, rng);
  row_check_rows_product(&rows, c, bits);
  multiply(check, &rows, shape, bits, test_rng_below(rng, 2));
  char text[160];
  snprintf(text, sizeof text,
           "%zu packets of %zu, %zu groups of %zu bytes cut at %zu, end - %zu, scratch x %zu%s",
           c->m, c->k, shape->groups, shape->group_bytes, shape->cut, c->offset, shape->times,
           shape->far ? ", far" : "");
  return row_check_rows_end(&rows) || row_check_fail(check, "bits", text);
}

bool row_check_bits(row_check *check) {
  enum { ROUNDS = 400 };
  test_rng rng = test_rng_new(check->seed, 10);
  if (!check->row->host->bits)
    return true;
  for (size_t round = 0; round < ROUNDS; round += check->step) {
    const bool large = round % 8 == 0;
    const bits_shape shape = {.groups = 1 + test_rng_below(&rng, 4),
                              .group_bytes = 1 + test_rng_below(&rng, large ? 1500 : 300),
                              .far = test_rng_below(&rng, 2),
                              .times = 1 + test_rng_below(&rng, 4)};
    bits_shape cut = shape;
    cut.cut = test_rng_below(&rng, shape.group_bytes + 1);
    if (round % 4 == 1) { // stores that bypass the caches need everything aligned
      cut.group_bytes = (shape.group_bytes + LINE - 1) / LINE * LINE;
      cut.cut = test_rng_below(&rng, cut.group_bytes / LINE + 1) * LINE;
    }
    const row_check_shape c = {.m = 1 + test_rng_below(&rng, large ? ROW_CHECK_ROWS : 26),
                               .k = 1 + test_rng_below(&rng, large ? ROW_CHECK_ROWS : 34),
                               .len = cut.groups * cut.group_bytes,
                               .offset = test_rng_below(&rng, 2) * test_rng_below(&rng, 64)};
    if (!run(check, &c, &cut, &rng))
      return false;
  }
  return true;
}
