// SPDX-License-Identifier: Apache-2.0
// Compiles ahead, one code per thread, each with its own context: contexts keep their kernels to
// themselves, but share the folder that the environment names.
#define _POSIX_C_SOURCE 200809L // getenv, pthreads
#include "bench/storage_compile.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "bench/buffers.h"
#include "bench/check.h"

enum { SHARD = 512 << 10, THREADS_MOST = 16 };

typedef struct work {
  const weft_code_options *codes;
  size_t count;
  bool recovery;
  atomic_size_t next;
} work;

size_t weft_bench_storage_lost(size_t k, size_t m, bool mixed, uint8_t *lost) {
  const size_t count = k < m ? k : m;
  weft_bench_random random;
  bool taken[WEFT_MAX_SHARDS] = {false};
  weft_bench_random_seed(&random, 256 * k + m);
  for (size_t i = 0; i < count; i++) {
    size_t one = i;
    while (mixed && taken[one = (size_t)(weft_bench_random_next(&random) % (k + m))]) {
    }
    taken[one] = true;
    lost[i] = (uint8_t)one;
  }
  return count;
}

static void compile_code(weft_ctx *ctx, const weft_code_options *options, bool recovery) {
  const size_t k = options->k, m = options->m;
  weft_code *code;
  void *memory;
  weft_bench_must("code", weft_code_new(ctx, options, &code));
  weft_bench_must("memory", weft_alloc(ctx, WEFT_MEM_DEVICE, (k + m) * SHARD, &memory));
  const size_t unit = weft_code_unit_bytes(code);
  const weft_stripe stripe = {
      .base = memory, .stride = SHARD, .bytes = SHARD / unit * unit, .mem = WEFT_MEM_DEVICE};
  weft_bench_must("encode", weft_code_encode(code, &stripe, 1, NULL));
  for (int mixed = 0; mixed < 2 && recovery; mixed++) {
    uint8_t lost[WEFT_MAX_SHARDS];
    const weft_erasures erasures = {.lost = lost,
                                    .lost_count = weft_bench_storage_lost(k, m, mixed, lost)};
    weft_plan *plan;
    weft_bench_must("plan", weft_plan_for(code, &erasures, &plan));
    weft_bench_must("recover", weft_plan_run(plan, &stripe, 1, NULL));
    weft_plan_free(plan);
  }
  weft_free(ctx, WEFT_MEM_DEVICE, memory);
  weft_code_free(code);
}

static void *compile(void *user) {
  work *all = user;
  weft_ctx *ctx;
  weft_bench_must("context",
                  weft_ctx_new(&ctx, &(weft_ctx_options){.backend = "cuda", .compile_after = 1}));
  for (size_t i; (i = atomic_fetch_add(&all->next, 1)) < all->count;)
    compile_code(ctx, &all->codes[all->count - 1 - i], all->recovery); // longest first
  weft_ctx_free(ctx);
  return NULL;
}

void weft_bench_storage_compile(const weft_bench_storage_run *run, const weft_code_options *codes,
                                size_t count, bool recovery) {
  const char *const folder = getenv("WEFT_CODE_FOLDER");
  if (!folder || !*folder)
    return;
  weft_bench_unpin(&run->machine); // threads inherit their creator's cores
  work all = {.codes = codes, .count = count, .recovery = recovery};
  pthread_t threads[THREADS_MOST];
  size_t started = 0;
  const size_t cores = run->machine.cores, most = cores < THREADS_MOST ? cores : THREADS_MOST;
  while (started < most && started < count &&
         pthread_create(&threads[started], NULL, compile, &all) == 0)
    started++;
  while (started > 0)
    pthread_join(threads[--started], NULL);
  weft_bench_pin(&run->machine, 0);
}
