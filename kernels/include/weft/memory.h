// SPDX-License-Identifier: Apache-2.0
// Where bytes live, and how the library asks for host memory.
#ifndef WEFT_MEMORY_H
#define WEFT_MEMORY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weft_mem {
  WEFT_MEM_HOST,   // ordinary memory
  WEFT_MEM_PINNED, // host memory that a device reads and writes directly
  WEFT_MEM_DEVICE  // memory of a device
} weft_mem;

// All host memory except pinned memory and pages of machine code is allocated here, so that a
// caller can limit it, count it or make it fail. Several threads may call both at once.
typedef struct weft_allocator {
  // Returns `bytes` (> 0) bytes aligned to `align` (a power of two, at most 4096), or NULL.
  void *(*alloc)(void *user, size_t bytes, size_t align);
  // Takes back what alloc returned; never called with NULL.
  void (*free)(void *user, void *memory);
  void *user;
} weft_allocator;

#ifdef __cplusplus
}
#endif
#endif
