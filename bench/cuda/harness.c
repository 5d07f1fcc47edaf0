// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L // gmtime_r
#include "bench/cuda/harness.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/cuda/table_bench.h"
#include "kernels/cuda/expand.h"
#include "tools/build_info.h"

static void *heap_alloc(void *user, size_t bytes, size_t align) {
  (void)user;
  return aligned_alloc(align, (bytes + align - 1) / align * align);
}
static void heap_free(void *user, void *memory) {
  (void)user;
  free(memory);
}
static const weft_allocator allocator = {heap_alloc, heap_free, NULL};

weft_exec harness_exec = {.allocator = &allocator};
int harness_reps;

void harness_must(weft_status status, const char *what) {
  if (status == WEFT_OK)
    return;
  printf("%s: status %d\n", what, (int)status);
  exit(1);
}

// Returns the driver's version: the first word with a dot in the driver's own version file.
static void driver_version(char *out, size_t room) {
  char line[256] = "";
  snprintf(out, room, "unknown");
  FILE *file = fopen("/proc/driver/nvidia/version", "r");
  if (!file)
    return;
  if (fgets(line, sizeof line, file))
    for (const char *word = strtok(line, " \t\n"); word; word = strtok(NULL, " \t\n"))
      if (strchr(word, '.')) {
        snprintf(out, room, "%s", word);
        break;
      }
  fclose(file);
}

static void print_provenance(int argc, char **argv, int reps) {
  char driver[64], date[32] = "";
  const time_t now = time(NULL);
  struct tm utc;
  if (gmtime_r(&now, &utc))
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
  driver_version(driver, sizeof driver);
  const char *name = strrchr(argv[0], '/');
  printf("{\"kind\": \"provenance\", \"command\": \"%s", name ? name + 1 : argv[0]);
  for (int i = 1; i < argc; i++)
    printf(" %s", argv[i]);
  printf("\", \"date\": \"%s\", \"commit\": \"%s\", \"compiler\": \"%s\", \"flags\": \"%s\", "
         "\"device\": \"%s\", \"sm\": %d, \"driver\": \"%s\", "
         "\"method\": \"median, min and max of %d, device events, one warm-up\"}\n",
         date, weft_build_commit(), weft_build_compiler(), weft_build_flags(),
         weft_device_name(harness_exec.device), weft_device_sm(harness_exec.device), driver, reps);
}

static void refuse(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void refuse(const char *format, ...) {
  va_list words;
  va_start(words, format);
  vfprintf(stderr, format, words);
  va_end(words);
  fputc('\n', stderr);
  exit(2);
}

// Parses a whole number from 1 to `most`; 0: the word is not one.
static unsigned long long number(const char *word, unsigned long long most) {
  char *end;
  errno = 0;
  const unsigned long long value = *word >= '0' && *word <= '9' ? strtoull(word, &end, 10) : 0;
  return value == 0 || errno || *end || value > most ? 0 : value;
}

// Whether a comma-separated list contains the name.
static bool listed(const char *list, const char *name) {
  const size_t length = strlen(name);
  for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
    if (strcspn(at, ",") == length && strncmp(at, name, length) == 0)
      return true;
  return false;
}

bool harness_wants(const harness_request *request, const char *row) {
  return !request->rows || listed(request->rows, row);
}

static const harness_part *find_part(const harness_program *program, const char *word) {
  for (size_t i = 0; i < program->part_count; i++)
    if (strcmp(word, program->parts[i].name) == 0)
      return &program->parts[i];
  fprintf(stderr, "there is no '%s' to measure; there are", word);
  for (size_t i = 0; i < program->part_count; i++)
    fprintf(stderr, "%s %s", i ? "," : "", program->parts[i].name);
  refuse("%s", "");
}

static bool has_row(const harness_program *program, const char *name, size_t length) {
  for (size_t i = 0; i < program->row_count; i++)
    if (strlen(program->rows[i].name) == length &&
        strncmp(program->rows[i].name, name, length) == 0)
      return true;
  return false;
}

static void check_rows(const harness_program *program, const char *list) {
  const char *at = list;
  do {
    const size_t length = strcspn(at, ",");
    if (!has_row(program, at, length)) {
      fprintf(stderr, "there is no row '%.*s'; there are", (int)length, at);
      for (size_t i = 0; i < program->row_count; i++)
        fprintf(stderr, "%s %s", i ? "," : "", program->rows[i].name);
      refuse("%s", "");
    }
    at += length + (at[length] == ',');
  } while (*at);
}

static const harness_part *parse(int argc, char **argv, const harness_program *program,
                                 harness_request *request) {
  const harness_part *part = argc > 1 ? find_part(program, argv[1]) : program->parts;
  if (argc > 2 && strcmp(argv[2], "all") != 0)
    check_rows(program, request->rows = argv[2]);
  harness_reps = argc > 3 ? (int)number(argv[3], BENCH_REPS_MAX) : program->reps;
  if (harness_reps == 0)
    refuse("'%s' is not a number of repetitions from 1 to %d", argv[3], BENCH_REPS_MAX);
  const int words = 4 + (part->takes_sizes ? HARNESS_SIZES : 0);
  if (argc > words)
    refuse("unexpected argument '%s'", argv[words]);
  if (part->takes_sizes && argc < words)
    refuse("%s needs four numbers after the repetitions: segments, coded blocks, n, k", part->name);
  for (int i = 4; i < argc; i++)
    if ((request->sizes[i - 4] = number(argv[i], SIZE_MAX)) == 0)
      refuse("'%s' is not a size", argv[i]);
  return part;
}

int harness_main(int argc, char **argv, const harness_program *program) {
  harness_request request = {0};
  const harness_part *part = parse(argc, argv, program, &request);
  if (weft_device_count() == 0) {
    printf("skipped: no CUDA device\n");
    return 0;
  }
  weft_device *device;
  harness_must(weft_device_open(&device, 0, &allocator), "open");
  harness_must(weft_device_stream_new(device, &harness_exec.stream), "stream");
  harness_exec.device = device;
  print_provenance(argc, argv, harness_reps);
  part->run(&request);
  weft_device_stream_free(harness_exec.device, harness_exec.stream);
  weft_device_close(harness_exec.device);
  return 0;
}

void *harness_memory_new(size_t bytes) {
  void *memory;
  harness_must(weft_device_alloc(harness_exec.device, WEFT_MEM_DEVICE, bytes, &memory), "memory");
  return memory;
}

void harness_memory_free(void *memory) {
  weft_device_free(harness_exec.device, WEFT_MEM_DEVICE, memory);
}

uint8_t *harness_random_new(size_t bytes) {
  uint8_t *memory = harness_memory_new(bytes + 65536);
  static uint8_t salt = 1;
  weft_expansion expansion = {
      .count = bytes / 65536 + 1, .k = 65536, .fresh = true, .out = memory, .out_stride = 65536};
  expansion.key[0] = salt++;
  harness_must(weft_cuda_expand(&harness_exec, &expansion), "random");
  return memory;
}
