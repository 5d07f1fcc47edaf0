// SPDX-License-Identifier: Apache-2.0
// Feeds arbitrary datagrams, from two neighbours and at any times, to a peer's engine, a receiver
// or a source. It must stay within its memory and bounds, and send only datagrams.
//
// Input: one byte of options (bit 0: a source; bits 1 and 2: the mode, 3: bulk, with segments
// loaded for others; bit 3: trust; bit 4: checksums; bit 5: blocks without a code; bit 6:
// congestion control; bit 7: pull); then steps of one byte for neighbour (bit 0) and time (the
// rest, in 4 ms), length of the datagram, datagram.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "weft/peer_engine.h"
#include "weft/peer_rng.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BLOCKS = 4, BLOCK_BYTES = 16, WINDOW = 3, BURSTS = 256, NEIGHBOURS = 2 };
enum { SEGMENT = BLOCKS * BLOCK_BYTES, HELD = 32, FILE_BYTES = HELD * SEGMENT - 5 };

// A file: the source's, or the one that a receiver has written.
typedef struct file {
  uint8_t bytes[HELD * SEGMENT];
  size_t length[HELD]; // of each segment
} file;

static void require(int condition) {
  if (!condition)
    abort();
}

static void feed(weft_engine *engine, int64_t now_us) {
  static const uint8_t segment[BLOCKS * BLOCK_BYTES] = {1, 2, 3};
  for (int i = 0; i < WINDOW && weft_engine_source_ready(engine);
       i++) // paced: there is always room
    require(weft_engine_source_put(engine, segment, sizeof segment, now_us, now_us) == WEFT_OK);
}

// Loads a segment for others. A receiver cannot give one that it never wrote or had no room for.
static void load(weft_engine *engine, const file *f, uint64_t segment, int64_t now_us) {
  const bool held = segment < HELD && f->length[segment];
  const weft_status status =
      weft_engine_load(engine, segment, held ? f->bytes + segment * SEGMENT : NULL,
                       held ? f->length[segment] : 0, now_us);
  require(status == WEFT_OK); // it is what was read before
}

static void read_all(weft_engine *engine, file *f) {
  uint64_t segment;
  size_t bytes;
  uint8_t out[SEGMENT];
  while (weft_engine_readable(engine, &segment, &bytes) == WEFT_OK) {
    require(bytes >= 1 && bytes <= sizeof out);
    require(weft_engine_read(engine, 0, bytes, out) == WEFT_OK);
    if (segment < HELD) {
      memcpy(f->bytes + segment * SEGMENT, out, bytes);
      f->length[segment] = bytes;
    }
    require(weft_engine_release(engine) == WEFT_OK);
  }
}

static void turn(weft_engine *engine, int source, file *f, int64_t now_us) {
  weft_event event;
  weft_burst burst;
  weft_engine_tick(engine, now_us);
  if (source)
    feed(engine, now_us);
  else
    read_all(engine, f);
  while (weft_engine_event(engine, &event)) {
    require(event.kind <= WEFT_EVENT_LONELY && event.neighbour < NEIGHBOURS);
    if (event.kind == WEFT_EVENT_LOAD)
      load(engine, f, event.segment, now_us);
  }
  // The pace allows one data burst per turn, and each neighbour has a few messages due.
  weft_status status = weft_engine_output(engine, now_us, &burst);
  for (int i = 0; status == WEFT_OK; i++) {
    require(i < BURSTS && burst.neighbour < NEIGHBOURS && burst.count >= 1);
    for (size_t d = 0; d < burst.count; d++)
      require(burst.datagrams[d].bytes >= 4 && burst.datagrams[d].data[0] == WEFT_WIRE_VERSION);
    status = weft_engine_output(engine, now_us, &burst);
  }
  require(status == WEFT_PENDING); // a node stops on any other status
  require(weft_engine_deadline(engine) >= 0);
}

