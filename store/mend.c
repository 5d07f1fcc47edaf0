// SPDX-License-Identifier: Apache-2.0
// Reads and checks everything: tags of all chunks, and whether parity belongs to the data. Defects
// are reported, rewritten in place, or the shard is rebuilt.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/mending.h"

// Writes a chunk to a shard being rebuilt; after an error that shard is given up.
static void write_fresh(weft_store_mending *m, const weft_store_lane *lane, size_t shard,
                        uint64_t stripe) {
  weft_store *store = m->store;
  pthread_mutex_lock(&store->lock);
  const bool spoilt = m->spoilt[shard];
  pthread_mutex_unlock(&store->lock);
  if (spoilt)
    return;
  const int error = weft_store_try_chunk(store, lane, m->fresh[shard], shard, stripe);
  pthread_mutex_lock(&store->lock);
  m->spoilt[shard] = error ? error : m->spoilt[shard];
  m->rebuilt[shard] += lane->state[shard] == WEFT_CHUNK_BAD && store->files[shard].fd >= 0;
  pthread_mutex_unlock(&store->lock);
}

// Rewrites a chunk. If that fails it stays lost, or becomes lost by a torn write; the others are
// written all the same.
static void write_in_place(weft_store_mending *m, const weft_store_lane *lane, size_t shard,
                           uint64_t stripe) {
  weft_store *store = m->store;
  const int error = weft_store_try_chunk(store, lane, store->files[shard].fd, shard, stripe);
  pthread_mutex_lock(&store->lock);
  store->report->mended_chunks += !error;
  store->shards[shard].rewritten_chunks += !error;
  if (error)
    store->shards[shard].write_error = error;
  pthread_mutex_unlock(&store->lock);
}

// Writes a stripe's chunks back. In an inconsistent stripe no rebuilt chunk is sealed as good.
static void write_back(weft_store_mending *m, const weft_store_lane *lane, uint64_t stripe,
                       bool rebuilt) {
  const weft_store *store = m->store;
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++) {
    const weft_store_file *file = &store->files[i];
    if (!rebuilt && lane->state[i] != WEFT_CHUNK_GOOD)
      continue;
    if (m->second && !m->late[i])
      continue;
    if (m->fresh[i] >= 0)
      write_fresh(m, lane, i, stripe);
    else if (m->care != WEFT_STORE_VERIFY && lane->state[i] == WEFT_CHUNK_BAD && file->fd >= 0 &&
             file->placed && !file->read_only)
      write_in_place(m, lane, i, stripe);
  }
}

static weft_status work(void *user, size_t lane_index, uint64_t stripe) {
  weft_store_mending *m = user;
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
  write_back(m, lane, stripe, well);
  return WEFT_OK;
}

// --- Outcome

// After a failed sync the system may still show data that the disk lacks. Clears the trailers of
// the chunks that this call rewrote, recognised by its nonce, so that they count as lost again.
// Best effort: nothing more can be done about a disk that takes no writes.
static void take_back(weft_store *store, size_t shard) {
  const weft_store_geometry *g = &store->geometry;
  const int fd = store->files[shard].fd;
  const uint8_t none[WEFT_STORE_TRAILER_BYTES] = {0};
  uint8_t trailer[WEFT_STORE_TRAILER_BYTES];
  uint64_t *const written = &store->shards[shard].rewritten_chunks, found = 0;
  for (uint64_t stripe = 0; stripe < g->stripes && found < *written; stripe++) {
    const uint64_t at = weft_store_chunk_offset(g, stripe) + weft_store_chunk(g, stripe);
    if (weft_store_read_at(store->io, fd, at, trailer, sizeof trailer, NULL, 0, NULL) != 0 ||
        weft_store_chunk_nonce(trailer) != store->nonce)
      continue;
    found++;
    (void)weft_store_write_at(store->io, fd, at, none, sizeof none, NULL, 0);
  }
  store->report->mended_chunks -= *written;
  *written = 0;
}

// Syncs all shards, including what a scrub wrote that was killed before it synced, since that reads
// as sound. Continues after a failure: a later call could not tell what this one wrote.
static void sync_shards(weft_store_mending *m) {
  weft_store *store = m->store;
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++) {
    weft_store_shard *s = &store->shards[i];
    if (store->files[i].fd < 0)
      continue;
    const int error = weft_store_try_sync(store->io, store->files[i].fd);
    if (error) {
      take_back(store, i);
      m->unsynced[i] = true;
      s->write_error = error;
    }
    s->mended |= s->rewritten_chunks && s->rewritten_chunks == s->corrupt_chunks && !s->write_error;
  }
}

