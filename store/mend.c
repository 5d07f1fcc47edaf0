// SPDX-License-Identifier: Apache-2.0
// Everything read and checked: tags of all chunks, and that parity belongs to the data. What is
// wrong is told, rewritten where it lies, or made anew.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "store/folder.h"

typedef struct mending {
  weft_store *store;
  weft_store_lane *lanes;
  weft_store_care care;
  int fresh[WEFT_STORE_MAX_SHARDS];        // the shard made anew; -1: none
  uint64_t touched[WEFT_STORE_MAX_SHARDS]; // chunks rewritten in place
  bool partly;    // stripes are lost: only shards that are missing are made anew
  bool committed; // a name was given: what is still under .new may be a shard's only copy
} mending;

// Of a stripe that contradicts itself nothing that was rebuilt is sealed as good.
static weft_status write_back(mending *m, weft_store_lane *lane, uint64_t stripe, bool rebuilt) {
  weft_store *store = m->store;
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++) {
    const weft_store_file *file = &store->files[i];
    if (!rebuilt && lane->state[i] != WEFT_CHUNK_GOOD)
      continue;
    if (m->fresh[i] >= 0) {
      WEFT_TRY(weft_store_write_chunk(store, lane, m->fresh[i], i, stripe));
    } else if (m->care != WEFT_STORE_VERIFY && lane->state[i] == WEFT_CHUNK_BAD && file->fd >= 0 &&
               file->placed) {
      WEFT_TRY(weft_store_write_chunk(store, lane, file->fd, i, stripe));
      pthread_mutex_lock(&store->lock);
      store->report->mended_chunks++;
      m->touched[i]++;
      pthread_mutex_unlock(&store->lock);
    }
  }
  return WEFT_OK;
}

static weft_status work(void *user, size_t lane_index, uint64_t stripe) {
  mending *m = user;
  weft_store *store = m->store;
  weft_store_lane *lane = &m->lanes[lane_index];
  bool well;
  weft_store_lane_start(store, lane, stripe);
  const weft_status status = weft_store_check_stripe(store, lane, stripe, &well);
  weft_store_count(store, &store->report->data_bytes, lane->bytes);
  if (status == WEFT_E_DAMAGED) {
    pthread_mutex_lock(&store->lock);
    weft_store_lose(store->report, stripe, stripe);
    pthread_mutex_unlock(&store->lock);
    return WEFT_OK; // the other stripes may still be mended
  }
  WEFT_TRY(status);
  return write_back(m, lane, stripe, well);
}

// --- Shards made anew

static bool needs_remaking(const weft_store *store, size_t shard) {
  return store->shards[shard].state != WEFT_SHARD_GOOD;
}

// Whether what lies under the shard's .new is read from, and may be a shard's only copy.
static weft_status keep_copies(const weft_store *store, size_t shard) {
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++)
    if (store->files[i].fd >= 0 && store->files[i].beside == (int)shard)
      return weft_store_fail(store->report, WEFT_E_DAMAGED,
                             "%s/shard-%03zu.weft.new holds shard %zu, whose own name another has: "
                             "give it a free one of a higher number",
                             store->folder, shard, i);
  return WEFT_OK;
}

// What is made cannot take a folder's name, and would block all that write while it waits for that;
// nor is it made in the place of one.
static bool is_folder(weft_store *store, size_t shard, bool fresh) {
  char path[WEFT_STORE_PATH_BYTES];
  struct stat about;
  if (weft_store_shard_path(store->folder, shard, fresh, path) != WEFT_OK ||
      lstat(path, &about) != 0 || !S_ISDIR(about.st_mode))
    return false;
  snprintf(store->shards[shard].text, sizeof store->shards[shard].text,
           "shard-%03zu.weft%s: it is a folder: repair makes the shard once that is moved away",
           shard, fresh ? ".new" : "");
  return true;
}

