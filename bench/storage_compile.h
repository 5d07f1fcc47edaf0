// SPDX-License-Identifier: Apache-2.0
// Kernels that a part of `weft bench storage` will want, compiled on all cores beforehand.
#ifndef WEFT_BENCH_STORAGE_COMPILE_H
#define WEFT_BENCH_STORAGE_COMPILE_H

#include "bench/storage.h"
#include "weft/weft.h"

// A case encodes, or recovers these shards, as many as it says: the first data shards, or any of
// all shards, the same ones in every run.
size_t weft_bench_storage_lost(size_t k, size_t m, bool mixed, uint8_t *lost);

// Encoding by these codes and, if `recovery`, both kinds of it; long kernels should come last. Only
// where WEFT_CODE_FOLDER names a folder, through which the cases then get them: half of a run's
// time is compiling otherwise.
void weft_bench_storage_compile(const weft_bench_storage_run *run, const weft_code_options *codes,
                                size_t count, bool recovery);

#endif
