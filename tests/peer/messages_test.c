// SPDX-License-Identifier: Apache-2.0
// Every message is written and parsed, cut at every length, and has every byte changed, next to
// guard pages.
#include <string.h>

#include "peer/engine/messages.h"
#include "tests/peer/fixture.h"
#include "tests/support/test_guard.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { N = 5, K = 32, KINDS = 19, ROOM = 256 };

static weft_status parse(const uint8_t *bytes, size_t count, weft_message *out) {
  return weft_message_parse(bytes, count, 7, N, K, out);
}

static const weft_stamps stamps = {.stamp = 1, .echo = 0xFFFFFFFF, .held = 3};

static size_t make_map(bool bitmaps, uint8_t *out) {
  static const uint16_t ranks[3] = {0, 7, 1024};
  const weft_map map = {.end_known = true,
                        .bitmaps = bitmaps,
                        .full = bitmaps,
                        .forgone = bitmaps ? 15 : 6,
                        .narrow = !bitmaps,
                        .first = 5,
                        .horizon = 9,
                        .end_bytes = 1234,
                        .stamps = stamps,
                        .suppliers = 2,
                        .count = 3,
                        .epoch = 6,
                        .back = 4,
                        .entry_bytes = bitmaps ? 1 : 2};
  for (size_t i = 0; i < 3; i++)
    if (bitmaps)
      out[WEFT_MAP_BYTES + i] = (uint8_t)(7u << i);
    else
      weft_map_put_rank(out, i, ranks[i], (uint8_t)(i * 7), i == 1);
  return weft_map_write(&map, out);
}

static size_t make_signed(size_t which, uint8_t *out) {
  static const uint8_t sums[N * WEFT_CHECKSUM_ROWS] = {1, 2, 3};
  weft_manifest manifest = {.last = true,
                            .segment = 77,
                            .blocks = N,
                            .bytes = N * K - 3,
                            .at_us = 123456789,
                            .made_us = 987654321};
  weft_checksum checksum = {
      .segment = 78, .blocks = N, .made_us = 55, .seed = 0x0102030405060708, .sums = sums};
  manifest.digest[31] = 9;
  manifest.signature[63] = 8;
  checksum.signature[0] = 7;
  const weft_revealed revealed = {.segment = 79, .made_us = 56};
  return which == 0   ? weft_manifest_write(&manifest, out)
         : which == 1 ? weft_checksum_write(&checksum, out)
                      : weft_revealed_write(&revealed, out);
}

static size_t make_asking(size_t which, uint8_t *out) {
  const weft_request requests[4] = {
      {.segment = 1, .kind = WEFT_REQUEST_PACKETS, .count = 9},
      {.segment = 2, .kind = WEFT_REQUEST_BLOCKS, .count = 64, .mask = 0x8000000000000001},
      {.segment = 3, .kind = WEFT_REQUEST_MANIFEST},
      {.segment = 4, .kind = WEFT_REQUEST_CHECKSUM}};
  const weft_peer_address addresses[2] = {{.length = 6, .bytes = {1, 2, 3, 4, 5, 6}},
                                          {.length = 1, .bytes = {9}}};
  switch (which) {
  case 0:
    return weft_request_write(requests, 4, out);
  case 1:
    return weft_refer_write(WEFT_MESSAGE_REFER, WEFT_REFER_WANTED | WEFT_REFER_FULL, addresses, 2,
                            out);
  case 2:
    return weft_refer_write(WEFT_MESSAGE_MEET, 0, addresses, 2, out);
  case 3:
    return weft_refer_write(WEFT_MESSAGE_MEET, WEFT_MEET_CALL, addresses, 1, out);
  default:
    return weft_refer_write(WEFT_MESSAGE_REFER, WEFT_REFER_SOURCE, addresses, 1, out);
  }
}

