// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/buffers.h"
#include "bench/gpu_cases.h"
#include "bench/mul_cases.h"
#include "kernels/device.h"

// Coded blocks of one segment: enough to give every multiprocessor several tiles in every row.
enum { BLOCKS = 128, BLOCK_BYTES = 4096, CODED = 8448 };

static const struct {
  const char *name, *of, *over;
} questions[] = {
    {"table / loop: best table (32 copies of exp, log domain) / loop", "cuda-table-32",
     "cuda-loop"},
    {"table / loop: the paper's best (table-based-5) / loop", "cuda-table-5", "cuda-loop"},
    {"table / loop: nibble tables in registers (PRMT) / loop", "cuda-nibble-prmt", "cuda-loop"},
    {"binary tensor product / best without tensor cores", "cuda-b1-wgmma", "cuda-nibble-prmt"},
};

static void run_rows(weft_bench_report *report, const weft_bench_options *options,
                     weft_bench_gpu **gpus) {
  weft_bench_group *const group =
      weft_bench_group_new("Y(8448, 4096) = A(8448, 128) X on device 0, kernel, prepared operands");
  for (size_t i = 0; i < weft_backend_count; i++)
    if (gpus[i])
      weft_bench_gpu_add_product(gpus[i], group, 1, CODED, BLOCKS, BLOCK_BYTES, false, -1);
  for (size_t q = 0; q < sizeof questions / sizeof *questions; q++)
    weft_bench_group_ask(
        group, questions[q].name, weft_bench_group_find(group, "encode", questions[q].of),
        weft_bench_group_find(group, "encode", questions[q].over), WEFT_BENCH_PRODUCTS);
  if (group->case_count > 0)
    weft_bench_report_run(report, options, group);
  weft_bench_group_free(group);
}

// Whether the row has a kernel of its own: rows of packets multiply bytes with another row's
// kernel, which would be timed twice.
static bool own_product(const weft_backend *row) {
  for (const weft_backend *other = weft_backends; other < row; other++)
    if (strcmp(other->name, "cuda-nibble-prmt") == 0 && other->gemm == row->gemm)
      return false;
  return true;
}

void weft_bench_mul_devices(weft_bench_report *report, const weft_bench_options *options) {
  weft_bench_gpu **const gpus = weft_bench_alloc(weft_backend_count, sizeof *gpus);
  size_t open = 0;
  for (size_t i = 0; i < weft_backend_count; i++) {
    if (weft_backends[i].mem != WEFT_MEM_DEVICE || !own_product(&weft_backends[i]))
      continue;
    weft_status status = WEFT_OK;
    gpus[i] = weft_bench_gpu_new(weft_backends[i].name, 0, options->seed, &status);
    open += gpus[i] != NULL;
    if (!gpus[i] && status != WEFT_E_BACKEND_ABSENT)
      printf("\nrow %s: %s\n", weft_backends[i].name, weft_status_text(status));
  }
  if (open > 0)
    run_rows(report, options, gpus);
  else
    printf("\nno GPU: %s; its rows are left out\n", weft_device_absence());
  for (size_t i = 0; i < weft_backend_count; i++)
    weft_bench_gpu_free(gpus[i]);
  free(gpus);
}
