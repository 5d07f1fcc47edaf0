// SPDX-License-Identifier: Apache-2.0
// The context (which backend row computes, on how many threads, with which memory) and queues.
//
// Threads: any number of threads may share a context. Every other handle, queues included, may be
// used by one thread at a time. Encoders only read their segment, so several threads may encode
// from one segment, each with its own encoder. Free every handle before the context it was made
// from. A process that forks must make new handles in the child: the child's copies have lost their
// threads, so freeing them is undefined, and they would draw the same coefficients as the parent's.
//
// In this and the other headers: a call that returns a status returns WEFT_E_ARGUMENT for a NULL
// handle or a queue of another context. A call that returns anything else needs a valid handle. A
// call that creates something sets *out to NULL when it fails. A `count` of 0 is not an error:
// there is nothing to do, and most calls do not look at the queue then. Buffers must not overlap
// unless the header says that they may.
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

// How host threads share one product; the names in brackets are those of Shojania and Li.
typedef enum weft_split {
  WEFT_SPLIT_AUTO,
  WEFT_SPLIT_COLUMNS, // each thread computes a range of bytes of all blocks ("partitioned block")
  WEFT_SPLIT_ROWS     // each thread computes whole coded blocks ("full block")
} weft_split;

// All zero (or NULL instead of a pointer to it) selects the defaults.
typedef struct weft_ctx_options {
  // Name of a backend row (an implementation of the kernels). NULL: the environment variable
  // WEFT_BACKEND if set, else the best host row. An empty name, here or there, selects the best
  // host row, too. "cuda" selects the best device row.
  const char *backend;
  // Host threads that work on one call, including the calling thread; at most 4096; 0: one. On a
  // device context they copy HOST memory to and from pinned memory, of which one thread copies less
  // than a bus carries.
  size_t threads;
  weft_split split;
  size_t device; // index of the GPU, for device rows
  // NULL: the C library's allocator. Copied. Working memory of calls on the host, up to 0.6 MiB for
  // each thread that works on one and at most 16 such blocks, is kept by the context for later
  // calls until the context is freed.
  const weft_allocator *allocator;
  // For storage codes on a GPU, a kernel can be compiled for one matrix (with NVRTC, where it is
  // installed); such kernels are the fastest. They are kept between runs in a store or in an
  // existing folder; NULL: in the folder named by the environment variable WEFT_CODE_FOLDER, else
  // nowhere. The store is copied. A kept kernel is found again only with the same model of GPU,
  // driver and build of NVRTC, which must therefore be installed even where nothing is compiled.
  const weft_code_store *code_store;
  const char *code_folder;
  // A kernel is compiled once products with its matrix have read this many bytes. 0: the amount
  // that repays a second of compiling (1 TiB). 1: at first use. SIZE_MAX: never; only kept kernels
  // are used.
  // On a host with AVX2, the same rule applies to machine code for CRS codes whose packets are
  // multiples of 64 bytes. 0: the amount that repays 10 us to 5 ms of compiling (about 2 KiB for
  // each set bit of the matrix). SIZE_MAX: no code of this context makes memory executable. Where
  // the process is not allowed to, codes work without machine code.
  size_t compile_after;
} weft_ctx_options;

// Errors: WEFT_E_ARGUMENT (out is NULL, an allocator lacks a call, an invalid split or number of
// threads), WEFT_E_BACKEND_UNKNOWN, WEFT_E_BACKEND_ABSENT (no other row is substituted; also when
// there is no GPU number `device`, and for "cuda" in a library built without CUDA), WEFT_E_NOMEM,
// WEFT_E_THREAD, WEFT_E_RANDOM, WEFT_E_DEVICE*. A code folder that cannot be used is not an error:
// no kernels are kept.
weft_status weft_ctx_new(weft_ctx **out, const weft_ctx_options *options);
void weft_ctx_free(weft_ctx *ctx); // accepts NULL

// The row that computes for this context ("gfni512"), and the host row that handles work too small
// for a device. The strings are static.
const char *weft_ctx_backend(const weft_ctx *ctx);
const char *weft_ctx_host_backend(const weft_ctx *ctx);
size_t weft_ctx_threads(const weft_ctx *ctx);

// The compiled rows, best first. `available` says whether this machine has what the row needs.
typedef struct weft_backend_info {
  const char *name;
  const char *technique; // one line
  weft_mem mem;          // WEFT_MEM_HOST or WEFT_MEM_DEVICE
  size_t align;          // bytes; buffers aligned to this are faster
  int available;
} weft_backend_info;

size_t weft_backend_count_all(void);
// Errors: WEFT_E_ARGUMENT (index >= weft_backend_count_all(), or NULL). The strings are static.
weft_status weft_backend_describe(size_t index, weft_backend_info *out);

// Memory suited to the context's row. Every context can allocate HOST memory; only device contexts
// can allocate PINNED and DEVICE memory (else WEFT_E_UNSUPPORTED). bytes >= 1. Aligned to at least
// 64 bytes. The caller frees it with weft_free and the same mem. Errors: WEFT_E_ARGUMENT,
// WEFT_E_NOMEM, WEFT_E_DEVICE*.
weft_status weft_alloc(weft_ctx *ctx, weft_mem mem, size_t bytes, void **out);
// PINNED and DEVICE memory is kept for later allocations of its size, by the caller or the library,
// until the context is freed or trimmed, or until memory of that kind runs out.
void weft_free(weft_ctx *ctx, weft_mem mem, void *memory); // accepts NULL
// Returns what is kept so to the system. Waits for the device. Calls that follow allocate anew,
// which takes milliseconds and waits for the device too.
void weft_ctx_trim(weft_ctx *ctx); // accepts NULL

// A queue orders work. On a device context calls only enqueue, and the buffers they name must stay
// valid until the queue is idle; on a host context the work is done when the call returns. Scratch
// memory that calls left on a queue is freed when the queue is found idle by a poll, is waited for,
// or is freed. Data and payloads in HOST memory pass through pinned memory of the library's own, of
// which a queue, or a call without one, has at most 64 MiB at a time. Beside it each call has
// coefficients, of up to 4 MiB for each of its batches, and more where those in DEVICE memory have
// gaps between rows; seeds; a byte for each job of a decoding; 24 bytes for each row that is copied
// or cleared by itself; and for weft_decoders_add up to 64 MiB of HOST payloads, or the largest n
// (a multiple of 64) and 48 bytes for each packet whose payload is elsewhere. A call that needs
// more waits, before it returns, for the oldest work that uses this memory; results of that work
// are then in HOST memory before the queue is idle. A call that fails once it has begun waits for
// all work on its queue: nothing uses the memory that it named when it has returned. The queue
// reports failures of earlier work as ever. Errors of weft_queue_new: WEFT_E_ARGUMENT (NULL),
// WEFT_E_NOMEM, WEFT_E_DEVICE*.
weft_status weft_queue_new(weft_ctx *ctx, weft_queue **out);
void weft_queue_free(weft_queue *queue);        // waits first; accepts NULL
weft_status weft_queue_poll(weft_queue *queue); // WEFT_OK: idle; WEFT_PENDING; or the error
weft_status weft_queue_wait(weft_queue *queue); // WEFT_OK, or the error

#ifdef __cplusplus
}
#endif
#endif
