// SPDX-License-Identifier: Apache-2.0
// A live source stops without a word and starts again, with its key and another stream: a node
// dials it again, believes only the source at once, and goes over when told to.
#include <string.h>
#include <unistd.h>

#include "tests/peer/stranger.h"
#include "tests/support/test_main.h"

enum { SOURCE, PEER, OTHER, PARTIES };
enum { LIVE = 2, VOD = 1, SIGNED = 1 };

typedef struct seen {
  size_t by_source, by_peer, another, neighbours;
} seen;

static void on_event(void *user, const weft_node_event *event) {
  seen *s = user;
  if (event->kind == WEFT_NODE_SUCCESSOR)
    *(event->by_source ? &s->by_source : &s->by_peer) += 1;
  s->another += event->kind == WEFT_NODE_ANOTHER_STREAM;
  s->neighbours += event->kind == WEFT_NODE_NEIGHBOUR;
}

// docs/peer.md
static void describe(uint8_t role, uint8_t mode, uint8_t stream, uint64_t source,
                     uint8_t out[BLOB]) {
  memset(out, 0, BLOB);
  memcpy(out, (uint8_t[4]){1, role, mode, SIGNED}, 4);
  out[5] = BLOCKS;
  out[10] = BLOCK_BYTES >> 8;
  out[19] = stream;
  memcpy(out + 36, (uint8_t[4]){0, 0, 3, 0xe8}, 4); // a lag of 1 s
  stranger_key(source, out + 44);
}

typedef struct scene {
  weft_ctx *ctx;
  weft_node *node;
  stranger x[PARTIES];
  seen seen;
} scene;

static void begin(scene *s) {
  uint8_t blob[BLOB];
  *s = (scene){0};
  EXPECT_OK(weft_ctx_new(&s->ctx, NULL));
  describe(2, LIVE, 5, SOURCE, blob);
  stranger_new(&s->x[SOURCE], s->ctx, SOURCE, blob);
  s->node = node_telling(s->ctx, &s->x[SOURCE].address, on_event, &s->seen);
  turn_for(s->node, s->x, 1, SECOND / 5);
  stranger_greets(&s->x[SOURCE]);
  turn_for(s->node, s->x, 1, SECOND / 5);
  EXPECT(weft_node_neighbours(s->node) == 1 && weft_node_stream(s->node)->id == 5);
}

static void end(scene *s) {
  weft_node_free(s->node);
  for (size_t i = 0; i < PARTIES; i++)
    if (s->x[i].sessions)
      stranger_free(&s->x[i]);
  weft_ctx_free(s->ctx);
}

// The sessions at that address are gone; a node with that number, which sends this description, is
// there now.
static void begin_again(scene *s, uint64_t number, const uint8_t blob[BLOB]) {
  stranger *x = &s->x[SOURCE];
  const int fd = x->fd;
  const weft_address address = x->address;
  weft_sessions_free(x->sessions);
  stranger_new(x, s->ctx, number, blob);
  close(x->fd);
  x->fd = fd;
  x->address = address;
}

static void call(scene *s, size_t party, const uint8_t blob[BLOB]) {
  weft_address address;
  EXPECT_OK(weft_node_address(s->node, &address));
  stranger_calls(&s->x[party], s->ctx, party, blob, &address);
  turn_for(s->node, s->x, party + 1, SECOND / 2);
}

START_TEST(a_source_that_began_again_is_followed) {
  scene s;
  uint8_t blob[BLOB];
  begin(&s);
  EXPECT(weft_node_succeed(s.node, now_us()) == WEFT_E_STATE);
  describe(2, LIVE, 6, SOURCE, blob);
  begin_again(&s, SOURCE, blob);
  turn_for(s.node, s.x, 1, 3 * SECOND);
  EXPECT(s.seen.by_source == 0 && weft_node_links(s.node) == 1); // it may still answer
  turn_for(s.node, s.x, 1, 5 * SECOND);
  EXPECT(s.seen.by_source >= 1 && s.seen.by_peer == 0 && s.seen.another == 0);
  EXPECT(weft_node_stream(s.node)->id == 5); // it has not been told to go over
  const size_t opens = s.x[SOURCE].opens, neighbours = s.seen.neighbours;
  EXPECT_OK(weft_node_succeed(s.node, now_us()));
  EXPECT(weft_node_stream(s.node)->id == 6);
  turn_for(s.node, s.x, 1, SECOND / 2);
  EXPECT(s.x[SOURCE].opens == opens + 1 && s.seen.neighbours == neighbours + 1);
  EXPECT(weft_node_succeed(s.node, now_us()) == WEFT_E_STATE);
  end(&s);
}
END_TEST

