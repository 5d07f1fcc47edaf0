// SPDX-License-Identifier: Apache-2.0
// A node on a GLib main loop: a GSource around its descriptor and its deadline.
#ifndef WEFT_PEER_LOOP_H
#define WEFT_PEER_LOOP_H

#include <glib.h>

#include "weft/peer_node.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_node_loop {
  // Called when something has come or is due, before the node sends: feed or read the engine here.
  void (*pump)(void *user, int64_t now_us);
  // Called for a failure of the machine; the node keeps running.
  void (*failed)(void *user, weft_status status);
  void *user;
} weft_node_loop;

// The caller attaches it to a GMainContext, and must destroy it before the node is freed.
GSource *weft_node_source_new(weft_node *node, const weft_node_loop *loop);
// Something changed outside: pump and turn soon. Call it on the loop's own thread.
void weft_node_source_wake(GSource *source);

#ifdef __cplusplus
}
#endif
#endif
