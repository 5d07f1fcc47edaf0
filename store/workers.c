// SPDX-License-Identifier: Apache-2.0
// Processes stripes with several threads.
#define _POSIX_C_SOURCE 200809L
#include "store/workers.h"

#include <pthread.h>

#include "kernels/pool.h"
#include "store/store.h"

typedef struct team {
  const weft_store_run *run;
  pthread_mutex_t lock; // guards what follows; never held during a step, which may wait for ever
  pthread_cond_t untaken, turn;
  bool taking; // a thread is taking a stripe: they are taken in order
  bool ended;
  uint64_t next, given;
  weft_status status;
} team;

typedef struct member {
  team *team;
  size_t lane;
} member;

// Lock held.
static void fail_locked(team *t, weft_status status) {
  if (t->status == WEFT_OK)
    t->status = status;
  pthread_cond_broadcast(&t->untaken);
  pthread_cond_broadcast(&t->turn);
}

static void fail(team *t, weft_status status) {
  pthread_mutex_lock(&t->lock);
  fail_locked(t, status);
  pthread_mutex_unlock(&t->lock);
}

// Takes the next stripe; returns false if there is none.
static bool take(team *t, size_t lane, uint64_t *stripe) {
  const weft_store_run *run = t->run;
  pthread_mutex_lock(&t->lock);
  while (t->taking && t->status == WEFT_OK)
    pthread_cond_wait(&t->untaken, &t->lock);
  bool taken = !t->ended && t->next < run->end && t->status == WEFT_OK;
  if (taken)
    *stripe = t->next++;
  if (taken && run->take) {
    t->taking = true;
    pthread_mutex_unlock(&t->lock);
    const weft_status status = run->take(run->user, lane, *stripe);
    pthread_mutex_lock(&t->lock);
    t->taking = false;
    taken = status == WEFT_OK;
    t->ended = t->ended || !taken;
    if (!taken && status != WEFT_PENDING)
      fail_locked(t, status);
    pthread_cond_broadcast(&t->untaken); // wake all, as this may have been the last stripe
  }
  pthread_mutex_unlock(&t->lock);
  return taken;
}

// Gives a stripe, after waiting for its turn if order matters.
static weft_status give(team *t, size_t lane, uint64_t stripe) {
  const weft_store_run *run = t->run;
  pthread_mutex_lock(&t->lock);
  while (run->give && t->given != stripe && t->status == WEFT_OK)
    pthread_cond_wait(&t->turn, &t->lock);
  weft_status status = t->status;
  if (status == WEFT_OK && run->give) {
    pthread_mutex_unlock(&t->lock); // no other thread has this turn
    status = run->give(run->user, lane, stripe);
    pthread_mutex_lock(&t->lock);
  }
  if (status == WEFT_OK) { // otherwise the next stripe's turn never comes
    t->given++;
    if (run->keep_on && !run->keep_on(run->watcher, t->given - run->first))
      status = WEFT_E_STOPPED;
  }
  if (status == WEFT_OK)
    pthread_cond_broadcast(&t->turn);
  else
    fail_locked(t, status);
  pthread_mutex_unlock(&t->lock);
  return status;
}

static void *work(void *argument) {
  const member *me = argument;
  team *t = me->team;
  uint64_t stripe;
  while (take(t, me->lane, &stripe)) {
    weft_status status = t->run->work(t->run->user, me->lane, stripe);
    if (status == WEFT_OK)
      status = give(t, me->lane, stripe);
    if (status != WEFT_OK)
      fail(t, status);
  }
  return NULL;
}

weft_status weft_store_run_stripes(const weft_store_run *run) {
  team t = {.run = run, .next = run->first, .given = run->first, .status = WEFT_OK};
  member members[WEFT_STORE_MAX_THREADS];
  pthread_t threads[WEFT_STORE_MAX_THREADS];
  pthread_mutex_init(&t.lock, NULL);
  pthread_cond_init(&t.untaken, NULL);
  pthread_cond_init(&t.turn, NULL);
  size_t started = 1; // the caller is the first thread
  for (; started < run->threads; started++) {
    members[started] = (member){.team = &t, .lane = started};
    const weft_status status = weft_thread_start(&threads[started], work, &members[started]);
    if (status != WEFT_OK) {
      fail(&t, status);
      break;
    }
  }
  members[0] = (member){.team = &t, .lane = 0};
  work(&members[0]);
  for (size_t i = 1; i < started; i++)
    pthread_join(threads[i], NULL);
  pthread_mutex_destroy(&t.lock);
  pthread_cond_destroy(&t.untaken);
  pthread_cond_destroy(&t.turn);
  return t.status;
}
