// SPDX-License-Identifier: Apache-2.0
// Storage operations as cases of a group.
#include "bench/storage_cases.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/buffers.h"
#include "bench/ceiling_cases.h"
#include "bench/check.h"
#include "kernels/pool.h"
#include "weft/storage.h"

// Byte x coefficient products to compare with scalar's, at the start of the shards and again at
// their end; all if there are at most twice as many.
#define CHECKED_PRODUCTS ((size_t)1 << 22)
// After this many bytes every plan of the parts' shapes is compiled, or has reduced its program.
#define IMPROVED_BYTES ((size_t)64 << 20)
// A few for each number of threads and each library.
#define TEXTS (8u + WEFT_BENCH_LIST * (2u + WEFT_BENCH_STORAGE_PEERS))

static const char *const operation_names[WEFT_BENCH_STORAGE_OPERATIONS] = {
    "encode", "recover", "add delta", "progress", "update", "verify"};

typedef struct own_state {
  struct own_state *next;
  weft_ctx *ctx;
  weft_code *code;
  weft_stripe stripe;
  weft_erasures erasures;
  const weft_bench_shards *shards;
  const char *who;
} own_state;

typedef struct peer_state {
  struct peer_state *next;
  weft_pool *pool; // NULL: one thread
  size_t count;
  weft_bench_shards *part; // (count) each is a range of the shards' bytes
  weft_bench_storage_call *calls;
} peer_state;

struct weft_bench_scene {
  weft_bench_storage_run *run;
  weft_bench_group *group;
  weft_bench_shards shards;
  uint8_t *memory;          // (k + m, bytes)
  weft_bench_shards *now;   // shards of the cases being added: `shards`, or `apart`
  weft_bench_shards *apart; // the same shards weft_code_stride apart, or NULL
  uint8_t *apart_memory;
  size_t apart_bytes;
  uint8_t *written; // (m, bytes) for the loop that only loads and stores
  uint8_t *outputs[256];
  uint8_t *original; // (k, bytes)
  int arithmetic, streams;
  bool update; // whether `streams` is for an update
  own_state *own;
  peer_state *peers;
  char *texts[TEXTS];
  size_t text_count;
};

const char *weft_bench_scene_text(weft_bench_scene *scene, const char *format, ...) {
  char text[160];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (scene->text_count == TEXTS)
    return "";
  return scene->texts[scene->text_count++] = weft_bench_text("%s", text);
}

weft_bench_group *weft_bench_scene_group(weft_bench_scene *scene) { return scene->group; }

static void choose_lost(weft_bench_shards *shards, weft_bench_random *random) {
  bool taken[256] = {false};
  const size_t lost = shards->k < shards->m ? shards->k : shards->m;
  for (size_t found = 0; found < lost;) {
    const size_t id = (size_t)(weft_bench_random_next(random) % shards->k);
    found += !taken[id];
    taken[id] = true;
  }
  for (size_t i = 0; i < shards->k; i++)
    if (taken[i])
      shards->lost[shards->lost_count++] = (uint8_t)i;
}

weft_bench_scene *weft_bench_scene_new(weft_bench_storage_run *run, const char *title, size_t k,
                                       size_t m, size_t bytes) {
  weft_bench_scene *const scene = weft_bench_alloc(1, sizeof *scene);
  weft_bench_random random;
  weft_bench_random_seed(&random, run->options.seed);
  *scene = (weft_bench_scene){.run = run,
                              .group = weft_bench_group_new(NULL),
                              .shards = {.k = k, .m = m, .bytes = bytes},
                              .memory = weft_bench_alloc(k + m, bytes),
                              .written = weft_bench_alloc(m, bytes),
                              .original = weft_bench_alloc(k, bytes),
                              .arithmetic = -1,
                              .streams = -1};
  scene->group->title = weft_bench_scene_text(scene, "%s", title);
  scene->group->shown[0] = WEFT_BENCH_INPUT;
  scene->group->shown[1] = WEFT_BENCH_OUTPUT;
  scene->shards.delta = weft_bench_alloc(bytes, 1);
  for (size_t i = 0; i < k + m; i++)
    scene->shards.shard[i] = scene->memory + i * bytes;
  for (size_t i = 0; i < m; i++)
    scene->outputs[i] = scene->written + i * bytes;
  weft_bench_random_bytes(&random, scene->memory, k * bytes);
  weft_bench_random_bytes(&random, scene->shards.delta, bytes);
  memcpy(scene->original, scene->memory, k * bytes);
  choose_lost(&scene->shards, &random);
  scene->now = &scene->shards;
  return scene;
}

