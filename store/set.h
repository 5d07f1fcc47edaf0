// SPDX-License-Identifier: Apache-2.0
// Internals of an open set of shards, shared by its calls.
#ifndef WEFT_STORE_SET_H
#define WEFT_STORE_SET_H

#include <pthread.h>

#include "store/store.h"
#include "store/workers.h"

enum { WEFT_STORE_PATH_BYTES = 4096 };

// Where a chunk of a committed update is in the journal.
typedef struct weft_store_pending {
  uint64_t stripe, at; // at: the chunk's offset in the journal's file
  uint16_t shard;
} weft_store_pending;

typedef struct weft_store_file {
  int fd;        // -1: not used
  bool placed;   // under its own name and of the right size: chunks can be mended in place
  bool fresh;    // under its own name with .new, still to be renamed
  int beside;    // the shard whose .new name it has; -1: it has a final name
  int under;     // the shard whose final name it has; -1: none
  int read_only; // errno for which it could not be opened for writing; 0: it was, or need not be
  weft_store_header header;
  uint64_t bytes;
} weft_store_file;

struct weft_store {
  weft_store_options options;
  const weft_store_io *io;
  weft_store_report *report;
  pthread_mutex_t lock; // guards the report and the shards' counts
  char *folder;
  int folder_fd; // holds the lock on the folder
  bool authenticated;
  weft_store_header header;
  uint8_t file_key[WEFT_STORE_KEY_BYTES];
  uint64_t nonce; // this call's
  // A call failed after its commit: the state in memory may not be that on the disk.
  bool ended;
  weft_store_geometry geometry;
  weft_code *code;
  weft_store_file files[WEFT_STORE_MAX_SHARDS];
  weft_store_shard shards[WEFT_STORE_MAX_SHARDS];
  int journal_fd;      // -1: none pending
  bool journal_unread; // there is one, but no key to read it with
  weft_store_journal journal;
  weft_store_pending *pending; // sorted by stripe, then shard
};

// Creates a store with no set opened yet.
weft_status weft_store_new(const weft_store_options *options, const char *folder,
                           weft_store_report *report, weft_store **out);

// "FOLDER/shard-007.weft" and with ".new" appended, and the journal's; WEFT_STORE_PATH_BYTES each.
weft_status weft_store_shard_path(const char *folder, size_t shard, bool fresh, char *out);
weft_status weft_store_journal_path(const char *folder, bool fresh, char *out);

// Begins every call on an open set. WEFT_E_STATE: no further call is allowed.
weft_status weft_store_begin(weft_store *store);

// Counts the shards that the system withholds (read_error); *first is the first of them.
size_t weft_store_withheld(const weft_store *store, size_t *first);

