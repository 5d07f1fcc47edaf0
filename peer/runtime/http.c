// SPDX-License-Identifier: Apache-2.0
#include "peer/runtime/http.h"

#include <errno.h>
#include <glib-unix.h>
#include <microhttpd.h>
#include <poll.h>
#include <string.h>

#include "peer/runtime/http_answer.h"
#include "peer/runtime/http_media.h"
#include "peer/runtime/http_places.h"
#include "peer/runtime/kernel_address.h"

enum { KEPT = 8 << 20, BLOCK = 16384 };
enum { REQUEST_MS = 10000, SILENCE_MS = 60000, END_MS = 600000, LOOK_MS = 200 };

typedef struct client {
  weft_http *http;
  weft_place *place;
  uint64_t at, end; // positions in the stream: its next byte, and where its answer ends
  gint64 since_us;  // when its answer began
  gint64 took_us;   // when it last took something, or had nothing to take
  bool left;        // the stream has moved elsewhere
} client;

struct weft_http {
  weft_http_options options;
  struct MHD_Daemon *daemon;
  int epoll_fd, listen_fd;
  guint watch, timer, look;
  guint pause;            // until it fires, the daemon is not watched
  uint8_t *kept;          // the last KEPT bytes of the stream: byte i is at i % KEPT
  uint64_t base, written; // nothing before `base` is kept
  uint64_t given;         // bytes given to all clients
  bool ended, running;
  bool paced, asked, placed; // readers set the pace; a client has asked; a client got an answer
  gint64 gone_us;            // when the last reader went
  gint64 end_us, left_us;    // for reading the rest after the end: how long, and until when
  weft_places places;
  GPtrArray *clients; // those that read the stream
  // The stream's type, by its first bytes. NULL before enough of them are here: requests are
  // suspended until then.
  const char *type;
};

static gboolean on_time(gpointer user);
static gboolean on_look(gpointer user);
static gboolean on_pause(gpointer user);
static gboolean on_ready(gint fd, GIOCondition condition, gpointer user);

static void watch(weft_http *http) {
  http->watch = g_unix_fd_add(http->epoll_fd, G_IO_IN, on_ready, http);
}

static void stop(guint *source) {
  if (*source)
    g_source_remove(*source);
  *source = 0;
}

// Whether a connection waits to be accepted, none is open, and it still is not accepted: no
// descriptor is left for it. While connections are open, the library waits until one ends;
// otherwise it would retry all the time.
static bool starved(const weft_http *http) {
  struct pollfd about = {.fd = http->listen_fd, .events = POLLIN};
  return http->places.all->len == 0 && poll(&about, 1, 0) > 0;
}

// Lets the library work, and sets a timer for when it wants to work again.
static void work(weft_http *http) {
  MHD_UNSIGNED_LONG_LONG wait_ms;
  if (http->running || http->pause)
    return; // called from within one of its callbacks, or useless now
  http->running = true;
  (void)MHD_run(http->daemon);
  http->running = false;
  stop(&http->timer);
  if (starved(http)) { // or a connection has come just now
    http->running = true;
    (void)MHD_run(http->daemon);
    http->running = false;
  }
  if (starved(http)) {
    stop(&http->watch);
    http->pause = g_timeout_add(LOOK_MS, on_pause, http);
    return;
  }
  if (MHD_get_timeout(http->daemon, &wait_ms) == MHD_YES)
    http->timer = g_timeout_add((guint)MIN(wait_ms, 60000), on_time, http);
  if (http->places.all->len && !http->look)
    http->look = g_timeout_add(LOOK_MS, on_look, http);
}

static gboolean on_time(gpointer user) {
  weft_http *http = user;
  http->timer = 0;
  work(http);
  return G_SOURCE_REMOVE;
}

static gboolean on_pause(gpointer user) {
  weft_http *http = user;
  http->pause = 0;
  watch(http);
  work(http);
  return G_SOURCE_REMOVE;
}

static gboolean on_ready(gint fd, GIOCondition condition, gpointer user) {
  (void)fd, (void)condition;
  work(user);
  return G_SOURCE_CONTINUE;
}

// --- The stream

static uint64_t oldest(const weft_http *http) {
  return http->written - http->base > KEPT ? http->written - KEPT : http->base;
}

// Before the first answer, what is kept is for the client that asked. A client that goes may
// return, as players do that look at the beginning first; after silence_ms, it is not waited for
// any more.
bool weft_http_has_room(const weft_http *http) {
  if (!http->paced || http->ended)
    return true;
  if (http->placed && !http->clients->len)
    return g_get_monotonic_time() - http->gone_us > http->places.silence_us;
  uint64_t first = http->base; // what the fastest client needs next
  for (guint i = 0; i < http->clients->len; i++)
    first = MAX(first, ((const client *)g_ptr_array_index(http->clients, i))->at);
  return http->asked && http->written - first <= KEPT / 2;
}

