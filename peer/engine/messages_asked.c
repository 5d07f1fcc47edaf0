// SPDX-License-Identifier: Apache-2.0
// Messages that ask for packets, manifests and checksums, and those with addresses of other peers.
#include <string.h>

#include "lib/big_endian.h"
#include "peer/engine/messages_parse.h"

static bool request_valid(const weft_request *request) {
  switch (request->kind) {
  case WEFT_REQUEST_PACKETS:
    return request->count >= 1 && request->count <= WEFT_MAX_BLOCKS && request->mask == 0;
  case WEFT_REQUEST_BLOCKS:
    return request->count < WEFT_MAX_BLOCKS && request->count % 64 == 0 && request->mask != 0;
  case WEFT_REQUEST_MANIFEST:
  case WEFT_REQUEST_CHECKSUM:
    return request->count == 0 && request->mask == 0;
  }
  return false;
}

weft_status weft_requests_parse(const uint8_t *d, size_t bytes, weft_requests *out) {
  *out = (weft_requests){.count = weft_get16(d + 2), .entries = d + WEFT_REQUEST_BYTES};
  if (out->count == 0 || out->count > WEFT_REQUEST_MAX_ENTRIES || weft_get64(d + 4) != 0 ||
      bytes != WEFT_REQUEST_BYTES + (size_t)out->count * WEFT_REQUEST_ENTRY_BYTES)
    return WEFT_E_MALFORMED;
  for (size_t i = 0; i < out->count; i++) {
    const weft_request request = weft_requests_get(out, i);
    if (!request_valid(&request) || request.segment > WEFT_MESSAGE_MAX_SEGMENT)
      return WEFT_E_MALFORMED;
  }
  return WEFT_OK;
}

weft_request weft_requests_get(const weft_requests *requests, size_t i) {
  const uint8_t *d = requests->entries + i * WEFT_REQUEST_ENTRY_BYTES;
  return (weft_request){.segment = weft_get64(d),
                        .kind = (weft_request_kind)weft_get16(d + 8),
                        .count = weft_get16(d + 10),
                        .mask = weft_get64(d + 12)};
}

size_t weft_request_write(const weft_request *requests, size_t count, uint8_t *out) {
  weft_message_start(out, WEFT_MESSAGE_REQUEST, (uint16_t)count);
  weft_put64(out + 4, 0);
  for (size_t i = 0; i < count; i++) {
    uint8_t *d = out + WEFT_REQUEST_BYTES + i * WEFT_REQUEST_ENTRY_BYTES;
    weft_put64(d, requests[i].segment);
    weft_put16(d + 8, (uint16_t)requests[i].kind);
    weft_put16(d + 10, requests[i].count);
    weft_put64(d + 12, requests[i].mask);
  }
  return WEFT_REQUEST_BYTES + count * WEFT_REQUEST_ENTRY_BYTES;
}

// --- Addresses

weft_status weft_refer_parse(const uint8_t *d, size_t bytes, weft_refer *out) {
  *out = (weft_refer){.flags = d[2], .count = d[3], .addresses = d + WEFT_REFER_BYTES};
  const bool meet = d[1] == WEFT_MESSAGE_MEET;
  const unsigned flags =
      meet ? WEFT_MEET_CALL : WEFT_REFER_WANTED | WEFT_REFER_FULL | WEFT_REFER_SOURCE;
  const size_t most = meet ? WEFT_MEET_MAX : WEFT_REFER_MAX;
  const bool some = meet || out->flags & WEFT_REFER_SOURCE;
  if (out->flags & ~flags || out->count > most || (some && out->count == 0))
    return WEFT_E_MALFORMED;
  size_t at = WEFT_REFER_BYTES;
  for (size_t i = 0; i < out->count; i++) {
    if (at >= bytes || d[at] == 0 || d[at] > WEFT_PEER_ADDRESS_BYTES || d[at] >= bytes - at)
      return WEFT_E_MALFORMED;
    at += 1u + d[at];
  }
  return at == bytes ? WEFT_OK : WEFT_E_MALFORMED;
}

weft_peer_address weft_refer_next(const uint8_t **at) {
  weft_peer_address address = {.length = **at};
  memcpy(address.bytes, *at + 1, address.length);
  *at += 1u + address.length;
  return address;
}

size_t weft_refer_write(weft_message_kind kind, uint8_t flags, const weft_peer_address *addresses,
                        size_t count, uint8_t *out) {
  weft_message_start(out, kind, (uint16_t)((size_t)flags << 8 | count));
  size_t at = WEFT_REFER_BYTES;
  for (size_t i = 0; i < count; i++) {
    out[at] = addresses[i].length;
    memcpy(out + at + 1, addresses[i].bytes, addresses[i].length);
    at += 1u + addresses[i].length;
  }
  return at;
}