void weft_bench_scene_lay_apart(weft_bench_scene *scene) {
  const weft_bench_shards *const s = &scene->shards;
  const weft_ctx_options at = {.backend = scene->run->row->name};
  const weft_code_options options = {.name = "cauchy", .k = s->k, .m = s->m};
  weft_ctx *ctx = NULL;
  weft_code *code = NULL;
  weft_bench_must(at.backend, weft_ctx_new(&ctx, &at));
  weft_bench_must(at.backend, weft_code_new(ctx, &options, &code));
  const size_t stride = weft_code_stride(code, s->bytes);
  weft_code_free(code);
  weft_ctx_free(ctx);
  scene->apart = weft_bench_alloc(1, sizeof *scene->apart);
  scene->apart_bytes = (s->k + s->m) * stride;
  scene->apart_memory = weft_bench_alloc(s->k + s->m, stride);
  *scene->apart = *s;
  for (size_t i = 0; i < s->k + s->m; i++)
    scene->apart->shard[i] = scene->apart_memory + i * stride;
  scene->now = scene->apart;
}

static void free_scene(weft_bench_scene *scene) {
  for (own_state *s = scene->own, *next; s; s = next) {
    next = s->next;
    weft_code_free(s->code);
    weft_ctx_free(s->ctx);
    free(s);
  }
  for (peer_state *s = scene->peers, *next; s; s = next) {
    next = s->next;
    for (size_t i = 0; i < s->count; i++)
      s->calls[i].release(s->calls[i].state);
    weft_pool_free(s->pool);
    free(s->part), free(s->calls), free(s);
  }
  weft_bench_group_free(scene->group);
  for (size_t i = 0; i < scene->text_count; i++)
    free(scene->texts[i]);
  free(scene->shards.delta), free(scene->memory), free(scene->written), free(scene->original);
  free(scene->apart), free(scene->apart_memory);
  free(scene);
}

void weft_bench_scene_run(weft_bench_scene *scene) {
  if (scene->own)
    weft_bench_report_run(&scene->run->report, &scene->run->options, scene->group);
  free_scene(scene);
}

double weft_bench_scene_try(weft_bench_scene *scene) {
  const weft_bench_group *const group = scene->group;
  const weft_bench_timing timing = {
      .reps = WEFT_BENCH_MIN_REPS, .rep_s = 0.002, .cold = scene->run->options.timing.cold};
  double seconds = 0;
  if (group->case_count > 0) {
    weft_bench_samples samples;
    weft_bench_measure(&timing, &group->cases[group->case_count - 1].work, 1, &samples);
    seconds = weft_bench_spread_of(samples.seconds, samples.reps).median;
    weft_bench_samples_free(&samples);
  }
  free_scene(scene);
  return seconds;
}

void weft_bench_scene_add_bounds(weft_bench_scene *scene, bool update) {
  const weft_bench_shards *const s = &scene->shards;
  const uint32_t features = scene->run->machine.features;
  scene->arithmetic = weft_bench_add_row_ceiling(scene->group, scene->run->row->name);
  scene->streams =
      weft_bench_add_streams(scene->group, features, update ? 1 : s->k,
                             update ? &s->delta : s->shard, s->m, scene->outputs, s->bytes, update);
  scene->update = update;
}

// ---------------------------------------------------------------------------------------------
// Checks

static _Noreturn void wrong(const char *who, const char *operation, size_t shard, size_t at) {
  fprintf(stderr, "weft bench: %s, %s: a wrong byte in shard %zu near %zu; nothing is timed\n", who,
          operation, shard, at);
  exit(1);
}

static weft_code *scalar_code(const weft_bench_shards *s, const char *name, weft_ctx **ctx) {
  const weft_ctx_options scalar = {.backend = "scalar"};
  const weft_code_options options = {
      .name = name, .k = s->k, .m = s->m, .w = s->w, .packet_bytes = s->packet_bytes};
  weft_code *code = NULL;
  weft_bench_must("scalar", weft_ctx_new(ctx, &scalar));
  weft_bench_must("scalar", weft_code_new(*ctx, &options, &code));
  return code;
}

