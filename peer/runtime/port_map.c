// SPDX-License-Identifier: Apache-2.0
#include "peer/runtime/port_map.h"

#include <string.h>

#include <glib.h>

#include "peer/runtime/kernel_address.h"

// A router that was started anew has forgotten the port: it is renewed at half of its lease, which
// is short, as what died without closing it leaves it open for so long.
enum { LEASE_S = 1200, RETRY_S = 60, RENEW_LEAST_S = 10 };
#define CLOSE_US (3 * G_TIME_SPAN_SECOND)

// Shared by its owner, its thread and events under way, of which each holds a reference.
struct weft_port_map {
  weft_port_map_options options;
  bool gone; // of the owner's thread: no more events
  GMutex lock;
  GCond changed;
  bool stop, over; // under the lock
};

static void clear(gpointer data) {
  weft_port_map *m = data;
  g_mutex_clear(&m->lock);
  g_cond_clear(&m->changed);
}

static void release(gpointer data) { g_atomic_rc_box_release_full(data, clear); }

// --- Events

typedef struct report {
  weft_port_map *map;
  weft_port_map_event event;
} report;

static gboolean on_report(gpointer user) {
  const report *r = user;
  if (!r->map->gone)
    r->map->options.event(r->map->options.user, &r->event);
  return G_SOURCE_REMOVE;
}

static void free_report(gpointer user) {
  report *r = user;
  release(r->map);
  g_free(r);
}

static void tell(weft_port_map *m, const weft_port_map_event *event) {
  report *r = g_new(report, 1);
  *r = (report){.map = g_atomic_rc_box_acquire(m), .event = *event};
  g_idle_add_full(G_PRIORITY_DEFAULT, on_report, r, free_report);
}

// RFC 1918, 6598 (shared by a provider's customers), 3927, and this machine.
static bool is_private(const weft_address *address) {
  static const struct {
    uint8_t net[4], bits;
  } nets[] = {{{10}, 8},        {{172, 16}, 12}, {{192, 168}, 16}, {{100, 64}, 10},
              {{169, 254}, 16}, {{127}, 8},      {{0}, 8}};
  const uint8_t *ip = address->ip + WEFT_V4_PREFIX_BYTES;
  const uint32_t value = (uint32_t)ip[0] << 24 | ip[1] << 16 | ip[2] << 8 | ip[3];
  for (size_t i = 0; i < G_N_ELEMENTS(nets); i++) {
    const uint8_t *n = nets[i].net;
    const uint32_t net = (uint32_t)n[0] << 24 | n[1] << 16;
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

// False: it is time to stop.
static bool wait_for(weft_port_map *m, gint64 seconds) {
  const gint64 end_us = g_get_monotonic_time() + seconds * G_TIME_SPAN_SECOND;
  g_mutex_lock(&m->lock);
  while (!m->stop && g_cond_wait_until(&m->changed, &m->lock, end_us))
    ;
  const bool on = !m->stop;
  g_mutex_unlock(&m->lock);
  return on;
}

// In seconds. What is open until it is closed is asked for as often: the router may start anew.
static gint64 renewal(const weft_router_port *port) {
  const uint32_t lease_s = port->lease_s ? port->lease_s : LEASE_S;
  return MAX(RENEW_LEAST_S, MIN(lease_s, LEASE_S) / 2);
}

static gpointer keep_open(gpointer user) {
  weft_port_map *m = user;
  weft_router_port port = {.inner = m->options.own.port};
  weft_port_map_event told = {.answer = WEFT_ROUTER_ANSWERS};
  gint64 until_us = 0, next_s;
  do {
    const gint64 now_us = g_get_monotonic_time();
    const weft_router_answer answer = weft_router_open(&m->options.own, LEASE_S, &port);
    const bool opened = answer == WEFT_ROUTER_OPENED;
    const weft_port_map_event event = event_of(answer, &port);
    if (opened)
      until_us = port.lease_s ? now_us + port.lease_s * G_TIME_SPAN_SECOND : G_MAXINT64;
    // A renewal in vain is no news while the lease goes on.
    if ((opened || now_us >= until_us) && !same(&event, &told)) {
      told = event;
      tell(m, &told);
    }
    next_s = opened ? renewal(&port) : RETRY_S;
  } while (wait_for(m, next_s));
  weft_router_close(&port);
  g_mutex_lock(&m->lock);
  m->over = true;
  g_cond_broadcast(&m->changed);
  g_mutex_unlock(&m->lock);
  release(m);
  return NULL;
}

bool weft_port_map_possible(const weft_address *listen) {
  static const uint8_t any[16];
  return memcmp(listen->ip, any, sizeof any) == 0 ||
         (weft_address_is_v4(listen) && listen->ip[WEFT_V4_PREFIX_BYTES] != 127);
}

weft_port_map *weft_port_map_new(const weft_port_map_options *options) {
  weft_port_map *m = g_atomic_rc_box_new0(weft_port_map);
  m->options = *options;
  g_mutex_init(&m->lock);
  g_cond_init(&m->changed);
  GThread *thread = g_thread_try_new("weft-port-map", keep_open, g_atomic_rc_box_acquire(m), NULL);
  if (!thread) {
    release(m); // the thread's
    release(m);
    return NULL;
  }
  g_thread_unref(thread); // `over` tells its end
  return m;
}

void weft_port_map_free(weft_port_map *m) {
  if (!m)
    return;
  const gint64 end_us = g_get_monotonic_time() + CLOSE_US;
  m->gone = true;
  g_mutex_lock(&m->lock);
  m->stop = true;
  g_cond_broadcast(&m->changed);
  while (!m->over && g_cond_wait_until(&m->changed, &m->lock, end_us))
    ;
  g_mutex_unlock(&m->lock);
  release(m);
}
