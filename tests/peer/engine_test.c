// SPDX-License-Identifier: Apache-2.0
// The engine under scripted time and packets: loss, reordering, duplicates, damage, silence, failed
// allocations, and the test's own codec and policy tables.
#include <stdlib.h>
#include <string.h>

#include "peer/engine/messages.h"
#include "tests/peer/fixture.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { INPUT_BYTES = 10 * FIXTURE_SEGMENT_BYTES + 100 };
static const int64_t LONG_US = INT64_C(3600) * 1000000;
static uint8_t input[INPUT_BYTES];

static void setup(void) {
  test_rng rng = test_rng_new(test_seed(), 1);
  test_rng_fill(&rng, input, sizeof input);
}

static uint64_t draw(fixture *f, uint64_t bound) {
  const weft_rng rng = weft_rng_chacha_table(&f->network);
  return weft_rng_below(&rng, bound);
}

static fixture_fate lossy(fixture *f) {
  return (fixture_fate){.copies = draw(f, 100) >= 40, .delay_us = 10000};
}
static fixture_fate reordering(fixture *f) {
  return (fixture_fate){.copies = 1, .delay_us = (int64_t)draw(f, 200000)};
}
static fixture_fate duplicating(fixture *f) {
  return (fixture_fate){.copies = 3, .delay_us = (int64_t)draw(f, 20000)};
}
static fixture_fate damaging(fixture *f) {
  return (fixture_fate){.copies = 1, .delay_us = 10000, .corrupt = draw(f, 4) == 0};
}

static void expect_delivery(fixture_fate (*fate)(fixture *f), size_t engines, size_t bytes,
                            uint64_t salt) {
  fixture f;
  EXPECT_OK(fixture_new(&f, NULL, engines, input, bytes, salt, NULL));
  f.fate = fate;
  EXPECT(fixture_run(&f, LONG_US));
  EXPECT(fixture_all_same(&f));
  for (size_t i = 0; i < engines; i++) {
    weft_engine_statistics s;
    weft_engine_get_statistics(f.engine[i], &s);
    EXPECT(s.refused == 0);
    EXPECT(weft_engine_finished(f.engine[i]));
    EXPECT(weft_engine_deadline(f.engine[i]) == WEFT_ENGINE_NEVER);
    const size_t blocks = (bytes + FIXTURE_BLOCK_BYTES - 1) / FIXTURE_BLOCK_BYTES;
    EXPECT(s.received_innovative == (i == 0 ? 0 : blocks)); // never more than the rank
    EXPECT(s.received_packets ==
           s.received_innovative + s.received_dependent + s.received_late + s.received_outside);
  }
  fixture_free(&f);
}

START_TEST(delivers_every_length) {
  static const size_t lengths[] = {0,
                                   1,
                                   FIXTURE_BLOCK_BYTES,
                                   FIXTURE_SEGMENT_BYTES - 1,
                                   FIXTURE_SEGMENT_BYTES,
                                   FIXTURE_SEGMENT_BYTES + 1,
                                   INPUT_BYTES};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
    for (size_t engines = 2; engines <= FIXTURE_ENGINES; engines++)
      expect_delivery(fixture_perfect, engines, lengths[i], 100 * i);
}
END_TEST

START_TEST(delivers_through_losses) { expect_delivery(lossy, 4, INPUT_BYTES, 1); }
END_TEST
START_TEST(delivers_out_of_order) { expect_delivery(reordering, 4, INPUT_BYTES, 2); }
END_TEST
START_TEST(delivers_with_duplicates) { expect_delivery(duplicating, 4, INPUT_BYTES, 3); }
END_TEST

// Damaged packets break nothing. (Damaged payloads cannot be recognised yet, docs/protocol.md, so
// no more is checked.)
START_TEST(survives_damage) {
  for (uint64_t salt = 0; salt < 20; salt++) {
    fixture f;
    EXPECT_OK(fixture_new(&f, NULL, 3, input, INPUT_BYTES, 1000 + 10 * salt, NULL));
    f.fate = damaging;
    f.may_differ = true;
    (void)fixture_run(&f, 20 * 1000000);
    for (size_t i = 0; i < 3; i++) {
      weft_engine_statistics s;
      weft_engine_get_statistics(f.engine[i], &s);
      EXPECT(s.received_innovative <= (s.segments + FIXTURE_WINDOW) * FIXTURE_BLOCKS);
    }
    fixture_free(&f);
  }
}
END_TEST

