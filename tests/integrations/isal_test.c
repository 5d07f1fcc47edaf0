// SPDX-License-Identifier: Apache-2.0
// ISA-L's calls on weft: every row of this machine against the definition, with rows that end at
// pages that must not be touched; and call for call against Debian's libisal2, where it is there.
#define _POSIX_C_SOURCE 200809L

#include <dlfcn.h>
#include <isa-l.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gf256.h"
#include "tests/support/test_guard.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"
#include "tests/support/test_rows.h"

static char trying[96];

#define EXPECT(condition)                                                                          \
  do {                                                                                             \
    if (!(condition))                                                                              \
      ck_abort_msg("%s (%s)", #condition, trying);                                                 \
  } while (0)

// The library chooses its row once in a process; Check gives each test one.
static test_rng begin(int row, uint64_t salt) {
  const char *const name = test_host_row((size_t)row)->name;
  ck_assert_int_eq(setenv("WEFT_BACKEND", name, 1), 0);
  snprintf(trying, sizeof trying, "row %s", name);
  return test_rng_new(test_seed(), salt);
}

// --- rows of bytes ---

enum { MOST = 1100 };

typedef struct rows {
  size_t count, bytes;
  test_guard guard[MOST];
  uint8_t *at[MOST]; // ends where its guard ends
} rows;

static void rows_new(rows *r, size_t count, size_t bytes, test_rng *rng) {
  r->count = count;
  r->bytes = bytes;
  for (size_t i = 0; i < count; i++) {
    r->guard[i] = test_guard_new(bytes ? bytes : 1);
    r->at[i] = r->guard[i].end - bytes;
    test_rng_fill(rng, r->at[i], bytes);
  }
}

static void rows_free(rows *r) {
  for (size_t i = 0; i < r->count; i++)
    test_guard_free(&r->guard[i]);
}

typedef struct scene {
  rows data, coding;
  uint8_t *matrix; // (rows, k)
  uint8_t *tables, *expected;
} scene;

static void scene_new(scene *s, size_t k, size_t m, size_t len, test_rng *rng) {
  snprintf(trying + strcspn(trying, ","), sizeof trying - strcspn(trying, ","),
           ", k %zu, %zu rows, %zu bytes", k, m, len);
  rows_new(&s->data, k, len, rng);
  rows_new(&s->coding, m, len, rng);
  s->matrix = malloc(k * m + 1);
  s->tables = malloc(32 * k * m + 1);
  s->expected = malloc(m * len + 1);
  ck_assert(s->matrix && s->tables && s->expected);
  test_rng_fill(rng, s->matrix, k * m);
  for (size_t i = 0; i < m * k; i += 5) // as matrices have them
    s->matrix[i] &= 1;
  ec_init_tables((int)k, (int)m, s->matrix, s->tables);
  for (size_t i = 0; i < m; i++)
    memcpy(s->expected + i * len, s->coding.at[i], len);
}

static void scene_free(scene *s) {
  rows_free(&s->data);
  rows_free(&s->coding);
  free(s->matrix), free(s->tables), free(s->expected);
}

static void expect_add(scene *s, size_t row, size_t source) {
  const size_t len = s->data.bytes;
  const uint8_t *const product = weft_gf256_product[s->matrix[row * s->data.count + source]];
  for (size_t b = 0; b < len; b++)
    s->expected[row * len + b] ^= product[s->data.at[source][b]];
}

static void expect_sum(scene *s, size_t row) {
  memset(s->expected + row * s->data.bytes, 0, s->data.bytes);
  for (size_t j = 0; j < s->data.count; j++)
    expect_add(s, row, j);
}

static bool as_expected(const scene *s) {
  for (size_t i = 0; i < s->coding.count; i++)
    if (memcmp(s->expected + i * s->data.bytes, s->coding.at[i], s->data.bytes) != 0)
      return false;
  return true;
}

// --- products ---

static void one_shape(size_t k, size_t m, size_t len, test_rng *rng) {
  static scene s;
  scene_new(&s, k, m, len, rng);
  const int kk = (int)k, n = (int)len;
  ec_encode_data(n, kk, (int)m, s.tables, s.data.at, s.coding.at);
  for (size_t i = 0; i < m; i++)
    expect_sum(&s, i);
  EXPECT(as_expected(&s));
  const size_t source = test_rng_below(rng, k), row = test_rng_below(rng, m);
  uint8_t *const of_row = s.tables + 32 * k * row;
  ec_encode_data_update(n, kk, (int)m, (int)source, s.tables, s.data.at[source], s.coding.at);
  for (size_t i = 0; i < m; i++)
    expect_add(&s, i, source);
  EXPECT(as_expected(&s));
  gf_vect_mad(n, kk, (int)source, of_row, s.data.at[source], s.coding.at[row]);
  expect_add(&s, row, source);
  EXPECT(as_expected(&s));
  gf_vect_dot_prod(n, kk, of_row, s.data.at, s.coding.at[row]);
  expect_sum(&s, row);
  EXPECT(as_expected(&s));
  scene_free(&s);
}

START_TEST(products) {
  test_rng rng = begin(_i, 50);
  for (size_t round = 0; round < 60; round++)
    one_shape(1 + test_rng_below(&rng, 40), 1 + test_rng_below(&rng, 12),
              test_rng_below(&rng, round % 4 ? 300 : 5000), &rng);
  one_shape(255, 1, 65, &rng);
  one_shape(1, 255, 65, &rng);
  one_shape(128, 128, 33, &rng);
  one_shape(257, 65, 40, &rng);   // two times for the sources, and for the rows
  one_shape(1030, 70, 17, &rng);  // more than a code has
  one_shape(20, 1000, 131, &rng); // likewise
  one_shape(20, 13, 3000, &rng);  // for which a row would take memory
}
END_TEST

START_TEST(one_row_by_one_coefficient) {
  test_rng rng = begin(_i, 51);
  for (int len = 0; len < 700; len += 32) {
    static scene s;
    scene_new(&s, 1, 1, (size_t)len, &rng);
    EXPECT(gf_vect_mul(len, s.tables, s.data.at[0], s.coding.at[0]) == 0);
    expect_sum(&s, 0);
    EXPECT(as_expected(&s));
    scene_free(&s);
  }
  uint8_t table[32], byte = 9;
  gf_vect_mul_init(7, table);
  EXPECT(memcmp(table, weft_gf256_nibble[7], 32) == 0);
  gf_vect_mul_init_base(8, table);
  EXPECT(memcmp(table, weft_gf256_nibble[8], 32) == 0);
  EXPECT(gf_vect_mul(1, table, &byte, &byte) != 0 && byte == 9);
}
END_TEST

START_TEST(nothing_to_do) {
  begin(0, 52);
  uint8_t table[32 * 4] = {0}, data[2] = {1, 2}, coding[2] = {3, 4};
  uint8_t *x[] = {data, data + 1}, *y[] = {coding, coding + 1};
  ec_encode_data(0, 2, 2, table, x, y);
  ec_encode_data(-5, 2, 2, table, x, y);
  ec_encode_data(1, 2, 0, table, x, y);
  ec_encode_data_update(0, 2, 2, 1, table, data, y);
  EXPECT(coding[0] == 3 && coding[1] == 4);
  ec_encode_data(1, 0, 2, table, x, y); // the sum of nothing
  EXPECT(coding[0] == 0 && coding[1] == 0);
}
END_TEST

// --- RAID ---

START_TEST(parities_of_raid) {
  test_rng rng = begin(_i, 53);
  for (size_t round = 0; round < 40; round++) {
    static rows r;
    const size_t k = 2 + test_rng_below(&rng, round % 8 ? 30 : 254);
    const size_t len = 1 + test_rng_below(&rng, round % 4 ? 300 : 5000);
    const int vects = (int)k + 2, n = (int)len;
    rows_new(&r, k + 2, len, &rng);
    void *array[300];
    for (size_t i = 0; i < k + 2; i++)
      array[i] = r.at[i];
    EXPECT(pq_gen(vects, n, array) == 0);
    for (size_t b = 0; b < len; b++) {
      uint8_t p = 0, q = 0;
      for (size_t j = 0; j < k; j++) {
        p ^= r.at[j][b];
        q ^= weft_gf256_mul(weft_gf256_exp[j], r.at[j][b]);
      }
      EXPECT(r.at[k][b] == p && r.at[k + 1][b] == q);
    }
    EXPECT(pq_check(vects, n, array) == 0);
    EXPECT(xor_check(vects - 1, n, array) == 0); // P alone
    const size_t wrong = test_rng_below(&rng, k + 2), at = test_rng_below(&rng, len);
    r.at[wrong][at] ^= 0x40;
    EXPECT(pq_check(vects, n, array) != 0);
    EXPECT((xor_check(vects - 1, n, array) != 0) == (wrong <= k));
    EXPECT(xor_gen(vects - 1, n, array) == 0 && xor_check(vects - 1, n, array) == 0);
    rows_free(&r);
  }
  void *none[4] = {0};
  EXPECT(pq_gen(3, 8, none) && pq_gen(258, 8, none) && pq_gen(4, -1, none) && xor_gen(2, 8, none));
  EXPECT(pq_check(3, 8, none) && xor_check(1, 8, none));
}
END_TEST

// --- matrices ---

static bool is_inverse(const uint8_t *a, const uint8_t *b, size_t n) {
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++) {
      uint8_t sum = 0;
      for (size_t t = 0; t < n; t++)
        sum ^= weft_gf256_product[a[i * n + t]][b[t * n + j]];
      if (sum != (i == j))
        return false;
    }
  return true;
}

