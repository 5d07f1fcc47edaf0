// SPDX-License-Identifier: Apache-2.0
// A relay whose payloads are on a device: mixed datagrams of many segments come in from pinned
// memory, fresh combinations go out to pinned memory, and segments are read.
#include "bench/gpu_relay.h"

#include <stdlib.h>
#include <string.h>

#include "bench/buffers.h"
#include "bench/check.h"
#include "lib/ctx.h"
#include "weft/weft.h"

enum {
  QUEUES = 4,
  TOGETHER = 56,  // segments that a queue takes at a time
  AHEAD = 16,     // datagrams by which headers are prefetched
  ARRIVALS = 2048 // packets of one call: what a relay finds when it polls
};

struct weft_bench_relay {
  weft_ctx *ctx;
  weft_queue *queue[QUEUES];
  size_t segments, n, k, stride, threads;
  uint8_t *source; // (n, k) of segment 0
  uint8_t *in;     // pinned: (segments, n) datagrams, stride bytes apart
  uint8_t *out;    // pinned: likewise
  uint8_t *blocks; // pinned: (segments, n, k)
  weft_decoder **decoders;
  weft_arrival *arrivals;     // (ARRIVALS)
  weft_batch *batches;        // (segments)
  weft_reading *readings;     // (segments)
  weft_device_piece *pieces;  // pinned: (segments * n), all packets
  uint8_t *landed;            // device memory
  weft_eliminate progressive; // in device memory, for comparison
  uint8_t *unknown;           // pinned: zeros
};

static weft_segment_id id_of(const weft_bench_relay *r, size_t segment) {
  return (weft_segment_id){
      .stream = 1, .segment = segment, .blocks = (uint32_t)r->n, .block_bytes = (uint32_t)r->k};
}

static void *memory(const weft_bench_relay *r, weft_mem mem, size_t bytes) {
  void *out;
  weft_bench_must("memory", weft_alloc(r->ctx, mem, bytes, &out));
  return out;
}

static uint8_t *datagram(uint8_t *base, const weft_bench_relay *r, size_t segment, size_t i) {
  return base + (segment * r->n + i) * r->stride;
}

// Makes what sources would have sent: n coded packets of each segment.
static void fill_datagrams(weft_bench_relay *r, uint64_t seed) {
  const size_t bytes = r->n * r->k;
  uint8_t *data = weft_bench_alloc(1, bytes);
  weft_packet *packets = weft_bench_alloc(r->n, sizeof *packets);
  weft_bench_random random;
  weft_bench_random_seed(&random, seed);
  for (size_t s = 0; s < r->segments; s++) {
    weft_bench_random_bytes(&random, data, bytes);
    if (s == 0)
      memcpy(r->source, data, bytes);
    const weft_segment_options options = {.id = id_of(r, s), .data = data, .bytes = bytes};
    weft_segment *segment;
    weft_encoder *encoder;
    weft_bench_must("segment", weft_segment_new(r->ctx, &options, NULL, &segment));
    weft_bench_must("encoder", weft_encoder_new(segment, NULL, &encoder));
    uint8_t *first = datagram(r->in, r, s, 0) + WEFT_WIRE_HEADER_BYTES;
    const weft_batch batch = {.count = r->n,
                              .packets = packets,
                              .coefficients = first,
                              .coefficients_stride = r->stride,
                              .coefficients_mem = WEFT_MEM_PINNED,
                              .payload = first + r->n,
                              .payload_stride = r->stride,
                              .mem = WEFT_MEM_PINNED};
    weft_bench_must("encode", weft_encoder_batch(encoder, &batch, NULL));
    for (size_t i = 0; i < r->n; i++) {
      size_t written;
      weft_bench_must(
          "write", weft_packet_write(&packets[i], datagram(r->in, r, s, i), r->stride, &written));
    }
    weft_encoder_free(encoder);
    weft_segment_free(segment);
  }
  free(data), free(packets);
}

static void list_pieces(weft_bench_relay *r) {
  const size_t bytes = r->n + r->k, count = r->segments * r->n;
  r->pieces = memory(r, WEFT_MEM_PINNED, count * sizeof *r->pieces);
  r->landed = memory(r, WEFT_MEM_DEVICE, count * bytes);
  for (size_t i = 0; i < count; i++)
    r->pieces[i] = (weft_device_piece){r->landed + i * bytes,
                                       datagram(r->in, r, 0, i) + WEFT_WIRE_HEADER_BYTES, bytes};
}