// A source with nothing to say answers a probe, and keeps its session.
START_TEST(a_silent_source_is_not_disturbed) {
  scene s;
  begin(&s);
  turn_for(s.node, s.x, 1, 8 * SECOND);
  EXPECT(s.x[SOURCE].opens == 1 && s.x[SOURCE].open && weft_node_neighbours(s.node) == 1);
  end(&s);
}
END_TEST

// What peers say does not replace what the source said, and ends no session.
START_TEST(what_peers_say_counts_less) {
  scene s;
  uint8_t blob[BLOB];
  begin(&s);
  describe(1, LIVE, 7, SOURCE, blob);
  call(&s, PEER, blob);
  EXPECT(s.seen.by_peer == 1 && s.seen.by_source == 0 && weft_node_neighbours(s.node) == 1);
  describe(2, LIVE, 6, SOURCE, blob);
  begin_again(&s, SOURCE, blob);
  turn_for(s.node, s.x, 1, 8 * SECOND);
  EXPECT(s.seen.by_source >= 1);
  describe(2, LIVE, 8, SOURCE, blob); // it claims to be the source, and cannot prove it
  call(&s, OTHER, blob);
  EXPECT_OK(weft_node_succeed(s.node, now_us()));
  EXPECT(weft_node_stream(s.node)->id == 6);
  end(&s);
}
END_TEST

// A peer's word, which nothing proves, is not kept for ever: it counts for a minute and the lag.
START_TEST(what_a_peer_said_long_ago_does_not_count) {
  for (int late = 0; late < 2; late++) {
    scene s;
    uint8_t blob[BLOB];
    begin(&s);
    describe(1, LIVE, 7, SOURCE, blob);
    call(&s, PEER, blob);
    EXPECT(s.seen.by_peer == 1);
    const int64_t since_us = (late ? 61 : 50) * SECOND;
    EXPECT_STATUS(weft_node_succeed(s.node, now_us() + since_us), late ? WEFT_E_STATE : WEFT_OK);
    EXPECT(weft_node_stream(s.node)->id == (late ? 5 : 7));
    end(&s);
  }
}
END_TEST

// Nor is one that cannot begin, for which the one that plays would be given up: its checksums are
// of too many blocks.
START_TEST(what_cannot_begin_does_not_succeed) {
  scene s;
  uint8_t blob[BLOB];
  begin(&s);
  describe(1, LIVE, 6, SOURCE, blob);
  blob[3] = 3;
  blob[5] = 200;
  blob[10] = 3;
  call(&s, PEER, blob);
  EXPECT(s.seen.by_peer == 0 && weft_node_succeed(s.node, now_us()) == WEFT_E_STATE);
  EXPECT(weft_node_stream(s.node)->id == 5 && weft_node_neighbours(s.node) == 1);
  end(&s);
}
END_TEST

// Streams of another key, on demand, or unsigned are no successors; if one is at an address that
// the user named, the user is told.
START_TEST(others_do_not_succeed) {
  scene s;
  uint8_t blob[BLOB];
  begin(&s);
  describe(2, LIVE, 6, OTHER, blob);
  call(&s, PEER, blob);
  stranger_free(&s.x[PEER]);
  describe(1, VOD, 6, SOURCE, blob);
  call(&s, PEER, blob);
  stranger_free(&s.x[PEER]);
  describe(1, LIVE, 6, SOURCE, blob);
  blob[3] = 0;
  call(&s, PEER, blob);
  EXPECT(s.seen.by_source == 0 && s.seen.by_peer == 0 && s.seen.another == 0);
  EXPECT(weft_node_neighbours(s.node) == 1);
  describe(2, LIVE, 6, OTHER, blob);
  begin_again(&s, OTHER, blob); // another identity at the source's address
  turn_for(s.node, s.x, 1, 8 * SECOND);
  EXPECT(s.seen.by_source == 0 && s.seen.by_peer == 0 && s.seen.another >= 1);
  EXPECT(weft_node_succeed(s.node, now_us()) == WEFT_E_STATE);
  end(&s);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("node_successor");
  TCase *t = tcase_create("node_successor");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, a_source_that_began_again_is_followed);
  tcase_add_test(t, a_silent_source_is_not_disturbed);
  tcase_add_test(t, what_peers_say_counts_less);
  tcase_add_test(t, what_a_peer_said_long_ago_does_not_count);
  tcase_add_test(t, what_cannot_begin_does_not_succeed);
  tcase_add_test(t, others_do_not_succeed);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
