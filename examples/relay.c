// SPDX-License-Identifier: Apache-2.0
// A relay for many streams: it recodes what has arrived into new packets without decoding first. On
// a machine with a GPU, payloads are in GPU memory and the CPU sees only coefficients; without one,
// the same calls work in host memory. A sink rebuilds every segment from the relay's packets alone.
//
//   sources -> datagrams, lost and out of order -> relay -> datagrams -> sink
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft/weft.h"

enum { SEGMENTS = 20, BLOCKS = 32, BLOCK_BYTES = 1200, BURST = 64, FRESH = 4 };

typedef struct scene {
  weft_ctx *ctx;           // the relay's
  weft_mem held, received; // where it keeps payloads; where datagrams arrive
  weft_queue *queue;
  uint8_t *in, *out; // (BURST) and (SEGMENTS * FRESH) datagrams of datagram_bytes
  size_t datagram_bytes;
  weft_encoder *source[SEGMENTS];
  weft_decoder *relay[SEGMENTS], *sink[SEGMENTS];
} scene;

static weft_segment_id id_of(size_t segment) {
  return (weft_segment_id){
      .stream = 7, .segment = segment, .blocks = BLOCKS, .block_bytes = BLOCK_BYTES};
}

// Opens a GPU if there is one, with datagrams in memory that it can access directly; else the CPU.
static weft_status open_relay(scene *s) {
  const weft_segment_id id = id_of(0);
  s->held = WEFT_MEM_DEVICE;
  s->received = WEFT_MEM_PINNED;
  if (weft_ctx_new(&s->ctx, &(weft_ctx_options){.backend = "cuda", .threads = 2}) != WEFT_OK) {
    WEFT_TRY(weft_ctx_new(&s->ctx, &(weft_ctx_options){.threads = 2}));
    s->held = s->received = WEFT_MEM_HOST;
  }
  s->datagram_bytes = weft_packet_bytes(&id, WEFT_PACKET_VECTOR);
  void *in, *out;
  WEFT_TRY(weft_queue_new(s->ctx, &s->queue));
  WEFT_TRY(weft_alloc(s->ctx, s->received, BURST * s->datagram_bytes, &in));
  WEFT_TRY(weft_alloc(s->ctx, s->received, SEGMENTS * FRESH * s->datagram_bytes, &out));
  s->in = in;
  s->out = out;
  return WEFT_OK;
}

// Receives a burst of datagrams of random segments; one in five is lost, one in 16 damaged.
static weft_status receive(scene *s, size_t *count) {
  for (*count = 0; *count < BURST;) {
    size_t bytes;
    uint8_t *datagram = s->in + *count * s->datagram_bytes;
    WEFT_TRY(weft_encoder_next(s->source[rand() % SEGMENTS], datagram, s->datagram_bytes, &bytes));
    if (rand() % 16 == 0)
      datagram[rand() % (int)WEFT_WIRE_HEADER_BYTES] ^= 0x80;
    *count += rand() % 5 != 0;
  }
  return WEFT_OK;
}

// Returns whether a datagram, which may come from anywhere, is a packet of a segment of ours.
static bool parse(const scene *s, const uint8_t *datagram, weft_packet *packet) {
  return weft_packet_parse(datagram, s->datagram_bytes, packet) == WEFT_OK &&
         packet->id.segment < SEGMENTS;
}

// Adds all that arrived in one call, ignoring what cannot be used.
static weft_status take(scene *s, size_t count) {
  weft_arrival arrivals[BURST];
  size_t taken = 0;
  for (size_t i = 0; i < count; i++) {
    weft_packet *packet = &arrivals[taken].packet;
    if (parse(s, s->in + i * s->datagram_bytes, packet))
      arrivals[taken++].decoder = s->relay[packet->id.segment];
  }
  WEFT_TRY(weft_decoders_add(arrivals, taken, s->received, s->queue));
  for (size_t i = 0; i < taken; i++) { // foreign: from another stream
    const weft_status added = arrivals[i].status;
    if (added != WEFT_DEPENDENT && added != WEFT_E_FOREIGN)
      WEFT_TRY(added);
  }
  return WEFT_OK;
}

