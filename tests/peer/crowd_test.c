// SPDX-License-Identifier: Apache-2.0
// Which neighbour gives way when a node seeks a place at a viewer that has none left: one that can
// spare it, but not for a crowd of one address or one network, whatever that claims.
#include "tests/peer/scene.h"
#include "tests/peer/swarm.h"
#include "tests/support/test_main.h"

// --- A crowd that claims to be in need, and returns as fast as it can

enum { SEGMENT = 1024, SEGMENTS = 300, INPUT_BYTES = SEGMENTS * SEGMENT };
enum { HONEST = 16, VIEWER, LIAR, CROWD = 12, PLACES = 8, FRIENDS = PLACES - 1 };
static uint8_t input[INPUT_BYTES];

static void setup(void) {
  test_rng rng = test_rng_new(fixture_seed(), 51);
  test_rng_fill(&rng, input, sizeof input);
}

static size_t neighbours_among(const swarm *s, size_t node, size_t first, size_t count) {
  size_t found = 0;
  for (size_t i = 0; i < SWARM_LINKS; i++) {
    const swarm_link *l = &s->node[node].links[i];
    found += l->used && l->node >= first && l->node < first + count;
  }
  return found;
}

static swarm *audience(void) {
  swarm *s = swarm_new_live(input, sizeof input, 3);
  s->options.lag_us = 2 * (int64_t)SECOND;
  s->options.neighbours_max = PLACES;
  s->options.neighbours_target = PLACES / 2;
  s->options.addresses_max = 32;
  s->options.timers.exchange_us = SECOND;
  swarm_start(s, NULL);
  for (uint16_t i = 1; i <= VIEWER; i++) {
    const size_t at = swarm_add(s, NULL);
    s->node[at].origin = (weft_origin){.address = i, .network = i};
    s->node[at].suppliers = PLACES; // as in a mesh where no node is in need
  }
  for (size_t i = 0; i < FRIENDS; i++)
    swarm_connect(s, VIEWER, 5 + i);
  for (size_t i = 1; i <= HONEST; i++)
    for (size_t d = 1; d <= 3 && d <= i; d++)
      swarm_connect(s, i, d == 1 && i <= 4 ? 0 : i - d);
  return s;
}

static void add_crowd(swarm *s) {
  for (size_t i = 0; i < CROWD; i++) {
    const size_t at = swarm_add(s, NULL);
    s->node[at].free_rider = true;
    s->node[at].claim = SWARM_CLAIMS_NOTHING;
    s->node[at].suppliers = 1;
    s->node[at].origin = (weft_origin){.address = LIAR, .network = LIAR};
  }
  swarm_connect(s, LIAR, VIEWER); // one of the crowd is a neighbour already
}

// A crowd of one address does not push out the neighbours that give. When origins were ignored, a
// viewer lost all its neighbours within two seconds, and played nothing any more.
START_TEST(a_crowd_does_not_push_out_who_gives) {
  swarm *s = audience();
  swarm_run(s, 3 * (int64_t)SECOND);
  add_crowd(s);
  while (s->now_us < 25 * (int64_t)SECOND) {
    swarm_run(s, s->now_us + SECOND / 10);
    for (size_t at = LIAR; at < LIAR + CROWD; at++)
      if (!neighbours_among(s, at, VIEWER, 1))
        swarm_connect(s, at, VIEWER);
  }
  EXPECT(neighbours_among(s, VIEWER, 0, VIEWER) > 0);
  EXPECT(s->node[VIEWER].skips == 0 && s->node[VIEWER].plays > 150);
  swarm_free(s);
}
END_TEST

// --- Which of four gives its place

static void comes(scene *s, size_t index, weft_origin origin, uint16_t suppliers) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_hello hello = {.stream = 5, .blocks = N, .block_bytes = K, .stamps = {.stamp = 1}};
  const weft_map m = {.entry_bytes = 2, .suppliers = suppliers, .epoch = 0, .stamps = {.stamp = 1}};
  const weft_neighbour_options options = {.origin = origin};
  size_t at;
  EXPECT_OK(weft_engine_add_neighbour(s->engine, &options, s->now_us, &at));
  EXPECT(at == index);
  EXPECT_OK(scene_say(s, at, out, weft_hello_write(&hello, out)));
  EXPECT_OK(scene_say(s, at, out, weft_map_write(&m, out)));
}

// Returns which neighbour is parted with for the newcomer; MOST: none.
static size_t gives_way(const weft_origin here[MOST], const weft_origin *newcomer) {
  static const uint16_t suppliers[MOST] = {5, 4, 3, 1}; // those with more than two can spare one
  uint8_t refusal[WEFT_DATAGRAM_MAX];
  weft_neighbour_statistics x;
  size_t gone = MOST;
  scene s;
  scene_new(&s, WEFT_MODE_LIVE, false, false, 0);
  for (size_t i = 0; i < MOST; i++)
    comes(&s, i, here[i], suppliers[i]);
  scene_run(&s, SECOND / 10);
  EXPECT(weft_engine_refusal(s.engine, newcomer, refusal) > 0);
  scene_run(&s, SECOND / 10);
  for (size_t i = 0; i < MOST; i++)
    if (weft_engine_get_neighbour(s.engine, i, &x) != WEFT_OK) {
      EXPECT(gone == MOST);
      gone = i;
    }
  scene_free(&s);
  return gone;
}

START_TEST(nobody_gives_way_to_who_has_as_much) {
  static const weft_origin apart[MOST] = {{1, 1}, {2, 2}, {3, 3}, {4, 4}}, nowhere[MOST] = {{0, 0}};
  static const weft_origin together[MOST] = {{1, 1}, {1, 1}, {1, 1}, {1, 1}};
  static const weft_origin pair[MOST] = {{1, 1}, {2, 2}, {2, 2}, {4, 4}};
  static const weft_origin network[MOST] = {{1, 1}, {2, 2}, {3, 4}, {4, 4}};
  EXPECT(gives_way(nowhere, NULL) == 0 && gives_way(apart, NULL) == 0);
  EXPECT(gives_way(nowhere, &(weft_origin){5, 5}) == 0);
  EXPECT(gives_way(apart, &(weft_origin){5, 5}) == 0);
  EXPECT(gives_way(apart, &(weft_origin){4, 4}) == MOST); // an address that has one place already
  EXPECT(gives_way(apart, &(weft_origin){2, 2}) == 1);    // within one address
  EXPECT(gives_way(together, &(weft_origin){1, 1}) == 0);
  EXPECT(gives_way(pair, &(weft_origin){4, 4}) == 1);
  EXPECT(gives_way(network, &(weft_origin){5, 4}) == 2); // one of that network, which has two
}
END_TEST

int main(void) {
  Suite *suite = suite_create("crowd");
  TCase *t = tcase_create("crowd");
  tcase_add_checked_fixture(t, setup, NULL);
  tcase_add_test(t, a_crowd_does_not_push_out_who_gives);
  tcase_add_test(t, nobody_gives_way_to_who_has_as_much);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
