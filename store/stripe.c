// SPDX-License-Identifier: Apache-2.0
// Reads, checks, rebuilds and writes the chunks of one stripe.
#include <string.h>

#include "store/set.h"

size_t weft_store_threads(const weft_store *store, uint64_t stripes) {
  size_t n = store->options.threads ? store->options.threads : 1;
  n = n < WEFT_STORE_MAX_THREADS ? n : WEFT_STORE_MAX_THREADS;
  return stripes < n ? stripes ? (size_t)stripes : 1 : n;
}

weft_status weft_store_lanes_new(weft_store *store, size_t count, weft_store_lane **out) {
  const weft_store_geometry *g = &store->geometry;
  weft_ctx *ctx = store->options.ctx;
  void *memory;
  const weft_status made = weft_store_new_memory(ctx, (count + 1) * sizeof **out, &memory);
  if (made != WEFT_OK)
    return weft_store_told(store->report, made);
  *out = memory; // ended by base NULL
  // A file of one short stripe needs only that much.
  const size_t chunk = g->stripes == 1 ? g->last_chunk_bytes : g->chunk_bytes;
  for (size_t i = 0; i < count; i++) {
    const weft_status status = weft_alloc(ctx, WEFT_MEM_HOST, (g->k + g->m) * chunk, &memory);
    if (status != WEFT_OK) {
      weft_store_lanes_free(store, *out);
      return weft_store_fail(store->report, status, "no memory for %zu stripes of %zu bytes", count,
                             (g->k + g->m) * chunk);
    }
    (*out)[i].base = memory;
  }
  return WEFT_OK;
}

void weft_store_lanes_free(weft_store *store, weft_store_lane *lanes) {
  for (size_t i = 0; lanes && lanes[i].base; i++)
    weft_free(store->options.ctx, WEFT_MEM_HOST, lanes[i].base);
  weft_free(store->options.ctx, WEFT_MEM_HOST, lanes);
}

void weft_store_lose(weft_store_report *report, uint64_t first, uint64_t last) {
  weft_store_lost *lost = report->lost;
  report->lost_stripes += last - first + 1;
  size_t at = 0; // the first range that does not end before this one
  while (at < report->lost_count && lost[at].last + 1 < first)
    at++;
  if (at < report->lost_count && lost[at].first <= last + 1) { // adjacent or overlapping
    lost[at].first = first < lost[at].first ? first : lost[at].first;
    lost[at].last = last > lost[at].last ? last : lost[at].last;
    if (at + 1 < report->lost_count && lost[at].last + 1 >= lost[at + 1].first) {
      lost[at].last = lost[at + 1].last;
      report->lost_count--;
      memmove(&lost[at + 1], &lost[at + 2], (report->lost_count - at - 1) * sizeof *lost);
    }
    return;
  }
  report->lost_more |= report->lost_count == WEFT_STORE_LOST_RANGES;
  if (at == WEFT_STORE_LOST_RANGES)
    return;
  const size_t kept =
      report->lost_count < WEFT_STORE_LOST_RANGES ? report->lost_count : WEFT_STORE_LOST_RANGES - 1;
  memmove(&lost[at + 1], &lost[at], (kept - at) * sizeof *lost);
  lost[at] = (weft_store_lost){.first = first, .last = last};
  report->lost_count = kept + 1;
}

void weft_store_count(weft_store *store, uint64_t *counter, uint64_t amount) {
  pthread_mutex_lock(&store->lock);
  *counter += amount;
  pthread_mutex_unlock(&store->lock);
}

void weft_store_lane_start(const weft_store *store, weft_store_lane *lane, uint64_t stripe) {
  lane->chunk = weft_store_chunk(&store->geometry, stripe);
  lane->bytes = (size_t)weft_store_data_bytes(&store->geometry, stripe);
  memset(lane->state, WEFT_CHUNK_UNREAD, sizeof lane->state);
}

weft_stripe weft_store_lane_stripe(const weft_store_lane *lane) {
  return (weft_stripe){
      .base = lane->base, .stride = lane->chunk, .bytes = lane->chunk, .mem = WEFT_MEM_HOST};
}

// Reads and checks a chunk at `at` of `fd`. A system error counts as a corrupt chunk, as for bad
// sectors.
static bool read_good(weft_store *store, weft_store_lane *lane, size_t shard, uint64_t stripe,
                      int fd, uint64_t at, bool *unread) {
  uint8_t trailer[WEFT_STORE_TRAILER_BYTES];
  uint8_t *chunk = weft_store_lane_chunk(lane, shard);
  size_t got;
  const int error =
      weft_store_read_at(store->io, fd, at, chunk, lane->chunk, trailer, sizeof trailer, &got);
  weft_store_count(store, &store->report->shard_bytes_read, got);
  *unread = error != 0;
  lane->written[shard] =
      got == lane->chunk + sizeof trailer ? weft_store_chunk_generation(trailer) : 0;
  return error == 0 && got == lane->chunk + sizeof trailer &&
         weft_store_chunk_good(store->file_key, (uint16_t)shard, stripe, store->header.generation,
                               chunk, lane->chunk, trailer);
}

void weft_store_note_corrupt(weft_store *store, size_t shard, uint64_t stripe, bool unread) {
  pthread_mutex_lock(&store->lock);
  weft_store_shard *about = &store->shards[shard];
  if (about->corrupt_chunks++ == 0 || stripe < about->first_corrupt)
    about->first_corrupt = stripe;
  about->unread_chunks += unread;
  store->report->corrupt_chunks++;
  pthread_mutex_unlock(&store->lock);
}

