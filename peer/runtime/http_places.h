// SPDX-License-Identifier: Apache-2.0
// Who may hold a connection to the HTTP server, and for how long. A connection costs its client
// nothing, so those that ask for nothing are bounded in time and number, and never keep out one
// that asks; answers are shared out among addresses.
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
  // Those that were cut still count until the library has closed them.
  WEFT_PLACES_CONNECTIONS = WEFT_PLACES_ANSWERS + WEFT_PLACES_WAITING + 64
};

typedef struct weft_place { // of one connection
  struct MHD_Connection *connection;
  weft_address from;
  int fd;
  gint64 since_us; // waiting: when it was accepted, or its last answer ended; else its request
  gint64 half_us;  // suspended: since when it has said that it says no more; 0: it has not
  gint64 moved_us; // when it was last seen to take some of what the kernel holds for it
  int held;        // bytes of that, when last looked at
  bool asked;      // at least once
  bool answered;   // a request of its is; else one is waited for
  bool streams;    // that answer takes as long as it takes
  bool suspended;
  bool cut; // to be closed
} weft_place;

typedef struct weft_places {
  GPtrArray *all;
  gint64 request_us, silence_us; // for the first request; for the next, or to take some
} weft_places;

void weft_places_init(weft_places *places, gint64 request_us, gint64 silence_us);
void weft_places_clear(weft_places *places); // after the server
// MHD_OPTION_NOTIFY_CONNECTION and _COMPLETED; user: the places.
void weft_places_notify(void *user, struct MHD_Connection *connection, void **context,
                        enum MHD_ConnectionNotificationCode code);
void weft_places_completed(void *user, struct MHD_Connection *connection, void **state,
                           enum MHD_RequestTerminationCode code);
weft_place *weft_place_of(struct MHD_Connection *connection);
// A request came. False: it cannot be answered now, all answers are taken by others.
bool weft_places_answer(weft_places *places, weft_place *place);
void weft_place_cut(weft_place *place); // closes it at the library's next turn
void weft_place_suspend(weft_place *place);
void weft_place_resume(weft_place *place); // unless it is not suspended
// Suspended, and has said that it says no more: as who has gone does, and some who read on.
bool weft_place_may_be_gone(const weft_place *place);
// Bytes of answers that the kernel holds, and that it has not read yet.
int weft_place_held(const weft_place *place);
// Cuts those whose time is over, and those that are suspended and went away. Now and then.
void weft_places_look(weft_places *places, gint64 now_us);

#ifdef __cplusplus
}
#endif
#endif
