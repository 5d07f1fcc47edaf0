// SPDX-License-Identifier: Apache-2.0
// Decoders with payloads on a device: packets of several segments in any order and memory, some
// dependent, foreign or malformed, mirrored by decoders in host memory; recoded at any rank, read
// in part and completely; also when calls fail.
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/runtime.h"
#include "tests/cuda/lib_cases.h"

enum { SEGMENTS_MAX = 6, UNKNOWN_ERROR = 999, MEMORY_ALLOCATION = 2 };

typedef struct flow {
  fixture_source source;  // on the host
  weft_decoder *relay;    // on the device
  weft_decoder *mirror;   // decodes the same packets on the host
  weft_decoder *receiver; // of recoded packets, on the host
  bool fixed;             // relay and mirror have the same key
} flow;

typedef struct scene {
  weft_ctx *device, *host;
  weft_queue *queue; // or NULL
  flow flows[SEGMENTS_MAX];
  size_t count;
  bool failing; // each call may fail once, and is repeated
} scene;

static void relay_new(scene *r, weft_ctx *device, size_t most_n, size_t most_k, bool failing) {
  *r = (scene){.device = device, .host = fixture_ctx(NULL, 1), .failing = failing};
  fixture_row = weft_ctx_backend(device);
  if (!failing && fixture_below(3) > 0)
    EXPECT_OK(weft_queue_new(device, &r->queue));
  r->count = 1 + fixture_below(SEGMENTS_MAX);
  const bool same = fixture_below(2);
  size_t n = 1 + fixture_below(most_n), k = 1 + fixture_below(most_k);
  for (size_t i = 0; i < r->count; i++) {
    flow *f = &r->flows[i];
    if (!same) {
      n = 1 + fixture_below(most_n);
      k = 1 + fixture_below(most_k);
    }
    const weft_encoder_options options = {.systematic = fixture_below(3) == 0,
                                          .seeded = fixture_below(2),
                                          .density_q16 = fixture_below(3) ? 0 : 9000};
    f->source = fixture_source_new(r->host, n, k, n * k, &options);
    const weft_decoder_options wanted = {.id = f->source.id, .mem = WEFT_MEM_DEVICE};
    EXPECT_OK(weft_decoder_new(device, &wanted, &f->relay));
    f->mirror = fixture_decoder(r->host, &f->source.id);
    f->receiver = fixture_decoder(r->host, &f->source.id);
    if (fixture_below(3) == 0) {
      uint8_t key[32];
      fixture_fill(key, sizeof key);
      EXPECT_OK(weft_decoder_fix_random(f->relay, key));
      EXPECT_OK(weft_decoder_fix_random(f->mirror, key));
      f->fixed = !failing; // a failed call may have drawn numbers
    }
  }
}

static void wait_for(const scene *r) {
  if (r->queue)
    EXPECT_OK(weft_queue_wait(r->queue));
}

static void relay_free(scene *r) {
  wait_for(r);
  for (size_t i = 0; i < r->count; i++) {
    weft_decoder_free(r->flows[i].relay);
    weft_decoder_free(r->flows[i].mirror);
    weft_decoder_free(r->flows[i].receiver);
    fixture_source_free(&r->flows[i].source);
  }
  weft_queue_free(r->queue);
  weft_ctx_free(r->host);
}

static void inject(const scene *r) {
  if (r->failing && fixture_below(3) > 0)
    weft_cuda_inject(fixture_below(8), fixture_below(2) ? UNKNOWN_ERROR : MEMORY_ALLOCATION, 0);
}

// Whether the call failed and must be repeated, without an injected fault this time.
static bool failed(const scene *r, weft_status status) {
  weft_cuda_inject(0, 0, 0);
  if (status == WEFT_E_DEVICE || status == WEFT_E_DEVICE_NOMEM) {
    EXPECT(r->failing);
    return true;
  }
  return false;
}

static void same_knowledge(const flow *f) {
  EXPECT(weft_decoder_rank(f->relay) == weft_decoder_rank(f->mirror));
  EXPECT(weft_decoder_prefix(f->relay) == weft_decoder_prefix(f->mirror));
  for (size_t i = 0; i < f->source.id.blocks; i++)
    EXPECT(weft_decoder_has_block(f->relay, i) == weft_decoder_has_block(f->mirror, i));
}

// --- arrivals ---

