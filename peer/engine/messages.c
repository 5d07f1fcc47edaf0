// SPDX-License-Identifier: Apache-2.0
// Parsing and writing the messages of a peer session: HELLO, MAP, BRAKE, BYE, PACE, ACK. What the
// source signs is in messages_signed.c, requests and addresses are in messages_asked.c.
#include "peer/engine/messages.h"

#include "lib/big_endian.h"
#include "peer/engine/messages_parse.h"

enum {
  FLAG_ANSWER_WANTED = 1,
  FLAG_END_KNOWN = 1,
  FLAG_BITMAPS = 2,
  FLAG_FULL = 4,
  FLAGS_FORGONE_UNIT = 8, // a number of four bits
  FLAGS_FORGONE = 15 * FLAGS_FORGONE_UNIT,
  FLAG_NARROW = 128,
  ENTRY_SPENT = 0x8000,
  ENTRY_RANK = 0x7ff
};

void weft_message_start(uint8_t *p, unsigned kind, uint16_t word) {
  p[0] = WEFT_WIRE_VERSION;
  p[1] = (uint8_t)kind;
  weft_put16(p + 2, word);
}

static void get_stamps(const uint8_t *p, weft_stamps *out) {
  *out =
      (weft_stamps){.stamp = weft_get32(p), .echo = weft_get32(p + 4), .held = weft_get32(p + 8)};
}

static void put_stamps(uint8_t *p, const weft_stamps *stamps) {
  weft_put32(p, stamps->stamp);
  weft_put32(p + 4, stamps->echo);
  weft_put32(p + 8, stamps->held);
}

// --- Reading

static weft_status parse_hello(const uint8_t *d, size_t bytes, weft_hello *out) {
  if (bytes != WEFT_HELLO_BYTES)
    return WEFT_E_MALFORMED;
  *out = (weft_hello){.answer_wanted = (weft_get16(d + 2) & FLAG_ANSWER_WANTED) != 0,
                      .stream = weft_get64(d + 4),
                      .blocks = weft_get16(d + 12),
                      .window = weft_get16(d + 14),
                      .block_bytes = weft_get32(d + 16)};
  get_stamps(d + 20, &out->stamps);
  if (weft_get16(d + 2) & ~FLAG_ANSWER_WANTED || out->window > WEFT_MESSAGE_MAX_WINDOW)
    return WEFT_E_MALFORMED;
  return WEFT_OK;
}

static weft_status parse_map(const uint8_t *d, size_t bytes, uint32_t blocks, weft_map *out) {
  if (bytes < WEFT_MAP_BYTES)
    return WEFT_E_MALFORMED;
  const uint16_t flags = weft_get16(d + 2);
  *out = (weft_map){.end_known = (flags & FLAG_END_KNOWN) != 0,
                    .bitmaps = (flags & FLAG_BITMAPS) != 0,
                    .full = (flags & FLAG_FULL) != 0,
                    .narrow = (flags & FLAG_NARROW) != 0,
                    .forgone = (uint8_t)((flags & FLAGS_FORGONE) / FLAGS_FORGONE_UNIT),
                    .first = weft_get64(d + 4),
                    .horizon = weft_get64(d + 12),
                    .end_bytes = weft_get64(d + 20),
                    .suppliers = weft_get16(d + 40),
                    .count = weft_get16(d + 42),
                    .epoch = weft_get16(d + 44),
                    .back = weft_get16(d + 46),
                    .entries = d + WEFT_MAP_BYTES};
  get_stamps(d + 28, &out->stamps);
  out->entry_bytes = out->bitmaps ? (blocks + 7u) / 8u : 2u;
  const uint64_t limit = WEFT_MESSAGE_MAX_SEGMENT; // sums below cannot wrap
  if (flags & ~(FLAG_END_KNOWN | FLAG_BITMAPS | FLAG_FULL | FLAGS_FORGONE | FLAG_NARROW) ||
      out->count > WEFT_MESSAGE_MAX_WINDOW ||
      bytes != WEFT_MAP_BYTES + out->entry_bytes * out->count || out->first > limit ||
      out->horizon > limit ||
      (out->back != WEFT_MAP_BACK_ALL &&
       (out->back > WEFT_MESSAGE_MAX_WINDOW || out->back > out->first)) ||
      (!out->end_known && out->end_bytes != 0))
    return WEFT_E_MALFORMED;
  for (size_t i = 0; i < out->count && !out->bitmaps; i++)
    if (weft_map_rank(out, i) > WEFT_MAX_BLOCKS)
      return WEFT_E_MALFORMED;
  return WEFT_OK;
}

