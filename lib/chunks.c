// SPDX-License-Identifier: Apache-2.0
// A queue's ring of pinned chunks (chunks.h), oldest first.
#include "lib/chunks.h"

#include "kernels/smaller.h"

enum {
  MARKED_BYTES = 64 << 10,              // a mark costs as much time as copying so many
  LEAST_BYTES = 256,                    // of a chunk: pinned memory is not allocated in less
  TAPERED_BYTES = WEFT_STAGED_CHUNK / 4 // of the first chunk where copies taper
};

typedef struct weft_chunk {
  struct weft_chunk *next; // younger
  uint8_t *memory;
  size_t bytes, used;
  bool open;                   // its stream's work is not all enqueued
  void *stream;                // that works on it
  void *mark;                  // when it has; NULL: when it has passed a later one, or is idle
  weft_delivery *first, *last; // what it holds for ordinary memory
} weft_chunk;

// --- the ring ---

static void forget(const weft_ctx *ctx, weft_chunk *chunk) {
  for (weft_delivery *d = chunk->first, *next; d; d = next) {
    next = (weft_delivery *)d->part.next;
    weft_ctx_give(ctx, d);
  }
  chunk->first = chunk->last = NULL;
}

static void chunk_free(weft_queue *queue, weft_chunk *chunk) {
  weft_ctx *ctx = queue->ctx;
  forget(ctx, chunk);
  weft_device_mark_free(ctx->device, chunk->mark);
  weft_device_free(ctx->device, WEFT_MEM_PINNED, chunk->memory);
  weft_ctx_give(ctx, chunk);
}

// Takes a chunk off the queue, delivers what it holds unless the work on it has failed, and frees
// it.
static void chunk_ends(weft_queue *queue, weft_chunk **link, weft_status status) {
  weft_chunk *chunk = *link;
  *link = chunk->next;
  if (queue->end == &chunk->next)
    queue->end = link;
  queue->staged -= chunk->bytes;
  if (status == WEFT_OK)
    weft_rows_deliver(queue->ctx->pool, chunk->first);
  chunk_free(queue, chunk);
}

void weft_chunks_finish(weft_queue *queue, weft_status status) {
  while (queue->oldest)
    chunk_ends(queue, &queue->oldest, status);
}

// Ends the chunk, and those of its stream up to the first that has a mark, once the stream has
// passed that; all of them if none has one.
static weft_status chunks_end(weft_queue *queue, weft_chunk **link) {
  void *const stream = (*link)->stream;
  const weft_chunk *marked = *link;
  while (marked && (marked->stream != stream || !marked->mark))
    marked = marked->next;
  const weft_status status = marked ? weft_device_mark_wait(queue->ctx->device, marked->mark)
                                    : weft_device_stream_wait(queue->ctx->device, stream);
  if (status != WEFT_OK) {
    queue->failed = status;
    return status;
  }
  for (bool more = true; more && *link;) {
    more = *link != marked;
    if ((*link)->stream == stream && !(*link)->open)
      chunk_ends(queue, link, WEFT_OK);
    else
      link = &(*link)->next;
  }
  return WEFT_OK;
}

void weft_chunks_wait(weft_queue *queue) {
  weft_chunk **link = &queue->oldest;
  weft_status status = queue->failed;
  while (status == WEFT_OK && *link && (*link)->next) {
    if ((*link)->first && !(*link)->open)
      status = chunks_end(queue, link);
    else
      link = &(*link)->next;
  }
}

// Ends the oldest chunks until `bytes` more are within the bound. Those still open are few.
static weft_status make_room(weft_queue *queue, size_t bytes) {
  weft_chunk **link = &queue->oldest;
  while (*link && queue->staged + bytes > WEFT_STAGED_MOST) {
    if ((*link)->open) {
      link = &(*link)->next;
      continue;
    }
    WEFT_TRY(chunks_end(queue, link));
  }
  return WEFT_OK;
}

static weft_status chunk_new(weft_queue *queue, void *stream, size_t bytes, weft_chunk **out) {
  weft_ctx *ctx = queue->ctx;
  WEFT_TRY(make_room(queue, bytes));
  weft_chunk *chunk = weft_ctx_take(ctx, sizeof *chunk, _Alignof(weft_chunk));
  if (!chunk)
    return WEFT_E_NOMEM;
  void *memory;
  const weft_status status = weft_device_alloc(ctx->device, WEFT_MEM_PINNED, bytes, &memory);
  if (status != WEFT_OK) {
    weft_ctx_give(ctx, chunk);
    return status;
  }
  *chunk = (weft_chunk){.memory = memory, .bytes = bytes, .open = true, .stream = stream};
  *(queue->oldest ? queue->end : &queue->oldest) = chunk;
  queue->end = &chunk->next;
  queue->staged += bytes;
  *out = chunk;
  return WEFT_OK;
}

