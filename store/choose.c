// SPDX-License-Identifier: Apache-2.0
// Decides which of the files found are the set: of which file, under which key, of which
// generation; and what is wrong with the others.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "store/search.h"

// Whether two headers belong to one set: all but the generation is the same.
static bool same_set(const weft_store_header *a, const weft_store_header *b) {
  return memcmp(a->id, b->id, sizeof a->id) == 0 && a->k == b->k && a->m == b->m &&
         a->keyed == b->keyed && a->chunk_bytes == b->chunk_bytes && a->length == b->length &&
         memcmp(a->key, b->key, sizeof a->key) == 0 &&
         memcmp(a->code, b->code, sizeof a->code) == 0;
}

// Counts the different shards of the set that `like` belongs to; 0 if none has its final name.
// `proven`: counts only proven files.
static size_t votes(const weft_store_search *s, const weft_store_header *like, bool proven) {
  bool seen[WEFT_STORE_MAX_SHARDS] = {false}, committed = false;
  size_t count = 0;
  for (size_t i = 0; i < s->count; i++) {
    const weft_store_found *f = &s->files[i];
    if (!f->sound || (proven && !f->proven) || !same_set(&f->header, like))
      continue;
    committed |= !f->fresh;
    count += !seen[f->header.shard];
    seen[f->header.shard] = true;
  }
  return committed ? count : 0;
}

// Returns a file of the set with the most shards, if possible of one with enough to be read; NULL:
// there is none.
static const weft_store_found *most_voted(const weft_store_search *s, bool proven) {
  const weft_store_found *best = NULL;
  size_t most = 0;
  for (size_t i = 0; i < s->count; i++) {
    const weft_store_found *f = &s->files[i];
    const size_t count = f->sound ? votes(s, &f->header, proven) : 0;
    const bool enough = count && count >= f->header.k, had = best && most >= best->header.k;
    if (enough != had ? enough : count > most) {
      best = f;
      most = count;
    }
  }
  return best;
}

// Fails if a second set can be read, too: repair would replace its shards by those of the first.
static weft_status refuse_second(const weft_store_search *s) {
  const weft_store *store = s->store;
  for (size_t i = 0; i < s->count; i++) {
    const weft_store_header *h = &s->files[i].header;
    if (!s->files[i].sound || memcmp(h->id, store->header.id, sizeof h->id) == 0 ||
        votes(s, h, false) < h->k)
      continue;
    char ours[2 * WEFT_STORE_ID_BYTES + 1], its[2 * WEFT_STORE_ID_BYTES + 1];
    sodium_bin2hex(ours, sizeof ours, store->header.id, sizeof store->header.id);
    sodium_bin2hex(its, sizeof its, h->id, sizeof h->id);
    return weft_store_fail(store->report, WEFT_E_DAMAGED,
                           "%s holds enough shards of two files to read either (%s and %s): move "
                           "those of one away; nothing was changed",
                           store->folder, ours, its);
  }
  return WEFT_OK;
}

static const char *why_unread(const weft_store_found *f) {
  return f->why ? f->why : strerror(f->error);
}

// Reports why there is no set. Files that the system does not let us read may be intact: that is no
// damage.
static weft_status no_set(const weft_store_search *s) {
  const weft_store *store = s->store;
  const weft_store_found *refused = NULL;
  size_t final = 0, other_version = 0, unread = 0;
  for (size_t i = 0; i < s->count; i++) {
    const weft_store_found *f = &s->files[i];
    final += !f->fresh;
    other_version += !f->fresh && f->status == WEFT_E_VERSION;
    unread += !f->fresh && f->error;
    refused = !refused && !f->fresh && f->error ? f : refused;
  }
  if (other_version && other_version == final) // no damage: a later weft can read them
    return weft_store_fail(
        store->report, WEFT_E_VERSION,
        "%s: all %zu of its shards have a format version other than %d, which this weft reads",
        store->folder, final, WEFT_STORE_VERSION);
  if (refused && unread == final)
    return weft_store_fail(store->report, WEFT_E_IO,
                           "%s/shard-%03zu.weft: %s; none of the %zu shards there can be read",
                           store->folder, refused->slot, why_unread(refused), final);
  if (other_version)
    return weft_store_fail(store->report, WEFT_E_DAMAGED,
                           "%s: %zu of its %zu shards have another format version, and none has "
                           "an intact header of version %d",
                           store->folder, other_version, final, WEFT_STORE_VERSION);
  if (refused)
    return weft_store_fail(store->report, WEFT_E_DAMAGED,
                           "%s: none of its %zu shards has an intact header, and %zu cannot be "
                           "read (shard-%03zu.weft: %s)",
                           store->folder, final, unread, refused->slot, why_unread(refused));
  if (final)
    return weft_store_fail(store->report, WEFT_E_DAMAGED,
                           "%s: none of its %zu shards has an intact header", store->folder, final);
  return weft_store_fail(store->report, WEFT_E_DAMAGED, "%s: there are no shards here%s",
                         store->folder, s->count ? " except those of an unfinished encode" : "");
}

