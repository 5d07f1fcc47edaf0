// SPDX-License-Identifier: Apache-2.0
// Checks products of one row against the definition; few outputs are in row_check_few.c, inverses
// and xorm in row_check_other.c.
#include "tests/kernels/row_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/row_check_internal.h"
#include "tests/support/test_allocator.h"

enum { ROWS_MAX = 19, MARGIN = 64, PAGE = 4096 };

bool row_check_fail(row_check *check, const char *what, const char *detail) {
  snprintf(check->failure, sizeof check->failure, "row %s, WEFT_TEST_SEED=%#llx: %s: %s",
           check->row->name, (unsigned long long)check->seed, what, detail);
  return false;
}

void *row_check_memory(size_t bytes) {
  void *memory = malloc(bytes + 1);
  if (!memory)
    abort();
  return memory;
}

const weft_backend *row_check_scalar(void) { return &weft_backends[weft_backend_count - 1]; }

static size_t margin_of(const row_check_shape *shape, size_t row) {
  return shape->uneven && row % 2 == 1 ? MARGIN - 1 : MARGIN;
}

void row_check_rows_new(row_check_rows *rows, const row_check_shape *shape, test_rng *rng) {
  const size_t len = shape->len, from_end = shape->offset + len;
  *rows = (row_check_rows){.k = shape->k, .m = shape->m, .bytes = from_end + MARGIN};
  for (size_t j = 0; j < rows->k; j++) {
    rows->x_memory[j] = test_guard_new(rows->bytes);
    uint8_t *const row = rows->x_memory[j].end - from_end;
    test_rng_fill(rng, row, len);
    rows->x[j] = row;
  }
  for (size_t i = 0; i < rows->m; i++) {
    rows->y_memory[i] = test_guard_new(rows->bytes);
    uint8_t *const begin = rows->y_memory[i].end - rows->bytes;
    rows->y[i] = begin + margin_of(shape, i);
    rows->want[i] = row_check_memory(rows->bytes);
    test_rng_fill(rng, begin, rows->bytes);
    memcpy(rows->want[i], begin, rows->bytes);
  }
}

weft_gemm row_check_rows_product(row_check_rows *rows, const row_check_shape *shape,
                                 const uint8_t *a) {
  uint8_t *inner[ROW_CHECK_ROWS];
  for (size_t i = 0; i < rows->m; i++)
    inner[i] = rows->want[i] + margin_of(shape, i);
  weft_gemm g = {.m = rows->m,
                 .k = rows->k,
                 .len = shape->len,
                 .a = a,
                 .a_stride = rows->k,
                 .x = {.ptr = rows->x},
                 .y = {.ptr = inner},
                 .accumulate = shape->accumulate};
  row_check_define_gemm(&g);
  g.y.ptr = rows->y;
  return g;
}

bool row_check_rows_end(row_check_rows *rows) {
  bool good = true;
  for (size_t i = 0; i < rows->m; i++) {
    good = good && memcmp(rows->want[i], rows->y_memory[i].end - rows->bytes, rows->bytes) == 0;
    test_guard_free(&rows->y_memory[i]);
    free(rows->want[i]);
  }
  for (size_t j = 0; j < rows->k; j++)
    test_guard_free(&rows->x_memory[j]);
  return good;
}

// Rows in their guarded pages, and the product expected of them.
typedef struct setting {
  test_guard x[ROWS_MAX], y[ROWS_MAX];
  uint8_t a[ROWS_MAX * ROWS_MAX];
  uint8_t before[ROWS_MAX][PAGE], product[ROWS_MAX][PAGE];
} setting;

typedef struct placed {
  size_t m, k, len;
  bool at_end;   // flush with the page's end, else `offset` bytes after its start
  size_t offset; // bytes
  weft_partition partition;
  weft_pool *pool;
} placed;

static uint8_t *place(const test_guard *guard, const placed *p) {
  return p->at_end ? guard->end - p->offset - p->len : guard->begin + p->offset;
}

static setting *setting_new(void) {
  setting *s = row_check_memory(sizeof *s);
  for (size_t i = 0; i < ROWS_MAX; i++) {
    s->x[i] = test_guard_new(PAGE);
    s->y[i] = test_guard_new(PAGE);
  }
  return s;
}

