// SPDX-License-Identifier: Apache-2.0
// Products with Cauchy-like matrices by additive Fourier transforms (after Gao and Mateer, and Lin,
// Chung and Han's basis).
//
// A block is the points 2^s * c to 2^s * (c + 1) - 1: a coset of the subspace V(s) = {0..2^s - 1}.
// The vanishing polynomial S(s) of V(s) has a constant derivative g(s), and is constant on every
// other coset. The contribution of the sources of a block Y to the targets of another block X, the
// sum of d(y) / (x + y), is therefore a constant, g(s) / S(s)(X + Y), times the values in X of the
// polynomial that takes the values d in Y. An inverse transform finds that polynomial in the basis
// of products of S, and a transform evaluates what all blocks have added together; both consist of
// butterflies whose factors are W(s) = S(s) / S(s)(2^s).
//
// A meeting adds the polynomial of a block of sources to that of a block of targets of the same
// size. Blocks meet at the largest size at which that pays, as in a multipole method: a block that
// has sources and targets is halved until its halves can meet. Polynomials of larger blocks are
// made from those of their halves, so that all sizes share one inverse transform.
//
// Infinity: a source there adds a constant to every polynomial of targets. A target there is the
// sum of all sources; the last coefficient of a block's polynomial is the sum of its own sources.
#include "lib/storage/cauchy_steps.h"

#include <string.h>

#include "lib/storage/cauchy_points.h"

enum { LEVELS = 9, NONE = WEFT_NO_POINT, MEETINGS = 2048 };

// Block y of sources, of 2^level points, adds to block x of targets.
typedef struct meeting {
  uint8_t level, x, y;
  int16_t before; // previous meeting of the same block of sources, or NONE
} meeting;

// How blocks meet: no block is larger than 2^level_most, and no block of targets is less than
// `least` eighths full if it could be halved instead.
typedef struct layout {
  size_t level_most, least;
} layout;

struct weft_cauchy_writer {
  const weft_gfw *field;
  uint8_t vanishing[LEVELS][WEFT_POINTS]; // S(level) at every point
  uint8_t twiddle[LEVELS][WEFT_POINTS];   // W(level)
  uint8_t derivative[LEVELS];             // g(level)

  const weft_cauchy_matrix *matrix;
  weft_cauchy_points at;

  weft_step_list *list;
  const weft_cauchy_ends *ends;
  layout layout;
  meeting meetings[MEETINGS];
  size_t meeting_count;
  size_t meetings_cost;               // estimate, not above the true cost
  bool too_many;                      // too many meetings, or too costly
  size_t top;                         // the largest level of a meeting
  int16_t meets[LEVELS][WEFT_POINTS]; // the last meeting of a block of sources, by its first point
  uint8_t column[WEFT_POINTS];        // most common scale of the sources in each block,
  uint8_t row[WEFT_POINTS];           // and of the targets
  uint16_t owner[WEFT_POINTS];        // outermost blocks of targets that meet,
  uint8_t owner_level[WEFT_POINTS];   // and their levels
  size_t owners;                      // number of owners
  bool met[LEVELS][WEFT_POINTS];      // a block of targets, by its first point
  weft_multiple data[WEFT_POINTS];    // coefficients of the polynomials of sources, by point
  weft_multiple parity[LEVELS][WEFT_POINTS]; // and of targets, by level and point
  weft_multiple sum;                         // of all sources
};

typedef weft_cauchy_writer writer;

size_t weft_cauchy_writer_bytes(void) { return sizeof(writer); }

static uint8_t times(const writer *b, uint8_t x, uint8_t y) { return weft_gfw_mul(b->field, x, y); }

static uint8_t over(const writer *b, uint8_t x, uint8_t y) { return weft_gfw_div(b->field, x, y); }

