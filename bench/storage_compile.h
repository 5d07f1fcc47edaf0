// SPDX-License-Identifier: Apache-2.0
// Kernels that a part of `weft bench storage` will need, compiled on all cores in advance.
#ifndef WEFT_BENCH_STORAGE_COMPILE_H
#define WEFT_BENCH_STORAGE_COMPILE_H

#include "bench/storage.h"
#include "weft/weft.h"

// Chooses the shards that a case recovers and returns their number: the first shards or, if
// `mixed`, any of all shards, the same ones in every run.
size_t weft_bench_storage_lost(size_t k, size_t m, bool mixed, uint8_t *lost);

// Compiles encoding by these codes and, if `recovery`, recovery of both kinds of loss; long kernels
// should come last. Does so only if WEFT_CODE_FOLDER names a folder, through which the cases then
// get the kernels: otherwise compiling takes half of a run's time.
void weft_bench_storage_compile(const weft_bench_storage_run *run, const weft_code_options *codes,
                                size_t count, bool recovery);

#endif
