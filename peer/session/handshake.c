// SPDX-License-Identifier: Apache-2.0
// The handshake: INIT, RETRY with a cookie, INIT again, ACCEPT, CONFIRM (docs/session.md).
#include <string.h>

#include "peer/session/internal.h"

enum { FLAG_AES = 1, FLAG_CONTINUES = 1 };

// --- The initiator

static void make_init(const weft_sessions *s, const weft_link *l, uint8_t out[WEFT_INIT_BYTES]) {
  const weft_opening *o = &l->opening;
  memset(out, 0, WEFT_INIT_BYTES);
  out[0] = WEFT_SESSION_INIT;
  out[WEFT_SESSION_VERSION_AT] = WEFT_SESSION_VERSION;
  out[5] = s->aes ? FLAG_AES : 0;
  weft_put24(out + 9, s->keys[o->keys].id);
  memcpy(out + 12, o->public_key, 32);
  if (o->cookie_known)
    memcpy(out + WEFT_INIT_COOKIE, o->cookie, WEFT_COOKIE_BYTES);
}

void weft_session_begin(weft_sessions *s, size_t link, int64_t now_us) {
  weft_link *l = &s->links[link];
  const size_t keys = weft_session_new_keys(s, now_us);
  if (keys == NONE)
    return;
  s->keys[keys].link = link;
  l->opening = (weft_opening){.state = OPENING_INIT,
                              .keys = keys,
                              .started_us = now_us,
                              .next_us = now_us,
                              .wait_us = WEFT_INIT_AGAIN_US,
                              .accepts = {.at_us = now_us, .tokens_us = 1000000}};
  weft_session_random(s, l->opening.secret, sizeof l->opening.secret);
  (void)crypto_scalarmult_base(l->opening.public_key, l->opening.secret);
  weft_session_repeat(s, link, now_us);
}

void weft_session_repeat(weft_sessions *s, size_t link, int64_t now_us) {
  weft_link *l = &s->links[link];
  weft_opening *o = &l->opening;
  const bool init = o->state == OPENING_INIT;
  uint8_t *out =
      weft_session_control(s, &l->address, init ? (size_t)WEFT_INIT_BYTES : o->confirm_bytes);
  if (out && init)
    make_init(s, l, out);
  else if (out)
    memcpy(out, o->confirm, o->confirm_bytes);
  o->next_us = now_us + o->wait_us;
  o->wait_us = 2 * o->wait_us < WEFT_INIT_AGAIN_MAX_US ? 2 * o->wait_us : WEFT_INIT_AGAIN_MAX_US;
  weft_session_due(s, o->next_us);
}

void weft_session_forget(weft_sessions *s, size_t link) {
  weft_opening *o = &s->links[link].opening;
  weft_session_free_keys(s, &o->keys);
  sodium_memzero(o, sizeof *o);
  o->keys = NONE;
}

// Finds the opening that the datagram answers; NULL: none.
static weft_link *find_opening(weft_sessions *s, const weft_address *address,
                               const uint8_t *datagram) {
  const weft_keys *keys = weft_session_find_keys(s, weft_get24(datagram + 1));
  if (!keys || keys->link == NONE)
    return NULL;
  weft_link *l = &s->links[keys->link];
  const bool fits = l->opening.state == OPENING_INIT && &s->keys[l->opening.keys] == keys &&
                    weft_session_same_address(address, &l->address);
  return fits ? l : NULL;
}

weft_status weft_session_take_retry(weft_sessions *s, const weft_address *address,
                                    const uint8_t *datagram, size_t bytes, int64_t now_us) {
  enum { COOKIES_MAX = 8 };
  if (bytes != WEFT_RETRY_BYTES)
    return WEFT_E_MALFORMED;
  weft_link *l = find_opening(s, address, datagram);
  if (!l || memcmp(datagram + 4, l->opening.public_key, 8) != 0)
    return WEFT_E_FOREIGN;
  weft_opening *o = &l->opening;
  const bool same = o->cookie_known && memcmp(o->cookie, datagram + 12, WEFT_COOKIE_BYTES) == 0;
  if (same || o->cookies == COOKIES_MAX) // the timer repeats; two nodes must not play ping-pong
    return WEFT_E_STATE;
  o->cookies++;
  o->cookie_known = true;
  memcpy(o->cookie, datagram + 12, WEFT_COOKIE_BYTES);
  o->wait_us = WEFT_INIT_AGAIN_US;
  weft_session_repeat(s, (size_t)(l - s->links), now_us);
  return WEFT_PENDING;
}

