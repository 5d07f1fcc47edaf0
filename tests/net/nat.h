// SPDX-License-Identifier: Apache-2.0
// The NAT of one node of a test network: outgoing packets carry another address, and only answers
// get in.
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
  // Symmetric: every path has its own outer port. Otherwise the port stays the same for all
  // destinations (RFC 4787: endpoint-independent mapping, address and port-dependent filtering).
  bool there, symmetric;
  uint16_t next; // symmetric: the next port
  nat_path path[NAT_PATHS];
} nat;

// The outer address is the inner one with this bit set in its third byte.
#define NAT_OUTER 0x80u

// Translate an IPv4 packet of UDP on its way out, or in, in place. They return false if it does not
// get through.
bool nat_out(nat *n, uint8_t *packet, size_t bytes, int64_t now_us);
bool nat_in(nat *n, uint8_t *packet, size_t bytes, int64_t now_us);

#endif