static weft_status create_fresh(mending *m) {
  weft_store *store = m->store;
  const mode_t mode = weft_store_mode(store, store->folder);
  char path[WEFT_STORE_PATH_BYTES];
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++) {
    if (!needs_remaking(store, i) || is_folder(store, i, false) || is_folder(store, i, true))
      continue;
    WEFT_TRY(keep_copies(store, i));
    WEFT_TRY(weft_store_shard_path(store->folder, i, true, path));
    WEFT_TRY(weft_store_create(store->io, path, mode, store->report, &m->fresh[i]));
  }
  return WEFT_OK;
}

// A last chunk that was not rebuilt is a hole, as others are: what is cut short is not mended in
// place.
static weft_status fill_end(const mending *m, size_t shard, const char *path) {
  const weft_store *store = m->store;
  const uint64_t bytes = weft_store_shard_bytes(&store->geometry);
  const uint8_t zero = 0;
  struct stat about;
  if (fstat(m->fresh[shard], &about) != 0)
    return weft_store_fail_io(store->report, path, errno);
  if ((uint64_t)about.st_size >= bytes)
    return WEFT_OK;
  const int error = weft_store_write_at(store->io, m->fresh[shard], bytes - 1, &zero, 1, NULL, 0);
  return error ? weft_store_fail_io(store->report, path, error) : WEFT_OK;
}

static weft_status commit_fresh(mending *m) {
  weft_store *store = m->store;
  const size_t all = store->geometry.k + store->geometry.m;
  char from[WEFT_STORE_PATH_BYTES], to[WEFT_STORE_PATH_BYTES];
  // A header makes a file count (rule 4 of docs/format.md): first what it speaks of.
  for (int headers = 0; headers < 2; headers++)
    for (size_t i = 0; i < all; i++)
      if (m->fresh[i] >= 0) {
        WEFT_TRY(weft_store_shard_path(store->folder, i, true, from));
        WEFT_TRY(headers ? weft_store_write_header(store, m->fresh[i], i) : fill_end(m, i, from));
        WEFT_TRY(weft_store_sync_file(store->io, m->fresh[i], from, store->report));
      }
  // Each name may be another shard's only copy: all copies are on the disk before the first goes.
  WEFT_TRY(weft_store_sync_names(store));
  for (size_t i = 0; i < all; i++)
    if (m->fresh[i] >= 0 || (store->files[i].fresh && !m->partly)) {
      WEFT_TRY(weft_store_shard_path(store->folder, i, true, from));
      WEFT_TRY(weft_store_shard_path(store->folder, i, false, to));
      WEFT_TRY(weft_store_rename(store->io, from, to, store->report));
      m->committed = true;
      store->files[i].fresh = false;
      store->files[i].beside = -1;
      store->shards[i].mended |= m->fresh[i] >= 0;
      store->report->mended_shards += m->fresh[i] >= 0;
    }
  return weft_store_sync_names(store);
}

// The new shards go into the set in the place of the old ones.
static void adopt_fresh(mending *m) {
  weft_store *store = m->store;
  for (size_t i = 0; i < WEFT_STORE_MAX_SHARDS; i++) {
    if (m->fresh[i] < 0)
      continue;
    if (store->files[i].fd >= 0)
      store->io->close(store->files[i].fd);
    store->files[i] = (weft_store_file){.fd = m->fresh[i],
                                        .placed = true,
                                        .beside = -1,
                                        .header = store->header,
                                        .bytes = weft_store_shard_bytes(&store->geometry)};
    store->files[i].header.shard = (uint16_t)i;
    m->fresh[i] = -1;
  }
}

static void drop_one(mending *m, size_t shard) {
  char path[WEFT_STORE_PATH_BYTES];
  if (m->fresh[shard] < 0)
    return;
  m->store->io->close(m->fresh[shard]);
  m->fresh[shard] = -1;
  if (!m->committed && weft_store_shard_path(m->store->folder, shard, true, path) == WEFT_OK)
    (void)m->store->io->unlink(path); // best effort; the next writer takes it away
}

