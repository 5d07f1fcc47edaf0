// SPDX-License-Identifier: Apache-2.0
#include "tests/peer/scene.h"

#include <string.h>

#include <sodium.h>

const weft_policy scene_silent = {.name = "silent"};

static void begin(scene *s, weft_engine_mode mode, weft_engine_self self, bool trust,
                  int64_t checksum_us) {
  *s = (scene){.now_us = 5 * SECOND, .step_us = STEP_US, .chance = test_rng_new(fixture_seed(), 7)};
  EXPECT_OK(weft_ctx_new(&s->ctx, NULL));
  s->rlnc = (weft_codec_rlnc){.ctx = s->ctx};
  s->codec = weft_codec_rlnc_table(&s->rlnc);
  weft_rng_chacha_seed(&s->chacha, fixture_seed(), 1);
  s->options = (weft_engine_options){.stream = 5,
                                     .blocks = N,
                                     .block_bytes = K,
                                     .mode = mode,
                                     .window = WINDOW,
                                     .batch = BATCH,
                                     .neighbours_max = MOST,
                                     .neighbours_target = 2,
                                     .addresses_max = 16,
                                     .codec = &s->codec,
                                     .policy = &scene_silent,
                                     .rate_bits_per_s = mode == WEFT_MODE_BULK ? 0 : 8 * N * K,
                                     .checksum_us = checksum_us,
                                     .trust = trust ? &weft_trust_counted : NULL};
  self.rng = weft_rng_chacha_table(&s->chacha);
  self.address = (weft_peer_address){.length = 1, .bytes = {77}};
  EXPECT_OK(weft_engine_new(s->ctx, &s->options, &self, &s->engine));
}

void scene_new(scene *s, weft_engine_mode mode, bool source, bool trust, int64_t checksum_us) {
  begin(s, mode, (weft_engine_self){.source = source}, trust, checksum_us);
}

void scene_new_source(scene *s, weft_engine_mode mode, uint64_t upload_bits_per_s) {
  const weft_engine_self self = {.source = true, .upload_bits_per_s = upload_bits_per_s};
  begin(s, mode, self, false, 0);
}

void scene_new_file(scene *s, uint64_t segments) {
  begin(s, WEFT_MODE_VOD, (weft_engine_self){.source = true, .stream_bytes = segments * N * K},
        false, 0);
}

void scene_free(scene *s) {
  weft_engine_free(s->engine);
  weft_ctx_free(s->ctx);
}

// Takes what the engine says of itself.
static void take_word(scene *s, const uint8_t *data, size_t bytes) {
  weft_message m;
  EXPECT_OK(weft_message_parse(data, bytes, 5, N, K, &m));
  if (m.kind == WEFT_MESSAGE_HELLO)
    s->hello_window = m.as.hello.window;
  if (m.kind != WEFT_MESSAGE_MAP)
    return;
  s->map_first = m.as.map.first;
  s->map_refuses = m.as.map.narrow && m.as.map.forgone == WEFT_POLICY_ASKS;
  s->map_count = m.as.map.count;
}

static size_t packets_of(const uint8_t *data, size_t bytes) {
  weft_message m;
  size_t packets = 0;
  EXPECT_OK(weft_message_parse(data, bytes, 5, N, K, &m));
  for (size_t i = 0; i < m.as.requests.count; i++) {
    const weft_request r = weft_requests_get(&m.as.requests, i);
    packets += r.kind == WEFT_REQUEST_PACKETS ? r.count : 0;
  }
  return packets;
}

static void take_output(scene *s) {
  weft_burst burst;
  while (weft_engine_output(s->engine, s->now_us, &burst) == WEFT_OK)
    for (size_t i = 0; i < burst.count; i++)
      if (burst.datagrams[i].data[1] == WEFT_MESSAGE_REQUEST) {
        s->asked[burst.neighbour]++;
        s->requested[burst.neighbour] +=
            packets_of(burst.datagrams[i].data, burst.datagrams[i].bytes);
      } else if (burst.datagrams[i].data[1] == WEFT_MESSAGE_MANIFEST) {
        s->manifests[burst.neighbour]++;
      } else if (burst.datagrams[i].data[1] <= WEFT_PACKET_SPARSE) {
        s->data[burst.neighbour]++;
        s->turns += burst.neighbour != s->last;
        s->last = burst.neighbour;
      } else {
        s->paces += burst.datagrams[i].data[1] == WEFT_MESSAGE_PACE;
        s->acks += burst.datagrams[i].data[1] == WEFT_MESSAGE_ACK;
        take_word(s, burst.datagrams[i].data, burst.datagrams[i].bytes);
      }
}

