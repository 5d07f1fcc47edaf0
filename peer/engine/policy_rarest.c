// SPDX-License-Identifier: Apache-2.0
// Rarest first, without coding, as deployed systems stream: each receiver requests the block of its
// playback window that the fewest neighbours hold, so that no two peers hold the same blocks for
// long; what is due soon comes before everything else, in order. Blocks of one segment and one word
// of 64 that the same neighbour can give share a request.
#include "peer/engine/policy_seed.h"

enum { URGENT = 2 }; // segments requested in order

typedef struct scan {
  const weft_policy_view *view;
  uint64_t segment;
  size_t word; // blocks from 64 * word on
  uint64_t missing;
  bool ask_source;
} scan;

static uint64_t word_of(const uint8_t *bitmap, size_t stride, size_t word) {
  uint64_t v = 0;
  for (size_t b = 0; b < 8 && word * 8 + b < stride; b++)
    v |= (uint64_t)bitmap[word * 8 + b] << (8 * b);
  return v;
}

static uint64_t blocks_of(const weft_policy_view *view, const weft_policy_neighbour *n,
                          uint64_t segment, size_t word) {
  if (!n->known || segment < n->oldest)
    return 0;
  if (segment < n->first)
    return UINT64_MAX; // all of it
  if (segment >= n->first + n->count)
    return 0;
  return word_of(n->blocks + segment % view->window * view->blocks_stride, view->blocks_stride,
                 word);
}

static unsigned bits(uint64_t v) {
  unsigned count = 0;
  for (; v; v &= v - 1)
    count++;
  return count;
}

// Counts the neighbours that hold each block of the word.
static void count_holders(const scan *s, uint16_t holders[64]) {
  for (unsigned b = 0; b < 64; b++)
    holders[b] = 0;
  for (size_t i = 0; i < s->view->neighbours; i++) {
    const uint64_t held =
        blocks_of(s->view, &s->view->neighbour[i], s->segment, s->word) & s->missing;
    for (uint64_t left = held; left; left &= left - 1) {
      unsigned b = 0;
      for (uint64_t low = left & (0 - left); low > 1; low >>= 1)
        b++;
      holders[b]++;
    }
  }
}

// Chooses the rarest block that some idle neighbour holds, and others of the word to go with it.
static bool choose(const scan *s, const weft_rng *rng, unsigned *rarity, weft_policy_choice *out) {
  uint16_t holders[64];
  count_holders(s, holders);
  const size_t start = (size_t)weft_rng_below(rng, s->view->neighbours);
  const unsigned turn = (unsigned)weft_rng_below(rng, 64); // so that peers differ among equals
  bool found = false;
  for (size_t i = 0; i < s->view->neighbours; i++) {
    const size_t index = (start + i) % s->view->neighbours;
    const weft_policy_neighbour *n = &s->view->neighbour[index];
    if (n->room == 0 || (n->source && !s->ask_source))
      continue;
    const uint64_t gives = blocks_of(s->view, n, s->segment, s->word) & s->missing;
    for (unsigned j = 0; j < 64; j++) {
      const unsigned b = (j + turn) % 64;
      if (!(gives >> b & 1) || holders[b] >= *rarity)
        continue;
      *rarity = holders[b];
      *out = (weft_policy_choice){.neighbour = index,
                                  .segment = s->segment,
                                  .base = (uint16_t)(64 * s->word),
                                  .mask = UINT64_C(1) << b};
      found = true;
    }
  }
  if (!found)
    return false;
  // Others as rare, up to a limit, so that one request is worth its bytes.
  const uint64_t gives =
      blocks_of(s->view, &s->view->neighbour[out->neighbour], s->segment, s->word) & s->missing;
  const weft_policy_neighbour *chosen = &s->view->neighbour[out->neighbour];
  const size_t most = chosen->room < s->view->batch_max ? chosen->room : s->view->batch_max;
  for (unsigned j = 0; j < 64 && bits(out->mask) < most; j++) {
    const unsigned b = (j + turn) % 64;
    if (gives >> b & 1 && holders[b] <= *rarity)
      out->mask |= UINT64_C(1) << b;
  }
  out->count = bits(out->mask);
  return true;
}

static bool ask(void *user, const weft_policy_view *view, const weft_rng *rng,
                weft_policy_choice *out) {
  (void)user;
  if (view->neighbours == 0 || view->blocks_stride == 0)
    return false;
  unsigned rarity = UINT16_MAX + 1u;
  bool found = false;
  for (uint64_t s = view->missing; s < view->first + view->count && s < view->horizon; s++) {
    const weft_policy_segment *own = &view->segments[s % view->window];
    for (size_t word = 0; word * 64 < own->blocks; word++) {
      const size_t in_word = own->blocks - word * 64 < 64 ? own->blocks - word * 64 : 64;
      const uint64_t all = in_word == 64 ? UINT64_MAX : (UINT64_C(1) << in_word) - 1;
      const uint64_t have =
          word_of(view->blocks + s % view->window * view->blocks_stride, view->blocks_stride, word);
      const scan at = {.view = view,
                       .segment = s,
                       .word = word,
                       .missing = all & ~have,
                       .ask_source = weft_policy_source_in_turn(view, s)};
      if (at.missing && choose(&at, rng, &rarity, out))
        found = true;
    }
    if (found && s < view->missing + URGENT)
      return true; // due soon: taken whatever its rarity
  }
  return found;
}

const weft_policy weft_policy_rarest = {.name = "rarest", .pick = weft_policy_seed, .ask = ask};
