// SPDX-License-Identifier: Apache-2.0
// Opens a set: looks at every file under a shard's name, uses those that belong to the set
// (choose.c), and reports what is wrong with the others. A writer finishes interrupted calls.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "store/folder.h"
#include "store/search.h"

static bool made_under_key(const weft_store *store, const weft_store_found *f) {
  uint8_t file_key[WEFT_STORE_KEY_BYTES];
  weft_store_file_key(&f->header, store->options.key, file_key);
  return weft_store_header_authentic(f->bytes, file_key);
}

// Whether the system refuses a file for a reason that says nothing about its contents: it may be
// an intact shard, and the refusal may end.
static bool withheld(int error) {
  switch (error) {
  case EACCES:
  case EPERM:
#ifdef ENOKEY
  case ENOKEY: // encrypted, and locked
#endif
  case EAGAIN: // another program has a lease on it
  case EBUSY:
  case ETXTBSY:
  case ENOMEM:
  case ESTALE: // these: a network disk is away
  case ETIMEDOUT:
  case ENOTCONN:
  case ECONNREFUSED:
  case ECONNRESET:
  case ECONNABORTED:
  case EHOSTDOWN:
  case EHOSTUNREACH:
  case ENETDOWN:
  case ENETUNREACH:
    return true;
  default:
    return false;
  }
}

// Opens the file under a shard's name; its error is set if the system refuses, or if it is none
// that could hold a shard. Returns 0, or an errno that concerns more than this file.
static int open_file(const weft_store_io *io, const char *path, bool write, weft_store_found *f) {
  struct stat about;
  // O_NONBLOCK: a pipe under that name is no shard, and must not block.
  f->fd = io->open(path, (write ? O_RDWR : O_RDONLY) | O_NONBLOCK, 0);
  // A single disk that takes no writes must not keep the others from being mended.
  if (f->fd < 0 && write && (errno == EACCES || errno == EPERM || errno == EROFS)) {
    f->read_only = errno;
    f->fd = io->open(path, O_RDONLY | O_NONBLOCK, 0);
  }
  f->error = f->fd < 0 ? errno : 0;
  if (f->error == EMFILE || f->error == ENFILE)
    return f->error;
  if (f->error == ENOENT) // most names of the 256, and without a second call for each
    return 0;
  if (f->error == EACCES && lstat(path, &about) != 0 && errno == EACCES)
    return EACCES; // it is the folder that may not be searched
  if (f->fd < 0 ? stat(path, &about) != 0 : fstat(f->fd, &about) != 0) {
    f->error = f->error ? f->error : errno;
    return 0;
  }
  f->size = (uint64_t)about.st_size;
  f->why = S_ISFIFO(about.st_mode)   ? "it is a pipe"
           : S_ISSOCK(about.st_mode) ? "it is a socket"
                                     : NULL;
  if (f->why && !f->error)
    f->error = ESPIPE;
  return 0;
}

static weft_status look_at(weft_store_search *s, size_t slot, bool fresh) {
  weft_store *store = s->store;
  const weft_store_io *io = store->io;
  char path[WEFT_STORE_PATH_BYTES];
  WEFT_TRY(weft_store_shard_path(store->folder, slot, fresh, path));
  weft_store_found *f = &s->files[s->count];
  *f = (weft_store_found){.slot = slot, .fresh = fresh};
  const int error = open_file(io, path, s->access == WEFT_STORE_WRITE, f);
  if (error)
    return weft_store_fail_io(store->report, error == EACCES ? store->folder : path, error);
  if (f->error == ENOENT)
    return WEFT_OK;
  s->count++;
  if (f->error)
    return WEFT_OK;
  size_t got;
  f->error = weft_store_read_at(io, f->fd, 0, f->bytes, sizeof f->bytes, NULL, 0, &got);
  if (f->error)
    return WEFT_OK;
  f->why = "it ends within its header";
  f->status = WEFT_E_MALFORMED;
  if (got == sizeof f->bytes)
    f->status = weft_store_header_read(f->bytes, &f->header, &f->why);
  f->sound = f->status == WEFT_OK;
  f->proven = f->sound && f->header.keyed && store->options.key && made_under_key(store, f);
  return WEFT_OK;
}

