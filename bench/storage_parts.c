// SPDX-License-Identifier: Apache-2.0
// The host parts of `weft bench storage`.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "bench/storage_cases.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *shape_title(char *out, size_t room, size_t k, size_t m, size_t bytes,
                               const char *what) {
  const bool whole = bytes % 1024 == 0;
  snprintf(out, room, "(%zu, %zu), %zu %s shards%s", k, m, whole ? bytes / 1024 : bytes,
           whole ? "KiB" : "byte", what);
  return out;
}

static bool is_rs(const weft_bench_storage_peer *peer) {
  return strcmp(peer->code, "cauchy_good") != 0;
}

// Adds every Reed-Solomon peer's case, and the ratio of weft's case `own` to it.
static void add_peers(weft_bench_storage_run *run, weft_bench_scene *scene,
                      weft_bench_storage_operation operation, const char *what, int own,
                      size_t threads) {
  for (size_t p = 0; p < run->peer_count; p++) {
    if (!is_rs(run->peers[p]) || (threads > 1 && run->peers[p]->one_caller))
      continue;
    const int peer = weft_bench_scene_add_peer(scene, run->peers[p], operation, 0, 0, threads);
    if (peer >= 0)
      weft_bench_group_ask(weft_bench_scene_group(scene),
                           weft_bench_scene_text(scene, "%s: weft / %s", what, run->peers[p]->name),
                           own, peer, WEFT_BENCH_INPUT);
  }
}

static void no_packet(size_t k, size_t m, size_t w, size_t bytes) {
  printf(
      "cauchy_good, (%zu, %zu), w = %zu is left out: no packet size divides shards of %zu bytes\n",
      k, m, w, bytes);
}

// Encoding and recovery of one shape by weft and all peers.
static void both_ways(weft_bench_storage_run *run, size_t k, size_t m, size_t bytes,
                      const char *what) {
  char title[128];
  weft_bench_scene *const scene =
      weft_bench_scene_new(run, shape_title(title, sizeof title, k, m, bytes, what), k, m, bytes);
  weft_bench_group *const group = weft_bench_scene_group(scene);
  weft_bench_scene_add_bounds(scene, false);
  const int encode = weft_bench_scene_add_own(
      scene, &(weft_bench_own){
                 .operation = WEFT_BENCH_STORAGE_ENCODE, .code = "cauchy", .variant = "cauchy"});
  const int recover = weft_bench_scene_add_own(
      scene, &(weft_bench_own){
                 .operation = WEFT_BENCH_STORAGE_RECOVER, .code = "cauchy", .variant = "cauchy"});
  const int cached =
      weft_bench_scene_add_own(scene, &(weft_bench_own){.operation = WEFT_BENCH_STORAGE_RECOVER,
                                                        .code = "cauchy",
                                                        .cached = true,
                                                        .variant = "cauchy, cached plan"});
  weft_bench_group_ask(group, "recover, inversion counted in / encode", recover, encode,
                       WEFT_BENCH_INPUT);
  weft_bench_group_ask(group, "recover, plan cached / encode", cached, encode, WEFT_BENCH_INPUT);
  add_peers(run, scene, WEFT_BENCH_STORAGE_ENCODE, "encode", encode, 1);
  add_peers(run, scene, WEFT_BENCH_STORAGE_RECOVER, "recover", recover, 1);
  weft_bench_scene_run(scene);
}

static void all_shapes(weft_bench_storage_run *run, const weft_bench_sizes_of_code *preset,
                       size_t preset_count, const size_t *bytes, size_t bytes_count,
                       void (*one)(weft_bench_storage_run *run, size_t k, size_t m, size_t bytes,
                                   const char *what)) {
  weft_bench_sizes_of_code shapes[WEFT_BENCH_STORAGE_SHAPES];
  weft_bench_sizes sizes = run->options.bytes;
  const size_t count =
      weft_bench_storage_shapes(run, preset, preset_count, shapes, WEFT_BENCH_STORAGE_SHAPES);
  weft_bench_sizes_default(&sizes, bytes, bytes_count);
  for (size_t b = 0; b < sizes.count; b++)
    for (size_t i = 0; i < count; i++)
      one(run, shapes[i].k, shapes[i].m, sizes.value[b], "");
}

typedef struct pair {
  int encode, recover;
} pair;

