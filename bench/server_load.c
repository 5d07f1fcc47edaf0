// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE // ppoll
#include "bench/server_load.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/buffers.h"
#include "bench/check.h"
#include "bench/stats.h"
#include "bench/timing.h"

enum { TAKE = 1024 };

int64_t weft_bench_now_us(void *user) {
  (void)user;
  return (int64_t)(weft_bench_now_s() * 1e6);
}

// Waits until packets are ready or `wait_us` have passed; negative: without limit.
static void wait_ready(weft_server *server, int64_t wait_us) {
  struct pollfd fd = {.fd = weft_server_fd(server), .events = POLLIN};
  const struct timespec limit = {.tv_sec = wait_us / 1000000, .tv_nsec = wait_us % 1000000 * 1000};
  (void)ppoll(&fd, 1, wait_us < 0 ? NULL : &limit, NULL);
}

static weft_segment_id id_of(const weft_bench_serving *serving, size_t segment) {
  return (weft_segment_id){.stream = serving->stream,
                           .segment = segment,
                           .blocks = (uint32_t)serving->n,
                           .block_bytes = (uint32_t)serving->k};
}

// --- the segments served, and the check of their bytes ---

static void decode_one(weft_server *server, const weft_bench_serving *serving,
                       const uint8_t *data) {
  const weft_segment_id id = id_of(serving, 0);
  const size_t bytes = serving->n * serving->k;
  weft_ctx *ctx = NULL;
  weft_decoder *decoder = NULL;
  weft_bench_must("context", weft_ctx_new(&ctx, &(weft_ctx_options){.threads = 1}));
  weft_bench_must("decoder", weft_decoder_new(ctx, &(weft_decoder_options){.id = id}, &decoder));
  while (weft_decoder_rank(decoder) < serving->n) {
    const uint32_t missing = (uint32_t)(serving->n - weft_decoder_rank(decoder));
    const weft_server_request want = {id.stream, id.segment, 0, missing};
    size_t accepted = 0, got = 0;
    weft_bench_must("request", weft_server_request_many(server, &want, 1, 0, &accepted));
    for (uint32_t seen = 0; seen < missing; seen += (uint32_t)got) {
      weft_server_packet packets[64];
      weft_bench_must("process", weft_server_process(server, weft_bench_now_us(NULL)));
      wait_ready(server, 10000);
      weft_bench_must("take", weft_server_take(server, packets, 64, &got));
      for (size_t i = 0; i < got; i++) {
        weft_bench_must("packet", packets[i].status);
        const weft_status added =
            weft_decoder_add_datagram(decoder, packets[i].datagram, packets[i].bytes);
        weft_bench_must("decode", added == WEFT_DEPENDENT ? WEFT_OK : added);
      }
      weft_server_release(server, packets, got);
    }
  }
  uint8_t *out = weft_bench_alloc(1, bytes);
  weft_bench_must("read", weft_decoder_read(decoder, 0, bytes, out));
  weft_bench_check_source(serving->name, out, data, bytes);
  free(out);
  weft_decoder_free(decoder);
  weft_ctx_free(ctx);
}

const char *weft_bench_serve(weft_server *server, const weft_bench_serving *serving,
                             uint64_t seed) {
  const size_t bytes = serving->n * serving->k;
  uint8_t *first = weft_bench_alloc(1, bytes), *data = weft_bench_alloc(1, bytes);
  weft_bench_random random;
  weft_bench_random_seed(&random, seed);
  weft_bench_random_bytes(&random, first, bytes);
  for (size_t s = 0; s < serving->segments; s++) {
    const weft_segment_id id = id_of(serving, s);
    if (s > 0)
      weft_bench_random_bytes(&random, data, bytes);
    weft_bench_must("push",
                    weft_server_push(server, &id, s > 0 ? data : first, bytes, 0, INT64_MAX));
  }
  decode_one(server, serving, first);
  free(first), free(data);
  return WEFT_BENCH_CHECKED_SOURCE;
}

// --- clients ---

typedef struct slot {
  int64_t due_us;
  uint32_t left; // packets still to come; 0: free
} slot;