static void drop_fresh(mending *m) {
  for (size_t i = 0; i < WEFT_STORE_MAX_SHARDS; i++)
    drop_one(m, i);
}

// Where stripes are lost, what is there may have chunks that somebody still needs: nothing is
// overwritten. Of what is left shards are made only where there are none, under names that are
// free.
static void keep_missing(mending *m) {
  const weft_store *store = m->store;
  char path[WEFT_STORE_PATH_BYTES];
  struct stat about;
  m->partly = true;
  const bool enough = weft_store_get_info(store).usable >= store->geometry.k;
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++)
    if (!enough || store->shards[i].state != WEFT_SHARD_MISSING ||
        weft_store_shard_path(store->folder, i, false, path) != WEFT_OK ||
        lstat(path, &about) == 0 || errno != ENOENT)
      drop_one(m, i);
}

// --- Outcome

// After a sync that failed the system may still show what the disk lacks. So the chunks that this
// call rewrote, and has in its nonce, lose their trailers, that whoever comes next takes them for
// lost again. Best effort: there is nothing to do about a disk that takes no more.
static void take_back(mending *m, size_t shard) {
  weft_store *store = m->store;
  const weft_store_geometry *g = &store->geometry;
  const int fd = store->files[shard].fd;
  const uint8_t none[WEFT_STORE_TRAILER_BYTES] = {0};
  uint8_t trailer[WEFT_STORE_TRAILER_BYTES];
  uint64_t found = 0;
  for (uint64_t stripe = 0; stripe < g->stripes && found < m->touched[shard]; stripe++) {
    const uint64_t at = weft_store_chunk_offset(g, stripe) + weft_store_chunk(g, stripe);
    if (weft_store_read_at(store->io, fd, at, trailer, sizeof trailer, NULL, 0, NULL) != 0 ||
        weft_store_chunk_nonce(trailer) != store->nonce)
      continue;
    found++;
    (void)weft_store_write_at(store->io, fd, at, none, sizeof none, NULL, 0);
  }
  store->report->mended_chunks -= m->touched[shard];
}

// Also what a scrub wrote that was killed before it synced: it reads as sound. All of them, though
// one fails: who comes next could not tell what this call wrote.
static weft_status sync_shards(mending *m) {
  weft_store *store = m->store;
  weft_status first = WEFT_OK;
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++) {
    if (store->files[i].fd < 0)
      continue;
    const weft_status status = weft_store_sync_shard(store, i);
    if (status == WEFT_OK)
      store->shards[i].mended |= m->touched[i] > 0;
    else if (m->touched[i])
      take_back(m, i);
    first = first == WEFT_OK ? status : first;
  }
  return first;
}

static weft_status verdict(const mending *m) {
  const weft_store *store = m->store;
  weft_store_report *report = store->report;
  size_t ill = 0;
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++) {
    const weft_store_shard *s = &store->shards[i];
    ill += (s->state != WEFT_SHARD_GOOD || s->corrupt_chunks) && !s->mended;
  }
  if (report->lost_stripes)
    return weft_store_fail(report, WEFT_E_DAMAGED,
                           "stripes lost: %llu, the first is stripe %llu: fewer than %zu of its "
                           "chunks are sound%s",
                           (unsigned long long)report->lost_stripes,
                           (unsigned long long)report->lost[0].first, store->geometry.k,
                           report->mended_shards ? "; shards made anew lack them too" : "");
  if (report->inconsistent_stripes)
    return weft_store_fail(report, WEFT_E_DAMAGED,
                           "%llu stripes have parity that does not belong to their data, the first "
                           "is stripe %llu",
                           (unsigned long long)report->inconsistent_stripes,
                           (unsigned long long)report->first_inconsistent);
  return ill ? weft_store_fail(report, WEFT_E_DAMAGED,
                               "%zu of %zu shards are damaged or unreadable", ill,
                               store->geometry.k + store->geometry.m)
             : WEFT_OK;
}