// Adds the two cases of weft (`peer` NULL) or a peer, on the scene's current layout of shards.
static pair layout_pair(weft_bench_scene *scene, const weft_bench_storage_peer *peer,
                        const char *variant) {
  if (peer)
    return (pair){
        weft_bench_scene_add_peer(scene, peer, WEFT_BENCH_STORAGE_ENCODE, 0, 0, 1),
        weft_bench_scene_add_peer(scene, peer, WEFT_BENCH_STORAGE_RECOVER, 0, 0, 1),
    };
  weft_bench_own own = {.code = "cauchy", .variant = variant};
  pair p;
  own.operation = WEFT_BENCH_STORAGE_ENCODE;
  p.encode = weft_bench_scene_add_own(scene, &own);
  own.operation = WEFT_BENCH_STORAGE_RECOVER;
  p.recover = weft_bench_scene_add_own(scene, &own);
  return p;
}

static void layout_ratios(weft_bench_scene *scene, const char *who, pair apart, pair beside) {
  weft_bench_group *const group = weft_bench_scene_group(scene);
  if (apart.encode >= 0 && beside.encode >= 0)
    weft_bench_group_ask(group,
                         weft_bench_scene_text(scene, "encode: %s, apart / side by side", who),
                         apart.encode, beside.encode, WEFT_BENCH_INPUT);
  if (apart.recover >= 0 && beside.recover >= 0)
    weft_bench_group_ask(group,
                         weft_bench_scene_text(scene, "recover: %s, apart / side by side", who),
                         apart.recover, beside.recover, WEFT_BENCH_INPUT);
}

// Shards side by side, and weft_code_stride apart.
static void layout_one(weft_bench_storage_run *run, size_t k, size_t m, size_t bytes,
                       const char *what) {
  char title[128];
  (void)what;
  weft_bench_scene *const scene = weft_bench_scene_new(
      run, shape_title(title, sizeof title, k, m, bytes, ", side by side and apart"), k, m, bytes);
  weft_bench_scene_add_bounds(scene, false);
  pair beside[1 + WEFT_BENCH_STORAGE_PEERS];
  for (size_t p = 0; p <= run->peer_count; p++)
    if (p == 0 || is_rs(run->peers[p - 1]))
      beside[p] = layout_pair(scene, p ? run->peers[p - 1] : NULL, "cauchy");
  weft_bench_scene_lay_apart(scene);
  for (size_t p = 0; p <= run->peer_count; p++)
    if (p == 0 || is_rs(run->peers[p - 1]))
      layout_ratios(scene, p ? run->peers[p - 1]->name : "weft",
                    layout_pair(scene, p ? run->peers[p - 1] : NULL, "cauchy, apart"), beside[p]);
  weft_bench_scene_run(scene);
}

void weft_bench_storage_layout(weft_bench_storage_run *run) {
  static const weft_bench_sizes_of_code shapes[] = {{4, 2},  {6, 3},   {10, 4},  {16, 4}, {24, 6},
                                                    {32, 8}, {16, 16}, {48, 12}, {64, 16}};
  static const size_t bytes[] = {4 << 10, 16 << 10, 64 << 10, 1 << 20};
  all_shapes(run, shapes, COUNT(shapes), bytes, COUNT(bytes), layout_one);
}

void weft_bench_storage_encode(weft_bench_storage_run *run) {
  static const weft_bench_sizes_of_code shapes[] = {{4, 2},  {6, 3},  {10, 4}, {12, 4},
                                                    {16, 4}, {32, 8}, {64, 16}};
  static const size_t bytes[] = {64 << 10, 1 << 20};
  all_shapes(run, shapes, COUNT(shapes), bytes, COUNT(bytes), both_ways);
}

void weft_bench_storage_small(weft_bench_storage_run *run) {
  static const weft_bench_sizes_of_code shapes[] = {{10, 4}};
  static const size_t bytes[] = {4 << 10};
  all_shapes(run, shapes, COUNT(shapes), bytes, COUNT(bytes), both_ways);
}

// ---------------------------------------------------------------------------------------------

static void update_one(weft_bench_storage_run *run, size_t k, size_t m, size_t bytes,
                       const char *what) {
  char title[128];
  (void)what;
  weft_bench_scene *const scene = weft_bench_scene_new(
      run, shape_title(title, sizeof title, k, m, bytes, ": one source into the parity"), k, m,
      bytes);
  weft_bench_scene_add_bounds(scene, true);
  const int own = weft_bench_scene_add_own(
      scene, &(weft_bench_own){
                 .operation = WEFT_BENCH_STORAGE_ADD_DELTA, .code = "cauchy", .variant = "cauchy"});
  const int update = weft_bench_scene_add_own(
      scene, &(weft_bench_own){
                 .operation = WEFT_BENCH_STORAGE_UPDATE, .code = "cauchy", .variant = "cauchy"});
  add_peers(run, scene, WEFT_BENCH_STORAGE_ADD_DELTA, "add delta", own, 1);
  weft_bench_group_ask(weft_bench_scene_group(scene), "update by both / add delta", update, own,
                       WEFT_BENCH_INPUT);
  weft_bench_scene_run(scene);
}

