// SPDX-License-Identifier: Apache-2.0
// Restores the file, or a part of it, from shards.
#define _XOPEN_SOURCE 700 // realpath
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "store/folder.h"

typedef struct reading {
  weft_store *store;
  weft_store_lane *lanes;
  uint64_t offset, end; // of the data
  int output;
  const char *name; // of the output
  bool pipe;
  uint64_t given; // bytes written to the pipe
} reading;

// Returns the requested bytes of a stripe: [*from, *to) of its data.
static void part_of(const reading *r, uint64_t stripe, size_t *from, size_t *to) {
  const uint64_t start = weft_store_data_offset(&r->store->geometry, stripe);
  const uint64_t bytes = weft_store_data_bytes(&r->store->geometry, stripe);
  *from = (size_t)(r->offset > start ? r->offset - start : 0);
  *to = (size_t)(r->end - start < bytes ? r->end - start : bytes);
}

static weft_status write_failed(const reading *r, int error) {
  pthread_mutex_lock(&r->store->lock);
  const weft_status status = weft_store_fail_io(r->store->report, r->name, error);
  pthread_mutex_unlock(&r->store->lock);
  return status;
}

static weft_status too_much_lost(weft_store *store, const weft_store_lane *lane, uint64_t stripe) {
  size_t good = 0;
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++)
    good += lane->state[i] == WEFT_CHUNK_GOOD;
  size_t first = 0, more = 0; // withheld shards whose chunk is not good, as under another name
  const size_t withheld = weft_store_withheld(store, &first);
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++)
    more += store->shards[i].read_error && lane->state[i] != WEFT_CHUNK_GOOD;
  const bool damaged = good + more < store->geometry.k; // otherwise they may suffice
  char others[128] = "";
  if (withheld)
    snprintf(others, sizeof others, "; %zu cannot be read (shard-%03zu.weft: %.64s)", withheld,
             first, strerror(store->shards[first].read_error));
  pthread_mutex_lock(&store->lock);
  if (damaged)
    weft_store_lose(store->report, stripe, stripe);
  const weft_status status = weft_store_fail(
      store->report, damaged ? WEFT_E_DAMAGED : WEFT_E_IO,
      "stripe %" PRIu64 ": %zu of its %zu chunks are intact, and %zu are needed%s", stripe, good,
      store->geometry.k + store->geometry.m, store->geometry.k, others);
  pthread_mutex_unlock(&store->lock);
  return status;
}

static weft_status contradicts(weft_store *store, uint64_t stripe) {
  pthread_mutex_lock(&store->lock);
  weft_store_lose(store->report, stripe, stripe);
  (void)weft_store_fail(store->report, WEFT_E_DAMAGED,
                        "stripe %" PRIu64 ": some of its chunks are lost, and parity does not "
                        "match the data, so that they cannot be rebuilt",
                        stripe);
  pthread_mutex_unlock(&store->lock);
  return WEFT_E_DAMAGED;
}

// Rebuilds the wanted chunks that are not sound. A disk may have kept outdated parity, which would
// restore the data from before an update: if parity is older than other chunks, all chunks of the
// stripe are read and checked.
static weft_status rebuild(weft_store *store, weft_store_lane *lane, uint64_t stripe,
                           const uint8_t *wanted, size_t count) {
  bool sound = true, well = true;
  for (size_t i = 0; i < count; i++)
    sound = sound && lane->state[wanted[i]] == WEFT_CHUNK_GOOD;
  if (sound)
    return WEFT_OK;
  weft_status status = weft_store_rebuild(store, lane, stripe, wanted, count);
  if (status == WEFT_OK && !weft_store_parity_newest(store, lane, stripe))
    status = weft_store_check_stripe(store, lane, stripe, &well);
  if (status == WEFT_E_DAMAGED)
    return too_much_lost(store, lane, stripe);
  return status == WEFT_OK && !well ? contradicts(store, stripe) : status;
}

