// SPDX-License-Identifier: Apache-2.0
// Segments that keep their packets until a batch decodes them (Shojania and Li's multi-segment
// decoding). Until then, eliminating the coefficients alone shows which packets are innovative, and
// recoding mixes the packets as they arrived; afterwards it mixes the decoded blocks. A run only
// reads the packets of its segments, so recoding goes on meanwhile.
#include "peer/runtime/codec_gather.h"

#include <pthread.h>
#include <string.h>

#include <sodium.h>

#include "kernels/pool.h"
#include "weft/rlnc.h"

enum { RUN_MOST = 64 };

// What packets are made from: rows of payload, and of coefficients unless the rows are the blocks.
typedef struct mixer {
  size_t rows; // 0: not made yet
  weft_segment *payload, *coefficients;
  weft_encoder *mix, *vectors;
} mixer;

typedef struct gathered {
  weft_segment_id id;
  weft_rng rng;
  weft_decoder *ranks;   // has the same coefficients, and blocks of one byte
  uint8_t *coefficients; // (n, n), `rank` rows in order of arrival
  uint8_t *payload;      // (n, k)
  uint8_t *blocks;       // (n, k); NULL until decoded
  bool working;          // part of the run
  mixer mixer;
} gathered;

struct weft_gatherer {
  weft_ctx *ctx;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool threaded, quit, stays;
  bool given, done; // the thread has a run; and has finished it
  size_t count;
  gathered *segments[RUN_MOST];
  weft_decode_job jobs[RUN_MOST];
};

static size_t rank_of(const gathered *s) {
  return s->blocks ? s->id.blocks : weft_decoder_rank(s->ranks);
}

static weft_status take(weft_ctx *ctx, size_t bytes, uint8_t **out) {
  void *memory;
  WEFT_TRY(weft_alloc(ctx, WEFT_MEM_HOST, bytes, &memory));
  *out = memory;
  return WEFT_OK;
}

static void give(weft_ctx *ctx, uint8_t **memory) {
  weft_free(ctx, WEFT_MEM_HOST, *memory);
  *memory = NULL;
}

// --- Packets of what is held

static void drop_mixer(mixer *m) {
  weft_encoder_free(m->mix);
  weft_encoder_free(m->vectors);
  weft_segment_free(m->payload);
  weft_segment_free(m->coefficients);
  *m = (mixer){0};
}

static weft_status rows_as_segment(weft_ctx *ctx, const gathered *s, const uint8_t *rows,
                                   size_t count, size_t bytes, weft_segment **segment,
                                   weft_encoder **encoder) {
  const weft_segment_options options = {.id = {.stream = s->id.stream,
                                               .segment = s->id.segment,
                                               .blocks = (uint32_t)count,
                                               .block_bytes = (uint32_t)bytes},
                                        .data = rows,
                                        .bytes = count * bytes,
                                        .borrow = true};
  WEFT_TRY(weft_segment_new(ctx, &options, NULL, segment));
  return weft_encoder_new(*segment, NULL, encoder);
}

static weft_status make_mixer(weft_ctx *ctx, gathered *s, size_t rank) {
  mixer *m = &s->mixer;
  uint8_t key[WEFT_RNG_KEY_BYTES];
  drop_mixer(m);
  const uint8_t *rows = s->blocks ? s->blocks : s->payload;
  WEFT_TRY(rows_as_segment(ctx, s, rows, rank, s->id.block_bytes, &m->payload, &m->mix));
  if (!s->blocks)
    WEFT_TRY(rows_as_segment(ctx, s, s->coefficients, rank, s->id.blocks, &m->coefficients,
                             &m->vectors));
  s->rng.fill(s->rng.user, key, sizeof key);
  WEFT_TRY(weft_encoder_fix_random(m->mix, key));
  m->rows = rank;
  return WEFT_OK;
}

