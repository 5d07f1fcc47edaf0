// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "peer/runtime/port_map.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <glib-unix.h>

#include "kernels/pool.h"
#include "lib/big_endian.h"
#include "peer/runtime/kernel_address.h"

// A router that restarted has forgotten the port, so it is renewed after half of its lease. The
// lease is short because a program that dies leaves the port open until it ends.
enum { LEASE_S = 1200, RETRY_S = 60, RENEW_LEAST_S = 10, CLOSE_S = 3 };

// Shared by the owner and the thread; the last of them frees it.
struct weft_port_map {
  weft_port_map_options options;
  guint watch; // belongs to the owner
  int news_fd; // an eventfd that signals an event
  pthread_mutex_t lock;
  pthread_cond_t changed; // uses the monotonic clock
  bool stop, over;        // under the lock, like all that follows
  bool abandoned;         // the owner no longer waits for the end
  bool fresh;             // the owner has not received the event
  weft_port_map_event event;
};

static void destroy(weft_port_map *m) {
  pthread_cond_destroy(&m->changed);
  pthread_mutex_destroy(&m->lock);
  close(m->news_fd);
  free(m);
}

// --- Events

static gboolean on_news(gint fd, GIOCondition condition, gpointer user) {
  weft_port_map *m = user;
  eventfd_t count;
  (void)condition;
  (void)eventfd_read(fd, &count);
  pthread_mutex_lock(&m->lock);
  const weft_port_map_event event = m->event;
  const bool fresh = m->fresh;
  m->fresh = false;
  pthread_mutex_unlock(&m->lock);
  if (fresh)
    m->options.event(m->options.user, &event);
  return G_SOURCE_CONTINUE;
}

static void tell(weft_port_map *m, const weft_port_map_event *event) {
  pthread_mutex_lock(&m->lock);
  m->event = *event;
  m->fresh = true;
  pthread_mutex_unlock(&m->lock);
  (void)eventfd_write(m->news_fd, 1);
}

// RFC 1918, RFC 6598 (shared by a provider's customers), RFC 3927, and this machine.
static bool is_private(const weft_address *address) {
  static const struct {
    uint8_t net[4], bits;
  } nets[] = {{{10}, 8},        {{172, 16}, 12}, {{192, 168}, 16}, {{100, 64}, 10},
              {{169, 254}, 16}, {{127}, 8},      {{0}, 8}};
  const uint8_t *ip = address->ip + WEFT_V4_PREFIX_BYTES;
  const uint32_t value = weft_get32(ip);
  for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
    const uint32_t net = weft_get32(nets[i].net);
    if ((value ^ net) >> (32 - nets[i].bits) == 0)
      return true;
  }
  return false;
}

static weft_port_map_event event_of(weft_router_answer answer, const weft_router_port *port) {
  weft_port_map_event e = {.answer = answer};
  if (answer == WEFT_ROUTER_OPENED) {
    e.way = port->way;
    e.outside = port->outside;
    e.nested = is_private(&port->outside);
  }
  return e;
}

static bool same(const weft_port_map_event *a, const weft_port_map_event *b) {
  return a->answer == b->answer && a->way == b->way && a->outside.port == b->outside.port &&
         memcmp(a->outside.ip, b->outside.ip, sizeof a->outside.ip) == 0;
}

// --- The thread

static struct timespec in_seconds(gint64 seconds) {
  struct timespec at;
  (void)clock_gettime(CLOCK_MONOTONIC, &at);
  at.tv_sec += (time_t)seconds;
  return at;
}

// Waits until the flag is set, or for that long; returns the flag.
static bool wait_for(weft_port_map *m, const bool *flag, gint64 seconds) {
  const struct timespec end = in_seconds(seconds);
  while (!*flag && pthread_cond_timedwait(&m->changed, &m->lock, &end) == 0)
    ;
  return *flag;
}

// In seconds. A mapping without end is treated as having our lease: the router may restart.
static uint32_t lease(const weft_router_port *port) {
  return port->lease_s && port->lease_s < LEASE_S ? port->lease_s : LEASE_S;
}

// Asks the router, reports what has changed, and returns the seconds until the next request.
static gint64 ask(weft_port_map *m, weft_router_port *port, weft_port_map_event *told,
                  gint64 *until_us) {
  const gint64 now_us = g_get_monotonic_time();
  const weft_router_answer answer = weft_router_open(&m->options.own, LEASE_S, port);
  const bool opened = answer == WEFT_ROUTER_OPENED;
  const weft_port_map_event event = event_of(answer, port);
  if (opened)
    *until_us = now_us + lease(port) * G_TIME_SPAN_SECOND;
  // A failed renewal is not reported while the lease lasts.
  if ((opened || now_us >= *until_us) && !same(&event, told)) {
    *told = event;
    tell(m, &event);
  }
  return opened ? MAX(RENEW_LEAST_S, lease(port) / 2) : RETRY_S;
}

static void *keep_open(void *user) {
  weft_port_map *m = user;
  weft_router_port port = {.inner = m->options.own.port};
  weft_port_map_event told = {.answer = WEFT_ROUTER_ANSWERS};
  gint64 until_us = 0;
  bool stop = false;
  while (!stop) {
    const gint64 next_s = ask(m, &port, &told, &until_us);
    pthread_mutex_lock(&m->lock);
    stop = wait_for(m, &m->stop, next_s);
    pthread_mutex_unlock(&m->lock);
  }
  weft_router_close(&port);
  pthread_mutex_lock(&m->lock);
  const bool abandoned = m->abandoned;
  m->over = true;
  pthread_cond_broadcast(&m->changed);
  pthread_mutex_unlock(&m->lock);
  if (abandoned)
    destroy(m);
  return NULL;
}

bool weft_port_map_possible(const weft_address *listen) {
  static const uint8_t any[16];
  return memcmp(listen->ip, any, sizeof any) == 0 ||
         (weft_address_is_v4(listen) && listen->ip[WEFT_V4_PREFIX_BYTES] != 127);
}

weft_port_map *weft_port_map_new(const weft_port_map_options *options) {
  pthread_condattr_t monotonic;
  pthread_t thread;
  weft_port_map *m = calloc(1, sizeof *m);
  if (!m)
    return NULL;
  m->options = *options;
  m->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  pthread_mutex_init(&m->lock, NULL);
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&m->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  if (m->news_fd < 0 || weft_thread_start(&thread, keep_open, m) != WEFT_OK) {
    destroy(m);
    return NULL;
  }
  pthread_detach(thread); // `over` marks its end
  m->watch = g_unix_fd_add(m->news_fd, G_IO_IN, on_news, m);
  return m;
}

void weft_port_map_free(weft_port_map *m) {
  if (!m)
    return;
  g_source_remove(m->watch);
  pthread_mutex_lock(&m->lock);
  m->stop = true;
  pthread_cond_broadcast(&m->changed);
  const bool over = wait_for(m, &m->over, CLOSE_S);
  m->abandoned = !over;
  pthread_mutex_unlock(&m->lock);
  if (over)
    destroy(m);
}
