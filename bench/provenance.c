// SPDX-License-Identifier: Apache-2.0
// The head of every report.
#define _POSIX_C_SOURCE 200809L // gmtime_r
#include "bench/provenance.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/buffers.h"
#include "kernels/cpu.h"
#include "tools/build_info.h"

static void features_text(uint32_t features, char *out, size_t room) {
  size_t at = 0;
  out[0] = '\0';
  for (unsigned bit = 0; bit < 32; bit++) {
    const char *const name = weft_cpu_feature_name((uint32_t)1 << bit);
    if ((features >> bit & 1u) && name && at < room)
      at += (size_t)snprintf(out + at, room - at, "%s%s", at ? " " : "", name);
  }
}

// Returns a word of the command line, with absolute paths, also those in a list or behind --name=,
// reduced to their last parts: where a machine keeps its files is of no use elsewhere.
static json_t *word_json(const char *word) {
  char *const out = malloc(strlen(word) + 1);
  if (!out)
    return NULL;
  const char *const equals = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
  size_t length = equals ? (size_t)(equals + 1 - word) : 0;
  memcpy(out, word, length);
  for (const char *part = word + length;; part++) {
    const size_t bytes = strcspn(part, ",");
    const char *from = part;
    if (*part == '/')
      for (const char *c = part; c < part + bytes; c++)
        from = *c == '/' ? c + 1 : from;
    const size_t kept = (size_t)(part + bytes - from);
    memcpy(out + length, from, kept);
    length += kept;
    part += bytes;
    if (!*part)
      break;
    out[length++] = ',';
  }
  json_t *const text = json_stringn(out, length);
  free(out);
  return text;
}

static json_t *command_line(const weft_bench_options *options) {
  json_t *const out = json_array();
  json_array_append_new(out, json_string("weft"));
  json_array_append_new(out, json_string("bench"));
  for (int i = 0; i < options->argc; i++)
    json_array_append_new(out, word_json(options->argv[i]));
  return out;
}

// Comparisons with threads of their own, which the system places.
#define UNPINNED "peer,gpu,server"

// Without timing there is no length of a repetition, cache or clock.
static json_t *method_json(const weft_bench_options *options) {
  if (options->timing.rep_s <= 0)
    return json_pack("{s:i}", "repetitions", (int)options->timing.reps);
  return json_pack("{s:i, s:f, s:b, s:s, s:s}", "repetitions", (int)options->timing.reps,
                   "repetition_s", options->timing.rep_s, "cold_cache", (int)options->timing.cold,
                   "pages", options->small_pages ? "small" : "huge where asked for", "clock",
                   weft_bench_listed(UNPINNED, options->argv[0])
                       ? "CLOCK_MONOTONIC, candidates in turn, threads placed by the system"
                       : "CLOCK_MONOTONIC, candidates in turn, one core per thread");
}

json_t *weft_bench_provenance(const weft_bench_options *options,
                              const weft_bench_machine *machine) {
  char features[256], date[32] = "";
  const time_t now = time(NULL);
  struct tm utc;
  if (gmtime_r(&now, &utc))
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
  features_text(machine->features, features, sizeof features);
  json_t *const out = json_object();
  json_object_set_new(out, "schema", json_integer(WEFT_BENCH_SCHEMA));
  json_object_set_new(out, "command", command_line(options));
  json_object_set_new(out, "date", json_string(date));
  json_object_set_new(out, "commit", json_string(weft_build_commit()));
  json_object_set_new(out, "compiler", json_string(weft_build_compiler()));
  json_object_set_new(out, "flags", json_string(weft_build_flags()));
  char *const seed = weft_bench_text("%" PRIu64, options->seed);
  json_object_set_new(out, "seed", json_string(seed)); // may exceed JSON's numbers
  free(seed);
  json_object_set_new(out, "method", method_json(options));
  json_object_set_new(out, "machine",
                      json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:b, s:I, s:I, s:I}", "cpu",
                                machine->cpu, "folder", machine->folder, "system", machine->kernel,
                                "features", features, "cpus", (int)machine->cpus, "cores",
                                (int)machine->cores, "virtual", (int)machine->hypervisor,
                                "l1d_bytes", (json_int_t)machine->l1d, "l2_bytes",
                                (json_int_t)machine->l2, "l3_bytes", (json_int_t)machine->l3));
  return out;
}

void weft_bench_provenance_print(const weft_bench_options *options,
                                 const weft_bench_machine *machine) {
  char features[256];
  features_text(machine->features, features, sizeof features);
  printf("weft bench %s, commit %.12s, %s, %s\n", options->argv[0], weft_build_commit(),
         weft_build_compiler(), weft_build_flags());
  printf("%s, %zu CPUs, %zu cores%s; %s\n", machine->cpu, machine->cpus, machine->cores,
         machine->hypervisor ? ", virtual" : "", features);
  printf("%zu repetitions", options->timing.reps);
  if (options->timing.rep_s > 0)
    printf(" of %.0f ms in turn, %s cache%s", options->timing.rep_s * 1e3,
           options->timing.cold ? "cold" : "warm", options->small_pages ? ", small pages" : "");
  printf("; seed %" PRIu64 "\n", options->seed);
}