uint16_t weft_map_rank(const weft_map *map, size_t i) {
  if (!map->bitmaps)
    return (uint16_t)(weft_get16(map->entries + 2 * i) & ENTRY_RANK);
  uint16_t rank = 0;
  for (size_t b = 0; b < map->entry_bytes; b++)
    for (unsigned bits = map->entries[i * map->entry_bytes + b]; bits; bits &= bits - 1)
      rank++;
  return rank;
}

bool weft_map_spent(const weft_map *map, size_t i) {
  return !map->bitmaps && weft_get16(map->entries + 2 * i) & ENTRY_SPENT;
}

uint8_t weft_map_helpers(const weft_map *map, size_t i) {
  return map->bitmaps ? 0 : weft_get16(map->entries + 2 * i) >> 11 & WEFT_MAP_HELPERS_MAX;
}

static weft_status parse_brake(const uint8_t *d, size_t bytes, uint64_t *out) {
  *out = weft_get64(d + 4);
  return bytes == WEFT_NOTE_BYTES && weft_get16(d + 2) == 0 && *out <= WEFT_MESSAGE_MAX_SEGMENT
             ? WEFT_OK
             : WEFT_E_MALFORMED;
}

static weft_status parse_bye(const uint8_t *d, size_t bytes, weft_bye_reason *out) {
  *out = (weft_bye_reason)weft_get16(d + 2);
  return bytes == WEFT_NOTE_BYTES && weft_get16(d + 2) <= WEFT_BYE_LAST && weft_get64(d + 4) == 0
             ? WEFT_OK
             : WEFT_E_MALFORMED;
}

static weft_status parse_pace(const uint8_t *d, size_t bytes, weft_pace *out) {
  *out = (weft_pace){.sent = weft_get32(d + 4), .stamp = weft_get32(d + 8)};
  return bytes == WEFT_PACE_BYTES && weft_get16(d + 2) == 0 && out->stamp != 0 ? WEFT_OK
                                                                               : WEFT_E_MALFORMED;
}

static weft_status parse_ack(const uint8_t *d, size_t bytes, weft_ack *out) {
  if (bytes != WEFT_ACK_BYTES || weft_get16(d + 2) != 0)
    return WEFT_E_MALFORMED;
  *out = (weft_ack){.sent = weft_get32(d + 4),
                    .received = weft_get32(d + 8),
                    .delay = weft_get32(d + 12),
                    .stamp = weft_get32(d + 16),
                    .held = weft_get32(d + 20)};
  return WEFT_OK;
}

weft_status weft_message_parse(const uint8_t *datagram, size_t bytes, uint64_t stream,
                               uint32_t blocks, uint32_t block_bytes, weft_message *out) {
  if (bytes > 0 && datagram[0] != WEFT_WIRE_VERSION)
    return WEFT_E_VERSION;
  if (bytes < WEFT_REFER_BYTES) // no message is shorter
    return WEFT_E_MALFORMED;
  const unsigned kind = datagram[1];
  if (kind <= WEFT_PACKET_SPARSE) {
    out->kind = WEFT_MESSAGE_DATA;
    WEFT_TRY(weft_packet_parse_session(datagram, bytes, stream, block_bytes, &out->as.data));
    return out->as.data.id.segment <= WEFT_MESSAGE_MAX_SEGMENT ? WEFT_OK : WEFT_E_MALFORMED;
  }
  out->kind = (weft_message_kind)kind;
  if (kind == WEFT_MESSAGE_REFER || kind == WEFT_MESSAGE_MEET)
    return weft_refer_parse(datagram, bytes, &out->as.refer);
  if (bytes < WEFT_NOTE_BYTES)
    return WEFT_E_MALFORMED;
  switch (out->kind) {
  case WEFT_MESSAGE_HELLO:
    return parse_hello(datagram, bytes, &out->as.hello);
  case WEFT_MESSAGE_MAP:
    return parse_map(datagram, bytes, blocks, &out->as.map);
  case WEFT_MESSAGE_BRAKE:
    return parse_brake(datagram, bytes, &out->as.brake);
  case WEFT_MESSAGE_BYE:
    return parse_bye(datagram, bytes, &out->as.bye);
  case WEFT_MESSAGE_PACE:
    return parse_pace(datagram, bytes, &out->as.pace);
  case WEFT_MESSAGE_ACK:
    return parse_ack(datagram, bytes, &out->as.ack);
  case WEFT_MESSAGE_MANIFEST:
    return weft_manifest_parse(datagram, bytes, &out->as.manifest);
  case WEFT_MESSAGE_CHECKSUM:
    return weft_checksum_parse(datagram, bytes, &out->as.checksum);
  case WEFT_MESSAGE_REVEALED:
    return weft_revealed_parse(datagram, bytes, &out->as.revealed);
  case WEFT_MESSAGE_REQUEST:
    return weft_requests_parse(datagram, bytes, &out->as.requests);
  case WEFT_MESSAGE_DATA:
  case WEFT_MESSAGE_REFER:
  case WEFT_MESSAGE_MEET:
    break;
  }
  return WEFT_E_MALFORMED;
}

