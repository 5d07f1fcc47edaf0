// SPDX-License-Identifier: Apache-2.0
// Parity shards, and any lost shards, are Cauchy-like products of the shards that are read
// (generator_solve.c). Where losses are scattered, transforms of that product share little, and a
// detour is shorter. First encode the data that is present: its contribution to the parity shards
// that are read or wanted. The rest of those parity shards then depends on lost data alone, and a
// small matrix rebuilds the lost shards from it, entry by entry.
#include "lib/storage/transform.h"

#include <string.h>

#include "lib/storage/cauchy_steps.h"

const weft_transform_for weft_transform_for_host = {
    .slots_most = 64,
    .prices = {.product = 2, .repeated = 2, .sum = 1},
    .entry_saves = 2,
    .together = 1,
    .fills = true,
    .hurried = true,
    .early = true};

// slots_most: what generated kernels have room for.
const weft_transform_for weft_transform_for_device = {
    .slots_most = 29, .prices = {.product = 5, .repeated = 2, .sum = 8}, .together = 8};

// What is read and wanted. `in` lists data shards and the parity shards that stand in for lost
// ones.
typedef struct task {
  const weft_generator *g;
  const uint8_t *in, *out;
  size_t data, stand_ins, outputs;
  uint8_t weight[WEFT_SHARDS_MAX]; // scales of all shards in this recovery
  bool in_order;                   // data shards come first in `in`
  const weft_transform_for *who;
  uint8_t *layout; // of the first transform (weft_cauchy_ends.layout)
} task;

typedef struct workshop {
  weft_step_list whole, apart;
  weft_cauchy_matrix matrix;
} workshop;

static uint16_t point_of(const weft_generator *g, size_t shard) {
  return shard == g->infinite ? WEFT_POINT_INFINITE : g->point[shard];
}

static void add_source(weft_cauchy_matrix *m, const weft_generator *g, size_t shard,
                       const uint8_t *scale) {
  m->source[m->sources] = point_of(g, shard);
  m->source_scale[m->sources++] = scale[shard];
}

static void add_target(weft_cauchy_matrix *m, const weft_generator *g, size_t shard,
                       const uint8_t *scale) {
  m->target[m->targets] = point_of(g, shard);
  m->target_scale[m->targets++] = scale[shard];
}

static void clear(weft_cauchy_matrix *m) { m->sources = m->targets = 0; }

// Writes the steps from everything read to everything wanted as one product.
static bool as_a_whole(const task *t, weft_cauchy_writer *writer, workshop *shop) {
  weft_cauchy_matrix *m = &shop->matrix;
  clear(m);
  for (size_t c = 0; c < t->data + t->stand_ins; c++)
    add_source(m, t->g, t->in[c], t->weight);
  for (size_t r = 0; r < t->outputs; r++)
    add_target(m, t->g, t->out[r], t->weight);
  return weft_cauchy_steps(writer, m, &(weft_cauchy_ends){.layout = t->data ? NULL : t->layout},
                           &shop->whole);
}

// Returns the size of the smallest block with room for this many shards.
static size_t block_of(size_t shards) {
  size_t size = 1;
  while (size < shards)
    size *= 2;
  return size;
}

// Adds zero sources for absent data, in blocks that have some data; blocks have room for as many
// shards as there are stand-ins.
static void fill_blocks(const task *t, weft_cauchy_matrix *m) {
  const weft_generator *g = t->g;
  const size_t size = block_of(t->stand_ins);
  bool there[WEFT_SHARDS_MAX] = {false}, begun[WEFT_POINTS] = {false};
  for (size_t c = 0; c < t->data; c++) {
    there[t->in[c]] = true;
    begun[g->point[t->in[c]] / size] = true;
  }
  for (size_t shard = 0; shard < g->k; shard++)
    if (!there[shard] && shard != g->infinite && begun[g->point[shard] / size])
      add_source(m, g, shard, g->scale);
}

// Computes what the present data contributes to the stand-ins, and to wanted parity shards, by
// output.
static bool encode_present(const task *t, weft_cauchy_writer *writer, workshop *shop,
                           weft_multiple *stand_in, weft_multiple *wanted) {
  weft_cauchy_matrix *m = &shop->matrix;
  weft_multiple to[WEFT_POINTS];
  clear(m);
  for (size_t c = 0; c < t->data; c++)
    add_source(m, t->g, t->in[c], t->g->scale);
  if (t->who->fills)
    fill_blocks(t, m);
  for (size_t p = 0; p < t->stand_ins; p++)
    add_target(m, t->g, t->in[t->data + p], t->g->scale);
  for (size_t r = 0; r < t->outputs; r++)
    if (t->out[r] >= t->g->k)
      add_target(m, t->g, t->out[r], t->g->scale);
  if (!weft_cauchy_steps(writer, m,
                         &(weft_cauchy_ends){.rows = t->data, .to = to, .layout = t->layout},
                         &shop->apart))
    return false;
  memcpy(stand_in, to, t->stand_ins * sizeof *to);
  for (size_t r = 0, next = t->stand_ins; r < t->outputs; r++)
    wanted[r] = t->out[r] >= t->g->k ? to[next++] : WEFT_ZERO;
  return true;
}

