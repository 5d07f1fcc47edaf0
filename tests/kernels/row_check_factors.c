// SPDX-License-Identifier: Apache-2.0
// Checks products by factors (kernels/factors.h, which defines steps, slots and detours) against
// the same products entry by entry, with rows flush with guard pages, whether or not the technique
// would choose factors for them.
#include <stdio.h>
#include <string.h>

#include "kernels/host_steps.h"
#include "tests/kernels/row_check_internal.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_steps.h"

_Static_assert((int)TEST_STEPS_ROWS <= (int)ROW_CHECK_ROWS, "rows of any steps fit");

// A product of m rows, as factors and entry by entry.
typedef struct product {
  const weft_factors *factors;
  const uint8_t *a;
  char text[80]; // describes its steps
} product;

// `fail`: the allocation that fails, counted from 1; 0: none.
static bool run_product(row_check *check, const product *p, const row_check_shape *c, long fail,
                        test_rng *rng) {
  row_check_rows rows;
  row_check_rows_new(&rows, c, rng);
  weft_gemm g = row_check_rows_product(&rows, c, p->a);
  // A copy of the row for which every matrix is worth its factors.
  weft_host_kernel kernel = *check->row->host;
  weft_backend row = *check->row;
  kernel.steps_product = kernel.steps_sum = kernel.steps_entry = 0;
  // Long rows: what is left at their end is computed with columns before it, or entry by entry.
  kernel.steps_act = c->len >= 4096 && test_rng_below(rng, 2) ? SIZE_MAX / 8192 : 0;
  // Stores that bypass the caches need aligned rows.
  kernel.steps_past = c->len % 64 == 0 ? 0 : SIZE_MAX;
  row.host = &kernel;
  g.factors = p->factors;
  test_allocator scarce;
  test_allocator_init(&scarce, fail);
  const weft_exec exec = {.allocator = &scarce.allocator};
  const bool done = row.gemm(&row, &exec, &g, 1) == WEFT_OK;
  char text[200];
  snprintf(text, sizeof text, "m %zu, k %zu, %s, len %zu, end - %zu%s, fail %ld", c->m, c->k,
           p->text, c->len, c->offset, c->accumulate ? ", accumulate" : "", fail);
  return (row_check_rows_end(&rows) && done) || row_check_fail(check, "factors", text);
}

static void describe(product *p, const char *what, const test_steps *steps) {
  snprintf(p->text, sizeof p->text, "%s %zu steps on %zu slots", what, steps->count, steps->slots);
}

static bool run(row_check *check, const test_steps *steps, const row_check_shape *c, long fail,
                test_rng *rng) {
  test_allocator memory;
  test_allocator_init(&memory, 0);
  weft_factors *factors = NULL;
  if (weft_factors_new(steps->step, steps->count, steps->slots, &memory.allocator, &factors) !=
      WEFT_OK)
    return row_check_fail(check, "factors", "no memory");
  product p = {.factors = factors, .a = steps->a};
  describe(&p, "by", steps);
  const bool right = run_product(check, &p, c, fail, rng);
  weft_factors_free(factors, &memory.allocator);
  return right;
}

// Returns a bit for each kind of wide transform (kernels/host_steps.h) in the factors. Kinds differ
// in the number of rows; the direction; whether an inverse transform has zero constants, or a
// forward one makes rows of Y; and the use of the results: they are stored, used elsewhere
// unchanged, or used elsewhere scaled.
static uint32_t kinds_of(const weft_factors *factors) {
  uint32_t kinds = 0;
  for (size_t a = 0; factors->acts && a < factors->acts->count; a++) {
    const weft_act *act = &factors->acts->act[a], *last = act + act->wide / 4;
    if (!act->wide)
      continue;
    const bool forward = act->kind == WEFT_ACT_FORWARD4;
    const bool special = forward ? last->out[0] >= WEFT_PLACE_Y
                                 : act->c[0] == 0 && act->c[2] == 0 && last->c[0] == 0;
    const bool plain = forward ? last->c[3] == 1 : last->more[0] == WEFT_PLACE_ZERO;
    const size_t end = !last->joins ? 0 : plain ? 1 : 2;
    kinds |= 1u << (act->wide / 16u + (forward ? 2u : 0) + (special ? 4u : 0) + 8u * end);
  }
  return kinds;
}

