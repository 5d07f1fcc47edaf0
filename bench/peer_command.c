// SPDX-License-Identifier: Apache-2.0
// `weft bench peer`: what one core of a node gives out: coded, sealed, and sent over the loopback,
// each alone and all together; and what a flood of noise costs a peer that plays.
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

#include "bench/bench.h"
#include "bench/buffers.h"
#include "bench/check.h"
#include "bench/commands.h"
#include "bench/group.h"
#include "peer/runtime/udp.h"
#include "weft/peer_codec.h"
#include "weft/peer_node.h"

// A busy node's turn: bursts to one neighbour after the other, then what waits is sent.
enum { BATCH_MAX = WEFT_UDP_RUN, NEIGHBOURS = 4, BURSTS = 16 };
enum { FLOOD_PER_S = 100000, FLOOD_STEP_US = 1000, DRAIN_STEP_US = 500, REPS_MAX = 64 };

// --- Two ends of a session, in one process

typedef struct pair {
  weft_sessions *end[2];
  weft_rng_chacha chance[2];
  size_t link;
} pair;

static weft_address place(size_t i) {
  return (weft_address){.ip = {[15] = (uint8_t)(i + 1)}, .port = 1};
}

static void exchange(pair *p) {
  for (int round = 0; round < 10; round++)
    for (size_t i = 0; i < 2; i++) {
      weft_address to;
      const weft_address from = place(i);
      const uint8_t *data;
      uint8_t copy[WEFT_SESSION_DATAGRAM_BYTES];
      size_t bytes;
      weft_session_plain plain;
      while (weft_sessions_output(p->end[i], &to, &data, &bytes) == WEFT_OK) {
        memcpy(copy, data, bytes);
        (void)weft_sessions_input(p->end[1 - i], &from, copy, bytes, 1, &plain);
      }
    }
}

static void pair_new(pair *p, weft_ctx *ctx, weft_session_cipher cipher) {
  const weft_address other = place(1);
  weft_session_event event;
  for (size_t i = 0; i < 2; i++) {
    const uint8_t seed[32] = {(uint8_t)(i + 1)};
    weft_rng_chacha_seed(&p->chance[i], 1, i);
    const weft_rng rng = weft_rng_chacha_table(&p->chance[i]);
    weft_sessions_options options = {.links_max = 2, .cipher = cipher, .rng = &rng};
    weft_identity_from_seed(seed, &options.identity);
    weft_bench_must("sessions", weft_sessions_new(ctx, &options, 1, &p->end[i]));
  }
  weft_bench_must("open", weft_sessions_open(p->end[0], &other, NULL, 1, &p->link));
  exchange(p);
  if (!weft_sessions_event(p->end[0], &event) || event.kind != WEFT_SESSION_OPENED)
    weft_bench_must("handshake", WEFT_E_STATE);
}

static void pair_free(pair *p) {
  weft_sessions_free(p->end[0]);
  weft_sessions_free(p->end[1]);
}

// --- The way out

typedef struct way {
  size_t n, k, m;
  weft_codec codec;
  void *segment;
  weft_rng rng;
  pair *sessions; // (NEIGHBOURS)
  weft_udp *udp;
  const weft_address *to; // (NEIGHBOURS)
  // One burst: packets with room for their headers before them.
  uint8_t *packets, *coefficients, *rows[BATCH_MAX];
  weft_packet views[BATCH_MAX];
  uint8_t *sealed;
  size_t stride, bytes; // of one packet's room, and of one packet
  size_t bursts;        // of one turn
  bool code, seal, send;
} way;

static void code_burst(way *w) {
  const weft_batch batch = {.count = w->m,
                            .packets = w->views,
                            .coefficients = w->coefficients,
                            .coefficients_stride = w->n,
                            .payload_rows = w->rows};
  weft_bench_must("make", w->codec.make(w->codec.user, w->segment, &batch));
  for (size_t i = 0; i < w->m; i++) {
    weft_packet packet = w->views[i];
    size_t written;
    packet.payload = NULL; // it is in its place
    w->bytes = weft_packet_session_bytes(&packet.id, packet.mode);
    weft_bench_must("header", weft_packet_write_session(&packet, w->rows[i] - (w->bytes - w->k),
                                                        w->bytes, &written));
  }
}