// Noise of any length instead of messages breaks nothing.
START_TEST(survives_noise) {
  fixture f;
  test_rng rng = test_rng_new(test_seed(), 5);
  EXPECT_OK(fixture_new(&f, NULL, 2, input, INPUT_BYTES, 4, NULL));
  EXPECT(!fixture_run(&f, 30000)); // connected, not done
  for (int i = 0; i < 200000; i++) {
    uint8_t noise[160];
    const size_t bytes = test_rng_below(&rng, sizeof noise + 1);
    test_rng_fill(&rng, noise, bytes);
    if (bytes > 1 && i % 2) { // half of them pass the first checks
      noise[0] = WEFT_WIRE_VERSION;
      noise[1] = (uint8_t)(test_rng_below(&rng, 2) ? 16 + test_rng_below(&rng, 3)
                                                   : test_rng_below(&rng, 4));
    }
    (void)weft_engine_input(f.engine[1], f.neighbour[1][0], noise, bytes, f.now_us);
  }
  fixture_free(&f);
}
END_TEST

START_TEST(the_same_inputs_give_the_same_outputs) {
  uint64_t digest[3], sent[3];
  for (int run = 0; run < 3; run++) {
    fixture f;
    EXPECT_OK(fixture_new(&f, NULL, 4, input, INPUT_BYTES, run == 2 ? 999 : 6, NULL));
    f.fate = lossy;
    EXPECT(fixture_run(&f, LONG_US));
    digest[run] = f.digest;
    sent[run] = f.sent;
    fixture_free(&f);
  }
  EXPECT(digest[0] == digest[1] && sent[0] == sent[1]);
  EXPECT(digest[0] != digest[2]); // another seed, another run
}
END_TEST

START_TEST(foreign_streams_are_refused) {
  fixture f;
  EXPECT_OK(fixture_new(&f, NULL, 2, input, INPUT_BYTES, 7, NULL));
  const weft_hello hellos[] = {
      {.stream = 8, .blocks = FIXTURE_BLOCKS, .window = 4, .block_bytes = FIXTURE_BLOCK_BYTES},
      {.stream = 7, .blocks = FIXTURE_BLOCKS + 1, .window = 4, .block_bytes = FIXTURE_BLOCK_BYTES},
      {.stream = 7, .blocks = FIXTURE_BLOCKS, .window = 4, .block_bytes = FIXTURE_BLOCK_BYTES + 1}};
  for (size_t i = 0; i < 3; i++) {
    uint8_t bytes[WEFT_HELLO_BYTES];
    const size_t length = weft_hello_write(&hellos[i], bytes);
    EXPECT_STATUS(weft_engine_input(f.engine[1], f.neighbour[1][0], bytes, length, 0),
                  WEFT_E_FOREIGN);
  }
  weft_engine_statistics s;
  weft_engine_get_statistics(f.engine[1], &s);
  EXPECT(s.refused == 3);
  fixture_free(&f);
}
END_TEST

// A neighbour that falls silent neither blocks the window nor is kept.
START_TEST(silent_neighbours_are_lost) {
  fixture f;
  EXPECT_OK(fixture_new(&f, NULL, 3, input, INPUT_BYTES, 8, NULL));
  EXPECT_OK(weft_engine_remove_neighbour(f.engine[2], f.neighbour[2][0]));
  EXPECT_OK(weft_engine_remove_neighbour(f.engine[2], f.neighbour[2][1]));
  EXPECT_STATUS(weft_engine_remove_neighbour(f.engine[2], f.neighbour[2][1]), WEFT_E_STATE);
  EXPECT(fixture_run(&f, LONG_US)); // engine 2 refuses datagrams to it
  EXPECT(weft_engine_done(f.engine[1]) && f.got[1] == INPUT_BYTES);
  EXPECT(memcmp(f.output[1], input, INPUT_BYTES) == 0);
  fixture_free(&f);
}
END_TEST

