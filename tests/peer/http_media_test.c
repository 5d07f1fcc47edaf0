// SPDX-License-Identifier: Apache-2.0
// The HTTP output: which ranges a request can name, how a stream's type is told by its first bytes,
// and that answers begin with a whole packet of MPEG-TS.
#define _GNU_SOURCE
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer/runtime/http_media.h"
#include "tests/peer/http_client.h"
#include "tests/support/test_main.h"

// The header Range on a stream of 100 bytes, in all its forms.
START_TEST(ranges_of_all_kinds) {
  static const struct {
    const char *says;
    bool can_be_had, partial;
    uint64_t first, end;
  } ranges[] = {
      {NULL, true, false, 0, 100},
      {"bytes=0-", true, true, 0, 100},
      {"bytes=5-9", true, true, 5, 10},
      {"bytes=7-7", true, true, 7, 8},
      {"bytes=90-1000", true, true, 90, 100},
      {"bytes=-10", true, true, 90, 100},
      {"bytes=-1000", true, true, 0, 100},
      {"bytes=100-", false, true, 100, 100},
      {"bytes=200-300", false, true, 200, 100},
      {"bytes=5-99999999999999999999", true, true, 5, 100},
      {"bytes=99999999999999999999-", false, true, 0, 0},
      {"bytes=-0", false, true, 100, 100},
      // Forms that are not understood.
      {"bytes=5-3", true, false, 0, 100},
      {"bytes=200-3", true, false, 0, 100},
      {"bytes=1-2,4-5", true, false, 0, 100},
      {"bytes=x", true, false, 0, 100},
      {"bytes=5x", true, false, 0, 100},
      {"bytes=5", true, false, 0, 100},
      {"bytes=5-9x", true, false, 0, 100},
      {"bytes=5--9", true, false, 0, 100},
      {"bytes=-10x", true, false, 0, 100},
      {"bytes=-", true, false, 0, 100},
      {"bytes=", true, false, 0, 100},
      {"lines=1-2", true, false, 0, 100},
  };
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    uint64_t first, end;
    bool partial;
    const bool had = weft_http_range(ranges[i].says, 100, &first, &end, &partial);
    ck_assert_msg(had == ranges[i].can_be_had && partial == ranges[i].partial &&
                      (!had || (first == ranges[i].first && end == ranges[i].end)),
                  "%s: %d %d [%ju, %ju)", ranges[i].says, had, partial, (uintmax_t)first,
                  (uintmax_t)end);
  }
}
END_TEST

// --- Types, and where MPEG-TS begins

static const char *type_of(const uint8_t *data, size_t bytes) {
  return weft_http_type_of(data, bytes, 0, bytes, false);
}

START_TEST(a_type_is_told_by_the_first_bytes) {
  enum { TS = 188 };
  uint8_t data[5 * TS] = {0};
  EXPECT(strcmp(type_of(NULL, 0), "application/octet-stream") == 0);
  data[TS] = data[2 * TS] = 'G';
  EXPECT(strcmp(type_of(data, sizeof data), "application/octet-stream") == 0);
  data[3 * TS] = 'G';
  EXPECT(strcmp(type_of(data, sizeof data), "application/octet-stream") == 0); // too late
  data[0] = 'G';
  EXPECT(strcmp(type_of(data, sizeof data), "video/mp2t") == 0);
  EXPECT(strcmp(type_of(data, 3 * TS), "video/mp2t") == 0);
  for (size_t at = 1; at < TS; at++) {
    memset(data, 0, sizeof data);
    data[at] = data[at + TS] = data[at + 2 * TS] = 'G';
    EXPECT(strcmp(type_of(data, sizeof data), "video/mp2t") == 0);
  }
  memcpy(data + 4, "ftyp", 4);
  EXPECT(strcmp(type_of(data, sizeof data), "video/mp4") == 0);
}
END_TEST