static size_t make_packet(weft_packet_mode mode, uint8_t *out) {
  static const uint8_t coefficients[N] = {1, 2, 3, 4, 5}, payload[K] = {9};
  const weft_packet packet = {.id = {.stream = 7, .segment = 3, .blocks = N, .block_bytes = K},
                              .mode = mode,
                              .index = 2,
                              .seed = 77,
                              .density_q16 = 5,
                              .coefficients = coefficients,
                              .payload = payload};
  size_t written = 0;
  EXPECT_OK(weft_packet_write_session(&packet, out, ROOM, &written));
  return written;
}

// Makes one message of each kind; returns its length.
static size_t make(size_t which, uint8_t *out) {
  const weft_hello hello = {.answer_wanted = true,
                            .stream = UINT64_C(0x1122334455667788),
                            .blocks = N,
                            .window = 4,
                            .block_bytes = K,
                            .stamps = stamps};
  const weft_pace pace = {.sent = 17, .stamp = 0x01020304};
  const weft_ack ack = {.sent = 17, .received = 16, .delay = 5, .stamp = 6, .held = 7};
  switch (which) {
  case 0:
    return weft_hello_write(&hello, out);
  case 1:
  case 2:
    return make_map(which == 2, out);
  case 3:
    return weft_brake_write(99, out);
  case 4:
    return weft_bye_write(WEFT_BYE_FINISHED, out);
  case 5:
    return weft_pace_write(&pace, out);
  case 6:
    return weft_ack_write(&ack, out);
  case 7:
  case 8:
  case 9:
    return make_signed(which - 7, out);
  case 10:
  case 11:
  case 12:
  case 13:
    return make_asking(which - 10, out);
  case 18:
    return make_asking(4, out);
  default:
    return make_packet((weft_packet_mode)(which - 14), out);
  }
}

START_TEST(messages_come_back) {
  uint8_t bytes[ROOM];
  weft_message m;
  EXPECT_OK(parse(bytes, make(0, bytes), &m));
  EXPECT(m.kind == WEFT_MESSAGE_HELLO && m.as.hello.answer_wanted &&
         m.as.hello.stream == UINT64_C(0x1122334455667788) && m.as.hello.blocks == N &&
         m.as.hello.window == 4 && m.as.hello.block_bytes == K && m.as.hello.stamps.stamp == 1 &&
         m.as.hello.stamps.echo == 0xFFFFFFFF && m.as.hello.stamps.held == 3);
  for (size_t which = 1; which <= 2; which++) {
    EXPECT_OK(parse(bytes, make(which, bytes), &m));
    EXPECT(m.kind == WEFT_MESSAGE_MAP && m.as.map.end_known && m.as.map.first == 5 &&
           m.as.map.horizon == 9 && m.as.map.end_bytes == 1234 && m.as.map.suppliers == 2 &&
           m.as.map.count == 3 && m.as.map.epoch == 6 && m.as.map.back == 4 &&
           m.as.map.full == (which == 2) && m.as.map.forgone == (which == 2 ? 15 : 6) &&
           m.as.map.narrow == (which == 1));
    EXPECT(weft_map_rank(&m.as.map, 1) == (which == 2 ? 3 : 7));
    EXPECT(weft_map_rank(&m.as.map, 2) == (which == 2 ? 3 : 1024));
    for (size_t i = 0; i < 3; i++) {
      EXPECT(weft_map_helpers(&m.as.map, i) == (which == 2 ? 0 : 7 * i));
      EXPECT(weft_map_spent(&m.as.map, i) == (which == 1 && i == 1));
    }
  }
  EXPECT_OK(parse(bytes, make(3, bytes), &m));
  EXPECT(m.kind == WEFT_MESSAGE_BRAKE && m.as.brake == 99);
  EXPECT_OK(parse(bytes, make(4, bytes), &m));
  EXPECT(m.kind == WEFT_MESSAGE_BYE && m.as.bye == WEFT_BYE_FINISHED);
  EXPECT_OK(parse(bytes, make(5, bytes), &m));
  EXPECT(m.kind == WEFT_MESSAGE_PACE && m.as.pace.sent == 17 && m.as.pace.stamp == 0x01020304);
  EXPECT_OK(parse(bytes, make(6, bytes), &m));
  EXPECT(m.kind == WEFT_MESSAGE_ACK && m.as.ack.sent == 17 && m.as.ack.received == 16 &&
         m.as.ack.delay == 5 && m.as.ack.stamp == 6 && m.as.ack.held == 7);
  for (size_t mode = 0; mode < 4; mode++) {
    EXPECT_OK(parse(bytes, make(14 + mode, bytes), &m));
    EXPECT(m.kind == WEFT_MESSAGE_DATA && m.as.data.mode == (weft_packet_mode)mode &&
           m.as.data.id.stream == 7 && m.as.data.id.segment == 3 && m.as.data.payload[0] == 9);
  }
}
END_TEST