enum { SIDE = 300 };
static uint8_t generator[2 * SIDE * SIDE], held[SIDE * SIDE], inverse[SIDE * SIDE];

// k rows of a generator (k + m, k), in any order.
static void hold_some(size_t k, size_t m, test_rng *rng) {
  uint8_t order[256];
  for (size_t i = 0; i < k + m; i++)
    order[i] = (uint8_t)i;
  for (size_t i = 0; i < k; i++) {
    const size_t other = i + test_rng_below(rng, k + m - i);
    const uint8_t row = order[other];
    order[other] = order[i];
    order[i] = row;
    memcpy(held + i * k, generator + row * k, k);
  }
}

START_TEST(inverses_of_what_is_held) {
  test_rng rng = begin(_i, 54);
  for (size_t round = 0; round < 80; round++) {
    const size_t k = 1 + test_rng_below(&rng, round % 10 ? 40 : 200);
    const size_t m = 1 + test_rng_below(&rng, round % 10 ? 20 : 256 - k);
    snprintf(trying, sizeof trying, "row %s, k %zu, m %zu", getenv("WEFT_BACKEND"), k, m);
    gf_gen_cauchy1_matrix(generator, (int)(k + m), (int)k);
    hold_some(k, m, &rng);
    EXPECT(gf_invert_matrix(held, inverse, (int)k) == 0);
    EXPECT(is_inverse(held, inverse, k));
    memcpy(held, held + (k - 1) * k, k * (k > 1)); // a row twice
    EXPECT(k == 1 || gf_invert_matrix(held, inverse, (int)k) == -1);
  }
}
END_TEST

