// SPDX-License-Identifier: Apache-2.0
// Detours (factors.h): copies the known product's acts with other rows for operands, leaves in
// slots what they would store, and appends the small matrix as one panel or two. That is some forty
// acts; writing the same down step by step takes six times as long, a tenth of a short recovery.
#include <string.h>

#include "kernels/host_steps.h"

typedef struct maker {
  const weft_acts *known;
  const weft_detour *detour;
  weft_acts *acts;
  uint16_t holder[WEFT_ACT_SLOTS]; // 1 + the row of the known Y that a slot holds; 0: none
  bool added[WEFT_ACT_ROWS];       // whether a row of the known Y has had its row of X added
  uint16_t to[WEFT_ACT_ROWS];      // the row of Y that a row of the known Y becomes, or WEFT_NO_ROW
  size_t whole;                    // acts left of a transform that takes one pass
  size_t used;                     // number of rows of the known Y that the detour uses
  bool failed;
} maker;

static weft_factors_room room_for(const weft_acts *known, const weft_detour *d) {
  weft_factors_room room = {.acts = known->count + d->sources + 2,
                            .panels = 2,
                            .operands = 2 * d->sources + d->m,
                            .entries = known->entries + d->sources * d->m};
  for (size_t a = 0; a < known->count; a++)
    if (known->act[a].kind == WEFT_ACT_PANEL) {
      const weft_act_panel *panel = &known->panels[known->act[a].in[0]];
      room.panels++;
      room.operands += (size_t)panel->k + panel->m;
    }
  return room;
}

static uint16_t row_place(maker *m, uint16_t row) {
  m->acts->zeros = m->acts->zeros || row == WEFT_NO_ROW;
  return row == WEFT_NO_ROW ? WEFT_PLACE_ZERO : (uint16_t)(WEFT_PLACE_X + row);
}

// Translates a place that is read. Fails for rows of Y, which may only be added to, since rows of X
// are added to them meanwhile.
static uint16_t source_place(maker *m, uint16_t place) {
  m->failed = m->failed || place >= WEFT_PLACE_Y;
  m->acts->zeros = m->acts->zeros || place == WEFT_PLACE_ZERO;
  return place < WEFT_PLACE_X || m->failed ? place
                                           : row_place(m, m->detour->row[place - WEFT_PLACE_X]);
}

// Translates a place that is written.
static uint16_t result_place(maker *m, uint16_t place) {
  uint16_t holder = 0, slot = place;
  if (place >= WEFT_PLACE_Y) {
    const size_t row = place - (size_t)WEFT_PLACE_Y;
    if (m->to[row] != WEFT_NO_ROW)
      return (uint16_t)(WEFT_PLACE_Y + m->to[row]);
    holder = (uint16_t)(row + 1);
    slot = m->known->home[row];
  }
  m->failed = m->failed || slot >= WEFT_PLACE_ZERO;
  if (m->failed)
    return 0;
  m->holder[slot] = holder;
  return slot;
}

// Makes forward butterflies that store rows of Y add the detour's rows of X to them, or zeros where
// there are none.
static void add_rows(maker *m, const weft_act *from, weft_act *act) {
  const size_t outputs = weft_act_outputs(act);
  bool stores = false;
  for (size_t i = 0; i < outputs; i++)
    stores = stores || from->out[i] >= WEFT_PLACE_Y;
  if (!stores || act->joins || (act->kind != WEFT_ACT_FORWARD && act->kind != WEFT_ACT_FORWARD4))
    return;
  act->joins = true;
  act->c[3] = 1;
  for (size_t i = 0; i < outputs; i++) {
    const uint16_t place = from->out[i];
    const uint16_t row =
        place < WEFT_PLACE_Y ? WEFT_NO_ROW : m->detour->added[place - WEFT_PLACE_Y];
    act->more[i] = row_place(m, row);
    if (row != WEFT_NO_ROW)
      m->added[place - WEFT_PLACE_Y] = true;
  }
}