void weft_bench_storage_update(weft_bench_storage_run *run) {
  static const weft_bench_sizes_of_code shapes[] = {{10, 2}, {10, 4}, {10, 8}};
  static const size_t bytes[] = {64 << 10};
  all_shapes(run, shapes, COUNT(shapes), bytes, COUNT(bytes), update_one);
}

// ---------------------------------------------------------------------------------------------

static void threads_one(weft_bench_storage_run *run, size_t k, size_t m, size_t bytes,
                        const char *what) {
  char title[128];
  (void)what;
  weft_bench_scene *const scene = weft_bench_scene_new(
      run, shape_title(title, sizeof title, k, m, bytes, ", threads"), k, m, bytes);
  weft_bench_scene_add_bounds(scene, false);
  int one = -1;
  for (size_t t = 0; t < run->options.threads.count; t++) {
    const size_t threads = run->options.threads.value[t];
    const int own = weft_bench_scene_add_own(scene, &(weft_bench_own){
                                                        .operation = WEFT_BENCH_STORAGE_ENCODE,
                                                        .code = "cauchy",
                                                        .threads = threads,
                                                        .variant = "cauchy",
                                                    });
    one = threads == 1 ? own : one;
    if (threads > 1)
      weft_bench_group_ask(weft_bench_scene_group(scene),
                           weft_bench_scene_text(scene, "encode: %zu threads / one", threads), own,
                           one, WEFT_BENCH_INPUT);
    add_peers(run, scene, WEFT_BENCH_STORAGE_ENCODE,
              weft_bench_scene_text(scene, "encode, %zu threads", threads), own, threads);
  }
  weft_bench_scene_run(scene);
}

void weft_bench_storage_threads(weft_bench_storage_run *run) {
  static const weft_bench_sizes_of_code shapes[] = {{10, 4}};
  static const size_t bytes[] = {64 << 10, 1 << 20};
  all_shapes(run, shapes, COUNT(shapes), bytes, COUNT(bytes), threads_one);
}

// ---------------------------------------------------------------------------------------------

// One operation on each number of threads, in a scene of its own: verification needs parity that no
// other case changes.
static void parity_threads(weft_bench_storage_run *run, size_t k, size_t m, size_t bytes,
                           const weft_bench_own *what, const char *operation) {
  char title[128];
  weft_bench_scene *const scene = weft_bench_scene_new(
      run,
      shape_title(title, sizeof title, k, m, bytes,
                  what->operation == WEFT_BENCH_STORAGE_VERIFY ? ": verify" : ": update"),
      k, m, bytes);
  weft_bench_scene_add_bounds(scene, what->operation == WEFT_BENCH_STORAGE_UPDATE);
  int one = -1;
  for (size_t t = 0; t < run->options.threads.count; t++) {
    weft_bench_own own = *what;
    own.threads = run->options.threads.value[t];
    const int added = weft_bench_scene_add_own(scene, &own);
    one = own.threads == 1 ? added : one;
    if (own.threads > 1)
      weft_bench_group_ask(
          weft_bench_scene_group(scene),
          weft_bench_scene_text(scene, "%s: %zu threads / one", operation, own.threads), added, one,
          WEFT_BENCH_INPUT);
  }
  weft_bench_scene_run(scene);
}

static void parity_one(weft_bench_storage_run *run, size_t k, size_t m, size_t bytes,
                       const char *what) {
  enum { PACKET = 512 };
  static const char *const names[] = {"update", "verify"};
  (void)what;
  for (size_t i = 0; i < COUNT(names); i++) {
    weft_bench_own own = {.operation = i ? WEFT_BENCH_STORAGE_VERIFY : WEFT_BENCH_STORAGE_UPDATE,
                          .code = "cauchy",
                          .variant = "cauchy"};
    parity_threads(run, k, m, bytes, &own, names[i]);
    own.code = "cauchy_good";
    own.variant = "cauchy_good:w=8:packet=512";
    own.w = 8;
    own.packet_bytes = PACKET;
    if (bytes % (own.w * PACKET) == 0)
      parity_threads(run, k, m, bytes, &own, names[i]);
    else
      no_packet(k, m, own.w, bytes);
  }
}

void weft_bench_storage_parity(weft_bench_storage_run *run) {
  static const weft_bench_sizes_of_code shapes[] = {{10, 4}};
  static const size_t bytes[] = {64 << 10, 1 << 20};
  all_shapes(run, shapes, COUNT(shapes), bytes, COUNT(bytes), parity_one);
}