// Datagrams as they arrived, in one buffer; some of them are damaged.
typedef struct arriving {
  size_t count;
  weft_arrival arrivals[64];
  flow *flows[64];
  weft_packet host[64]; // the same with payloads in host memory
  uint8_t *datagrams;
  gpu_buffer buffer;
  weft_mem mem;
} arriving;

static size_t datagram_room(const scene *r) {
  size_t room = 0;
  for (size_t i = 0; i < r->count; i++) {
    const size_t bytes = weft_packet_bytes(&r->flows[i].source.id, WEFT_PACKET_VECTOR) + 16;
    room = bytes > room ? bytes : room;
  }
  return room;
}

static void spoil(weft_packet *packet) {
  switch (fixture_below(40)) {
  case 0:
    packet->id.segment++; // foreign
    break;
  case 1:
    packet->mode = (weft_packet_mode)9; // malformed
    break;
  case 2:
    packet->mode = WEFT_PACKET_SPARSE; // likewise
    packet->density_q16 = 0;
    break;
  default:
    break;
  }
}

static arriving *arriving_new(scene *r) {
  arriving *a = calloc(1, sizeof *a);
  EXPECT(a != NULL);
  const size_t room = datagram_room(r) + fixture_below(5);
  a->count = 1 + fixture_below(64);
  a->mem = lib_any_memory();
  a->datagrams = fixture_malloc(a->count * room);
  size_t repeat = 0;
  for (size_t i = 0; i < a->count; i++) {
    uint8_t *datagram = a->datagrams + i * room;
    a->flows[i] = &r->flows[fixture_below(r->count)];
    size_t bytes;
    if (i > 0 && fixture_below(6) == 0) { // a repetition
      repeat = fixture_below(i);
      a->flows[i] = a->flows[repeat];
      memcpy(datagram, a->datagrams + repeat * room, room);
      bytes = weft_packet_bytes(&a->flows[i]->source.id, (weft_packet_mode)datagram[1]);
    } else {
      EXPECT_OK(weft_encoder_next(a->flows[i]->source.encoder, datagram, room, &bytes));
    }
    EXPECT_OK(weft_packet_parse(datagram, bytes, &a->host[i]));
    spoil(&a->host[i]);
  }
  a->buffer = gpu_input(r->device, a->mem, a->datagrams, a->count * room);
  for (size_t i = 0; i < a->count; i++) {
    weft_packet packet = a->host[i];
    packet.payload = a->buffer.at + (packet.payload - a->datagrams);
    if (a->mem == WEFT_MEM_PINNED && packet.coefficients)
      packet.coefficients = a->buffer.at + (packet.coefficients - a->datagrams);
    const size_t n =
        packet.id.blocks; // what is before a payload says nothing where there is a seed
    if (packet.mode != WEFT_PACKET_VECTOR && (size_t)(packet.payload - a->buffer.at) >= n)
      packet.coefficients = packet.payload - n;
    a->arrivals[i] = (weft_arrival){.decoder = a->flows[i]->relay, .packet = packet};
  }
  return a;
}

static void arrive(scene *r) {
  arriving *a = arriving_new(r);
  weft_status status;
  do {
    inject(r);
    status = weft_decoders_add(a->arrivals, a->count, a->mem, r->queue);
    for (size_t i = 0; status != WEFT_OK && i < r->count; i++)
      same_knowledge(&r->flows[i]);
  } while (failed(r, status));
  EXPECT_OK(status);
  for (size_t i = 0; i < a->count; i++) {
    const weft_status wanted = weft_decoder_add(a->flows[i]->mirror, &a->host[i]);
    EXPECT_STATUS(a->arrivals[i].status, wanted);
  }
  for (size_t i = 0; i < r->count; i++)
    same_knowledge(&r->flows[i]);
  if (a->mem == WEFT_MEM_HOST) // not needed after the call
    memset(a->buffer.at, 0xEE, a->buffer.bytes);
  free(a->datagrams);
  if (a->mem != WEFT_MEM_HOST)
    wait_for(r);
  gpu_buffer_free(&a->buffer);
  free(a);
}

// --- recoding ---

typedef struct recoding {
  weft_batch batch;
  gpu_buffer payloads, vectors;
  bool one_piece;
  size_t stride;
} recoding;

