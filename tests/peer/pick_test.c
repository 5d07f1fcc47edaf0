// SPDX-License-Identifier: Apache-2.0
// Asks the policies directly what push sends and pull requests next, over windows made by hand:
// segments held in part, the newest ones, and forgone ones.
#include <string.h>

#include "tests/peer/fixture.h"
#include "tests/support/test_main.h"

enum { BLOCKS = 64, WINDOW = 4 };

// Our window and that of our one neighbour: segments first .. first + window - 1, which is the
// newest; segment s is at s % window.
typedef struct scene {
  bool live, source;
  unsigned forgone;
  uint8_t its_forgone; // classes that the neighbour forgoes
  bool narrow;
  uint64_t first;
  size_t window, batch_max;
  const weft_policy_segment *own;
  const weft_policy_want *wants;
} scene;

static bool pick(const scene *c, weft_rng_chacha *chacha, weft_policy_choice *choice) {
  uint64_t number[WINDOW];
  for (uint64_t s = c->first; s < c->first + c->window; s++)
    number[s % c->window] = s;
  const weft_policy_neighbour neighbour = {.open = true,
                                           .known = true,
                                           .suppliers = 1,
                                           .forgone = c->its_forgone,
                                           .narrow = c->narrow,
                                           .first = c->first,
                                           .count = (uint32_t)c->window,
                                           .wants = c->wants};
  const weft_policy_view view = {.live = c->live,
                                 .source = c->source,
                                 .forgone = c->forgone,
                                 .first = c->first,
                                 .count = c->window,
                                 .window = c->window,
                                 .horizon = c->first + c->window,
                                 .play = c->first,
                                 .segments = c->own,
                                 .number = number,
                                 .neighbours = 1,
                                 .neighbour = &neighbour,
                                 .batch_max = c->batch_max};
  const weft_rng rng = weft_rng_chacha_table(chacha);
  *choice = (weft_policy_choice){0};
  return weft_policy_push.pick(NULL, &view, &rng, choice);
}

// Returns how many packets push would send now to one neighbour that lacks all of one segment, of
// which we have `rank` and have sent `sent`.
static size_t pushed(uint16_t rank, uint32_t sent, bool source) {
  const weft_policy_segment own = {.blocks = BLOCKS, .rank = rank, .received = rank, .sent = sent};
  const weft_policy_want want = {.accepts = 1};
  const scene one = {.live = true,
                     .source = source,
                     .window = 1,
                     .batch_max = BLOCKS,
                     .own = &own,
                     .wants = &want};
  weft_rng_chacha chacha;
  weft_rng_chacha_seed(&chacha, fixture_seed(), 3);
  weft_policy_choice choice;
  return pick(&one, &chacha, &choice) ? choice.count : 0;
}

START_TEST(little_of_a_segment_is_sent_to_few) {
  EXPECT(pushed(0, 0, false) == 0);
  EXPECT(pushed(1, 0, false) == 1);   // what is held, and no more to one
  EXPECT(pushed(1, 2, false) == 1);   // to a third neighbour
  EXPECT(pushed(1, 3, false) == 0);   // 2 r + 1 went out
  EXPECT(pushed(31, 60, false) == 3); // 63 in all
  EXPECT(pushed(31, 63, false) == 0);
  EXPECT(pushed(32, 63, false) == 32); // half of it: as much as is wanted
  EXPECT(pushed(64, 1000, false) == 64);
  EXPECT(pushed(8, 1000, true) == 8); // a source waits for no other
}
END_TEST

