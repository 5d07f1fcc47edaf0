// SPDX-License-Identifier: Apache-2.0
// The codecs without payload: exact ranks against closed forms, and the statistical codec against
// the exact one for the same random pushes.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/codec/codecs.h"
#include "sim/rng.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

#define EXPECT(condition)                                                                          \
  do {                                                                                             \
    if (!(condition))                                                                              \
      ck_abort_msg("%s (WEFT_TEST_SEED=%#llx)", #condition, (unsigned long long)test_seed());      \
  } while (0)

enum { NODES = 24, DEGREE = 4, BLOCKS = 32, BATCH = 4, WIDE = 512 };

typedef struct mesh {
  weft_sim_arena *arena;
  weft_sim_codec state;
  weft_codec codec;
  weft_sim_rng rng;
  weft_rng table;
  void *segment[NODES];
  size_t link[NODES][DEGREE]; // the neighbour
  size_t back[NODES][DEGREE]; // this node's number at that neighbour
} mesh;

static void open_mesh(mesh *m, weft_sim_fidelity fidelity, uint64_t seed) {
  *m = (mesh){.arena = weft_sim_arena_new(), .rng = {.state = seed}};
  m->state = (weft_sim_codec){.fidelity = fidelity,
                              .arena = m->arena,
                              .blocks = BLOCKS,
                              .batch = BATCH,
                              .neighbours = DEGREE};
  EXPECT(weft_sim_codec_init(&m->state) == WEFT_OK);
  m->codec = weft_sim_codec_table(&m->state);
  m->table = weft_sim_rng_table(&m->rng);
  const weft_segment_id id = {.blocks = BLOCKS, .block_bytes = 1024};
  EXPECT(m->codec.open_source(&m->state, &id, NULL, 0, &m->table, &m->segment[0]) == WEFT_OK);
  for (size_t i = 1; i < NODES; i++)
    EXPECT(m->codec.open_sink(&m->state, &id, &m->table, &m->segment[i]) == WEFT_OK);
}

static void close_mesh(mesh *m) {
  for (size_t i = 0; i < NODES; i++)
    m->codec.close(&m->state, m->segment[i]);
  weft_sim_codec_clear(&m->state);
  weft_sim_arena_free(m->arena);
}

// Links the nodes as two rings, one with a stride, so that every node has DEGREE neighbours.
static void link_up(mesh *m) {
  static const size_t steps[DEGREE] = {1, NODES - 1, 5, NODES - 5};
  for (size_t i = 0; i < NODES; i++)
    for (size_t d = 0; d < DEGREE; d++) {
      m->link[i][d] = (i + steps[d]) % NODES;
      m->back[i][d] = d ^ 1;
    }
}

// Sends one burst over one link; each packet is lost with probability 1/8.
static void push(mesh *m, size_t from, size_t d, uint64_t chance, uint64_t *dependent) {
  uint8_t token[1 + BATCH * BLOCKS + 64];
  size_t bytes, innovative, count = 1 + chance % BATCH;
  const size_t to = m->link[from][d];
  if (to == 0 || m->codec.make_token(&m->state, m->segment[from], count, token, &bytes) != WEFT_OK)
    return;
  weft_sim_token_address(&m->state, token, d);
  uint64_t lost = 0;
  for (size_t i = 0; i < count; i++)
    lost |= (uint64_t)((chance >> (8 + 3 * i) & 7) == 0) << i;
  if (lost) {
    bytes = weft_sim_token_lose(&m->state, token, bytes, count, lost);
    count -= (size_t)__builtin_popcountll(lost);
  }
  if (count == 0)
    return;
  const bool complete = m->codec.rank(&m->state, m->segment[to]) == BLOCKS;
  weft_sim_token_arrive(&m->state, token, m->back[from][d]);
  const weft_status status =
      m->codec.add_token(&m->state, m->segment[to], count, token, bytes, &innovative);
  EXPECT((status == WEFT_OK) == (innovative > 0));
  if (!complete)
    *dependent += count - innovative;
}

typedef struct spread {
  double pushes_half, pushes_all, dependent; // until half of all peers are complete, and all
} spread;

static spread run(weft_sim_fidelity fidelity, uint64_t seed, bool starved) {
  mesh *m = malloc(sizeof *m);
  EXPECT(m != NULL);
  open_mesh(m, fidelity, seed);
  link_up(m);
  weft_sim_rng chance = {.state = seed ^ 77};
  uint64_t dependent = 0;
  spread out = {0};
  for (size_t pushes = 1; out.pushes_all == 0; pushes++) {
    EXPECT(pushes < 1000000);
    const uint64_t r = weft_sim_rng_next(&chance);
    // In a starved swarm the source gets one push in 40 instead of its share of one in 24.
    const size_t from =
        starved && (r >> 60) > 0 ? 1 + (r >> 32 & 0xfff) % (NODES - 1) : (r >> 32 & 0xfff) % NODES;
    push(m, from, r >> 48 & (DEGREE - 1), r & 0xffffffff, &dependent);
    size_t complete = 0;
    for (size_t i = 1; i < NODES; i++)
      complete += m->codec.rank(&m->state, m->segment[i]) == BLOCKS;
    if (complete >= NODES / 2 && out.pushes_half == 0)
      out.pushes_half = (double)pushes;
    if (complete == NODES - 1)
      out.pushes_all = (double)pushes;
  }
  out.dependent = (double)dependent;
  close_mesh(m);
  free(m);
  return out;
}

static spread mean(weft_sim_fidelity fidelity, bool starved, size_t runs) {
  spread sum = {0};
  for (size_t i = 0; i < runs; i++) {
    const spread s = run(fidelity, weft_sim_draw(test_seed(), 3, i, 0), starved);
    sum.pushes_half += s.pushes_half / (double)runs;
    sum.pushes_all += s.pushes_all / (double)runs;
    sum.dependent += s.dependent / (double)runs;
  }
  return sum;
}

// The statistical codec needs about as many pushes as the exact one, with as many dependent
// packets.
START_TEST(rank_agrees_with_coefficients) {
  enum { RUNS = 60 };
  for (int starved = 0; starved < 2; starved++) {
    const spread exact = mean(WEFT_SIM_COEFFICIENTS, starved, RUNS);
    const spread guess = mean(WEFT_SIM_RANK, starved, RUNS);
    printf("%s: half %.0f against %.0f, all %.0f against %.0f, dependent %.0f against %.0f\n",
           starved ? "starved" : "fed", guess.pushes_half, exact.pushes_half, guess.pushes_all,
           exact.pushes_all, guess.dependent, exact.dependent);
    EXPECT(fabs(guess.pushes_half / exact.pushes_half - 1) < 0.05);
    EXPECT(fabs(guess.pushes_all / exact.pushes_all - 1) < 0.05);
    EXPECT(fabs(guess.dependent / exact.dependent - 1) < 0.15);
  }
}
END_TEST

// n random vectors of n coordinates have full rank with probability (1 - 256^-1)(1 - 256^-2)... The
// source has either sent its blocks uncoded before, or never does.
START_TEST(full_rank_is_as_likely_as_it_must_be) {
  enum { TRIALS = 40000, N = 6 };
  double expected = 1;
  for (int i = 1; i <= N; i++)
    expected *= 1 - pow(256, -i);
  for (int f = 0; f < 4; f++) {
    mesh *m = malloc(sizeof *m);
    EXPECT(m != NULL);
    open_mesh(m, f % 2 ? WEFT_SIM_RANK : WEFT_SIM_COEFFICIENTS, test_seed());
    m->state.coded_only = f / 2;
    const weft_segment_id id = {.blocks = N, .block_bytes = 1};
    size_t full = 0;
    for (size_t i = 0; i < TRIALS; i++) {
      void *source, *sink;
      uint8_t token[1 + BATCH * BLOCKS + 64];
      size_t bytes, innovative;
      EXPECT(m->codec.open_source(&m->state, &id, NULL, 0, &m->table, &source) == WEFT_OK);
      EXPECT(m->codec.open_sink(&m->state, &id, &m->table, &sink) == WEFT_OK);
      for (size_t sent = 0; sent < N && !m->state.coded_only; sent += 3)
        EXPECT(m->codec.make_token(&m->state, source, 3, token, &bytes) == WEFT_OK);
      for (size_t sent = 0; sent < N; sent += 3) {
        EXPECT(m->codec.make_token(&m->state, source, 3, token, &bytes) == WEFT_OK);
        weft_sim_token_arrive(&m->state, token, 0);
        (void)m->codec.add_token(&m->state, sink, 3, token, bytes, &innovative);
      }
      full += m->codec.rank(&m->state, sink) == N;
      m->codec.close(&m->state, source);
      m->codec.close(&m->state, sink);
    }
    const double deviation = sqrt(TRIALS * expected * (1 - expected));
    EXPECT(fabs((double)full - TRIALS * expected) < 5 * deviation);
    close_mesh(m);
    free(m);
  }
}
END_TEST

// Sends packets of `from` to `to`, whose neighbour number `number` it is, and which sends nothing
// back.
static void feed(mesh *m, void *from, void *to, size_t number, size_t packets) {
  uint8_t token[1 + BATCH * WIDE + 64];
  size_t bytes, innovative;
  for (size_t i = 0; i < packets; i++) {
    EXPECT(m->codec.make_token(&m->state, from, 1, token, &bytes) == WEFT_OK);
    weft_sim_token_address(&m->state, token, DEGREE - 1);
    weft_sim_token_arrive(&m->state, token, number);
    (void)m->codec.add_token(&m->state, to, 1, token, bytes, &innovative);
  }
}

// A third peer gets from two others at most the dimensions that these have together, even if that
// is more than a byte can count.
START_TEST(nobody_has_more_than_it_was_given) {
  mesh *m = malloc(sizeof *m);
  EXPECT(m != NULL);
  open_mesh(m, _i ? WEFT_SIM_RANK : WEFT_SIM_COEFFICIENTS, test_seed());
  m->state.blocks = WIDE;
  weft_sim_codec_clear(&m->state);
  EXPECT(weft_sim_codec_init(&m->state) == WEFT_OK);
  const weft_segment_id id = {.blocks = WIDE, .block_bytes = 1};
  enum { ALL, A, C, B, SINKS };
  void *source, *sink[SINKS];
  EXPECT(m->codec.open_source(&m->state, &id, NULL, 0, &m->table, &source) == WEFT_OK);
  for (size_t i = 0; i < SINKS; i++)
    EXPECT(m->codec.open_sink(&m->state, &id, &m->table, &sink[i]) == WEFT_OK);
  feed(m, source, sink[ALL], 0, WIDE);
  feed(m, sink[ALL], sink[A], 0, 400); // combinations of everything
  feed(m, sink[ALL], sink[C], 0, 100);
  feed(m, sink[A], sink[B], 0, 300);
  feed(m, sink[C], sink[B], 1, 150);
  feed(m, sink[A], sink[B], 0, 300);
  const size_t rank = m->codec.rank(&m->state, sink[B]);
  if (rank < 495 || rank > 500)
    ck_abort_msg("%zu dimensions of 400 and 100 (WEFT_TEST_SEED=%#llx)", rank,
                 (unsigned long long)test_seed());
  m->codec.close(&m->state, source);
  for (size_t i = 0; i < SINKS; i++)
    m->codec.close(&m->state, sink[i]);
  close_mesh(m);
  free(m);
}
END_TEST

// Losses at one place and then at another add up.
START_TEST(losses_add_up) {
  enum { COUNT = BATCH };
  mesh *m = malloc(sizeof *m);
  EXPECT(m != NULL);
  open_mesh(m, _i ? WEFT_SIM_RANK : WEFT_SIM_COEFFICIENTS, test_seed());
  uint8_t once[1 + BATCH * BLOCKS + 64] = {0}, twice[sizeof once];
  size_t bytes;
  EXPECT(m->codec.make_token(&m->state, m->segment[0], COUNT, once, &bytes) == WEFT_OK);
  memcpy(twice, once, sizeof once);
  // Loses packets 1 and 2: after the loss of packet 1, the second of the remaining packets is
  // packet 2.
  const size_t left = weft_sim_token_lose(&m->state, once, bytes, COUNT, 6);
  const size_t three = weft_sim_token_lose(&m->state, twice, bytes, COUNT, 2);
  EXPECT(weft_sim_token_lose(&m->state, twice, three, COUNT - 1, 2) == left);
  EXPECT(memcmp(once, twice, left) == 0);
  close_mesh(m);
  free(m);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("sim codecs");
  TCase *t = tcase_create("codecs");
  tcase_add_test(t, full_rank_is_as_likely_as_it_must_be);
  tcase_add_loop_test(t, nobody_has_more_than_it_was_given, 0, 2);
  tcase_add_loop_test(t, losses_add_up, 0, 2);
  tcase_add_test(t, rank_agrees_with_coefficients);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