START_TEST(signed_and_asking_messages_come_back) {
  uint8_t bytes[ROOM];
  weft_message m;
  EXPECT_OK(parse(bytes, make(7, bytes), &m));
  const weft_manifest *manifest = &m.as.manifest;
  EXPECT(m.kind == WEFT_MESSAGE_MANIFEST && manifest->last && manifest->segment == 77 &&
         manifest->blocks == N && manifest->bytes == N * K - 3 && manifest->at_us == 123456789 &&
         manifest->made_us == 987654321 && manifest->digest[31] == 9 &&
         manifest->signature[63] == 8);
  EXPECT_OK(parse(bytes, make(8, bytes), &m));
  EXPECT(m.kind == WEFT_MESSAGE_CHECKSUM && m.as.checksum.segment == 78 &&
         m.as.checksum.blocks == N && m.as.checksum.made_us == 55 &&
         m.as.checksum.seed == 0x0102030405060708 && m.as.checksum.signature[0] == 7 &&
         m.as.checksum.sums[2] == 3);
  EXPECT_OK(parse(bytes, make(9, bytes), &m));
  EXPECT(m.kind == WEFT_MESSAGE_REVEALED && m.as.revealed.segment == 79 &&
         m.as.revealed.made_us == 56);
  EXPECT_OK(parse(bytes, make(10, bytes), &m));
  EXPECT(m.kind == WEFT_MESSAGE_REQUEST && m.as.requests.count == 4);
  const weft_request blocks = weft_requests_get(&m.as.requests, 1);
  EXPECT(blocks.segment == 2 && blocks.kind == WEFT_REQUEST_BLOCKS && blocks.count == 64 &&
         blocks.mask == 0x8000000000000001);
  EXPECT_OK(parse(bytes, make(11, bytes), &m));
  const uint8_t *at = m.as.refer.addresses;
  const weft_peer_address first = weft_refer_next(&at), second = weft_refer_next(&at);
  EXPECT(m.kind == WEFT_MESSAGE_REFER && m.as.refer.count == 2 && m.as.refer.flags == 3);
  EXPECT(first.length == 6 && first.bytes[5] == 6 && second.length == 1 && second.bytes[0] == 9);
  EXPECT_OK(parse(bytes, make(12, bytes), &m));
  EXPECT(m.kind == WEFT_MESSAGE_MEET && m.as.meet.count == 2 && m.as.meet.flags == 0);
  EXPECT_OK(parse(bytes, make(13, bytes), &m));
  EXPECT(m.kind == WEFT_MESSAGE_MEET && m.as.meet.count == 1 && m.as.meet.flags == WEFT_MEET_CALL);
  EXPECT_OK(parse(bytes, make(18, bytes), &m));
  EXPECT(m.as.refer.count == 1 && m.as.refer.flags == WEFT_REFER_SOURCE);
}
END_TEST

