// SPDX-License-Identifier: Apache-2.0
// Checks of the CUDA rows and of decoding on a device:
//   table_check [rounds] [seed] [row, others (than products), storage or all] [largest k to invert]
//   table_check rows: prints their names
//   table_check device: prints its name; exit status 1 if there is none
#include "tests/cuda/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/cuda/rows.h"
#include "kernels/gf256.h"

static const weft_backend rows[] = {WEFT_CUDA_TENSOR_ROWS, WEFT_CUDA_TABLE_ROWS};
enum { TensorRows = 4 }; // the first of them

static uint64_t first_seed, state;

static void *heap_alloc(void *user, size_t bytes, size_t align) {
  (void)user;
  return aligned_alloc(align, (bytes + align - 1) / align * align);
}
static void heap_free(void *user, void *memory) {
  (void)user;
  free(memory);
}
const weft_allocator check_allocator = {heap_alloc, heap_free, NULL};

void check_seed(uint64_t seed) { first_seed = state = seed ? seed : 1; }

uint64_t check_random(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state * 0x2545F4914F6CDD1Du;
}

void check_fill(uint8_t *bytes, size_t count, unsigned zero_percent) {
  for (size_t i = 0; i < count; i++) {
    const uint64_t r = check_random() >> 20;
    bytes[i] = r % 100 < zero_percent ? 0 : (uint8_t)(r >> 16);
  }
}

void check_fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  printf("FAILED, seed %llu: ", (unsigned long long)first_seed);
  vprintf(format, args);
  printf("\n");
  va_end(args);
  exit(1);
}

void check_status(weft_status status, const char *what) {
  if (status != WEFT_OK)
    check_fail("%s: status %d", what, (int)status);
}

static uint8_t products[256][256];

uint8_t check_mul(uint8_t a, uint8_t b) { return products[a][b]; }

void check_product(uint8_t *y, const uint8_t *a, const uint8_t *x, size_t m, size_t k, size_t len) {
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < k; j++) {
      const uint8_t *by = products[a[i * k + j]];
      for (size_t c = 0; c < len; c++)
        y[i * len + c] ^= by[x[j * len + c]];
    }
}

void *check_memory(check_device *device, size_t bytes) {
  void *memory;
  check_status(weft_device_alloc(device->device, WEFT_MEM_DEVICE, bytes, &memory), "memory");
  return memory;
}

void check_copy(check_device *device, void *to, weft_mem to_mem, const void *from,
                weft_mem from_mem, size_t bytes) {
  check_status(weft_device_copy(device->device, to, to_mem, from, from_mem, bytes, device->stream),
               "copy");
}

void check_wait(check_device *device) {
  check_status(weft_device_stream_wait(device->device, device->stream), "wait");
}

// Checks of the other operations, which all rows share, by name.
static const char *const others[] = {"xorm", "invert", "eliminate", "decode", "expand"};
enum { Others = sizeof others / sizeof *others };

static void check_others(check_device *device, unsigned rounds, size_t k_max) {
  check_xorm(device, &rows[0], rounds);
  check_invert(device, &rows[0], rounds, k_max);
  check_eliminate(device, &rows[0], rounds);
  check_decode(device, rounds);
  check_expand(device, rounds);
  for (size_t i = 0; i < Others; i++)
    printf("ok %s\n", others[i]);
}

static bool is_known(const char *name) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(name, rows[i].name) == 0)
      return true;
  return strcmp(name, "others") == 0 || strcmp(name, "storage") == 0;
}

// Without a device, prints for every check that it did not run, and why.
static void skip_all(const char *only) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!only || strcmp(only, rows[i].name) == 0)
      printf("skipped %s: needs a CUDA device with sm_%d to sm_%d, %d bytes of shared memory\n",
             rows[i].name, rows[i].sm_min, rows[i].sm_max, rows[i].block_bytes);
  for (size_t i = 0; i < Others && (!only || strcmp(only, "others") == 0); i++)
    printf("skipped %s: needs a CUDA device\n", others[i]);
  if (!only || strcmp(only, "storage") == 0)
    printf("skipped storage: needs a CUDA device\n");
}

// Returns the program's exit status: 0 if the checks would run.
static int tell_device(void) {
  weft_device *device = NULL;
  if (weft_device_count() == 0) {
    printf("no device: %s\n", weft_device_absence());
    return 1;
  }
  check_status(weft_device_open(&device, 0, &check_allocator), "open");
  printf("%s, sm_%d\n", weft_device_name(device), weft_device_sm(device));
  weft_device_close(device);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "device") == 0)
    return tell_device();
  if (argc > 1 && strcmp(argv[1], "rows") == 0) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
      printf("%s\n", rows[i].name);
    return 0;
  }
  const unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 40;
  check_seed(argc > 2 && strtoull(argv[2], NULL, 10) ? strtoull(argv[2], NULL, 10)
                                                     : (uint64_t)time(NULL));
  const char *only = argc > 3 && strcmp(argv[3], "all") != 0 ? argv[3] : NULL;
  const size_t k_max = argc > 4 ? strtoull(argv[4], NULL, 10) : 1024;
  if (only && !is_known(only))
    check_fail("there is no row %s", only);
  for (unsigned a = 0; a < 256; a++)
    for (unsigned b = 0; b < 256; b++)
      products[a][b] = weft_gf256_mul((uint8_t)a, (uint8_t)b);
  if (weft_device_count() == 0) {
    skip_all(only);
    return 0;
  }
  check_device device = {.exec = {.allocator = &check_allocator}};
  check_status(weft_device_open(&device.device, 0, &check_allocator), "open");
  check_status(weft_device_stream_new(device.device, &device.stream), "stream");
  device.exec.device = device.device;
  device.exec.stream = device.stream;
  printf("%s, sm_%d, seed %llu, %u rounds\n", weft_device_name(device.device),
         weft_device_sm(device.device), (unsigned long long)first_seed, rounds);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (only && strcmp(only, rows[i].name) != 0)
      continue;
    const int sm = weft_device_sm(device.device);
    if (sm < rows[i].sm_min || sm > rows[i].sm_max ||
        weft_device_block_bytes(device.device) < rows[i].block_bytes) {
      printf("skipped %s: needs sm_%d to sm_%d, %d bytes of shared memory\n", rows[i].name,
             rows[i].sm_min, rows[i].sm_max, rows[i].block_bytes);
      continue;
    }
    check_products(&device, &rows[i], rounds);
    if (rounds > 1) // a single round is for tools that are very slow
      check_faults(&device, &rows[i]);
    if (i < TensorRows)
      check_tensor(&device, &rows[i], &rows[TensorRows], rounds);
    printf("ok %s\n", rows[i].name);
  }
  if (!only || strcmp(only, "others") == 0)
    check_others(&device, rounds, k_max);
  if (!only || strcmp(only, "storage") == 0) {
    check_storage(&device, &rows[0], rounds);
    printf("ok storage\n");
  }
  weft_device_stream_free(device.device, device.stream);
  weft_device_close(device.device);
  printf("all ok\n");
  return 0;
}
