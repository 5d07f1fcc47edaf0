// SPDX-License-Identifier: Apache-2.0
// Random sequences of calls on one code: encoding, losses, plans, updates, shards that arrive one
// by one, verification, groups and the cache of plans, each checked against the definition,
// whatever came before; and refused calls in between. Use --runs_per_test for new sequences.
#include <stdlib.h>
#include <string.h>

#include "tests/storage/sequence.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rows.h"

enum { ROUNDS = 60, STEPS = 60 };

static weft_queue *some_queue(world *w) { return below(w, 2) ? w->queue : NULL; }

// --- losses ---

typedef struct loss {
  uint8_t lost[WEFT_MAX_SHARDS], wanted[WEFT_MAX_SHARDS];
  weft_erasures erasures;
  bool asked[WEFT_MAX_SHARDS];
} loss;

// Chooses a loss; half of the time one of a few, so that plans are found in the cache.
static void choose_loss(world *w, size_t most, loss *l) {
  memset(l, 0, sizeof *l);
  const test_rng before = w->rng;
  const bool again = below(w, 2) != 0;
  if (again)
    w->rng = test_rng_new(w->n, below(w, PLANS + 2));
  const size_t count = below(w, (most < w->n ? most : w->n) + 1);
  choose_ids(&w->rng, l->lost, count, w->n);
  l->erasures = (weft_erasures){.lost = l->lost, .lost_count = count};
  size_t wanted = count;
  if (below(w, 2)) {
    uint8_t which[WEFT_MAX_SHARDS];
    wanted = below(w, count + 1);
    choose_ids(&w->rng, which, wanted, count);
    for (size_t i = 0; i < wanted; i++)
      l->wanted[i] = l->lost[which[i]];
    l->erasures.wanted = l->wanted;
    l->erasures.wanted_count = wanted;
  }
  for (size_t i = 0; i < wanted; i++)
    l->asked[l->erasures.wanted ? l->wanted[i] : l->lost[i]] = true;
  if (again) {
    w->rng = before;
    (void)test_rng_next(&w->rng);
    (void)test_rng_next(&w->rng);
  }
}

static bool is_lost(const loss *l, size_t id) {
  return memchr(l->lost, (int)id, l->erasures.lost_count) != NULL;
}

static void unit_or_parity(const world *w, size_t id, uint8_t *row) {
  memset(row, 0, w->is.k);
  if (id < w->is.k)
    row[id] = 1;
  else
    memcpy(row, w->parity + (id - w->is.k) * w->is.k, w->is.k);
}

static bool follows(const world *w, const loss *l) {
  if (w->mds)
    return l->erasures.lost_count <= w->is.m;
  model_span left = {.n = w->is.k};
  uint8_t row[MODEL_BLOCKS];
  for (size_t id = 0; id < w->n; id++) {
    unit_or_parity(w, id, row);
    if (!is_lost(l, id))
      (void)model_span_add(&left, row);
  }
  for (size_t id = 0; id < w->n; id++) {
    unit_or_parity(w, id, row);
    if (l->asked[id] && !model_span_has(&left, row))
      return false;
  }
  return true;
}

// Models what a recovery does to the cache: the key of a plan is the lost and the wanted shards.
static void note_recovery(world *w, const loss *l) {
  kept_plan p = {.lost = {false}};
  bool any = false;
  for (size_t id = 0; id < w->n; id++) {
    p.lost[id] = is_lost(l, id);
    p.asked[id] = l->asked[id];
    any = any || l->asked[id];
  }
  if (!any)
    return;
  size_t at = 0;
  while (at < w->kept_count && memcmp(&w->kept[at], &p, sizeof p) != 0)
    at++;
  *(at < w->kept_count ? &w->hits : &w->misses) += 1;
  if (at == w->kept_count && w->kept_count < w->capacity)
    w->kept_count++;
  else if (at == w->kept_count)
    at = 0;
  if (!w->capacity)
    return;
  memmove(&w->kept[at], &w->kept[at + 1], (w->kept_count - at - 1) * sizeof p);
  w->kept[w->kept_count - 1] = p;
}

static void spoil(world *w, const loss *l) {
  for (size_t s = 0; s < STRIPES; s++)
    for (size_t i = 0; i < l->erasures.lost_count; i++)
      stripe_spoil(&w->s[s], w->code, l->lost[i]);
}

