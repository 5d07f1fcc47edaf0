// SPDX-License-Identifier: Apache-2.0
// The journal of a committed update whose chunks may not all have reached their shards: found,
// read, and carried out. Carrying it out is idempotent, so it may be interrupted any number of
// times.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "store/folder.h"

static weft_status bad_journal(weft_store *store, bool fresh, const char *what) {
  if (fresh)
    return weft_store_fail(store->report, WEFT_E_IO,
                           "%s/update.journal.new %s when read back: nothing was changed",
                           store->folder, what);
  return weft_store_fail(store->report, WEFT_E_DAMAGED,
                         "%s/update.journal %s: the update it holds may be half done. Without that "
                         "file the shards are used as they are",
                         store->folder, what);
}

static weft_status unread_journal(weft_store *store, bool fresh, int error) {
  char path[WEFT_STORE_PATH_BYTES];
  WEFT_TRY(weft_store_journal_path(store->folder, fresh, path));
  return weft_store_fail_io(store->report, path, error);
}

static weft_status read_head(weft_store *store, int fd, bool fresh, weft_store_journal *journal) {
  uint8_t head[WEFT_STORE_JOURNAL_BYTES];
  struct stat about;
  if (fstat(fd, &about) != 0)
    return bad_journal(store, fresh, "cannot be read");
  if (!S_ISREG(about.st_mode))
    return bad_journal(store, fresh, "is not a regular file");
  if (about.st_size < (off_t)sizeof head)
    return bad_journal(store, fresh, "is truncated");
  const int error = weft_store_read_at(store->io, fd, 0, head, sizeof head, NULL, 0, NULL);
  if (error == EIO)
    return bad_journal(store, fresh, "cannot be read");
  if (error)
    return unread_journal(store, fresh, error);
  const weft_status status = weft_store_journal_read(head, store->file_key, journal);
  if (status == WEFT_E_VERSION) // without it the shards may be half updated
    return weft_store_fail(store->report, status,
                           "%s/update.journal has a format version other than %d, which this weft "
                           "reads: complete the update with the weft that wrote it",
                           store->folder, WEFT_STORE_VERSION);
  if (status != WEFT_OK)
    return bad_journal(store, fresh, "is corrupt or belongs to other shards");
  const uint64_t size = (uint64_t)about.st_size;
  const uint64_t least = WEFT_STORE_RECORD_BYTES + WEFT_STORE_TRAILER_BYTES + 1;
  if (memcmp(journal->id, store->header.id, sizeof journal->id) != 0)
    return bad_journal(store, fresh, "belongs to other shards");
  if (journal->bytes != size || journal->records > size / least)
    return bad_journal(store, fresh, "is truncated");
  return WEFT_OK;
}

// Enlarges the list. It grows with the records actually read: the head's count is not trusted.
static weft_status make_room(weft_store *store, uint64_t *room) {
  const size_t bytes = sizeof *store->pending;
  void *memory;
  WEFT_TRY(
      weft_alloc(store->options.ctx, WEFT_MEM_HOST, (size_t)(2 * *room + 64) * bytes, &memory));
  if (*room)
    memcpy(memory, store->pending, (size_t)*room * bytes);
  weft_free(store->options.ctx, WEFT_MEM_HOST, store->pending);
  store->pending = memory;
  *room = 2 * *room + 64;
  return WEFT_OK;
}

static weft_status read_records(weft_store *store, int fd, bool fresh) {
  const weft_store_journal *journal = &store->journal;
  const weft_store_geometry *g = &store->geometry;
  uint64_t at = WEFT_STORE_JOURNAL_BYTES, room = 0;
  for (uint64_t i = 0; i < journal->records; i++) {
    if (i == room)
      WEFT_TRY(make_room(store, &room));
    weft_store_pending *pending = store->pending;
    uint8_t head[WEFT_STORE_RECORD_BYTES];
    weft_store_record record;
    const int error = weft_store_read_at(store->io, fd, at, head, sizeof head, NULL, 0, NULL);
    if (error && error != EIO)
      return unread_journal(store, fresh, error);
    if (error || weft_store_record_read(head, journal, store->file_key, &record) != WEFT_OK ||
        record.shard >= g->k + g->m || record.stripe >= g->stripes)
      return bad_journal(store, fresh, "is corrupt");
    pending[i] = (weft_store_pending){
        .stripe = record.stripe, .shard = record.shard, .at = at + WEFT_STORE_RECORD_BYTES};
    const weft_store_pending *before = &pending[i ? i - 1 : 0];
    if (i && (before->stripe > record.stripe ||
              (before->stripe == record.stripe && before->shard >= record.shard)))
      return bad_journal(store, fresh, "is out of order");
    at += WEFT_STORE_RECORD_BYTES + weft_store_chunk(g, record.stripe) + WEFT_STORE_TRAILER_BYTES;
  }
  return at == journal->bytes ? WEFT_OK : bad_journal(store, fresh, "is truncated");
}

