// SPDX-License-Identifier: Apache-2.0
// A heap by time, then by the order of sending.
#include "tests/peer/swarm_mail.h"

#include <stdlib.h>
#include <string.h>

#include "peer/engine/messages.h"

static bool before(const swarm_event *a, const swarm_event *b) {
  return a->due_us != b->due_us ? a->due_us < b->due_us : a->sequence < b->sequence;
}

void swarm_mail_push(swarm *s, swarm_event *event) {
  if (s->heap_count == s->heap_room) {
    s->heap_room = s->heap_room ? 2 * s->heap_room : 256;
    s->heap = realloc(s->heap, s->heap_room * sizeof(swarm_event *));
  }
  size_t at = s->heap_count++;
  for (; at && before(event, s->heap[(at - 1) / 2]); at = (at - 1) / 2)
    s->heap[at] = s->heap[(at - 1) / 2];
  s->heap[at] = event;
}

swarm_event *swarm_mail_pop(swarm *s) {
  swarm_event *first = s->heap[0], *last = s->heap[--s->heap_count];
  size_t at = 0;
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= s->heap_count)
      break;
    if (child + 1 < s->heap_count && before(s->heap[child + 1], s->heap[child]))
      child++;
    if (!before(s->heap[child], last))
      break;
    s->heap[at] = s->heap[child];
    at = child;
  }
  s->heap[at] = last;
  return first;
}

// Replaces its map (docs/protocol.md) by what the node claims; returns its bytes.
static size_t falsify(const swarm *s, const swarm_node *n, uint8_t *map, size_t bytes) {
  enum { FIRST = 4, SUPPLIERS = 40, COUNT = 42, BACK = 46 };
  const size_t window = s->options.window, ranks = n->claim ? 2 * window : bytes - WEFT_MAP_BYTES;
  if (n->suppliers) {
    map[SUPPLIERS] = 0;
    map[SUPPLIERS + 1] = n->suppliers;
  }
  if (n->claim == SWARM_CLAIMS_NOTHING) {
    memset(map + FIRST, 0, 8);
    memset(map + BACK, 0, 2);
    map[COUNT] = (uint8_t)(window >> 8);
    map[COUNT + 1] = (uint8_t)window;
  }
  if (n->greedy || n->claim)
    memset(map + WEFT_MAP_BYTES, 0, ranks);
  return WEFT_MAP_BYTES + ranks;
}

void swarm_mail_send(swarm *s, size_t from, size_t neighbour, const weft_datagram *d) {
  swarm_node *n = &s->node[from];
  const swarm_link *link = &n->links[neighbour];
  const bool data = d->data[1] <= WEFT_PACKET_SPARSE;
  if (!link->used || (data && n->free_rider))
    return;
  n->data_sent += data ? d->bytes : 0;
  n->data_greedy += data && s->node[link->node].greedy ? d->bytes : 0;
  const bool lacks = n->greedy || n->claim == SWARM_CLAIMS_NOTHING;
  if (lacks && d->data[1] == WEFT_MESSAGE_BRAKE)
    return;
  s->kind = d->data[1];
  const fixture_fate fate = s->fate(s, from, link->node);
  for (int copy = 0; copy < fate.copies; copy++) {
    swarm_event *event = malloc(sizeof *event + WEFT_DATAGRAM_MAX + d->bytes);
    *event = (swarm_event){.due_us = s->now_us + fate.delay_us,
                           .sequence = s->sequence++,
                           .from = from,
                           .to = link->node,
                           .neighbour = link->neighbour,
                           .bytes = d->bytes};
    memcpy(event->data, d->data, d->bytes);
    if (n->polluter && data)
      event->data[d->bytes - 1 - swarm_draw(s, SWARM_K)] ^= (uint8_t)(1 + swarm_draw(s, 255));
    if (d->data[1] == WEFT_MESSAGE_MAP)
      event->bytes = falsify(s, n, event->data, d->bytes);
    if (s->damage && swarm_draw(s, 16) == 0) {
      event->data[swarm_draw(s, d->bytes)] ^= (uint8_t)(1u << swarm_draw(s, 8));
      s->damaged++;
    }
    swarm_mail_push(s, event);
  }
}
