// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu_ceilings.h"

#include <stdio.h>
#include <string.h>

#include "bench/cuda/table_bench.h"
#include "bench/cuda/tensor_bench.h"
#include "lib/ctx.h"

json_t *weft_bench_gpu_driver(void) {
  char line[256] = "";
  FILE *file = fopen("/proc/driver/nvidia/version", "r");
  if (!file)
    return json_null();
  const char *version = fgets(line, sizeof line, file) ? line : "";
  fclose(file);
  // "... Kernel Module for x86_64  580.159.04  Release Build ...": the first word with a dot.
  for (const char *word = strtok(line, " \t\n"); word; word = strtok(NULL, " \t\n"))
    if (strchr(word, '.'))
      return json_string(word);
  return json_string(version);
}

json_t *weft_bench_gpu_ceilings(weft_ctx *ctx) {
#if WEFT_HAVE_CUDA
  json_t *all = json_object();
  void *stream;
  if (weft_device_stream_new(ctx->device, &stream) != WEFT_OK)
    return all;
  for (int i = 0; i < BENCH_CEILINGS + BENCH_TENSOR_CEILINGS; i++) {
    double rate = 0;
    const char *name = i < BENCH_CEILINGS ? bench_ceiling(stream, i, &rate)
                                          : bench_tensor_ceiling(stream, i - BENCH_CEILINGS, &rate);
    if (!name)
      continue;
    printf("ceiling %-32s %9.3f T/s\n", name, rate * 1e-12);
    json_object_set_new(all, name, json_real(rate));
  }
  weft_device_stream_free(ctx->device, stream);
  return all;
#else
  (void)ctx;
  return json_null();
#endif
}

double weft_bench_gpu_queue_tensor(void *stream, void *room, int launches) {
#if WEFT_HAVE_CUDA
  return bench_tensor_queue_wgmma(stream, room, launches);
#else
  (void)stream, (void)room, (void)launches;
  return 0;
#endif
}