// Sets the report's error; returns `status`.
weft_status weft_store_fail(weft_store_report *report, weft_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// "WHAT: No space left on device"; with the advice that follows the error.
weft_status weft_store_fail_io(weft_store_report *report, const char *what, int error);
const char *weft_store_advice(int error); // "" or "; what to do"
// Ends a call: a status that nothing was said about says itself. Returns `status`.
weft_status weft_store_told(weft_store_report *report, weft_status status);

// Adds to the error of a call that failed after its commit that `what` has taken effect; returns
// `status`.
weft_status weft_store_holds(weft_store_report *report, weft_status status, const char *what);

weft_status weft_store_new_memory(weft_ctx *ctx, size_t bytes, void **out); // zeroed

// --- journal.c

// Finds a committed update. WEFT_E_DAMAGED: its journal is not intact. `fresh`: the journal under
// .new, before it is committed.
weft_status weft_store_journal_load(weft_store *store, bool fresh);
void weft_store_journal_drop(weft_store *store); // from memory
// WEFT_E_DAMAGED: the shards did not reach their state through this update.
weft_status weft_store_journal_fits(weft_store *store);
// Carries out the journal and removes it. Needs WEFT_STORE_WRITE. WEFT_E_DAMAGED: too few shards
// are there. A shard that takes no writes is an error if `patient`, or if no more than k shards
// would be left; otherwise it is left behind, stale.
weft_status weft_store_journal_apply(weft_store *store, bool patient);
// Returns the pending chunk, or NULL.
const weft_store_pending *weft_store_journal_find(const weft_store *store, size_t shard,
                                                  uint64_t stripe);

// --- stripe.c

enum { WEFT_CHUNK_UNREAD, WEFT_CHUNK_GOOD, WEFT_CHUNK_BAD };

// A lane: the buffers of one thread, a stripe's chunks side by side, data first.
typedef struct weft_store_lane {
  uint8_t *base;                           // (k + m, chunk), for the current stripe
  size_t chunk, bytes;                     // bytes: of data in the stripe
  uint8_t state[WEFT_STORE_MAX_SHARDS];    // WEFT_CHUNK_*
  uint64_t written[WEFT_STORE_MAX_SHARDS]; // generation in which a good chunk was written
} weft_store_lane;

weft_status weft_store_lanes_new(weft_store *store, size_t count, weft_store_lane **out);
void weft_store_lanes_free(weft_store *store, weft_store_lane *lanes);
size_t weft_store_threads(const weft_store *store, uint64_t stripes); // at most `stripes`

static inline uint8_t *weft_store_lane_chunk(const weft_store_lane *lane, size_t shard) {
  return lane->base + shard * lane->chunk;
}

// Prepares the lane for a stripe: nothing is read yet.
void weft_store_lane_start(const weft_store *store, weft_store_lane *lane, uint64_t stripe);
// Reads and checks a chunk, once; its state records the result.
weft_status weft_store_load(weft_store *store, weft_store_lane *lane, size_t shard,
                            uint64_t stripe);
// Counts a chunk as corrupt; `unread`: the system could not read it.
void weft_store_note_corrupt(weft_store *store, size_t shard, uint64_t stripe, bool unread);
// Rebuilds the bad ones among the chunks wanted[0..count), reading whatever that needs;
// WEFT_E_DAMAGED: fewer than k chunks are good. States do not change.
weft_status weft_store_rebuild(weft_store *store, weft_store_lane *lane, uint64_t stripe,
                               const uint8_t *wanted, size_t count);
weft_stripe weft_store_lane_stripe(const weft_store_lane *lane);
// Seals a chunk and writes it to fd, the file of that shard. weft_store_try_chunk returns 0 or an
// errno; the other one sets the report's error, for the file under .new.
int weft_store_try_chunk(weft_store *store, const weft_store_lane *lane, int fd, size_t shard,
                         uint64_t stripe);
weft_status weft_store_write_chunk(weft_store *store, const weft_store_lane *lane, int fd,
                                   size_t shard, uint64_t stripe);
// Writes the header of `shard` to fd, with the store's generation. Both as above.
int weft_store_try_header(weft_store *store, int fd, size_t shard);
weft_status weft_store_write_header(weft_store *store, int fd, size_t shard);
// Calls options.keep_on; the watcher of a run is a weft_store_watch.
typedef struct weft_store_watch {
  weft_store *store;
  uint64_t stripe_bytes, total;
} weft_store_watch;
bool weft_store_keep_on(void *watch, uint64_t stripes);
bool weft_store_ask(weft_store *store, uint64_t done, uint64_t total); // the same, in bytes
// Records that stripes are lost. Lock held.
void weft_store_lose(weft_store_report *report, uint64_t first, uint64_t last);
// Adds `amount` to one of the report's counters.
void weft_store_count(weft_store *store, uint64_t *counter, uint64_t amount);

// --- check.c

// Whether the good parity in the lane is at least as new as all chunks of the stripe that are not
// bad; the age of chunks that were not read comes from their trailers. An update writes all parity,
// so this holds unless a disk lost its chunk of an update, or others were mended since.
bool weft_store_parity_newest(weft_store *store, const weft_store_lane *lane, uint64_t stripe);

// Reads all chunks of a stripe and rebuilds the bad ones. `well`: the chunks are consistent, as far
// as what was read can show; otherwise the report counts the stripe, and rebuilt chunks may be
// wrong. WEFT_E_DAMAGED: fewer than k chunks are good.
weft_status weft_store_check_stripe(weft_store *store, weft_store_lane *lane, uint64_t stripe,
                                    bool *well);

#endif
