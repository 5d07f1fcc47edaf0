// SPDX-License-Identifier: Apache-2.0
// `weft peer --map-port on`: asks the router for a port, and logs the outcome.
#include "cli/peer_run.h"

static void on_port(void *user, const weft_port_map_event *event) {
  static const char *const reasons[WEFT_ROUTER_ANSWERS] = {"", "no-router", "refused",
                                                           "other-address"};
  static const char *const ways[] = {"", "nat-pmp", "upnp"};
  peer_run_state *r = user;
  char text[WEFT_ADDRESS_TEXT];
  const bool reached = event->answer == WEFT_ROUTER_OPENED && !event->nested;
  r->view.port = *event;
  weft_node_set_mapped(r->node, reached ? &event->outside : NULL);
  if (event->answer != WEFT_ROUTER_OPENED) {
    peer_log(PEER_WARNING, "not-mapped", "reason=%s", reasons[event->answer]);
    return;
  }
  peer_log(PEER_INFO, "mapped", "address=%s by=%s", weft_address_text(&event->outside, text),
           ways[event->way]);
  if (event->nested)
    peer_log(PEER_WARNING, "mapped-behind-nat", "address=%s", text);
}

int peer_port_open(peer_run_state *r) {
  weft_port_map_options o = {.event = on_port, .user = r};
  if (!r->s->map_port)
    return -1;
  (void)weft_node_address(r->node, &o.own);
  r->port = weft_port_map_new(&o);
  return r->port ? -1
                 : cli_error(PEER_NAME, CLI_MACHINE,
                             "no memory, file descriptor or thread for --map-port");
}
