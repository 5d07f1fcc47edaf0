// SPDX-License-Identifier: Apache-2.0
// Replaces a range of the data and updates parity: by deltas, or by encoding where a whole stripe
// is replaced. All new chunks go to a journal first; its rename is the update's commit (journal.c
// carries it out).
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store/folder.h"

typedef struct updating {
  weft_store *store;
  weft_store_lane *lane;
  uint8_t *fresh; // bytes read from the input for one stripe
  uint8_t *chunk; // the new contents of one data chunk
  weft_store_journal journal;
  int input, fd;
  uint64_t taken, total; // bytes of the input; total 0: unknown
} updating;

static weft_status append(updating *u, size_t shard, uint64_t stripe, const uint8_t *chunk) {
  weft_store *store = u->store;
  uint8_t head[WEFT_STORE_RECORD_BYTES], trailer[WEFT_STORE_TRAILER_BYTES];
  const weft_store_record record = {.stripe = stripe, .shard = (uint16_t)shard};
  weft_store_record_write(&record, &u->journal, store->file_key, head);
  weft_store_chunk_seal(
      store->file_key, (uint16_t)shard, stripe,
      (weft_store_trailer){.generation = u->journal.generation, .nonce = store->nonce}, chunk,
      u->lane->chunk, trailer);
  int error = weft_store_write_at(store->io, u->fd, u->journal.bytes, head, sizeof head, NULL, 0);
  if (!error)
    error = weft_store_write_at(store->io, u->fd, u->journal.bytes + sizeof head, chunk,
                                u->lane->chunk, trailer, sizeof trailer);
  u->journal.bytes += sizeof head + u->lane->chunk + sizeof trailer;
  u->journal.records++;
  char path[WEFT_STORE_PATH_BYTES];
  WEFT_TRY(weft_store_journal_path(store->folder, true, path));
  return error ? weft_store_fail_io(store->report, path, error) : WEFT_OK;
}

// Whether the update of data chunks first to last reads a shard's chunk: parity if the shard is
// there, data in any case.
static bool takes_part(const updating *u, size_t shard, size_t first, size_t last) {
  return shard < u->store->geometry.k ? shard >= first && shard <= last
                                      : u->store->files[shard].fd >= 0;
}

// Loads the chunks that the update reads, rebuilding those that are not sound. In an inconsistent
// stripe nothing is sealed as good: outdated parity, sealed again, would appear newer than the
// update that it lacks, and the evidence of which chunks are wrong would be lost.
static weft_status load_old(updating *u, uint64_t stripe, size_t first, size_t last) {
  weft_store *store = u->store;
  const size_t k = store->geometry.k, all = k + store->geometry.m;
  bool sound = true, well = true;
  weft_store_lane_start(store, u->lane, stripe);
  for (size_t i = 0; i < all; i++)
    if (takes_part(u, i, first, last)) {
      WEFT_TRY(weft_store_load(store, u->lane, i, stripe));
      sound = sound && u->lane->state[i] == WEFT_CHUNK_GOOD;
    }
  const weft_status status = sound && weft_store_parity_newest(store, u->lane, stripe)
                                 ? WEFT_OK
                                 : weft_store_check_stripe(store, u->lane, stripe, &well);
  if (status == WEFT_E_DAMAGED)
    return weft_store_fail(store->report, status,
                           "stripe %" PRIu64 ": fewer than %zu of its chunks are intact", stripe,
                           k);
  if (status == WEFT_OK && !well)
    return weft_store_fail(store->report, WEFT_E_DAMAGED,
                           "stripe %" PRIu64
                           ": some of its chunks are corrupt or stale, and parity does not match "
                           "the data, so that they cannot be rebuilt",
                           stripe);
  return status;
}

// Whether k shards have the size that their headers claim. If not, a header may be forged, and
// stripes that it claims are not written without checking what is there.
static bool enough_placed(const weft_store *store) {
  const size_t all = store->geometry.k + store->geometry.m;
  size_t placed = 0;
  for (size_t i = 0; i < all; i++)
    placed += store->files[i].placed;
  return placed >= store->geometry.k;
}

// Replaces all of a stripe's data by u->fresh. Nothing of it is read: a stripe that was lost or
// inconsistent is whole again.
static weft_status replace_stripe(updating *u, uint64_t stripe) {
  weft_store *store = u->store;
  const size_t k = store->geometry.k, all = k + store->geometry.m;
  weft_store_lane *lane = u->lane;
  weft_store_lane_start(store, lane, stripe);
  memcpy(lane->base, u->fresh, lane->bytes);
  memset(lane->base + lane->bytes, 0, k * lane->chunk - lane->bytes);
  const weft_stripe where = weft_store_lane_stripe(lane);
  WEFT_TRY(weft_code_encode(store->code, &where, 1, NULL));
  for (size_t i = 0; i < all; i++)
    if (store->files[i].fd >= 0)
      WEFT_TRY(append(u, i, stripe, weft_store_lane_chunk(lane, i)));
  return WEFT_OK;
}

