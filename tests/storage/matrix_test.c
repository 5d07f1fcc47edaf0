// SPDX-License-Identifier: Apache-2.0
// Matrices of storage codes: known answers, the closed form against elimination, matrices refused
// as not MDS, and XOR programs against the bit matrices they represent.
#include <stdlib.h>
#include <string.h>

#include "kernels/gf256.h"
#include "lib/storage/generator.h"
#include "lib/storage/xor_program.h"
#include "tests/storage/stripes.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"

static test_allocator memory;

static void start(void) { test_allocator_init(&memory, 0); }

START_TEST(fields_are_those_of_the_polynomials) {
  weft_gfw field;
  ck_assert(!weft_gfw_init(&field, 1) && !weft_gfw_init(&field, 9));
  for (unsigned w = 2; w <= 8; w++) {
    ck_assert(weft_gfw_init(&field, w));
    ck_assert_uint_eq(field.order, (1u << w) - 1);
    unsigned seen[256] = {0};
    for (unsigned i = 0; i < field.order; i++)
      seen[field.exp[i]]++;
    for (unsigned x = 1; x <= field.order; x++) {
      ck_assert_uint_eq(seen[x], 1);
      ck_assert_uint_eq(weft_gfw_mul(&field, (uint8_t)x, weft_gfw_div(&field, 1, (uint8_t)x)), 1);
    }
  }
  for (unsigned a = 0; a < 256; a++)
    for (unsigned b = 0; b < 256; b++)
      EXPECT(weft_gfw_mul(&field, (uint8_t)a, (uint8_t)b) ==
             weft_gf256_mul((uint8_t)a, (uint8_t)b));
}
END_TEST