// Checks that wanted shards are recovered and other lost ones are left alone. Then restores all.
static void check_recovered(world *w, const loss *l, bool made_good) {
  for (size_t s = 0; s < STRIPES; s++)
    for (size_t i = 0; i < l->erasures.lost_count; i++) {
      const uint8_t id = l->lost[i];
      const size_t bytes = shard_bytes(w->code, id, w->s[s].view.bytes);
      if (made_good && l->asked[id])
        EXPECT(stripe_same_shard(&w->truth[s], &w->s[s], w->code, id));
      else
        for (size_t b = 0; b < bytes; b++)
          EXPECT(w->s[s].shard[id][b] == 0x5A);
      memcpy(w->s[s].shard[id], w->truth[s].shard[id], bytes);
    }
}

// The stripes as a call gets them: shards that it does not need are sometimes NULL.
typedef struct views {
  weft_stripe view[STRIPES];
  uint8_t *shard[STRIPES][WEFT_MAX_SHARDS];
} views;

static void some_views(world *w, const bool *needed, views *v) {
  for (size_t s = 0; s < STRIPES; s++) {
    v->view[s] = w->s[s].view;
    if (!needed || below(w, 2))
      continue;
    for (size_t i = 0; i < w->n; i++)
      v->shard[s][i] = needed[i] || below(w, 2) ? w->s[s].shard[i] : NULL;
    v->view[s].shards = v->shard[s];
    v->view[s].base = NULL;
  }
}

static void recover(world *w) {
  loss l;
  views v;
  choose_loss(w, w->is.m + 1, &l);
  const bool can = follows(w, &l);
  const weft_status expected = can ? WEFT_OK : WEFT_E_SINGULAR;
  weft_plan *plan = NULL;
  bool needed[WEFT_MAX_SHARDS] = {false};
  EXPECT_STATUS(weft_plan_for(w->code, &l.erasures, &plan), expected);
  EXPECT((plan != NULL) == can);
  for (size_t i = 0; can && i < weft_plan_input_count(plan); i++)
    needed[weft_plan_inputs(plan)[i]] = true;
  for (size_t i = 0; i < w->n; i++) {
    EXPECT(!needed[i] || !is_lost(&l, i));
    needed[i] = needed[i] || l.asked[i];
  }
  some_views(w, can ? needed : NULL, &v);
  spoil(w, &l);
  switch (below(w, 4)) {
  case 0:
    if (can)
      EXPECT_OK(weft_plan_run(plan, v.view, STRIPES, some_queue(w)));
    break;
  case 1:
    some_views(w, NULL, &v);
    EXPECT_STATUS(weft_code_group_recover(w->group, (weft_code_split)below(w, 2), &l.erasures,
                                          v.view, STRIPES),
                  expected);
    break;
  default:
    EXPECT_STATUS(weft_code_recover(w->code, &l.erasures, v.view, STRIPES, some_queue(w)),
                  expected);
    if (can)
      note_recovery(w, &l);
  }
  weft_plan_free(plan);
  check_recovered(w, &l, can);
}

static void note_loss(world *w, const uint8_t *lost, size_t count) {
  loss l = {.erasures = {.lost_count = count}};
  memcpy(l.lost, lost, count);
  for (size_t i = 0; i < count; i++)
    l.asked[lost[i]] = true;
  if (follows(w, &l))
    note_recovery(w, &l);
}

// Precomputes plans; at most those for losses of up to two shards fit into the cache.
static void precompute(world *w) {
  const size_t n = w->n, losses = below(w, w->is.m + 2);
  const size_t patterns = losses == 0   ? 0
                          : losses == 1 ? n
                          : losses == 2 ? n + n * (n - 1) / 2
                                        : n * n;
  weft_status expected = patterns <= w->capacity ? WEFT_OK : WEFT_E_BUFFER;
  if (losses > w->is.m)
    expected = WEFT_E_ARGUMENT;
  EXPECT_STATUS(weft_code_precompute(w->code, losses), expected);
  if (expected != WEFT_OK)
    return;
  for (uint8_t a = 0; a < n && losses > 0; a++)
    note_loss(w, &a, 1);
  for (uint8_t a = 0; a < n && losses > 1; a++)
    for (uint8_t b = (uint8_t)(a + 1); b < n; b++)
      note_loss(w, (const uint8_t[]){a, b}, 2);
}

