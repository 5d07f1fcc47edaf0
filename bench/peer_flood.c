// SPDX-License-Identifier: Apache-2.0
// Measures what a flood of noise costs a peer that plays.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench/buffers.h"
#include "bench/check.h"
#include "bench/peer_cases.h"
#include "weft/peer_codec.h"
#include "weft/peer_node.h"

enum { FLOOD_PER_S = 100000, FLOOD_STEP_US = 1000 };

// A live stream from one node to another, each in its own thread, which plays while the flood
// comes.
enum { RATE = 10000000, SEGMENT = 64 * 1024, LAG_MS = 1000, LEAD_S = 3 };
#define SEGMENT_US ((int64_t)SEGMENT * 8 * 1000000 / RATE)

typedef struct player {
  weft_node *node;
  bool source;
  uint8_t *segment;
  int64_t next_us; // source: when the next segment is due
  uint64_t given;
  atomic_bool stop;
  atomic_ullong due, in_time;
  pthread_t thread;
} player;

static int64_t now_us(void) { return (int64_t)(weft_bench_now_s() * 1e6); }

static void pump_source(player *p, weft_engine *engine, int64_t at_us) {
  for (; p->next_us <= at_us; p->next_us += SEGMENT_US, p->given++) {
    memcpy(p->segment, &p->given, sizeof p->given); // makes all segments differ
    weft_bench_must("put", weft_engine_source_put(engine, p->segment, SEGMENT,
                                                  (int64_t)p->given * SEGMENT_US, at_us));
  }
}

static void pump_player(player *p, weft_engine *engine) {
  uint64_t segment;
  size_t bytes;
  while (weft_engine_readable(engine, &segment, &bytes) == WEFT_OK) {
    weft_bench_must("read", weft_engine_read(engine, 0, bytes, p->segment));
    weft_bench_must("release", weft_engine_release(engine));
  }
  weft_engine_statistics s;
  weft_engine_get_statistics(engine, &s);
  atomic_store(&p->due, s.due);
  atomic_store(&p->in_time, s.in_time);
}

static void *player_run(void *user) {
  player *p = user;
  while (!atomic_load(&p->stop)) {
    int64_t wait_us = weft_node_deadline(p->node);
    wait_us = p->source && p->next_us < wait_us ? p->next_us : wait_us;
    wait_us = wait_us < now_us() ? 0 : wait_us - now_us();
    struct pollfd ready = {.fd = weft_node_fd(p->node), .events = POLLIN};
    (void)poll(&ready, 1, wait_us > 20000 ? 20 : (int)((wait_us + 999) / 1000));
    while (weft_node_receive(p->node, now_us()))
      ;
    weft_engine *engine = weft_node_engine(p->node);
    if (engine && p->source)
      pump_source(p, engine, now_us());
    else if (engine)
      pump_player(p, engine);
    (void)weft_node_turn(p->node, now_us());
  }
  return NULL;
}

static void player_start(player *p, weft_ctx *ctx, const weft_address *source) {
  int error;
  weft_node_options o = {.ctx = ctx,
                         .role = source ? WEFT_NODE_JOINING : WEFT_NODE_SOURCE,
                         .listen = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}},
                         .bootstrap = source,
                         .bootstrap_count = source ? 1 : 0,
                         .congestion = true,
                         .stream = {.id = 1,
                                    .blocks = 64,
                                    .block_bytes = 1024,
                                    .mode = WEFT_MODE_LIVE,
                                    .trusted = true,
                                    .rate_bits_per_s = RATE,
                                    .lag_ms = LAG_MS}};
  weft_identity_from_seed((const uint8_t[32]){source ? 8 : 9}, &o.identity);
  *p = (player){.source = !source, .next_us = now_us()};
  p->segment = weft_bench_alloc(1, SEGMENT);
  memset(p->segment, 1, SEGMENT);
  weft_bench_must("node", weft_node_new(&o, now_us(), &p->node, &error));
}

static void player_go(player *p) {
  if (pthread_create(&p->thread, NULL, player_run, p) != 0)
    weft_bench_must("a thread", WEFT_E_THREAD);
}

static void player_stop(player *p) {
  atomic_store(&p->stop, true);
  pthread_join(p->thread, NULL);
}

