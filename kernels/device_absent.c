// SPDX-License-Identifier: Apache-2.0
// Devices in a build without CUDA: there are none. Callers ask weft_device_count first, so the rest
// only has to refuse.
#include "kernels/device.h"

size_t weft_device_count(void) { return 0; }

const char *weft_device_absence(void) { return "built without CUDA"; }

weft_status weft_device_open(weft_device **out, size_t index, const weft_allocator *allocator) {
  (void)index;
  (void)allocator;
  *out = NULL;
  return WEFT_E_UNSUPPORTED;
}

void weft_device_close(weft_device *device) { (void)device; }

int weft_device_sm(const weft_device *device) {
  (void)device;
  return 0;
}

int weft_device_block_bytes(const weft_device *device) {
  (void)device;
  return 0;
}

const char *weft_device_name(const weft_device *device) {
  (void)device;
  return "";
}

weft_status weft_device_alloc(weft_device *device, weft_mem mem, size_t bytes, void **out) {
  (void)device;
  (void)mem;
  (void)bytes;
  *out = NULL;
  return WEFT_E_UNSUPPORTED;
}

void weft_device_free(weft_device *device, weft_mem mem, void *memory) {
  (void)device;
  (void)mem;
  (void)memory;
}

void weft_device_trim(weft_device *device) { (void)device; }

size_t weft_device_pinned_peak(weft_device *device) {
  (void)device;
  return 0;
}

weft_status weft_device_stream_new(weft_device *device, void **out) {
  (void)device;
  *out = NULL;
  return WEFT_E_UNSUPPORTED;
}

void weft_device_stream_free(weft_device *device, void *stream) {
  (void)device;
  (void)stream;
}

weft_status weft_device_stream_poll(weft_device *device, void *stream) {
  (void)device;
  (void)stream;
  return WEFT_E_UNSUPPORTED;
}

weft_status weft_device_stream_wait(weft_device *device, void *stream) {
  (void)device;
  (void)stream;
  return WEFT_E_UNSUPPORTED;
}

weft_status weft_device_mark_new(weft_device *device, void *stream, void **out) {
  (void)device;
  (void)stream;
  *out = NULL;
  return WEFT_E_UNSUPPORTED;
}

weft_status weft_device_mark_wait(weft_device *device, void *mark) {
  (void)device;
  (void)mark;
  return WEFT_E_UNSUPPORTED;
}

void weft_device_mark_free(weft_device *device, void *mark) {
  (void)device;
  (void)mark;
}

weft_status weft_device_copy(weft_device *device, void *to, weft_mem to_mem, const void *from,
                             weft_mem from_mem, size_t bytes, void *stream) {
  (void)device;
  (void)to;
  (void)to_mem;
  (void)from;
  (void)from_mem;
  (void)bytes;
  (void)stream;
  return WEFT_E_UNSUPPORTED;
}

weft_status weft_device_copy_rows(weft_device *device, void *to, size_t to_stride, weft_mem to_mem,
                                  const void *from, size_t from_stride, weft_mem from_mem,
                                  size_t bytes, size_t rows, void *stream) {
  (void)device;
  (void)to;
  (void)to_stride;
  (void)to_mem;
  (void)from;
  (void)from_stride;
  (void)from_mem;
  (void)bytes;
  (void)rows;
  (void)stream;
  return WEFT_E_UNSUPPORTED;
}

weft_status weft_device_copy_pieces(const weft_exec *exec, const weft_device_piece *pieces,
                                    size_t count) {
  (void)exec;
  (void)pieces;
  (void)count;
  return WEFT_E_UNSUPPORTED;
}

weft_status weft_device_stream_order(weft_device *device, void *later, void *earlier) {
  (void)device;
  (void)later;
  (void)earlier;
  return WEFT_E_UNSUPPORTED;
}

weft_status weft_device_scratch(const weft_exec *exec, size_t bytes, void **out) {
  (void)exec;
  (void)bytes;
  *out = NULL;
  return WEFT_E_UNSUPPORTED;
}

void weft_device_scratch_free(const weft_exec *exec, void *memory) {
  (void)exec;
  (void)memory;
}

void weft_device_set_code_store(weft_device *device, const weft_code_store *store) {
  (void)device;
  (void)store;
}

void weft_device_compile_after(weft_device *device, size_t bytes) {
  (void)device;
  (void)bytes;
}

weft_status weft_device_compare(const weft_exec *exec, const uint8_t *a, const uint8_t *b,
                                size_t bytes, void *flag) {
  (void)exec;
  (void)a;
  (void)b;
  (void)bytes;
  (void)flag;
  return WEFT_E_UNSUPPORTED;
}
