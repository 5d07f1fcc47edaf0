// SPDX-License-Identifier: Apache-2.0
// Addresses as the kernel has them. A socket is one of IPv6 that takes IPv4 (::ffff:a.b.c.d), too;
// on a machine without IPv6 one of IPv4, for which the same addresses are used, and :: is 0.0.0.0.
//
// Of an address of one link (fe80::/10) the interface, its zone, is a part: its index stands in
// four bytes that are zero by themselves (RFC 4291, 2.5.6), here alone. It means nothing to others.
#ifndef WEFT_PEER_KERNEL_ADDRESS_H
#define WEFT_PEER_KERNEL_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "weft/peer_session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef union weft_kernel_address {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
} weft_kernel_address;

enum { WEFT_V4_PREFIX_BYTES = 12 }; // of ::ffff:a.b.c.d
bool weft_address_is_v4(const weft_address *address);
bool weft_address_is_of_link(const weft_address *address);
uint32_t weft_address_take_zone(weft_address *address); // which has none then; 0: it had none
void weft_address_set_zone(weft_address *address, uint32_t zone);
// AF_INET6, or AF_INET where the kernel has no IPv6.
sa_family_t weft_kernel_family(void);
// Sockets of that family have such addresses.
bool weft_kernel_reaches(sa_family_t family, const weft_address *address);
// Its length; 0: no such address in that family.
socklen_t weft_to_kernel(sa_family_t family, const weft_address *address, weft_kernel_address *out);
void weft_v4_from_kernel(struct in_addr from, uint8_t ip[16]); // as ::ffff:a.b.c.d
void weft_from_kernel(const struct sockaddr *from, weft_address *out);
// A socket for datagrams, which never waits. -1: errno.
int weft_kernel_datagrams(sa_family_t family);
// Where the address is that of a group (multicast), has the kernel ask for what goes to it.
int weft_kernel_join(int fd, sa_family_t family, const weft_address *address); // 0, or an errno
int weft_kernel_bind(int fd, sa_family_t family, const weft_address *address); // 0, or an errno

#ifdef __cplusplus
}
#endif
#endif