// The stripes from there on are lost, as fewer than k files are that long: a header can speak of
// more stripes than anybody could look at.
static uint64_t reach(const weft_store *store) {
  const weft_store_geometry *g = &store->geometry;
  const uint64_t sealed = g->chunk_bytes + WEFT_STORE_TRAILER_BYTES;
  uint64_t least = 0;
  if (store->journal_fd >= 0) // which holds chunks too
    return g->stripes;
  for (size_t i = 0; i < g->k + g->m; i++) {
    size_t as_long = 0;
    for (size_t j = 0; j < g->k + g->m; j++)
      as_long += store->files[j].fd >= 0 && store->files[j].bytes >= store->files[i].bytes;
    const uint64_t bytes = store->files[i].bytes;
    if (as_long >= g->k && bytes > WEFT_STORE_HEADER_BYTES && bytes > least)
      least = bytes;
  }
  const uint64_t count = least ? (least - WEFT_STORE_HEADER_BYTES + sealed - 1) / sealed : 0;
  return count < g->stripes ? count : g->stripes;
}

static weft_status run(mending *m) {
  weft_store *store = m->store;
  const weft_store_geometry *g = &store->geometry;
  const uint64_t end = reach(store);
  const size_t threads = weft_store_threads(store, end);
  WEFT_TRY(weft_store_lanes_new(store, threads, &m->lanes));
  weft_store_watch watch = {
      .store = store, .stripe_bytes = (uint64_t)g->k * g->chunk_bytes, .total = g->length};
  const weft_store_run stripes = {.threads = threads,
                                  .end = end,
                                  .work = work,
                                  .user = m,
                                  .keep_on = weft_store_keep_on,
                                  .watcher = &watch};
  const weft_status status = weft_store_run_stripes(&stripes);
  weft_store_lanes_free(store, m->lanes);
  if (status == WEFT_OK && end < g->stripes)
    weft_store_lose(store->report, end, g->stripes - 1);
  return status;
}

// Everything is looked at again: what calls before found, and mended, is not this one's verdict.
static void forget_findings(weft_store *store) {
  weft_store_report *report = store->report;
  for (size_t i = 0; i < WEFT_STORE_MAX_SHARDS; i++) {
    weft_store_shard *shard = &store->shards[i];
    if (shard->mended)
      *shard = (weft_store_shard){.state = WEFT_SHARD_GOOD};
    shard->corrupt_chunks = 0;
  }
  report->corrupt_chunks = report->lost_stripes = report->inconsistent_stripes = 0;
  report->lost_count = 0;
  report->lost_more = false;
}

weft_status weft_store_mend(weft_store *store, weft_store_care care) {
  mending m = {.store = store, .care = care};
  for (size_t i = 0; i < WEFT_STORE_MAX_SHARDS; i++)
    m.fresh[i] = -1;
  WEFT_TRY(weft_store_begin(store));
  forget_findings(store);
  // Without stripes there is nothing to decode: k headers are what proves the set.
  if (store->geometry.stripes == 0 && weft_store_get_info(store).usable < store->geometry.k)
    return weft_store_fail(store->report, WEFT_E_DAMAGED, "fewer than %zu shards can be read",
                           store->geometry.k);
  weft_status status = care == WEFT_STORE_REPAIR ? create_fresh(&m) : WEFT_OK;
  if (status == WEFT_OK)
    status = run(&m);
  if (care != WEFT_STORE_VERIFY) { // of a call that was stopped, too
    const weft_status synced = sync_shards(&m);
    status = status == WEFT_OK ? synced : status;
  }
  if (status == WEFT_OK && care == WEFT_STORE_REPAIR) {
    if (store->report->lost_stripes)
      keep_missing(&m);
    status = commit_fresh(&m);
    if (status == WEFT_OK)
      adopt_fresh(&m);
    store->ended = status != WEFT_OK && m.committed;
    if (store->ended)
      (void)weft_store_holds(store->report, status, "what was made anew");
  }
  drop_fresh(&m);
  return status == WEFT_OK ? verdict(&m) : status;
}