static fixture_fate cut_when_all_is_there(fixture *f) {
  return (fixture_fate){.copies = f->got[1] < f->input_bytes, .delay_us = 10000};
}

static bool had_all(const fixture *f) {
  weft_neighbour_statistics s;
  EXPECT_OK(weft_engine_get_neighbour(f->engine[0], f->neighbour[0][1], &s));
  return s.had_all;
}

// A node that has fetched everything and leaves repeats its farewell on request, as that may have
// been lost.
START_TEST(a_lost_farewell_is_said_again) {
  fixture f;
  EXPECT_OK(fixture_new(&f, NULL, 2, input, INPUT_BYTES, 9, NULL));
  f.fate = cut_when_all_is_there;
  int64_t at_us = 0;
  for (; f.got[1] < INPUT_BYTES && at_us < LONG_US; at_us += 1000) {
    EXPECT(!had_all(&f) && !weft_engine_farewell_again(f.engine[1]));
    (void)fixture_run(&f, at_us);
  }
  at_us += 200000;
  (void)fixture_run(&f, at_us); // and its farewell was lost
  EXPECT(weft_engine_finished(f.engine[1]) && !weft_engine_finished(f.engine[0]) && !had_all(&f));
  f.fate = fixture_perfect;
  EXPECT(weft_engine_farewell_again(f.engine[1]));
  EXPECT_OK(fixture_turn(&f, 1));
  (void)fixture_run(&f, at_us + 50000);
  EXPECT(weft_engine_finished(f.engine[0]) && had_all(&f));
  EXPECT(fixture_run(&f, LONG_US) && fixture_all_same(&f));
  fixture_free(&f);
}
END_TEST

START_TEST(the_window_bounds_what_is_held) {
  fixture f;
  EXPECT_OK(fixture_new(&f, NULL, 2, input, INPUT_BYTES, 9, NULL));
  for (int i = 0; i < FIXTURE_WINDOW; i++)
    EXPECT_OK(weft_engine_source_put(f.engine[0], input, FIXTURE_SEGMENT_BYTES, 0, 0));
  EXPECT(!weft_engine_source_ready(f.engine[0]));
  EXPECT_STATUS(weft_engine_source_put(f.engine[0], input, FIXTURE_SEGMENT_BYTES, 0, 0),
                WEFT_E_STATE);
  // A segment past the receiver's window is refused, however well-formed.
  uint8_t hello[WEFT_HELLO_BYTES], bytes[256], payload[FIXTURE_BLOCK_BYTES] = {0};
  const weft_hello greeting = {
      .stream = 7, .blocks = FIXTURE_BLOCKS, .window = 4, .block_bytes = FIXTURE_BLOCK_BYTES};
  const size_t at = f.neighbour[1][0];
  EXPECT_OK(weft_engine_input(f.engine[1], at, hello, weft_hello_write(&greeting, hello), 0));
  weft_packet packet = {.id = {.stream = 7,
                               .segment = FIXTURE_WINDOW,
                               .blocks = FIXTURE_BLOCKS,
                               .block_bytes = FIXTURE_BLOCK_BYTES},
                        .payload = payload};
  size_t length;
  EXPECT_OK(weft_packet_write_session(&packet, bytes, sizeof bytes, &length));
  EXPECT_STATUS(weft_engine_input(f.engine[1], at, bytes, length, 0), WEFT_DEPENDENT);
  packet.id.segment = FIXTURE_WINDOW - 1;
  EXPECT_OK(weft_packet_write_session(&packet, bytes, sizeof bytes, &length));
  EXPECT_OK(weft_engine_input(f.engine[1], at, bytes, length, 0));
  EXPECT_STATUS(weft_engine_input(f.engine[1], at, bytes, length, 0), WEFT_DEPENDENT);
  weft_engine_statistics s;
  weft_engine_get_statistics(f.engine[1], &s);
  EXPECT(s.received_outside == 1 && s.received_innovative == 1 && s.received_dependent == 1);
  fixture_free(&f);
}
END_TEST