static void *upload(weft_bench_relay *r, size_t bytes, uint64_t seed) {
  uint8_t *random_bytes = weft_bench_alloc(1, bytes), *out = memory(r, WEFT_MEM_DEVICE, bytes);
  weft_bench_random random;
  weft_bench_random_seed(&random, seed);
  weft_bench_random_bytes(&random, random_bytes, bytes);
  weft_bench_must("upload", weft_device_copy(r->ctx->device, out, WEFT_MEM_DEVICE, random_bytes,
                                             WEFT_MEM_HOST, bytes, r->queue[0]->stream));
  weft_bench_must("upload", weft_queue_wait(r->queue[0]));
  free(random_bytes);
  return out;
}

static void make_progressive(weft_bench_relay *r, uint64_t seed) {
  const size_t rows = r->segments * r->n;
  r->unknown = memory(r, WEFT_MEM_PINNED, rows);
  memset(r->unknown, 0, rows);
  r->progressive = (weft_eliminate){.count = r->segments,
                                    .arrivals = r->n,
                                    .k = r->n,
                                    .len = r->k,
                                    .c = memory(r, WEFT_MEM_DEVICE, rows * r->n),
                                    .x = memory(r, WEFT_MEM_DEVICE, rows * r->k),
                                    .known = memory(r, WEFT_MEM_DEVICE, rows),
                                    .a = upload(r, rows * r->n, seed),
                                    .y = upload(r, rows * r->k, seed + 1),
                                    .pivot = memory(r, WEFT_MEM_DEVICE, rows * sizeof(uint16_t)),
                                    .mem = WEFT_MEM_DEVICE};
}

weft_bench_relay *weft_bench_relay_new(const char *row, size_t threads, size_t segments, size_t n,
                                       size_t k, uint64_t seed) {
  weft_bench_relay *r = weft_bench_alloc(1, sizeof *r);
  *r = (weft_bench_relay){.segments = segments, .n = n, .k = k, .threads = threads};
  const weft_ctx_options options = {.backend = row, .threads = threads};
  weft_bench_must("context", weft_ctx_new(&r->ctx, &options));
  for (size_t i = 0; i < QUEUES; i++)
    weft_bench_must("queue", weft_queue_new(r->ctx, &r->queue[i]));
  const weft_segment_id id = id_of(r, 0);
  r->stride = weft_packet_bytes(&id, WEFT_PACKET_VECTOR);
  r->source = weft_bench_alloc(n, k);
  r->in = memory(r, WEFT_MEM_PINNED, segments * n * r->stride);
  r->out = memory(r, WEFT_MEM_PINNED, segments * n * r->stride);
  r->blocks = memory(r, WEFT_MEM_PINNED, segments * n * k);
  r->decoders = weft_bench_alloc(segments, sizeof(weft_decoder *));
  r->arrivals = weft_bench_alloc(ARRIVALS, sizeof *r->arrivals);
  r->batches = weft_bench_alloc(segments, sizeof *r->batches);
  r->readings = weft_bench_alloc(segments, sizeof *r->readings);
  fill_datagrams(r, seed);
  list_pieces(r);
  make_progressive(r, seed);
  return r;
}

static void wait_all(const weft_bench_relay *r) {
  for (size_t i = 0; i < QUEUES; i++)
    weft_bench_must("wait", weft_queue_wait(r->queue[i]));
}

static void free_decoders(weft_bench_relay *r) {
  for (size_t s = 0; s < r->segments; s++) {
    weft_decoder_free(r->decoders[s]);
    r->decoders[s] = NULL;
  }
}

static void free_progressive(weft_bench_relay *r) {
  weft_free(r->ctx, WEFT_MEM_PINNED, r->unknown);
  weft_free(r->ctx, WEFT_MEM_DEVICE, r->progressive.c);
  weft_free(r->ctx, WEFT_MEM_DEVICE, r->progressive.x);
  weft_free(r->ctx, WEFT_MEM_DEVICE, r->progressive.known);
  weft_free(r->ctx, WEFT_MEM_DEVICE, (void *)r->progressive.a);
  weft_free(r->ctx, WEFT_MEM_DEVICE, (void *)r->progressive.y);
  weft_free(r->ctx, WEFT_MEM_DEVICE, r->progressive.pivot);
}