// Whether some column is left without a pivot.
static bool is_singular(const uint8_t *a, size_t n) {
  static uint8_t work[SIDE * SIDE];
  memcpy(work, a, n * n);
  for (size_t c = 0; c < n; c++) {
    size_t pivot = c;
    while (pivot < n && !work[pivot * n + c])
      pivot++;
    if (pivot == n)
      return true;
    for (size_t j = c; j < n; j++) {
      const uint8_t swap = work[pivot * n + j];
      work[pivot * n + j] = work[c * n + j];
      work[c * n + j] = swap;
    }
    for (size_t r = c + 1; r < n; r++) {
      const uint8_t factor = weft_gf256_product[work[r * n + c]][weft_gf256_inv[work[c * n + c]]];
      for (size_t j = c; factor && j < n; j++)
        work[r * n + j] ^= weft_gf256_product[factor][work[c * n + j]];
    }
  }
  return false;
}

START_TEST(inverses_of_anything) {
  test_rng rng = begin(_i, 55);
  for (size_t n = 1; n <= SIDE; n += 1 + n / 3) {
    snprintf(trying, sizeof trying, "row %s, n %zu", getenv("WEFT_BACKEND"), n);
    test_rng_fill(&rng, held, n * n);
    memset(held, 0, n); // all but the first rows may be an identity's, in another order
    held[n - 1] = (uint8_t)(1 + test_rng_below(&rng, 255));
    const size_t units = test_rng_below(&rng, n);
    for (size_t r = 1; r <= units; r++) {
      memset(held + r * n, 0, n);
      held[r * n + (units - r)] = 1;
    }
    EXPECT(gf_invert_matrix(held, inverse, (int)n) == (is_singular(held, n) ? -1 : 0));
    EXPECT(is_singular(held, n) || is_inverse(held, inverse, n));
    memset(held + (n - 1) * n, 0, n);
    EXPECT(gf_invert_matrix(held, inverse, (int)n) == -1);
  }
  EXPECT(gf_invert_matrix(held, inverse, 0) == 0 && gf_invert_matrix(held, inverse, -1) == -1);
}
END_TEST

// --- the library itself ---

typedef struct peer {
  void (*ec_init_tables)(int, int, unsigned char *, unsigned char *);
  void (*ec_encode_data)(int, int, int, unsigned char *, unsigned char **, unsigned char **);
  void (*ec_encode_data_update)(int, int, int, int, unsigned char *, unsigned char *,
                                unsigned char **);
  unsigned char (*gf_mul)(unsigned char, unsigned char);
  unsigned char (*gf_inv)(unsigned char);
  void (*gf_gen_rs_matrix)(unsigned char *, int, int);
  void (*gf_gen_cauchy1_matrix)(unsigned char *, int, int);
  int (*gf_invert_matrix)(unsigned char *, unsigned char *, int);
  int (*pq_gen)(int, int, void **);
} peer;