void weft_cauchy_writer_init(writer *b, const weft_gfw *field) {
  const size_t points = field->order + 1u;
  memset(b, 0, sizeof *b);
  b->field = field;
  b->derivative[0] = 1;
  for (size_t x = 0; x < points; x++)
    b->vanishing[0][x] = (uint8_t)x;
  for (size_t s = 0; s < field->w; s++) {
    const uint8_t next = b->vanishing[s][(size_t)1 << s]; // at the first point outside V(s)
    // Both are linear: values at powers of two determine the others.
    for (size_t size = 1; size < points; size *= 2) {
      const uint8_t value = b->vanishing[s][size];
      b->vanishing[s + 1][size] = times(b, value, value ^ next);
      b->twiddle[s][size] = over(b, value, next);
      for (size_t x = 1; x < size; x++) {
        b->vanishing[s + 1][size + x] = b->vanishing[s + 1][size] ^ b->vanishing[s + 1][x];
        b->twiddle[s][size + x] = b->twiddle[s][size] ^ b->twiddle[s][x];
      }
    }
    b->derivative[s + 1] = times(b, b->derivative[s], next);
  }
}

// ---------------------------------------------------------------------------------------------
// Which blocks meet

static void meet(writer *b, size_t level, size_t x, size_t y) {
  // At least as many of the block's coefficients as it has sources are multiplied, and most of them
  // are added, except in the first meeting of a block of targets.
  if (b->met[level][x])
    b->meetings_cost += b->list->prices.repeated * weft_sources_in(&b->at, y, level);
  b->met[level][x] = true;
  b->too_many = b->too_many || b->meeting_count == MEETINGS ||
                b->list->cost + b->meetings_cost > b->list->cost_most;
  if (b->too_many)
    return;
  int16_t *last = &b->meets[level][y];
  b->meetings[b->meeting_count] = (meeting){(uint8_t)level, (uint8_t)x, (uint8_t)y, *last};
  *last = (int16_t)b->meeting_count++;
  b->top = level > b->top ? level : b->top;
}

// Makes block x of targets meet all other blocks of sources of its size in the same block of level
// `area`: at this level, or else by way of its halves. Its halves then meet the sources within x.
static void divide(writer *b, size_t level, size_t x, size_t area) {
  const size_t size = (size_t)1 << level, base = x >> area << area;
  const size_t full = weft_targets_in(&b->at, x, level);
  if (!full || b->too_many || !weft_sources_in(&b->at, base, area))
    return;
  const bool sparse = 8 * full <= b->layout.least * size;
  if (level == 0 || (level <= b->layout.level_most && !sparse)) {
    for (size_t y = base; y < base + ((size_t)1 << area); y += size)
      if (y != x && weft_sources_in(&b->at, y, level))
        meet(b, level, x, y);
    area = level;
  }
  if (level == 0)
    return;
  divide(b, level - 1, x, area);
  divide(b, level - 1, x + size / 2, area);
}

static bool needs_sum(const writer *b) { return b->at.levelled || b->at.infinite_target != NONE; }

// Whether the polynomial of the block of this level that contains `point`, or of a larger one, is
// needed.
static bool wanted(const writer *b, size_t level, size_t point) {
  if (needs_sum(b))
    return level <= b->top;
  for (size_t s = level; s <= b->top; s++)
    if (b->meets[s][point >> s << s] != NONE)
      return true;
  return false;
}

static uint8_t most_common(const uint8_t *scale, const int16_t *there, size_t count) {
  uint8_t seen[WEFT_POINTS] = {0}, best = 0;
  for (size_t i = 0; i < count; i++)
    if (there[i] != NONE && ++seen[scale[i]] > seen[best])
      best = scale[i];
  return best;
}

