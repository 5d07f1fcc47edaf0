// SPDX-License-Identifier: Apache-2.0
// A fast UDP socket. Datagrams wait in a queue until the turn (weft_node_turn) ends, sorted by
// destination, so that bursts to one neighbour join: one system call (sendmmsg) then sends many
// runs. A run is a sequence of equally long datagrams to one address (UDP_SEGMENT), of which the
// last may be shorter. One call receives many messages, each of which may be a run (recvmmsg,
// UDP_GRO). If the kernel refuses a run, its datagrams are sent one by one; if that works and no
// run does, runs are not tried again for a while.
#ifndef WEFT_PEER_UDP_H
#define WEFT_PEER_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peer/runtime/kernel_address.h"
#include "weft/context.h"
#include "weft/peer_session.h"

// Datagrams in one run; the kernel takes 64, and 65507 bytes.
#define WEFT_UDP_RUN 48u
// Datagrams in the queue, and addresses that they go to. When either is full, the queue is flushed.
#define WEFT_UDP_QUEUE 128u
#define WEFT_UDP_WAYS 32u

typedef struct weft_udp_statistics {
  uint64_t sent, sent_bytes, send_calls, send_errors;
  uint64_t received, received_bytes, receive_calls;
  int send_error; // errno of the last of send_errors
} weft_udp_statistics;

// A way: the queued datagrams for one address, in sending order, as places of the queue chained by
// `next`. A datagram as long as those of the run is placed before shorter ones that came in between
// (the end of a burst), so that bursts join.
typedef struct weft_udp_way {
  weft_address to;
  uint16_t first, last, count;
  uint16_t run_last; // the last datagram of the run's length
  bool one_by_one;   // a run was refused: too long for the path, a device without support, ...
  bool doubted;      // whether they can be sent one by one is not known yet
} weft_udp_way;

typedef struct weft_udp {
  weft_ctx *ctx;
  int fd;
  sa_family_t family;   // AF_INET: the machine has no IPv6
  unsigned refused;     // runs refused in a row whose datagrams could then be sent one by one
  unsigned plain_turns; // remaining flushes that use no runs
  bool blocked;         // the socket is full, and the queue waits for it
  uint8_t *queue;       // WEFT_UDP_QUEUE * WEFT_SESSION_DATAGRAM_BYTES
  uint16_t bytes[WEFT_UDP_QUEUE], next[WEFT_UDP_QUEUE];
  size_t queued; // places taken
  weft_udp_way ways[WEFT_UDP_WAYS];
  size_t way_count, way; // way: the one that weft_udp_room last gave room for
  uint8_t *in;           // buffer for one receive call
  weft_udp_statistics statistics;
} weft_udp;

// *error: an errno, when the status is WEFT_E_IO. Port 0: any free port, which weft_udp_own_address
// returns.
weft_status weft_udp_open(weft_ctx *ctx, const weft_address *address, weft_udp *out, int *error);
void weft_udp_close(weft_udp *udp);
weft_status weft_udp_own_address(const weft_udp *udp, weft_address *out);

// Has the kernel drop, without waking this process, what cannot be a session's datagram: a wrong
// first byte, too short, an INIT without its zeros, or a key id beyond `places`. What it lets
// through is checked all the same.
void weft_udp_filter(weft_udp *udp, size_t places);

// Returns room for the next datagram to `to`; NULL while the socket is blocked. An address that
// cannot be reached from here counts as a send error.
uint8_t *weft_udp_room(weft_udp *udp, const weft_address *to);
void weft_udp_filled(weft_udp *udp, size_t bytes); // the room now holds a datagram of this length
void weft_udp_flush(weft_udp *udp);

// Calls `take` for each datagram that has arrived, up to about `most`; returns their number.
size_t weft_udp_receive(weft_udp *udp, size_t most,
                        void (*take)(void *user, const weft_address *from, uint8_t *datagram,
                                     size_t bytes),
                        void *user);

#endif
