// SPDX-License-Identifier: Apache-2.0
// Ceilings as cases of a group.
#include "bench/ceiling_cases.h"

#include <stdbool.h>
#include <string.h>

#include "bench/buffers.h"
#include "bench/check.h"
#include "bench/timing.h"

// Iterations per call: a few microseconds, so that the call's own cost is negligible.
#define LOOP_ITERATIONS 256u
// Bytes of one row loaded or stored before switching to the next row: long runs give the hardware
// one stream at a time to follow, short ones many in parallel.
static const size_t stream_runs[] = {4096, 512};

typedef struct memory_state {
  weft_bench_read read;
  uint8_t *to;
  const uint8_t *from;
  size_t bytes;
  bool backwards; // direction of the next pass of a turning read
} memory_state;

static void call_loop(void *user) {
  const weft_bench_ceiling *const ceiling = user;
  ceiling->loop(LOOP_ITERATIONS);
}

static void call_read(void *user) {
  const memory_state *const state = user;
  state->read(state->from, state->bytes);
}

static void call_read_turning(void *user) {
  enum { PIECE = 4096 };
  memory_state *const state = user;
  const bool backwards = state->backwards;
  state->backwards = !backwards;
  if (!backwards) {
    state->read(state->from, state->bytes);
    return;
  }
  for (size_t end = state->bytes; end > 0;) {
    const size_t begin = (end - 1) / PIECE * PIECE;
    state->read(state->from + begin, end - begin);
    end = begin;
  }
}

static void call_copy(void *user) {
  const memory_state *const state = user;
  memcpy(state->to, state->from, state->bytes);
  __asm__ volatile("" : : "r"(state->to) : "memory");
}

int weft_bench_add_ceiling(weft_bench_group *group, const weft_bench_ceiling *ceiling) {
  for (size_t c = 0; c < group->case_count; c++)
    if (group->cases[c].work.user == ceiling)
      return (int)c;
  // call_loop casts this back to const.
  return weft_bench_group_add(
      group, &(weft_bench_case){
                 .operation = "ceiling",
                 .row = ceiling->name,
                 .variant = "",
                 .threads = 1,
                 .amount = {[WEFT_BENCH_PRODUCTS] = (double)ceiling->products * LOOP_ITERATIONS},
                 .ceiling = -1,
                 .work = {.call = call_loop, .user = (void *)(uintptr_t)ceiling},
                 .checked = WEFT_BENCH_CHECKED_NONE,
             });
}

int weft_bench_add_row_ceiling(weft_bench_group *group, const char *row) {
  const weft_bench_ceiling *const ceiling = weft_bench_ceiling_for(row);
  return ceiling ? weft_bench_add_ceiling(group, ceiling) : -1;
}

static int add_memory(weft_bench_group *group, const char *operation, const char *variant,
                      const char *row, void (*call)(void *), const memory_state *from_state) {
  memory_state *const state = weft_bench_alloc(1, sizeof *state);
  *state = *from_state;
  return weft_bench_group_add(
      group, &(weft_bench_case){
                 .operation = operation,
                 .row = row,
                 .variant = variant,
                 .n = 1,
                 .k = state->bytes,
                 .threads = 1,
                 .amount = {[WEFT_BENCH_INPUT] = (double)state->bytes},
                 .ceiling = -1,
                 .work = {.call = call,
                          .user = state,
                          .regions = {{state->from, state->bytes}, {state->to, state->bytes}},
                          .region_count = state->to ? 2 : 1},
                 .checked = WEFT_BENCH_CHECKED_NONE,
                 .owned = state,
             });
}

int weft_bench_add_read(weft_bench_group *group, uint32_t machine_cpu, const uint8_t *data,
                        size_t bytes) {
  const char *name = NULL;
  const weft_bench_read read = weft_bench_read_widest(machine_cpu, &name);
  return add_memory(group, "read", "", name, call_read,
                    &(memory_state){.read = read, .from = data, .bytes = bytes});
}

