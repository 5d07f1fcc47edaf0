// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "peer/runtime/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "peer/runtime/kernel_address.h"
#include "peer/runtime/spread.h"
#include "weft/peer_node.h"

enum { LOOK_MS = 100 }; // between two attempts to open a FIFO that has no reader

struct weft_sink {
  weft_sink_options options;
  int fd;
  bool file, fifo, udp; // file: writing never blocks; fifo: fd is -1 until it has a reader
  weft_kernel_address to;
  socklen_t to_bytes;
  weft_http *http;
  uint64_t length;
  uint8_t *segment;
  size_t segment_bytes, held, at;
  weft_spread spread; // udp: datagrams of the segment
  uint64_t bytes;
  guint watch;
  char *error;
};

// Frees everything but the descriptor, which stays open.
static void free_sink(weft_sink *s) {
  if (s->watch)
    g_source_remove(s->watch);
  weft_http_free(s->http);
  g_free(s->segment);
  g_free(s->error);
  g_free(s);
}

static char *sentence(const weft_sink *s, const char *why) {
  const bool standard = strcmp(s->options.output, "-") == 0;
  return g_strdup_printf("%s: %s", standard ? "standard output" : s->options.output, why);
}

static bool refuse(const weft_sink *s, char **error, const char *why) {
  *error = sentence(s, why);
  return false;
}

// Parse what follows http:// and udp://. They return NULL and set *address, or say what is wrong.
static const char *parse_http(const char *output, weft_address *address) {
  g_autofree char *authority = g_strdup(output + strlen("http://"));
  char *slash = strchr(authority, '/');
  if (slash && slash[1])
    return "must have no path";
  if (slash)
    *slash = '\0';
  return weft_address_parse(authority, address) && address->port ? NULL
                                                                 : "is not http://[ADDRESS]:PORT/";
}

static const char *parse_udp(const char *output, weft_address *address) {
  return weft_address_parse(output + strlen("udp://"), address) && address->port
             ? NULL
             : "is not udp://HOST:PORT";
}

// Checks that the file, or else its folder, can be written.
static const char *file_possible(const char *output) {
  g_autofree char *folder = g_path_get_dirname(output);
  if (strstr(output, "://"))
    return "is not a file, udp:// or http://";
  if (g_file_test(output, G_FILE_TEST_IS_DIR))
    return g_strerror(EISDIR);
  const bool there = access(output, F_OK) == 0;
  return access(there ? output : folder, there ? W_OK : W_OK | X_OK) == 0 ? NULL
                                                                          : g_strerror(errno);
}

static bool prepare(weft_sink *s, char **error) {
  const char *output = s->options.output, *wrong = NULL;
  weft_address address;
  if (g_str_has_prefix(output, "http://"))
    wrong = parse_http(output, &address);
  else if (g_str_has_prefix(output, "udp://"))
    wrong = parse_udp(output, &address);
  else if (strcmp(output, "-") != 0)
    wrong = file_possible(output);
  if (wrong)
    return refuse(s, error, wrong);
  if (!g_str_has_prefix(output, "http://"))
    return true;
  g_autofree char *why = NULL;
  s->http = weft_http_new(&(weft_http_options){.listen = address,
                                               .stream = true,
                                               .seek = s->options.seek,
                                               .room = s->options.wake,
                                               .user = s->options.user},
                          &why);
  return s->http || refuse(s, error, why);
}

weft_sink *weft_sink_new(const weft_sink_options *options, char **error) {
  weft_sink *s = g_new0(weft_sink, 1);
  s->options = *options;
  s->fd = -1;
  if (prepare(s, error))
    return s;
  free_sink(s);
  return NULL;
}

// Opens the output file. ENXIO: a FIFO without a reader, for which an ordinary open would wait, and
// the node with it.
static int open_file(weft_sink *s) {
  const char *path = s->options.output;
  struct stat about;
  s->fifo = stat(path, &about) == 0 && S_ISFIFO(about.st_mode);
  const int make = O_CREAT | O_TRUNC | O_CLOEXEC;
  int fd = -1;
  if (s->fifo)
    fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  else if (!weft_sink_rereadable(s) ||
           ((fd = open(path, O_RDWR | make, 0666)) < 0 && errno == EACCES)) // no permission to read
    fd = open(path, O_WRONLY | make, 0666);
  s->file = fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
  return fd;
}

static bool open_udp(weft_sink *s, char **error) {
  const sa_family_t family = weft_kernel_family();
  weft_address address;
  const char *wrong = parse_udp(s->options.output, &address);
  s->udp = true;
  if (wrong)
    return refuse(s, error, wrong);
  if (!(s->to_bytes = weft_to_kernel(family, &address, &s->to)))
    return refuse(s, error, g_strerror(EAFNOSUPPORT));
  s->fd = weft_kernel_datagrams(family);
  if (s->fd < 0)
    return refuse(s, error, g_strerror(errno));
  const int on = 1; // a user who names a broadcast address means it
  (void)setsockopt(s->fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof on);
  return true;
}

void weft_sink_resize(weft_sink *s, size_t segment_bytes) {
  // For udp, the end of the segment before may still be held, so it never shrinks.
  s->segment_bytes = MAX(s->segment_bytes, segment_bytes);
  s->segment = s->spread.data = g_realloc(s->segment, s->segment_bytes + WEFT_SPREAD_BYTES);
}

bool weft_sink_open(weft_sink *s, size_t segment_bytes, uint64_t length, bool paced, char **error) {
  s->length = length;
  weft_sink_resize(s, segment_bytes);
  if (s->http) {
    weft_http_begin(s->http, length, paced);
    return true;
  }
  if (g_str_has_prefix(s->options.output, "udp://"))
    return open_udp(s, error);
  // For standard output, a duplicate that can be closed.
  s->fd =
      strcmp(s->options.output, "-") == 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0) : open_file(s);
  return s->fd >= 0 || (s->fifo && errno == ENXIO) || refuse(s, error, g_strerror(errno));
}

