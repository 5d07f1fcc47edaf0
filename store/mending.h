// SPDX-License-Identifier: Apache-2.0
// A scrub or repair in progress: what it writes in place (mend.c), and rebuilt shards (anew.c).
#ifndef WEFT_STORE_MENDING_H
#define WEFT_STORE_MENDING_H

#include "store/folder.h"

typedef struct weft_store_mending {
  weft_store *store;
  weft_store_lane *lanes;
  weft_store_care care;
  int fresh[WEFT_STORE_MAX_SHARDS];        // the rebuilt shard; -1: none
  int spoilt[WEFT_STORE_MAX_SHARDS];       // why it cannot be written: an errno
  uint64_t rebuilt[WEFT_STORE_MAX_SHARDS]; // corrupt chunks that are good in it
  bool unsynced[WEFT_STORE_MAX_SHARDS];    // the sync of its file failed
  bool second;                             // second pass, for late shards only
  bool late[WEFT_STORE_MAX_SHARDS];
  // Stripes are lost: only missing shards are rebuilt.
  bool partly;
  // A name was given: a file still under .new may be a shard's only copy.
  bool committed;
} weft_store_mending;

// Creates .new files for all shards that are not good, or whose files are read-only.
weft_status weft_store_create_fresh(weft_store_mending *m);
// The same for shards whose files have failed to take writes since ("late"). Returns false if there
// are none.
bool weft_store_create_late(weft_store_mending *m);
// If stripes are lost: keeps only rebuilt shards that were missing, under names that are free.
void weft_store_keep_missing(weft_store_mending *m);
// If stripes are inconsistent: drops copies of shards that are good but take no writes. In a copy
// all chunks would be new, and it could no longer be told which of them are outdated.
void weft_store_keep_ages(weft_store_mending *m);
// Renames the new shards, once everything is on the disk; they replace the old ones in the set. A
// shard that cannot be written completely is left out.
weft_status weft_store_commit_fresh(weft_store_mending *m);
void weft_store_drop_late(weft_store_mending *m);
void weft_store_drop_fresh(weft_store_mending *m);

#endif
