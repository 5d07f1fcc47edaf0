// SPDX-License-Identifier: Apache-2.0
// The wire format against the vectors of docs/wire.md, and against damaged datagrams.
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/fixture.h"
#include "tests/support/test_main.h"

enum { LINE_MAX_ = 512, BYTES_MAX = 128 };

static size_t from_hex(const char *hex, uint8_t *out) {
  size_t count = 0;
  unsigned byte;
  for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
    out[count++] = (uint8_t)byte;
  return count;
}

// One parsed line of vectors.
typedef struct vector {
  char kind[16], mode[32];
  weft_packet packet;
  uint8_t payload[BYTES_MAX], coefficients[BYTES_MAX];
  size_t payload_bytes;
  uint8_t wanted[BYTES_MAX]; // after the colon
  size_t wanted_bytes;
} vector;

static weft_packet_mode mode_of(const char *name) {
  static const char *const names[] = {"systematic", "vector", "dense", "sparse"};
  for (int i = 0; i < 4; i++)
    if (strcmp(names[i], name) == 0)
      return (weft_packet_mode)i;
  ck_abort_msg("docs/wire.md: no mode is called %s", name);
  return WEFT_PACKET_SYSTEMATIC;
}

static void read_field(vector *v, const char *word) {
  weft_packet *p = &v->packet;
  const char *value = strchr(word, '=');
  if (!value) {
    snprintf(v->mode, sizeof v->mode, "%s", word);
    return;
  }
  const size_t name = (size_t)(value++ - word);
  const unsigned long long hex = strtoull(value, NULL, 16), decimal = strtoull(value, NULL, 10);
  if (strncmp(word, "stream", name) == 0)
    p->id.stream = hex;
  else if (strncmp(word, "segment", name) == 0)
    p->id.segment = hex;
  else if (strncmp(word, "seed", name) == 0)
    p->seed = hex;
  else if (strncmp(word, "n", name) == 0)
    p->id.blocks = (uint32_t)decimal;
  else if (strncmp(word, "index", name) == 0)
    p->index = (uint32_t)decimal;
  else if (strncmp(word, "density", name) == 0)
    p->density_q16 = (uint16_t)decimal;
  else if (strncmp(word, "payload", name) == 0)
    v->payload_bytes = from_hex(value, v->payload);
  else if (strncmp(word, "coefficients", name) == 0)
    from_hex(value, v->coefficients);
  else
    ck_abort_msg("docs/wire.md: what is %s?", word);
}

static void read_vector(char *line, vector *v) {
  memset(v, 0, sizeof *v);
  char *word = strtok(line, " \n");
  snprintf(v->kind, sizeof v->kind, "%s", word);
  while ((word = strtok(NULL, " \n")) && strcmp(word, ":") != 0)
    read_field(v, word);
  word = strtok(NULL, " \n");
  ck_assert_msg(word != NULL, "docs/wire.md: a vector without a value");
  v->wanted_bytes = from_hex(word, v->wanted);
  v->packet.payload = v->payload;
  v->packet.id.block_bytes = v->payload_bytes > 0 ? (uint32_t)v->payload_bytes : 1;
}

static void check_coefficients(vector *v) {
  uint8_t out[BYTES_MAX];
  memset(out, 0x5A, sizeof out); // not what the vector before left there
  v->packet.mode = mode_of(v->mode);
  EXPECT_OK(weft_packet_coefficients(&v->packet, out));
  EXPECT(v->wanted_bytes == v->packet.id.blocks);
  EXPECT(memcmp(out, v->wanted, v->wanted_bytes) == 0);
}