weft_status weft_store_journal_load(weft_store *store, bool fresh) {
  char path[WEFT_STORE_PATH_BYTES];
  struct stat about;
  WEFT_TRY(weft_store_journal_path(store->folder, fresh, path));
  if (store->header.keyed && !store->authenticated) { // WEFT_STORE_LOOK without the key
    store->journal_unread = lstat(path, &about) == 0;
    return WEFT_OK;
  }
  const int fd = store->io->open(path, O_RDONLY | O_NONBLOCK, 0); // as for shards
  if (fd < 0)
    return errno == ENOENT && !fresh ? WEFT_OK : weft_store_fail_io(store->report, path, errno);
  weft_status status = read_head(store, fd, fresh, &store->journal);
  if (status == WEFT_OK)
    status = read_records(store, fd, fresh);
  store->journal_fd = fd;
  if (status != WEFT_OK)
    weft_store_journal_drop(store);
  return status;
}

void weft_store_journal_drop(weft_store *store) {
  if (store->journal_fd >= 0)
    store->io->close(store->journal_fd);
  store->journal_fd = -1;
  weft_free(store->options.ctx, WEFT_MEM_HOST, store->pending);
  store->pending = NULL;
}

const weft_store_pending *weft_store_journal_find(const weft_store *store, size_t shard,
                                                  uint64_t stripe) {
  if (store->journal_fd < 0)
    return NULL;
  size_t low = 0, high = (size_t)store->journal.records;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const weft_store_pending *p = &store->pending[middle];
    if (p->stripe == stripe && p->shard == shard)
      return p;
    if (p->stripe < stripe || (p->stripe == stripe && p->shard < shard))
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

typedef struct carrying {
  weft_store *store;
  bool patient;                      // a shard that takes no writes is an error, never left behind
  int failed[WEFT_STORE_MAX_SHARDS]; // errno of a shard that takes no writes
} carrying;

// Whether a shard still takes part.
static bool takes(const carrying *c, size_t shard) {
  return c->store->files[shard].fd >= 0 && !c->failed[shard];
}

// Gives up on a shard that takes no writes: it must not block writing to the others for ever. But
// only while more than k are left, since none has been checked and one more may be lost. Without
// its new header the shard is stale and not read, however much of the update it has. With it, all
// of its chunks had been synced before (below), so that a chunk spoilt by this torn write counts as
// lost.
static weft_status miss(carrying *c, size_t shard, int error) {
  weft_store *store = c->store;
  char path[WEFT_STORE_PATH_BYTES];
  size_t left = 0;
  c->failed[shard] = error;
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++)
    left += takes(c, i);
  if (!c->patient && left > store->geometry.k)
    return WEFT_OK;
  WEFT_TRY(weft_store_shard_path(store->folder, shard, store->files[shard].fresh, path));
  return c->patient ? weft_store_fail_io(store->report, path, error)
                    : weft_store_fail(store->report, WEFT_E_IO,
                                      "%s: %s; an update needs it, as too few others are there: "
                                      "make it writable, or move it away and repair",
                                      path, strerror(error));
}

// Copies a chunk as it is in the journal, even if it is corrupt or cannot be read: the old chunk
// would otherwise count as sound.
static weft_status copy_chunk(carrying *c, const weft_store_pending *p, uint8_t *buffer) {
  weft_store *store = c->store;
  const size_t bytes = weft_store_chunk(&store->geometry, p->stripe) + WEFT_STORE_TRAILER_BYTES;
  if (!takes(c, p->shard))
    return WEFT_OK;
  char path[WEFT_STORE_PATH_BYTES];
  WEFT_TRY(weft_store_journal_path(store->folder, false, path));
  int error = weft_store_read_at(store->io, store->journal_fd, p->at, buffer, bytes, NULL, 0, NULL);
  if (error == EIO) // a lost chunk, as readers see it
    memset(buffer, 0, bytes);
  else if (error)
    return weft_store_fail_io(store->report, path, error);
  const uint64_t at = weft_store_chunk_offset(&store->geometry, p->stripe);
  error = weft_store_write_at(store->io, store->files[p->shard].fd, at, buffer, bytes, NULL, 0);
  store->report->shard_bytes_written += bytes;
  return error ? miss(c, p->shard, error) : WEFT_OK;
}

