// SPDX-License-Identifier: Apache-2.0
// A UDP socket at speed: one system call sends a run of equally long datagrams to one address
// (UDP_SEGMENT), one receives many, each perhaps a run of its own (recvmmsg, UDP_GRO). Where the
// kernel refuses to segment, datagrams go one by one from then on.
#ifndef WEFT_PEER_UDP_H
#define WEFT_PEER_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/context.h"
#include "weft/peer_session.h"

// Datagrams in one run: the kernel takes 64, and 65507 bytes.
#define WEFT_UDP_RUN 48u

typedef struct weft_udp_statistics {
  uint64_t sent, sent_bytes, send_calls, send_errors;
  uint64_t received, received_bytes, receive_calls;
} weft_udp_statistics;

typedef struct weft_udp {
  weft_ctx *ctx;
  int fd;
  bool v4;            // the machine has no IPv6: addresses are ::ffff:a.b.c.d all the same
  bool no_segmenting; // the kernel refused
  bool blocked;       // the run below waits until the socket takes it
  // The run being filled: datagrams of WEFT_SESSION_DATAGRAM_BYTES room each, one address.
  weft_address to;
  uint8_t *run; // WEFT_UDP_RUN * WEFT_SESSION_DATAGRAM_BYTES
  size_t run_count, run_at, run_bytes[WEFT_UDP_RUN];
  uint8_t *in; // room for what one call receives
  weft_udp_statistics statistics;
} weft_udp;

// *error: an errno, when the status is WEFT_E_IO. Port 0: any; udp_address tells it afterwards.
weft_status weft_udp_open(weft_ctx *ctx, const weft_address *address, weft_udp *out, int *error);
void weft_udp_close(weft_udp *udp);
weft_status weft_udp_own_address(const weft_udp *udp, weft_address *out);

// Has the kernel drop what cannot be a session's datagram before anybody is woken for it: another
// first byte, too short, an INIT without its zeros, a key id beyond `places`. What it lets through
// is checked all the same.
void weft_udp_filter(weft_udp *udp, size_t places);

// Room for the next datagram to `to`; NULL while the socket is blocked. What waits for another
// address is sent first.
uint8_t *weft_udp_room(weft_udp *udp, const weft_address *to);
void weft_udp_filled(weft_udp *udp, size_t bytes); // the room holds a datagram of so many bytes
void weft_udp_flush(weft_udp *udp);

// Calls back for each datagram that has come, up to about `most`; returns their number.
size_t weft_udp_receive(weft_udp *udp, size_t most,
                        void (*take)(void *user, const weft_address *from, uint8_t *datagram,
                                     size_t bytes),
                        void *user);

#endif