// --- stages ---

void weft_stage_open(weft_stage *stage, weft_call *call, void *stream, size_t bytes) {
  *stage = (weft_stage){.call = call, .stream = stream, .left = bytes};
}

void weft_stage_open_tapered(weft_stage *stage, weft_call *call, void *stream, size_t bytes) {
  weft_stage_open(stage, call, stream, bytes);
  stage->tapers = true;
}

// A mark of another stream says nothing about this one: small chunks of the queue's own stream need
// marks beside large chunks of a side stream.
static size_t *marked_of(weft_queue *queue, const void *stream) {
  size_t i = 0;
  while (i < WEFT_SIDE_STREAMS && queue->side[i] != stream)
    i++;
  return &queue->marked[i];
}

void weft_stage_close(weft_stage *stage) {
  weft_chunk *chunk = stage->chunk;
  if (!chunk)
    return;
  stage->chunk = NULL;
  chunk->open = false;
  weft_queue *queue = stage->call->queue;
  queue->closed += chunk->bytes;
  size_t *marked = marked_of(queue, stage->stream);
  if (queue->closed - *marked < MARKED_BYTES)
    return;
  // Without one a wait takes longer, no more.
  (void)weft_device_mark_new(queue->ctx->device, stage->stream, &chunk->mark);
  *marked = queue->closed;
}

void weft_stage_drop(weft_stage *stage) {
  if (stage->chunk)
    forget(stage->call->queue->ctx, stage->chunk);
}

// Returns the size of the next chunk for `bytes` more bytes, of which `at_least` must fit.
static size_t next_chunk(const weft_stage *stage, size_t bytes, size_t at_least) {
  size_t wanted = stage->left > bytes ? stage->left : bytes;
  if (stage->tapers && wanted > TAPERED_BYTES) { // doubles, and ends with halves
    wanted = weft_smaller(wanted / 2, stage->done + TAPERED_BYTES);
    wanted = wanted > TAPERED_BYTES ? wanted : TAPERED_BYTES;
  }
  wanted = weft_smaller(wanted, WEFT_STAGED_CHUNK);
  size_t whole = LEAST_BYTES; // few sizes, so that later calls find memory of the same
  while (whole < wanted || whole < at_least)
    whole *= 2;
  return whole;
}

// Provides pinned memory for the first *some of `bytes` bytes, *some >= at_least. `follows`:
// directly behind the last, where there is room.
static weft_status take(weft_stage *stage, size_t bytes, size_t at_least, bool follows,
                        size_t *some, uint8_t **out) {
  weft_chunk *chunk = stage->chunk;
  size_t used = chunk && follows ? chunk->used : chunk ? weft_row_stride(chunk->used) : 0;
  if (!chunk || used + at_least > chunk->bytes) {
    WEFT_TRY(weft_stage_flush(stage));
    weft_stage_close(stage);
    const size_t whole = next_chunk(stage, bytes, at_least);
    WEFT_TRY(chunk_new(stage->call->queue, stage->stream, whole, &chunk));
    stage->done += whole;
    stage->left -= weft_smaller(stage->left, whole);
    stage->chunk = chunk;
    used = 0;
  }
  *some = weft_smaller(bytes, chunk->bytes - used);
  *out = chunk->memory + used;
  chunk->used = used + *some;
  return WEFT_OK;
}

static weft_status promise(const weft_stage *stage, const weft_delivery *d) {
  weft_ctx *ctx = stage->call->queue->ctx;
  weft_chunk *chunk = stage->chunk;
  weft_delivery *kept = weft_ctx_take(ctx, sizeof *kept, _Alignof(weft_delivery));
  if (!kept)
    return WEFT_E_NOMEM;
  *kept = *d;
  if (chunk->last)
    chunk->last->part.next = &kept->part;
  else
    chunk->first = kept;
  chunk->last = kept;
  return WEFT_OK;
}

