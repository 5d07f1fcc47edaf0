// SPDX-License-Identifier: Apache-2.0
// Command-line options of the comparisons. They use getopt rather than GLib, so that the same code
// runs where there is no GLib.
#define _GNU_SOURCE // getopt_long
#include "bench/options.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "tools/printable.h"
#include "weft/weft.h"

// Comparisons that time calls; `sim` and `banks` count instead.
#define TIMED "mul,rlnc,decoder,pool,storage,gpu,server,peer,ceilings"
// Comparisons that keep a mark for each repetition.
#define MARKED "sim,server"
// Comparisons that know which memory a call touches.
#define EVICTED "mul,rlnc,storage,ceilings"

// The kind of an option's value: a list of sizes or a text, stored at `at`; a number or a flag,
// which take() interprets.
typedef enum kind { SIZES, TEXT, NUMBER, FLAG, HELP } kind;

#define IN(field) offsetof(weft_bench_options, field)

// Each option, and the comparisons that it affects (NULL: all). The others refuse it, so that
// nobody mistakes a figure for one of a shape that was never measured.
static const struct {
  const char *name;
  kind kind;
  size_t at;
  const char *value; // NULL: no value
  const char *takers;
  const char *about;
} all[] = {
    {"n", SIZES, IN(n), "LIST", "mul,rlnc", "blocks in a segment (128)"},
    {"n", SIZES, IN(n), "LIST", "decoder", "blocks in a segment (16,64,128,256,1024)"},
    {"n", SIZES, IN(n), "N", "pool", "blocks in a segment (128)"},
    {"n", SIZES, IN(n), "N", "peer", "blocks in a segment (64)"},
    {"k", SIZES, IN(k), "LIST", "mul", "bytes in a block (1K,4K)"},
    {"k", SIZES, IN(k), "LIST", "rlnc", "bytes in a block (1K,4K,16K)"},
    {"k", SIZES, IN(k), "LIST", "decoder", "bytes in a block (1K)"},
    {"k", SIZES, IN(k), "LIST", "pool", "bytes in a block (1K,4K)"},
    {"k", SIZES, IN(k), "N", "peer", "bytes in a block (1K)"},
    {"m", SIZES, IN(m), "LIST", "mul", "coded blocks per call (128)"},
    {"m", SIZES, IN(m), "LIST", "rlnc", "coded blocks per call (n)"},
    {"m", SIZES, IN(m), "LIST", "peer", "packets per burst (8,16,32)"},
    {"m", SIZES, IN(m), "LIST", "storage",
     "parity shards in gpu-rs, gpu-crs and gpu-crs8 without --shapes (2,4,8,16)"},
    {"m", SIZES, IN(m), "LIST", "sim", "peers (1000,10000,100000)"},
    {"rows", TEXT, IN(rows), "LIST", "mul", "backend rows by name, best, or all (all)"},
    {"rows", TEXT, IN(rows), "LIST", "rlnc,decoder", "backend rows by name, best, or all (best)"},
    {"rows", TEXT, IN(rows), "NAME", "storage,pool", "the backend row, or best (best)"},
    {"rows", TEXT, IN(rows), "NAME", "gpu,server", "the device's backend row (cuda)"},
    {"rows", TEXT, IN(rows), "LIST", "peer", "kinds of packets, by their names in the table"},
    {"operations", TEXT, IN(operations), "LIST", "rlnc,pool,storage,gpu,server,peer,sim",
     "only these operations (all; an unknown name lists them)"},
    {"threads", SIZES, IN(threads), "LIST", "rlnc", "threads (1, and 2 where there are two)"},
    {"threads", SIZES, IN(threads), "LIST", "storage,pool",
     "threads (1, 2, 4, ... up to the cores)"},
    {"threads", SIZES, IN(threads), "N", "server", "threads of the host (all free ones)"},
    {"pauses", SIZES, IN(pauses), "LIST", "pool",
     "microseconds that the caller is busy elsewhere before a job, besides 0 (100,300,3000)"},
    {"shapes", TEXT, IN(shapes), "LIST", "storage",
     "data and parity shards, such as 10+4,32+8 (each part's own)"},
    {"bytes", SIZES, IN(bytes), "LIST", "storage", "bytes of a shard (64K,1M)"},
    {"reps", NUMBER, IN(timing.reps), "N", "mul", "repetitions, 9 to 10000 (9)"},
    {"reps", NUMBER, IN(timing.reps), "N", MARKED, "repetitions, 9 to 64 (11)"},
    {"reps", NUMBER, IN(timing.reps), "N", "rlnc,decoder,pool,storage,gpu,peer,ceilings,banks",
     "repetitions, 9 to 10000 (11)"},
    {"rep-ms", NUMBER, IN(timing.rep_s), "N", "mul",
     "length of a repetition in milliseconds, 1 to 60000 (10)"},
    {"rep-ms", NUMBER, IN(timing.rep_s), "N", "rlnc,decoder,pool,storage,gpu,server,peer,ceilings",
     "length of a repetition in milliseconds, 1 to 60000 (20)"},
    {"small-pages", FLAG, IN(small_pages), NULL, TIMED,
     "no huge pages for the data, as in most programs"},
    {"cold", FLAG, IN(timing.cold), NULL, EVICTED,
     "evict the data from the CPU's caches before every call"},
    {"seed", NUMBER, IN(seed), "N", NULL, "seed of the random data (from the system)"},
    {"isal", TEXT, IN(isal), "FILE", "mul,rlnc",
     "ISA-L's library (libisal.so.2); empty: leave it out"},
    {"isal", TEXT, IN(isal), "LIST", "storage",
     "ISA-L's libraries (libisal.so.2); append :sse, :avx2, :avx512, :avx2_gfni or another to use "
     "only its functions for these instructions; empty: leave it out"},
    {"peers", TEXT, IN(peers), "LIST", "rlnc",
     "files of other RLNC libraries, built by bench/peers/rlnc (none)"},
    {"jerasure", TEXT, IN(jerasure), "FILE", "storage",
     "Jerasure's library (libJerasure.so.2); empty: leave it out"},
    {"klauspost", TEXT, IN(klauspost), "FILE", "storage",
     "the library that bench/peers/klauspost builds (none)"},
    {"json", TEXT, IN(json), "FILE", NULL,
     "write every repetition's time, with provenance (to FILE.part until the end); -: to standard "
     "output, with tables on standard error"},
    {"quick", FLAG, IN(quick), NULL, TIMED,
     "9 repetitions of 4 ms, and fewer shapes, or requests in flight"},
    {"quick", FLAG, IN(quick), NULL, "sim,banks", "9 repetitions, and fewer shapes"},
    {"help", HELP, 0, NULL, NULL, "this list"},
};