// ---------------------------------------------------------------------------------------------
// CRS: each library has its own best packet size, found by a short measurement beforehand.

static const size_t packets[] = {64,   128,  256,   512,   1024,  2048,
                                 4096, 8192, 16384, 32768, 65536, 131072};

static weft_bench_storage_peer *crs_peer(const weft_bench_storage_run *run) {
  for (size_t p = 0; p < run->peer_count; p++)
    if (!is_rs(run->peers[p]))
      return run->peers[p];
  return NULL;
}

// Returns the packet size at which `peer`, or weft if it is NULL, encodes fastest.
static size_t best_packet(weft_bench_storage_run *run, weft_bench_storage_peer *peer,
                          bool uncompiled, size_t k, size_t m, size_t w, size_t bytes) {
  size_t best = 0;
  double best_s = 0;
  for (size_t i = 0; i < COUNT(packets); i++) {
    if (bytes % (w * packets[i]) != 0)
      continue;
    weft_bench_scene *const scene = weft_bench_scene_new(run, "", k, m, bytes);
    if (peer)
      weft_bench_scene_add_peer(scene, peer, WEFT_BENCH_STORAGE_ENCODE, w, packets[i], 1);
    else
      weft_bench_scene_add_own(scene, &(weft_bench_own){.operation = WEFT_BENCH_STORAGE_ENCODE,
                                                        .code = "cauchy_good",
                                                        .w = w,
                                                        .packet_bytes = packets[i],
                                                        .uncompiled = uncompiled,
                                                        .variant = ""});
    const double seconds = weft_bench_scene_try(scene);
    if (seconds > 0 && (best == 0 || seconds < best_s)) {
      best = packets[i];
      best_s = seconds;
    }
  }
  return best;
}

static int add_crs(weft_bench_scene *scene, weft_bench_storage_operation operation, size_t w,
                   size_t packet, bool cached) {
  return weft_bench_scene_add_own(
      scene, &(weft_bench_own){.operation = operation,
                               .code = "cauchy_good",
                               .w = w,
                               .packet_bytes = packet,
                               .cached = cached,
                               .variant = weft_bench_scene_text(
                                   scene, "cauchy_good:w=%zu:packet=%zu", w, packet)});
}

// Adds what machine code gains: the same by program or by blocks, at the best packet size for that.
static void add_uncompiled(weft_bench_storage_run *run, weft_bench_scene *scene, size_t k, size_t m,
                           size_t w, size_t bytes, int encode, int recover) {
  weft_bench_group *const group = weft_bench_scene_group(scene);
  const size_t packet = best_packet(run, NULL, true, k, m, w, bytes);
  weft_bench_own own = {.operation = WEFT_BENCH_STORAGE_ENCODE,
                        .code = "cauchy_good",
                        .w = w,
                        .packet_bytes = packet,
                        .uncompiled = true,
                        .variant = weft_bench_scene_text(
                            scene, "cauchy_good:w=%zu:packet=%zu, not compiled", w, packet)};
  weft_bench_group_ask(group, "encode, each at its best packet size: compiled / not", encode,
                       weft_bench_scene_add_own(scene, &own), WEFT_BENCH_INPUT);
  own.operation = WEFT_BENCH_STORAGE_RECOVER;
  own.cached = true;
  weft_bench_group_ask(group, "recover, plan cached: compiled / not", recover,
                       weft_bench_scene_add_own(scene, &own), WEFT_BENCH_INPUT);
}

