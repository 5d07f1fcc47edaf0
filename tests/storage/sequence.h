// SPDX-License-Identifier: Apache-2.0
// A world: a code, a group and stripes of it, each paired with a model of what it should contain.
// Random sequences of calls are made on it (sequence_test.c).
#ifndef WEFT_TESTS_STORAGE_SEQUENCE_H
#define WEFT_TESTS_STORAGE_SEQUENCE_H

#include <stdbool.h>

#include "tests/lib/sequence_model.h"
#include "tests/storage/stripes.h"

enum { STRIPES = 3, MEMBERS = 3, PLANS = 6, ASIDE = 0xE7 };

// A plan that must be in the cache: the lost shards, and those of them that it computes.
typedef struct kept_plan {
  bool lost[WEFT_MAX_SHARDS], asked[WEFT_MAX_SHARDS];
} kept_plan;

typedef struct world {
  test_rng rng;
  weft_ctx *ctx[MEMBERS];
  weft_code *code, *member[MEMBERS]; // members are used only by the group
  weft_code_group *group;
  weft_queue *queue;
  code_case is;
  bool mds;
  uint8_t parity[MODEL_BLOCKS * MODEL_BLOCKS]; // of `matrix`
  size_t n, members;
  stripe truth[STRIPES], s[STRIPES]; // s is worked on, and equals truth after every step
  uint8_t *block[STRIPES];           // if shards are evenly spaced
  size_t stride[STRIPES];            // bytes; 0: each shard has memory of its own
  kept_plan kept[PLANS];             // the least recently used first
  size_t kept_count, capacity;
  uint64_t hits, misses;
} world;

void world_new(world *w, uint64_t salt, const char *row);
void world_free(world *w);
// Checks that every shard is right, nothing was written between shards, and the cache contains what
// it should.
void world_check(world *w);
size_t below(world *w, size_t bound);

#endif
