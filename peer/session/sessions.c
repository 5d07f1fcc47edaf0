// SPDX-License-Identifier: Apache-2.0
// Links: making and losing them, timers and events.
#include <string.h>

#include "peer/session/internal.h"

// --- Making and freeing

weft_status weft_session_allocate(weft_ctx *ctx, size_t count, size_t bytes, void *out) {
  void *memory;
  WEFT_TRY(weft_alloc(ctx, WEFT_MEM_HOST, count * bytes, &memory));
  memset(memory, 0, count * bytes);
  memcpy(out, &memory, sizeof memory);
  return WEFT_OK;
}

static bool options_valid(const weft_sessions_options *o) {
  return o->links_max >= 1 && o->links_max <= WEFT_SESSION_MAX_LINKS &&
         o->blob_bytes <= WEFT_SESSION_BLOB_BYTES && (o->blob || o->blob_bytes == 0) && o->rng &&
         o->rng->fill && (o->cipher == WEFT_CIPHER_BEST || o->cipher == WEFT_CIPHER_CHACHA) &&
         o->rekey_us >= 0 && o->rekey_us <= WEFT_SESSION_MAX_TIME_US && o->silent_us >= 0 &&
         o->silent_us <= WEFT_SESSION_MAX_TIME_US;
}

static weft_status allocate_parts(weft_sessions *s) {
  WEFT_TRY(weft_session_allocate(s->ctx, s->options.links_max, sizeof *s->links, &s->links));
  WEFT_TRY(weft_session_allocate(s->ctx, s->keys_count, sizeof *s->keys, &s->keys));
  WEFT_TRY(weft_session_allocate(s->ctx, WEFT_HALF_OPEN, sizeof *s->half_open, &s->half_open));
  return weft_session_allocate(s->ctx, WEFT_RING, sizeof *s->ring, &s->ring);
}

weft_status weft_sessions_new(weft_ctx *ctx, const weft_sessions_options *options, int64_t now_us,
                              weft_sessions **out) {
  weft_sessions *s;
  if (!out)
    return WEFT_E_ARGUMENT;
  *out = NULL;
  if (!ctx || !options || !options_valid(options))
    return WEFT_E_ARGUMENT;
  if (sodium_init() < 0)
    return WEFT_E_RANDOM;
  WEFT_TRY(weft_session_allocate(ctx, 1, sizeof *s, &s));
  s->ctx = ctx;
  s->options = *options;
  s->rng = *options->rng;
  if (options->blob_bytes)
    memcpy(s->blob, options->blob, options->blob_bytes);
  s->options.blob = s->blob;
  if (s->options.rekey_us == 0)
    s->options.rekey_us = WEFT_REKEY_US;
  if (s->options.silent_us == 0)
    s->options.silent_us = WEFT_SILENT_LINK_US;
  if (s->options.handshakes_per_s == 0)
    s->options.handshakes_per_s = 100;
  s->aes = options->cipher == WEFT_CIPHER_BEST && crypto_aead_aes256gcm_is_available();
  s->keys_count = 3 * options->links_max + WEFT_HALF_OPEN;
  s->deadline_us = WEFT_SESSION_NEVER;
  s->handshakes.at_us = s->retries.at_us = now_us;
  s->handshakes.tokens_us = s->retries.tokens_us = 1000000;
  for (size_t i = 0; i < 2 * WEFT_SHARES; i++) // full
    s->shares[i / WEFT_SHARES][i % WEFT_SHARES] =
        (weft_bucket){.at_us = now_us, .tokens_us = INT64_MAX / 2};
  weft_session_random(s, s->cookie_key, sizeof s->cookie_key);
  const weft_status status = allocate_parts(s);
  if (status == WEFT_OK)
    *out = s;
  else
    weft_sessions_free(s);
  return status;
}

weft_status weft_sessions_set_blob(weft_sessions *s, const uint8_t *blob, size_t bytes) {
  if (bytes > WEFT_SESSION_BLOB_BYTES || (!blob && bytes))
    return WEFT_E_ARGUMENT;
  if (bytes)
    memcpy(s->blob, blob, bytes);
  s->options.blob_bytes = bytes;
  return WEFT_OK;
}

