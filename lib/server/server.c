// SPDX-License-Identifier: Apache-2.0
// The streaming server's calls: segments, requests, starting products.
#define _GNU_SOURCE
#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/server/internal.h"

static const size_t DEFAULT_MEMORY_BYTES = (size_t)1 << 30;
static const size_t DEFAULT_READY_BYTES = (size_t)256 << 20;
enum { DEFAULT_BATCH_PACKETS = 4096, DEFAULT_PENDING_PACKETS = 1 << 24, FIRST_TABLE_SIZE = 64 };

// --- life ---

static bool options_fit(const weft_server_options *options) {
  if (!options || !options->contexts || !options->now_us || options->gather_us < 0 ||
      options->context_count < 1 || options->context_count > WEFT_SERVER_MAX_LANES ||
      (options->repeatable && options->context_count > 1))
    return false;
  for (size_t i = 0; i < options->context_count; i++)
    if (!options->contexts[i])
      return false;
  return true;
}

static void set_defaults(weft_server_options *options) {
  if (options->memory_bytes == 0)
    options->memory_bytes = DEFAULT_MEMORY_BYTES;
  if (options->ready_bytes == 0)
    options->ready_bytes = DEFAULT_READY_BYTES;
  if (options->batch_packets == 0)
    options->batch_packets = DEFAULT_BATCH_PACKETS;
  if (options->pending_packets == 0)
    options->pending_packets = DEFAULT_PENDING_PACKETS;
  if (options->batch_packets > UINT32_MAX) // so that the size of a slab does not overflow
    options->batch_packets = UINT32_MAX;
}

static weft_status start(weft_server *server) {
  const size_t table_bytes = FIRST_TABLE_SIZE * sizeof *server->table;
  server->table = weft_server_take_memory(server, table_bytes);
  if (!server->table)
    return WEFT_E_NOMEM;
  memset(server->table, 0, table_bytes);
  server->table_size = FIRST_TABLE_SIZE;
  server->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (server->fd < 0)
    return errno == ENOMEM ? WEFT_E_NOMEM : WEFT_E_DESCRIPTOR;
  for (size_t i = 0; i < server->options.context_count; i++) {
    server->lanes = i + 1;
    WEFT_TRY(weft_lane_start(server, i, server->options.contexts[i]));
  }
  // Calibration slabs are larger than anything a small server ever needs.
  (void)weft_server_free_spares(server);
  return WEFT_OK;
}

weft_status weft_server_new(const weft_server_options *options, weft_server **out) {
  if (!out)
    return WEFT_E_ARGUMENT;
  *out = NULL;
  if (!options_fit(options))
    return WEFT_E_ARGUMENT;
  const weft_allocator allocator = options->contexts[0]->allocator;
  weft_server *server = allocator.alloc(allocator.user, sizeof *server, _Alignof(weft_server));
  if (!server)
    return WEFT_E_NOMEM;
  memset(server, 0, sizeof *server);
  server->allocator = allocator;
  server->options = *options;
  server->fd = -1;
  server->next_expiry_us = INT64_MAX;
  set_defaults(&server->options);
  if (pthread_mutex_init(&server->lock, NULL) != 0) {
    allocator.free(allocator.user, server);
    return WEFT_E_THREAD;
  }
  const weft_status status = start(server);
  server->options.contexts = NULL; // the caller's array need not outlive this call
  if (status != WEFT_OK) {
    weft_server_free(server);
    return status;
  }
  *out = server;
  return WEFT_OK;
}

static void free_batches(weft_server *server, weft_server_batch *batch) {
  for (weft_server_batch *next; batch; batch = next) {
    next = batch->next;
    weft_batch_free(server, batch);
  }
}

