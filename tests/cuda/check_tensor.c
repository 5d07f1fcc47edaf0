// SPDX-License-Identifier: Apache-2.0
// The binary tensor rows on shapes too large for the reference on the host: many segments, many
// coded blocks, up to 1024 source blocks, long blocks. The reference is a table row, which
// check_products has compared with the definition.
#include "tests/cuda/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Shape {
  size_t count, m, n, len;
} Shape;

// Products of one shape, with their operands on the device.
typedef struct Set {
  Shape shape;
  size_t y_stride;
  uint8_t *a, *x, *y;
  weft_gemm *gemms;
  weft_operand **prepared;
} Set;

static uint8_t *random_rows(check_device *device, size_t bytes) {
  uint8_t *host = malloc(bytes), *memory = check_memory(device, bytes);
  if (!host)
    check_fail("no host memory");
  for (size_t i = 0; i < bytes; i += 8) {
    const uint64_t r = check_random();
    memcpy(host + i, &r, bytes - i < 8 ? bytes - i : 8);
  }
  check_copy(device, memory, WEFT_MEM_DEVICE, host, WEFT_MEM_HOST, bytes);
  check_wait(device);
  free(host);
  return memory;
}

static void set_new(check_device *device, const weft_backend *row, Shape shape, bool prepare,
                    bool accumulate, Set *set) {
  memset(set, 0, sizeof *set);
  set->shape = shape;
  set->y_stride = shape.len + (check_random() >> 9 & 1 ? 4 : 3);
  set->a = random_rows(device, shape.count * shape.m * shape.n);
  set->x = random_rows(device, shape.count * shape.n * shape.len);
  set->y = random_rows(device, shape.count * shape.m * set->y_stride);
  set->gemms = calloc(shape.count, sizeof *set->gemms);
  set->prepared = calloc(shape.count, sizeof *set->prepared);
  for (size_t i = 0; i < shape.count; i++) {
    weft_gemm *g = &set->gemms[i];
    g->m = shape.m, g->k = shape.n, g->len = shape.len, g->accumulate = accumulate;
    g->a = set->a + i * shape.m * shape.n, g->a_stride = shape.n, g->a_mem = WEFT_MEM_DEVICE;
    g->x = (weft_const_rows){set->x + i * shape.n * shape.len, shape.len, NULL, WEFT_MEM_DEVICE};
    g->y = (weft_rows){set->y + i * shape.m * set->y_stride, set->y_stride, NULL, WEFT_MEM_DEVICE};
    if (prepare) {
      check_status(row->prepare(row, &device->exec, g->k, g->len, &g->x, &set->prepared[i]),
                   "prepare");
      g->x_prepared = set->prepared[i];
    }
  }
}

static void set_free(check_device *device, const weft_backend *row, Set *set) {
  for (size_t i = 0; i < set->shape.count; i++)
    if (set->prepared[i])
      row->release(row, &device->exec, set->prepared[i]);
  weft_device_free(device->device, WEFT_MEM_DEVICE, set->a);
  weft_device_free(device->device, WEFT_MEM_DEVICE, set->x);
  weft_device_free(device->device, WEFT_MEM_DEVICE, set->y);
  free(set->gemms), free(set->prepared);
}

static void check_shape(check_device *device, const weft_backend *row,
                        const weft_backend *reference, Shape shape) {
  const bool prepare = check_random() >> 9 & 1, accumulate = check_random() >> 9 & 1;
  Set set;
  set_new(device, row, shape, prepare, accumulate, &set);
  const size_t bytes = shape.count * shape.m * set.y_stride;
  uint8_t *before = check_memory(device, bytes), *got = malloc(bytes), *want = malloc(bytes);
  if (!got || !want)
    check_fail("no host memory");
  check_copy(device, before, WEFT_MEM_DEVICE, set.y, WEFT_MEM_DEVICE, bytes);
  check_status(row->gemm(row, &device->exec, set.gemms, shape.count), row->name);
  check_copy(device, got, WEFT_MEM_HOST, set.y, WEFT_MEM_DEVICE, bytes);
  check_copy(device, set.y, WEFT_MEM_DEVICE, before, WEFT_MEM_DEVICE, bytes);
  for (size_t i = 0; i < shape.count; i++)
    set.gemms[i].x_prepared = NULL;
  check_status(reference->gemm(reference, &device->exec, set.gemms, shape.count), reference->name);
  check_copy(device, want, WEFT_MEM_HOST, set.y, WEFT_MEM_DEVICE, bytes);
  check_wait(device);
  for (size_t at = 0; at < bytes; at++)
    if (got[at] != want[at])
      check_fail("%s: %zu of m %zu, n %zu, len %zu, prepared %d, accumulate %d, y stride %zu: byte "
                 "%zu is %02x, not %02x",
                 row->name, shape.count, shape.m, shape.n, shape.len, prepare, accumulate,
                 set.y_stride, at, got[at], want[at]);
  free(got), free(want);
  weft_device_free(device->device, WEFT_MEM_DEVICE, before);
  set_free(device, row, &set);
}

void check_tensor(check_device *device, const weft_backend *row, const weft_backend *reference,
                  unsigned rounds) {
  static const Shape shapes[] = {
      {3, 128, 128, 256},     {40, 1, 1, 1},       {2, 300, 257, 300},   {3, 128, 128, 4096},
      {300, 128, 128, 128},   {150, 32, 96, 384},  {1, 4001, 128, 1024}, {1, 1024, 1024, 2048},
      {1, 40, 257, 1u << 20}, {7, 161, 300, 260},  {1, 20000, 16, 129},  {200, 64, 33, 640},
      {2, 300, 1023, 700},    {1, 96, 2049, 1000},
  };
  enum { Small = 3 }; // the first few, which a single round checks
  const size_t count = rounds > 1 ? sizeof shapes / sizeof *shapes : Small;
  for (size_t i = 0; i < count; i++)
    check_shape(device, row, reference, shapes[i]);
  for (unsigned round = 1; round < rounds; round++) {
    Shape shape = {1 + (check_random() >> 9) % 20, 1 + (check_random() >> 9) % 400,
                   1 + (check_random() >> 9) % 1024, 1 + (check_random() >> 9) % 3000};
    while (shape.count * shape.m * shape.len > 16u << 20)
      shape.count = (shape.count + 1) / 2, shape.m = (shape.m + 1) / 2;
    check_shape(device, row, reference, shape);
  }
}