weft_status weft_sink_close(weft_sink *s, char **error) {
  if (!s)
    return WEFT_OK;
  const bool closed = s->fd < 0 || close(s->fd) == 0;
  if (!closed)
    *error = sentence(s, g_strerror(errno));
  free_sink(s);
  return closed ? WEFT_OK : WEFT_E_IO;
}

bool weft_sink_asked(const weft_sink *s) { return !s->http || weft_http_asked(s->http); }

bool weft_sink_has_room(const weft_sink *s) {
  return s->udp ? weft_spread_has_room(&s->spread)
                : s->held == 0 && (!s->http || weft_http_has_room(s->http));
}
uint8_t *weft_sink_room(weft_sink *s) { return s->udp ? weft_spread_room(&s->spread) : s->segment; }
const char *weft_sink_error(const weft_sink *s) { return s->error; }
uint64_t weft_sink_bytes(const weft_sink *s) { return s->bytes - (s->held - s->at); }
size_t weft_sink_owed(const weft_sink *s) { return s->fd < 0 ? 0 : s->held - s->at; }
uint64_t weft_sink_taken(const weft_sink *s) { return s->http ? weft_http_taken(s->http) : 0; }
int64_t weft_sink_deadline(const weft_sink *s) {
  const int64_t due_us = weft_spread_deadline(&s->spread);
  return due_us ? due_us : INT64_MAX;
}
bool weft_sink_empty(const weft_sink *s) {
  return s->spread.at == s->spread.held && s->held == 0 && (!s->http || weft_http_drained(s->http));
}
void weft_sink_end(weft_sink *s) {
  s->spread.ended = true;
  if (s->http)
    weft_http_end(s->http);
}

void weft_sink_move(weft_sink *s, uint64_t position) {
  s->held = s->at = 0;
  weft_spread_drop(&s->spread);
  if (s->http)
    weft_http_move(s->http, position);
}

bool weft_sink_seekable(const weft_sink *s) { return s->http && s->length; }

static gboolean on_writable(gint fd, GIOCondition condition, gpointer user) {
  weft_sink *s = user;
  (void)fd, (void)condition;
  s->watch = 0;
  s->options.wake(s->options.user);
  return G_SOURCE_REMOVE;
}

static gboolean on_look(gpointer user) { return on_writable(-1, 0, user); }

static weft_status failed(weft_sink *s) {
  g_free(s->error);
  s->error = sentence(s, g_strerror(errno));
  return WEFT_E_IO;
}

// Writes to a file, pipe or FIFO. A pipe that poll calls writable takes PIPE_BUF bytes without
// blocking. A FIFO is opened once it has a reader.
static weft_status pump_stream(weft_sink *s) {
  if (s->fd < 0 && (s->fd = open_file(s)) < 0) {
    if (errno != ENXIO)
      return failed(s);
    if (!s->watch)
      s->watch = g_timeout_add(LOOK_MS, on_look, s);
    return WEFT_OK;
  }
  while (s->at < s->held) {
    struct pollfd ready = {.fd = s->fd, .events = POLLOUT};
    if (!s->file && poll(&ready, 1, 0) <= 0) {
      if (!s->watch)
        s->watch = g_unix_fd_add(s->fd, G_IO_OUT | G_IO_HUP | G_IO_ERR, on_writable, s);
      return WEFT_OK;
    }
    const size_t left = s->held - s->at;
    const ssize_t n =
        write(s->fd, s->segment + s->at, s->file ? left : MIN(left, (size_t)PIPE_BUF));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (n < 0)
      return failed(s);
    s->at += (size_t)n;
  }
  s->held = s->at = 0;
  return WEFT_OK;
}

static void pump_udp(weft_sink *s, int64_t now_us) {
  const uint8_t *data;
  size_t bytes;
  // Errors are ignored: a live output need not have a listener.
  while (weft_spread_next(&s->spread, now_us, &data, &bytes))
    (void)sendto(s->fd, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL, &s->to.any, s->to_bytes);
}

weft_status weft_sink_pump(weft_sink *s, int64_t now_us) {
  if (s->udp)
    pump_udp(s, now_us);
  return s->udp || s->held == 0 ? WEFT_OK : pump_stream(s);
}

bool weft_sink_rereadable(const weft_sink *s) {
  const char *path = s->options.output;
  struct stat about;
  return strcmp(path, "-") != 0 && !strstr(path, "://") &&
         (stat(path, &about) != 0 || S_ISREG(about.st_mode));
}

// Files take everything at once, so the segment's room is free.
weft_status weft_sink_reread(weft_sink *s, uint64_t position, size_t bytes) {
  for (size_t held = 0; held < bytes;) {
    const ssize_t n =
        s->file ? pread(s->fd, s->segment + held, bytes - held, (off_t)(position + held)) : 0;
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return WEFT_E_IO;
    held += (size_t)n;
  }
  return WEFT_OK;
}

weft_status weft_sink_wrote(weft_sink *s, uint64_t position, size_t bytes, int64_t over_us,
                            int64_t now_us) {
  s->bytes += bytes;
  if (s->http) {
    weft_http_write(s->http, s->segment, bytes);
    return WEFT_OK;
  }
  if (s->udp) {
    weft_spread_put(&s->spread, position, bytes, over_us, now_us);
  } else {
    s->held = bytes;
    s->at = 0;
  }
  return weft_sink_pump(s, now_us);
}