// Each allocation of a run fails once: the failure is reported, only a datagram or a feed is lost,
// and the run still delivers every byte.
START_TEST(failed_allocations_lose_no_byte) {
  long n = 1;
  for (;; n++) {
    test_allocator memory;
    test_allocator_init(&memory, n);
    fixture f;
    const weft_status status =
        fixture_new(&f, &memory.allocator, 3, input, 2 * FIXTURE_SEGMENT_BYTES + 9, 10, NULL);
    if (status == WEFT_OK) {
      f.tolerate_nomem = true;
      EXPECT(fixture_run(&f, LONG_US));
      EXPECT(fixture_all_same(&f));
      EXPECT((f.nomem > 0) == test_allocator_failed(&memory));
      fixture_free(&f);
    } else {
      EXPECT(status == WEFT_E_NOMEM);
    }
    EXPECT(test_allocator_live(&memory) == 0);
    if (!test_allocator_failed(&memory))
      break;
  }
  EXPECT(n > 50); // else the loop has not covered what it should
}
END_TEST

START_TEST(bad_options_are_refused) {
  fixture f;
  EXPECT_OK(fixture_new(&f, NULL, 2, input, 0, 11, NULL));
  const weft_engine_self self = {.rng = weft_rng_chacha_table(&f.network)}, no_rng = {0};
  const weft_engine_options good = {.blocks = 1,
                                    .block_bytes = 1,
                                    .window = 1,
                                    .batch = 1,
                                    .neighbours_max = 1,
                                    .codec = &f.codec,
                                    .policy = &weft_policy_push};
  weft_engine_options bad[8];
  for (size_t i = 0; i < 8; i++)
    bad[i] = good;
  bad[0].blocks = 0;
  bad[1].blocks = WEFT_MAX_BLOCKS + 1;
  bad[2].block_bytes = WEFT_MAX_BLOCK_BYTES + 1;
  bad[3].window = WEFT_ENGINE_MAX_WINDOW + 1;
  bad[4].batch = 0;
  bad[5].neighbours_max = 0;
  bad[6].codec = NULL;
  bad[7].policy = NULL;
  weft_engine *engine, *const stale = (weft_engine *)(void *)&f;
  weft_engine_scratch *scratch;
  for (size_t i = 0; i < 8; i++) {
    engine = stale;
    scratch = (weft_engine_scratch *)(void *)&f;
    EXPECT_STATUS(weft_engine_new(f.ctx, &bad[i], &self, &engine), WEFT_E_ARGUMENT);
    EXPECT_STATUS(weft_engine_scratch_new(f.ctx, &bad[i], &scratch), WEFT_E_ARGUMENT);
    EXPECT(!engine && !scratch); // as context.h says, so that they can be freed
  }
  engine = stale;
  EXPECT_STATUS(weft_engine_new(f.ctx, &good, &no_rng, &engine), WEFT_E_ARGUMENT);
  EXPECT(!engine);
  EXPECT_OK(weft_engine_new(f.ctx, &good, &self, &engine));
  weft_engine_free(engine);
  weft_engine_free(NULL);
  fixture_free(&f);
}
END_TEST

// --- Outside codecs and policies

static bool pick_first(void *user, const weft_policy_view *view, const weft_rng *rng,
                       weft_policy_choice *out) {
  (void)rng;
  ++*(int *)user;
  for (size_t i = 0; i < view->neighbours; i++)
    for (uint64_t s = view->first; view->neighbour[i].open && s < view->first + view->count; s++) {
      const weft_policy_want *want = &view->neighbour[i].wants[s % view->window];
      const weft_policy_segment *own = &view->segments[s % view->window];
      if (want->accepts && own->rank > want->rank + want->in_flight) {
        *out = (weft_policy_choice){.neighbour = i, .segment = s, .count = 1};
        return true;
      }
    }
  return false;
}

static int picks;
static const weft_policy policy_first = {.name = "first", .user = &picks, .pick = pick_first};
static void use_policy_first(weft_engine_options *options, weft_engine_self *self, size_t index) {
  (void)index, (void)self;
  options->policy = &policy_first;
}

START_TEST(another_policy_works) {
  fixture f;
  picks = 0;
  EXPECT_OK(fixture_new(&f, NULL, 3, input, INPUT_BYTES, 12, use_policy_first));
  EXPECT(fixture_run(&f, LONG_US));
  EXPECT(fixture_all_same(&f) && picks > 0);
  fixture_free(&f);
}
END_TEST