static void setting_free(setting *s) {
  for (size_t i = 0; i < ROWS_MAX; i++) {
    test_guard_free(&s->x[i]);
    test_guard_free(&s->y[i]);
  }
  free(s);
}

// Whether an output row and up to MARGIN bytes around it are as expected.
static bool row_as_expected(const setting *s, const placed *p, size_t i, bool accumulate) {
  const uint8_t *row = place(&s->y[i], p);
  const size_t at = (size_t)(row - s->y[i].begin);
  const size_t from = at < MARGIN ? 0 : at - MARGIN;
  const size_t to = at + p->len + MARGIN > PAGE ? PAGE : at + p->len + MARGIN;
  for (size_t c = from; c < to; c++) {
    uint8_t want = s->before[i][c];
    if (c >= at && c < at + p->len)
      want = (uint8_t)((accumulate ? want : 0) ^ s->product[i][c - at]);
    if (s->y[i].begin[c] != want)
      return false;
  }
  return true;
}

static bool run_placed(row_check *check, setting *s, const placed *p, test_rng *rng) {
  const uint8_t *x[ROWS_MAX];
  uint8_t *y[ROWS_MAX], *expected[ROWS_MAX];
  for (size_t j = 0; j < p->k; j++) {
    test_rng_fill(rng, place(&s->x[j], p), p->len);
    x[j] = place(&s->x[j], p);
  }
  test_rng_fill(rng, s->a, p->m * p->k);
  for (size_t i = 0; i < p->m; i++) {
    y[i] = place(&s->y[i], p);
    expected[i] = s->product[i];
  }
  test_allocator memory;
  test_allocator_init(&memory, 0);
  const weft_exec exec = {
      .allocator = &memory.allocator, .pool = p->pool, .partition = p->partition};
  weft_gemm g = {.m = p->m,
                 .k = p->k,
                 .len = p->len,
                 .a = s->a,
                 .a_stride = p->k,
                 .x = {.ptr = x},
                 .y = {.ptr = expected}};
  row_check_define_gemm(&g);
  g.y.ptr = y;
  for (int accumulate = 0; accumulate < 2; accumulate++) {
    for (size_t i = 0; i < p->m; i++) {
      test_rng_fill(rng, s->before[i], PAGE);
      memcpy(s->y[i].begin, s->before[i], PAGE);
    }
    g.accumulate = accumulate;
    const weft_status status = check->row->gemm(check->row, &exec, &g, 1);
    for (size_t i = 0; i < p->m; i++)
      if (status != WEFT_OK || !row_as_expected(s, p, i, g.accumulate)) {
        char text[160];
        snprintf(text, sizeof text,
                 "%s, m %zu, k %zu, len %zu, %s + %zu, %zu threads, way %d, row %zu%s",
                 weft_status_name(status), p->m, p->k, p->len, p->at_end ? "end" : "begin",
                 p->offset, weft_pool_threads(p->pool), (int)p->partition, i,
                 accumulate ? ", accumulate" : "");
        return row_check_fail(check, "product", text);
      }
  }
  return true;
}

bool row_check_lengths(row_check *check) {
  test_rng rng = test_rng_new(check->seed, 1);
  setting *s = setting_new();
  bool good = true;
  size_t turn = 0;
  for (size_t len = 0; len <= 260 && good; len++)
    for (size_t offset = 0; offset < 64 && good; offset++)
      for (int at_end = 0; at_end < 2 && good; at_end++) {
        // Rows flush with the guard pages are always checked; of the others, one case in `step`.
        if (offset > 0 && turn++ % check->step != 0)
          continue;
        // Small shapes keep this fast; row_check_shapes covers the others.
        const placed p = {.m = test_rng_below(&rng, 4) == 0 ? 1 : 1 + test_rng_below(&rng, 3),
                          .k = 1 + test_rng_below(&rng, 3),
                          .len = len,
                          .at_end = at_end,
                          .offset = offset};
        good = run_placed(check, s, &p, &rng);
      }
  // A long single output row is multiplied in another way, several sources at a time.
  static const size_t longer[] = {319, 320, 511, 512, 513, 576, 1023, 1025, 2111, 4095, 4096};
  for (size_t l = 0; l < sizeof longer / sizeof *longer && good; l++)
    for (size_t k = 1; k <= ROWS_MAX && good; k += check->step > 1 ? 3 : 1)
      for (int at_end = 0; at_end < 2 && good; at_end++) {
        const placed p = {.m = 1, .k = k, .len = longer[l], .at_end = at_end};
        good = run_placed(check, s, &p, &rng);
      }
  setting_free(s);
  return good;
}