void weft_sessions_free(weft_sessions *s) {
  if (!s)
    return;
  weft_ctx *ctx = s->ctx;
  if (s->keys)
    sodium_memzero(s->keys, s->keys_count * sizeof *s->keys);
  if (s->links)
    sodium_memzero(s->links, s->options.links_max * sizeof *s->links);
  if (s->half_open)
    sodium_memzero(s->half_open, WEFT_HALF_OPEN * sizeof *s->half_open);
  void *const parts[] = {s->links, s->keys, s->half_open, s->ring};
  sodium_memzero(s, sizeof *s);
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    weft_free(ctx, WEFT_MEM_HOST, parts[i]);
  weft_free(ctx, WEFT_MEM_HOST, s);
}

// --- Small parts

bool weft_session_take(weft_bucket *bucket, uint32_t per_s, uint32_t burst, int64_t now_us) {
  const int64_t cost = 1000000 / (int64_t)per_s, most = cost * (int64_t)burst;
  bucket->tokens_us += now_us - bucket->at_us;
  bucket->at_us = now_us;
  if (bucket->tokens_us > most)
    bucket->tokens_us = most;
  if (bucket->tokens_us < cost)
    return false;
  bucket->tokens_us -= cost;
  return true;
}

bool weft_session_same_address(const weft_address *a, const weft_address *b) {
  return a->port == b->port && memcmp(a->ip, b->ip, sizeof a->ip) == 0;
}

size_t weft_session_new_keys(weft_sessions *s, int64_t now_us) {
  for (size_t i = 0; i < s->keys_count; i++) {
    const size_t at = (s->keys_next + i) % s->keys_count;
    if (s->keys[at].used)
      continue;
    uint16_t chance;
    weft_session_random(s, &chance, sizeof chance);
    const uint32_t high = chance % ((1u << WEFT_SLOT_BITS) - 1) + 1; // no id is 0
    s->keys[at].used = true;
    s->keys[at].id = high << WEFT_SLOT_BITS | (uint32_t)at;
    s->keys[at].link = NONE;
    s->keys[at].born_us = now_us;
    s->keys_next = at + 1;
    return at;
  }
  return NONE;
}
_Static_assert(3 * WEFT_SESSION_MAX_LINKS + WEFT_HALF_OPEN <= 1u << WEFT_SLOT_BITS,
               "an id holds its slot");

size_t weft_sessions_places(const weft_sessions *s) { return s->keys_count; }

void weft_session_free_keys(weft_sessions *s, size_t *keys) {
  if (*keys != NONE)
    sodium_memzero(&s->keys[*keys], sizeof s->keys[*keys]);
  *keys = NONE;
}

weft_keys *weft_session_find_keys(weft_sessions *s, uint32_t id) {
  const size_t at = id & ((1u << WEFT_SLOT_BITS) - 1);
  return at < s->keys_count && s->keys[at].used && s->keys[at].id == id ? &s->keys[at] : NULL;
}

size_t weft_session_new_link(weft_sessions *s, const weft_address *address, int64_t now_us) {
  for (size_t i = 0; i < s->options.links_max; i++) {
    weft_link *l = &s->links[i];
    if (l->state != LINK_FREE)
      continue;
    *l = (weft_link){.address = *address,
                     .current = NONE,
                     .previous = NONE,
                     .heard_us = now_us,
                     .sent_us = now_us,
                     .renewed_us = now_us,
                     .opening = {.keys = NONE}};
    return i;
  }
  return NONE;
}

uint8_t *weft_session_control(weft_sessions *s, const weft_address *address, size_t bytes) {
  if (s->ring_count == WEFT_RING)
    return NULL;
  weft_control *c = &s->ring[(s->ring_first + s->ring_count++) % WEFT_RING];
  c->address = *address;
  c->bytes = bytes;
  return c->data;
}

static void send_sealed(weft_sessions *s, size_t link, uint8_t type, size_t keys,
                        const uint8_t *plain, size_t bytes, int64_t now_us) {
  weft_keys *k = &s->keys[keys];
  uint8_t *out =
      weft_session_control(s, &s->links[link].address, WEFT_SESSION_OVERHEAD_BYTES + bytes);
  if (!out)
    return;
  const weft_seal seal = {.key = &k->send, .remote_id = k->remote_id, .aes = k->aes};
  (void)weft_session_seal(&seal, k->counter++, type, plain, bytes, out);
  s->links[link].sent_us = now_us;
}

void weft_session_send_empty(weft_sessions *s, size_t link, uint8_t type, size_t keys,
                             int64_t now_us) {
  send_sealed(s, link, type, keys, NULL, 0, now_us);
}

// --- Links come and go