// The most common scale of a block goes into the constants of its meetings; other scales are
// multiplied one by one.
static void share_scales(writer *b) {
  const size_t size = (size_t)1 << b->top;
  for (size_t y = 0; y < WEFT_POINTS; y += size)
    memset(b->column + y, most_common(b->at.source_scale + y, b->at.source_at + y, size), size);
  for (size_t level = b->top + 1; level-- > 0;)
    for (size_t i = 0; i < b->meeting_count; i++) {
      const meeting *one = &b->meetings[i];
      const size_t x = one->x, points = (size_t)1 << level;
      if (one->level != level || b->row[x])
        continue;
      memset(b->row + x, most_common(b->at.target_scale + x, b->at.target_at + x, points), points);
      b->owner[b->owners] = one->x;
      b->owner_level[b->owners++] = one->level;
    }
}

// ---------------------------------------------------------------------------------------------
// Steps

// Whether the block's targets are the values of its polynomial without further factors.
static bool is_even(const writer *b, size_t level, size_t x) {
  for (size_t z = x; z < x + ((size_t)1 << level); z++)
    if (b->at.target_at[z] != NONE && b->at.target_scale[z] != b->row[x])
      return false;
  return true;
}

// Adds the polynomial of a block of sources to those of the blocks that it meets. The factor that a
// block's first meeting leaves might persist to the end, where it needs a product of its own; then
// it may be better to multiply at once.
static void add_to_targets(writer *b, size_t level, size_t y) {
  const bool stays = wanted(b, level + 1, y);
  uint8_t x[WEFT_POINTS], constant[WEFT_POINTS];
  bool settles[WEFT_POINTS];
  size_t met = 0;
  for (int16_t i = b->meets[level][y]; i != NONE; i = b->meetings[i].before) {
    const meeting *one = &b->meetings[i];
    const uint8_t shared = over(b, b->column[y], b->row[one->x]);
    x[met] = one->x;
    settles[met] = b->list->early && !b->ends->to && weft_is_zero(b->parity[level][one->x]) &&
                   is_even(b, level, one->x);
    constant[met++] =
        times(b, shared, over(b, b->derivative[level], b->vanishing[level][one->x ^ y]));
  }
  for (size_t q = 0; q < (size_t)1 << level; q++) {
    for (size_t i = met; i-- > 0;)
      weft_value_add(b->list, &b->parity[level][x[i] + q], b->data[y + q], constant[i]);
    if (!stays)
      weft_value_give(b->list, &b->data[y + q]);
    for (size_t i = met; i-- > 0;)
      if (settles[i] && !weft_is_zero(b->parity[level][x[i] + q]))
        weft_value_settle(b->list, &b->parity[level][x[i] + q]);
  }
}

static bool is_zeros(const writer *b, int16_t j) {
  return b->ends->rows && (size_t)j >= b->ends->rows;
}

static weft_multiple source(const writer *b, int16_t j) {
  if (is_zeros(b, j))
    return weft_value_zeros(b->list);
  return b->ends->from ? b->ends->from[j] : weft_value_load(b->list, (size_t)j);
}

// The last coefficient of each block of the largest size is the sum of its sources.
static void add_to_sum(writer *b, size_t y) {
  if (needs_sum(b))
    weft_value_add(b->list, &b->sum, b->data[y + ((size_t)1 << b->top) - 1], b->column[y]);
}

static void rise(writer *b, size_t level, size_t y) {
  const size_t half = ((size_t)1 << level) / 2;
  if (b->list->failed || !weft_sources_in(&b->at, y, level))
    return;
  if (level == 0) {
    b->data[y] = source(b, b->at.source_at[y]);
    if (!is_zeros(b, b->at.source_at[y]))
      weft_value_scale(b->list, &b->data[y], over(b, b->at.source_scale[y], b->column[y]));
    weft_value_settle(b->list, &b->data[y]);
  } else {
    rise(b, level - 1, y);
    rise(b, level - 1, y + half);
    if (!wanted(b, level, y))
      return;
    for (size_t q = 0; q < half; q++)
      weft_value_inverse(b->list, &b->data[y + q], &b->data[y + half + q],
                         b->twiddle[level - 1][y]);
  }
  if (level == b->top)
    add_to_sum(b, y);
  add_to_targets(b, level, y);
}

