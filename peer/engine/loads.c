// SPDX-License-Identifier: Apache-2.0
// Segments that the application supplies when neighbours lack them: to a source of a file, which
// signs what it loads, and to a receiver that reads back what it wrote (self.rereads), which
// compares it with what the source signed.
#include <sodium.h>
#include <string.h>

#include "peer/engine/internal.h"

// What the source signed about a segment that may be dropped and loaded again.
struct weft_signed {
  weft_proof proof;
  int64_t at_us, made_us;
  bool last;
};

// --- What may be loaded again

// Enough for a file of 34 GiB in segments of 64 KiB.
enum { SIGNED_BYTES_MOST = 64 << 20 };

static void keep_signed(weft_engine *e, uint64_t segment) {
  const weft_slot *slot = weft_window_slot(e, segment);
  e->signed_of[segment] = (weft_signed){.proof = *weft_window_proof(e, segment),
                                        .at_us = slot->at_us,
                                        .made_us = slot->made_us,
                                        .last = slot->last};
}

void weft_rereads_keep(weft_engine *e, uint64_t segment) {
  if (e->rereads && e->signed_of && segment < weft_window_total(e))
    keep_signed(e, segment);
}

// Begins to keep what rereading needs. Without memory for it, or if something was dropped before
// the end was known, the only loss is that others cannot get it from here.
void weft_rereads_start(weft_engine *e) {
  const bool sought = e->epoch > 1;
  if (!e->self.rereads || sought || e->tail > 0 || e->codec->make_token)
    return;
  const uint64_t total = weft_window_total(e);
  if (e->options->trust) {
    void *memory;
    if (total > SIGNED_BYTES_MOST / sizeof *e->signed_of ||
        weft_alloc(e->ctx, WEFT_MEM_HOST, (size_t)total * sizeof *e->signed_of + 1, &memory) !=
            WEFT_OK)
      return;
    e->signed_of = memory;
    for (uint64_t s = e->tail; s < e->tail + e->window && s < total; s++)
      if (weft_window_has(e, s) && weft_window_slot(e, s)->complete)
        keep_signed(e, s);
  }
  e->rereads = true;
}

void weft_rereads_end(weft_engine *e) {
  if (!e->rereads)
    return;
  weft_free(e->ctx, WEFT_MEM_HOST, e->signed_of);
  e->signed_of = NULL;
  e->rereads = false;
}

// --- A source

// Plans to ask for a failed load again, but not at once: while memory is short, that would not end.
static weft_status load_later(weft_engine *e, uint64_t segment, int64_t now_us,
                              weft_status status) {
  enum { AGAIN_US = 100000 };
  weft_window_slot(e, segment)->load_again = true;
  if (e->gather_us == WEFT_ENGINE_NEVER)
    e->gather_us = now_us + AGAIN_US;
  return status;
}

void weft_loads_tick(weft_engine *e, int64_t now_us) {
  if (!weft_loads(e) || now_us < e->gather_us)
    return;
  e->gather_us = WEFT_ENGINE_NEVER;
  for (size_t at = 0; at < e->window; at++) {
    weft_slot *slot = &e->slots[at];
    if (slot->load_again && !slot->segment)
      weft_tell(e, &slot->tell_load);
    slot->load_again = false;
  }
}

static weft_status load_at_source(weft_engine *e, uint64_t segment, const uint8_t *data,
                                  size_t bytes, int64_t now_us) {
  weft_slot *slot = weft_window_slot(e, segment);
  weft_status status = weft_source_open(e, segment, data, bytes);
  if (status != WEFT_OK)
    return load_later(e, segment, now_us, status);
  status = weft_manifest_make(e, segment, data, bytes, 0, bytes < weft_segment_bytes(e), now_us);
  if (status != WEFT_OK) {
    weft_window_place(e, segment);
    slot->solo_us = now_us; // keeps its place for a while
    return load_later(e, segment, now_us, status);
  }
  e->statistics.segments++;
  weft_engine_changed(e);
  return WEFT_OK;
}

