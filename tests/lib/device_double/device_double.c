// SPDX-License-Identifier: Apache-2.0
// Memory, streams and copies of the device double (device_double.h), in place of
// kernels/cuda/device.cu. A random stream may advance by one operation whenever the double is
// called.
#define _POSIX_C_SOURCE 200809L
#include "tests/lib/device_double/device_double.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/errors.h"
#include "kernels/cuda/runtime.h"
#include "kernels/device.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

typedef struct block {
  struct block *next;
  const weft_device *device; // the owner
  weft_mem mem;
  uint8_t *memory;
  size_t bytes;
} block;

typedef struct double_stream {
  struct double_stream *next;
  const weft_device *device; // the owner
  uint64_t id;
  double_op *head, *tail;
  uint64_t queued, done; // operations
} double_stream;

struct weft_device {
  const weft_allocator *allocator;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // protects everything below
static block *blocks;
static double_stream *streams;
static size_t pinned, pinned_most; // bytes
static uint64_t next_id = 1, dice = 0x9E3779B97F4A7C15u;
static size_t stream_waits;
static bool broken; // copies now produce wrong bytes
static struct {
  size_t calls, at;
  int error, lasting;
} fault;

static void die(const char *what) {
  fprintf(stderr, "device double: %s\n", what);
  abort();
}

// --- faults ---

void weft_cuda_inject(size_t skip, int error, int lasting) {
  pthread_mutex_lock(&lock);
  fault.calls = 0;
  fault.at = skip;
  fault.error = error;
  fault.lasting = lasting;
  pthread_mutex_unlock(&lock);
}

size_t weft_cuda_calls(void) {
  pthread_mutex_lock(&lock);
  const size_t calls = fault.calls;
  pthread_mutex_unlock(&lock);
  return calls;
}

static weft_status fails(void) {
  const size_t call = fault.calls++;
  const bool hit = fault.error && (call == fault.at || (fault.lasting && call > fault.at));
  return hit ? weft_cuda_status_of(fault.error) : WEFT_OK;
}

weft_status double_fails(void) {
  pthread_mutex_lock(&lock);
  const weft_status status = fails();
  pthread_mutex_unlock(&lock);
  return status;
}

// --- memory ---

static block *block_of(weft_mem mem, const uint8_t *from, size_t bytes) {
  for (block *b = blocks; b; b = b->next)
    if (b->mem == mem && from >= b->memory && from + bytes <= b->memory + b->bytes)
      return b;
  return NULL;
}

void double_open(weft_mem mem, const void *from, size_t bytes) {
  if (mem == WEFT_MEM_HOST || bytes == 0)
    return;
  if (!block_of(mem, from, bytes))
    die(mem == WEFT_MEM_DEVICE ? "an operation beyond live device memory"
                               : "an operation beyond live pinned memory");
  if (mem == WEFT_MEM_DEVICE)
    ASAN_UNPOISON_MEMORY_REGION(from, bytes);
}

void double_close(weft_mem mem, const void *from, size_t bytes) {
  if (mem == WEFT_MEM_DEVICE && bytes > 0)
    ASAN_POISON_MEMORY_REGION(from, bytes);
}

// Allocates a block, with a size limit that no caller relies on, and fills it with bytes that are
// not zero.
static weft_status block_new(const weft_device *device, weft_mem mem, size_t bytes, void **out) {
  enum { SANE = 1 << 30 };
  *out = NULL;
  WEFT_TRY(fails());
  if (bytes > SANE)
    return WEFT_E_DEVICE_NOMEM;
  const weft_allocator *allocator = device->allocator;
  block *b = allocator->alloc(allocator->user, sizeof *b, _Alignof(block));
  if (!b)
    return WEFT_E_NOMEM;
  *b = (block){.next = blocks, .device = device, .mem = mem, .bytes = bytes};
  b->memory = aligned_alloc(256, (bytes + 255) / 256 * 256 + 256);
  if (!b->memory)
    die("no memory");
  memset(b->memory, 0xA5, bytes);
  if (mem == WEFT_MEM_DEVICE)
    ASAN_POISON_MEMORY_REGION(b->memory, bytes);
  ASAN_POISON_MEMORY_REGION(b->memory + bytes, (bytes + 255) / 256 * 256 + 256 - bytes);
  blocks = b;
  pinned += mem == WEFT_MEM_PINNED ? bytes : 0;
  pinned_most = pinned_most > pinned ? pinned_most : pinned;
  *out = b->memory;
  return WEFT_OK;
}

static void block_free(const void *memory) {
  for (block **link = &blocks; *link; link = &(*link)->next)
    if ((*link)->memory == memory) {
      block *b = *link;
      *link = b->next;
      pinned -= b->mem == WEFT_MEM_PINNED ? b->bytes : 0;
      ASAN_UNPOISON_MEMORY_REGION(b->memory, (b->bytes + 255) / 256 * 256 + 256);
      memset(b->memory, 0x5A, b->bytes);
      free(b->memory);
      b->device->allocator->free(b->device->allocator->user, b);
      return;
    }
  die("freed what is not live");
}

weft_status weft_device_alloc(weft_device *device, weft_mem mem, size_t bytes, void **out) {
  pthread_mutex_lock(&lock);
  const weft_status status =
      mem == WEFT_MEM_HOST ? WEFT_E_ARGUMENT : block_new(device, mem, bytes, out);
  pthread_mutex_unlock(&lock);
  return status;
}

void weft_device_free(weft_device *device, weft_mem mem, void *memory) {
  (void)device;
  (void)mem;
  if (!memory)
    return;
  pthread_mutex_lock(&lock);
  block_free(memory);
  pthread_mutex_unlock(&lock);
}

void weft_device_trim(weft_device *device) { (void)device; } // it keeps nothing

size_t weft_device_pinned_peak(weft_device *device) {
  (void)device;
  pthread_mutex_lock(&lock);
  const size_t most = pinned_most;
  pinned_most = pinned;
  pthread_mutex_unlock(&lock);
  return most;
}

// --- streams ---

static double_stream *stream_by_id(uint64_t id) {
  double_stream *stream = streams;
  while (stream && stream->id != id)
    stream = stream->next;
  return stream;
}

static void run_until(double_stream *stream, uint64_t done) {
  while (stream->done < done) {
    double_op *op = stream->head;
    stream->head = op->next;
    if (!stream->head)
      stream->tail = NULL;
    stream->done++;
    op->run(op);
    free(op);
  }
}

// Advances a random stream by one operation, or none.
static void step(void) {
  dice = dice * 6364136223846793005u + 1442695040888963407u;
  size_t skip = (size_t)(dice >> 60);
  for (double_stream *stream = streams; stream; stream = stream->next)
    if (skip-- == 0) {
      if (stream->head)
        run_until(stream, stream->done + 1);
      return;
    }
}

static weft_status enqueue(double_stream *stream, const double_op *op, size_t bytes) {
  WEFT_TRY(fails());
  if (!stream)
    die("no stream");
  double_op *copy = malloc(bytes);
  if (!copy)
    die("no memory");
  memcpy(copy, op, bytes);
  copy->next = NULL;
  *(stream->tail ? &stream->tail->next : &stream->head) = copy;
  stream->tail = copy;
  stream->queued++;
  step();
  return WEFT_OK;
}

weft_status double_enqueue(void *stream, const double_op *op, size_t bytes) {
  pthread_mutex_lock(&lock);
  const weft_status status = enqueue(stream, op, bytes);
  pthread_mutex_unlock(&lock);
  return status;
}

weft_status weft_device_stream_new(weft_device *device, void **out) {
  *out = NULL;
  pthread_mutex_lock(&lock);
  const weft_status status = fails();
  if (status == WEFT_OK) {
    double_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
      die("no memory");
    stream->device = device;
    stream->id = next_id++;
    stream->next = streams;
    streams = stream;
    *out = stream;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

void weft_device_stream_free(weft_device *device, void *handle) {
  (void)device;
  if (!handle)
    return;
  pthread_mutex_lock(&lock);
  double_stream *stream = handle, **link = &streams;
  run_until(stream, stream->queued);
  while (*link != stream)
    link = &(*link)->next;
  *link = stream->next;
  free(stream);
  pthread_mutex_unlock(&lock);
}

weft_status weft_device_stream_poll(weft_device *device, void *handle) {
  (void)device;
  double_stream *stream = handle;
  pthread_mutex_lock(&lock);
  weft_status status = fails();
  if (status == WEFT_OK && stream->head) {
    status = WEFT_PENDING;
    run_until(stream, stream->done + 1);
  }
  pthread_mutex_unlock(&lock);
  return status;
}

// Does the queued work even when the stream has failed, which a real stream would not: the work
// must not run later, in memory that the caller was told is free. Its results are made wrong, so no
// caller can rely on them.
weft_status weft_device_stream_wait(weft_device *device, void *handle) {
  (void)device;
  double_stream *stream = handle;
  pthread_mutex_lock(&lock);
  const weft_status status = fails();
  broken = status == WEFT_E_DEVICE_LOST;
  run_until(stream, stream->queued);
  broken = false;
  stream_waits++;
  pthread_mutex_unlock(&lock);
  return status;
}

size_t weft_double_stream_waits(void) {
  pthread_mutex_lock(&lock);
  const size_t waits = stream_waits;
  pthread_mutex_unlock(&lock);
  return waits;
}

typedef struct meeting {
  double_op op;
  uint64_t stream, done;
} meeting;

static void run_meeting(double_op *op) {
  const meeting *m = (const meeting *)op;
  double_stream *earlier = stream_by_id(m->stream);
  if (earlier && earlier->done < m->done)
    run_until(earlier, m->done);
}

weft_status weft_device_stream_order(weft_device *device, void *later, void *earlier) {
  (void)device;
  const double_stream *first = earlier;
  pthread_mutex_lock(&lock);
  const meeting m = {.op = {.run = run_meeting}, .stream = first->id, .done = first->queued};
  const weft_status status = enqueue(later, &m.op, sizeof m);
  pthread_mutex_unlock(&lock);
  return status;
}

// --- marks ---

typedef struct mark {
  uint64_t stream, done;
} mark;

weft_status weft_device_mark_new(weft_device *device, void *handle, void **out) {
  (void)device;
  const double_stream *stream = handle;
  *out = NULL;
  WEFT_TRY(double_fails());
  mark *m = malloc(sizeof *m);
  if (!m)
    die("no memory");
  pthread_mutex_lock(&lock);
  *m = (mark){.stream = stream->id, .done = stream->queued};
  pthread_mutex_unlock(&lock);
  *out = m;
  return WEFT_OK;
}

// As weft_device_stream_wait does, even when it fails.
weft_status weft_device_mark_wait(weft_device *device, void *handle) {
  (void)device;
  const mark *m = handle;
  pthread_mutex_lock(&lock);
  const weft_status status = fails();
  double_stream *stream = stream_by_id(m->stream);
  broken = status == WEFT_E_DEVICE_LOST;
  if (stream)
    run_until(stream, m->done);
  broken = false;
  pthread_mutex_unlock(&lock);
  return status;
}

void weft_device_mark_free(weft_device *device, void *handle) {
  (void)device;
  free(handle);
}

// --- copies ---

typedef struct copying {
  double_op op;
  uint8_t *to;
  const uint8_t *from;
  weft_mem to_mem, from_mem;
  size_t to_stride, from_stride, bytes, rows;
} copying;

static void run_copy(double_op *op) {
  const copying *c = (const copying *)op;
  for (size_t i = 0; i < c->rows; i++) {
    uint8_t *to = c->to + i * c->to_stride;
    const uint8_t *from = c->from + i * c->from_stride;
    double_open(c->to_mem, to, c->bytes);
    double_open(c->from_mem, from, c->bytes);
    memcpy(to, from, c->bytes);
    if (broken)
      memset(to, 0x77, c->bytes);
    double_close(c->to_mem, to, c->bytes);
    double_close(c->from_mem, from, c->bytes);
  }
}

weft_status weft_device_copy_rows(weft_device *device, void *to, size_t to_stride, weft_mem to_mem,
                                  const void *from, size_t from_stride, weft_mem from_mem,
                                  size_t bytes, size_t rows, void *stream) {
  (void)device;
  if (rows == 0 || bytes == 0)
    return WEFT_OK;
  const copying c = {{.run = run_copy}, to,          from,  to_mem, from_mem,
                     to_stride,         from_stride, bytes, rows};
  pthread_mutex_lock(&lock);
  const weft_status status = enqueue(stream, &c.op, sizeof c);
  if (status == WEFT_OK && (to_mem == WEFT_MEM_HOST || from_mem == WEFT_MEM_HOST))
    run_until(stream, ((double_stream *)stream)->queued); // as the CUDA runtime does
  pthread_mutex_unlock(&lock);
  return status;
}

weft_status weft_device_copy(weft_device *device, void *to, weft_mem to_mem, const void *from,
                             weft_mem from_mem, size_t bytes, void *stream) {
  return weft_device_copy_rows(device, to, bytes, to_mem, from, bytes, from_mem, bytes, 1, stream);
}

typedef struct pieces_copy {
  double_op op;
  const weft_device_piece *pieces;
  size_t count;
} pieces_copy;

static weft_mem mem_of(const void *at, size_t bytes) {
  return block_of(WEFT_MEM_DEVICE, at, bytes) ? WEFT_MEM_DEVICE : WEFT_MEM_PINNED;
}

static void run_pieces(double_op *op) {
  const pieces_copy *c = (const pieces_copy *)op;
  double_open(WEFT_MEM_PINNED, c->pieces, c->count * sizeof *c->pieces);
  for (size_t i = 0; i < c->count; i++) {
    const weft_device_piece *piece = &c->pieces[i];
    const weft_mem to = mem_of(piece->to, piece->bytes), from = mem_of(piece->from, piece->bytes);
    double_open(to, piece->to, piece->bytes);
    if (!piece->from) {
      memset(piece->to, 0, piece->bytes);
      double_close(to, piece->to, piece->bytes);
      continue;
    }
    double_open(from, piece->from, piece->bytes);
    if (piece->bytes > 0)
      memcpy(piece->to, piece->from, piece->bytes);
    double_close(to, piece->to, piece->bytes);
    double_close(from, piece->from, piece->bytes);
  }
}

weft_status weft_device_copy_pieces(const weft_exec *exec, const weft_device_piece *pieces,
                                    size_t count) {
  if (count == 0)
    return WEFT_OK;
  const pieces_copy c = {{.run = run_pieces}, pieces, count};
  return double_enqueue(exec->stream, &c.op, sizeof c);
}

// --- scratch ---

weft_status weft_device_scratch(const weft_exec *exec, size_t bytes, void **out) {
  pthread_mutex_lock(&lock);
  const weft_status status = block_new(exec->device, WEFT_MEM_DEVICE, bytes ? bytes : 1, out);
  pthread_mutex_unlock(&lock);
  return status;
}

typedef struct freeing {
  double_op op;
  void *memory;
} freeing;

static void run_free(double_op *op) { block_free(((const freeing *)op)->memory); }

void weft_device_scratch_free(const weft_exec *exec, void *memory) {
  if (!memory)
    return;
  const freeing f = {{.run = run_free}, memory};
  pthread_mutex_lock(&lock);
  const int error = fault.error;
  fault.error = 0; // freeing cannot fail
  const weft_status status = enqueue(exec->stream, &f.op, sizeof f);
  fault.error = error;
  fault.calls--;
  pthread_mutex_unlock(&lock);
  if (status != WEFT_OK)
    die("scratch was not freed");
}

// --- devices ---

size_t weft_device_count(void) { return double_fails() == WEFT_OK ? 1 : 0; }

const char *weft_device_absence(void) {
  return double_fails() == WEFT_OK ? "" : "a test wants none";
}

weft_status weft_device_open(weft_device **out, size_t index, const weft_allocator *allocator) {
  *out = NULL;
  WEFT_TRY(double_fails());
  if (index > 0)
    return WEFT_E_ARGUMENT;
  weft_device *device = allocator->alloc(allocator->user, sizeof *device, _Alignof(weft_device));
  if (!device)
    return WEFT_E_NOMEM;
  device->allocator = allocator;
  *out = device;
  return WEFT_OK;
}

// Closes a device and frees the memory left on it, as a real device does; all work has been waited
// for. Aborts if a stream is left, which would leak.
void weft_device_close(weft_device *device) {
  if (!device)
    return;
  pthread_mutex_lock(&lock);
  for (double_stream *stream = streams; stream; stream = stream->next) {
    if (stream->device == device)
      die("a stream is left");
    run_until(stream, stream->queued);
  }
  for (block *b = blocks, *next; b; b = next) {
    next = b->next;
    if (b->device == device)
      block_free(b->memory);
  }
  pthread_mutex_unlock(&lock);
  device->allocator->free(device->allocator->user, device);
}

int weft_device_sm(const weft_device *device) {
  (void)device;
  return 90;
}

int weft_device_block_bytes(const weft_device *device) {
  (void)device;
  return 227 << 10;
}

const char *weft_device_name(const weft_device *device) {
  (void)device;
  return "device double";
}
