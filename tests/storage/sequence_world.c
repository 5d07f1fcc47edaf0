// SPDX-License-Identifier: Apache-2.0
#include "tests/storage/sequence.h"

#include <stdlib.h>
#include <string.h>

size_t below(world *w, size_t bound) { return test_rng_below(&w->rng, bound); }

static const char *choose_name(world *w) {
  size_t names = 0;
  while (weft_code_known_name(names))
    names++;
  const size_t i = below(w, names + 1);
  return i < names ? weft_code_known_name(i) : "matrix";
}

// Chooses a name, sizes that it supports, and lengths for which the definition is not too slow.
static void choose_code(world *w) {
  static const size_t packets[] = {0, 8, 16, 40, 72, 1024};
  code_case *c = &w->is;
  *c = (code_case){choose_name(w), 1 + below(w, 10), below(w, 7), 0, 0};
  w->mds = strcmp(c->name, "matrix") != 0;
  if (strcmp(c->name, "raid6") == 0)
    c->m = 2;
  if (strcmp(c->name, "isal_rs") == 0 || strcmp(c->name, "par1") == 0)
    c->m %= 4;
  const bool crs = strcmp(c->name, "cauchy_orig") == 0 || strcmp(c->name, "cauchy_good") == 0 ||
                   strcmp(c->name, "gcrs") == 0 || strcmp(c->name, "perasure") == 0;
  if (crs && strcmp(c->name, "gcrs") != 0)
    c->packet_bytes = packets[below(w, 6)];
  for (c->w = crs && below(w, 3) ? 2 + below(w, 7) : 0; c->w && (size_t)1 << c->w < c->k + c->m;)
    c->w++;
  if (!crs && w->mds && c->m > 3 && below(w, 3) == 0) { // large enough for transforms
    c->k = 12 + below(w, 30);
    c->m += 10;
  }
  for (size_t i = 0; i < c->m * c->k && !w->mds; i++)
    w->parity[i] = below(w, 3) ? (uint8_t)test_rng_next(&w->rng) : 0;
}

static void new_stripe(world *w, size_t s) {
  const size_t unit = weft_code_unit_bytes(w->code);
  const size_t lengths[] = {0, 1, unit, 2 * unit + 1, 64 + below(w, 600), 5000 + below(w, 4000)};
  const size_t bytes = lengths[below(w, w->is.k > 11 || unit > 1 ? 5 : 6)];
  stripe_init(&w->truth[s], w->code, bytes, &w->rng, 0);
  stripe_init(&w->s[s], w->code, bytes, &w->rng, 0);
  w->stride[s] = below(w, 2) ? weft_code_parity_bytes(w->code, bytes) + below(w, 3) : 0;
  if (w->stride[s]) {
    w->block[s] = malloc(w->n * w->stride[s]);
    ck_assert_ptr_nonnull(w->block[s]);
    memset(w->block[s], ASIDE, w->n * w->stride[s]);
    for (size_t i = 0; i < w->n; i++)
      w->s[s].shard[i] = w->block[s] + i * w->stride[s];
    w->s[s].view = (weft_stripe){.base = w->block[s], .stride = w->stride[s], .bytes = bytes};
  }
  w->s[s].view.mem = below(w, 2) ? WEFT_MEM_HOST : WEFT_MEM_PINNED;
  encode_by_definition(w->code, &w->truth[s]);
  stripe_copy(&w->s[s], &w->truth[s], w->code);
}

void world_new(world *w, uint64_t salt, const char *row) {
  memset(w, 0, sizeof *w);
  w->rng = test_rng_new(test_seed(), salt);
  choose_code(w);
  w->n = w->is.k + w->is.m;
  w->members = 1 + below(w, MEMBERS);
  w->capacity = below(w, 3) ? 1 + below(w, PLANS) : 0;
  trying(row, &w->is);
  for (size_t i = 0; i < w->members; i++) {
    const weft_code_options options = {.name = w->is.name,
                                       .k = w->is.k,
                                       .m = w->is.m,
                                       .w = w->is.w,
                                       .packet_bytes = w->is.packet_bytes,
                                       .parity = w->mds ? NULL : w->parity,
                                       .cached_plans = w->capacity ? w->capacity : WEFT_NO_PLANS};
    w->ctx[i] = context_on(row, 1 + below(w, 3));
    EXPECT_OK(weft_code_new(w->ctx[i], &options, &w->member[i]));
    if (i == 0)
      EXPECT_OK(weft_code_new(w->ctx[0], &options, &w->code));
  }
  EXPECT_OK(weft_code_group_new(w->member, w->members, &w->group));
  EXPECT_OK(weft_queue_new(w->ctx[0], &w->queue));
  for (size_t s = 0; s < STRIPES; s++)
    new_stripe(w, s);
}

void world_free(world *w) {
  for (size_t s = 0; s < STRIPES; s++) {
    stripe_clear(&w->truth[s]);
    stripe_clear(&w->s[s]);
    free(w->block[s]);
  }
  weft_queue_free(w->queue);
  weft_code_group_free(w->group);
  weft_code_free(w->code);
  for (size_t i = 0; i < w->members; i++) {
    weft_code_free(w->member[i]);
    weft_ctx_free(w->ctx[i]);
  }
}

void world_check(world *w) {
  for (size_t s = 0; s < STRIPES; s++) {
    EXPECT(stripe_same(&w->truth[s], &w->s[s], w->code));
    for (size_t i = 0; i < w->n && w->stride[s]; i++)
      for (size_t b = shard_bytes(w->code, i, w->s[s].view.bytes); b < w->stride[s]; b++)
        EXPECT(w->block[s][i * w->stride[s] + b] == ASIDE);
  }
  weft_plan_stats stats;
  weft_code_plan_stats(w->code, &stats);
  EXPECT(stats.capacity == w->capacity && stats.plans <= w->capacity);
  EXPECT(stats.hits == w->hits && stats.misses == w->misses);
  EXPECT(stats.plans == w->kept_count);
}