// --- A receiver

static bool as_signed(weft_engine *e, uint64_t segment, const uint8_t *data, size_t bytes) {
  uint8_t digest[WEFT_DIGEST_BYTES];
  if (!e->options->trust)
    return true;
  (void)crypto_generichash(digest, sizeof digest, data, bytes, NULL, 0);
  e->statistics.hashed_bytes += bytes;
  return memcmp(digest, e->signed_of[segment].proof.digest, sizeof digest) == 0;
}

// Adds the blocks as if they had been received, so that packets are recoded from them. The blocks
// themselves would be redundant wherever others send them, too.
static weft_status add_blocks(weft_engine *e, uint64_t segment, const uint8_t *data, size_t bytes) {
  const size_t k = e->options->block_bytes;
  weft_slot *slot = weft_window_slot(e, segment);
  weft_packet packet = {.id = {.stream = e->options->stream,
                               .segment = segment,
                               .blocks = weft_window_blocks(e, segment),
                               .block_bytes = (uint32_t)k},
                        .mode = WEFT_PACKET_SYSTEMATIC};
  for (; packet.index < packet.id.blocks; packet.index++) {
    const size_t at = packet.index * k, left = bytes - at;
    packet.payload = data + at;
    if (left < k) { // the last block is padded with zeros
      uint8_t *padded = e->scratch->payload_rows[0];
      memset(padded, 0, k);
      memcpy(padded, data + at, left);
      packet.payload = padded;
    }
    const weft_engine_arrival arrival = {
        .segment = segment, .blocks = packet.id.blocks, .count = 1, .packet = &packet};
    size_t innovative;
    WEFT_TRY(weft_data_add(e, &slot->segment, &arrival, &innovative));
  }
  return WEFT_OK;
}

// Takes a segment that was read back. If it is not what the source signed, rereading ends, and
// nothing is offered to others any more.
static weft_status load_again(weft_engine *e, uint64_t segment, const uint8_t *data, size_t bytes) {
  weft_slot *slot = weft_window_slot(e, segment);
  if (!as_signed(e, segment, data, bytes)) {
    weft_rereads_end(e);
    return WEFT_E_FOREIGN;
  }
  const weft_status status = add_blocks(e, segment, data, bytes);
  if (status != WEFT_OK) {
    e->number[weft_place(e, segment)] = WEFT_NO_SEGMENT; // asked for again at its next map
    weft_slot_close(e, slot);
    return status;
  }
  if (e->options->trust) {
    const weft_signed *kept = &e->signed_of[segment];
    *weft_window_proof(e, segment) = kept->proof;
    slot->manifest = true;
    slot->at_us = kept->at_us;
    slot->made_us = kept->made_us;
    slot->last = kept->last;
  }
  slot->bytes = (uint32_t)bytes;
  e->idle = false;
  return WEFT_OK;
}

// --- Both

// Whether a segment is one of the receiver's own, which it has not released or does not have yet.
static bool own(const weft_engine *e, uint64_t segment) {
  return !weft_loads(e) && segment != WEFT_NO_SEGMENT && segment >= e->released;
}

weft_status weft_engine_load(weft_engine *e, uint64_t segment, const uint8_t *data, size_t bytes,
                             int64_t now_us) {
  if (!weft_loads(e) && !e->self.rereads)
    return WEFT_E_STATE;
  if (segment >= weft_window_total(e) || (!data && weft_loads(e)))
    return WEFT_E_ARGUMENT;
  if (!data)
    weft_rereads_end(e);
  if (!weft_loads(e) && !e->rereads)
    return WEFT_OK; // requested before rereading ended
  if (!weft_window_has(e, segment) || own(e, segment))
    return WEFT_E_ARGUMENT;
  weft_slot *slot = weft_window_slot(e, segment);
  if (slot->segment)
    return WEFT_OK; // loaded already
  if (bytes != weft_window_bytes(e, segment))
    return WEFT_E_ARGUMENT;
  WEFT_TRY(weft_loads(e) ? load_at_source(e, segment, data, bytes, now_us)
                         : load_again(e, segment, data, bytes));
  const size_t at = weft_place(e, segment);
  e->held[at].rank = e->held[at].received = e->held[at].blocks;
  slot->complete = true;
  if (e->blocks)
    memset(e->blocks + at * e->blocks_stride, 0xFF, e->blocks_stride);
  return WEFT_OK;
}