// Makes packets over the held rows; their weights are then multiplied by the coefficients that the
// rows have.
static weft_status recode(const gathered *s, const weft_batch *batch, uint8_t *weights) {
  const size_t rank = s->mixer.rows;
  weft_batch rows = *batch;
  rows.coefficients = weights;
  rows.coefficients_stride = rank;
  WEFT_TRY(weft_encoder_batch(s->mixer.mix, &rows, NULL));
  const weft_batch vectors = {.count = batch->count,
                              .payload = batch->coefficients,
                              .payload_stride = batch->coefficients_stride};
  return weft_encoder_combine(s->mixer.vectors, batch->count, weights, rank, &vectors, NULL);
}

static weft_status make(void *user, void *opened, const weft_batch *batch) {
  weft_gatherer *g = user;
  gathered *s = opened;
  const size_t rank = rank_of(s);
  if (rank == 0)
    return WEFT_PENDING;
  if (s->mixer.rows != rank) {
    const weft_status status = make_mixer(g->ctx, s, rank);
    if (status != WEFT_OK) {
      drop_mixer(&s->mixer);
      return status;
    }
  }
  if (s->blocks)
    return weft_encoder_batch(s->mixer.mix, batch, NULL);
  uint8_t *weights;
  WEFT_TRY(take(g->ctx, batch->count * rank, &weights));
  const weft_status status = recode(s, batch, weights);
  give(g->ctx, &weights);
  for (size_t i = 0; status == WEFT_OK && i < batch->count; i++) {
    batch->packets[i].id = s->id;
    batch->packets[i].coefficients = batch->coefficients + i * batch->coefficients_stride;
  }
  return status;
}

// --- Runs

static weft_decode_job job_of(const gathered *s) {
  return (weft_decode_job){.blocks = s->id.blocks,
                           .block_bytes = s->id.block_bytes,
                           .coefficients = s->coefficients,
                           .coefficients_stride = s->id.blocks,
                           .payload = s->payload,
                           .payload_stride = s->id.block_bytes,
                           .out_stride = s->id.block_bytes};
}

static void decoded(weft_gatherer *g, gathered *s, weft_decode_job *job) {
  if (job->status != WEFT_OK) { // memory ran out: it can be tried again
    give(g->ctx, &job->out);
    return;
  }
  drop_mixer(&s->mixer);
  s->blocks = job->out;
  give(g->ctx, &s->payload);
  give(g->ctx, &s->coefficients);
  weft_decoder_free(s->ranks);
  s->ranks = NULL;
}

static void *work(void *user) {
  weft_gatherer *g = user;
  (void)pthread_mutex_lock(&g->lock);
  while (!g->quit) {
    if (!g->given || g->done) {
      (void)pthread_cond_wait(&g->changed, &g->lock);
      continue;
    }
    (void)pthread_mutex_unlock(&g->lock);
    (void)weft_decode_batch(g->ctx, g->jobs, g->count, NULL); // each job has its own status
    (void)pthread_mutex_lock(&g->lock);
    g->done = true;
    (void)pthread_cond_broadcast(&g->changed);
  }
  (void)pthread_mutex_unlock(&g->lock);
  return NULL;
}

// Takes a finished run back from the thread; with `wait`, waits until it is finished.
static void take_back(weft_gatherer *g, bool wait) {
  if (!g->given)
    return;
  (void)pthread_mutex_lock(&g->lock);
  while (wait && !g->done)
    (void)pthread_cond_wait(&g->changed, &g->lock);
  const bool done = g->done;
  if (done)
    g->given = g->done = false;
  (void)pthread_mutex_unlock(&g->lock);
  for (size_t i = 0; done && i < g->count; i++) {
    g->segments[i]->working = false;
    decoded(g, g->segments[i], &g->jobs[i]);
  }
}