static recoding recoding_new(scene *r, const flow *f) {
  const size_t n = f->source.id.blocks, k = f->source.id.block_bytes, m = 1 + fixture_below(20);
  recoding c = {.one_piece = fixture_below(2), .stride = n + k + fixture_below(20)};
  c.batch = (weft_batch){.count = m, .packets = calloc(m, sizeof(weft_packet))};
  c.payloads = gpu_output(r->device, lib_any_memory(), m * c.stride);
  c.batch.payload = c.payloads.at + n;
  c.batch.payload_stride = c.stride;
  c.batch.mem = c.batch.coefficients_mem = c.payloads.mem;
  c.batch.coefficients = c.payloads.at;
  c.batch.coefficients_stride = c.stride;
  if (!c.one_piece) {
    c.vectors = gpu_output(r->device, lib_any_memory(), m * c.stride);
    c.batch.coefficients = c.vectors.at;
    c.batch.coefficients_mem = c.vectors.mem;
  }
  return c;
}

// Checks that the mirror makes the same packets, as it has the same key.
static void check_key(const flow *f, size_t m, const uint8_t *vectors, const uint8_t *payloads) {
  const size_t n = f->source.id.blocks, k = f->source.id.block_bytes;
  uint8_t *all = fixture_malloc(m * n), *expect = fixture_malloc(m * k);
  const weft_batch batch = {.count = m,
                            .coefficients = all,
                            .coefficients_stride = n,
                            .payload = expect,
                            .payload_stride = k};
  EXPECT_OK(weft_decoder_recode_batch(f->mirror, &batch));
  EXPECT(memcmp(all, vectors, m * n) == 0);
  EXPECT(memcmp(expect, payloads, m * k) == 0);
  free(all), free(expect);
}

static void recoding_check(recoding *c, flow *f) {
  const size_t n = f->source.id.blocks, k = f->source.id.block_bytes, m = c->batch.count;
  uint8_t *got = gpu_read(&c->payloads), *vectors = c->one_piece ? NULL : gpu_read(&c->vectors);
  uint8_t *all = fixture_malloc(m * n), *expect = fixture_malloc(m * k);
  for (size_t i = 0; i < m; i++)
    memcpy(all + i * n, (vectors ? vectors : got) + i * c->stride, n);
  gpu_reference(expect, all, f->source.data, m, n, k);
  if (f->fixed)
    check_key(f, m, all, expect);
  for (size_t i = 0; i < m; i++) {
    const uint8_t *payload = got + i * c->stride + n;
    EXPECT(memcmp(payload, expect + i * k, k) == 0);
    const weft_packet *said = &c->batch.packets[i];
    EXPECT(said->mode == WEFT_PACKET_VECTOR);
    EXPECT((said->coefficients != NULL) == (c->batch.coefficients_mem != WEFT_MEM_DEVICE));
    EXPECT((said->payload != NULL) == (c->batch.mem != WEFT_MEM_DEVICE));
    const weft_packet packet = {.id = f->source.id,
                                .mode = WEFT_PACKET_VECTOR,
                                .coefficients = all + i * n,
                                .payload = payload};
    const size_t rank = weft_decoder_rank(f->receiver);
    const weft_status added = weft_decoder_add(f->receiver, &packet);
    EXPECT(added == WEFT_OK || added == WEFT_DEPENDENT);
    // Recoded packets never contain more than the relay knows.
    EXPECT(weft_decoder_rank(f->receiver) <= weft_decoder_rank(f->relay));
    bool any = false;
    for (size_t j = 0; j < n; j++)
      any = any || all[i * n + j] != 0;
    EXPECT(any && (added == WEFT_DEPENDENT) == (weft_decoder_rank(f->receiver) == rank));
  }
  free(got), free(vectors), free(all), free(expect), free(c->batch.packets);
  gpu_buffer_free(&c->payloads);
  if (!c->one_piece)
    gpu_buffer_free(&c->vectors);
}

static void recode(scene *r) {
  weft_decoder *decoders[SEGMENTS_MAX];
  weft_batch batches[SEGMENTS_MAX];
  recoding all[SEGMENTS_MAX];
  flow *flows[SEGMENTS_MAX];
  size_t count = 0;
  for (size_t i = 0; i < r->count; i++) {
    flows[count] = &r->flows[fixture_below(r->count)]; // possibly the same one twice
    if (weft_decoder_rank(flows[count]->relay) == 0 || fixture_below(4) == 0)
      continue;
    decoders[count] = flows[count]->relay;
    all[count] = recoding_new(r, flows[count]);
    batches[count] = all[count].batch;
    count++;
  }
  weft_status status;
  do {
    inject(r);
    status = weft_decoders_recode(decoders, batches, count, r->queue);
  } while (failed(r, status));
  EXPECT_OK(status);
  wait_for(r);
  for (size_t i = 0; i < count; i++)
    recoding_check(&all[i], flows[i]);
}

