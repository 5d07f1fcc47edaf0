// SPDX-License-Identifier: Apache-2.0
// G-CRS's question to a device: how far does arithmetic hide behind memory accesses? Words are read
// and written with r rounds of four LOP3s on each 16 bytes; also memory alone and arithmetic alone.
#include "bench/storage_gpu_papers.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/buffers.h"
#include "bench/check.h"
#include "bench/cuda/table_bench.h"
#include "lib/ctx.h"
#include "weft/weft.h"

enum { BYTES = 512 << 20 };

#if WEFT_HAVE_CUDA

typedef struct overlap_case {
  weft_ctx *ctx;
  void *stream;
  uint8_t *from, *to;
  int rounds, memory;
  char variant[64];
} overlap_case;

static void call_overlap(void *user) {
  const overlap_case *c = user;
  for (int i = 0; i < 4; i++)
    if (!bench_overlap(c->stream, c->from, c->to, BYTES, c->rounds, c->memory))
      weft_bench_must(c->variant, WEFT_E_DEVICE);
  weft_bench_must(c->variant, weft_device_stream_wait(c->ctx->device, c->stream));
}

void weft_bench_storage_overlap(weft_bench_storage_run *run) {
  static const int rounds[] = {0, 1, 2, 4, 6, 8, 10, 12, 16, 24, 32};
  void *from, *to, *stream;
  weft_ctx *ctx;
  weft_bench_must("device", weft_ctx_new(&ctx, &(weft_ctx_options){.backend = "cuda"}));
  weft_bench_must("memory", weft_alloc(ctx, WEFT_MEM_DEVICE, BYTES, &from));
  weft_bench_must("memory", weft_alloc(ctx, WEFT_MEM_DEVICE, BYTES, &to));
  weft_bench_must("stream", weft_device_stream_new(ctx->device, &stream));
  weft_bench_group *group = weft_bench_group_new("words read and written, r rounds of LOP3s");
  for (int memory = 1; memory >= 0; memory--)
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
      if (!memory && rounds[i] == 0)
        continue;
      overlap_case *c = weft_bench_alloc(1, sizeof *c);
      *c = (overlap_case){.ctx = ctx,
                          .stream = stream,
                          .from = from,
                          .to = to,
                          .rounds = rounds[i],
                          .memory = memory};
      snprintf(c->variant, sizeof c->variant, "r=%d%s", rounds[i], memory ? "" : " without memory");
      weft_bench_group_add(
          group,
          &(weft_bench_case){
              .operation = "overlap",
              .row = "lop3",
              .variant = c->variant,
              .n = (size_t)rounds[i],
              .k = BYTES,
              .m = 1,
              .threads = 1,
              .amount = {[WEFT_BENCH_INPUT] = 4.0 * BYTES, [WEFT_BENCH_OUTPUT] = 4.0 * BYTES},
              .ceiling = memory && i > 0 ? 0 : -1,
              .bound_by = WEFT_BENCH_INPUT,
              .work = {.call = call_overlap, .user = c, .threads = 1},
              .owned = c});
    }
  group->shown[0] = WEFT_BENCH_INPUT;
  group->shown[1] = WEFT_BENCH_OUTPUT;
  weft_bench_report_run(&run->report, &run->options, group);
  weft_bench_group_free(group);
  weft_device_stream_free(ctx->device, stream);
  weft_free(ctx, WEFT_MEM_DEVICE, to);
  weft_free(ctx, WEFT_MEM_DEVICE, from);
  weft_ctx_free(ctx);
}

#else

void weft_bench_storage_overlap(weft_bench_storage_run *run) { (void)run; }

#endif
