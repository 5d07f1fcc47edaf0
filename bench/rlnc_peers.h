// SPDX-License-Identifier: Apache-2.0
// Operations of other RLNC libraries on a shape, as cases of the group that measures weft's.
#ifndef WEFT_BENCH_RLNC_PEERS_H
#define WEFT_BENCH_RLNC_PEERS_H

#include "bench/peers/rlnc_peer.h"
#include "bench/rlnc_cases.h"

#define WEFT_BENCH_RLNC_PEERS 4u

typedef struct weft_bench_rlnc_peers {
  weft_bench_rlnc_peer peer[WEFT_BENCH_RLNC_PEERS];
  size_t count;
} weft_bench_rlnc_peers;

// Opens comma-separated files, or none (NULL). Leaves out those that are missing, after a message.
// Returns false, after a message, if there are too many.
bool weft_bench_rlnc_peers_open(const char *files, weft_bench_rlnc_peers *out);

// One library's coder for the shape's segment, with n packets that decode. NULL, after a message,
// if the library does not support the shape.
typedef struct weft_bench_rlnc_coder weft_bench_rlnc_coder;
weft_bench_rlnc_coder *weft_bench_rlnc_coder_new(const weft_bench_rlnc_peer *peer,
                                                 const weft_bench_shape *shape, uint64_t seed);
void weft_bench_rlnc_coder_free(weft_bench_rlnc_coder *coder); // after its group; accepts NULL

// Adds the operations that the library shares with weft and asks for the ratio of weft's rate to
// its own. best: the group's cases of weft's best row by operation, or -1. Accepts a NULL coder.
void weft_bench_rlnc_coder_add(weft_bench_rlnc_coder *coder, weft_bench_group *group,
                               const int *best);

#endif
