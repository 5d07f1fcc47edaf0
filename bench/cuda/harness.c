// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L // gmtime_r
#include "bench/cuda/harness.h"

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

void harness_must(weft_status status, const char *what) {
  if (status == WEFT_OK)
    return;
  printf("%s: status %d\n", what, (int)status);
  exit(1);
}

// The driver's version: the first word with a dot of what it says of itself.
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

int harness_reps(const char *word, int otherwise) {
  char *end = NULL;
  const long reps = word ? strtol(word, &end, 10) : otherwise;
  if (reps >= 1 && reps <= BENCH_REPS_MAX && (!word || *end == '\0'))
    return (int)reps;
  fprintf(stderr, "'%s' is no number of repetitions from 1 to %d\n", word, BENCH_REPS_MAX);
  exit(2);
}

bool harness_open(int argc, char **argv, int reps) {
  if (weft_device_count() == 0) {
    printf("skipped: no CUDA device\n");
    return false;
  }
  weft_device *device;
  harness_must(weft_device_open(&device, 0, &allocator), "open");
  harness_must(weft_device_stream_new(device, &harness_exec.stream), "stream");
  harness_exec.device = device;
  print_provenance(argc, argv, reps);
  return true;
}

void harness_close(void) {
  weft_device_stream_free(harness_exec.device, harness_exec.stream);
  weft_device_close(harness_exec.device);
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