#define LOAD(name) load(library, #name, &p->name, sizeof p->name)

// dlsym gives objects, not functions: the pointer is copied, as POSIX has it.
static void load(void *library, const char *name, void *function, size_t bytes) {
  void *const symbol = dlsym(library, name);
  ck_assert_msg(symbol != NULL, "%s is missing", name);
  ck_assert_uint_eq(bytes, sizeof symbol);
  memcpy(function, &symbol, bytes);
}

static bool open_peer(peer *p) {
  void *const library = dlopen("libisal.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    printf("SKIPPED: needs libisal.so.2 (Debian package libisal2)\n");
    return false;
  }
  LOAD(ec_init_tables);
  LOAD(ec_encode_data);
  LOAD(ec_encode_data_update);
  LOAD(gf_mul);
  LOAD(gf_inv);
  LOAD(gf_gen_rs_matrix);
  LOAD(gf_gen_cauchy1_matrix);
  LOAD(gf_invert_matrix);
  LOAD(pq_gen);
  ck_assert(p->gf_mul != gf_mul);
  return true;
}

START_TEST(elements_and_matrices_as_the_library) {
  static peer p;
  test_rng rng = begin(0, 56);
  if (!open_peer(&p))
    return;
  for (unsigned a = 0; a < 256; a++)
    for (unsigned b = 0; b < 256; b++)
      EXPECT(gf_mul((uint8_t)a, (uint8_t)b) == p.gf_mul((uint8_t)a, (uint8_t)b));
  for (unsigned a = 0; a < 256; a++)
    EXPECT(gf_inv((uint8_t)a) == p.gf_inv((uint8_t)a));
  static uint8_t theirs[256 * 256];
  for (size_t round = 0; round < 60; round++) {
    const int k = 1 + (int)test_rng_below(&rng, 128), m = k + (int)test_rng_below(&rng, 128);
    const size_t bytes = (size_t)k * (size_t)m;
    gf_gen_rs_matrix(generator, m, k);
    p.gf_gen_rs_matrix(theirs, m, k);
    EXPECT(memcmp(generator, theirs, bytes) == 0);
    gf_gen_cauchy1_matrix(generator, m, k);
    p.gf_gen_cauchy1_matrix(theirs, m, k);
    EXPECT(memcmp(generator, theirs, bytes) == 0);
    hold_some((size_t)k, (size_t)(m - k), &rng);
    EXPECT(gf_invert_matrix(held, inverse, k) == 0);
    EXPECT(p.gf_invert_matrix(held, theirs, k) == 0); // spoils what is held
    EXPECT(memcmp(inverse, theirs, (size_t)k * (size_t)k) == 0);
  }
}
END_TEST

START_TEST(shards_as_the_library) {
  static peer p;
  static scene s;
  test_rng rng = begin(0, 57);
  if (!open_peer(&p))
    return;
  for (size_t round = 0; round < 60; round++) {
    const size_t k = 1 + test_rng_below(&rng, 40), m = 1 + test_rng_below(&rng, 12);
    const size_t len = 1 + test_rng_below(&rng, 3000), source = test_rng_below(&rng, k);
    scene_new(&s, k, m, len, &rng);
    uint8_t *const theirs = malloc(32 * k * m);
    ck_assert(theirs);
    p.ec_init_tables((int)k, (int)m, s.matrix, theirs);
    EXPECT(memcmp(theirs, s.tables, 32 * k * m) == 0);
    p.ec_encode_data((int)len, (int)k, (int)m, s.tables, s.data.at, s.coding.at);
    for (size_t i = 0; i < m; i++)
      expect_sum(&s, i);
    EXPECT(as_expected(&s));
    p.ec_encode_data_update((int)len, (int)k, (int)m, (int)source, s.tables, s.data.at[source],
                            s.coding.at);
    for (size_t i = 0; i < m; i++)
      expect_add(&s, i, source);
    EXPECT(as_expected(&s));
    free(theirs);
    scene_free(&s);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("isal");
  TCase *own = tcase_create("definition"), *library = tcase_create("library");
  const int count = (int)test_host_row_count();
  tcase_add_loop_test(own, products, 0, count);
  tcase_add_loop_test(own, one_row_by_one_coefficient, 0, count);
  tcase_add_test(own, nothing_to_do);
  tcase_add_loop_test(own, parities_of_raid, 0, count);
  tcase_add_loop_test(own, inverses_of_what_is_held, 0, count);
  tcase_add_loop_test(own, inverses_of_anything, 0, count);
  tcase_add_test(library, elements_and_matrices_as_the_library);
  tcase_add_test(library, shards_as_the_library);
  suite_add_tcase(suite, own);
  suite_add_tcase(suite, library);
  return test_main(suite);
}
