// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "peer/runtime/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "peer/runtime/kernel_address.h"
#include "weft/peer_node.h"

enum { UDP_ROOM = 65536, UDP_SOCKET_BYTES = 4 << 20 };
enum { TURN_BYTES = 4 << 20 }; // read, hashed and signed before neighbours are served again
// PAUSE_US: a longer silence of the input is a pause, which does not count as part of a segment's
// time. CATCH_UP_US: an input that is late by this much at most is made up for, faster than the
// rate; after a longer delay, the pace starts afresh.
enum { PAUSE_US = 500000, CATCH_UP_US = 250000 };

struct weft_feed {
  weft_feed_options options;
  int fd;
  bool udp;
  bool end_seen, ended;
  uint64_t bytes; // length of a file that can be read at any position
  uint64_t taken;
  uint64_t dropped;        // datagrams
  uint32_t kernel_dropped; // the kernel's count of them, as last seen
  uint8_t *segment;        // being filled: segment_bytes, and room for a datagram more
  size_t held;
  int64_t first_us; // when its first byte came, moved on by pauses since then
  int64_t last_us;  // when bytes last came
  int64_t next_us;  // pace: when the next segment may be taken; 0: at once
  int64_t due_us;   // when to pump again; 0: not because of the pace
  guint watch;
  char *error;
};