static weft_status work(void *user, size_t lane_index, uint64_t stripe) {
  reading *r = user;
  weft_store *store = r->store;
  weft_store_lane *lane = &r->lanes[lane_index];
  uint8_t wanted[WEFT_STORE_MAX_SHARDS];
  size_t count = 0, from, to;
  part_of(r, stripe, &from, &to);
  weft_store_lane_start(store, lane, stripe);
  for (size_t i = from / lane->chunk; i * lane->chunk < to; i++) {
    WEFT_TRY(weft_store_load(store, lane, i, stripe));
    wanted[count++] = (uint8_t)i;
  }
  WEFT_TRY(rebuild(store, lane, stripe, wanted, count));
  weft_store_count(store, &store->report->data_bytes, to - from);
  if (r->pipe)
    return WEFT_OK;
  const uint64_t at = weft_store_data_offset(&store->geometry, stripe) + from - r->offset;
  const int error =
      weft_store_write_at(store->io, r->output, at, lane->base + from, to - from, NULL, 0);
  return error ? write_failed(r, error) : WEFT_OK;
}

static bool keep_on(void *user) {
  const reading *r = user;
  return weft_store_ask(r->store, r->given, r->end - r->offset);
}

static weft_status give(void *user, size_t lane_index, uint64_t stripe) {
  reading *r = user;
  size_t from, to;
  part_of(r, stripe, &from, &to);
  const weft_store_patience patience = {.keep_on = keep_on, .user = r};
  const int error = weft_store_write_next(r->store->io, r->output, r->lanes[lane_index].base + from,
                                          to - from, &patience);
  r->given += to - from;
  return error ? write_failed(r, error) : WEFT_OK;
}

// Without stripes k headers are what proves the set, as for mend: a stray shard of an empty file
// must not replace the output.
static weft_status prove_empty(weft_store *store) {
  size_t first = 0, more = 0; // withheld, and not found under another name
  const size_t usable = weft_store_get_info(store).usable, k = store->geometry.k;
  if (store->geometry.stripes || usable >= k)
    return WEFT_OK;
  (void)weft_store_withheld(store, &first);
  for (size_t i = 0; i < k + store->geometry.m; i++)
    more += store->shards[i].read_error && store->files[i].fd < 0;
  if (usable + more < k)
    return weft_store_fail(store->report, WEFT_E_DAMAGED, "fewer than %zu shards can be read", k);
  return weft_store_fail(store->report, WEFT_E_IO,
                         "%s/shard-%03zu.weft: %s: it is needed: allow reading it", store->folder,
                         first, strerror(store->shards[first].read_error));
}

static weft_status read_to(weft_store *store, uint64_t offset, uint64_t length, int output,
                           const char *name, bool pipe) {
  const uint64_t all = store->geometry.length;
  if (offset > all || (length != UINT64_MAX && length > all - offset))
    return weft_store_fail(store->report, WEFT_E_ARGUMENT,
                           "the range goes past the end of the data, which has %" PRIu64 " bytes",
                           all);
  if (length == UINT64_MAX)
    length = all - offset;
  if (length == 0)
    return prove_empty(store);
  const uint64_t stripe = (uint64_t)store->geometry.k * store->geometry.chunk_bytes;
  const uint64_t first = offset / stripe, end = (offset + length - 1) / stripe + 1;
  const size_t threads = weft_store_threads(store, end - first);
  reading r = {.store = store,
               .offset = offset,
               .end = offset + length,
               .output = output,
               .name = name,
               .pipe = pipe};
  WEFT_TRY(weft_store_lanes_new(store, threads, &r.lanes));
  const int own = pipe ? weft_store_own_pipe(store->io, output) : -1;
  if (own >= 0)
    r.output = own;
  weft_store_watch watch = {.store = store, .stripe_bytes = stripe, .total = length};
  const weft_store_run run = {.threads = threads,
                              .first = first,
                              .end = end,
                              .work = work,
                              .give = pipe ? give : NULL,
                              .user = &r,
                              .keep_on = weft_store_keep_on,
                              .watcher = &watch};
  const weft_status status = weft_store_run_stripes(&run);
  if (own >= 0)
    store->io->close(own);
  weft_store_lanes_free(store, r.lanes);
  return status;
}