// Changing any byte of a signed message changes what is signed; nothing else affects that.
START_TEST(signatures_cover_everything) {
  for (size_t which = 7; which <= 8; which++) {
    uint8_t whole[ROOM], text[WEFT_SIGNED_MAX], other[WEFT_SIGNED_MAX];
    weft_message m;
    const size_t length = make(which, whole);
    EXPECT_OK(parse(whole, length, &m));
    const size_t bytes = which == 7 ? weft_manifest_text(&m.as.manifest, 7, K, text)
                                    : weft_checksum_text(&m.as.checksum, 7, K, text);
    for (size_t byte = 2; byte < length; byte++) {
      uint8_t changed[ROOM];
      memcpy(changed, whole, length);
      changed[byte] ^= 1;
      if (parse(changed, length, &m) != WEFT_OK)
        continue;
      const size_t count = which == 7 ? weft_manifest_text(&m.as.manifest, 7, K, other)
                                      : weft_checksum_text(&m.as.checksum, 7, K, other);
      const bool in_signature = which == 7 ? byte >= length - WEFT_SIGNATURE_BYTES
                                           : byte >= 28 && byte < WEFT_CHECKSUM_BYTES;
      EXPECT(count == bytes && (memcmp(text, other, bytes) == 0) == in_signature);
    }
    EXPECT_OK(parse(whole, length, &m));
    if (which == 7)
      EXPECT(weft_manifest_text(&m.as.manifest, 8, K, other) == bytes);
    else
      EXPECT(weft_checksum_text(&m.as.checksum, 7, K + 1, other) == bytes);
    EXPECT(memcmp(text, other, bytes) != 0); // another stream or shape
  }
}
END_TEST

START_TEST(the_bytes_are_those_of_the_document) {
  uint8_t bytes[ROOM];
  const uint8_t brake[] = {1, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 99};
  const uint8_t pace[] = {1, 20, 0, 0, 0, 0, 0, 17, 1, 2, 3, 4};
  const uint8_t revealed[] = {1, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 79, 0, 0, 0, 0, 0, 0, 0, 56};
  const uint8_t refer[] = {1, 26, 3, 2, 6, 1, 2, 3, 4, 5, 6, 1, 9};
  const uint8_t meet[] = {1, 27, 0, 2, 6, 1, 2, 3, 4, 5, 6, 1, 9};
  const uint8_t call[] = {1, 27, 1, 1, 6, 1, 2, 3, 4, 5, 6};
  const uint8_t source[] = {1, 26, 4, 1, 6, 1, 2, 3, 4, 5, 6};
  const uint8_t hello[] = {1,    16, 0,    1,    0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                           0x88, 0,  5,    0,    4,    0,    0,    0,    32,   0,    0,
                           0,    1,  0xFF, 0xFF, 0xFF, 0xFF, 0,    0,    0,    3};
  EXPECT(make(3, bytes) == sizeof brake && memcmp(bytes, brake, sizeof brake) == 0);
  EXPECT(make(5, bytes) == sizeof pace && memcmp(bytes, pace, sizeof pace) == 0);
  EXPECT(make(9, bytes) == sizeof revealed && memcmp(bytes, revealed, sizeof revealed) == 0);
  EXPECT(make(11, bytes) == sizeof refer && memcmp(bytes, refer, sizeof refer) == 0);
  EXPECT(make(12, bytes) == sizeof meet && memcmp(bytes, meet, sizeof meet) == 0);
  EXPECT(make(13, bytes) == sizeof call && memcmp(bytes, call, sizeof call) == 0);
  EXPECT(make(18, bytes) == sizeof source && memcmp(bytes, source, sizeof source) == 0);
  EXPECT(make(0, bytes) == sizeof hello && memcmp(bytes, hello, sizeof hello) == 0);
  EXPECT(make(1, bytes) == WEFT_MAP_BYTES + 6 && make(2, bytes) == WEFT_MAP_BYTES + 3);
  EXPECT(make(7, bytes) == 136 && make(8, bytes) == 92 + 8 * N && make(10, bytes) == 12 + 4 * 20);
}
END_TEST

