// SPDX-License-Identifier: Apache-2.0
// `weft bench`: every comparison and figure of weft. docs/performance/method.md describes the
// method.
#ifndef WEFT_BENCH_BENCH_H
#define WEFT_BENCH_BENCH_H

// Exit statuses, the same for all commands of weft.
enum {
  WEFT_BENCH_WRONG = 1,   // wrong bytes
  WEFT_BENCH_USAGE = 2,   // an error in the command line
  WEFT_BENCH_IO = 3,      // a file could not be read or written
  WEFT_BENCH_MACHINE = 4, // memory, randomness or device
};

// argv[1] names the comparison. Returns 0 or one of the above.
int weft_bench_main(int argc, char **argv);

#endif
