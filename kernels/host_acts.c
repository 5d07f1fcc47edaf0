// SPDX-License-Identifier: Apache-2.0
// Makes factors, and acts (host_steps.h) from their steps. Loads and stores are absorbed by
// neighbouring acts, and work on zeros is left out. Two levels of butterflies on the same four
// slots (a four) become one act, which halves what is read and written and absorbs sums of its
// results, too. Sums of the same slots become a panel, which the technique's panel function
// computes.
#include <string.h>

#include "kernels/host_steps.h"

// For each step, the nearest steps that touch the same slots.
typedef struct links {
  uint16_t next_to[WEFT_ACTS_MAX], next_from[WEFT_ACTS_MAX]; // after it; the count: none
  uint16_t last_to[WEFT_ACTS_MAX];                           // before it, plus 1; 0: none
} links;

typedef struct maker {
  const weft_factors *f;
  weft_acts *acts;
  links links;
  uint16_t place[WEFT_ACT_SLOTS];    // where a slot's value is
  uint16_t *written[WEFT_ACT_SLOTS]; // the output, of the act that made it, that says so
  bool read[WEFT_ACT_SLOTS];         // whether it was read since
  bool joined[WEFT_ACTS_MAX];        // steps that an earlier act has absorbed
  size_t panels, operands;           // made so far; acts->entries counts entries
} maker;

static void link_steps(maker *m) {
  const weft_factors *f = m->f;
  uint16_t next[WEFT_ACT_SLOTS], last[WEFT_ACT_SLOTS] = {0};
  for (size_t slot = 0; slot < f->slots; slot++)
    next[slot] = (uint16_t)f->count;
  for (size_t at = f->count; at-- > 0;) {
    const weft_step *s = &f->steps[at];
    if (s->kind != WEFT_STEP_STORE)
      m->links.next_to[at] = next[s->to];
    if (s->kind != WEFT_STEP_LOAD)
      m->links.next_from[at] = next[s->from], next[s->from] = (uint16_t)at;
    if (s->kind != WEFT_STEP_STORE)
      next[s->to] = (uint16_t)at;
  }
  for (size_t at = 0; at < f->count; at++) {
    const weft_step *s = &f->steps[at];
    if (s->kind != WEFT_STEP_STORE)
      m->links.last_to[at] = last[s->to], last[s->to] = (uint16_t)(at + 1);
    if (s->kind != WEFT_STEP_LOAD)
      last[s->from] = (uint16_t)(at + 1);
  }
}

// Returns the next step after `at` that touches `slot`, one of that step's slots; the count: none.
static size_t next_touch(const maker *m, size_t at, uint8_t slot) {
  const weft_step *s = &m->f->steps[at];
  const bool is_to = s->kind != WEFT_STEP_STORE && s->to == slot;
  return is_to ? m->links.next_to[at] : m->links.next_from[at];
}

// Finds the steps of the four that begins with step `at`: first[0] = at and first[1] are followed,
// on their slots, by second[0] and second[1]. Returns false if there is none.
static bool find_four(const maker *m, size_t at, size_t *first, size_t *second) {
  const weft_factors *f = m->f;
  const weft_step *a = &f->steps[at];
  const bool inverse = a->kind == WEFT_STEP_INVERSE;
  second[0] = next_touch(m, at, a->to);
  second[1] = next_touch(m, at, a->from);
  if (second[0] == f->count || second[1] == f->count || second[0] == second[1])
    return false;
  const weft_step *c = &f->steps[second[0]], *d = &f->steps[second[1]];
  // a = (0, 1) then c = (0, 2), d = (1, 3); or a = (0, 2) then c = (0, 1), d = (2, 3).
  if (c->kind != a->kind || d->kind != a->kind || c->to != a->to || d->to != a->from ||
      (inverse && c->c != d->c))
    return false;
  for (size_t b = at + 1; b < second[0] && b < second[1]; b++) {
    const weft_step *s = &f->steps[b];
    if (s->kind != a->kind || s->to != c->from || s->from != d->from)
      continue;
    if (next_touch(m, b, s->to) != second[0] || next_touch(m, b, s->from) != second[1] ||
        (!inverse && s->c != a->c))
      return false;
    first[0] = at;
    first[1] = b;
    return true;
  }
  return false;
}

