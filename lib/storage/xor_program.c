// SPDX-License-Identifier: Apache-2.0
// Builds XOR programs: finds common pairs, fuses, then orders steps and assigns slots.
#include "lib/storage/xor_program.h"

#include <string.h>

#define SUMS_MAX 4096u // intermediate sums; packet numbers stay below 2^16

// Most words that counting common pairs may look at; a fraction of a second.
#define PAIR_BUDGET ((size_t)1 << 27)

// An intermediate sum of n packets that u steps read costs n + 1 + u packet accesses and one more
// step; without it the readers make u * n accesses.
#define STEP_COST 1u

typedef struct builder {
  const weft_allocator *allocator;
  size_t inputs; // including outputs that may be added, numbered after the inputs
  size_t outputs;
  size_t sums;      // made so far
  size_t columns;   // inputs + sums
  size_t row_words; // words of a column's set of outputs
  uint64_t *column; // (inputs + SUMS_MAX, row_words): outputs that contain this packet
  uint16_t *bound;  // (inputs + SUMS_MAX): upper bound on outputs shared with any earlier column
  uint16_t *partner;
  uint16_t (*pair)[2]; // (SUMS_MAX): the two packets of each sum

  size_t nodes;      // sums, then outputs
  size_t node_words; // words of a node's set of columns
  uint64_t *node;    // (nodes, node_words): packets that a node adds up
} builder;

static size_t words_for(size_t bits) { return (bits + 63) / 64; }

static bool has(const uint64_t *set, size_t i) { return (set[i / 64] >> (i % 64)) & 1u; }

static void put(uint64_t *set, size_t i) { set[i / 64] |= UINT64_C(1) << (i % 64); }

static void drop(uint64_t *set, size_t i) { set[i / 64] &= ~(UINT64_C(1) << (i % 64)); }

static unsigned count_ones(uint64_t x) {
  x -= (x >> 1) & UINT64_C(0x5555555555555555);
  x = (x & UINT64_C(0x3333333333333333)) + ((x >> 2) & UINT64_C(0x3333333333333333));
  x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
  return (unsigned)((x * UINT64_C(0x0101010101010101)) >> 56);
}

static size_t set_size(const uint64_t *set, size_t words) {
  size_t ones = 0;
  for (size_t i = 0; i < words; i++)
    ones += count_ones(set[i]);
  return ones;
}

static unsigned shared(const builder *b, size_t x, size_t y) {
  const uint64_t *p = b->column + x * b->row_words, *q = b->column + y * b->row_words;
  unsigned ones = 0;
  for (size_t i = 0; i < b->row_words; i++)
    ones += count_ones(p[i] & q[i]);
  return ones;
}

// Finds the earlier column that shares the most outputs with column c.
static void find_partner(builder *b, size_t c) {
  b->bound[c] = 0;
  b->partner[c] = 0;
  for (size_t d = 0; d < c; d++) {
    const unsigned common = shared(b, c, d);
    if (common > b->bound[c]) {
      b->bound[c] = (uint16_t)common;
      b->partner[c] = (uint16_t)d;
    }
  }
}

// Finds the column of the best pair, within the budget. Sharing only shrinks, so a bound that its
// partner still reaches is the true maximum.
static bool best_pair(builder *b, size_t *x, size_t *budget) {
  for (;;) {
    size_t best = 0;
    for (size_t c = 1; c < b->columns; c++)
      if (b->bound[c] > b->bound[best])
        best = c;
    if (b->bound[best] < 2)
      return false;
    if (shared(b, best, b->partner[best]) == b->bound[best]) {
      *x = best;
      return true;
    }
    const size_t cost = best * b->row_words;
    if (*budget < cost)
      return false;
    *budget -= cost;
    find_partner(b, best);
  }
}

static void share_pairs(builder *b) {
  size_t budget = PAIR_BUDGET, x = 0;
  b->bound[0] = 0;
  for (size_t c = 1; c < b->inputs; c++)
    find_partner(b, c);
  while (b->sums < SUMS_MAX && best_pair(b, &x, &budget)) {
    const size_t y = b->partner[x], sum = b->columns;
    uint64_t *p = b->column + x * b->row_words, *q = b->column + y * b->row_words;
    uint64_t *both = b->column + sum * b->row_words;
    for (size_t i = 0; i < b->row_words; i++) {
      both[i] = p[i] & q[i];
      p[i] &= ~both[i];
      q[i] &= ~both[i];
    }
    b->pair[b->sums][0] = (uint16_t)x;
    b->pair[b->sums][1] = (uint16_t)y;
    b->sums++;
    b->columns++;
    find_partner(b, sum);
  }
}

