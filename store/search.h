// SPDX-License-Identifier: Apache-2.0
// Files found under shards' names, and which of them are the set (docs/format.md, "Which shards are
// the set").
#ifndef WEFT_STORE_SEARCH_H
#define WEFT_STORE_SEARCH_H

#include "store/set.h"

// A file that was found under the name of shard `slot`.
typedef struct weft_store_found {
  int fd;        // -1: nothing to read
  int error;     // of the system
  int read_only; // why it could not be opened for writing
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

// --- choose.c: settles what the search's store is of, in this order

// Which file this folder is about. Whoever lacks the key has no vote beside those who have it.
weft_status weft_store_choose_set(weft_store_search *s);
// A writer of this version would make shards of a later one anew or leave them behind, and remove
// the only ones that hold what a later one wrote.
weft_status weft_store_refuse_later(const weft_store_search *s);
weft_status weft_store_check_key(weft_store_search *s);
// Of the newest generation that k shards have, or else of the newest, what most shards have. A look
// bears with states between which somebody has to choose.
weft_status weft_store_choose_age(weft_store_search *s);
// What is wrong with a file that cannot be read from; WEFT_SHARD_GOOD: nothing.
weft_shard_state weft_store_why_not(const weft_store *store, const weft_store_found *f, char *text,
                                    size_t bytes);

#endif