static uint8_t entry(const weft_generator *g, const weft_cauchy_matrix *m, size_t i, size_t j) {
  const uint16_t x = m->target[i], y = m->source[j];
  const bool infinite = x == WEFT_POINT_INFINITE || y == WEFT_POINT_INFINITE;
  const uint8_t scale = weft_gfw_div(&g->field, m->source_scale[j], m->target_scale[i]);
  return infinite ? scale : weft_gfw_div(&g->field, scale, (uint8_t)(x ^ y));
}

// Processes a few outputs at a time: the products of each source for them are consecutive.
static void solve_by_entries(const task *t, const weft_cauchy_matrix *m, weft_multiple *stand_in,
                             weft_multiple *wanted, weft_step_list *list) {
  for (size_t first = 0; first < m->targets; first += t->who->together) {
    weft_multiple sum[WEFT_POINTS];
    const size_t left = m->targets - first,
                 count = left < t->who->together ? left : t->who->together;
    for (size_t r = 0; r < count; r++) {
      sum[r] = weft_value_times(list, stand_in[0], entry(t->g, m, first + r, 0));
      weft_value_settle(list, &sum[r]);
    }
    for (size_t p = 1; p < m->sources; p++)
      for (size_t r = 0; r < count; r++)
        weft_value_add(list, &sum[r], stand_in[p], entry(t->g, m, first + r, p));
    for (size_t r = 0; r < count; r++) {
      weft_value_add(list, &sum[r], wanted[first + r], 1);
      weft_value_give(list, &wanted[first + r]);
      weft_value_store(list, first + r, &sum[r]);
    }
  }
}

static bool apart(const task *t, weft_cauchy_writer *writer, workshop *shop) {
  weft_cauchy_matrix *m = &shop->matrix;
  weft_step_list *list = &shop->apart;
  weft_multiple stand_in[WEFT_POINTS], wanted[WEFT_POINTS];
  if (!t->stand_ins || !t->data || !t->in_order ||
      !encode_present(t, writer, shop, stand_in, wanted))
    return false;
  clear(m);
  for (size_t p = 0; p < t->stand_ins; p++) {
    weft_multiple read = weft_value_load(list, t->data + p);
    weft_value_add(list, &stand_in[p], read, 1);
    weft_value_give(list, &read);
    add_source(m, t->g, t->in[t->data + p], t->weight);
  }
  for (size_t r = 0; r < t->outputs; r++)
    add_target(m, t->g, t->out[r], t->weight);
  solve_by_entries(t, m, stand_in, wanted, list);
  return !list->failed;
}

// Whether a single product may be shorter than the detour: losses nearly fill blocks, or are most
// of the data.
static bool may_be_whole(const weft_generator *g, const uint8_t *in, size_t data) {
  enum { Block = 4 };
  uint8_t there[WEFT_POINTS / Block] = {0}, all[WEFT_POINTS / Block] = {0};
  size_t broken = 0;
  for (size_t c = 0; c < data; c++)
    there[g->point[in[c]] / Block]++;
  for (size_t shard = 0; shard < g->k; shard++)
    all[g->point[shard] / Block]++;
  for (size_t b = 0; b < WEFT_POINTS / Block; b++)
    broken += there[b] && there[b] < all[b];
  return broken <= 2 || 2 * data <= g->k - data;
}

// Tries the detour first: it is nearly always shorter, so the other way is soon seen to be longer.
static weft_status choose(const task *t, weft_cauchy_writer *writer, workshop *shop,
                          weft_factors **out) {
  const weft_step_list *best = NULL;
  const weft_transform_for *who = t->who;
  weft_step_list_begin(&shop->whole, &t->g->field, &who->prices, who->early, who->slots_most);
  weft_step_list_begin(&shop->apart, &t->g->field, &who->prices, who->early, who->slots_most);
  if (apart(t, writer, shop)) {
    const size_t saved = who->entry_saves * t->stand_ins * t->outputs;
    best = &shop->apart;
    shop->whole.cost_most = best->cost > saved ? best->cost - saved : 0;
  }
  if ((!best || !who->hurried || may_be_whole(t->g, t->in, t->data)) && as_a_whole(t, writer, shop))
    best = &shop->whole;
  if (!best)
    return WEFT_E_UNSUPPORTED;
  return weft_factors_new(best->step, best->count, best->slots, t->g->allocator, out);
}