static void count_work(const weft_step *s, size_t *products, size_t *sums) {
  *products += s->kind != WEFT_STEP_LOAD && s->kind != WEFT_STEP_STORE && s->c > 1;
  *sums += weft_step_is_butterfly(s);
  *sums += (weft_step_is_butterfly(s) || s->kind == WEFT_STEP_ADD) && s->c > 0;
}

static void count_cost(weft_factors *f) {
  for (size_t i = 0; i < f->count; i++) {
    const weft_step *s = &f->steps[i];
    f->repeated += i && weft_step_is_product(s) && weft_step_is_product(s - 1) &&
                   s->from == s[-1].from && s->c > 1;
    count_work(s, &f->products, &f->sums);
  }
}

static uint16_t read_slot(maker *m, weft_act *act, uint8_t slot) {
  m->read[slot] = true;
  m->acts->zeros = m->acts->zeros || m->place[slot] == WEFT_PLACE_ZERO;
  act->reads = act->reads || m->place[slot] >= WEFT_PLACE_X;
  return m->place[slot];
}

static void write_slot(maker *m, uint16_t *output, uint8_t slot) {
  *output = m->place[slot] = slot;
  m->written[slot] = output;
  m->read[slot] = false;
}

static bool is_zero(const maker *m, uint8_t slot) { return m->place[slot] == WEFT_PLACE_ZERO; }

// Returns whether a step works only on zeros.
static bool is_idle(const maker *m, const weft_step *s) {
  return (weft_step_is_butterfly(s) && is_zero(m, s->to) && is_zero(m, s->from)) ||
         (weft_step_is_product(s) && is_zero(m, s->from));
}

static weft_act *new_act(maker *m, weft_act_kind kind) {
  weft_act *act = &m->acts->act[m->acts->count];
  memset(act, 0, sizeof *act);
  act->kind = (uint8_t)kind;
  return act;
}

// Returns whether the value of a slot after step `at` is never used.
static bool is_dead(const maker *m, size_t at, uint8_t slot) {
  const size_t next = next_touch(m, at, slot);
  const weft_step *s = &m->f->steps[next];
  return next == m->f->count || s->kind == WEFT_STEP_LOAD ||
         (s->kind == WEFT_STEP_SET && s->to == slot && (s->from != slot || s->c == 0));
}

// Returns the place of the row of X that a slot holds before step `at`; 0: it holds something else.
static uint16_t row_before(const weft_factors *f, size_t at, uint8_t slot) {
  while (at-- > 0) {
    const weft_step *s = &f->steps[at];
    const bool writes = s->kind != WEFT_STEP_STORE && s->to == slot;
    if (writes && s->kind == WEFT_STEP_LOAD)
      return (uint16_t)(WEFT_PLACE_X + s->from);
    if (writes || (weft_step_is_butterfly(s) && s->from == slot))
      break;
  }
  return 0;
}

// The slots in which an act of butterflies makes its results, and its last step that touches each.
typedef struct results {
  size_t count; // 2 or 4
  bool inverse;
  uint8_t slot[4];
  size_t last[4];
} results;

static bool is_result(const results *r, uint8_t slot) {
  bool found = false;
  for (size_t i = 0; i < r->count; i++)
    found = found || r->slot[i] == slot;
  return found;
}

// Returns whether the act at step `at` can absorb step `next`, with constant c, which joins result
// i that nothing else needs. Results of inverse butterflies may set other slots, or be added to
// them, if nothing touches those in between; to those of forward butterflies rows of X may be
// added.
static bool can_join(const maker *m, const results *r, size_t at, size_t i, size_t next,
                     uint8_t c) {
  const weft_step *s = &m->f->steps[next];
  if (next == m->f->count || !weft_step_is_product(s) || s->c != c || c == 0)
    return false;
  if (s->to == s->from)
    return r->inverse && s->to == r->slot[i];
  if (r->inverse)
    return s->from == r->slot[i] && !is_result(r, s->to) && m->links.last_to[next] <= at &&
           is_dead(m, next, s->from);
  return s->kind == WEFT_STEP_ADD && s->to == r->slot[i] && row_before(m->f, next, s->from);
}

