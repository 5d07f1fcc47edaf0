// SPDX-License-Identifier: Apache-2.0
// A scrub or repair at work: what it writes in place (mend.c), and shards made anew (anew.c).
#ifndef WEFT_STORE_MENDING_H
#define WEFT_STORE_MENDING_H

#include "store/folder.h"

typedef struct weft_store_mending {
  weft_store *store;
  weft_store_lane *lanes;
  weft_store_care care;
  int fresh[WEFT_STORE_MAX_SHARDS];        // the shard made anew; -1: none
  int spoilt[WEFT_STORE_MAX_SHARDS];       // why that cannot be made: an errno
  uint64_t rebuilt[WEFT_STORE_MAX_SHARDS]; // corrupt chunks that are well there
  bool unsynced[WEFT_STORE_MAX_SHARDS];    // the sync of its file failed
  bool second;                             // all is read again for late shards alone
  bool late[WEFT_STORE_MAX_SHARDS];
  bool partly;    // stripes are lost: only shards that are missing are made anew
  bool committed; // a name was given: what is still under .new may be a shard's only copy
} weft_store_mending;

// Begins all shards that are not in order as a whole, or whose files take no writes.
weft_status weft_store_create_fresh(weft_store_mending *m);
// And those whose files were found since not to take any. False: there are none.
bool weft_store_create_late(weft_store_mending *m);
// Where stripes are lost: leaves only shards that are missing, under names that are free.
void weft_store_keep_missing(weft_store_mending *m);
// Where stripes contradict themselves: leaves none that is in order but for taking no writes. In
// the copy all chunks would be new, and which of them is of the past could not be told any more.
void weft_store_keep_ages(weft_store_mending *m);
// Gives the names, once all is on the disk. The new shards go into the set in the place of the old
// ones. One that cannot be written to its end is left out.
weft_status weft_store_commit_fresh(weft_store_mending *m);
void weft_store_drop_late(weft_store_mending *m);
void weft_store_drop_fresh(weft_store_mending *m);

#endif