static uint32_t kinds_of_steps(const test_steps *steps) {
  test_allocator memory;
  test_allocator_init(&memory, 0);
  weft_factors *factors = NULL;
  if (weft_factors_new(steps->step, steps->count, steps->slots, &memory.allocator, &factors) !=
      WEFT_OK)
    return 0;
  const uint32_t kinds = kinds_of(factors);
  weft_factors_free(factors, &memory.allocator);
  return kinds;
}

static bool takes_wide(const row_check *check) {
  return check->row->host && check->row->host->wide_rows > 0;
}

// Checks transforms that a technique executes in one pass. Every kind of them must occur, or the
// random steps are no test.
static bool run_transforms(row_check *check, test_rng *rng) {
  enum { ROUNDS = 8, TRIES = 100000 }; // the rarest kind is one in 1000
  static test_steps steps;
  const int all = 2 * 2 * 2 * 3;
  const size_t most = check->step > 1 ? 200 : 500;
  uint32_t seen = 0;
  for (size_t try = 0; try < TRIES && (try < ROUNDS || __builtin_popcount(seen) < all); try++) {
    const size_t k = 1 + test_rng_below(rng, TEST_STEPS_ROWS), m = 1 + test_rng_below(rng, 40);
    test_steps_transforms(rng, k, m, 33 + test_rng_below(rng, TEST_STEPS_SLOTS - 32), &steps);
    const uint32_t kinds = kinds_of_steps(&steps);
    if (try >= ROUNDS && !(kinds & ~seen))
      continue;
    seen |= kinds;
    // Rows aligned to lines, which may be stored past the caches; unaligned rows; and rows with a
    // tail.
    row_check_shape c = {.m = m, .k = k, .len = 64 * (4 + test_rng_below(rng, most))};
    if (!run(check, &steps, &c, 0, rng))
      return false;
    c.offset = 1 + test_rng_below(rng, 63);
    if (!run(check, &steps, &c, 0, rng))
      return false;
    c.len += 1 + test_rng_below(rng, 63);
    if (!run(check, &steps, &c, 0, rng))
      return false;
  }
  if (__builtin_popcount(seen) == all)
    return true;
  char text[64];
  snprintf(text, sizeof text, "%d kinds of transforms, for %d", __builtin_popcount(seen), all);
  return row_check_fail(check, "factors", text);
}

// A detour, with the number of rows of X and the matrix (m, k) of the whole product.
typedef struct detour {
  weft_detour is;
  uint16_t row[TEST_STEPS_ROWS], added[TEST_STEPS_ROWS], plus[TEST_STEPS_ROWS];
  uint8_t source[TEST_STEPS_ROWS], a[TEST_STEPS_ROWS * TEST_STEPS_ROWS];
  size_t k;
  uint8_t all[TEST_STEPS_ROWS * TEST_STEPS_ROWS]; // (m, k)
} detour;

// Chooses a random detour. Every row of X is used once, in the known product or added to its
// result.
static void choose_detour(test_rng *rng, const test_steps *known, detour *d) {
  const size_t zeros = test_rng_below(rng, 3), apart = test_rng_below(rng, 3);
  *d = (detour){
      .is = {.row = d->row, .added = d->added, .plus = d->plus, .source = d->source, .a = d->a}};
  d->is.m = 1 + test_rng_below(rng, 20);
  memset(d->plus, 0xFF, sizeof d->plus); // WEFT_NO_ROW
  for (size_t j = 0; j < known->k; j++)
    d->row[j] = test_rng_below(rng, 4) < zeros ? WEFT_NO_ROW : (uint16_t)d->k++;
  for (size_t i = 0; i < known->m; i++) {
    d->added[i] = WEFT_NO_ROW;
    const size_t use = test_rng_below(rng, 8), to = test_rng_below(rng, d->is.m);
    if (use < 6)
      d->source[d->is.sources++] = (uint8_t)i;
    else if (use == 6 && d->plus[to] == WEFT_NO_ROW)
      d->plus[to] = (uint16_t)i;
  }
  for (size_t s = 0; s < d->is.sources; s++)
    if (d->k < TEST_STEPS_ROWS && test_rng_below(rng, 4) >= apart)
      d->added[d->source[s]] = (uint16_t)d->k++;
  d->is.wide_rows = 8 * test_rng_below(rng, 3);
  for (size_t e = 0; e < d->is.m * d->is.sources; e++)
    d->a[e] = test_rng_below(rng, 8) ? (uint8_t)test_rng_next(rng) : 0;
}

static void add_known(const test_steps *known, detour *d, size_t i, size_t row, uint8_t c) {
  for (size_t j = 0; j < known->k; j++)
    if (d->row[j] != WEFT_NO_ROW)
      d->all[i * d->k + d->row[j]] ^= row_check_times(c, known->a[row * known->k + j]);
}

