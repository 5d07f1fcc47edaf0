// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "peer/runtime/router.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>

#include <glib.h>
#include <miniupnpc/miniupnpc.h>
#include <miniupnpc/upnpcommands.h>
#include <natpmp.h>

#include "peer/runtime/kernel_address.h"

enum { NAT_PMP_US = 2000000, UPNP_SEARCH_MS = 2000, UPNP_TTL = 2, UPNP_PORTS = 4 };

// Whether the node is bound to that address of this machine, or to all addresses.
static bool is_bound_to(const weft_address *own, struct in_addr here) {
  static const uint8_t any[16];
  uint8_t ip[16];
  weft_v4_from_kernel(here, ip);
  return memcmp(own->ip, any, sizeof any) == 0 || memcmp(own->ip, ip, sizeof ip) == 0 ||
         (weft_address_is_v4(own) && memcmp(own->ip + WEFT_V4_PREFIX_BYTES, any, 4) == 0);
}

static uint16_t wanted_outside(const weft_router_port *port) {
  return port->way == WEFT_ROUTER_CLOSED ? port->inner : port->outside.port;
}

static void forget(weft_router_port *port) {
  g_clear_pointer(&port->control, g_free);
  g_clear_pointer(&port->service, g_free);
  port->way = WEFT_ROUTER_CLOSED;
}

static void opened(weft_router_port *port, weft_router_way way, struct in_addr outside,
                   uint16_t outer, uint32_t lease_s) {
  forget(port);
  port->way = way;
  port->lease_s = lease_s;
  port->outside = (weft_address){.port = outer};
  weft_v4_from_kernel(outside, port->outside.ip);
}

// --- NAT-PMP

typedef struct pmp_request {
  uint16_t type; // of the response: address or mapping
  uint16_t inner, outer;
  uint32_t lease_s;
} pmp_request;

static int pmp_send(natpmp_t *pmp, const pmp_request *r) {
  return r->type == NATPMP_RESPTYPE_PUBLICADDRESS
             ? sendpublicaddressrequest(pmp)
             : sendnewportmappingrequest(pmp, NATPMP_PROTOCOL_UDP, r->inner, r->outer, r->lease_s);
}

static bool pmp_answers(const pmp_request *r, const natpmpresp_t *a) {
  return a->type == r->type && (r->type == NATPMP_RESPTYPE_PUBLICADDRESS ||
                                a->pnu.newportmapping.privateport == r->inner);
}

// Sends a request and waits for its response; libnatpmp repeats requests. Returns 0, or an error of
// libnatpmp; NATPMP_TRYAGAIN: no response in time.
static int pmp_ask(natpmp_t *pmp, const pmp_request *r, natpmpresp_t *answer) {
  const gint64 end_us = g_get_monotonic_time() + NAT_PMP_US;
  int got = pmp_send(pmp, r) < 0 ? NATPMP_ERR_SENDERR : NATPMP_TRYAGAIN;
  while (got == NATPMP_TRYAGAIN) {
    struct timeval again;
    struct pollfd readable = {.fd = pmp->s, .events = POLLIN};
    const gint64 left_ms = (end_us - g_get_monotonic_time()) / 1000;
    if (left_ms <= 0 || getnatpmprequesttimeout(pmp, &again) != 0)
      break;
    const gint64 wait_ms = (gint64)again.tv_sec * 1000 + again.tv_usec / 1000 + 1;
    (void)poll(&readable, 1, (int)CLAMP(wait_ms, 0, left_ms));
    got = readnatpmpresponseorretry(pmp, answer);
    if (got == 0 && !pmp_answers(r, answer)) // a late answer to an earlier request
      got = pmp_send(pmp, r) < 0 ? NATPMP_ERR_SENDERR : NATPMP_TRYAGAIN;
  }
  return got;
}

// Tells a refusal from silence.
static weft_router_answer pmp_failed(int got) {
  const bool refused = got <= NATPMP_ERR_UNSUPPORTEDVERSION && got != NATPMP_TRYAGAIN;
  return refused ? WEFT_ROUTER_REFUSED : WEFT_ROUTER_NONE;
}

static weft_router_answer pmp_map(natpmp_t *pmp, const weft_address *own, uint32_t lease_s,
                                  weft_router_port *port) {
  const pmp_request where = {.type = NATPMP_RESPTYPE_PUBLICADDRESS};
  const pmp_request map = {.type = NATPMP_RESPTYPE_UDPPORTMAPPING,
                           .inner = port->inner,
                           .outer = wanted_outside(port),
                           .lease_s = lease_s};
  struct sockaddr_in here;
  socklen_t bytes = sizeof here;
  natpmpresp_t answer = {0};
  int got = pmp_ask(pmp, &where, &answer);
  if (got != 0)
    return pmp_failed(got);
  const struct in_addr outside = answer.pnu.publicaddress.addr;
  if (getsockname(pmp->s, (struct sockaddr *)&here, &bytes) != 0 ||
      !is_bound_to(own, here.sin_addr))
    return WEFT_ROUTER_ELSEWHERE;
  got = pmp_ask(pmp, &map, &answer);
  if (got != 0)
    return pmp_failed(got);
  if (answer.pnu.newportmapping.lifetime == 0 || answer.pnu.newportmapping.mappedpublicport == 0)
    return WEFT_ROUTER_REFUSED;
  opened(port, WEFT_ROUTER_NAT_PMP, outside, answer.pnu.newportmapping.mappedpublicport,
         answer.pnu.newportmapping.lifetime);
  return WEFT_ROUTER_OPENED;
}

