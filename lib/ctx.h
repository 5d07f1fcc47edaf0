// SPDX-License-Identifier: Apache-2.0
// Internals of contexts and queues, shared by the files of lib/. A "row" here is a backend row
// (kernels/backend.h).
#ifndef WEFT_LIB_CTX_H
#define WEFT_LIB_CTX_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/backend.h"
#include "kernels/device.h"
#include "lib/code_seal.h"
#include "weft/context.h"

enum { WEFT_SPARE_STREAMS = 8, WEFT_SIDE_STREAMS = 6 };

// Pinned bytes with which a queue stages ordinary memory, and of one chunk of them (chunks.h).
// Tests set a smaller limit.
#ifndef WEFT_STAGED_MOST
#define WEFT_STAGED_MOST ((size_t)64 << 20)
#endif
#define WEFT_STAGED_CHUNK (WEFT_STAGED_MOST / 16)

struct weft_ctx {
  weft_allocator allocator;
  const weft_backend *row;  // computes what is large
  const weft_backend *host; // computes what is small; equal to `row` without a device
  weft_pool *pool;
  weft_scratch *scratch; // for the host row's calls
  weft_partition partition;
  weft_device *device;                  // NULL when row is a host row
  struct weft_code_folder *code_folder; // NULL: compiled kernels are kept elsewhere, or not at all
  weft_code_seal code_seal;             // on the folder, or on the caller's store
  size_t compile_after;                 // from the options
  // Streams that calls without a queue borrow, so that several threads can make such calls.
  pthread_mutex_t spare_lock;
  void *spare[WEFT_SPARE_STREAMS];
  size_t spares;
};

// Work that a call leaves on a queue: called once, on the thread that finds the queue idle (or
// broken: status is then not WEFT_OK), to deliver results and free what the work needed.
typedef struct weft_deferred {
  struct weft_deferred *next;
  void (*finish)(struct weft_deferred *self, weft_ctx *ctx, weft_status status);
} weft_deferred;

struct weft_queue {
  weft_ctx *ctx;
  void *stream;                  // NULL without a device
  void *side[WEFT_SIDE_STREAMS]; // created when first needed (weft_queue_side)
  bool foreign;                  // stream is the caller's own
  weft_deferred *deferred;
  struct weft_chunk *oldest, **end;     // what ordinary memory is staged in (chunks.h)
  size_t staged;                        // bytes of all chunks
  size_t closed;                        // bytes of all chunks ever filled, those freed too
  size_t marked[WEFT_SIDE_STREAMS + 1]; // that count at the last mark of each stream; last: own
  weft_status failed;                   // what a call found that waited for a part of the work
  weft_status owed;                     // failure of earlier work that a failing call waited for
};

// Waits for the queue after a call has failed. A failure of earlier work is kept for the caller,
// whose next poll or wait returns it.
void weft_queue_drain(weft_queue *queue);

static inline void *weft_ctx_take(const weft_ctx *ctx, size_t bytes, size_t align) {
  return ctx->allocator.alloc(ctx->allocator.user, bytes > 0 ? bytes : 1, align);
}

static inline void weft_ctx_give(const weft_ctx *ctx, void *memory) {
  if (memory)
    ctx->allocator.free(ctx->allocator.user, memory);
}

// Returns the stride of rows in weft's own memory: aligned to cache lines, so that a product's
// vector loads never cross one; crossings cost a fifth of a product's time.
enum { WEFT_LINE = 64 };
static inline size_t weft_row_stride(size_t bytes) {
  return (bytes + WEFT_LINE - 1) / WEFT_LINE * WEFT_LINE;
}

// Whether `count` rows of row_bytes, a stride apart, do not overlap and are no longer than any
// object together, so that their addresses can be computed. Without a division for usual sizes,
// which would be noticeable for small batches.
static inline bool weft_stride_valid(size_t count, size_t stride, size_t row_bytes) {
  return count <= 1 || (stride >= row_bytes &&
                        ((count | stride) <= INT32_MAX || stride <= (size_t)PTRDIFF_MAX / count));
}

// Checks that the kind of memory exists and that the context can access it.
static inline weft_status weft_mem_check(weft_mem mem, bool has_device) {
  if (mem == WEFT_MEM_DEVICE)
    return has_device ? WEFT_OK : WEFT_E_UNSUPPORTED;
  return mem == WEFT_MEM_HOST || mem == WEFT_MEM_PINNED ? WEFT_OK : WEFT_E_ARGUMENT;
}

// Describes how the host row runs; `pool` is NULL for work that one thread finishes sooner than
// several.
static inline weft_exec weft_ctx_host_exec(const weft_ctx *ctx, weft_pool *pool) {
  return (weft_exec){.allocator = &ctx->allocator,
                     .scratch = ctx->scratch,
                     .pool = pool,
                     .partition = ctx->partition};
}

// A call's queue, its own if the caller gave none; used as begin, work, end. weft_call_end waits
// for the work if the queue is the call's own, and then runs its deferred work.
typedef struct weft_call {
  weft_queue own;
  weft_queue *queue; // the caller's or &own
  weft_exec exec;    // how ctx->row runs on that queue
} weft_call;

weft_status weft_call_begin(weft_ctx *ctx, weft_queue *queue, weft_call *call);
weft_status weft_call_end(weft_ctx *ctx, weft_call *call, weft_status status);
// Returns a stream for work in parallel with the queue's own stream: on the first, results are
// copied while the queue computes.
weft_status weft_queue_side(weft_queue *queue, size_t index, void **out);
// Leaves `deferred` on the call's queue.
void weft_call_defer(weft_call *call, weft_deferred *deferred);

// Memory that lasts until the call's work is done: PINNED on a device context, where copies from
// ordinary memory would make the caller wait; otherwise HOST.
typedef struct weft_kept {
  weft_deferred deferred;
  weft_mem mem;
  uint8_t *bytes;
} weft_kept;

weft_status weft_call_keep(weft_ctx *ctx, weft_call *call, size_t bytes, weft_kept **out);
// The same for what weft_call_upload or weft_call_products will read: HOST if that is more than a
// chunk, since they stage it chunk by chunk.
weft_status weft_call_keep_source(weft_ctx *ctx, weft_call *call, size_t bytes, weft_kept **out);

#endif