static uint64_t *node_set(const builder *b, size_t node) { return b->node + node * b->node_words; }

static void nodes_from_columns(builder *b) {
  for (size_t s = 0; s < b->sums; s++) {
    put(node_set(b, s), b->pair[s][0]);
    put(node_set(b, s), b->pair[s][1]);
  }
  for (size_t c = 0; c < b->columns; c++)
    for (size_t r = 0; r < b->outputs; r++)
      if (has(b->column + c * b->row_words, r))
        put(node_set(b, b->sums + r), c);
}

// Inlines a sum into its readers where that is not dearer. Later sums go first, so that the rest of
// a chain is judged in its final form.
static void fuse(builder *b) {
  for (size_t s = b->sums; s-- > 0;) {
    const size_t column = b->inputs + s;
    size_t readers = 0;
    for (size_t n = s + 1; n < b->nodes; n++)
      readers += has(node_set(b, n), column);
    const size_t made_of = set_size(node_set(b, s), b->node_words);
    if (readers * made_of > made_of + readers + STEP_COST)
      continue;
    for (size_t n = s + 1; n < b->nodes; n++) {
      uint64_t *set = node_set(b, n);
      if (!has(set, column))
        continue;
      drop(set, column);
      for (size_t i = 0; i < b->node_words; i++)
        set[i] ^= node_set(b, s)[i];
    }
    memset(node_set(b, s), 0, b->node_words * sizeof(uint64_t));
  }
}

// ---------------------------------------------------------------------------------------------
// Order and slots

#define NOWHERE UINT16_MAX

typedef struct emitter {
  const builder *b;
  weft_xor_program *program;
  uint16_t *where;   // (sums): packet number, once made
  uint16_t *readers; // (sums): readers still to be emitted
  uint16_t *stack;   // (nodes)
  uint16_t *unused;  // (sums): free slots, last in first out
  size_t unused_count;
  uint16_t *target; // (sums): the output that equals this sum, or NOWHERE
} emitter;

static uint16_t take_slot(emitter *e) {
  if (e->unused_count)
    return e->unused[--e->unused_count];
  const weft_xor_program *p = e->program;
  return (uint16_t)(p->inputs + p->outputs + e->program->slots++);
}

static void emit(emitter *e, size_t node, uint16_t target) {
  weft_xor_program *p = e->program;
  weft_xor_step *step = p->steps + p->step_count++;
  *step = (weft_xor_step){.target = target, .first = (uint32_t)p->source_count};
  for (size_t c = 0; c < e->b->columns; c++) {
    if (!has(node_set(e->b, node), c))
      continue;
    const size_t s = c - e->b->inputs; // meaningful for sums only
    const uint16_t packet = c < e->b->inputs ? (uint16_t)c : e->where[s];
    p->sources[p->source_count++] = packet;
    step->count++;
    if (c >= e->b->inputs && --e->readers[s] == 0 && packet >= p->inputs + p->outputs)
      e->unused[e->unused_count++] = packet;
  }
}

// Returns a sum that `node` needs and that has not been emitted, or NOWHERE.
static uint16_t missing_sum(const emitter *e, size_t node) {
  for (size_t s = 0; s < e->b->sums; s++)
    if (e->where[s] == NOWHERE && has(node_set(e->b, node), e->b->inputs + s))
      return (uint16_t)s;
  return NOWHERE;
}

static void emit_with_sums(emitter *e, size_t node, uint16_t target) {
  size_t depth = 0;
  e->stack[depth++] = (uint16_t)node;
  while (depth) {
    const uint16_t top = e->stack[depth - 1], missing = missing_sum(e, top);
    if (missing != NOWHERE) {
      e->stack[depth++] = missing;
      continue;
    }
    depth--;
    if (top == node) {
      emit(e, node, target);
      continue;
    }
    // The slot is taken before the sources' slots are freed: a step never reads its target.
    e->where[top] = e->target[top] != NOWHERE ? e->target[top] : take_slot(e);
    emit(e, top, e->where[top]);
  }
}

