// SPDX-License-Identifier: Apache-2.0
// Defence against pollution. A recoded packet cannot be hashed, and whoever knows a checksum can
// forge packets that agree with it. So, as DART does (Dong, Curtmola, Nita-Rotaru, "Practical
// defenses against pollution attacks in intra-flow network coding for wireless mesh networks",
// 2009), the source reveals a signed random checksum now and then, and a packet is judged only by
// those made after it came. Until then it waits: it is not mixed into anything that goes out. Since
// honest peers thus send nothing that is not verified, one packet that fails convicts its sender.
//
// Meanwhile a segment's trial, a second decoder, takes all packets, verified or not. If its result
// matches the manifest, the segment is complete; if not, the trial is spoilt until checksums tell
// which packets to discard.
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
  slot->waiting = slot->kept = 0;
}

static weft_status keep(weft_engine *e, size_t index, const weft_engine_arrival *a, int64_t now_us,
                        weft_held **out) {
  weft_slot *slot = weft_window_slot(e, a->segment);
  if (slot->kept + a->count > 2u * a->blocks + e->options->batch)
    return WEFT_DEPENDENT; // more than the segment can need
  const void *from = a->packet ? (const void *)a->datagram : a->token;
  void *memory;
  WEFT_TRY(weft_alloc(e->ctx, WEFT_MEM_HOST, sizeof(weft_held) + a->bytes, &memory));
  weft_held *held = memory;
  *held = (weft_held){.at_us = now_us,
                      .neighbour = (uint16_t)index,
                      .generation = e->neighbours[index].generation,
                      .count = (uint16_t)a->count,
                      .bytes = a->bytes};
  memcpy(held->data, from, a->bytes);
  if (slot->held_last)
    slot->held_last->next = held;
  else
    slot->held = held;
  slot->held_last = held;
  slot->kept = (uint16_t)(slot->kept + a->count);
  *out = held;
  return WEFT_OK;
}

// Restores the arrival of a held packet. False: it cannot be parsed, or its shape differs, though
// both were right when it came.
static bool arrival_of(const weft_engine *e, uint64_t segment, const weft_held *held,
                       weft_packet *packet, weft_engine_arrival *out) {
  *out = (weft_engine_arrival){.segment = segment,
                               .blocks = weft_window_held(e, segment)->blocks,
                               .count = held->count,
                               .token = held->data,
                               .bytes = held->bytes};
  if (e->codec->make_token)
    return true;
  out->packet = packet;
  return weft_packet_parse_session(held->data, held->bytes, e->options->stream,
                                   e->options->block_bytes, packet) == WEFT_OK &&
         packet->id.blocks == out->blocks;
}

// Adds the packet to the trial, and counts it as innovative or dependent.
static weft_status try_out(weft_engine *e, weft_slot *slot, const weft_engine_arrival *a,
                           size_t *gain) {
  const weft_status status = weft_data_add(e, &slot->trial, a, gain);
  if (status != WEFT_OK && status != WEFT_DEPENDENT)
    return status;
  e->statistics.received_innovative += *gain;
  e->statistics.received_dependent += a->count - *gain;
  return WEFT_OK;
}

// Adds the packet to those that may be mixed.
static void trust(weft_engine *e, weft_slot *slot, weft_held *held, const weft_engine_arrival *a) {
  size_t gain;
  held->verified = true;
  (void)weft_data_add(e, &slot->segment, a, &gain); // without memory there is less to mix
  weft_neighbour *n = &e->neighbours[held->neighbour];
  weft_policy_want *want = weft_neighbour_want(e, n, a->segment);
  if (want && n->generation == held->generation)
    weft_want_common(want, gain);
}

weft_status weft_held_take(weft_engine *e, size_t index, const weft_engine_arrival *a,
                           size_t *innovative, int64_t now_us) {
  weft_slot *slot = weft_window_slot(e, a->segment);
  weft_held *held;
  *innovative = 0;
  if (!slot->tried) {
    WEFT_TRY(try_out(e, slot, a, innovative));
    if (*innovative == 0) // the trial holds it already, as a combination of others
      return WEFT_OK;
  }
  const weft_status status = keep(e, index, a, now_us, &held);
  if (status == WEFT_OK) {
    held->added = !slot->tried;
    held->gain = (uint16_t)*innovative;
    if (e->neighbours[index].is_source)
      trust(e, slot, held, a);
  }
  if (!slot->tried)
    return WEFT_OK;        // a packet that could not be kept may still complete the segment
  if (status == WEFT_OK) { // the trial is full, but spoilt
    slot->waiting = (uint16_t)(slot->waiting + a->count);
    e->statistics.received_waiting += a->count;
  } else if (status == WEFT_DEPENDENT) {
    e->statistics.received_dependent += a->count;
  }
  *innovative = status == WEFT_OK ? a->count : 0; // as far as is known
  return status == WEFT_DEPENDENT ? WEFT_OK : status;
}

