// SPDX-License-Identifier: Apache-2.0
// The context: which backend row computes, on how many threads, with whose memory; and queues.
//
// Threads: a context may be shared by any number of threads. Every other handle, queues among them,
// is used by one thread at a time; but calls of encoders only read their segment, so that several
// threads may encode from one, each with an encoder of its own. A handle must be freed before the
// context it was made from. A process that forks makes its handles anew: the child's copies have
// lost their threads, so that freeing them is undefined, and would draw the same coefficients as
// the parent's.
//
// Here and in the other headers: a call that returns a status answers a handle that is NULL, or a
// queue of another context, with WEFT_E_ARGUMENT. A call that returns anything else needs a handle.
// A call that makes something leaves NULL in *out when it fails. A `count` of 0 is no error: there
// is nothing to do. Other buffers than those that a header lets overlap do not.
#ifndef WEFT_CONTEXT_H
#define WEFT_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "weft/code_store.h"
#include "weft/memory.h"
#include "weft/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_ctx weft_ctx;
typedef struct weft_queue weft_queue;

// How host threads share one product; the names in brackets are Shojania and Li's.
typedef enum weft_split {
  WEFT_SPLIT_AUTO,
  WEFT_SPLIT_COLUMNS, // each thread computes a range of bytes of all blocks ("partitioned block")
  WEFT_SPLIT_ROWS     // each thread computes whole coded blocks ("full block")
} weft_split;

// All zero (or NULL in its place) means the defaults.
typedef struct weft_ctx_options {
  // Name of a backend row, or NULL: the environment's WEFT_BACKEND if set, else the best host row.
  // "cuda" stands for the best device row.
  const char *backend;
  // Host threads that work on one call, the caller's included, at most 4096; 0: one.
  size_t threads;
  weft_split split;
  size_t device; // index of the GPU, for device rows
  // NULL: the C library's; copied. What calls on the host work in, up to 0.6 MiB for each thread
  // that calls, stays with the context for later ones until it is freed.
  const weft_allocator *allocator;
  // Storage codes on a GPU can have a kernel compiled for one matrix (with NVRTC, where it is
  // installed), which is then the quickest. Where such kernels are kept between runs: a store, or a
  // folder that exists; NULL: the environment's WEFT_CODE_FOLDER, else nowhere. The store is
  // copied. What is kept is found again with the same model of GPU, driver and NVRTC, which must
  // be installed for that even where nothing is compiled.
  const weft_code_store *code_store;
  const char *code_folder;
  // Compiles once products with a matrix have read this many bytes; 0: when that repays a second of
  // compiling (1 TiB). 1: at first use. SIZE_MAX: never, only what is kept is used.
  // On a host with AVX2, CRS codes whose packets are multiples of 64 bytes become machine code by
  // the same rule; 0: when that repays 10 us to 5 ms of compiling (about 2 KiB for each bit that is
  // set in the matrix). SIZE_MAX: none of this context's codes makes memory executable. Where the
  // process may not, they go on without.
  size_t compile_after;
} weft_ctx_options;

// Errors: WEFT_E_ARGUMENT (out is NULL, an allocator lacks a call, a split or a number of threads
// that there is not), WEFT_E_BACKEND_UNKNOWN, WEFT_E_BACKEND_ABSENT (never
// replaced by another row; also when there is no GPU `device`), WEFT_E_NOMEM, WEFT_E_THREAD,
// WEFT_E_RANDOM, WEFT_E_DEVICE*. A code folder that cannot be used is none: nothing is kept then.
weft_status weft_ctx_new(weft_ctx **out, const weft_ctx_options *options);
void weft_ctx_free(weft_ctx *ctx); // accepts NULL

// The row that computes for this context ("gfni512"), and the host row that does what is too small
// for a device. The strings are static.
const char *weft_ctx_backend(const weft_ctx *ctx);
const char *weft_ctx_host_backend(const weft_ctx *ctx);
size_t weft_ctx_threads(const weft_ctx *ctx);

// The compiled rows, best first. `available` tells whether this machine has what the row needs.
typedef struct weft_backend_info {
  const char *name;
  const char *technique; // one line
  weft_mem mem;          // WEFT_MEM_HOST or WEFT_MEM_DEVICE
  size_t align;          // bytes; alignment that buys speed
  int available;
} weft_backend_info;

size_t weft_backend_count_all(void);
// Errors: WEFT_E_ARGUMENT (index >= weft_backend_count_all(), or NULL). The strings are static.
weft_status weft_backend_describe(size_t index, weft_backend_info *out);

// Memory that suits the context's row. HOST memory can be had from every context; PINNED and DEVICE
// from a device context (else WEFT_E_UNSUPPORTED). bytes >= 1. Aligned to 64 bytes at least; the
// caller's until weft_free with the same mem. Errors: WEFT_E_ARGUMENT, WEFT_E_NOMEM,
// WEFT_E_DEVICE*.
weft_status weft_alloc(weft_ctx *ctx, weft_mem mem, size_t bytes, void **out);
void weft_free(weft_ctx *ctx, weft_mem mem, void *memory); // accepts NULL

// A queue orders work. On a device context calls only enqueue, and the buffers they name must stay
// until the queue is idle; on a host context the work is done when the call returns. Scratch that
// calls left on a queue is freed when it is polled idle, waited for or freed. Errors of
// weft_queue_new: WEFT_E_ARGUMENT (NULL), WEFT_E_NOMEM, WEFT_E_DEVICE*.
weft_status weft_queue_new(weft_ctx *ctx, weft_queue **out);
void weft_queue_free(weft_queue *queue);        // waits first; accepts NULL
weft_status weft_queue_poll(weft_queue *queue); // WEFT_OK: idle; WEFT_PENDING; or what went wrong
weft_status weft_queue_wait(weft_queue *queue); // WEFT_OK, or what went wrong

#ifdef __cplusplus
}
#endif
#endif