// Whether the other end of the link may have this identity.
static bool identity_fits(weft_sessions *s, const weft_link *l, const uint8_t *identity,
                          const weft_address *address) {
  const bool expected = l && (l->identity_expected || l->state == LINK_OPEN);
  if (expected && memcmp(l->identity, identity, 32) != 0)
    return false;
  if (memcmp(s->options.identity.public_key, identity, 32) == 0)
    return false; // ourselves
  if (l && l->state == LINK_OPEN)
    return true; // new keys: to make room, admit could end this very session
  return !s->options.admit || s->options.admit(s->options.user, identity, address);
}

static void make_confirm(weft_sessions *s, weft_link *l, const weft_secrets *secrets) {
  weft_opening *o = &l->opening;
  uint8_t *out = o->confirm;
  const uint8_t flags = l->state == LINK_OPEN ? FLAG_CONTINUES : 0;
  const size_t blob = s->options.blob_bytes;
  out[0] = WEFT_SESSION_CONFIRM;
  weft_put24(out + 1, s->keys[o->keys].remote_id);
  out[4] = flags;
  out[5] = 0;
  weft_put16(out + 6, (uint16_t)blob);
  weft_session_sign(s, secrets, "weft confirm", o->identity, flags, s->blob, blob,
                    out + WEFT_CONFIRM_BOX);
  memcpy(out + WEFT_CONFIRM_BOX + WEFT_PROOF_BYTES, s->blob, blob);
  weft_session_box(out, WEFT_CONFIRM_BOX, WEFT_PROOF_BYTES + blob, secrets->confirm);
  o->confirm_bytes = WEFT_CONFIRM_MIN + blob;
}

// Opens the responder's proof in place, and verifies it. False: it is not valid.
static bool open_accept(const weft_sessions *s, const weft_link *l, uint8_t *datagram, size_t bytes,
                        weft_secrets *secrets) {
  const size_t blob = weft_get16(datagram + 6);
  uint8_t init[WEFT_INIT_BYTES];
  make_init(s, l, init);
  if (!weft_session_agree(l->opening.secret, datagram + 12, init, datagram, secrets) ||
      !weft_session_unbox(datagram, WEFT_ACCEPT_BOX, bytes, secrets->accept))
    return false;
  const uint8_t *proof = datagram + WEFT_ACCEPT_BOX;
  return weft_session_verify(secrets, "weft accept", proof, datagram[4], proof + WEFT_PROOF_BYTES,
                             blob, proof);
}

weft_status weft_session_take_accept(weft_sessions *s, const weft_address *address,
                                     uint8_t *datagram, size_t bytes, int64_t now_us) {
  if (bytes < WEFT_ACCEPT_MIN || bytes != WEFT_ACCEPT_MIN + (size_t)weft_get16(datagram + 6) ||
      bytes > WEFT_CONTROL_MAX || datagram[4] > FLAG_AES || datagram[5] || datagram[8])
    return WEFT_E_MALFORMED;
  weft_link *l = find_opening(s, address, datagram);
  if (!l || (datagram[4] && !s->aes) || weft_get24(datagram + 9) == 0)
    return WEFT_E_FOREIGN;
  weft_opening *o = &l->opening;
  if (!weft_session_take(&o->accepts, WEFT_ACCEPTS_PER_S, WEFT_ACCEPTS_PER_S, now_us))
    return WEFT_E_STATE;
  weft_secrets secrets;
  weft_status status = WEFT_E_FOREIGN;
  if (open_accept(s, l, datagram, bytes, &secrets)) {
    const uint8_t *identity = datagram + WEFT_ACCEPT_BOX;
    o->other_identity = !identity_fits(s, l, identity, address);
    if (!o->other_identity) {
      weft_keys *keys = &s->keys[o->keys];
      keys->aes = datagram[4] == FLAG_AES;
      keys->remote_id = weft_get24(datagram + 9);
      memcpy(o->identity, identity, 32);
      o->blob_bytes = weft_get16(datagram + 6);
      memcpy(o->blob, identity + WEFT_PROOF_BYTES, o->blob_bytes);
      weft_session_traffic(&secrets, identity, true, keys);
      make_confirm(s, l, &secrets);
      sodium_memzero(o->secret, sizeof o->secret);
      o->state = OPENING_CONFIRM;
      o->wait_us = WEFT_INIT_AGAIN_US;
      weft_session_repeat(s, (size_t)(l - s->links), now_us);
      status = WEFT_PENDING;
    }
  }
  sodium_memzero(&secrets, sizeof secrets);
  return status;
}

