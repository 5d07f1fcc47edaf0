// SPDX-License-Identifier: Apache-2.0
// Inside of an open set of shards, and what its calls share.
#ifndef WEFT_STORE_SET_H
#define WEFT_STORE_SET_H

#include <pthread.h>

#include "store/store.h"
#include "store/workers.h"

enum { WEFT_STORE_PATH_BYTES = 4096 };

// Where a chunk of a committed update lies in the journal.
typedef struct weft_store_pending {
  uint64_t stripe, at; // at: of the chunk in the journal's file
  uint16_t shard;
} weft_store_pending;

typedef struct weft_store_file {
  int fd;        // -1: not read from
  bool placed;   // under its own name and of the right size: chunks can be mended in place
  bool fresh;    // under its own name with .new, which still has to become the other one
  int beside;    // the shard under whose name with .new it lies; -1: it has a final name
  int under;     // that one's number; -1: it has none
  int read_only; // the errno for which it could not be opened for writing; 0: it was, or need not
                 // be
  weft_store_header header;
  uint64_t bytes;
} weft_store_file;

struct weft_store {
  weft_store_options options;
  const weft_store_io *io;
  weft_store_report *report;
  pthread_mutex_t lock; // of the report and of shards' counts
  char *folder;
  int folder_fd; // holds the lock on the folder
  bool authenticated;
  weft_store_header header;
  uint8_t file_key[WEFT_STORE_KEY_BYTES];
  uint64_t nonce; // of this call
  bool ended;     // a call failed after its moment: what is open may not be what is there
  weft_store_geometry geometry;
  weft_code *code;
  weft_store_file files[WEFT_STORE_MAX_SHARDS];
  weft_store_shard shards[WEFT_STORE_MAX_SHARDS];
  int journal_fd;      // -1: none pending
  bool journal_unread; // there is one, and no key to read it with
  weft_store_journal journal;
  weft_store_pending *pending; // sorted by stripe, then shard
};

// A store of nothing yet.
weft_status weft_store_new(const weft_store_options *options, const char *folder,
                           weft_store_report *report, weft_store **out);

// "FOLDER/shard-007.weft" and with ".new" appended, and the journal's; WEFT_STORE_PATH_BYTES each.
weft_status weft_store_shard_path(const char *folder, size_t shard, bool fresh, char *out);
weft_status weft_store_journal_path(const char *folder, bool fresh, char *out);

// At the start of every call on an open set. WEFT_E_STATE: there may be no further one.
weft_status weft_store_begin(weft_store *store);

