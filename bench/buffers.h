// SPDX-License-Identifier: Apache-2.0
// Memory and random bytes for measurements. A program without its buffers cannot measure anything,
// so these functions end it with a message rather than return an error.
#ifndef WEFT_BENCH_BUFFERS_H
#define WEFT_BENCH_BUFFERS_H

#include <stddef.h>
#include <stdint.h>

#include "weft/memory.h"

// Returns `count` zeroed items of `size` bytes, aligned to 64 bytes, to be freed by free(). Large
// blocks ask for huge pages: where small pages happen to lie decides which of them share a cache
// set, which would make two runs of one program differ more than the repetitions within a run.
void *weft_bench_alloc(size_t count, size_t size);
// The same kind of memory, not zeroed; NULL if there is none.
void *weft_bench_place(size_t bytes);
// Makes large blocks refuse huge pages from now on, like the memory of most programs.
void weft_bench_small_pages(void);

// Formats text into new memory, to be freed by free().
__attribute__((format(printf, 1, 2))) char *weft_bench_text(const char *format, ...);

// The C library's memory as a weft_allocator.
extern const weft_allocator weft_bench_allocator;

// Random bytes that a seed reproduces (xoshiro256**, seeded by splitmix64). For measurements only.
typedef struct weft_bench_random {
  uint64_t state[4];
} weft_bench_random;

void weft_bench_random_seed(weft_bench_random *random, uint64_t seed);
uint64_t weft_bench_random_next(weft_bench_random *random);
void weft_bench_random_bytes(weft_bench_random *random, uint8_t *out, size_t bytes);
void weft_bench_random_nonzero(weft_bench_random *random, uint8_t *out, size_t bytes);
// Returns a seed from the system, for runs without a given one.
uint64_t weft_bench_fresh_seed(void);

#endif