void weft_bench_relay_free(weft_bench_relay *r) {
  if (!r)
    return;
  free_decoders(r);
  free_progressive(r);
  for (size_t i = 0; i < QUEUES; i++)
    weft_queue_free(r->queue[i]);
  weft_free(r->ctx, WEFT_MEM_PINNED, r->in);
  weft_free(r->ctx, WEFT_MEM_PINNED, r->out);
  weft_free(r->ctx, WEFT_MEM_PINNED, r->blocks);
  weft_free(r->ctx, WEFT_MEM_PINNED, r->pieces);
  weft_free(r->ctx, WEFT_MEM_DEVICE, r->landed);
  weft_ctx_free(r->ctx);
  free(r->source), free(r->decoders), free(r->arrivals), free(r->batches), free(r->readings);
  free(r);
}

// --- what a relay does with segments [first, first + some) ---

static void arrive(weft_bench_relay *r, size_t first, size_t some, weft_queue *queue) {
  const size_t all = some * r->n;
  for (size_t s = first; s < first + some; s++) {
    const weft_decoder_options options = {.id = id_of(r, s), .mem = WEFT_MEM_DEVICE};
    weft_bench_must("decoder", weft_decoder_new(r->ctx, &options, &r->decoders[s]));
  }
  for (size_t at = 0; at < all;) { // one packet of each segment in turn
    size_t count = 0;
    for (; count < ARRIVALS && at < all; count++, at++) {
      const size_t s = first + at % some, soon = at + AHEAD < all ? at + AHEAD : at;
      __builtin_prefetch(datagram(r->in, r, first + soon % some, soon / some));
      r->arrivals[count].decoder = r->decoders[s];
      weft_bench_must("parse", weft_packet_parse(datagram(r->in, r, s, at / some), r->stride,
                                                 &r->arrivals[count].packet));
    }
    weft_bench_must("add", weft_decoders_add(r->arrivals, count, WEFT_MEM_PINNED, queue));
  }
}

static void recode(weft_bench_relay *r, size_t first, size_t some, weft_queue *queue) {
  for (size_t s = first; s < first + some; s++) {
    uint8_t *vector = datagram(r->out, r, s, 0) + WEFT_WIRE_HEADER_BYTES;
    r->batches[s] = (weft_batch){.count = r->n,
                                 .coefficients = vector,
                                 .coefficients_stride = r->stride,
                                 .coefficients_mem = WEFT_MEM_PINNED,
                                 .payload = vector + r->n,
                                 .payload_stride = r->stride,
                                 .mem = WEFT_MEM_PINNED};
  }
  weft_bench_must("recode",
                  weft_decoders_recode(r->decoders + first, r->batches + first, some, queue));
}

static void read_blocks(weft_bench_relay *r, size_t first, size_t some, weft_queue *queue) {
  for (size_t s = first; s < first + some; s++)
    r->readings[s] = (weft_reading){.decoder = r->decoders[s],
                                    .count = weft_decoder_complete(r->decoders[s]) ? r->n : 0,
                                    .out = r->blocks + s * r->n * r->k,
                                    .out_stride = r->k,
                                    .mem = WEFT_MEM_PINNED};
  weft_bench_must("read", weft_decoders_read(r->readings + first, some, queue));
}

typedef void (*step)(weft_bench_relay *r, size_t first, size_t some, weft_queue *queue);

static void for_all(weft_bench_relay *r, step once, step twice) {
  for (size_t first = 0, turn = 0; first < r->segments; first += TOGETHER, turn++) {
    const size_t left = r->segments - first, some = left < TOGETHER ? left : TOGETHER;
    once(r, first, some, r->queue[turn % QUEUES]);
    if (twice)
      twice(r, first, some, r->queue[turn % QUEUES]);
  }
  wait_all(r);
}

static void call_arrive(void *user) {
  free_decoders(user);
  for_all(user, arrive, NULL);
}
static void call_recode(void *user) { for_all(user, recode, NULL); }
static void call_read(void *user) { for_all(user, read_blocks, NULL); }
static void call_relay(void *user) {
  free_decoders(user);
  for_all(user, arrive, recode);
}

// Gathers all packets in one launch, without decoders: what the device reads over the bus by
// itself.
static void call_gather(void *user) {
  const weft_bench_relay *r = user;
  weft_exec exec = weft_ctx_host_exec(r->ctx, NULL);
  exec.device = r->ctx->device;
  exec.stream = r->queue[0]->stream;
  weft_bench_must("gather", weft_device_copy_pieces(&exec, r->pieces, r->segments * r->n));
  wait_all(r);
}

// The same number of packets in progressive elimination on the device, including payloads.
static void call_eliminate(void *user) {
  const weft_bench_relay *r = user;
  weft_exec exec = weft_ctx_host_exec(r->ctx, NULL);
  exec.device = r->ctx->device;
  exec.stream = r->queue[0]->stream;
  weft_bench_must("clear",
                  weft_device_copy(exec.device, r->progressive.known, WEFT_MEM_DEVICE, r->unknown,
                                   WEFT_MEM_PINNED, r->segments * r->n, exec.stream));
  weft_bench_must("eliminate", r->ctx->row->eliminate(r->ctx->row, &exec, &r->progressive));
  wait_all(r);
}

