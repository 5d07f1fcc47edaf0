// SPDX-License-Identifier: Apache-2.0
// Copies between rows and dense memory, by one thread and by several: the same bytes, and nothing
// between the rows.
#include <stdlib.h>
#include <string.h>

#include "lib/rows_copy.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { DELIVERIES = 5, GAP = 0xA5 };

// Rows of which some are listed, in any order, and the others side by side.
typedef struct rows {
  size_t count, row_bytes, stride;
  bool listed;
  uint8_t *memory, **list;
} rows;

static size_t room(const rows *r) { return r->count * r->stride; }
static size_t bytes_of(const rows *r) { return r->count * r->row_bytes; }

static rows rows_new(test_rng *rng, size_t row_bytes, size_t bytes) {
  rows r = {.count = 1 + bytes / row_bytes, .row_bytes = row_bytes};
  r.stride = row_bytes + (test_rng_below(rng, 2) ? test_rng_below(rng, 100) : 0);
  r.listed = test_rng_below(rng, 2);
  r.memory = malloc(room(&r));
  r.list = malloc(r.count * sizeof *r.list);
  memset(r.memory, GAP, room(&r));
  for (size_t i = 0; i < r.count; i++)
    r.list[i] = r.memory + (r.count - 1 - i) * r.stride;
  return r;
}

static void rows_free(rows *r) {
  free(r->list);
  free(r->memory);
}

static uint8_t *row(const rows *r, size_t i) {
  return r->listed ? r->list[i] : r->memory + i * r->stride;
}

static weft_pool *pool_of(test_allocator *memory, size_t threads) {
  weft_pool *pool = NULL;
  test_allocator_init(memory, 0);
  ck_assert_int_eq(weft_pool_new(&pool, threads, &memory->allocator), WEFT_OK);
  return pool;
}

static const size_t threads_of[] = {1, 2, 5};
static const size_t row_bytes_of[] = {1, 37, 1400, 4096, 70001, 3 << 20};
static const size_t bytes_in[] = {1, 5000, 131071, 131072, 700000, 5 << 20};

START_TEST(rows_are_gathered) {
  test_allocator memory;
  test_rng rng = test_rng_new(test_seed(), 85);
  weft_pool *pool = pool_of(&memory, threads_of[_i]);
  for (size_t a = 0; a < sizeof row_bytes_of / sizeof *row_bytes_of; a++)
    for (size_t b = 0; b < sizeof bytes_in / sizeof *bytes_in; b++) {
      rows r = rows_new(&rng, row_bytes_of[a], bytes_in[b]);
      test_rng_fill(&rng, r.memory, room(&r));
      const weft_const_rows from = {.base = r.memory,
                                    .stride = r.stride,
                                    .ptr = r.listed ? (const uint8_t *const *)r.list : NULL};
      const size_t at = test_rng_below(&rng, (uint32_t)bytes_of(&r));
      const size_t bytes = bytes_of(&r) - at;
      uint8_t *to = malloc(bytes + 2);
      to[0] = to[bytes + 1] = GAP;
      weft_rows_gather(pool, to + 1, &from, r.row_bytes, at, bytes);
      size_t wrong = 0;
      for (size_t i = 0; i < bytes; i++)
        wrong += to[1 + i] != row(&r, (at + i) / r.row_bytes)[(at + i) % r.row_bytes];
      ck_assert_msg(!wrong && to[0] == GAP && to[bytes + 1] == GAP,
                    "rows of %zu, bytes %zu from %zu: %zu are wrong", r.row_bytes, bytes, at,
                    wrong);
      free(to);
      rows_free(&r);
    }
  weft_pool_free(pool);
}
END_TEST

// Checks bytes [d->at, d->at + d->bytes) of r, and that all others are as they were.
static void expect_delivered(const rows *r, const weft_delivery *d) {
  uint8_t *want = malloc(room(r));
  memset(want, GAP, room(r));
  for (size_t i = 0; i < d->bytes; i++) {
    const size_t at = d->at + i;
    want[row(r, at / r->row_bytes) - r->memory + (ptrdiff_t)(at % r->row_bytes)] = d->from[i];
  }
  ck_assert_msg(memcmp(want, r->memory, room(r)) == 0, "rows of %zu, bytes %zu", r->row_bytes,
                d->bytes);
  free(want);
}

START_TEST(results_are_delivered) {
  test_allocator memory;
  test_rng rng = test_rng_new(test_seed(), 86);
  weft_pool *pool = pool_of(&memory, threads_of[_i]);
  weft_rows_deliver(pool, NULL);
  for (size_t b = 0; b < sizeof bytes_in / sizeof *bytes_in; b++) {
    rows r[DELIVERIES];
    weft_delivery d[DELIVERIES];
    for (size_t i = 0; i < DELIVERIES; i++) {
      const size_t kind = test_rng_below(&rng, sizeof row_bytes_of / sizeof *row_bytes_of);
      r[i] = rows_new(&rng, row_bytes_of[kind], bytes_in[b] / DELIVERIES);
      const size_t at = test_rng_below(&rng, (uint32_t)bytes_of(&r[i]));
      uint8_t *from = malloc(bytes_of(&r[i]));
      test_rng_fill(&rng, from, bytes_of(&r[i]));
      d[i] = (weft_delivery){
          .next = i + 1 < DELIVERIES ? &d[i + 1] : NULL,
          .to = {.base = r[i].memory, .stride = r[i].stride, .ptr = r[i].listed ? r[i].list : NULL},
          .row_bytes = r[i].row_bytes,
          .at = at,
          .bytes = bytes_of(&r[i]) - at,
          .from = from};
    }
    weft_rows_deliver(pool, d);
    for (size_t i = 0; i < DELIVERIES; i++) {
      expect_delivered(&r[i], &d[i]);
      free((void *)(uintptr_t)d[i].from);
      rows_free(&r[i]);
    }
  }
  weft_pool_free(pool);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("rows_copy");
  TCase *t = tcase_create("rows_copy");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, rows_are_gathered, 0, sizeof threads_of / sizeof *threads_of);
  tcase_add_loop_test(t, results_are_delivered, 0, sizeof threads_of / sizeof *threads_of);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