static weft_router_answer pmp_open(const weft_address *own, uint32_t lease_s,
                                   weft_router_port *port) {
  natpmp_t pmp;
  if (initnatpmp(&pmp, 0, 0) != 0) // for one, there is no route
    return WEFT_ROUTER_NONE;
  const weft_router_answer answer = pmp_map(&pmp, own, lease_s, port);
  (void)closenatpmp(&pmp);
  return answer;
}

static void pmp_close(const weft_router_port *port) {
  const pmp_request unmap = {.type = NATPMP_RESPTYPE_UDPPORTMAPPING, .inner = port->inner};
  natpmpresp_t answer;
  natpmp_t pmp;
  if (initnatpmp(&pmp, 0, 0) != 0)
    return;
  (void)pmp_ask(&pmp, &unmap, &answer);
  (void)closenatpmp(&pmp);
}

// --- UPnP

// Errors of IGDs (WANIPConnection:2, 2.5).
enum { CONFLICT = 718, PERMANENT_ONLY = 725 };

typedef struct upnp_router {
  struct UPNPUrls urls;
  struct IGDdatas data;
  char here[64]; // this machine's address towards the router
  struct in_addr outside;
} upnp_router;

// Returns false if there is none. The caller frees its urls.
static bool upnp_find(upnp_router *r) {
  enum { NOT_AN_IGD = MINIUPNPC_API_VERSION >= 18 ? 4 : 3 };
  int error;
  struct UPNPDev *devices =
      upnpDiscover(UPNP_SEARCH_MS, NULL, NULL, UPNP_LOCAL_PORT_ANY, 0, UPNP_TTL, &error);
#if MINIUPNPC_API_VERSION >= 18
  char outside[64];
  const int kind = UPNP_GetValidIGD(devices, &r->urls, &r->data, r->here, sizeof r->here, outside,
                                    sizeof outside);
#else
  const int kind = UPNP_GetValidIGD(devices, &r->urls, &r->data, r->here, sizeof r->here);
#endif
  freeUPNPDevlist(devices);
  if (kind == NOT_AN_IGD)
    FreeUPNPUrls(&r->urls);
  return kind > 0 && kind != NOT_AN_IGD;
}

static int upnp_add(const upnp_router *r, uint16_t inner, uint16_t outer, uint32_t lease_s) {
  char from[6], to[6], lease[11];
  (void)g_snprintf(from, sizeof from, "%u", (unsigned)outer);
  (void)g_snprintf(to, sizeof to, "%u", (unsigned)inner);
  (void)g_snprintf(lease, sizeof lease, "%u", (unsigned)lease_s);
  return UPNP_AddPortMapping(r->urls.controlURL, r->data.first.servicetype, from, to, r->here,
                             "weft", "UDP", NULL, lease);
}

static weft_router_answer upnp_map(const upnp_router *r, uint32_t lease_s, weft_router_port *port) {
  uint16_t outer = wanted_outside(port);
  int got = CONFLICT;
  for (int i = 0; i < UPNP_PORTS && got == CONFLICT; i++) { // another machine may have the port
    if (i > 0)
      outer = (uint16_t)g_random_int_range(1024, 65536);
    got = upnp_add(r, port->inner, outer, lease_s);
    if (got == PERMANENT_ONLY) {
      lease_s = 0;
      got = upnp_add(r, port->inner, outer, 0);
    }
  }
  if (got != UPNPCOMMAND_SUCCESS)
    return WEFT_ROUTER_REFUSED;
  opened(port, WEFT_ROUTER_UPNP, r->outside, outer, lease_s);
  port->control = g_strdup(r->urls.controlURL);
  port->service = g_strdup(r->data.first.servicetype);
  return WEFT_ROUTER_OPENED;
}

static weft_router_answer upnp_open(const weft_address *own, uint32_t lease_s,
                                    weft_router_port *port) {
  upnp_router r = {0};
  struct in_addr here;
  char outside[64] = "";
  weft_router_answer answer = WEFT_ROUTER_REFUSED;
  if (!upnp_find(&r))
    return WEFT_ROUTER_NONE;
  if (inet_pton(AF_INET, r.here, &here) != 1 || !is_bound_to(own, here))
    answer = WEFT_ROUTER_ELSEWHERE;
  else if (UPNP_GetExternalIPAddress(r.urls.controlURL, r.data.first.servicetype, outside) ==
               UPNPCOMMAND_SUCCESS &&
           inet_pton(AF_INET, outside, &r.outside) == 1)
    answer = upnp_map(&r, lease_s, port);
  FreeUPNPUrls(&r.urls);
  return answer;
}

static void upnp_close(const weft_router_port *port) {
  char outer[6];
  (void)g_snprintf(outer, sizeof outer, "%u", (unsigned)port->outside.port);
  (void)UPNP_DeletePortMapping(port->control, port->service, outer, "UDP", NULL);
}

// --- Both

weft_router_answer weft_router_open(const weft_address *own, uint32_t lease_s,
                                    weft_router_port *port) {
  const weft_router_answer first = pmp_open(own, lease_s, port);
  if (first == WEFT_ROUTER_OPENED)
    return first;
  const weft_router_answer second = upnp_open(own, lease_s, port);
  return second == WEFT_ROUTER_NONE ? first : second;
}

void weft_router_close(weft_router_port *port) {
  if (port->way == WEFT_ROUTER_NAT_PMP)
    pmp_close(port);
  else if (port->way == WEFT_ROUTER_UPNP)
    upnp_close(port);
  forget(port);
}