static weft_status fill_run(weft_gatherer *g, void *const *segments, size_t count) {
  g->count = 0;
  for (size_t i = 0; i < count && g->count < RUN_MOST; i++) {
    gathered *s = segments[i];
    if (s->blocks)
      continue;
    weft_decode_job *job = &g->jobs[g->count];
    *job = job_of(s);
    const weft_status status = take(g->ctx, (size_t)s->id.blocks * s->id.block_bytes, &job->out);
    if (status != WEFT_OK) {
      while (g->count)
        give(g->ctx, &g->jobs[--g->count].out);
      return status;
    }
    g->segments[g->count++] = s;
  }
  return WEFT_OK;
}

static weft_status decode(void *user, void *const *segments, size_t count) {
  weft_gatherer *g = user;
  take_back(g, false);
  if (g->given)
    return WEFT_PENDING;
  WEFT_TRY(fill_run(g, segments, count));
  if (g->count == 0)
    return WEFT_OK;
  if (!g->threaded && !g->stays)
    g->threaded = weft_thread_start(&g->thread, work, g) == WEFT_OK;
  for (size_t i = 0; i < g->count; i++)
    g->segments[i]->working = true;
  if (!g->threaded) // without the thread, here
    (void)weft_decode_batch(g->ctx, g->jobs, g->count, NULL);
  (void)pthread_mutex_lock(&g->lock);
  g->given = true;
  g->done = !g->threaded;
  (void)pthread_cond_broadcast(&g->changed);
  (void)pthread_mutex_unlock(&g->lock);
  return WEFT_OK;
}

static bool decoding(void *user, const void *segment) {
  const gathered *s = segment;
  if (s->working)
    take_back(user, false);
  return s->working;
}

// Decodes one segment at once.
static weft_status decode_alone(weft_gatherer *g, gathered *s) {
  if (s->working)
    take_back(g, true);
  if (s->blocks)
    return WEFT_OK;
  if (rank_of(s) < s->id.blocks)
    return WEFT_PENDING;
  weft_decode_job job = job_of(s);
  WEFT_TRY(take(g->ctx, (size_t)s->id.blocks * s->id.block_bytes, &job.out));
  const weft_status status = weft_decode_batch(g->ctx, &job, 1, NULL);
  job.status = status == WEFT_OK ? job.status : status;
  const weft_status result = job.status;
  decoded(g, s, &job);
  return result;
}

// --- Segments

static void close_segment(void *user, void *opened) {
  weft_gatherer *g = user;
  gathered *s = opened;
  if (!s)
    return;
  if (s->working)
    take_back(g, true);
  drop_mixer(&s->mixer);
  weft_decoder_free(s->ranks);
  give(g->ctx, &s->coefficients);
  give(g->ctx, &s->payload);
  give(g->ctx, &s->blocks);
  weft_free(g->ctx, WEFT_MEM_HOST, s);
}

static weft_status open_source(void *user, const weft_segment_id *id, const uint8_t *data,
                               size_t bytes, const weft_rng *rng, void **out) {
  (void)user, (void)id, (void)data, (void)bytes, (void)rng, (void)out;
  return WEFT_E_UNSUPPORTED;
}

static weft_status fill_segment(weft_gatherer *g, gathered *s) {
  const size_t n = s->id.blocks;
  const weft_decoder_options ranks = {.id = {.stream = s->id.stream,
                                             .segment = s->id.segment,
                                             .blocks = s->id.blocks,
                                             .block_bytes = 1}};
  WEFT_TRY(weft_decoder_new(g->ctx, &ranks, &s->ranks));
  WEFT_TRY(take(g->ctx, n * n, &s->coefficients));
  return take(g->ctx, n * s->id.block_bytes, &s->payload);
}

static weft_status open_sink(void *user, const weft_segment_id *id, const weft_rng *rng,
                             void **out) {
  weft_gatherer *g = user;
  void *memory;
  WEFT_TRY(weft_alloc(g->ctx, WEFT_MEM_HOST, sizeof(gathered), &memory));
  gathered *s = memory;
  *s = (gathered){.id = *id, .rng = *rng};
  const weft_status status = fill_segment(g, s);
  if (status == WEFT_OK)
    *out = s;
  else
    close_segment(g, s);
  return status;
}

