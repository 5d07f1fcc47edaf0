// SPDX-License-Identifier: Apache-2.0
// Manifests, which the source signs for each segment: making, passing on and checking them.
#include <sodium.h>
#include <string.h>

#include "peer/engine/internal.h"

_Static_assert(WEFT_SIGNATURE_BYTES == crypto_sign_BYTES, "Ed25519");

// --- The source

static weft_status sign(weft_engine *e, weft_manifest *m) {
  uint8_t text[WEFT_SIGNED_MAX];
  const size_t bytes = weft_manifest_text(m, e->options->stream, e->options->block_bytes, text);
  e->statistics.signatures++;
  return e->options->trust->sign &&
                 e->options->trust->sign(e->options->trust->user, text, bytes, m->signature)
             ? WEFT_OK
             : WEFT_E_KEY;
}

static void keep_proof(weft_engine *e, const weft_manifest *m) {
  weft_proof *proof = weft_window_proof(e, m->segment);
  memcpy(proof->digest, m->digest, sizeof proof->digest);
  memcpy(proof->signature, m->signature, sizeof proof->signature);
}

weft_status weft_manifest_make(weft_engine *e, uint64_t segment, const uint8_t *data, size_t bytes,
                               int64_t at_us, bool last, int64_t now_us) {
  weft_slot *slot = weft_window_slot(e, segment);
  const bool by_rate = weft_timed_by_rate(e) || (at_us == 0 && e->options->rate_bits_per_s);
  slot->at_us = by_rate ? weft_segment_by_rate(e, segment) : at_us;
  slot->made_us = now_us;
  if (!e->options->trust)
    return WEFT_OK;
  const size_t k = e->options->block_bytes;
  weft_manifest m = {.last = last,
                     .segment = segment,
                     .blocks = (uint16_t)((bytes + k - 1) / k),
                     .bytes = (uint32_t)bytes,
                     .at_us = (uint64_t)slot->at_us,
                     .made_us = (uint64_t)now_us};
  if (e->codec->digest)
    WEFT_TRY(e->codec->digest(e->codec->user, slot->segment, bytes, m.digest));
  else
    (void)crypto_generichash(m.digest, sizeof m.digest, data, bytes, NULL, 0);
  e->statistics.hashed_bytes += bytes;
  WEFT_TRY(sign(e, &m));
  keep_proof(e, &m);
  slot->manifest = true;
  slot->last = last;
  if (last)
    *e->end = m;
  return WEFT_OK;
}

weft_status weft_manifest_end(weft_engine *e, uint64_t segment, uint64_t end_bytes) {
  if (!e->options->trust)
    return WEFT_OK;
  *e->end = (weft_manifest){.last = true, .segment = segment, .at_us = end_bytes};
  return sign(e, e->end);
}

// --- Passing on

static weft_manifest of_slot(const weft_engine *e, uint64_t segment) {
  const weft_slot *slot = weft_window_slot(e, segment);
  const weft_proof *proof = weft_window_proof(e, segment);
  weft_manifest m = {.last = slot->last,
                     .segment = segment,
                     .blocks = weft_window_held(e, segment)->blocks,
                     .bytes = slot->bytes,
                     .at_us = (uint64_t)slot->at_us,
                     .made_us = (uint64_t)slot->made_us};
  memcpy(m.digest, proof->digest, sizeof m.digest);
  memcpy(m.signature, proof->signature, sizeof m.signature);
  return m;
}

size_t weft_manifest_put(const weft_engine *e, uint64_t segment, uint8_t *out) {
  if (weft_window_has(e, segment) && weft_window_slot(e, segment)->manifest) {
    const weft_manifest m = of_slot(e, segment);
    return weft_manifest_write(&m, out);
  }
  return e->options->trust && e->end_known && segment >= e->end->segment
             ? weft_manifest_write(e->end, out)
             : 0;
}

// Makes a segment's manifest due before its first packet goes to a neighbour.
bool weft_manifest_offer(weft_engine *e, size_t index, uint64_t segment) {
  const weft_slot *slot = weft_window_slot(e, segment);
  uint8_t *marks = &e->neighbours[index].marks[weft_place(e, segment)];
  if (!e->options->trust || !weft_window_has(e, segment) || !slot->manifest ||
      *marks & WEFT_MARK_HAS_MANIFEST)
    return false;
  weft_neighbour_mark(e, index, segment, WEFT_MARK_HAS_MANIFEST | WEFT_MARK_MANIFEST,
                      WEFT_DUE_MANIFESTS);
  return true;
}

// --- Taking one

static bool shape_valid(const weft_engine *e, const weft_manifest *m) {
  const uint64_t k = e->options->block_bytes;
  if (m->blocks == 0) { // the end alone: its at_us is the stream's length
    const uint64_t each = weft_segment_bytes(e), segments = m->at_us / each;
    return m->last && m->segment == segments + (m->at_us % each != 0);
  }
  return m->blocks <= e->options->blocks && m->bytes <= m->blocks * k &&
         m->bytes > (m->blocks - 1) * k && (m->last || m->bytes == weft_segment_bytes(e));
}