int weft_bench_add_read_turning(weft_bench_group *group, uint32_t machine_cpu, const uint8_t *data,
                                size_t bytes) {
  const char *name = NULL;
  const weft_bench_read read = weft_bench_read_widest(machine_cpu, &name);
  return add_memory(group, "read", "turning", name, call_read_turning,
                    &(memory_state){.read = read, .from = data, .bytes = bytes});
}

int weft_bench_add_copy(weft_bench_group *group, uint8_t *to, const uint8_t *from, size_t bytes) {
  return add_memory(group, "copy", "", "memcpy", call_copy,
                    &(memory_state){.to = to, .from = from, .bytes = bytes});
}

typedef struct streams_state {
  weft_bench_read read;
  weft_bench_write write;
  size_t run;   // bytes of a row before the next row's turn
  size_t ahead; // prefetch distance in bytes; 0: no prefetching
  size_t k, m, bytes;
  uint8_t *const *x, *const *y;
} streams_state;

static void call_streams(void *user) {
  const streams_state *const s = user;
  for (size_t at = 0; at < s->bytes; at += s->run) {
    const size_t n = s->bytes - at < s->run ? s->bytes - at : s->run;
    for (size_t j = 0; j < s->k; j++) {
      for (size_t b = 0; s->ahead && b < n; b += 64)
        __builtin_prefetch(s->x[j] + at + s->ahead + b, 0, 2); // beyond the end this does nothing
      s->read(s->x[j] + at, n);
    }
    for (size_t i = 0; i < s->m; i++)
      s->write(s->y[i] + at, n);
  }
}

// Returns the least time of a few calls, after a warm-up.
static double least_seconds(streams_state *state) {
  enum { CALLS = 5 };
  double least = 0;
  for (size_t i = 0; i <= CALLS; i++) {
    const double begin = weft_bench_now_s();
    call_streams(state);
    const double took = weft_bench_now_s() - begin;
    if (i == 1 || (i > 1 && took < least))
      least = took;
  }
  return least;
}

// Chooses the fastest way, because only that is a bound: long or short runs, with and without
// prefetching and stores past the caches.
static void choose_way(streams_state *state, uint32_t machine_cpu, bool update) {
  const weft_bench_write stream = update ? NULL : weft_bench_stream_widest(machine_cpu);
  streams_state best = *state;
  double least = 0;
  for (unsigned way = 0; way < 8; way++) {
    streams_state now = *state;
    now.run = stream_runs[way & 1u];
    now.ahead = way & 2u ? stream_runs[0] : 0;
    if ((way & 4u) && !stream)
      continue;
    if (way & 4u)
      now.write = stream;
    const double seconds = least_seconds(&now);
    if (way > 0 && seconds >= least)
      continue;
    least = seconds;
    best = now;
  }
  *state = best;
}

int weft_bench_add_streams(weft_bench_group *group, uint32_t machine_cpu, size_t k,
                           uint8_t *const *x, size_t m, uint8_t *const *y, size_t bytes,
                           bool update) {
  const char *name = NULL;
  streams_state *const state = weft_bench_alloc(1, sizeof *state);
  *state = (streams_state){.read = weft_bench_read_widest(machine_cpu, &name),
                           .write = weft_bench_write_widest(machine_cpu, update),
                           .k = k,
                           .m = m,
                           .bytes = bytes,
                           .x = x,
                           .y = y};
  choose_way(state, machine_cpu, update);
  return weft_bench_group_add(group, &(weft_bench_case){
                                         .operation = update ? "load and store" : "load, store",
                                         .row = "streams",
                                         .variant = "",
                                         .n = k,
                                         .k = bytes,
                                         .m = m,
                                         .threads = 1,
                                         .amount = {[WEFT_BENCH_OUTPUT] = (double)m * (double)bytes,
                                                    [WEFT_BENCH_INPUT] = (double)k * (double)bytes},
                                         .ceiling = -1,
                                         .work = {.call = call_streams,
                                                  .user = state,
                                                  .regions = {{x[0], k * bytes}, {y[0], m * bytes}},
                                                  .region_count = 2},
                                         .checked = WEFT_BENCH_CHECKED_NONE,
                                         .owned = state,
                                     });
}
