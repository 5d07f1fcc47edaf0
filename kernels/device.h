// SPDX-License-Identifier: Apache-2.0
// GPUs as the rest of weft sees them: opaque, with no CUDA type. Without CUDA in the build there
// are none: weft_device_count then gives 0 (device_absent.c).
#ifndef WEFT_KERNELS_DEVICE_H
#define WEFT_KERNELS_DEVICE_H

#include <stddef.h>

#include "kernels/backend.h"
#include "weft/code_store.h"

// Returns how many devices can be used; 0 without driver or device, which is no error.
size_t weft_device_count(void);
// Says in words why that is 0, for example "no CUDA-capable device is detected"; "" if it is not.
const char *weft_device_absence(void);

// Opens device `index` (< weft_device_count()). The device may be shared by threads; each stream
// belongs to one thread at a time.
weft_status weft_device_open(weft_device **out, size_t index, const weft_allocator *allocator);
// Waits for the device's work and frees what it holds; accepts NULL.
void weft_device_close(weft_device *device);

int weft_device_sm(const weft_device *device);          // compute capability, major * 10 + minor
int weft_device_block_bytes(const weft_device *device); // most shared memory of a block
const char *weft_device_name(const weft_device *device);

// Allocates PINNED or DEVICE memory from the device's arena (freed blocks are kept for later
// calls).
weft_status weft_device_alloc(weft_device *device, weft_mem mem, size_t bytes, void **out);
// Accepts NULL. The memory may be handed out again at once, so work that uses it must have
// finished, or be on the stream that uses it next.
void weft_device_free(weft_device *device, weft_mem mem, void *memory);
// Waits for the device, and gives the kept blocks and scratch back to the runtime.
void weft_device_trim(weft_device *device);
// Returns the most bytes of PINNED memory that were in use at once since the last call of this, or
// since the device was opened: allocated and not freed, each block with all that it takes.
size_t weft_device_pinned_peak(weft_device *device);

weft_status weft_device_stream_new(weft_device *device, void **out);
void weft_device_stream_free(weft_device *device, void *stream);
// Returns WEFT_OK when all work on the stream is done, WEFT_PENDING, or an error.
weft_status weft_device_stream_poll(weft_device *device, void *stream);
weft_status weft_device_stream_wait(weft_device *device, void *stream);

// Makes a mark behind all work on the stream so far. Waiting for it returns once the stream has
// passed it, sooner than waiting for the stream.
weft_status weft_device_mark_new(weft_device *device, void *stream, void **out);
weft_status weft_device_mark_wait(weft_device *device, void *mark);
void weft_device_mark_free(weft_device *device, void *mark); // accepts NULL

// Sets where compiled kernels are kept. Call it before the device is used. store: copied; NULL:
// none. What it loads goes to the driver unchecked, which is not told how long it is.
void weft_device_set_code_store(weft_device *device, const weft_code_store *store);
// Sets how many bytes products with one matrix must have read before a kernel is compiled for it.
// 0: the first use compiles; SIZE_MAX: never, only what the store holds is used.
void weft_device_compile_after(weft_device *device, size_t bytes);

// Enqueues a copy. HOST memory makes it synchronous with the caller, as the runtime defines.
weft_status weft_device_copy(weft_device *device, void *to, weft_mem to_mem, const void *from,
                             weft_mem from_mem, size_t bytes, void *stream);

// The same for `rows` rows of `bytes` bytes; both sides have strides of their own.
weft_status weft_device_copy_rows(weft_device *device, void *to, size_t to_stride, weft_mem to_mem,
                                  const void *from, size_t from_stride, weft_mem from_mem,
                                  size_t bytes, size_t rows, void *stream);

// A copy of `bytes` bytes from PINNED or DEVICE memory, or of zeros (from: NULL), to PINNED or
// DEVICE memory.
typedef struct weft_device_piece {
  void *to;
  const void *from;
  size_t bytes;
} weft_device_piece;

// Enqueues many copies as one launch, since a separate copy costs the host more than a packet is
// worth. `pieces` (count) is in PINNED memory and must stay unchanged until the stream has passed
// the launch.
weft_status weft_device_copy_pieces(const weft_exec *exec, const weft_device_piece *pieces,
                                    size_t count);

// Makes work enqueued on `later` from now on wait for what is on `earlier` now.
weft_status weft_device_stream_order(weft_device *device, void *later, void *earlier);

// Allocates device memory in the stream's order: work enqueued before the free may still use it.
weft_status weft_device_scratch(const weft_exec *exec, size_t bytes, void **out);
void weft_device_scratch_free(const weft_exec *exec, void *memory); // accepts NULL

// Enqueues a comparison: *flag (DEVICE memory, 4 bytes) becomes 1 if the `bytes` bytes at a and b,
// PINNED or DEVICE, differ; otherwise it stays unchanged.
weft_status weft_device_compare(const weft_exec *exec, const uint8_t *a, const uint8_t *b,
                                size_t bytes, void *flag);

#endif
