// SPDX-License-Identifier: Apache-2.0
// Checks progressive elimination by one row: every state against its definition, and scalar's
// bytes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gf256.h"
#include "tests/kernels/row_check_internal.h"
#include "tests/support/test_rng.h"

// Packets of `count` sources, and the states of the row and of scalar.
typedef struct scene {
  weft_eliminate o, want;
  uint8_t *source; // (count, k, len)
} scene;

static uint8_t *copy_of(const uint8_t *from, size_t bytes) {
  return memcpy(row_check_memory(bytes), from, bytes);
}

// y (1, len) = a * source (k, len)
static void encode(uint8_t *y, const uint8_t *a, const uint8_t *source, size_t k, size_t len) {
  memset(y, 0, len);
  for (size_t j = 0; j < k; j++)
    for (size_t i = 0; i < len; i++)
      y[i] ^= weft_gf256_mul(a[j], source[j * len + i]);
}

// Makes dense, sparse and repeated vectors, some of them zero.
static void fill_packets(uint8_t *a, uint8_t *y, const scene *s, test_rng *rng) {
  const size_t k = s->o.k, len = s->o.len;
  for (size_t i = 0; i < s->o.count * s->o.arrivals; i++) {
    uint8_t *vector = a + i * k;
    const size_t kind = test_rng_below(rng, 6);
    test_rng_fill(rng, vector, k);
    if (kind == 0 && i % s->o.arrivals > 0)
      memcpy(vector, a + (i - 1) * k, k);
    for (size_t j = 0; (kind == 1 || kind == 2) && j < k; j++)
      vector[j] = test_rng_below(rng, kind == 1 ? k : 4) == 0 ? vector[j] : 0;
    encode(y + i * len, vector, s->source + i / s->o.arrivals * k * len, k, len);
  }
}

static scene scene_new(size_t count, size_t arrivals, size_t k, size_t len, test_rng *rng) {
  scene s = {.o = {.count = count, .arrivals = arrivals, .k = k, .len = len}};
  uint8_t *a = row_check_memory(count * arrivals * k),
          *y = row_check_memory(count * arrivals * len);
  s.source = row_check_memory(count * k * len);
  test_rng_fill(rng, s.source, count * k * len);
  fill_packets(a, y, &s, rng);
  s.o.a = a;
  s.o.y = y;
  s.o.c = row_check_memory(count * k * k);
  s.o.x = row_check_memory(count * k * len);
  s.o.known = row_check_memory(count * k);
  test_rng_fill(rng, s.o.c, count * k * k); // rows that are not known have no meaning
  test_rng_fill(rng, s.o.x, count * k * len);
  memset(s.o.known, 0, count * k);
  s.o.pivot = row_check_memory(count * arrivals * sizeof *s.o.pivot);
  s.want = s.o;
  s.want.c = copy_of(s.o.c, count * k * k);
  s.want.x = copy_of(s.o.x, count * k * len);
  s.want.known = copy_of(s.o.known, count * k);
  s.want.pivot = row_check_memory(count * arrivals * sizeof *s.o.pivot);
  return s;
}

static void scene_free(scene *s) {
  free((void *)s->o.a), free((void *)s->o.y), free(s->source);
  free(s->o.c), free(s->o.x), free(s->o.known), free(s->o.pivot);
  free(s->want.c), free(s->want.x), free(s->want.known), free(s->want.pivot);
}

// Whether the state is in reduced row echelon form, with payloads that match its vectors.
static bool is_reduced(const scene *s) {
  const size_t k = s->o.k, len = s->o.len;
  uint8_t *expect = row_check_memory(len);
  bool good = true;
  for (size_t i = 0; i < s->o.count * k && good; i++) {
    const uint8_t *known = s->o.known + i / k * k, *row = s->o.c + i * k;
    if (!s->o.known[i])
      continue;
    for (size_t c = 0; c < k; c++)
      good = good && (known[c] ? row[c] == (c == i % k) : c > i % k || row[c] == 0);
    encode(expect, row, s->source + i / k * k * len, k, len);
    good = good && memcmp(expect, s->o.x + i * len, len) == 0;
  }
  free(expect);
  return good;
}

static bool same(const scene *s) {
  const size_t rows = s->o.count * s->o.k;
  bool good =
      memcmp(s->o.known, s->want.known, rows) == 0 &&
      memcmp(s->o.pivot, s->want.pivot, s->o.count * s->o.arrivals * sizeof *s->o.pivot) == 0;
  for (size_t i = 0; i < rows && good; i++)
    good = memcmp(s->o.c + i * s->o.k, s->want.c + i * s->o.k, s->o.k) == 0 &&
           memcmp(s->o.x + i * s->o.len, s->want.x + i * s->o.len, s->o.len) == 0;
  return good;
}

bool row_check_eliminate(row_check *check) {
  const weft_backend *row = check->row, *scalar = row_check_scalar();
  test_rng rng = test_rng_new(check->seed, 8);
  static const size_t sizes[] = {1, 2, 3, 5, 16, 31, 40};
  char what[128] = "";
  bool good = true;
  for (size_t i = 0; i < 60 && good; i += check->step) {
    const size_t k = sizes[i % (sizeof sizes / sizeof *sizes)];
    scene s = scene_new(1 + test_rng_below(&rng, 4), 1 + test_rng_below(&rng, 2 * k), k,
                        test_rng_below(&rng, 300), &rng);
    const weft_exec exec = {0};
    good = row->eliminate(row, &exec, &s.o) == WEFT_OK &&
           scalar->eliminate(scalar, &exec, &s.want) == WEFT_OK && is_reduced(&s) && same(&s);
    // Fed again, no packet can be innovative.
    good = good && row->eliminate(row, &exec, &s.o) == WEFT_OK && is_reduced(&s);
    for (size_t j = 0; j < s.o.count * s.o.arrivals && good; j++)
      good = s.o.pivot[j] == WEFT_NO_PIVOT;
    snprintf(what, sizeof what, "count %zu arrivals %zu k %zu len %zu", s.o.count, s.o.arrivals, k,
             s.o.len);
    scene_free(&s);
  }
  return good || row_check_fail(check, "eliminate", what);
}
