// SPDX-License-Identifier: Apache-2.0
// Opens a port of this machine at the router through which it reaches the internet: by NAT-PMP (RFC
// 6886, libnatpmp), else by UPnP (miniupnpc). IPv4 and UDP only. Calls block on the network, for
// about ten seconds if a router begins to answer and then stops.
#ifndef WEFT_PEER_ROUTER_H
#define WEFT_PEER_ROUTER_H

#include <stdint.h>

#include "weft/peer_session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weft_router_answer {
  WEFT_ROUTER_OPENED,
  WEFT_ROUTER_NONE,      // no router answers that takes such requests
  WEFT_ROUTER_REFUSED,   // it answers, but does not open the port
  WEFT_ROUTER_ELSEWHERE, // it is not reached from the address that the port is bound to
  WEFT_ROUTER_ANSWERS
} weft_router_answer;

typedef enum weft_router_way {
  WEFT_ROUTER_CLOSED,
  WEFT_ROUTER_NAT_PMP,
  WEFT_ROUTER_UPNP
} weft_router_way;

typedef struct weft_router_port {
  weft_router_way way;
  uint16_t inner;          // the port on this machine
  weft_address outside;    // where the internet reaches it
  uint32_t lease_s;        // from now on; 0: until it is closed
  char *control, *service; // UPnP: where it was requested
} weft_router_port;

// Opens the port, or renews it, for lease_s seconds. The outside port is the same number or the one
// it already has, else one that the router chooses. `own`: the address that the port is bound to,
// which may be 0 (any). On failure, an open port is left as it is.
weft_router_answer weft_router_open(const weft_address *own, uint32_t lease_s,
                                    weft_router_port *port);
// Closes the port, if it is open and the router answers. Frees what *port holds.
void weft_router_close(weft_router_port *port);

#ifdef __cplusplus
}
#endif
#endif
