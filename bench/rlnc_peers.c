// SPDX-License-Identifier: Apache-2.0
#include "bench/rlnc_peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "bench/check.h"

enum { TRIES = 16, CHECKED_PACKETS = 4 };

// The operations that the libraries share with weft. Their encoder draws coefficients in the call,
// so it is compared with weft's fresh ones.
static const struct {
  weft_bench_operation like;
  const char *question;
} compared[] = {
    {WEFT_BENCH_ENCODE_FRESH, "encode, fresh coefficients"},
    {WEFT_BENCH_RECODE, "recode"},
    {WEFT_BENCH_RECODE_ONE, "one recoded packet"},
    {WEFT_BENCH_DECODE_DEFERRED, "decode, packet by packet"},
};
#define COMPARED (sizeof compared / sizeof *compared)

typedef struct operation {
  weft_bench_rlnc_coder *coder;
  weft_bench_operation like;
  size_t m;
  char *question;
} operation;

struct weft_bench_rlnc_coder {
  const weft_bench_rlnc_peer *peer;
  const weft_bench_shape *shape;
  void *coder;
  uint8_t *blocks; // (n, k) as the library codes them
  size_t data_bytes;
  uint8_t *packets; // (n, n + k) given to the library
  operation operations[COMPARED];
};

bool weft_bench_rlnc_peers_open(const char *files, weft_bench_rlnc_peers *out) {
  bool room = true;
  out->count = 0;
  for (char *file; room && (file = weft_bench_list_next(&files)); free(file)) {
    room = out->count < WEFT_BENCH_RLNC_PEERS;
    out->count += room && weft_bench_rlnc_peer_open(file, &out->peer[out->count]);
  }
  if (!room)
    fprintf(stderr, "weft bench rlnc: --peers takes at most %u files\n", WEFT_BENCH_RLNC_PEERS);
  return room;
}

static void must(const weft_bench_rlnc_coder *coder, const char *what, bool done) {
  if (done)
    return;
  fprintf(stderr, "weft bench rlnc: %s failed to %s\n", coder->peer->version, what);
  exit(WEFT_BENCH_WRONG);
}

static size_t packet_bytes(const weft_bench_rlnc_coder *c) { return c->shape->n + c->shape->k; }

static void take(const weft_bench_rlnc_coder *c, uint8_t *out, size_t bytes) {
  must(c, "hand over what it made", c->peer->take(c->coder, out, bytes) == bytes);
}

// Whether packets(n, n + k) decode. The library keeps them for recoding and decoding.
static bool decodes(const weft_bench_rlnc_coder *c, const uint8_t *packets) {
  must(c, "take packets", c->peer->give(c->coder, packets, c->shape->n * packet_bytes(c)));
  return c->peer->decode(c->coder);
}

static uint8_t multiply(uint32_t polynomial, uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (; b; b >>= 1, a = a << 1 ^ (a & 0x80 ? polynomial : 0))
    product ^= b & 1 ? a : 0;
  return (uint8_t)product;
}

// Computes the payload for given coefficients, symbol by symbol in the library's field.
static void mix(const weft_bench_rlnc_coder *c, const uint8_t *coefficients, uint8_t *payload) {
  const size_t n = c->shape->n, k = c->shape->k;
  memset(payload, 0, k);
  for (size_t j = 0; j < n; j++) {
    uint8_t times[256];
    for (uint32_t b = 0; b < 256; b++)
      times[b] = multiply(c->peer->polynomial, coefficients[j], b);
    for (size_t x = 0; x < k; x++)
      payload[x] ^= times[c->blocks[j * k + x]];
  }
}

// Whether a set of the library's own packets decodes: one in 250 does not.
static bool draws_decodable(const weft_bench_rlnc_coder *c) {
  uint8_t *const packets = weft_bench_alloc(c->shape->n, packet_bytes(c));
  bool decodable = false;
  for (int tries = 0; tries < TRIES && !decodable; tries++) {
    must(c, "encode", c->peer->encode(c->coder, c->shape->n));
    take(c, packets, c->shape->n * packet_bytes(c));
    decodable = decodes(c, packets);
  }
  free(packets);
  return decodable;
}