static void copy_act(maker *m, const weft_act *from) {
  weft_act *act = &m->acts->act[m->acts->count++];
  const size_t outputs = weft_act_outputs(from), inputs = outputs + (from->kind == WEFT_ACT_ADD);
  *act = *from;
  if (from->wide && from->wide <= m->detour->wide_rows)
    m->whole = from->wide / 4u + 4;
  act->wide = m->whole > 0;
  m->whole -= m->whole > 0;
  act->reads = false;
  add_rows(m, from, act);
  for (size_t i = 0; i < inputs; i++) {
    act->in[i] = source_place(m, from->in[i]);
    act->reads = act->reads || act->in[i] >= WEFT_PLACE_X;
  }
  for (size_t i = 0; i < outputs && act->joins; i++) {
    act->more[i] = from->joins ? source_place(m, from->more[i]) : act->more[i];
    act->reads = act->reads || act->more[i] >= WEFT_PLACE_X;
  }
  for (size_t i = 0; i < outputs; i++)
    act->out[i] = result_place(m, from->out[i]);
}

// Propagates `needed` backwards over one act. Returns false if nothing the act makes is needed.
static bool look_back(const weft_acts *acts, const weft_act *act, bool *needed) {
  const bool panel = act->kind == WEFT_ACT_PANEL;
  const weft_act_panel *p = panel ? &acts->panels[act->in[0]] : NULL;
  const uint16_t *in = panel ? acts->operands + p->operand : act->in;
  const uint16_t *out = panel ? in + p->k : act->out;
  const size_t outputs = panel ? p->m : weft_act_outputs(act);
  const size_t inputs = panel ? p->k : outputs + (act->kind == WEFT_ACT_ADD);
  bool any = act->wide;
  for (size_t i = 0; i < outputs; i++)
    any = any || needed[out[i]];
  if (!any)
    return false;
  for (size_t i = 0; i < outputs; i++)
    needed[out[i]] = panel && p->accumulate;
  for (size_t i = 0; i < inputs; i++)
    needed[in[i]] = true;
  for (size_t i = 0; i < outputs && act->joins; i++)
    needed[act->more[i]] = true;
  return true;
}

// Removes acts that make nothing the detour needs, except parts of transforms that take one pass.
static void prune(maker *m) {
  bool needed[WEFT_PLACES];
  weft_acts *acts = m->acts;
  size_t left = acts->count;
  for (size_t a = 0; m->used == m->known->homes && a < acts->count; a++)
    acts->act[a].wide = 0;
  if (m->used == m->known->homes)
    return;
  memset(needed, 0, sizeof needed);
  for (size_t j = 0; j < m->detour->sources; j++)
    needed[m->known->home[m->detour->source[j]]] = true;
  for (size_t i = 0; i < m->detour->m; i++)
    needed[WEFT_PLACE_Y + i] = true;
  for (size_t a = acts->count; a-- > 0;)
    if (look_back(acts, &acts->act[a], needed)) {
      acts->act[--left] = acts->act[a];
      acts->act[left].wide = 0; // weft_acts_widen sets it again
    }
  acts->count -= left;
  memmove(acts->act, acts->act + left, acts->count * sizeof *acts->act);
}

// Appends the act of the next panel, whose operands and entries follow the existing ones.
static weft_act *begin_panel(maker *m, size_t *panels, size_t operands, const weft_act_panel *p) {
  weft_act *act = &m->acts->act[m->acts->count++];
  memset(act, 0, sizeof *act);
  act->kind = WEFT_ACT_PANEL;
  act->in[0] = (uint16_t)*panels;
  m->acts->panels[*panels] = *p;
  m->acts->panels[*panels].operand = (uint16_t)operands;
  m->acts->panels[*panels].entry = (uint16_t)m->acts->entries;
  m->acts->entries += (size_t)p->k * p->m;
  ++*panels;
  return act;
}

static size_t copy_panel(maker *m, size_t *panels, size_t operands, const weft_act_panel *p) {
  const uint16_t *from = m->known->operands + p->operand;
  uint16_t *to = m->acts->operands + operands;
  memcpy(m->acts->a + m->acts->entries, m->known->a + p->entry, (size_t)p->k * p->m);
  weft_act *act = begin_panel(m, panels, operands, p);
  for (size_t j = 0; j < p->k; j++, to++) {
    *to = source_place(m, *from++);
    act->reads = act->reads || *to >= WEFT_PLACE_X;
  }
  for (size_t i = 0; i < p->m; i++)
    *to++ = result_place(m, *from++);
  return operands + p->k + p->m;
}