bool weft_http_asked(const weft_http *http) { return http->asked; }

// Reports that there is room, if there was none before.
static void tell_room(const weft_http *http, bool had) {
  if (!had && http->options.room && weft_http_has_room(http))
    http->options.room(http->options.user);
}

// Whether what the client needs next will not come: it was too slow, or the stream has moved
// elsewhere. A stream that moved back may reach that position again, or never, so clients do not
// wait for that.
static bool lost(const client *c) { return c->at < c->end && (c->left || c->at < oldest(c->http)); }

static ssize_t give(void *user, uint64_t position, char *out, size_t room) {
  client *c = user;
  weft_http *http = c->http;
  (void)position;
  if (c->place->cut || lost(c))
    return MHD_CONTENT_READER_END_WITH_ERROR;
  if (c->at == c->end)
    return MHD_CONTENT_READER_END_OF_STREAM;
  if (c->at >= http->written && http->ended)
    return c->at < http->options.length ? MHD_CONTENT_READER_END_WITH_ERROR
                                        : MHD_CONTENT_READER_END_OF_STREAM;
  c->took_us = g_get_monotonic_time();
  if (c->at >= http->written) {
    weft_place_suspend(c->place);
    return 0;
  }
  size_t n = (size_t)MIN(MIN(http->written, c->end) - c->at, room);
  const size_t from = (size_t)(c->at % KEPT);
  n = MIN(n, KEPT - from);
  memcpy(out, http->kept + from, n);
  const bool had_room = weft_http_has_room(http);
  c->at += n;
  http->given += n;
  tell_room(http, had_room);
  return (ssize_t)n;
}

static void gone(void *user) {
  client *c = user;
  weft_http *http = c->http;
  const bool had_room = weft_http_has_room(http);
  g_ptr_array_remove_fast(http->clients, c);
  g_free(c);
  http->gone_us = g_get_monotonic_time();
  tell_room(http, had_room);
}

static bool time_is_over(const weft_http *http, gint64 now_us) {
  return http->ended && now_us >= http->left_us;
}

// Cuts off clients that have taken nothing of what is there for long, that are owed bytes no longer
// kept, or that have not read everything long after the end. The library asks for more bytes only
// once it has sent the last ones, so it would not notice.
static gboolean on_look(gpointer user) {
  weft_http *http = user;
  const gint64 now_us = g_get_monotonic_time();
  weft_places_look(&http->places, now_us);
  for (guint i = 0; i < http->clients->len; i++) {
    const client *c = g_ptr_array_index(http->clients, i);
    const gint64 moved_us = MAX(c->took_us, c->place->moved_us);
    const bool stuck = !c->place->suspended && now_us - moved_us > http->places.silence_us;
    const bool late = time_is_over(http, now_us) && c->since_us < http->left_us;
    if (lost(c) || stuck || late)
      weft_place_cut(c->place);
  }
  work(http);
  if (http->places.all->len)
    return G_SOURCE_CONTINUE;
  http->look = 0;
  return G_SOURCE_REMOVE;
}

static bool at_hand(const weft_http *http, uint64_t position) {
  return position >= oldest(http) && position <= http->written;
}

static bool watched(const weft_http *http) {
  for (guint i = 0; i < http->clients->len; i++)
    if (!weft_place_may_be_gone(((const client *)g_ptr_array_index(http->clients, i))->place))
      return true;
  return false;
}

// Returns where a client begins: at the beginning while the stream is shorter than half of KEPT,
// otherwise at its current position. MPEG-TS begins at a packet, which is found by the bytes: the
// stream may begin within one, and continue within one after a gap.
static uint64_t where_it_is(const weft_http *http) {
  const bool all = http->base == 0 && http->written < KEPT / 2;
  uint64_t at;
  if (weft_http_is_ts(http->type) &&
      (all ? weft_http_first_packet(http->kept, KEPT, 0, http->written, &at)
           : weft_http_last_packet(http->kept, KEPT, oldest(http), http->written, &at)))
    return at;
  return all ? 0 : http->written;
}

// Sets where an answer begins: at what the client asks for if the length is known, otherwise at the
// current position. A paced stream is a file, of which an end alone is useless. Returns the HTTP
// status: OK, partial, or why it is impossible.
static unsigned place_client(weft_http *http, client *c, const char *range, bool body) {
  bool partial;
  c->end = UINT64_MAX;
  if (http->paced)
    return oldest(http) == 0 ? MHD_HTTP_OK : MHD_HTTP_GONE;
  c->at = where_it_is(http);
  if (!http->options.length || (!range && watched(http))) // by another client
    return MHD_HTTP_OK;
  if (!weft_http_range(range, http->options.length, &c->at, &c->end, &partial) ||
      (body && !at_hand(http, c->at) && !http->options.seek(http->options.user, c->at)))
    return MHD_HTTP_RANGE_NOT_SATISFIABLE;
  return partial ? MHD_HTTP_PARTIAL_CONTENT : MHD_HTTP_OK;
}

