// SPDX-License-Identifier: Apache-2.0
#include "tests/peer/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test_rng.h"

struct fixture_datagram {
  fixture_datagram *next;
  int64_t due_us;
  size_t from, to, bytes;
  uint8_t data[];
};

uint64_t fixture_seed(void) { return test_seed(); }

fixture_fate fixture_perfect(fixture *f) {
  (void)f;
  return (fixture_fate){.copies = 1, .delay_us = 10000};
}

weft_status fixture_new(fixture *f, const weft_allocator *allocator, size_t engines,
                        const uint8_t *input, size_t bytes, uint64_t salt,
                        void (*adjust)(weft_engine_options *options, weft_engine_self *self,
                                       size_t index)) {
  *f = (fixture){.engines = engines, .input = input, .input_bytes = bytes, .fate = fixture_perfect};
  const weft_ctx_options ctx = {.allocator = allocator};
  WEFT_TRY(weft_ctx_new(&f->ctx, &ctx));
  f->rlnc.ctx = f->ctx;
  f->codec = weft_codec_rlnc_table(&f->rlnc);
  weft_rng_chacha_seed(&f->network, fixture_seed(), salt);
  for (size_t i = 0; i < engines; i++) {
    weft_rng_chacha_seed(&f->chacha[i], fixture_seed(), salt + 1 + i);
    weft_engine_options *options = &f->options[i];
    weft_engine_self self = {.source = i == 0,
                             .upload_bits_per_s = 1000000,
                             .rng = weft_rng_chacha_table(&f->chacha[i])};
    *options = (weft_engine_options){.stream = 7,
                                     .blocks = FIXTURE_BLOCKS,
                                     .block_bytes = FIXTURE_BLOCK_BYTES,
                                     .window = FIXTURE_WINDOW,
                                     .batch = 4,
                                     .neighbours_max = FIXTURE_ENGINES,
                                     .codec = &f->codec,
                                     .policy = &weft_policy_push};
    if (adjust)
      adjust(options, &self, i);
    f->output[i] = malloc(bytes + 1);
    const weft_status status = weft_engine_new(f->ctx, options, &self, &f->engine[i]);
    if (status != WEFT_OK) {
      fixture_free(f);
      return status;
    }
  }
  for (size_t i = 0; i < engines; i++)
    for (size_t j = 0; j < engines; j++)
      if (i != j)
        EXPECT_OK(weft_engine_add_neighbour(f->engine[i], NULL, 0, &f->neighbour[i][j]));
  return WEFT_OK;
}

void fixture_free(fixture *f) {
  while (f->pending) {
    fixture_datagram *next = f->pending->next;
    free(f->pending);
    f->pending = next;
  }
  for (size_t i = 0; i < f->engines; i++) {
    weft_engine_free(f->engine[i]);
    free(f->output[i]);
  }
  weft_ctx_free(f->ctx);
}

// --- The network

static void put(fixture *f, size_t from, size_t to, const weft_datagram *d,
                const fixture_fate *fate) {
  const weft_rng rng = weft_rng_chacha_table(&f->network);
  fixture_datagram *p = malloc(sizeof *p + d->bytes);
  p->next = NULL;
  p->due_us = f->now_us + fate->delay_us;
  p->from = from;
  p->to = to;
  p->bytes = d->bytes;
  memcpy(p->data, d->data, d->bytes);
  if (fate->corrupt) {
    const uint64_t bit = weft_rng_below(&rng, 8 * d->bytes);
    p->data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
  }
  fixture_datagram **at = &f->pending;
  while (*at)
    at = &(*at)->next;
  *at = p;
}

static void transmit(fixture *f, size_t from, const weft_burst *burst) {
  size_t to = 0;
  while (to == from || f->neighbour[from][to] != burst->neighbour)
    to++;
  for (size_t i = 0; i < burst->count; i++) {
    const weft_datagram *d = &burst->datagrams[i];
    f->sent++;
    for (size_t b = 0; b < d->bytes; b++) // FNV-1a
      f->digest = (f->digest ^ d->data[b]) * UINT64_C(0x100000001b3);
    const fixture_fate fate = f->fate(f);
    for (int copy = 0; copy < fate.copies; copy++)
      put(f, from, to, d, &fate);
  }
}

