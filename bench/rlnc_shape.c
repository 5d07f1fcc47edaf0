// SPDX-License-Identifier: Apache-2.0
// One segment, its coefficients, and a decodable set of packets.
#include <stdlib.h>

#include "bench/buffers.h"
#include "bench/check.h"
#include "bench/rlnc_cases.h"
#include "kernels/backend.h"
#include "kernels/cpu.h"

// A multi-segment decode has at least this many bytes of payload, within these numbers of segments.
#define MULTI_BYTES ((size_t)4 << 20)
#define MULTI_SEGMENTS_MIN 8u
#define MULTI_SEGMENTS_MAX 64u

static const weft_backend *best_row(void) {
  const weft_machine machine = {.cpu = weft_cpu_features()};
  const weft_backend *row = NULL;
  weft_bench_must("best row", weft_backend_select(&machine, WEFT_MEM_HOST, NULL, &row));
  return row;
}

static bool invertible(const weft_backend *row, const uint8_t *matrix, size_t n) {
  const weft_exec exec = {.allocator = &weft_bench_allocator};
  uint8_t singular = 1;
  uint8_t *const inverse = weft_bench_alloc(n, n);
  const weft_invert invert = {
      .count = 1, .k = n, .in = matrix, .out = inverse, .singular = &singular};
  weft_bench_must(row->name, row->invert(row, &exec, &invert));
  free(inverse);
  return singular == 0;
}

void weft_bench_shape_make(weft_bench_shape *shape, size_t n, size_t k, size_t m, uint64_t seed) {
  const weft_backend *const row = best_row();
  const weft_exec exec = {.allocator = &weft_bench_allocator};
  weft_bench_random random;
  weft_bench_random_seed(&random, seed);
  *shape = (weft_bench_shape){
      .n = n,
      .k = k,
      .m = m,
      .segments = MULTI_BYTES / (n * k),
      .data = weft_bench_alloc(n, k),
      .mixing = weft_bench_alloc(m, n),
      .square = weft_bench_alloc(n, n),
      .payloads = weft_bench_alloc(n, k),
  };
  if (shape->segments < MULTI_SEGMENTS_MIN)
    shape->segments = MULTI_SEGMENTS_MIN;
  if (shape->segments > MULTI_SEGMENTS_MAX)
    shape->segments = MULTI_SEGMENTS_MAX;
  weft_bench_random_bytes(&random, shape->data, n * k);
  weft_bench_random_nonzero(&random, shape->mixing, m * n);
  do
    weft_bench_random_nonzero(&random, shape->square, n * n);
  while (!invertible(row, shape->square, n)); // one draw in 250 is singular
  const weft_gemm gemm = {
      .m = n,
      .k = n,
      .len = k,
      .a = shape->square,
      .a_stride = n,
      .x = {.base = shape->data, .stride = k},
      .y = {.base = shape->payloads, .stride = k},
  };
  weft_bench_must(row->name, row->gemm(row, &exec, &gemm, 1));
  weft_bench_check_product(row->name, n, n, k, shape->square, n, shape->data, k, shape->payloads,
                           k);
}

void weft_bench_shape_free(weft_bench_shape *shape) {
  free(shape->data), free(shape->mixing), free(shape->square), free(shape->payloads);
}

weft_segment_id weft_bench_segment_id(const weft_bench_shape *shape) {
  return (weft_segment_id){
      .stream = 1, .segment = 1, .blocks = (uint32_t)shape->n, .block_bytes = (uint32_t)shape->k};
}

void weft_bench_shape_packets(const weft_bench_shape *shape, weft_packet *packets) {
  for (size_t i = 0; i < shape->n; i++)
    packets[i] = (weft_packet){.id = weft_bench_segment_id(shape),
                               .mode = WEFT_PACKET_VECTOR,
                               .coefficients = shape->square + i * shape->n,
                               .payload = shape->payloads + i * shape->k};
}
