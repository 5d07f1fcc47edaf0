// SPDX-License-Identifier: Apache-2.0
// `weft bench ceilings`: all arithmetic ceilings of this machine, and its memory speed by working
// set.
#include <stdio.h>
#include <stdlib.h>

#include "bench/buffers.h"
#include "bench/ceiling_cases.h"
#include "bench/commands.h"
#include "bench/group.h"

static void add_arithmetic(weft_bench_group *group, uint32_t cpu) {
  for (size_t c = 0; c < weft_bench_ceiling_count; c++)
    if ((weft_bench_ceilings[c].cpu & ~cpu) == 0)
      weft_bench_add_ceiling(group, &weft_bench_ceilings[c]);
}

// Chooses half of each cache level (a quarter of L3), so that the set stays inside, and a set that
// no level holds.
static size_t working_sets(const weft_bench_machine *machine, size_t sets[4],
                           const char *names[4]) {
  enum { LARGEST = 256 << 20 };
  size_t count = 0;
  const size_t last = machine->l3 ? machine->l3 : machine->l2;
  const size_t levels[] = {machine->l1d / 2, machine->l2 / 2, machine->l3 / 4,
                           last ? 4 * last : LARGEST};
  static const char *const level_names[] = {"L1", "L2", "L3", "DRAM"};
  for (size_t i = 0; i < 4; i++) {
    const size_t bytes = levels[i] > LARGEST ? LARGEST : levels[i];
    if (bytes == 0 || (i == 3 && bytes <= last))
      continue; // unknown, or the last level is too large to leave
    sets[count] = bytes / 4096 * 4096;
    names[count++] = level_names[i];
  }
  return count;
}

int weft_bench_ceilings_command(int argc, char **argv) {
  weft_bench_options options;
  const int parsed = weft_bench_options_parse(&options, argc, argv);
  if (parsed != 0)
    return parsed == 1 ? 0 : parsed;
  weft_bench_machine machine;
  weft_bench_machine_read(&machine);
  weft_bench_pin(&machine, 0);
  weft_bench_report report;
  weft_bench_report_begin(&report, &options, &machine);

  weft_bench_group *const arithmetic = weft_bench_group_new("arithmetic in registers");
  add_arithmetic(arithmetic, machine.features);
  weft_bench_report_run(&report, &options, arithmetic);
  weft_bench_group_free(arithmetic);

  size_t sets[4];
  const char *names[4];
  const size_t count = working_sets(&machine, sets, names);
  for (size_t i = 0; i < count; i++) {
    uint8_t *const from = weft_bench_alloc(sets[i], 1), *const to = weft_bench_alloc(sets[i], 1);
    weft_bench_random random;
    weft_bench_random_seed(&random, options.seed);
    weft_bench_random_bytes(&random, from, sets[i]);
    // Both halves of the copy together have the size of the read.
    char *const title = weft_bench_text("memory, %s: read %zu KiB, copy %zu KiB", names[i],
                                        sets[i] >> 10, sets[i] >> 11);
    weft_bench_group *const group = weft_bench_group_new(title);
    weft_bench_add_read(group, machine.features, from, sets[i]);
    weft_bench_add_copy(group, to, from, sets[i] / 2);
    weft_bench_report_run(&report, &options, group);
    weft_bench_group_free(group);
    free(title);
    free(from);
    free(to);
  }
  weft_bench_unpin(&machine);
  return weft_bench_report_end(&report, &options);
}
