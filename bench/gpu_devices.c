// SPDX-License-Identifier: Apache-2.0
// Several devices working at once, each fed by its own thread, which waits for the start of a
// round.
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdlib.h>

#include "bench/buffers.h"
#include "bench/check.h"
#include "bench/gpu_cases.h"

enum { CALLS = 4 }; // per round, so that the cost of the barriers is negligible

typedef struct worker {
  weft_bench_crowd *crowd;
  pthread_t thread;
  weft_bench_group *group; // holds the device's own case
  const weft_bench_case *entry;
} worker;

struct weft_bench_crowd {
  pthread_barrier_t begin, end; // of a round: for the workers and the caller
  bool stop;                    // read after `begin`
  worker *workers;
  size_t count;
};

static void *work(void *user) {
  worker *self = user;
  for (;;) {
    pthread_barrier_wait(&self->crowd->begin);
    if (self->crowd->stop)
      return NULL;
    for (int i = 0; i < CALLS; i++)
      self->entry->work.call(self->entry->work.user);
    pthread_barrier_wait(&self->crowd->end);
  }
}

static void call_all(void *user) {
  weft_bench_crowd *crowd = user;
  pthread_barrier_wait(&crowd->begin);
  pthread_barrier_wait(&crowd->end);
}

weft_bench_crowd *weft_bench_gpu_add_devices(weft_bench_gpu *const *gpus, size_t count,
                                             weft_bench_group *group, size_t m, size_t n, size_t k,
                                             int *index) {
  weft_bench_crowd *crowd = weft_bench_alloc(1, sizeof *crowd);
  *crowd = (weft_bench_crowd){.count = count};
  crowd->workers = weft_bench_alloc(count, sizeof *crowd->workers);
  if (pthread_barrier_init(&crowd->begin, NULL, (unsigned)count + 1) != 0 ||
      pthread_barrier_init(&crowd->end, NULL, (unsigned)count + 1) != 0)
    weft_bench_must("barrier", WEFT_E_THREAD);
  weft_bench_case all = {0};
  for (size_t i = 0; i < count; i++) {
    worker *self = &crowd->workers[i];
    self->crowd = crowd;
    self->group = weft_bench_group_new("");
    const int added = weft_bench_gpu_add_product(gpus[i], self->group, 1, m, n, k, false, -1);
    self->entry = &self->group->cases[added];
    const weft_bench_case before = all;
    if (i == 0)
      all = *self->entry;
    for (int metric = 0; metric < WEFT_BENCH_METRICS; metric++)
      all.amount[metric] = before.amount[metric] + CALLS * self->entry->amount[metric];
    if (pthread_create(&self->thread, NULL, work, self) != 0)
      weft_bench_must("thread", WEFT_E_THREAD);
  }
  static const char *const names[] = {"", "on one device", "on two devices", "on three devices",
                                      "on four devices"};
  all.variant = count < 5 ? names[count] : "on all devices";
  all.m = m * count;
  all.owned = NULL;
  all.threads = count + 1;
  all.work = (weft_bench_candidate){.call = call_all, .user = crowd};
  call_all(crowd);
  *index = weft_bench_group_add(group, &all);
  return crowd;
}

void weft_bench_crowd_free(weft_bench_crowd *crowd) {
  crowd->stop = true;
  pthread_barrier_wait(&crowd->begin);
  for (size_t i = 0; i < crowd->count; i++) {
    pthread_join(crowd->workers[i].thread, NULL);
    weft_bench_group_free(crowd->workers[i].group);
  }
  pthread_barrier_destroy(&crowd->begin);
  pthread_barrier_destroy(&crowd->end);
  free(crowd->workers);
  free(crowd);
}