// Makes the act absorb one later step for each result, or none at all.
static void join(maker *m, const results *r, size_t at, weft_act *act) {
  const weft_factors *f = m->f;
  size_t next[4] = {next_touch(m, r->last[0], r->slot[0])};
  if (next[0] == f->count)
    return;
  for (size_t i = 0; i < r->count; i++) {
    next[i] = next_touch(m, r->last[i], r->slot[i]);
    if (!can_join(m, r, at, i, next[i], f->steps[next[0]].c))
      return;
    for (size_t j = 0; j < i; j++)
      if (next[j] == next[i] || (r->inverse && f->steps[next[j]].to == f->steps[next[i]].to))
        return;
  }
  act->joins = true;
  act->c[3] = f->steps[next[0]].c;
  for (size_t i = 0; i < r->count; i++) {
    const weft_step *s = &f->steps[next[i]];
    if (r->inverse && s->kind == WEFT_STEP_SET)
      m->place[s->to] = WEFT_PLACE_ZERO;
    act->more[i] = r->inverse ? read_slot(m, act, s->to) : row_before(f, next[i], s->from);
    act->reads = act->reads || act->more[i] >= WEFT_PLACE_X;
    m->joined[next[i]] = true;
  }
  for (size_t i = 0; i < r->count; i++)
    write_slot(m, &act->out[i], r->inverse ? f->steps[next[i]].to : r->slot[i]);
}

// Completes an act of butterflies whose inputs are set.
static void add_results(maker *m, const results *r, size_t at, weft_act *act) {
  join(m, r, at, act);
  for (size_t i = 0; i < r->count && !act->joins; i++)
    write_slot(m, &act->out[i], r->slot[i]);
  m->acts->count++;
}

static void add_four(maker *m, size_t at, const size_t *first, const size_t *second) {
  const weft_factors *f = m->f;
  const weft_step *a = &f->steps[first[0]], *b = &f->steps[first[1]];
  const weft_step *c = &f->steps[second[0]], *d = &f->steps[second[1]];
  const bool inverse = a->kind == WEFT_STEP_INVERSE;
  const size_t x = inverse; // second[x] is the step that touches slot 1
  const results r = {.count = 4,
                     .inverse = inverse,
                     .slot = {a->to, inverse ? a->from : b->to, inverse ? b->to : a->from, b->from},
                     .last = {second[0], second[x], second[!x], second[1]}};
  if (is_zero(m, r.slot[0]) && is_zero(m, r.slot[1]) && is_zero(m, r.slot[2]) &&
      is_zero(m, r.slot[3]))
    return;
  weft_act *act = new_act(m, inverse ? WEFT_ACT_INVERSE4 : WEFT_ACT_FORWARD4);
  act->c[0] = inverse ? a->c : c->c;
  act->c[1] = inverse ? b->c : d->c;
  act->c[2] = inverse ? c->c : a->c;
  for (size_t i = 0; i < 4; i++)
    act->in[i] = read_slot(m, act, r.slot[i]);
  add_results(m, &r, at, act);
}

static void add_two(maker *m, size_t at) {
  const weft_step *s = &m->f->steps[at];
  const bool inverse = s->kind == WEFT_STEP_INVERSE;
  const results r = {.count = 2, .inverse = inverse, .slot = {s->to, s->from}, .last = {at, at}};
  if (is_idle(m, s))
    return;
  weft_act *act = new_act(m, inverse ? WEFT_ACT_INVERSE : WEFT_ACT_FORWARD);
  act->c[0] = s->c;
  act->in[0] = read_slot(m, act, s->to);
  act->in[1] = read_slot(m, act, s->from);
  add_results(m, &r, at, act);
}

// Adds an act for a single product.
static void add_one(maker *m, const weft_step *s) {
  const bool sets = s->kind == WEFT_STEP_SET;
  if (s->c == 0 || is_zero(m, s->from)) {
    if (sets)
      m->place[s->to] = WEFT_PLACE_ZERO;
    return;
  }
  weft_act *act = new_act(m, sets || is_zero(m, s->to) ? WEFT_ACT_SET : WEFT_ACT_ADD);
  act->c[0] = s->c;
  size_t inputs = 0;
  if (act->kind == WEFT_ACT_ADD)
    act->in[inputs++] = read_slot(m, act, s->to);
  act->in[inputs] = read_slot(m, act, s->from);
  write_slot(m, &act->out[0], s->to);
  m->acts->count++;
}

// Makes the act whose result is stored write the row of Y directly. Returns false if the result has
// been read meanwhile or is in no slot.
static bool move_store(maker *m, const weft_step *s) {
  if (m->place[s->from] >= WEFT_PLACE_ZERO || m->read[s->from])
    return false;
  *m->written[s->from] = m->place[s->from] = (uint16_t)(WEFT_PLACE_Y + s->to);
  m->acts->home[s->to] = s->from;
  m->acts->homes++;
  return true;
}

