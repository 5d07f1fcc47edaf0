// SPDX-License-Identifier: Apache-2.0
// Where a source's bytes come from: a file, standard input, or UDP datagrams; cut into segments.
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
  uint64_t rate_bits_per_s; // 0: as it comes
  int64_t lag_us;           // live: how far behind it is played
  void (*wake)(void *user); // there is something to read
  void *user;
} weft_feed_options;

// NULL, and *error (g_free) says why.
weft_feed *weft_feed_open(const weft_feed_options *options, char **error);
void weft_feed_close(weft_feed *feed); // accepts NULL
// The file's length where it is one that can be read anywhere; else 0.
uint64_t weft_feed_bytes(const weft_feed *feed);
// What comes live: reads what there is and gives the engine what it takes. WEFT_E_IO:
// weft_feed_error says why.
weft_status weft_feed_pump(weft_feed *feed, weft_engine *engine, int64_t now_us);
// A segment of a file that the engine asked for.
weft_status weft_feed_load(weft_feed *feed, weft_engine *engine, uint64_t segment, int64_t now_us);
// Ends a stream that has no end of its own.
weft_status weft_feed_end(weft_feed *feed, weft_engine *engine, int64_t now_us);
// What tells a file from another, and from the same one with other bytes: its length, its number in
// the file system, when it was written and when it was changed in any way (ns). Zeros: no file.
void weft_feed_version(const weft_feed *feed, uint64_t out[WEFT_FEED_VERSION]);
bool weft_feed_ended(const weft_feed *feed);
const char *weft_feed_error(const weft_feed *feed);
uint64_t weft_feed_taken(const weft_feed *feed); // bytes given to the engine
// When to pump again though nothing comes; INT64_MAX: never.
int64_t weft_feed_deadline(const weft_feed *feed);

#ifdef __cplusplus
}
#endif
#endif