// getopt_long returns an option as FIRST + its index, above all characters.
enum {
  OPTIONS = sizeof all / sizeof *all,
  FIRST = 256,
  WEFT_BENCH_MAX_THREADS = 4096,
  MAX_PAUSE_US = 100000
};

static void put_help(const char *comparison) {
  printf("usage: weft bench %s [options]\n", comparison);
  for (size_t i = 0; i < OPTIONS; i++)
    if (weft_bench_listed(all[i].takers, comparison))
      printf("  --%s %-*s %s\n", all[i].name, 16 - (int)strlen(all[i].name),
             all[i].value ? all[i].value : "", all[i].about);
  puts("Defaults are in parentheses. A LIST is separated by commas; suffix Ki or K: times 1024, "
       "Mi or M: times 1024^2\n(K and M alone are powers of 1000 in the other commands of weft).");
}

// Returns the most that the library accepts; mul works below the library.
static size_t most_of(const char *comparison, size_t at) {
  const bool mul = strcmp(comparison, "mul") == 0;
  return at == IN(n) && !mul   ? WEFT_MAX_BLOCKS
         : at == IN(k) && !mul ? WEFT_MAX_BLOCK_BYTES
         : at == IN(threads)   ? WEFT_BENCH_MAX_THREADS
         : at == IN(pauses)    ? MAX_PAUSE_US
                               : SIZE_MAX;
}

static bool parse_number(const char *text, uint64_t *out) {
  char *end = NULL;
  if (*text < '0' || *text > '9')
    return false;
  errno = 0;
  *out = strtoull(text, &end, text[0] == '0' && text[1] == 'x' ? 16 : 10); // 0128 is 128, not octal
  const uint64_t unit = *end == 'K' ? 1024 : *end == 'M' ? 1024 * 1024 : 1;
  end += unit > 1 ? 1 + (end[1] == 'i') : 0; // Ki and Mi, as in other commands
  if (errno || *out > UINT64_MAX / unit)
    return false;
  *out *= unit;
  return *end == '\0';
}

