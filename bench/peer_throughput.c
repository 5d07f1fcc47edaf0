// SPDX-License-Identifier: Apache-2.0
// Measures what one core of a node sends: coding, sealing, and sending over the loopback, each
// alone and all together.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/buffers.h"
#include "bench/check.h"
#include "bench/peer_cases.h"
#include "peer/runtime/udp.h"
#include "weft/peer_codec.h"
#include "weft/peer_node.h"

// A busy node's turn: bursts to one neighbour after another, then everything queued is sent.
enum { BATCH_MAX = WEFT_UDP_RUN, NEIGHBOURS = 4, BURSTS = 16, DRAIN_STEP_US = 500 };

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
  // One burst: packets with room for their headers in front.
  uint8_t *packets, *coefficients, *rows[BATCH_MAX];
  weft_packet views[BATCH_MAX];
  uint8_t *sealed;
  size_t stride, bytes; // of one packet's room; of one packet
  size_t bursts;        // per turn
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
    packet.payload = NULL; // already in place
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
    struct pollfd ready = {.fd = w->udp->fd, .events = POLLOUT}; // the socket's buffer is full
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

// Gives the relay the whole segment, from packets of a source.
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

// --- The receiving end

typedef struct drain {
  int fd[NEIGHBOURS];
  weft_address address[NEIGHBOURS];
  atomic_bool stop;
  atomic_ullong bytes;
  pthread_t thread;
} drain;

// Polls at intervals, like a driver that coalesces interrupts: waking the receiver for every
// datagram would count as the sender's work.
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

typedef struct scene {
  weft_codec_rlnc rlnc;
  weft_rng_chacha chance;
  pair aes[NEIGHBOURS], chacha[NEIGHBOURS];
  drain drain;
  weft_udp udp;
  uint8_t *data;
  way source, relay; // the other ways are copies of these
} scene;

static void scene_new(scene *s, const weft_bench_options *options, weft_ctx *ctx, size_t n,
                      size_t k, size_t m) {
  const weft_segment_id id = {.stream = 1, .blocks = (uint32_t)n, .block_bytes = (uint32_t)k};
  s->rlnc = (weft_codec_rlnc){.ctx = ctx, .coded_only = true};
  weft_rng_chacha_seed(&s->chance, options->seed, 7);
  for (size_t i = 0; i < NEIGHBOURS; i++) {
    pair_new(&s->aes[i], ctx, WEFT_CIPHER_BEST);
    pair_new(&s->chacha[i], ctx, WEFT_CIPHER_CHACHA);
  }
  s->drain = (drain){.bytes = 0};
  drain_start(&s->drain);
  int error;
  weft_bench_must("udp", weft_udp_open(ctx, &(weft_address){.port = 0}, &s->udp, &error));
  s->data = weft_bench_alloc(n, k);
  weft_bench_random random;
  weft_bench_random_seed(&random, options->seed);
  weft_bench_random_bytes(&random, s->data, n * k);
  way *source = &s->source;
  *source = (way){.n = n,
                  .k = k,
                  .m = m,
                  .codec = weft_codec_rlnc_table(&s->rlnc),
                  .to = s->drain.address,
                  .bursts = BURSTS,
                  .udp = &s->udp,
                  .rng = weft_rng_chacha_table(&s->chance)};
  way_rooms(source);
  weft_bench_must("source", source->codec.open_source(&s->rlnc, &id, s->data, n * k, &source->rng,
                                                      &source->segment));
  s->relay = *source;
  way_rooms(&s->relay);
  fill_relay(&s->relay, source, &id);
  source->m = m;
}

static void scene_free(scene *s) {
  drain_stop(&s->drain);
  weft_udp_close(&s->udp);
  way *const ways[] = {&s->source, &s->relay};
  for (size_t i = 0; i < 2; i++) {
    ways[i]->codec.close(&s->rlnc, ways[i]->segment);
    free(ways[i]->packets), free(ways[i]->coefficients), free(ways[i]->sealed);
  }
  for (size_t i = 0; i < NEIGHBOURS; i++)
    pair_free(&s->aes[i]), pair_free(&s->chacha[i]);
  free(s->data);
}

