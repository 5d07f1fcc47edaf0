// SPDX-License-Identifier: Apache-2.0
// Memory and random bytes for measurements.
#define _GNU_SOURCE // getrandom, madvise
#include "bench/buffers.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "bench/bench.h"

#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_FROM ((size_t)64 << 10) // smaller blocks stay on small pages

static _Noreturn void out_of_memory(size_t bytes) {
  fprintf(stderr, "weft bench: cannot allocate %zu bytes of memory\n", bytes);
  exit(WEFT_BENCH_MACHINE);
}

static int advice = MADV_HUGEPAGE;

void weft_bench_small_pages(void) { advice = MADV_NOHUGEPAGE; }

void *weft_bench_place(size_t bytes) {
  if (bytes > SIZE_MAX - 2 * HUGE_PAGE)
    return NULL;
  const size_t page = bytes >= HUGE_FROM ? HUGE_PAGE : 64;
  const size_t whole = (bytes + page) / page * page;
  void *const memory = aligned_alloc(page, whole);
  if (memory && page == HUGE_PAGE)
    (void)madvise(memory, whole, advice); // if refused, other pages will do
  return memory;
}

void *weft_bench_alloc(size_t count, size_t size) {
  if (size != 0 && count > SIZE_MAX / size)
    out_of_memory(SIZE_MAX);
  void *const memory = weft_bench_place(count * size);
  if (!memory)
    out_of_memory(count * size);
  return memset(memory, 0, count * size);
}

char *weft_bench_text(const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  char *const text = weft_bench_alloc((size_t)(length < 0 ? 0 : length) + 1, 1);
  va_start(args, format);
  vsnprintf(text, (size_t)(length < 0 ? 0 : length) + 1, format, args);
  va_end(args);
  return text;
}

static void *allocate(void *user, size_t bytes, size_t align) {
  (void)user;
  const size_t step = align < sizeof(void *) ? sizeof(void *) : align;
  return bytes > SIZE_MAX - step ? NULL : aligned_alloc(step, (bytes + step - 1) / step * step);
}

static void release(void *user, void *memory) {
  (void)user;
  free(memory);
}

const weft_allocator weft_bench_allocator = {allocate, release, NULL};

static uint64_t rotate(uint64_t x, unsigned by) { return (x << by) | (x >> (64 - by)); }

void weft_bench_random_seed(weft_bench_random *random, uint64_t seed) {
  for (size_t i = 0; i < 4; i++) {
    uint64_t z = seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    random->state[i] = z ^ (z >> 31);
  }
}

uint64_t weft_bench_random_next(weft_bench_random *random) {
  uint64_t *const s = random->state;
  const uint64_t result = rotate(s[1] * 5, 7) * 9;
  const uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = rotate(s[3], 45);
  return result;
}

void weft_bench_random_bytes(weft_bench_random *random, uint8_t *out, size_t bytes) {
  size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    const uint64_t word = weft_bench_random_next(random);
    memcpy(out + i, &word, 8);
  }
  for (; i < bytes; i++)
    out[i] = (uint8_t)(weft_bench_random_next(random) >> 56);
}

void weft_bench_random_nonzero(weft_bench_random *random, uint8_t *out, size_t bytes) {
  weft_bench_random_bytes(random, out, bytes);
  for (size_t i = 0; i < bytes; i++)
    while (out[i] == 0)
      out[i] = (uint8_t)(weft_bench_random_next(random) >> 56);
}

uint64_t weft_bench_fresh_seed(void) {
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
    fprintf(stderr, "weft bench: the system gave no random seed; use --seed\n");
    exit(WEFT_BENCH_MACHINE);
  }
  return seed;
}
