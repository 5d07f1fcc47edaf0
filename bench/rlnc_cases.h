// SPDX-License-Identifier: Apache-2.0
// The operations of the RLNC codec on one shape, as cases of a group: run once, checked, then
// timed.
#ifndef WEFT_BENCH_RLNC_CASES_H
#define WEFT_BENCH_RLNC_CASES_H

#include <stddef.h>
#include <stdint.h>

#include "bench/group.h"
#include "bench/machine.h"
#include "weft/weft.h"

// One segment and its packets, shared by all rows and threads.
typedef struct weft_bench_shape {
  size_t n, k;
  size_t m;          // coded blocks per batch
  size_t segments;   // of a multi-segment decode
  uint8_t *data;     // (n, k) random
  uint8_t *mixing;   // (m, n) nonzero coefficients of the batch encode
  uint8_t *square;   // (n, n) coefficients of an invertible set of packets
  uint8_t *payloads; // (n, k) = square * data
} weft_bench_shape;

void weft_bench_shape_make(weft_bench_shape *shape, size_t n, size_t k, size_t m, uint64_t seed);
void weft_bench_shape_free(weft_bench_shape *shape);
weft_segment_id weft_bench_segment_id(const weft_bench_shape *shape);
// Returns the decodable set: (n) packets, whose bytes remain the shape's.
void weft_bench_shape_packets(const weft_bench_shape *shape, weft_packet *packets);

// One context: a row on some threads, with one way to split the work.
typedef struct weft_bench_codec weft_bench_codec;

// `segments`: how many it will decode at once, 1..shape->segments. Starts the context's threads on
// CPUs of their own and keeps the caller on the first one.
weft_bench_codec *weft_bench_codec_new(const weft_bench_shape *shape,
                                       const weft_bench_machine *machine, const char *row,
                                       size_t threads, weft_split split, size_t segments);
void weft_bench_codec_free(weft_bench_codec *codec);

typedef enum weft_bench_operation {
  WEFT_BENCH_ENCODE,          // m coded blocks with given coefficients
  WEFT_BENCH_ENCODE_FRESH,    // m packets, with coefficients drawn in the call
  WEFT_BENCH_ENCODE_SEEDED,   // m packets that carry a seed
  WEFT_BENCH_ENCODE_ONE,      // one coded block with given coefficients
  WEFT_BENCH_RECODE,          // m packets mixed from n held ones
  WEFT_BENCH_RECODE_ONE,      // one such packet, on demand
  WEFT_BENCH_DECODE_EAGER,    // packets one by one, payloads reduced as they arrive
  WEFT_BENCH_DECODE_DEFERRED, // packets one by one, payloads reduced at full rank
  WEFT_BENCH_DECODE_BATCH,    // invert once, multiply once
  WEFT_BENCH_DECODE_MULTI,    // many segments in one call
  WEFT_BENCH_OPERATIONS
} weft_bench_operation;

// The operation's name for `--operations`.
const char *weft_bench_operation_name(weft_bench_operation operation);

// Runs the operation once, checks its bytes and adds it. `ceiling` is the index of the row's
// ceiling in the group, or -1. The variant says how threads split the work, or is "".
int weft_bench_add_operation(weft_bench_group *group, weft_bench_codec *codec,
                             weft_bench_operation operation, const char *variant, int ceiling);

#endif
