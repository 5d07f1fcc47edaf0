// SPDX-License-Identifier: Apache-2.0
// Neighbours that move. A NAT may give a neighbour another address; but one that has a session can
// also write any address on its datagrams, and so have what is sent to it sent to a third party. So
// only one short question goes to a new address until it has been answered.
#include <string.h>

#include "peer/session/internal.h"

// Seals the 8 bytes under the link's newest keys.
static void send_path(weft_sessions *s, size_t link, const weft_address *to, uint8_t type,
                      const uint8_t path[WEFT_PATH_BYTES]) {
  weft_keys *k = &s->keys[s->links[link].current];
  uint8_t *out = weft_session_control(s, to, WEFT_SESSION_OVERHEAD_BYTES + WEFT_PATH_BYTES);
  if (!out)
    return;
  const weft_seal seal = {.key = &k->send, .remote_id = k->remote_id, .aes = k->aes};
  (void)weft_session_seal(&seal, k->counter++, type, path, WEFT_PATH_BYTES, out);
}

void weft_session_ask_path(weft_sessions *s, size_t link, const weft_address *address,
                           int64_t now_us) {
  weft_link *l = &s->links[link];
  if (l->path_us && now_us - l->path_us < WEFT_PATH_EVERY_US)
    return;
  if (!l->path_us || !weft_session_same_address(&l->moved, address))
    weft_session_random(s, l->path, sizeof l->path); // otherwise an answer may be on its way
  l->moved = *address;
  l->path_us = now_us;
  send_path(s, link, address, WEFT_SESSION_PATH, l->path);
}

void weft_sessions_ask(weft_sessions *s, size_t link, int64_t now_us) {
  if (link >= s->options.links_max || s->links[link].state != LINK_OPEN)
    return;
  const weft_link *l = &s->links[link];
  const bool moving = l->path_us && !weft_session_same_address(&l->moved, &l->address);
  if (!moving || now_us - l->path_us >= WEFT_PATH_ANSWER_US) // else that answer matters more
    weft_session_ask_path(s, link, &l->address, now_us);
}

// The side that began a session leaves its own address to the system, which knows better once an
// address of this machine is gone. The side that was called has to answer from the address that
// was.
void weft_session_answer_from(weft_link *l, const weft_address *address) {
  if (!l->initiated)
    memcpy(l->address.own, address->own, sizeof l->address.own);
}

weft_status weft_session_take_path(weft_sessions *s, size_t link, const weft_address *address,
                                   uint8_t type, const uint8_t *plain, size_t bytes,
                                   int64_t now_us) {
  weft_link *l = &s->links[link];
  if (bytes != WEFT_PATH_BYTES)
    return WEFT_E_MALFORMED;
  l->heard_us = now_us;
  if (type == WEFT_SESSION_PATH) {
    send_path(s, link, address, WEFT_SESSION_HERE, plain);
  } else if (l->path_us && sodium_memcmp(plain, l->path, WEFT_PATH_BYTES) == 0) {
    l->moved_event = !weft_session_same_address(&l->address, &l->moved) || l->moved_event;
    s->events = s->events || l->moved_event;
    l->address = l->moved;
    if (l->initiated)
      memset(l->address.own, 0, sizeof l->address.own);
    l->path_us = 0;
  }
  return WEFT_PENDING;
}