// Counts how often, in 1,000 picks, push takes each segment, for one neighbour whose window is
// segments 4 to 7. We have all of 4, 5 and 6, and `rank` packets of 7, the newest.
static void count_picks(bool live, const weft_policy_want wants[WINDOW], uint16_t rank,
                        unsigned count[8]) {
  weft_policy_segment own[WINDOW];
  for (size_t i = 0; i < WINDOW; i++)
    own[i] = (weft_policy_segment){.blocks = BLOCKS, .rank = i == 3 ? rank : BLOCKS};
  const scene four = {
      .live = live, .first = 4, .window = WINDOW, .batch_max = 16, .own = own, .wants = wants};
  weft_rng_chacha chacha;
  weft_rng_chacha_seed(&chacha, fixture_seed(), 4);
  memset(count, 0, 8 * sizeof *count);
  for (int i = 0; i < 1000; i++) {
    weft_policy_choice choice;
    EXPECT(pick(&four, &chacha, &choice) && choice.segment < 8);
    count[choice.segment]++;
  }
}

// Live, the newest segment goes first if a neighbour has little of it; otherwise it would begin its
// way through the mesh only when earlier ones are complete.
START_TEST(the_newest_of_which_a_neighbour_has_little_goes_first) {
  const weft_policy_want none = {.accepts = 1};
  weft_policy_want wants[4] = {none, none, none, none};
  unsigned count[8];
  count_picks(true, wants, 8, count);
  EXPECT(count[7] == 1000);
  count_picks(true, wants, 0, count); // we have nothing of it
  EXPECT(count[6] == 1000);
  wants[3].rank = 15; // less than a quarter, but with what is in flight a quarter
  count_picks(true, wants, 64, count);
  EXPECT(count[7] == 1000);
  wants[3].in_flight = 1;
  count_picks(true, wants, 64, count);
  EXPECT(count[6] == 1000);
  wants[2].rank = wants[1].rank = wants[0].rank = 16; // a quarter of each: those played first
  count_picks(true, wants, 64, count);
  EXPECT(count[4] > 600 && count[5] > 50 && count[6] > 50 && count[7] > 50);
  wants[3] = none;
  wants[3].accepts = 0; // it says that it takes nothing of it
  count_picks(true, wants, 64, count);
  EXPECT(count[7] == 0 && count[4] > 600);
  for (size_t i = 0; i < 4; i++)
    wants[i] = none;
  count_picks(false, wants, 64, count); // on demand nothing is new: always those played first
  EXPECT(count[4] > 600);
}
END_TEST

// Of 2^i classes, one is forgone every 16 / 2^i segments.
START_TEST(classes_are_spread_evenly) {
  for (unsigned classes = 0; classes <= WEFT_POLICY_CLASSES; classes++) {
    unsigned count = 0;
    for (uint64_t s = 1600; s < 1600 + WEFT_POLICY_CLASSES; s++)
      count += weft_policy_class(s) < classes;
    EXPECT(count == classes);
    for (uint64_t s = 0; s < 64 && classes && (classes & (classes - 1)) == 0; s++)
      EXPECT((weft_policy_class(s) < classes) == (s % (WEFT_POLICY_CLASSES / classes) == 0));
  }
}
END_TEST

// Returns which of segments 5 to 8, or how->first and so on, push takes if we have everything and a
// neighbour `rank` packets of each: a bit for each that is taken, and bit 0 if none is.
static uint64_t picked_from(const uint16_t rank[WINDOW], const scene *how) {
  weft_policy_segment own[WINDOW];
  weft_policy_want wants[WINDOW];
  scene four = *how;
  four.live = true;
  four.first = how->first ? how->first : 5;
  for (uint64_t i = 0; i < WINDOW; i++) {
    own[i] = (weft_policy_segment){.blocks = BLOCKS, .rank = BLOCKS};
    wants[(four.first + i) % WINDOW] = (weft_policy_want){
        .rank = rank[i] & 0x7ffu, .common = rank[i], .accepts = rank[i] < BLOCKS};
  }
  four.window = WINDOW;
  four.batch_max = 16;
  four.own = own;
  four.wants = wants;
  weft_rng_chacha chacha;
  weft_rng_chacha_seed(&chacha, fixture_seed(), 5);
  uint64_t taken = 0;
  for (int i = 0; i < 200; i++) {
    weft_policy_choice choice;
    taken |= UINT64_C(1) << (pick(&four, &chacha, &choice) ? choice.segment : UINT64_C(0));
  }
  return taken;
}

