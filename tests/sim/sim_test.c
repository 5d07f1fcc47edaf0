// SPDX-License-Identifier: Apache-2.0
// The simulator: links, graphs, the model, and runs that repeat bit for bit.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/graph.h"
#include "sim/model.h"
#include "tests/sim/fixture.h"
#include "tests/support/test_main.h"

START_TEST(links_carry_remainders) {
  // 3 bits/us: 1 byte takes 2 2/3 us; 3,000 of them 8,000 us and not 3,000 * 2 or * 3.
  weft_sim_link link = {0};
  int64_t at_us = 0;
  for (int i = 0; i < 3000; i++)
    at_us = weft_sim_link_send(&link, 3000000, 1, 0);
  EXPECT(at_us == 8000);
  EXPECT(weft_sim_link_send(&link, 3000000, 3, 10000) == 10008); // idle time is not saved up
  EXPECT(weft_sim_link_send(&link, 0, 1000, 20000) == 20000);    // no limit
}
END_TEST

// Independent losses, and losses in runs, are as frequent and the runs as long as requested.
START_TEST(losses_are_as_frequent_as_asked) {
  enum { DRAWS = 400000 };
  const double losses[] = {0.001, 0.05, 0.5}, bursts[] = {1, 8};
  weft_sim_rng rng = {.state = test_seed()};
  for (size_t b = 0; b < 2; b++)
    for (size_t l = 0; l < 3; l++) {
      bool bad = false, before = false;
      double lost = 0, runs = 0;
      for (size_t i = 0; i < DRAWS; i++) {
        const bool now = weft_sim_loses(losses[l], bursts[b], &bad, &rng);
        lost += now;
        runs += now && !before;
        before = now;
      }
      // Losses in runs of m vary as if there were 2 m times fewer draws.
      const double deviation = sqrt(losses[l] * (1 - losses[l]) * DRAWS * (b ? 2 * bursts[b] : 1));
      EXPECT(fabs(lost - losses[l] * DRAWS) < 6 * deviation);
      const double mean = b ? bursts[b] : 1 / (1 - losses[l]);
      EXPECT(runs == 0 || fabs(lost / runs - mean) < 6 * mean / sqrt(runs));
    }
}
END_TEST

START_TEST(graphs_are_connected_and_bounded) {
  const size_t nodes[] = {1, 2, 3, 17, 200};
  for (size_t i = 0; i < 5; i++)
    for (size_t degree = 2; degree < 9; degree += 3) {
      weft_sim_rng state = {.state = test_seed() + degree};
      const weft_rng rng = weft_sim_rng_table(&state);
      weft_sim_graph g;
      EXPECT(weft_sim_graph_new(nodes[i], degree, &rng, &g) == WEFT_OK);
      uint8_t seen[200] = {1};
      size_t queue[200] = {0}, head = 0, tail = 1;
      while (head < tail) {
        const size_t a = queue[head++];
        EXPECT(g.degree[a] <= degree);
        for (size_t e = 0; e < g.degree[a]; e++) {
          const uint32_t b = g.neighbour[a * degree + e];
          EXPECT(b != a && b < nodes[i]);
          if (!seen[b]) {
            seen[b] = 1;
            queue[tail++] = b;
          }
        }
      }
      EXPECT(tail == nodes[i]);
      weft_sim_graph_free(&g);
    }
}
END_TEST