// Compares bytes [at, at + n) of the parity with the scalar row's parity of the data.
static void check_part(const weft_bench_shards *s, weft_code *code, const char *who,
                       const char *operation, size_t at, size_t n) {
  uint8_t *const made = weft_bench_alloc(s->m, n), *shards[256];
  for (size_t i = 0; i < s->k; i++)
    shards[i] = s->shard[i] + at;
  for (size_t i = 0; i < s->m; i++)
    shards[s->k + i] = made + i * n;
  const weft_stripe stripe = {.shards = shards, .bytes = n};
  weft_bench_must("scalar", weft_code_encode(code, &stripe, 1, NULL));
  for (size_t i = 0; i < s->m; i++)
    if (memcmp(made + i * n, s->shard[s->k + i] + at, n) != 0)
      wrong(who, operation, s->k + i, at);
  free(made);
}

static const char *check_parity(const weft_bench_shards *s, const char *name, const char *who,
                                const char *operation) {
  weft_ctx *ctx = NULL;
  weft_code *const code = scalar_code(s, name, &ctx);
  const size_t unit = weft_code_unit_bytes(code);
  size_t part = CHECKED_PRODUCTS / (s->k * s->m) / unit * unit;
  part = part < unit ? unit : part;
  const bool all = 2 * part >= s->bytes;
  check_part(s, code, who, operation, 0, all ? s->bytes : part);
  if (!all)
    check_part(s, code, who, operation, s->bytes - part, part);
  weft_code_free(code);
  weft_ctx_free(ctx);
  return all ? WEFT_BENCH_CHECKED_ALL : "scalar's bytes at both ends of the shards";
}

// Whether the call reads existing parity.
static bool needs_parity(weft_bench_storage_operation operation) {
  return operation != WEFT_BENCH_STORAGE_ENCODE && operation != WEFT_BENCH_STORAGE_PROGRESS;
}

static void restore(const weft_bench_scene *scene, const weft_bench_shards *s) {
  for (size_t i = 0; i < s->k; i++)
    memcpy(s->shard[i], scene->original + i * s->bytes, s->bytes);
}

// Runs a call once on shards that make its result visible, and checks the result.
static const char *check_call(weft_bench_scene *scene, const weft_bench_shards *s,
                              weft_bench_storage_operation operation, const char *code,
                              const char *who, void (*call)(void *), void *state) {
  const char *const name = operation_names[operation];
  const char *checked = WEFT_BENCH_CHECKED_SOURCE;
  restore(scene, s);
  if (needs_parity(operation)) {
    weft_ctx *ctx = NULL;
    weft_code *made = NULL;
    const weft_code_options options = {
        .name = code, .k = s->k, .m = s->m, .w = s->w, .packet_bytes = s->packet_bytes};
    const weft_stripe stripe = {.shards = s->shard, .bytes = s->bytes};
    weft_bench_must(who, weft_ctx_new(&ctx, NULL));
    weft_bench_must(who, weft_code_new(ctx, &options, &made));
    weft_bench_must(who, weft_code_encode(made, &stripe, 1, NULL));
    weft_code_free(made);
    weft_ctx_free(ctx);
    check_parity(s, code, "encode", name);
  } else {
    for (size_t i = s->k; i < s->k + s->m; i++)
      memset(s->shard[i], 0xA5, s->bytes);
  }
  for (size_t i = 0; operation == WEFT_BENCH_STORAGE_RECOVER && i < s->lost_count; i++)
    memset(s->shard[s->lost[i]], 0xA5, s->bytes);
  call(state);
  if (operation == WEFT_BENCH_STORAGE_RECOVER) {
    for (size_t i = 0; i < s->k; i++)
      if (memcmp(s->shard[i], scene->original + i * s->bytes, s->bytes) != 0)
        wrong(who, name, i, 0);
  } else {
    for (size_t b = 0; operation == WEFT_BENCH_STORAGE_ADD_DELTA && b < s->bytes; b++)
      s->shard[0][b] ^= s->delta[b];
    if (operation == WEFT_BENCH_STORAGE_UPDATE)
      memcpy(s->shard[0], s->delta, s->bytes);
    checked = check_parity(s, code, who, name);
  }
  restore(scene, s);
  return checked;
}

// ---------------------------------------------------------------------------------------------
// Cases

