// SPDX-License-Identifier: Apache-2.0
#include "peer/runtime/describe.h"

#include <sodium.h>
#include <string.h>

#include "lib/big_endian.h"
#include "peer/runtime/kernel_address.h"
#include "weft/packet.h"

enum { VERSION = 1, FLAG_TRUSTED = 1, FLAG_CHECKSUMS = 2, FLAG_LEAVING = 1, FLAG_CALLED = 1 };
enum { FLAG_SOURCE_FIRST = 1 };

size_t weft_describe(weft_node_role role, const weft_stream *s, uint8_t *out) {
  static const weft_stream none;
  const weft_stream *about = s ? s : &none;
  out[0] = VERSION;
  out[1] = (uint8_t)role;
  out[2] = (uint8_t)about->mode;
  out[3] = (uint8_t)((about->trusted ? FLAG_TRUSTED : 0) | (about->checksums ? FLAG_CHECKSUMS : 0));
  weft_put_number(out + 4, 2, about->blocks);
  weft_put_number(out + 6, 2, 0);
  weft_put_number(out + 8, 4, about->block_bytes);
  weft_put_number(out + 12, 8, about->id);
  weft_put_number(out + 20, 8, about->rate_bits_per_s);
  weft_put_number(out + 28, 8, about->bytes);
  weft_put_number(out + 36, 4, about->lag_ms);
  weft_put_number(out + 40, 4, 0);
  memcpy(out + 44, about->source_key, 32);
  return WEFT_DESCRIPTION_BYTES;
}

bool weft_described(const uint8_t *blob, size_t bytes, weft_node_role *role, weft_stream *out) {
  if (bytes != WEFT_DESCRIPTION_BYTES || blob[0] != VERSION || blob[1] > WEFT_NODE_TRACKER ||
      blob[2] > WEFT_MODE_LIVE || blob[3] > (FLAG_TRUSTED | FLAG_CHECKSUMS) ||
      weft_get_number(blob + 6, 2) || weft_get_number(blob + 40, 4))
    return false;
  *role = (weft_node_role)blob[1];
  *out = (weft_stream){.mode = (weft_engine_mode)blob[2],
                       .trusted = blob[3] & FLAG_TRUSTED,
                       .checksums = blob[3] & FLAG_CHECKSUMS,
                       .blocks = (uint16_t)weft_get_number(blob + 4, 2),
                       .block_bytes = (uint32_t)weft_get_number(blob + 8, 4),
                       .id = weft_get_number(blob + 12, 8),
                       .rate_bits_per_s = weft_get_number(blob + 20, 8),
                       .bytes = weft_get_number(blob + 28, 8),
                       .lag_ms = (uint32_t)weft_get_number(blob + 36, 4)};
  memcpy(out->source_key, blob + 44, 32);
  if (*role != WEFT_NODE_PEER && *role != WEFT_NODE_SOURCE)
    return sodium_is_zero(blob + 2, bytes - 2);
  // Every coded packet with its coefficients or its seed must fit into one datagram.
  return out->id != 0 && out->blocks >= 1 && out->block_bytes >= 1 &&
         WEFT_WIRE_SESSION_HEADER_BYTES + WEFT_PACKET_COEFFICIENT_BYTES(out->blocks) +
                 out->block_bytes <=
             WEFT_SESSION_PLAIN_BYTES;
}

void weft_address_write(const weft_address *address, uint8_t out[WEFT_LIST_ENTRY_BYTES]) {
  weft_address bare = *address;
  (void)weft_address_take_zone(&bare); // an interface number is ours alone
  memcpy(out, bare.ip, 16);
  weft_put_number(out + 16, 2, address->port);
}

weft_address weft_address_read(const uint8_t in[WEFT_LIST_ENTRY_BYTES]) {
  weft_address a = {.port = (uint16_t)weft_get_number(in + 16, 2)};
  memcpy(a.ip, in, 16);
  (void)weft_address_take_zone(&a);
  return a;
}

size_t weft_announce_write(bool leaving, uint64_t stream, uint8_t *out) {
  out[0] = WEFT_WIRE_VERSION;
  out[1] = WEFT_KIND_ANNOUNCE;
  weft_put_number(out + 2, 2, leaving ? FLAG_LEAVING : 0);
  weft_put_number(out + 4, 8, stream);
  return WEFT_ANNOUNCE_BYTES;
}

bool weft_announce_parse(const uint8_t *data, size_t bytes, bool *leaving, uint64_t *stream) {
  if (bytes != WEFT_ANNOUNCE_BYTES || weft_get_number(data + 2, 2) > FLAG_LEAVING)
    return false;
  *leaving = data[3] == FLAG_LEAVING;
  *stream = weft_get_number(data + 4, 8);
  return true;
}

size_t weft_list_write(const weft_list *list, uint8_t *out) {
  out[0] = WEFT_WIRE_VERSION;
  out[1] = WEFT_KIND_LIST;
  out[2] = list->source_first ? FLAG_SOURCE_FIRST : 0;
  out[3] = (uint8_t)list->count;
  weft_put_number(out + 4, 8, list->stream);
  for (size_t i = 0; i < list->count; i++)
    weft_address_write(&list->entries[i], out + WEFT_LIST_BYTES + i * WEFT_LIST_ENTRY_BYTES);
  return WEFT_LIST_BYTES + list->count * WEFT_LIST_ENTRY_BYTES;
}

bool weft_list_parse(const uint8_t *data, size_t bytes, weft_list *list) {
  if (bytes < WEFT_LIST_BYTES || data[2] > FLAG_SOURCE_FIRST || data[3] > WEFT_LIST_MAX)
    return false;
  list->source_first = data[2];
  list->count = data[3];
  if (list->count < list->source_first ||
      bytes != WEFT_LIST_BYTES + list->count * WEFT_LIST_ENTRY_BYTES)
    return false;
  list->stream = weft_get_number(data + 4, 8);
  for (size_t i = 0; i < list->count; i++)
    list->entries[i] = weft_address_read(data + WEFT_LIST_BYTES + i * WEFT_LIST_ENTRY_BYTES);
  return true;
}

size_t weft_tracker_meet_write(bool called, const weft_address *address, uint8_t *out) {
  out[0] = WEFT_WIRE_VERSION;
  out[1] = WEFT_KIND_MEET;
  weft_put_number(out + 2, 2, called ? FLAG_CALLED : 0);
  weft_address_write(address, out + 4);
  return WEFT_TRACKER_MEET_BYTES;
}

bool weft_tracker_meet_parse(const uint8_t *data, size_t bytes, bool *called,
                             weft_address *address) {
  if (bytes != WEFT_TRACKER_MEET_BYTES || weft_get_number(data + 2, 2) > FLAG_CALLED)
    return false;
  *called = data[3] == FLAG_CALLED;
  *address = weft_address_read(data + 4);
  return address->port != 0;
}

size_t weft_mapped_write(const weft_address *mapped, uint8_t *out) {
  out[0] = WEFT_WIRE_VERSION;
  out[1] = WEFT_KIND_MAPPED;
  weft_put_number(out + 2, 2, 0);
  weft_address_write(mapped, out + 4);
  return WEFT_MAPPED_BYTES;
}

bool weft_mapped_parse(const uint8_t *data, size_t bytes, weft_address *mapped) {
  static const uint8_t none[WEFT_LIST_ENTRY_BYTES];
  if (bytes != WEFT_MAPPED_BYTES || weft_get_number(data + 2, 2))
    return false;
  *mapped = weft_address_read(data + 4);
  return mapped->port != 0 || memcmp(data + 4, none, sizeof none) == 0;
}
