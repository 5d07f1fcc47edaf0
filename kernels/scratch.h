// SPDX-License-Identifier: Apache-2.0
// Scratch: working memory that calls leave for later calls to reuse. Otherwise an allocator may
// return blocks of a few hundred KiB to the system each time, and most of a call on short rows is
// spent on page faults.
#ifndef WEFT_KERNELS_SCRATCH_H
#define WEFT_KERNELS_SCRATCH_H

#include "weft/memory.h"
#include "weft/status.h"

// Several threads may use one at once.
typedef struct weft_scratch weft_scratch;

// Error: WEFT_E_NOMEM.
weft_status weft_scratch_new(const weft_allocator *allocator, weft_scratch **out);
void weft_scratch_free(weft_scratch *scratch, const weft_allocator *allocator);

// Returns at least `bytes` bytes with arbitrary contents, or NULL if there is no memory, or no
// allocator (weft_exec). They are 64-byte aligned, but away from the beginning of a page, where
// rows often begin: a load waits for an earlier store whose address has the same low bits. Without
// `scratch` they come from the allocator.
void *weft_scratch_take(weft_scratch *scratch, const weft_allocator *allocator, size_t bytes);
void weft_scratch_give(weft_scratch *scratch, const weft_allocator *allocator, void *memory);

#endif