// Checks that recoded packets rebuild the source, and that the relay's own blocks equal it.
static const char *check(weft_bench_relay *r) {
  weft_ctx *host;
  weft_decoder *decoder;
  weft_bench_must("host", weft_ctx_new(&host, NULL));
  weft_bench_must("decoder",
                  weft_decoder_new(host, &(weft_decoder_options){.id = id_of(r, 0)}, &decoder));
  for (size_t round = 0; !weft_decoder_complete(decoder); round++) {
    if (round > 2)
      weft_bench_must("recoded packets of no use", WEFT_E_DAMAGED);
    call_relay(r);
    for (size_t i = 0; i < r->n; i++) {
      const uint8_t *vector = datagram(r->out, r, 0, i) + WEFT_WIRE_HEADER_BYTES;
      const weft_packet packet = {.id = id_of(r, 0),
                                  .mode = WEFT_PACKET_VECTOR,
                                  .coefficients = vector,
                                  .payload = vector + r->n};
      const weft_status added = weft_decoder_add(decoder, &packet);
      weft_bench_must("recoded packet", added == WEFT_DEPENDENT ? WEFT_OK : added);
    }
  }
  uint8_t *out = weft_bench_alloc(r->n, r->k);
  weft_bench_must("decode", weft_decoder_read(decoder, 0, r->n * r->k, out));
  weft_bench_check_source("relay", out, r->source, r->n * r->k);
  call_read(r);
  free(out);
  weft_decoder_free(decoder);
  weft_ctx_free(host);
  if (!weft_decoder_complete(r->decoders[0])) // once in 250: not all packets were innovative
    return WEFT_BENCH_CHECKED_SOURCE;
  return weft_bench_check_source("relay's blocks", r->blocks, r->source, r->n * r->k);
}

// `multiplies`: payloads, n products for each byte; otherwise the case counts the bytes it reads.
static int add(weft_bench_relay *r, weft_bench_group *group, const char *variant, bool multiplies,
               void (*call)(void *), const char *checked, int ceiling) {
  const double bytes = (double)r->segments * (double)r->n * (double)r->k;
  weft_bench_case entry = {.operation = "relay",
                           .row = weft_ctx_backend(r->ctx),
                           .variant = variant,
                           .n = r->n,
                           .k = r->k,
                           .m = r->n,
                           .threads = r->threads,
                           .amount = {[WEFT_BENCH_OUTPUT] = bytes},
                           .ceiling = ceiling,
                           .bound_by = WEFT_BENCH_OUTPUT,
                           .work = {.call = call, .user = r, .threads = r->threads},
                           .checked = checked};
  if (multiplies)
    entry.amount[WEFT_BENCH_PRODUCTS] = bytes * (double)r->n;
  else
    entry.amount[WEFT_BENCH_INPUT] = bytes;
  return weft_bench_group_add(group, &entry);
}

void weft_bench_relay_add(weft_bench_relay *r, weft_bench_group *group, int in, int out, int both) {
  const char *checked = check(r);
  const int gathered = add(r, group, "packets gathered by one launch", false, call_gather,
                           "by tests/cuda, as part of arrivals", in);
  add(r, group, "eliminated on the device, payloads and all", true, call_eliminate, "by tests/cuda",
      -1);
  weft_bench_group_ask(group, "gathered / copy in", gathered, in, WEFT_BENCH_OUTPUT);
  const int arrived = add(r, group, "packets from pinned memory to decoders on the device", false,
                          call_arrive, checked, in);
  const int recoded =
      add(r, group, "recoded, to pinned memory with vectors", true, call_recode, checked, out);
  const int read = add(r, group, "decoded, to pinned memory", true, call_read, checked, out);
  const int all =
      add(r, group, "packets in, as many recoded packets out", true, call_relay, checked, both);
  weft_bench_group_ask(group, "arrivals / copy in", arrived, in, WEFT_BENCH_OUTPUT);
  weft_bench_group_ask(group, "recoded / copy out", recoded, out, WEFT_BENCH_OUTPUT);
  weft_bench_group_ask(group, "decoded / copy out", read, out, WEFT_BENCH_OUTPUT);
  weft_bench_group_ask(group, "in and out / copies both ways", all, both, WEFT_BENCH_OUTPUT);
}
