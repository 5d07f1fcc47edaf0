// SPDX-License-Identifier: Apache-2.0
// One engine, and neighbours whose messages the test writes one by one: for rules whose breach a
// swarm hardly notices.
#ifndef WEFT_TESTS_PEER_SCENE_H
#define WEFT_TESTS_PEER_SCENE_H

#include "peer/engine/messages.h"
#include "tests/peer/fixture.h"
#include "tests/support/test_rng.h"

enum { N = 16, K = 64, WINDOW = 16, BATCH = 8, SECOND = 1000000, STEP_US = 10000, MOST = 4 };
enum { SEGMENT_US = SECOND };

typedef struct scene {
  weft_ctx *ctx;
  weft_codec_rlnc rlnc;
  weft_codec codec;
  weft_engine_options options;
  weft_rng_chacha chacha;
  weft_engine *engine;
  test_rng chance;
  int64_t now_us, step_us; // step_us: how often it runs; STEP_US unless it is changed
  size_t dials, decoded, plays, skips, loads;
  bool gives;                     // what it is asked to load
  uint64_t skip_first, skip_last; // segments skipped
  size_t data[MOST];              // coded packets, to each neighbour
  size_t asked[MOST];             // requests, to each
  size_t requested[MOST];         // packets that were requested, from each
  size_t manifests[MOST];
  size_t paces, acks;    // to all
  size_t last, turns;    // which neighbour got the last, and how often that changed
  uint16_t hello_window; // of the last HELLO, to anybody
  uint64_t map_first;    // of the last map
  uint16_t map_count;
  bool map_refuses; // it refuses all pushes
} scene;

// Pushes and requests nothing, so all that is sent was requested.
extern const weft_policy scene_silent;

// checksum_us: as in weft_engine_options; trust: polluters are banned by count.
void scene_new(scene *s, weft_engine_mode mode, bool source, bool trust, int64_t checksum_us);
void scene_new_source(scene *s, weft_engine_mode mode, uint64_t upload_bits_per_s);
// Makes an on-demand source that loads what is requested.
void scene_new_file(scene *s, uint64_t segments);
void scene_free(scene *s);
// Lets time pass; dialled addresses do not answer.
void scene_run(scene *s, int64_t for_us);
weft_status scene_say(scene *s, size_t neighbour, const uint8_t *message, size_t bytes);
// Adds a neighbour with that number, which sends the map.
void scene_add(scene *s, size_t neighbour, uint64_t first, uint16_t count);
// Claims to have all segments before `first`, and nothing of the `count` from there on.
void scene_map(scene *s, size_t neighbour, uint64_t first, uint16_t count);
// The same with only the `back` segments before `first`.
void scene_map_back(scene *s, size_t neighbour, uint64_t first, uint16_t back, uint16_t count);
// Sends block i of the segment, uncoded; spoilt: a wrong one.
weft_status scene_block(scene *s, size_t neighbour, uint64_t segment, size_t i, bool spoilt);
// Sends all blocks of the segment, uncoded.
void scene_whole(scene *s, size_t neighbour, uint64_t segment);
// Sends a combination that does not belong to the segment.
void scene_noise(scene *s, size_t neighbour, uint64_t segment);
// at_us: when the source had the segment, by its clock; the default follows from the segment's
// number.
void scene_manifest_at(scene *s, size_t neighbour, uint64_t segment, uint64_t at_us);
void scene_manifest(scene *s, size_t neighbour, uint64_t segment);
void scene_ask(scene *s, size_t neighbour, uint64_t segment, uint16_t count);
weft_engine_statistics scene_statistics(const scene *s);

#endif
