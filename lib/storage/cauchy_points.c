// SPDX-License-Identifier: Apache-2.0
// Sets up the points and scales of a Cauchy-like matrix.
//
// Source scales of the form d(j) = s (a + y(j)), as Jerasure has them, cost nothing: (a + y) / (x +
// y) = 1 + (a + x) / (x + y), so the sum of all sources is added at the end instead.
#include "lib/storage/cauchy_points.h"

enum { NONE = WEFT_NO_POINT };

// Whether the source scales are s (a + y) and not all equal; requires that no point is infinite.
static bool find_level(const weft_cauchy_points *p, const weft_gfw *field,
                       const weft_cauchy_matrix *m, uint8_t *a, uint8_t *s) {
  const uint8_t *u = m->source_scale;
  if (m->sources < 3 || u[0] == u[1] || p->infinite_source != NONE || p->infinite_target != NONE)
    return false;
  const uint8_t y0 = (uint8_t)m->source[0], y1 = (uint8_t)m->source[1];
  const uint8_t sum = weft_gfw_mul(field, u[0], y1) ^ weft_gfw_mul(field, u[1], y0);
  *a = weft_gfw_div(field, sum, u[0] ^ u[1]);
  if (*a == y0)
    return false;
  *s = weft_gfw_div(field, u[0], *a ^ y0);
  for (size_t j = 0; j < m->sources; j++)
    if (weft_gfw_mul(field, *s, *a ^ (uint8_t)m->source[j]) != u[j])
      return false;
  return true;
}

// Entries become (s / v) (1 + (a + x) / (x + y)): target scale v / (s (a + x)), plus s / v times
// the sum of all sources. A target at `a` itself is that sum alone, like one at infinity.
static void level_scales(weft_cauchy_points *p, const weft_gfw *field, const weft_cauchy_matrix *m,
                         uint8_t a, uint8_t s) {
  for (size_t j = 0; j < m->sources; j++)
    p->source_scale[m->source[j]] = 1;
  for (size_t i = 0; i < m->targets; i++) {
    const uint8_t x = (uint8_t)m->target[i], v = m->target_scale[i];
    p->sum_scale[i] = weft_gfw_div(field, s, v);
    if (x != a) {
      p->target_scale[x] = weft_gfw_div(field, v, weft_gfw_mul(field, s, a ^ x));
      continue;
    }
    p->target_at[x] = NONE;
    p->infinite_target = (int16_t)i;
  }
}

void weft_cauchy_points_set(weft_cauchy_points *p, const weft_gfw *field,
                            const weft_cauchy_matrix *m) {
  p->infinite_source = p->infinite_target = NONE;
  for (size_t x = 0; x < WEFT_POINTS; x++)
    p->source_at[x] = p->target_at[x] = NONE;
  size_t last = 0;
  for (size_t j = 0; j < m->sources; j++) {
    const size_t y = m->source[j];
    if (y == WEFT_POINT_INFINITE) {
      p->infinite_source = (int16_t)j;
      continue;
    }
    p->source_at[y] = (int16_t)j;
    p->source_scale[y] = m->source_scale[j];
    last = y > last ? y : last;
  }
  for (size_t i = 0; i < m->targets; i++) {
    const size_t x = m->target[i];
    if (x == WEFT_POINT_INFINITE) {
      p->infinite_target = (int16_t)i;
      p->sum_scale[i] = weft_gfw_div(field, 1, m->target_scale[i]);
      continue;
    }
    p->target_at[x] = (int16_t)i;
    p->target_scale[x] = m->target_scale[i];
    last = x > last ? x : last;
  }
  uint8_t a = 0, s = 0;
  p->levelled = find_level(p, field, m, &a, &s);
  if (p->levelled)
    level_scales(p, field, m, a, s);
  p->sources_before[0] = p->targets_before[0] = 0;
  for (size_t x = 0; x < WEFT_POINTS; x++) {
    p->sources_before[x + 1] = (uint16_t)(p->sources_before[x] + (p->source_at[x] != NONE));
    p->targets_before[x + 1] = (uint16_t)(p->targets_before[x] + (p->target_at[x] != NONE));
  }
  for (p->levels = 0; (size_t)1 << p->levels <= last;)
    p->levels++;
}