static void tell(weft_store *store, size_t slot, bool fresh, weft_shard_state state,
                 const char *what) {
  weft_store_shard *shard = &store->shards[slot];
  shard->state = state;
  snprintf(shard->text, sizeof shard->text, "shard-%03zu.weft%s: %s", slot, fresh ? ".new" : "",
           what);
}

// Uses a file as the source of the shard named in its header, if that has none yet.
static void use(weft_store *store, weft_store_found *f) {
  const size_t shard = f->header.shard;
  weft_store_file *file = &store->files[shard];
  if (file->fd >= 0)
    return;
  const uint64_t expected = weft_store_shard_bytes(&store->geometry);
  char text[128];
  *file = (weft_store_file){.fd = f->fd,
                            .fresh = f->fresh && shard == f->slot,
                            .beside = f->fresh ? (int)f->slot : -1,
                            .under = f->fresh ? -1 : (int)f->slot,
                            .read_only = f->read_only,
                            .header = f->header,
                            .bytes = f->size};
  f->fd = -1;
  file->placed = shard == f->slot && f->size == expected;
  if (shard != f->slot) {
    snprintf(text, sizeof text, "shard %zu has the name shard-%03zu.weft%s", shard, f->slot,
             f->fresh ? ".new" : "");
    tell(store, shard, false, WEFT_SHARD_MISPLACED, text);
  } else if (f->size != expected) {
    snprintf(text, sizeof text, "it has %llu bytes instead of %llu", (unsigned long long)f->size,
             (unsigned long long)expected);
    tell(store, shard, f->fresh, f->size < expected ? WEFT_SHARD_TRUNCATED : WEFT_SHARD_OVERLONG,
         text);
  } else {
    store->shards[shard] = (weft_store_shard){.state = WEFT_SHARD_GOOD};
    if (f->fresh)
      tell(store, shard, true, WEFT_SHARD_GOOD,
           "it is good, and the next scrub, repair or update gives it its name");
  }
}

// Adds to what is told about shards what only their names show: files that the system withholds,
// and links that lead nowhere, as to a disk that is away.
static void look_at_names(weft_store_search *s) {
  weft_store *store = s->store;
  char path[WEFT_STORE_PATH_BYTES];
  struct stat about;
  for (size_t i = 0; i < s->count; i++)
    if (!s->files[i].fresh && withheld(s->files[i].error))
      store->shards[s->files[i].slot].read_error = s->files[i].error;
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++)
    if (store->shards[i].state == WEFT_SHARD_MISSING &&
        weft_store_shard_path(store->folder, i, false, path) == WEFT_OK &&
        lstat(path, &about) == 0 && S_ISLNK(about.st_mode) && stat(path, &about) != 0)
      tell(store, i, false, WEFT_SHARD_MISSING, "it is missing: its link leads nowhere");
}

// Chooses the shards' sources: files with final names first, then .new ones, then files under a
// wrong name.
static void fill_slots(weft_store_search *s) {
  weft_store *store = s->store;
  const size_t all = store->geometry.k + store->geometry.m;
  char text[256];
  for (size_t i = 0; i < all; i++)
    tell(store, i, false, WEFT_SHARD_MISSING, "it is missing");
  for (size_t pass = 0; pass < 3; pass++)
    for (size_t i = 0; i < s->count; i++) {
      weft_store_found *f = &s->files[i];
      if (pass < 2 && f->fresh != (pass == 1))
        continue;
      const weft_shard_state state = weft_store_why_not(store, f, text, sizeof text);
      const bool own_name = f->sound && f->header.shard == f->slot;
      if (state == WEFT_SHARD_GOOD && f->fd >= 0 && own_name == (pass < 2))
        use(store, f);
      else if (state != WEFT_SHARD_GOOD && pass == 0 && f->slot < all)
        tell(store, f->slot, false, state, text);
      else if (state == WEFT_SHARD_GOOD && pass == 0 && f->slot < all) {
        snprintf(text, sizeof text, "it holds shard %u, and shard %zu is missing", f->header.shard,
                 f->slot);
        tell(store, f->slot, false, WEFT_SHARD_MISSING, text); // a later pass may find it
      }
    }
}

