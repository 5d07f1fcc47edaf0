// SPDX-License-Identifier: Apache-2.0
// One engine, and what neighbours say to it, word by word: for rules that a swarm hardly notices
// when they are broken.
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
  int64_t now_us;
  size_t dials, decoded, plays, skips;
  uint64_t skip_first, skip_last; // of these
  size_t data[MOST];              // coded packets, to each neighbour
  size_t asked[MOST];             // requests, to each
  size_t manifests[MOST];
  size_t paces, acks;    // to all
  size_t last, turns;    // who got the last, and how often it was another one than before
  uint16_t hello_window; // of the last HELLO, to anybody
  uint64_t map_first;    // of the last map
  uint16_t map_count;
  bool map_refuses; // all that is pushed
} scene;

// Pushes nothing and asks for nothing: what goes out was asked for.
extern const weft_policy scene_silent;

// checksum_us: of weft_engine_options; trust: polluters are banned by count.
void scene_new(scene *s, weft_engine_mode mode, bool source, bool trust, int64_t checksum_us);
void scene_new_source(scene *s, weft_engine_mode mode, uint64_t upload_bits_per_s);
// On demand, loads what is asked for.
void scene_new_file(scene *s, uint64_t segments);
void scene_free(scene *s);
// Time passes; nobody who is dialled answers.
void scene_run(scene *s, int64_t for_us);
weft_status scene_say(scene *s, size_t neighbour, const uint8_t *message, size_t bytes);
// Comes, with that number, and says the map.
void scene_add(scene *s, size_t neighbour, uint64_t first, uint16_t count);
// Says to have all segments before `first`, and nothing of the `count` from there on.
void scene_map(scene *s, size_t neighbour, uint64_t first, uint16_t count);
// The same with no more than the `back` segments before `first`.
void scene_map_back(scene *s, size_t neighbour, uint64_t first, uint16_t back, uint16_t count);
// Block i of the segment as it is; spoilt: as it is not.
weft_status scene_block(scene *s, size_t neighbour, uint64_t segment, size_t i, bool spoilt);
// All blocks of the segment as they are.
void scene_whole(scene *s, size_t neighbour, uint64_t segment);
// A combination that is none of the segment's.
void scene_noise(scene *s, size_t neighbour, uint64_t segment);
// at_us: when the segment was there at the source, as the source tells it; of its number, by
// default.
void scene_manifest_at(scene *s, size_t neighbour, uint64_t segment, uint64_t at_us);
void scene_manifest(scene *s, size_t neighbour, uint64_t segment);
void scene_ask(scene *s, size_t neighbour, uint64_t segment, uint16_t count);
weft_engine_statistics scene_statistics(const scene *s);

#endif