static void opened(weft_sessions *s, weft_link *l, const uint8_t *identity, const uint8_t *blob,
                   size_t blob_bytes) {
  memcpy(l->identity, identity, 32);
  memcpy(l->blob, blob, blob_bytes);
  l->blob_bytes = blob_bytes;
  l->state = LINK_OPEN;
  l->opened_event = s->events = true;
  s->statistics.opened++;
}

bool weft_session_confirmed(weft_sessions *s, size_t link, int64_t now_us) {
  weft_link *l = &s->links[link];
  weft_opening *o = &l->opening;
  const bool first = l->state == LINK_OPENING;
  weft_session_promote(s, link, o->keys, now_us);
  o->keys = NONE; // the link's now
  if (first)
    opened(s, l, o->identity, o->blob, o->blob_bytes);
  else
    s->statistics.rekeyed++;
  weft_session_forget(s, link);
  return !first || weft_session_settle(s, link, now_us);
}

// --- The responder

static bool init_valid(const uint8_t *datagram, size_t bytes) {
  uint8_t padding = 0;
  if (bytes != WEFT_INIT_BYTES || weft_get24(datagram + 1) ||
      datagram[WEFT_SESSION_VERSION_AT] != WEFT_SESSION_VERSION || datagram[5] > FLAG_AES ||
      weft_get16(datagram + 6) || datagram[8] || weft_get24(datagram + 9) == 0)
    return false;
  for (size_t i = WEFT_INIT_PADDING; i < WEFT_INIT_BYTES; i++)
    padding |= datagram[i];
  return padding == 0;
}

static bool cookie_valid(const weft_sessions *s, const weft_address *address,
                         const uint8_t *datagram, int64_t now_us) {
  const uint8_t *cookie = datagram + WEFT_INIT_COOKIE;
  const int64_t epoch = now_us / WEFT_COOKIE_EPOCH_US;
  uint8_t expected[WEFT_COOKIE_BYTES];
  if (sodium_is_zero(cookie, WEFT_COOKIE_BYTES))
    return false;
  for (int64_t back = 0; back < 2; back++) {
    weft_session_cookie(s, address, datagram + 12, epoch - back, expected);
    if (sodium_memcmp(expected, cookie, WEFT_COOKIE_BYTES) == 0)
      return true;
  }
  return false;
}

static weft_status send_retry(weft_sessions *s, const weft_address *address,
                              const uint8_t *datagram, int64_t now_us) {
  if (!weft_session_take(&s->retries, WEFT_RETRIES_PER_S, WEFT_RETRIES_BURST, now_us))
    return WEFT_E_STATE;
  uint8_t *out = weft_session_control(s, address, WEFT_RETRY_BYTES);
  if (!out)
    return WEFT_E_STATE;
  out[0] = WEFT_SESSION_RETRY;
  memcpy(out + 1, datagram + 9, 3);
  memcpy(out + 4, datagram + 12, 8);
  weft_session_cookie(s, address, datagram + 12, now_us / WEFT_COOKIE_EPOCH_US, out + 12);
  s->statistics.retries++;
  return WEFT_PENDING;
}

void weft_session_drop_half_open(weft_sessions *s, weft_half_open *h) {
  weft_session_free_keys(s, &h->keys);
  sodium_memzero(h, sizeof *h);
}

static void send_accept(weft_sessions *s, const weft_half_open *h) {
  uint8_t *out = weft_session_control(s, &h->address, h->accept_bytes);
  if (out)
    memcpy(out, h->accept, h->accept_bytes);
}

// Finds a place for another handshake: that of the same address, a free one, or the oldest.
static weft_half_open *place(weft_sessions *s, const weft_address *address) {
  weft_half_open *best = NULL;
  for (size_t i = 0; i < WEFT_HALF_OPEN; i++) {
    weft_half_open *h = &s->half_open[i];
    if (h->used && weft_session_same_address(&h->address, address)) {
      best = h;
      break;
    }
    if (!best || (best->used && (!h->used || h->born_us < best->born_us)))
      best = h;
  }
  if (best->used)
    weft_session_drop_half_open(s, best);
  return best;
}

