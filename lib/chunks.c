// SPDX-License-Identifier: Apache-2.0
// A queue's ring of pinned chunks (chunks.h), oldest first.
#include "lib/chunks.h"

#include <string.h>

#include "kernels/smaller.h"

enum {
  MARKED_BYTES = 64 << 10, // a mark costs as much time as copying so many
  LEAST_BYTES = 256        // of a chunk: pinned memory is not allocated in less
};

// Bytes of a chunk that belong in dense rows of ordinary memory.
typedef struct delivery {
  struct delivery *next;
  weft_rows to;
  size_t row_bytes;
  size_t at, bytes; // of the rows
  const uint8_t *from;
} delivery;

typedef struct weft_chunk {
  struct weft_chunk *next; // younger
  uint8_t *memory;
  size_t bytes, used;
  bool open;    // its stream's work is not all enqueued
  void *stream; // that works on it
  void *mark;   // when it has; NULL: when it has passed a later one, or is idle
  delivery *first, *last;
} weft_chunk;

// --- rows ---

// Copies bytes [at, at + bytes) of rows to dense memory.
static void gather(uint8_t *to, const weft_const_rows *from, size_t row_bytes, size_t at,
                   size_t bytes) {
  if (!from->ptr && from->stride == row_bytes) {
    memcpy(to, from->base + at, bytes);
    return;
  }
  size_t row = at / row_bytes, in = at % row_bytes;
  for (size_t some; bytes > 0; bytes -= some, to += some, row++, in = 0) {
    some = weft_smaller(bytes, row_bytes - in);
    memcpy(to, weft_const_row(from, row) + in, some);
  }
}

static void deliver(const delivery *d) {
  size_t row = d->at / d->row_bytes, in = d->at % d->row_bytes;
  const uint8_t *from = d->from;
  for (size_t left = d->bytes, some; left > 0; left -= some, from += some, row++, in = 0) {
    some = weft_smaller(left, d->row_bytes - in);
    memcpy(weft_row(&d->to, row) + in, from, some);
  }
}

// --- the ring ---

static void forget(const weft_ctx *ctx, weft_chunk *chunk) {
  for (delivery *d = chunk->first, *next; d; d = next) {
    next = d->next;
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
  for (const delivery *d = chunk->first; d && status == WEFT_OK; d = d->next)
    deliver(d);
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

// Provides pinned memory for the first *some of `bytes` bytes, *some >= at_least. `follows`:
// directly behind the last, where there is room.
static weft_status take(weft_stage *stage, size_t bytes, size_t at_least, bool follows,
                        size_t *some, uint8_t **out) {
  weft_chunk *chunk = stage->chunk;
  size_t used = chunk && follows ? chunk->used : chunk ? weft_row_stride(chunk->used) : 0;
  if (!chunk || used + at_least > chunk->bytes) {
    WEFT_TRY(weft_stage_flush(stage));
    weft_stage_close(stage);
    const size_t wanted =
        weft_smaller(stage->left > bytes ? stage->left : bytes, WEFT_STAGED_CHUNK);
    size_t whole = LEAST_BYTES; // few sizes, so that later calls find memory of the same
    while (whole < wanted || whole < at_least)
      whole *= 2;
    WEFT_TRY(chunk_new(stage->call->queue, stage->stream, whole, &chunk));
    stage->left -= weft_smaller(stage->left, whole);
    stage->chunk = chunk;
    used = 0;
  }
  *some = weft_smaller(bytes, chunk->bytes - used);
  *out = chunk->memory + used;
  chunk->used = used + *some;
  return WEFT_OK;
}

static weft_status promise(const weft_stage *stage, const delivery *d) {
  weft_ctx *ctx = stage->call->queue->ctx;
  weft_chunk *chunk = stage->chunk;
  delivery *kept = weft_ctx_take(ctx, sizeof *kept, _Alignof(delivery));
  if (!kept)
    return WEFT_E_NOMEM;
  *kept = *d;
  *(chunk->last ? &chunk->last->next : &chunk->first) = kept;
  chunk->last = kept;
  return WEFT_OK;
}

weft_status weft_stage_flush(weft_stage *stage) {
  const size_t bytes = stage->pending;
  stage->pending = 0;
  return weft_device_copy(stage->call->queue->ctx->device, stage->to, WEFT_MEM_DEVICE, stage->from,
                          WEFT_MEM_PINNED, bytes, stage->stream);
}

weft_status weft_stage_in(weft_stage *stage, void *to, const weft_const_rows *from, size_t rows,
                          size_t row_bytes) {
  const size_t all = rows * row_bytes;
  uint8_t *there = to;
  for (size_t at = 0, some; at < all; at += some, there += some) {
    const bool follows = stage->pending > 0 && stage->to + stage->pending == there;
    uint8_t *memory;
    WEFT_TRY(take(stage, all - at, 1, follows, &some, &memory));
    gather(memory, from, row_bytes, at, some);
    if (stage->pending == 0 || !follows) { // another chunk has flushed the one before
      WEFT_TRY(weft_stage_flush(stage));
      stage->to = there;
      stage->from = memory;
    }
    stage->pending += some;
  }
  return WEFT_OK;
}

weft_status weft_stage_out(weft_stage *stage, const weft_rows *to, const void *from, size_t rows,
                           size_t row_bytes) {
  const size_t all = rows * row_bytes;
  for (size_t at = 0, some; at < all; at += some) {
    uint8_t *memory;
    WEFT_TRY(take(stage, all - at, 1, false, &some, &memory));
    WEFT_TRY(weft_device_copy(stage->call->queue->ctx->device, memory, WEFT_MEM_PINNED,
                              (const uint8_t *)from + at, WEFT_MEM_DEVICE, some, stage->stream));
    WEFT_TRY(promise(
        stage,
        &(delivery){.to = *to, .row_bytes = row_bytes, .at = at, .bytes = some, .from = memory}));
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
  gather(*out, from, row_bytes, 0, rows * row_bytes);
  return WEFT_OK;
}

weft_status weft_stage_results(weft_stage *stage, const weft_rows *to, size_t rows,
                               size_t row_bytes, uint8_t **out) {
  const size_t bytes = rows * row_bytes;
  WEFT_TRY(weft_stage_take(stage, bytes, out));
  return promise(stage,
                 &(delivery){.to = *to, .row_bytes = row_bytes, .bytes = bytes, .from = *out});
}