weft_status weft_sessions_open(weft_sessions *s, const weft_address *address,
                               const uint8_t *public_key, int64_t now_us, size_t *link) {
  const size_t at = weft_session_new_link(s, address, now_us);
  if (at == NONE)
    return WEFT_E_STATE;
  weft_link *l = &s->links[at];
  l->state = LINK_OPENING;
  l->initiated = true;
  l->identity_expected = public_key != NULL;
  if (public_key)
    memcpy(l->identity, public_key, sizeof l->identity);
  weft_session_begin(s, at, now_us);
  if (l->opening.state == OPENING_NONE) {
    l->state = LINK_FREE;
    return WEFT_E_STATE;
  }
  *link = at;
  return WEFT_OK;
}

static void drop_keys(weft_sessions *s, weft_link *l) {
  weft_session_free_keys(s, &l->current);
  weft_session_free_keys(s, &l->previous);
}

void weft_session_lose(weft_sessions *s, size_t link, weft_session_reason reason) {
  weft_link *l = &s->links[link];
  // It was never reported, so its end is not reported, either.
  const bool unknown = l->opened_event && !l->initiated;
  weft_session_forget(s, link);
  drop_keys(s, l);
  l->state = unknown ? LINK_FREE : LINK_LOST;
  l->opened_event = l->moved_event = false;
  l->reason = reason;
  s->events = true;
}

// Sends a CLOSE. displaced: another session with that identity, of which the other side may not
// know, replaces this one.
static void say_close(weft_sessions *s, size_t link, bool displaced, int64_t now_us) {
  const weft_link *l = &s->links[link];
  const uint8_t why = WEFT_CLOSE_DISPLACED;
  if (l->state == LINK_OPEN)
    send_sealed(s, link, WEFT_SESSION_CLOSE, l->current, &why, displaced, now_us);
  else if (l->state == LINK_OPENING && l->opening.state == OPENING_CONFIRM)
    send_sealed(s, link, WEFT_SESSION_CLOSE, l->opening.keys, &why, displaced, now_us);
}

void weft_sessions_close(weft_sessions *s, size_t link, int64_t now_us) {
  if (link >= s->options.links_max || s->links[link].state == LINK_FREE)
    return;
  say_close(s, link, false, now_us);
  weft_session_lose(s, link, WEFT_SESSION_ENDED);
  s->links[link].state = LINK_FREE; // the caller knows
}

void weft_session_promote(weft_sessions *s, size_t link, size_t keys, int64_t now_us) {
  weft_link *l = &s->links[link];
  weft_session_free_keys(s, &l->previous);
  l->previous = l->current;
  l->current = keys;
  l->replaced_us = l->heard_us = now_us;
  l->rekey_us = now_us + s->options.rekey_us;
  s->keys[keys].link = link;
  s->keys[keys].born_us = now_us;
  weft_session_due(s, now_us); // so that timers are looked at again
}

bool weft_session_settle(weft_sessions *s, size_t link, int64_t now_us) {
  const weft_link *own = &s->links[link];
  for (size_t i = 0; i < s->options.links_max; i++) {
    const weft_link *other = &s->links[i];
    if (i == link || other->state != LINK_OPEN || memcmp(other->identity, own->identity, 32) != 0)
      continue;
    // Both sides must keep the same one: if they began in different directions, the one begun by
    // the smaller key, otherwise the newer one, whose initiator may have restarted.
    // Of two that this side began at nearly the same time, the other side ends one: their CONFIRMs
    // may overtake each other, and then it is the newer one there that stays.
    if (own->initiated && other->initiated && now_us - other->replaced_us < WEFT_HANDSHAKE_US)
      continue;
    const bool ours_wins = memcmp(s->options.identity.public_key, own->identity, 32) < 0;
    const bool other_stays = other->initiated != own->initiated && other->initiated == ours_wins;
    const size_t loser = other_stays ? link : i;
    say_close(s, loser, true, now_us);
    weft_session_lose(s, loser, WEFT_SESSION_REPLACED);
    if (other_stays)
      return false;
  }
  return true;
}

bool weft_sessions_event(weft_sessions *s, weft_session_event *out) {
  for (size_t i = 0; s->events && i < s->options.links_max; i++) {
    weft_link *l = &s->links[i];
    if (l->state == LINK_OPEN && (l->opened_event || l->moved_event)) {
      const bool opened = l->opened_event; // which includes where it is now
      l->opened_event = l->moved_event = false;
      *out = (weft_session_event){.kind = opened ? WEFT_SESSION_OPENED : WEFT_SESSION_MOVED,
                                  .link = i};
      return true;
    }
    if (l->state == LINK_LOST) {
      l->state = LINK_FREE;
      *out = (weft_session_event){.kind = WEFT_SESSION_LOST, .reason = l->reason, .link = i};
      return true;
    }
  }
  s->events = false;
  return false;
}