// Whether a neighbour lacks the segment in a place and may still get it. A neighbour that claims
// for ever to lack it does not keep the place from others.
static bool kept(const weft_engine *e, uint64_t segment, int64_t now_us) {
  enum { KEPT_US = 20000000 };
  if (segment == WEFT_NO_SEGMENT || now_us - weft_window_slot(e, segment)->solo_us >= KEPT_US)
    return false;
  for (size_t i = 0; i < e->used; i++) {
    const weft_neighbour *n = &e->neighbours[i];
    const weft_policy_want *want = weft_neighbour_want(e, n, segment);
    if (n->state == WEFT_NEIGHBOUR_OPEN && !weft_given_up(e, i) && want && want->accepts)
      return true;
  }
  return false;
}

static void load_into_place(weft_engine *e, uint64_t segment, int64_t now_us) {
  weft_window_place(e, segment);
  weft_window_slot(e, segment)->solo_us = now_us;
  weft_tell(e, &weft_window_slot(e, segment)->tell_load);
}

// Asks the application for what a neighbour accepts and is not here. A place that another neighbour
// still needs is not taken at once.
void weft_loads_tell(weft_engine *e, size_t index, int64_t now_us) {
  weft_neighbour *n = &e->neighbours[index];
  if (!weft_loads(e) && !e->rereads)
    return;
  const uint64_t end = weft_loads(e) ? weft_window_total(e) : e->released;
  for (uint64_t s = n->first; s < n->accept_end && s < end; s++) {
    const uint64_t old = e->number[weft_place(e, s)];
    if (old == s || !n->wants[weft_place(e, s)].accepts || own(e, old))
      continue;
    if (kept(e, old, now_us))
      continue;
    if (!weft_share_load(e, n))
      return;
    load_into_place(e, s, now_us);
  }
}

// Whether a segment may be asked of the application.
static bool loadable(const weft_engine *e, uint64_t segment) {
  return weft_loads(e) ? segment < weft_window_total(e) : e->rereads && segment < e->released;
}

bool weft_loads_waits(const weft_engine *e, uint64_t segment) {
  return loadable(e, segment) && weft_window_has(e, segment) &&
         !weft_window_slot(e, segment)->segment;
}

// Where nothing is sent unless it is requested, what is here leaves only when somebody requests it.
// So a neighbour that accepts it does not keep its place from what is requested, unless it requests
// it, too: two viewers could each wait for a segment whose place the other's later one has.
bool weft_loads_request(weft_engine *e, size_t index, uint64_t segment, int64_t now_us) {
  weft_neighbour *n = &e->neighbours[index];
  weft_slot *slot = weft_window_slot(e, segment);
  const uint64_t old = e->number[weft_place(e, segment)];
  if (!e->options->policy->ask || !loadable(e, segment))
    return old == segment;
  if (old != segment) {
    const weft_policy_want *want = weft_neighbour_want(e, n, segment);
    const bool asked = slot->asked_us && now_us - slot->asked_us < weft_ask_patience(e);
    if (!want || !want->accepts || own(e, old) || (asked && kept(e, old, now_us)) ||
        !weft_share_load(e, n))
      return false;
    load_into_place(e, segment, now_us);
  }
  slot->asked_us = now_us;
  return true;
}
