// SPDX-License-Identifier: Apache-2.0
// Copies between rows and dense memory, by one thread and by several: the same bytes, and nothing
// between the rows.
#include <stdlib.h>
#include <string.h>

#include "lib/rows_copy.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { PARTS = 5, GAP = 0xA5 };

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

enum {
  ROW_KINDS = sizeof row_bytes_of / sizeof *row_bytes_of,
  SIZES = sizeof bytes_in / sizeof *bytes_in,
  TURNS = ROW_KINDS * SIZES
};

// Makes the rows that part i of a turn's list is of, which begins anywhere in them and goes on to
// their end. Each turn begins with rows of another size and number; smaller ones of any size
// follow.
static rows rows_in_turn(test_rng *rng, size_t turn, size_t i, weft_rows_part *part) {
  const size_t kind = i ? test_rng_below(rng, ROW_KINDS) : turn % ROW_KINDS;
  const size_t bytes = bytes_in[turn / ROW_KINDS];
  const rows r = rows_new(rng, row_bytes_of[kind], i ? bytes / PARTS : bytes);
  const size_t at = test_rng_below(rng, (uint32_t)bytes_of(&r));
  *part = (weft_rows_part){.row_bytes = r.row_bytes, .at = at, .bytes = bytes_of(&r) - at};
  return r;
}

// Checks that dense memory between two gaps holds the part.
static void expect_gathered(const rows *r, const weft_gathering *g) {
  size_t wrong = 0;
  for (size_t i = 0; i < g->part.bytes; i++) {
    const size_t at = g->part.at + i;
    wrong += g->to[i] != row(r, at / r->row_bytes)[at % r->row_bytes];
  }
  ck_assert_msg(!wrong && g->to[-1] == GAP && g->to[g->part.bytes] == GAP,
                "rows of %zu, bytes %zu from %zu: %zu are wrong", r->row_bytes, g->part.bytes,
                g->part.at, wrong);
}

START_TEST(rows_are_gathered) {
  test_allocator memory;
  test_rng rng = test_rng_new(test_seed(), 85);
  weft_pool *pool = pool_of(&memory, threads_of[_i]);
  weft_rows_gather(pool, NULL);
  for (size_t turn = 0; turn < TURNS; turn++) {
    rows r[PARTS];
    weft_gathering g[PARTS];
    for (size_t i = 0; i < PARTS; i++) {
      weft_rows_part part;
      r[i] = rows_in_turn(&rng, turn, i, &part);
      test_rng_fill(&rng, r[i].memory, room(&r[i]));
      part.next = i + 1 < PARTS ? &g[i + 1].part : NULL;
      uint8_t *to = malloc(part.bytes + 2);
      to[0] = to[part.bytes + 1] = GAP;
      g[i] =
          (weft_gathering){.part = part,
                           .from = {.base = r[i].memory,
                                    .stride = r[i].stride,
                                    .ptr = r[i].listed ? (const uint8_t *const *)r[i].list : NULL},
                           .to = to + 1};
    }
    weft_rows_gather(pool, g);
    for (size_t i = 0; i < PARTS; i++) {
      expect_gathered(&r[i], &g[i]);
      free(g[i].to - 1);
      rows_free(&r[i]);
    }
  }
  weft_pool_free(pool);
}
END_TEST

// Checks that the part was delivered, and that all other bytes are as they were.
static void expect_delivered(const rows *r, const weft_delivery *d) {
  uint8_t *want = malloc(room(r));
  memset(want, GAP, room(r));
  for (size_t i = 0; i < d->part.bytes; i++) {
    const size_t at = d->part.at + i;
    want[row(r, at / r->row_bytes) - r->memory + (ptrdiff_t)(at % r->row_bytes)] = d->from[i];
  }
  ck_assert_msg(memcmp(want, r->memory, room(r)) == 0, "rows of %zu, bytes %zu", r->row_bytes,
                d->part.bytes);
  free(want);
}

START_TEST(results_are_delivered) {
  test_allocator memory;
  test_rng rng = test_rng_new(test_seed(), 86);
  weft_pool *pool = pool_of(&memory, threads_of[_i]);
  weft_rows_deliver(pool, NULL);
  for (size_t turn = 0; turn < TURNS; turn++) {
    rows r[PARTS];
    weft_delivery d[PARTS];
    for (size_t i = 0; i < PARTS; i++) {
      weft_rows_part part;
      r[i] = rows_in_turn(&rng, turn, i, &part);
      part.next = i + 1 < PARTS ? &d[i + 1].part : NULL;
      uint8_t *from = malloc(part.bytes);
      test_rng_fill(&rng, from, part.bytes);
      d[i] = (weft_delivery){
          .part = part,
          .to = {.base = r[i].memory, .stride = r[i].stride, .ptr = r[i].listed ? r[i].list : NULL},
          .from = from};
    }
    weft_rows_deliver(pool, d);
    for (size_t i = 0; i < PARTS; i++) {
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