static void describe(const weft_http *http, struct MHD_Response *response, const client *c,
                     unsigned status) {
  if (http->type)
    (void)MHD_add_response_header(response, "Content-Type", http->type);
  (void)MHD_add_response_header(response, "Cache-Control", "no-store");
  (void)MHD_add_response_header(response, "Access-Control-Allow-Origin", "*");
  if (http->options.length)
    (void)MHD_add_response_header(response, "Accept-Ranges", "bytes");
  if (status != MHD_HTTP_PARTIAL_CONTENT)
    return;
  char text[96];
  g_snprintf(text, sizeof text,
             "bytes %" G_GUINT64_FORMAT "-%" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT, c->at,
             c->end - 1, http->options.length);
  (void)MHD_add_response_header(response, "Content-Range", text);
}

static enum MHD_Result refuse_stream(const weft_http *http, struct MHD_Connection *connection,
                                     unsigned status) {
  weft_place_of(connection)->streams = false;
  if (status == MHD_HTTP_RANGE_NOT_SATISFIABLE)
    return weft_http_refuse_range(connection, http->options.length);
  return weft_http_refuse(connection, status, NULL, NULL,
                          "the start of the stream is no longer available\n");
}

// Whether a request waits for the first bytes. Those of a paced stream come only once a client
// wants to read it, which a client that sends HEAD may do after that.
static bool waits(const weft_http *http, bool body) {
  return !http->type && (body || !http->paced);
}

static enum MHD_Result answer_stream(weft_http *http, struct MHD_Connection *connection,
                                     bool body) {
  weft_place *place = weft_place_of(connection);
  place->streams = true;
  if (body && !http->asked) {
    http->asked = true;
    tell_room(http, false);
  }
  if (waits(http, body)) {
    weft_place_suspend(place);
    return MHD_YES;
  }
  const char *range = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Range");
  client *c = g_new0(client, 1);
  c->http = http;
  c->place = place;
  c->since_us = c->took_us = g_get_monotonic_time();
  const unsigned status = place_client(http, c, range, body);
  if (status != MHD_HTTP_OK && status != MHD_HTTP_PARTIAL_CONTENT) {
    g_free(c);
    return refuse_stream(http, connection, status);
  }
  const uint64_t size = c->end == UINT64_MAX ? MHD_SIZE_UNKNOWN : c->end - c->at;
  g_ptr_array_add(http->clients, c);
  http->placed = http->placed || body;
  struct MHD_Response *response = MHD_create_response_from_callback(size, BLOCK, give, c, gone);
  if (!response) {
    gone(c);
    return MHD_NO;
  }
  describe(http, response, c, status);
  const enum MHD_Result result = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return result;
}

// Handles the header of a request. A body would be read for as long as it comes, so it is refused.
static enum MHD_Result begin_request(struct MHD_Connection *connection, const char *method) {
  const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
  if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
    return weft_http_refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Allow", "GET, HEAD",
                            "GET only\n");
  if ((length && strcmp(length, "0") != 0) ||
      MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Transfer-Encoding"))
    return weft_http_refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, NULL, NULL, "no body\n");
  return MHD_YES;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_bytes, void **state) {
  static int seen;
  weft_http *http = user;
  weft_place *place = weft_place_of(connection);
  const char *type = weft_http_text;
  unsigned status = MHD_HTTP_OK;
  (void)version, (void)body;
  if (place->cut)
    return MHD_NO;
  if (!*state) { // only the header is here
    *state = &seen;
    return begin_request(connection, method);
  }
  *body_bytes = 0;
  if (!weft_places_answer(&http->places, place))
    return weft_http_refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "Retry-After", "5",
                            "too many connections\n");
  if (http->options.stream && strcmp(path, "/") == 0)
    return answer_stream(http, connection, strcmp(method, "GET") == 0);
  char *text =
      http->options.page ? http->options.page(http->options.user, path, &type, &status) : NULL;
  if (!text)
    return weft_http_answer(connection, MHD_HTTP_NOT_FOUND, type, g_strdup("not found\n"));
  return weft_http_answer(connection, status, type, text);
}

// --- Life

static void resume_all(weft_http *http) {
  for (guint i = 0; i < http->places.all->len; i++)
    weft_place_resume(g_ptr_array_index(http->places.all, i));
}

