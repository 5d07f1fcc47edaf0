// SPDX-License-Identifier: Apache-2.0
// What the papers on storage coding with GPUs plot, with their kernels, shapes, pieces and streams.
// Each case is run once, from and to host memory, and checked before it is timed.
#include "bench/storage_gpu_papers.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/buffers.h"
#include "bench/check.h"
#include "bench/storage_pipeline.h"

enum { MIB = 1 << 20, RESIDENT = 8 };

// The report copies what it keeps, so the group is freed.
static void run_group(weft_bench_storage_run *run, weft_bench_group *group) {
  group->shown[0] = WEFT_BENCH_INPUT;
  group->shown[1] = WEFT_BENCH_OUTPUT;
  weft_bench_report_run(&run->report, &run->options, group);
  weft_bench_group_free(group);
}

typedef struct steps {
  const char *transfers, *total, *kernel; // the paper's names; NULL: left out
} steps;

// Adds the transfers alone; everything, which the transfers bound; and the kernel alone, which
// memory bounds (`dram`: index of that case, or -1).
static void add_steps(weft_bench_pipeline *p, weft_bench_group *group, weft_bench_piecework work,
                      const steps *named, int dram) {
  const size_t piece = work.piece_bytes, streams = work.streams;
  int bound = -1;
  if (named->transfers) {
    work.steps = WEFT_BENCH_STEP_TRANSFERS, work.variant = named->transfers;
    bound = weft_bench_pipeline_add(p, group, &work, -1);
    if (bound < 0)
      return;
  }
  if (named->total) {
    work.steps = WEFT_BENCH_STEP_ALL, work.variant = named->total;
    if (weft_bench_pipeline_add(p, group, &work, bound) < 0)
      return;
  }
  if (named->kernel) {
    work.steps = WEFT_BENCH_STEP_COMPUTE, work.variant = named->kernel;
    work.piece_bytes = work.bytes, work.streams = 1, work.repeat = RESIDENT;
    weft_bench_pipeline_add(p, group, &work, dram);
    work.piece_bytes = piece, work.streams = streams;
  }
}

// --- Gibraltar: no pieces, one stream ---

static void gibraltar_shape(weft_bench_pipeline *p, weft_bench_group *group, size_t k, size_t m,
                            size_t bytes, const steps *encode, const steps *recover) {
  weft_code *code = weft_bench_pipeline_code(p, "vandermonde", k, m, 0);
  const int dram = weft_bench_pipeline_add_dram(p, group, k, m);
  weft_bench_piecework work = {
      .code = code, .bytes = bytes, .piece_bytes = bytes, .streams = 1, .repeat = 1};
  add_steps(p, group, work, encode, dram);
  work.lost = k < m ? k : m;
  if (recover) // what bounds m outputs does not bound fewer
    add_steps(p, group, work, recover, work.lost < m ? -1 : dram);
}

void weft_bench_storage_gpu_gibraltar(weft_bench_storage_run *run) {
  static const steps two = {.total = "total", .kernel = "kernel"};
  static const steps three = {"transfers", "total", "kernel"};
  static const size_t ms[] = {2, 3, 4, 6, 8, 10, 12, 14, 16};
  static const size_t sizes[] = {4096, 16384, 65536, 262144, MIB, 10 * MIB};
  weft_bench_pipeline *p =
      weft_bench_pipeline_new(run, "cuda-gibraltar", WEFT_MEM_PINNED, 32, 10 * MIB, 512 * MIB);
  for (size_t m = 2; m <= 4; m++) {
    char title[96];
    snprintf(title, sizeof title, "Gibraltar, k + %zu, 1 MiB buffers (its Figure 1)", m);
    weft_bench_group *group = weft_bench_group_new(title);
    for (size_t k = 2; k <= 16; k += 2)
      gibraltar_shape(p, group, k, m, MIB, &two, &two);
    run_group(run, group);
  }
  weft_bench_group *group = weft_bench_group_new("Gibraltar, 16 + m, 1 MiB (its Figure 4)");
  for (size_t i = 0; i < sizeof ms / sizeof *ms; i++)
    gibraltar_shape(p, group, 16, ms[i], MIB, &two, NULL);
  run_group(run, group);
  group = weft_bench_group_new("Gibraltar, 10 + 4, by buffer size and step (Figures 2 and 3)");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    gibraltar_shape(p, group, 10, 4, sizes[i], &three, NULL);
  run_group(run, group);
  weft_bench_pipeline_free(p);
}

