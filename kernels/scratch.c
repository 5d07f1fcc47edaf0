// SPDX-License-Identifier: Apache-2.0
#include "kernels/scratch.h"

#include <stdatomic.h>
#include <stdint.h>

enum { PLACES = 16, PAGE = 4096, APART = 1024 };

// At the beginning of a page; the memory that is handed out begins APART bytes later.
typedef struct block {
  size_t bytes; // requested, without APART
} block;

struct weft_scratch {
  _Atomic(block *) place[PLACES]; // unused blocks, in any order, and NULLs
};

weft_status weft_scratch_new(const weft_allocator *allocator, weft_scratch **out) {
  weft_scratch *scratch =
      allocator->alloc(allocator->user, sizeof *scratch, _Alignof(weft_scratch));
  *out = scratch;
  if (!scratch)
    return WEFT_E_NOMEM;
  for (size_t i = 0; i < PLACES; i++)
    atomic_init(&scratch->place[i], NULL);
  return WEFT_OK;
}

void weft_scratch_free(weft_scratch *scratch, const weft_allocator *allocator) {
  if (!scratch)
    return;
  for (size_t i = 0; i < PLACES; i++) {
    block *left = atomic_load(&scratch->place[i]);
    if (left)
      allocator->free(allocator->user, left);
  }
  allocator->free(allocator->user, scratch);
}

static block *make(const weft_allocator *allocator, size_t bytes) {
  if (!allocator || !allocator->alloc)
    return NULL;
  block *made = allocator->alloc(allocator->user, APART + bytes, PAGE);
  if (made)
    made->bytes = bytes;
  return made;
}

void *weft_scratch_take(weft_scratch *scratch, const weft_allocator *allocator, size_t bytes) {
  block *found = NULL;
  for (size_t i = 0; scratch && i < PLACES && !found; i++)
    if (atomic_load_explicit(&scratch->place[i], memory_order_relaxed))
      found = atomic_exchange_explicit(&scratch->place[i], NULL, memory_order_acquire);
  if (found && found->bytes < bytes) {
    allocator->free(allocator->user, found);
    found = NULL;
  }
  found = found ? found : make(allocator, bytes);
  return found ? (uint8_t *)found + APART : NULL;
}

void weft_scratch_give(weft_scratch *scratch, const weft_allocator *allocator, void *memory) {
  block *left = memory ? (block *)(void *)((uint8_t *)memory - APART) : NULL;
  for (size_t i = 0; left && scratch && i < PLACES; i++) {
    block *none = NULL;
    if (atomic_compare_exchange_strong_explicit(&scratch->place[i], &none, left,
                                                memory_order_release, memory_order_relaxed))
      return;
  }
  if (left)
    allocator->free(allocator->user, left);
}