static weft_status make_code(weft_store *store) {
  const weft_code_options options = {
      .name = store->header.code, .k = store->header.k, .m = store->header.m};
  const weft_status made = weft_code_new(store->options.ctx, &options, &store->code);
  if (made == WEFT_E_ARGUMENT || made == WEFT_E_SINGULAR || made == WEFT_E_UNSUPPORTED)
    return weft_store_fail(store->report, WEFT_E_DAMAGED,
                           "%s: the headers name an unknown code: %s with k = %zu, m = %zu",
                           store->folder, options.name, options.k, options.m);
  if (made != WEFT_OK)
    return weft_store_fail(store->report, made, "%s: code %s (%zu, %zu): %s", store->folder,
                           options.name, options.k, options.m, weft_status_text(made));
  const weft_status fits =
      weft_store_geometry_of(&store->header, weft_code_unit_bytes(store->code), &store->geometry);
  return fits == WEFT_OK ? fits
                         : weft_store_fail(store->report, WEFT_E_DAMAGED,
                                           "%s: the headers contradict themselves", store->folder);
}

static bool taken(const weft_store_found *f) { return f->fd < 0 && !f->error; } // by use()

// Whether the file under the final name of a slot is in use: it then holds another shard, and may
// have no other name.
static bool name_taken(const weft_store_search *s, size_t slot) {
  for (size_t i = 0; i < s->count; i++)
    if (s->files[i].slot == slot && !s->files[i].fresh && taken(&s->files[i]))
      return true;
  return false;
}

// Gives a shard its final name. Also for one under another shard's .new, where that shard's rebuilt
// copy would replace it.
static weft_status give_name(weft_store *store, const weft_store_found *f, const char *from) {
  const size_t shard = f->header.shard;
  weft_store_file *file = &store->files[shard];
  char to[WEFT_STORE_PATH_BYTES];
  WEFT_TRY(weft_store_shard_path(store->folder, shard, false, to));
  WEFT_TRY(weft_store_rename(store->io, from, to, store->report));
  file->fresh = false;
  file->beside = -1;
  file->under = (int)shard;
  file->placed = file->bytes == weft_store_shard_bytes(&store->geometry);
  if (file->placed)
    store->shards[shard] = (weft_store_shard){.state = WEFT_SHARD_GOOD};
  return WEFT_OK;
}

// Syncs the files in use that an interrupted call left: it may have been killed before syncing
// them, and nothing that builds on them may reach the disk first.
static weft_status sync_leftovers(weft_store_search *s) {
  weft_store *store = s->store;
  char path[WEFT_STORE_PATH_BYTES];
  for (size_t i = 0; i < s->count; i++) {
    const weft_store_found *f = &s->files[i];
    if (!f->fresh || !taken(f))
      continue;
    WEFT_TRY(weft_store_shard_path(store->folder, f->slot, true, path));
    WEFT_TRY(
        weft_store_sync_file(store->io, store->files[f->header.shard].fd, path, store->report));
  }
  return weft_store_sync_names(store);
}