static int open_udp(const char *text, int *error) {
  weft_address address;
  const int on = 1, room = UDP_SOCKET_BYTES;
  if (!weft_address_parse(text, &address) || address.port == 0) {
    *error = EDESTADDRREQ;
    return -1;
  }
  const sa_family_t family = weft_kernel_family();
  const int fd = weft_kernel_datagrams(family);
  if (fd < 0) {
    *error = errno;
    return -1;
  }
  (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  *error = weft_kernel_bind(fd, family, &address);
  if (*error == 0)
    *error = weft_kernel_join(fd, family, &address);
  if (*error == 0)
    return fd;
  close(fd);
  return -1;
}

weft_feed *weft_feed_open(const weft_feed_options *options, char **error) {
  weft_feed *f = g_new0(weft_feed, 1);
  struct stat about;
  int code = 0;
  f->options = *options;
  f->udp = g_str_has_prefix(options->input, "udp://");
  if (f->udp)
    f->fd = open_udp(options->input + strlen("udp://"), &code);
  else if (strcmp(options->input, "-") == 0)
    f->fd = STDIN_FILENO;
  else
    f->fd = open(options->input, O_RDONLY | O_NONBLOCK | O_CLOEXEC); // may be a FIFO without writer
  if (f->fd < 0 && !code)
    code = errno;
  if (!code && !f->udp && fstat(f->fd, &about) == 0) {
    const bool file = S_ISREG(about.st_mode) && f->fd != STDIN_FILENO;
    f->bytes = file ? (uint64_t)about.st_size : 0;
    code = S_ISDIR(about.st_mode) ? EISDIR : file && f->bytes == 0 ? ENODATA : 0;
  }
  if (code) {
    *error = g_strdup_printf("%s: %s", options->input,
                             code == EDESTADDRREQ ? "is not udp://[ADDRESS]:PORT"
                             : code == ENODATA    ? "is empty"
                                                  : g_strerror(code));
    weft_feed_close(f);
    return NULL;
  }
  f->segment = g_malloc(options->segment_bytes + UDP_ROOM);
  return f;
}

void weft_feed_close(weft_feed *f) {
  if (!f)
    return;
  if (f->watch)
    g_source_remove(f->watch);
  if (f->fd > STDIN_FILENO)
    close(f->fd);
  g_free(f->segment);
  g_free(f->error);
  g_free(f);
}

uint64_t weft_feed_bytes(const weft_feed *f) { return f->bytes; }

static uint64_t nanoseconds(const struct timespec *t) {
  return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

void weft_feed_version(const weft_feed *f, uint64_t out[WEFT_FEED_VERSION]) {
  struct stat about;
  memset(out, 0, WEFT_FEED_VERSION * sizeof *out);
  if (f->bytes == 0 || fstat(f->fd, &about) != 0)
    return;
  out[0] = f->bytes;
  out[1] = (uint64_t)about.st_ino;
  out[2] = nanoseconds(&about.st_mtim);
  out[3] = nanoseconds(&about.st_ctim);
}

bool weft_feed_ended(const weft_feed *f) { return f->ended; }
const char *weft_feed_error(const weft_feed *f) { return f->error; }
uint64_t weft_feed_taken(const weft_feed *f) { return f->taken; }

uint64_t weft_feed_dropped(weft_feed *f) {
  uint32_t about[SK_MEMINFO_VARS];
  socklen_t bytes = sizeof about;
  if (!f->udp || f->ended || getsockopt(f->fd, SOL_SOCKET, SO_MEMINFO, about, &bytes) != 0 ||
      bytes <= SK_MEMINFO_DROPS * sizeof *about)
    return f->dropped;
  f->dropped += about[SK_MEMINFO_DROPS] - f->kernel_dropped; // their difference, as it wraps round
  f->kernel_dropped = about[SK_MEMINFO_DROPS];
  return f->dropped;
}

int64_t weft_feed_deadline(const weft_feed *f) { return f->due_us ? f->due_us : INT64_MAX; }

static gboolean on_readable(gint fd, GIOCondition condition, gpointer user) {
  weft_feed *f = user;
  (void)fd, (void)condition;
  f->watch = 0;
  f->options.wake(f->options.user);
  return G_SOURCE_REMOVE;
}

static weft_status failed(weft_feed *f, const char *why) {
  g_free(f->error);
  f->error = g_strdup_printf(
      "%s: %s", strcmp(f->options.input, "-") == 0 ? "standard input" : f->options.input, why);
  return WEFT_E_IO;
}

// Fills the segment with what is there now, without blocking.
static weft_status fill(weft_feed *f, int64_t now_us) {
  const size_t segment = f->options.segment_bytes;
  while (!f->end_seen && f->held < segment) {
    struct pollfd ready = {.fd = f->fd, .events = POLLIN};
    if (poll(&ready, 1, 0) <= 0) {
      if (!f->watch)
        f->watch = g_unix_fd_add(f->fd, G_IO_IN | G_IO_HUP | G_IO_ERR, on_readable, f);
      return WEFT_OK;
    }
    const size_t room = f->udp ? UDP_ROOM : segment - f->held;
    const ssize_t n = read(f->fd, f->segment + f->held, room);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (n < 0)
      return failed(f, g_strerror(errno));
    if (f->held == 0)
      f->first_us = now_us;
    else if (now_us - f->last_us > PAUSE_US)
      f->first_us += now_us - f->last_us;
    f->last_us = now_us;
    f->held += (size_t)n;
    f->end_seen = n == 0 && !f->udp;
  }
  return WEFT_OK;
}

static bool paced(weft_feed *f, int64_t now_us) {
  f->due_us = now_us < f->next_us ? f->next_us : 0;
  return f->due_us == 0;
}

// A UDP sender keeps its own pace, and does not wait: what is left in the socket gets lost.
static void pace(weft_feed *f, size_t bytes) {
  const uint64_t rate = f->options.rate_bits_per_s;
  if (rate == 0 || f->udp)
    return;
  const int64_t late_us = f->next_us ? f->first_us - f->next_us : INT64_MAX;
  if (late_us > CATCH_UP_US)
    f->next_us = f->first_us;
  f->next_us += (int64_t)((double)bytes * 8e6 / (double)rate);
}

static weft_status give(weft_feed *f, weft_engine *engine, int64_t now_us) {
  const size_t bytes = MIN(f->held, f->options.segment_bytes);
  // A segment that took long to fill does not count as late for that: most of the lag is left for
  // its way.
  const int64_t at_us = MAX(f->first_us, now_us - f->options.lag_us / 3);
  WEFT_TRY(weft_engine_source_put(engine, f->segment, bytes, at_us, now_us));
  pace(f, bytes);
  f->taken += bytes;
  f->held -= bytes;
  memmove(f->segment, f->segment + bytes, f->held); // the rest of a datagram
  f->first_us = now_us;
  f->ended = f->end_seen && f->held == 0 && bytes < f->options.segment_bytes;
  return WEFT_OK;
}

weft_status weft_feed_pump(weft_feed *f, weft_engine *engine, int64_t now_us) {
  const uint64_t turn_ends = f->taken + TURN_BYTES;
  while (!f->ended && weft_engine_source_ready(engine) && paced(f, now_us)) {
    if (f->taken >= turn_ends) {
      f->due_us = now_us;
      return WEFT_OK;
    }
    WEFT_TRY(fill(f, now_us));
    if (f->held >= f->options.segment_bytes || (f->end_seen && f->held)) {
      WEFT_TRY(give(f, engine, now_us));
    } else if (f->end_seen) {
      f->ended = true;
      return weft_engine_source_end(engine, now_us);
    } else {
      return WEFT_OK;
    }
  }
  return WEFT_OK;
}

weft_status weft_feed_load(weft_feed *f, weft_engine *engine, uint64_t segment, int64_t now_us) {
  const uint64_t start = segment * f->options.segment_bytes;
  const size_t wanted = (size_t)MIN(f->options.segment_bytes, f->bytes - MIN(start, f->bytes));
  size_t held = 0;
  while (held < wanted) {
    const ssize_t n = pread(f->fd, f->segment + held, wanted - held, (off_t)(start + held));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return failed(f, g_strerror(errno));
    if (n == 0)
      return failed(f, "was truncated while it was served");
    held += (size_t)n;
  }
  f->taken += held;
  return weft_engine_load(engine, segment, f->segment, held, now_us);
}

weft_status weft_feed_end(weft_feed *f, weft_engine *engine, int64_t now_us) {
  if (f->ended)
    return WEFT_OK;
  const uint64_t turn_ends = f->taken + TURN_BYTES; // more may come for ever
  while (f->udp && f->taken < turn_ends && weft_engine_source_ready(engine)) {
    WEFT_TRY(fill(f, now_us));
    if (f->held < f->options.segment_bytes)
      break;
    WEFT_TRY(give(f, engine, now_us));
  }
  (void)weft_feed_dropped(f); // what comes from now on is not missing
  f->end_seen = true;
  while (f->held && weft_engine_source_ready(engine))
    WEFT_TRY(give(f, engine, now_us));
  if (f->ended)
    return WEFT_OK;
  f->ended = true;
  return weft_engine_source_end(engine, now_us);
}
