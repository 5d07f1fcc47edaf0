// SPDX-License-Identifier: Apache-2.0
// Encodes a file into shards. They are written under names that do not count (.new); once all of
// them are on the disk, the first rename to a final name commits them all.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "store/folder.h"

typedef struct encoding {
  weft_store *store;
  weft_store_lane *lanes;
  int input;
  uint64_t length, total;      // length: so far; total 0: unknown
  _Atomic(weft_status) failed; // why a stripe could not be coded or written
  bool ended;                  // end of the input was seen: it may have grown since
  bool committed;
} encoding;

// Asked while the input has nothing to read, possibly for long: stops early if another thread has
// failed.
static bool keep_on(void *user) {
  encoding *e = user;
  return atomic_load(&e->failed) == WEFT_OK && weft_store_ask(e->store, e->length, e->total);
}

// Reports a failure, under the lock: another thread's disk may be full at the same time.
static weft_status refuse(encoding *e, weft_status status, const char *text) {
  pthread_mutex_lock(&e->store->lock);
  weft_store_fail(e->store->report, status, "%s", text);
  pthread_mutex_unlock(&e->store->lock);
  return status;
}

static weft_status take(void *user, size_t lane_index, uint64_t stripe) {
  encoding *e = user;
  weft_store *store = e->store;
  weft_store_geometry *g = &store->geometry;
  weft_store_lane *lane = &e->lanes[lane_index];
  const size_t whole = g->k * g->chunk_bytes;
  size_t got;
  if (e->ended)
    return WEFT_PENDING;
  const weft_store_patience patience = {.keep_on = keep_on, .user = e};
  const int error = weft_store_read_next(store->io, e->input, lane->base, whole, &got, &patience);
  if (error) {
    pthread_mutex_lock(&store->lock); // as above
    const weft_status status = weft_store_fail_io(store->report, "the input", error);
    pthread_mutex_unlock(&store->lock);
    const weft_status cause = atomic_load(&e->failed);
    return cause != WEFT_OK ? cause : status;
  }
  e->ended = got < whole;
  if (got == 0)
    return WEFT_PENDING;
  e->length += got;
  if (e->length > WEFT_STORE_MAX_LENGTH)
    return refuse(e, WEFT_E_ARGUMENT, "the input is longer than 2^62 bytes");
  const size_t share = (got + g->k - 1) / g->k;
  lane->bytes = got;
  lane->chunk = (share + g->unit_bytes - 1) / g->unit_bytes * g->unit_bytes;
  memset(lane->base + got, 0, g->k * lane->chunk - got);
  (void)stripe;
  return WEFT_OK;
}

// Makes the disk write earlier stripes while later ones are coded, so that little is left to wait
// for at the end. Stays one batch behind, since other threads may still be writing the last one.
static void write_back(const weft_store *store, uint64_t stripe) {
  enum { BATCH = 8 };
  const weft_store_geometry *g = &store->geometry;
  if ((stripe + 1) % BATCH != 0 || stripe + 1 < 2 * BATCH)
    return;
  const uint64_t from = weft_store_chunk_offset(g, stripe + 1 - 2 * BATCH);
  const uint64_t to = weft_store_chunk_offset(g, stripe + 1 - BATCH);
  for (size_t i = 0; i < g->k + g->m; i++)
    (void)store->io->start_writing(store->files[i].fd, (off_t)from, (off_t)(to - from));
}

static weft_status code_stripe(weft_store *store, const weft_store_lane *lane, uint64_t stripe) {
  const weft_stripe where = weft_store_lane_stripe(lane);
  const weft_status status = weft_code_encode(store->code, &where, 1, NULL);
  if (status != WEFT_OK) {
    pthread_mutex_lock(&store->lock);
    (void)weft_store_told(store->report, status);
    pthread_mutex_unlock(&store->lock);
    return status;
  }
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++)
    WEFT_TRY(weft_store_write_chunk(store, lane, store->files[i].fd, i, stripe));
  write_back(store, stripe);
  return WEFT_OK;
}

static weft_status work(void *user, size_t lane_index, uint64_t stripe) {
  encoding *e = user;
  const weft_status status = code_stripe(e->store, &e->lanes[lane_index], stripe);
  if (status != WEFT_OK)
    atomic_store(&e->failed, status);
  return status;
}

// --- The folder