static bool answer(weft_sessions *s, weft_half_open *h, const uint8_t *init) {
  uint8_t secret[32], *out = h->accept;
  weft_keys *keys = &s->keys[h->keys];
  const size_t blob = s->options.blob_bytes;
  const uint8_t flags = init[5] & (s->aes ? FLAG_AES : 0);
  out[0] = WEFT_SESSION_ACCEPT;
  memcpy(out + 1, init + 9, 3);
  out[4] = flags;
  out[5] = out[8] = 0;
  weft_put16(out + 6, (uint16_t)blob);
  weft_put24(out + 9, keys->id);
  weft_session_random(s, secret, sizeof secret);
  (void)crypto_scalarmult_base(out + 12, secret);
  const bool agreed = weft_session_agree(secret, init + 12, init, out, &h->secrets);
  sodium_memzero(secret, sizeof secret);
  if (!agreed)
    return false;
  keys->aes = flags == FLAG_AES;
  keys->remote_id = weft_get24(init + 9);
  weft_session_traffic(&h->secrets, s->options.identity.public_key, false, keys);
  weft_session_sign(s, &h->secrets, "weft accept", s->options.identity.public_key, flags, s->blob,
                    blob, out + WEFT_ACCEPT_BOX);
  memcpy(out + WEFT_ACCEPT_BOX + WEFT_PROOF_BYTES, s->blob, blob);
  weft_session_box(out, WEFT_ACCEPT_BOX, WEFT_PROOF_BYTES + blob, h->secrets.accept);
  h->accept_bytes = WEFT_ACCEPT_MIN + blob;
  return true;
}

// Takes a handshake out of the share of an IPv4 address or a /64 of IPv6: half of all handshakes at
// once and a fifth over time, so that none keeps all others out. Nobody else can tell which share
// is whose. Each has one in either row and may take from both: if one row puts it together with a
// flood, the other seldom does.
static bool take_share(weft_sessions *s, const weft_address *address, int64_t now_us) {
  static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};
  const uint32_t rate = s->options.handshakes_per_s;
  const bool v4 = memcmp(address->ip, v4_prefix, sizeof v4_prefix) == 0;
  uint8_t hash[crypto_generichash_BYTES_MIN];
  (void)crypto_generichash(hash, sizeof hash, address->ip, v4 ? 16 : 8, s->cookie_key,
                           sizeof s->cookie_key);
  bool taken = false;
  for (size_t i = 0; i < 2; i++)
    taken |= weft_session_take(&s->shares[i][hash[i] % WEFT_SHARES], rate / 5 + (rate < 5),
                               rate / 2 + (rate < 2), now_us);
  return taken;
}

// Whether the address is that of a session here, which then wants new keys. If these came out of
// what all handshakes share, a flood that takes all of it would end every session in time.
static bool take_own(weft_sessions *s, const weft_address *address, int64_t now_us) {
  for (size_t i = 0; i < s->options.links_max; i++) {
    weft_link *l = &s->links[i];
    if (l->state != LINK_OPEN || l->initiated || now_us - l->renewed_us < WEFT_RENEWAL_EVERY_US ||
        !weft_session_same_address(&l->address, address))
      continue;
    l->renewed_us = now_us;
    return true;
  }
  return false;
}

weft_status weft_session_take_init(weft_sessions *s, const weft_address *address,
                                   const uint8_t *datagram, size_t bytes, int64_t now_us) {
  if (!init_valid(datagram, bytes))
    return WEFT_E_MALFORMED;
  if (!cookie_valid(s, address, datagram, now_us))
    return send_retry(s, address, datagram, now_us);
  for (size_t i = 0; i < WEFT_HALF_OPEN; i++) {
    const weft_half_open *h = &s->half_open[i];
    if (h->used && weft_session_same_address(&h->address, address) &&
        memcmp(h->init, datagram, sizeof h->init) == 0) {
      send_accept(s, h); // the first ACCEPT was lost
      return WEFT_PENDING;
    }
  }
  const uint32_t rate = s->options.handshakes_per_s;
  if (!take_own(s, address, now_us) &&
      (!take_share(s, address, now_us) || !weft_session_take(&s->handshakes, rate, rate, now_us)))
    return WEFT_E_STATE;
  weft_half_open *h = place(s, address);
  const size_t keys = weft_session_new_keys(s, now_us);
  if (keys == NONE)
    return WEFT_E_STATE;
  *h = (weft_half_open){.used = true, .address = *address, .keys = keys, .born_us = now_us};
  memcpy(h->init, datagram, sizeof h->init);
  if (!answer(s, h, datagram)) {
    weft_session_drop_half_open(s, h);
    return WEFT_E_FOREIGN;
  }
  s->statistics.handshakes++;
  send_accept(s, h);
  weft_session_due(s, now_us + WEFT_HANDSHAKE_US);
  return WEFT_PENDING;
}

