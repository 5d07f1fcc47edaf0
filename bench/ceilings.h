// SPDX-License-Identifier: Apache-2.0
// Ceilings, the most that a core can do: loops that only multiply and add registers, or only read
// or copy memory. They are measured in the same rounds as the code whose share of them is quoted.
#ifndef WEFT_BENCH_CEILINGS_H
#define WEFT_BENCH_CEILINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct weft_bench_ceiling {
  const char *name; // "gfni512"
  const char *what; // the instructions of the loop
  uint32_t cpu;     // WEFT_CPU_* that it needs
  size_t products;  // byte x coefficient products of one iteration
  void (*loop)(size_t iterations);
} weft_bench_ceiling;

extern const weft_bench_ceiling weft_bench_ceilings[];
extern const size_t weft_bench_ceiling_count;

// Returns the ceiling of a row's technique, for machines that the row runs on; NULL if the
// technique has none.
const weft_bench_ceiling *weft_bench_ceiling_for(const char *row);

// Reads every byte once with the machine's widest loads.
typedef void (*weft_bench_read)(const uint8_t *data, size_t bytes);
weft_bench_read weft_bench_read_widest(uint32_t machine_cpu, const char **name);

// Stores every byte once with the machine's widest stores; `change`: loads it first.
typedef void (*weft_bench_write)(uint8_t *data, size_t bytes);
weft_bench_write weft_bench_write_widest(uint32_t machine_cpu, bool change);
// The same with stores past the caches; NULL: there are none.
weft_bench_write weft_bench_stream_widest(uint32_t machine_cpu);

#endif
