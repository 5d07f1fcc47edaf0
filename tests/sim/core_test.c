// SPDX-License-Identifier: Apache-2.0
// The event core: the same order whatever the number of lanes, checked against a plain sorted list;
// and the arena.
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "sim/core/arena.h"
#include "sim/core/core.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

#define EXPECT(condition)                                                                          \
  do {                                                                                             \
    if (!(condition))                                                                              \
      ck_abort_msg("%s (WEFT_TEST_SEED=%#llx)", #condition, (unsigned long long)test_seed());      \
  } while (0)

enum { ACTORS = 300, WINDOW_US = 700 };
static const int64_t END_US = 400000;

// An actor that responds to events with messages to others, some far in the future, and sets
// timers.
typedef struct actor {
  uint64_t hash, rng;
  uint32_t sequence;
  int64_t timer_us; // < 0: none
  uint64_t events;
} actor;

typedef struct world {
  actor actors[ACTORS];
} world;

static uint64_t mix(uint64_t x) {
  x = (x ^ x >> 32) * UINT64_C(0x9E3779B97F4A7C15);
  return x ^ x >> 29;
}

static void count_event(actor *a, int64_t time_us, uint32_t source, uint32_t sequence,
                        uint64_t content) {
  a->hash = mix(a->hash + mix((uint64_t)time_us) + source * UINT64_C(77) + sequence + content);
  a->rng = mix(a->rng + a->hash);
  a->events++;
}

// The response to an event: up to two messages, and a timer.
typedef struct answer {
  weft_sim_message messages[2];
  uint64_t content[2];
  size_t count;
} answer;

static answer act(actor *a, uint32_t self, int64_t now_us) {
  answer out = {.count = a->rng % 5 == 0 ? 2 : a->rng % 2};
  for (size_t i = 0; i < out.count; i++) {
    const uint64_t r = a->rng = mix(a->rng + i + 1);
    const int64_t far = r % 31 == 0 ? 250000 : 0; // some times are beyond other messages' windows
    out.content[i] = r;
    out.messages[i] = (weft_sim_message){.time_us = now_us + WINDOW_US + far + (int64_t)(r % 3000),
                                         .destination = (uint32_t)(r >> 20) % ACTORS,
                                         .source = self,
                                         .sequence = a->sequence++,
                                         .bytes = sizeof(uint64_t)};
  }
  if (a->rng % 6 == 0)
    a->timer_us = now_us + 1 + (int64_t)(a->rng >> 40) % 2000;
  return out;
}

static void start(world *w, uint64_t seed) {
  memset(w, 0, sizeof *w);
  for (uint32_t i = 0; i < ACTORS; i++)
    w->actors[i] = (actor){.rng = mix(seed + i), .timer_us = (int64_t)(mix(seed ^ i) % 5000)};
}

// --- On the core

// Processor time as seen by the core: one tick for each look, and TURN_NS for each turn.
enum { TURN_NS = 10 };
static _Thread_local uint64_t ticks;
static uint64_t thread_ticks(void) { return ++ticks; }

static void send_all(weft_sim_lane *lane, const answer *an) {
  for (size_t i = 0; i < an->count; i++) {
    void *to = weft_sim_send(lane, &an->messages[i]);
    EXPECT(to != NULL);
    memcpy(to, &an->content[i], sizeof an->content[i]);
  }
}

static void fire(actor *a, weft_sim_lane *lane, uint32_t self) {
  const int64_t at = a->timer_us;
  a->timer_us = -1;
  count_event(a, at, self, 0, 1);
  const answer an = act(a, self, at);
  send_all(lane, &an);
}

static weft_status turn(void *user, weft_sim_lane *lane, const weft_sim_turn *t) {
  world *w = user;
  actor *a = &w->actors[t->actor];
  ticks += TURN_NS;
  for (size_t i = 0; i <= t->count; i++) {
    const int64_t until = i < t->count ? t->messages[i]->time_us : t->end_us;
    while (a->timer_us >= 0 && a->timer_us < until)
      fire(a, lane, t->actor);
    if (i == t->count)
      break;
    const weft_sim_message *m = t->messages[i];
    uint64_t content;
    EXPECT(m->destination == t->actor && m->time_us >= t->begin_us && m->time_us < t->end_us);
    memcpy(&content, weft_sim_content(m), sizeof content);
    count_event(a, m->time_us, m->source, m->sequence, content);
    const answer an = act(a, t->actor, m->time_us);
    send_all(lane, &an);
  }
  if (a->timer_us >= 0)
    weft_sim_wake(lane, t->actor, a->timer_us);
  return WEFT_OK;
}

static weft_sim_effort run_on_core(world *w, uint64_t seed, size_t threads) {
  start(w, seed);
  const weft_sim_core_options options = {.actors = ACTORS,
                                         .threads = threads,
                                         .window_us = WINDOW_US,
                                         .user = w,
                                         .turn = turn,
                                         .thread_ns = thread_ticks};
  weft_sim_core *core;
  EXPECT(weft_sim_core_new(&options, &core) == WEFT_OK);
  for (uint32_t i = 0; i < ACTORS; i++)
    weft_sim_core_wake(core, i, w->actors[i].timer_us);
  EXPECT(weft_sim_core_run(core, END_US, NULL) == WEFT_OK);
  EXPECT(weft_sim_core_now(core) >= END_US && weft_sim_core_bytes(core) > 0);
  const weft_sim_effort effort = weft_sim_core_effort(core);
  weft_sim_core_free(core);
  return effort;
}

// --- The same, from a plain list

typedef struct pending {
  weft_sim_message message;
  uint64_t content;
} pending;

static bool sooner(const weft_sim_message *a, const weft_sim_message *b) {
  if (a->time_us != b->time_us)
    return a->time_us < b->time_us;
  if (a->destination != b->destination)
    return a->destination < b->destination;
  if (a->source != b->source)
    return a->source < b->source;
  return a->sequence < b->sequence;
}

static void keep(pending **list, size_t *count, size_t *capacity, const answer *an) {
  for (size_t i = 0; i < an->count; i++) {
    if (*count == *capacity) {
      *capacity = 2 * *capacity + 16;
      *list = realloc(*list, *capacity * sizeof **list);
      EXPECT(*list != NULL);
    }
    (*list)[(*count)++] = (pending){.message = an->messages[i], .content = an->content[i]};
  }
}

static void run_on_list(world *w, uint64_t seed) {
  pending *list = NULL;
  size_t count = 0, capacity = 0;
  // The core works up to the end of a window.
  const int64_t end_us = (END_US + WINDOW_US - 1) / WINDOW_US * WINDOW_US;
  start(w, seed);
  for (;;) {
    size_t next = 0;
    for (size_t i = 1; i < count; i++)
      if (sooner(&list[i].message, &list[next].message))
        next = i;
    uint32_t timer = ACTORS;
    for (uint32_t i = 0; i < ACTORS; i++)
      if (w->actors[i].timer_us >= 0 &&
          (timer == ACTORS || w->actors[i].timer_us < w->actors[timer].timer_us))
        timer = i;
    const int64_t timer_us = timer < ACTORS ? w->actors[timer].timer_us : INT64_MAX;
    const int64_t message_us = count ? list[next].message.time_us : INT64_MAX;
    if ((timer_us < message_us ? timer_us : message_us) >= end_us)
      break;
    answer an;
    if (timer_us < message_us) {
      actor *a = &w->actors[timer];
      a->timer_us = -1;
      count_event(a, timer_us, timer, 0, 1);
      an = act(a, timer, timer_us);
    } else {
      const pending p = list[next];
      list[next] = list[--count];
      actor *a = &w->actors[p.message.destination];
      count_event(a, message_us, p.message.source, p.message.sequence, p.content);
      an = act(a, p.message.destination, message_us);
    }
    keep(&list, &count, &capacity, &an);
  }
  free(list);
}

// The order of events is the same with any number of threads, and as in a plain list.
START_TEST(lanes_do_not_matter) {
  world *plain = malloc(sizeof *plain), *core = malloc(sizeof *core);
  EXPECT(plain && core);
  run_on_list(plain, test_seed());
  uint64_t events = 0;
  for (size_t i = 0; i < ACTORS; i++)
    events += plain->actors[i].events;
  EXPECT(events > 1000);
  const size_t threads[] = {1, 2, 3, 7};
  uint64_t turns = 0;
  for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
    const weft_sim_effort e = run_on_core(core, test_seed(), threads[t]);
    EXPECT(memcmp(plain, core, sizeof *plain) == 0);
    // Each lane reads its clock twice in a window, and the number of turns is always the same.
    EXPECT(e.windows == (uint64_t)(END_US + WINDOW_US - 1) / WINDOW_US && e.between_ns == 0);
    turns = threads[t] == 1 ? (e.lanes_ns - e.windows) / TURN_NS : turns;
    EXPECT(turns > 1000 && e.lanes_ns == e.windows * threads[t] + turns * TURN_NS);
    EXPECT(e.longest_ns >= e.lanes_ns / threads[t] && e.longest_ns <= e.lanes_ns);
    EXPECT(threads[t] > 1 ? e.longest_ns < e.lanes_ns : e.longest_ns == e.lanes_ns);
  }
  free(plain);
  free(core);
}
END_TEST

