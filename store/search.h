// SPDX-License-Identifier: Apache-2.0
// Files found under shards' names, and which of them are the set (docs/format.md, "Which shards are
// the set").
#ifndef WEFT_STORE_SEARCH_H
#define WEFT_STORE_SEARCH_H

#include "store/set.h"

// A file found under the name of shard `slot`.
typedef struct weft_store_found {
  int fd;        // -1: nothing to read
  int error;     // errno
  int read_only; // errno for which it could not be opened for writing
  size_t slot;
  bool fresh;         // its name ends in .new
  bool sound;         // the header could be read
  bool proven;        // it was made under the user's key
  weft_status status; // of the header
  const char *why;
  weft_store_header header;
  uint8_t bytes[WEFT_STORE_HEADER_BYTES];
  uint64_t size;
} weft_store_found;

typedef struct weft_store_search {
  weft_store *store;
  weft_store_access access;
  weft_store_found *files; // at most 2 * WEFT_STORE_MAX_SHARDS
  size_t count;
} weft_store_search;

// --- choose.c: decides what the set is, in this order

// Chooses the set that this folder holds, by the most shards. If any file was made under the user's
// key, only such files have a vote.
weft_status weft_store_choose_set(weft_store_search *s);
// Refuses to write if a shard has another format version. A writer of this version would rebuild
// such a shard or leave it behind, and so remove the only shards that hold what a later version
// wrote.
weft_status weft_store_refuse_later(const weft_store_search *s);
weft_status weft_store_check_key(weft_store_search *s);
// Chooses the set's age (generation and update): of the newest generation that k shards have, or
// else of the newest one, the age of most shards. WEFT_STORE_LOOK accepts states between which a
// person has to choose; for others they are errors.
weft_status weft_store_choose_age(weft_store_search *s);
// Returns what is wrong with a file that cannot be used, with a text; WEFT_SHARD_GOOD: nothing.
weft_shard_state weft_store_why_not(const weft_store *store, const weft_store_found *f, char *text,
                                    size_t bytes);

#endif