// Parses values up to `most`, at most `room` of them.
static bool parse_list(const char *text, size_t most, size_t room, weft_bench_sizes *out) {
  char item[32];
  out->count = 0;
  while (*text) {
    const size_t length = strcspn(text, ",");
    uint64_t value = 0;
    if (length >= sizeof item || out->count == room)
      return false;
    memcpy(item, text, length);
    item[length] = '\0';
    if (!parse_number(item, &value) || value == 0 || value > most)
      return false;
    out->value[out->count++] = (size_t)value;
    text += length + (text[length] == ',');
  }
  return out->count > 0;
}

static bool take_number(weft_bench_options *options, size_t at, const char *argument) {
  uint64_t number = 0;
  if (!parse_number(argument, &number))
    return false;
  if (at == IN(seed)) {
    options->seed = number;
    return true;
  }
  if (at == IN(timing.reps)) {
    options->timing.reps = (size_t)number;
    return number >= WEFT_BENCH_MIN_REPS &&
           number <= (weft_bench_listed(MARKED, options->argv[0]) ? WEFT_BENCH_MARKS : 10000);
  }
  options->timing.rep_s = (double)number * 1e-3;
  return number >= 1 && number <= 60000;
}

// Takes one option; false if its argument is out of range.
static bool take(weft_bench_options *options, size_t option, const char *argument) {
  void *const at = (char *)options + all[option].at;
  switch (all[option].kind) {
  case SIZES:
    return parse_list(argument, most_of(options->argv[0], all[option].at),
                      strcmp(all[option].value, "N") == 0 ? 1 : WEFT_BENCH_LIST, at);
  case TEXT:
    *(const char **)at = argument;
    return true;
  case NUMBER:
    return take_number(options, all[option].at, argument);
  default:
    *(bool *)at = true;
    if (options->small_pages)
      weft_bench_small_pages();
    return true;
  }
}

static bool is_stdout(const char *path) {
  static const char *const names[] = {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(path, names[i]) == 0)
      return true;
  return false;
}

// Reserves standard output for the report: everything printed from here on goes to standard error,
// or nowhere if that was closed (the program then has it open for reading).
static bool part_tables_from_report(weft_bench_options *options) {
  const int fd = fflush(stdout) == 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) : -1;
  const int mode = fcntl(STDERR_FILENO, F_GETFL);
  const bool closed = mode < 0 || (mode & O_ACCMODE) == O_RDONLY;
  const int tables = closed ? open("/dev/null", O_WRONLY | O_CLOEXEC) : STDERR_FILENO;
  if (fd >= 0 && tables >= 0 && dup2(tables, STDOUT_FILENO) == STDOUT_FILENO &&
      (options->json_stdout = fdopen(fd, "w")) != NULL)
    return true;
  fprintf(stderr, "weft bench %s: standard output: %s\n", options->argv[0], strerror(errno));
  return false;
}

// Checks whether the report can be written, before minutes of measuring. The file keeps its
// contents until the report is complete; a pipe is not opened, because its reader would see it
// close.
static bool can_write(const weft_bench_options *options) {
  struct stat about;
  if (!options->json ||
      (stat(options->json, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)))
    return true;
  const bool there = access(options->json, F_OK) == 0;
  FILE *const file = fopen(options->json, "a");
  if (!file)
    weft_print(stderr, "weft bench %s: %s: %s\n", options->argv[0], options->json, strerror(errno));
  const bool could = file && fclose(file) == 0;
  if (could && !there) {
    char *const made = realpath(options->json, NULL); // the target of a link; the link stays
    if (made)
      (void)unlink(made);
    free(made);
  }
  return could;
}

// Reports what is wrong with the option at which getopt_long stopped.
static int refuse(const char *comparison, int option, const char *word) {
  weft_print(stderr, "weft bench %s: %s%s (see weft bench %s --help)\n", comparison, word,
             option == ':'       ? " needs a value"
             : strchr(word, '=') ? " is not an option of it, or accepts no value"
                                 : " is not an option of it",
             comparison);
  return WEFT_BENCH_USAGE;
}