// Replaces bytes [from, to) of a stripe's data by u->fresh.
static weft_status update_stripe(updating *u, uint64_t stripe, size_t from, size_t to) {
  weft_store *store = u->store;
  const size_t k = store->geometry.k, all = k + store->geometry.m;
  const size_t chunk = weft_store_chunk(&store->geometry, stripe);
  const size_t first = from / chunk, last = (to - 1) / chunk;
  uint8_t *shards[WEFT_STORE_MAX_SHARDS] = {NULL};
  if (to - from == weft_store_data_bytes(&store->geometry, stripe) && enough_placed(store))
    return replace_stripe(u, stripe);
  WEFT_TRY(load_old(u, stripe, first, last));
  for (size_t i = k; i < all; i++)
    if (store->files[i].fd >= 0)
      shards[i] = weft_store_lane_chunk(u->lane, i);
  const weft_stripe parity = {.shards = shards, .bytes = chunk, .mem = WEFT_MEM_HOST};
  for (size_t i = first; i <= last; i++) {
    const uint8_t *old = weft_store_lane_chunk(u->lane, i);
    const size_t start = i * chunk, a = from > start ? from : start,
                 b = to < start + chunk ? to : start + chunk;
    memcpy(u->chunk, old, chunk);
    memcpy(u->chunk + (a - start), u->fresh + (a - from), b - a);
    WEFT_TRY(weft_code_update(store->code, i, old, u->chunk, &parity, NULL));
    if (store->files[i].fd >= 0)
      WEFT_TRY(append(u, i, stripe, u->chunk));
  }
  for (size_t i = k; i < all; i++)
    if (shards[i])
      WEFT_TRY(append(u, i, stripe, shards[i]));
  return WEFT_OK;
}

static bool keep_on(void *user) {
  const updating *u = user;
  return weft_store_ask(u->store, u->taken, u->total);
}

static weft_status past_the_end(const weft_store *store) {
  return weft_store_fail(store->report, WEFT_E_ARGUMENT,
                         "the new bytes go past the end of the data, which has %" PRIu64
                         " bytes: an update keeps the length; encode a longer file anew, into "
                         "another folder",
                         store->geometry.length);
}

// Fails if the input was truncated while it was read: part of an update is worse than none.
static weft_status check_taken(const updating *u) {
  if (u->taken >= u->total)
    return WEFT_OK;
  return weft_store_fail(u->store->report, WEFT_E_IO,
                         "the input had %" PRIu64 " bytes when it was opened, and %" PRIu64
                         " when it was read: nothing was changed",
                         u->total, u->taken);
}

static weft_status read_input(updating *u, uint64_t offset) {
  weft_store *store = u->store;
  const weft_store_geometry *g = &store->geometry;
  const uint64_t whole = (uint64_t)g->k * g->chunk_bytes;
  weft_store_watch watch = {.store = store, .stripe_bytes = whole, .total = u->total};
  bool ended = false;
  for (uint64_t done = 0;; done++) {
    const uint64_t stripe = offset / whole;
    const size_t from = (size_t)(offset % whole);
    const size_t room = (size_t)whole - from;
    size_t got;
    const weft_store_patience patience = {.keep_on = keep_on, .user = u};
    const int error = weft_store_read_next(store->io, u->input, u->fresh, room, &got, &patience);
    if (error)
      return weft_store_fail_io(store->report, "the input", error);
    if (got == 0)
      return check_taken(u);
    if (ended) // the stripe would be in the journal twice, sealed with the same one-time keys
      return weft_store_fail(store->report, WEFT_E_IO, "the input grew after its end was reached");
    ended = got < room;
    if (got > g->length - offset)
      return past_the_end(store);
    WEFT_TRY(update_stripe(u, stripe, from, from + got));
    offset += got;
    u->taken += got;
    store->report->data_bytes += got;
    if (!weft_store_keep_on(&watch, done + 1))
      return WEFT_E_STOPPED;
  }
}

static weft_status write_journal(updating *u, uint64_t offset, const char *path) {
  weft_store *store = u->store;
  uint8_t head[WEFT_STORE_JOURNAL_BYTES] = {0};
  WEFT_TRY(read_input(u, offset));
  if (u->journal.records == 0)
    return WEFT_OK;
  weft_store_journal_write(&u->journal, store->file_key, head);
  const int error = weft_store_write_at(store->io, u->fd, 0, head, sizeof head, NULL, 0);
  if (error)
    return weft_store_fail_io(store->report, path, error);
  WEFT_TRY(weft_store_sync_file(store->io, u->fd, path, store->report));
  return weft_store_journal_load(store, true); // only a journal that can be read back is committed
}

