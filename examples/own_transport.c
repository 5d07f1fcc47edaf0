// SPDX-License-Identifier: Apache-2.0
// Peers over a transport of your own. An engine takes datagrams and the time, and gives datagrams
// and events; it has no socket and reads no clock. Here a source, a relay and a viewer form a
// chain, and an array carries their datagrams, delaying each by 10 ms and losing one in ten. With
// sockets, call arrive() for what was received, and take `now` from a clock. Prints only the
// outcome. After an error nothing is freed, since the program ends.
#include <stdio.h>
#include <string.h>

#include "weft/peer_engine.h"
#include "weft/weft.h"

enum {
  PEERS = 3, // 0 is the source; each is the neighbour of the next
  BLOCKS = 32,
  BLOCK_BYTES = 1000,
  SEGMENT_BYTES = BLOCKS * BLOCK_BYTES,
  STREAM_BYTES = 40 * SEGMENT_BYTES - 123,
  WAY = 4096, // most datagrams on the way
  DELAY_US = 10000
};

typedef struct peer {
  weft_engine *engine;
  weft_rng_chacha random;
  size_t number[PEERS]; // of each neighbour, in its engine
  size_t who[2];        // the reverse: numbers are below neighbours_max
  uint64_t bytes;       // of the stream: given by the source, read by the others
  uint8_t received[STREAM_BYTES];
} peer;

typedef struct carried {
  size_t from, to, bytes;
  int64_t arrives_us;
  uint8_t data[WEFT_PACKET_ROOM_BYTES(BLOCKS, BLOCK_BYTES) + WEFT_DATAGRAM_MAX]; // either fits
} carried;

static peer peers[PEERS];
static carried way[WAY]; // a ring, in the order of sending
static size_t way_first, way_end;
static uint8_t stream[STREAM_BYTES];

static void carry(size_t from, size_t to, const weft_datagram *datagram, int64_t now_us) {
  static unsigned sent;
  if (++sent % 10 == 0 || way_end - way_first == WAY)
    return; // lost
  carried *c = &way[way_end++ % WAY];
  c->from = from;
  c->to = to;
  c->bytes = datagram->bytes;
  c->arrives_us = now_us + DELAY_US;
  memcpy(c->data, datagram->data, datagram->bytes);
}

// Hands a datagram to its receiver's engine, which counts it in its statistics if it refuses it.
static void arrive(const carried *c, int64_t now_us) {
  peer *to = &peers[c->to];
  (void)weft_engine_input(to->engine, to->number[c->from], c->data, c->bytes, now_us);
}

// Gives the source segments while its window has room.
static weft_status feed(peer *p, int64_t now_us) {
  while (p->bytes < STREAM_BYTES && weft_engine_source_ready(p->engine)) {
    const uint64_t left = STREAM_BYTES - p->bytes;
    const size_t bytes = left < SEGMENT_BYTES ? (size_t)left : SEGMENT_BYTES;
    WEFT_TRY(weft_engine_source_put(p->engine, stream + p->bytes, bytes, 0, now_us));
    p->bytes += bytes;
  }
  return WEFT_OK;
}

// Reads segments in order and releases them, which makes room for the next ones.
static weft_status drink(peer *p) {
  uint64_t segment;
  size_t bytes;
  while (weft_engine_readable(p->engine, &segment, &bytes) == WEFT_OK) {
    WEFT_TRY(weft_engine_read(p->engine, 0, bytes, p->received + p->bytes));
    WEFT_TRY(weft_engine_release(p->engine));
    p->bytes += bytes;
  }
  return WEFT_OK;
}