static void add_store(maker *m, const weft_step *s) {
  if (move_store(m, s))
    return;
  weft_act *act = new_act(m, WEFT_ACT_SET);
  act->c[0] = 1;
  act->in[0] = m->place[s->from];
  m->acts->zeros = m->acts->zeros || is_zero(m, s->from);
  act->out[0] = (uint16_t)(WEFT_PLACE_Y + s->to);
  m->acts->count++;
}

// Returns how many steps from `at` on set or add to the same slot, by products of other slots.
static size_t terms_at(const weft_factors *f, size_t at) {
  const weft_step *s = &f->steps[at];
  size_t terms = 0;
  if (s->kind == WEFT_STEP_SET ? s->from == s->to : s->kind != WEFT_STEP_ADD)
    return 0;
  for (terms = 1; at + terms < f->count; terms++)
    if (s[terms].kind != WEFT_STEP_ADD || s[terms].to != s->to)
      break;
  return terms;
}

// Returns whether step `at` stores `slot`, an output of a panel, and the panel may write the row of
// Y instead: a slot that it adds to must not have been read.
static bool stores_output(const maker *m, const weft_factors *f, size_t at, uint8_t slot,
                          bool accumulate) {
  return at < f->count && f->steps[at].kind == WEFT_STEP_STORE && f->steps[at].from == slot &&
         !(accumulate && m->read[slot]);
}

// Returns whether the steps from `at` on are one more output of a panel that has the sources of
// `first`.
static bool same_terms(const maker *m, const weft_factors *f, const weft_step *first, size_t terms,
                       size_t at) {
  const weft_step *s = &f->steps[at];
  bool same = s->kind == first->kind && terms_at(f, at) == terms;
  for (size_t t = 0; same && t < terms; t++)
    same = s[t].from == first[t].from && !m->joined[at + t];
  return same;
}

// Finds the panel that begins with step `at`. Returns where it ends, or `at` if there is none.
// Outputs are never sources, since a slot is not a term of its own. They are distinct slots, except
// that a slot may be reused once its row is stored.
static size_t find_panel(const maker *m, const weft_factors *f, size_t at, weft_act_panel *panel) {
  const weft_step *first = &f->steps[at];
  const size_t terms = terms_at(f, at);
  const bool adds = first->kind == WEFT_STEP_ADD;
  bool taken[WEFT_ACT_SLOTS] = {false};
  size_t rows = 0, end = at;
  while (terms > 1 && terms <= WEFT_ACT_ROWS && rows < WEFT_ACT_ROWS && end < f->count &&
         same_terms(m, f, first, terms, end)) {
    const uint8_t to = f->steps[end].to;
    if (taken[to] || (adds && m->place[to] != to))
      break;
    const bool stored = stores_output(m, f, end + terms, to, adds);
    taken[to] = adds || !stored;
    end += terms + stored;
    rows++;
  }
  *panel = (weft_act_panel){.m = (uint16_t)rows,
                            .k = (uint16_t)terms,
                            .operand = (uint16_t)m->operands,
                            .entry = (uint16_t)m->acts->entries,
                            .accumulate = adds};
  return rows * terms > 2 ? end : at;
}

static void add_panel(maker *m, const weft_factors *f, size_t at, const weft_act_panel *panel) {
  weft_act *act = new_act(m, WEFT_ACT_PANEL);
  uint16_t *operand = m->acts->operands + m->operands;
  for (size_t t = 0; t < panel->k; t++)
    *operand++ = read_slot(m, act, f->steps[at + t].from);
  for (size_t i = 0; i < panel->m; i++, operand++) {
    const uint8_t to = f->steps[at].to;
    for (size_t t = 0; t < panel->k; t++)
      m->acts->a[m->acts->entries++] = f->steps[at + t].c;
    at += panel->k;
    if (!panel->accumulate)
      write_slot(m, operand, to);
    if (stores_output(m, f, at, to, panel->accumulate))
      (void)move_store(m, &f->steps[at++]);
    *operand = m->place[to];
    m->read[to] = m->read[to] || panel->accumulate; // so that its first writer's output stays put
  }
  act->in[0] = (uint16_t)m->panels;
  m->acts->panels[m->panels++] = *panel;
  m->operands += (size_t)panel->k + panel->m;
  m->acts->count++;
}

