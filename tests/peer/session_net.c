// SPDX-License-Identifier: Apache-2.0
#include "tests/peer/session_net.h"

#include <stdlib.h>
#include <string.h>

weft_address net_address(size_t node) {
  weft_address a = {.port = (uint16_t)(1000 + node)};
  a.ip[10] = a.ip[11] = 0xff;
  a.ip[15] = (uint8_t)node;
  return a;
}

weft_sessions_options net_options(net *n, size_t i, const weft_rng *rng) {
  static const uint8_t blob[] = "about me";
  uint8_t seed[32] = {(uint8_t)(i + 1)};
  weft_identity_from_seed(seed, &n->identity[i]);
  return (weft_sessions_options){.identity = n->identity[i],
                                 .blob = blob,
                                 .blob_bytes = sizeof blob,
                                 .links_max = 4,
                                 .rng = rng};
}

weft_status net_new(net *n, const weft_allocator *allocator,
                    void (*adjust)(weft_sessions_options *options, size_t node)) {
  memset(n, 0, sizeof *n);
  n->now_us = 7 * SECOND;
  const weft_ctx_options ctx = {.allocator = allocator};
  WEFT_TRY(weft_ctx_new(&n->ctx, &ctx));
  n->queue = calloc(QUEUE, sizeof *n->queue);
  weft_rng_chacha_seed(&n->chance, fixture_seed(), 99);
  for (size_t i = 0; i < NODES; i++) {
    weft_rng_chacha_seed(&n->chacha[i], fixture_seed(), i);
    const weft_rng rng = weft_rng_chacha_table(&n->chacha[i]);
    weft_sessions_options options = net_options(n, i, &rng);
    if (adjust)
      adjust(&options, i);
    WEFT_TRY(weft_sessions_new(n->ctx, &options, n->now_us, &n->node[i]));
  }
  return WEFT_OK;
}

void net_free(net *n) {
  for (size_t i = 0; i < NODES; i++)
    weft_sessions_free(n->node[i]);
  free(n->queue);
  weft_ctx_free(n->ctx);
}

static uint16_t port_of(const net *n, size_t node) {
  return n->port[node] ? n->port[node] : net_address(node).port;
}

static void net_post(net *n, size_t from, const weft_address *to, const uint8_t *data,
                     size_t bytes) {
  EXPECT(n->queued < QUEUE && bytes <= WEFT_SESSION_DATAGRAM_BYTES);
  parcel p = {.from = from, .to = to->ip[15], .bytes = bytes, .due_us = n->now_us + 1000};
  memcpy(p.data, data, bytes);
  n->from[from] = to->own[15];
  if (n->sent_count < sizeof n->sent / sizeof *n->sent)
    n->sent[n->sent_count++] = p;
  if (to->port != port_of(n, to->ip[15])) {
    n->astray[to->ip[15]] += bytes;
    return;
  }
  if (n->lose_type == data[0] && ++n->seen == n->lose_nth)
    return;
  if (n->jitter_us) {
    const weft_rng rng = weft_rng_chacha_table(&n->chance);
    p.due_us += (int64_t)weft_rng_below(&rng, (uint64_t)n->jitter_us);
  }
  n->queue[n->queued++] = p;
}

weft_status net_deliver(net *n, const parcel *p) {
  weft_address from = net_address(p->from);
  weft_session_plain plain;
  from.port = port_of(n, p->from);
  from.own[15] = n->own[p->to];
  uint8_t *copy = malloc(p->bytes + 1); // of exact length, so that over-reads are seen
  memcpy(copy, p->data, p->bytes);
  const weft_status status =
      weft_sessions_input(n->node[p->to], &from, copy, p->bytes, n->now_us, &plain);
  if (status == WEFT_OK) {
    n->received[p->to]++;
    memcpy(n->last[p->to], plain.data, plain.bytes);
    n->last_bytes[p->to] = plain.bytes;
  }
  free(copy);
  return status;
}

