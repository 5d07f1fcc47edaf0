// SPDX-License-Identifier: Apache-2.0
// Keeps a node's port open at the router, on a thread of its own: asks for it (router.h), renews
// it, asks again where there was no answer, and closes it at the end.
#ifndef WEFT_PEER_PORT_MAP_H
#define WEFT_PEER_PORT_MAP_H

#include <stdbool.h>

#include "peer/runtime/router.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_port_map weft_port_map;

typedef struct weft_port_map_event {
  weft_router_answer answer; // OPENED, or why it is not open
  weft_router_way way;
  weft_address outside; // where the world reaches the node; all zero: nowhere that is known
  // The router has an address of private networks itself: it is behind another NAT, which was not
  // asked.
  bool nested;
} weft_port_map_event;

typedef struct weft_port_map_options {
  weft_address own; // where the node's socket is bound (weft_node_address)
  // On the default main context, when something is new.
  void (*event)(void *user, const weft_port_map_event *event);
  void *user;
} weft_port_map_options;

// Whether a node that listens there can have a port at the router: of IPv4, and of more than this
// machine.
bool weft_port_map_possible(const weft_address *listen);
// NULL: no memory, descriptor or thread for it.
weft_port_map *weft_port_map_new(const weft_port_map_options *options);
// Closes the port, for which it waits three seconds at most. No events come after it. Accepts NULL.
void weft_port_map_free(weft_port_map *map);

#ifdef __cplusplus
}
#endif
#endif
