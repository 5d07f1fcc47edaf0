// SPDX-License-Identifier: Apache-2.0
// What happens around a candidate's calls: the length of a repetition, and the state of the core's
// vector registers at its start. Times are only compared with far longer ones.
#include <check.h>
#include <stdint.h>

#include "bench/timing.h"
#include "tests/support/test_main.h"

#if defined(__x86_64__)
// Leaves the upper half of a vector register nonzero, as ISA-L's code does, which lacks VZEROUPPER:
// SSE code that runs next must then preserve that half, and takes several times as long.
static void leave_upper_halves(void *user) {
  (void)user;
  __asm__ volatile("vpcmpeqd %%xmm15, %%xmm15, %%xmm15\n\t"
                   "vinsertf128 $1, %%xmm15, %%ymm15, %%ymm15"
                   :
                   :
                   : "xmm15");
}

static void see_upper_halves(void *user) {
  size_t *const seen = user;
  uint64_t upper = 0;
  __asm__ volatile("vextractf128 $1, %%ymm15, %%xmm14\n\tvmovq %%xmm14, %0"
                   : "=r"(upper)
                   :
                   : "xmm14");
  *seen += upper != 0;
}
#endif

// Each candidate starts with the upper halves of the vector registers clear.
START_TEST(no_candidate_pays_for_the_one_before) {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx"))
    return;
  size_t seen = 0;
  weft_bench_candidate candidates[2] = {{.call = leave_upper_halves, .threads = 1},
                                        {.call = see_upper_halves, .user = &seen, .threads = 1}};
  weft_bench_samples samples[2];
  const weft_bench_timing timing = {.reps = WEFT_BENCH_MIN_REPS, .rep_s = 1e-3, .cold = _i != 0};
  weft_bench_measure(&timing, candidates, 2, samples);
  ck_assert_uint_eq(seen, 0);
  for (size_t i = 0; i < 2; i++)
    weft_bench_samples_free(&samples[i]);
#endif
}
END_TEST

typedef struct repetition {
  volatile uint64_t calls;
  double wall_s; // from its beginning to its end
} repetition;

static void begin_count(void *user) {
  repetition *const r = user;
  r->wall_s = -weft_bench_now_s();
}

static void count(void *user) {
  repetition *const r = user;
  r->calls += 1;
}

static void end_count(void *user) {
  repetition *const r = user;
  r->wall_s += weft_bench_now_s();
}

// Returns the total time of a repetition's calls, in seconds.
static double length_of(const weft_bench_timing *timing, repetition *out) {
  *out = (repetition){.calls = 0};
  weft_bench_candidate candidate = {
      .call = count, .before = begin_count, .after = end_count, .user = out, .threads = 1};
  weft_bench_samples samples;
  weft_bench_measure(timing, &candidate, 1, &samples);
  const double seconds = (double)samples.laps * (double)samples.calls * samples.seconds[0];
  weft_bench_samples_free(&samples);
  return seconds;
}

// Measures until a repetition had enough of a core: after `most` times its length it ends, however
// little of that it had.
static double length_on_a_core(const weft_bench_timing *timing, double most, repetition *out) {
  enum { TRIES = 8 };
  double seconds = length_of(timing, out);
  for (int i = 1; i < TRIES && out->wall_s >= most * timing->rep_s; i++)
    seconds = length_of(timing, out);
  return seconds;
}

START_TEST(a_repetition_is_as_long_as_asked) {
  const weft_bench_timing timing = {.reps = 1, .rep_s = 3};
  repetition r;
  ck_assert_double_ge(length_on_a_core(&timing, 2, &r), timing.rep_s / 2);
  ck_assert_double_ge(r.wall_s, timing.rep_s);
}
END_TEST

// A cold repetition of calls much shorter than a lap lasts as long as requested: 1000 calls do not
// end it.
START_TEST(a_cold_repetition_of_short_calls_is_as_long) {
  const weft_bench_timing timing = {.reps = 1, .rep_s = 0.02, .cold = true};
  repetition r;
  ck_assert_double_ge(length_on_a_core(&timing, 5, &r), timing.rep_s / 4 / 2);
  ck_assert_double_ge(r.wall_s, timing.rep_s / 4);
}
END_TEST

typedef struct prepared {
  size_t prepared, called, unprepared; // calls
} prepared;

// Takes much longer than a call.
static void prepare(void *user) {
  prepared *const p = user;
  const double start = weft_bench_now_s();
  while (weft_bench_now_s() - start < 100e-6)
    ;
  p->prepared++;
}

static void call_prepared(void *user) {
  prepared *const p = user;
  p->called++;
  p->unprepared += p->prepared != p->called;
}

// Preparation runs once before every call and does not count as its time.
START_TEST(what_prepares_a_call_does_not_count) {
  const weft_bench_timing timing = {.reps = 1, .rep_s = 0.02, .cold = _i != 0};
  prepared seen = {0};
  const weft_bench_candidate candidate = {
      .call = call_prepared, .prepare = prepare, .user = &seen, .threads = 1};
  weft_bench_samples samples;
  weft_bench_measure(&timing, &candidate, 1, &samples);
  ck_assert_uint_gt(seen.called, 0);
  ck_assert_uint_eq(seen.unprepared, 0);
  ck_assert_double_lt(samples.seconds[0], 50e-6);
  weft_bench_samples_free(&samples);
}
END_TEST

int main(void) {
  Suite *const suite = suite_create("bench/timing");
  TCase *const state = tcase_create("state"), *const length = tcase_create("length");
  tcase_add_loop_test(state, no_candidate_pays_for_the_one_before, 0, 2);
  tcase_add_loop_test(state, what_prepares_a_call_does_not_count, 0, 2);
  tcase_set_timeout(length, 60);
  tcase_add_test(length, a_repetition_is_as_long_as_asked);
  tcase_add_test(length, a_cold_repetition_of_short_calls_is_as_long);
  suite_add_tcase(suite, state);
  suite_add_tcase(suite, length);
  return test_main(suite);
}
