// SPDX-License-Identifier: Apache-2.0
// `weft bench` as a separate program, for machines without weft's dependencies.
#include "bench/bench.h"

int main(int argc, char **argv) { return weft_bench_main(argc, argv); }