void weft_server_free(weft_server *server) {
  if (!server)
    return;
  pthread_mutex_lock(&server->lock);
  server->stopping = true;
  pthread_mutex_unlock(&server->lock);
  for (size_t i = 0; i < server->lanes; i++)
    weft_lane_stop(&server->lane[i]);
  free_batches(server, server->ready_head);
  free_batches(server, server->taken);
  (void)weft_server_free_spares(server);
  pthread_mutex_lock(&server->lock);
  while (server->oldest)
    weft_server_remove(server, server->oldest);
  weft_server_unlock(server);
  weft_server_give_memory(server, server->table);
  if (server->fd >= 0)
    close(server->fd);
  pthread_mutex_destroy(&server->lock);
  const weft_allocator allocator = server->allocator;
  allocator.free(allocator.user, server);
}

// --- segments ---

static weft_status find_room(weft_server *server, const weft_segment_id *id, int64_t now_us) {
  weft_status status = WEFT_OK;
  pthread_mutex_lock(&server->lock);
  server->now_us = now_us;
  weft_server_expire(server, now_us);
  if (weft_server_find(server, id->stream, id->segment))
    status = WEFT_E_STATE;
  else if (!weft_server_make_room(server, (size_t)id->blocks * id->block_bytes))
    status = WEFT_E_NOMEM;
  weft_server_unlock(server);
  return status;
}

// Runs without the lock, so that lanes can work while bytes are copied.
static weft_status new_segment(weft_server *server, const weft_segment_id *id, const uint8_t *data,
                               size_t bytes, int64_t expires_us, weft_server_segment **out) {
  const size_t padded = (size_t)id->blocks * id->block_bytes;
  weft_server_segment *entry = weft_server_take_memory(server, sizeof *entry);
  if (!entry)
    return WEFT_E_NOMEM;
  *entry = (weft_server_segment){.id = *id,
                                 .bytes = padded,
                                 .expires_us = expires_us,
                                 .batch_packets = weft_batch_most(server, id)};
  entry->data = weft_server_take_memory(server, padded);
  if (!entry->data) {
    weft_server_give_memory(server, entry);
    return WEFT_E_NOMEM;
  }
  memcpy(entry->data, data, bytes);
  memset(entry->data + bytes, 0, padded - bytes);
  // Several servers of one stream must not send the same combinations, so each starts at a random
  // seed.
  if (!server->options.repeatable)
    randombytes_buf(&entry->next_seed, sizeof entry->next_seed);
  *out = entry;
  return WEFT_OK;
}

// Raises the bound on ready packets for large packets, so that at least four fit.
static void raise_bound(weft_server *server, const weft_segment_id *id) {
  const size_t least = WEFT_READY_PARTS * weft_batch_stride(server, id);
  if (server->options.ready_bytes < least)
    server->options.ready_bytes = least;
}

weft_status weft_server_push(weft_server *server, const weft_segment_id *id, const uint8_t *data,
                             size_t bytes, int64_t now_us, int64_t expires_us) {
  if (!server || !id || !data || bytes == 0 || expires_us <= now_us ||
      weft_packet_bytes(id, WEFT_PACKET_DENSE) == 0 || bytes > (size_t)id->blocks * id->block_bytes)
    return WEFT_E_ARGUMENT;
  WEFT_TRY(find_room(server, id, now_us));
  weft_server_segment *entry = NULL;
  weft_status status = new_segment(server, id, data, bytes, expires_us, &entry);
  if (status == WEFT_E_NOMEM && weft_server_free_spares(server))
    status = new_segment(server, id, data, bytes, expires_us, &entry);
  WEFT_TRY(status);
  pthread_mutex_lock(&server->lock);
  weft_server_insert(server, entry); // only the caller's thread pushes: the id is still unused
  raise_bound(server, id);
  pthread_mutex_unlock(&server->lock);
  return WEFT_OK;
}

weft_status weft_server_drop(weft_server *server, uint64_t stream, uint64_t segment) {
  if (!server)
    return WEFT_E_ARGUMENT;
  pthread_mutex_lock(&server->lock);
  weft_server_segment *entry = weft_server_find(server, stream, segment);
  const weft_status status = entry ? WEFT_OK : WEFT_E_FOREIGN;
  if (entry && entry->want_count > 0) {
    entry->expires_us = INT64_MIN; // removed once its last promised packet is made
  } else if (entry) {
    server->stats.expired++;
    weft_server_remove(server, entry);
  }
  weft_server_unlock(server);
  return status;
}