static void check_packet(vector *v, bool session) {
  weft_packet *p = &v->packet;
  uint8_t out[BYTES_MAX];
  size_t bytes;
  memset(out, 0x5A, sizeof out); // not what the vector before left there
  p->mode = mode_of(v->mode);
  if (p->mode == WEFT_PACKET_VECTOR)
    p->coefficients = v->coefficients;
  const size_t length =
      session ? weft_packet_session_bytes(&p->id, p->mode) : weft_packet_bytes(&p->id, p->mode);
  EXPECT(length == v->wanted_bytes);
  EXPECT_OK((session ? weft_packet_write_session : weft_packet_write)(p, out, sizeof out, &bytes));
  EXPECT(bytes == v->wanted_bytes);
  EXPECT(memcmp(out, v->wanted, bytes) == 0);
  for (size_t capacity = 0; capacity < bytes; capacity++) {
    size_t none;
    EXPECT_STATUS(
        (session ? weft_packet_write_session : weft_packet_write)(p, out, capacity, &none),
        WEFT_E_BUFFER);
  }
  EXPECT_OK((session ? weft_packet_write_session : weft_packet_write)(p, out, bytes, &bytes));

  uint8_t coefficients[BYTES_MAX];
  EXPECT_OK(weft_packet_coefficients(p, coefficients));
  if (p->mode == WEFT_PACKET_VECTOR)
    EXPECT(memcmp(coefficients, v->coefficients, p->id.blocks) == 0);

  weft_packet parsed;
  EXPECT_OK(session ? weft_packet_parse_session(v->wanted, v->wanted_bytes, p->id.stream,
                                                p->id.block_bytes, &parsed)
                    : weft_packet_parse(v->wanted, v->wanted_bytes, &parsed));
  EXPECT(parsed.mode == p->mode && parsed.id.blocks == p->id.blocks);
  EXPECT(parsed.id.stream == p->id.stream && parsed.id.segment == p->id.segment);
  EXPECT(parsed.id.block_bytes == p->id.block_bytes);
  EXPECT(parsed.seed == p->seed && parsed.index == p->index);
  EXPECT(parsed.density_q16 == p->density_q16);
  EXPECT(parsed.payload == v->wanted + v->wanted_bytes - v->payload_bytes);
  EXPECT((parsed.coefficients != NULL) == (p->mode == WEFT_PACKET_VECTOR));
  if (parsed.coefficients)
    EXPECT(memcmp(parsed.coefficients, v->coefficients, p->id.blocks) == 0);
}

static void check_reject(const vector *v) {
  weft_packet untouched, parsed;
  memset(&untouched, 0x5A, sizeof untouched);
  memcpy(&parsed, &untouched, sizeof parsed);
  // mode holds the last bare word, which is the reason; the first is the status.
  const weft_status status = weft_packet_parse(v->wanted, v->wanted_bytes, &parsed);
  EXPECT(status != WEFT_OK);
  EXPECT(memcmp(&parsed, &untouched, sizeof parsed) == 0);
}

START_TEST(vectors_of_the_document) {
  FILE *file = fopen("docs/wire.md", "r");
  ck_assert_msg(file != NULL, "docs/wire.md is not there: run from the root of the tree");
  char line[LINE_MAX_];
  bool inside = false;
  int coefficients = 0, packets = 0, sessions = 0, rejects = 0;
  while (fgets(line, sizeof line, file)) {
    if (strncmp(line, "```", 3) == 0) {
      inside = !inside && strncmp(line, "```vectors", 10) == 0;
      continue;
    }
    if (!inside)
      continue;
    char status[32] = "";
    const bool is_reject = sscanf(line, "reject %31s", status) == 1;
    vector v;
    read_vector(line, &v);
    if (is_reject) {
      check_reject(&v);
      weft_packet ignored;
      ck_assert_str_eq(weft_status_name(weft_packet_parse(v.wanted, v.wanted_bytes, &ignored)),
                       status);
      rejects++;
    } else if (strcmp(v.kind, "coefficients") == 0) {
      check_coefficients(&v);
      coefficients++;
    } else {
      ck_assert(strcmp(v.kind, "packet") == 0 || strcmp(v.kind, "session") == 0);
      check_packet(&v, v.kind[0] == 's');
      *(v.kind[0] == 's' ? &sessions : &packets) += 1;
    }
  }
  fclose(file);
  ck_assert_int_eq(coefficients, 9);
  ck_assert_int_eq(packets, 4);
  ck_assert_int_eq(sessions, 4);
  ck_assert_int_eq(rejects, 12);
}
END_TEST

// Draws the coefficients one by one according to the document, from a keystream long enough for any
// packet.
static void read_sparse(const weft_packet *packet, uint8_t *out) {
  const uint64_t words[4] = {packet->id.stream, packet->id.segment, packet->seed, 0};
  uint8_t key[32], stream[4 * WEFT_MAX_BLOCKS];
  for (size_t i = 0; i < sizeof key; i++)
    key[i] = (uint8_t)(words[i / 8] >> 8 * (i % 8));
  randombytes_buf_deterministic(stream, sizeof stream, key);
  for (size_t i = 0, at = 0; i < packet->id.blocks; i++) {
    unsigned u = stream[at] | (unsigned)stream[at + 1] << 8;
    out[i] = 0;
    at += 2;
    if (u < packet->density_q16) {
      u = stream[at] | (unsigned)stream[at + 1] << 8;
      out[i] = (uint8_t)(1 + u * 255 / 65536);
      at += 2;
    }
  }
}

