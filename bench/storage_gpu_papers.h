// SPDX-License-Identifier: Apache-2.0
// What the papers on storage coding with GPUs plot, on this device: parts of `weft bench storage`.
#ifndef WEFT_BENCH_STORAGE_GPU_PAPERS_H
#define WEFT_BENCH_STORAGE_GPU_PAPERS_H

#include "bench/storage.h"

void weft_bench_storage_gpu_gibraltar(weft_bench_storage_run *run); // its Figures 1 to 4
void weft_bench_storage_gpu_perasure(weft_bench_storage_run *run);  // its Figures 3 to 6
void weft_bench_storage_gpu_gcrs(weft_bench_storage_run *run); // its Figures 9, 11 and 15, Table 4
void weft_bench_storage_gpu_slides(weft_bench_storage_run *run); // 1000 to 2000 MB, by streams
void weft_bench_storage_overlap(weft_bench_storage_run *run);    // of its Figure 9

#endif