weft_status weft_store_choose_set(weft_store_search *s) {
  weft_store *store = s->store;
  const weft_store_found *proven = most_voted(s, true),
                         *best = proven ? proven : most_voted(s, false);
  if (!best)
    return no_set(s);
  store->header = best->header;
  return s->access == WEFT_STORE_WRITE ? refuse_second(s) : WEFT_OK;
}

weft_status weft_store_refuse_later(const weft_store_search *s) {
  weft_store *store = s->store;
  for (size_t i = 0; i < s->count; i++)
    if (!s->files[i].fresh && s->files[i].status == WEFT_E_VERSION)
      return weft_store_fail(store->report, WEFT_E_VERSION,
                             "%s/shard-%03zu.weft has a format version other than %d, which this "
                             "weft writes: nothing in its folder is changed",
                             store->folder, s->files[i].slot, WEFT_STORE_VERSION);
  return WEFT_OK;
}

weft_status weft_store_check_key(weft_store_search *s) {
  weft_store *store = s->store;
  const uint8_t *key = store->options.key;
  if (!store->header.keyed && key && s->access != WEFT_STORE_LOOK)
    return weft_store_fail(store->report, WEFT_E_KEY, "%s was encoded without a user's key",
                           store->folder);
  if (store->header.keyed && !key) {
    if (s->access == WEFT_STORE_LOOK)
      return WEFT_OK;
    return weft_store_fail(store->report, WEFT_E_KEY,
                           "%s was encoded with a key, which must be given", store->folder);
  }
  weft_store_file_key(&store->header, key, store->file_key);
  for (size_t i = 0; i < s->count && !store->authenticated; i++)
    store->authenticated = s->files[i].sound && same_set(&s->files[i].header, &store->header) &&
                           weft_store_header_authentic(s->files[i].bytes, store->file_key);
  return store->authenticated
             ? WEFT_OK
             : weft_store_fail(store->report, WEFT_E_KEY,
                               "%s: this is not the key with which its shards were encoded",
                               store->folder);
}

// The age of a shard: what it has gone through. A committed update counts as done.
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

static bool belongs(const weft_store *store, const weft_store_found *f) {
  return f->sound && same_set(&f->header, &store->header) &&
         (!store->authenticated || weft_store_header_authentic(f->bytes, store->file_key));
}

// Counts the different shards of the set that have this age.
static size_t shards_of_age(const weft_store_search *s, age wanted) {
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

weft_status weft_store_choose_age(weft_store_search *s) {
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
    if (!belongs(store, &s->files[i])) // its header may be of any shard
      continue;
    const age a = age_of(store, &s->files[i].header);
    apart |= a.generation == best.generation && !same_age(a, best) && shards_of_age(s, a) >= k;
  }
  store->header.generation = best.generation;
  store->header.update = best.update;
  if (s->access == WEFT_STORE_LOOK)
    return WEFT_OK;
  if (apart)
    return weft_store_fail(store->report, WEFT_E_DAMAGED,
                           "%s: its shards received different updates to generation %" PRIu64
                           ", and more than one set of them can be read: keep one set; verify "
                           "tests it with the others moved away",
                           store->folder, best.generation);
  if (newest.generation > best.generation)
    return weft_store_fail(store->report, WEFT_E_DAMAGED,
                           "%s: %zu of its shards have generation %" PRIu64
                           ", too few to be read, and the others %" PRIu64
                           ", from before an update (see weft store info): bring back the missing "
                           "shards, or move the newer ones away to use the older",
                           store->folder, shards_of_age(s, newest), newest.generation,
                           best.generation);
  return WEFT_OK;
}

weft_shard_state weft_store_why_not(const weft_store *store, const weft_store_found *f, char *text,
                                    size_t bytes) {
  char id[2 * WEFT_STORE_ID_BYTES + 1], ours[2 * WEFT_STORE_ID_BYTES + 1];
  if (f->error) {
    snprintf(text, bytes, "%s", why_unread(f));
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
      snprintf(text, bytes, "its header is of this file, but differs from the others");
    else
      snprintf(text, bytes, "it belongs to another file (%s, not %s)", id, ours);
    return WEFT_SHARD_FOREIGN;
  }
  if (!belongs(store, f)) {
    snprintf(text, bytes, "its header was not made with this key");
    return WEFT_SHARD_FORGED;
  }
  const uint64_t ours_now = store->header.generation;
  const age a = age_of(store, &f->header);
  if (same_age(a, (age){ours_now, store->header.update}))
    return WEFT_SHARD_GOOD;
  const char *how =
      store->journal_unread
          ? "the key is needed to tell which of them a pending update brings to the same generation"
      : a.generation < ours_now ? "it missed an update"
      : a.generation > ours_now ? "they are from before an update"
                                : "it received a different update";
  snprintf(text, bytes, "it is of generation %" PRIu64 ", the others of %" PRIu64 ": %s",
           a.generation, ours_now, how);
  return a.generation > ours_now ? WEFT_SHARD_NEWER : WEFT_SHARD_STALE;
}
