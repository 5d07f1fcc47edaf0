// SPDX-License-Identifier: Apache-2.0
// How threads share the products of one call: whatever their number, the shapes and the threads,
// all columns of all rows are computed. All host rows have the same driver; the best row is the
// fastest.
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { PRODUCTS = 33, ROWS = 24, SOURCES = 20, LENGTH = 3000, ROUNDS = 30 };

typedef struct arena {
  uint8_t a[ROWS * SOURCES], x[SOURCES * LENGTH];
  uint8_t y[PRODUCTS][ROWS * LENGTH], want[PRODUCTS][ROWS * LENGTH];
} arena;

typedef struct shape {
  size_t m, k, len;
} shape;

static shape any_shape(test_rng *rng) {
  return (shape){1 + test_rng_below(rng, ROWS), 1 + test_rng_below(rng, SOURCES),
                 1 + test_rng_below(rng, LENGTH)};
}

static weft_gemm product_of(const arena *s, const shape *of, uint8_t *y) {
  return (weft_gemm){.m = of->m,
                     .k = of->k,
                     .len = of->len,
                     .a = s->a,
                     .a_stride = SOURCES,
                     .x = {.base = s->x, .stride = LENGTH},
                     .y = {.base = y, .stride = LENGTH}};
}

// Compares one thread with all, for products of one shape or of several; bytes outside the products
// must not change.
static void share(const weft_backend *row, weft_exec *exec, arena *s, size_t count, bool alike,
                  test_rng *rng) {
  weft_gemm alone[PRODUCTS], shared[PRODUCTS];
  shape of = any_shape(rng);
  for (size_t i = 0; i < count; i++) {
    if (!alike)
      of = any_shape(rng);
    alone[i] = product_of(s, &of, s->want[i]);
    shared[i] = product_of(s, &of, s->y[i]);
  }
  memset(s->y, 0xA5, sizeof s->y);
  memset(s->want, 0xA5, sizeof s->want);
  weft_exec by_one = *exec;
  by_one.pool = NULL;
  exec->partition = test_rng_below(rng, 4) ? WEFT_PARTITION_AUTO : 1 + test_rng_below(rng, 2);
  ck_assert_int_eq(row->gemm(row, &by_one, alone, count), WEFT_OK);
  ck_assert_int_eq(row->gemm(row, exec, shared, count), WEFT_OK);
  ck_assert_msg(memcmp(s->y, s->want, sizeof s->y) == 0,
                "%zu products, the last of m %zu, k %zu, len %zu, on %zu threads, way %d, "
                "WEFT_TEST_SEED=0x%llx",
                count, of.m, of.k, of.len, weft_pool_threads(exec->pool), (int)exec->partition,
                (unsigned long long)test_seed());
}

// However threads share products, all columns are computed.
START_TEST(every_column_is_made) {
  static const size_t threads[] = {2, 3, 4, 5, 8, 16};
  const weft_machine machine = {.cpu = weft_cpu_features()};
  const weft_backend *row = NULL;
  ck_assert_int_eq(weft_backend_select(&machine, WEFT_MEM_HOST, NULL, &row), WEFT_OK);
  test_rng rng = test_rng_new(test_seed(), threads[_i]);
  test_allocator memory;
  test_allocator_init(&memory, 0);
  weft_exec exec = {.allocator = &memory.allocator};
  ck_assert_int_eq(weft_pool_new(&exec.pool, threads[_i], &memory.allocator), WEFT_OK);
  arena *s = malloc(sizeof *s);
  ck_assert_ptr_nonnull(s);
  test_rng_fill(&rng, s->a, sizeof s->a);
  test_rng_fill(&rng, s->x, sizeof s->x);
  for (int round = 0; round < ROUNDS; round++)
    share(row, &exec, s, 1 + test_rng_below(&rng, PRODUCTS), test_rng_below(&rng, 3) > 0, &rng);
  free(s);
  weft_pool_free(exec.pool);
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("sharing");
  TCase *cases = tcase_create("products");
  tcase_add_loop_test(cases, every_column_is_made, 0, 6);
  suite_add_tcase(suite, cases);
  return test_main(suite);
}