weft_status weft_store_load(weft_store *store, weft_store_lane *lane, size_t shard,
                            uint64_t stripe) {
  if (lane->state[shard] != WEFT_CHUNK_UNREAD)
    return WEFT_OK;
  lane->state[shard] = WEFT_CHUNK_BAD;
  const weft_store_file *file = &store->files[shard];
  if (file->fd < 0)
    return WEFT_OK;
  const weft_store_pending *pending = weft_store_journal_find(store, shard, stripe);
  // The shard's own chunk may be sound but outdated.
  bool unread;
  const bool good =
      pending ? read_good(store, lane, shard, stripe, store->journal_fd, pending->at, &unread)
              : read_good(store, lane, shard, stripe, file->fd,
                          weft_store_chunk_offset(&store->geometry, stripe), &unread);
  if (good) {
    lane->state[shard] = WEFT_CHUNK_GOOD;
    return WEFT_OK;
  }
  weft_store_note_corrupt(store, shard, stripe, unread && !pending);
  return WEFT_OK;
}

weft_status weft_store_rebuild(weft_store *store, weft_store_lane *lane, uint64_t stripe,
                               const uint8_t *wanted, size_t count) {
  const size_t k = store->geometry.k, all = k + store->geometry.m;
  uint8_t bad[WEFT_STORE_MAX_SHARDS], lost[WEFT_STORE_MAX_SHARDS];
  size_t bad_count = 0, lost_count = 0, good = 0;
  for (size_t i = 0; i < count; i++)
    if (lane->state[wanted[i]] == WEFT_CHUNK_BAD)
      bad[bad_count++] = wanted[i];
  if (bad_count == 0)
    return WEFT_OK;
  for (size_t i = 0; i < all && good < k; i++) {
    WEFT_TRY(weft_store_load(store, lane, i, stripe));
    good += lane->state[i] == WEFT_CHUNK_GOOD;
  }
  if (good < k)
    return WEFT_E_DAMAGED;
  // Chunks that were not read count as lost: they need not be good.
  good = 0;
  for (size_t i = 0; i < all; i++)
    if (lane->state[i] != WEFT_CHUNK_GOOD || good++ >= k)
      lost[lost_count++] = (uint8_t)i;
  const weft_erasures erasures = {
      .lost = lost, .lost_count = lost_count, .wanted = bad, .wanted_count = bad_count};
  const weft_stripe where = weft_store_lane_stripe(lane);
  const weft_status status = weft_code_recover(store->code, &erasures, &where, 1, NULL);
  if (status != WEFT_OK) {
    pthread_mutex_lock(&store->lock);
    (void)weft_store_told(store->report, status);
    pthread_mutex_unlock(&store->lock);
  }
  return status;
}

int weft_store_try_chunk(weft_store *store, const weft_store_lane *lane, int fd, size_t shard,
                         uint64_t stripe) {
  const uint8_t *chunk = weft_store_lane_chunk(lane, shard);
  uint8_t trailer[WEFT_STORE_TRAILER_BYTES];
  weft_store_chunk_seal(
      store->file_key, (uint16_t)shard, stripe,
      (weft_store_trailer){.generation = store->header.generation, .nonce = store->nonce}, chunk,
      lane->chunk, trailer);
  const int error =
      weft_store_write_at(store->io, fd, weft_store_chunk_offset(&store->geometry, stripe), chunk,
                          lane->chunk, trailer, sizeof trailer);
  if (!error)
    weft_store_count(store, &store->report->shard_bytes_written, lane->chunk + sizeof trailer);
  return error;
}

weft_status weft_store_write_chunk(weft_store *store, const weft_store_lane *lane, int fd,
                                   size_t shard, uint64_t stripe) {
  const int error = weft_store_try_chunk(store, lane, fd, shard, stripe);
  if (!error)
    return WEFT_OK;
  char path[WEFT_STORE_PATH_BYTES];
  WEFT_TRY(weft_store_shard_path(store->folder, shard, true, path));
  pthread_mutex_lock(&store->lock);
  const weft_status status = weft_store_fail_io(store->report, path, error);
  pthread_mutex_unlock(&store->lock);
  return status;
}

int weft_store_try_header(weft_store *store, int fd, size_t shard) {
  uint8_t bytes[WEFT_STORE_HEADER_BYTES];
  weft_store_header header = store->header;
  header.shard = (uint16_t)shard;
  weft_store_header_write(&header, store->file_key, bytes);
  return weft_store_write_at(store->io, fd, 0, bytes, sizeof bytes, NULL, 0);
}

weft_status weft_store_write_header(weft_store *store, int fd, size_t shard) {
  char path[WEFT_STORE_PATH_BYTES];
  WEFT_TRY(weft_store_shard_path(store->folder, shard, true, path));
  const int error = weft_store_try_header(store, fd, shard);
  return error ? weft_store_fail_io(store->report, path, error) : WEFT_OK;
}

bool weft_store_ask(weft_store *store, uint64_t done, uint64_t total) {
  const weft_store_options *o = &store->options;
  if (!o->keep_on)
    return true;
  pthread_mutex_lock(&store->lock); // one thread may wait for input while another finishes a stripe
  const bool on = o->keep_on(o->user, total && done > total ? total : done, total);
  pthread_mutex_unlock(&store->lock);
  return on;
}

bool weft_store_keep_on(void *watch, uint64_t stripes) {
  const weft_store_watch *w = watch;
  return weft_store_ask(w->store, stripes * w->stripe_bytes, w->total);
}
