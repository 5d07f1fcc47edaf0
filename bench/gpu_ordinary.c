// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu_ordinary.h"

#include <stdlib.h>

#include "bench/buffers.h"
#include "bench/check.h"
#include "weft/weft.h"

struct weft_bench_ordinary {
  weft_ctx *ctx;
  weft_queue *queue;
  size_t segments, n, k, threads;
  uint8_t *source;       // (segments * n, k)
  uint8_t *coefficients; // (segments * n, n)
  uint8_t *coded, *out;  // like source: packets of those, and what they decode to
  uint8_t *sent;         // packets of seeds
  weft_segment_options *options;
  weft_segment **resident, **made;
  weft_encoder **encoders;
  weft_batch *batches;
  weft_decode_job *jobs;
};

static void wait(const weft_bench_ordinary *o) {
  weft_bench_must("wait", weft_queue_wait(o->queue));
}

static void call_upload(void *user) {
  const weft_bench_ordinary *o = user;
  weft_bench_must("segments",
                  weft_segments_new(o->ctx, o->options, o->segments, o->queue, o->made));
  wait(o);
  for (size_t s = 0; s < o->segments; s++)
    weft_segment_free(o->made[s]);
}

static void call_encode(void *user) {
  const weft_bench_ordinary *o = user;
  weft_bench_must("encode", weft_encoder_batches(o->encoders, o->batches, o->segments, o->queue));
  wait(o);
}

static void call_decode(void *user) {
  const weft_bench_ordinary *o = user;
  weft_bench_must("decode", weft_decode_batch(o->ctx, o->jobs, o->segments, o->queue));
  wait(o);
}

static void describe(weft_bench_ordinary *o, size_t s) {
  const size_t n = o->n, k = o->k, bytes = n * k;
  const weft_segment_id id = {
      .stream = 1, .segment = s, .blocks = (uint32_t)n, .block_bytes = (uint32_t)k};
  o->options[s] =
      (weft_segment_options){.id = id, .data = o->source + s * bytes, .bytes = bytes, .once = true};
  o->batches[s] = (weft_batch){.count = n, .payload = o->sent + s * bytes, .payload_stride = k};
  o->jobs[s] = (weft_decode_job){.blocks = n,
                                 .block_bytes = k,
                                 .coefficients = o->coefficients + s * n * n,
                                 .coefficients_stride = n,
                                 .payload = o->coded + s * bytes,
                                 .payload_stride = k,
                                 .out = o->out + s * bytes,
                                 .out_stride = k};
}

// Makes a segment resident, with a seeded encoder, and the packets that are decoded.
static void make_packets(weft_bench_ordinary *o, size_t s) {
  const weft_batch packets = {.count = o->n,
                              .coefficients = o->coefficients + s * o->n * o->n,
                              .coefficients_stride = o->n,
                              .payload = o->coded + s * o->n * o->k,
                              .payload_stride = o->k};
  weft_segment_options options = o->options[s];
  weft_encoder *encoder;
  options.once = false;
  weft_bench_must("segment", weft_segment_new(o->ctx, &options, NULL, &o->resident[s]));
  weft_bench_must("encoder", weft_encoder_new(o->resident[s], NULL, &encoder));
  weft_bench_must("packets", weft_encoder_batch(encoder, &packets, NULL));
  weft_encoder_free(encoder);
  weft_bench_must(
      "encoder",
      weft_encoder_new(o->resident[s], &(weft_encoder_options){.seeded = true}, &o->encoders[s]));
}