// Called after any input: takes events, then what can be read, then datagrams, each until there are
// no more.
static weft_status turn(size_t index, int64_t now_us) {
  peer *p = &peers[index];
  weft_event event;
  weft_burst burst;
  weft_status status;
  weft_engine_tick(p->engine, now_us);
  while (weft_engine_event(p->engine, &event))
    if (event.kind == WEFT_EVENT_NEIGHBOUR_LOST)
      return WEFT_E_STATE; // no peer leaves here
  WEFT_TRY(index == 0 ? feed(p, now_us) : drink(p));
  while ((status = weft_engine_output(p->engine, now_us, &burst)) == WEFT_OK)
    for (size_t i = 0; i < burst.count; i++)
      carry(index, p->who[burst.neighbour], &burst.datagrams[i], now_us);
  return status == WEFT_PENDING ? WEFT_OK : status;
}

static weft_status meet(size_t here, size_t there) {
  peer *p = &peers[here];
  WEFT_TRY(weft_engine_add_neighbour(p->engine, NULL, 0, &p->number[there]));
  p->who[p->number[there]] = there;
  return WEFT_OK;
}

// Returns when something is due next.
static int64_t deadline(void) {
  int64_t next_us = way_first < way_end ? way[way_first % WAY].arrives_us : WEFT_ENGINE_NEVER;
  for (size_t i = 0; i < PEERS; i++) {
    const int64_t due_us = weft_engine_deadline(peers[i].engine);
    next_us = due_us < next_us ? due_us : next_us;
  }
  return next_us;
}

static weft_status let_time_pass(void) {
  const int64_t patience_us = 60000000;
  int64_t now_us = 0;
  while (!weft_engine_done(peers[PEERS - 1].engine)) {
    const int64_t next_us = deadline();
    if (next_us > patience_us)
      return WEFT_E_STOPPED;
    now_us = next_us > now_us ? next_us : now_us;
    while (way_first < way_end && way[way_first % WAY].arrives_us <= now_us)
      arrive(&way[way_first++ % WAY], now_us);
    for (size_t i = 0; i < PEERS; i++)
      WEFT_TRY(turn(i, now_us));
  }
  return WEFT_OK;
}

static weft_status run(void) {
  weft_ctx *ctx;
  WEFT_TRY(weft_ctx_new(&ctx, NULL));
  weft_codec_rlnc rlnc = {.ctx = ctx};
  const weft_codec codec = weft_codec_rlnc_table(&rlnc);
  const weft_engine_options options = {.stream = 1,
                                       .blocks = BLOCKS,
                                       .block_bytes = BLOCK_BYTES,
                                       .mode = WEFT_MODE_BULK,
                                       .window = 8,
                                       .batch = 8,
                                       .neighbours_max = 2,
                                       .codec = &codec,
                                       .policy = &weft_policy_push};
  for (size_t i = 0; i < PEERS; i++) {
    weft_rng_chacha_seed(&peers[i].random, 1, i); // in practice: _init, with a random key
    const weft_engine_self self = {.source = i == 0,
                                   .upload_bits_per_s = 10000000,
                                   .rng = weft_rng_chacha_table(&peers[i].random)};
    WEFT_TRY(weft_engine_new(ctx, &options, &self, &peers[i].engine));
  }
  for (size_t i = 0; i + 1 < PEERS; i++) {
    WEFT_TRY(meet(i, i + 1));
    WEFT_TRY(meet(i + 1, i));
  }
  WEFT_TRY(let_time_pass());
  for (size_t i = 0; i < PEERS; i++)
    weft_engine_free(peers[i].engine);
  weft_ctx_free(ctx);
  return WEFT_OK;
}

int main(void) {
  for (size_t i = 0; i < STREAM_BYTES; i++)
    stream[i] = (uint8_t)(i * i >> 9);
  const weft_status status = run();
  const int same = status == WEFT_OK && memcmp(peers[1].received, stream, STREAM_BYTES) == 0 &&
                   memcmp(peers[2].received, stream, STREAM_BYTES) == 0;
  printf("%s: %s\n", weft_status_text(status), same ? "every byte came back" : "bytes differ");
  return same ? 0 : 1;
}