weft_status weft_store_read(weft_store *store, uint64_t offset, uint64_t length, int output,
                            bool pipe) {
  WEFT_TRY(weft_store_begin(store));
  return weft_store_told(store->report, read_to(store, offset, length, output, "the output", pipe));
}

// --- To a file

// Makes an unused name in the folder of `path`.
static weft_status scratch_name(weft_store *store, const char *path, char *out) {
  uint8_t draw[6];
  char hex[2 * sizeof draw + 1];
  randombytes_buf(draw, sizeof draw);
  sodium_bin2hex(hex, sizeof hex, draw, sizeof draw);
  // A name may have 255 bytes: it is truncated to fit.
  const char *slash = strrchr(path, '/');
  const size_t folder = slash ? (size_t)(slash - path) + 1 : 0, name = strlen(path) - folder;
  const size_t most = 255 - strlen("..weft-part") - strlen(hex);
  const int n = snprintf(out, WEFT_STORE_PATH_BYTES, "%.*s.%s.weft-part",
                         (int)(folder + (name < most ? name : most)), path, hex);
  return n < WEFT_STORE_PATH_BYTES ? WEFT_OK
                                   : weft_store_fail_io(store->report, path, ENAMETOOLONG);
}

static weft_status folder_of(weft_store_report *report, const char *path, char *out) {
  const char *slash = strrchr(path, '/');
  const size_t bytes = slash ? (size_t)(slash - path) + 1 : 0;
  if (bytes >= WEFT_STORE_PATH_BYTES)
    return weft_store_fail_io(report, path, ENAMETOOLONG);
  snprintf(out, WEFT_STORE_PATH_BYTES, "%.*s", (int)(bytes ? bytes : 1), bytes ? path : ".");
  return WEFT_OK;
}

static weft_status sync_output(weft_store *store, const char *folder) {
  const int error = weft_store_sync_folder_at(store->io, folder);
  if (error == EACCES) // a folder we may write but not read: the output is there, and complete
    return WEFT_OK;
  return error ? weft_store_fail_io(store->report, folder, error) : WEFT_OK;
}

// Checks that the output fits before the device's first byte is overwritten. Invalid ranges are
// refused later.
static weft_status fits_device(const weft_store *store, uint64_t offset, uint64_t length, int fd,
                               const char *path) {
  const uint64_t all = store->geometry.length, rest = offset < all ? all - offset : 0;
  const off_t room = lseek(fd, 0, SEEK_END);
  return room >= 0 && (uint64_t)room < (length < rest ? length : rest)
             ? weft_store_fail_io(store->report, path, ENOSPC)
             : WEFT_OK;
}

static weft_status decode_in_place(weft_store *store, uint64_t offset, uint64_t length,
                                   const char *path, bool pipe) {
  // With O_EXCL Linux does not open a device that is mounted, or used by another driver.
  const int fd = store->io->open(path, pipe ? O_WRONLY : O_WRONLY | O_EXCL, 0);
  if (fd < 0)
    return weft_store_fail_io(store->report, path, errno);
  weft_status status = pipe ? WEFT_OK : fits_device(store, offset, length, fd, path);
  if (status == WEFT_OK)
    status = read_to(store, offset, length, fd, path, pipe);
  if (status == WEFT_OK && !pipe)
    status = weft_store_sync_file(store->io, fd, path, store->report);
  store->io->close(fd);
  return status;
}

// Gives a file the owner, group and mode of the one that it replaces, as far as the system allows.
static void take_after(int fd, const struct stat *old) {
  struct stat about;
  if (fchown(fd, old->st_uid, old->st_gid) != 0)
    (void)!fchown(fd, (uid_t)-1, old->st_gid);
  if (fstat(fd, &about) == 0) // until here only the owner could open it
    (void)fchmod(fd, weft_store_mode_like(old, about.st_gid));
}

