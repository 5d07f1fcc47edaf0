// SPDX-License-Identifier: Apache-2.0
// Jerasure 2 (with GF-Complete): Reed-Solomon by its matrix, Cauchy by smart schedules, both
// computed once, as in its own encoder. Each recovery computes its matrix or schedule.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/buffers.h"
#include "bench/peers/library.h"
#include "bench/peers/storage_peer.h"

typedef struct jerasure {
  weft_bench_storage_peer peer;
  int *(*vandermonde)(int k, int m, int w);
  int *(*cauchy)(int k, int m, int w);
  int *(*to_bits)(int k, int m, int w, int *matrix);
  int **(*to_schedule)(int k, int m, int w, int *bits);
  void (*free_schedule)(int **schedule);
  void (*encode)(int k, int m, int w, int *matrix, char **data, char **coding, int size);
  int (*decode)(int k, int m, int w, int *matrix, int row_k_ones, int *erasures, char **data,
                char **coding, int size);
  void (*schedule_encode)(int k, int m, int w, int **schedule, char **data, char **coding, int size,
                          int packet_bytes);
  int (*schedule_decode)(int k, int m, int w, int *bits, int *erasures, char **data, char **coding,
                         int size, int packet_bytes, int smart);
} jerasure;

typedef struct jerasure_state {
  const jerasure *library;
  const weft_bench_shards *shards;
  int *matrix, *bits, **schedule;
  int erasures[257]; // ends with -1
  char *data[256], *coding[256];
} jerasure_state;

static void encode_rs(void *user) {
  jerasure_state *const s = user;
  const weft_bench_shards *const w = s->shards;
  s->library->encode((int)w->k, (int)w->m, 8, s->matrix, s->data, s->coding, (int)w->bytes);
}

static void recover_rs(void *user) {
  jerasure_state *const s = user;
  const weft_bench_shards *const w = s->shards;
  if (s->library->decode((int)w->k, (int)w->m, 8, s->matrix, 1, s->erasures, s->data, s->coding,
                         (int)w->bytes) != 0)
    abort(); // cannot happen: the matrix is MDS
}

static void encode_crs(void *user) {
  jerasure_state *const s = user;
  const weft_bench_shards *const w = s->shards;
  s->library->schedule_encode((int)w->k, (int)w->m, (int)w->w, s->schedule, s->data, s->coding,
                              (int)w->bytes, (int)w->packet_bytes);
}

static void recover_crs(void *user) {
  jerasure_state *const s = user;
  const weft_bench_shards *const w = s->shards;
  if (s->library->schedule_decode((int)w->k, (int)w->m, (int)w->w, s->bits, s->erasures, s->data,
                                  s->coding, (int)w->bytes, (int)w->packet_bytes, 1) != 0)
    abort();
}

static void release(void *user) {
  jerasure_state *const s = user;
  if (s->schedule)
    s->library->free_schedule(s->schedule);
  free(s->matrix), free(s->bits), free(s);
}

static jerasure_state *state_of(const weft_bench_storage_peer *peer,
                                const weft_bench_shards *shards) {
  jerasure_state *const s = weft_bench_alloc(1, sizeof *s);
  s->library = (const jerasure *)peer;
  s->shards = shards;
  for (size_t i = 0; i < shards->lost_count; i++)
    s->erasures[i] = shards->lost[i];
  s->erasures[shards->lost_count] = -1;
  for (size_t i = 0; i < shards->k; i++)
    s->data[i] = (char *)shards->shard[i];
  for (size_t i = 0; i < shards->m; i++)
    s->coding[i] = (char *)shards->shard[shards->k + i];
  return s;
}

// GF-Complete ends the program unless all regions have the same offset modulo this.
enum { ALIGNED = 16 };

static bool lie_alike(const weft_bench_shards *shards) {
  bool alike = shards->bytes % ALIGNED == 0;
  for (size_t i = 1; i < shards->k + shards->m; i++)
    alike = alike && ((uintptr_t)shards->shard[i] - (uintptr_t)shards->shard[0]) % ALIGNED == 0;
  return alike;
}

static int prepare_rs(const weft_bench_storage_peer *peer, weft_bench_storage_operation operation,
                      const weft_bench_shards *shards, weft_bench_storage_call *out) {
  if (operation == WEFT_BENCH_STORAGE_ADD_DELTA)
    return 0;
  if (!lie_alike(shards)) {
    printf("jerasure is left out: it takes no shards of %zu bytes\n", shards->bytes);
    return 0;
  }
  jerasure_state *const s = state_of(peer, shards);
  s->matrix = s->library->vandermonde((int)shards->k, (int)shards->m, 8);
  encode_rs(s); // makes shared tables, which threads must not do at once
  *out = (weft_bench_storage_call){.call = operation == WEFT_BENCH_STORAGE_ENCODE ? encode_rs
                                                                                  : recover_rs,
                                   .state = s,
                                   .release = release};
  return 1;
}

static int prepare_crs(const weft_bench_storage_peer *peer, weft_bench_storage_operation operation,
                       const weft_bench_shards *shards, weft_bench_storage_call *out) {
  if (operation == WEFT_BENCH_STORAGE_ADD_DELTA || shards->packet_bytes == 0)
    return 0;
  const int k = (int)shards->k, m = (int)shards->m, w = (int)shards->w;
  jerasure_state *const s = state_of(peer, shards);
  s->matrix = s->library->cauchy(k, m, w);
  s->bits = s->library->to_bits(k, m, w, s->matrix);
  s->schedule = s->library->to_schedule(k, m, w, s->bits);
  *out = (weft_bench_storage_call){.call = operation == WEFT_BENCH_STORAGE_ENCODE ? encode_crs
                                                                                  : recover_crs,
                                   .state = s,
                                   .release = release};
  return 1;
}

static weft_bench_storage_peer *open_jerasure(const char *file, weft_bench_storage_peer made) {
  jerasure *const p = weft_bench_alloc(1, sizeof *p);
  p->peer = made;
  p->peer.library = weft_bench_library_open("jerasure", file, "libjerasure2");
  const weft_bench_import functions[] = {{"reed_sol_vandermonde_coding_matrix", &p->vandermonde},
                                         {"cauchy_good_general_coding_matrix", &p->cauchy},
                                         {"jerasure_matrix_to_bitmatrix", &p->to_bits},
                                         {"jerasure_smart_bitmatrix_to_schedule", &p->to_schedule},
                                         {"jerasure_free_schedule", &p->free_schedule},
                                         {"jerasure_matrix_encode", &p->encode},
                                         {"jerasure_matrix_decode", &p->decode},
                                         {"jerasure_schedule_encode", &p->schedule_encode},
                                         {"jerasure_schedule_decode_lazy", &p->schedule_decode}};
  if (p->peer.library && weft_bench_library_import(p->peer.library, "jerasure", file, functions,
                                                   sizeof functions / sizeof *functions))
    return &p->peer;
  weft_bench_peer_close(&p->peer);
  return NULL;
}

weft_bench_storage_peer *weft_bench_peer_jerasure_rs(const char *file) {
  return open_jerasure(
      file,
      (weft_bench_storage_peer){.name = "jerasure", .code = "reed_sol_van", .prepare = prepare_rs});
}

weft_bench_storage_peer *weft_bench_peer_jerasure_crs(const char *file) {
  return open_jerasure(
      file,
      (weft_bench_storage_peer){.name = "jerasure", .code = "cauchy_good", .prepare = prepare_crs});
}
