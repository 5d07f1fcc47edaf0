// SPDX-License-Identifier: Apache-2.0
// Shards made anew: written under .new, given their names at the end.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "store/mending.h"

static bool needs_remaking(const weft_store *store, size_t shard) {
  return store->shards[shard].state != WEFT_SHARD_GOOD || store->files[shard].read_only;
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

weft_status weft_store_create_fresh(weft_store_mending *m) {
  weft_store *store = m->store;
  char path[WEFT_STORE_PATH_BYTES];
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++) {
    if (!needs_remaking(store, i) || is_folder(store, i, false) || is_folder(store, i, true))
      continue;
    WEFT_TRY(keep_copies(store, i));
    WEFT_TRY(weft_store_shard_path(store->folder, i, true, path));
    m->spoilt[i] = weft_store_create_beside(store, path, &m->fresh[i]);
  }
  return WEFT_OK;
}

// Of a file that is in order but for what could not be written: under its own name, so that nothing
// else is in its way but what lies under its .new.
bool weft_store_create_late(weft_store_mending *m) {
  weft_store *store = m->store;
  char path[WEFT_STORE_PATH_BYTES];
  struct stat about;
  bool any = false;
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++) {
    const weft_store_file *file = &store->files[i];
    if (!store->shards[i].write_error || m->fresh[i] >= 0 || m->spoilt[i] || !file->placed ||
        file->fresh || weft_store_shard_path(store->folder, i, true, path) != WEFT_OK ||
        lstat(path, &about) == 0)
      continue;
    m->late[i] = weft_store_create_beside(store, path, &m->fresh[i]) == 0;
    any |= m->late[i];
  }
  return any;
}

static void drop_one(weft_store_mending *m, size_t shard) {
  char path[WEFT_STORE_PATH_BYTES];
  if (m->fresh[shard] < 0)
    return;
  m->store->io->close(m->fresh[shard]);
  m->fresh[shard] = -1;
  if (!m->committed && weft_store_shard_path(m->store->folder, shard, true, path) == WEFT_OK)
    (void)m->store->io->unlink(path); // best effort; the next writer takes it away
}

void weft_store_drop_fresh(weft_store_mending *m) {
  for (size_t i = 0; i < WEFT_STORE_MAX_SHARDS; i++)
    drop_one(m, i);
}

void weft_store_drop_late(weft_store_mending *m) {
  for (size_t i = 0; i < WEFT_STORE_MAX_SHARDS; i++)
    if (m->late[i])
      drop_one(m, i);
}

// Where stripes are lost, what is there may have chunks that somebody still needs: nothing is
// overwritten. Of what is left shards are made only where there are none, under names that are
// free.
void weft_store_keep_missing(weft_store_mending *m) {
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

void weft_store_keep_ages(weft_store_mending *m) {
  for (size_t i = 0; i < WEFT_STORE_MAX_SHARDS; i++)
    if (m->store->shards[i].state == WEFT_SHARD_GOOD)
      drop_one(m, i);
}

// --- Names

// A last chunk that was not rebuilt is a hole, as others are: what is cut short is not mended in
// place.
static int fill_end(const weft_store_mending *m, size_t shard) {
  const weft_store *store = m->store;
  const uint64_t bytes = weft_store_shard_bytes(&store->geometry);
  const uint8_t zero = 0;
  struct stat about;
  if (fstat(m->fresh[shard], &about) != 0)
    return errno;
  return (uint64_t)about.st_size >= bytes
             ? 0
             : weft_store_write_at(store->io, m->fresh[shard], bytes - 1, &zero, 1, NULL, 0);
}

// A header makes a file count (rule 4 of docs/format.md): first what it speaks of. One that cannot
// be had on the disk is not made; the others are.
static void finish_files(weft_store_mending *m) {
  weft_store *store = m->store;
  for (int headers = 0; headers < 2; headers++)
    for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++) {
      if (m->fresh[i] < 0)
        continue;
      int error = m->spoilt[i];
      if (!error)
        error = headers ? weft_store_try_header(store, m->fresh[i], i) : fill_end(m, i);
      if (!error)
        error = weft_store_try_sync(store->io, m->fresh[i]);
      m->spoilt[i] = error;
      if (error)
        drop_one(m, i);
    }
}

// Whether the file that has the final name of a slot is the only copy of another shard, as that one
// could not be made anew.
static bool name_needed(const weft_store_mending *m, size_t slot) {
  const weft_store *store = m->store;
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++)
    if (i != slot && store->files[i].fd >= 0 && store->files[i].under == (int)slot &&
        m->fresh[i] < 0)
      return true;
  return false;
}

static void keep_only_copies(weft_store_mending *m) {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < WEFT_STORE_MAX_SHARDS; i++)
      if (m->fresh[i] >= 0 && name_needed(m, i)) {
        drop_one(m, i);
        changed = true;
      }
  }
}

// Into the set in the place of the old one.
static void adopt(weft_store_mending *m, size_t shard) {
  weft_store *store = m->store;
  if (store->files[shard].fd >= 0)
    store->io->close(store->files[shard].fd);
  store->files[shard] = (weft_store_file){.fd = m->fresh[shard],
                                          .placed = true,
                                          .beside = -1,
                                          .under = (int)shard,
                                          .header = store->header,
                                          .bytes = weft_store_shard_bytes(&store->geometry)};
  store->files[shard].header.shard = (uint16_t)shard;
  m->fresh[shard] = -1;
}

static weft_status rename_one(weft_store_mending *m, size_t shard) {
  weft_store *store = m->store;
  char from[WEFT_STORE_PATH_BYTES], to[WEFT_STORE_PATH_BYTES];
  WEFT_TRY(weft_store_shard_path(store->folder, shard, true, from));
  WEFT_TRY(weft_store_shard_path(store->folder, shard, false, to));
  WEFT_TRY(weft_store_rename(store->io, from, to, store->report));
  m->committed = true;
  store->files[shard].fresh = false;
  store->files[shard].beside = -1;
  store->files[shard].under = (int)shard;
  if (m->fresh[shard] < 0)
    return WEFT_OK;
  store->shards[shard].mended = true;
  store->shards[shard].rewritten_chunks = 0;
  store->report->mended_shards++;
  store->report->mended_chunks += m->rebuilt[shard];
  return WEFT_OK;
}

weft_status weft_store_commit_fresh(weft_store_mending *m) {
  weft_store *store = m->store;
  const size_t all = store->geometry.k + store->geometry.m;
  finish_files(m);
  keep_only_copies(m);
  // Each name may be another shard's only copy: all copies are on the disk before the first goes.
  WEFT_TRY(weft_store_sync_names(store));
  for (size_t i = 0; i < all; i++)
    if (m->fresh[i] >= 0 || (store->files[i].fresh && !m->partly && !name_needed(m, i)))
      WEFT_TRY(rename_one(m, i));
  WEFT_TRY(weft_store_sync_names(store));
  for (size_t i = 0; i < all; i++)
    if (m->fresh[i] >= 0)
      adopt(m, i);
  return WEFT_OK;
}