// --- Writing

size_t weft_hello_write(const weft_hello *hello, uint8_t *out) {
  weft_message_start(out, WEFT_MESSAGE_HELLO, hello->answer_wanted ? FLAG_ANSWER_WANTED : 0);
  weft_put64(out + 4, hello->stream);
  weft_put16(out + 12, hello->blocks);
  weft_put16(out + 14, hello->window);
  weft_put32(out + 16, hello->block_bytes);
  put_stamps(out + 20, &hello->stamps);
  return WEFT_HELLO_BYTES;
}

size_t weft_map_write(const weft_map *map, uint8_t *out) {
  const unsigned flags = (map->end_known ? FLAG_END_KNOWN : 0u) |
                         (map->bitmaps ? FLAG_BITMAPS : 0u) | (map->full ? FLAG_FULL : 0u) |
                         map->forgone * (unsigned)FLAGS_FORGONE_UNIT |
                         (map->narrow ? FLAG_NARROW : 0u);
  weft_message_start(out, WEFT_MESSAGE_MAP, (uint16_t)flags);
  weft_put64(out + 4, map->first);
  weft_put64(out + 12, map->horizon);
  weft_put64(out + 20, map->end_known ? map->end_bytes : 0);
  put_stamps(out + 28, &map->stamps);
  weft_put16(out + 40, map->suppliers);
  weft_put16(out + 42, map->count);
  weft_put16(out + 44, map->epoch);
  weft_put16(out + 46, map->back);
  return WEFT_MAP_BYTES + map->entry_bytes * map->count;
}

void weft_map_put_rank(uint8_t *out, size_t i, uint16_t rank, uint8_t helpers, bool spent) {
  const unsigned entry = rank | (unsigned)helpers << 11 | (spent ? ENTRY_SPENT : 0u);
  weft_put16(out + WEFT_MAP_BYTES + 2 * i, (uint16_t)entry);
}

size_t weft_brake_write(uint64_t segment, uint8_t *out) {
  weft_message_start(out, WEFT_MESSAGE_BRAKE, 0);
  weft_put64(out + 4, segment);
  return WEFT_NOTE_BYTES;
}

size_t weft_bye_write(weft_bye_reason reason, uint8_t *out) {
  weft_message_start(out, WEFT_MESSAGE_BYE, (uint16_t)reason);
  weft_put64(out + 4, 0);
  return WEFT_NOTE_BYTES;
}

size_t weft_pace_write(const weft_pace *pace, uint8_t *out) {
  weft_message_start(out, WEFT_MESSAGE_PACE, 0);
  weft_put32(out + 4, pace->sent);
  weft_put32(out + 8, pace->stamp);
  return WEFT_PACE_BYTES;
}

size_t weft_ack_write(const weft_ack *ack, uint8_t *out) {
  weft_message_start(out, WEFT_MESSAGE_ACK, 0);
  weft_put32(out + 4, ack->sent);
  weft_put32(out + 8, ack->received);
  weft_put32(out + 12, ack->delay);
  weft_put32(out + 16, ack->stamp);
  weft_put32(out + 20, ack->held);
  return WEFT_ACK_BYTES;
}