static struct MHD_Daemon *start(weft_http *http, const weft_address *listen) {
  const sa_family_t family = weft_kernel_family();
  const unsigned dual = family == AF_INET6 ? MHD_USE_DUAL_STACK : 0;
  weft_kernel_address at;
  errno = 0;
  if (weft_to_kernel(family, listen, &at) == 0) {
    errno = EAFNOSUPPORT;
    return NULL;
  }
  return MHD_start_daemon(
      MHD_USE_EPOLL | dual | MHD_ALLOW_SUSPEND_RESUME, listen->port, NULL, NULL, on_request, http,
      MHD_OPTION_SOCK_ADDR, &at.any, MHD_OPTION_CONNECTION_LIMIT, (unsigned)WEFT_PLACES_CONNECTIONS,
      MHD_OPTION_NOTIFY_CONNECTION, weft_places_notify, &http->places, MHD_OPTION_NOTIFY_COMPLETED,
      weft_places_completed, &http->places, MHD_OPTION_END);
}

weft_http *weft_http_new(const weft_http_options *options, char **error) {
  weft_http *http = g_new0(weft_http, 1);
  http->options = *options;
  http->clients = g_ptr_array_new();
  weft_places_init(&http->places,
                   1000 * (gint64)(options->request_ms ? options->request_ms : REQUEST_MS),
                   1000 * (gint64)(options->silence_ms ? options->silence_ms : SILENCE_MS));
  http->end_us = 1000 * (gint64)(options->end_ms ? options->end_ms : END_MS);
  if (options->stream)
    http->kept = g_malloc(KEPT);
  http->daemon = start(http, &options->listen);
  const union MHD_DaemonInfo *info =
      http->daemon ? MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
  http->epoll_fd = info ? info->epoll_fd : -1;
  info = info ? MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_LISTEN_FD) : NULL;
  if (!info) {
    *error = g_strdup(errno ? g_strerror(errno) : "the HTTP server could not start");
    weft_http_free(http);
    return NULL;
  }
  http->listen_fd = info->listen_fd;
  watch(http);
  work(http);
  return http;
}

void weft_http_free(weft_http *http) {
  if (!http)
    return;
  stop(&http->watch);
  stop(&http->timer);
  stop(&http->look);
  stop(&http->pause);
  http->options.room = NULL;
  resume_all(http); // no connection may be suspended when the library stops
  if (http->daemon)
    MHD_stop_daemon(http->daemon);
  g_ptr_array_unref(http->clients);
  weft_places_clear(&http->places);
  g_free(http->kept);
  g_free(http);
}

uint16_t weft_http_port(const weft_http *http) {
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_BIND_PORT);
  return info ? info->port : 0;
}

static void resume(weft_http *http) {
  for (guint i = 0; i < http->clients->len; i++) {
    client *c = g_ptr_array_index(http->clients, i);
    if (c->place->suspended)
      c->took_us = g_get_monotonic_time();
  }
  resume_all(http);
  work(http); // does nothing while a request is being answered: the library goes on after that
}

static void know_type(weft_http *http, bool more) {
  if (!http->type)
    http->type = weft_http_type_of(http->kept, KEPT, http->base, http->written, more);
}

void weft_http_begin(weft_http *http, uint64_t length, bool paced) {
  http->options.length = length;
  http->paced = paced;
  resume(http); // those that sent HEAD for a paced stream
}

void weft_http_write(weft_http *http, const uint8_t *data, size_t bytes) {
  while (bytes) {
    const size_t to = (size_t)(http->written % KEPT), n = MIN(bytes, KEPT - to);
    memcpy(http->kept + to, data, n);
    http->written += n;
    data += n;
    bytes -= n;
  }
  know_type(http, true);
  resume(http);
}

void weft_http_move(weft_http *http, uint64_t position) {
  http->base = http->written = position;
  http->ended = false;
  for (guint i = 0; i < http->clients->len; i++) {
    client *c = g_ptr_array_index(http->clients, i);
    c->left = c->left || c->at != position;
  }
  resume(http); // `give` ends those that waited elsewhere
}

void weft_http_end(weft_http *http) {
  if (!http->ended)
    http->left_us = g_get_monotonic_time() + http->end_us;
  http->ended = true;
  know_type(http, false);
  resume(http);
}

uint64_t weft_http_taken(const weft_http *http) {
  uint64_t held = 0;
  for (guint i = 0; i < http->clients->len; i++) {
    const client *c = g_ptr_array_index(http->clients, i);
    held += (uint64_t)weft_place_held(c->place);
  }
  return http->given > held ? http->given - held : 0;
}

bool weft_http_drained(const weft_http *http) {
  if (time_is_over(http, g_get_monotonic_time()))
    return true;
  for (guint i = 0; i < http->clients->len; i++) {
    const client *c = g_ptr_array_index(http->clients, i);
    if (c->at < MIN(http->written, c->end))
      return false;
  }
  return true;
}
