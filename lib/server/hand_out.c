// SPDX-License-Identifier: Apache-2.0
// Handing out packets: the descriptor that tells the caller's event loop, and the products that are
// taken and released.
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>

#include "lib/server/internal.h"

int weft_server_fd(const weft_server *server) { return server->fd; }

void weft_server_signal(weft_server *server) {
  if (server->signalled)
    return;
  const uint64_t one = 1;
  server->signalled = write(server->fd, &one, sizeof one) == (ssize_t)sizeof one;
}

void weft_server_quiet(weft_server *server) {
  if (server->ready_head || server->let_go || !server->signalled)
    return;
  uint64_t signals = 0;
  server->signalled = read(server->fd, &signals, sizeof signals) != (ssize_t)sizeof signals;
}

static void taken_add(weft_server *server, weft_server_batch *batch) {
  batch->before = NULL;
  batch->next = server->taken;
  if (server->taken)
    server->taken->before = batch;
  server->taken = batch;
}

static void taken_remove(weft_server *server, weft_server_batch *batch) {
  *(batch->before ? &batch->before->next : &server->taken) = batch->next;
  if (batch->next)
    batch->next->before = batch->before;
}

static void hand_out(weft_server_batch *batch, weft_server_packet *out) {
  const weft_server_want *want = &batch->wants[batch->want_at];
  const bool made = batch->status == WEFT_OK;
  *out =
      (weft_server_packet){.client = want->client,
                           .stream = batch->stream,
                           .segment = batch->segment_id,
                           .datagram = made ? batch->slab + batch->packet_at * batch->stride : NULL,
                           .bytes = made ? batch->datagram_bytes : 0,
                           .status = batch->status,
                           .lease = batch};
  batch->packet_at++;
  if (++batch->want_done == want->packets) {
    batch->want_at++;
    batch->want_done = 0;
  }
}

weft_status weft_server_take(weft_server *server, weft_server_packet *packets, size_t capacity,
                             size_t *count) {
  if (!count)
    return WEFT_E_ARGUMENT;
  *count = 0;
  if (!server || (capacity > 0 && !packets))
    return WEFT_E_ARGUMENT;
  size_t taken = 0;
  pthread_mutex_lock(&server->lock);
  while (taken < capacity && server->ready_head) {
    weft_server_batch *batch = server->ready_head;
    hand_out(batch, &packets[taken++]);
    if (batch->packet_at < batch->packets)
      continue;
    server->ready_head = batch->next;
    if (!server->ready_head)
      server->ready_tail = NULL;
    taken_add(server, batch);
  }
  weft_server_quiet(server);
  pthread_mutex_unlock(&server->lock);
  *count = taken;
  return WEFT_OK;
}

void weft_server_release(weft_server *server, const weft_server_packet *packets, size_t count) {
  if (!server || !packets)
    return;
  for (size_t i = 0; i < count; i++) {
    weft_server_batch *batch = packets[i].lease;
    if (--batch->unreleased > 0) // only the caller's thread changes this counter
      continue;
    taken_remove(server, batch);
    pthread_mutex_lock(&server->lock);
    const bool held_up = server->due_head && !weft_server_may_code(server);
    server->stats.ready_bytes -= batch->slab_bytes;
    if (held_up && weft_server_may_code(server)) {
      server->let_go = true;
      weft_server_signal(server);
    }
    pthread_mutex_unlock(&server->lock);
    weft_batch_free(server, batch);
  }
}