void scene_run(scene *s, int64_t for_us) {
  for (const int64_t until_us = s->now_us + for_us; s->now_us < until_us; s->now_us += s->step_us) {
    weft_event event;
    weft_engine_tick(s->engine, s->now_us);
    while (weft_engine_event(s->engine, &event)) {
      s->decoded += event.kind == WEFT_EVENT_DECODED;
      s->plays += event.kind == WEFT_EVENT_PLAY;
      if (event.kind == WEFT_EVENT_SKIP) {
        s->skip_first = s->skips++ ? s->skip_first : event.segment;
        s->skip_last = event.segment;
      }
      s->loads += event.kind == WEFT_EVENT_LOAD;
      if (event.kind == WEFT_EVENT_LOAD && s->gives)
        EXPECT_OK(
            weft_engine_load(s->engine, event.segment, (uint8_t[N * K]){0}, N * K, s->now_us));
      s->dials += event.kind == WEFT_EVENT_DIAL;
      if (event.kind == WEFT_EVENT_DIAL)
        weft_engine_dial_failed(s->engine, &event.address);
    }
    take_output(s);
  }
}

weft_status scene_say(scene *s, size_t neighbour, const uint8_t *message, size_t bytes) {
  return weft_engine_input(s->engine, neighbour, message, bytes, s->now_us);
}

void scene_map_back(scene *s, size_t neighbour, uint64_t first, uint16_t back, uint16_t count) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_map m = {.first = first,
                      .horizon = first,
                      .back = back,
                      .count = count,
                      .entry_bytes = 2,
                      .suppliers = 1,
                      .stamps = {.stamp = 1}};
  const size_t bytes = weft_map_write(&m, out);
  for (size_t i = 0; i < count; i++)
    weft_map_put_rank(out, i, 0, 0, false);
  EXPECT_OK(scene_say(s, neighbour, out, bytes));
}

void scene_map(scene *s, size_t neighbour, uint64_t first, uint16_t count) {
  scene_map_back(s, neighbour, first, (uint16_t)first, count);
}

void scene_add(scene *s, size_t neighbour, uint64_t first, uint16_t count) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_hello hello = {.stream = 5, .blocks = N, .block_bytes = K, .stamps = {.stamp = 1}};
  size_t at;
  EXPECT_OK(weft_engine_add_neighbour(s->engine, NULL, s->now_us, &at));
  EXPECT(at == neighbour);
  EXPECT_OK(scene_say(s, neighbour, out, weft_hello_write(&hello, out)));
  scene_map(s, neighbour, first, count);
}

weft_status scene_block(scene *s, size_t neighbour, uint64_t segment, size_t i, bool spoilt) {
  uint8_t payload[K], out[WEFT_DATAGRAM_MAX];
  size_t bytes;
  memset(payload, spoilt ? 0xee : (int)i, sizeof payload);
  const weft_packet packet = {
      .id = {.stream = 5, .segment = segment, .blocks = N, .block_bytes = K},
      .mode = WEFT_PACKET_SYSTEMATIC,
      .index = (uint16_t)i,
      .payload = payload};
  EXPECT_OK(weft_packet_write_session(&packet, out, sizeof out, &bytes));
  return scene_say(s, neighbour, out, bytes);
}

void scene_noise(scene *s, size_t neighbour, uint64_t segment) {
  uint8_t payload[K], out[WEFT_DATAGRAM_MAX];
  size_t bytes;
  test_rng_fill(&s->chance, payload, sizeof payload);
  const weft_packet packet = {
      .id = {.stream = 5, .segment = segment, .blocks = N, .block_bytes = K},
      .mode = WEFT_PACKET_DENSE,
      .seed = test_rng_next(&s->chance),
      .payload = payload};
  EXPECT_OK(weft_packet_write_session(&packet, out, sizeof out, &bytes));
  (void)scene_say(s, neighbour, out, bytes);
}

void scene_whole(scene *s, size_t neighbour, uint64_t segment) {
  for (size_t i = 0; i < N; i++)
    (void)scene_block(s, neighbour, segment, i, false);
}

void scene_manifest_at(scene *s, size_t neighbour, uint64_t segment, uint64_t at_us) {
  uint8_t out[WEFT_DATAGRAM_MAX], data[N * K];
  weft_manifest m = {.segment = segment,
                     .blocks = N,
                     .bytes = N * K,
                     .at_us = at_us,
                     .made_us = (uint64_t)s->now_us};
  for (size_t i = 0; i < N; i++)
    memset(data + i * K, (int)i, K);
  (void)crypto_generichash(m.digest, sizeof m.digest, data, sizeof data, NULL, 0);
  (void)scene_say(s, neighbour, out, weft_manifest_write(&m, out));
}

void scene_manifest(scene *s, size_t neighbour, uint64_t segment) {
  scene_manifest_at(s, neighbour, segment, segment * SEGMENT_US);
}

void scene_ask(scene *s, size_t neighbour, uint64_t segment, uint16_t count) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_request r = {.segment = segment, .kind = WEFT_REQUEST_PACKETS, .count = count};
  EXPECT_OK(scene_say(s, neighbour, out, weft_request_write(&r, 1, out)));
}

weft_engine_statistics scene_statistics(const scene *s) {
  weft_engine_statistics x;
  weft_engine_get_statistics(s->engine, &x);
  return x;
}
