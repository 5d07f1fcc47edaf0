// SPDX-License-Identifier: Apache-2.0
// A swarm's datagrams under way: for swarm.c alone.
#ifndef WEFT_TESTS_PEER_SWARM_MAIL_H
#define WEFT_TESTS_PEER_SWARM_MAIL_H

#include "tests/peer/swarm.h"

enum { SWARM_K = 64 }; // bytes of a block

struct swarm_event {
  int64_t due_us;
  uint64_t sequence;
  size_t from, to, neighbour; // neighbour: the sender's number at the receiver
  size_t bytes;
  uint8_t data[];
};

// Takes an event that malloc returned.
void swarm_mail_push(swarm *s, swarm_event *event);
// Returns the earliest, to be freed by the caller. There must be one.
swarm_event *swarm_mail_pop(swarm *s);
// Sends a datagram of one node to one of its neighbours, as both nodes' roles and the network have
// it.
void swarm_mail_send(swarm *s, size_t from, size_t neighbour, const weft_datagram *d);

#endif
