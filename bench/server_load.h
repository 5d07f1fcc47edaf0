// SPDX-License-Identifier: Apache-2.0
// Clients of a streaming server: they ask for coded packets, wait for the descriptor as an event
// loop does, and take what is ready. What is measured is what such a loop sees.
#ifndef WEFT_BENCH_SERVER_LOAD_H
#define WEFT_BENCH_SERVER_LOAD_H

#include <stddef.h>
#include <stdint.h>

#include "weft/server.h"
#include "weft/weft.h"

// Segments of one shape that clients ask for, and how.
typedef struct weft_bench_serving {
  const char *name;
  uint64_t stream;
  size_t n, k, segments;
  uint32_t packets; // of a request
} weft_bench_serving;

// A monotonic clock, as weft_server_options wants it.
int64_t weft_bench_now_us(void *user);

// Pushes the segments, and decodes packets of one of them from `server`: ends the program when a
// byte is wrong. Returns how it was checked.
const char *weft_bench_serve(weft_server *server, const weft_bench_serving *serving, uint64_t seed);

typedef struct weft_bench_load {
  size_t requests;  // in flight at most
  uint32_t packets; // of each
  double rate;      // requests per second, evenly spaced; 0: the next as soon as one is answered
  double seconds;   // how long requests are made; the last ones' answers are waited for
} weft_bench_load;

// Latencies of many loads together.
typedef struct weft_bench_latencies {
  double *us; // free() it
  size_t count, capacity;
} weft_bench_latencies;

// Bytes of coded blocks per second, headers not counted. Latencies count from the moment when a
// request was due to the moment when its last packet was taken.
double weft_bench_load_run(weft_server *server, const weft_bench_serving *serving,
                           const weft_bench_load *load, weft_bench_latencies *latencies);

// The latency below which `share` of them lie; 0 if there are none. Sorts them.
double weft_bench_latency(weft_bench_latencies *latencies, double share);

#endif
