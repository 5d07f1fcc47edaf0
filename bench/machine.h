// SPDX-License-Identifier: Apache-2.0
// The machine that a figure comes from, and where the measured threads run on it.
#ifndef WEFT_BENCH_MACHINE_H
#define WEFT_BENCH_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct weft_bench_machine {
  char cpu[128];      // model name, with family, model and stepping if known
  char folder[160];   // the same as a folder name, for this machine's results
  char kernel[160];   // the operating system and its release
  size_t cpus;        // usable by this process
  size_t cores;       // physical cores among them
  uint32_t features;  // WEFT_CPU_*
  size_t l1d, l2, l3; // bytes, 0: unknown
  bool hypervisor;    // a virtual machine, whose neighbours are invisible
  int order[1024];    // (cpus): one CPU of each core first, then their siblings
} weft_bench_machine;

void weft_bench_machine_read(weft_bench_machine *machine);

// Gives the default numbers of threads to measure: 1, 2, 4, ... up to the number of cores, 16 at
// most. Returns how many.
#define WEFT_BENCH_THREAD_COUNTS 5u
size_t weft_bench_thread_counts(const weft_bench_machine *machine,
                                size_t threads[WEFT_BENCH_THREAD_COUNTS]);

// Lets the calling thread run on every CPU of `order` again.
void weft_bench_unpin(const weft_bench_machine *machine);
// Keeps the calling thread on the index-th CPU of `order`; false if the system refuses.
bool weft_bench_pin(const weft_bench_machine *machine, size_t index);
// Makes threads started from now on use CPUs 1 .. threads - 1 of `order`, so that with the caller
// pinned to CPU 0 every thread has a CPU of its own. Call weft_bench_pin afterwards.
bool weft_bench_pin_workers(const weft_bench_machine *machine, size_t threads);

#endif
