// SPDX-License-Identifier: Apache-2.0
// Files kept as k + m shard files in a folder, any k of which suffice to restore the file
// (docs/format.md).
//
// A stripe is k chunks of data and m of parity, one in each shard. Memory is bounded by `threads`
// stripes of k + m chunks, whatever the file's size; an update, or an open after an interrupted
// one, also needs 24 to 48 bytes per chunk in the journal. A header may demand 256 chunks of 1 GiB.
// What a call writes takes effect at one moment, its commit: a process killed before it leaves the
// old state, one killed after it the new one.
#ifndef WEFT_STORE_STORE_H
#define WEFT_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/format.h"
#include "store/io.h"
#include "weft/context.h"
#include "weft/storage.h"

enum { WEFT_STORE_TEXT_BYTES = 512, WEFT_STORE_MAX_THREADS = 64 };
#define WEFT_STORE_DEFAULT_STRIPE_BYTES (UINT64_C(4) << 20)

typedef struct weft_store_options {
  weft_ctx *ctx;           // best with one thread: threads share stripes
  const weft_store_io *io; // NULL: the system's
  const uint8_t *key;      // (WEFT_STORE_KEY_BYTES), the user's; NULL: none
  size_t threads;          // stripes processed at once; 0: one; at most WEFT_STORE_MAX_THREADS
  // Called after each stripe, and now and then while an input has nothing to read or an output no
  // room, by one thread at a time; counts bytes of data, total 0: unknown. Returning false stops
  // the call with WEFT_E_STOPPED. May be NULL.
  bool (*keep_on)(void *user, uint64_t done, uint64_t total);
  void *user;
} weft_store_options;

typedef enum weft_shard_state {
  WEFT_SHARD_GOOD,
  WEFT_SHARD_MISSING,
  WEFT_SHARD_UNREADABLE, // the system refused
  WEFT_SHARD_CORRUPT,    // no header, or a damaged one
  WEFT_SHARD_VERSION,    // of another format version
  WEFT_SHARD_FORGED,     // the header's authentication fails
  WEFT_SHARD_FOREIGN,    // of another file
  WEFT_SHARD_STALE,      // it missed an update, or went through a different one
  WEFT_SHARD_NEWER,      // it went through an update that too few others know of
  // Shards in the states below are still read from, chunk by chunk.
  WEFT_SHARD_TRUNCATED,
  WEFT_SHARD_OVERLONG,
  WEFT_SHARD_MISPLACED, // under the name of another shard
  WEFT_SHARD_STATES
} weft_shard_state;

const char *weft_shard_state_name(weft_shard_state state); // "stale"

typedef struct weft_store_shard {
  weft_shard_state state;           // as it was found
  char text[WEFT_STORE_TEXT_BYTES]; // "shard-003.weft: belongs to another file ..."; "" if nothing
  uint64_t corrupt_chunks;          // found in files that are read from
  uint64_t unread_chunks;           // of these, those that the system could not read
  uint64_t first_corrupt;           // their first stripe
  // errno with which the system withholds the file, whatever it holds (no permission, for example):
  // it is not replaced. 0: it does not.
  int read_error;
  // By the last weft_store_mend:
  uint64_t rewritten_chunks; // corrupt chunks rewritten in place
  int write_error;           // errno of a file that takes no writes or syncs; 0: none seen
  bool mended;               // everything found has been mended
  bool was_link;             // the rebuilt shard is in the folder, where a link was
} weft_store_shard;

enum { WEFT_STORE_LOST_RANGES = 64 };
typedef struct weft_store_lost {
  uint64_t first, last; // stripes
} weft_store_lost;

// What a call did and found. Counts accumulate over the calls on one store, but findings start
// afresh with each weft_store_mend, which reads everything; the error is the last call's.
typedef struct weft_store_report {
  char error[WEFT_STORE_TEXT_BYTES]; // why the call failed
  uint64_t data_bytes;               // of data read, written or checked
  uint64_t shard_bytes_read, shard_bytes_written;
  uint64_t corrupt_chunks, mended_chunks; // mended: in place, or in a rebuilt shard
  uint64_t mended_shards;                 // rebuilt
  // Stripes with more than m chunks lost; for a read, the first one that it met.
  uint64_t lost_stripes;
  // Stripes whose chunks are all sound, but whose parity does not belong to the data.
  uint64_t inconsistent_stripes;
  uint64_t first_inconsistent;
  weft_store_lost lost[WEFT_STORE_LOST_RANGES]; // the first ones, ascending
  size_t lost_count;
  bool lost_more; // there are more than fit
} weft_store_report;

