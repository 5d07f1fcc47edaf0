// SPDX-License-Identifier: Apache-2.0
// The machine that a figure comes from, and where on it the measured threads run.
#ifndef WEFT_BENCH_MACHINE_H
#define WEFT_BENCH_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct weft_bench_machine {
  char cpu[128];      // model name, with family, model and stepping where there are any
  char folder[160];   // the same as a folder name: where results of this machine are kept
  char kernel[160];   // the operating system and its release
  size_t cpus;        // that this process may use
  size_t cores;       // physical cores among them
  uint32_t features;  // WEFT_CPU_*
  size_t l1d, l2, l3; // bytes, 0: unknown
  bool hypervisor;    // a virtual machine, whose neighbours cannot be seen
  int order[1024];    // (cpus): one CPU of each core first, then their siblings
} weft_bench_machine;

void weft_bench_machine_read(weft_bench_machine *machine);

// The numbers of threads that are measured unless others are asked for: 1, 2, 4, ... up to the
// cores and 16. Returns how many.
#define WEFT_BENCH_THREAD_COUNTS 5u
size_t weft_bench_thread_counts(const weft_bench_machine *machine,
                                size_t threads[WEFT_BENCH_THREAD_COUNTS]);

// Gives the calling thread back every CPU of `order`.
void weft_bench_unpin(const weft_bench_machine *machine);
// Keeps the calling thread on the index-th CPU of `order`; false where the system refuses.
bool weft_bench_pin(const weft_bench_machine *machine, size_t index);
// Makes threads that are started from now on use CPUs 1 .. threads - 1 of `order`, so that with the
// caller pinned to CPU 0 every thread has its own. Call weft_bench_pin afterwards.
bool weft_bench_pin_workers(const weft_bench_machine *machine, size_t threads);

#endif