// Checks arrivals, stays and losses of the model against their laws.
START_TEST(the_model_follows_its_laws) {
  static const char *const settings[] = {
      "peers",     "20000",     "arrival",     "poisson",       "arrivals-per-s",
      "50",        "departure", "exponential", "stay-mean",     "100 s",
      "polluters", "0.1",       "classes",     "dsl:1 fibre:3", NULL};
  const weft_sim_parameters p = sim_fixture_with(NULL, settings);
  weft_sim_model m;
  EXPECT(weft_sim_model_init(&m, &p) == WEFT_OK);
  double stay = 0, dsl = 0, polluters = 0, symmetric = 0, hidden = 0;
  for (uint32_t i = 1; i <= p.peers; i++) {
    EXPECT(m.arrive_us[i] >= m.arrive_us[i - 1] && m.leave_us[i] > m.arrive_us[i]);
    stay += (double)(m.leave_us[i] - m.arrive_us[i]) / 1e6 / p.peers;
    dsl += weft_sim_class_of(&m, i) == 0;
    polluters += weft_sim_is_polluter(&m, i);
    symmetric += weft_sim_symmetric_nat(&m, i);
  }
  EXPECT(fabs((double)m.arrive_us[p.peers] / 1e6 / 400 - 1) < 0.05);
  EXPECT(fabs(stay / 100 - 1) < 0.05);
  EXPECT(fabs(dsl / p.peers - 0.25) < 0.02 && fabs(polluters / p.peers - 0.1) < 0.02);
  const int64_t middle_us = 200000000;
  const uint32_t there = weft_sim_arrived(&m, middle_us);
  EXPECT(m.arrive_us[there] <= middle_us && m.arrive_us[there + 1] > middle_us);
  weft_sim_rng rng = {.state = test_seed()};
  for (size_t i = 0; i < 1000; i++) {
    const uint32_t found = weft_sim_find_peer(&m, 7, middle_us, &rng);
    EXPECT(found <= there && (found == 7 || m.leave_us[found] > middle_us));
    hidden += weft_sim_behind_nat(&m, found); // they may still be met
    const uint32_t a = (uint32_t)weft_sim_rng_below(&rng, 20000), b = (a + 1 + (uint32_t)i) % 20000;
    EXPECT(weft_sim_delay_us(&m, a, b) == weft_sim_delay_us(&m, b, a));
    EXPECT(weft_sim_delay_us(&m, a, b) >= m.window_us);
  }
  const double nat = 0.25 * 0.5 + 0.75 * 0.4; // and a tenth of these have symmetric NATs
  EXPECT(fabs(hidden / 1000 - nat) < 0.08 && fabs(symmetric / p.peers - nat / 10) < 0.01);
  // Little's law: the number present is arrivals per second times the mean stay.
  double present = 0;
  for (int64_t at_us = 150000000; at_us < 390000000; at_us += 1000000)
    for (uint32_t i = 1; i <= p.peers; i++)
      present += m.arrive_us[i] <= at_us && at_us < m.leave_us[i];
  const double settled = 1 - (exp(-1.5) - exp(-3.9)) / 2.4; // the run is not infinitely long
  EXPECT(fabs(present / 240 / (50 * 100 * settled) - 1) < 0.05);
  weft_sim_model_clear(&m);
}
END_TEST

// Stays given in a trace are followed, whatever `departure` is; for viewers without one that
// applies.
START_TEST(a_trace_is_followed) {
  const char *folder = getenv("TEST_TMPDIR");
  char path[256], text[] = "0.5 3\n1\n2.5 0.25\n";
  snprintf(path, sizeof path, "%s/arrivals.%d", folder ? folder : "/tmp", (int)getpid());
  FILE *file = fopen(path, "w");
  EXPECT(file && fputs(text, file) >= 0 && fclose(file) == 0);
  const char *const settings[] = {"peers",     "3",           "arrival",   "trace", "trace", path,
                                  "departure", "exponential", "stay-mean", "100 s", NULL};
  weft_sim_parameters p = sim_fixture_with(NULL, settings);
  weft_sim_model m;
  EXPECT(weft_sim_model_init(&m, &p) == WEFT_OK);
  EXPECT(m.arrive_us[1] == 500000 && m.leave_us[1] == 3500000);
  EXPECT(m.arrive_us[2] == 1000000 && m.leave_us[2] > 1000000 && m.leave_us[2] < WEFT_SIM_NEVER);
  EXPECT(m.arrive_us[3] == 2500000 && m.leave_us[3] == 2750000);
  weft_sim_model_clear(&m);
  p.peers = 2; // no arrival is left out
  EXPECT(weft_sim_model_init(&m, &p) == WEFT_E_BUFFER && m.trace_line == 3);
  weft_sim_model_clear(&m);
  unlink(path);
}
END_TEST

