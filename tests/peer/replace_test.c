// SPDX-License-Identifier: Apache-2.0
// Which neighbour makes room for another node: a useless one, when another node is known.
#include "tests/peer/scene.h"
#include "tests/support/test_main.h"

enum { MAP_EVERY_US = SECOND, MOST_S = 60, GRACE_S = 15 };

typedef struct conduct { // for a minute
  size_t neighbours;
  uint64_t gives[MOST]; // blocks given, one a second
  bool source[MOST];
  bool known;    // another node is known
  bool complete; // nothing is missing here
} conduct;

static void come(scene *s, const conduct *c) {
  for (size_t i = 0; i < c->neighbours; i++) {
    uint8_t out[WEFT_DATAGRAM_MAX];
    const weft_hello hello = {.stream = 5, .blocks = N, .block_bytes = K, .stamps = {.stamp = 1}};
    const weft_neighbour_options options = {.address = {.length = 1, .bytes = {(uint8_t)(1 + i)}},
                                            .is_source = c->source[i]};
    size_t at;
    EXPECT_OK(weft_engine_add_neighbour(s->engine, &options, s->now_us, &at));
    EXPECT(at == i);
    EXPECT_OK(scene_say(s, i, out, weft_hello_write(&hello, out)));
  }
}

static bool is_there(const scene *s, size_t neighbour) {
  weft_neighbour_statistics x;
  return weft_engine_get_neighbour(s->engine, neighbour, &x) == WEFT_OK;
}

// Returns which neighbours are gone after a minute, a bit for each; `when_s`: when the first was
// told.
static unsigned gone_of(const conduct *c, int *when_s) {
  static const weft_peer_address stranger = {.length = 1, .bytes = {99}};
  uint64_t given[MOST] = {0}, next = 0;
  unsigned gone = 0;
  scene s;
  scene_new(&s, WEFT_MODE_VOD, false, false, 0);
  come(&s, c);
  for (int second = 0; second < MOST_S; second++) {
    if (c->known)
      weft_engine_add_address(s.engine, &stranger);
    for (size_t i = 0; i < c->neighbours; i++) {
      if (!is_there(&s, i))
        continue;
      scene_map(&s, i, c->complete ? 0 : WINDOW, 0);
      if (given[i] < c->gives[i] && !c->complete) {
        given[i]++;
        (void)scene_block(&s, i, next / N, next % N, false);
        next++;
      }
    }
    scene_run(&s, MAP_EVERY_US);
    for (size_t i = 0; i < c->neighbours; i++)
      if (!is_there(&s, i) && !(gone >> i & 1)) {
        *when_s = gone ? *when_s : second;
        gone |= 1u << i;
      }
  }
  scene_free(&s);
  return gone;
}

// Neighbour 1 gives nothing and makes room. What comes before it is enough for the other, which
// gives all the time.
START_TEST(who_gives_nothing_makes_room) {
  int when_s = 0;
  const conduct idle = {.neighbours = 2, .gives = {MOST_S}, .known = true};
  EXPECT(gone_of(&idle, &when_s) == 2 && when_s >= GRACE_S && when_s <= GRACE_S + 11);
  conduct other = idle;
  other.known = false; // no other node is known
  EXPECT(gone_of(&other, &when_s) == 0);
  other = idle;
  other.complete = true; // nothing is missing
  EXPECT(gone_of(&other, &when_s) == 0);
  other = idle;
  other.source[1] = true;
  EXPECT(gone_of(&other, &when_s) == 0);
  other = idle;
  other.gives[1] = MOST_S;
  EXPECT(gone_of(&other, &when_s) == 0);
  other.gives[1] = 30; // and no more
  EXPECT(gone_of(&other, &when_s) == 2 && when_s >= 30);
}
END_TEST

// No neighbour makes room while places are left; strangers get those first.
START_TEST(nobody_makes_room_where_some_is_left) {
  int when_s = 0;
  const conduct alone = {.neighbours = 1, .known = true};
  EXPECT(gone_of(&alone, &when_s) == 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("replace");
  TCase *t = tcase_create("replace");
  tcase_add_test(t, who_gives_nothing_makes_room);
  tcase_add_test(t, nobody_makes_room_where_some_is_left);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
