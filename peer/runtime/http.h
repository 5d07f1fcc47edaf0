// SPDX-License-Identifier: Apache-2.0
// A small HTTP server on the GLib main loop, by libmicrohttpd: pages that are made when asked for,
// or one stream that every client receives from where it is now. Where the stream's length is known
// a client may ask for any range of it, and the stream goes on there.
#ifndef WEFT_PEER_HTTP_H
#define WEFT_PEER_HTTP_H

#include <glib.h>

#include "weft/peer_session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_http weft_http;

typedef struct weft_http_options {
  weft_address listen;
  bool stream; // "/" is the stream; else `page` makes what is asked for
  // Of a stream that can be had from anywhere: its length, else 0, and who is asked to go on there
  // when a client wants what is not kept: false if that cannot be, else weft_http_move follows.
  uint64_t length;
  bool (*seek)(void *user, uint64_t position);
  void (*room)(void *user); // weft_http_has_room again; may be NULL
  // The page of `path` (g_free), its type and HTTP status; NULL: there is none.
  char *(*page)(void *user, const char *path, const char **type, unsigned *status);
  void *user;
  // How long a new connection may take for its first request, and one that asked before for the
  // next, or for reading nothing of what it is owed; and after the stream's end for reading what is
  // left. 0: 10 s, 60 s, 10 minutes.
  unsigned request_ms, silence_ms, end_ms;
} weft_http_options;

// NULL, and *error (g_free) says why. Lives on the thread's default main context.
weft_http *weft_http_new(const weft_http_options *options, char **error);
void weft_http_free(weft_http *http); // accepts NULL
// Before a stream's first bytes, until which who asks waits: its length, if it can be had from
// anywhere, else 0; and whether it is paced by who reads it.
void weft_http_begin(weft_http *http, uint64_t length, bool paced);
// False of a paced stream that nobody has asked for yet, whose quickest reader is owed 4 MiB, or
// whose last one has gone a moment (silence_ms) ago.
bool weft_http_has_room(const weft_http *http);
bool weft_http_asked(const weft_http *http); // somebody has asked for the stream
// The stream's next bytes. Kept for clients: the last 8 MiB; who falls behind is cut off.
void weft_http_write(weft_http *http, const uint8_t *data, size_t bytes);
// The next bytes are those from `position` on; nothing before is kept.
void weft_http_move(weft_http *http, uint64_t position);
void weft_http_end(weft_http *http);           // no more: answers end when all is sent
bool weft_http_drained(const weft_http *http); // no client has anything left to get, or had time
// Bytes of the stream that all clients together took: not what the kernel still holds for them.
uint64_t weft_http_taken(const weft_http *http);
uint16_t weft_http_port(const weft_http *http);

#ifdef __cplusplus
}
#endif
#endif