static const char *scrub_advice(const weft_store_shard *shard) {
  return shard->write_error == EROFS ? ": repair rebuilds it, if the folder itself takes new files"
                                     : ": repair rebuilds it";
}

// Fails if a shard's file, or its replacement, took no writes. A failed sync is reported even if
// the shard was rebuilt: the state of everything else on that disk is unknown.
static weft_status refused(const weft_store_mending *m) {
  const weft_store *store = m->store;
  size_t count = 0, first = 0;
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++) {
    const weft_store_shard *s = &store->shards[i];
    if (!m->spoilt[i] && !m->unsynced[i] && (!s->write_error || s->mended))
      continue;
    first = count++ ? first : i;
  }
  if (!count)
    return WEFT_OK;
  const bool fresh = m->spoilt[first];
  const int error = fresh ? m->spoilt[first] : store->shards[first].write_error;
  char others[64] = "";
  if (count > 1)
    snprintf(others, sizeof others, " (and %zu other shard%s)", count - 1, count > 2 ? "s" : "");
  return weft_store_fail(store->report, WEFT_E_IO, "%s/shard-%03zu.weft%s: %s%s%s%s", store->folder,
                         first, fresh ? ".new" : "", strerror(error), others,
                         weft_store_advice(error),
                         m->care == WEFT_STORE_SCRUB   ? scrub_advice(&store->shards[first])
                         : store->shards[first].mended ? "; it was rebuilt"
                                                       : "");
}

// Fails if the system withholds shards. Only a person can tell whether they are intact.
static weft_status withheld(const weft_store_mending *m) {
  const weft_store *store = m->store;
  size_t first = 0;
  const size_t count = weft_store_withheld(store, &first);
  char others[64] = "";
  if (count > 1)
    snprintf(others, sizeof others, " (and %zu other shard%s)", count - 1, count > 2 ? "s" : "");
  const bool enough =
      !store->report->lost_stripes && weft_store_get_info(store).usable >= store->geometry.k;
  if (!count || (m->care == WEFT_STORE_VERIFY && enough))
    return WEFT_OK;
  return weft_store_fail(store->report, WEFT_E_IO, "%s/shard-%03zu.weft: %s%s: %s", store->folder,
                         first, strerror(store->shards[first].read_error), others,
                         enough ? "it was left as it is: allow reading and writing it, or move it "
                                  "away to have it rebuilt"
                                : "it is needed: allow reading it");
}

static weft_status verdict(const weft_store_mending *m) {
  const weft_store *store = m->store;
  weft_store_report *report = store->report;
  size_t ill = 0, unsure = 0; // unsure: repair may have to leave them, or refuse to work
  WEFT_TRY(refused(m));
  WEFT_TRY(withheld(m));
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++) {
    const weft_store_shard *s = &store->shards[i];
    ill += (s->state != WEFT_SHARD_GOOD || s->corrupt_chunks) && !s->mended;
    unsure += s->state == WEFT_SHARD_UNREADABLE || s->state == WEFT_SHARD_VERSION;
  }
  if (report->lost_stripes)
    return weft_store_fail(report, WEFT_E_DAMAGED,
                           "stripes lost: %llu, the first is stripe %llu: fewer than %zu of its "
                           "chunks are intact%s",
                           (unsigned long long)report->lost_stripes,
                           (unsigned long long)report->lost[0].first, store->geometry.k,
                           report->mended_shards ? "; rebuilt shards lack them too" : "");
  if (report->inconsistent_stripes)
    return weft_store_fail(
        report, WEFT_E_DAMAGED,
        "%llu stripes have parity that does not match their data, the first is stripe %llu",
        (unsigned long long)report->inconsistent_stripes,
        (unsigned long long)report->first_inconsistent);
  if (ill)
    return weft_store_fail(
        report, WEFT_E_DAMAGED,
        "%zu of %zu shards %s damaged, missing or unreadable; the file is whole%s", ill,
        store->geometry.k + store->geometry.m, ill == 1 ? "is" : "are",
        m->care == WEFT_STORE_REPAIR || unsure ? "" : ", and repair fixes that");
  // Until it is carried out, all depends on the journal, of which there is one.
  return store->journal_fd < 0
             ? WEFT_OK
             : weft_store_fail(report, WEFT_E_DAMAGED,
                               "the file is whole, but an update is pending: not all shards have "
                               "it, and losing update.journal would lose bytes");
}

