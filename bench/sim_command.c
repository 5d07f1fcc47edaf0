// SPDX-License-Identifier: Apache-2.0
// `weft bench sim`: what a swarm in virtual time costs one core. Each case is one swarm. Once its
// stream flows, it runs for a number of equal pieces of virtual time; each piece is a repetition,
// timed by the processor time of the process. An event is a call into a peer's engine for a burst,
// a control message or a due timer, or a peer's arrival or departure; other work of the simulation
// counts towards the time only.
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "bench/check.h"
#include "bench/commands.h"
#include "bench/group.h"
#include "sim/swarm/swarm.h"

enum { KINDS = 3 };

typedef struct shape {
  weft_sim_fidelity fidelity;
  const char *name;
  uint32_t blocks, window, peers_max; // peers_max: a larger swarm does not fit memory
  int64_t lag_us, map_us;
  int64_t warm_us; // then the stream has reached everybody, and real bytes play
} shape;

static const shape shapes[KINDS] = {
    {WEFT_SIM_RANK, "rank", 128, 12, WEFT_SIM_MAX_PEERS, 10000000, 1000000, 6500000},
    {WEFT_SIM_COEFFICIENTS, "coefficients", 128, 12, 20000, 10000000, 1000000, 6500000},
    {WEFT_SIM_BYTES, "bytes", 64, 16, 2000, 8000000, 300000, 10500000},
};

typedef struct mark {
  double cpu_s;
  uint64_t events, packets;
} mark;

typedef struct sim_case {
  const shape *shape;
  uint32_t peers;
  weft_sim_swarm *swarm;
  int64_t warm_us, piece_us;
  size_t reps, marked;
  mark marks[WEFT_BENCH_MARKS + 1];
} sim_case;

// What peers do follows the rhythm of segments, so a piece is as long as a segment: all pieces
// contain the same work.
static int64_t segment_us(const shape *s) {
  return (int64_t)s->blocks * 1024 * 8 * 1000000 / 768000;
}

static double processor_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool keep_on(void *user, int64_t now_us) {
  sim_case *c = user;
  if (c->marked > c->reps || now_us < c->warm_us + (int64_t)c->marked * c->piece_us)
    return true;
  mark *m = &c->marks[c->marked++];
  weft_sim_swarm_progress(c->swarm, &m->events, &m->packets);
  m->cpu_s = processor_s();
  return true;
}

// As in the scenario `million`: 768 kbit/s, all peers present from the start, 6 to 8 neighbours.
static weft_sim_parameters parameters(const sim_case *c, uint64_t seed) {
  weft_sim_parameters p = {
      .name = "bench",
      .seed = seed,
      .mode = WEFT_SIM_LIVE,
      .scheme = WEFT_SIM_PUSH,
      .fidelity = c->shape->fidelity,
      .blocks = c->shape->blocks,
      .block_bytes = 1024,
      .rate_bits_per_s = 768000,
      .duration_us = c->warm_us + (int64_t)(c->reps + 1) * c->piece_us,
      .window = c->shape->window,
      .batch = 16,
      .neighbours = 6,
      .neighbours_max = 8,
      .flights = 8,
      .requests = 2,
      .addresses = 12,
      .lag_us = c->shape->lag_us,
      .startup_us = 1500000,
      .map_us = c->shape->map_us,
      .map_idle_us = 3000000,
      .silent_us = 20000000,
      .overhead_bytes = 60,
      .handshake_bytes = 1000,
      .peers = c->peers,
      .source_bits_per_s = 1000000000,
      .classes = {{.name = "plain",
                   .share = 1,
                   .up_bits_per_s = 1200000,
                   .down_bits_per_s = 20000000,
                   .burst = 1}},
      .class_count = 1,
      .queue_us = 1000000,
      .topology = WEFT_SIM_TRACKER,
      .latency = WEFT_SIM_PLANE,
      .delay_min_us = 20000,
      .delay_max_us = 60000,
      .isps = 1,
      .arrival = WEFT_SIM_TOGETHER,
      .failure_us = WEFT_SIM_NEVER,
  };
  return p;
}

static json_t *json_spread(const double *values, size_t count) {
  const weft_bench_spread s = weft_bench_spread_of(values, count);
  return json_pack("{s:f, s:f, s:f}", "median", s.median, "min", s.min, "max", s.max);
}

