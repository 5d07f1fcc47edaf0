// SPDX-License-Identifier: Apache-2.0
// `weft bench pool`: how long a job of several threads takes, right after another one and after the
// caller was busy elsewhere for a while, compared with each thread's share of one thread's time.
#include <stdio.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "bench/commands.h"
#include "bench/group.h"
#include "bench/jobs.h"
#include "bench/pool_cases.h"
#include "bench/rlnc_cases.h"
#include "bench/rows.h"

enum {
  THREADS_MAX = WEFT_BENCH_LIST + 1, // and one thread, for comparison
  PAUSES_MAX = WEFT_BENCH_LIST + 1,  // and no pause
  CASES_MAX = THREADS_MAX * PAUSES_MAX,
};

typedef struct pool_run {
  weft_bench_options options;
  weft_bench_machine machine;
  weft_bench_report report;
  const weft_backend *row;
  size_t threads[THREADS_MAX], thread_counts; // threads[0]: 1
  size_t pauses_us[PAUSES_MAX], pauses;       // pauses_us[0]: 0
} pool_run;

// Jobs of one kind, by threads and pauses: pause p on threads[t] is at [t * pauses + p].
typedef struct job_table {
  const char *operation, *row, *checked;
  size_t n, k;    // k 0: n tasks of task_us
  size_t task_us; // 0: n blocks of k bytes encoded
  weft_bench_job jobs[CASES_MAX];
} job_table;

static void set_jobs(const pool_run *run, job_table *table, size_t t, void (*call)(void *user),
                     void *user) {
  for (size_t p = 0; p < run->pauses; p++)
    table->jobs[t * run->pauses + p] =
        (weft_bench_job){.call = call, .user = user, .pause_s = (double)run->pauses_us[p] * 1e-6};
}

// ---------------------------------------------------------------------------------------------
// Reporting

// Returns how long one thread takes for the work of the busiest of `threads`: tasks are not
// divided.
static double share_of(const job_table *table, size_t threads) {
  return table->k ? 1 / (double)threads
                  : (double)((table->n + threads - 1) / threads) / (double)table->n;
}

static weft_bench_ratio over_share(const pool_run *run, const weft_bench_job *job,
                                   const double *share_s) {
  const size_t reps = run->options.timing.reps;
  bool *const usable = weft_bench_alloc(reps, sizeof(bool));
  for (size_t i = 0; i < reps; i++)
    usable[i] = true;
  const weft_bench_ratio ratio =
      weft_bench_ratio_of(job->median_s, usable, share_s, usable, reps, WEFT_BENCH_MIN_REPS);
  free(usable);
  return ratio;
}

static void print_job(const pool_run *run, const weft_bench_job *job, size_t threads,
                      size_t pause_us, const double *share_s, const weft_bench_ratio *ratio) {
  const size_t reps = run->options.timing.reps;
  const weft_bench_spread s = weft_bench_spread_of(job->median_s, reps);
  char pause[32] = "none", took[64], over[64] = "-"; // "-": the reference of the shares
  if (pause_us)
    snprintf(pause, sizeof pause, "%zu us", pause_us);
  snprintf(took, sizeof took, "%.1f (%.1f..%.1f)", s.median * 1e6, s.min * 1e6, s.max * 1e6);
  if (threads > 1 || pause_us)
    weft_bench_ratio_text(ratio, false, over, sizeof over);
  printf("  %7zu  %-9s  %-26s %11.1f %9.1f  %s\n", threads, pause, took,
         weft_bench_spread_of(job->most_s, reps).median * 1e6,
         weft_bench_spread_of(share_s, reps).median * 1e6, over);
}

static json_t *json_numbers(const double *values, size_t count) {
  json_t *const out = json_array();
  for (size_t i = 0; i < count; i++)
    json_array_append_new(out, json_real(values[i]));
  return out;
}