static weft_half_open *find_half_open(weft_sessions *s, size_t keys) {
  for (size_t i = 0; i < WEFT_HALF_OPEN; i++)
    if (s->half_open[i].used && s->half_open[i].keys == keys)
      return &s->half_open[i];
  return NULL;
}

// Gives new keys to the session that the identity already has.
static bool continue_link(weft_sessions *s, const uint8_t *identity, size_t keys, int64_t now_us) {
  for (size_t i = 0; i < s->options.links_max; i++) {
    const weft_link *l = &s->links[i];
    if (l->state != LINK_OPEN || l->initiated || memcmp(l->identity, identity, 32) != 0)
      continue;
    weft_session_promote(s, i, keys, now_us);
    weft_session_send_empty(s, i, WEFT_SESSION_DATA, keys, now_us); // says that they are known
    s->statistics.rekeyed++;
    return true;
  }
  return false;
}

// Ends our own handshake with the address of a new session: two peers that call each other through
// NATs need only one session. It goes on if its CONFIRM may have opened a session there already.
static void spare_own(weft_sessions *s, size_t link) {
  const weft_link *own = &s->links[link];
  for (size_t i = 0; i < s->options.links_max; i++) {
    const weft_link *l = &s->links[i];
    if (l->state == LINK_OPENING && l->opening.state == OPENING_INIT &&
        weft_session_same_address(&l->address, &own->address) &&
        (!l->identity_expected || memcmp(l->identity, own->identity, 32) == 0))
      weft_session_lose(s, i, WEFT_SESSION_REPLACED);
  }
}

static bool new_link(weft_sessions *s, const weft_address *address, const uint8_t *proof,
                     size_t blob_bytes, size_t keys, int64_t now_us) {
  if (!identity_fits(s, NULL, proof, address))
    return false;
  const size_t link = weft_session_new_link(s, address, now_us);
  if (link == NONE)
    return false;
  opened(s, &s->links[link], proof, proof + WEFT_PROOF_BYTES, blob_bytes);
  weft_session_promote(s, link, keys, now_us);
  if (weft_session_settle(s, link, now_us)) {
    weft_session_send_empty(s, link, WEFT_SESSION_DATA, keys, now_us);
    spare_own(s, link);
  }
  return true;
}

// Answers a CONFIRM that was repeated because nothing came back.
static weft_status repeated_confirm(weft_sessions *s, const weft_keys *keys, int64_t now_us) {
  const weft_link *l = &s->links[keys->link];
  if (l->state == LINK_OPEN && !l->initiated && now_us - l->sent_us >= WEFT_ANSWER_EVERY_US)
    weft_session_send_empty(s, keys->link, WEFT_SESSION_DATA, (size_t)(keys - s->keys), now_us);
  return WEFT_PENDING;
}

weft_status weft_session_take_confirm(weft_sessions *s, const weft_address *address,
                                      uint8_t *datagram, size_t bytes, int64_t now_us) {
  if (bytes < WEFT_CONFIRM_MIN || bytes != WEFT_CONFIRM_MIN + (size_t)weft_get16(datagram + 6) ||
      bytes > WEFT_CONTROL_MAX || datagram[4] > FLAG_CONTINUES || datagram[5])
    return WEFT_E_MALFORMED;
  const weft_keys *keys = weft_session_find_keys(s, weft_get24(datagram + 1));
  if (keys && keys->link != NONE)
    return repeated_confirm(s, keys, now_us);
  weft_half_open *h = keys ? find_half_open(s, (size_t)(keys - s->keys)) : NULL;
  if (!h || !weft_session_same_address(address, &h->address) ||
      !weft_session_unbox(datagram, WEFT_CONFIRM_BOX, bytes, h->secrets.confirm))
    return WEFT_E_FOREIGN;
  const uint8_t *proof = datagram + WEFT_CONFIRM_BOX;
  const size_t blob = weft_get16(datagram + 6);
  const bool known =
      weft_session_verify(&h->secrets, "weft confirm", s->options.identity.public_key, datagram[4],
                          proof + WEFT_PROOF_BYTES, blob, proof) &&
      (datagram[4] ? continue_link(s, proof, h->keys, now_us)
                   : new_link(s, address, proof, blob, h->keys, now_us));
  if (known)
    h->keys = NONE; // the link's now
  weft_session_drop_half_open(s, h);
  return known ? WEFT_PENDING : WEFT_E_FOREIGN;
}
