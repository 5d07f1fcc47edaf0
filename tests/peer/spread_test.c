// SPDX-License-Identifier: Apache-2.0
// A stream sent as UDP datagrams is cut at the same places whatever its segments are like, and
// spread over the time in which it plays, without falling behind.
#include <string.h>

#include "peer/runtime/spread.h"
#include "tests/peer/fixture.h"
#include "tests/support/test_main.h"

enum { SEGMENT = 65536, SEGMENTS = 40, MS = 1000 };

typedef struct play {
  weft_spread spread;
  uint8_t room[SEGMENT + WEFT_SPREAD_BYTES];
  int64_t now_us;
  uint64_t sent;        // bytes of the stream, in order
  size_t whole, others; // datagrams
  int64_t gap_us;       // between two datagrams, at most
  int64_t last_us;
} play;

static uint8_t byte_at(uint64_t place) { return (uint8_t)(place * 7 + place / 256); }

static void put(play *p, uint64_t position, size_t bytes, int64_t over_us) {
  EXPECT(weft_spread_has_room(&p->spread));
  uint8_t *room = weft_spread_room(&p->spread);
  for (size_t i = 0; i < bytes; i++)
    room[i] = byte_at(position + i);
  weft_spread_put(&p->spread, position, bytes, over_us, p->now_us);
}

// Sends what is due; at: the stream's position of the next byte.
static void send(play *p) {
  const uint8_t *data;
  size_t bytes;
  while (weft_spread_next(&p->spread, p->now_us, &data, &bytes)) {
    EXPECT(bytes > 0 && bytes <= WEFT_SPREAD_BYTES);
    for (size_t i = 0; i < bytes; i++)
      EXPECT(data[i] == byte_at(p->sent + i));
    const bool whole = bytes == WEFT_SPREAD_BYTES && p->sent % WEFT_SPREAD_BYTES == 0;
    p->whole += whole;
    p->others += !whole;
    p->sent += bytes;
    if (p->last_us && p->now_us - p->last_us > p->gap_us)
      p->gap_us = p->now_us - p->last_us;
    p->last_us = p->now_us;
  }
}

static play *play_new(void) {
  static play p;
  p = (play){.now_us = 1000 * MS};
  p.spread.data = p.room;
  return &p;
}

// Runs like a loop that wakes when told to, some time late, and when a segment may be played.
static void run(play *p, int64_t over_us, int64_t late_us) {
  for (uint64_t segment = 0; segment < SEGMENTS;) {
    const int64_t plays_us = 1000 * MS + (int64_t)segment * over_us;
    send(p);
    if (weft_spread_has_room(&p->spread) && p->now_us >= plays_us) {
      put(p, segment++ * SEGMENT, SEGMENT, over_us);
      continue;
    }
    const int64_t due_us = weft_spread_deadline(&p->spread);
    const bool first =
        due_us && due_us > p->now_us && (due_us < plays_us || !weft_spread_has_room(&p->spread));
    p->now_us = (first ? due_us : plays_us > p->now_us ? plays_us : p->now_us) + late_us;
  }
}

START_TEST(segments_are_spread_and_none_falls_behind) {
  for (int64_t over_us = 3 * MS; over_us <= 300 * MS; over_us *= 3) {
    play *p = play_new();
    run(p, over_us, 1 * MS);
    // The last segment has just begun.
    EXPECT(p->now_us - 1000 * MS <= SEGMENTS * over_us + 5 * MS);
    p->spread.ended = true;
    for (int64_t due_us; (due_us = weft_spread_deadline(&p->spread)); send(p))
      p->now_us = due_us > p->now_us ? due_us + 1 * MS : p->now_us;
    EXPECT(p->sent == (uint64_t)SEGMENTS * SEGMENT);
    EXPECT(p->others == 1); // the end
    EXPECT(p->gap_us <= over_us / 8 + 10 * MS);
    EXPECT(weft_spread_deadline(&p->spread) == 0);
  }
}
END_TEST

// After a pause, the incomplete datagram before it has been sent, and whole datagrams follow again.
START_TEST(a_pause_holds_nothing_back) {
  play *p = play_new();
  put(p, 0, SEGMENT, 100 * MS);
  p->now_us += 101 * MS;
  send(p);
  EXPECT(p->sent == SEGMENT / WEFT_SPREAD_BYTES * WEFT_SPREAD_BYTES && p->others == 0);
  EXPECT(weft_spread_has_room(&p->spread));
  p->now_us = weft_spread_deadline(&p->spread);
  EXPECT(p->now_us <= 1200 * MS);
  send(p);
  EXPECT(p->sent == SEGMENT && p->others == 1);
  p->now_us += 1000 * MS;
  put(p, SEGMENT, SEGMENT, 100 * MS);
  p->now_us += 200 * MS;
  send(p);
  EXPECT(p->sent == 2 * SEGMENT && p->others == 3); // up to the next whole one, and the end
}
END_TEST

// After skipped segments, no datagram joins bytes from before and after.
START_TEST(a_skip_begins_whole_datagrams_anew) {
  play *p = play_new();
  put(p, 0, SEGMENT, 10 * MS);
  p->now_us += 11 * MS;
  send(p);
  put(p, 3 * SEGMENT, SEGMENT, 10 * MS);
  const uint64_t rest = SEGMENT - p->sent;
  const uint8_t *data;
  size_t bytes;
  p->now_us += 30 * MS;
  EXPECT(weft_spread_next(&p->spread, p->now_us, &data, &bytes));
  EXPECT(bytes == rest && data[0] == byte_at(p->sent));
  p->sent = 3 * SEGMENT;
  const size_t begun = 3 * SEGMENT % WEFT_SPREAD_BYTES;
  EXPECT(weft_spread_next(&p->spread, p->now_us, &data, &bytes));
  EXPECT(bytes == WEFT_SPREAD_BYTES - begun && data[0] == byte_at(p->sent));
  p->sent += bytes;
  send(p);
  EXPECT(p->others == 0);
  // Nor is anything left after a seek.
  weft_spread_drop(&p->spread);
  EXPECT(weft_spread_has_room(&p->spread) && weft_spread_deadline(&p->spread) == 0);
  put(p, 0, 100, 0);
  p->spread.ended = true;
  EXPECT(weft_spread_next(&p->spread, p->now_us, &data, &bytes) && bytes == 100);
  EXPECT(data[99] == byte_at(99));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("spread");
  TCase *t = tcase_create("spread");
  tcase_add_test(t, segments_are_spread_and_none_falls_behind);
  tcase_add_test(t, a_pause_holds_nothing_back);
  tcase_add_test(t, a_skip_begins_whole_datagrams_anew);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
