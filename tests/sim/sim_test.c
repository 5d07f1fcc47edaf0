// SPDX-License-Identifier: Apache-2.0
// The simulator: order of events, links, graphs, and runs that repeat bit for bit.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "sim/graph.h"
#include "sim/link.h"
#include "sim/queue.h"
#include "sim/swarm.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"
#include "weft/peer_rng.h"

#define EXPECT(condition)                                                                          \
  do {                                                                                             \
    if (!(condition))                                                                              \
      ck_abort_msg("%s (WEFT_TEST_SEED=%#llx)", #condition, (unsigned long long)test_seed());      \
  } while (0)

START_TEST(events_come_in_the_one_order) {
  test_rng rng = test_rng_new(test_seed(), 1);
  weft_sim_queue queue = {0};
  enum { EVENTS = 2000 };
  for (uint64_t i = 0; i < EVENTS; i++) {
    const weft_sim_event event = {.time_us = (int64_t)test_rng_below(&rng, 20),
                                  .destination = (uint32_t)test_rng_below(&rng, 5),
                                  .source = (uint32_t)test_rng_below(&rng, 5),
                                  .sequence = i};
    EXPECT(weft_sim_queue_push(&queue, &event) == WEFT_OK);
  }
  weft_sim_event last = {.time_us = -1}, next;
  for (size_t i = 0; i < EVENTS; i++) {
    EXPECT(weft_sim_queue_pop(&queue, &next));
    const bool later = next.time_us != last.time_us           ? next.time_us > last.time_us
                       : next.destination != last.destination ? next.destination > last.destination
                       : next.source != last.source           ? next.source > last.source
                                                              : next.sequence > last.sequence;
    EXPECT(later);
    last = next;
  }
  EXPECT(!weft_sim_queue_pop(&queue, &next));
  weft_sim_queue_clear(&queue);
}
END_TEST

START_TEST(uplinks_carry_remainders) {
  // 3 bits/us: 1 byte takes 2 2/3 us; 3,000 of them 8,000 us and not 3,000 * 2 or * 3.
  weft_sim_uplink uplink = {.bits_per_s = 3000000};
  int64_t at_us = 0;
  for (int i = 0; i < 3000; i++)
    at_us = weft_sim_uplink_send(&uplink, 1, 0);
  EXPECT(at_us == 8000);
  EXPECT(weft_sim_uplink_send(&uplink, 3, 10000) == 10008); // idle time is not saved up
}
END_TEST

START_TEST(losses_are_as_frequent_as_asked) {
  weft_rng_chacha chacha;
  weft_rng_chacha_seed(&chacha, test_seed(), 2);
  const weft_rng rng = weft_rng_chacha_table(&chacha);
  enum { TRIES = 100000 };
  int lost = 0;
  for (int i = 0; i < TRIES; i++) {
    lost += weft_sim_lost(WEFT_SIM_CERTAIN / 20, &rng);
    EXPECT(!weft_sim_lost(0, &rng));
    EXPECT(weft_sim_lost(WEFT_SIM_CERTAIN, &rng));
  }
  EXPECT(lost > 4500 && lost < 5500); // 5000, standard deviation 69
}
END_TEST

static size_t reached(const weft_sim_graph *g, uint32_t from, bool *seen) {
  size_t count = !seen[from];
  seen[from] = true;
  for (uint32_t i = 0; i < g->degree[from]; i++) {
    const uint32_t to = g->neighbour[from * g->degree_max + i];
    if (!seen[to])
      count += reached(g, to, seen);
  }
  return count;
}

START_TEST(graphs_are_connected_and_bounded) {
  weft_rng_chacha chacha;
  weft_rng_chacha_seed(&chacha, test_seed(), 3);
  const weft_rng rng = weft_rng_chacha_table(&chacha);
  for (size_t nodes = 1; nodes <= 60; nodes++)
    for (size_t degree = 2; degree <= 6; degree++) {
      weft_sim_graph g;
      bool seen[60] = {false};
      EXPECT(weft_sim_graph_new(nodes, degree, &rng, &g) == WEFT_OK);
      EXPECT(reached(&g, 0, seen) == nodes);
      for (uint32_t a = 0; a < nodes; a++) {
        EXPECT(g.degree[a] <= degree);
        for (uint32_t i = 0; i < g.degree[a]; i++) {
          const uint32_t b = g.neighbour[a * degree + i];
          size_t back = 0;
          EXPECT(b != a);
          for (uint32_t j = 0; j < g.degree[b]; j++)
            back += g.neighbour[b * degree + j] == a;
          EXPECT(back == 1);
        }
      }
      weft_sim_graph_free(&g);
    }
}
END_TEST

// --- Swarms

enum { PEERS = 7, BYTES = 100000 };

typedef struct world {
  uint8_t input[BYTES];
  size_t fed, got[PEERS];
  bool same;
  int64_t stop_us; // 0: never
} world;

static weft_status feed(void *user, uint8_t *out, size_t capacity, size_t *bytes) {
  world *w = user;
  *bytes = BYTES - w->fed < capacity ? BYTES - w->fed : capacity;
  memcpy(out, w->input + w->fed, *bytes);
  w->fed += *bytes;
  return WEFT_OK;
}

static weft_status deliver(void *user, size_t peer, const uint8_t *data, size_t bytes) {
  world *w = user;
  EXPECT(peer < PEERS && w->got[peer] + bytes <= BYTES);
  w->same = w->same && memcmp(w->input + w->got[peer], data, bytes) == 0;
  w->got[peer] += bytes;
  return WEFT_OK;
}

static bool keep_on(void *user, int64_t now_us) {
  const world *w = user;
  return w->stop_us == 0 || now_us < w->stop_us;
}

typedef struct outcome {
  weft_status status;
  weft_swarm_result result;
  weft_swarm_node nodes[PEERS + 1];
} outcome;

static outcome run(uint64_t seed, double loss, const char *backend, size_t threads,
                   int64_t stop_us) {
  weft_ctx *ctx;
  const weft_ctx_options how = {.backend = backend, .threads = threads};
  EXPECT(weft_ctx_new(&ctx, &how) == WEFT_OK);
  weft_codec_rlnc rlnc = {.ctx = ctx};
  const weft_codec codec = weft_codec_rlnc_table(&rlnc);
  world *w = calloc(1, sizeof *w);
  w->same = true;
  w->stop_us = stop_us;
  test_rng rng = test_rng_new(1, 1); // the same input whatever the run's seed
  test_rng_fill(&rng, w->input, BYTES);
  const weft_swarm_options options = {.peers = PEERS,
                                      .degree = 3,
                                      .blocks = 16,
                                      .block_bytes = 500,
                                      .window = 5,
                                      .batch = 4,
                                      .source_bits_per_s = 8000000,
                                      .peer_bits_per_s = 4000000,
                                      .delay_min_us = 1000,
                                      .delay_max_us = 30000,
                                      .loss = loss,
                                      .seed = seed,
                                      .source_codec = &codec,
                                      .peer_codec = &codec,
                                      .policy = &weft_policy_push,
                                      .user = w,
                                      .feed = feed,
                                      .deliver = deliver,
                                      .keep_on = keep_on};
  weft_swarm *swarm;
  EXPECT(weft_swarm_new(ctx, &options, &swarm) == WEFT_OK);
  outcome o = {.status = weft_swarm_run(swarm)};
  o.result = weft_swarm_get_result(swarm);
  for (size_t i = 0; i <= PEERS; i++)
    o.nodes[i] = weft_swarm_get_node(swarm, i);
  for (size_t i = 0; i < PEERS && o.status == WEFT_OK; i++)
    EXPECT(w->got[i] == BYTES);
  EXPECT(w->same);
  weft_swarm_free(swarm);
  weft_ctx_free(ctx);
  free(w);
  return o;
}

static bool same_hash(const outcome *a, const outcome *b) {
  return memcmp(a->result.hash, b->result.hash, sizeof a->result.hash) == 0;
}

START_TEST(runs_repeat_bit_for_bit) {
  const uint64_t seed = test_seed();
  const outcome a = run(seed, 0.05, NULL, 1, 0), again = run(seed, 0.05, NULL, 1, 0),
                scalar = run(seed, 0.05, "scalar", 1, 0), threads = run(seed, 0.05, NULL, 3, 0),
                other_seed = run(seed + 1, 0.05, NULL, 1, 0),
                other_loss = run(seed, 0.06, NULL, 1, 0);
  EXPECT(a.status == WEFT_OK);
  EXPECT(same_hash(&a, &again) && same_hash(&a, &scalar) && same_hash(&a, &threads));
  EXPECT(memcmp(a.nodes, again.nodes, sizeof a.nodes) == 0);
  EXPECT(!same_hash(&a, &other_seed) && !same_hash(&a, &other_loss));
}
END_TEST

// Every byte that was sent is accounted for: lost or received, and received is of use or not.
START_TEST(bytes_add_up) {
  const double losses[] = {0, 0.05, 0.5};
  for (size_t l = 0; l < 3; l++) {
    const outcome o = run(test_seed(), losses[l], NULL, 1, 0);
    uint64_t sent = 0, received = 0, sent_control = 0, received_control = 0;
    EXPECT(o.status == WEFT_OK && o.result.stream_bytes == BYTES);
    for (size_t i = 0; i <= PEERS; i++) {
      const weft_engine_statistics *s = &o.nodes[i].statistics;
      sent += s->sent_payload_bytes + s->sent_header_bytes;
      received += s->received_payload_bytes + s->received_header_bytes;
      sent_control += s->sent_control_bytes;
      received_control += s->received_control_bytes;
      EXPECT(s->refused == 0);
      EXPECT(i == 0 || (o.nodes[i].done_us > 0 && o.nodes[i].delivered_bytes == BYTES));
      EXPECT(i == 0 || s->received_innovative == (BYTES + 499) / 500);
    }
    EXPECT(sent == received + o.result.lost_payload_bytes + o.result.lost_header_bytes);
    EXPECT(sent_control == received_control + o.result.lost_control_bytes);
    EXPECT((losses[l] == 0) == (o.result.lost_packets == 0));
  }
}
END_TEST

START_TEST(runs_can_be_stopped) {
  const outcome o = run(test_seed(), 0.05, NULL, 1, 50000);
  EXPECT(o.status == WEFT_PENDING && o.result.end_us >= 50000);
}
END_TEST

START_TEST(bad_options_are_refused) {
  weft_ctx *ctx;
  weft_swarm *swarm;
  EXPECT(weft_ctx_new(&ctx, NULL) == WEFT_OK);
  weft_codec_rlnc rlnc = {.ctx = ctx};
  const weft_codec codec = weft_codec_rlnc_table(&rlnc);
  const weft_swarm_options good = {.peers = 1,
                                   .degree = 2,
                                   .blocks = 1,
                                   .block_bytes = 1,
                                   .window = 1,
                                   .batch = 1,
                                   .source_bits_per_s = 1,
                                   .peer_bits_per_s = 1,
                                   .source_codec = &codec,
                                   .peer_codec = &codec,
                                   .policy = &weft_policy_push,
                                   .feed = feed,
                                   .deliver = deliver};
  weft_swarm_options bad[7];
  for (size_t i = 0; i < 7; i++)
    bad[i] = good;
  bad[0].peers = 0;
  bad[1].degree = 1;
  bad[2].loss = 1;
  bad[3].delay_min_us = 1; // above the greatest
  bad[4].peer_bits_per_s = 0;
  bad[5].blocks = 0;
  bad[6].feed = NULL;
  for (size_t i = 0; i < 7; i++)
    EXPECT(weft_swarm_new(ctx, &bad[i], &swarm) == WEFT_E_ARGUMENT);
  EXPECT(weft_swarm_new(ctx, &good, &swarm) == WEFT_OK);
  weft_swarm_free(swarm);
  weft_swarm_free(NULL);
  weft_ctx_free(ctx);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("sim");
  TCase *t = tcase_create("sim");
  tcase_add_test(t, events_come_in_the_one_order);
  tcase_add_test(t, uplinks_carry_remainders);
  tcase_add_test(t, losses_are_as_frequent_as_asked);
  tcase_add_test(t, graphs_are_connected_and_bounded);
  tcase_add_test(t, runs_repeat_bit_for_bit);
  tcase_add_test(t, bytes_add_up);
  tcase_add_test(t, runs_can_be_stopped);
  tcase_add_test(t, bad_options_are_refused);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