bool weft_server_has(const weft_server *server, uint64_t stream, uint64_t segment) {
  // No lock: only the caller's thread changes the table, and this is that thread.
  return weft_server_find(server, stream, segment) != NULL;
}

// --- requests ---

static weft_status take_request(weft_server *server, const weft_server_request *request,
                                int64_t now_us) {
  if (request->packets == 0 || request->packets > server->options.pending_packets)
    return WEFT_E_ARGUMENT;
  weft_server_segment *entry = weft_server_find(server, request->stream, request->segment);
  if (!entry || entry->expires_us <= now_us)
    return WEFT_E_FOREIGN;
  if (request->packets > server->options.pending_packets - server->stats.pending_packets)
    return WEFT_E_BUFFER;
  const weft_server_want want = {request->client, now_us, request->packets};
  return weft_wants_add(server, entry, &want);
}

// Takes requests from number *taken on, until one is refused.
static weft_status take_requests(weft_server *server, const weft_server_request *requests,
                                 size_t count, int64_t now_us, size_t *taken) {
  weft_status status = WEFT_OK;
  pthread_mutex_lock(&server->lock);
  server->now_us = now_us;
  while (*taken < count && status == WEFT_OK) {
    status = take_request(server, &requests[*taken], now_us);
    *taken += status == WEFT_OK;
  }
  pthread_mutex_unlock(&server->lock);
  return status;
}

weft_status weft_server_request_many(weft_server *server, const weft_server_request *requests,
                                     size_t count, int64_t now_us, size_t *accepted) {
  if (!accepted)
    return WEFT_E_ARGUMENT;
  *accepted = 0;
  if (!server || (count > 0 && !requests))
    return WEFT_E_ARGUMENT;
  weft_status status = take_requests(server, requests, count, now_us, accepted);
  if (status == WEFT_E_NOMEM && weft_server_free_spares(server))
    status = take_requests(server, requests, count, now_us, accepted);
  return status;
}

weft_status weft_server_cancel_segment(weft_server *server, uint64_t client, uint64_t stream,
                                       uint64_t segment) {
  if (!server)
    return WEFT_E_ARGUMENT;
  pthread_mutex_lock(&server->lock);
  weft_server_segment *entry = weft_server_find(server, stream, segment);
  if (entry && entry->want_count > 0)
    weft_wants_cancel(server, entry, client);
  pthread_mutex_unlock(&server->lock);
  return WEFT_OK;
}

weft_status weft_server_cancel(weft_server *server, uint64_t client) {
  if (!server)
    return WEFT_E_ARGUMENT;
  pthread_mutex_lock(&server->lock);
  weft_server_segment *next = NULL;
  for (weft_server_segment *entry = server->due_head; entry; entry = next) {
    next = entry->due_next;
    weft_wants_cancel(server, entry, client);
  }
  pthread_mutex_unlock(&server->lock);
  return WEFT_OK;
}

// --- time ---

static int64_t due_us(const weft_server *server, const weft_server_segment *entry) {
  const int64_t asked_us = entry->wants[0].asked_us, wait_us = server->options.gather_us;
  return asked_us > INT64_MAX - wait_us ? INT64_MAX : asked_us + wait_us;
}

static bool is_due(const weft_server *server, const weft_server_segment *entry, int64_t now_us) {
  return due_us(server, entry) <= now_us;
}

// While all lanes are busy, requests keep gathering; the descriptor signals when a lane has
// finished something. A full product gains nothing by waiting. But a due product that comes before
// a full one goes first, or the full ones, which keep the lanes busy, could delay it for ever.
static bool may_start(const weft_server *server, const weft_server_segment *entry, int64_t now_us) {
  return weft_wants_full(entry) ||
         (is_due(server, entry, now_us) && (server->full > 0 || !weft_server_busy(server)));
}

