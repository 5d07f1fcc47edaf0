// SPDX-License-Identifier: Apache-2.0
// Opens a set: looks at every file under a shard's name, settles which file they are of and in
// which generation, and tells what is wrong with each that is not used.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <sodium.h>

#include "store/folder.h"

// A file that was found under the name of shard `slot`.
typedef struct found {
  int fd;    // -1: nothing to read
  int error; // of the system
  size_t slot;
  bool fresh;         // its name ends in .new
  bool sound;         // the header could be read
  bool proven;        // it was made under the user's key
  weft_status status; // of the header
  const char *why;
  weft_store_header header;
  uint8_t bytes[WEFT_STORE_HEADER_BYTES];
  uint64_t size;
} found;

typedef struct search {
  weft_store *store;
  weft_store_access access;
  found *files; // at most 2 * WEFT_STORE_MAX_SHARDS
  size_t count;
} search;

static bool made_under_key(const weft_store *store, const found *f) {
  uint8_t file_key[WEFT_STORE_KEY_BYTES];
  weft_store_file_key(&f->header, store->options.key, file_key);
  return weft_store_header_authentic(f->bytes, file_key);
}

static weft_status look_at(search *s, size_t slot, bool fresh) {
  weft_store *store = s->store;
  const weft_store_io *io = store->io;
  char path[WEFT_STORE_PATH_BYTES];
  WEFT_TRY(weft_store_shard_path(store->folder, slot, fresh, path));
  const bool write = s->access == WEFT_STORE_WRITE;
  // O_NONBLOCK: a pipe under that name is no shard, and not waited for.
  const int fd = io->open(path, (write ? O_RDWR : O_RDONLY) | O_NONBLOCK, 0);
  if (fd < 0 && errno == ENOENT)
    return WEFT_OK;
  // No word on the shard itself.
  if (fd < 0 && (errno == EMFILE || errno == ENFILE))
    return weft_store_fail_io(store->report, path, errno);
  if (fd < 0 && write && (errno == EACCES || errno == EPERM || errno == EROFS))
    return weft_store_fail_io(store->report, path, errno);
  found *f = &s->files[s->count++];
  *f = (found){.fd = fd, .slot = slot, .fresh = fresh, .error = fd < 0 ? errno : 0};
  if (fd < 0)
    return WEFT_OK;
  size_t got;
  struct stat about;
  f->error = weft_store_read_at(io, fd, 0, f->bytes, sizeof f->bytes, NULL, 0, &got);
  if (!f->error && fstat(fd, &about) != 0)
    f->error = errno;
  f->size = f->error ? 0 : (uint64_t)about.st_size;
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

// The same in all shards of a set but for the generation.
static bool same_set(const weft_store_header *a, const weft_store_header *b) {
  return memcmp(a->id, b->id, sizeof a->id) == 0 && a->k == b->k && a->m == b->m &&
         a->keyed == b->keyed && a->chunk_bytes == b->chunk_bytes && a->length == b->length &&
         memcmp(a->key, b->key, sizeof a->key) == 0 &&
         memcmp(a->code, b->code, sizeof a->code) == 0;
}

// How many different shards there are of the set that `like` is of; 0 where none has its final
// name. Of proven files alone where `proven`.
static size_t votes(const search *s, const weft_store_header *like, bool proven) {
  bool seen[WEFT_STORE_MAX_SHARDS] = {false}, committed = false;
  size_t count = 0;
  for (size_t i = 0; i < s->count; i++) {
    const found *f = &s->files[i];
    if (!f->sound || (proven && !f->proven) || !same_set(&f->header, like))
      continue;
    committed |= !f->fresh;
    count += !seen[f->header.shard];
    seen[f->header.shard] = true;
  }
  return committed ? count : 0;
}

// The file that most shards are of; NULL: there is none.
static const found *most_voted(const search *s, bool proven) {
  const found *best = NULL;
  size_t most = 0;
  for (size_t i = 0; i < s->count; i++) {
    const found *f = &s->files[i];
    const size_t count = f->sound ? votes(s, &f->header, proven) : 0;
    if (count > most) {
      best = f;
      most = count;
    }
  }
  return best;
}

// Which file this folder is about. Whoever lacks the key has no vote beside those who have it.
static weft_status choose_set(search *s) {
  weft_store *store = s->store;
  const found *proven = most_voted(s, true), *best = proven ? proven : most_voted(s, false);
  if (best) {
    store->header = best->header;
    return WEFT_OK;
  }
  size_t final = 0, other_version = 0;
  for (size_t i = 0; i < s->count; i++) {
    final += !s->files[i].fresh;
    other_version += !s->files[i].fresh && s->files[i].status == WEFT_E_VERSION;
  }
  if (other_version && other_version == final) // no damage: a later weft reads them
    return weft_store_fail(store->report, WEFT_E_VERSION,
                           "%s: all %zu of its shards are of another format version than %d, the "
                           "one that this weft reads",
                           store->folder, final, WEFT_STORE_VERSION);
  if (other_version)
    return weft_store_fail(store->report, WEFT_E_DAMAGED,
                           "%s: %zu of its %zu shards are of another format version, and none has "
                           "an intact header of version %d",
                           store->folder, other_version, final, WEFT_STORE_VERSION);
  if (final)
    return weft_store_fail(store->report, WEFT_E_DAMAGED,
                           "%s: none of its %zu shards has an intact header", store->folder, final);
  return weft_store_fail(store->report, WEFT_E_DAMAGED, "%s: there are no shards here%s",
                         store->folder, s->count ? " but those of an encode that did not end" : "");
}

// A writer of this version would make such shards anew or leave them behind, and remove the only
// ones that hold what a later one wrote.
static weft_status refuse_later(const search *s) {
  weft_store *store = s->store;
  for (size_t i = 0; i < s->count; i++)
    if (!s->files[i].fresh && s->files[i].status == WEFT_E_VERSION)
      return weft_store_fail(store->report, WEFT_E_VERSION,
                             "%s/shard-%03zu.weft is of another format version than %d, the one "
                             "that this weft writes: nothing is changed beside it",
                             store->folder, s->files[i].slot, WEFT_STORE_VERSION);
  return WEFT_OK;
}

static weft_status check_key(search *s) {
  weft_store *store = s->store;
  const uint8_t *key = store->options.key;
  if (!store->header.keyed && key && s->access != WEFT_STORE_LOOK)
    return weft_store_fail(store->report, WEFT_E_KEY, "%s was encoded without a key of the user's",
                           store->folder);
  if (store->header.keyed && !key) {
    if (s->access == WEFT_STORE_LOOK)
      return WEFT_OK;
    return weft_store_fail(store->report, WEFT_E_KEY, "%s was encoded under a key; give it",
                           store->folder);
  }
  weft_store_file_key(&store->header, key, store->file_key);
  for (size_t i = 0; i < s->count && !store->authenticated; i++)
    store->authenticated = s->files[i].sound && same_set(&s->files[i].header, &store->header) &&
                           weft_store_header_authentic(s->files[i].bytes, store->file_key);
  return store->authenticated
             ? WEFT_OK
             : weft_store_fail(store->report, WEFT_E_KEY,
                               "%s: this is not the key that its shards were encoded under",
                               store->folder);
}

// What a shard counts as having gone through: a committed update is already part of it.
typedef struct age {
  uint64_t generation, update;
} age;

static age age_of(const weft_store *store, const weft_store_header *h) {
  const weft_store_journal *j = &store->journal;
  const bool pending = store->journal_fd >= 0 && weft_store_takes_part(j, h->shard) &&
                       h->generation + 1 == j->generation;
  return pending ? (age){j->generation, j->update} : (age){h->generation, h->update};
}

static bool same_age(age a, age b) { return a.generation == b.generation && a.update == b.update; }

static bool belongs(const weft_store *store, const found *f) {
  return f->sound && same_set(&f->header, &store->header) &&
         (!store->authenticated || weft_store_header_authentic(f->bytes, store->file_key));
}

// How many different shards of the set have this age.
static size_t shards_of_age(const search *s, age wanted) {
  bool seen[WEFT_STORE_MAX_SHARDS] = {false};
  size_t count = 0;
  for (size_t i = 0; i < s->count; i++) {
    const weft_store_header *h = &s->files[i].header;
    if (!belongs(s->store, &s->files[i]) || !same_age(age_of(s->store, h), wanted) ||
        seen[h->shard])
      continue;
    seen[h->shard] = true;
    count++;
  }
  return count;
}

static bool better(age a, size_t count, age than, size_t its, size_t k) {
  if ((count >= k) != (its >= k))
    return count >= k;
  return a.generation != than.generation ? a.generation > than.generation : count > its;
}

// Of the newest generation that k shards have, or else of the newest, what most shards have. A look
// bears with states between which somebody has to choose.
static weft_status choose_age(search *s) {
  weft_store *store = s->store;
  const size_t k = store->header.k;
  age best = {0}, newest = {0};
  size_t most = 0;
  bool apart = false;
  for (size_t i = 0; i < s->count; i++) {
    if (!belongs(store, &s->files[i]))
      continue;
    const age a = age_of(store, &s->files[i].header);
    const size_t count = shards_of_age(s, a);
    newest = a.generation > newest.generation ? a : newest;
    if (better(a, count, best, most, k)) {
      best = a;
      most = count;
    }
  }
  for (size_t i = 0; i < s->count; i++) {
    const age a = age_of(store, &s->files[i].header);
    apart |= belongs(store, &s->files[i]) && a.generation == best.generation &&
             !same_age(a, best) && shards_of_age(s, a) >= k;
  }
  store->header.generation = best.generation;
  store->header.update = best.update;
  if (s->access == WEFT_STORE_LOOK)
    return WEFT_OK;
  if (apart)
    return weft_store_fail(store->report, WEFT_E_DAMAGED,
                           "%s: its shards went through updates to generation %" PRIu64
                           " apart from each other, enough to be read of each: keep those of one, "
                           "as verify tells with the others moved away",
                           store->folder, best.generation);
  if (newest.generation > best.generation)
    return weft_store_fail(store->report, WEFT_E_DAMAGED,
                           "%s: %zu of its shards are of generation %" PRIu64
                           ", too few to be read, and the others of %" PRIu64
                           ", from before an update (see weft store info): bring back what is "
                           "missing, or move the newer ones away for the older to count",
                           store->folder, shards_of_age(s, newest), newest.generation,
                           best.generation);
  return WEFT_OK;
}

static void tell(weft_store *store, size_t slot, bool fresh, weft_shard_state state,
                 const char *what) {
  weft_store_shard *shard = &store->shards[slot];
  shard->state = state;
  snprintf(shard->text, sizeof shard->text, "shard-%03zu.weft%s: %s", slot, fresh ? ".new" : "",
           what);
}

// What is wrong with a file that cannot be read from; WEFT_SHARD_GOOD: nothing.
static weft_shard_state why_not(const weft_store *store, const found *f, char *text, size_t bytes) {
  char id[2 * WEFT_STORE_ID_BYTES + 1], ours[2 * WEFT_STORE_ID_BYTES + 1];
  if (f->error) {
    snprintf(text, bytes, "%s", strerror(f->error));
    return WEFT_SHARD_UNREADABLE;
  }
  if (!f->sound) {
    snprintf(text, bytes, "%s", f->why);
    return f->status == WEFT_E_VERSION ? WEFT_SHARD_VERSION : WEFT_SHARD_CORRUPT;
  }
  sodium_bin2hex(id, sizeof id, f->header.id, sizeof f->header.id);
  sodium_bin2hex(ours, sizeof ours, store->header.id, sizeof store->header.id);
  if (!same_set(&f->header, &store->header)) {
    if (strcmp(id, ours) == 0)
      snprintf(text, bytes, "its header is of this file, but not as others have it");
    else
      snprintf(text, bytes, "it belongs to another file (%s, not %s)", id, ours);
    return WEFT_SHARD_FOREIGN;
  }
  if (!belongs(store, f)) {
    snprintf(text, bytes, "its header was not made under this key");
    return WEFT_SHARD_FORGED;
  }
  const uint64_t ours_now = store->header.generation;
  const age a = age_of(store, &f->header);
  if (same_age(a, (age){ours_now, store->header.update}))
    return WEFT_SHARD_GOOD;
  const char *how = a.generation < ours_now   ? "an update went past it"
                    : a.generation > ours_now ? "they are from before an update"
                                              : "it went through another update than they";
  snprintf(text, bytes, "it is of generation %" PRIu64 ", the others of %" PRIu64 ": %s",
           a.generation, ours_now, how);
  return a.generation > ours_now ? WEFT_SHARD_NEWER : WEFT_SHARD_STALE;
}

// Takes a file as the source of the shard that its header names, if that has none yet.
static void use(weft_store *store, found *f) {
  const size_t shard = f->header.shard;
  weft_store_file *file = &store->files[shard];
  if (file->fd >= 0)
    return;
  const uint64_t expected = weft_store_shard_bytes(&store->geometry);
  char text[128];
  *file = (weft_store_file){.fd = f->fd,
                            .fresh = f->fresh && shard == f->slot,
                            .beside = f->fresh ? (int)f->slot : -1,
                            .header = f->header,
                            .bytes = f->size};
  f->fd = -1;
  file->placed = shard == f->slot && f->size == expected;
  if (shard != f->slot) {
    snprintf(text, sizeof text, "shard %zu lies under the name shard-%03zu.weft%s", shard, f->slot,
             f->fresh ? ".new" : "");
    tell(store, shard, false, WEFT_SHARD_MISPLACED, text);
  } else if (f->size != expected) {
    snprintf(text, sizeof text, "it has %llu bytes instead of %llu", (unsigned long long)f->size,
             (unsigned long long)expected);
    tell(store, shard, f->fresh, f->size < expected ? WEFT_SHARD_TRUNCATED : WEFT_SHARD_OVERLONG,
         text);
  } else {
    store->shards[shard] = (weft_store_shard){.state = WEFT_SHARD_GOOD};
  }
}

// Final names first, then .new ones, then files under a wrong name.
static void fill_slots(search *s) {
  weft_store *store = s->store;
  const size_t all = store->geometry.k + store->geometry.m;
  char text[256];
  for (size_t i = 0; i < all; i++)
    tell(store, i, false, WEFT_SHARD_MISSING, "it is missing");
  for (size_t pass = 0; pass < 3; pass++)
    for (size_t i = 0; i < s->count; i++) {
      found *f = &s->files[i];
      if (pass < 2 && f->fresh != (pass == 1))
        continue;
      const weft_shard_state state = why_not(store, f, text, sizeof text);
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
    return weft_store_fail(
        store->report, WEFT_E_DAMAGED,
        "%s: the headers name a code that there is not: %s with k = %zu, m = %zu", store->folder,
        options.name, options.k, options.m);
  if (made != WEFT_OK)
    return weft_store_fail(store->report, made, "%s: code %s (%zu, %zu): %s", store->folder,
                           options.name, options.k, options.m, weft_status_text(made));
  const weft_status fits =
      weft_store_geometry_of(&store->header, weft_code_unit_bytes(store->code), &store->geometry);
  return fits == WEFT_OK ? fits
                         : weft_store_fail(store->report, WEFT_E_DAMAGED,
                                           "%s: the headers contradict themselves", store->folder);
}

static bool taken(const found *f) { return f->fd < 0 && !f->error; } // by use()

// Whether the file under the final name of a slot is read from: then it is another shard, and that
// name may be its only one.
static bool name_taken(const search *s, size_t slot) {
  for (size_t i = 0; i < s->count; i++)
    if (s->files[i].slot == slot && !s->files[i].fresh && taken(&s->files[i]))
      return true;
  return false;
}

// Under another shard's .new, too, where what repair makes of that one would take its place.
static weft_status give_name(weft_store *store, const found *f, const char *from) {
  const size_t shard = f->header.shard;
  weft_store_file *file = &store->files[shard];
  char to[WEFT_STORE_PATH_BYTES];
  WEFT_TRY(weft_store_shard_path(store->folder, shard, false, to));
  WEFT_TRY(weft_store_rename(store->io, from, to, store->report));
  file->fresh = false;
  file->beside = -1;
  file->placed = file->bytes == weft_store_shard_bytes(&store->geometry);
  if (file->placed)
    store->shards[shard] = (weft_store_shard){.state = WEFT_SHARD_GOOD};
  return WEFT_OK;
}

// What an interrupted call left, as far as it is read from: it may have been killed before it
// synced this, and what is done next on the strength of it must not reach the disk before.
static weft_status sync_leftovers(search *s) {
  weft_store *store = s->store;
  char path[WEFT_STORE_PATH_BYTES];
  for (size_t i = 0; i < s->count; i++) {
    const found *f = &s->files[i];
    if (!f->fresh || !taken(f))
      continue;
    WEFT_TRY(weft_store_shard_path(store->folder, f->slot, true, path));
    WEFT_TRY(
        weft_store_sync_file(store->io, store->files[f->header.shard].fd, path, store->report));
  }
  return weft_store_sync_names(store);
}

// A writer gives shards of an interrupted call, once they count, their names, and takes away what
// does not count.
static weft_status finish_names(search *s) {
  weft_store *store = s->store;
  const weft_store_io *io = store->io;
  char from[WEFT_STORE_PATH_BYTES];
  bool changed = false;
  WEFT_TRY(sync_leftovers(s)); // all, as each name may be another shard's only copy
  for (size_t i = 0; i < s->count; i++) {
    const found *f = &s->files[i];
    if (!f->fresh)
      continue;
    WEFT_TRY(weft_store_shard_path(store->folder, f->slot, true, from));
    // Names that misplaced ones hold are repair's business.
    if (taken(f) && name_taken(s, f->header.shard))
      continue;
    if (taken(f)) {
      WEFT_TRY(give_name(store, f, from));
    } else if (f->fd >= 0 && io->unlink(from) != 0)
      return weft_store_fail_io(store->report, from, errno);
    changed = true;
  }
  WEFT_TRY(weft_store_journal_path(store->folder, true, from));
  if (io->unlink(from) == 0)
    changed = true;
  return changed ? weft_store_sync_names(store) : WEFT_OK;
}

static weft_status open_set(search *s) {
  weft_store *store = s->store;
  WEFT_TRY(weft_store_folder_open(store->io, store->folder, s->access == WEFT_STORE_WRITE,
                                  store->report, &store->folder_fd));
  for (size_t slot = 0; slot < WEFT_STORE_MAX_SHARDS; slot++) {
    WEFT_TRY(look_at(s, slot, false));
    WEFT_TRY(look_at(s, slot, true));
  }
  WEFT_TRY(choose_set(s));
  if (s->access == WEFT_STORE_WRITE)
    WEFT_TRY(refuse_later(s));
  WEFT_TRY(check_key(s));
  WEFT_TRY(make_code(store));
  WEFT_TRY(weft_store_journal_load(store, false));
  WEFT_TRY(choose_age(s));
  WEFT_TRY(weft_store_journal_fits(store));
  fill_slots(s);
  if (s->access != WEFT_STORE_WRITE)
    return WEFT_OK;
  WEFT_TRY(finish_names(s));
  return weft_store_journal_apply(store);
}

weft_status weft_store_open(const weft_store_options *options, const char *folder,
                            weft_store_access access, weft_store_report *report, weft_store **out) {
  *out = NULL;
  weft_store *store;
  WEFT_TRY(weft_store_new(options, folder, report, &store));
  search s = {.store = store, .access = access};
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
  return status;
}
