// SPDX-License-Identifier: Apache-2.0
// Every message there and back, cut at every length, and with every byte changed, at guard pages.
#include <string.h>

#include "peer/engine/messages.h"
#include "tests/peer/fixture.h"
#include "tests/support/test_guard.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { N = 5, K = 32 };

static weft_status parse(const uint8_t *bytes, size_t count, weft_message *out) {
  return weft_message_parse(bytes, count, 7, K, out);
}

// One message of each kind; returns its length.
static size_t make(size_t which, uint8_t *out) {
  static const uint8_t coefficients[N] = {1, 2, 3, 4, 5}, payload[K] = {9};
  static const uint16_t ranks[3] = {0, 7, 1024};
  const weft_stamps stamps = {.stamp = 1, .echo = 0xFFFFFFFF, .held = 3};
  const weft_hello hello = {.answer_wanted = true,
                            .stream = UINT64_C(0x1122334455667788),
                            .blocks = N,
                            .window = 4,
                            .block_bytes = K,
                            .stamps = stamps};
  const weft_map map = {.end_known = true,
                        .first = 5,
                        .horizon = 9,
                        .end_bytes = 1234,
                        .stamps = stamps,
                        .degree = 2,
                        .count = 3};
  weft_packet packet = {.id = {.stream = 7, .segment = 3, .blocks = N, .block_bytes = K},
                        .mode = (weft_packet_mode)(which - 4),
                        .index = 2,
                        .seed = 77,
                        .density_q16 = 5,
                        .coefficients = coefficients,
                        .payload = payload};
  size_t written = 0;
  switch (which) {
  case 0:
    return weft_hello_write(&hello, out);
  case 1:
    return weft_map_write(&map, ranks, out);
  case 2:
    return weft_brake_write(99, out);
  case 3:
    return weft_bye_write(WEFT_BYE_FINISHED, out);
  default:
    EXPECT_OK(weft_packet_write_session(&packet, out, 256, &written));
    return written;
  }
}

START_TEST(messages_come_back) {
  uint8_t bytes[256];
  weft_message m;
  EXPECT_OK(parse(bytes, make(0, bytes), &m));
  EXPECT(m.kind == WEFT_MESSAGE_HELLO && m.as.hello.answer_wanted &&
         m.as.hello.stream == UINT64_C(0x1122334455667788) && m.as.hello.blocks == N &&
         m.as.hello.window == 4 && m.as.hello.block_bytes == K && m.as.hello.stamps.stamp == 1 &&
         m.as.hello.stamps.echo == 0xFFFFFFFF && m.as.hello.stamps.held == 3);
  EXPECT_OK(parse(bytes, make(1, bytes), &m));
  EXPECT(m.kind == WEFT_MESSAGE_MAP && m.as.map.end_known && m.as.map.first == 5 &&
         m.as.map.horizon == 9 && m.as.map.end_bytes == 1234 && m.as.map.degree == 2 &&
         m.as.map.count == 3 && weft_map_rank(&m.as.map, 1) == 7 &&
         weft_map_rank(&m.as.map, 2) == 1024);
  EXPECT_OK(parse(bytes, make(2, bytes), &m));
  EXPECT(m.kind == WEFT_MESSAGE_BRAKE && m.as.brake == 99);
  EXPECT_OK(parse(bytes, make(3, bytes), &m));
  EXPECT(m.kind == WEFT_MESSAGE_BYE && m.as.bye == WEFT_BYE_FINISHED);
  for (size_t mode = 0; mode < 4; mode++) {
    EXPECT_OK(parse(bytes, make(4 + mode, bytes), &m));
    EXPECT(m.kind == WEFT_MESSAGE_DATA && m.as.data.mode == (weft_packet_mode)mode &&
           m.as.data.id.stream == 7 && m.as.data.id.segment == 3 && m.as.data.payload[0] == 9);
  }
}
END_TEST

START_TEST(the_bytes_are_those_of_the_document) {
  uint8_t bytes[256];
  const uint8_t brake[] = {1, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 99};
  const uint8_t hello[] = {1,    16, 0,    1,    0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                           0x88, 0,  5,    0,    4,    0,    0,    0,    32,   0,    0,
                           0,    1,  0xFF, 0xFF, 0xFF, 0xFF, 0,    0,    0,    3};
  EXPECT(make(2, bytes) == sizeof brake && memcmp(bytes, brake, sizeof brake) == 0);
  EXPECT(make(0, bytes) == sizeof hello && memcmp(bytes, hello, sizeof hello) == 0);
}
END_TEST

START_TEST(truncated_and_long_messages_are_refused) {
  test_guard guard = test_guard_new(512);
  uint8_t whole[256];
  for (size_t which = 0; which < 8; which++) {
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
  for (size_t which = 0; which < 8; which++)
    for (size_t byte = 0; byte < 64; byte++)
      for (unsigned value = 0; value < 256; value++) {
        uint8_t whole[256];
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

START_TEST(maps_that_contradict_themselves_are_refused) {
  uint8_t bytes[256];
  weft_message m;
  const size_t length = make(1, bytes);
  bytes[11] = 10; // first = 10 > horizon = 9
  EXPECT_STATUS(parse(bytes, length, &m), WEFT_E_MALFORMED);
  make(1, bytes);
  bytes[3] = 0; // an end that is not known
  EXPECT_STATUS(parse(bytes, length, &m), WEFT_E_MALFORMED);
  make(1, bytes);
  memset(bytes + 4, 0xFF, 16); // sums would wrap
  EXPECT_STATUS(parse(bytes, length, &m), WEFT_E_MALFORMED);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("messages");
  TCase *t = tcase_create("messages");
  tcase_add_test(t, messages_come_back);
  tcase_add_test(t, the_bytes_are_those_of_the_document);
  tcase_add_test(t, truncated_and_long_messages_are_refused);
  tcase_add_test(t, changed_bytes_are_read_safely);
  tcase_add_test(t, maps_that_contradict_themselves_are_refused);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