// Counts the data shards in `in`; returns false if they do not all come before the others.
static bool count_data(const weft_generator *g, const uint8_t *in, size_t *data) {
  bool in_order = true;
  *data = 0;
  for (size_t c = 0; c < g->k; c++) {
    *data += in[c] < g->k;
    in_order = in_order && (in[c] >= g->k || *data == c + 1);
  }
  return in_order;
}

static weft_status make(task *t, weft_transform_memory *memory, weft_factors **factors) {
  const weft_generator *g = t->g;
  *factors = NULL;
  if (!g->by_points || g->field.w != 8 || !t->outputs || t->who->slots_most > WEFT_SLOTS_MOST)
    return WEFT_E_UNSUPPORTED;
  WEFT_TRY(weft_generator_weigh(g, t->in, t->weight));
  t->in_order = count_data(g, t->in, &t->data);
  t->stand_ins = g->k - t->data;
  const weft_allocator *allocator = g->allocator;
  weft_cauchy_writer *writer = allocator->alloc(allocator->user, weft_cauchy_writer_bytes(), 64);
  workshop *shop = allocator->alloc(allocator->user, sizeof *shop, _Alignof(workshop));
  weft_status status = WEFT_E_NOMEM;
  if (writer && shop) {
    atomic_uchar *known = memory && t->stand_ins ? &memory->layout[t->stand_ins] : NULL;
    uint8_t layout = known ? atomic_load_explicit(known, memory_order_relaxed) : 0;
    t->layout = known ? &layout : NULL;
    weft_cauchy_writer_init(writer, &g->field);
    status = choose(t, writer, shop, factors);
    if (known)
      atomic_store_explicit(known, layout, memory_order_relaxed);
  }
  if (shop)
    allocator->free(allocator->user, shop);
  if (writer)
    allocator->free(allocator->user, writer);
  return status;
}

weft_status weft_transform_new(const weft_generator *g, const uint8_t *in, const uint8_t *out,
                               size_t count, const weft_transform_for *who,
                               weft_transform_memory *memory, weft_factors **factors) {
  return make(&(task){.g = g, .in = in, .out = out, .outputs = count, .who = who}, memory, factors);
}

// Whether all parity shards have the same finite scale. If not, encoding multiplies by their
// scales, while the steps of a recovery fold these into the small matrix.
static bool has_even_parity(const weft_generator *g) {
  return g->by_points && g->infinite == WEFT_SHARDS_MAX && g->m &&
         memcmp(g->scale + g->k, g->scale + g->k + 1, g->m - 1) == 0;
}

bool weft_transform_is_detour(const weft_generator *g, const uint8_t *in, const uint8_t *out,
                              size_t count) {
  size_t data, targets;
  if (!has_even_parity(g) || !count_data(g, in, &data) || !data || data == g->k)
    return false;
  targets = g->k - data;
  for (size_t r = 0; r < count; r++)
    targets += out[r] >= g->k;
  return block_of(targets) == block_of(g->m) && !may_be_whole(g, in, data);
}

weft_status weft_transform_by_encoding(const weft_generator *g, const weft_factors *encode,
                                       const uint8_t *in, const uint8_t *out, size_t count,
                                       const uint8_t *matrix, size_t wide_rows,
                                       weft_factors **factors) {
  const size_t k = g->k;
  uint16_t row[WEFT_SHARDS_MAX], added[WEFT_SHARDS_MAX], plus[WEFT_SHARDS_MAX];
  uint8_t source[WEFT_SHARDS_MAX];
  uint8_t a[WEFT_SHARDS_MAX * WEFT_SHARDS_MAX / 4]; // at most m outputs of min(k, m) sources
  size_t data = 0, sources = 0;
  *factors = NULL;
  if (!weft_transform_is_detour(g, in, out, count))
    return WEFT_E_UNSUPPORTED;
  memset(row, 0xFF, k * sizeof *row); // WEFT_NO_ROW
  memset(added, 0xFF, g->m * sizeof *added);
  for (size_t c = 0; c < k; c++)
    if (in[c] < k) {
      row[in[c]] = (uint16_t)c;
      data++;
    } else {
      source[sources++] = (uint8_t)(in[c] - k);
      added[in[c] - k] = (uint16_t)c;
    }
  // Lost parity shards need both what encoding makes of the present data and what the stand-ins
  // contribute.
  for (size_t r = 0; r < count; r++) {
    plus[r] = out[r] < k ? WEFT_NO_ROW : (uint16_t)(out[r] - k);
    memcpy(a + r * sources, matrix + r * k + data, sources);
  }
  return weft_factors_by_detour(encode,
                                &(weft_detour){.row = row,
                                               .added = added,
                                               .plus = plus,
                                               .m = count,
                                               .sources = sources,
                                               .source = source,
                                               .a = a,
                                               .wide_rows = wide_rows},
                                g->allocator, factors);
}