static void define_detour(const test_steps *known, detour *d) {
  for (size_t i = 0; i < d->is.m; i++) {
    for (size_t s = 0; s < d->is.sources; s++) {
      const uint8_t c = d->a[i * d->is.sources + s];
      const size_t row = d->source[s];
      add_known(known, d, i, row, c);
      if (d->added[row] != WEFT_NO_ROW)
        d->all[i * d->k + d->added[row]] ^= c;
    }
    if (d->plus[i] != WEFT_NO_ROW)
      add_known(known, d, i, d->plus[i], 1);
  }
}

// Checks a random detour; sets `found` if the known product's acts allow it.
static bool run_detour(row_check *check, const test_steps *known, bool *found, uint32_t *kinds,
                       test_rng *rng) {
  static detour d;
  test_allocator memory;
  test_allocator_init(&memory, 0);
  weft_factors *factors = NULL, *made = NULL;
  choose_detour(rng, known, &d);
  if (!d.k || !d.is.sources)
    return true;
  define_detour(known, &d);
  if (weft_factors_new(known->step, known->count, known->slots, &memory.allocator, &factors) !=
      WEFT_OK)
    return row_check_fail(check, "factors", "no memory");
  const weft_status status = weft_factors_by_detour(factors, &d.is, &memory.allocator, &made);
  bool right = status == WEFT_OK || status == WEFT_E_UNSUPPORTED ||
               row_check_fail(check, "factors", "no detour");
  weft_factors_free(factors, &memory.allocator); // the detour no longer needs them
  if (made) {
    const row_check_shape c = {.m = d.is.m,
                               .k = d.k,
                               .len = 256 + test_rng_below(rng, 4000),
                               .offset = test_rng_below(rng, 2) * test_rng_below(rng, 64)};
    product p = {.factors = made, .a = d.all};
    describe(&p, "a detour by", known);
    right = run_product(check, &p, &c, 0, rng);
    *kinds |= kinds_of(made);
    *found = true;
  }
  weft_factors_free(made, &memory.allocator);
  return right;
}

// Most random steps allow no detour; enough must be found, with whole transforms among them.
static bool run_detours(row_check *check, test_rng *rng) {
  enum { WANTED = 24, TRIES = 20000 };
  static test_steps known;
  uint32_t kinds = 0;
  size_t found = 0;
  for (size_t try = 0; try < TRIES && (found < WANTED || !kinds); try++) {
    const size_t k = 1 + test_rng_below(rng, 40), m = 1 + test_rng_below(rng, 16);
    bool goes = false;
    if (test_rng_below(rng, 2))
      test_steps_transforms(rng, k, m, 33 + test_rng_below(rng, TEST_STEPS_SLOTS - 32), &known);
    else
      test_steps_random(rng, k, m, 4 + test_rng_below(rng, TEST_STEPS_SLOTS - 3),
                        test_rng_below(rng, 40), &known);
    if (!run_detour(check, &known, &goes, &kinds, rng))
      return false;
    found += goes;
  }
  return (found >= WANTED && kinds) || row_check_fail(check, "factors", "too few detours");
}

bool row_check_factors(row_check *check) {
  enum { ROUNDS = 48 };
  static test_steps steps;
  test_rng rng = test_rng_new(check->seed, 9);
  for (size_t round = 0; round < ROUNDS; round++) {
    const size_t k = 1 + test_rng_below(&rng, round % 3 ? 24 : TEST_STEPS_ROWS);
    const size_t m = 1 + test_rng_below(&rng, round % 5 ? 16 : 40);
    const size_t slots = 4 + test_rng_below(&rng, TEST_STEPS_SLOTS - 3);
    test_steps_random(&rng, k, m, slots, test_rng_below(&rng, 120), &steps);
    if (check->step > 1 && round % check->step != 0)
      continue;
    const size_t part = round % 2 ? 64 : 1, len = 200 + test_rng_below(&rng, round % 3   ? 1000
                                                                             : round % 4 ? 6000
                                                                                         : 20000);
    const row_check_shape c = {.m = m,
                               .k = k,
                               .len = len / part * part,
                               .offset = test_rng_below(&rng, 2) * test_rng_below(&rng, 64),
                               .accumulate = round % 6 == 5};
    if (!run(check, &steps, &c, round % 16 == 7, &rng))
      return false;
  }
  return run_detours(check, &rng) && (!takes_wide(check) || run_transforms(check, &rng));
}