static json_t *json_job(const pool_run *run, const job_table *table, const weft_bench_job *job,
                        size_t threads, size_t pause_us, const double *share_s,
                        const weft_bench_ratio *ratio) {
  const size_t reps = run->options.timing.reps;
  char *const id = weft_bench_text("%s %s n=%zu %s=%zu pause_us=%zu t=%zu", table->operation,
                                   table->row, table->n, table->k ? "k" : "task_us",
                                   table->k ? table->k : table->task_us, pause_us, threads);
  json_t *const out = json_pack(
      "{s:s, s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:s, s:I, s:o, s:o, s:o, s:o}", "id", id,
      "operation", table->operation, "variant", "", "row", table->row, "technique",
      weft_bench_technique_json(table->row), "n", (json_int_t)table->n, "threads",
      (json_int_t)threads, "pause_us", (json_int_t)pause_us, "checked", table->checked, "jobs",
      (json_int_t)job->jobs, "over_share", weft_bench_ratio_json(ratio), "share_seconds",
      json_numbers(share_s, reps), "nine_in_ten_seconds", json_numbers(job->most_s, reps),
      "seconds_per_call", json_numbers(job->median_s, reps));
  json_object_set_new(out, table->k ? "k" : "task_us",
                      json_integer((json_int_t)(table->k ? table->k : table->task_us)));
  free(id);
  return out;
}

// Measures, prints and stores a table, and frees its results.
static void report(pool_run *run, job_table *table, const char *title) {
  const size_t count = run->thread_counts * run->pauses, reps = run->options.timing.reps;
  double *const share_s = weft_bench_alloc(reps, sizeof *share_s);
  json_t *const cases = json_array();
  weft_bench_jobs_measure(&run->options.timing, table->jobs, count);
  printf("\n%s\n  %7s  %-9s  %-26s %11s %9s  %s\n", title, "threads", "pause",
         "us a job (min..max)", "nine in ten", "share, us", "job / share");
  for (size_t c = 0; c < count; c++) {
    const size_t threads = run->threads[c / run->pauses], pause = run->pauses_us[c % run->pauses];
    for (size_t i = 0; i < reps; i++)
      share_s[i] = table->jobs[0].median_s[i] * share_of(table, threads);
    const weft_bench_ratio ratio = over_share(run, &table->jobs[c], share_s);
    print_job(run, &table->jobs[c], threads, pause, share_s, &ratio);
    json_array_append_new(cases,
                          json_job(run, table, &table->jobs[c], threads, pause, share_s, &ratio));
  }
  fflush(stdout);
  weft_bench_report_add(&run->report, &run->options, title, cases);
  for (size_t c = 0; c < count; c++)
    weft_bench_job_free(&table->jobs[c]);
  free(share_s);
}

// ---------------------------------------------------------------------------------------------
// The two kinds

static void run_tasks(pool_run *run, size_t task_us, double steps_per_s) {
  weft_bench_tasks *tasks[THREADS_MAX];
  job_table *const table = weft_bench_alloc(1, sizeof *table);
  *table =
      (job_table){.operation = "tasks", .row = "pool", .n = WEFT_BENCH_TASKS, .task_us = task_us};
  for (size_t t = 0; t < run->thread_counts; t++) {
    tasks[t] = weft_bench_tasks_new(&run->machine, run->threads[t],
                                    (uint64_t)(steps_per_s * (double)task_us * 1e-6));
    weft_bench_tasks_run(tasks[t]);
    table->checked = weft_bench_tasks_check(tasks[t]);
    set_jobs(run, table, t, weft_bench_tasks_run, tasks[t]);
  }
  char *const title = weft_bench_text("%d tasks of %zu us", WEFT_BENCH_TASKS, task_us);
  report(run, table, title);
  for (size_t t = 0; t < run->thread_counts; t++) {
    weft_bench_tasks_check(tasks[t]);
    weft_bench_tasks_free(tasks[t]);
  }
  free(table), free(title);
}