static void emit_all(emitter *e) {
  const builder *b = e->b;
  for (size_t s = 0; s < b->sums; s++) {
    e->where[s] = e->target[s] = NOWHERE;
    e->readers[s] = 0;
    for (size_t n = s + 1; n < b->nodes; n++)
      e->readers[s] = (uint16_t)(e->readers[s] + has(node_set(b, n), b->inputs + s));
  }
  for (size_t r = 0; r < b->outputs; r++) { // a sum that an output consists of is computed in place
    const uint64_t *set = node_set(b, b->sums + r);
    if (set_size(set, b->node_words) != 1)
      continue;
    for (size_t s = 0; s < b->sums; s++)
      if (has(set, b->inputs + s) && e->target[s] == NOWHERE)
        e->target[s] = (uint16_t)(e->program->inputs + r);
  }
  for (size_t r = 0; r < b->outputs; r++) {
    const uint16_t place = (uint16_t)(e->program->inputs + r);
    size_t own = b->sums;
    for (size_t s = 0; s < b->sums; s++)
      if (e->target[s] == place)
        own = s;
    if (own == b->sums)
      emit_with_sums(e, b->sums + r, place);
    else if (e->where[own] == NOWHERE) {
      e->readers[own]--; // the output needs no step of its own
      emit_with_sums(e, own, place);
      e->where[own] = place;
    } else {
      e->readers[own]--;
    }
  }
}

// ---------------------------------------------------------------------------------------------

static void *take(const weft_allocator *a, size_t bytes) {
  void *memory = a->alloc(a->user, bytes ? bytes : 1, 64);
  if (memory)
    memset(memory, 0, bytes);
  return memory;
}

static void give(const weft_allocator *a, void *memory) {
  if (memory)
    a->free(a->user, memory);
}

static void builder_clear(builder *b) {
  give(b->allocator, b->column);
  give(b->allocator, b->bound);
  give(b->allocator, b->partner);
  give(b->allocator, b->pair);
  give(b->allocator, b->node);
}

static weft_status build_nodes(builder *b, const uint8_t *bits, bool reduce) {
  const size_t most = b->inputs + (reduce ? SUMS_MAX : 0);
  b->row_words = words_for(b->outputs);
  b->columns = b->inputs;
  b->column = take(b->allocator, most * b->row_words * sizeof(uint64_t));
  b->bound = take(b->allocator, most * sizeof *b->bound);
  b->partner = take(b->allocator, most * sizeof *b->partner);
  b->pair = take(b->allocator, (reduce ? SUMS_MAX : 0) * sizeof *b->pair);
  if (!b->column || !b->bound || !b->partner || !b->pair)
    return WEFT_E_NOMEM;
  for (size_t r = 0; r < b->outputs; r++)
    for (size_t c = 0; c < b->inputs; c++)
      if (bits[r * b->inputs + c])
        put(b->column + c * b->row_words, r);
  if (reduce)
    share_pairs(b);
  b->nodes = b->sums + b->outputs;
  b->node_words = words_for(b->columns);
  b->node = take(b->allocator, b->nodes * b->node_words * sizeof(uint64_t));
  if (!b->node)
    return WEFT_E_NOMEM;
  nodes_from_columns(b);
  fuse(b);
  return WEFT_OK;
}

static weft_status emit_program(const builder *b, size_t inputs, weft_xor_program *program) {
  const weft_allocator *a = b->allocator;
  program->inputs = inputs;
  program->outputs = b->outputs;
  size_t sources = 0;
  for (size_t n = 0; n < b->nodes; n++)
    sources += set_size(node_set(b, n), b->node_words);
  program->steps = take(a, b->nodes * sizeof *program->steps);
  program->sources = take(a, sources * sizeof *program->sources);
  uint16_t *work = take(a, (5 * b->sums + b->nodes + 1) * sizeof *work);
  weft_status status = WEFT_E_NOMEM;
  if (program->steps && program->sources && work) {
    emitter e = {.b = b,
                 .program = program,
                 .where = work,
                 .readers = work + b->sums,
                 .unused = work + 2 * b->sums,
                 .target = work + 3 * b->sums,
                 .stack = work + 4 * b->sums};
    emit_all(&e);
    status = WEFT_OK;
  }
  give(a, work);
  return status;
}

weft_status weft_xor_program_new(weft_xor_program **out, const uint8_t *bits, size_t outputs,
                                 size_t inputs, size_t again, bool reduce,
                                 const weft_allocator *allocator) {
  *out = NULL;
  weft_xor_program *program = take(allocator, sizeof *program);
  if (!program)
    return WEFT_E_NOMEM;
  program->allocator = allocator;
  builder b = {.allocator = allocator, .inputs = inputs + again, .outputs = outputs};
  weft_status status = build_nodes(&b, bits, reduce);
  if (status == WEFT_OK)
    status = emit_program(&b, inputs, program);
  builder_clear(&b);
  if (status == WEFT_OK)
    *out = program;
  else
    weft_xor_program_free(program);
  return status;
}

void weft_xor_program_free(weft_xor_program *program) {
  if (!program)
    return;
  give(program->allocator, program->steps);
  give(program->allocator, program->sources);
  give(program->allocator, program);
}
