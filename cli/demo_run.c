// SPDX-License-Identifier: Apache-2.0
// `weft demo`: feeds the input to a swarm and hashes what every peer delivers.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "cli/demo.h"

#define NAME "demo"

typedef struct timed {
  weft_codec_timed codec;
  weft_codec table;
} timed;

typedef struct run {
  const demo_settings *settings;
  demo_outcome *out;
  cli_input input;
  int input_error; // errno
  cli_progress progress;
  _Atomic uint64_t delivered; // by all peers
  timed *timed;               // (threads, 2): the peers', the source's
  crypto_generichash_state *input_hash;
  crypto_generichash_state *hashes; // (peers)
} run;

static uint64_t now_ns(void *user) {
  struct timespec t;
  (void)user;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// --- Hooks that the swarm calls

static weft_status feed(void *user, uint8_t *out, size_t capacity, size_t *bytes) {
  run *r = user;
  r->input_error = cli_input_read(&r->input, out, capacity, bytes);
  if (r->input_error)
    return WEFT_E_STATE;
  (void)crypto_generichash_update(r->input_hash, out, *bytes);
  r->out->input_bytes += *bytes;
  return WEFT_OK;
}

static weft_status deliver(void *user, uint32_t viewer, const uint8_t *data, size_t bytes) {
  run *r = user;
  const size_t peer = viewer - 1;
  (void)crypto_generichash_update(&r->hashes[peer], data, bytes);
  r->out->peers[peer].bytes += bytes;
  r->delivered += bytes;
  return WEFT_OK;
}

static bool keep_on(void *user, int64_t now_us) {
  run *r = user;
  (void)now_us;
  cli_progress_draw(&r->progress, r->delivered, r->input.total * r->settings->swarm.peers);
  return cli_signal() == 0;
}

// --- The run

static int told(int signal, run *r) {
  cli_progress_end(&r->progress);
  char text[CLI_TEXT];
  return cli_error(NAME, CLI_SIGNAL + signal, "interrupted after %s decoded by all peers together",
                   cli_bytes_text(r->delivered, text));
}

static int failure(weft_status status, run *r) {
  cli_progress_end(&r->progress);
  if (cli_signal())
    return told(cli_signal(), r);
  if (r->input_error)
    return cli_error(NAME, CLI_IO, "%s: %s", r->input.path, strerror(r->input_error));
  if (status == WEFT_E_STATE)
    return cli_error(NAME, CLI_DIFFERS, "the swarm stalled: a neighbour was lost or starved");
  return cli_error(NAME, CLI_MACHINE, "%s", weft_status_text(status));
}

static void compare(run *r) {
  demo_outcome *out = r->out;
  (void)crypto_generichash_final(r->input_hash, out->digest, sizeof out->digest);
  for (size_t i = 0; i < r->settings->swarm.peers; i++) {
    demo_peer *peer = &out->peers[i];
    (void)crypto_generichash_final(&r->hashes[i], peer->digest, sizeof peer->digest);
    peer->same = out->nodes[i + 1].done_us != WEFT_SIM_NEVER && peer->bytes == out->input_bytes &&
                 memcmp(peer->digest, out->digest, sizeof peer->digest) == 0;
    out->same += peer->same;
  }
}

static const weft_codec *timed_codec(void *user, size_t lane, bool source, const weft_codec *rlnc) {
  run *r = user;
  timed *t = &r->timed[2 * lane + source];
  t->codec = (weft_codec_timed){.inner = rlnc, .clock_ns = now_ns};
  t->table = weft_codec_timed_table(&t->codec);
  return &t->table;
}

static void ended(void *user, uint32_t peer, size_t degree, int64_t done_us,
                  const weft_engine_statistics *statistics) {
  run *r = user;
  r->out->nodes[peer] = (demo_node){.degree = degree,
                                    .done_us = done_us,
                                    .delivered_bytes = peer ? r->out->peers[peer - 1].bytes : 0,
                                    .statistics = *statistics};
}

static void add_cost(weft_codec_cost *sum, const weft_codec_cost *one) {
  sum->bytes += one->bytes;
  sum->nanoseconds += one->nanoseconds;
}

static int take_result(run *r, weft_sim_swarm *swarm) {
  const demo_settings *s = r->settings;
  demo_outcome *out = r->out;
  const weft_status status = weft_sim_swarm_result(swarm, &out->result);
  if (status != WEFT_OK)
    return failure(status, r);
  cli_progress_end(&r->progress);
  for (size_t i = 0; i < s->threads; i++) {
    add_cost(&out->encode, &r->timed[2 * i + 1].codec.make);
    add_cost(&out->recode, &r->timed[2 * i].codec.make);
    add_cost(&out->decode, &r->timed[2 * i].codec.decode);
  }
  compare(r);
  out->backend = weft_sim_swarm_backend(swarm);
  out->threads = s->threads;
  out->complete = true;
  if (r->input.cut)
    cli_error(NAME, CLI_OK,
              "%s was truncated while it was read: the input is the first %" PRIu64
              " of its %" PRIu64 " bytes",
              r->input.path, out->input_bytes, r->input.total);
  return out->same == s->swarm.peers ? CLI_OK : CLI_DIFFERS;
}

static int run_swarm(run *r) {
  const demo_settings *s = r->settings;
  const weft_sim_options options = {.parameters = &s->swarm,
                                    .threads = s->threads,
                                    .backend = s->backend,
                                    .hooks = {.user = r,
                                              .feed = feed,
                                              .deliver = deliver,
                                              .keep_on = keep_on,
                                              .codec = timed_codec,
                                              .ended = ended}};
  weft_sim_swarm *swarm;
  weft_status status = weft_sim_swarm_new(&options, &swarm);
  if (status == WEFT_E_BACKEND_UNKNOWN || status == WEFT_E_BACKEND_ABSENT)
    return cli_error_backend(NAME, s->backend, status);
  if (status != WEFT_OK)
    return failure(status, r);
  const uint64_t start = now_ns(NULL);
  cli_progress_start(&r->progress);
  status = weft_sim_swarm_run(swarm);
  r->out->wall_s = (double)(now_ns(NULL) - start) / 1e9;
  const int code = status == WEFT_OK ? take_result(r, swarm) : failure(status, r);
  weft_sim_swarm_free(swarm);
  return code;
}

// Returns the most segments that a node holds: no more than an input of known length has.
static uint64_t window_most(const demo_settings *s, uint64_t input_bytes) {
  const uint64_t segment_bytes = (uint64_t)s->swarm.blocks * s->swarm.block_bytes;
  const uint64_t segments = input_bytes / segment_bytes + (input_bytes % segment_bytes != 0);
  return segments > 0 && segments < s->swarm.window ? segments : s->swarm.window;
}

// Checks that the windows of all nodes fit into memory: better an error now than being killed
// later. Returns -1 to go on, else the exit code.
static int check_memory(const demo_settings *s, uint64_t input_bytes) {
  const weft_segment_id id = {.blocks = s->swarm.blocks, .block_bytes = s->swarm.block_bytes};
  const double need = ((double)s->swarm.peers + 1) * (double)window_most(s, input_bytes) *
                      (double)weft_decoder_memory_bytes(&id, true);
  const double have = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  if (need <= 0.8 * have)
    return -1;
  return cli_error(NAME, CLI_MACHINE,
                   "the windows may need %.1f GiB and this machine has %.1f GiB; lower --peers, "
                   "--window, --segment-blocks or --block-bytes",
                   need / 0x1p30, have / 0x1p30);
}

int demo_run(const demo_settings *settings, demo_outcome *out) {
  run r = {
      .settings = settings,
      .out = out,
      .input = {.path = settings->input, .seed = settings->seed, .total = settings->clip_bytes}};
  const int opened = cli_input_open(&r.input);
  if (opened)
    return cli_error(NAME, CLI_IO, "%s: %s", settings->input, strerror(opened));
  int code = check_memory(settings, r.input.total);
  if (code >= 0) {
    cli_input_close(&r.input);
    return code;
  }
  cli_catch_signals();
  const size_t peers = settings->swarm.peers;
  out->peers = g_new0(demo_peer, peers);
  out->nodes = g_new0(demo_node, peers + 1);
  r.timed = g_new0(timed, 2 * settings->threads);
  // libsodium needs its states aligned to 64 bytes, which gcc's ASan does not guarantee on the
  // stack.
  void *hashes = NULL;
  if (posix_memalign(&hashes, 64, (peers + 1) * sizeof *r.hashes) != 0)
    code = cli_error(NAME, CLI_MACHINE, "%s", weft_status_text(WEFT_E_NOMEM));
  else {
    r.hashes = hashes;
    r.input_hash = &r.hashes[peers];
    (void)crypto_generichash_init(r.input_hash, NULL, 0, DEMO_DIGEST_BYTES);
    for (size_t i = 0; i < peers; i++)
      (void)crypto_generichash_init(&r.hashes[i], NULL, 0, DEMO_DIGEST_BYTES);
    code = run_swarm(&r);
  }
  free(hashes);
  g_free(r.timed);
  cli_input_close(&r.input);
  return code;
}

void demo_outcome_clear(demo_outcome *outcome) {
  g_free(outcome->peers);
  g_free(outcome->nodes);
  *outcome = (demo_outcome){0};
}