// Returns when the first product may start. A full one may start from when its oldest request came
// or later; either is in the past.
static int64_t start_us(const weft_server *server) {
  if (!weft_server_may_code(server) || (server->full == 0 && weft_server_busy(server)))
    return INT64_MAX;
  int64_t first_us = INT64_MAX;
  for (const weft_server_segment *entry = server->due_head; entry; entry = entry->due_next) {
    const int64_t us = weft_wants_full(entry) ? entry->wants[0].asked_us : due_us(server, entry);
    first_us = us < first_us ? us : first_us;
  }
  return first_us;
}

static weft_status start_batch(weft_server *server, weft_server_segment *entry,
                               weft_server_share share) {
  weft_server_batch *batch = NULL;
  WEFT_TRY(weft_batch_new(server, entry, share.packets, &batch));
  if (!weft_server_assign(server, share.lane, batch)) {
    batch->status = WEFT_E_DEVICE_LOST;
    weft_batch_ready(server, batch);
  }
  return WEFT_OK;
}

// Starts one product, which may be divided among lanes.
static weft_status start_product(weft_server *server, weft_server_segment *entry) {
  size_t left = weft_wants_full(entry) ? entry->batch_packets : entry->want_packets;
  while (left > 0 && weft_server_may_code(server)) {
    const weft_server_share share = weft_server_next_share(server, &entry->id, left);
    WEFT_TRY(start_batch(server, entry, share));
    left -= share.packets;
  }
  weft_wants_pass_turn(server, entry);
  return WEFT_OK;
}

static weft_status start_due(weft_server *server, int64_t now_us) {
  weft_status status = WEFT_OK;
  pthread_mutex_lock(&server->lock);
  server->now_us = now_us;
  server->let_go = false;
  weft_server_quiet(server);
  weft_server_segment *next = NULL;
  for (weft_server_segment *entry = server->due_head; entry; entry = next) {
    next = entry->due_next;
    if (!may_start(server, entry, now_us))
      continue;
    if (!weft_server_may_code(server))
      break;
    status = start_product(server, entry);
    if (status != WEFT_OK)
      break;
    if (!next && entry->want_count > 0) // it was last in the list, and has become last again
      next = entry;
  }
  weft_server_expire(server, now_us);
  weft_server_unlock(server);
  return status;
}

weft_status weft_server_process(weft_server *server, int64_t now_us) {
  if (!server)
    return WEFT_E_ARGUMENT;
  weft_status status = start_due(server, now_us);
  if (status == WEFT_E_NOMEM && weft_server_free_spares(server))
    status = start_due(server, now_us);
  return status;
}

int64_t weft_server_deadline(const weft_server *server) {
  weft_server *unlocked = (weft_server *)server; // const does not cover the lock
  pthread_mutex_lock(&unlocked->lock);
  const int64_t start = start_us(server), expiry = server->next_expiry_us, now = server->now_us;
  pthread_mutex_unlock(&unlocked->lock);
  const int64_t first = start < expiry ? start : expiry;
  return first > now ? first : now; // no earlier, so that callers can subtract their time from it
}

// --- statistics ---

void weft_server_get_stats(weft_server *server, weft_server_stats *out) {
  pthread_mutex_lock(&server->lock);
  *out = server->stats;
  out->lanes = server->lanes;
  for (size_t i = 0; i < server->lanes; i++)
    out->lane[i] = server->lane[i].stats;
  pthread_mutex_unlock(&server->lock);
}

size_t weft_server_predict_lane(weft_server *server, const weft_segment_id *id, size_t packets) {
  if (!id)
    return 0;
  const double work = weft_cost_work(id, packets);
  size_t best = 0;
  double best_us = -1;
  pthread_mutex_lock(&server->lock);
  for (size_t i = 0; i < server->lanes; i++) {
    const double us = weft_cost_predict(&server->lane[i].alone, work);
    if (!server->lane[i].failed && (best_us < 0 || us < best_us)) {
      best = i;
      best_us = us;
    }
  }
  pthread_mutex_unlock(&server->lock);
  return best;
}