// Refuses a folder that holds shards; removes what an interrupted call left.
static weft_status clear_folder(weft_store *store) {
  char path[WEFT_STORE_PATH_BYTES];
  struct stat about;
  for (size_t i = 0; i < WEFT_STORE_MAX_SHARDS + 1; i++) {
    const bool journal = i == WEFT_STORE_MAX_SHARDS;
    WEFT_TRY(journal ? weft_store_journal_path(store->folder, false, path)
                     : weft_store_shard_path(store->folder, i, false, path));
    // A link counts, wherever it leads: the disk behind it may be absent.
    if (lstat(path, &about) == 0)
      return weft_store_fail(store->report, WEFT_E_STATE,
                             "%s exists: encode needs a folder without shards", path);
    if (errno != ENOENT)
      return weft_store_fail_io(store->report, path, errno);
  }
  for (size_t i = 0; i < WEFT_STORE_MAX_SHARDS; i++) {
    WEFT_TRY(weft_store_shard_path(store->folder, i, true, path));
    if (store->io->unlink(path) != 0 && errno != ENOENT)
      return weft_store_fail_io(store->report, path, errno);
  }
  return WEFT_OK;
}

// Syncs the folder's parent, without which its name may not last, even if another program has just
// created it. In that case we may lack access to the parent, and errors are ignored.
static weft_status sync_parent(weft_store *store, bool made) {
  char path[WEFT_STORE_PATH_BYTES];
  const int n = snprintf(path, sizeof path, "%s/..", store->folder);
  const int error =
      n < (int)sizeof path ? weft_store_sync_folder_at(store->io, path) : ENAMETOOLONG;
  const bool unreadable = error == EACCES; // as sync_output has it
  return error && made && !unreadable ? weft_store_fail_io(store->report, path, error) : WEFT_OK;
}

// Returns the shards' mode. Data shards contain the input: only those who may read it may read
// them. The owner may write them, so that shards of a read-only file can be mended.
static mode_t mode_for(const encoding *e) {
  struct stat about;
  const bool has_mode =
      fstat(e->input, &about) == 0 && (S_ISREG(about.st_mode) || S_ISBLK(about.st_mode));
  const gid_t group = weft_store_group(e->store->folder);
  return has_mode ? 0600 | (0666 & weft_store_mode_like(&about, group)) : 0666;
}

static weft_status create_shards(const encoding *e) {
  weft_store *store = e->store;
  const mode_t mode = mode_for(e);
  char path[WEFT_STORE_PATH_BYTES];
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++) {
    WEFT_TRY(weft_store_shard_path(store->folder, i, true, path));
    WEFT_TRY(weft_store_create(store->io, path, mode, store->report, &store->files[i].fd));
  }
  return WEFT_OK;
}

static weft_status commit(encoding *e) {
  weft_store *store = e->store;
  const size_t all = store->geometry.k + store->geometry.m;
  char from[WEFT_STORE_PATH_BYTES], to[WEFT_STORE_PATH_BYTES];
  store->header.length = e->length;
  for (size_t i = 0; i < all; i++) { // start all before waiting for the first
    WEFT_TRY(weft_store_write_header(store, store->files[i].fd, i));
    (void)store->io->start_writing(store->files[i].fd, 0, 0);
  }
  for (size_t i = 0; i < all; i++) {
    WEFT_TRY(weft_store_shard_path(store->folder, i, true, from));
    WEFT_TRY(weft_store_sync_file(store->io, store->files[i].fd, from, store->report));
  }
  WEFT_TRY(weft_store_sync_names(store));
  for (size_t i = 0; i < all; i++) {
    WEFT_TRY(weft_store_shard_path(store->folder, i, true, from));
    WEFT_TRY(weft_store_shard_path(store->folder, i, false, to));
    WEFT_TRY(weft_store_rename(store->io, from, to, store->report));
    e->committed = true;
  }
  return weft_store_sync_names(store);
}

// --- Shape

static const char *why_no_code(weft_status made) {
  switch (made) {
  case WEFT_E_ARGUMENT:
    return "it has no such setting (CRS: w and packet, both, as in cauchy_good:w=4:packet=512) or "
           "does not support these sizes (CRS: w = 2..8, k + m at most 2^w; raid6: m = 2)";
  case WEFT_E_SINGULAR:
    return "some k of these shards would not rebuild the others";
  case WEFT_E_UNSUPPORTED:
    return "whether any k of these shards rebuild the others cannot be determined in reasonable "
           "time";
  default:
    return weft_status_text(made);
  }
}