static void report_case(json_t *cases, const sim_case *c, const weft_sim_result *r) {
  double events[WEFT_BENCH_MARKS], packets[WEFT_BENCH_MARKS], peers[WEFT_BENCH_MARKS];
  json_t *seconds = json_array();
  for (size_t i = 0; i < c->reps; i++) {
    const mark *a = &c->marks[i], *b = a + 1;
    const double s = b->cpu_s - a->cpu_s;
    events[i] = (double)(b->events - a->events) / s;
    packets[i] = (double)(b->packets - a->packets) / s;
    peers[i] = (double)c->peers * (double)c->piece_us * 1e-6 / s;
    json_array_append_new(seconds, json_real(s));
  }
  const weft_bench_spread e = weft_bench_spread_of(events, c->reps),
                          p = weft_bench_spread_of(peers, c->reps);
  const double bytes = (double)r->memory_bytes / (double)c->peers;
  printf("  %-13s %8u %10.0f (%.0f..%.0f)  %8.0f (%.0f..%.0f)  %10.0f\n", c->shape->name, c->peers,
         e.median, e.min, e.max, p.median, p.min, p.max, bytes);
  fflush(stdout);
  char *id = weft_bench_text("simulate %s n=%u k=1024 m=%u t=1", c->shape->name, c->shape->blocks,
                             c->peers);
  json_t *out = json_pack(
      "{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:s, s:f, s:f, s:I, s:o, s:o, s:o, s:o}", "id",
      id, "operation", "simulate", "variant", "", "row", c->shape->name, "technique",
      "the peer's engine in virtual time", "n", (int)c->shape->blocks, "k", 1024, "m",
      (int)c->peers, "threads", 1, "checked",
      c->shape->fidelity == WEFT_SIM_BYTES ? "every delivered byte equals the stream"
                                           : "the stream flows",
      "virtual_s_per_call", (double)c->piece_us * 1e-6, "memory_bytes_per_peer", bytes,
      "delivered_bytes", (json_int_t)r->totals.delivered_bytes, "events_per_second",
      json_spread(events, c->reps), "packets_per_second", json_spread(packets, c->reps),
      "peers_in_real_time", json_spread(peers, c->reps), "seconds_per_call", seconds);
  free(id);
  json_array_append_new(cases, out);
}

static void run_case(json_t *cases, sim_case *c, uint64_t seed) {
  const weft_sim_parameters p = parameters(c, seed);
  const weft_sim_options options = {
      .parameters = &p, .threads = 1, .hooks = {.user = c, .keep_on = keep_on}};
  weft_sim_result result;
  weft_bench_must("swarm", weft_sim_swarm_new(&options, &c->swarm));
  weft_bench_must("run", weft_sim_swarm_run(c->swarm));
  weft_bench_must("result", weft_sim_swarm_result(c->swarm, &result));
  // Reports nothing about a swarm that stood still or got a byte wrong.
  const bool played = result.totals.delivered_bytes > 0;
  if (c->marked <= c->reps || result.totals.packets == 0 || result.totals.wrong_bytes > 0 ||
      !played) {
    fprintf(stderr, "weft bench sim: %s with %u peers and seed %llu: %s\n", c->shape->name,
            c->peers, (unsigned long long)seed,
            result.totals.wrong_bytes ? "bytes came out wrong" : "no stream");
    exit(WEFT_BENCH_WRONG);
  }
  report_case(cases, c, &result);
  weft_sim_swarm_free(c->swarm);
}

static bool fits(const weft_bench_options *options, const shape *s, size_t peers) {
  return weft_bench_listed(options->operations, s->name) && peers <= s->peers_max;
}

// Whether any swarm is left to measure; otherwise prints how large they may be.
static bool any_fits(const weft_bench_options *options) {
  for (size_t s = 0; s < KINDS; s++)
    for (size_t i = 0; i < options->m.count; i++)
      if (fits(options, &shapes[s], options->m.value[i]))
        return true;
  for (size_t s = 0; s < KINDS; s++)
    if (weft_bench_listed(options->operations, shapes[s].name))
      fprintf(stderr, "weft bench sim: --m: %s accepts at most %u peers\n", shapes[s].name,
              shapes[s].peers_max);
  return false;
}

int weft_bench_sim_command(int argc, char **argv) {
  weft_bench_options options;
  const int parsed = weft_bench_options_parse(&options, argc, argv);
  if (parsed != 0)
    return parsed == 1 ? 0 : parsed;
  const char *names[KINDS];
  for (size_t s = 0; s < KINDS; s++)
    names[s] = shapes[s].name;
  if (!weft_bench_operations_known(&options, names, KINDS))
    return WEFT_BENCH_USAGE;
  weft_bench_sizes_default(&options.m, (const size_t[]){1000, 10000, 100000},
                           options.quick ? 1 : 3);
  if (!any_fits(&options))
    return WEFT_BENCH_USAGE;
  weft_bench_machine machine;
  weft_bench_machine_read(&machine);
  weft_bench_report report;
  weft_bench_report_begin(&report, &options, &machine);
  json_t *cases = json_array(); // the report's, so that a stopped run loses only its current swarm
  weft_bench_report_add(&report, &options, "swarms in virtual time, a stream of 768 kbit/s", cases);
  printf("\nswarms in virtual time, a stream of 768 kbit/s, one thread\n"
         "  %-13s %8s %-32s %-30s %s\n",
         "fidelity", "peers", "events per processor second", "peers in real time on a core",
         "bytes per peer");
  for (size_t s = 0; s < KINDS; s++)
    for (size_t i = 0; i < options.m.count; i++) {
      const size_t peers = options.m.value[i];
      if (!weft_bench_listed(options.operations, shapes[s].name))
        continue;
      if (!fits(&options, &shapes[s], peers)) {
        printf("  %-13s %8zu left out: at most %u\n", shapes[s].name, peers, shapes[s].peers_max);
        continue;
      }
      sim_case c = {.shape = &shapes[s],
                    .peers = (uint32_t)peers,
                    .warm_us = shapes[s].warm_us,
                    .piece_us = segment_us(&shapes[s]),
                    .reps = options.timing.reps};
      run_case(cases, &c, options.seed);
      weft_bench_report_keep(&report, &options);
    }
  return weft_bench_report_end(&report, &options);
}