static int add_case(weft_bench_scene *scene, weft_bench_storage_operation operation,
                    const weft_bench_shards *s, const char *who, const char *variant,
                    size_t threads, const char *checked, void (*call)(void *), void *state) {
  const bool rs = s->packet_bytes == 0, update = operation == WEFT_BENCH_STORAGE_ADD_DELTA ||
                                                 operation == WEFT_BENCH_STORAGE_UPDATE;
  const double sources = update ? 1 : (double)s->k, bytes = (double)s->bytes;
  const double outputs =
      operation == WEFT_BENCH_STORAGE_RECOVER ? (double)s->lost_count : (double)s->m;
  const bool arithmetic = rs && scene->arithmetic >= 0;
  // The traffic of m outputs does not bound a recovery of fewer.
  const int streams = outputs < (double)s->m ? -1 : scene->streams;
  const bool apart = s->shard[0] != scene->memory;
  return weft_bench_group_add(
      scene->group,
      &(weft_bench_case){
          .operation = operation_names[operation],
          .row = who,
          .variant = variant,
          .n = s->k,
          .k = s->bytes,
          .m = s->m,
          .threads = threads,
          .amount = {[WEFT_BENCH_OUTPUT] = outputs * bytes,
                     [WEFT_BENCH_PRODUCTS] = rs ? sources * outputs * bytes : 0,
                     [WEFT_BENCH_INPUT] = sources * bytes},
          .ceiling = arithmetic ? scene->arithmetic : streams,
          .bound_by = arithmetic ? WEFT_BENCH_PRODUCTS : WEFT_BENCH_INPUT,
          .also = arithmetic && streams >= 0 ? 1 + (size_t)streams : 0,
          .also_by = WEFT_BENCH_INPUT,
          .work = {.call = call,
                   .user = state,
                   .threads = threads,
                   .regions = {{apart ? scene->apart_memory : scene->memory,
                                apart ? scene->apart_bytes : (s->k + s->m) * s->bytes},
                               {s->delta, s->bytes}},
                   .region_count = 2},
          .checked = checked,
      });
}

static void own_encode(void *user) {
  const own_state *const s = user;
  weft_bench_must(s->who, weft_code_encode(s->code, &s->stripe, 1, NULL));
}

static void own_recover(void *user) {
  const own_state *const s = user;
  weft_bench_must(s->who, weft_code_recover(s->code, &s->erasures, &s->stripe, 1, NULL));
}

static void own_add_delta(void *user) {
  const own_state *const s = user;
  weft_bench_must(s->who, weft_code_add_delta(s->code, 0, s->shards->delta, &s->stripe, NULL));
}

static void own_progress(void *user) {
  const own_state *const s = user;
  weft_progress *progress = NULL;
  weft_bench_must(s->who, weft_progress_new(s->code, &s->stripe, &progress));
  for (size_t i = 0; i < s->shards->k; i++)
    weft_bench_must(s->who, weft_progress_add(progress, i, s->shards->shard[i], NULL));
  weft_bench_must(s->who, weft_progress_finish(progress));
  weft_progress_free(progress);
}

static void own_update(void *user) {
  const own_state *const s = user;
  weft_bench_must(s->who, weft_code_update(s->code, 0, s->shards->shard[0], s->shards->delta,
                                           &s->stripe, NULL));
}

static size_t wrong_shards(const own_state *s) {
  size_t wrong = 0;
  weft_bench_must(s->who, weft_code_verify(s->code, &s->stripe, NULL, &wrong, NULL));
  return wrong;
}

// Verifies parity that matches, because a shard found to differ is not compared any further.
static void own_verify(void *user) {
  const own_state *const s = user;
  if (wrong_shards(s) != 0)
    wrong(s->who, "verify", s->shards->k, 0);
}

// Checks that verification includes the last byte.
static void check_verify(const own_state *s) {
  const weft_bench_shards *const shards = s->shards;
  uint8_t *const last = &shards->shard[shards->k + shards->m - 1][shards->bytes - 1];
  *last ^= 1;
  if (wrong_shards(s) != 1)
    wrong(s->who, "verify", shards->k + shards->m - 1, shards->bytes - 1);
  *last ^= 1;
}

