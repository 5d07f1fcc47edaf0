// SPDX-License-Identifier: Apache-2.0
// Parity compared byte for byte with Debian's libisal2 and libjerasure2, opened at run time. A test
// whose library is not installed says so and passes.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/storage/stripes.h"
#include "tests/support/test_main.h"

// dlsym returns an object pointer, not a function pointer: it is copied, as POSIX recommends.
#define LOAD(library, name) load(library, #name, &name, sizeof name)

static void load(void *library, const char *name, void *function, size_t bytes) {
  void *symbol = dlsym(library, name);
  ck_assert_msg(symbol != NULL, "%s is missing", name);
  ck_assert_uint_eq(bytes, sizeof symbol);
  memcpy(function, &symbol, bytes);
}

static void *open_library(const char *file, const char *package) {
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    printf("SKIPPED: needs %s (Debian package %s)\n", file, package);
  return library;
}

// --- ISA-L ---

static void (*gf_gen_rs_matrix)(unsigned char *, int, int);
static void (*gf_gen_cauchy1_matrix)(unsigned char *, int, int);
static void (*ec_init_tables)(int, int, unsigned char *, unsigned char *);
static void (*ec_encode_data)(int, int, int, unsigned char *, unsigned char **, unsigned char **);
static int (*pq_gen)(int, int, void **);

static void *open_isal(void) {
  void *library = open_library("libisal.so.2", "libisal2");
  if (!library)
    return NULL;
  LOAD(library, gf_gen_rs_matrix);
  LOAD(library, gf_gen_cauchy1_matrix);
  LOAD(library, ec_init_tables);
  LOAD(library, ec_encode_data);
  LOAD(library, pq_gen);
  return library;
}

static void encode_as_isal(const code_case *c, stripe *s) {
  const int k = (int)c->k, m = (int)c->m;
  unsigned char *matrix = malloc((size_t)(k + m) * c->k), *tables = malloc(32 * c->k * c->m);
  ck_assert(matrix && tables);
  (strcmp(c->name, "cauchy") == 0 ? gf_gen_cauchy1_matrix : gf_gen_rs_matrix)(matrix, k + m, k);
  ec_init_tables(k, m, matrix + c->k * c->k, tables);
  ec_encode_data((int)s->view.bytes, k, m, tables, s->shard, s->shard + c->k);
  free(matrix);
  free(tables);
}

// --- Jerasure ---

static int *(*reed_sol_vandermonde_coding_matrix)(int, int, int);
static int *(*reed_sol_r6_coding_matrix)(int, int);
static int *(*cauchy_original_coding_matrix)(int, int, int);
static int *(*cauchy_good_general_coding_matrix)(int, int, int);
static int *(*jerasure_matrix_to_bitmatrix)(int, int, int, int *);
static void (*jerasure_matrix_encode)(int, int, int, int *, char **, char **, int);
static void (*jerasure_bitmatrix_encode)(int, int, int, int *, char **, char **, int, int);

static void *open_jerasure(void) {
  void *library = open_library("libJerasure.so.2", "libjerasure2");
  if (!library)
    return NULL;
  LOAD(library, reed_sol_vandermonde_coding_matrix);
  LOAD(library, reed_sol_r6_coding_matrix);
  LOAD(library, cauchy_original_coding_matrix);
  LOAD(library, cauchy_good_general_coding_matrix);
  LOAD(library, jerasure_matrix_to_bitmatrix);
  LOAD(library, jerasure_matrix_encode);
  LOAD(library, jerasure_bitmatrix_encode);
  return library;
}

static int *matrix_as_jerasure(const code_case *c) {
  const int k = (int)c->k, m = (int)c->m, w = (int)c->w;
  if (strcmp(c->name, "reed_sol_van") == 0)
    return reed_sol_vandermonde_coding_matrix(k, m, w);
  if (strcmp(c->name, "raid6") == 0)
    return reed_sol_r6_coding_matrix(k, w);
  return (strcmp(c->name, "cauchy_good") == 0 ? cauchy_good_general_coding_matrix
                                              : cauchy_original_coding_matrix)(k, m, w);
}

static void encode_as_jerasure(const code_case *c, stripe *s) {
  const int k = (int)c->k, m = (int)c->m, w = (int)c->w, bytes = (int)s->view.bytes;
  char *shards[WEFT_MAX_SHARDS];
  for (size_t i = 0; i < c->k + c->m; i++)
    shards[i] = (char *)s->shard[i];
  int *matrix = matrix_as_jerasure(c);
  EXPECT(matrix != NULL);
  if (c->packet_bytes == 0) {
    jerasure_matrix_encode(k, m, w, matrix, shards, shards + k, bytes);
  } else {
    int *bits = jerasure_matrix_to_bitmatrix(k, m, w, matrix);
    jerasure_bitmatrix_encode(k, m, w, bits, shards, shards + k, bytes, (int)c->packet_bytes);
    free(bits);
  }
  free(matrix);
}

// --- the comparison ---

