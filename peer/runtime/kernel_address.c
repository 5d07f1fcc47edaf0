// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "peer/runtime/kernel_address.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const uint8_t v4_prefix[WEFT_V4_PREFIX_BYTES] = {[10] = 0xff, [11] = 0xff};

bool weft_address_is_v4(const weft_address *address) {
  return memcmp(address->ip, v4_prefix, sizeof v4_prefix) == 0;
}

enum { ZONE_AT = 4 };

bool weft_address_is_of_link(const weft_address *address) {
  return address->ip[0] == 0xfe && (address->ip[1] & 0xc0) == 0x80;
}

void weft_address_set_zone(weft_address *address, uint32_t zone) {
  if (weft_address_is_of_link(address))
    memcpy(address->ip + ZONE_AT, &zone, sizeof zone);
}

uint32_t weft_address_take_zone(weft_address *address) {
  uint32_t zone = 0;
  if (weft_address_is_of_link(address))
    memcpy(&zone, address->ip + ZONE_AT, sizeof zone);
  weft_address_set_zone(address, 0);
  return zone;
}

sa_family_t weft_kernel_family(void) {
  const int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return errno == EAFNOSUPPORT ? AF_INET : AF_INET6;
  close(fd);
  return AF_INET6;
}

bool weft_kernel_reaches(sa_family_t family, const weft_address *address) {
  static const uint8_t any[16] = {0};
  return family == AF_INET6 || weft_address_is_v4(address) ||
         memcmp(address->ip, any, sizeof any) == 0;
}

socklen_t weft_to_kernel(sa_family_t family, const weft_address *address,
                         weft_kernel_address *out) {
  memset(out, 0, sizeof *out);
  if (!weft_kernel_reaches(family, address))
    return 0;
  if (family == AF_INET) {
    out->v4.sin_family = AF_INET;
    out->v4.sin_port = htons(address->port);
    memcpy(&out->v4.sin_addr, address->ip + sizeof v4_prefix, sizeof out->v4.sin_addr);
    return sizeof out->v4;
  }
  weft_address bare = *address;
  out->v6.sin6_family = AF_INET6;
  out->v6.sin6_port = htons(address->port);
  out->v6.sin6_scope_id = weft_address_take_zone(&bare);
  memcpy(&out->v6.sin6_addr, bare.ip, sizeof out->v6.sin6_addr);
  return sizeof out->v6;
}

void weft_v4_from_kernel(struct in_addr from, uint8_t ip[16]) {
  memcpy(ip, v4_prefix, sizeof v4_prefix);
  memcpy(ip + sizeof v4_prefix, &from, sizeof from);
}

void weft_from_kernel(const struct sockaddr *from, weft_address *out) {
  weft_kernel_address at;
  memset(out, 0, sizeof *out);
  if (from->sa_family == AF_INET) {
    memcpy(&at.v4, from, sizeof at.v4);
    weft_v4_from_kernel(at.v4.sin_addr, out->ip);
    out->port = ntohs(at.v4.sin_port);
  } else {
    memcpy(&at.v6, from, sizeof at.v6);
    memcpy(out->ip, &at.v6.sin6_addr, sizeof out->ip);
    out->port = ntohs(at.v6.sin6_port);
    weft_address_set_zone(out, at.v6.sin6_scope_id);
  }
}

int weft_kernel_datagrams(sa_family_t family) {
  const int off = 0;
  const int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 && family == AF_INET6)
    (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  return fd;
}

int weft_kernel_join(int fd, sa_family_t family, const weft_address *address) {
  const bool v4 = weft_address_is_v4(address);
  struct group_req group = {.gr_interface = 0}; // 0: the one of the route
  weft_kernel_address at;
  if (v4 ? address->ip[sizeof v4_prefix] >> 4 != 0xe : address->ip[0] != 0xff)
    return 0;
  const socklen_t bytes = weft_to_kernel(v4 ? AF_INET : family, address, &at);
  memcpy(&group.gr_group, &at, bytes);
  return setsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, MCAST_JOIN_GROUP, &group, sizeof group) == 0
             ? 0
             : errno;
}

int weft_kernel_bind(int fd, sa_family_t family, const weft_address *address) {
  weft_kernel_address at;
  const socklen_t bytes = weft_to_kernel(family, address, &at);
  if (bytes == 0)
    return EAFNOSUPPORT;
  return bind(fd, &at.any, bytes) == 0 ? 0 : errno;
}