void net_turn(net *n) {
  for (size_t i = 0; i < NODES; i++) {
    weft_session_event event;
    weft_address to;
    const uint8_t *data;
    size_t bytes;
    weft_sessions_tick(n->node[i], n->now_us);
    while (weft_sessions_event(n->node[i], &event)) {
      const bool opened = event.kind == WEFT_SESSION_OPENED;
      if (event.kind == WEFT_SESSION_MOVED) {
        n->moves[i]++;
        continue;
      }
      (opened ? n->opened : n->lost)[i] = event;
      (opened ? n->opens : n->losses)[i]++;
    }
    while (weft_sessions_output(n->node[i], &to, &data, &bytes) == WEFT_OK)
      net_post(n, i, &to, data, bytes);
  }
}

void net_run(net *n, int64_t for_us) {
  const int64_t until = n->now_us + for_us;
  for (;;) {
    net_turn(n);
    int64_t next = until;
    for (size_t i = 0; i < NODES; i++) {
      const int64_t d = weft_sessions_deadline(n->node[i]);
      next = d < next ? d : next;
    }
    for (size_t i = 0; i < n->queued; i++)
      next = n->queue[i].due_us < next ? n->queue[i].due_us : next;
    if (next >= until)
      break;
    n->now_us = next > n->now_us ? next : n->now_us;
    for (size_t i = 0; i < n->queued;) {
      if (n->queue[i].due_us > n->now_us) {
        i++;
        continue;
      }
      const parcel p = n->queue[i];
      n->queue[i] = n->queue[--n->queued];
      (void)net_deliver(n, &p);
    }
  }
  n->now_us = until;
  net_turn(n);
}

size_t net_open(net *n, size_t from, size_t to, const uint8_t *expected) {
  const weft_address address = net_address(to);
  size_t link;
  EXPECT_OK(weft_sessions_open(n->node[from], &address, expected, n->now_us, &link));
  return link;
}

void net_send(net *n, size_t from, size_t link, const void *text, size_t bytes) {
  uint8_t datagram[WEFT_SESSION_DATAGRAM_BYTES];
  weft_session_peer peer;
  weft_seal seal;
  EXPECT_OK(weft_sessions_peer(n->node[from], link, &peer));
  EXPECT_OK(weft_sessions_reserve(n->node[from], link, 1, n->now_us, &seal));
  const size_t whole = weft_seal_datagram(&seal, 0, text, bytes, datagram);
  net_post(n, from, &peer.address, datagram, whole);
}

void net_rekey_often(weft_sessions_options *options, size_t node) {
  (void)node;
  options->rekey_us = REKEY_OFTEN_US;
}

void net_expect_open(net *n, size_t a, size_t b) {
  static const char text[] = "0123456789";
  EXPECT(n->opens[a] - n->losses[a] == 1 && n->opens[b] - n->losses[b] == 1);
  weft_session_peer peer;
  EXPECT_OK(weft_sessions_peer(n->node[a], n->opened[a].link, &peer));
  EXPECT(memcmp(peer.public_key, n->identity[b].public_key, 32) == 0);
  EXPECT(peer.blob_bytes == 9 && memcmp(peer.blob, "about me", 9) == 0);
  EXPECT_OK(weft_sessions_peer(n->node[b], n->opened[b].link, &peer));
  EXPECT(memcmp(peer.public_key, n->identity[a].public_key, 32) == 0);
  const size_t at_a = n->received[a], at_b = n->received[b];
  n->lose_type = 0;
  net_send(n, a, n->opened[a].link, text, sizeof text);
  net_send(n, b, n->opened[b].link, text, sizeof text);
  net_run(n, SECOND);
  EXPECT(n->received[a] == at_a + 1 && n->received[b] == at_b + 1);
  EXPECT(n->last_bytes[a] == sizeof text && memcmp(n->last[a], text, sizeof text) == 0);
}

void net_new_open(net *n) {
  EXPECT_OK(net_new(n, NULL, NULL));
  net_open(n, 0, 1, NULL);
  net_run(n, SECOND);
}

parcel net_take_next(net *n, uint8_t type) {
  for (int steps = 0; steps < 100; steps++) {
    for (size_t i = 0; i < n->queued; i++)
      if (n->queue[i].data[0] == type) {
        const parcel found = n->queue[i];
        n->queued = 0;
        return found;
      }
    net_run(n, 500);
  }
  EXPECT(false);
  return (parcel){0};
}