static void run_encode(pool_run *run, size_t n, size_t k) {
  weft_bench_shape shape;
  weft_bench_shape_make(&shape, n, k, n, run->options.seed);
  weft_bench_codec *codecs[THREADS_MAX];
  weft_bench_group *const made = weft_bench_group_new("");
  job_table *const table = weft_bench_alloc(1, sizeof *table);
  *table = (job_table){.operation = "encode", .row = run->row->name, .n = n, .k = k};
  for (size_t t = 0; t < run->thread_counts; t++) {
    codecs[t] = weft_bench_codec_new(&shape, &run->machine, run->row->name, run->threads[t],
                                     WEFT_SPLIT_AUTO, 1);
    const int c = weft_bench_add_operation(made, codecs[t], WEFT_BENCH_ENCODE, "", -1);
    table->checked = made->cases[c].checked;
    set_jobs(run, table, t, made->cases[c].work.call, made->cases[c].work.user);
  }
  char *const title = weft_bench_text("%zu blocks of %zu bytes encoded to as many", n, k);
  report(run, table, title);
  for (size_t t = 0; t < run->thread_counts; t++)
    weft_bench_codec_free(codecs[t]);
  weft_bench_group_free(made);
  weft_bench_shape_free(&shape);
  free(table), free(title);
}

// ---------------------------------------------------------------------------------------------

// Chooses the threads and pauses to measure; one thread and no pause come first.
static void choose(pool_run *run) {
  weft_bench_options *const options = &run->options;
  size_t threads[WEFT_BENCH_THREAD_COUNTS];
  const size_t counts = weft_bench_thread_counts(&run->machine, threads);
  weft_bench_sizes_default(&options->threads, threads, counts);
  weft_bench_sizes_default(&options->pauses, (const size_t[]){100, 300, 3000}, 3);
  run->threads[run->thread_counts++] = 1;
  for (size_t i = 0; i < options->threads.count; i++)
    if (options->threads.value[i] > 1)
      run->threads[run->thread_counts++] = options->threads.value[i];
  run->pauses = 1;
  for (size_t i = 0; i < options->pauses.count; i++)
    run->pauses_us[run->pauses++] = options->pauses.value[i];
}

static int measure(pool_run *run) {
  static const size_t task_us[] = {4, 15};
  weft_bench_options *const options = &run->options;
  choose(run);
  weft_bench_sizes_default(&options->n, (const size_t[]){128}, 1);
  weft_bench_sizes_default(&options->k, (const size_t[]){1024, 4096}, options->quick ? 1 : 2);
  weft_bench_pin(&run->machine, 0);
  weft_bench_report_begin(&run->report, options, &run->machine);
  const double steps_per_s = weft_bench_steps_per_s();
  if (weft_bench_listed(options->operations, "tasks"))
    for (size_t i = 0; i < (options->quick ? 1 : 2); i++)
      run_tasks(run, task_us[i], steps_per_s);
  if (weft_bench_listed(options->operations, "encode"))
    for (size_t k = 0; k < options->k.count; k++)
      run_encode(run, options->n.value[0], options->k.value[k]);
  weft_bench_unpin(&run->machine);
  return weft_bench_report_end(&run->report, options);
}

int weft_bench_pool_command(int argc, char **argv) {
  static const char *const operations[] = {"tasks", "encode"};
  pool_run *const run = weft_bench_alloc(1, sizeof *run);
  const int parsed = weft_bench_options_parse(&run->options, argc, argv);
  int failed = parsed == 1 ? 0 : parsed;
  if (parsed == 0) {
    weft_bench_machine_read(&run->machine);
    run->row = weft_bench_host_row(&run->options, run->machine.features);
    failed = run->row && weft_bench_operations_known(&run->options, operations, 2)
                 ? measure(run)
                 : WEFT_BENCH_USAGE;
  }
  free(run);
  return failed;
}
