// SPDX-License-Identifier: Apache-2.0
// Reading and writing the messages of a peer session.
#include "peer/engine/messages.h"

enum { FLAG_ANSWER_WANTED = 1, FLAG_END_KNOWN = 1 };

// --- Big-endian numbers

static uint16_t get16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }
static uint32_t get32(const uint8_t *p) { return (uint32_t)get16(p) << 16 | get16(p + 2); }
static uint64_t get64(const uint8_t *p) { return (uint64_t)get32(p) << 32 | get32(p + 4); }

static void put16(uint8_t *p, uint16_t v) {
  p[0] = (uint8_t)(v >> 8);
  p[1] = (uint8_t)v;
}
static void put32(uint8_t *p, uint32_t v) {
  put16(p, (uint16_t)(v >> 16));
  put16(p + 2, (uint16_t)v);
}
static void put64(uint8_t *p, uint64_t v) {
  put32(p, (uint32_t)(v >> 32));
  put32(p + 4, (uint32_t)v);
}

static void put_start(uint8_t *p, unsigned kind, uint16_t word) {
  p[0] = WEFT_WIRE_VERSION;
  p[1] = (uint8_t)kind;
  put16(p + 2, word);
}

static void get_stamps(const uint8_t *p, weft_stamps *out) {
  *out = (weft_stamps){.stamp = get32(p), .echo = get32(p + 4), .held = get32(p + 8)};
}

static void put_stamps(uint8_t *p, const weft_stamps *stamps) {
  put32(p, stamps->stamp);
  put32(p + 4, stamps->echo);
  put32(p + 8, stamps->held);
}

// --- Messages

static weft_status parse_hello(const uint8_t *d, size_t bytes, weft_hello *out) {
  if (bytes != WEFT_HELLO_BYTES)
    return WEFT_E_MALFORMED;
  *out = (weft_hello){.answer_wanted = (get16(d + 2) & FLAG_ANSWER_WANTED) != 0,
                      .stream = get64(d + 4),
                      .blocks = get16(d + 12),
                      .window = get16(d + 14),
                      .block_bytes = get32(d + 16)};
  get_stamps(d + 20, &out->stamps);
  if (get16(d + 2) & ~FLAG_ANSWER_WANTED || out->window == 0 ||
      out->window > WEFT_MESSAGE_MAX_RANKS)
    return WEFT_E_MALFORMED;
  return WEFT_OK;
}

static weft_status parse_map(const uint8_t *d, size_t bytes, weft_map *out) {
  if (bytes < WEFT_MAP_BYTES)
    return WEFT_E_MALFORMED;
  *out = (weft_map){.end_known = (get16(d + 2) & FLAG_END_KNOWN) != 0,
                    .first = get64(d + 4),
                    .horizon = get64(d + 12),
                    .end_bytes = get64(d + 20),
                    .degree = get16(d + 40),
                    .count = get16(d + 42),
                    .ranks = d + WEFT_MAP_BYTES};
  get_stamps(d + 28, &out->stamps);
  const uint64_t limit = UINT64_MAX - WEFT_MESSAGE_MAX_RANKS; // sums below cannot wrap
  if (get16(d + 2) & ~FLAG_END_KNOWN || out->count > WEFT_MESSAGE_MAX_RANKS ||
      bytes != WEFT_MAP_BYTES + 2u * out->count || out->first > limit || out->horizon > limit ||
      out->first > out->horizon || (!out->end_known && out->end_bytes != 0))
    return WEFT_E_MALFORMED;
  for (size_t i = 0; i < out->count; i++)
    if (weft_map_rank(out, i) > WEFT_MAX_BLOCKS)
      return WEFT_E_MALFORMED;
  return WEFT_OK;
}

uint16_t weft_map_rank(const weft_map *map, size_t i) { return get16(map->ranks + 2 * i); }

weft_status weft_message_parse(const uint8_t *datagram, size_t bytes, uint64_t stream,
                               uint32_t block_bytes, weft_message *out) {
  if (bytes > 0 && datagram[0] != WEFT_WIRE_VERSION)
    return WEFT_E_VERSION;
  if (bytes < WEFT_NOTE_BYTES) // no message is shorter
    return WEFT_E_MALFORMED;
  switch (datagram[1]) {
  case WEFT_PACKET_SYSTEMATIC:
  case WEFT_PACKET_VECTOR:
  case WEFT_PACKET_DENSE:
  case WEFT_PACKET_SPARSE:
    out->kind = WEFT_MESSAGE_DATA;
    return weft_packet_parse_session(datagram, bytes, stream, block_bytes, &out->as.data);
  case WEFT_MESSAGE_HELLO:
    out->kind = WEFT_MESSAGE_HELLO;
    return parse_hello(datagram, bytes, &out->as.hello);
  case WEFT_MESSAGE_MAP:
    out->kind = WEFT_MESSAGE_MAP;
    return parse_map(datagram, bytes, &out->as.map);
  case WEFT_MESSAGE_BRAKE:
    out->kind = WEFT_MESSAGE_BRAKE;
    out->as.brake = get64(datagram + 4);
    return bytes == WEFT_NOTE_BYTES && get16(datagram + 2) == 0 ? WEFT_OK : WEFT_E_MALFORMED;
  case WEFT_MESSAGE_BYE:
    out->kind = WEFT_MESSAGE_BYE;
    out->as.bye = (weft_bye_reason)get16(datagram + 2);
    return bytes == WEFT_NOTE_BYTES && get16(datagram + 2) <= WEFT_BYE_FINISHED &&
                   get64(datagram + 4) == 0
               ? WEFT_OK
               : WEFT_E_MALFORMED;
  default:
    return WEFT_E_MALFORMED;
  }
}

size_t weft_hello_write(const weft_hello *hello, uint8_t *out) {
  put_start(out, WEFT_MESSAGE_HELLO, hello->answer_wanted ? FLAG_ANSWER_WANTED : 0);
  put64(out + 4, hello->stream);
  put16(out + 12, hello->blocks);
  put16(out + 14, hello->window);
  put32(out + 16, hello->block_bytes);
  put_stamps(out + 20, &hello->stamps);
  return WEFT_HELLO_BYTES;
}

size_t weft_map_write(const weft_map *map, const uint16_t *ranks, uint8_t *out) {
  put_start(out, WEFT_MESSAGE_MAP, map->end_known ? FLAG_END_KNOWN : 0);
  put64(out + 4, map->first);
  put64(out + 12, map->horizon);
  put64(out + 20, map->end_known ? map->end_bytes : 0);
  put_stamps(out + 28, &map->stamps);
  put16(out + 40, map->degree);
  put16(out + 42, map->count);
  for (size_t i = 0; i < map->count; i++)
    put16(out + WEFT_MAP_BYTES + 2 * i, ranks[i]);
  return WEFT_MAP_BYTES + 2u * map->count;
}

size_t weft_brake_write(uint64_t segment, uint8_t *out) {
  put_start(out, WEFT_MESSAGE_BRAKE, 0);
  put64(out + 4, segment);
  return WEFT_NOTE_BYTES;
}

size_t weft_bye_write(weft_bye_reason reason, uint8_t *out) {
  put_start(out, WEFT_MESSAGE_BYE, (uint16_t)reason);
  put64(out + 4, 0);
  return WEFT_NOTE_BYTES;
}