// Adds a larger block's contribution to one of its halves.
static void hand_down(writer *b, size_t level, size_t x, weft_multiple *value) {
  weft_multiple *own = &b->parity[level][x];
  if (weft_is_zero(*value))
    return;
  weft_value_add(b->list, value, *own, 1);
  weft_value_give(b->list, own);
  *own = *value;
}

// Turns one pair of coefficients p, r of block x of `level` into one coefficient of each half that
// has targets: p + w r, and that plus r.
static void part(writer *b, size_t level, size_t x, size_t q) {
  const size_t half = ((size_t)1 << level) / 2;
  const bool low = weft_targets_in(&b->at, x, level - 1),
             high = weft_targets_in(&b->at, x + half, level - 1);
  const uint8_t w = b->twiddle[level - 1][x];
  weft_multiple *p = &b->parity[level][x + q], *r = &b->parity[level][x + half + q];
  if (low && high) {
    weft_value_forward(b->list, p, r, w);
  } else {
    weft_value_add(b->list, p, *r, low ? w : w ^ 1);
    weft_value_give(b->list, r);
  }
  if (low)
    hand_down(b, level - 1, x + q, p);
  if (high)
    hand_down(b, level - 1, x + half + q, low ? r : p);
}

// Stores the complete target i, or passes it on.
static void leave(writer *b, size_t i, weft_multiple value) {
  const weft_cauchy_ends *e = b->ends;
  if (weft_is_zero(value)) { // no entry of the matrix is zero
    b->list->failed = true;
    return;
  }
  if (e->to) {
    e->to[i] = value;
    return;
  }
  if (e->added) {
    weft_multiple added = e->added[i];
    weft_value_add(b->list, &value, added, 1);
    weft_value_give(b->list, &added);
  }
  weft_value_store(b->list, i, &value);
}

static void descend(writer *b, size_t level, size_t x) {
  const size_t half = ((size_t)1 << level) / 2;
  if (b->list->failed || !weft_targets_in(&b->at, x, level))
    return;
  if (level == 0) {
    const size_t i = (size_t)b->at.target_at[x];
    weft_multiple value = b->parity[0][x];
    weft_value_scale(b->list, &value, over(b, b->row[x], b->at.target_scale[x]));
    if (b->at.levelled)
      weft_value_add(b->list, &value, b->sum, b->at.sum_scale[i]);
    leave(b, i, value);
    return;
  }
  for (size_t q = 0; q < half; q++)
    part(b, level, x, q);
  descend(b, level - 1, x);
  descend(b, level - 1, x + half);
}

// Adds the source at infinity: a constant in the polynomial of every outermost block of targets.
static void add_infinite_source(writer *b) {
  const int16_t j = b->at.infinite_source;
  if (j == NONE)
    return;
  weft_multiple value = source(b, j);
  for (size_t o = 0; o < b->owners; o++)
    weft_value_add(b->list, &b->parity[b->owner_level[o]][b->owner[o]], value,
                   over(b, b->matrix->source_scale[j], b->row[b->owner[o]]));
  weft_value_give(b->list, &value);
}

static void add_infinite_target(writer *b) {
  const int16_t i = b->at.infinite_target;
  if (i != NONE) {
    weft_value_scale(b->list, &b->sum, b->at.sum_scale[i]);
    leave(b, (size_t)i, b->sum);
  } else {
    weft_value_give(b->list, &b->sum);
  }
}

// Transforms blocks in the order of their first sources.
static void rise_all(writer *b) {
  const size_t size = (size_t)1 << b->top;
  for (size_t j = 0; j < b->matrix->sources; j++) {
    const size_t y = b->matrix->source[j] == WEFT_POINT_INFINITE
                         ? WEFT_POINTS
                         : b->matrix->source[j] / size * size;
    bool first = y < WEFT_POINTS;
    for (size_t before = y; first && before < y + size; before++)
      first = b->at.source_at[before] == NONE || (size_t)b->at.source_at[before] >= j;
    if (first)
      rise(b, b->top, y);
  }
}