// Writes a new file that replaces the one at `path`, described by `old` (NULL: there is none). It
// is readable only by those who could read the old one or, without it, the shards.
static weft_status decode_anew(weft_store *store, uint64_t offset, uint64_t length,
                               const char *path, const struct stat *old) {
  const weft_store_io *io = store->io;
  char scratch[WEFT_STORE_PATH_BYTES], folder[WEFT_STORE_PATH_BYTES];
  WEFT_TRY(scratch_name(store, path, scratch));
  WEFT_TRY(folder_of(store->report, path, folder));
  const mode_t mode = old ? 0600 : 0600 | weft_store_mode(store, folder);
  const int fd = io->open(scratch, O_WRONLY | O_CREAT | O_EXCL, mode);
  if (fd < 0)
    return weft_store_fail_io(store->report, path, errno);
  if (old)
    take_after(fd, old);
  weft_status status = read_to(store, offset, length, fd, path, false);
  if (status == WEFT_OK)
    status = weft_store_sync_file(io, fd, scratch, store->report);
  io->close(fd);
  if (status == WEFT_OK)
    status = weft_store_rename(io, scratch, path, store->report);
  if (status == WEFT_OK)
    return sync_output(store, folder);
  (void)io->unlink(scratch);
  return status;
}

static bool same_file(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

// Whether the file is one of the set's, under this name or another.
static bool is_of_set(const weft_store *store, const struct stat *file) {
  char path[WEFT_STORE_PATH_BYTES];
  struct stat its;
  for (size_t i = 0; i < 2 * (WEFT_STORE_MAX_SHARDS + 1); i++) {
    const weft_status fits = i / 2 < WEFT_STORE_MAX_SHARDS
                                 ? weft_store_shard_path(store->folder, i / 2, i % 2, path)
                                 : weft_store_journal_path(store->folder, i % 2, path);
    if (fits == WEFT_OK && stat(path, &its) == 0 && same_file(&its, file))
      return true;
  }
  return false;
}

// Whether a file of that name would be taken for one of the set's.
static bool is_name_of_set(const weft_store *store, const char *path) {
  char folder[WEFT_STORE_PATH_BYTES];
  struct stat its, ours;
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  return (strncmp(name, "shard-", 6) == 0 || strncmp(name, "update.journal", 14) == 0) &&
         folder_of(store->report, path, folder) == WEFT_OK && stat(folder, &its) == 0 &&
         fstat(store->folder_fd, &ours) == 0 && same_file(&its, &ours);
}

static weft_status decode(weft_store *store, uint64_t offset, uint64_t length, const char *path) {
  char target[PATH_MAX];
  struct stat about;
  WEFT_TRY(weft_store_begin(store));
  const bool link = lstat(path, &about) == 0 && S_ISLNK(about.st_mode);
  const bool there = stat(path, &about) == 0;
  if (there && S_ISDIR(about.st_mode))
    return weft_store_fail_io(store->report, path, EISDIR);
  if (there && !S_ISREG(about.st_mode))
    return decode_in_place(store, offset, length, path, !S_ISBLK(about.st_mode));
  if (there && is_of_set(store, &about))
    return weft_store_fail(store->report, WEFT_E_ARGUMENT,
                           "%s: %s holds a shard of it, or its journal", store->folder, path);
  if (link && !realpath(path, target)) // the link's target is replaced, not the link
    return weft_store_fail_io(store->report, path, errno);
  if (is_name_of_set(store, link ? target : path))
    return weft_store_fail(store->report, WEFT_E_ARGUMENT,
                           "%s: a file named %s would be taken for a part of it", store->folder,
                           path);
  return decode_anew(store, offset, length, link ? target : path, there ? &about : NULL);
}

weft_status weft_store_decode(weft_store *store, uint64_t offset, uint64_t length,
                              const char *path) {
  return weft_store_told(store->report, decode(store, offset, length, path));
}
