// SPDX-License-Identifier: Apache-2.0
// What `weft bench peer` measures: a node's way out, and a flood at a node that plays.
#ifndef WEFT_BENCH_PEER_CASES_H
#define WEFT_BENCH_PEER_CASES_H

#include "bench/group.h"
#include "weft/weft.h"

// Returns how many cases --operations and --rows leave of those that follow.
size_t weft_bench_peer_ways(const weft_bench_options *options, weft_ctx *ctx);
// Times coding, sealing and sending over the loopback, each alone and all together; n blocks of k
// bytes, m packets per burst.
void weft_bench_peer_throughput(weft_bench_report *report, const weft_bench_options *options,
                                weft_ctx *ctx, size_t n, size_t k, size_t m);
void weft_bench_peer_flood(weft_bench_report *report, const weft_bench_options *options,
                           weft_ctx *ctx);

#endif