static void compare(weft_ctx *ctx, const code_case *c, size_t bytes, test_rng *rng,
                    void (*encode)(const code_case *, stripe *)) {
  weft_code *code = code_on(ctx, c);
  stripe theirs, ours;
  stripe_init(&theirs, code, bytes, rng, 0);
  stripe_init(&ours, code, bytes, rng, 0);
  stripe_copy(&ours, &theirs, code);
  encode(c, &theirs);
  EXPECT_OK(weft_code_encode(code, &ours.view, 1, NULL));
  EXPECT(stripe_same(&theirs, &ours, code));
  stripe_clear(&theirs);
  stripe_clear(&ours);
  weft_code_free(code);
}

static const size_t sizes[][2] = {{4, 2},   {6, 3}, {10, 4}, {12, 4}, {16, 4}, {32, 8},
                                  {64, 16}, {1, 1}, {5, 1},  {20, 2}, {9, 7},  {128, 32}};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

START_TEST(isal_matrices) {
  test_rng rng = test_rng_new(test_seed(), 10);
  weft_ctx *ctx = context_on(NULL, 1);
  if (open_isal())
    for (size_t i = 0; i < SIZES; i++)
      for (size_t bytes = 64; bytes < 5000; bytes = bytes * 3 + 7) {
        compare(ctx, &(code_case){"cauchy", sizes[i][0], sizes[i][1], 0, 0}, bytes, &rng,
                encode_as_isal);
        if (sizes[i][1] <= 3 || (sizes[i][1] == 4 && sizes[i][0] <= 21))
          compare(ctx, &(code_case){"isal_rs", sizes[i][0], sizes[i][1], 0, 0}, bytes, &rng,
                  encode_as_isal);
      }
  weft_ctx_free(ctx);
}
END_TEST

// pq_gen is the RAID-6 of Linux; it requires 32-byte alignment.
START_TEST(isal_raid6) {
  enum { BYTES = 4096 };
  test_rng rng = test_rng_new(test_seed(), 11);
  weft_ctx *ctx = context_on(NULL, 1);
  void *isal = open_isal();
  for (size_t k = 2; isal && k <= 30; k += 7) {
    const code_case c = {"raid6", k, 2, 0, 0};
    weft_code *code = code_on(ctx, &c);
    uint8_t *ours = aligned_alloc(64, (k + 2) * BYTES),
            *theirs = aligned_alloc(64, (k + 2) * BYTES);
    ck_assert(ours && theirs);
    test_rng_fill(&rng, ours, (k + 2) * BYTES);
    memcpy(theirs, ours, (k + 2) * BYTES);
    void *shards[32];
    for (size_t i = 0; i < k + 2; i++)
      shards[i] = theirs + i * BYTES;
    EXPECT(pq_gen((int)k + 2, BYTES, shards) == 0);
    const weft_stripe s = {.base = ours, .stride = BYTES, .bytes = BYTES};
    EXPECT_OK(weft_code_encode(code, &s, 1, NULL));
    EXPECT(memcmp(ours, theirs, (k + 2) * BYTES) == 0);
    free(ours);
    free(theirs);
    weft_code_free(code);
  }
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(jerasure_matrices) {
  test_rng rng = test_rng_new(test_seed(), 12);
  weft_ctx *ctx = context_on(NULL, 1);
  if (open_jerasure())
    for (size_t i = 0; i < SIZES; i++)
      for (size_t bytes = 64; bytes < 5000; bytes *= 4) {
        compare(ctx, &(code_case){"reed_sol_van", sizes[i][0], sizes[i][1], 8, 0}, bytes, &rng,
                encode_as_jerasure);
        compare(ctx, &(code_case){"raid6", sizes[i][0], 2, 8, 0}, bytes, &rng, encode_as_jerasure);
      }
  weft_ctx_free(ctx);
}
END_TEST

// Every w, including its largest code; both matrices, several packet sizes.
START_TEST(jerasure_bit_matrices) {
  const size_t w = (size_t)_i, most = (size_t)1 << w;
  test_rng rng = test_rng_new(test_seed(), 20 + w);
  weft_ctx *ctx = context_on(NULL, 1);
  for (size_t round = 0; round < 30 && open_jerasure(); round++) {
    const size_t limit = most < 80 ? most : 80;
    size_t k = 1 + test_rng_below(&rng, limit - 1), m = 1 + test_rng_below(&rng, limit - k);
    if (round < 2) { // the two-row table of cauchy_good, at its largest
      k = most - 2;
      m = 2;
    } else if (round < 4 && most >= 16) {
      k = 10;
      m = 4;
    }
    const size_t packet = (size_t)8 << test_rng_below(&rng, 6);
    const size_t bytes = w * packet * (1 + test_rng_below(&rng, 4));
    compare(ctx, &(code_case){"cauchy_orig", k, m, w, packet}, bytes, &rng, encode_as_jerasure);
    compare(ctx, &(code_case){"cauchy_good", k, m, w, packet}, bytes, &rng, encode_as_jerasure);
  }
  weft_ctx_free(ctx);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("storage peers");
  TCase *isal = tcase_create("isal"), *jerasure = tcase_create("jerasure");
  tcase_add_test(isal, isal_matrices);
  tcase_add_test(isal, isal_raid6);
  tcase_add_test(jerasure, jerasure_matrices);
  tcase_add_loop_test(jerasure, jerasure_bit_matrices, 2, 9);
  suite_add_tcase(suite, isal);
  suite_add_tcase(suite, jerasure);
  return test_main(suite);
}
