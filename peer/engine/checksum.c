// SPDX-License-Identifier: Apache-2.0
// Pollution. A recoded packet cannot be hashed, and whoever knows a checksum can forge packets that
// agree with it. So, as DART does (Dong, Curtmola, Nita-Rotaru, "Practical defenses against
// pollution attacks in intra-flow network coding for wireless mesh networks", 2009), the source
// reveals a signed random checksum now and then, and a packet is judged only by those made after it
// came. Until then it waits: it is not mixed into anything that goes out. Since honest peers thus
// send nothing that is not verified, one packet that fails convicts its sender.
#include <string.h>

#include "peer/engine/internal.h"

enum { MOST_REVEALS = 16 };

bool weft_checksums_on(const weft_engine *e) {
  return e->options->checksum_us > 0 && weft_is_live(e) &&
         (e->codec->make_token ? e->codec->verify_token != NULL : e->codec->verify != NULL);
}

// --- Packets that wait

void weft_held_drop(weft_engine *e, weft_slot *slot) {
  while (slot->held) {
    weft_held *next = slot->held->next;
    if (!slot->held->added) {
      e->statistics.received_waiting -= slot->held->count;
      e->statistics.received_late += slot->held->count;
    }
    weft_free(e->ctx, WEFT_MEM_HOST, slot->held);
    slot->held = next;
  }
  slot->held_last = NULL;
  slot->waiting = slot->loose = slot->kept = 0;
}

weft_status weft_held_keep(weft_engine *e, size_t index, const weft_engine_arrival *a,
                           bool verified, size_t gain, bool added, int64_t now_us) {
  weft_slot *slot = weft_window_slot(e, a->segment);
  if (slot->kept + a->count > 2u * a->blocks + e->options->batch) {
    e->statistics.received_dependent += added ? 0 : a->count;
    return WEFT_DEPENDENT; // more than it can need
  }
  const void *from = a->packet ? (const void *)a->datagram : a->token;
  void *memory;
  WEFT_TRY(weft_alloc(e->ctx, WEFT_MEM_HOST, sizeof(weft_held) + a->bytes, &memory));
  weft_held *held = memory;
  *held = (weft_held){.at_us = now_us,
                      .neighbour = (uint16_t)index,
                      .generation = e->neighbours[index].generation,
                      .count = (uint16_t)a->count,
                      .gain = (uint16_t)gain,
                      .verified = verified,
                      .added = added,
                      .bytes = a->bytes};
  memcpy(held->data, from, a->bytes);
  if (slot->held_last)
    slot->held_last->next = held;
  else
    slot->held = held;
  slot->held_last = held;
  slot->kept = (uint16_t)(slot->kept + a->count);
  if (!added) {
    slot->waiting = (uint16_t)(slot->waiting + a->count);
    e->statistics.received_waiting += a->count;
  } else if (!verified) {
    slot->loose = (uint16_t)(slot->loose + a->count);
  }
  return WEFT_OK;
}

// Gives what is held to the decoder.
static void add_held(weft_engine *e, uint64_t segment, weft_held *held) {
  weft_slot *slot = weft_window_slot(e, segment);
  weft_packet packet;
  weft_engine_arrival a = {.segment = segment,
                           .blocks = weft_window_held(e, segment)->blocks,
                           .count = held->count,
                           .token = held->data,
                           .bytes = held->bytes};
  if (!e->codec->make_token) {
    if (weft_packet_parse_session(held->data, held->bytes, e->options->stream,
                                  e->options->block_bytes, &packet) != WEFT_OK)
      return; // it was parsed when it came
    a.packet = &packet;
  }
  size_t gain;
  const weft_status status = weft_data_add(e, segment, &a, &gain);
  if (status != WEFT_OK && status != WEFT_DEPENDENT)
    return; // for want of memory: it waits on
  held->added = true;
  held->gain = (uint16_t)gain;
  slot->waiting = (uint16_t)(slot->waiting - held->count);
  slot->loose = (uint16_t)(slot->loose + (held->verified ? 0 : held->count));
  e->statistics.received_waiting -= held->count;
  e->statistics.received_innovative += gain;
  e->statistics.received_dependent += held->count - gain;
}