static uint64_t picked(const uint16_t rank[WINDOW], unsigned forgone) {
  return picked_from(rank, &(scene){.forgone = forgone});
}

enum { S5 = 1 << 5, S6 = 1 << 6, S7 = 1 << 7, S8 = 1 << 8 };
static const uint16_t all[4] = {32, 32, 32, 32}, newest[4] = {32, 32, 32, 0},
                      rest[4] = {64, 64, 64, 0}, two[4] = {64, 32, 64, 32},
                      nothing[4] = {64, 64, 64, 64};

START_TEST(what_is_forgone_comes_last) {
  EXPECT(picked(all, 0) == (S5 | S6 | S7 | S8));
  EXPECT(picked(all, 4) == (S5 | S6 | S7)); // every fourth is forgone
  EXPECT(picked(all, 8) == (S5 | S7));
  EXPECT(picked(newest, 0) == S8); // a quarter of it, before all others
  EXPECT(picked(newest, 4) == (S5 | S6 | S7));
  EXPECT(picked(rest, 4) == S8); // nothing else is wanted
  EXPECT(picked(two, 8) == (S6 | S8));
  EXPECT(picked(nothing, 4) == 1);
}
END_TEST

// What a neighbour forgoes comes last, also from a live source. If the reason is the neighbour's
// own link, it is not sent at all.
START_TEST(what_a_neighbour_forgoes_comes_last_or_not) {
  for (int source = 0; source < 2; source++) {
    const scene fourth = {.source = source, .its_forgone = 4},
                narrow = {.source = source, .its_forgone = 4, .narrow = true},
                asks = {.source = source,
                        .first = 13, // 15 belongs to the last class
                        .its_forgone = WEFT_POLICY_ASKS,
                        .narrow = true},
                nearly = {.source = source,
                          .first = 13,
                          .its_forgone = WEFT_POLICY_ASKS - 1,
                          .narrow = true},
                more = {.source = source, .forgone = 8, .its_forgone = 4};
    EXPECT((picked_from(all, &fourth) & S8) == 0);
    EXPECT(picked_from(rest, &fourth) == S8);
    EXPECT((picked_from(all, &narrow) & (1 | S8)) == 0);
    EXPECT(picked_from(rest, &narrow) == 1);
    EXPECT(picked_from(all, &asks) == 1 && picked_from(all, &nearly) == 1 << 15);
    EXPECT((picked_from(all, &more) & (S6 | S8)) == 0);
  }
}
END_TEST

// Returns how many packets of a segment that is played after `left` of its lag pull requests from
// one neighbour with `rank` packets of it, when we have received `received` and `asked` more are
// requested.
static size_t pulled(uint16_t received, uint16_t asked, uint16_t rank, double left) {
  const weft_policy_segment own = {
      .blocks = BLOCKS, .rank = received, .received = received, .asked = asked};
  const weft_policy_want want = {.rank = rank & 0x7ffu, .accepts = 1};
  const weft_policy_neighbour neighbour = {
      .known = true, .room = BLOCKS, .count = 1, .first = 100, .wants = &want};
  const weft_policy_view view = {.live = true,
                                 .first = 100,
                                 .missing = 100,
                                 .count = 1,
                                 .window = 1,
                                 .horizon = 101,
                                 .play = 90,
                                 .segment_us = (int64_t)(left * 100000),
                                 .lag_us = 1000000,
                                 .segments = &own,
                                 .neighbours = 1,
                                 .neighbour = &neighbour,
                                 .batch_max = 16};
  weft_rng_chacha chacha;
  weft_rng_chacha_seed(&chacha, fixture_seed(), 5);
  const weft_rng rng = weft_rng_chacha_table(&chacha);
  weft_policy_choice choice = {0};
  return weft_policy_pull.ask(NULL, &view, &rng, &choice) ? choice.count : 0;
}

