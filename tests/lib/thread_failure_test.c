// SPDX-License-Identifier: Apache-2.0
// The system refuses to create a thread, mutex, semaphore or condition variable, one call after
// another: the constructor returns WEFT_E_THREAD, leaks nothing, and works when it is called again.
// The linker puts the functions below between the library and the system (--wrap, see BUILD).
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "tests/lib/fixture.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"
#include "weft/server.h"
#include "weft/storage.h"

static atomic_long calls;
static long refused; // the call that fails, counted from 1; 0: none

static bool refuse(void) { return atomic_fetch_add(&calls, 1) + 1 == refused; }

int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument) {
  return refuse() ? EAGAIN : __real_pthread_create(thread, attributes, run, argument);
}

int __real_pthread_mutex_init(pthread_mutex_t *, const pthread_mutexattr_t *);
int __wrap_pthread_mutex_init(pthread_mutex_t *, const pthread_mutexattr_t *);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes) {
  return refuse() ? EAGAIN : __real_pthread_mutex_init(mutex, attributes);
}

int __real_pthread_cond_init(pthread_cond_t *, const pthread_condattr_t *);
int __wrap_pthread_cond_init(pthread_cond_t *, const pthread_condattr_t *);
int __wrap_pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes) {
  return refuse() ? EAGAIN : __real_pthread_cond_init(condition, attributes);
}

int __real_sem_init(sem_t *, int, unsigned);
int __wrap_sem_init(sem_t *, int, unsigned);
int __wrap_sem_init(sem_t *semaphore, int shared, unsigned value) {
  if (!refuse())
    return __real_sem_init(semaphore, shared, value);
  errno = ENOSYS;
  return -1;
}

static test_allocator memory;

static weft_status make_context(weft_ctx **out) {
  return weft_ctx_new(
      out, &(weft_ctx_options){.backend = "scalar", .threads = 3, .allocator = &memory.allocator});
}

// Each creates one handle and frees it.
static weft_status context(void) {
  weft_ctx *ctx;
  const weft_status status = make_context(&ctx);
  EXPECT((ctx != NULL) == (status == WEFT_OK));
  weft_ctx_free(ctx);
  return status;
}

static weft_status code(void) {
  weft_ctx *ctx;
  weft_code *made;
  WEFT_TRY(make_context(&ctx));
  const weft_status status =
      weft_code_new(ctx, &(weft_code_options){.name = "cauchy", .k = 4, .m = 2}, &made);
  EXPECT((made != NULL) == (status == WEFT_OK));
  weft_code_free(made);
  weft_ctx_free(ctx);
  return status;
}

// Advances so far that a lane is calibrated at once.
static int64_t tick(void *user) {
  int64_t *now_us = user;
  return *now_us += 1000000;
}

static weft_status server(void) {
  weft_ctx *contexts[2];
  weft_server *made;
  int64_t now_us = 0;
  WEFT_TRY(make_context(&contexts[0]));
  weft_status status = make_context(&contexts[1]);
  if (status == WEFT_OK) {
    const weft_server_options options = {
        .contexts = contexts, .context_count = 2, .now_us = tick, .user = &now_us};
    status = weft_server_new(&options, &made);
    EXPECT((made != NULL) == (status == WEFT_OK));
    weft_server_free(made);
  }
  weft_ctx_free(contexts[1]);
  weft_ctx_free(contexts[0]);
  return status;
}

static const struct {
  const char *what;
  weft_status (*make)(void);
  long least; // the fewest such calls that creating it makes; with fewer the loop covers too little
} handles[] = {{"context", context, 7}, {"code", code, 8}, {"server", server, 16}};

START_TEST(every_refusal_is_a_status) {
  fixture_start(600);
  fixture_row = "scalar";
  long n = 1;
  for (;; n++) {
    test_allocator_init(&memory, 0);
    atomic_store(&calls, 0);
    refused = n;
    const weft_status status = handles[_i].make();
    const bool reached = atomic_load(&calls) >= n;
    ck_assert_msg(status == (reached ? WEFT_E_THREAD : WEFT_OK), "%s, call %ld: %s",
                  handles[_i].what, n, weft_status_name(status));
    ck_assert_msg(test_allocator_live(&memory) == 0, "%s, call %ld: leak", handles[_i].what, n);
    if (!reached)
      break;
  }
  ck_assert_int_gt(n, handles[_i].least);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("threads refused");
  TCase *tcase = tcase_create("handles");
  tcase_add_loop_test(tcase, every_refusal_is_a_status, 0, sizeof handles / sizeof *handles);
  suite_add_tcase(suite, tcase);
  return test_main(suite);
}
