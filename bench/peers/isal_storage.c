// SPDX-License-Identifier: Apache-2.0
// ISA-L's erasure code as its users call it: tables computed once for encoding and updates; for
// each recovery a matrix inversion, and new rows and tables.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/buffers.h"
#include "bench/peers/library.h"
#include "bench/peers/storage_peer.h"

typedef struct isal {
  weft_bench_storage_peer peer;
  void (*cauchy)(unsigned char *matrix, int rows, int k);
  void (*tables)(int k, int rows, unsigned char *matrix, unsigned char *tables);
  void (*encode)(int len, int k, int rows, unsigned char *tables, unsigned char **data,
                 unsigned char **coding);
  void (*update)(int len, int k, int rows, int index, unsigned char *tables, unsigned char *data,
                 unsigned char **coding);
  int (*invert)(unsigned char *in, unsigned char *out, const int n);
} isal;

typedef struct isal_state {
  const isal *library;
  const weft_bench_shards *shards;
  unsigned char *matrix;           // (k + m, k)
  unsigned char *tables;           // (k * m, 32)
  unsigned char *square, *inverse; // (k, k), for a recovery
  unsigned char *data[256], *coding[256];
} isal_state;

static void call_encode(void *user) {
  isal_state *const s = user;
  const weft_bench_shards *const w = s->shards;
  s->library->encode((int)w->bytes, (int)w->k, (int)w->m, s->tables, s->data, s->coding);
}

static void call_update(void *user) {
  isal_state *const s = user;
  const weft_bench_shards *const w = s->shards;
  s->library->update((int)w->bytes, (int)w->k, (int)w->m, 0, s->tables, w->delta, s->coding);
}

static void call_recover(void *user) {
  isal_state *const s = user;
  const weft_bench_shards *const w = s->shards;
  const size_t k = w->k;
  unsigned char rows[256 * 256];
  size_t input = 0;
  for (size_t i = 0; input < k; i++) {
    if (memchr(w->lost, (int)i, w->lost_count))
      continue;
    memcpy(s->square + input * k, s->matrix + i * k, k);
    s->data[input++] = w->shard[i];
  }
  if (s->library->invert(s->square, s->inverse, (int)k) != 0)
    abort(); // cannot happen: the matrix is MDS
  for (size_t i = 0; i < w->lost_count; i++) {
    memcpy(rows + i * k, s->inverse + w->lost[i] * k, k);
    s->coding[i] = w->shard[w->lost[i]];
  }
  s->library->tables((int)k, (int)w->lost_count, rows, s->tables);
  s->library->encode((int)w->bytes, (int)k, (int)w->lost_count, s->tables, s->data, s->coding);
}

static void release(void *user) {
  isal_state *const s = user;
  free(s->matrix), free(s->tables), free(s->square), free(s->inverse), free(s);
}

static int prepare(const weft_bench_storage_peer *peer, weft_bench_storage_operation operation,
                   const weft_bench_shards *shards, weft_bench_storage_call *out) {
  static void (*const calls[WEFT_BENCH_STORAGE_OPERATIONS])(void *) = {call_encode, call_recover,
                                                                       call_update};
  const isal *const library = (const isal *)peer;
  const size_t k = shards->k, m = shards->m;
  isal_state *const s = weft_bench_alloc(1, sizeof *s);
  s->library = library;
  s->shards = shards;
  s->matrix = weft_bench_alloc(k + m, k);
  s->tables = weft_bench_alloc(k * m, 32);
  s->square = weft_bench_alloc(k, k);
  s->inverse = weft_bench_alloc(k, k);
  library->cauchy(s->matrix, (int)(k + m), (int)k);
  library->tables((int)k, (int)m, s->matrix + k * k, s->tables);
  for (size_t i = 0; i < k; i++)
    s->data[i] = shards->shard[i];
  for (size_t i = 0; i < m; i++)
    s->coding[i] = shards->shard[k + i];
  *out = (weft_bench_storage_call){.call = calls[operation], .state = s, .release = release};
  return 1;
}

// Names the peer. A different library with ISA-L's interface gets the name of its file. `set` is
// empty or a set of instructions.
static void put_name(isal *p, const char *file, const char *set) {
  const char *(*version)(void);
  const char *const slash = strrchr(file, '/'), *const base = slash ? slash + 1 : file;
  const char *const space = *set ? " " : "";
  const char *text = "2.30"; // before 2.31 the library does not report it; Debian's is 2.30
  if (weft_bench_library_find(p->peer.library, "isal_get_version_str", &version, sizeof version))
    text = version();
  else if (strncmp(base, "libisal", strlen("libisal")) != 0) {
    snprintf(p->peer.name, sizeof p->peer.name, "%.*s%s%s", (int)strcspn(base, "."), base, space,
             set);
    return;
  }
  snprintf(p->peer.name, sizeof p->peer.name, "isa-l %s%s%s", text, space, set);
}

typedef struct isal_names {
  char tables[64], encode[64], update[64];
} isal_names;

// Returns the names of the functions that choose by processor, or of those for one set of
// instructions. Only GFNI has its own form of tables.
static isal_names names_of(void *library, const char *set) {
  isal_names n;
  void (*base)(void);
  const char *const underscore = *set ? "_" : "";
  snprintf(n.encode, sizeof n.encode, "ec_encode_data%s%s", underscore, set);
  snprintf(n.update, sizeof n.update, "ec_encode_data_update%s%s", underscore, set);
  const char *const form =
      !*set                                                                         ? ""
      : strstr(set, "gfni")                                                         ? "_gfni"
      : weft_bench_library_find(library, "ec_init_tables_base", &base, sizeof base) ? "_base"
                                                                                    : "";
  snprintf(n.tables, sizeof n.tables, "ec_init_tables%s", form);
  return n;
}

weft_bench_storage_peer *weft_bench_peer_isal(const char *file_and_set) {
  char file[512];
  const char *const slash = strrchr(file_and_set, '/');
  const char *const colon = strchr(slash ? slash : file_and_set, ':'),
                    *set = colon ? colon + 1 : "";
  snprintf(file, sizeof file, "%.*s",
           (int)(colon ? (size_t)(colon - file_and_set) : strlen(file_and_set)), file_and_set);
  isal *const p = weft_bench_alloc(1, sizeof *p);
  void *const library = weft_bench_library_open("isa-l", file, "libisal2");
  p->peer = (weft_bench_storage_peer){.code = "cauchy", .library = library, .prepare = prepare};
  const isal_names names = library ? names_of(library, set) : (isal_names){"", "", ""};
  const weft_bench_import functions[] = {{"gf_gen_cauchy1_matrix", &p->cauchy},
                                         {names.tables, &p->tables},
                                         {names.encode, &p->encode},
                                         {names.update, &p->update},
                                         {"gf_invert_matrix", &p->invert}};
  if (!library || !weft_bench_library_import(library, "isa-l", file, functions,
                                             sizeof functions / sizeof *functions)) {
    weft_bench_peer_close(&p->peer);
    return NULL;
  }
  put_name(p, file, set);
  return &p->peer;
}

void weft_bench_peer_close(weft_bench_storage_peer *peer) { free(peer); }
