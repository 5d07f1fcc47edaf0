// SPDX-License-Identifier: Apache-2.0
// Files kept as k + m shard files in a folder, any k of which give the file back (docs/format.md).
//
// Memory is bounded by threads stripes of k + m chunks, whatever the file's size, and in an update
// or after one that was cut off by 24 to 48 bytes for each chunk in its journal. A header may ask
// for 256 chunks of 1 GiB. What a call writes becomes valid at one moment: a process killed before
// it leaves the old state, after it the new one.
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
  weft_ctx *ctx;           // best with one thread: stripes are what is shared out
  const weft_store_io *io; // NULL: the system's
  const uint8_t *key;      // (WEFT_STORE_KEY_BYTES), the user's; NULL: none
  size_t threads;          // stripes at work at once; 0: one; at most WEFT_STORE_MAX_THREADS
  // After each stripe, and now and then while an input has nothing to read or an output no room,
  // from one thread at a time; bytes of data, total 0: unknown. False stops the call with
  // WEFT_E_STOPPED. May be NULL.
  bool (*keep_on)(void *user, uint64_t done, uint64_t total);
  void *user;
} weft_store_options;

typedef enum weft_shard_state {
  WEFT_SHARD_GOOD,
  WEFT_SHARD_MISSING,
  WEFT_SHARD_UNREADABLE, // the system refused
  WEFT_SHARD_CORRUPT,    // no header, or one that is not intact
  WEFT_SHARD_VERSION,    // of a later format
  WEFT_SHARD_FORGED,     // the header's authentication fails
  WEFT_SHARD_FOREIGN,    // of another file
  WEFT_SHARD_STALE,      // an update went past it, or it went through another one
  WEFT_SHARD_NEWER,      // it went through an update that too few others know of
  // The others are read from, chunk by chunk.
  WEFT_SHARD_TRUNCATED,
  WEFT_SHARD_OVERLONG,
  WEFT_SHARD_MISPLACED, // under the name of another shard
  WEFT_SHARD_STATES
} weft_shard_state;

const char *weft_shard_state_name(weft_shard_state state); // "stale"

typedef struct weft_store_shard {
  weft_shard_state state;           // as it was found
  char text[WEFT_STORE_TEXT_BYTES]; // "shard-003.weft: belongs to another file ..."; "" when good
  uint64_t corrupt_chunks;          // found, of files that are read from
  uint64_t unread_chunks;           // of these: the system would not read them
  uint64_t first_corrupt;           // their first stripe
  // By the last weft_store_mend:
  uint64_t rewritten_chunks; // of the corrupt ones, where they lie
  int write_error;           // the errno of a file that takes no writes; 0: none was met
  bool mended;               // all that was found is so no more
} weft_store_shard;

enum { WEFT_STORE_LOST_RANGES = 64 };
typedef struct weft_store_lost {
  uint64_t first, last; // stripes
} weft_store_lost;

// What a call did and found. Counts go on from call to call on one store, but what was found
// begins anew with each weft_store_mend, which reads everything; the error is the last call's.
typedef struct weft_store_report {
  char error[WEFT_STORE_TEXT_BYTES]; // why the call failed
  uint64_t data_bytes;               // of data read, written or checked
  uint64_t shard_bytes_read, shard_bytes_written;
  uint64_t corrupt_chunks, mended_chunks; // mended: where they lie, or in a shard made anew
  uint64_t mended_shards;                 // made anew
  uint64_t lost_stripes;         // with more than m chunks gone; of a read the first that it met
  uint64_t inconsistent_stripes; // all chunks sound, and parity does not belong to the data
  uint64_t first_inconsistent;
  weft_store_lost lost[WEFT_STORE_LOST_RANGES]; // the first of them, ascending
  size_t lost_count;
  bool lost_more; // than there is room for
} weft_store_report;