static uint8_t *room_for(const way *w, size_t neighbour) {
  if (!w->send)
    return w->sealed;
  for (;;) {
    uint8_t *room = weft_udp_room(w->udp, &w->to[neighbour]);
    if (room)
      return room;
    struct pollfd ready = {.fd = w->udp->fd, .events = POLLOUT}; // the socket is full
    (void)poll(&ready, 1, 10);
  }
}

static void put_burst(way *w, size_t neighbour) {
  const pair *session = &w->sessions[neighbour];
  weft_seal seal;
  if (w->seal)
    weft_bench_must("reserve",
                    weft_sessions_reserve(session->end[0], session->link, w->m, 1, &seal));
  for (size_t i = 0; i < w->m; i++) {
    uint8_t *room = room_for(w, neighbour);
    if (w->seal)
      (void)weft_seal_datagram(&seal, i, w->rows[i] - (w->bytes - w->k), w->bytes, room);
    if (w->send)
      weft_udp_filled(w->udp, w->bytes + WEFT_SESSION_OVERHEAD_BYTES);
  }
}

static void call(void *user) {
  way *w = user;
  for (size_t b = 0; b < w->bursts; b++) {
    if (w->code)
      code_burst(w);
    if (w->seal || w->send)
      put_burst(w, b % NEIGHBOURS);
  }
  if (w->send)
    weft_udp_flush(w->udp);
}

static void way_rooms(way *w) {
  w->stride = (12 + w->n + w->k + 127) / 64 * 64;
  w->packets = weft_bench_alloc(BATCH_MAX, w->stride);
  w->coefficients = weft_bench_alloc(BATCH_MAX, w->n);
  w->sealed = weft_bench_alloc(1, WEFT_SESSION_DATAGRAM_BYTES);
  for (size_t i = 0; i < BATCH_MAX; i++)
    w->rows[i] = w->packets + (i + 1) * w->stride - (w->k + 63) / 64 * 64;
}

// A relay holds the whole segment, from packets of a source.
static void fill_relay(way *relay, way *source, const weft_segment_id *id) {
  weft_bench_must("relay",
                  relay->codec.open_sink(relay->codec.user, id, &relay->rng, &relay->segment));
  source->m = 1;
  while (relay->codec.rank(relay->codec.user, relay->segment) < id->blocks) {
    code_burst(source);
    weft_packet packet = source->views[0];
    packet.payload = source->rows[0];
    (void)relay->codec.add(relay->codec.user, relay->segment, &packet);
  }
}

// --- Who takes it

typedef struct drain {
  int fd[NEIGHBOURS];
  weft_address address[NEIGHBOURS];
  atomic_bool stop;
  atomic_ullong bytes;
  pthread_t thread;
} drain;

// Looks every so often, as a driver that gathers interrupts does: waking it for every datagram
// would be counted as the sender's work.
static void *drain_run(void *user) {
  drain *d = user;
  uint8_t *room = weft_bench_alloc(1, 1 << 16);
  while (!atomic_load(&d->stop)) {
    for (size_t i = 0; i < NEIGHBOURS; i++)
      for (ssize_t n; (n = recv(d->fd[i], room, 1 << 16, MSG_DONTWAIT)) > 0;)
        atomic_fetch_add(&d->bytes, (unsigned long long)n);
    (void)nanosleep(&(struct timespec){.tv_nsec = DRAIN_STEP_US * 1000}, NULL);
  }
  free(room);
  return NULL;
}

static int drain_socket(weft_address *address) {
  const int on = 1, room = 16 << 20;
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t bytes = sizeof at;
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  (void)setsockopt(fd, IPPROTO_UDP, 104 /* UDP_GRO */, &on, sizeof on);
  if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 ||
      getsockname(fd, (struct sockaddr *)&at, &bytes) != 0)
    weft_bench_must("a socket of the loopback", WEFT_E_IO);
  *address = (weft_address){.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1},
                            .port = ntohs(at.sin_port)};
  return fd;
}

static void drain_start(drain *d) {
  for (size_t i = 0; i < NEIGHBOURS; i++)
    d->fd[i] = drain_socket(&d->address[i]);
  if (pthread_create(&d->thread, NULL, drain_run, d) != 0)
    weft_bench_must("a thread", WEFT_E_THREAD);
}

static void drain_stop(drain *d) {
  atomic_store(&d->stop, true);
  pthread_join(d->thread, NULL);
  for (size_t i = 0; i < NEIGHBOURS; i++)
    close(d->fd[i]);
}

// --- Throughput

