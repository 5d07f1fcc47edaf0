// SPDX-License-Identifier: Apache-2.0
// A small HTTP server on the GLib main loop, using libmicrohttpd. It serves either pages, made on
// request, or one stream, which every client receives from its current position. If the stream's
// length is known, a client may request any range, and the stream continues there.
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
  bool stream; // "/" is the stream; otherwise `page` makes the pages
  // For a stream that can be read from any position: its length, else 0. `seek` is called when a
  // client wants bytes that are not kept. It returns false if it cannot go there; otherwise
  // weft_http_move follows.
  uint64_t length;
  bool (*seek)(void *user, uint64_t position);
  void (*room)(void *user); // called when weft_http_has_room becomes true; may be NULL
  // Returns the page of `path` (g_free), its type and HTTP status; NULL: there is no such page.
  char *(*page)(void *user, const char *path, const char **type, unsigned *status);
  void *user;
  // Time limits; 0: 10 s, 60 s, 10 minutes. request_ms: for the first request of a connection.
  // silence_ms: for the next request, and for reading nothing although data is owed. end_ms: for
  // reading the rest after the stream's end.
  unsigned request_ms, silence_ms, end_ms;
} weft_http_options;

// Returns NULL on failure; *error (g_free) then says why. It runs on the thread's default main
// context.
weft_http *weft_http_new(const weft_http_options *options, char **error);
void weft_http_free(weft_http *http); // accepts NULL
// Announces a stream, before its first bytes; until then, its clients wait. `length`: its length if
// it can be read from any position, else 0. `paced`: its readers set the pace (weft_http_has_room).
void weft_http_begin(weft_http *http, uint64_t length, bool paced);
// Whether more of the stream may be written. For a paced stream: false until a client has asked for
// it, while even its fastest reader is 4 MiB behind, and for silence_ms after its last reader has
// gone.
bool weft_http_has_room(const weft_http *http);
bool weft_http_asked(const weft_http *http); // a client has asked for the stream
// Adds the stream's next bytes. The last 8 MiB are kept for clients; a client that falls further
// behind is cut off.
void weft_http_write(weft_http *http, const uint8_t *data, size_t bytes);
// Continues the stream from `position`; nothing before it is kept.
void weft_http_move(weft_http *http, uint64_t position);
void weft_http_end(weft_http *http);           // nothing follows: answers end once all is sent
bool weft_http_drained(const weft_http *http); // no client is owed any, or end_ms is over
// Bytes of the stream that all clients together have taken, without those that the kernel still
// holds.
uint64_t weft_http_taken(const weft_http *http);
uint16_t weft_http_port(const weft_http *http);

#ifdef __cplusplus
}
#endif
#endif