// --- reading ---

static void read_some(scene *r) {
  weft_reading readings[SEGMENTS_MAX];
  gpu_buffer out[SEGMENTS_MAX];
  for (size_t i = 0; i < r->count; i++) {
    const flow *f = &r->flows[i];
    const size_t n = f->source.id.blocks, k = f->source.id.block_bytes;
    const size_t stride = k + fixture_below(20), first = fixture_below(n + 1);
    const bool prefix = fixture_below(2);
    out[i] = gpu_output(r->device, lib_any_memory(), n * stride);
    readings[i] = (weft_reading){.decoder = f->relay,
                                 .first = prefix ? 0 : first,
                                 .count = prefix ? weft_decoder_prefix(f->mirror)
                                                 : fixture_below(n - first + 1),
                                 .out = out[i].at,
                                 .out_stride = stride,
                                 .mem = out[i].mem};
  }
  weft_status status;
  do {
    inject(r);
    status = weft_decoders_read(readings, r->count, r->queue);
  } while (failed(r, status));
  EXPECT_OK(status);
  wait_for(r);
  for (size_t i = 0; i < r->count; i++) {
    const flow *f = &r->flows[i];
    const size_t k = f->source.id.block_bytes;
    uint8_t *got = gpu_read(&out[i]);
    bool known = true;
    for (size_t b = 0; b < readings[i].count; b++)
      known = known && weft_decoder_has_block(f->mirror, readings[i].first + b);
    EXPECT_STATUS(readings[i].status, known ? WEFT_OK : WEFT_PENDING);
    for (size_t b = 0; b < readings[i].count; b++)
      if (known)
        EXPECT(memcmp(got + b * readings[i].out_stride,
                      f->source.data + (readings[i].first + b) * k, k) == 0);
      else
        for (size_t at = 0; at < k; at++)
          EXPECT(got[b * readings[i].out_stride + at] == out[i].poison);
    free(got);
    gpu_buffer_free(&out[i]);
  }
}

static bool all_complete(const scene *r) {
  for (size_t i = 0; i < r->count; i++)
    if (!weft_decoder_complete(r->flows[i].relay) || !weft_decoder_complete(r->flows[i].receiver))
      return false;
  return true;
}

static void relay_once(weft_ctx *ctx, size_t most_n, size_t most_k, bool failing) {
  scene r;
  relay_new(&r, ctx, most_n, most_k, failing);
  while (!all_complete(&r)) {
    arrive(&r);
    if (fixture_below(3) > 0)
      recode(&r);
    if (fixture_below(6) == 0)
      read_some(&r);
  }
  read_some(&r);
  wait_for(&r);
  for (size_t i = 0; i < r.count; i++) {
    const flow *f = &r.flows[i];
    fixture_check_decoded(&f->source, f->receiver);
    const size_t bytes = (size_t)f->source.id.blocks * f->source.id.block_bytes;
    const size_t from = fixture_below(bytes), some = fixture_below(bytes - from + 1);
    uint8_t *out = fixture_malloc(some);
    EXPECT_OK(weft_decoder_read(f->relay, from, some, out));
    EXPECT(memcmp(out, f->source.data + from, some) == 0);
    free(out);
  }
  relay_free(&r);
}

START_TEST(relay_many_segments) {
  if (gpu_skip_row("relay_many_segments", _i))
    return;
  fixture_start(700 + (uint64_t)_i);
  weft_ctx *ctx = fixture_ctx(gpu_row_name(_i), 1 + fixture_below(3));
  for (int round = 0; round < (lib_reduced() ? 6 : _i < 2 ? 12 : 2); round++)
    relay_once(ctx, lib_reduced() ? 40 : 140, lib_reduced() ? 300 : 1500, false);
  weft_ctx_free(ctx);
}
END_TEST

// Every call may fail, and has then changed nothing.
START_TEST(relay_with_failures) {
  if (gpu_skip("relay_with_failures"))
    return;
  fixture_start(750);
  weft_ctx *ctx = fixture_ctx("cuda", 2);
  for (int round = 0; round < (lib_reduced() ? 8 : 24); round++)
    relay_once(ctx, 40, 300, true);
  weft_ctx_free(ctx);
}
END_TEST

void lib_add_relay_tests(TCase *cases) {
  tcase_add_loop_test(cases, relay_many_segments, 0, gpu_row_count());
  tcase_add_test(cases, relay_with_failures);
  lib_add_single_relay_tests(cases);
}