static weft_status write_chunks(carrying *c, uint8_t *buffer) {
  weft_store *store = c->store;
  const size_t all = store->geometry.k + store->geometry.m;
  for (size_t i = 0; i < all; i++)
    if (takes(c, i) && store->files[i].read_only)
      WEFT_TRY(miss(c, i, store->files[i].read_only));
  for (uint64_t i = 0; i < store->journal.records; i++)
    WEFT_TRY(copy_chunk(c, &store->pending[i], buffer));
  // No header may refer to chunks that might not be on the disk.
  for (size_t i = 0; i < all; i++) {
    const int error = takes(c, i) ? weft_store_try_sync(store->io, store->files[i].fd) : 0;
    if (error)
      WEFT_TRY(miss(c, i, error));
  }
  return WEFT_OK;
}

// Writes the headers one by one, so that a power failure damages one at most.
static weft_status write_headers(carrying *c) {
  weft_store *store = c->store;
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++) {
    weft_store_file *file = &store->files[i];
    if (!takes(c, i))
      continue;
    // Even if it appears to be there: after a failed fsync the system shows data that the disk
    // lacks.
    int error = weft_store_try_header(store, file->fd, i);
    if (!error)
      error = weft_store_try_sync(store->io, file->fd);
    if (error)
      WEFT_TRY(miss(c, i, error));
    else
      file->header.generation = store->header.generation;
  }
  return WEFT_OK;
}

// Stops using the shards that took no writes.
static void leave_behind(const carrying *c) {
  weft_store *store = c->store;
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++) {
    weft_store_file *file = &store->files[i];
    if (!c->failed[i])
      continue;
    store->io->close(file->fd);
    *file = (weft_store_file){.fd = -1, .beside = -1, .under = -1};
    store->shards[i].state = WEFT_SHARD_STALE;
    snprintf(store->shards[i].text, sizeof store->shards[i].text,
             "shard-%03zu.weft: it could not be written and missed an update: %s", i,
             strerror(c->failed[i]));
  }
}

static weft_status carry_out(carrying *c, uint8_t *buffer) {
  weft_store *store = c->store;
  char path[WEFT_STORE_PATH_BYTES];
  WEFT_TRY(write_chunks(c, buffer));
  WEFT_TRY(write_headers(c));
  WEFT_TRY(weft_store_journal_path(store->folder, false, path));
  if (store->io->unlink(path) != 0)
    return weft_store_fail_io(store->report, path, errno);
  WEFT_TRY(weft_store_sync_names(store));
  leave_behind(c);
  return WEFT_OK;
}

weft_status weft_store_journal_fits(weft_store *store) {
  if (store->journal_fd < 0)
    return WEFT_OK;
  char text[64];
  snprintf(text, sizeof text, "has generation %" PRIu64 ", which the shards do not have",
           store->journal.generation);
  if (store->journal.generation != store->header.generation)
    return bad_journal(store, false, text);
  return store->journal.update == store->header.update
             ? WEFT_OK
             : bad_journal(store, false, "belongs to another update than the shards");
}

weft_status weft_store_journal_apply(weft_store *store, bool patient) {
  if (store->journal_fd < 0)
    return WEFT_OK;
  // Absent shards would become stale, and the old state would be lost with them.
  const size_t usable = weft_store_get_info(store).usable;
  size_t first;
  // As for one that takes no writes: it is left behind only if more than k are left.
  if (usable <= store->geometry.k && weft_store_withheld(store, &first))
    return weft_store_fail(store->report, WEFT_E_IO,
                           "%s/shard-%03zu.weft: %s; an update needs it, as too few others are "
                           "there: allow reading and writing it, or move it away and repair",
                           store->folder, first, strerror(store->shards[first].read_error));
  if (usable < store->geometry.k)
    return weft_store_fail(
        store->report, WEFT_E_DAMAGED,
        "%s/update.journal needs shards that are missing: %zu can be read, and %zu are needed",
        store->folder, usable, store->geometry.k);
  void *buffer;
  WEFT_TRY(weft_alloc(store->options.ctx, WEFT_MEM_HOST,
                      store->geometry.chunk_bytes + WEFT_STORE_TRAILER_BYTES, &buffer));
  carrying c = {.store = store, .patient = patient};
  const weft_status status = carry_out(&c, buffer);
  weft_free(store->options.ctx, WEFT_MEM_HOST, buffer);
  if (status == WEFT_OK)
    weft_store_journal_drop(store);
  return status;
}