// Runs a plan in an order of its own, with shards at their ids or in the plan's order.
static void own_plan(world *w) {
  uint8_t ids[WEFT_MAX_SHARDS];
  weft_plan *plan;
  choose_ids(&w->rng, ids, w->n, w->n);
  const size_t k = w->is.k, outputs = below(w, w->is.m + 1);
  loss l = {.erasures = {.lost_count = w->n - k}}; // shards that are no inputs are not read
  memcpy(l.lost, ids + k, w->n - k);
  for (size_t i = 0; i < outputs; i++)
    l.asked[ids[k + i]] = true;
  const bool can = follows(w, &l);
  EXPECT_STATUS(weft_plan_new(w->code, ids, ids + k, outputs, &plan),
                can ? WEFT_OK : WEFT_E_SINGULAR);
  if (!can)
    return;
  EXPECT(weft_plan_outputs(plan) == outputs && weft_plan_input_count(plan) == k);
  EXPECT(memcmp(weft_plan_inputs(plan), ids, k) == 0);
  const bool in_order = below(w, 2) != 0;
  views v;
  for (size_t s = 0; s < STRIPES; s++) {
    for (size_t i = 0; i < w->n; i++)
      v.shard[s][i] = w->s[s].shard[in_order ? ids[i] : i];
    v.view[s] = (weft_stripe){.shards = v.shard[s], .bytes = w->s[s].view.bytes};
  }
  spoil(w, &l);
  EXPECT_OK(
      (in_order ? weft_plan_run_in_order : weft_plan_run)(plan, v.view, STRIPES, some_queue(w)));
  weft_plan_free(plan);
  check_recovered(w, &l, true);
}

// Runs a plan for a loss, which may have fewer than k inputs, in its order.
static void plan_in_order(world *w) {
  loss l;
  weft_plan *plan;
  choose_loss(w, w->is.m, &l);
  if (!follows(w, &l))
    return;
  EXPECT_OK(weft_plan_for(w->code, &l.erasures, &plan));
  const size_t inputs = weft_plan_input_count(plan);
  EXPECT(w->mds ? inputs == w->is.k : inputs <= w->n);
  views v;
  for (size_t s = 0; s < STRIPES; s++) {
    for (size_t i = 0; i < inputs; i++)
      v.shard[s][i] = w->s[s].shard[weft_plan_inputs(plan)[i]];
    for (size_t id = 0, at = inputs; id < w->n; id++) // outputs are in the order of their ids
      if (l.asked[id])
        v.shard[s][at++] = w->s[s].shard[id];
    v.view[s] = (weft_stripe){.shards = v.shard[s], .bytes = w->s[s].view.bytes};
  }
  spoil(w, &l);
  EXPECT_OK(weft_plan_run_in_order(plan, v.view, STRIPES, some_queue(w)));
  weft_plan_free(plan);
  check_recovered(w, &l, true);
}

// --- encoding, whole and in parts ---

static void change_data(world *w, size_t s, size_t index) {
  test_rng_fill(&w->rng, w->truth[s].shard[index], w->truth[s].view.bytes);
  encode_by_definition(w->code, &w->truth[s]);
}

static void encode(world *w) {
  const size_t first = below(w, STRIPES), count = below(w, STRIPES - first + 1);
  weft_stripe stripes[STRIPES];
  for (size_t s = first; s < first + count; s++) {
    const size_t index = below(w, w->is.k);
    change_data(w, s, index);
    memcpy(w->s[s].shard[index], w->truth[s].shard[index], w->truth[s].view.bytes);
    for (size_t i = w->is.k; i < w->n; i++)
      stripe_spoil(&w->s[s], w->code, i);
    stripes[s - first] = w->s[s].view;
  }
  if (below(w, 3))
    EXPECT_OK(weft_code_encode(w->code, stripes, count, some_queue(w)));
  else
    EXPECT_OK(weft_code_group_encode(w->group, (weft_code_split)below(w, 2), stripes, count));
}