// With one viewer, one source and no loss, the time of a download is known: greetings take one way,
// and the viewer's map, before which the source sends it nothing, another. Then the source's uplink
// sends all blocks, and a map each map-every, and the last byte takes one way again. In some runs
// the uplink is idle before its last packets: all others are done, and the source waits for word of
// these. That takes a round trip and map-every at most.
START_TEST(one_hop_takes_what_it_must) {
  static const char *const settings[] = {"map-every",
                                         "20 ms",
                                         "map-idle",
                                         "20 ms",
                                         "mode",
                                         "bulk",
                                         "topology",
                                         "graph",
                                         "peers",
                                         "1",
                                         "bulk-bytes",
                                         "2M",
                                         "neighbours",
                                         "2",
                                         "latency",
                                         "uniform",
                                         "delay-min",
                                         "30 ms",
                                         "delay-max",
                                         "30 ms",
                                         "source-upload",
                                         "4M",
                                         "overhead-bytes",
                                         "0",
                                         "window",
                                         "64",
                                         "classes",
                                         "plain:1",
                                         NULL};
  const weft_sim_fidelity fidelities[] = {WEFT_SIM_BYTES, WEFT_SIM_COEFFICIENTS, WEFT_SIM_RANK};
  for (size_t f = 0; f < 3; f++) {
    weft_sim_parameters p = sim_fixture_with(NULL, settings);
    p.fidelity = fidelities[f];
    p.classes[0].down_bits_per_s = 0;
    const weft_sim_options options = {.parameters = &p, .threads = 1};
    weft_sim_result r;
    weft_sim_swarm *swarm = sim_fixture_run(&options, &r);
    // Uncoded blocks have a header of 14 bytes, seeded ones (which tokens count as) 20; a HELLO has
    // 32 bytes, a map that wants nothing 48.
    const double up = (double)p.source_bits_per_s / 8, way_s = 0.030;
    const double hellos_s = 32 * 8 / (double)p.classes[0].up_bits_per_s + 32 / up;
    const double blocks_s = ceil(2e6 / 1024) * (1024 + (f == 0 ? 14 : 20)) / up;
    const double wanted_s = 3 * way_s + hellos_s + blocks_s / (1 - 48 / (0.020 * up));
    const double done_s = (double)r.viewers[0].done_us / 1e6;
    if (done_s < 0.9995 * wanted_s || done_s > 1.0005 * wanted_s + 2 * way_s + 0.020)
      ck_abort_msg("%.6f s, not %.6f s (WEFT_TEST_SEED=%#llx)", done_s, wanted_s,
                   (unsigned long long)test_seed());
    weft_sim_swarm_free(swarm);
  }
}
END_TEST

// --- Joining

enum { JOINERS = 8 };

static void note_startup(void *user, uint32_t peer, size_t degree, int64_t done_us,
                         const weft_engine_statistics *statistics) {
  int64_t *startup_us = user;
  (void)degree, (void)done_us;
  if (peer > 0)
    startup_us[peer - 1] = statistics->startup_us;
}

// The initiator's session is open after three round trips; an engine counts from then, its viewer
// from asking. The source's takes two: the source names it to the others, which play too.
START_TEST(joining_takes_three_round_trips) {
  static const char *const settings[] = {"peers",
                                         "8",
                                         "topology",
                                         "source",
                                         "latency",
                                         "uniform",
                                         "delay-min",
                                         "20 ms",
                                         "delay-max",
                                         "20 ms",
                                         "source-neighbours",
                                         "2",
                                         "duration",
                                         "25 s",
                                         "source-upload",
                                         "20M",
                                         "arrival",
                                         "poisson",
                                         "arrivals-per-s",
                                         "2",
                                         "departure",
                                         "stay",
                                         "rate",
                                         "768k",
                                         "classes",
                                         "plain:1",
                                         "fidelity",
                                         "bytes",
                                         NULL};
  weft_sim_parameters p = sim_fixture_with(NULL, settings);
  p.classes[0].up_bits_per_s = 20000000;
  p.classes[0].line_bits_per_s = p.source_line_bits_per_s = 1000000000; // no burst has to wait
  int64_t startup_us[JOINERS];
  for (size_t i = 0; i < JOINERS; i++)
    startup_us[i] = -1;
  const weft_sim_options options = {
      .parameters = &p, .threads = 1, .hooks = {.user = startup_us, .ended = note_startup}};
  weft_sim_result r;
  weft_sim_swarm *swarm = sim_fixture_run(&options, &r);
  EXPECT(r.viewer_count == JOINERS);
  for (size_t i = 0; i < JOINERS; i++) {
    const weft_sim_viewer *v = &r.viewers[i];
    if (!v->came || v->joined_us > 15000000)
      continue;
    EXPECT(v->in_time > 0 && startup_us[i] > 0 && v->wrong_bytes == 0);
    const int64_t opening_us = v->startup_us - startup_us[i];
    if (opening_us < 120000 || opening_us > 125000)
      ck_abort_msg("peer %u: %lld us (WEFT_TEST_SEED=%#llx)", v->peer, (long long)opening_us,
                   (unsigned long long)test_seed());
  }
  weft_sim_swarm_free(swarm);
}
END_TEST