weft_bench_ordinary *weft_bench_ordinary_new(const char *row, size_t threads, size_t segments,
                                             size_t n, size_t k, uint64_t seed) {
  weft_bench_ordinary *o = weft_bench_alloc(1, sizeof *o);
  const size_t rows = segments * n;
  weft_bench_random random;
  *o = (weft_bench_ordinary){.segments = segments, .n = n, .k = k, .threads = threads};
  weft_bench_must("context",
                  weft_ctx_new(&o->ctx, &(weft_ctx_options){.backend = row, .threads = threads}));
  weft_bench_must("queue", weft_queue_new(o->ctx, &o->queue));
  o->source = weft_bench_alloc(rows, k);
  o->coefficients = weft_bench_alloc(rows, n);
  o->coded = weft_bench_alloc(rows, k);
  o->out = weft_bench_alloc(rows, k);
  o->sent = weft_bench_alloc(rows, k);
  o->options = weft_bench_alloc(segments, sizeof *o->options);
  o->resident = weft_bench_alloc(segments, sizeof(weft_segment *));
  o->made = weft_bench_alloc(segments, sizeof(weft_segment *));
  o->encoders = weft_bench_alloc(segments, sizeof(weft_encoder *));
  o->batches = weft_bench_alloc(segments, sizeof *o->batches);
  o->jobs = weft_bench_alloc(segments, sizeof *o->jobs);
  weft_bench_random_seed(&random, seed);
  weft_bench_random_bytes(&random, o->source, rows * k);
  for (size_t s = 0; s < segments; s++) {
    describe(o, s);
    make_packets(o, s);
  }
  return o;
}

void weft_bench_ordinary_free(weft_bench_ordinary *o) {
  if (!o)
    return;
  for (size_t s = 0; s < o->segments; s++) {
    weft_encoder_free(o->encoders[s]);
    weft_segment_free(o->resident[s]);
  }
  weft_queue_free(o->queue);
  weft_ctx_free(o->ctx);
  free(o->source), free(o->coefficients), free(o->coded), free(o->out), free(o->sent);
  free(o->options), free(o->resident), free(o->made);
  free(o->encoders), free(o->batches), free(o->jobs);
  free(o);
}

// Decodes all segments once; those whose random matrix is singular, one in 250, are
// left out of the comparison.
static const char *check(weft_bench_ordinary *o) {
  const char *checked = NULL;
  const size_t bytes = o->n * o->k;
  call_upload(o); // warm-up
  call_encode(o);
  call_decode(o);
  for (size_t s = 0; s < o->segments; s++)
    if (o->jobs[s].status == WEFT_OK)
      checked = weft_bench_check_source("blocks from ordinary memory", o->out + s * bytes,
                                        o->source + s * bytes, bytes);
  if (!checked)
    weft_bench_must("every matrix is singular", WEFT_E_SINGULAR);
  return checked;
}

// `multiplies`: n products for each byte; otherwise the case counts the bytes it reads.
static int add(weft_bench_ordinary *o, weft_bench_group *group, const char *operation,
               const char *variant, bool multiplies, void (*call)(void *), const char *checked,
               int ceiling) {
  const double bytes = (double)o->segments * (double)o->n * (double)o->k;
  weft_bench_case entry = {.operation = operation,
                           .row = weft_ctx_backend(o->ctx),
                           .variant = variant,
                           .n = o->n,
                           .k = o->k,
                           .m = multiplies ? o->n : 0,
                           .threads = o->threads,
                           .amount = {[WEFT_BENCH_OUTPUT] = bytes},
                           .ceiling = ceiling,
                           .bound_by = WEFT_BENCH_OUTPUT,
                           .work = {.call = call, .user = o, .threads = o->threads},
                           .checked = checked};
  if (multiplies)
    entry.amount[WEFT_BENCH_PRODUCTS] = bytes * (double)o->n;
  else
    entry.amount[WEFT_BENCH_INPUT] = bytes;
  return weft_bench_group_add(group, &entry);
}

void weft_bench_ordinary_add(weft_bench_ordinary *o, weft_bench_group *group, int in, int out,
                             int both) {
  const char *checked = check(o);
  add(o, group, "segments", "from ordinary memory", false, call_upload, "by tests/cuda", in);
  add(o, group, "encode", "to ordinary memory", true, call_encode, "by tests/cuda", out);
  add(o, group, "decode", "from and to ordinary memory", true, call_decode, checked, both);
}