static weft_status sends_too_soon(void *user, weft_sim_lane *lane, const weft_sim_turn *t) {
  (void)user;
  const weft_sim_message m = {.time_us = t->end_us - 1, .destination = 1};
  EXPECT(weft_sim_send(lane, &m) == NULL);
  return WEFT_OK;
}

static weft_status fails(void *user, weft_sim_lane *lane, const weft_sim_turn *t) {
  (void)user;
  (void)lane;
  (void)t;
  return WEFT_E_MALFORMED;
}

static bool never_on(void *user, int64_t now_us) {
  (void)user;
  (void)now_us;
  return false;
}

static weft_status run_with(weft_status (*call)(void *, weft_sim_lane *, const weft_sim_turn *),
                            bool (*keep_on)(void *, int64_t)) {
  const weft_sim_core_options options = {.actors = 2, .threads = 1, .window_us = 10, .turn = call};
  weft_sim_core *core;
  EXPECT(weft_sim_core_new(&options, &core) == WEFT_OK);
  weft_sim_core_wake(core, 0, 25);
  const weft_status status = weft_sim_core_run(core, 100, keep_on);
  weft_sim_core_free(core);
  return status;
}

// A failing actor, a message sent too soon, or a request to stop ends the run with its status.
START_TEST(failures_end_the_run) {
  EXPECT(run_with(sends_too_soon, NULL) == WEFT_E_STATE);
  EXPECT(run_with(fails, NULL) == WEFT_E_MALFORMED);
  EXPECT(run_with(fails, never_on) == WEFT_PENDING);
  weft_sim_core *core;
  const weft_sim_core_options none = {.actors = 0, .threads = 1, .window_us = 1, .turn = fails};
  EXPECT(weft_sim_core_new(&none, &core) == WEFT_E_ARGUMENT);
  weft_sim_core_free(NULL);
}
END_TEST

