// SPDX-License-Identifier: Apache-2.0
// Memory that calls work in and leave for the next ones. An allocator may give a block of some
// hundred KiB back to the system each time, and then most of a call on short rows is page faults.
#ifndef WEFT_KERNELS_SCRATCH_H
#define WEFT_KERNELS_SCRATCH_H

#include "weft/memory.h"
#include "weft/status.h"

// Safe for several threads at once.
typedef struct weft_scratch weft_scratch;

// WEFT_E_NOMEM.
weft_status weft_scratch_new(const weft_allocator *allocator, weft_scratch **out);
void weft_scratch_free(weft_scratch *scratch, const weft_allocator *allocator);

// At least `bytes`, 64-byte aligned and apart from where pages begin, as rows often do: a load
// waits for an earlier store that shares its low bits. What is in it is anything. With no `scratch`
// it is the allocator's. NULL: there is no memory.
void *weft_scratch_take(weft_scratch *scratch, const weft_allocator *allocator, size_t bytes);
void weft_scratch_give(weft_scratch *scratch, const weft_allocator *allocator, void *memory);

#endif