// --- Runs

static bool stop_at_once(void *user, int64_t now_us) {
  *(int64_t *)user = now_us;
  return now_us < 500000;
}

typedef struct outcome {
  weft_status status;
  weft_sim_result result;
} outcome;

static outcome run(const weft_sim_parameters *p, const char *backend, size_t threads) {
  const weft_sim_options options = {.parameters = p, .threads = threads, .backend = backend};
  weft_sim_swarm *swarm;
  EXPECT(weft_sim_swarm_new(&options, &swarm) == WEFT_OK);
  outcome o = {.status = weft_sim_swarm_run(swarm)};
  EXPECT(weft_sim_swarm_result(swarm, &o.result) == WEFT_OK);
  for (size_t i = 0; i < o.result.viewer_count; i++) // in order, and all of them
    EXPECT(o.result.viewers[i].peer == i + 1);
  o.result.viewers = NULL;
  weft_sim_swarm_free(swarm);
  return o;
}

static bool same(const outcome *a, const outcome *b) {
  return memcmp(a->result.hash, b->result.hash, sizeof a->result.hash) == 0 &&
         memcmp(&a->result.totals, &b->result.totals, sizeof a->result.totals) == 0;
}

static const char *const bulk[] = {
    "mode",   "bulk",           "topology", "graph",       "peers", "12",         "bulk-bytes",
    "100100", "segment-blocks", "16",       "block-bytes", "500",   "neighbours", "3",
    "loss",   "0.05",           "classes",  "cable:100",   NULL};

START_TEST(runs_repeat_bit_for_bit) {
  const char *const live[] = {"peers",         "40",      "duration", "15 s",      "classes",
                              "lte:1 fibre:1", "arrival", "flash",    "departure", "exponential",
                              "stay-mean",     "20 s",    "fidelity", NULL,        NULL};
  const char *const fidelities[] = {"bytes", "coefficients", "rank"};
  for (size_t f = 0; f < 3; f++) {
    const char *settings[sizeof live / sizeof *live];
    memcpy(settings, live, sizeof live);
    settings[13] = fidelities[f];
    weft_sim_parameters p = sim_fixture_with(NULL, settings);
    const outcome a = run(&p, NULL, 1), again = run(&p, NULL, 1), threads = run(&p, NULL, 3);
    EXPECT(a.status == WEFT_OK && a.result.totals.viewers > 30);
    EXPECT(a.result.totals.wrong_bytes == 0 && a.result.totals.packets > 1000);
    EXPECT(same(&a, &again) && same(&a, &threads));
    p.sampled = 3; // how many peers the trace and the report follow makes no difference
    const outcome fewer = run(&p, NULL, 1);
    EXPECT(same(&a, &fewer));
    p.seed++;
    const outcome other = run(&p, NULL, 1);
    EXPECT(!same(&a, &other));
  }
  const char *const known[] = {"source", "peer"};
  for (size_t i = 0; i < 2; i++) {
    const char *const sent_on[] = {
        "peers", "40",   "duration",          "15 s", "fidelity", "rank", "topology", known[i],
        "loss",  "0.05", "source-neighbours", "9",    NULL};
    const weft_sim_parameters s = sim_fixture_with(NULL, sent_on);
    const outcome one = run(&s, NULL, 1), three = run(&s, NULL, 3);
    EXPECT(one.status == WEFT_OK && one.result.totals.packets > 1000 && same(&one, &three));
  }
  const weft_sim_parameters p = sim_fixture_with(NULL, bulk);
  const outcome best = run(&p, NULL, 2), scalar = run(&p, "scalar", 1);
  EXPECT(best.status == WEFT_OK && same(&best, &scalar));
}
END_TEST

// With checksums, engines keep packets and add them when others have arrived since.
START_TEST(kept_packets_repeat_bit_for_bit) {
  const char *const fidelities[] = {"bytes", "coefficients", "rank"};
  const char *const settings[] = {"peers",    "24",           "duration", "12 s",
                                  "fidelity", fidelities[_i], NULL};
  const weft_sim_parameters p = sim_fixture_with("polluted", settings);
  const outcome one = run(&p, NULL, 1), three = run(&p, NULL, 3);
  EXPECT(one.status == WEFT_OK && one.result.totals.peers.verified > 1000);
  EXPECT(same(&one, &three));
}
END_TEST