static int add_way(weft_bench_group *group, way *w, const char *operation, const char *row,
                   const char *variant) {
  code_burst(w);
  const weft_bench_case entry = {
      .operation = operation,
      .row = row,
      .variant = variant,
      .n = w->n,
      .k = w->k,
      .m = w->m,
      .threads = 1,
      .amount = {[WEFT_BENCH_OUTPUT] = (double)(w->bursts * w->m * w->k)},
      .ceiling = -1,
      .checked = "by the tests of session and codec",
      .work = {.call = call, .user = w}};
  return weft_bench_group_add(group, &entry);
}

static void run_throughput(weft_bench_report *report, const weft_bench_options *options,
                           weft_ctx *ctx, size_t n, size_t k, size_t m) {
  enum { WAYS = 11 };
  weft_codec_rlnc rlnc = {.ctx = ctx, .coded_only = true};
  const weft_segment_id id = {.stream = 1, .blocks = (uint32_t)n, .block_bytes = (uint32_t)k};
  weft_rng_chacha chance;
  weft_rng_chacha_seed(&chance, options->seed, 7);
  pair aes[NEIGHBOURS], chacha[NEIGHBOURS];
  for (size_t i = 0; i < NEIGHBOURS; i++) {
    pair_new(&aes[i], ctx, WEFT_CIPHER_BEST);
    pair_new(&chacha[i], ctx, WEFT_CIPHER_CHACHA);
  }
  drain d = {.bytes = 0};
  drain_start(&d);
  weft_udp udp;
  int error;
  weft_bench_must("udp", weft_udp_open(ctx, &(weft_address){.port = 0}, &udp, &error));
  uint8_t *data = weft_bench_alloc(n, k);
  weft_bench_random random;
  weft_bench_random_seed(&random, options->seed);
  weft_bench_random_bytes(&random, data, n * k);
  way source = {.n = n,
                .k = k,
                .m = m,
                .codec = weft_codec_rlnc_table(&rlnc),
                .to = d.address,
                .bursts = BURSTS,
                .udp = &udp,
                .rng = weft_rng_chacha_table(&chance)};
  way_rooms(&source);
  weft_bench_must("source",
                  source.codec.open_source(&rlnc, &id, data, n * k, &source.rng, &source.segment));
  way relay = source;
  way_rooms(&relay);
  fill_relay(&relay, &source, &id);
  source.m = m;
  weft_session_peer peer;
  weft_bench_must("peer", weft_sessions_peer(aes[0].end[0], aes[0].link, &peer));
  const char *best = peer.aes ? "aes-256-gcm" : "chacha20";
  const struct {
    const way *base;
    pair *sessions;
    bool code, seal, send;
    size_t bursts;
    const char *operation, *row, *variant;
  } kinds[WAYS] = {{&source, aes, true, false, false, BURSTS, "code", "source", ""},
                   {&relay, aes, true, false, false, BURSTS, "code", "relay", ""},
                   {&relay, aes, false, true, false, BURSTS, "seal", best, ""},
                   {&relay, chacha, false, true, false, BURSTS, "seal", "chacha20", ""},
                   {&relay, aes, false, false, true, BURSTS, "send", "udp", ""},
                   {&relay, aes, false, false, true, 1, "send", "udp", "one burst"},
                   {&source, aes, true, true, true, BURSTS, "all", best, "source"},
                   {&relay, aes, true, true, true, BURSTS, "all", best, "relay"},
                   {&relay, aes, true, true, true, 1, "all", best, "relay, one burst"},
                   {&source, chacha, true, true, true, BURSTS, "all", "chacha20", "source"},
                   {&relay, chacha, true, true, true, BURSTS, "all", "chacha20", "relay"}};
  way ways[WAYS];
  char *title =
      weft_bench_text("out of one core, n = %zu, k = %zu, bursts of %zu; %d bursts a turn, "
                      "to %d neighbours",
                      n, k, m, BURSTS, NEIGHBOURS);
  weft_bench_group *group = weft_bench_group_new(title);
  for (size_t i = 0; i < WAYS; i++) {
    ways[i] = *kinds[i].base;
    ways[i].sessions = kinds[i].sessions;
    ways[i].bursts = kinds[i].bursts;
    ways[i].code = kinds[i].code;
    ways[i].seal = kinds[i].seal;
    ways[i].send = kinds[i].send;
    const bool row = !options->rows || weft_bench_listed(options->rows, kinds[i].row) ||
                     weft_bench_listed(options->rows, kinds[i].variant);
    if (row && weft_bench_listed(options->operations, kinds[i].operation))
      (void)add_way(group, &ways[i], kinds[i].operation, kinds[i].row, kinds[i].variant);
  }
  weft_bench_report_run(report, options, group);
  if (udp.statistics.send_calls)
    printf("  datagrams per send call %.1f%s; taken at the other end %.1f %% of the bytes\n",
           (double)udp.statistics.sent / (double)udp.statistics.send_calls,
           udp.no_segmenting ? " (no UDP_SEGMENT)" : "",
           100.0 * (double)atomic_load(&d.bytes) / (double)udp.statistics.sent_bytes);
  drain_stop(&d);
  weft_udp_close(&udp);
  source.codec.close(&rlnc, source.segment);
  source.codec.close(&rlnc, relay.segment);
  for (size_t i = 0; i < NEIGHBOURS; i++)
    pair_free(&aes[i]), pair_free(&chacha[i]);
  weft_bench_group_free(group);
  free(title), free(data), free(source.packets), free(source.coefficients), free(source.sealed);
  free(relay.packets), free(relay.coefficients), free(relay.sealed);
}

