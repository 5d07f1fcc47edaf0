// SPDX-License-Identifier: Apache-2.0
// Clients of a streaming server: they request coded packets, wait for the descriptor like an event
// loop, and take what is ready. What is measured is what such a loop sees.
#ifndef WEFT_BENCH_SERVER_LOAD_H
#define WEFT_BENCH_SERVER_LOAD_H

#include <stddef.h>
#include <stdint.h>

#include "weft/server.h"
#include "weft/weft.h"

// Segments of one shape that clients request, and how.
typedef struct weft_bench_serving {
  const char *name;
  uint64_t stream;
  size_t n, k, segments;
  uint32_t packets; // per request
} weft_bench_serving;

// A monotonic clock, for weft_server_options.
int64_t weft_bench_now_us(void *user);

// Pushes the segments, and decodes one of them from the server's packets; ends the program if a
// byte is wrong. Returns how it was checked.
const char *weft_bench_serve(weft_server *server, const weft_bench_serving *serving, uint64_t seed);

typedef struct weft_bench_load {
  size_t requests;  // at most, in flight
  uint32_t packets; // per request
  double rate;      // requests per second, evenly spaced; 0: a new one as soon as one is answered
  double seconds;   // how long requests are made; then waits for the last answers
} weft_bench_load;

// Latencies collected over several loads.
typedef struct weft_bench_latencies {
  double *us; // to be freed with free()
  size_t count, capacity;
} weft_bench_latencies;

// Runs a load. Returns bytes of coded blocks per second, without headers. A latency lasts from the
// time when a request was due until its last packet is taken.
double weft_bench_load_run(weft_server *server, const weft_bench_serving *serving,
                           const weft_bench_load *load, weft_bench_latencies *latencies);

// Returns the `share` quantile of the latencies; 0 if there are none. Sorts them.
double weft_bench_latency(weft_bench_latencies *latencies, double share);

#endif
