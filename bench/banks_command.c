// SPDX-License-Identifier: Apache-2.0
// `weft bench banks`: simulates how many turns a warp's lookup takes in shared memory because of
// bank conflicts. Gibraltar found 2.92 for a half-warp of 16 lanes on 16 banks; current devices
// have warps of 32 lanes and 32 banks.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "bench/commands.h"
#include "bench/group.h"
#include "bench/machine.h"
#include "bench/options.h"
#include "bench/stats.h"

enum { LANES_MAX = 32, LOOKUPS = 20000, ENTRIES = 255 };

// Where an entry lies for a lane, in words; its bank is that number modulo the number of banks.
typedef struct layout {
  const char *name, *what;
  unsigned (*word)(unsigned entry, unsigned lane);
} layout;

static unsigned words(unsigned entry, unsigned lane) {
  (void)lane;
  return entry;
}
static unsigned bytes(unsigned entry, unsigned lane) {
  (void)lane;
  return entry / 4;
}
static unsigned words_8(unsigned entry, unsigned lane) { return entry * 8 + lane % 8; }
static unsigned words_32(unsigned entry, unsigned lane) { return entry * 32 + lane % 32; }
static unsigned bytes_16(unsigned entry, unsigned lane) { return entry / 4 * 16 + lane % 16; }

static const layout layouts[] = {
    {"words", "one table of words (Gibraltar)", words},
    {"bytes", "one table of bytes (table-1 to -3)", bytes},
    {"words x 8", "8 tables of words (table-5)", words_8},
    {"bytes x 16", "16 tables of bytes (table-bytes16)", bytes_16},
    {"words x 32", "32 tables of words (table-32)", words_32},
};

enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static uint64_t next(uint64_t *state) {
  *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
  return *state;
}

// Returns the turns of one lookup. Lanes that want the same word share it; each further word in a
// bank takes another turn.
static unsigned turns(const unsigned *word, unsigned lanes) {
  unsigned of_bank[LANES_MAX] = {0}, most = 0;
  for (unsigned lane = 0; lane < lanes; lane++) {
    unsigned earlier = 0;
    while (word[earlier] != word[lane])
      earlier++;
    if (earlier == lane && ++of_bank[word[lane] % lanes] > most)
      most = of_bank[word[lane] % lanes];
  }
  return most;
}

// Simulates a warp that multiplies bytes by one coefficient c: every lane looks up log c + log x.
static double turns_per_lookup(const layout *table, unsigned lanes, uint64_t *random) {
  uint64_t sum = 0;
  for (unsigned lookup = 0; lookup < LOOKUPS; lookup++) {
    unsigned word[LANES_MAX];
    const unsigned log_c = (unsigned)(next(random) >> 32) % ENTRIES;
    for (unsigned lane = 0; lane < lanes; lane++)
      word[lane] = table->word(log_c + (unsigned)(next(random) >> 32) % ENTRIES, lane);
    sum += turns(word, lanes);
  }
  return (double)sum / LOOKUPS;
}

static json_t *simulate(const layout *table, unsigned lanes, size_t runs, uint64_t *random) {
  double *const found = weft_bench_alloc(runs, sizeof *found);
  json_t *const all = json_array();
  for (size_t r = 0; r < runs; r++) {
    found[r] = turns_per_lookup(table, lanes, random);
    json_array_append_new(all, json_real(found[r]));
  }
  const weft_bench_spread spread = weft_bench_spread_of(found, runs);
  printf("  %-36s %2u lanes and banks  %.3f (%.3f..%.3f)\n", table->what, lanes, spread.median,
         spread.min, spread.max);
  free(found);
  return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:o}", "operation", "conflicts", "row",
                   "simulated", "layout", table->name, "what", table->what, "lanes", (int)lanes,
                   "banks", (int)lanes, "conflicts_per_lookup", all);
}

int weft_bench_banks_command(int argc, char **argv) {
  weft_bench_options options;
  const int parsed = weft_bench_options_parse(&options, argc, argv);
  if (parsed != 0)
    return parsed == 1 ? 0 : parsed;
  weft_bench_machine machine;
  weft_bench_machine_read(&machine);
  weft_bench_report report;
  weft_bench_report_begin(&report, &options, &machine);
  uint64_t random = options.seed | 1;
  json_t *const cases = json_array();
  printf("turns that a lookup of all lanes takes, %d lookups a run:\n", LOOKUPS);
  for (size_t l = 0; l < LAYOUTS; l++)
    for (unsigned lanes = 16; lanes <= LANES_MAX; lanes *= 2)
      json_array_append_new(cases, simulate(&layouts[l], lanes, options.timing.reps, &random));
  weft_bench_report_add(&report, &options, "lookups in shared memory, simulated", cases);
  return weft_bench_report_end(&report, &options);
}
