// SPDX-License-Identifier: Apache-2.0
// Converts addresses to the kernel's form and back. Sockets are IPv6 and take IPv4, too
// (::ffff:a.b.c.d). On a machine without IPv6 they are IPv4, the same addresses are used for them,
// and :: stands for 0.0.0.0.
//
// A link-local address (fe80::/10) includes its interface, the zone: the zone's index is stored in
// four bytes that are zero in such addresses (RFC 4291, 2.5.6). It is valid on this machine only.
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

enum { WEFT_V4_PREFIX_BYTES = 12 }; // the prefix in ::ffff:a.b.c.d
bool weft_address_is_v4(const weft_address *address);
bool weft_address_is_of_link(const weft_address *address);
uint32_t weft_address_take_zone(weft_address *address); // removes it; 0: there is none
void weft_address_set_zone(weft_address *address, uint32_t zone);
// AF_INET6, or AF_INET where the kernel has no IPv6.
sa_family_t weft_kernel_family(void);
// Whether sockets of that family can use the address.
bool weft_kernel_reaches(sa_family_t family, const weft_address *address);
// Returns its length; 0: the family has no such address.
socklen_t weft_to_kernel(sa_family_t family, const weft_address *address, weft_kernel_address *out);
void weft_v4_from_kernel(struct in_addr from, uint8_t ip[16]); // as ::ffff:a.b.c.d
void weft_from_kernel(const struct sockaddr *from, weft_address *out);
// Opens a non-blocking datagram socket. Returns -1 on failure, with errno set.
int weft_kernel_datagrams(sa_family_t family);
// Joins the multicast group if the address is one; otherwise does nothing.
int weft_kernel_join(int fd, sa_family_t family, const weft_address *address); // 0, or an errno
int weft_kernel_bind(int fd, sa_family_t family, const weft_address *address); // 0, or an errno

#ifdef __cplusplus
}
#endif
#endif
