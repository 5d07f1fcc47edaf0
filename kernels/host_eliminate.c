// SPDX-License-Identifier: Apache-2.0
// Progressive Gauss-Jordan elimination of [C | X] on host rows: Shojania and Li, "Parallelized
// Progressive Network Coding with Hardware Acceleration" (2007). Each thread works on states of its
// own.
// A payload is touched only when its packet is innovative, and then reduced and scaled in one pass.
#include <string.h>

#include "kernels/gf256.h"
#include "kernels/host_kernels.h"

typedef struct state {
  const weft_backend *row;
  size_t k, len;
  uint8_t *c, *x, *known;
  // For the current packet.
  size_t terms;
  uint8_t factors[WEFT_PANEL_ROWS + 1];
  const uint8_t *sources[WEFT_PANEL_ROWS + 1];
  uint8_t *targets[WEFT_PANEL_ROWS];
  uint8_t work[WEFT_PANEL_ROWS];
} state;

static const weft_exec alone = {0}; // products on one thread allocate nothing

// y (1, len) ^= or = factors * sources
static weft_status combine(state *s, uint8_t *y, size_t len, bool accumulate) {
  return s->row->gemm(s->row, &alone,
                      &(weft_gemm){.m = 1,
                                   .k = s->terms,
                                   .len = len,
                                   .a = s->factors,
                                   .a_stride = s->terms,
                                   .x = {.ptr = s->sources},
                                   .y = {.base = y, .stride = len},
                                   .accumulate = accumulate},
                      1);
}

// targets ^= factors * x, with one factor for each target
static weft_status spread(state *s, const uint8_t *x, size_t len) {
  return s->row->gemm(s->row, &alone,
                      &(weft_gemm){.m = s->terms,
                                   .k = 1,
                                   .len = len,
                                   .a = s->factors,
                                   .a_stride = 1,
                                   .x = {.base = x, .stride = len},
                                   .y = {.ptr = s->targets},
                                   .accumulate = true},
                      1);
}

// work = a reduced by the known rows; *pivot = the first nonzero column that is left, or k.
static weft_status reduce_vector(state *s, const uint8_t *a, size_t *pivot) {
  s->terms = 0;
  memcpy(s->work, a, s->k);
  for (size_t p = 0; p < s->k; p++)
    if (s->known[p] && a[p]) {
      s->factors[s->terms] = a[p];
      s->sources[s->terms++] = s->c + p * s->k;
    }
  WEFT_TRY(combine(s, s->work, s->k, true));
  size_t column = 0;
  while (column < s->k && s->work[column] == 0)
    column++;
  *pivot = column;
  return WEFT_OK;
}

// x[pivot] = scale * (y reduced by the known rows)
static weft_status reduce_payload(state *s, const uint8_t *y, uint8_t scale, size_t pivot) {
  for (size_t i = 0; i < s->terms; i++) {
    const size_t p = (size_t)(s->sources[i] - s->c) / s->k;
    s->factors[i] = weft_gf256_product[scale][s->factors[i]];
    s->sources[i] = s->x + p * s->len;
  }
  s->factors[s->terms] = scale;
  s->sources[s->terms++] = y;
  return combine(s, s->x + pivot * s->len, s->len, false);
}

static weft_status clear_column(state *s, size_t pivot) {
  s->terms = 0;
  for (size_t p = 0; p < s->k; p++)
    if (s->known[p] && s->c[p * s->k + pivot]) {
      s->factors[s->terms] = s->c[p * s->k + pivot];
      s->targets[s->terms++] = s->c + p * s->k;
    }
  WEFT_TRY(spread(s, s->c + pivot * s->k, s->k));
  for (size_t i = 0; i < s->terms; i++)
    s->targets[i] = s->x + (size_t)(s->targets[i] - s->c) / s->k * s->len;
  return spread(s, s->x + pivot * s->len, s->len);
}

static weft_status take(state *s, const uint8_t *a, const uint8_t *y, uint16_t *where) {
  size_t pivot;
  *where = WEFT_NO_PIVOT;
  WEFT_TRY(reduce_vector(s, a, &pivot));
  if (pivot == s->k)
    return WEFT_OK;
  const uint8_t scale = weft_gf256_inv[s->work[pivot]];
  for (size_t c = 0; c < s->k; c++)
    s->c[pivot * s->k + c] = weft_gf256_product[scale][s->work[c]];
  WEFT_TRY(reduce_payload(s, y, scale, pivot));
  WEFT_TRY(clear_column(s, pivot));
  s->known[pivot] = 1;
  *where = (uint16_t)pivot;
  return WEFT_OK;
}

typedef struct job {
  const weft_backend *row;
  const weft_eliminate *o;
} job;

static void eliminate_task(void *user, size_t index) {
  const job *j = user;
  const weft_eliminate *o = j->o;
  state s = {.row = j->row, .k = o->k, .len = o->len};
  s.c = o->c + index * o->k * o->k;
  s.x = o->x + index * o->k * o->len;
  s.known = o->known + index * o->k;
  for (size_t i = 0; i < o->arrivals; i++) {
    const size_t at = index * o->arrivals + i;
    // Products of valid operands on one thread cannot fail.
    (void)take(&s, o->a + at * o->k, o->y + at * o->len, &o->pivot[at]);
  }
}

weft_status weft_host_eliminate(const weft_backend *row, const weft_exec *exec,
                                const weft_eliminate *o) {
  if (o->mem == WEFT_MEM_DEVICE)
    return WEFT_E_UNSUPPORTED;
  if (o->k < 1 || o->k > WEFT_PANEL_ROWS)
    return WEFT_E_ARGUMENT;
  job j = {.row = row, .o = o};
  weft_pool_run(exec->pool, o->count, eliminate_task, &j);
  return WEFT_OK;
}
