// SPDX-License-Identifier: Apache-2.0
// `weft bench peer`: how much one core of a node sends, and what a flood of noise costs a peer that
// plays.
#include <stdio.h>

#include "bench/bench.h"
#include "bench/check.h"
#include "bench/commands.h"
#include "bench/peer_cases.h"
#include "peer/runtime/udp.h"
#include "weft/peer_node.h"

int weft_bench_peer_command(int argc, char **argv) {
  weft_bench_options options;
  const int parsed = weft_bench_options_parse(&options, argc, argv);
  if (parsed != 0)
    return parsed == 1 ? 0 : parsed;
  static const char *const names[] = {"code", "seal", "send", "all", "flood"};
  static const char *const rows[] = {"source", "relay",     "aes-256-gcm",    "chacha20",
                                     "udp",    "one burst", "relay one burst"};
  if (!weft_bench_operations_known(&options, names, sizeof names / sizeof *names) ||
      !weft_bench_names_known(&options, "rows", options.rows, rows, sizeof rows / sizeof *rows))
    return WEFT_BENCH_USAGE;
  weft_bench_sizes_default(&options.n, (const size_t[]){64}, 1);
  weft_bench_sizes_default(&options.k, (const size_t[]){1024}, 1);
  weft_bench_sizes_default(&options.m, (const size_t[]){8, 16, 32}, options.quick ? 1 : 3);
  for (size_t i = 0; i < options.m.count; i++)
    if (options.m.value[i] > WEFT_UDP_RUN || options.m.value[i] < 1) {
      fprintf(stderr, "weft bench peer: --m must be 1..%d, not %zu\n", WEFT_UDP_RUN,
              options.m.value[i]);
      return WEFT_BENCH_USAGE;
    }
  if (12 + options.n.value[0] + options.k.value[0] > WEFT_SESSION_PLAIN_BYTES) {
    fprintf(stderr,
            "weft bench peer: --n and --k may be at most %d together: a packet must fit "
            "into one datagram\n",
            (int)WEFT_SESSION_PLAIN_BYTES - 12);
    return WEFT_BENCH_USAGE;
  }
  weft_bench_machine machine;
  weft_bench_machine_read(&machine);
  weft_ctx *ctx;
  weft_bench_must("context", weft_ctx_new(&ctx, NULL));
  const size_t ways = weft_bench_peer_ways(&options, ctx);
  if (options.rows && ways == 0) {
    fprintf(stderr, "weft bench peer: none of --operations has any of --rows on this machine\n");
    weft_ctx_free(ctx);
    return WEFT_BENCH_USAGE;
  }
  weft_bench_report report;
  weft_bench_report_begin(&report, &options, &machine);
  for (size_t i = 0; i < options.m.count && ways > 0; i++)
    weft_bench_peer_throughput(&report, &options, ctx, options.n.value[0], options.k.value[0],
                               options.m.value[i]);
  if (weft_bench_listed(options.operations, "flood"))
    weft_bench_peer_flood(&report, &options, ctx);
  weft_ctx_free(ctx);
  return weft_bench_report_end(&report, &options);
}