// G-CRS, Figures 2 and 8: k = m = w = 2.
START_TEST(known_answer_of_gcrs) {
  static const char encode[4][5] = {"1101", "1011", "0111", "1110"};
  static const char recover[4][5] = {"0111", "1110", "1101", "1011"};
  weft_ctx *ctx = context_on(NULL, 1);
  weft_code *code = code_on(ctx, &(code_case){"gcrs", 2, 2, 2, 0});
  const uint8_t in[2][2] = {{0, 1}, {1, 3}}, out[2][2] = {{2, 3}, {0, 2}};
  for (int p = 0; p < 2; p++) {
    weft_plan *plan = NULL;
    uint8_t bits[16];
    EXPECT_OK(weft_plan_new(code, in[p], out[p], 2, &plan));
    EXPECT_OK(weft_plan_bits(plan, bits));
    for (int i = 0; i < 16; i++)
      EXPECT(bits[i] == (p ? recover : encode)[i / 4][i % 4] - '0');
    weft_plan_free(plan);
  }
  weft_code_free(code);
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(formulas_of_the_peers) {
  weft_ctx *ctx = context_on(NULL, 1);
  uint8_t parity[10 * 4];
  weft_code *code = code_on(ctx, &(code_case){"cauchy", 10, 4, 0, 0});
  weft_code_parity_matrix(code, parity);
  for (unsigned i = 0; i < 4; i++)
    for (unsigned j = 0; j < 10; j++)
      ck_assert_uint_eq(parity[i * 10 + j], weft_gf256_inv[(10 + i) ^ j]);
  weft_code_free(code);
  code = code_on(ctx, &(code_case){"raid6", 10, 2, 0, 0});
  weft_code_parity_matrix(code, parity);
  for (unsigned j = 0; j < 10; j++) {
    ck_assert_uint_eq(parity[j], 1);
    ck_assert_uint_eq(parity[10 + j], weft_gf256_exp[j]);
  }
  weft_code_free(code);
  code = code_on(ctx, &(code_case){"isal_rs", 10, 4, 0, 0});
  weft_code_parity_matrix(code, parity);
  for (unsigned i = 0; i < 4; i++)
    for (unsigned j = 0; j < 10; j++)
      ck_assert_uint_eq(parity[i * 10 + j], weft_gf256_exp[i * j % 255]);
  weft_code_free(code);
  code = code_on(ctx, &(code_case){"par1", 10, 3, 0, 0});
  weft_code_parity_matrix(code, parity);
  for (unsigned j = 0; j < 10; j++) {
    ck_assert_uint_eq(parity[10 + j], j + 1);
    ck_assert_uint_eq(parity[20 + j], weft_gf256_mul((uint8_t)(j + 1), (uint8_t)(j + 1)));
  }
  weft_code_free(code);
  weft_ctx_free(ctx);
}
END_TEST

// The Vandermonde code is V * inv(top) with V[r][c] = r^c, computed by elimination here and in
// closed form by the library.
START_TEST(vandermonde_is_systematised) {
  enum { K = 17, M = 6 };
  weft_generator g;
  start();
  ck_assert_int_eq(weft_generator_init(&g, WEFT_GENERATOR_VANDERMONDE, K, M, 8, &memory.allocator),
                   WEFT_OK);
  uint8_t v[(K + M) * K], top[K * K], inverse[K * K];
  for (size_t r = 0; r < K + M; r++)
    for (size_t c = 0; c < K; c++)
      v[r * K + c] = c == 0 ? 1 : weft_gfw_mul(&g.field, v[r * K + c - 1], (uint8_t)r);
  memcpy(top, v, sizeof top);
  ck_assert(weft_gfw_invert(&g.field, top, inverse, K));
  for (size_t i = 0; i < M; i++)
    for (size_t j = 0; j < K; j++) {
      uint8_t sum = 0;
      for (size_t c = 0; c < K; c++)
        sum ^= weft_gfw_mul(&g.field, v[(K + i) * K + c], inverse[c * K + j]);
      ck_assert_uint_eq(sum, g.parity[i * K + j]);
    }
  weft_generator_clear(&g);
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

static void compare_solutions(const weft_generator *g, test_rng *rng) {
  enum { ROUNDS = 20 };
  const size_t n = g->k + g->m;
  uint8_t *fast = malloc(n * g->k), *slow = malloc(n * g->k);
  ck_assert(fast && slow);
  for (int round = 0; round < ROUNDS; round++) {
    uint8_t in[WEFT_SHARDS_MAX], out[WEFT_SHARDS_MAX];
    choose_ids(rng, in, g->k, n);
    choose_ids(rng, out, n, n); // inputs among the outputs are unit rows
    ck_assert_int_eq(weft_generator_solve(g, in, out, n, fast), WEFT_OK);
    ck_assert_int_eq(weft_generator_solve_by_elimination(g, in, out, n, slow), WEFT_OK);
    ck_assert_mem_eq(fast, slow, n * g->k);
    ck_assert_int_eq(weft_generator_express(g, in, g->k, out, n, fast), WEFT_OK);
    ck_assert_mem_eq(fast, slow, n * g->k);
  }
  free(fast);
  free(slow);
}

START_TEST(closed_form_equals_elimination) {
  static const weft_generator_kind kinds[] = {
      WEFT_GENERATOR_VANDERMONDE, WEFT_GENERATOR_CAUCHY,      WEFT_GENERATOR_REED_SOL_VAN,
      WEFT_GENERATOR_RAID6,       WEFT_GENERATOR_CAUCHY_ORIG, WEFT_GENERATOR_CAUCHY_GOOD};
  test_rng rng = test_rng_new(test_seed(), (uint64_t)_i);
  for (unsigned w = 2; w <= 8; w++)
    for (int round = 0; round < 12; round++) {
      const size_t most = (size_t)1 << w;
      size_t k = 1 + test_rng_below(&rng, most < 64 ? most - 1 : 63);
      size_t m = test_rng_below(&rng, most - k < 40 ? most - k + 1 : 40);
      if (round == 0 || kinds[_i] == WEFT_GENERATOR_RAID6) { // the largest size; m = 2
        m = 2;
        k = round == 0 ? most - 2 : 1 + test_rng_below(&rng, most - 2);
      }
      weft_generator g;
      start();
      ck_assert_int_eq(weft_generator_init(&g, kinds[_i], k, m, w, &memory.allocator), WEFT_OK);
      ck_assert(g.by_points);
      compare_solutions(&g, &rng);
      if (k + m <= 12) // confirms the proof of MDS
        ck_assert_int_eq(weft_matrix_check_mds(&g.field, g.parity, m, k, 1u << 16), WEFT_OK);
      weft_generator_clear(&g);
      ck_assert_int_eq(test_allocator_live(&memory), 0);
    }
}
END_TEST

static weft_status make(weft_generator_kind kind, size_t k, size_t m) {
  weft_generator g;
  start();
  const weft_status status = weft_generator_init(&g, kind, k, m, 8, &memory.allocator);
  if (status == WEFT_OK)
    weft_generator_clear(&g);
  ck_assert_int_eq(test_allocator_live(&memory), 0);
  return status;
}

START_TEST(what_is_not_mds_is_refused) {
  static const size_t last[][2] = {{4, 21}, {5, 5}, {6, 4}}; // m, the largest k of isal_rs
  for (size_t i = 0; i < sizeof last / sizeof last[0]; i++) {
    ck_assert_int_eq(make(WEFT_GENERATOR_ISAL_RS, last[i][1], last[i][0]), WEFT_OK);
    for (size_t k = last[i][1] + 1; k <= 250; k += 1 + k / 8)
      ck_assert_int_eq(make(WEFT_GENERATOR_ISAL_RS, k, last[i][0]), WEFT_E_SINGULAR);
  }
  for (size_t m = 0; m <= 3; m++) {
    ck_assert_int_eq(make(WEFT_GENERATOR_ISAL_RS, 250, m), WEFT_OK);
    ck_assert_int_eq(make(WEFT_GENERATOR_PAR1, 200, m), WEFT_OK);
  }
  ck_assert_int_eq(make(WEFT_GENERATOR_ISAL_RS, 3, 253), WEFT_OK);
  ck_assert_int_eq(make(WEFT_GENERATOR_ISAL_RS, 4, 21), WEFT_OK);
  ck_assert_int_eq(make(WEFT_GENERATOR_ISAL_RS, 4, 22), WEFT_E_SINGULAR);
  ck_assert_int_eq(make(WEFT_GENERATOR_ISAL_RS, 64, 64), WEFT_E_SINGULAR);
  ck_assert_int_eq(make(WEFT_GENERATOR_PAR1, 2, 4), WEFT_OK);
  for (size_t k = 3; k <= 200; k += 1 + k / 8)
    for (size_t m = 4; m <= 50; m += 5)
      ck_assert_int_eq(make(WEFT_GENERATOR_PAR1, k, m), WEFT_E_SINGULAR);
}
END_TEST

// The shortcuts that take these two codes for MDS are right, for sizes that can be checked quickly.
START_TEST(claims_of_mds_hold) {
  for (size_t k = 1; k <= 40; k++) {
    weft_generator g;
    start();
    for (int kind = WEFT_GENERATOR_ISAL_RS; kind <= WEFT_GENERATOR_PAR1; kind++) {
      ck_assert_int_eq(
          weft_generator_init(&g, (weft_generator_kind)kind, k, 3, 8, &memory.allocator), WEFT_OK);
      ck_assert_int_eq(weft_matrix_check_mds(&g.field, g.parity, 3, k, 1u << 16), WEFT_OK);
      weft_generator_clear(&g);
    }
    ck_assert_int_eq(weft_generator_init(&g, WEFT_GENERATOR_ISAL_RS, 3, k, 8, &memory.allocator),
                     WEFT_OK);
    ck_assert_int_eq(weft_matrix_check_mds(&g.field, g.parity, k, 3, 1u << 16), WEFT_OK);
    ck_assert_int_eq(weft_matrix_check_mds(&g.field, g.parity, k, 3, 0), WEFT_E_UNSUPPORTED);
    weft_generator_clear(&g);
  }
}
END_TEST

START_TEST(elimination_finds_singular_inputs) {
  // 1 ^ 2 ^ 3 = 0 makes rows 0, 1, 3 of par1 singular; init would refuse it, so it is built by
  // hand.
  weft_generator g;
  start();
  ck_assert_int_eq(weft_generator_init(&g, WEFT_GENERATOR_PAR1, 3, 3, 8, &memory.allocator),
                   WEFT_OK);
  for (unsigned j = 0; j < 3; j++)
    g.parity[6 + j] =
        weft_gf256_mul(weft_gf256_mul((uint8_t)(j + 1), (uint8_t)(j + 1)), (uint8_t)(j + 1));
  const uint8_t in[] = {3, 4, 5}, out[] = {0};
  uint8_t matrix[3];
  ck_assert_int_eq(weft_generator_solve(&g, in, out, 1, matrix), WEFT_E_SINGULAR);
  weft_generator_clear(&g);
}
END_TEST

// --- XOR programs ---

static void run_program(const weft_xor_program *p, uint64_t *packet) {
  const size_t packets = p->inputs + p->outputs + p->slots;
  uint8_t *known = calloc(packets, 1);
  ck_assert_ptr_nonnull(known);
  memset(known, 1, p->inputs);
  for (size_t s = 0; s < p->step_count; s++) {
    uint64_t sum = 0;
    ck_assert(p->steps[s].target >= p->inputs && p->steps[s].target < packets);
    for (size_t i = 0; i < p->steps[s].count; i++) {
      const uint16_t source = p->sources[p->steps[s].first + i];
      ck_assert(source < packets && known[source] && source != p->steps[s].target);
      sum ^= packet[source];
    }
    packet[p->steps[s].target] = sum;
    known[p->steps[s].target] = 1;
  }
  free(known);
}

// Checks a program whose last `again` columns are its first outputs.
static void check_program(const uint8_t *bits, size_t rows, size_t columns, size_t again,
                          test_rng *rng) {
  const size_t inputs = columns - again;
  for (int reduce = 0; reduce < 2; reduce++) {
    weft_xor_program *p = NULL;
    ck_assert_int_eq(weft_xor_program_new(&p, bits, rows, inputs, again, reduce, &memory.allocator),
                     WEFT_OK);
    uint64_t *packet = calloc(p->inputs + p->outputs + p->slots, sizeof *packet);
    ck_assert_ptr_nonnull(packet);
    for (size_t c = 0; c < inputs; c++)
      packet[c] = test_rng_next(rng);
    run_program(p, packet);
    for (size_t r = 0; r < rows; r++) {
      uint64_t sum = 0;
      for (size_t c = 0; c < columns; c++)
        sum ^= bits[r * columns + c] ? packet[c] : 0;
      ck_assert_msg(packet[inputs + r] == sum,
                    "row %zu of %zu x %zu, %zu of them outputs, WEFT_TEST_SEED=%#llx", r, rows,
                    columns, again, (unsigned long long)test_seed());
    }
    free(packet);
    weft_xor_program_free(p);
  }
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}

START_TEST(programs_equal_their_matrices) {
  test_rng rng = test_rng_new(test_seed(), 50);
  start();
  for (int round = 0; round < 300; round++) {
    const size_t rows = 1 + test_rng_below(&rng, 40), columns = 1 + test_rng_below(&rng, 80);
    const size_t density = 1 + test_rng_below(&rng, 99);
    const size_t most = rows < columns ? rows : columns;
    const size_t again = test_rng_below(&rng, 2) * test_rng_below(&rng, most);
    uint8_t bits[40 * 80];
    for (size_t i = 0; i < rows * columns; i++)
      bits[i] = test_rng_below(&rng, 100) < density;
    if (round % 3 == 0) // equal or empty rows, or a single input: outputs that share a place
      for (size_t r = 1; r < rows; r++)
        if (test_rng_below(&rng, 2))
          memcpy(bits + r * columns, bits + (r - 1) * columns, columns);
    if (round % 5 == 0) {
      memset(bits, 0, columns);
      bits[(rows - 1) * columns] = 1;
    }
    for (size_t r = 0; r < again; r++)
      memset(bits + r * columns + columns - again, 0, again);
    check_program(bits, rows, columns, again, &rng);
  }
}
END_TEST

START_TEST(programs_of_large_codes) {
  static const size_t shapes[][3] = {{10, 4, 8}, {32, 8, 8}, {32, 8, 6}, {100, 100, 8}};
  test_rng rng = test_rng_new(test_seed(), 51);
  weft_generator g;
  const size_t *s = shapes[_i];
  start();
  ck_assert_int_eq(weft_generator_init(&g, WEFT_GENERATOR_CAUCHY_GOOD, s[0], s[1], (unsigned)s[2],
                                       &memory.allocator),
                   WEFT_OK);
  uint8_t *bits = malloc(s[0] * s[1] * s[2] * s[2]);
  ck_assert_ptr_nonnull(bits);
  weft_matrix_to_bits(&g.field, g.parity, s[1], s[0], bits);
  weft_generator_clear(&g);
  check_program(bits, s[1] * s[2], s[0] * s[2], 0, &rng);
  free(bits);
}
END_TEST

// A sum shared by five outputs is computed once.
START_TEST(programs_share_sums) {
  uint8_t bits[5 * 12] = {0};
  for (size_t r = 0; r < 5; r++) {
    memset(bits + r * 12, 1, 7);
    bits[r * 12 + 7 + r] = 1;
  }
  weft_xor_program *p = NULL;
  start();
  ck_assert_int_eq(weft_xor_program_new(&p, bits, 5, 12, 0, true, &memory.allocator), WEFT_OK);
  ck_assert_uint_eq(p->step_count, 6);
  ck_assert_uint_eq(p->source_count, 7 + 5 * 2);
  ck_assert_uint_eq(p->slots, 1);
  weft_xor_program_free(p);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("storage matrices");
  TCase *matrices = tcase_create("matrices"), *programs = tcase_create("programs");
  tcase_add_test(matrices, fields_are_those_of_the_polynomials);
  tcase_add_test(matrices, known_answer_of_gcrs);
  tcase_add_test(matrices, formulas_of_the_peers);
  tcase_add_test(matrices, vandermonde_is_systematised);
  tcase_add_loop_test(matrices, closed_form_equals_elimination, 0, 6);
  tcase_add_test(matrices, what_is_not_mds_is_refused);
  tcase_add_test(matrices, claims_of_mds_hold);
  tcase_add_test(matrices, elimination_finds_singular_inputs);
  tcase_add_test(programs, programs_equal_their_matrices);
  tcase_add_loop_test(programs, programs_of_large_codes, 0, 4);
  tcase_add_test(programs, programs_share_sums);
  suite_add_tcase(suite, matrices);
  suite_add_tcase(suite, programs);
  return test_main(suite);
}