// One neighbour lacks two segments entirely; enough of the first was sent. Returns how often, in
// 1,000 picks, `policy` at a source takes the first.
static unsigned again(const weft_policy *policy, bool bulk, uint16_t suppliers, bool second_there) {
  const weft_policy_segment own[2] = {
      {.blocks = BLOCKS, .rank = BLOCKS, .sent = BLOCKS},
      {.blocks = BLOCKS, .rank = second_there ? BLOCKS : 0, .sent = BLOCKS - 1}};
  const weft_policy_want wants[2] = {{.accepts = 1}, {.accepts = 1}};
  const uint64_t number[2] = {0, 1};
  const weft_policy_neighbour neighbour = {
      .open = true, .known = true, .suppliers = suppliers, .count = 2, .wants = wants};
  const weft_policy_view view = {.source = true,
                                 .bulk = bulk,
                                 .count = 2,
                                 .window = 2,
                                 .horizon = 2,
                                 .segments = own,
                                 .number = number,
                                 .neighbours = 1,
                                 .neighbour = &neighbour,
                                 .batch_max = 16};
  weft_rng_chacha chacha;
  weft_rng_chacha_seed(&chacha, fixture_seed(), 6);
  const weft_rng rng = weft_rng_chacha_table(&chacha);
  unsigned count = 0;
  for (int i = 0; i < 1000; i++) {
    weft_policy_choice choice = {0};
    EXPECT(policy->pick(NULL, &view, &rng, &choice));
    count += choice.segment == 0;
  }
  return count;
}

START_TEST(a_bulk_source_sends_first_what_went_out_least) {
  EXPECT(again(&weft_policy_push, true, 2, true) == 0);
  EXPECT(again(&weft_policy_push, true, 2, false) == 1000); // when there is nothing else
  EXPECT(again(&weft_policy_push, true, 1, true) > 600);    // no other node can give the rest
  EXPECT(again(&weft_policy_push, false, 2, true) > 600);   // it is played first
  EXPECT(again(&weft_policy_source_only, true, 2, true) > 600);
}
END_TEST

START_TEST(no_more_is_asked_for_than_may_be_news) {
  EXPECT(pulled(0, 0, 0, 0.9) == 0);
  EXPECT(pulled(10, 0, 15, 0.9) == 5);  // surely useful
  EXPECT(pulled(10, 0, 64, 0.9) == 16); // a burst
  EXPECT(pulled(10, 3, 15, 0.9) == 2);  // surely useful besides what is coming
  EXPECT(pulled(10, 10, 15, 0.9) == 2); // it may be what is coming: a quarter
  EXPECT(pulled(15, 0, 15, 0.9) == 0);  // unknown, and there is time
  EXPECT(pulled(15, 0, 15, 0.5) == 1);  // and there is little time
  EXPECT(pulled(40, 0, 33, 0.5) == 2);  // one 32nd
  EXPECT(pulled(60, 4, 64, 0.9) == 0);  // all of it is coming
  EXPECT(pulled(60, 4, 64, 0.5) == 1);  // some of it may be lost: of a quarter
  EXPECT(pulled(64, 0, 64, 0.5) == 0);  // it is here
}
END_TEST

int main(void) {
  Suite *suite = suite_create("pick");
  TCase *t = tcase_create("pick");
  tcase_add_test(t, little_of_a_segment_is_sent_to_few);
  tcase_add_test(t, the_newest_of_which_a_neighbour_has_little_goes_first);
  tcase_add_test(t, classes_are_spread_evenly);
  tcase_add_test(t, what_is_forgone_comes_last);
  tcase_add_test(t, what_a_neighbour_forgoes_comes_last_or_not);
  tcase_add_test(t, a_bulk_source_sends_first_what_went_out_least);
  tcase_add_test(t, no_more_is_asked_for_than_may_be_news);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
