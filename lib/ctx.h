// SPDX-License-Identifier: Apache-2.0
// Inside of contexts and queues, for the other files of lib/.
#ifndef WEFT_LIB_CTX_H
#define WEFT_LIB_CTX_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/backend.h"
#include "kernels/device.h"
#include "weft/context.h"

enum { WEFT_SPARE_STREAMS = 8, WEFT_SIDE_STREAMS = 6 };

struct weft_ctx {
  weft_allocator allocator;
  const weft_backend *row;  // computes what is large
  const weft_backend *host; // computes what is small; the same as row without a device
  weft_pool *pool;
  weft_scratch *scratch; // of the host row's calls
  weft_partition partition;
  weft_device *device;                  // NULL when row is a host row
  struct weft_code_folder *code_folder; // NULL: compiled kernels are kept elsewhere, or nowhere
  size_t compile_after;                 // as the options have it
  // Streams that calls without a queue borrow, so that several threads can make such calls.
  pthread_mutex_t spare_lock;
  void *spare[WEFT_SPARE_STREAMS];
  size_t spares;
};

// What a call leaves on a queue: called once, on the thread that finds the queue idle (or broken:
// status is then not WEFT_OK), to hand out results and to free what the work needed.
typedef struct weft_deferred {
  struct weft_deferred *next;
  void (*finish)(struct weft_deferred *self, weft_ctx *ctx, weft_status status);
} weft_deferred;

struct weft_queue {
  weft_ctx *ctx;
  void *stream;                  // NULL without a device
  void *side[WEFT_SIDE_STREAMS]; // made when a call first needs them (weft_queue_side)
  bool foreign;                  // stream is the caller's own
  weft_deferred *deferred;
  weft_status owed; // of earlier calls' work, which a call that failed has waited for
};

// Waits behind a call that failed. What earlier work has to tell stays owed to the caller, whose
// next poll or wait gets it.
void weft_queue_drain(weft_queue *queue);

static inline void *weft_ctx_take(const weft_ctx *ctx, size_t bytes, size_t align) {
  return ctx->allocator.alloc(ctx->allocator.user, bytes > 0 ? bytes : 1, align);
}

static inline void weft_ctx_give(const weft_ctx *ctx, void *memory) {
  if (memory)
    ctx->allocator.free(ctx->allocator.user, memory);
}

// From one row to the next where rows lie in memory of weft's own: the vectors of a product then
// cross no line of a cache, which takes a fifth of the time where they do.
enum { WEFT_LINE = 64 };
static inline size_t weft_row_stride(size_t bytes) {
  return (bytes + WEFT_LINE - 1) / WEFT_LINE * WEFT_LINE;
}

// Memory of a kind that there is, and that can be reached.
static inline weft_status weft_mem_check(weft_mem mem, bool has_device) {
  if (mem == WEFT_MEM_DEVICE)
    return has_device ? WEFT_OK : WEFT_E_UNSUPPORTED;
  return mem == WEFT_MEM_HOST || mem == WEFT_MEM_PINNED ? WEFT_OK : WEFT_E_ARGUMENT;
}

// How the host row runs; `pool` is NULL for work that one thread does sooner than several.
static inline weft_exec weft_ctx_host_exec(const weft_ctx *ctx, weft_pool *pool) {
  return (weft_exec){.allocator = &ctx->allocator,
                     .scratch = ctx->scratch,
                     .pool = pool,
                     .partition = ctx->partition};
}

// A queue of the call's own where the caller gave none: begin, work, end. `end` waits for the work
// when the queue is the call's own, and runs what it left behind.
typedef struct weft_call {
  weft_queue own;
  weft_queue *queue; // the caller's or &own
  weft_exec exec;    // how ctx->row runs on that queue
} weft_call;

weft_status weft_call_begin(weft_ctx *ctx, weft_queue *queue, weft_call *call);
weft_status weft_call_end(weft_ctx *ctx, weft_call *call, weft_status status);
// A stream for what goes on beside the queue's own: on the first, results travel while that
// computes.
weft_status weft_queue_side(weft_queue *queue, size_t index, void **out);
// Leaves `deferred` on the call's queue.
void weft_call_defer(weft_call *call, weft_deferred *deferred);

// Memory that lasts until the call's work is done: PINNED on a device context, since a copy from or
// to ordinary memory would make the caller wait; HOST otherwise.
typedef struct weft_kept {
  weft_deferred deferred;
  weft_mem mem;
  uint8_t *bytes;
  // Results to hand out when the work is done: rows of row_bytes each, dense from `results` on.
  const uint8_t *results;
  weft_rows to; // in host memory
  size_t rows, row_bytes;
} weft_kept;

weft_status weft_call_keep(weft_ctx *ctx, weft_call *call, size_t bytes, weft_kept **out);

#endif