static double cpu_of(pthread_t thread) {
  clockid_t clock;
  struct timespec t = {0};
  if (pthread_getcpuclockid(thread, &clock) == 0)
    (void)clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Sends noise for a second; half of it begins with the first byte of one of our messages. Returns
// how many datagrams.
static size_t flood(int fd, weft_bench_random *random, double per_s) {
  const double start = weft_bench_now_s();
  size_t sent = 0;
  while (weft_bench_now_s() - start < 1) {
    const double due = (weft_bench_now_s() - start) * per_s;
    for (; (double)sent < due; sent++) {
      uint8_t noise[192];
      weft_bench_random_bytes(random, noise, 16);
      if (sent % 2)
        noise[0] = (uint8_t)(0x71 + noise[0] % 6);
      (void)send(fd, noise, sizeof noise, MSG_DONTWAIT);
    }
    (void)nanosleep(&(struct timespec){.tv_nsec = FLOOD_STEP_US * 1000}, NULL);
  }
  return sent;
}

typedef struct flood_result {
  double *share[2], *rate; // (repetitions); share[1]: during the flood
  uint64_t due[2], in_time[2];
} flood_result;

static int flood_socket(const weft_node *victim) {
  weft_address own;
  weft_bench_must("address", weft_node_address(victim, &own));
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  const struct sockaddr_in to = {.sin_family = AF_INET,
                                 .sin_port = htons(own.port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) != 0)
    weft_bench_must("flood", WEFT_E_IO);
  return fd;
}

static void measure_flood(player *victim, size_t reps, uint64_t seed, flood_result *out) {
  const int fd = flood_socket(victim->node);
  weft_bench_random random;
  weft_bench_random_seed(&random, seed);
  for (int s = 0; s < LEAD_S; s++) // time to join and begin to play
    (void)flood(fd, &random, 0);
  for (size_t r = 0; r < reps; r++)
    for (int on = 0; on < 2; on++) {
      const double cpu = cpu_of(victim->thread), start = weft_bench_now_s();
      const uint64_t due = atomic_load(&victim->due), in_time = atomic_load(&victim->in_time);
      const size_t sent = flood(fd, &random, on ? FLOOD_PER_S : 0);
      const double wall = weft_bench_now_s() - start;
      out->share[on][r] = (cpu_of(victim->thread) - cpu) / wall;
      out->rate[r] = (double)sent / wall;
      out->due[on] += atomic_load(&victim->due) - due;
      out->in_time[on] += atomic_load(&victim->in_time) - in_time;
    }
  close(fd);
}

static double continuity(const flood_result *f, int on) {
  return f->due[on] ? (double)f->in_time[on] / (double)f->due[on] : 0;
}

static void tell_flood(weft_bench_report *report, const flood_result *f, size_t reps,
                       const weft_node *victim) {
  weft_node_statistics s;
  weft_node_get_statistics(victim, &s);
  const weft_bench_spread idle = weft_bench_spread_of(f->share[0], reps),
                          busy = weft_bench_spread_of(f->share[1], reps),
                          offered = weft_bench_spread_of(f->rate, reps);
  printf("flood of noise at a peer that plays %.0f Mbit/s live, %.0f datagrams/s (%.0f..%.0f):\n"
         "  %.2f %% (%.2f..%.2f) of a core, without the flood %.2f %% (%.2f..%.2f)\n"
         "  continuity %.4f (%llu of %llu segments), without the flood %.4f (%llu of %llu)\n",
         RATE / 1e6, offered.median, offered.min, offered.max, 100 * busy.median, 100 * busy.min,
         100 * busy.max, 100 * idle.median, 100 * idle.min, 100 * idle.max, continuity(f, 1),
         (unsigned long long)f->in_time[1], (unsigned long long)f->due[1], continuity(f, 0),
         (unsigned long long)f->in_time[0], (unsigned long long)f->due[0]);
  json_object_set_new(
      report->root, "flood",
      json_pack("{s:f, s:{s:f, s:f, s:f}, s:{s:f, s:f, s:f}, s:f, s:f, s:I, s:I, s:I}",
                "datagrams_per_second", offered.median, "core_share", "median", busy.median, "min",
                busy.min, "max", busy.max, "core_share_without", "median", idle.median, "min",
                idle.min, "max", idle.max, "continuity", continuity(f, 1), "continuity_without",
                continuity(f, 0), "segments", (json_int_t)f->due[1], "stream_bits_per_second",
                (json_int_t)RATE, "received", (json_int_t)s.received));
}

void weft_bench_peer_flood(weft_bench_report *report, const weft_bench_options *options,
                           weft_ctx *ctx) {
  const size_t reps = options->timing.reps;
  double *const kept = weft_bench_alloc(3 * reps, sizeof *kept);
  flood_result result = {.share = {kept, kept + reps}, .rate = kept + 2 * reps};
  weft_address at;
  player source, victim;
  player_start(&source, ctx, NULL);
  weft_bench_must("address", weft_node_address(source.node, &at));
  player_start(&victim, ctx, &at);
  player_go(&source);
  player_go(&victim);
  measure_flood(&victim, reps, options->seed, &result);
  player_stop(&victim);
  player_stop(&source);
  tell_flood(report, &result, reps, victim.node);
  weft_node_free(victim.node);
  weft_node_free(source.node);
  free(victim.segment);
  free(source.segment);
  free(kept);
}