// Rebuilds the trial from what is left, after some of it was convicted.
static void rebuild(weft_engine *e, uint64_t segment) {
  weft_slot *slot = weft_window_slot(e, segment);
  e->codec->close(e->codec->user, slot->trial);
  slot->trial = NULL;
  slot->tried = false;
  for (weft_held *held = slot->held; held; held = held->next) {
    weft_packet packet;
    weft_engine_arrival a;
    size_t gain = 0;
    if (held->added) {
      e->statistics.received_innovative -= held->gain;
      e->statistics.received_dependent -= held->count - held->gain;
    } else {
      slot->waiting = (uint16_t)(slot->waiting - held->count);
      e->statistics.received_waiting -= held->count;
    }
    held->added =
        arrival_of(e, segment, held, &packet, &a) && try_out(e, slot, &a, &gain) == WEFT_OK;
    held->gain = (uint16_t)gain;
    if (!held->added) { // no memory: it keeps waiting
      slot->waiting = (uint16_t)(slot->waiting + held->count);
      e->statistics.received_waiting += held->count;
    }
  }
}

void weft_held_try(weft_engine *e, uint64_t segment, int64_t now_us) {
  weft_slot *slot = weft_window_slot(e, segment);
  if (slot->complete || slot->failed || slot->tried || !slot->manifest ||
      weft_data_rank(e, slot->trial) < weft_window_held(e, segment)->blocks)
    return;
  void *const verified = slot->segment;
  bool matches = false;
  slot->segment = slot->trial;
  const weft_status status = weft_manifest_check(e, segment, &matches);
  if (status == WEFT_OK && matches) {
    slot->trial = NULL;
    e->codec->close(e->codec->user, verified);
    weft_window_complete(e, segment, now_us);
    return;
  }
  slot->segment = verified;
  if (status != WEFT_OK) {
    weft_requests_again(e, now_us); // no memory
    return;
  }
  e->statistics.hash_failures++;
  slot->tried = true; // the next checksum will tell why
  weft_data_show_rank(e, segment, now_us);
}

// --- Judging

static bool agrees(const weft_engine *e, uint64_t segment, const weft_reveal *reveal,
                   const weft_held *held) {
  if (e->codec->make_token)
    return e->codec->verify_token(e->codec->user, held->data, held->bytes);
  weft_packet packet;
  weft_engine_arrival a;
  return arrival_of(e, segment, held, &packet, &a) && // the sums are of this number of blocks
         e->codec->verify(e->codec->user, &packet, reveal->seed, reveal->sums);
}

static void acquit(weft_engine *e, uint64_t segment, weft_held *held, int64_t now_us) {
  const int64_t waited_us = now_us - held->at_us;
  weft_packet packet;
  weft_engine_arrival a;
  e->statistics.verified += held->count;
  e->statistics.waited_us += waited_us * held->count;
  if (waited_us > e->statistics.waited_max_us)
    e->statistics.waited_max_us = waited_us;
  if (arrival_of(e, segment, held, &packet, &a))
    trust(e, weft_window_slot(e, segment), held, &a);
}

// Removes it from what is held; the trial may still contain it.
static void discard(weft_engine *e, weft_slot *slot, weft_held *held) {
  slot->kept = (uint16_t)(slot->kept - held->count);
  e->statistics.received_polluted += held->count;
  if (held->added) {
    e->statistics.received_innovative -= held->gain;
    e->statistics.received_dependent -= held->count - held->gain;
  } else {
    slot->waiting = (uint16_t)(slot->waiting - held->count);
    e->statistics.received_waiting -= held->count;
  }
  weft_free(e->ctx, WEFT_MEM_HOST, held);
}

static void convict(weft_engine *e, const weft_held *held) {
  if (e->neighbours[held->neighbour].generation == held->generation)
    weft_neighbour_ban(e, held->neighbour);
}

// Whether it came from a neighbour that was just banned: then it is not worth a trial anywhere.
static bool of_banned(const weft_engine *e, const weft_held *held) {
  const weft_neighbour *n = &e->neighbours[held->neighbour];
  return n->generation == held->generation && n->state == WEFT_NEIGHBOUR_LOST &&
         n->lost == WEFT_LOST_BANNED;
}