// Returns how many stripes to look at. Later ones are lost, as fewer than k files are that long: a
// header can claim more stripes than could ever be read.
static uint64_t reach(const weft_store *store) {
  const weft_store_geometry *g = &store->geometry;
  const uint64_t sealed = g->chunk_bytes + WEFT_STORE_TRAILER_BYTES;
  uint64_t least = 0;
  if (store->journal_fd >= 0) // the journal holds chunks too
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

static weft_status run(weft_store_mending *m) {
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

// Resets the findings of earlier calls, since everything is checked again.
static void forget_findings(weft_store *store) {
  weft_store_report *report = store->report;
  for (size_t i = 0; i < WEFT_STORE_MAX_SHARDS; i++) {
    weft_store_shard *shard = &store->shards[i];
    if (shard->mended)
      *shard = (weft_store_shard){.state = WEFT_SHARD_GOOD};
    shard->corrupt_chunks = shard->unread_chunks = shard->rewritten_chunks = 0;
    shard->write_error = 0;
  }
  report->corrupt_chunks = report->lost_stripes = report->inconsistent_stripes = 0;
  report->lost_count = 0;
  report->lost_more = false;
}

static void note_read_only(weft_store *store) {
  for (size_t i = 0; i < WEFT_STORE_MAX_SHARDS; i++)
    if (store->files[i].fd >= 0)
      store->shards[i].write_error = store->files[i].read_only;
}

// Rebuilds shards whose files turned out to take no writes. All stripes are read again for that;
// the report keeps the findings of the first pass.
static weft_status run_again(weft_store_mending *m) {
  weft_store *store = m->store;
  weft_store_report *report = store->report;
  struct {
    uint64_t corrupt, unread, first;
  } found[WEFT_STORE_MAX_SHARDS];
  if (!weft_store_create_late(m))
    return WEFT_OK;
  const weft_store_report before = *report;
  for (size_t i = 0; i < WEFT_STORE_MAX_SHARDS; i++) {
    found[i].corrupt = store->shards[i].corrupt_chunks;
    found[i].unread = store->shards[i].unread_chunks;
    found[i].first = store->shards[i].first_corrupt;
  }
  report->lost_stripes = report->lost_count = 0;
  m->second = true;
  const weft_status status = run(m);
  if (report->lost_stripes) // of this pass: there were none before
    weft_store_drop_late(m);
  for (size_t i = 0; i < WEFT_STORE_MAX_SHARDS; i++) {
    store->shards[i].corrupt_chunks = found[i].corrupt;
    store->shards[i].unread_chunks = found[i].unread;
    store->shards[i].first_corrupt = found[i].first;
  }
  report->data_bytes = before.data_bytes;
  report->corrupt_chunks = before.corrupt_chunks;
  report->inconsistent_stripes = before.inconsistent_stripes;
  report->first_inconsistent = before.first_inconsistent;
  report->lost_stripes = report->lost_count = 0;
  report->lost_more = false;
  return status;
}

static weft_status give_names(weft_store_mending *m) {
  weft_store *store = m->store;
  weft_status status = WEFT_OK;
  if (store->report->lost_stripes)
    weft_store_keep_missing(m);
  else if (store->report->inconsistent_stripes)
    weft_store_keep_ages(m);
  else
    status = run_again(m);
  if (status == WEFT_OK)
    status = weft_store_commit_fresh(m);
  store->ended = status != WEFT_OK && m->committed;
  if (store->ended)
    (void)weft_store_holds(store->report, status, "the rebuilt data");
  return status;
}

weft_status weft_store_mend(weft_store *store, weft_store_care care) {
  weft_store_mending m = {.store = store, .care = care};
  for (size_t i = 0; i < WEFT_STORE_MAX_SHARDS; i++)
    m.fresh[i] = -1;
  WEFT_TRY(weft_store_begin(store));
  forget_findings(store);
  if (care != WEFT_STORE_VERIFY)
    note_read_only(store);
  // Without stripes there is nothing to decode: k headers are what proves the set.
  if (store->geometry.stripes == 0 && weft_store_get_info(store).usable < store->geometry.k) {
    WEFT_TRY(withheld(&m));
    return weft_store_fail(store->report, WEFT_E_DAMAGED, "fewer than %zu shards can be read",
                           store->geometry.k);
  }
  weft_status status = care == WEFT_STORE_REPAIR ? weft_store_create_fresh(&m) : WEFT_OK;
  if (status == WEFT_OK)
    status = run(&m);
  if (care != WEFT_STORE_VERIFY) // even if the call was stopped
    sync_shards(&m);
  if (status == WEFT_OK && care == WEFT_STORE_REPAIR)
    status = give_names(&m);
  weft_store_drop_fresh(&m);
  return weft_store_told(store->report, status == WEFT_OK ? verdict(&m) : status);
}
