// SPDX-License-Identifier: Apache-2.0
// The wire format of coded packets, version 1 (docs/wire.md): reading, writing, and the
// coefficients of a packet. All numbers on the wire are big-endian.
#include "weft/packet.h"

#include <string.h>

#include "lib/big_endian.h"
#include "lib/coefficients.h"

enum { SESSION_HEADER = WEFT_WIRE_SESSION_HEADER_BYTES, HEADER = WEFT_WIRE_HEADER_BYTES };

// --- checks ---

bool weft_segment_id_valid(const weft_segment_id *id) {
  return id->blocks >= 1 && id->blocks <= WEFT_MAX_BLOCKS && id->block_bytes >= 1 &&
         id->block_bytes <= WEFT_MAX_BLOCK_BYTES;
}

bool weft_segment_id_equal(const weft_segment_id *a, const weft_segment_id *b) {
  return a->stream == b->stream && a->segment == b->segment && a->blocks == b->blocks &&
         a->block_bytes == b->block_bytes;
}

weft_status weft_packet_check(const weft_packet *packet) {
  if (!weft_segment_id_valid(&packet->id))
    return WEFT_E_MALFORMED;
  switch (packet->mode) {
  case WEFT_PACKET_SYSTEMATIC:
    return packet->index < packet->id.blocks ? WEFT_OK : WEFT_E_MALFORMED;
  case WEFT_PACKET_VECTOR:
    return packet->coefficients ? WEFT_OK : WEFT_E_ARGUMENT;
  case WEFT_PACKET_DENSE:
    return WEFT_OK;
  case WEFT_PACKET_SPARSE:
    return packet->density_q16 > 0 ? WEFT_OK : WEFT_E_MALFORMED;
  }
  return WEFT_E_MALFORMED;
}

// --- sizes ---

// Returns the mode's own bytes between header and payload; 0 for an unknown mode.
static size_t mode_bytes(size_t blocks, unsigned mode) {
  switch (mode) {
  case WEFT_PACKET_SYSTEMATIC:
    return 2;
  case WEFT_PACKET_VECTOR:
    return blocks;
  case WEFT_PACKET_DENSE:
    return 8;
  case WEFT_PACKET_SPARSE:
    return 10;
  default:
    return 0;
  }
}

static size_t packet_bytes(const weft_segment_id *id, weft_packet_mode mode, size_t header) {
  if (!id || !weft_segment_id_valid(id))
    return 0;
  const size_t mode_data = mode_bytes(id->blocks, mode);
  return mode_data == 0 ? 0 : header + mode_data + id->block_bytes;
}

size_t weft_packet_bytes(const weft_segment_id *id, weft_packet_mode mode) {
  return packet_bytes(id, mode, HEADER);
}

size_t weft_packet_session_bytes(const weft_segment_id *id, weft_packet_mode mode) {
  return packet_bytes(id, mode, SESSION_HEADER);
}

// --- reading ---

// Parses what follows the header. `out` already has mode and id.
static weft_status parse_body(const uint8_t *body, size_t bytes, weft_packet *out) {
  if (!weft_segment_id_valid(&out->id))
    return WEFT_E_MALFORMED;
  const size_t mode_data = mode_bytes(out->id.blocks, out->mode);
  if (mode_data == 0 || bytes != mode_data + out->id.block_bytes)
    return WEFT_E_MALFORMED;
  switch (out->mode) {
  case WEFT_PACKET_SYSTEMATIC:
    out->index = (uint32_t)weft_get_number(body, 2);
    break;
  case WEFT_PACKET_VECTOR:
    out->coefficients = body;
    break;
  case WEFT_PACKET_DENSE:
    out->seed = weft_get_number(body, 8);
    break;
  case WEFT_PACKET_SPARSE:
    out->seed = weft_get_number(body, 8);
    out->density_q16 = (uint16_t)weft_get_number(body + 8, 2);
    break;
  }
  out->payload = body + mode_data;
  return weft_packet_check(out);
}

// Checks the version, the length and the mode of a datagram.
static weft_status check_header(const uint8_t *datagram, size_t bytes, size_t header) {
  if (bytes == 0)
    return WEFT_E_MALFORMED;
  if (datagram[0] != WEFT_WIRE_VERSION)
    return WEFT_E_VERSION;
  return bytes < header || datagram[1] > WEFT_PACKET_SPARSE ? WEFT_E_MALFORMED : WEFT_OK;
}

