// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "peer/runtime/http_places.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "peer/runtime/kernel_address.h"
#include "weft/peer_node.h"

void weft_places_init(weft_places *places, gint64 request_us, gint64 silence_us) {
  *places = (weft_places){.all = g_ptr_array_new_with_free_func(g_free),
                          .request_us = request_us,
                          .silence_us = silence_us};
}

void weft_places_clear(weft_places *places) { g_ptr_array_unref(places->all); }

weft_place *weft_place_of(struct MHD_Connection *connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static weft_place *place_at(const weft_places *places, guint i) {
  return g_ptr_array_index(places->all, i);
}

// --- Closing

// Closes with a reset: what the client has not read is useless now, and a reset frees the kernel's
// memory of it.
void weft_place_cut(weft_place *place) {
  const struct linger reset = {.l_onoff = 1};
  if (place->cut)
    return;
  place->cut = true;
  (void)setsockopt(place->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  (void)shutdown(place->fd, SHUT_RDWR);
  weft_place_resume(place);
}

void weft_place_suspend(weft_place *place) {
  place->suspended = true;
  MHD_suspend_connection(place->connection);
}

void weft_place_resume(weft_place *place) {
  if (place->suspended)
    MHD_resume_connection(place->connection);
  place->suspended = false;
  place->half_us = 0;
}

// --- Going

// Returns the poll events of a suspended connection, of which the library reports nothing.
static short ended(const weft_place *place) {
  struct pollfd about = {.fd = place->fd, .events = POLLRDHUP};
  return place->suspended && poll(&about, 1, 0) > 0 ? about.revents : 0;
}

bool weft_place_may_be_gone(const weft_place *place) { return ended(place) != 0; }

// Whether a suspended client has gone. One that closed its side may still read: the next bytes sent
// show that, if they come soon.
static bool went(weft_place *place, gint64 most_us, gint64 now_us) {
  const short how = ended(place);
  if (how & ~POLLRDHUP)
    return true;
  if (!how)
    return false;
  place->half_us = place->half_us ? place->half_us : now_us;
  return now_us - place->half_us > most_us;
}

int weft_place_held(const weft_place *place) {
  int held = 0;
  return ioctl(place->fd, SIOCOUTQ, &held) == 0 ? held : 0;
}

// Notes whether the client reads; once the library has given the whole answer to the kernel, this
// is the only sign.
static void see_it_move(weft_place *place, gint64 now_us) {
  const int held = weft_place_held(place);
  if (held < place->held)
    place->moved_us = now_us;
  place->held = held;
}

// --- Room

static bool counts(const weft_place *place, bool answered) {
  return !place->cut && place->answered == answered;
}

static size_t count_of(const weft_places *places, const weft_place *like, bool answered) {
  size_t count = 0;
  for (guint i = 0; i < places->all->len; i++)
    count += counts(place_at(places, i), answered) &&
             (!like || weft_address_same_origin(&place_at(places, i)->from, &like->from));
  return count;
}

// Returns a place of the address with most places, its oldest or newest; NULL if none has more than
// `most`.
static weft_place *one_of_many(const weft_places *places, bool answered, bool newest, size_t most) {
  weft_place *best = NULL;
  for (guint i = 0; i < places->all->len; i++) {
    weft_place *place = place_at(places, i);
    if (!counts(place, answered))
      continue;
    if (best && weft_address_same_origin(&place->from, &best->from)) {
      if (newest == (place->since_us > best->since_us))
        best = place;
      continue;
    }
    const size_t count = count_of(places, place, answered);
    if (count > most) {
      best = place;
      most = count;
    }
  }
  return best;
}

// Takes a new connection. Newcomers ask at once, so if too many wait, the one that has waited
// longest is cut, of the address with most.
static void opened(weft_places *places, struct MHD_Connection *connection, void **context) {
  const union MHD_ConnectionInfo *fd =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  const union MHD_ConnectionInfo *from =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  weft_place *place = g_new0(weft_place, 1);
  *place = (weft_place){
      .connection = connection, .fd = fd->connect_fd, .since_us = g_get_monotonic_time()};
  weft_from_kernel(from->client_addr, &place->from);
  if (count_of(places, NULL, false) >= WEFT_PLACES_WAITING)
    weft_place_cut(one_of_many(places, false, false, 0));
  g_ptr_array_add(places->all, place);
  *context = place;
}

void weft_places_notify(void *user, struct MHD_Connection *connection, void **context,
                        enum MHD_ConnectionNotificationCode code) {
  weft_places *places = user;
  if (code == MHD_CONNECTION_NOTIFY_STARTED)
    opened(places, connection, context);
  else
    (void)g_ptr_array_remove_fast(places->all, *context);
}

void weft_places_completed(void *user, struct MHD_Connection *connection, void **state,
                           enum MHD_RequestTerminationCode code) {
  weft_place *place = weft_place_of(connection);
  (void)user, (void)state, (void)code;
  place->answered = place->streams = false;
  place->asked = true;
  place->since_us = g_get_monotonic_time();
}

static weft_place *one_that_may_be_gone(const weft_places *places) {
  for (guint i = 0; i < places->all->len; i++)
    if (counts(place_at(places, i), true) && weft_place_may_be_gone(place_at(places, i)))
      return place_at(places, i);
  return NULL;
}

bool weft_places_answer(weft_places *places, weft_place *place) {
  if (place->answered)
    return true;
  if (count_of(places, NULL, true) >= WEFT_PLACES_ANSWERS) {
    weft_place *gone = one_that_may_be_gone(places);
    if (!gone)
      gone = one_of_many(places, true, true, count_of(places, place, true) + 1);
    if (!gone)
      return false;
    weft_place_cut(gone);
  }
  place->answered = true;
  place->since_us = g_get_monotonic_time();
  return true;
}

// --- Time

void weft_places_look(weft_places *places, gint64 now_us) {
  for (guint i = 0; i < places->all->len; i++) {
    weft_place *place = place_at(places, i);
    const gint64 most_us =
        place->answered || place->asked ? places->silence_us : places->request_us;
    see_it_move(place, now_us);
    if ((!place->streams && now_us - MAX(place->since_us, place->moved_us) > most_us) ||
        went(place, places->silence_us, now_us))
      weft_place_cut(place);
  }
}
