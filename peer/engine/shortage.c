// SPDX-License-Identifier: Apache-2.0
// Live, with less uplink than the stream needs. Were all segments served alike, each would be
// incomplete everywhere; so a peer whose segments fail forgoes some, the same as its neighbours do,
// and serves the others first. What each peer sees of its own playback is all that this takes.
#include "peer/engine/internal.h"

enum {
  FAILED = 2, // of the last eight that were not forgone: one class more
  ENOUGH = 8, // in time, and one that was forgone: uplinks reach further, one class fewer
  LONG = 32,  // in time: the same, without that
  MOST = WEFT_POLICY_CLASSES * 3 / 4,
  LAST_PART = 8 // of a segment: what may be asked for meanwhile
};

static unsigned ones(unsigned bits) {
  unsigned count = 0;
  for (; bits; bits &= bits - 1)
    count++;
  return count;
}

static void forgo(weft_engine *e, unsigned classes) {
  e->shortage = (weft_shortage){.forgone = (uint8_t)classes};
  e->statistics.forgone = classes;
}

void weft_shortage_learn(weft_engine *e, uint64_t segment, bool in_time) {
  weft_shortage *s = &e->shortage;
  if (weft_policy_class(segment) < s->forgone) {
    if (in_time && s->in_a_row >= ENOUGH)
      forgo(e, s->forgone - 1u);
    return;
  }
  s->failed = (uint8_t)(s->failed << 1 | !in_time);
  s->in_a_row = in_time ? (uint8_t)(s->in_a_row + 1) : 0;
  if (ones(s->failed) >= FAILED && s->forgone < MOST)
    forgo(e, s->forgone + 1u);
  else if (s->in_a_row >= LONG)
    forgo(e, s->forgone ? s->forgone - 1u : 0);
}

bool weft_shortage_may_ask(const weft_engine *e, uint64_t segment) {
  const weft_policy_segment *held = weft_window_held(e, segment);
  const uint32_t lacks = (uint32_t)held->blocks - held->received;
  return e->shortage.forgone == 0 ||
         (weft_policy_class(segment) >= e->shortage.forgone && LAST_PART * lacks <= held->blocks);
}