// Fails if repair would overwrite an unread file that may be the only copy of its shard, or a
// better one than the file that is read.
static weft_status keep_unread(const weft_store *store, const weft_store_found *f,
                               const char *path) {
  const bool has_room = f->slot < store->geometry.k + store->geometry.m;
  const weft_store_file *file = &store->files[f->slot];
  if (!has_room || (file->fd >= 0 && (file->placed || !withheld(f->error))))
    return WEFT_OK;
  return weft_store_fail(store->report, WEFT_E_IO,
                         "%s: %s; an interrupted call may have left the only copy of shard %zu "
                         "there: remove it if it can never be read",
                         path, strerror(f->error), f->slot);
}

// Gives shards left by an interrupted call their final names, if they count, and removes the files
// that do not.
static weft_status finish_names(weft_store_search *s) {
  weft_store *store = s->store;
  const weft_store_io *io = store->io;
  char from[WEFT_STORE_PATH_BYTES];
  bool changed = false;
  WEFT_TRY(sync_leftovers(s)); // all of them, as a replaced file may be another shard's only copy
  for (size_t i = 0; i < s->count; i++) {
    const weft_store_found *f = &s->files[i];
    if (!f->fresh)
      continue;
    WEFT_TRY(weft_store_shard_path(store->folder, f->slot, true, from));
    // Names held by misplaced shards are left to repair; those of withheld files, to a person.
    if (taken(f) && (name_taken(s, f->header.shard) || store->shards[f->header.shard].read_error))
      continue;
    if (taken(f)) {
      WEFT_TRY(give_name(store, f, from));
    } else if (f->error == EIO || withheld(f->error)) { // it may be readable another time
      WEFT_TRY(keep_unread(store, f, from));
      continue;
    } else if (f->fd >= 0 && io->unlink(from) != 0) {
      return weft_store_fail_io(store->report, from, errno);
    }
    changed = true;
  }
  WEFT_TRY(weft_store_journal_path(store->folder, true, from));
  if (io->unlink(from) == 0)
    changed = true;
  return changed ? weft_store_sync_names(store) : WEFT_OK;
}

static weft_status open_set(weft_store_search *s) {
  weft_store *store = s->store;
  WEFT_TRY(weft_store_folder_open(store->io, store->folder, s->access == WEFT_STORE_WRITE,
                                  store->report, &store->folder_fd));
  for (size_t slot = 0; slot < WEFT_STORE_MAX_SHARDS; slot++) {
    WEFT_TRY(look_at(s, slot, false));
    WEFT_TRY(look_at(s, slot, true));
  }
  WEFT_TRY(weft_store_choose_set(s));
  if (s->access == WEFT_STORE_WRITE)
    WEFT_TRY(weft_store_refuse_later(s));
  WEFT_TRY(weft_store_check_key(s));
  WEFT_TRY(make_code(store));
  WEFT_TRY(weft_store_journal_load(store, false));
  WEFT_TRY(weft_store_choose_age(s));
  WEFT_TRY(weft_store_journal_fits(store));
  fill_slots(s);
  look_at_names(s);
  if (s->access != WEFT_STORE_WRITE)
    return WEFT_OK;
  WEFT_TRY(finish_names(s));
  return weft_store_journal_apply(store, false);
}

weft_status weft_store_open(const weft_store_options *options, const char *folder,
                            weft_store_access access, weft_store_report *report, weft_store **out) {
  *out = NULL;
  weft_store *store;
  WEFT_TRY(weft_store_new(options, folder, report, &store));
  weft_store_search s = {.store = store, .access = access};
  void *memory;
  weft_status status =
      weft_store_new_memory(options->ctx, 2 * WEFT_STORE_MAX_SHARDS * sizeof *s.files, &memory);
  if (status == WEFT_OK) {
    s.files = memory;
    status = open_set(&s);
    for (size_t i = 0; i < s.count; i++)
      if (s.files[i].fd >= 0)
        store->io->close(s.files[i].fd);
    weft_free(options->ctx, WEFT_MEM_HOST, s.files);
  }
  if (status == WEFT_OK)
    *out = store;
  else
    weft_store_close(store);
  return weft_store_told(report, status);
}
