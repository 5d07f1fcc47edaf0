// SPDX-License-Identifier: Apache-2.0
// Keeps a node's port open at the router, on a thread of its own: requests it (router.h), renews
// it, retries if there was no answer, and closes it at the end.
#ifndef WEFT_PEER_PORT_MAP_H
#define WEFT_PEER_PORT_MAP_H

#include <stdbool.h>

#include "peer/runtime/router.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_port_map weft_port_map;

typedef struct weft_port_map_event {
  weft_router_answer answer; // WEFT_ROUTER_OPENED, or why it is not open
  weft_router_way way;
  weft_address outside; // where the internet reaches the node; all zero: not known
  // The router's own outside address is private: it is behind another NAT, which was not asked.
  bool nested;
} weft_port_map_event;

typedef struct weft_port_map_options {
  weft_address own; // where the node's socket is bound (weft_node_address)
  // Called on the default main context when something has changed.
  void (*event)(void *user, const weft_port_map_event *event);
  void *user;
} weft_port_map_options;

// Whether a node that listens there can have a port at the router: on IPv4, and not on loopback.
bool weft_port_map_possible(const weft_address *listen);
// Returns NULL without memory, a descriptor or a thread for it.
weft_port_map *weft_port_map_new(const weft_port_map_options *options);
// Closes the port, waiting three seconds at most. No events follow. Accepts NULL.
void weft_port_map_free(weft_port_map *map);

#ifdef __cplusplus
}
#endif
#endif