static void purge(weft_engine *e, int64_t now_us) {
  for (size_t i = 0; i < e->window; i++) {
    weft_slot *slot = &e->slots[i];
    bool spoilt = false;
    weft_held *last = NULL;
    for (weft_held **at = &slot->held; *at;) {
      weft_held *held = *at;
      if (!held->verified && of_banned(e, held)) {
        spoilt = spoilt || held->added;
        *at = held->next;
        discard(e, slot, held);
      } else {
        last = held;
        at = &held->next;
      }
    }
    slot->held_last = last;
    if (!spoilt || slot->complete)
      continue;
    rebuild(e, e->number[i]);
    weft_data_show_rank(e, e->number[i], now_us);
  }
}

static void judge(weft_engine *e, uint64_t segment, int64_t now_us) {
  weft_slot *slot = weft_window_slot(e, segment);
  const weft_reveal *reveal = slot->reveal;
  // Packets that came before this came before any neighbour can have known the checksum.
  const int64_t before = (int64_t)reveal->made_us + weft_clock_offset(e->clock_us) -
                         weft_or(e->options->spread_us, 250000);
  bool spoilt = false, guilty = false;
  weft_held *last = NULL;
  for (weft_held **at = &slot->held; *at;) {
    weft_held *held = *at;
    const bool judged = !held->verified && held->at_us < before;
    if (judged && !agrees(e, segment, reveal, held)) {
      spoilt = spoilt || held->added;
      convict(e, held);
      guilty = true;
      *at = held->next;
      discard(e, slot, held);
      continue;
    }
    if (judged)
      acquit(e, segment, held, now_us);
    last = held;
    at = &held->next;
  }
  slot->held_last = last;
  if (spoilt)
    rebuild(e, segment);
  if (guilty)
    purge(e, now_us);
  weft_data_show_rank(e, segment, now_us);
  weft_engine_changed(e);
  weft_held_try(e, segment, now_us);
  if (!slot->complete && weft_data_rank(e, slot->segment) == weft_window_held(e, segment)->blocks)
    weft_data_full(e, segment, now_us);
}

// Judges what still waits when a segment is complete, and so known, by a checksum of this peer's
// own: a polluter must not get away because others were faster.
void weft_held_settle(weft_engine *e, uint64_t segment, int64_t now_us) {
  weft_slot *slot = weft_window_slot(e, segment);
  uint8_t memory[sizeof(weft_reveal) + WEFT_CHECKSUM_ROWS * WEFT_CHECKSUM_MAX_BLOCKS + 16];
  weft_reveal *truth = (weft_reveal *)(void *)(memory + (16 - (uintptr_t)memory % 16) % 16);
  bool known = false, guilty = false;
  for (weft_held **at = &slot->held; *at;) {
    weft_held *held = *at;
    // What went into a trial that proved right is right, unless it was a combination of the others.
    const bool proved = held->added && held->gain == held->count && !slot->tried;
    const bool open = !held->verified && !proved;
    if (open && !known) {
      truth->seed = weft_rng_u64(&e->self.rng);
      if (e->codec->checksum &&
          e->codec->checksum(e->codec->user, slot->segment, truth->seed, truth->sums) != WEFT_OK)
        return;
      known = true;
    }
    if (open && !agrees(e, segment, truth, held)) {
      convict(e, held);
      guilty = true;
      *at = held->next;
      discard(e, slot, held);
    } else {
      at = &held->next;
    }
  }
  if (guilty)
    purge(e, now_us);
}

// --- Taking and passing on

// Peers pass checksums on until the segment is played: a peer that is complete may stand between
// the source and those that are not.
static bool wanted(const weft_engine *e, uint64_t segment) { return segment >= e->play; }

