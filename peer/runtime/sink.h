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
  // http: a client wants the stream from `position` on. Returns false if that is impossible;
  // otherwise weft_sink_move follows.
  bool (*seek)(void *user, uint64_t position);
  void *user;
} weft_sink_options;

// Makes a sink, before there is a stream. For http, takes the port, at which requests wait for the
// stream; for other outputs, checks that they are possible but creates nothing yet. Returns NULL if
// not; *error (g_free) says why.
weft_sink *weft_sink_new(const weft_sink_options *options, char **error);
// Opens the sink when the stream is known; only weft_sink_close may be called before. `length`: of
// a stream that can be read from any position, else 0. `paced` (http): there is room only once a
// client has asked, and when the clients have taken what they are owed. Returns false on failure;
// *error (g_free) says why.
bool weft_sink_open(weft_sink *sink, size_t segment_bytes, uint64_t length, bool paced,
                    char **error);
// Closes and frees it; accepts NULL. WEFT_E_IO: the last bytes may be lost, which some file systems
// report only now (NFS, quotas); *error (g_free) says why.
weft_status weft_sink_close(weft_sink *sink, char **error);
bool weft_sink_has_room(const weft_sink *sink);
bool weft_sink_asked(const weft_sink *sink); // http: a client has asked for it; others: true
// Returns room for a segment, which weft_sink_wrote then takes: `bytes` from `position` in the
// stream on. over_us: how long it plays (udp spreads it over that time); 0: unknown, or as fast as
// possible.
uint8_t *weft_sink_room(weft_sink *sink);
weft_status weft_sink_wrote(weft_sink *sink, uint64_t position, size_t bytes, int64_t over_us,
                            int64_t now_us);
// Writes what is held, as far as the output takes it. WEFT_E_IO: weft_sink_error says why.
weft_status weft_sink_pump(weft_sink *sink, int64_t now_us);
// Prepares for segments of this length. Only while there is room.
void weft_sink_resize(weft_sink *sink, size_t segment_bytes);
// Continues the stream from `position`.
void weft_sink_move(weft_sink *sink, uint64_t position);
// weft_sink_rereadable: whether what is written can be read back, as far as that is known before
// there is a stream. weft_sink_reread: reads such bytes into the segment's room. WEFT_E_IO: they
// cannot be read, or the file has become shorter.
bool weft_sink_rereadable(const weft_sink *sink);
weft_status weft_sink_reread(weft_sink *sink, uint64_t position, size_t bytes);
bool weft_sink_seekable(const weft_sink *sink); // clients may ask for any part of the stream
// Everything has been written (http: all clients have it).
bool weft_sink_empty(const weft_sink *sink);
const char *weft_sink_error(const weft_sink *sink);
uint64_t weft_sink_bytes(const weft_sink *sink); // written; http, udp: also what is held
// Bytes held for the reader of a pipe or FIFO, which it can take at any time. 0: for other outputs,
// or as long as there is no reader.
size_t weft_sink_owed(const weft_sink *sink);
uint64_t weft_sink_taken(const weft_sink *sink); // http: what all clients together have taken
int64_t weft_sink_deadline(const weft_sink *sink);
// Nothing more follows: http answers end.
void weft_sink_end(weft_sink *sink);

#ifdef __cplusplus
}
#endif
#endif