weft_status weft_signature_check(weft_engine *e, size_t index, const uint8_t *text, size_t bytes,
                                 const uint8_t signature[WEFT_SIGNATURE_BYTES]) {
  enum { FORGED_MOST = 16 };
  weft_neighbour *n = &e->neighbours[index];
  e->statistics.signatures++;
  if (e->options->trust->verify(e->options->trust->user, text, bytes, signature)) {
    n->forged = (uint8_t)(n->forged - (n->forged > 0));
    return WEFT_OK;
  }
  e->statistics.manifests_refused++;
  // Peers pass on only what they have checked; but a transport without sessions may damage some.
  if (++n->forged == FORGED_MOST)
    weft_neighbour_ban(e, index);
  return WEFT_E_FOREIGN;
}

static weft_status check_signature(weft_engine *e, size_t index, const weft_manifest *m) {
  uint8_t text[WEFT_SIGNED_MAX];
  const size_t bytes = weft_manifest_text(m, e->options->stream, e->options->block_bytes, text);
  return weft_signature_check(e, index, text, bytes, m->signature);
}

static void fill_slot(weft_engine *e, const weft_manifest *m, int64_t now_us) {
  weft_slot *slot = weft_window_slot(e, m->segment);
  slot->manifest = true;
  slot->last = m->last;
  slot->bytes = m->bytes;
  slot->at_us = (int64_t)m->at_us;
  slot->made_us = (int64_t)m->made_us;
  keep_proof(e, m);
  if (weft_window_held(e, m->segment)->blocks != m->blocks) { // its size was guessed wrong
    weft_window_reshape(e, m->segment, m->blocks);
    return;
  }
  if (slot->trial)
    weft_held_try(e, m->segment, now_us);
  if (!slot->complete && weft_data_rank(e, slot->segment) == m->blocks)
    weft_data_full(e, m->segment, now_us);
}

weft_status weft_manifest_take(weft_engine *e, size_t index, const weft_manifest *m,
                               int64_t now_us) {
  if (!e->options->trust || e->self.source)
    return WEFT_DEPENDENT;
  const bool has = weft_window_has(e, m->segment) && e->started && m->blocks > 0;
  if (has) {
    uint8_t *marks = &e->neighbours[index].marks[weft_place(e, m->segment)];
    *marks |= WEFT_MARK_HAS_MANIFEST;
  }
  const bool known = has && weft_window_slot(e, m->segment)->manifest;
  const bool newer = m->segment >= e->horizon || !e->started; // it gives the stream's time
  if (known || (!has && !newer && (!m->last || e->end_known)))
    return WEFT_DEPENDENT;
  if (!shape_valid(e, m) || (e->end_known && m->segment > weft_window_total(e)))
    return WEFT_E_FOREIGN;
  WEFT_TRY(check_signature(e, index, m));
  if (m->blocks > 0) {
    weft_clock_learn(e->clock_us, &e->clock_turn_us, now_us - (int64_t)m->made_us, now_us);
    weft_play_manifest(e, m->segment, (int64_t)m->at_us, now_us);
    if (e->begin_us != WEFT_ENGINE_NEVER && m->segment > 0)
      weft_request_send(e, index,
                        &(weft_request){.segment = m->segment - 1, .kind = WEFT_REQUEST_MANIFEST},
                        now_us);
    weft_window_learn_horizon(e, m->segment + 1, now_us);
  }
  if (m->last && !e->end_known) {
    const uint64_t end = m->blocks ? m->segment * weft_segment_bytes(e) + m->bytes : m->at_us;
    WEFT_TRY(weft_window_learn_end(e, end));
    *e->end = *m;
  }
  if (has)
    fill_slot(e, m, now_us);
  if (has)
    weft_requests_timed(e, m->segment, now_us);
  for (size_t i = 0; has && i < e->used; i++) // neighbours that cannot begin without it
    if (i != index && e->neighbours[i].state == WEFT_NEIGHBOUR_OPEN && e->neighbours[i].mapped &&
        e->neighbours[i].accept_end == e->neighbours[i].first && !e->neighbours[i].knows_end)
      (void)weft_manifest_offer(e, i, m->segment);
  weft_engine_changed(e);
  return WEFT_OK;
}

// --- Checking a segment

weft_status weft_manifest_check(weft_engine *e, uint64_t segment, bool *matches) {
  weft_slot *slot = weft_window_slot(e, segment);
  uint8_t digest[WEFT_DIGEST_BYTES];
  e->statistics.hashed_bytes += slot->bytes;
  if (e->codec->digest) {
    WEFT_TRY(e->codec->digest(e->codec->user, slot->segment, slot->bytes, digest));
  } else {
    // libsodium's state must be aligned, which not every stack frame is under a sanitizer.
    crypto_generichash_state *state = (crypto_generichash_state *)(void *)e->scratch->hash;
    uint8_t *piece = e->scratch->payload_rows[0];
    const size_t k = e->options->block_bytes;
    (void)crypto_generichash_init(state, NULL, 0, sizeof digest);
    for (size_t at = 0; at < slot->bytes; at += k) {
      const size_t bytes = slot->bytes - at < k ? slot->bytes - at : k;
      WEFT_TRY(e->codec->read(e->codec->user, slot->segment, at, bytes, piece));
      (void)crypto_generichash_update(state, piece, bytes);
    }
    (void)crypto_generichash_final(state, digest, sizeof digest);
  }
  *matches = memcmp(digest, weft_window_proof(e, segment)->digest, sizeof digest) == 0;
  return WEFT_OK;
}