static void crs_one(weft_bench_storage_run *run, size_t k, size_t m, size_t w, size_t bytes) {
  char title[128], what[32];
  weft_bench_storage_peer *const peer = crs_peer(run);
  const size_t own_packet = best_packet(run, NULL, false, k, m, w, bytes);
  const size_t peer_packet = peer ? best_packet(run, peer, false, k, m, w, bytes) : 0;
  if (!own_packet) {
    no_packet(k, m, w, bytes);
    return;
  }
  snprintf(what, sizeof what, ", CRS, w = %zu", w);
  weft_bench_scene *const scene =
      weft_bench_scene_new(run, shape_title(title, sizeof title, k, m, bytes, what), k, m, bytes);
  weft_bench_group *const group = weft_bench_scene_group(scene);
  weft_bench_scene_add_bounds(scene, false);
  const int own = add_crs(scene, WEFT_BENCH_STORAGE_ENCODE, w, own_packet, false);
  const int recover = add_crs(scene, WEFT_BENCH_STORAGE_RECOVER, w, own_packet, true);
  weft_bench_group_ask(group, "recover, plan cached / encode", recover, own, WEFT_BENCH_INPUT);
  if (peer && peer_packet) {
    const int other =
        weft_bench_scene_add_peer(scene, peer, WEFT_BENCH_STORAGE_ENCODE, w, peer_packet, 1);
    weft_bench_group_ask(group, "encode, each at its best packet size: weft / jerasure", own, other,
                         WEFT_BENCH_INPUT);
    const int same = own_packet == peer_packet
                         ? own
                         : add_crs(scene, WEFT_BENCH_STORAGE_ENCODE, w, peer_packet, false);
    weft_bench_group_ask(group, "encode, at jerasure's best packet size: weft / jerasure", same,
                         other, WEFT_BENCH_INPUT);
    const int back =
        weft_bench_scene_add_peer(scene, peer, WEFT_BENCH_STORAGE_RECOVER, w, peer_packet, 1);
    weft_bench_group_ask(group, "recover: weft / jerasure", recover, back, WEFT_BENCH_INPUT);
  }
  if (run->row->host->compile)
    add_uncompiled(run, scene, k, m, w, bytes, own, recover);
  weft_bench_scene_run(scene);
}

static void crs_shape(weft_bench_storage_run *run, size_t k, size_t m, size_t bytes,
                      const char *what) {
  (void)what;
  static const size_t words[] = {4, 8};
  for (size_t i = 0; i < COUNT(words); i++)
    if (((size_t)1 << words[i]) >= k + m)
      crs_one(run, k, m, words[i], bytes);
}

void weft_bench_storage_crs(weft_bench_storage_run *run) {
  static const weft_bench_sizes_of_code shapes[] = {{10, 4}, {32, 8}};
  static const size_t bytes[] = {64 << 10, 1 << 20};
  all_shapes(run, shapes, COUNT(shapes), bytes, COUNT(bytes), crs_shape);
}

// ---------------------------------------------------------------------------------------------
// CRS, source by source, with three packet sizes: the best for rows with blocks, the default, and
// long packets.

static const size_t update_packets[] = {64, 512, 2048};

// Uses the first `count` packet sizes.
static void crs_update_packets(weft_bench_scene *scene, size_t w, size_t count) {
  weft_bench_group *const group = weft_bench_scene_group(scene);
  const size_t *const packet = update_packets;
  int encode[COUNT(update_packets)];
  weft_bench_scene_add_bounds(scene, false);
  for (size_t p = 0; p < count; p++)
    encode[p] = add_crs(scene, WEFT_BENCH_STORAGE_ENCODE, w, packet[p], false);
  weft_bench_scene_add_bounds(scene, true);
  for (size_t p = 0; p < count; p++) {
    const int update = add_crs(scene, WEFT_BENCH_STORAGE_ADD_DELTA, w, packet[p], false);
    const int progress = add_crs(scene, WEFT_BENCH_STORAGE_PROGRESS, w, packet[p], false);
    weft_bench_group_ask(group,
                         weft_bench_scene_text(scene, "packet=%zu: add delta / encode", packet[p]),
                         update, encode[p], WEFT_BENCH_INPUT);
    weft_bench_group_ask(group,
                         weft_bench_scene_text(scene, "packet=%zu: progress / encode", packet[p]),
                         progress, encode[p], WEFT_BENCH_INPUT);
  }
}

static void crs_update_shape(weft_bench_storage_run *run, size_t k, size_t m, size_t bytes,
                             const char *what) {
  static const size_t words[] = {4, 8};
  char title[128], text[64];
  (void)what;
  for (size_t i = 0; i < COUNT(words); i++) {
    const size_t w = words[i];
    size_t fit = 0;
    while (fit < COUNT(update_packets) && bytes % (w * update_packets[fit]) == 0)
      fit++;
    if (((size_t)1 << w) < k + m)
      continue;
    if (fit == 0) {
      no_packet(k, m, w, bytes);
      continue;
    }
    snprintf(text, sizeof text, ", packets, w = %zu: source by source", w);
    weft_bench_scene *const scene =
        weft_bench_scene_new(run, shape_title(title, sizeof title, k, m, bytes, text), k, m, bytes);
    crs_update_packets(scene, w, fit);
    weft_bench_scene_run(scene);
  }
}

void weft_bench_storage_crs_update(weft_bench_storage_run *run) {
  static const weft_bench_sizes_of_code shapes[] = {{10, 2}, {10, 4}, {10, 8}};
  static const size_t bytes[] = {64 << 10, 1 << 20};
  all_shapes(run, shapes, COUNT(shapes), bytes, COUNT(bytes), crs_update_shape);
}
