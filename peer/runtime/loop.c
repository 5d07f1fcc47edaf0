// SPDX-License-Identifier: Apache-2.0
#include "weft/peer_loop.h"

#include <glib-unix.h>

typedef struct node_source {
  GSource source; // must be first: GLib uses a pointer to it
  weft_node *node;
  weft_node_loop loop;
  gpointer tag;
} node_source;

static gboolean dispatch(GSource *source, GSourceFunc callback, gpointer data) {
  node_source *s = (node_source *)source;
  (void)callback, (void)data;
  const gint64 now_us = g_get_monotonic_time();
  const bool more = weft_node_receive(s->node, now_us);
  s->loop.pump(s->loop.user, now_us);
  const weft_status status = weft_node_turn(s->node, now_us);
  if (status != WEFT_OK)
    s->loop.failed(s->loop.user, status);
  if (g_source_is_destroyed(source))
    return G_SOURCE_REMOVE;
  g_source_modify_unix_fd(source, s->tag,
                          weft_node_wants_write(s->node) ? G_IO_IN | G_IO_OUT : G_IO_IN);
  const int64_t deadline_us = weft_node_deadline(s->node);
  const gint64 ready_us = more ? 0 : deadline_us == INT64_MAX ? -1 : deadline_us;
  g_source_set_ready_time(source, ready_us);
  return G_SOURCE_CONTINUE;
}

GSource *weft_node_source_new(weft_node *node, const weft_node_loop *loop) {
  static GSourceFuncs functions = {.dispatch = dispatch};
  GSource *source = g_source_new(&functions, sizeof(node_source));
  node_source *s = (node_source *)source;
  s->node = node;
  s->loop = *loop;
  s->tag = g_source_add_unix_fd(source, weft_node_fd(node), G_IO_IN);
  g_source_set_name(source, "weft node");
  g_source_set_ready_time(source, 0);
  return source;
}

void weft_node_source_wake(GSource *source) { g_source_set_ready_time(source, 0); }