weft_status weft_sessions_peer(const weft_sessions *s, size_t link, weft_session_peer *out) {
  if (link >= s->options.links_max || s->links[link].state != LINK_OPEN)
    return WEFT_E_STATE;
  const weft_link *l = &s->links[link];
  *out = (weft_session_peer){.address = l->address,
                             .blob = l->blob,
                             .blob_bytes = l->blob_bytes,
                             .initiated = l->initiated,
                             .aes = s->keys[l->current].aes,
                             .heard_us = l->heard_us};
  memcpy(out->public_key, l->identity, sizeof out->public_key);
  return WEFT_OK;
}

void weft_sessions_get_statistics(const weft_sessions *s, weft_session_statistics *out) {
  *out = s->statistics;
}

// --- Time

static void tick_opening(weft_sessions *s, size_t link, int64_t now_us) {
  weft_link *l = &s->links[link];
  weft_opening *o = &l->opening;
  if (o->state == OPENING_NONE)
    return;
  if (now_us - o->started_us >= WEFT_HANDSHAKE_US) {
    const bool other = o->other_identity;
    weft_session_forget(s, link);
    if (l->state == LINK_OPENING)
      weft_session_lose(s, link, other ? WEFT_SESSION_OTHER_IDENTITY : WEFT_SESSION_NO_ANSWER);
    else
      l->rekey_us = now_us + WEFT_HANDSHAKE_US; // the old keys still work for a while
  } else if (now_us >= o->next_us) {
    weft_session_repeat(s, link, now_us);
  }
}

static int64_t expiry(const weft_sessions *s, const weft_link *l) {
  return s->keys[l->current].born_us + 2 * s->options.rekey_us;
}

static void tick_open(weft_sessions *s, size_t link, int64_t now_us) {
  weft_link *l = &s->links[link];
  if (l->state != LINK_OPEN)
    return;
  if (now_us - l->heard_us >= s->options.silent_us || now_us >= expiry(s, l)) {
    const bool silent = now_us - l->heard_us >= s->options.silent_us;
    weft_session_lose(s, link, silent ? WEFT_SESSION_SILENT : WEFT_SESSION_EXPIRED);
    return;
  }
  if (l->previous != NONE && now_us - l->replaced_us >= WEFT_PREVIOUS_US)
    weft_session_free_keys(s, &l->previous);
  if (l->initiated && l->opening.state == OPENING_NONE && now_us >= l->rekey_us)
    weft_session_begin(s, link, now_us);
  if (now_us - l->sent_us >= WEFT_KEEPALIVE_US)
    weft_session_send_empty(s, link, WEFT_SESSION_DATA, l->current, now_us);
}

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t link_deadline(const weft_sessions *s, const weft_link *l) {
  int64_t at = WEFT_SESSION_NEVER;
  if (l->opening.state != OPENING_NONE)
    at = earlier(l->opening.next_us, l->opening.started_us + WEFT_HANDSHAKE_US);
  if (l->state != LINK_OPEN)
    return at;
  at = earlier(at, l->heard_us + s->options.silent_us);
  at = earlier(at, expiry(s, l));
  at = earlier(at, l->sent_us + WEFT_KEEPALIVE_US);
  if (l->previous != NONE)
    at = earlier(at, l->replaced_us + WEFT_PREVIOUS_US);
  return l->initiated && l->opening.state == OPENING_NONE ? earlier(at, l->rekey_us) : at;
}

void weft_sessions_tick(weft_sessions *s, int64_t now_us) {
  if (now_us < s->deadline_us)
    return;
  s->deadline_us = WEFT_SESSION_NEVER;
  for (size_t i = 0; i < s->options.links_max; i++) {
    if (s->links[i].state == LINK_FREE)
      continue;
    tick_opening(s, i, now_us);
    tick_open(s, i, now_us);
    weft_session_due(s, link_deadline(s, &s->links[i]));
  }
  for (size_t i = 0; i < WEFT_HALF_OPEN; i++) {
    weft_half_open *h = &s->half_open[i];
    if (h->used && now_us - h->born_us >= WEFT_HANDSHAKE_US)
      weft_session_drop_half_open(s, h);
    if (h->used)
      weft_session_due(s, h->born_us + WEFT_HANDSHAKE_US);
  }
}

int64_t weft_sessions_deadline(const weft_sessions *s) {
  return s->ring_count ? 0 : s->deadline_us;
}
