// SPDX-License-Identifier: Apache-2.0
// Decides which clients may hold a connection to the HTTP server, and for how long. A place is the
// record of one connection: either answered, or waiting for a request. A connection costs its
// client nothing, so those that ask for nothing are limited in time and number, and never keep out
// one that asks. Answers are shared out among addresses.
#ifndef WEFT_PEER_HTTP_PLACES_H
#define WEFT_PEER_HTTP_PLACES_H

#include <glib.h>
#include <microhttpd.h>
#include <stdbool.h>

#include "weft/peer_session.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  WEFT_PLACES_ANSWERS = 64,
  WEFT_PLACES_WAITING = 64,
  // Connections that were cut count until the library has closed them.
  WEFT_PLACES_CONNECTIONS = WEFT_PLACES_ANSWERS + WEFT_PLACES_WAITING + 64
};

typedef struct weft_place { // one connection
  struct MHD_Connection *connection;
  weft_address from;
  int fd;
  gint64 since_us; // when it was accepted, its last answer ended or its request came
  gint64 half_us;  // suspended: since when it has been half closed by the client; 0: it is not
  gint64 moved_us; // when the client was last seen to take what the kernel holds for it
  int held;        // bytes that the kernel held when last looked at
  bool asked;      // it has sent a request before
  bool answered;   // a request is being answered; else one is waited for
  bool streams;    // that answer is a stream, without limit of time
  bool suspended;
  bool cut; // it is to be closed
} weft_place;

typedef struct weft_places {
  GPtrArray *all;
  gint64 request_us, silence_us; // limits: first request; next one, or reading
} weft_places;

void weft_places_init(weft_places *places, gint64 request_us, gint64 silence_us);
void weft_places_clear(weft_places *places); // after the server has stopped
// Callbacks for MHD_OPTION_NOTIFY_CONNECTION and _COMPLETED; user: the places.
void weft_places_notify(void *user, struct MHD_Connection *connection, void **context,
                        enum MHD_ConnectionNotificationCode code);
void weft_places_completed(void *user, struct MHD_Connection *connection, void **state,
                           enum MHD_RequestTerminationCode code);
weft_place *weft_place_of(struct MHD_Connection *connection);
// Takes a place for answering a request. Returns false if all answers are taken by others.
bool weft_places_answer(weft_places *places, weft_place *place);
void weft_place_cut(weft_place *place); // closes it at the library's next turn
void weft_place_suspend(weft_place *place);
void weft_place_resume(weft_place *place); // does nothing if it is not suspended
// Whether it is suspended and its client has closed its side: either it is gone, or it only reads
// on.
bool weft_place_may_be_gone(const weft_place *place);
// Returns how many bytes of answers the kernel holds that the client has not acknowledged yet.
int weft_place_held(const weft_place *place);
// Cuts connections whose time is over, and suspended ones whose client has gone. Call it now and
// then.
void weft_places_look(weft_places *places, gint64 now_us);

#ifdef __cplusplus
}
#endif
#endif
