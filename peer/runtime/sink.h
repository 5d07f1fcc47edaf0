// SPDX-License-Identifier: Apache-2.0
// Where a peer plays the stream to: a file, standard output, UDP datagrams, or HTTP clients.
#ifndef WEFT_PEER_SINK_H
#define WEFT_PEER_SINK_H

#include <glib.h>

#include "peer/runtime/http.h"
#include "weft/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_sink weft_sink;

typedef struct weft_sink_options {
  const char *output;       // FILE, "-", "udp://HOST:PORT", "http://:PORT/"
  void (*wake)(void *user); // there is room again
  // http: a client wants the stream from `position` on. False: that cannot be; else weft_sink_move.
  bool (*seek)(void *user, uint64_t position);
  void *user;
} weft_sink_options;

// Before there is a stream. Takes the port of http, where who asks waits for the stream; of others
// it looks whether they can be, and makes nothing yet. NULL: *error (g_free) says why they cannot.
weft_sink *weft_sink_new(const weft_sink_options *options, char **error);
// With the stream, before anything else but weft_sink_close. `length`: of one that can be had from
// anywhere, else 0. `paced`, http: there is no room before somebody has asked, nor before he has
// taken what he is owed. False: *error (g_free) says why.
bool weft_sink_open(weft_sink *sink, size_t segment_bytes, uint64_t length, bool paced,
                    char **error);
// Accepts NULL. WEFT_E_IO: the last bytes may not have been kept, which a file system may tell as
// late as this (NFS, quotas); *error (g_free) says why.
weft_status weft_sink_close(weft_sink *sink, char **error);
bool weft_sink_has_room(const weft_sink *sink);
bool weft_sink_asked(const weft_sink *sink); // http: somebody has asked for it; others: true
// Room for a segment, which weft_sink_wrote then takes: bytes from `position` in the stream on.
// over_us: for how long it plays (udp spreads it over that time); 0: not known, or as fast as it
// goes.
uint8_t *weft_sink_room(weft_sink *sink);
weft_status weft_sink_wrote(weft_sink *sink, uint64_t position, size_t bytes, int64_t over_us,
                            int64_t now_us);
// WEFT_E_IO: weft_sink_error says why.
weft_status weft_sink_pump(weft_sink *sink, int64_t now_us);
// What comes next may have segments of this length; only when there is room.
void weft_sink_resize(weft_sink *sink, size_t segment_bytes);
// What is written next is the stream from `position` on.
void weft_sink_move(weft_sink *sink, uint64_t position);
// Whether what is written can be read back, as far as that is known before there is a stream; and
// bytes of it into the segment's room. WEFT_E_IO: it cannot be read, or has become shorter.
bool weft_sink_rereadable(const weft_sink *sink);
weft_status weft_sink_reread(weft_sink *sink, uint64_t position, size_t bytes);
bool weft_sink_seekable(const weft_sink *sink); // clients may ask for any part of the stream
// Everything is out (http: all clients have it).
bool weft_sink_empty(const weft_sink *sink);
const char *weft_sink_error(const weft_sink *sink);
uint64_t weft_sink_bytes(const weft_sink *sink);
uint64_t weft_sink_taken(const weft_sink *sink); // http: what clients took, all together
int64_t weft_sink_deadline(const weft_sink *sink);
// No more will come: http answers end.
void weft_sink_end(weft_sink *sink);

#ifdef __cplusplus
}
#endif
#endif
