// SPDX-License-Identifier: Apache-2.0
// klauspost/reedsolomon, a Go library, through the shared library that peers/klauspost builds.
#include <stdio.h>
#include <stdlib.h>

#include "bench/buffers.h"
#include "bench/peers/library.h"
#include "bench/peers/storage_peer.h"

typedef struct klauspost {
  weft_bench_storage_peer peer;
  uintptr_t (*make)(size_t k, size_t m, size_t bytes, uint8_t **shards, uint8_t *lost,
                    size_t lost_count, uint8_t *delta);
  int (*run)(uintptr_t coder, int operation);
  void (*free)(uintptr_t coder);
} klauspost;

typedef struct klauspost_state {
  const klauspost *library;
  uintptr_t coder;
  weft_bench_storage_operation operation;
} klauspost_state;

static void call(void *user) {
  const klauspost_state *const s = user;
  if (s->library->run(s->coder, (int)s->operation) != 0)
    abort(); // prepare() checked the arguments
}

static void release(void *user) {
  klauspost_state *const s = user;
  s->library->free(s->coder);
  free(s);
}

static int prepare(const weft_bench_storage_peer *peer, weft_bench_storage_operation operation,
                   const weft_bench_shards *shards, weft_bench_storage_call *out) {
  const klauspost *const library = (const klauspost *)peer;
  uint8_t *pointers[256], lost[256];
  for (size_t i = 0; i < shards->k + shards->m; i++)
    pointers[i] = shards->shard[i];
  for (size_t i = 0; i < shards->lost_count; i++)
    lost[i] = shards->lost[i];
  klauspost_state *const s = weft_bench_alloc(1, sizeof *s);
  *s = (klauspost_state){library,
                         library->make(shards->k, shards->m, shards->bytes, pointers, lost,
                                       shards->lost_count, shards->delta),
                         operation};
  if (!s->coder) {
    free(s);
    return 0;
  }
  *out = (weft_bench_storage_call){.call = call, .state = s, .release = release};
  return 1;
}

weft_bench_storage_peer *weft_bench_peer_klauspost(const char *file) {
  klauspost *const p = weft_bench_alloc(1, sizeof *p);
  void *const library = weft_bench_library_open("klauspost", file, "");
  p->peer = (weft_bench_storage_peer){.code = "cauchy",
                                      .one_caller = true, // each call enters Go's scheduler
                                      .library = library,
                                      .prepare = prepare};
  const char *(*version)(void) = NULL;
  const weft_bench_import functions[] = {{"weft_klauspost_new", &p->make},
                                         {"weft_klauspost_run", &p->run},
                                         {"weft_klauspost_free", &p->free},
                                         {"weft_klauspost_version", &version}};
  if (library && weft_bench_library_import(library, "klauspost", file, functions,
                                           sizeof functions / sizeof *functions)) {
    snprintf(p->peer.name, sizeof p->peer.name, "klauspost %s", version());
    return &p->peer;
  }
  weft_bench_peer_close(&p->peer);
  return NULL;
}