// A stream's first write may be too short to tell its type, as at the end of a segment.
START_TEST(a_type_is_told_once_it_is_clear) {
  enum { TS = 188, SIZE = 3 * TS + 5, ENOUGH = 4 * TS - 1 };
  uint8_t ring[SIZE] = {0};
  EXPECT(!weft_http_type_of(ring, SIZE, 0, 0, true));
  EXPECT(!weft_http_type_of(ring, SIZE, 100, 100 + 3 * TS, true));
  ring[100] = ring[100 + TS] = ring[(100 + 2 * TS)] = 'G';
  EXPECT(!weft_http_type_of(ring, SIZE, 99, 99 + 3 * TS, true));
  EXPECT(strcmp(weft_http_type_of(ring, SIZE, 99, 100 + 3 * TS, true), "video/mp2t") == 0);
  memset(ring, 0, SIZE);
  for (uint64_t i = 0; i < 3; i++) // its bytes go round the ring
    ring[(10 * SIZE - 7 + i * TS) % SIZE] = 'G';
  EXPECT(strcmp(weft_http_type_of(ring, SIZE, 10 * SIZE - 7, 11 * SIZE - 7, true), "video/mp2t") ==
         0);
  memcpy(ring + 4, "ftyp", 4);
  EXPECT(!weft_http_type_of(ring, SIZE, 0, 7, true));
  EXPECT(strcmp(weft_http_type_of(ring, SIZE, 0, 8, true), "video/mp4") == 0);
  uint8_t other[ENOUGH] = {0};
  EXPECT(!weft_http_type_of(other, ENOUGH, 0, ENOUGH - 1, true));
  EXPECT(strcmp(weft_http_type_of(other, ENOUGH, 0, ENOUGH, true), "application/octet-stream") ==
         0);
}
END_TEST

// Feeds bytes of a stream of packets, from its byte `at` on.
static void feed_packets(http_scene *s, uint64_t at, size_t bytes) {
  g_autofree uint8_t *piece = g_malloc(bytes);
  for (size_t i = 0; i < bytes; i++)
    piece[i] = (at + i) % 188 ? (uint8_t)(http_byte_at(at + i) & 0x3f) : 'G';
  weft_http_write(s->http, piece, bytes);
}

static void expect_packets(const http_scene *s) {
  static char got[8192];
  const int fd = http_client(s, 1, "GET / HTTP/1.0\r\n\r\n");
  EXPECT(http_status_within(fd, 2000) == 200);
  http_run(20);
  const ssize_t bytes = recv(fd, got, sizeof got, MSG_DONTWAIT);
  const char *body = bytes > 0 ? memmem(got, (size_t)bytes, "\r\n\r\n", 4) : NULL;
  EXPECT(body && memmem(got, (size_t)(body - got), "video/mp2t", 10));
  EXPECT(got + bytes - body > 4 + 376 && body[4] == 'G' && body[4 + 188] == 'G');
  close(fd);
}

// The bytes of a late viewer begin within an MPEG-TS packet, and continue within one after a gap;
// clients still begin with a whole packet.
START_TEST(answers_begin_with_a_packet) {
  enum { PIECES = 160, GAP = 1000 };
  http_scene s;
  uint64_t at = 1 << 20;
  http_scene_new(&s, true, 0, 0);
  for (size_t i = 0; i < PIECES; i++) { // more than is kept
    if (i % 20 == 5)
      at += GAP;
    const size_t bytes = i % 20 == 5 ? 300 : PIECE; // at first, too few bytes behind it
    feed_packets(&s, at, bytes);
    at += bytes;
    if (i % 20 == 0 || i % 20 == 5 || i % 20 == 6)
      expect_packets(&s);
  }
  weft_http_free(s.http);
}
END_TEST

// A client that asks when little of the stream is here waits until its type can be told, or the
// stream has ended.
START_TEST(a_short_beginning_is_waited_for) {
  enum { SHORT = 100 };
  for (int ends = 0; ends < 2; ends++) {
    http_scene s;
    char got[1024] = "";
    http_scene_new(&s, true, 0, 0);
    feed_packets(&s, 0, SHORT);
    const int fd = http_client(&s, 1, "GET / HTTP/1.0\r\n\r\n");
    http_run(50);
    EXPECT(recv(fd, got, sizeof got, MSG_DONTWAIT) < 0);
    if (ends)
      weft_http_end(s.http);
    else
      feed_packets(&s, SHORT, 4 * 188);
    EXPECT(http_status_within(fd, 2000) == 200);
    EXPECT(recv(fd, got, sizeof got - 1, MSG_DONTWAIT) > 0);
    EXPECT(strstr(got, ends ? "application/octet-stream" : "video/mp2t"));
    close(fd);
    weft_http_free(s.http);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("http_media");
  TCase *tc = tcase_create("http_media");
  tcase_set_timeout(tc, 60);
  tcase_add_test(tc, ranges_of_all_kinds);
  tcase_add_test(tc, a_type_is_told_by_the_first_bytes);
  tcase_add_test(tc, a_type_is_told_once_it_is_clear);
  tcase_add_test(tc, answers_begin_with_a_packet);
  tcase_add_test(tc, a_short_beginning_is_waited_for);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
