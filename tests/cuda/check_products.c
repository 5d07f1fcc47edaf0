// SPDX-License-Identifier: Apache-2.0
// Products of a CUDA row against the reference: odd shapes, addresses and strides, rows by pointer,
// prepared operands, accumulation, batches; outputs are poisoned, and every byte around them
// compared.
#include "tests/cuda/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/runtime.h"

enum { MaxBatch = 5, Margin = 64 };

typedef struct Case {
  weft_gemm gemm;
  size_t x_bytes, y_bytes, x_offset, y_offset;
  uint8_t *a, *x, *y, *expect; // host: dense a; x and y as laid out
  uint8_t *device_a, *device_x, *device_y;
  uint8_t **x_ptr, **y_ptr;
  weft_operand *prepared;
} Case;

static size_t pick(const size_t *from, size_t count) { return from[(check_random() >> 8) % count]; }
#define PICK(...)                                                                                  \
  pick((const size_t[]){__VA_ARGS__}, sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))

static void *host(size_t bytes) {
  void *memory = malloc(bytes + 1);
  if (!memory)
    check_fail("no host memory");
  return memory;
}

static void case_new(check_device *device, const weft_backend *row, Case *c) {
  memset(c, 0, sizeof *c);
  weft_gemm *g = &c->gemm;
  g->m = PICK(0, 1, 2, 3, 7, 8, 9, 17, 31, 32, 33, 65);
  g->k = PICK(0, 1, 2, 3, 16, 31, 64, 127, 128, 129, 200, 257);
  g->len = PICK(0, 1, 3, 8, 15, 64, 255, 511, 512, 513, 1024, 1500, 4096, 4609);
  const bool by_pointer = check_random() >> 9 & 1, tight = check_random() >> 9 & 1;
  const bool prepare = row->prepare && (check_random() >> 9 & 1);
  g->accumulate = check_random() >> 9 & 1;
  c->x_offset = tight ? 0 : (check_random() >> 9) % 33;
  c->y_offset = Margin + (tight ? 0 : (check_random() >> 9) % 33);
  g->x.stride = g->len + (tight ? 0 : (check_random() >> 9) % 19);
  g->y.stride = g->len + (tight ? 0 : (check_random() >> 9) % 19);
  g->a_stride = g->k;
  c->x_bytes = c->x_offset + g->k * g->x.stride;
  c->y_bytes = c->y_offset + g->m * g->y.stride + Margin;
  c->a = host(g->m * g->k);
  c->x = host(c->x_bytes);
  c->y = host(c->y_bytes);
  c->expect = host(c->y_bytes);
  const unsigned zeros = (unsigned)PICK(0, 0, 10, 90, 100);
  check_fill(c->a, g->m * g->k, zeros);
  check_fill(c->x, c->x_bytes, (unsigned)PICK(0, 0, 10, 90));
  check_fill(c->y, c->y_bytes, 0); // poison
  memcpy(c->expect, c->y, c->y_bytes);
  uint8_t *dense = host(g->k * g->len), *out = calloc(g->m * g->len + 1, 1);
  for (size_t j = 0; j < g->k; j++)
    memcpy(dense + j * g->len, c->x + c->x_offset + j * g->x.stride, g->len);
  check_product(out, c->a, dense, g->m, g->k, g->len);
  for (size_t i = 0; i < g->m; i++)
    for (size_t at = 0; at < g->len; at++) {
      uint8_t *to = c->expect + c->y_offset + i * g->y.stride + at;
      *to = (uint8_t)(out[i * g->len + at] ^ (g->accumulate ? *to : 0));
    }
  free(dense);
  free(out);
  c->device_a = check_memory(device, g->m * g->k);
  c->device_x = check_memory(device, c->x_bytes);
  c->device_y = check_memory(device, c->y_bytes);
  check_copy(device, c->device_a, WEFT_MEM_DEVICE, c->a, WEFT_MEM_HOST, g->m * g->k);
  check_copy(device, c->device_x, WEFT_MEM_DEVICE, c->x, WEFT_MEM_HOST, c->x_bytes);
  check_copy(device, c->device_y, WEFT_MEM_DEVICE, c->y, WEFT_MEM_HOST, c->y_bytes);
  g->a_mem = check_random() >> 9 & 1 ? WEFT_MEM_HOST : WEFT_MEM_DEVICE;
  g->a = g->a_mem == WEFT_MEM_HOST ? c->a : c->device_a;
  g->x.mem = g->y.mem = WEFT_MEM_DEVICE;
  g->x.base = c->device_x + c->x_offset;
  g->y.base = c->device_y + c->y_offset;
  if (g->m == 1 && !tight) // the stride is not used
    g->y.stride = PICK(0, 1, (size_t)1 << 40);
  if (by_pointer) {
    c->x_ptr = host(g->k * sizeof *c->x_ptr);
    c->y_ptr = host(g->m * sizeof *c->y_ptr);
    for (size_t j = 0; j < g->k; j++)
      c->x_ptr[j] = c->device_x + c->x_offset + j * g->x.stride;
    for (size_t i = 0; i < g->m; i++)
      c->y_ptr[i] = c->device_y + c->y_offset + i * g->y.stride;
    g->x.ptr = (const uint8_t *const *)c->x_ptr;
    g->y.ptr = c->y_ptr;
  }
  if (prepare) {
    check_status(row->prepare(row, &device->exec, g->k, g->len, &g->x, &c->prepared), "prepare");
    g->x_prepared = c->prepared;
    g->x.base = NULL;
    g->x.ptr = NULL;
  }
}

