// SPDX-License-Identifier: Apache-2.0
// Parses and prints addresses as people write them.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer/runtime/kernel_address.h"
#include "weft/peer_node.h"

static bool parse_port(const char *text, uint16_t *out) {
  char *end;
  const unsigned long value = strtoul(text, &end, 10);
  if (*text < '0' || *text > '9' || *end || value > 65535)
    return false;
  *out = (uint16_t)value;
  return true;
}

// Whether this machine has a route to the address. Nothing is sent.
static bool has_way(const struct addrinfo *a) {
  const int fd = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool found =
      fd >= 0 && (connect(fd, a->ai_addr, a->ai_addrlen) == 0 || errno == EACCES); // broadcast
  if (fd >= 0)
    close(fd);
  return found;
}

// Looks the name up. Addresses with a route come first, since dialling takes seconds to fail; among
// these, IPv4 comes first; otherwise the resolver's order is kept.
static size_t look_up(const char *host, uint16_t port, size_t most, weft_address *out) {
  const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM};
  struct addrinfo *found;
  size_t count = 0;
  if (getaddrinfo(host, NULL, &hints, &found) != 0)
    return 0;
  for (int rank = 0; rank < 4; rank++)
    for (const struct addrinfo *a = found; a && count < most; a = a->ai_next) {
      weft_address address;
      weft_from_kernel(a->ai_addr, &address);
      address.port = port;
      if (2 * !has_way(a) + !weft_address_is_v4(&address) == rank)
        out[count++] = address;
    }
  freeaddrinfo(found);
  return count;
}

// Parses "fe80::1%eth0" or "fe80::1%2": the interface is given by name or by number.
static bool parse_v6(char *text, weft_address *out) {
  char *zone = strchr(text, '%'), *end;
  if (zone)
    *zone++ = '\0';
  if (inet_pton(AF_INET6, text, out->ip) != 1)
    return false;
  // These bytes hold the zone, so the text must not set them.
  const bool bare = weft_address_take_zone(out) == 0;
  if (!zone)
    return bare;
  unsigned long index = if_nametoindex(zone);
  if (index == 0 && *zone >= '0' && *zone <= '9') {
    index = strtoul(zone, &end, 10);
    index = *end || index > UINT32_MAX ? 0 : index;
  }
  weft_address_set_zone(out, (uint32_t)index);
  return bare && weft_address_is_of_link(out) && index > 0;
}

size_t weft_address_parse_all(const char *text, size_t most, weft_address *out) {
  char host[256];
  const char *colon = strrchr(text, ':');
  const char *port = colon ? colon + 1 : text;
  size_t bytes = colon ? (size_t)(colon - text) : 0;
  *out = (weft_address){0};
  if (!parse_port(port, &out->port) || bytes >= sizeof host)
    return 0;
  memcpy(host, text, bytes);
  host[bytes] = '\0';
  if (bytes == 0)
    return 1;
  if (host[0] == '[' && host[bytes - 1] == ']') {
    host[bytes - 1] = '\0';
    return parse_v6(host + 1, out);
  }
  // An IPv6 address needs brackets.
  return strchr(host, ':') ? 0 : look_up(host, out->port, most, out);
}

bool weft_address_parse(const char *text, weft_address *out) {
  return weft_address_parse_all(text, 1, out) == 1;
}

const char *weft_address_text(const weft_address *address, char out[WEFT_ADDRESS_TEXT]) {
  char ip[INET6_ADDRSTRLEN] = "?", zone[IF_NAMESIZE + 1] = "";
  weft_address bare = *address;
  const bool v4 = weft_address_is_v4(address);
  const uint32_t index = weft_address_take_zone(&bare);
  (void)inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? bare.ip + WEFT_V4_PREFIX_BYTES : bare.ip, ip,
                  sizeof ip);
  if (index > 0 && !if_indextoname(index, zone + 1))
    (void)snprintf(zone + 1, sizeof zone - 1, "%u", (unsigned)index); // the interface is gone
  zone[0] = index > 0 ? '%' : '\0';
  (void)snprintf(out, WEFT_ADDRESS_TEXT, v4 ? "%s%s:%u" : "[%s%s]:%u", ip, zone,
                 (unsigned)address->port);
  return out;
}

static bool same_prefix(const weft_address *a, const weft_address *b, size_t v4, size_t v6) {
  const bool mapped = weft_address_is_v4(a);
  return mapped == weft_address_is_v4(b) &&
         memcmp(a->ip, b->ip, mapped ? WEFT_V4_PREFIX_BYTES + v4 : v6) == 0;
}

bool weft_address_same_origin(const weft_address *a, const weft_address *b) {
  return same_prefix(a, b, 4, 8);
}

bool weft_address_same_network(const weft_address *a, const weft_address *b) {
  return same_prefix(a, b, 3, 6);
}