// Makes acts from the steps. Returns false if there are too many.
static bool make(const weft_factors *f, weft_acts *acts) {
  if (f->slots > WEFT_ACT_SLOTS || f->count > WEFT_ACTS_MAX)
    return false;
  maker m; // large; most of it is set only where it is needed
  m.f = f;
  m.acts = acts;
  m.panels = m.operands = 0;
  memset(m.place, 0, sizeof m.place);
  memset(m.joined, 0, f->count);
  link_steps(&m);
  size_t first[2], second[2];
  uint16_t four[WEFT_ACTS_MAX]; // first step of the four that a step belongs to, plus 1; 0: none
  memset(four, 0, f->count * sizeof *four);
  acts->slots = f->slots;
  for (size_t at = 0; at < f->count; at++)
    if (!four[at] && weft_step_is_butterfly(&f->steps[at]) && find_four(&m, at, first, second) &&
        !four[first[1]] && !four[second[0]] && !four[second[1]])
      four[at] = four[first[1]] = four[second[0]] = four[second[1]] = (uint16_t)(at + 1);
  for (size_t at = 0; at < f->count; at++) {
    const weft_step *s = &f->steps[at];
    weft_act_panel panel;
    const size_t end = find_panel(&m, f, at, &panel);
    if (end > at) {
      add_panel(&m, f, at, &panel);
      at = end - 1;
      continue;
    }
    if (!is_idle(&m, s))
      count_work(s, &acts->work.products, &acts->work.sums);
    if (m.joined[at])
      continue;
    if (four[at]) { // its act is added where the second level begins
      if (!find_four(&m, four[at] - 1u, first, second))
        return false;
      if (at == (second[0] < second[1] ? second[0] : second[1]))
        add_four(&m, at, first, second);
    } else if (s->kind == WEFT_STEP_LOAD) {
      m.place[s->to] = (uint16_t)(WEFT_PLACE_X + s->from);
    } else if (s->kind == WEFT_STEP_STORE) {
      add_store(&m, s);
    } else if (weft_step_is_butterfly(s)) {
      add_two(&m, at);
    } else {
      add_one(&m, s);
    }
  }
  return true;
}

weft_factors *weft_factors_take(const weft_factors_room *room, const weft_allocator *allocator,
                                weft_acts **acts, weft_step **steps) {
  const size_t acts_bytes = sizeof(weft_acts) + room->acts * sizeof(weft_act);
  const size_t panels_bytes = room->panels * sizeof(weft_act_panel);
  const size_t operands_bytes = room->operands * sizeof(uint16_t);
  weft_factors *made = allocator->alloc(allocator->user,
                                        sizeof *made + acts_bytes + panels_bytes + operands_bytes +
                                            room->entries + room->steps * sizeof(weft_step),
                                        _Alignof(weft_factors));
  if (!made)
    return NULL;
  *made = (weft_factors){0};
  *acts = (weft_acts *)(made + 1);
  memset(*acts, 0, sizeof **acts);
  memset((*acts)->home, WEFT_PLACE_ZERO, sizeof(*acts)->home);
  (*acts)->panels = (weft_act_panel *)((uint8_t *)*acts + acts_bytes);
  (*acts)->operands = (uint16_t *)((uint8_t *)(*acts)->panels + panels_bytes);
  (*acts)->a = (uint8_t *)(*acts)->operands + operands_bytes;
  *steps = (weft_step *)((*acts)->a + room->entries);
  return made;
}

weft_status weft_factors_new(const weft_step *steps, size_t count, size_t slots,
                             const weft_allocator *allocator, weft_factors **out) {
  // A panel is made from three or more steps; it has at most one operand more than that, and as
  // many entries.
  const weft_factors_room room = {.acts = count,
                                  .panels = count / 3 + 1,
                                  .operands = 2 * count,
                                  .entries = count,
                                  .steps = count};
  weft_acts *acts;
  weft_step *copy;
  weft_factors *made = *out = weft_factors_take(&room, allocator, &acts, &copy);
  if (!made)
    return WEFT_E_NOMEM;
  memcpy(copy, steps, count * sizeof *steps);
  *made = (weft_factors){.slots = slots, .count = count, .steps = copy};
  count_cost(made);
  made->acts = make(made, acts) ? acts : NULL;
  if (made->acts)
    weft_acts_widen(acts);
  return WEFT_OK;
}

void weft_factors_free(weft_factors *factors, const weft_allocator *allocator) {
  if (factors)
    allocator->free(allocator->user, factors);
}
