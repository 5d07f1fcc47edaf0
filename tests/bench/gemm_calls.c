// SPDX-License-Identifier: Apache-2.0
// Multiplies the same matrices CALLS times with one row and does nothing else, for counting
// instructions: the difference between two numbers of calls excludes set-up.
//
//   gemm_calls --build            prints the compiler and its flags
//   gemm_calls --rows             prints this build's host rows, each with the CPU features it
//   needs gemm_calls ROW M N K CALLS    exit status 3 if this machine cannot run the row
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "tools/build_info.h"

static void *allocate(void *user, size_t bytes, size_t align) {
  (void)user;
  const size_t step = align < sizeof(void *) ? sizeof(void *) : align;
  return aligned_alloc(step, (bytes + step - 1) / step * step);
}

static void release(void *user, void *memory) {
  (void)user;
  free(memory);
}

// Fills the operands with the same nonzero bytes in every run, so that counts do not depend on
// them.
static void fill(uint8_t *out, size_t bytes) {
  uint32_t state = 12345;
  for (size_t i = 0; i < bytes; i++) {
    state = state * 1664525u + 1013904223u;
    out[i] = (uint8_t)(1 + (state >> 16) % 255);
  }
}

static void print_rows(void) {
  for (size_t r = 0; r < weft_backend_count; r++) {
    if (weft_backends[r].mem != WEFT_MEM_HOST)
      continue;
    printf("%s", weft_backends[r].name);
    for (unsigned bit = 0; bit < 32; bit++)
      if (weft_backends[r].cpu >> bit & 1u)
        printf(" %s", weft_cpu_feature_name((uint32_t)1 << bit));
    printf("\n");
  }
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--build") == 0) {
    printf("%s, %s\n", weft_build_compiler(), weft_build_flags());
    return 0;
  }
  if (argc == 2 && strcmp(argv[1], "--rows") == 0) {
    print_rows();
    return 0;
  }
  if (argc != 6) {
    fprintf(stderr, "usage: gemm_calls ROW M N K CALLS\n");
    return 2;
  }
  const size_t m = strtoull(argv[2], NULL, 10), n = strtoull(argv[3], NULL, 10);
  const size_t k = strtoull(argv[4], NULL, 10), calls = strtoull(argv[5], NULL, 10);
  const weft_machine machine = {.cpu = weft_cpu_features()};
  const weft_allocator allocator = {allocate, release, NULL};
  const weft_exec exec = {.allocator = &allocator};
  const weft_backend *row = NULL;
  const weft_status found = weft_backend_select(&machine, WEFT_MEM_HOST, argv[1], &row);
  if (found != WEFT_OK) {
    fprintf(stderr, "gemm_calls: row %s: %s\n", argv[1], weft_status_text(found));
    return found == WEFT_E_BACKEND_ABSENT ? 3 : 1;
  }
  uint8_t *const a = allocate(NULL, m * n, 64), *const x = allocate(NULL, n * k, 64);
  uint8_t *const y = allocate(NULL, m * k, 64);
  if (!a || !x || !y)
    return 1;
  fill(a, m * n);
  fill(x, n * k);
  const weft_gemm gemm = {.m = m,
                          .k = n,
                          .len = k,
                          .a = a,
                          .a_stride = n,
                          .x = {.base = x, .stride = k},
                          .y = {.base = y, .stride = k}};
  for (size_t i = 0; i < calls; i++)
    if (row->gemm(row, &exec, &gemm, 1) != WEFT_OK)
      return 1;
  free(a), free(x), free(y);
  return 0;
}