// Makes FRESH packets of every segment with at least one packet, in one product.
static weft_status recode(scene *s, size_t *count) {
  weft_decoder *relay[SEGMENTS];
  weft_batch batches[SEGMENTS];
  size_t segment[SEGMENTS];
  *count = 0;
  for (size_t i = 0; i < SEGMENTS; i++) {
    if (weft_decoder_rank(s->relay[i]) == 0)
      continue;
    uint8_t *vector = s->out + *count * FRESH * s->datagram_bytes + WEFT_WIRE_HEADER_BYTES;
    batches[*count] = (weft_batch){.count = FRESH,
                                   .coefficients = vector,
                                   .coefficients_stride = s->datagram_bytes,
                                   .coefficients_mem = s->received,
                                   .payload = vector + BLOCKS,
                                   .payload_stride = s->datagram_bytes,
                                   .mem = s->received};
    segment[*count] = i;
    relay[(*count)++] = s->relay[i];
  }
  WEFT_TRY(weft_decoders_recode(relay, batches, *count, s->queue));
  WEFT_TRY(weft_queue_wait(s->queue)); // a server would poll
  for (size_t i = 0; i < *count * FRESH; i++) {
    uint8_t *datagram = s->out + i * s->datagram_bytes, *vector = datagram + WEFT_WIRE_HEADER_BYTES;
    const weft_packet packet = {.id = id_of(segment[i / FRESH]),
                                .mode = WEFT_PACKET_VECTOR,
                                .coefficients = vector,
                                .payload = vector + BLOCKS};
    size_t written;
    WEFT_TRY(weft_packet_write(&packet, datagram, s->datagram_bytes, &written));
  }
  return WEFT_OK;
}

static weft_status deliver(scene *s, size_t count, size_t *complete) {
  for (size_t i = 0; i < count * FRESH; i++) {
    weft_packet packet;
    if (!parse(s, s->out + i * s->datagram_bytes, &packet))
      return WEFT_E_MALFORMED; // the relay is trusted
    const weft_status added = weft_decoder_add(s->sink[packet.id.segment], &packet);
    if (added != WEFT_DEPENDENT)
      WEFT_TRY(added);
  }
  *complete = 0;
  for (size_t i = 0; i < SEGMENTS; i++)
    *complete += weft_decoder_complete(s->sink[i]);
  return WEFT_OK;
}

static weft_status run(uint8_t *got, const uint8_t *data) {
  const size_t bytes = (size_t)BLOCKS * BLOCK_BYTES;
  scene s = {0};
  weft_ctx *ends; // of the sources and the sink
  weft_segment *segments[SEGMENTS];
  WEFT_TRY(open_relay(&s));
  WEFT_TRY(weft_ctx_new(&ends, NULL));
  for (size_t i = 0; i < SEGMENTS; i++) {
    const weft_segment_id id = id_of(i);
    const weft_segment_options segment = {.id = id, .data = data + i * bytes, .bytes = bytes};
    WEFT_TRY(weft_segment_new(ends, &segment, NULL, &segments[i]));
    WEFT_TRY(weft_encoder_new(segments[i], NULL, &s.source[i]));
    const weft_decoder_options relay = {.id = id, .mem = s.held}, sink = {.id = id};
    WEFT_TRY(weft_decoder_new(s.ctx, &relay, &s.relay[i]));
    WEFT_TRY(weft_decoder_new(ends, &sink, &s.sink[i]));
  }
  for (size_t complete = 0, count; complete < SEGMENTS;) {
    WEFT_TRY(receive(&s, &count));
    WEFT_TRY(take(&s, count));
    WEFT_TRY(recode(&s, &count));
    WEFT_TRY(deliver(&s, count, &complete));
  }
  for (size_t i = 0; i < SEGMENTS; i++) {
    WEFT_TRY(weft_decoder_read(s.sink[i], 0, bytes, got + i * bytes));
    weft_decoder_free(s.relay[i]);
    weft_decoder_free(s.sink[i]);
    weft_encoder_free(s.source[i]);
    weft_segment_free(segments[i]);
  }
  weft_queue_free(s.queue);
  weft_free(s.ctx, s.received, s.in);
  weft_free(s.ctx, s.received, s.out);
  weft_ctx_free(s.ctx);
  weft_ctx_free(ends);
  return WEFT_OK;
}

int main(void) {
  const size_t all = (size_t)SEGMENTS * BLOCKS * BLOCK_BYTES;
  uint8_t *data = malloc(all), *got = calloc(all, 1);
  if (!data || !got)
    return 1;
  for (size_t i = 0; i < all; i++)
    data[i] = (uint8_t)rand();
  const weft_status status = run(got, data);
  const int same = status == WEFT_OK && memcmp(got, data, all) == 0;
  printf("%s: %s\n", weft_status_text(status), same ? "every byte came back" : "bytes differ");
  free(data);
  free(got);
  return same ? 0 : 1;
}
