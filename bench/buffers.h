// SPDX-License-Identifier: Apache-2.0
// Memory and random bytes for measurements. A program that cannot have its buffers has nothing to
// measure, so these calls end it with a message rather than return an error.
#ifndef WEFT_BENCH_BUFFERS_H
#define WEFT_BENCH_BUFFERS_H

#include <stddef.h>
#include <stdint.h>

#include "weft/memory.h"

// `count` items of `size` bytes, zeroed, aligned to 64 bytes; free() takes it back. Large blocks
// ask for huge pages: where small pages happen to lie decides which of them share a cache set, and
// that would make two runs of one program differ by more than the repetitions within a run.
void *weft_bench_alloc(size_t count, size_t size);
// The same kind of memory, not zeroed; NULL when there is none.
void *weft_bench_place(size_t bytes);
// From now on large blocks refuse huge pages instead, as most programs' memory does without asking.
void weft_bench_small_pages(void);

// A printf into fresh memory; free() takes it back.
__attribute__((format(printf, 1, 2))) char *weft_bench_text(const char *format, ...);

// The C library's memory as a weft_allocator.
extern const weft_allocator weft_bench_allocator;

// Random bytes that a seed repeats (xoshiro256**, seeded by splitmix64). For measurements only.
typedef struct weft_bench_random {
  uint64_t state[4];
} weft_bench_random;

void weft_bench_random_seed(weft_bench_random *random, uint64_t seed);
uint64_t weft_bench_random_next(weft_bench_random *random);
void weft_bench_random_bytes(weft_bench_random *random, uint8_t *out, size_t bytes);
void weft_bench_random_nonzero(weft_bench_random *random, uint8_t *out, size_t bytes);
// A seed from the system, for runs that are given none.
uint64_t weft_bench_fresh_seed(void);

#endif