// Draws the packets to decode and recode with the benchmark's own coefficients, as for weft's rows.
static void draw_packets(weft_bench_rlnc_coder *c, uint64_t seed) {
  const size_t n = c->shape->n, each = packet_bytes(c);
  int tries = 0;
  weft_bench_random random;
  weft_bench_random_seed(&random, seed);
  if (!draws_decodable(c))
    printf("%s: none of %d sets of %zu packets with coefficients of its own decodes\n",
           c->peer->version, TRIES, n);
  do
    for (size_t i = 0; i < n; i++) {
      weft_bench_random_nonzero(&random, c->packets + i * each, n);
      mix(c, c->packets + i * each, c->packets + i * each + n);
    }
  while (!decodes(c, c->packets) && ++tries < TRIES);
  must(c, "decode", tries < TRIES);
}

void weft_bench_rlnc_coder_free(weft_bench_rlnc_coder *c) {
  if (!c)
    return;
  for (size_t i = 0; i < COMPARED; i++)
    free(c->operations[i].question);
  if (c->coder)
    c->peer->free(c->coder);
  free(c->blocks), free(c->packets), free(c);
}

weft_bench_rlnc_coder *weft_bench_rlnc_coder_new(const weft_bench_rlnc_peer *peer,
                                                 const weft_bench_shape *shape, uint64_t seed) {
  weft_bench_rlnc_coder *const c = weft_bench_alloc(1, sizeof *c);
  *c = (weft_bench_rlnc_coder){.peer = peer,
                               .shape = shape,
                               .blocks = weft_bench_alloc(shape->n, shape->k),
                               .packets = weft_bench_alloc(shape->n, shape->n + shape->k)};
  memcpy(c->blocks, shape->data, shape->n * shape->k);
  c->coder = peer->make(shape->n, shape->k, c->blocks, &c->data_bytes);
  if (!c->coder) {
    printf("%s is left out: it does not code %zu blocks of %zu bytes\n", peer->version, shape->n,
           shape->k);
    weft_bench_rlnc_coder_free(c);
    return NULL;
  }
  must(c, "say how much it codes",
       c->data_bytes <= shape->n * shape->k && c->data_bytes > (shape->n - 1) * shape->k);
  draw_packets(c, seed);
  return c;
}

static void call(void *user) {
  const operation *const o = user;
  const weft_bench_rlnc_coder *const c = o->coder;
  switch (o->like) {
  case WEFT_BENCH_ENCODE_FRESH:
    must(c, "encode", c->peer->encode(c->coder, o->m));
    break;
  case WEFT_BENCH_DECODE_DEFERRED:
    must(c, "decode", c->peer->decode(c->coder));
    break;
  default:
    must(c, "recode", c->peer->recode(c->coder, o->m));
  }
}

static const char *check_data(const weft_bench_rlnc_coder *c) {
  uint8_t *const data = weft_bench_alloc(1, c->data_bytes);
  take(c, data, c->data_bytes);
  const char *const what =
      weft_bench_check_source(c->peer->version, data, c->shape->data, c->data_bytes);
  free(data);
  return what;
}

static const char *check(const operation *o) {
  const weft_bench_rlnc_coder *const c = o->coder;
  if (o->like == WEFT_BENCH_DECODE_DEFERRED)
    return check_data(c);
  const size_t each = packet_bytes(c), step = o->m / CHECKED_PACKETS + 1;
  uint8_t *const packets = weft_bench_alloc(o->m, each);
  take(c, packets, o->m * each);
  uint8_t *const payload = weft_bench_alloc(1, c->shape->k);
  for (size_t i = 0; i < o->m; i += step) {
    mix(c, packets + i * each, payload);
    must(c, "make packets that are what their coefficients say",
         memcmp(payload, packets + i * each + c->shape->n, c->shape->k) == 0);
  }
  free(packets), free(payload);
  return "packets spread over the output, symbol by symbol in the library's field";
}

void weft_bench_rlnc_coder_add(weft_bench_rlnc_coder *c, weft_bench_group *group, const int *best) {
  for (size_t i = 0; c && i < COMPARED; i++) {
    const int like = best[compared[i].like];
    if (like < 0)
      continue;
    weft_bench_case entry = group->cases[like]; // its share is of the ceiling that bounds weft's
    operation *const o = &c->operations[i];
    *o = (operation){
        .coder = c,
        .like = compared[i].like,
        .m = entry.m,
        .question = weft_bench_text("%s: best row / %s", compared[i].question, c->peer->version)};
    call(o);
    entry.row = c->peer->version;
    entry.work = (weft_bench_candidate){.call = call, .user = o};
    entry.checked = check(o);
    weft_bench_group_ask(group, o->question, like, weft_bench_group_add(group, &entry),
                         WEFT_BENCH_OUTPUT);
  }
}