// What goes out, and how far: `row` NULL is the best cipher, which the others' rows do not name.
static const struct kind {
  bool source, chacha; // otherwise the relay, the best cipher
  bool code, seal, send;
  size_t bursts;
  const char *operation, *row, *variant;
} kinds[] = {
    {true, false, true, false, false, BURSTS, "code", "source", ""},
    {false, false, true, false, false, BURSTS, "code", "relay", ""},
    {false, false, false, true, false, BURSTS, "seal", NULL, ""},
    {false, true, false, true, false, BURSTS, "seal", "chacha20", ""},
    {false, false, false, false, true, BURSTS, "send", "udp", ""},
    {false, false, false, false, true, 1, "send", "udp", "one burst"},
    {true, false, true, true, true, BURSTS, "all", NULL, "source"},
    {false, false, true, true, true, BURSTS, "all", NULL, "relay"},
    {false, false, true, true, true, 1, "all", NULL, "relay one burst"},
    {true, true, true, true, true, BURSTS, "all", "chacha20", "source"},
    {false, true, true, true, true, BURSTS, "all", "chacha20", "relay"},
};

enum { WAYS = sizeof kinds / sizeof *kinds };

static const char *best_cipher(const pair *p) {
  weft_session_peer peer;
  weft_bench_must("peer", weft_sessions_peer(p->end[0], p->link, &peer));
  return peer.aes ? "aes-256-gcm" : "chacha20";
}

static const char *row_of(const struct kind *kind, const char *best) {
  return kind->row ? kind->row : best;
}

static bool wanted(const weft_bench_options *options, const struct kind *kind, const char *best) {
  return weft_bench_listed(options->operations, kind->operation) &&
         (weft_bench_listed(options->rows, row_of(kind, best)) ||
          weft_bench_listed(options->rows, kind->variant));
}

size_t weft_bench_peer_ways(const weft_bench_options *options, weft_ctx *ctx) {
  pair p;
  pair_new(&p, ctx, WEFT_CIPHER_BEST);
  const char *const best = best_cipher(&p);
  size_t count = 0;
  for (size_t i = 0; i < WAYS; i++)
    count += wanted(options, &kinds[i], best);
  pair_free(&p);
  return count;
}

static void add_ways(weft_bench_group *group, scene *s, const weft_bench_options *options,
                     way ways[WAYS]) {
  const char *const best = best_cipher(&s->aes[0]);
  for (size_t i = 0; i < WAYS; i++) {
    const struct kind *const kind = &kinds[i];
    ways[i] = kind->source ? s->source : s->relay;
    ways[i].sessions = kind->chacha ? s->chacha : s->aes;
    ways[i].bursts = kind->bursts;
    ways[i].code = kind->code;
    ways[i].seal = kind->seal;
    ways[i].send = kind->send;
    if (wanted(options, kind, best))
      (void)add_way(group, &ways[i], kind->operation, row_of(kind, best), kind->variant);
  }
}

void weft_bench_peer_throughput(weft_bench_report *report, const weft_bench_options *options,
                                weft_ctx *ctx, size_t n, size_t k, size_t m) {
  scene s;
  way ways[WAYS];
  scene_new(&s, options, ctx, n, k, m);
  char *title =
      weft_bench_text("out of one core, n = %zu, k = %zu, bursts of %zu; %d bursts a turn, "
                      "to %d neighbours",
                      n, k, m, BURSTS, NEIGHBOURS);
  weft_bench_group *group = weft_bench_group_new(title);
  add_ways(group, &s, options, ways);
  weft_bench_report_run(report, options, group);
  const weft_udp_statistics *sent = &s.udp.statistics;
  if (sent->send_calls)
    printf("  datagrams per send call %.1f%s; taken at the other end %.1f %% of the bytes\n",
           (double)sent->sent / (double)sent->send_calls,
           s.udp.plain_turns ? " (no UDP_SEGMENT)" : "",
           100.0 * (double)atomic_load(&s.drain.bytes) / (double)sent->sent_bytes);
  weft_bench_group_free(group);
  free(title);
  scene_free(&s);
}