static weft_status carry_out(updating *u) {
  weft_store *store = u->store;
  WEFT_TRY(weft_store_sync_names(store));
  store->header.generation = u->journal.generation;
  store->header.update = u->journal.update;
  return weft_store_journal_apply(store, true); // patient, unlike the next open
}

static weft_status with_memory(updating *u, uint64_t offset) {
  weft_store *store = u->store;
  char fresh[WEFT_STORE_PATH_BYTES], final[WEFT_STORE_PATH_BYTES];
  WEFT_TRY(weft_store_journal_path(store->folder, true, fresh));
  WEFT_TRY(weft_store_journal_path(store->folder, false, final));
  u->journal = (weft_store_journal){.generation = store->header.generation + 1,
                                    .update = store->nonce,
                                    .bytes = WEFT_STORE_JOURNAL_BYTES};
  memcpy(u->journal.id, store->header.id, sizeof u->journal.id);
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++)
    if (store->files[i].fd >= 0)
      u->journal.shards[i / 8] |= (uint8_t)(1u << (i % 8));
  const int error = weft_store_create_beside(store, fresh, &u->fd);
  if (error)
    return weft_store_fail_io(store->report, fresh, error);
  weft_status status = write_journal(u, offset, fresh);
  store->io->close(u->fd);
  if (status == WEFT_OK && u->journal.records)
    status = weft_store_rename(store->io, fresh, final, store->report);
  if (status != WEFT_OK || u->journal.records == 0) {
    weft_store_journal_drop(store);
    (void)store->io->unlink(fresh); // best effort; the next writer removes it
    return status;
  }
  status = carry_out(u);
  store->ended = status != WEFT_OK;
  return status == WEFT_OK ? status : weft_store_holds(store->report, status, "the update");
}

// Fails if a shard is read-only: the update could not be carried out, so it must not be committed.
// Nor if the system withholds one: it would be stale, by an update that its owner could have
// allowed it to take part in.
static weft_status check_writable(const weft_store *store) {
  char path[WEFT_STORE_PATH_BYTES];
  size_t first;
  if (weft_store_withheld(store, &first))
    return weft_store_fail(store->report, WEFT_E_IO,
                           "%s/shard-%03zu.weft: %s: nothing was changed; allow reading and "
                           "writing it, or move it away to update without it",
                           store->folder, first, strerror(store->shards[first].read_error));
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++) {
    const weft_store_file *file = &store->files[i];
    if (file->fd < 0 || !file->read_only)
      continue;
    WEFT_TRY(weft_store_shard_path(store->folder, i, file->fresh, path));
    return weft_store_fail(store->report, WEFT_E_IO,
                           "%s: %s: nothing was changed; repair rebuilds the shard%s", path,
                           strerror(file->read_only),
                           file->read_only == EROFS ? " if the folder itself takes new files" : "");
  }
  return WEFT_OK;
}

weft_status weft_store_update(weft_store *store, uint64_t offset, int input, uint64_t total) {
  const weft_store_geometry *g = &store->geometry;
  weft_ctx *ctx = store->options.ctx;
  updating u = {.store = store, .input = input, .total = total};
  WEFT_TRY(weft_store_begin(store));
  WEFT_TRY(check_writable(store));
  if (offset > g->length)
    return weft_store_fail(store->report, WEFT_E_ARGUMENT,
                           "offset %" PRIu64 " is past the end of the data, which has %" PRIu64
                           " bytes",
                           offset, g->length);
  if (total > g->length - offset) // before a journal of that size is written
    return past_the_end(store);
  if (weft_store_get_info(store).usable < g->k)
    return weft_store_fail(store->report, WEFT_E_DAMAGED, "fewer than %zu shards can be read",
                           g->k);
  if (store->header.generation >= WEFT_STORE_MAX_GENERATION)
    return weft_store_fail(store->report, WEFT_E_ARGUMENT, "the shards have received 2^62 updates");
  WEFT_TRY(weft_store_lanes_new(store, 1, &u.lane));
  void *fresh = NULL, *chunk = NULL;
  weft_status status = weft_alloc(ctx, WEFT_MEM_HOST, g->k * g->chunk_bytes, &fresh);
  if (status == WEFT_OK)
    status = weft_alloc(ctx, WEFT_MEM_HOST, g->chunk_bytes, &chunk);
  u.fresh = fresh;
  u.chunk = chunk;
  if (status == WEFT_OK)
    status = with_memory(&u, offset);
  weft_free(ctx, WEFT_MEM_HOST, fresh);
  weft_free(ctx, WEFT_MEM_HOST, chunk);
  weft_store_lanes_free(store, u.lane);
  return weft_store_told(store->report, status);
}
