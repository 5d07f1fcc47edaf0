// SPDX-License-Identifier: Apache-2.0
// `weft bench`: every comparison and figure of weft. docs/performance.md has the method.
#ifndef WEFT_BENCH_BENCH_H
#define WEFT_BENCH_BENCH_H

// argv[1] names the comparison. Returns the program's exit status: 0; 1 when something failed or
// gave wrong bytes; 2 for wrong arguments.
int weft_bench_main(int argc, char **argv);

#endif