bool row_check_products(row_check *check) {
  enum { ALL = 256 };
  uint8_t bytes[ALL], *y = row_check_memory(ALL * ALL);
  for (size_t i = 0; i < ALL; i++)
    bytes[i] = (uint8_t)i;
  test_allocator memory;
  test_allocator_init(&memory, 0);
  const weft_exec exec = {.allocator = &memory.allocator};
  const weft_gemm g = {.m = ALL,
                       .k = 1,
                       .len = ALL,
                       .a = bytes,
                       .a_stride = 1,
                       .x = {.base = bytes, .stride = ALL},
                       .y = {.base = y, .stride = ALL}};
  bool good = check->row->gemm(check->row, &exec, &g, 1) == WEFT_OK;
  for (size_t c = 0; c < ALL; c++)
    for (size_t x = 0; x < ALL; x++)
      good = good && y[c * ALL + x] == row_check_times((unsigned)c, (unsigned)x);
  free(y);
  return good || row_check_fail(check, "products", "not those of the polynomial");
}

bool row_check_threads(row_check *check) {
  static const size_t lengths[] = {1, 15, 63, 64, 65, 191, 260, 517, 1024, 1999, 4095, 4096};
  static const weft_partition ways[] = {WEFT_PARTITION_AUTO, WEFT_PARTITION_COLUMNS,
                                        WEFT_PARTITION_ROWS};
  test_rng rng = test_rng_new(check->seed, 2);
  test_allocator memory;
  test_allocator_init(&memory, 0);
  setting *s = setting_new();
  bool good = true;
  for (size_t threads = 1; threads <= 3 && good; threads++) {
    weft_pool *pool = NULL;
    if (weft_pool_new(&pool, threads, &memory.allocator) != WEFT_OK)
      good = row_check_fail(check, "threads", "no pool");
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths && good; l++)
      for (size_t way = 0; way < 3 && good; way++)
        for (int at_end = 0; at_end < 2 && good; at_end++) {
          const placed p = {.m = 1 + test_rng_below(&rng, ROWS_MAX),
                            .k = 1 + test_rng_below(&rng, 5),
                            .len = lengths[l],
                            .at_end = at_end,
                            .partition = ways[way],
                            .pool = pool};
          good = run_placed(check, s, &p, &rng);
        }
    weft_pool_free(pool);
  }
  setting_free(s);
  return good && (test_allocator_live(&memory) == 0 || row_check_fail(check, "threads", "leak"));
}

// Checks a batch of `count` equal shapes with strided rows; strides are odd on purpose.
static bool run_batch(row_check *check, size_t count, size_t m, size_t k, size_t len,
                      weft_pool *pool, bool accumulate, test_rng *rng) {
  const size_t stride = len + 3, a_stride = k + 5;
  const size_t x_bytes = k * stride, y_bytes = m * stride, a_bytes = m * a_stride;
  uint8_t *x = row_check_memory(count * x_bytes), *a = row_check_memory(count * a_bytes);
  uint8_t *y = row_check_memory(count * y_bytes), *want = row_check_memory(count * y_bytes);
  weft_gemm *g = row_check_memory(count * sizeof *g);
  test_rng_fill(rng, x, count * x_bytes);
  test_rng_fill(rng, a, count * a_bytes);
  test_rng_fill(rng, y, count * y_bytes);
  memcpy(want, y, count * y_bytes);
  test_allocator memory;
  test_allocator_init(&memory, 0);
  const weft_exec exec = {.allocator = &memory.allocator, .pool = pool};
  for (size_t r = 0; r < 2; r++)
    for (size_t i = 0; i < count; i++) {
      g[i] = (weft_gemm){.m = m,
                         .k = k,
                         .len = len,
                         .a = a + i * a_bytes,
                         .a_stride = a_stride,
                         .x = {.base = x + i * x_bytes, .stride = stride},
                         .y = {.base = (r ? y : want) + i * y_bytes, .stride = stride},
                         .accumulate = accumulate};
      if (r == 0)
        row_check_define_gemm(&g[i]);
    }
  const weft_status status = check->row->gemm(check->row, &exec, g, count);
  const bool good = status == WEFT_OK && memcmp(y, want, count * y_bytes) == 0;
  free(x);
  free(a);
  free(y);
  free(want);
  free(g);
  if (good)
    return true;
  char text[120];
  snprintf(text, sizeof text, "%s, %zu of m %zu, k %zu, len %zu, %zu threads%s",
           weft_status_name(status), count, m, k, len, weft_pool_threads(pool),
           accumulate ? ", accumulate" : "");
  return row_check_fail(check, "batch", text);
}

