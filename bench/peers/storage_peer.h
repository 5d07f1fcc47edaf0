// SPDX-License-Identifier: Apache-2.0
// Other libraries' erasure codes behind one interface, for `weft bench storage`.
#ifndef WEFT_BENCH_PEERS_STORAGE_PEER_H
#define WEFT_BENCH_PEERS_STORAGE_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum weft_bench_storage_operation {
  WEFT_BENCH_STORAGE_ENCODE,
  WEFT_BENCH_STORAGE_RECOVER,   // the lost data shards; includes the inversion
  WEFT_BENCH_STORAGE_ADD_DELTA, // parity ^= the effect of old ^ new of shard 0
  // Only for weft:
  WEFT_BENCH_STORAGE_PROGRESS, // encode, one data shard after another
  WEFT_BENCH_STORAGE_UPDATE,   // shard 0 becomes `delta`: updates the parity
  WEFT_BENCH_STORAGE_VERIFY,
  WEFT_BENCH_STORAGE_OPERATIONS
} weft_bench_storage_operation;

// What an operation works on; all libraries work on the same memory.
typedef struct weft_bench_shards {
  size_t k, m, bytes;
  uint8_t *shard[256];    // (k + m): data, then parity
  uint8_t lost[256];      // data shards
  size_t lost_count;      // at most m
  uint8_t *delta;         // for shard 0, `bytes` long
  size_t w, packet_bytes; // CRS; 0 otherwise
} weft_bench_shards;

typedef struct weft_bench_storage_peer weft_bench_storage_peer;

typedef struct weft_bench_storage_call {
  void (*call)(void *state);
  void *state;
  void (*release)(void *state);
} weft_bench_storage_call;

struct weft_bench_storage_peer { // each library's source appends its functions
  char name[48];
  const char *code; // weft's code with the same bytes; for CRS without its parameters
  bool one_caller;  // concurrent calls would not show its speed
  void *library;
  // Fills in `out`, with all tables computed that the library's users keep. Returns 0 if the
  // library lacks the operation. The shards outlive the call.
  int (*prepare)(const weft_bench_storage_peer *peer, weft_bench_storage_operation operation,
                 const weft_bench_shards *shards, weft_bench_storage_call *out);
};

// Return NULL after a line that says what is missing.
weft_bench_storage_peer *weft_bench_peer_isal(const char *file);
weft_bench_storage_peer *weft_bench_peer_klauspost(const char *file); // peers/klauspost
weft_bench_storage_peer *weft_bench_peer_jerasure_rs(const char *file);
weft_bench_storage_peer *weft_bench_peer_jerasure_crs(const char *file); // cauchy_good
void weft_bench_peer_close(weft_bench_storage_peer *peer);               // accepts NULL

#endif