// mul has the most candidates and the slowest ones, and must take less than 40 s.
static weft_bench_timing timing_unless_asked(const char *comparison, bool quick) {
  const bool mul = strcmp(comparison, "mul") == 0;
  return (weft_bench_timing){.reps = quick || mul ? WEFT_BENCH_MIN_REPS : 11,
                             .rep_s = !weft_bench_listed(TIMED, comparison) ? 0
                                      : quick                               ? 0.004
                                      : mul                                 ? 0.010
                                                                            : 0.020};
}

int weft_bench_options_parse(weft_bench_options *options, int argc, char **argv) {
  struct option known[OPTIONS + 1] = {0};
  for (size_t i = 0, count = 0; i < OPTIONS; i++)
    if (weft_bench_listed(all[i].takers, argv[0]))
      known[count++] = (struct option){all[i].name, all[i].value ? required_argument : no_argument,
                                       NULL, FIRST + (int)i};
  *options = (weft_bench_options){.argc = argc, .argv = argv};
  options->seed = weft_bench_fresh_seed();
  opterr = 0; // refuse() prints messages with the full command's name
  for (int pass = 0; pass < 2; pass++) {
    // The first pass takes only --quick, so that other options override it wherever they stand.
    options->timing = timing_unless_asked(argv[0], options->quick);
    optind = 1;
    int option = 0;
    while ((option = getopt_long(argc, argv, ":h", known, NULL)) != -1) {
      if (option == 'h' || (option >= FIRST && all[option - FIRST].kind == HELP)) {
        put_help(argv[0]);
        return 1;
      }
      if (option == '?' || option == ':')
        return refuse(argv[0], option, argv[optind - 1]);
      const size_t taken = (size_t)(option - FIRST);
      if (pass == 0 && all[taken].at != IN(quick))
        continue;
      if (!take(options, taken, optarg)) {
        weft_print(stderr, "weft bench %s: --%s does not accept '%s'", argv[0], all[taken].name,
                   optarg ? optarg : "");
        if (all[taken].kind == SIZES && most_of(argv[0], all[taken].at) < SIZE_MAX)
          fprintf(stderr, ", only 1 to %zu", most_of(argv[0], all[taken].at));
        fprintf(stderr, ": %s\n", all[taken].about);
        return WEFT_BENCH_USAGE;
      }
    }
    if (optind < argc) {
      weft_print(stderr, "weft bench %s: unexpected argument '%s'\n", argv[0], argv[optind]);
      return WEFT_BENCH_USAGE;
    }
  }
  if (options->json && is_stdout(options->json))
    return part_tables_from_report(options) ? 0 : WEFT_BENCH_IO;
  return can_write(options) ? 0 : WEFT_BENCH_IO;
}

char *weft_bench_list_next(const char **list) {
  while (*list && **list) {
    const char *const name = *list;
    const size_t length = strcspn(name, ",");
    *list += length + (name[length] == ',');
    if (length)
      return weft_bench_text("%.*s", (int)length, name);
  }
  return NULL;
}

bool weft_bench_listed(const char *list, const char *name) {
  const size_t length = strlen(name);
  if (!list)
    return true;
  for (const char *at = list; *at;) {
    const size_t item = strcspn(at, ",");
    if (item == length && strncmp(at, name, length) == 0)
      return true;
    at += item + (at[item] == ',');
  }
  return false;
}

bool weft_bench_names_known(const weft_bench_options *options, const char *option, const char *list,
                            const char *const *names, size_t count) {
  const char *at = list;
  while (at) {
    const size_t length = strcspn(at, ",");
    size_t i = 0;
    while (i < count && (strlen(names[i]) != length || strncmp(names[i], at, length) != 0))
      i++;
    if (i == count) {
      weft_print(stderr, "weft bench %s: --%s: there is no '%.*s'; there are", options->argv[0],
                 option, (int)length, at);
      for (i = 0; i < count; i++)
        fprintf(stderr, "%s %s", i ? "," : "", names[i]);
      fputc('\n', stderr);
      return false;
    }
    at = at[length] == ',' ? at + length + 1 : NULL;
  }
  return true;
}

bool weft_bench_operations_known(const weft_bench_options *options, const char *const *names,
                                 size_t count) {
  return weft_bench_names_known(options, "operations", options->operations, names, count);
}

void weft_bench_sizes_default(weft_bench_sizes *sizes, const size_t *values, size_t count) {
  if (sizes->count == 0)
    for (size_t i = 0; i < count; i++)
      sizes->value[sizes->count++] = values[i];
}
