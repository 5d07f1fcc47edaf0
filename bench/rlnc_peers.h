// SPDX-License-Identifier: Apache-2.0
// Other RLNC libraries' operations on a shape, as cases of the group that measures weft's.
#ifndef WEFT_BENCH_RLNC_PEERS_H
#define WEFT_BENCH_RLNC_PEERS_H

#include "bench/peers/rlnc_peer.h"
#include "bench/rlnc_cases.h"

#define WEFT_BENCH_RLNC_PEERS 4u

typedef struct weft_bench_rlnc_peers {
  weft_bench_rlnc_peer peer[WEFT_BENCH_RLNC_PEERS];
  size_t count;
} weft_bench_rlnc_peers;

// files: comma-separated, or NULL. Those that are missing are left out, after a line that says so.
// False after a message: there are too many.
bool weft_bench_rlnc_peers_open(const char *files, weft_bench_rlnc_peers *out);

// One library's coder for the shape's segment, with n packets that decode. NULL after a line that
// says so where it has no such shape.
typedef struct weft_bench_rlnc_coder weft_bench_rlnc_coder;
weft_bench_rlnc_coder *weft_bench_rlnc_coder_new(const weft_bench_rlnc_peer *peer,
                                                 const weft_bench_shape *shape, uint64_t seed);
void weft_bench_rlnc_coder_free(weft_bench_rlnc_coder *coder); // after its group; accepts NULL

// Adds what the library has of weft's operations and asks how many times its rate weft reaches.
// best: the group's cases of weft's best row by operation, or -1. Accepts NULL.
void weft_bench_rlnc_coder_add(weft_bench_rlnc_coder *coder, weft_bench_group *group,
                               const int *best);

#endif