void weft_revealed_take(weft_engine *e, size_t index, const weft_revealed *r, int64_t now_us) {
  if (!weft_checksums_on(e) || e->self.source || !weft_window_has(e, r->segment))
    return;
  weft_slot *slot = weft_window_slot(e, r->segment);
  uint8_t *marks = &e->neighbours[index].marks[weft_place(e, r->segment)];
  if (slot->reveal && r->made_us >= slot->reveal->made_us)
    *marks = (uint8_t)(*marks & ~WEFT_MARK_REVEALED); // it has this one already, or a newer one
  const bool asked =
      r->made_us <= slot->asked_made_us && now_us - slot->asked_reveal_us < weft_ask_every(e);
  if ((slot->reveal && slot->reveal->made_us >= r->made_us) || asked || !wanted(e, r->segment))
    return;
  // A neighbour that announced a checksum before and did not give it is not waited for: otherwise
  // one that repeats this, with any time that it likes, would keep all checksums away.
  if (!(*marks & WEFT_MARK_ASKED)) {
    slot->asked_made_us = r->made_us;
    slot->asked_reveal_us = now_us;
  }
  *marks |= WEFT_MARK_ASKED;
  weft_request_send(e, index, &(weft_request){.segment = r->segment, .kind = WEFT_REQUEST_CHECKSUM},
                    now_us);
}

// Announces a checksum. The source tells all, others tell a few: that reaches nearly every peer,
// and those it misses hear of the next one. Telling all cost more datagrams than the stream itself.
static void hand_on(weft_engine *e, uint64_t segment, size_t except) {
  enum { FEW = 4 };
  const size_t start = e->used ? (size_t)weft_rng_below(&e->self.rng, e->used) : 0;
  size_t left = e->self.source ? e->used : FEW;
  for (size_t i = 0; i < e->used && left; i++) {
    const size_t index = (start + i) % e->used;
    const weft_neighbour *n = &e->neighbours[index];
    if (index == except || n->state != WEFT_NEIGHBOUR_OPEN || n->is_source || n->doubtful)
      continue;
    weft_neighbour_mark(e, index, segment, WEFT_MARK_REVEALED, WEFT_DUE_CHECKSUMS);
    left--;
  }
}

// Replaces the one before, which stays if that fails.
static weft_status keep_reveal(weft_engine *e, const weft_checksum *c) {
  weft_slot *slot = weft_window_slot(e, c->segment);
  const size_t sums = (size_t)c->blocks * WEFT_CHECKSUM_ROWS;
  if (!slot->reveal) {
    void *memory;
    WEFT_TRY(weft_alloc(e->ctx, WEFT_MEM_HOST, sizeof *slot->reveal + sums, &memory));
    slot->reveal = memory;
  }
  slot->reveal->made_us = c->made_us;
  slot->reveal->seed = c->seed;
  memcpy(slot->reveal->signature, c->signature, sizeof c->signature);
  memcpy(slot->reveal->sums, c->sums, sums);
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
  WEFT_TRY(weft_signature_check(e, index, text, bytes, c->signature));
  WEFT_TRY(keep_reveal(e, c));
  weft_clock_learn(e->clock_us, &e->clock_turn_us, now_us - (int64_t)c->made_us, now_us);
  e->statistics.checksums++;
  uint8_t *marks = &e->neighbours[index].marks[weft_place(e, c->segment)];
  *marks = (uint8_t)(*marks & ~WEFT_MARK_ASKED);
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
  uint8_t sums[WEFT_CHECKSUM_ROWS * WEFT_CHECKSUM_MAX_BLOCKS] = {0}, text[WEFT_SIGNED_MAX];
  weft_checksum c = {.segment = segment,
                     .blocks = weft_window_held(e, segment)->blocks,
                     .made_us = (uint64_t)now_us,
                     .seed = weft_rng_u64(&e->self.rng),
                     .sums = sums};
  if (e->codec->checksum)
    WEFT_TRY(
        e->codec->checksum(e->codec->user, weft_window_slot(e, segment)->segment, c.seed, sums));
  const size_t bytes = weft_checksum_text(&c, e->options->stream, e->options->block_bytes, text);
  e->statistics.signatures++;
  if (!e->options->trust->sign(e->options->trust->user, text, bytes, c.signature))
    return WEFT_E_KEY;
  WEFT_TRY(keep_reveal(e, &c));
  e->statistics.checksums++;
  hand_on(e, segment, SIZE_MAX);
  return WEFT_OK;
}

void weft_checksum_tick(weft_engine *e, int64_t now_us) {
  for (size_t at = 0; e->self.source && at < e->window; at++) {
    weft_slot *slot = &e->slots[at];
    if (now_us < slot->next_reveal_us)
      continue;
    (void)reveal(e, e->number[at], now_us); // without memory: the next one comes instead
    slot->reveals++;
    // Peers far from the source get their packets later: each interval is a quarter of the first
    // longer.
    const int64_t age = now_us - slot->made_us;
    const bool enough = slot->reveals >= MOST_REVEALS || age > weft_lag_us(e);
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