// Updates a shard. Parity that is not passed stays unchanged and is then updated separately.
static void update(world *w) {
  const size_t s = below(w, STRIPES), index = below(w, w->is.k);
  const size_t bytes = w->s[s].view.bytes;
  uint8_t *changed = malloc(bytes + 1), *there[WEFT_MAX_SHARDS] = {NULL};
  ck_assert_ptr_nonnull(changed);
  change_data(w, s, index);
  const bool by_delta = below(w, 2) != 0;
  for (size_t b = 0; b < bytes; b++)
    changed[b] = (uint8_t)((by_delta ? w->s[s].shard[index][b] : 0) ^ w->truth[s].shard[index][b]);
  for (size_t i = w->is.k; i < w->n; i++)
    there[i] = below(w, 3) ? w->s[s].shard[i] : NULL;
  weft_stripe view = w->s[s].view;
  const bool some = below(w, 2) != 0;
  if (some) {
    view.shards = there;
    view.base = NULL;
  }
  EXPECT_OK(by_delta ? weft_code_add_delta(w->code, index, changed, &view, some_queue(w))
                     : weft_code_update(w->code, index, w->s[s].shard[index], changed, &view,
                                        some_queue(w)));
  free(changed);
  memcpy(w->s[s].shard[index], w->truth[s].shard[index], bytes);
  for (size_t i = w->is.k; i < w->n && some; i++)
    if (!there[i])
      memcpy(w->s[s].shard[i], w->truth[s].shard[i], shard_bytes(w->code, i, bytes));
}

// Adds deltas of parity byte by byte.
static void parity_delta(world *w) {
  const size_t s = below(w, STRIPES), index = below(w, w->is.k);
  stripe delta;
  stripe_init(&delta, w->code, w->s[s].view.bytes, &w->rng, 0);
  change_data(w, s, index);
  for (size_t b = 0; b < delta.view.bytes; b++)
    delta.shard[index][b] = w->s[s].shard[index][b] ^ w->truth[s].shard[index][b];
  EXPECT_OK(weft_code_parity_delta(w->code, index, delta.shard[index], &delta.view, some_queue(w)));
  for (size_t i = w->is.k; i < w->n; i++)
    for (size_t b = 0; b < shard_bytes(w->code, i, delta.view.bytes); b++)
      w->s[s].shard[i][b] ^= delta.shard[i][b];
  memcpy(w->s[s].shard[index], w->truth[s].shard[index], delta.view.bytes);
  stripe_clear(&delta);
}

// Adds shards in any order; those that never arrive count as zeros.
static void arrive(world *w) {
  const size_t s = below(w, STRIPES), k = w->is.k, come = below(w, k + 1);
  const size_t bytes = w->s[s].view.bytes;
  uint8_t order[WEFT_MAX_SHARDS];
  weft_progress *progress;
  choose_ids(&w->rng, order, k, k);
  for (size_t i = come; i < k; i++) {
    memset(w->truth[s].shard[order[i]], 0, bytes);
    memset(w->s[s].shard[order[i]], 0, bytes);
  }
  encode_by_definition(w->code, &w->truth[s]);
  for (size_t i = k; i < w->n; i++)
    stripe_spoil(&w->s[s], w->code, i);
  EXPECT_OK(weft_progress_new(w->code, &w->s[s].view, &progress));
  for (size_t i = 0; i < come; i++) {
    EXPECT(weft_progress_missing(progress) == k - i);
    EXPECT_OK(weft_progress_add(progress, order[i], w->s[s].shard[order[i]], some_queue(w)));
    EXPECT_STATUS(weft_progress_add(progress, order[below(w, i + 1)], w->s[s].shard[0], NULL),
                  WEFT_E_STATE);
    EXPECT_STATUS(weft_progress_add(progress, k + below(w, 9), w->s[s].shard[0], NULL),
                  WEFT_E_ARGUMENT);
  }
  EXPECT_OK(weft_progress_finish(progress));
  EXPECT_STATUS(weft_progress_finish(progress), WEFT_E_STATE);
  EXPECT_STATUS(weft_progress_add(progress, 0, w->s[s].shard[0], NULL), WEFT_E_STATE);
  weft_progress_free(progress);
}

static void verify(world *w) {
  const size_t s = below(w, STRIPES), bytes = w->s[s].view.bytes;
  uint8_t wrong[WEFT_MAX_SHARDS], spoilt[WEFT_MAX_SHARDS] = {0};
  size_t count = 0, expected = 0;
  memset(wrong, 9, sizeof wrong);
  for (size_t i = 0; i < w->is.m && bytes; i++)
    if (below(w, 3) == 0) {
      w->s[s].shard[w->is.k + i][below(w, weft_code_parity_bytes(w->code, bytes))] ^= 0x10;
      expected += spoilt[i] = 1;
    }
  EXPECT_OK(
      weft_code_verify(w->code, &w->s[s].view, below(w, 2) ? wrong : NULL, &count, some_queue(w)));
  EXPECT(count == expected);
  EXPECT(wrong[0] == 9 || memcmp(wrong, spoilt, w->is.m) == 0);
  EXPECT(wrong[w->is.m] == 9);
  stripe_copy(&w->s[s], &w->truth[s], w->code);
}