// Every byte sent is lost or received, and every received byte is useful or not.
START_TEST(bytes_add_up) {
  const double losses[] = {0, 0.05, 0.5};
  for (size_t l = 0; l < 3; l++) {
    weft_sim_parameters p = sim_fixture_with(NULL, bulk);
    p.loss = losses[l];
    p.classes[0].loss = 0;
    const outcome o = run(&p, NULL, 2);
    const weft_sim_totals *t = &o.result.totals;
    const weft_engine_statistics *s = &t->source, *r = &t->peers;
    EXPECT(o.status == WEFT_OK && t->delivered_bytes == 12 * p.bulk_bytes && t->wrong_bytes == 0);
    EXPECT(s->sent_payload_bytes + r->sent_payload_bytes ==
           s->received_payload_bytes + r->received_payload_bytes + t->lost_payload_bytes);
    EXPECT(s->sent_control_bytes + r->sent_control_bytes ==
           s->received_control_bytes + r->received_control_bytes + t->lost_control_bytes);
    EXPECT(r->received_innovative == 12 * ((p.bulk_bytes + 499) / 500));
    EXPECT((losses[l] == 0) == (t->lost_packets == 0));
  }
}
END_TEST

// Viewers that leave before they have everything are not waited for: the run is over when all
// others have it. Of 400 runs with failures one does not get there, and reports that: a viewer left
// with two neighbours, as all places are taken, falls behind until no peer holds what it lacks.
START_TEST(bulk_ends_although_some_leave) {
  static const char *const leaving[2][4] = {{"departure", "exponential", "stay-mean", "5 s"},
                                            {"failure-at", "2 s", "failure-share", "0.3"}};
  for (size_t way = 0; way < 2; way++) {
    const char *const *l = leaving[way];
    const char *const settings[] = {"topology", "tracker", "peers", "20", "fidelity", "rank",
                                    l[0],       l[1],      l[2],    l[3], NULL};
    weft_sim_parameters p = sim_fixture_with("download", settings);
    outcome one = run(&p, NULL, 1);
    for (int again = 0; again < 2 && one.status == WEFT_E_STATE; again++) {
      p.seed++;
      one = run(&p, NULL, 1);
    }
    EXPECT(one.status == WEFT_OK);
    const weft_sim_options options = {.parameters = &p, .threads = 3};
    weft_sim_result r;
    weft_sim_swarm *swarm = sim_fixture_run(&options, &r);
    size_t left = 0, short_of_it = 0;
    for (size_t i = 0; i < r.viewer_count; i++) {
      left += r.viewers[i].left && !r.viewers[i].done;
      short_of_it += !r.viewers[i].left && !r.viewers[i].done;
    }
    EXPECT(left > 0 && short_of_it == 0);
    EXPECT(memcmp(one.result.hash, r.hash, sizeof r.hash) == 0);
    weft_sim_swarm_free(swarm);
  }
}
END_TEST

// Coded packets in the trace are attributed to their segment, even if they are real bytes.
START_TEST(the_trace_names_segments) {
  const char *const fidelities[] = {"bytes", "rank"};
  for (size_t f = 0; f < 2; f++) {
    const char *const settings[] = {"peers",    "12",          "duration", "8 s",
                                    "fidelity", fidelities[f], NULL};
    const weft_sim_parameters p = sim_fixture_with(NULL, settings);
    const weft_sim_options options = {.parameters = &p, .threads = 1};
    weft_sim_result r;
    weft_sim_swarm *swarm = sim_fixture_run(&options, &r);
    uint64_t packets = 0, last = 0;
    for (size_t i = 0; i < r.trace_count; i++)
      if (r.trace[i].kind == WEFT_SIM_TRACE_DATA) {
        packets += r.trace[i].packets;
        last = r.trace[i].segment > last ? r.trace[i].segment : last;
      }
    if (packets == 0 || last + 4 < r.segments || last >= r.segments)
      ck_abort_msg("%s: %llu packets, the last of segment %llu of %llu (WEFT_TEST_SEED=%#llx)",
                   fidelities[f], (unsigned long long)packets, (unsigned long long)last,
                   (unsigned long long)r.segments, (unsigned long long)test_seed());
    weft_sim_swarm_free(swarm);
  }
}
END_TEST