// Sets the report's error; returns `status`.
weft_status weft_store_fail(weft_store_report *report, weft_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// "WHAT: No space left on device"
weft_status weft_store_fail_io(weft_store_report *report, const char *what, int error);

// Adds to the error of a call that failed after its moment that `what` holds; returns `status`.
weft_status weft_store_holds(weft_store_report *report, weft_status status, const char *what);

weft_status weft_store_new_memory(weft_ctx *ctx, size_t bytes, void **out); // zeroed

// --- journal.c

// Finds a committed update. WEFT_E_DAMAGED: its journal is not intact. `fresh`: the one under .new,
// before it is committed.
weft_status weft_store_journal_load(weft_store *store, bool fresh);
void weft_store_journal_drop(weft_store *store); // from memory
// WEFT_E_DAMAGED: the shards did not come to their state by this update.
weft_status weft_store_journal_fits(weft_store *store);
// Carries it out and removes it. Needs WEFT_STORE_WRITE. WEFT_E_DAMAGED: too few shards are there.
// A shard that takes no writes ends it if `patient`, or if no more than k take them; else it is
// left behind, stale.
weft_status weft_store_journal_apply(weft_store *store, bool patient);
// The pending chunk, or NULL.
const weft_store_pending *weft_store_journal_find(const weft_store *store, size_t shard,
                                                  uint64_t stripe);

// --- stripe.c

enum { WEFT_CHUNK_UNREAD, WEFT_CHUNK_GOOD, WEFT_CHUNK_BAD };

// The buffers of one thread: a stripe's chunks side by side, data first.
typedef struct weft_store_lane {
  uint8_t *base;                           // (k + m, chunk), chunk of the stripe at hand
  size_t chunk, bytes;                     // bytes: of data in it
  uint8_t state[WEFT_STORE_MAX_SHARDS];    // WEFT_CHUNK_*
  uint64_t written[WEFT_STORE_MAX_SHARDS]; // the generation in which a good one was
} weft_store_lane;

weft_status weft_store_lanes_new(weft_store *store, size_t count, weft_store_lane **out);
void weft_store_lanes_free(weft_store *store, weft_store_lane *lanes);
size_t weft_store_threads(const weft_store *store, uint64_t stripes); // no more than these

static inline uint8_t *weft_store_lane_chunk(const weft_store_lane *lane, size_t shard) {
  return lane->base + shard * lane->chunk;
}

// Makes the lane ready for a stripe: nothing is read yet.
void weft_store_lane_start(const weft_store *store, weft_store_lane *lane, uint64_t stripe);
// Reads a chunk and checks it, once; its state says what came of it.
weft_status weft_store_load(weft_store *store, weft_store_lane *lane, size_t shard,
                            uint64_t stripe);
// Counts a chunk as corrupt; `unread`: the system would not read it.
void weft_store_note_corrupt(weft_store *store, size_t shard, uint64_t stripe, bool unread);
// Rebuilds the chunks of wanted[0..count) that are bad, reading what else that takes;
// WEFT_E_DAMAGED: fewer than k chunks are good. States stay.
weft_status weft_store_rebuild(weft_store *store, weft_store_lane *lane, uint64_t stripe,
                               const uint8_t *wanted, size_t count);
weft_stripe weft_store_lane_stripe(const weft_store_lane *lane);
// Seals a chunk and writes it to fd, which is the file of that shard. 0 or an errno; the other one
// sets the report's error.
int weft_store_try_chunk(weft_store *store, const weft_store_lane *lane, int fd, size_t shard,
                         uint64_t stripe);
weft_status weft_store_write_chunk(weft_store *store, const weft_store_lane *lane, int fd,
                                   size_t shard, uint64_t stripe);
// Writes the header of `shard` to fd, under the store's generation. 0 or an errno; the other one
// sets the report's error.
int weft_store_try_header(weft_store *store, int fd, size_t shard);
weft_status weft_store_write_header(weft_store *store, int fd, size_t shard);
// Calls options.keep_on; the watcher of a run is a weft_store_watch.
typedef struct weft_store_watch {
  weft_store *store;
  uint64_t stripe_bytes, total;
} weft_store_watch;
bool weft_store_keep_on(void *watch, uint64_t stripes);
bool weft_store_ask(weft_store *store, uint64_t done, uint64_t total); // the same, in bytes
// Notes that stripes are lost. Needs the lock.
void weft_store_lose(weft_store_report *report, uint64_t first, uint64_t last);
// Adds `bytes` to one of the report's counters.
void weft_store_count(weft_store *store, uint64_t *counter, uint64_t amount);

// --- check.c

// Whether the good parity in the lane is as new as all chunks of the stripe that are not bad; of
// those that were not read their trailers tell. An update writes all parity, so that it is, unless
// a disk lost its chunk of one, or others were mended since.
bool weft_store_parity_newest(weft_store *store, const weft_store_lane *lane, uint64_t stripe);

// Reads all chunks of a stripe and rebuilds those that are bad. `well`: they belong together, as
// far as what was read can tell; else the report counts the stripe, and what was rebuilt may be
// wrong. WEFT_E_DAMAGED: fewer than k chunks are good.
weft_status weft_store_check_stripe(weft_store *store, weft_store_lane *lane, uint64_t stripe,
                                    bool *well);

#endif