// --- PErasure: both kernels over k and m; pieces on four streams ---

void weft_bench_storage_gpu_perasure(weft_bench_storage_run *run) {
  static const steps three = {"transfers", "overall", "raw"};
  static const char *const rows[] = {"cuda-perasure-smpe", "cuda-perasure-gmpe"};
  static const size_t ks[] = {8, 16, 24};
  weft_bench_pipeline *both[2];
  for (int row = 0; row < 2; row++)
    both[row] = weft_bench_pipeline_new(run, rows[row], WEFT_MEM_PINNED, 32, 8 * MIB, 32 * 9 * MIB);
  for (size_t k = 0; k < sizeof ks / sizeof *ks; k++)
    for (size_t m = 2; m <= 8; m += 2) {
      char title[96];
      snprintf(title, sizeof title, "PErasure, %zu + %zu, 8 MiB shards", ks[k], m);
      weft_bench_group *group = weft_bench_group_new(title);
      const int dram = weft_bench_pipeline_add_dram(both[0], group, ks[k], m);
      for (int row = 0; row < 2; row++) {
        const weft_bench_piecework work = {
            .code = weft_bench_pipeline_code(both[row], "perasure", ks[k], m, 0),
            .bytes = 8 * MIB,
            .piece_bytes = MIB,
            .streams = 4,
            .repeat = 1};
        add_steps(both[row], group, work, &three, dram);
      }
      run_group(run, group);
    }
  for (int row = 0; row < 2; row++)
    weft_bench_pipeline_free(both[row]);
}

// --- G-CRS ---

// Bytes of the words of `blocks` blocks of 128 threads, in groups of w threads.
static size_t bytes_of_blocks(size_t blocks, size_t w) { return blocks * (128 / w * w) * 8; }

// Figure 11 and Table 4: k = 10, every w, from small to large amounts.
static void gcrs_blocks(weft_bench_storage_run *run, weft_bench_pipeline *p) {
  for (size_t m = 1; m <= 4; m++) {
    char title[96], variant[64];
    snprintf(title, sizeof title, "G-CRS, 10 + %zu, by w and blocks of 128 threads", m);
    weft_bench_group *group = weft_bench_group_new(title);
    const int dram = weft_bench_pipeline_add_dram(p, group, 10, m);
    for (size_t w = 4; w <= 8; w++) {
      weft_code *code = weft_bench_pipeline_code(p, "gcrs", 10, m, w);
      for (size_t blocks = 16; blocks <= 8192; blocks *= 2) {
        snprintf(variant, sizeof variant, "gcrs:w=%zu blocks=%zu", w, blocks);
        weft_bench_pipeline_add(p, group,
                                &(weft_bench_piecework){.code = code,
                                                        .bytes = bytes_of_blocks(blocks, w),
                                                        .piece_bytes = bytes_of_blocks(blocks, w),
                                                        .streams = 1,
                                                        .steps = WEFT_BENCH_STEP_COMPUTE,
                                                        .repeat = RESIDENT,
                                                        .variant = variant},
                                dram);
      }
    }
    run_group(run, group);
  }
}

// What a model must predict: k = 1..45, m = 1..4, w = 4..8.
static void gcrs_model(weft_bench_storage_run *run, weft_bench_pipeline *p) {
  static const size_t ks[] = {1, 2, 4, 8, 10, 16, 24, 32, 45};
  for (size_t m = 1; m <= 4; m++) {
    char title[96], variant[64];
    snprintf(title, sizeof title, "G-CRS, k + %zu, 10 MiB shards, for its model", m);
    weft_bench_group *group = weft_bench_group_new(title);
    for (size_t i = 0; i < sizeof ks / sizeof *ks; i++) {
      const int dram = weft_bench_pipeline_add_dram(p, group, ks[i], m);
      for (size_t w = 4; w <= 8; w++) {
        if (ks[i] + m > (size_t)1 << w)
          continue;
        snprintf(variant, sizeof variant, "gcrs:w=%zu resident", w);
        weft_bench_pipeline_add(
            p, group,
            &(weft_bench_piecework){.code = weft_bench_pipeline_code(p, "gcrs", ks[i], m, w),
                                    .bytes = 10 * MIB,
                                    .piece_bytes = 10 * MIB,
                                    .streams = 1,
                                    .steps = WEFT_BENCH_STEP_COMPUTE,
                                    .repeat = 2,
                                    .variant = variant},
            dram);
      }
    }
    run_group(run, group);
  }
}