static void check(const weft_engine *engine) {
  weft_engine_statistics s;
  weft_engine_get_statistics(engine, &s);
  require(s.received_packets >=
          s.received_innovative + s.received_dependent + s.received_late + s.received_outside);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  weft_ctx *ctx;
  weft_engine *engine;
  weft_rng_chacha chacha;
  if (size == 0)
    return 0;
  const weft_ctx_options options = {.backend = "scalar"};
  require(weft_ctx_new(&ctx, &options) == WEFT_OK);
  weft_codec_rlnc rlnc = {.ctx = ctx};
  weft_codec_blocks blocks = {.ctx = ctx};
  const bool plain = (data[0] & 32) != 0, trust = (data[0] & 8) != 0;
  const weft_codec codec = plain ? weft_codec_blocks_table(&blocks) : weft_codec_rlnc_table(&rlnc);
  weft_rng_chacha_seed(&chacha, 1, 1);
  const weft_rng rng = weft_rng_chacha_table(&chacha);
  const int source = data[0] & 1;
  const bool loads = (data[0] >> 1 & 3u) == 3;
  const unsigned mode = loads ? WEFT_MODE_BULK : data[0] >> 1 & 3u;
  file f = {.length = {0}};
  for (size_t i = 0; i < HELD && source; i++)
    f.length[i] = i + 1 < HELD ? SEGMENT : FILE_BYTES - i * SEGMENT;
  const weft_engine_options how = {.stream = 7,
                                   .blocks = BLOCKS,
                                   .block_bytes = BLOCK_BYTES,
                                   .mode = (weft_engine_mode)mode,
                                   .window = WINDOW,
                                   .batch = 2,
                                   .neighbours_max = NEIGHBOURS + 1, // a call is returned
                                   .neighbours_target = NEIGHBOURS,
                                   .addresses_max = 4,
                                   .requests_max = 4,
                                   .congestion = (data[0] & 64) != 0,
                                   .rate_bits_per_s = 100000,
                                   .lag_us = plain ? 50000 : 200000, // shorter than startup too
                                   .startup_us = 100000,
                                   // Otherwise nothing is judged before it is played.
                                   .spread_us = 20000,
                                   .patience_us = 300000,
                                   .checksum_us = trust && data[0] & 16 ? 20000 : 0,
                                   .codec = &codec,
                                   .policy = plain           ? &weft_policy_rarest
                                             : data[0] & 128 ? &weft_policy_pull
                                                             : &weft_policy_push,
                                   .trust = trust ? &weft_trust_counted : NULL};
  const weft_engine_self self = {.source = source != 0,
                                 .stream_bytes = loads && source ? FILE_BYTES : 0,
                                 .rereads = loads && !source,
                                 .upload_bits_per_s = 1000000,
                                 .rng = rng};
  require(weft_engine_new(ctx, &how, &self, &engine) == WEFT_OK);
  for (uint8_t i = 0; i < NEIGHBOURS; i++) {
    size_t neighbour;
    const weft_neighbour_options there = {.address = {.length = 1, .bytes = {(uint8_t)('a' + i)}}};
    require(weft_engine_add_neighbour(engine, &there, 0, &neighbour) == WEFT_OK);
  }
  int64_t now_us = 0;
  for (size_t at = 1; at + 2 <= size;) {
    const size_t from = data[at] & 1u;
    size_t bytes = data[at + 1];
    now_us += (int64_t)(data[at] >> 1) * 4000;
    at += 2;
    bytes = bytes < size - at ? bytes : size - at;
    const weft_status status = weft_engine_input(engine, from, data + at, bytes, now_us);
    require(status < WEFT_E_NOMEM && status != WEFT_E_BUFFER && status != WEFT_E_ARGUMENT);
    turn(engine, source, &f, now_us);
    at += bytes;
  }
  check(engine);
  weft_engine_free(engine);
  weft_ctx_free(ctx);
  return 0;
}