// --- The flood

// A live stream from one node to another, each in a thread of its own, that plays while the flood
// comes.
enum { RATE = 10000000, SEGMENT = 64 * 1024, LAG_MS = 1000, LEAD_S = 3 };
#define SEGMENT_US ((int64_t)SEGMENT * 8 * 1000000 / RATE)

typedef struct player {
  weft_node *node;
  bool source;
  uint8_t *segment;
  int64_t next_us; // source: when it gives the next segment
  uint64_t given;
  atomic_bool stop;
  atomic_ullong due, in_time;
  pthread_t thread;
} player;

static int64_t now_us(void) { return (int64_t)(weft_bench_now_s() * 1e6); }

static void pump_source(player *p, weft_engine *engine, int64_t at_us) {
  for (; p->next_us <= at_us; p->next_us += SEGMENT_US, p->given++) {
    memcpy(p->segment, &p->given, sizeof p->given); // no two are the same
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

// Sends noise for a second: half with the first byte of some message of ours. Returns how much.
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
  double share[2][REPS_MAX], rate[REPS_MAX]; // [1]: while the flood comes
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
  for (int s = 0; s < LEAD_S; s++) // it joins, and begins to play
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

static void run_flood(weft_bench_report *report, const weft_bench_options *options, weft_ctx *ctx) {
  const size_t reps = options->timing.reps < REPS_MAX ? options->timing.reps : REPS_MAX;
  flood_result result = {.due = {0, 0}};
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
}

int weft_bench_peer_command(int argc, char **argv) {
  weft_bench_options options;
  const int parsed = weft_bench_options_parse(&options, argc, argv);
  if (parsed != 0)
    return parsed == 1 ? 0 : parsed;
  weft_bench_sizes_default(&options.n, (const size_t[]){64}, 1);
  weft_bench_sizes_default(&options.k, (const size_t[]){1024}, 1);
  weft_bench_sizes_default(&options.m, (const size_t[]){8, 16, 32}, options.quick ? 1 : 3);
  for (size_t i = 0; i < options.m.count; i++)
    if (options.m.value[i] > BATCH_MAX || options.m.value[i] < 1) {
      fprintf(stderr, "weft bench peer: -m must be 1..%d\n", BATCH_MAX);
      return WEFT_BENCH_USAGE;
    }
  if (12 + options.n.value[0] + options.k.value[0] > WEFT_SESSION_PLAIN_BYTES) {
    fprintf(stderr, "weft bench peer: a packet must fit into one datagram\n");
    return WEFT_BENCH_USAGE;
  }
  weft_bench_machine machine;
  weft_bench_machine_read(&machine);
  weft_ctx *ctx;
  weft_bench_must("context", weft_ctx_new(&ctx, NULL));
  weft_bench_report report;
  weft_bench_report_begin(&report, &options, &machine);
  for (size_t i = 0; i < options.m.count; i++)
    run_throughput(&report, &options, ctx, options.n.value[0], options.k.value[0],
                   options.m.value[i]);
  if (weft_bench_listed(options.operations, "flood"))
    run_flood(&report, &options, ctx);
  weft_ctx_free(ctx);
  return weft_bench_report_end(&report, &options);
}