static void case_free(check_device *device, const weft_backend *row, Case *c) {
  if (c->prepared)
    row->release(row, &device->exec, c->prepared);
  weft_device_free(device->device, WEFT_MEM_DEVICE, c->device_a);
  weft_device_free(device->device, WEFT_MEM_DEVICE, c->device_x);
  weft_device_free(device->device, WEFT_MEM_DEVICE, c->device_y);
  free(c->a), free(c->x), free(c->y), free(c->expect), free(c->x_ptr), free(c->y_ptr);
}

static void case_compare(check_device *device, const weft_backend *row, const Case *c) {
  check_copy(device, c->y, WEFT_MEM_HOST, c->device_y, WEFT_MEM_DEVICE, c->y_bytes);
  check_wait(device);
  for (size_t at = 0; at < c->y_bytes; at++)
    if (c->y[at] != c->expect[at])
      check_fail("%s: m %zu k %zu len %zu, x + %zu stride %zu, y + %zu stride %zu, accumulate %d, "
                 "pointers %d, prepared %d: byte %zu is %02x, not %02x",
                 row->name, c->gemm.m, c->gemm.k, c->gemm.len, c->x_offset, c->gemm.x.stride,
                 c->y_offset, c->gemm.y.stride, c->gemm.accumulate, c->y_ptr != NULL,
                 c->prepared != NULL, at, c->y[at], c->expect[at]);
}

void check_products(check_device *device, const weft_backend *row, unsigned rounds) {
  for (unsigned round = 0; round < rounds; round++) {
    Case cases[MaxBatch];
    weft_gemm gemms[MaxBatch];
    const size_t count = round % 3 ? 1 : 1 + (check_random() >> 9) % MaxBatch;
    for (size_t i = 0; i < count; i++) {
      case_new(device, row, &cases[i]);
      gemms[i] = cases[i].gemm;
    }
    check_status(row->gemm(row, &device->exec, gemms, count), row->name);
    for (size_t i = 0; i < count; i++) {
      case_compare(device, row, &cases[i]);
      case_free(device, row, &cases[i]);
    }
  }
}

// Every runtime call of a product and its preparation fails once; each time a status is returned,
// and the same call afterwards gives the right bytes.
void check_faults(check_device *device, const weft_backend *row) {
  const int errors[] = {2 /* memory */, 999 /* unknown */};
  for (size_t e = 0; e < 2; e++) {
    for (size_t skip = 0;; skip++) {
      Case c;
      case_new(device, row, &c);
      weft_operand *operand = NULL;
      const weft_const_rows x = {c.device_x, c.gemm.x.stride, NULL, WEFT_MEM_DEVICE};
      weft_cuda_inject(skip, errors[e], 0);
      weft_status status = row->prepare(row, &device->exec, c.gemm.k, c.gemm.len, &x, &operand);
      if (status == WEFT_OK)
        status = row->gemm(row, &device->exec, &c.gemm, 1);
      const size_t calls = weft_cuda_calls();
      weft_cuda_inject(0, 0, 0);
      row->release(row, &device->exec, operand);
      if (calls > skip && status != WEFT_OK && status != WEFT_E_DEVICE_NOMEM &&
          status != WEFT_E_DEVICE)
        check_fail("%s: call %zu with error %d gave status %d", row->name, skip, errors[e],
                   (int)status);
      // A memory error may be survived by freeing kept blocks; others must be reported.
      if (calls > skip && errors[e] != 2 && status == WEFT_OK)
        check_fail("%s: call %zu with error %d was hidden", row->name, skip, errors[e]);
      check_wait(device);
      check_copy(device, c.device_y, WEFT_MEM_DEVICE, c.y, WEFT_MEM_HOST, c.y_bytes);
      check_status(row->gemm(row, &device->exec, &c.gemm, 1), "product after a fault");
      case_compare(device, row, &c);
      case_free(device, row, &c);
      if (skip > 24)
        break;
    }
  }
}