// Whether rows of X are loaded in order.
static bool in_order(const writer *b, size_t begin) {
  size_t next = 0;
  for (size_t i = begin; i < b->list->count; i++)
    if (b->list->step[i].kind == WEFT_STEP_LOAD && b->list->step[i].from != next++)
      return false;
  return true;
}

// Lists the meetings of the current layout; returns false if there are too many.
static bool lay_out(writer *b) {
  b->meeting_count = b->meetings_cost = b->top = b->owners = 0;
  b->too_many = false;
  memset(b->meets, 0xFF, sizeof b->meets);
  memset(b->met, 0, sizeof b->met);
  divide(b, b->at.levels, 0, b->at.levels);
  return !b->too_many;
}

// Appends the steps of the current layout to the list; returns false if it cannot be used.
static bool build(writer *b) {
  const size_t begin = b->list->count;
  b->sum = WEFT_ZERO;
  memset(b->row, 0, sizeof b->row);
  memset(b->data, 0, sizeof b->data);
  memset(b->parity, 0, sizeof b->parity);
  share_scales(b);
  rise_all(b);
  add_infinite_source(b);
  descend(b, b->at.levels, 0);
  add_infinite_target(b);
  return !b->list->failed && in_order(b, begin);
}

// Layouts with the same meetings are the same.
static size_t hash_meetings(const writer *b) {
  size_t hash = b->meeting_count;
  for (size_t i = 0; i < b->meeting_count; i++) {
    const meeting *one = &b->meetings[i];
    hash = (hash ^ ((size_t)one->level << 16 | (size_t)one->x << 8 | one->y)) *
           (size_t)UINT64_C(0x9E3779B97F4A7C15);
    hash ^= hash >> 15;
  }
  return hash;
}

// Packs a layout into a nonzero byte.
static uint8_t pack_layout(const layout *l) { return (uint8_t)(l->level_most * 8 + l->least); }

static layout unpack_layout(uint8_t packed) { return (layout){packed / 8u, packed % 8u}; }

bool weft_cauchy_steps(writer *b, const weft_cauchy_matrix *matrix, const weft_cauchy_ends *ends,
                       weft_step_list *list) {
  enum { LayoutsMost = 12 };
  const size_t cost_most = list->cost_most;
  size_t rows = 0, tried[LayoutsMost], count = 0;
  layout found = {0, 0};
  weft_step_mark before;
  if (list->failed)
    return false;
  weft_step_list_mark(list, &before);
  b->matrix = matrix;
  weft_cauchy_points_set(&b->at, b->field, matrix);
  b->list = list;
  b->ends = ends;
  if (ends->layout && *ends->layout) {
    b->layout = unpack_layout(*ends->layout);
    if (lay_out(b) && build(b))
      return true;
    weft_step_list_take_back(list, &before);
  }
  while ((size_t)1 << rows < matrix->targets)
    rows++;
  // Tries blocks of about as many points as there are targets.
  bool known = false;
  for (size_t level = rows > 2 ? rows - 2 : 1; level < b->at.levels && level <= rows + 1; level++)
    for (size_t eighths = 2; eighths <= 6; eighths += 2) {
      b->layout = (layout){level, eighths};
      if (!lay_out(b))
        continue;
      bool again = false;
      tried[count] = hash_meetings(b);
      for (size_t t = 0; t < count && !again; t++)
        again = tried[t] == tried[count];
      if (again)
        continue;
      count++;
      if (build(b)) {
        list->cost_most = list->cost - 1; // bound for other layouts
        found = b->layout;
        known = true;
      }
      weft_step_list_take_back(list, &before);
    }
  list->cost_most = cost_most;
  b->layout = found;
  if (known && ends->layout)
    *ends->layout = pack_layout(&found);
  if (known && lay_out(b) && build(b))
    return true;
  weft_step_list_take_back(list, &before);
  return false;
}