START_TEST(truncated_and_long_messages_are_refused) {
  test_guard guard = test_guard_new(512);
  uint8_t whole[ROOM];
  for (size_t which = 0; which < KINDS; which++) {
    const size_t length = make(which, whole);
    for (size_t cut = 0; cut <= length + 1; cut++) {
      uint8_t *at = guard.end - cut; // one byte further faults
      memset(at, 0, cut);
      memcpy(at, whole, cut < length ? cut : length);
      weft_message m;
      EXPECT_STATUS(parse(at, cut, &m), cut == length ? WEFT_OK : WEFT_E_MALFORMED);
    }
  }
  test_guard_free(&guard);
}
END_TEST

START_TEST(changed_bytes_are_read_safely) {
  test_guard guard = test_guard_new(512);
  for (size_t which = 0; which < KINDS; which++)
    for (size_t byte = 0; byte < ROOM; byte++)
      for (unsigned value = 0; value < 256; value++) {
        uint8_t whole[ROOM];
        const size_t length = make(which, whole);
        if (byte >= length)
          continue;
        whole[byte] = (uint8_t)value;
        memcpy(guard.end - length, whole, length);
        weft_message m;
        const weft_status status = parse(guard.end - length, length, &m);
        EXPECT(status == WEFT_OK || status == WEFT_E_MALFORMED || status == WEFT_E_VERSION);
        EXPECT(byte != 0 || value == 1 || status == WEFT_E_VERSION);
        if (status == WEFT_OK && m.kind == WEFT_MESSAGE_MAP)
          for (size_t i = 0; i < m.as.map.count; i++)
            EXPECT(weft_map_rank(&m.as.map, i) <= WEFT_MAX_BLOCKS);
      }
  test_guard_free(&guard);
}
END_TEST

START_TEST(messages_that_contradict_themselves_are_refused) {
  static const struct {
    size_t which, byte;
    uint8_t value;
  } bad[] = {{1, 11, 3},                // four segments before segment 3
             {1, 3, 0},                 // an end that is not known
             {1, 4, 1},                 // segments past the limit
             {1, 2, 1},                 // unknown flags
             {1, 12, 1},                // a horizon past the limit
             {0, 3, 3},                 // an unknown flag
             {0, 14, 17},               // too large a window
             {3, 4, 1},                 // a segment past the limit
             {3, 3, 1},                 // what must be zero
             {4, 3, 3},                 // an unknown reason
             {4, 11, 1},                // what must be zero
             {5, 3, 1},                 // the same
             {6, 3, 1},                 // the same
             {7, 12, 5},                // more blocks than there may be
             {7, 3, 3},                 // an unknown flag
             {7, 4, 1},                 // a segment past the limit
             {7, 13, 0},                // bytes without blocks
             {7, 19, 0},                // and blocks without bytes
             {7, 39, 1},                // what must be zero
             {7, 14, 1},                // what must be zero
             {7, 20, 17},               // an impossible time
             {7, 28, 17},               // and clock
             {8, 3, 6},                 // sums of more blocks than follow
             {8, 4, 1},                 // a segment past the limit
             {8, 12, 17},               // an impossible time
             {9, 3, 1},                 // what must be zero
             {9, 4, 1},                 // a segment past the limit
             {9, 12, 17},               // an impossible time
             {10, 11, 1},               // what must be zero
             {10, 12, 1},               // a segment past the limit
             {10, 21, 4},               // an unknown kind of request
             {10, 22, 5},               // more packets than blocks
             {10, 42, 4},               // blocks past the last
             {10, 43, 65},              // and with some before it
             {10, 31, 1},               // a mask that means nothing
             {11, 2, 8},                // an unknown flag
             {11, 4, 21},               // an address that is too long
             {11, 4, 0},                // and an empty one
             {12, 2, 2},                // an unknown flag
             {12, 2, 4},                // a flag of REFER alone
             {12, 3, 0},                // no address to meet
             {13, 4, 21},  {16, 4, 1}}; // a segment past the limit
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    uint8_t bytes[ROOM];
    weft_message m;
    const size_t length = make(bad[i].which, bytes);
    EXPECT_OK(parse(bytes, length, &m));
    bytes[bad[i].byte] = bad[i].value;
    EXPECT_STATUS(parse(bytes, length, &m), WEFT_E_MALFORMED);
  }
  const weft_pace unstamped = {.sent = 17}; // 0 is sent as 1
  uint8_t bytes[ROOM];
  weft_message m;
  EXPECT_OK(parse(bytes, weft_refer_write(WEFT_MESSAGE_REFER, 0, NULL, 0, bytes), &m));
  EXPECT_STATUS(
      parse(bytes, weft_refer_write(WEFT_MESSAGE_REFER, WEFT_REFER_SOURCE, NULL, 0, bytes), &m),
      WEFT_E_MALFORMED); // no source is named
  EXPECT_STATUS(parse(bytes, weft_pace_write(&unstamped, bytes), &m), WEFT_E_MALFORMED);
  weft_manifest nothing = {.last = true, .segment = 1}; // the end alone
  EXPECT_OK(parse(bytes, weft_manifest_write(&nothing, bytes), &m));
  nothing.last = false;
  EXPECT_STATUS(parse(bytes, weft_manifest_write(&nothing, bytes), &m), WEFT_E_MALFORMED);
  weft_map map = {.first = 5000, .entry_bytes = 2, .back = WEFT_MESSAGE_MAX_WINDOW};
  EXPECT_OK(parse(bytes, weft_map_write(&map, bytes), &m));
  map.back++;
  EXPECT_STATUS(parse(bytes, weft_map_write(&map, bytes), &m), WEFT_E_MALFORMED);
}
END_TEST