// Returns the pending datagram that is due first; NULL if none.
static fixture_datagram *take_due(fixture *f, int64_t until_us) {
  fixture_datagram **first = NULL;
  for (fixture_datagram **at = &f->pending; *at; at = &(*at)->next)
    if ((*at)->due_us <= until_us && (!first || (*at)->due_us < (*first)->due_us))
      first = at;
  if (!first)
    return NULL;
  fixture_datagram *taken = *first;
  *first = taken->next;
  return taken;
}

// --- Engines

static weft_status feed(fixture *f) {
  while (weft_engine_source_ready(f->engine[0])) {
    const size_t left = f->input_bytes - f->fed;
    const size_t bytes = left < FIXTURE_SEGMENT_BYTES ? left : FIXTURE_SEGMENT_BYTES;
    if (bytes == 0)
      return weft_engine_source_end(f->engine[0], f->now_us);
    WEFT_TRY(weft_engine_source_put(f->engine[0], f->input + f->fed, bytes, 0, f->now_us));
    f->fed += bytes;
  }
  return WEFT_OK;
}

static weft_status read_all(fixture *f, size_t index) {
  uint64_t segment;
  size_t bytes;
  while (weft_engine_readable(f->engine[index], &segment, &bytes) == WEFT_OK) {
    uint8_t piece[FIXTURE_SEGMENT_BYTES];
    EXPECT(bytes <= sizeof piece);
    WEFT_TRY(weft_engine_read(f->engine[index], 0, bytes, piece));
    const bool fits = f->got[index] + bytes <= f->input_bytes;
    EXPECT(fits || f->may_differ);
    if (fits)
      memcpy(f->output[index] + f->got[index], piece, bytes);
    f->got[index] += bytes;
    WEFT_TRY(weft_engine_release(f->engine[index]));
  }
  return WEFT_OK;
}

weft_status fixture_turn(fixture *f, size_t index) {
  weft_engine *engine = f->engine[index];
  weft_engine_tick(engine, f->now_us);
  WEFT_TRY(index == 0 ? feed(f) : read_all(f, index));
  weft_event event;
  while (weft_engine_event(engine, &event))
    ;
  weft_burst burst;
  weft_status status;
  while ((status = weft_engine_output(engine, f->now_us, &burst)) == WEFT_OK)
    transmit(f, index, &burst);
  return status == WEFT_PENDING ? WEFT_OK : status;
}

static bool fine(fixture *f, weft_status status) {
  f->nomem += status == WEFT_E_NOMEM && f->tolerate_nomem;
  return status == WEFT_OK || (status == WEFT_E_NOMEM && f->tolerate_nomem);
}

// Returns the next time at which something happens.
static int64_t next_time(const fixture *f) {
  int64_t next = WEFT_ENGINE_NEVER;
  for (const fixture_datagram *p = f->pending; p; p = p->next)
    next = p->due_us < next ? p->due_us : next;
  for (size_t i = 0; i < f->engines; i++) {
    const int64_t deadline = weft_engine_deadline(f->engine[i]);
    next = deadline < next ? deadline : next;
  }
  return next <= f->now_us ? f->now_us + 1 : next;
}

bool fixture_run(fixture *f, int64_t until_us) {
  for (;;) {
    for (size_t i = 0; i < f->engines; i++)
      if (!fine(f, fixture_turn(f, i)))
        return false;
    const int64_t next = next_time(f);
    if (next == WEFT_ENGINE_NEVER)
      return true;
    if (next > until_us)
      return false;
    f->now_us = next;
    fixture_datagram *d;
    while ((d = take_due(f, f->now_us))) {
      const weft_status status = weft_engine_input(f->engine[d->to], f->neighbour[d->to][d->from],
                                                   d->data, d->bytes, f->now_us);
      free(d);
      if (status >= WEFT_E_NOMEM && !fine(f, status))
        return false;
    }
  }
}

bool fixture_all_same(const fixture *f) {
  for (size_t i = 1; i < f->engines; i++)
    if (!weft_engine_done(f->engine[i]) || f->got[i] != f->input_bytes ||
        memcmp(f->output[i], f->input, f->input_bytes) != 0)
      return false;
  return true;
}
