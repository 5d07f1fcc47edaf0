// SPDX-License-Identifier: Apache-2.0
// Messages between nodes besides the engine's: the blob of a handshake, the messages between a node
// and a tracker, and where a node has a port mapped (docs/peer/tracker.md).
#ifndef WEFT_PEER_DESCRIBE_H
#define WEFT_PEER_DESCRIBE_H

#include "weft/peer_node.h"

#define WEFT_DESCRIPTION_BYTES 76u

// Kinds of messages; the engine's have lower numbers.
enum {
  WEFT_KIND_ANNOUNCE = 64,
  WEFT_KIND_LIST = 65,
  WEFT_KIND_MEET = 66,
  WEFT_KIND_MAPPED = 67,
  WEFT_KIND_NODE_FIRST = 64
};
enum { WEFT_ANNOUNCE_BYTES = 12, WEFT_LIST_BYTES = 12, WEFT_LIST_ENTRY_BYTES = 18 };
enum { WEFT_TRACKER_MEET_BYTES = 4 + WEFT_LIST_ENTRY_BYTES };
enum { WEFT_MAPPED_BYTES = 4 + WEFT_LIST_ENTRY_BYTES };
enum { WEFT_LIST_MAX = 32, WEFT_LIST_MAX_BYTES = WEFT_LIST_BYTES + 32 * WEFT_LIST_ENTRY_BYTES };

size_t weft_describe(weft_node_role role, const weft_stream *stream, uint8_t *out);
// stream->id is 0 if the other side has no stream. Returns false if it is malformed.
bool weft_described(const uint8_t *blob, size_t bytes, weft_node_role *role, weft_stream *stream);

size_t weft_announce_write(bool leaving, uint64_t stream, uint8_t *out);
bool weft_announce_parse(const uint8_t *data, size_t bytes, bool *leaving, uint64_t *stream);
typedef struct weft_list {
  uint64_t stream;
  bool source_first; // the first address is the source's
  size_t count;
  weft_address entries[WEFT_LIST_MAX]; // (count)
} weft_list;

size_t weft_list_write(const weft_list *list, uint8_t *out); // out: WEFT_LIST_MAX_BYTES
bool weft_list_parse(const uint8_t *data, size_t bytes, weft_list *list); // false: malformed

// called = false, to a tracker: the sender is dialling the node at `address`, which should be told.
// called = true, from a tracker: the node at `address` is dialling the receiver.
size_t weft_tracker_meet_write(bool called, const weft_address *address, uint8_t *out);
bool weft_tracker_meet_parse(const uint8_t *data, size_t bytes, bool *called,
                             weft_address *address);

// Where the sender can be dialled, too; all zero: nowhere.
size_t weft_mapped_write(const weft_address *mapped, uint8_t *out);
bool weft_mapped_parse(const uint8_t *data, size_t bytes, weft_address *mapped);

void weft_address_write(const weft_address *address, uint8_t out[WEFT_LIST_ENTRY_BYTES]);
weft_address weft_address_read(const uint8_t in[WEFT_LIST_ENTRY_BYTES]);

#endif
