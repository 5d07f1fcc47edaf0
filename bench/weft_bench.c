// SPDX-License-Identifier: Apache-2.0
// `weft bench` as a program of its own, for machines that have none of weft's dependencies.
#include "bench/bench.h"

int main(int argc, char **argv) { return weft_bench_main(argc, argv); }
