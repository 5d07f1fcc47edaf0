// SPDX-License-Identifier: Apache-2.0
// Reads a source's bytes from a file, standard input or UDP datagrams, and cuts them into segments.
#ifndef WEFT_PEER_FEED_H
#define WEFT_PEER_FEED_H

#include <glib.h>

#include "weft/peer_engine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_feed weft_feed;

enum { WEFT_FEED_VERSION = 4 };

typedef struct weft_feed_options {
  const char *input; // FILE, "-", "udp://:PORT" or "udp://ADDRESS:PORT"
  size_t segment_bytes;
  uint64_t rate_bits_per_s; // 0, or udp://: as fast as it comes
  int64_t lag_us;           // live: how far behind the source it is played
  void (*wake)(void *user); // there is something to read
  void *user;
} weft_feed_options;

// Returns NULL on failure; *error (g_free) then says why.
weft_feed *weft_feed_open(const weft_feed_options *options, char **error);
void weft_feed_close(weft_feed *feed); // accepts NULL
// The length of a file that can be read at any position; else 0.
uint64_t weft_feed_bytes(const weft_feed *feed);
// For an input that is read in order: reads what is there and gives the engine as much as it takes.
// WEFT_E_IO: weft_feed_error says why.
weft_status weft_feed_pump(weft_feed *feed, weft_engine *engine, int64_t now_us);
// Reads a segment of a file that the engine asked for.
weft_status weft_feed_load(weft_feed *feed, weft_engine *engine, uint64_t segment, int64_t now_us);
// Ends a stream that has no end of its own, after what has arrived by UDP.
weft_status weft_feed_end(weft_feed *feed, weft_engine *engine, int64_t now_us);
// Identifies a file and its contents: its length, inode number, and the times of its last write and
// its last change of any kind (ns). Zeros: not a file.
void weft_feed_version(const weft_feed *feed, uint64_t out[WEFT_FEED_VERSION]);
bool weft_feed_ended(const weft_feed *feed);
const char *weft_feed_error(const weft_feed *feed);
uint64_t weft_feed_taken(const weft_feed *feed); // bytes given to the engine
// Returns how many datagrams were lost because they were not read in time, as of now.
uint64_t weft_feed_dropped(weft_feed *feed);
// When to pump again even if nothing arrives; INT64_MAX: never.
int64_t weft_feed_deadline(const weft_feed *feed);

#ifdef __cplusplus
}
#endif
#endif
