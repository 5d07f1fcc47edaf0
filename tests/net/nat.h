// SPDX-License-Identifier: Apache-2.0
// The NAT of one node of the network that tests make: what it sends carries another address, and
// only answers get in.
#ifndef WEFT_TESTS_NET_NAT_H
#define WEFT_TESTS_NET_NAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NAT_PATHS = 512 };
#define NAT_FORGETS_US INT64_C(60000000)

typedef struct nat_path {
  uint16_t inner, outer;
  uint8_t peer[6]; // address and port
  int64_t used_us;
} nat_path;

typedef struct nat {
  // Symmetric: every path has a port of its own. Else the port stays what it is, whoever is sent to
  // (RFC 4787: endpoint-independent mapping, address and port-dependent filtering).
  bool there, symmetric;
  uint16_t next; // symmetric: the next port
  nat_path path[NAT_PATHS];
} nat;

// Its outer address is the inner one with this bit in its third byte.
#define NAT_OUTER 0x80u

// An IPv4 packet of UDP on its way out, or in; changed in place. False: it does not get through.
bool nat_out(nat *n, uint8_t *packet, size_t bytes, int64_t now_us);
bool nat_in(nat *n, uint8_t *packet, size_t bytes, int64_t now_us);

#endif