typedef struct weft_store_info {
  weft_store_header header; // `shard` and `key` mean nothing here
  weft_store_geometry geometry;
  uint64_t shard_bytes;
  size_t usable;                  // shards that can be read from
  bool update_pending;            // there is a committed update that not all shards hold yet
  bool update_unknown;            // there may be one; only the key can tell
  bool authenticated;             // the headers were checked with the key
  const weft_store_shard *shards; // (k + m)
} weft_store_info;

// Encodes `input`, from its current position to its end, into shards in `folder`, which is created
// if necessary and must hold none. total: for keep_on. Errors: WEFT_E_STATE: the folder holds
// shards. An error after the commit says that the set has taken effect.
typedef struct weft_store_shape {
  const char *code; // a name of weft_code_options
  size_t k, m;
  uint64_t stripe_bytes; // of data; 0: the default. Rounded up to whole units of the code
} weft_store_shape;
weft_status weft_store_encode(const weft_store_options *options, const weft_store_shape *shape,
                              int input, uint64_t total, const char *folder,
                              weft_store_report *report);
// Returns the size of the chunks that an encode with this shape makes.
weft_status weft_store_shape_chunk(const weft_store_options *options, const weft_store_shape *shape,
                                   weft_store_report *report, size_t *chunk_bytes);

typedef struct weft_store weft_store;
typedef enum weft_store_access {
  WEFT_STORE_LOOK, // only for weft_store_get_info; works without the key
  WEFT_STORE_READ,
  WEFT_STORE_WRITE // also finishes what an interrupted call had committed
} weft_store_access;

// Opens a set. WEFT_E_DAMAGED: there is no set of shards; WEFT_E_VERSION: all shards have another
// format version than WEFT_STORE_VERSION, or a pending update does, or, for WEFT_STORE_WRITE, any
// shard; WEFT_E_KEY; WEFT_E_IO, including that another weft uses the folder. The options and the
// report must stay valid until the store is closed. If an update or a repair fails after its commit
// (its error says that it has taken effect), the next open finishes it: until the store is closed
// all further calls on it except weft_store_get_info return WEFT_E_STATE.
weft_status weft_store_open(const weft_store_options *options, const char *folder,
                            weft_store_access access, weft_store_report *report, weft_store **out);
void weft_store_close(weft_store *store); // accepts NULL
weft_store_info weft_store_get_info(const weft_store *store);

// Writes bytes [offset, offset + length) of the data to `output`; length UINT64_MAX: to the end.
// With `pipe` they are written in order and at the file's position; otherwise byte `offset` goes to
// the file's start. Only the chunks needed are read; of a stripe with losses k. WEFT_E_DAMAGED,
// WEFT_E_ARGUMENT: past the end.
weft_status weft_store_read(weft_store *store, uint64_t offset, uint64_t length, int output,
                            bool pipe);
// Writes the same bytes to a file that appears under its name complete, or not at all. A path that
// is not a regular file (a block device) is written in place. WEFT_E_ARGUMENT also: the path is a
// shard.
weft_status weft_store_decode(weft_store *store, uint64_t offset, uint64_t length,
                              const char *path);

typedef enum weft_store_care {
  WEFT_STORE_VERIFY, // reads everything, changes nothing
  WEFT_STORE_SCRUB,  // also rewrites corrupt chunks in place
  // Also rebuilds lost, foreign, stale and misplaced shards. If stripes are lost, it rebuilds what
  // is left of missing shards only, so that nothing is overwritten.
  WEFT_STORE_REPAIR
} weft_store_care;

// WEFT_E_DAMAGED: this call found something (VERIFY; also an update that is pending), or left
// something damaged. WEFT_E_IO: also if a shard's file takes no writes or syncs, or the system
// withholds it (read_error), but VERIFY only if it is needed; everything else has been mended then.
weft_status weft_store_mend(weft_store *store, weft_store_care care);

// Replaces the bytes from `offset` on with those of `input`, up to its end, and updates the parity.
// The length stays the same. Shards that are absent become stale. Stripes that are replaced
// completely are not read. total: expected bytes of the input; 0: unknown. Nothing is changed if it
// fails with WEFT_E_IO because the input had fewer bytes, or with WEFT_E_DAMAGED: in a stripe that
// is replaced in part too few chunks are sound, or corrupt chunks or outdated parity cannot be
// rebuilt because the others are inconsistent.
weft_status weft_store_update(weft_store *store, uint64_t offset, int input, uint64_t total);

#endif