static bool pick_nonsense(void *user, const weft_policy_view *view, const weft_rng *rng,
                          weft_policy_choice *out) {
  (void)user;
  (void)rng;
  *out = (weft_policy_choice){.neighbour = view->neighbours, .segment = 1, .count = 1};
  return true;
}
static const weft_policy policy_nonsense = {.name = "nonsense", .pick = pick_nonsense};
static void use_policy_nonsense(weft_engine_options *options, weft_engine_self *self,
                                size_t index) {
  (void)index, (void)self;
  options->policy = &policy_nonsense;
}

START_TEST(a_choice_outside_the_view_is_refused) {
  fixture f;
  EXPECT_OK(fixture_new(&f, NULL, 2, input, INPUT_BYTES, 13, use_policy_nonsense));
  EXPECT(!fixture_run(&f, 1000000));
  EXPECT_STATUS(fixture_turn(&f, 0), WEFT_E_ARGUMENT);
  fixture_free(&f);
}
END_TEST

// --- Room for a stranger

enum { NEIGHBOURS_TARGET = 2, NEIGHBOURS_MAX = 4, NEIGHBOURS_OTHER = 3 };
static void take_few(weft_engine_options *options, weft_engine_self *self, size_t index) {
  (void)index, (void)self;
  options->neighbours_target = NEIGHBOURS_TARGET;
  options->neighbours_max = NEIGHBOURS_MAX;
  options->addresses_max = 8;
}

// Greets, and claims this number of suppliers.
static void speak(weft_engine *engine, size_t neighbour, uint16_t suppliers, int64_t now_us) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_hello hello = {.stream = 7,
                            .blocks = FIXTURE_BLOCKS,
                            .window = FIXTURE_WINDOW,
                            .block_bytes = FIXTURE_BLOCK_BYTES,
                            .stamps = {.stamp = 1}};
  EXPECT_OK(weft_engine_input(engine, neighbour, out, weft_hello_write(&hello, out), now_us));
  const weft_map map = {.stamps = {.stamp = 1}, .suppliers = suppliers, .entry_bytes = 2};
  EXPECT_OK(weft_engine_input(engine, neighbour, out, weft_map_write(&map, out), now_us));
}

// Returns which neighbour is told goodbye within a turn; SIZE_MAX: none.
static size_t parted(weft_engine *engine, int64_t now_us) {
  size_t found = SIZE_MAX;
  weft_burst burst;
  weft_engine_tick(engine, now_us);
  while (weft_engine_output(engine, now_us, &burst) == WEFT_OK)
    for (size_t i = 0; i < burst.count; i++) {
      weft_message message;
      EXPECT_OK(weft_message_parse(burst.datagrams[i].data, burst.datagrams[i].bytes, 7,
                                   FIXTURE_BLOCKS, FIXTURE_BLOCK_BYTES, &message));
      if (message.kind != WEFT_MESSAGE_BYE)
        continue;
      EXPECT(message.as.bye == WEFT_BYE_REPLACED && found == SIZE_MAX);
      found = burst.neighbour;
    }
  return found;
}

// Fills an engine: the source, which claims nine suppliers, and neighbours with these.
static void fill(fixture *f, const uint16_t suppliers[NEIGHBOURS_OTHER],
                 size_t number[NEIGHBOURS_OTHER + 1]) {
  EXPECT_OK(fixture_new(f, NULL, 2, input, INPUT_BYTES, 14, take_few));
  weft_engine *engine = f->engine[1];
  size_t *source = &number[NEIGHBOURS_OTHER], stranger;
  EXPECT_OK(weft_engine_remove_neighbour(engine, f->neighbour[1][0])); // not as the source
  const weft_neighbour_options is_source = {.is_source = true};
  EXPECT_OK(weft_engine_add_neighbour(engine, &is_source, 0, source));
  speak(engine, *source, 9, 0);
  for (size_t i = 0; i < NEIGHBOURS_OTHER; i++) {
    const weft_neighbour_options options = {.address = {.length = 1, .bytes = {(uint8_t)(1 + i)}}};
    EXPECT_OK(weft_engine_add_neighbour(engine, &options, 0, &number[i]));
    speak(engine, number[i], suppliers[i], 0);
  }
  EXPECT_STATUS(weft_engine_add_neighbour(engine, NULL, 0, &stranger), WEFT_E_STATE);
}