// Takes everything out of the decoder and gives it what is verified.
static void rebuild(weft_engine *e, uint64_t segment) {
  weft_slot *slot = weft_window_slot(e, segment);
  e->codec->close(e->codec->user, slot->segment);
  slot->segment = NULL;
  for (weft_held *held = slot->held; held; held = held->next) {
    if (!held->added)
      continue;
    held->added = false;
    slot->waiting = (uint16_t)(slot->waiting + held->count);
    e->statistics.received_waiting += held->count;
    e->statistics.received_innovative -= held->gain;
    e->statistics.received_dependent -= held->count - held->gain;
  }
  slot->loose = 0;
  for (weft_held *held = slot->held; held; held = held->next)
    if (held->verified)
      add_held(e, segment, held);
}

static size_t rank_of(const weft_engine *e, const weft_slot *slot) {
  return slot->segment ? e->codec->rank(e->codec->user, slot->segment) : 0;
}

void weft_held_try(weft_engine *e, uint64_t segment, int64_t now_us) {
  weft_slot *slot = weft_window_slot(e, segment);
  const size_t blocks = weft_window_held(e, segment)->blocks;
  if (slot->complete || slot->failed || slot->tried || !slot->manifest ||
      rank_of(e, slot) + slot->waiting < blocks)
    return;
  for (weft_held *held = slot->held; held; held = held->next)
    if (!held->added)
      add_held(e, segment, held);
  bool matches = false;
  if (rank_of(e, slot) < blocks || weft_manifest_check(e, segment, &matches) != WEFT_OK)
    return;
  if (matches) {
    weft_window_complete(e, segment, now_us);
    return;
  }
  e->statistics.hash_failures++;
  slot->tried = true; // the next checksum will tell why
  rebuild(e, segment);
  weft_data_show_rank(e, segment, now_us);
}

// --- Judging

static bool agrees(const weft_engine *e, const weft_reveal *reveal, const weft_held *held) {
  if (e->codec->make_token)
    return e->codec->verify_token(e->codec->user, held->data, held->bytes);
  weft_packet packet;
  return weft_packet_parse_session(held->data, held->bytes, e->options->stream,
                                   e->options->block_bytes, &packet) == WEFT_OK &&
         e->codec->verify(e->codec->user, &packet, reveal->seed, reveal->sums);
}

static void acquit(weft_engine *e, uint64_t segment, weft_held *held, int64_t now_us) {
  weft_slot *slot = weft_window_slot(e, segment);
  const int64_t waited_us = now_us - held->at_us;
  held->verified = true;
  e->statistics.verified += held->count;
  e->statistics.waited_us += waited_us * held->count;
  if (waited_us > e->statistics.waited_max_us)
    e->statistics.waited_max_us = waited_us;
  if (held->added)
    slot->loose = (uint16_t)(slot->loose - held->count);
  else
    add_held(e, segment, held);
}

static void convict(weft_engine *e, weft_slot *slot, weft_held *held) {
  slot->kept = (uint16_t)(slot->kept - held->count);
  e->statistics.received_polluted += held->count;
  if (held->added) {
    slot->loose = (uint16_t)(slot->loose - held->count);
    e->statistics.received_innovative -= held->gain;
    e->statistics.received_dependent -= held->count - held->gain;
  } else {
    slot->waiting = (uint16_t)(slot->waiting - held->count);
    e->statistics.received_waiting -= held->count;
  }
  if (e->neighbours[held->neighbour].generation == held->generation)
    weft_neighbour_ban(e, held->neighbour);
  weft_free(e->ctx, WEFT_MEM_HOST, held);
}