static weft_status add(void *user, void *opened, const weft_packet *packet) {
  gathered *s = opened;
  (void)user;
  const size_t rank = rank_of(s), n = s->id.blocks, k = s->id.block_bytes;
  if (packet->id.blocks != n || packet->id.block_bytes != k)
    return WEFT_E_FOREIGN; // the elimination checks the rest
  if (rank == n)
    return WEFT_DEPENDENT;
  uint8_t *coefficients = s->coefficients + rank * n;
  WEFT_TRY(weft_packet_coefficients(packet, coefficients));
  weft_packet of_rank = *packet;
  of_rank.id.block_bytes = 1;
  of_rank.mode = WEFT_PACKET_VECTOR; // seeds have been expanded
  of_rank.coefficients = coefficients;
  WEFT_TRY(weft_decoder_add(s->ranks, &of_rank));
  memcpy(s->payload + rank * k, packet->payload, k);
  return WEFT_OK;
}

static size_t rank(void *user, const void *opened) {
  (void)user;
  return rank_of(opened);
}

static weft_status read_bytes(void *user, void *opened, size_t offset, size_t bytes, uint8_t *out) {
  gathered *s = opened;
  const size_t all = (size_t)s->id.blocks * s->id.block_bytes;
  if (offset > all || bytes > all - offset)
    return WEFT_E_ARGUMENT;
  WEFT_TRY(decode_alone(user, s));
  memcpy(out, s->blocks + offset, bytes);
  return WEFT_OK;
}

static weft_status digest(void *user, void *opened, size_t bytes, uint8_t out[WEFT_DIGEST_BYTES]) {
  gathered *s = opened;
  if (bytes > (size_t)s->id.blocks * s->id.block_bytes)
    return WEFT_E_ARGUMENT;
  WEFT_TRY(decode_alone(user, s));
  (void)crypto_generichash(out, WEFT_DIGEST_BYTES, s->blocks, bytes, NULL, 0);
  return WEFT_OK;
}

static size_t memory_bytes(void *user, const weft_segment_id *id) {
  const size_t n = id->blocks;
  const weft_segment_id ranks = {.blocks = id->blocks, .block_bytes = 1};
  (void)user;
  return sizeof(gathered) + weft_decoder_memory_bytes(&ranks, true) + n * n +
         2 * n * id->block_bytes;
}

// --- The codec

weft_status weft_gatherer_new(weft_ctx *ctx, weft_gatherer **out) {
  void *memory;
  WEFT_TRY(weft_alloc(ctx, WEFT_MEM_HOST, sizeof **out, &memory));
  *out = memory;
  **out = (weft_gatherer){.ctx = ctx};
  (void)pthread_mutex_init(&(*out)->lock, NULL);
  (void)pthread_cond_init(&(*out)->changed, NULL);
  return WEFT_OK;
}

void weft_gatherer_stay(weft_gatherer *g) { g->stays = true; }

void weft_gatherer_free(weft_gatherer *g) {
  if (!g)
    return;
  if (g->threaded) {
    (void)pthread_mutex_lock(&g->lock);
    g->quit = true;
    (void)pthread_cond_broadcast(&g->changed);
    (void)pthread_mutex_unlock(&g->lock);
    (void)pthread_join(g->thread, NULL);
  }
  (void)pthread_cond_destroy(&g->changed);
  (void)pthread_mutex_destroy(&g->lock);
  weft_free(g->ctx, WEFT_MEM_HOST, g);
}

weft_codec weft_gatherer_table(weft_gatherer *gatherer) {
  return (weft_codec){.name = "rlnc-gather",
                      .user = gatherer,
                      .open_source = open_source,
                      .open_sink = open_sink,
                      .close = close_segment,
                      .add = add,
                      .rank = rank,
                      .make = make,
                      .read = read_bytes,
                      .memory_bytes = memory_bytes,
                      .digest = digest,
                      .decode = decode,
                      .decoding = decoding};
}