static weft_status shape_of(weft_store *store, const weft_store_shape *shape) {
  const weft_code_options options = {.name = shape->code, .k = shape->k, .m = shape->m};
  const weft_status made = weft_code_new(store->options.ctx, &options, &store->code);
  if (made != WEFT_OK)
    return weft_store_fail(store->report, made, "code %s with k = %zu, m = %zu: %s", shape->code,
                           shape->k, shape->m, why_no_code(made));
  const uint64_t unit = weft_code_unit_bytes(store->code), most = WEFT_STORE_MAX_CHUNK_BYTES;
  uint64_t chunk = shape->stripe_bytes ? shape->stripe_bytes : WEFT_STORE_DEFAULT_STRIPE_BYTES;
  chunk = chunk / shape->k + (chunk % shape->k != 0);
  const bool in_range = chunk <= most && unit <= most; // rounding up cannot overflow then
  if (!shape->stripe_bytes)                            // whole pages are faster for the kernels
    chunk = (chunk + 4095) / 4096 * 4096;
  chunk = (chunk + unit - 1) / unit * unit;
  if (!in_range || chunk > most)
    return weft_store_fail(store->report, WEFT_E_ARGUMENT,
                           "a stripe of that size has chunks of more than 1 GiB");
  weft_store_header *h = &store->header;
  *h = (weft_store_header){.k = (uint16_t)shape->k,
                           .m = (uint16_t)shape->m,
                           .keyed = store->options.key != NULL,
                           .chunk_bytes = (uint32_t)chunk,
                           .generation = 1};
  randombytes_buf(h->id, sizeof h->id);
  if (!h->keyed)
    randombytes_buf(h->key, sizeof h->key);
  snprintf(h->code, sizeof h->code, "%s", weft_code_name(store->code));
  weft_store_file_key(h, store->options.key, store->file_key);
  store->geometry = (weft_store_geometry){.k = shape->k,
                                          .m = shape->m,
                                          .unit_bytes = (size_t)unit,
                                          .stripes = UINT64_MAX, // not known yet
                                          .chunk_bytes = (size_t)chunk,
                                          .last_chunk_bytes = (size_t)chunk};
  return WEFT_OK;
}

weft_status weft_store_shape_chunk(const weft_store_options *options, const weft_store_shape *shape,
                                   weft_store_report *report, size_t *chunk_bytes) {
  weft_store *store;
  WEFT_TRY(weft_store_new(options, ".", report, &store));
  const weft_status status = shape_of(store, shape);
  *chunk_bytes = store->geometry.chunk_bytes;
  weft_store_close(store);
  return status;
}

static weft_status encode(encoding *e) {
  weft_store *store = e->store;
  const weft_store_geometry *g = &store->geometry;
  WEFT_TRY(
      weft_store_folder_open(store->io, store->folder, true, store->report, &store->folder_fd));
  WEFT_TRY(clear_folder(store));
  const size_t threads = weft_store_threads(store, UINT64_MAX);
  WEFT_TRY(weft_store_lanes_new(store, threads, &e->lanes));
  weft_status status = create_shards(e);
  weft_store_watch watch = {
      .store = store, .stripe_bytes = (uint64_t)g->k * g->chunk_bytes, .total = e->total};
  const weft_store_run run = {.threads = threads,
                              .end = UINT64_MAX,
                              .take = take,
                              .work = work,
                              .user = e,
                              .keep_on = weft_store_keep_on,
                              .watcher = &watch};
  if (status == WEFT_OK)
    status = weft_store_run_stripes(&run);
  if (status == WEFT_OK)
    status = commit(e);
  if (status != WEFT_OK && e->committed)
    (void)weft_store_holds(store->report, status, "the set of shards");
  weft_store_lanes_free(store, e->lanes);
  store->report->data_bytes = e->length;
  char path[WEFT_STORE_PATH_BYTES];
  for (size_t i = 0; status != WEFT_OK && !e->committed && i < g->k + g->m; i++)
    if (weft_store_shard_path(store->folder, i, true, path) == WEFT_OK)
      (void)store->io->unlink(path); // best effort: they do not count anyway
  return status;
}

weft_status weft_store_encode(const weft_store_options *options, const weft_store_shape *shape,
                              int input, uint64_t total, const char *folder,
                              weft_store_report *report) {
  encoding e = {.input = input, .total = total};
  WEFT_TRY(weft_store_new(options, folder, report, &e.store));
  bool made = false;
  weft_status status = shape_of(e.store, shape);
  if (status == WEFT_OK) {
    made = e.store->io->mkdir(folder, 0777) == 0;
    status = made || errno == EEXIST ? sync_parent(e.store, made)
                                     : weft_store_fail_io(report, folder, errno);
  }
  const bool begun = status == WEFT_OK;
  if (begun)
    status = encode(&e);
  // Only while holding the folder's lock: otherwise another call may be about to fill the folder.
  if (status != WEFT_OK && made && !e.committed && (!begun || e.store->folder_fd >= 0))
    (void)rmdir(folder);
  weft_store_close(e.store);
  return weft_store_told(report, status);
}