// Adds a row of X that no act of butterflies has added.
static void add_row(maker *m, size_t row) {
  const uint8_t slot = m->known->home[row];
  weft_act *act = &m->acts->act[m->acts->count++];
  memset(act, 0, sizeof *act);
  act->kind = WEFT_ACT_ADD;
  act->c[0] = 1;
  act->in[0] = act->out[0] = slot;
  act->in[1] = row_place(m, m->detour->added[row]);
  act->reads = true;
}

// Appends a panel with the rows of the small matrix whose results are added to rows of the known Y
// (`adds`), or with the other rows. Fails if what it reads has been overwritten.
static size_t multiply(maker *m, size_t *panels, size_t operands, bool adds) {
  const weft_detour *d = m->detour;
  uint16_t *to = m->acts->operands + operands;
  uint8_t *entry = m->acts->a + m->acts->entries;
  size_t rows = 0;
  for (size_t j = 0; j < d->sources; j++) {
    const uint8_t slot = m->known->home[d->source[j]];
    m->failed = m->failed || slot >= WEFT_PLACE_ZERO || m->holder[slot] != d->source[j] + 1u;
    *to++ = slot;
  }
  for (size_t i = 0; i < d->m; i++) {
    if ((d->plus[i] != WEFT_NO_ROW) != adds)
      continue;
    memcpy(entry + rows++ * d->sources, d->a + i * d->sources, d->sources);
    *to++ = (uint16_t)(WEFT_PLACE_Y + i);
  }
  if (!rows)
    return operands;
  const weft_act_panel panel = {.m = (uint16_t)rows, .k = (uint16_t)d->sources, .accumulate = adds};
  (void)begin_panel(m, panels, operands, &panel);
  return operands + d->sources + rows;
}

// Returns false if the known product's acts cannot be reused.
static bool make(maker *m) {
  const weft_detour *d = m->detour;
  size_t panels = 0, operands = 0;
  m->acts->slots = m->known->slots;
  m->acts->work = m->known->work;
  memset(m->to, 0xFF, sizeof m->to);
  m->used = d->sources;
  for (size_t i = 0; i < d->m; i++)
    if (d->plus[i] != WEFT_NO_ROW) {
      m->to[d->plus[i]] = (uint16_t)i;
      m->used++;
    }
  for (size_t a = 0; a < m->known->count && !m->failed; a++) {
    const weft_act *act = &m->known->act[a];
    if (act->kind == WEFT_ACT_PANEL)
      operands = copy_panel(m, &panels, operands, &m->known->panels[act->in[0]]);
    else
      copy_act(m, act);
  }
  for (size_t j = 0; j < d->sources && !m->failed; j++) {
    const size_t row = d->source[j];
    m->acts->work.sums += d->added[row] != WEFT_NO_ROW;
    if (d->added[row] != WEFT_NO_ROW && !m->added[row])
      add_row(m, row);
  }
  if (m->failed)
    return false;
  prune(m);
  operands = multiply(m, &panels, operands, false);
  (void)multiply(m, &panels, operands, true);
  return !m->failed;
}

weft_status weft_factors_by_detour(const weft_factors *known, const weft_detour *detour,
                                   const weft_allocator *allocator, weft_factors **out) {
  *out = NULL;
  if (!known->acts)
    return WEFT_E_UNSUPPORTED;
  const weft_factors_room room = room_for(known->acts, detour);
  maker m = {.known = known->acts, .detour = detour};
  weft_step *none;
  weft_factors *made = weft_factors_take(&room, allocator, &m.acts, &none);
  if (!made)
    return WEFT_E_NOMEM;
  if (!make(&m)) {
    weft_factors_free(made, allocator);
    return WEFT_E_UNSUPPORTED;
  }
  weft_acts_widen(m.acts);
  made->slots = known->slots;
  made->acts = m.acts;
  *out = made;
  return WEFT_OK;
}