// Checks a product of rows given by pointers, which a panel may use without copying.
static bool run_pointers(row_check *check, size_t m, size_t k, test_rng *rng) {
  enum { LEN = 400 };
  uint8_t *const memory = row_check_memory((k + 2 * m) * LEN + m * k);
  const uint8_t **const x = row_check_memory(k * sizeof *x);
  uint8_t **const y = row_check_memory(2 * m * sizeof *y);
  test_rng_fill(rng, memory, (k + 2 * m) * LEN + m * k);
  for (size_t j = 0; j < k; j++)
    x[j] = memory + j * LEN;
  for (size_t i = 0; i < 2 * m; i++)
    y[i] = memory + (k + i) * LEN;
  weft_gemm g = {.m = m, .k = k, .len = LEN, .a = memory + (k + 2 * m) * LEN, .a_stride = k};
  g.x.ptr = x;
  g.y.ptr = y + m;
  row_check_define_gemm(&g);
  g.y.ptr = y;
  const bool good = check->row->gemm(check->row, &(weft_exec){0}, &g, 1) == WEFT_OK &&
                    memcmp(y[0], y[m], m * LEN) == 0;
  free(memory);
  free(x);
  free(y);
  return good || row_check_fail(check, "pointers", "one panel or several");
}

bool row_check_shapes(row_check *check) {
  static const size_t sizes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 17, 31, 33};
  enum { SIZES = sizeof sizes / sizeof *sizes };
  test_rng rng = test_rng_new(check->seed, 3);
  test_allocator memory;
  test_allocator_init(&memory, 0);
  weft_pool *pool = NULL;
  if (weft_pool_new(&pool, 2, &memory.allocator) != WEFT_OK)
    return row_check_fail(check, "shapes", "no pool");
  bool good = true;
  for (size_t m = 0; m < SIZES && good; m++)
    for (size_t k = 0; k < SIZES && good; k++)
      for (int accumulate = 0; accumulate < 2 && good; accumulate++)
        good = (check->step > 1 && test_rng_below(&rng, 4) > 0) ||
               run_batch(check, 1 + test_rng_below(&rng, 3), sizes[m], sizes[k],
                         test_rng_below(&rng, 400), NULL, accumulate, &rng);
  // Many products for few threads; one large enough to be shared; panels exceeded in both
  // directions.
  const size_t big = check->step > 1 ? 64 : 200;
  good = good && run_batch(check, 23, 5, 6, 130, pool, false, &rng);
  good = good && run_batch(check, 1, 70, 60, 1000, pool, true, &rng);
  good = good && run_batch(check, 1, 2, WEFT_PANEL_ROWS + 9, big, NULL, false, &rng);
  good = good && run_batch(check, 1, WEFT_PANEL_ROWS + 9, 3, big, NULL, true, &rng);
  good = good && run_batch(check, 1, 1, 40, 9001, NULL, false, &rng);
  good = good && run_batch(check, 1, 21, 300, 777, NULL, true, &rng);
  // Sources that the driver has packed: in one part, and in three.
  good = good && run_batch(check, 1, 41, 70, 1111, NULL, false, &rng);
  good = good && run_batch(check, 1, 43, 2 * WEFT_PACK_ROWS + 9, 333, NULL, true, &rng);
  good = good && run_batch(check, 1, 43, 2 * WEFT_PACK_ROWS + 9, 333, pool, false, &rng);
  if (check->step == 1) {
    good = good && run_pointers(check, 40, WEFT_PACK_ROWS, &rng);
    good = good && run_pointers(check, 40, WEFT_PACK_ROWS + 1, &rng);
    good = good && run_pointers(check, WEFT_PANEL_ROWS + 1, 170, &rng);
  }
  weft_pool_free(pool);
  return good && (test_allocator_live(&memory) == 0 || row_check_fail(check, "shapes", "leak"));
}