typedef struct weft_store_info {
  weft_store_header header; // `shard` and `key` mean nothing here
  weft_store_geometry geometry;
  uint64_t shard_bytes;
  size_t usable;                  // shards that can be read from
  bool update_pending;            // a committed update that the shards do not all hold yet
  bool update_unknown;            // there may be one, which only the key tells
  bool authenticated;             // the headers were checked under the key
  const weft_store_shard *shards; // (k + m)
} weft_store_info;

// Encodes what `input` has, from where it stands to its end, into shards in `folder`, which is made
// if need be and must hold none. total: for keep_on. Errors: WEFT_E_STATE: the folder holds shards.
// One that comes after its moment says that the set holds.
typedef struct weft_store_shape {
  const char *code; // a name of weft_code_options
  size_t k, m;
  uint64_t stripe_bytes; // of data; 0: the default. Rounded up to whole units of the code
} weft_store_shape;
weft_status weft_store_encode(const weft_store_options *options, const weft_store_shape *shape,
                              int input, uint64_t total, const char *folder,
                              weft_store_report *report);

typedef struct weft_store weft_store;
typedef enum weft_store_access {
  WEFT_STORE_LOOK, // for weft_store_get_info alone; the key may be absent
  WEFT_STORE_READ,
  WEFT_STORE_WRITE // also finishes what an interrupted call had committed
} weft_store_access;

// WEFT_E_DAMAGED: no set of shards there; WEFT_E_VERSION: all are of another format version than
// WEFT_STORE_VERSION, or a pending update is, or for WEFT_STORE_WRITE one shard; WEFT_E_KEY;
// WEFT_E_IO, among them that another weft is at work in the folder. The options and the report must
// stay until the store is closed. Of an update or a repair that fails after its moment (its error
// says that what it did holds) the rest is for the next open to finish: until the store is closed
// all further calls on it but weft_store_get_info end with WEFT_E_STATE.
weft_status weft_store_open(const weft_store_options *options, const char *folder,
                            weft_store_access access, weft_store_report *report, weft_store **out);
void weft_store_close(weft_store *store); // accepts NULL
weft_store_info weft_store_get_info(const weft_store *store);

// Bytes [offset, offset + length) of the data, to `output`; length UINT64_MAX: to the end. In order
// and at the file's position where `pipe`; otherwise byte `offset` goes to the file's start. Only
// the chunks needed are read, of a stripe with losses k. WEFT_E_DAMAGED, WEFT_E_ARGUMENT: past the
// end.
weft_status weft_store_read(weft_store *store, uint64_t offset, uint64_t length, int output,
                            bool pipe);
// The same bytes as a file that appears under its name complete, or not at all. A path that is no
// regular file (a block device) is written in place. WEFT_E_ARGUMENT also: the path is a shard.
weft_status weft_store_decode(weft_store *store, uint64_t offset, uint64_t length,
                              const char *path);

typedef enum weft_store_care {
  WEFT_STORE_VERIFY, // reads everything, changes nothing
  WEFT_STORE_SCRUB,  // also rewrites corrupt chunks where they lie
  // Also makes lost, foreign, stale and misplaced shards anew; where stripes are lost, of what is
  // left only those that are missing, so that nothing is overwritten.
  WEFT_STORE_REPAIR
} weft_store_care;

// WEFT_E_DAMAGED: this call found something (VERIFY), or left something wrong. WEFT_E_IO: also
// where a shard's file takes no writes or syncs; all else has been mended then.
weft_status weft_store_mend(weft_store *store, weft_store_care care);

// Puts what `input` has, to its end, in the place of the bytes from `offset` on, and brings parity
// up to date. The length stays. Shards that are not there become stale. Nothing is read of a stripe
// that it covers. total: what the input is to have; 0: unknown. Nothing is changed where it fails
// with WEFT_E_IO: the input had less; or WEFT_E_DAMAGED: of a stripe that it covers in part too few
// chunks are sound, or corrupt ones, or parity of the past, cannot be rebuilt as the others
// contradict each other.
weft_status weft_store_update(weft_store *store, uint64_t offset, int input, uint64_t total);

#endif