START_TEST(sparse_seeds_of_any_shape) {
  static const uint16_t densities[] = {1, 700, 6553, 22000, 32768, 60000, UINT16_MAX};
  static const uint32_t sizes[] = {1, 2, 9, 10, 33, 64, 128, 500, WEFT_MAX_BLOCKS};
  fixture_start(80);
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
    for (size_t i = 0; i < 7 * 100; i++) {
      const weft_packet packet = {.id = {fixture_next(), fixture_next(), sizes[s], 8},
                                  .mode = WEFT_PACKET_SPARSE,
                                  .seed = fixture_next(),
                                  .density_q16 = densities[i % 7]};
      uint8_t coefficients[WEFT_MAX_BLOCKS], wanted[WEFT_MAX_BLOCKS];
      EXPECT_OK(weft_packet_coefficients(&packet, coefficients));
      read_sparse(&packet, wanted);
      EXPECT(memcmp(coefficients, wanted, sizes[s]) == 0);
    }
}
END_TEST

// Every length but the right one is refused; each is read from a heap block of exactly that length.
static void check_lengths(const weft_packet *packet, bool session) {
  uint8_t datagram[256];
  size_t bytes;
  EXPECT_OK((session ? weft_packet_write_session : weft_packet_write)(packet, datagram,
                                                                      sizeof datagram, &bytes));
  for (size_t length = 0; length < bytes + 40; length++) {
    uint8_t *exact = fixture_malloc(length);
    memcpy(exact, datagram, length);
    weft_packet parsed;
    EXPECT_STATUS(session ? weft_packet_parse_session(exact, length, packet->id.stream,
                                                      packet->id.block_bytes, &parsed)
                          : weft_packet_parse(exact, length, &parsed),
                  length == bytes ? WEFT_OK : WEFT_E_MALFORMED);
    free(exact);
  }
}

START_TEST(only_the_exact_length_is_read) {
  fixture_start(1);
  const weft_segment_id id = fixture_id(7, 33);
  uint8_t coefficients[7], payload[33];
  fixture_fill(coefficients, sizeof coefficients);
  fixture_fill(payload, sizeof payload);
  for (int mode = 0; mode < 4; mode++) {
    const weft_packet packet = {.id = id,
                                .mode = (weft_packet_mode)mode,
                                .index = 6,
                                .seed = 5,
                                .density_q16 = 9,
                                .coefficients = coefficients,
                                .payload = payload};
    check_lengths(&packet, false);
    check_lengths(&packet, true);
  }
}
END_TEST

// Expects that a datagram of a session with k = 2 is refused, and `out` left as it was.
static void check_session_reject(const uint8_t *datagram, size_t bytes, weft_status status) {
  weft_packet untouched, parsed;
  memset(&untouched, 0x5A, sizeof untouched);
  memcpy(&parsed, &untouched, sizeof parsed);
  EXPECT_STATUS(weft_packet_parse_session(datagram, bytes, 1, 2, &parsed), status);
  EXPECT(memcmp(&parsed, &untouched, sizeof parsed) == 0);
}

// What docs/wire.md refuses is refused in a session, too.
START_TEST(sessions_refuse_damage) {
  static const struct {
    size_t at;
    uint8_t value;
    weft_status status;
  } damage[] = {
      {0, 0, WEFT_E_VERSION},     {0, 2, WEFT_E_VERSION},    {1, 4, WEFT_E_MALFORMED},
      {1, 255, WEFT_E_MALFORMED}, {13, 3, WEFT_E_MALFORMED}, {12, 1, WEFT_E_MALFORMED},
  };
  const uint8_t block[2] = {0};
  uint8_t datagram[64];
  size_t bytes;
  weft_packet packet = {.id = {1, 2, 3, 2}, .mode = WEFT_PACKET_SYSTEMATIC, .payload = block};
  for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
    EXPECT_OK(weft_packet_write_session(&packet, datagram, sizeof datagram, &bytes));
    datagram[damage[i].at] = damage[i].value;
    check_session_reject(datagram, bytes, damage[i].status);
  }
  packet.mode = WEFT_PACKET_DENSE; // its length does not depend on n
  for (size_t n = 0; n <= 1025; n += 1025) {
    EXPECT_OK(weft_packet_write_session(&packet, datagram, sizeof datagram, &bytes));
    datagram[2] = (uint8_t)(n >> 8);
    datagram[3] = (uint8_t)n;
    check_session_reject(datagram, bytes, WEFT_E_MALFORMED);
  }
  packet.mode = WEFT_PACKET_SPARSE;
  packet.density_q16 = 1;
  EXPECT_OK(weft_packet_write_session(&packet, datagram, sizeof datagram, &bytes));
  datagram[21] = 0;
  check_session_reject(datagram, bytes, WEFT_E_MALFORMED);
}
END_TEST

