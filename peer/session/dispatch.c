// SPDX-License-Identifier: Apache-2.0
// Datagrams in and out: what each is, whom it is for, and what is counted.
#include <string.h>

#include "peer/session/internal.h"

// Whether there is another session with the identity at the other end of the link, or may be one at
// that end, as our CONFIRM is on its way.
static bool has_other(const weft_sessions *s, const weft_link *l) {
  const uint8_t *identity = l->state == LINK_OPENING ? l->opening.identity : l->identity;
  for (size_t i = 0; i < s->options.links_max; i++) {
    const weft_link *other = &s->links[i];
    const bool opening = other->state == LINK_OPENING && other->opening.state == OPENING_CONFIRM;
    if (other != l && (opening || other->state == LINK_OPEN) &&
        memcmp(opening ? other->opening.identity : other->identity, identity, 32) == 0)
      return true;
  }
  return false;
}

// Why the other side closed. It may have ended an opening in favour of another session.
static weft_session_reason closed_why(const weft_sessions *s, const weft_link *l,
                                      const uint8_t *plain, size_t bytes) {
  const bool displaced = bytes == 1 && plain[0] == WEFT_CLOSE_DISPLACED;
  if (!displaced && l->state == LINK_OPEN)
    return WEFT_SESSION_CLOSED;
  if (has_other(s, l))
    return WEFT_SESSION_REPLACED;
  return displaced ? WEFT_SESSION_ELSEWHERE : WEFT_SESSION_CLOSED;
}

static weft_status take_sealed(weft_sessions *s, const weft_address *address, uint8_t *datagram,
                               size_t bytes, int64_t now_us, weft_session_plain *out) {
  const uint8_t type = datagram[0];
  if (bytes < WEFT_SESSION_OVERHEAD_BYTES || bytes > WEFT_SESSION_DATAGRAM_BYTES)
    return WEFT_E_MALFORMED;
  weft_keys *keys = weft_session_find_keys(s, weft_get24(datagram + 1));
  if (!keys || keys->remote_id == 0)
    return WEFT_E_FOREIGN;
  const size_t slot = (size_t)(keys - s->keys), link = keys->link;
  const bool newest = weft_get64(datagram + 4) >= keys->top;
  if (link == NONE && type != WEFT_SESSION_CLOSE)
    return WEFT_E_FOREIGN; // the other side has not proved its identity
  WEFT_TRY(weft_session_unseal(keys, datagram, bytes));
  if (link == NONE) { // it gave up
    for (size_t i = 0; i < WEFT_HALF_OPEN; i++)
      if (s->half_open[i].used && s->half_open[i].keys == slot)
        weft_session_drop_half_open(s, &s->half_open[i]);
    return WEFT_PENDING;
  }
  weft_link *l = &s->links[link];
  uint8_t *plain = datagram + WEFT_SESSION_HEADER_BYTES;
  const size_t plain_bytes = bytes - WEFT_SESSION_OVERHEAD_BYTES;
  if (type == WEFT_SESSION_CLOSE) {
    weft_session_lose(s, link, closed_why(s, l, plain, plain_bytes));
    return WEFT_PENDING;
  }
  if (l->opening.keys == slot && !weft_session_confirmed(s, link, now_us))
    return WEFT_PENDING;
  if (type != WEFT_SESSION_DATA)
    return weft_session_take_path(s, link, address, type, plain, plain_bytes, now_us);
  l->heard_us = now_us;
  if (newest && !weft_session_same_address(address, &l->address))
    weft_session_ask_path(s, link, address, now_us); // a NAT may have moved it
  else if (newest)
    weft_session_answer_from(l, address); // we may have moved ourselves
  s->statistics.opened_datagrams++;
  *out = (weft_session_plain){.link = link, .data = plain, .bytes = plain_bytes};
  return out->bytes ? WEFT_OK : WEFT_PENDING;
}

static weft_status take(weft_sessions *s, const weft_address *address, uint8_t *datagram,
                        size_t bytes, int64_t now_us, weft_session_plain *out) {
  if (bytes < 4)
    return WEFT_E_MALFORMED;
  switch (datagram[0]) {
  case WEFT_SESSION_DATA:
  case WEFT_SESSION_CLOSE:
  case WEFT_SESSION_PATH:
  case WEFT_SESSION_HERE:
    return take_sealed(s, address, datagram, bytes, now_us, out);
  case WEFT_SESSION_INIT:
    return weft_session_take_init(s, address, datagram, bytes, now_us);
  case WEFT_SESSION_RETRY:
    return weft_session_take_retry(s, address, datagram, bytes, now_us);
  case WEFT_SESSION_ACCEPT:
    return weft_session_take_accept(s, address, datagram, bytes, now_us);
  case WEFT_SESSION_CONFIRM:
    return weft_session_take_confirm(s, address, datagram, bytes, now_us);
  default:
    return WEFT_E_MALFORMED;
  }
}

weft_status weft_sessions_input(weft_sessions *s, const weft_address *address, uint8_t *datagram,
                                size_t bytes, int64_t now_us, weft_session_plain *out) {
  const weft_status status = take(s, address, datagram, bytes, now_us, out);
  s->statistics.malformed += status == WEFT_E_MALFORMED;
  s->statistics.foreign += status == WEFT_E_FOREIGN;
  s->statistics.limited += status == WEFT_E_STATE;
  s->statistics.replayed += status == WEFT_DEPENDENT;
  return status;
}

weft_status weft_sessions_output(weft_sessions *s, weft_address *address, const uint8_t **datagram,
                                 size_t *bytes) {
  if (s->ring_count == 0)
    return WEFT_PENDING;
  const weft_control *c = &s->ring[s->ring_first];
  s->ring_first = (s->ring_first + 1) % WEFT_RING;
  s->ring_count--;
  *address = c->address;
  *datagram = c->data;
  *bytes = c->bytes;
  return WEFT_OK;
}