static void judge(weft_engine *e, uint64_t segment, int64_t now_us) {
  weft_slot *slot = weft_window_slot(e, segment);
  const weft_reveal *reveal = slot->reveal;
  // What came before anybody here can have known the checksum.
  const int64_t before = (int64_t)reveal->made_us + weft_clock_offset(e->clock_us) -
                         weft_or(e->options->spread_us, 250000);
  bool spoilt = false;
  weft_held *last = NULL;
  for (weft_held **at = &slot->held; *at;) {
    weft_held *held = *at;
    const bool judged = !held->verified && held->at_us < before;
    if (judged && !agrees(e, reveal, held)) {
      spoilt = spoilt || held->added;
      *at = held->next;
      convict(e, slot, held);
      continue;
    }
    if (judged)
      acquit(e, segment, held, now_us);
    last = held;
    at = &held->next;
  }
  slot->held_last = last;
  slot->tried = false;
  if (spoilt)
    rebuild(e, segment);
  weft_data_show_rank(e, segment, now_us);
  weft_engine_changed(e);
  if (!slot->loose && rank_of(e, slot) == weft_window_held(e, segment)->blocks)
    weft_data_full(e, segment, now_us);
  else
    weft_held_try(e, segment, now_us);
}

// A complete segment is the truth: what still waits is judged by a checksum of this peer's own, so
// that a polluter does not get away because others were faster.
void weft_held_settle(weft_engine *e, uint64_t segment) {
  weft_slot *slot = weft_window_slot(e, segment);
  uint8_t memory[sizeof(weft_reveal) + WEFT_CHECKSUM_ROWS * WEFT_CHECKSUM_MAX_BLOCKS + 16];
  weft_reveal *truth = (weft_reveal *)(void *)(memory + (16 - (uintptr_t)memory % 16) % 16);
  bool known = false;
  for (weft_held **at = &slot->held; *at;) {
    weft_held *held = *at;
    const bool open = !held->verified && !held->added;
    if (open && !known) {
      truth->seed = weft_rng_u64(&e->self.rng);
      if (e->codec->checksum &&
          e->codec->checksum(e->codec->user, slot->segment, truth->seed, truth->sums) != WEFT_OK)
        return;
      known = true;
    }
    if (open && !agrees(e, truth, held)) {
      *at = held->next;
      convict(e, slot, held);
    } else {
      at = &held->next;
    }
  }
}

// --- Taking and handing on

// Everybody hands checksums on until the segment is played: who is complete may stand between the
// source and those who are not.
static bool wanted(const weft_engine *e, uint64_t segment) { return segment >= e->play; }

void weft_revealed_take(weft_engine *e, size_t index, const weft_revealed *r, int64_t now_us) {
  if (!weft_checksums_on(e) || e->self.source || !weft_window_has(e, r->segment))
    return;
  weft_slot *slot = weft_window_slot(e, r->segment);
  const bool asked = r->made_us <= slot->asked_made_us &&
                     now_us - slot->asked_reveal_us < WEFT_TIMER(e, ask_us, 100000);
  if ((slot->reveal && slot->reveal->made_us >= r->made_us) || asked || !wanted(e, r->segment))
    return;
  slot->asked_made_us = r->made_us;
  slot->asked_reveal_us = now_us;
  weft_request_send(e, index, &(weft_request){.segment = r->segment, .kind = WEFT_REQUEST_CHECKSUM},
                    now_us);
}

static void hand_on(weft_engine *e, uint64_t segment, size_t except) {
  for (size_t i = 0; i < e->used; i++)
    if (i != except && e->neighbours[i].state == WEFT_NEIGHBOUR_OPEN)
      weft_neighbour_mark(e, i, segment, WEFT_MARK_REVEALED, WEFT_DUE_CHECKSUMS);
}

static weft_status room_for(weft_engine *e, weft_slot *slot, size_t sums) {
  if (slot->reveal)
    return WEFT_OK;
  void *memory;
  WEFT_TRY(weft_alloc(e->ctx, WEFT_MEM_HOST, sizeof *slot->reveal + sums, &memory));
  memset(memory, 0, sizeof *slot->reveal + sums);
  slot->reveal = memory;
  return WEFT_OK;
}