weft_status weft_packet_parse(const uint8_t *datagram, size_t bytes, weft_packet *out) {
  if (!datagram || !out)
    return WEFT_E_ARGUMENT;
  WEFT_TRY(check_header(datagram, bytes, HEADER));
  weft_packet packet = {.mode = (weft_packet_mode)datagram[1],
                        .id = {.blocks = (uint32_t)weft_get_number(datagram + 2, 2),
                               .block_bytes = (uint32_t)weft_get_number(datagram + 4, 4),
                               .stream = weft_get_number(datagram + 8, 8),
                               .segment = weft_get_number(datagram + 16, 8)}};
  WEFT_TRY(parse_body(datagram + HEADER, bytes - HEADER, &packet));
  *out = packet;
  return WEFT_OK;
}

weft_status weft_packet_parse_session(const uint8_t *datagram, size_t bytes, uint64_t stream,
                                      uint32_t block_bytes, weft_packet *out) {
  if (!datagram || !out || block_bytes < 1 || block_bytes > WEFT_MAX_BLOCK_BYTES)
    return WEFT_E_ARGUMENT;
  WEFT_TRY(check_header(datagram, bytes, SESSION_HEADER));
  weft_packet packet = {.mode = (weft_packet_mode)datagram[1],
                        .id = {.blocks = (uint32_t)weft_get_number(datagram + 2, 2),
                               .block_bytes = block_bytes,
                               .stream = stream,
                               .segment = weft_get_number(datagram + 4, 8)}};
  WEFT_TRY(parse_body(datagram + SESSION_HEADER, bytes - SESSION_HEADER, &packet));
  *out = packet;
  return WEFT_OK;
}

// --- writing ---

// Writes mode data and payload into `room` bytes.
static weft_status write_body(const weft_packet *packet, uint8_t *body, size_t room,
                              size_t *written) {
  const size_t mode_data = mode_bytes(packet->id.blocks, packet->mode);
  const size_t bytes = mode_data + (packet->payload ? packet->id.block_bytes : 0);
  if (room < bytes)
    return WEFT_E_BUFFER;
  if (packet->payload && packet->payload != body + mode_data) // it may already be in place
    memmove(body + mode_data, packet->payload, packet->id.block_bytes);
  switch (packet->mode) {
  case WEFT_PACKET_SYSTEMATIC:
    weft_put_number(body, 2, packet->index);
    break;
  case WEFT_PACKET_VECTOR:
    memmove(body, packet->coefficients, packet->id.blocks);
    break;
  case WEFT_PACKET_DENSE:
    weft_put_number(body, 8, packet->seed);
    break;
  case WEFT_PACKET_SPARSE:
    weft_put_number(body, 8, packet->seed);
    weft_put_number(body + 8, 2, packet->density_q16);
    break;
  }
  *written = bytes;
  return WEFT_OK;
}

static weft_status check_write(const weft_packet *packet, const uint8_t *datagram, size_t capacity,
                               const size_t *written, size_t header) {
  if (!packet || !datagram || !written || weft_packet_check(packet) != WEFT_OK)
    return WEFT_E_ARGUMENT;
  return capacity < header ? WEFT_E_BUFFER : WEFT_OK;
}

weft_status weft_packet_write(const weft_packet *packet, uint8_t *datagram, size_t capacity,
                              size_t *written) {
  WEFT_TRY(check_write(packet, datagram, capacity, written, HEADER));
  WEFT_TRY(write_body(packet, datagram + HEADER, capacity - HEADER, written));
  *written += HEADER;
  datagram[0] = WEFT_WIRE_VERSION;
  datagram[1] = (uint8_t)packet->mode;
  weft_put_number(datagram + 2, 2, packet->id.blocks);
  weft_put_number(datagram + 4, 4, packet->id.block_bytes);
  weft_put_number(datagram + 8, 8, packet->id.stream);
  weft_put_number(datagram + 16, 8, packet->id.segment);
  return WEFT_OK;
}

weft_status weft_packet_write_session(const weft_packet *packet, uint8_t *datagram, size_t capacity,
                                      size_t *written) {
  WEFT_TRY(check_write(packet, datagram, capacity, written, SESSION_HEADER));
  WEFT_TRY(write_body(packet, datagram + SESSION_HEADER, capacity - SESSION_HEADER, written));
  *written += SESSION_HEADER;
  datagram[0] = WEFT_WIRE_VERSION;
  datagram[1] = (uint8_t)packet->mode;
  weft_put_number(datagram + 2, 2, packet->id.blocks);
  weft_put_number(datagram + 4, 8, packet->id.segment);
  return WEFT_OK;
}

// --- coefficients ---

weft_status weft_packet_coefficients(const weft_packet *packet, uint8_t *coefficients) {
  if (!packet || !coefficients || weft_packet_check(packet) != WEFT_OK)
    return WEFT_E_ARGUMENT;
  if (packet->mode == WEFT_PACKET_VECTOR)
    memmove(coefficients, packet->coefficients, packet->id.blocks);
  else
    weft_coefficients_named(packet, coefficients);
  return WEFT_OK;
}