// A header can be written alone, in front of a payload that is coded in place.
START_TEST(header_alone_and_in_place) {
  fixture_start(2);
  const weft_segment_id id = fixture_id(5, 9);
  uint8_t coefficients[5], payload[9], whole[64], part[64];
  fixture_fill(coefficients, sizeof coefficients);
  fixture_fill(payload, sizeof payload);
  weft_packet packet = {
      .id = id, .mode = WEFT_PACKET_VECTOR, .coefficients = coefficients, .payload = payload};
  size_t bytes, head;
  EXPECT_OK(weft_packet_write(&packet, whole, sizeof whole, &bytes));
  packet.payload = NULL;
  EXPECT_OK(weft_packet_write(&packet, part, sizeof part, &head));
  EXPECT(head == bytes - sizeof payload);
  EXPECT(memcmp(whole, part, head) == 0);
  memcpy(part + head, payload, sizeof payload);
  packet.coefficients = part + WEFT_WIRE_HEADER_BYTES;
  packet.payload = part + head;
  EXPECT_OK(weft_packet_write(&packet, part, sizeof part, &bytes));
  EXPECT(memcmp(whole, part, bytes) == 0);
}
END_TEST

// Expects that neither way to write a packet writes anything.
static void check_unwritten(const weft_packet *packet, size_t capacity, weft_status status) {
  uint8_t untouched[64], datagram[64];
  memset(untouched, 0x5A, sizeof untouched);
  memcpy(datagram, untouched, sizeof datagram);
  size_t written = 77;
  EXPECT_STATUS(weft_packet_write(packet, datagram, capacity, &written), status);
  EXPECT_STATUS(weft_packet_write_session(packet, datagram, capacity, &written), status);
  EXPECT(written == 77);
  EXPECT(memcmp(datagram, untouched, sizeof datagram) == 0);
}

