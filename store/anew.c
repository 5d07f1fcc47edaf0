// SPDX-License-Identifier: Apache-2.0
// Rebuilt shards: written under .new, renamed at the end.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "store/mending.h"

// A file that the system withholds may be intact, and is not replaced.
static bool needs_remaking(const weft_store *store, size_t shard) {
  return !store->shards[shard].read_error &&
         (store->shards[shard].state != WEFT_SHARD_GOOD || store->files[shard].read_only);
}

// Fails if the shard's .new file is in use: it may be another shard's only copy.
static weft_status keep_copies(const weft_store *store, size_t shard) {
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++)
    if (store->files[i].fd >= 0 && store->files[i].beside == (int)shard)
      return weft_store_fail(store->report, WEFT_E_DAMAGED,
                             "%s/shard-%03zu.weft.new holds shard %zu, but another shard has its "
                             "name: rename it to a free name with a higher number",
                             store->folder, shard, i);
  return WEFT_OK;
}

// Whether a folder has the shard's name. A rebuilt shard could not take that name, and would block
// all writers while it waited for it; nor can it be created in place of a folder.
static bool is_folder(weft_store *store, size_t shard, bool fresh) {
  char path[WEFT_STORE_PATH_BYTES];
  struct stat about;
  if (weft_store_shard_path(store->folder, shard, fresh, path) != WEFT_OK ||
      lstat(path, &about) != 0 || !S_ISDIR(about.st_mode))
    return false;
  snprintf(store->shards[shard].text, sizeof store->shards[shard].text,
           "shard-%03zu.weft%s: it is a folder: repair can rebuild the shard once it is moved away",
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

// Only for files whose sole defect is that they take no writes: under their own names, and with
// nothing at their .new names.
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
    (void)m->store->io->unlink(path); // best effort; the next writer removes it
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

// If stripes are lost, existing files may hold chunks that are still needed: nothing is
// overwritten. Shards are rebuilt, from what is left, only where there are none, under free names.
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

// Extends a shard to its full size. A last chunk that was not rebuilt becomes a hole, like others:
// a truncated file is not mended in place.
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

// Completes the files: contents first, since a header makes a file count (rule 4 of
// docs/format.md). A shard that cannot be synced to the disk is dropped; the others go on.
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

// Whether the file with the final name of a slot is the only copy of another shard, because that
// shard could not be rebuilt.
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

// Puts the new shard into the set in place of the old one.
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

static bool is_link(const char *path) { // wherever it leads: its disk may be away
  struct stat about;
  return lstat(path, &about) == 0 && S_ISLNK(about.st_mode);
}

static weft_status rename_one(weft_store_mending *m, size_t shard) {
  weft_store *store = m->store;
  char from[WEFT_STORE_PATH_BYTES], to[WEFT_STORE_PATH_BYTES];
  WEFT_TRY(weft_store_shard_path(store->folder, shard, true, from));
  WEFT_TRY(weft_store_shard_path(store->folder, shard, false, to));
  const bool was_link = is_link(to);
  WEFT_TRY(weft_store_rename(store->io, from, to, store->report));
  store->shards[shard].was_link = was_link;
  m->committed = true;
  store->files[shard].fresh = false;
  store->files[shard].beside = -1;
  store->files[shard].under = (int)shard;
  if (store->shards[shard].state == WEFT_SHARD_GOOD)
    store->shards[shard].text[0] = 0; // that it waited for its name
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
  // A file about to be replaced may be another shard's only copy: all new copies are on the disk
  // before the first rename.
  WEFT_TRY(weft_store_sync_names(store));
  for (size_t i = 0; i < all; i++)
    if (m->fresh[i] >= 0 ||
        (store->files[i].fresh && !m->partly && !name_needed(m, i) && !store->shards[i].read_error))
      WEFT_TRY(rename_one(m, i));
  WEFT_TRY(weft_store_sync_names(store));
  for (size_t i = 0; i < all; i++)
    if (m->fresh[i] >= 0)
      adopt(m, i);
  return WEFT_OK;
}
