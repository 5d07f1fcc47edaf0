// SPDX-License-Identifier: Apache-2.0
#include "tests/net/nat.h"

#include <string.h>

enum { SOURCE = 12, TARGET = 16, UDP = 17 };

static uint16_t get16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }
static void put16(uint8_t *p, unsigned v) {
  p[0] = (uint8_t)(v >> 8);
  p[1] = (uint8_t)v;
}

// Returns where the UDP header of a whole datagram begins, or 0.
static size_t udp_of(const uint8_t *packet, size_t bytes) {
  const size_t header = (size_t)(packet[0] & 15) * 4;
  const bool part = get16(packet + 6) & 0x3fff;
  return packet[9] == UDP && !part && header >= 20 && bytes >= header + 8 ? header : 0;
}

static void finish(uint8_t *packet, size_t udp) {
  uint32_t sum = 0;
  put16(packet + udp + 6, 0); // no checksum
  put16(packet + 10, 0);
  for (size_t i = 0; i < udp; i += 2)
    sum += get16(packet + i);
  while (sum >> 16)
    sum = (sum & 0xffff) + (sum >> 16);
  put16(packet + 10, ~sum & 0xffff);
}

// Gets the address and port of the datagram's other end.
static void peer_of(const uint8_t *packet, size_t udp, bool out, uint8_t peer[6]) {
  memcpy(peer, packet + (out ? TARGET : SOURCE), 4);
  memcpy(peer + 4, packet + udp + (out ? 2 : 0), 2);
}

static nat_path *find(nat *n, bool out, uint16_t port, const uint8_t peer[6], int64_t now_us) {
  for (size_t i = 0; i < NAT_PATHS; i++) {
    nat_path *p = &n->path[i];
    if (p->outer && (out ? p->inner : p->outer) == port && memcmp(p->peer, peer, 6) == 0 &&
        now_us - p->used_us < NAT_FORGETS_US)
      return p;
  }
  return NULL;
}

static nat_path *add(nat *n, uint16_t inner, const uint8_t peer[6]) {
  nat_path *oldest = &n->path[0];
  for (size_t i = 1; i < NAT_PATHS; i++)
    if (n->path[i].used_us < oldest->used_us)
      oldest = &n->path[i];
  *oldest = (nat_path){.inner = inner, .outer = inner};
  if (n->symmetric)
    oldest->outer = (uint16_t)(20000 + n->next++ % 40000);
  memcpy(oldest->peer, peer, 6);
  return oldest;
}

bool nat_out(nat *n, uint8_t *packet, size_t bytes, int64_t now_us) {
  uint8_t peer[6];
  const size_t udp = udp_of(packet, bytes);
  if (!udp)
    return false;
  peer_of(packet, udp, true, peer);
  const uint16_t inner = get16(packet + udp);
  nat_path *path = find(n, true, inner, peer, now_us);
  path = path ? path : add(n, inner, peer);
  path->used_us = now_us;
  packet[SOURCE + 2] |= NAT_OUTER;
  put16(packet + udp, path->outer);
  finish(packet, udp);
  return true;
}

bool nat_in(nat *n, uint8_t *packet, size_t bytes, int64_t now_us) {
  uint8_t peer[6];
  const size_t udp = udp_of(packet, bytes);
  if (!udp)
    return false;
  peer_of(packet, udp, false, peer);
  const nat_path *path = find(n, false, get16(packet + udp + 2), peer, now_us);
  if (!path)
    return false;
  packet[TARGET + 2] = (uint8_t)(packet[TARGET + 2] & ~NAT_OUTER);
  put16(packet + udp + 2, path->inner);
  finish(packet, udp);
  return true;
}