// Pieces of the arena are aligned, do not overlap, and are reused.
START_TEST(arena_gives_and_takes_back) {
  enum { PIECES = 2000 };
  static uint8_t *piece[PIECES];
  static size_t bytes[PIECES];
  test_rng rng = test_rng_new(test_seed(), 1);
  weft_sim_arena *arena = weft_sim_arena_new();
  EXPECT(arena != NULL);
  uint64_t most = 0;
  for (size_t round = 0; round < 6; round++) {
    for (size_t i = 0; i < PIECES; i++) {
      bytes[i] = 1 + test_rng_below(&rng, i % 97 == 0 ? 3000000 : i % 13 == 0 ? 60000 : 700);
      piece[i] = weft_sim_arena_take(arena, bytes[i], 64);
      EXPECT(piece[i] && (uintptr_t)piece[i] % 64 == 0);
      memset(piece[i], (int)(i % 251), bytes[i]);
    }
    for (size_t i = 0; i < PIECES; i++) {
      EXPECT(piece[i][0] == i % 251 && piece[i][bytes[i] - 1] == i % 251);
      EXPECT(piece[i][bytes[i] / 2] == i % 251);
      weft_sim_arena_give(arena, piece[i]);
    }
    if (round == 2)
      most = weft_sim_arena_bytes(arena);
  }
  // Sizes differ, but their sum hardly changes.
  EXPECT(weft_sim_arena_bytes(arena) <= most + most / 2);
  weft_sim_arena_free(arena);
  weft_sim_arena_free(NULL);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("sim core");
  TCase *t = tcase_create("core");
  tcase_add_test(t, lanes_do_not_matter);
  tcase_add_test(t, failures_end_the_run);
  tcase_add_test(t, arena_gives_and_takes_back);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