weft_status weft_checksum_take(weft_engine *e, size_t index, const weft_checksum *c,
                               int64_t now_us) {
  if (!weft_checksums_on(e) || e->self.source || !weft_window_has(e, c->segment))
    return WEFT_DEPENDENT;
  weft_slot *slot = weft_window_slot(e, c->segment);
  if (c->blocks != weft_window_held(e, c->segment)->blocks)
    return slot->manifest ? WEFT_E_FOREIGN : WEFT_DEPENDENT;
  if ((slot->reveal && slot->reveal->made_us >= c->made_us) || !wanted(e, c->segment))
    return WEFT_DEPENDENT;
  uint8_t text[WEFT_SIGNED_MAX];
  const size_t bytes = weft_checksum_text(c, e->options->stream, e->options->block_bytes, text);
  e->statistics.signatures++;
  if (!e->options->trust->verify(e->options->trust->user, text, bytes, c->signature)) {
    e->statistics.manifests_refused++;
    return WEFT_E_FOREIGN;
  }
  const size_t sums = (size_t)c->blocks * WEFT_CHECKSUM_ROWS;
  WEFT_TRY(room_for(e, slot, sums));
  slot->reveal->made_us = c->made_us;
  slot->reveal->seed = c->seed;
  memcpy(slot->reveal->signature, c->signature, sizeof c->signature);
  memcpy(slot->reveal->sums, c->sums, sums);
  weft_clock_learn(e->clock_us, &e->clock_turn_us, now_us - (int64_t)c->made_us, now_us);
  e->statistics.checksums++;
  hand_on(e, c->segment, index);
  if (!slot->complete)
    judge(e, c->segment, now_us);
  return WEFT_OK;
}

size_t weft_checksum_put(weft_engine *e, uint64_t segment, uint8_t *out) {
  const weft_slot *slot = weft_window_slot(e, segment);
  if (!weft_window_has(e, segment) || !slot->reveal)
    return 0;
  weft_checksum c = {.segment = segment,
                     .blocks = weft_window_held(e, segment)->blocks,
                     .made_us = slot->reveal->made_us,
                     .seed = slot->reveal->seed,
                     .sums = slot->reveal->sums};
  memcpy(c.signature, slot->reveal->signature, sizeof c.signature);
  return weft_checksum_write(&c, out);
}

// --- The source

static weft_status reveal(weft_engine *e, uint64_t segment, int64_t now_us) {
  weft_slot *slot = weft_window_slot(e, segment);
  const uint16_t blocks = weft_window_held(e, segment)->blocks;
  WEFT_TRY(room_for(e, slot, (size_t)blocks * WEFT_CHECKSUM_ROWS));
  weft_reveal *r = slot->reveal;
  r->seed = weft_rng_u64(&e->self.rng);
  r->made_us = (uint64_t)now_us;
  if (e->codec->checksum)
    WEFT_TRY(e->codec->checksum(e->codec->user, slot->segment, r->seed, r->sums));
  weft_checksum c = {.segment = segment,
                     .blocks = blocks,
                     .made_us = r->made_us,
                     .seed = r->seed,
                     .sums = r->sums};
  uint8_t text[WEFT_SIGNED_MAX];
  const size_t bytes = weft_checksum_text(&c, e->options->stream, e->options->block_bytes, text);
  e->statistics.signatures++;
  if (!e->options->trust->sign(e->options->trust->user, text, bytes, r->signature))
    return WEFT_E_KEY;
  e->statistics.checksums++;
  hand_on(e, segment, SIZE_MAX);
  return WEFT_OK;
}

void weft_checksum_tick(weft_engine *e, int64_t now_us) {
  for (size_t at = 0; e->self.source && at < e->window; at++) {
    weft_slot *slot = &e->slots[at];
    if (now_us < slot->next_reveal_us)
      continue;
    (void)reveal(e, e->number[at], now_us); // for want of memory: with the next one
    slot->reveals++;
    // Peers far from the source get their packets later: the next one waits a quarter longer.
    const int64_t age = now_us - slot->made_us;
    const bool enough = slot->reveals >= MOST_REVEALS || age > weft_or(e->options->lag_us, 3000000);
    slot->next_reveal_us =
        enough ? WEFT_ENGINE_NEVER : now_us + e->options->checksum_us * (4 + slot->reveals) / 4;
  }
}

int64_t weft_checksum_deadline(const weft_engine *e) {
  int64_t at = WEFT_ENGINE_NEVER;
  for (size_t i = 0; e->self.source && i < e->window; i++)
    at = e->slots[i].next_reveal_us < at ? e->slots[i].next_reveal_us : at;
  return at;
}
