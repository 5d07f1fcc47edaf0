// SPDX-License-Identifier: Apache-2.0
// Measures how much longer a neighbour's last message took than the fastest one, by two unrelated
// clocks: stamps have 32 bits, clocks wrap, drift and jump.
#include "peer/engine/internal.h"
#include "tests/peer/fixture.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { SECOND = 1000000, PATH_US = 20000, QUEUE_US = 50000 };

typedef struct clocks {
  weft_neighbour n;
  int64_t now_us;   // our clock
  int64_t ahead_us; // how far the neighbour's clock is ahead
  int64_t ppm;      // how much faster it runs, since `from_us`
  int64_t from_us;
  bool echoes; // it echoes our stamps, so that the round trip is known
} clocks;

static clocks begin(int64_t now_us, int64_t ahead_us, int64_t ppm) {
  return (clocks){.now_us = now_us, .ahead_us = ahead_us, .ppm = ppm, .from_us = now_us};
}

// Hears a message that waited this long for the link besides its normal time. Returns the wait that
// is measured.
static uint32_t heard(clocks *c, int64_t waited_us) {
  const int64_t sent_us = c->now_us - PATH_US - waited_us;
  const int64_t drifted_us = (sent_us - c->from_us) * c->ppm / 1000000;
  const uint32_t stamp = (uint32_t)(sent_us + c->ahead_us + drifted_us);
  const weft_stamps stamps = {.stamp = stamp ? stamp : 1, // as weft_neighbour_stamps does
                              .echo =
                                  c->echoes ? (uint32_t)(c->now_us - 2 * PATH_US - waited_us) : 0};
  weft_neighbour_heard(&c->n, &stamps, c->now_us);
  return weft_neighbour_queueing_us(&c->n);
}

static void expect(uint32_t seen_us, int64_t least_us, int64_t most_us, const clocks *c) {
  if (seen_us < least_us || seen_us > most_us)
    ck_abort_msg("%u us are seen, not %lld to %lld, with %lld us ahead and %lld ppm after %lld us "
                 "(WEFT_TEST_SEED=%#llx)",
                 seen_us, (long long)least_us, (long long)most_us, (long long)c->ahead_us,
                 (long long)c->ppm, (long long)(c->now_us - c->from_us),
                 (unsigned long long)test_seed());
}

// Either clock, or their difference, may pass the end of 32 bits, or of 31.
START_TEST(clocks_wrap) {
  static const int64_t ends[] = {INT64_C(1) << 31, INT64_C(1) << 32, INT64_C(3) << 31,
                                 INT64_C(1) << 40};
  static const int64_t ahead[] = {0,          1,          -1,         0x7fffffff, INT64_C(1) << 31,
                                  0xffffffff, 5 * SECOND, -5 * SECOND};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
    for (size_t j = 0; j < sizeof ahead / sizeof *ahead; j++) {
      clocks c = begin(ends[i] - 10 * SECOND, ahead[j], 0);
      for (int t = 0; t < 400; t++, c.now_us += SECOND / 20) {
        const int64_t waited_us = t % 8 == 7 ? QUEUE_US : 0;
        expect(heard(&c, waited_us), waited_us - 20, waited_us, &c);
      }
    }
}
END_TEST

// Clocks that drift by 200 ppm for an hour show no queue, however often messages come, and a queue
// of five seconds is seen.
START_TEST(clocks_drift) {
  static const int64_t apart_us[] = {500, 2000, 4095, 4096, 100000, SECOND, 20 * SECOND};
  for (int sign = -1; sign <= 1; sign += 2)
    for (size_t i = 0; i < sizeof apart_us / sizeof *apart_us; i++) {
      clocks c = begin(INT64_C(3700) * SECOND, 12345, sign * 200);
      const int64_t end_us = c.now_us + INT64_C(3600) * SECOND;
      for (; c.now_us < end_us; c.now_us += apart_us[i])
        expect(heard(&c, 0), 0, 1000, &c);
      for (int t = 0; t < 50; t++, c.now_us += SECOND / 10)
        expect(heard(&c, QUEUE_US), QUEUE_US - 12000, QUEUE_US + 1000, &c);
    }
}
END_TEST

// A clock that jumps ahead, or ours having stood still, sets a new fastest time; so does one that
// falls back by more than messages overtake each other. One that stands still while nothing is
// said, or falls back by less, looks like a queue, which is believed for 4096 times as long, and
// not for ever.
START_TEST(clocks_jump) {
  static const int64_t jumps_us[] = {QUEUE_US, SECOND, INT64_C(1200) * SECOND};
  for (size_t i = 0; i < sizeof jumps_us / sizeof *jumps_us; i++) {
    clocks c = begin(77 * SECOND, 5, 0);
    expect(heard(&c, 0), 0, 0, &c);
    c.now_us += SECOND;
    c.ahead_us += jumps_us[i];
    expect(heard(&c, 0), 0, 0, &c);
    c.now_us += SECOND;
    expect(heard(&c, QUEUE_US), QUEUE_US - 300, QUEUE_US, &c);
  }
  for (size_t i = 1; i < sizeof jumps_us / sizeof *jumps_us; i++) {
    clocks c = begin(77 * SECOND, 5, 0);
    expect(heard(&c, 0), 0, 0, &c);
    c.now_us += SECOND / 10;
    c.ahead_us -= jumps_us[i] + SECOND / 5;
    expect(heard(&c, 0), 0, 0, &c);
    c.now_us += SECOND;
    expect(heard(&c, QUEUE_US), QUEUE_US - 300, QUEUE_US, &c);
  }
  clocks c = begin(77 * SECOND, 5, 0);
  expect(heard(&c, 0), 0, 0, &c);
  c.ahead_us -= SECOND / 10;
  for (int t = 0; t < 400; t++, c.now_us += SECOND)
    expect(heard(&c, 0), SECOND / 10 - t * 245, SECOND / 10 - t * 244, &c);
  c.now_us += 20 * SECOND;
  expect(heard(&c, 0), 0, 0, &c);
}
END_TEST

// Where the round trip is known, a clock that stood still sets a new fastest time: no message waits
// for longer than its round trip takes.
START_TEST(clocks_stand_still) {
  static const int64_t stood_us[] = {SECOND / 10, SECOND / 2, 5 * SECOND, INT64_C(1200) * SECOND};
  for (size_t i = 0; i < sizeof stood_us / sizeof *stood_us; i++) {
    clocks c = begin(77 * SECOND, 5, 0);
    c.echoes = true;
    for (int t = 0; t < 100; t++, c.now_us += SECOND / 10)
      expect(heard(&c, t % 2 ? 20 * QUEUE_US : 0), t % 2 ? 20 * QUEUE_US - 300 : 0, 20 * QUEUE_US,
             &c);
    c.ahead_us -= stood_us[i];
    expect(heard(&c, 0), 0, 0, &c);
    c.now_us += SECOND;
    expect(heard(&c, QUEUE_US), QUEUE_US - 300, QUEUE_US, &c);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("delay");
  TCase *t = tcase_create("delay");
  tcase_add_test(t, clocks_wrap);
  tcase_add_test(t, clocks_drift);
  tcase_add_test(t, clocks_jump);
  tcase_add_test(t, clocks_stand_still);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