START_TEST(arguments_out_of_range) {
  uint8_t bytes[64] = {0};
  size_t written;
  weft_packet packet = {.id = fixture_id(3, 2), .mode = WEFT_PACKET_DENSE, .payload = bytes};
  EXPECT_STATUS(weft_packet_write(&packet, NULL, 64, &written), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_packet_write(&packet, bytes, 64, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_packet_write_session(&packet, NULL, 64, &written), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_packet_write_session(&packet, bytes, 64, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_packet_coefficients(NULL, bytes), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_packet_coefficients(&packet, NULL), WEFT_E_ARGUMENT);
  check_unwritten(NULL, 64, WEFT_E_ARGUMENT);
  for (size_t capacity = 0; capacity < 12 + 8 + 2; capacity++)
    check_unwritten(&packet, capacity, WEFT_E_BUFFER);
  packet.mode = WEFT_PACKET_SPARSE; // density 0
  check_unwritten(&packet, 64, WEFT_E_ARGUMENT);
  packet.mode = WEFT_PACKET_SYSTEMATIC;
  packet.index = 3;
  check_unwritten(&packet, 64, WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_packet_coefficients(&packet, bytes), WEFT_E_ARGUMENT);
  packet.mode = WEFT_PACKET_VECTOR; // without coefficients
  check_unwritten(&packet, 64, WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_packet_coefficients(&packet, bytes), WEFT_E_ARGUMENT);
  packet.mode = (weft_packet_mode)4;
  check_unwritten(&packet, 64, WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_packet_coefficients(&packet, bytes), WEFT_E_ARGUMENT);
  EXPECT(weft_packet_bytes(&packet.id, (weft_packet_mode)4) == 0);
  EXPECT(weft_packet_session_bytes(&packet.id, (weft_packet_mode)4) == 0);
}
END_TEST

START_TEST(parsing_needs_its_arguments) {
  static const uint8_t session[12 + 2 + 2] = {1, 0, 0, 3},
                                        whole[24 + 2 + 2] = {1, 0, 0, 3, [7] = 2};
  weft_packet packet;
  EXPECT_OK(weft_packet_parse(whole, sizeof whole, &packet));
  EXPECT_STATUS(weft_packet_parse(NULL, sizeof whole, &packet), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_packet_parse(whole, sizeof whole, NULL), WEFT_E_ARGUMENT);
  EXPECT_OK(weft_packet_parse_session(session, sizeof session, 1, 2, &packet));
  EXPECT_STATUS(weft_packet_parse_session(NULL, 16, 1, 2, &packet), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_packet_parse_session(session, 16, 1, 2, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_packet_parse_session(session, 14, 1, 0, &packet), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_packet_parse_session(session, 16, 1, WEFT_MAX_BLOCK_BYTES + 1, &packet),
                WEFT_E_ARGUMENT);
  // The largest k is none too many: the datagram is then merely too short.
  EXPECT_STATUS(weft_packet_parse_session(session, 16, 1, WEFT_MAX_BLOCK_BYTES, &packet),
                WEFT_E_MALFORMED);
}
END_TEST

// Expects that a packet of this shape is written and read, or that it is refused everywhere.
static void check_shape(const weft_segment_id *id, bool valid, uint8_t *datagram, size_t capacity) {
  const size_t body = valid ? 8 + id->block_bytes : 0;
  EXPECT(weft_packet_bytes(id, WEFT_PACKET_DENSE) == (valid ? 24 + body : 0));
  EXPECT(weft_packet_session_bytes(id, WEFT_PACKET_DENSE) == (valid ? 12 + body : 0));
  const weft_packet packet = {.id = *id, .mode = WEFT_PACKET_DENSE, .payload = datagram + 24 + 8};
  const weft_status status = valid ? WEFT_OK : WEFT_E_ARGUMENT;
  uint8_t coefficients[WEFT_MAX_BLOCKS];
  EXPECT_STATUS(weft_packet_coefficients(&packet, coefficients), status);
  weft_packet parsed;
  size_t written;
  EXPECT_STATUS(weft_packet_write(&packet, datagram, capacity, &written), status);
  if (valid) {
    EXPECT_OK(weft_packet_parse(datagram, written, &parsed));
    EXPECT(parsed.id.blocks == id->blocks && parsed.id.block_bytes == id->block_bytes);
  }
  EXPECT_STATUS(weft_packet_write_session(&packet, datagram, capacity, &written), status);
  if (valid) {
    EXPECT_OK(weft_packet_parse_session(datagram, written, id->stream, id->block_bytes, &parsed));
    EXPECT(parsed.id.blocks == id->blocks && parsed.id.block_bytes == id->block_bytes);
  }
}

START_TEST(limits_of_shapes) {
  static const struct {
    uint32_t n, k;
    bool valid;
  } shapes[] = {
      {1, 1, true},  {WEFT_MAX_BLOCKS, WEFT_MAX_BLOCK_BYTES, true},
      {0, 1, false}, {WEFT_MAX_BLOCKS + 1, 1, false},
      {1, 0, false}, {1, WEFT_MAX_BLOCK_BYTES + 1, false},
  };
  EXPECT(weft_packet_bytes(NULL, WEFT_PACKET_DENSE) == 0);
  EXPECT(weft_packet_session_bytes(NULL, WEFT_PACKET_DENSE) == 0);
  const size_t capacity = 24 + 8 + WEFT_MAX_BLOCK_BYTES + 1;
  uint8_t *datagram = fixture_malloc(capacity);
  memset(datagram, 0, capacity);
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
    check_shape(&(weft_segment_id){1, 2, shapes[i].n, shapes[i].k}, shapes[i].valid, datagram,
                capacity);
  free(datagram);
}
END_TEST

// WEFT_PACKET_ROOM_BYTES is the size of the longest packet in any mode.
START_TEST(room_for_any_mode) {
  for (uint32_t n = 1; n <= 20; n++) {
    const weft_segment_id id = fixture_id(n, 7);
    size_t most = 0;
    for (int mode = 0; mode < 4; mode++) {
      const size_t bytes = weft_packet_bytes(&id, (weft_packet_mode)mode);
      most = bytes > most ? bytes : most;
    }
    EXPECT(most == WEFT_PACKET_ROOM_BYTES(n, 7));
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("wire");
  TCase *tcase = tcase_create("format");
  tcase_add_test(tcase, vectors_of_the_document);
  tcase_add_test(tcase, sparse_seeds_of_any_shape);
  tcase_add_test(tcase, only_the_exact_length_is_read);
  tcase_add_test(tcase, sessions_refuse_damage);
  tcase_add_test(tcase, header_alone_and_in_place);
  tcase_add_test(tcase, arguments_out_of_range);
  tcase_add_test(tcase, parsing_needs_its_arguments);
  tcase_add_test(tcase, limits_of_shapes);
  tcase_add_test(tcase, room_for_any_mode);
  suite_add_tcase(suite, tcase);
  return test_main(suite);
}
