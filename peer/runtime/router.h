// SPDX-License-Identifier: Apache-2.0
// A port of this machine opened to the world, at the router by which it reaches the internet: asked
// for by NAT-PMP (RFC 6886, libnatpmp), else by UPnP (miniupnpc). IPv4 and UDP alone. Calls wait
// for the network, up to some ten seconds where a router begins to answer and stops.
#ifndef WEFT_PEER_ROUTER_H
#define WEFT_PEER_ROUTER_H

#include <stdint.h>

#include "weft/peer_session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weft_router_answer {
  WEFT_ROUTER_OPENED,
  WEFT_ROUTER_NONE,      // nobody answers who takes such requests
  WEFT_ROUTER_REFUSED,   // it answers, and does not open the port
  WEFT_ROUTER_ELSEWHERE, // it is not reached from the address where the port is
  WEFT_ROUTER_ANSWERS
} weft_router_answer;

typedef enum weft_router_way {
  WEFT_ROUTER_CLOSED,
  WEFT_ROUTER_NAT_PMP,
  WEFT_ROUTER_UPNP
} weft_router_way;

typedef struct weft_router_port {
  weft_router_way way;
  uint16_t inner;          // of this machine
  weft_address outside;    // where the world reaches it
  uint32_t lease_s;        // for how long, from now; 0: until it is closed
  char *control, *service; // UPnP: where it was asked for
} weft_router_port;

// Opens the port, or renews what is open: for lease_s seconds, outside at the same number or the
// one it has there, else at one that the router chooses. `own`: where it is bound; its address may
// be 0 (any). On failure what was open is left as it is.
weft_router_answer weft_router_open(const weft_address *own, uint32_t lease_s,
                                    weft_router_port *port);
// Closes it, if it is open and the router answers. Frees what *port holds.
void weft_router_close(weft_router_port *port);

#ifdef __cplusplus
}
#endif
#endif