// Adds a stranger and expects that `wanted` is parted with; SIZE_MAX: no neighbour.
static void expect_parting(const uint16_t suppliers[NEIGHBOURS_OTHER], bool refused,
                           size_t wanted) {
  fixture f;
  size_t number[NEIGHBOURS_OTHER + 1], stranger;
  fill(&f, suppliers, number);
  weft_engine *engine = f.engine[1];
  uint8_t refusal[WEFT_DATAGRAM_MAX];
  EXPECT(!refused || weft_engine_refusal(engine, NULL, refusal) > 0);
  EXPECT(parted(engine, 1) == (wanted == SIZE_MAX ? SIZE_MAX : number[wanted]));
  weft_event event;
  while (weft_engine_event(engine, &event))
    ;
  EXPECT((weft_engine_add_neighbour(engine, NULL, 1, &stranger) == WEFT_OK) ==
         (wanted != SIZE_MAX));
  fixture_free(&f);
}

START_TEST(a_full_engine_parts_with_who_can_spare_it) {
  expect_parting((uint16_t[]){3, 4, 1}, true, 1);
  expect_parting((uint16_t[]){5, 1, 5}, true, 0);
  expect_parting((uint16_t[]){2, 1, 2}, true, SIZE_MAX); // these would look for another
  expect_parting((uint16_t[]){3, 4, 2}, true, SIZE_MAX); // no neighbour is in need
  expect_parting((uint16_t[]){3, 4, 1}, false, SIZE_MAX);
}
END_TEST

START_TEST(a_full_engine_gives_up_who_may_be_gone_first) {
  enum { LATER_US = 12000000, QUIET = 2 }; // its keep-alive is overdue, but it is not lost yet
  fixture f;
  size_t number[NEIGHBOURS_OTHER + 1], lost = SIZE_MAX;
  fill(&f, (uint16_t[]){3, 4, 1}, number);
  weft_engine *engine = f.engine[1];
  for (size_t i = 0; i <= NEIGHBOURS_OTHER; i++)
    if (i != QUIET)
      speak(engine, number[i], 4, LATER_US);
  weft_event event;
  EXPECT(parted(engine, LATER_US) == SIZE_MAX); // in doubt from now on
  for (int64_t refusals = 0; refusals < 2; refusals++) {
    uint8_t refusal[WEFT_DATAGRAM_MAX];
    EXPECT(lost == SIZE_MAX);
    EXPECT(refusals == 0 || weft_engine_refusal(engine, NULL, refusal) > 0);
    EXPECT(parted(engine, LATER_US + (1 + refusals) * 900000) == SIZE_MAX);
    while (weft_engine_event(engine, &event))
      if (event.kind == WEFT_EVENT_NEIGHBOUR_LOST) {
        EXPECT(event.reason == WEFT_LOST_SILENT);
        lost = event.neighbour;
      }
  }
  EXPECT(lost == number[QUIET]);
  fixture_free(&f);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("engine");
  TCase *t = tcase_create("engine");
  tcase_add_checked_fixture(t, setup, NULL);
  tcase_add_test(t, delivers_every_length);
  tcase_add_test(t, delivers_through_losses);
  tcase_add_test(t, delivers_out_of_order);
  tcase_add_test(t, delivers_with_duplicates);
  tcase_add_test(t, survives_damage);
  tcase_add_test(t, survives_noise);
  tcase_add_test(t, the_same_inputs_give_the_same_outputs);
  tcase_add_test(t, foreign_streams_are_refused);
  tcase_add_test(t, silent_neighbours_are_lost);
  tcase_add_test(t, a_lost_farewell_is_said_again);
  tcase_add_test(t, the_window_bounds_what_is_held);
  tcase_add_test(t, failed_allocations_lose_no_byte);
  tcase_add_test(t, bad_options_are_refused);
  tcase_add_test(t, another_policy_works);
  tcase_add_test(t, a_choice_outside_the_view_is_refused);
  tcase_add_test(t, a_full_engine_parts_with_who_can_spare_it);
  tcase_add_test(t, a_full_engine_gives_up_who_may_be_gone_first);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