// Well-formed messages with more entries than there is room for are refused.
START_TEST(more_than_there_is_room_for_is_refused) {
  uint8_t bytes[WEFT_DATAGRAM_MAX] = {1, WEFT_MESSAGE_REFER, 0, 1};
  weft_message m;
  for (size_t length = WEFT_PEER_ADDRESS_BYTES; length < 256; length++) {
    bytes[WEFT_REFER_BYTES] = (uint8_t)length;
    EXPECT_STATUS(parse(bytes, WEFT_REFER_BYTES + 1 + length, &m),
                  length == WEFT_PEER_ADDRESS_BYTES ? WEFT_OK : WEFT_E_MALFORMED);
  }
  weft_request requests[WEFT_REQUEST_MAX_ENTRIES + 1];
  for (size_t i = 0; i <= WEFT_REQUEST_MAX_ENTRIES; i++)
    requests[i] = (weft_request){.segment = i, .kind = WEFT_REQUEST_MANIFEST};
  for (size_t count = WEFT_REQUEST_MAX_ENTRIES; count <= WEFT_REQUEST_MAX_ENTRIES + 1; count++)
    EXPECT_STATUS(parse(bytes, weft_request_write(requests, count, bytes), &m),
                  count == WEFT_REQUEST_MAX_ENTRIES ? WEFT_OK : WEFT_E_MALFORMED);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("messages");
  TCase *t = tcase_create("messages");
  tcase_add_test(t, messages_come_back);
  tcase_add_test(t, the_bytes_are_those_of_the_document);
  tcase_add_test(t, truncated_and_long_messages_are_refused);
  tcase_add_test(t, changed_bytes_are_read_safely);
  tcase_add_test(t, messages_that_contradict_themselves_are_refused);
  tcase_add_test(t, more_than_there_is_room_for_is_refused);
  tcase_add_test(t, signed_and_asking_messages_come_back);
  tcase_add_test(t, signatures_cover_everything);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