typedef struct crowd {
  weft_server *server;
  const weft_bench_serving *serving;
  const weft_bench_load *load;
  weft_bench_latencies *latencies;
  slot *slots;                 // (requests)
  size_t *idle;                // (requests) free slots, of which there are idle_count
  weft_server_request *asking; // (requests)
  size_t idle_count;
  int64_t began_us, end_us; // of the requests
  int64_t next_us;          // open loop: when the next request is due
  double period_us;
  uint64_t asked, packets; // packets: taken so far
} crowd;

static void note(crowd *c, int64_t due_us, int64_t now_us) {
  weft_bench_latencies *l = c->latencies;
  if (l->count == l->capacity) {
    l->capacity = l->capacity > 0 ? 2 * l->capacity : 4096;
    double *us = weft_bench_alloc(l->capacity, sizeof *us);
    if (l->count > 0)
      memcpy(us, l->us, l->count * sizeof *us);
    free(l->us);
    l->us = us;
  }
  l->us[l->count++] = (double)(now_us - due_us);
}

static void ask(crowd *c, int64_t now_us) {
  size_t count = 0, accepted = 0;
  while (c->idle_count > 0 && now_us < c->end_us && (c->period_us <= 0 || c->next_us <= now_us)) {
    const size_t s = c->idle[--c->idle_count];
    c->slots[s] = (slot){c->period_us > 0 ? c->next_us : now_us, c->load->packets};
    c->asking[count++] = (weft_server_request){c->serving->stream, c->asked % c->serving->segments,
                                               s, c->load->packets};
    c->asked++;
    c->next_us = c->began_us + (int64_t)((double)c->asked * c->period_us);
  }
  weft_bench_must("request",
                  weft_server_request_many(c->server, c->asking, count, now_us, &accepted));
  weft_bench_must("process", weft_server_process(c->server, now_us));
}

// Takes everything that is ready.
static void take(crowd *c) {
  weft_server_packet packets[TAKE];
  size_t got = 0;
  do {
    weft_bench_must("take", weft_server_take(c->server, packets, TAKE, &got));
    const int64_t now_us = weft_bench_now_us(NULL);
    for (size_t i = 0; i < got; i++) {
      slot *s = &c->slots[packets[i].client];
      weft_bench_must("packet", packets[i].status);
      if (--s->left == 0) {
        note(c, s->due_us, now_us);
        c->idle[c->idle_count++] = packets[i].client;
      }
    }
    c->packets += got;
    weft_server_release(c->server, packets, got);
  } while (got == TAKE);
}

double weft_bench_load_run(weft_server *server, const weft_bench_serving *serving,
                           const weft_bench_load *load, weft_bench_latencies *latencies) {
  crowd c = {.server = server, .serving = serving, .load = load, .latencies = latencies};
  c.slots = weft_bench_alloc(load->requests, sizeof *c.slots);
  c.idle = weft_bench_alloc(load->requests, sizeof *c.idle);
  c.asking = weft_bench_alloc(load->requests, sizeof *c.asking);
  while (c.idle_count < load->requests) {
    c.idle[c.idle_count] = c.idle_count;
    c.idle_count++;
  }
  int64_t now_us = weft_bench_now_us(NULL);
  c.began_us = c.next_us = now_us;
  c.end_us = now_us + (int64_t)(load->seconds * 1e6);
  c.period_us = load->rate > 0 ? 1e6 / load->rate : 0;
  while (now_us < c.end_us || c.idle_count < load->requests) {
    ask(&c, now_us);
    int64_t until_us = weft_server_deadline(server);
    if (c.period_us > 0 && c.idle_count > 0 && now_us < c.end_us && c.next_us < until_us)
      until_us = c.next_us;
    now_us = weft_bench_now_us(NULL);
    wait_ready(server, until_us == INT64_MAX ? -1 : until_us > now_us ? until_us - now_us : 0);
    take(&c);
    now_us = weft_bench_now_us(NULL);
  }
  free(c.slots), free(c.idle), free(c.asking);
  return (double)c.packets * (double)serving->k / ((double)(now_us - c.began_us) * 1e-6);
}

double weft_bench_latency(weft_bench_latencies *latencies, double share) {
  if (latencies->count == 0)
    return 0;
  weft_bench_sort(latencies->us, latencies->count);
  const size_t rank = (size_t)ceil(share * (double)latencies->count); // the nearest rank
  return latencies->us[rank ? (rank < latencies->count ? rank : latencies->count) - 1 : 0];
}