// --- what is refused ---

static void refused(world *w) {
  const size_t k = w->is.k, n = w->n;
  uint8_t ids[WEFT_MAX_SHARDS];
  const uint8_t twice[] = {(uint8_t)(n - 1), (uint8_t)(n - 1)};
  const uint8_t beyond = (uint8_t)(n + below(w, 256 - n));
  weft_plan *plan = NULL;
  weft_code_group *group = NULL;
  weft_stripe two[] = {w->s[0].view, w->s[1].view};
  const weft_code_split split = (weft_code_split)below(w, 2);
  choose_ids(&w->rng, ids, n, n);
  const weft_erasures bad[] = {
      {.lost = twice, .lost_count = 2},
      {.lost = &beyond, .lost_count = 1},
      {.lost_count = 1},
      {.lost = ids, .lost_count = 1, .wanted = ids + 1, .wanted_count = 1},
      {.lost = twice, .lost_count = 1, .wanted = twice, .wanted_count = 2}};
  for (size_t i = n > 1 ? 0 : 1; i < sizeof bad / sizeof bad[0]; i++) {
    if (w->is.m == 0 && i >= 3)
      continue; // that loss cannot be recovered
    if (i == 3 && n < 2)
      continue;
    EXPECT_STATUS(weft_code_recover(w->code, &bad[i], two, 2, some_queue(w)), WEFT_E_ARGUMENT);
    EXPECT_STATUS(weft_plan_for(w->code, &bad[i], &plan), WEFT_E_ARGUMENT);
    EXPECT_STATUS(weft_code_group_recover(w->group, split, &bad[i], two, 2), WEFT_E_ARGUMENT);
  }
  EXPECT_STATUS(weft_code_group_recover(w->group, split, NULL, two, 2), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_code_group_encode(NULL, split, two, 2), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_code_group_encode(w->group, split, NULL, 2), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_code_group_encode(w->group, (weft_code_split)(2 + below(w, 9)), two, 2),
                WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_code_group_new(w->member, 0, &group), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_code_group_new(w->member, WEFT_MAX_GROUP + 1, &group), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_plan_new(w->code, ids, ids, 1, &plan), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_plan_new(w->code, ids, &beyond, 1, &plan), WEFT_E_ARGUMENT);
  if (n > k)
    EXPECT_STATUS(weft_plan_new(w->code, ids, (const uint8_t[]){ids[k], ids[k]}, 2, &plan),
                  WEFT_E_ARGUMENT);
  two[1].mem = WEFT_MEM_DEVICE;
  EXPECT_STATUS(weft_code_encode(w->code, two, 2, NULL), WEFT_E_UNSUPPORTED);
  EXPECT_STATUS(weft_code_group_encode(w->group, split, two, 2), WEFT_E_UNSUPPORTED);
  two[1].mem = (weft_mem)7;
  EXPECT_STATUS(weft_code_encode(w->code, two, 2, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_code_group_encode(w->group, split, two, 2), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_code_update(w->code, k, ids, ids, two, NULL), WEFT_E_ARGUMENT);
  EXPECT(!plan && !group);
}

// --- the sequence ---

static void run(uint64_t salt, const char *row) {
  static void (*const calls[])(world *) = {recover,  recover,       recover, recover, precompute,
                                           own_plan, plan_in_order, encode,  update,  parity_delta,
                                           arrive,   verify,        refused};
  world w;
  world_new(&w, salt, row);
  for (int step = 0; step < STEPS; step++) {
    calls[below(&w, sizeof calls / sizeof calls[0])](&w);
    world_check(&w);
  }
  world_free(&w);
}

START_TEST(any_sequence_on_the_best_row) {
  for (uint64_t round = 0; round < ROUNDS; round++)
    run(5000 + ROUNDS * (uint64_t)_i + round, NULL);
}
END_TEST

START_TEST(any_sequence_on_every_row) {
  for (uint64_t round = 0; round < 3; round++)
    run(6000 + 3 * (uint64_t)_i + round, test_looped_row((size_t)_i)->name);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("storage sequences");
  TCase *tcase = tcase_create("calls");
  tcase_add_loop_test(tcase, any_sequence_on_the_best_row, 0, 4);
  tcase_add_loop_test(tcase, any_sequence_on_every_row, 0, (int)test_looped_row_count());
  suite_add_tcase(suite, tcase);
  return test_main(suite);
}