static void gather_all(weft_stage *stage) {
  if (stage->gathering_count > 0)
    weft_rows_gather(stage->call->queue->ctx->pool, stage->gatherings);
  stage->gathering_count = 0;
}

// Lets bytes [at, at + bytes) of rows be copied to `to` with the others.
static void add_gathering(weft_stage *stage, uint8_t *to, const weft_const_rows *from,
                          size_t row_bytes, size_t at, size_t bytes) {
  if (stage->gathering_count == WEFT_STAGE_GATHERINGS)
    gather_all(stage);
  weft_gathering *g = &stage->gatherings[stage->gathering_count++];
  *g = (weft_gathering){
      .part = {.row_bytes = row_bytes, .at = at, .bytes = bytes}, .from = *from, .to = to};
  if (stage->gathering_count > 1)
    g[-1].part.next = &g->part;
}

weft_status weft_stage_flush(weft_stage *stage) {
  gather_all(stage);
  const size_t bytes = stage->pending;
  stage->pending = 0;
  return weft_device_copy(stage->call->queue->ctx->device, stage->to,
                          stage->leaves ? WEFT_MEM_PINNED : WEFT_MEM_DEVICE, stage->from,
                          stage->leaves ? WEFT_MEM_DEVICE : WEFT_MEM_PINNED, bytes, stage->stream);
}

// Returns whether the pending copy can go on with what lies at `there` on the device.
static bool goes_on(const weft_stage *stage, bool leaves, const uint8_t *there) {
  const uint8_t *const begin = leaves ? stage->from : stage->to;
  return stage->pending > 0 && stage->leaves == leaves && begin + stage->pending == there;
}

// Lets the pending copy go on, or enqueues it and begins another.
static weft_status add_copy(weft_stage *stage, bool leaves, uint8_t *to, const uint8_t *from,
                            size_t bytes, bool follows) {
  if (!follows || stage->pending == 0) { // another chunk has flushed the one before
    WEFT_TRY(weft_stage_flush(stage));
    stage->to = to;
    stage->from = from;
    stage->leaves = leaves;
  }
  stage->pending += bytes;
  return WEFT_OK;
}

weft_status weft_stage_in(weft_stage *stage, void *to, const weft_const_rows *from, size_t rows,
                          size_t row_bytes) {
  const size_t all = rows * row_bytes;
  uint8_t *there = to, *memory;
  for (size_t at = 0, some; at < all; at += some, there += some) {
    const bool follows = goes_on(stage, false, there);
    WEFT_TRY(take(stage, all - at, 1, follows, &some, &memory));
    WEFT_TRY(add_copy(stage, false, there, memory, some, follows));
    add_gathering(stage, memory, from, row_bytes, at, some);
  }
  return WEFT_OK;
}

weft_status weft_stage_out(weft_stage *stage, const weft_rows *to, const void *from, size_t rows,
                           size_t row_bytes) {
  const size_t all = rows * row_bytes;
  const uint8_t *there = from;
  uint8_t *memory;
  for (size_t at = 0, some; at < all; at += some, there += some) {
    const bool follows = goes_on(stage, true, there);
    WEFT_TRY(take(stage, all - at, 1, follows, &some, &memory));
    WEFT_TRY(add_copy(stage, true, memory, there, some, follows));
    WEFT_TRY(
        promise(stage, &(weft_delivery){.part = {.row_bytes = row_bytes, .at = at, .bytes = some},
                                        .to = *to,
                                        .from = memory}));
  }
  return WEFT_OK;
}

weft_status weft_stage_take(weft_stage *stage, size_t bytes, uint8_t **out) {
  size_t some;
  return take(stage, bytes, bytes, false, &some, out);
}

weft_status weft_stage_memory(weft_stage *stage, const weft_const_rows *from, size_t rows,
                              size_t row_bytes, uint8_t **out) {
  WEFT_TRY(weft_stage_take(stage, rows * row_bytes, out));
  add_gathering(stage, *out, from, row_bytes, 0, rows * row_bytes);
  return WEFT_OK;
}

weft_status weft_stage_results(weft_stage *stage, const weft_rows *to, size_t rows,
                               size_t row_bytes, uint8_t **out) {
  const size_t bytes = rows * row_bytes;
  WEFT_TRY(weft_stage_take(stage, bytes, out));
  return promise(
      stage,
      &(weft_delivery){.part = {.row_bytes = row_bytes, .bytes = bytes}, .to = *to, .from = *out});
}