// Figure 15: pieces on up to ten streams.
static void gcrs_streams(weft_bench_storage_run *run, weft_bench_pipeline *p) {
  static const size_t counts[] = {1, 2, 4, 10};
  weft_bench_group *group = weft_bench_group_new("G-CRS, 10 + m, 64 MiB shards, by streams");
  for (size_t m = 1; m <= 4; m++) {
    weft_bench_piecework work = {.code = weft_bench_pipeline_code(p, "gcrs", 10, m, 4),
                                 .bytes = 64 * MIB,
                                 .piece_bytes = 2 * MIB,
                                 .streams = 10,
                                 .steps = WEFT_BENCH_STEP_TRANSFERS,
                                 .repeat = 1,
                                 .variant = "gcrs:w=4 transfers"};
    const int bound = weft_bench_pipeline_add(p, group, &work, -1);
    for (size_t i = 0; i < sizeof counts / sizeof *counts && bound >= 0; i++) {
      char variant[64];
      snprintf(variant, sizeof variant, "gcrs:w=4 streams=%zu", counts[i]);
      work.steps = WEFT_BENCH_STEP_ALL, work.streams = counts[i], work.variant = variant;
      weft_bench_pipeline_add(p, group, &work, bound);
    }
  }
  run_group(run, group);
}

void weft_bench_storage_gpu_gcrs(weft_bench_storage_run *run) {
  weft_bench_storage_overlap(run);
  weft_bench_pipeline *p =
      weft_bench_pipeline_new(run, "cuda-gcrs", WEFT_MEM_PINNED, 49, 10 * MIB, 512 * MIB);
  gcrs_blocks(run, p);
  gcrs_model(run, p);
  weft_bench_pipeline_free(p);
  p = weft_bench_pipeline_new(run, "cuda-gcrs", WEFT_MEM_PINNED, 14, 64 * MIB, 512 * MIB);
  gcrs_streams(run, p);
  weft_bench_pipeline_free(p);
}

// --- GPU-RSCode's slides: k = 4, n = 6 ---

void weft_bench_storage_gpu_slides(weft_bench_storage_run *run) {
  static const size_t counts[] = {1, 2, 3, 4}, megabytes[] = {1000, 1500, 2000};
  static const char *const memories[] = {"pinned", "pageable"};
  enum { K = 4, M = 2, MB = 1000000 };
  weft_bench_pipeline *both[2];
  for (int i = 0; i < 2; i++)
    both[i] = weft_bench_pipeline_new(run, "cuda", i ? WEFT_MEM_HOST : WEFT_MEM_PINNED, K + M,
                                      2000 / K * MB, 512 * MIB);
  for (size_t a = 0; a < sizeof megabytes / sizeof *megabytes; a++) {
    char title[96], variant[64];
    snprintf(title, sizeof title, "4 + 2, %zu MB", megabytes[a]);
    weft_bench_group *group = weft_bench_group_new(title);
    for (int i = 0; i < 2; i++) {
      weft_code *code = weft_bench_pipeline_code(both[i], "vandermonde", K, M, 0);
      for (size_t s = 0; s < sizeof counts / sizeof *counts; s++) {
        snprintf(variant, sizeof variant, "%zu MB streams=%zu %s", megabytes[a], counts[s],
                 memories[i]);
        weft_bench_pipeline_add(both[i], group,
                                &(weft_bench_piecework){.code = code,
                                                        .bytes = megabytes[a] / K * MB,
                                                        .piece_bytes = 10 * MIB,
                                                        .streams = counts[s],
                                                        .steps = WEFT_BENCH_STEP_ALL,
                                                        .repeat = 1,
                                                        .variant = variant},
                                -1);
      }
    }
    run_group(run, group);
  }
  weft_bench_pipeline_free(both[1]);
  weft_bench_pipeline_free(both[0]);
}