START_TEST(runs_can_be_stopped) {
  const weft_sim_parameters p = sim_fixture_with(NULL, bulk);
  int64_t stopped_us = 0;
  const weft_sim_options options = {
      .parameters = &p, .threads = 2, .hooks = {.user = &stopped_us, .keep_on = stop_at_once}};
  weft_sim_swarm *swarm;
  EXPECT(weft_sim_swarm_new(&options, &swarm) == WEFT_OK);
  EXPECT(weft_sim_swarm_run(swarm) == WEFT_PENDING && stopped_us >= 500000);
  weft_sim_swarm_free(swarm);
  weft_sim_swarm_free(NULL);
  EXPECT(weft_sim_swarm_new(NULL, &swarm) == WEFT_E_ARGUMENT);
}
END_TEST

// Uplinks are short and deadlines cannot be met: engines that owe packets which no neighbour
// accepts at the moment must sleep until that changes.
START_TEST(engines_that_owe_sleep) {
  static const char *const settings[] = {"fidelity",
                                         "rank",
                                         "segment-blocks",
                                         "128",
                                         "duration",
                                         "20 s",
                                         "window",
                                         "8",
                                         "lag",
                                         "6 s",
                                         "map-every",
                                         "1 s",
                                         "map-idle",
                                         "3 s",
                                         "batch",
                                         "16",
                                         "neighbours",
                                         "6",
                                         "neighbours-max",
                                         "8",
                                         "flights",
                                         "8",
                                         "requests",
                                         "2",
                                         "source-upload",
                                         "1G",
                                         "delay-min",
                                         "10 ms",
                                         "arrival",
                                         "together",
                                         "peers",
                                         "300",
                                         "classes",
                                         "plain:1",
                                         NULL};
  const weft_sim_parameters p = sim_fixture_with(NULL, settings);
  const weft_sim_options options = {.parameters = &p, .threads = 1};
  weft_sim_result r;
  weft_sim_swarm *swarm = sim_fixture_run(&options, &r);
  EXPECT(r.totals.packets > 0);
  const double each = (double)r.totals.events / (300 * 20);
  if (each > 120) // about 52; 240 if they do not sleep
    ck_abort_msg("%g events a second and peer (WEFT_TEST_SEED=%#llx)", each,
                 (unsigned long long)test_seed());
  weft_sim_swarm_free(swarm);
}
END_TEST

// A run is refused for lack of memory only if it would need more than there is.
START_TEST(memory_is_foreseen) {
  static const char *const settings[] = {"peers",    "1000",     "fidelity", "rank", "arrival",
                                         "together", "duration", "5 s",      NULL};
  const weft_sim_parameters p = sim_fixture_with("million", settings);
  const weft_sim_options options = {.parameters = &p, .threads = 1};
  weft_sim_result r;
  weft_sim_swarm *swarm = sim_fixture_run(&options, &r);
  const double took = (double)r.memory_bytes, foreseen = weft_sim_memory_bytes(&p);
  if (foreseen < 0.7 * took || foreseen > 1.5 * took)
    ck_abort_msg("%g bytes foreseen, and %g taken", foreseen, took);
  weft_sim_swarm_free(swarm);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("sim");
  TCase *alone = tcase_create("on one thread"), *threads = tcase_create("on threads");
  tcase_set_tags(alone, "one-thread");
  tcase_add_test(alone, links_carry_remainders);
  tcase_add_test(alone, losses_are_as_frequent_as_asked);
  tcase_add_test(alone, graphs_are_connected_and_bounded);
  tcase_add_test(alone, the_model_follows_its_laws);
  tcase_add_test(alone, a_trace_is_followed);
  tcase_add_test(alone, one_hop_takes_what_it_must);
  tcase_add_test(alone, joining_takes_three_round_trips);
  tcase_add_test(alone, engines_that_owe_sleep);
  tcase_add_test(alone, the_trace_names_segments);
  tcase_add_test(alone, memory_is_foreseen);
  tcase_add_test(threads, runs_repeat_bit_for_bit);
  tcase_add_loop_test(threads, kept_packets_repeat_bit_for_bit, 0, 3);
  tcase_add_test(threads, bytes_add_up);
  tcase_add_test(threads, bulk_ends_although_some_leave);
  tcase_add_test(threads, runs_can_be_stopped);
  suite_add_tcase(suite, alone);
  suite_add_tcase(suite, threads);
  return test_main(suite);
}