int weft_bench_scene_add_own(weft_bench_scene *scene, const weft_bench_own *own) {
  static void (*const calls[WEFT_BENCH_STORAGE_OPERATIONS])(void *) = {
      own_encode, own_recover, own_add_delta, own_progress, own_update, own_verify};
  weft_bench_shards *const s = scene->now;
  const weft_bench_machine *const machine = &scene->run->machine;
  own_state *const state = weft_bench_alloc(1, sizeof *state);
  *state = (own_state){.next = scene->own,
                       .stripe = {.shards = s->shard, .bytes = s->bytes},
                       .erasures = {.lost = s->lost, .lost_count = s->lost_count},
                       .shards = s,
                       .who = scene->run->row->name};
  scene->own = state;
  s->w = own->w;
  s->packet_bytes = own->packet_bytes;
  const weft_ctx_options at = {.backend = scene->run->row->name,
                               .threads = own->threads,
                               .compile_after = own->uncompiled ? SIZE_MAX : 0};
  const weft_code_options options = {.name = own->code,
                                     .k = s->k,
                                     .m = s->m,
                                     .w = own->w,
                                     .packet_bytes = own->packet_bytes,
                                     .cached_plans = own->cached ? 0 : WEFT_NO_PLANS};
  weft_bench_pin_workers(machine, own->threads);
  weft_bench_must(state->who, weft_ctx_new(&state->ctx, &at));
  weft_bench_pin(machine, 0);
  weft_bench_must(state->who, weft_code_new(state->ctx, &options, &state->code));
  // A plan of a CRS code is improved once, when it has done enough work to repay that. What is
  // checked and measured is the improved plan. Verification uses the plan of encoding.
  void (*const improve)(void *) =
      own->operation == WEFT_BENCH_STORAGE_VERIFY ? own_encode : calls[own->operation];
  for (size_t done = 0; own->packet_bytes && done < IMPROVED_BYTES; done += s->k * s->bytes)
    improve(state);
  const char *const checked =
      check_call(scene, s, own->operation, own->code, state->who, calls[own->operation], state);
  if (own->operation == WEFT_BENCH_STORAGE_VERIFY)
    check_verify(state);
  return add_case(scene, own->operation, s, state->who, own->variant,
                  own->threads ? own->threads : 1, checked, calls[own->operation], state);
}

static void peer_task(void *user, size_t index) {
  const peer_state *const s = user;
  s->calls[index].call(s->calls[index].state);
}

static void peer_call(void *user) {
  const peer_state *const s = user;
  if (s->pool)
    weft_pool_run(s->pool, s->count, peer_task, user);
  else
    peer_task(user, 0);
}

int weft_bench_scene_add_peer(weft_bench_scene *scene, const weft_bench_storage_peer *peer,
                              weft_bench_storage_operation operation, size_t w, size_t packet_bytes,
                              size_t threads) {
  if (operation >= WEFT_BENCH_STORAGE_PROGRESS)
    return -1;
  peer_state *const state = weft_bench_alloc(1, sizeof *state);
  weft_bench_shards *const s = scene->now;
  s->w = w;
  s->packet_bytes = packet_bytes;
  state->next = scene->peers;
  scene->peers = state;
  const size_t unit = packet_bytes ? w * packet_bytes : 64, parts = threads ? threads : 1;
  const size_t step = ((s->bytes + parts - 1) / parts + unit - 1) / unit * unit;
  state->part = weft_bench_alloc(parts, sizeof *state->part);
  state->calls = weft_bench_alloc(parts, sizeof *state->calls);
  for (size_t at = 0; at < s->bytes; at += step) { // at most `parts` iterations
    weft_bench_shards *const part = &state->part[state->count];
    *part = *s;
    part->bytes = s->bytes - at < step ? s->bytes - at : step;
    for (size_t i = 0; i < s->k + s->m; i++)
      part->shard[i] += at;
    part->delta += at;
    if (!peer->prepare(peer, operation, part, &state->calls[state->count]))
      return -1;
    state->count++;
  }
  if (threads > 1) {
    weft_bench_pin_workers(&scene->run->machine, threads);
    weft_bench_must(peer->name, weft_pool_new(&state->pool, threads, &weft_bench_allocator));
    weft_bench_pin(&scene->run->machine, 0);
  }
  const char *const checked =
      check_call(scene, s, operation, peer->code, peer->name, peer_call, state);
  const char *const variant =
      packet_bytes
          ? weft_bench_scene_text(scene, "%s:w=%zu:packet=%zu", peer->code, w, packet_bytes)
      : s == scene->apart ? weft_bench_scene_text(scene, "%s, apart", peer->code)
                          : peer->code;
  return add_case(scene, operation, s, peer->name, variant, threads ? threads : 1, checked,
                  peer_call, state);
}
