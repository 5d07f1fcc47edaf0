// SPDX-License-Identifier: Apache-2.0
// Measures groups of cases, prints them as tables and stores them as JSON.
#define _POSIX_C_SOURCE 200809L // lstat
#include "bench/group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "bench/provenance.h"
#include "bench/stop.h"
#include "kernels/backend.h"
#include "tools/printable.h"

static const char *const metric_names[WEFT_BENCH_METRICS] = {"output", "products", "input"};

weft_bench_group *weft_bench_group_new(const char *title) {
  weft_bench_group *const group = weft_bench_alloc(1, sizeof *group);
  group->title = title;
  return group;
}

void weft_bench_group_free(weft_bench_group *group) {
  for (size_t c = 0; group && c < group->case_count; c++)
    free(group->cases[c].owned);
  if (group)
    free(group->cases), free(group->questions);
  free(group);
}

// Returns `items`, or a larger copy in its place, with room for one more than `count`.
static void *with_room(void *items, size_t count, size_t *room, size_t size) {
  if (count < *room)
    return items;
  *room = *room ? 2 * *room : 32;
  void *const more = weft_bench_alloc(*room, size);
  if (count > 0)
    memcpy(more, items, count * size);
  free(items);
  return more;
}

int weft_bench_group_add(weft_bench_group *group, const weft_bench_case *entry) {
  const weft_bench_case copy = *entry; // `entry` may be one of the cases that move
  group->cases = with_room(group->cases, group->case_count, &group->case_room, sizeof copy);
  group->cases[group->case_count] = copy;
  return (int)group->case_count++;
}

int weft_bench_group_find(const weft_bench_group *group, const char *operation, const char *row) {
  for (size_t c = 0; c < group->case_count; c++)
    if (strcmp(group->cases[c].operation, operation) == 0 && strcmp(group->cases[c].row, row) == 0)
      return (int)c;
  return -1;
}

void weft_bench_group_ask(weft_bench_group *group, const char *name, int of, int over,
                          weft_bench_metric metric) {
  if (of < 0 || over < 0)
    return;
  group->questions = with_room(group->questions, group->question_count, &group->question_room,
                               sizeof *group->questions);
  group->questions[group->question_count++] = (weft_bench_question){name, of, over, metric};
}

// ---------------------------------------------------------------------------------------------
// Rates and ratios

// Returns (reps) rates of one case in 1/s, scaled by `times`; free() them.
static double *rates(const weft_bench_case *entry, const weft_bench_samples *samples,
                     weft_bench_metric metric, double times) {
  double *const out = weft_bench_alloc(samples->reps, sizeof(double));
  for (size_t i = 0; i < samples->reps; i++)
    out[i] = times * entry->amount[metric] / samples->seconds[i];
  return out;
}

static weft_bench_ratio ratio_between(const weft_bench_group *group,
                                      const weft_bench_samples *samples, int of, int over,
                                      weft_bench_metric metric, double over_times) {
  double *const a = rates(&group->cases[of], &samples[of], metric, 1);
  double *const b = rates(&group->cases[over], &samples[over], metric, over_times);
  const weft_bench_ratio ratio = weft_bench_ratio_of(a, samples[of].usable, b, samples[over].usable,
                                                     samples[of].reps, WEFT_BENCH_MIN_REPS);
  free(a);
  free(b);
  return ratio;
}

// Returns how many times the ceiling applies. A core's ceiling is for one core, so t threads may
// reach t times as much; a bound on output (a bus, a device's memory) is shared by all threads.
static double ceilings_of(const weft_bench_case *entry, weft_bench_metric bound_by) {
  return bound_by == WEFT_BENCH_OUTPUT ? 1 : (double)entry->threads;
}

static weft_bench_ratio ceiling_share(const weft_bench_group *group,
                                      const weft_bench_samples *samples, size_t c) {
  const weft_bench_case *const entry = &group->cases[c];
  if (!entry->also)
    return ratio_between(group, samples, (int)c, entry->ceiling, entry->bound_by,
                         ceilings_of(entry, entry->bound_by));
  // The lower of the two bounds, as a rate of the case's own amount, so that they are comparable.
  const size_t bounds[2] = {(size_t)entry->ceiling, entry->also - 1}, reps = samples[c].reps;
  const weft_bench_metric by[2] = {entry->bound_by, entry->also_by};
  double *const own = weft_bench_alloc(reps, sizeof(double));
  double *const bound = weft_bench_alloc(reps, sizeof(double));
  bool *const usable = weft_bench_alloc(reps, sizeof(bool));
  for (size_t i = 0; i < reps; i++) {
    own[i] = 1 / samples[c].seconds[i];
    usable[i] = true;
    for (size_t b = 0; b < 2; b++) {
      const double most = ceilings_of(entry, by[b]) * group->cases[bounds[b]].amount[by[b]] /
                          samples[bounds[b]].seconds[i] / entry->amount[by[b]];
      bound[i] = b == 0 || most < bound[i] ? most : bound[i];
      usable[i] = usable[i] && samples[bounds[b]].usable[i];
    }
  }
  const weft_bench_ratio ratio =
      weft_bench_ratio_of(own, samples[c].usable, bound, usable, reps, WEFT_BENCH_MIN_REPS);
  free(own), free(bound), free(usable);
  return ratio;
}

// ---------------------------------------------------------------------------------------------
// Printing

void weft_bench_ratio_text(const weft_bench_ratio *ratio, bool percent, char *out, size_t room) {
  const double unit = percent ? 100 : 1;
  if (ratio->separable)
    snprintf(out, room, percent ? "%.1f %% (%.1f..%.1f)" : "%.3f (%.3f..%.3f)",
             ratio->spread.median * unit, ratio->spread.min * unit, ratio->spread.max * unit);
  else
    snprintf(out, room, percent ? "not separable (%.1f..%.1f)" : "not separable (%.3f..%.3f)",
             ratio->spread.min * unit, ratio->spread.max * unit);
}

static void rate_text(const weft_bench_case *entry, const weft_bench_samples *samples,
                      weft_bench_metric metric, char *out, size_t room) {
  if (entry->amount[metric] <= 0) {
    snprintf(out, room, "-");
    return;
  }
  double *const values = rates(entry, samples, metric, 1e-9);
  const weft_bench_spread s = weft_bench_spread_of(values, samples->reps);
  snprintf(out, room, "%.3f (%.3f..%.3f)", s.median, s.min, s.max);
  free(values);
}

static void time_text(const weft_bench_samples *samples, double scale, char *out, size_t room) {
  const weft_bench_spread s = weft_bench_spread_of(samples->seconds, samples->reps);
  snprintf(out, room, "%.2f (%.2f..%.2f)", s.median * scale, s.min * scale, s.max * scale);
}

static bool shows_products(const weft_bench_group *group) {
  return group->shown[0] == group->shown[1];
}

// Formats a case's two columns.
static void columns_text(const weft_bench_group *group, const weft_bench_case *entry,
                         const weft_bench_samples *samples, char first[64], char second[64]) {
  if (group->times) {
    time_text(samples, 1e6, first, 64);
    if (entry->m)
      time_text(samples, 1e9 / (double)entry->m, second, 64);
    else
      snprintf(second, 64, "-");
    return;
  }
  // Ceilings and reads produce nothing: what they multiply or read is shown in the second column.
  const bool products = shows_products(group);
  rate_text(entry, samples, products ? WEFT_BENCH_OUTPUT : group->shown[0], first, 64);
  rate_text(entry, samples,
            entry->amount[WEFT_BENCH_PRODUCTS] > 0 && (products || entry->ceiling < 0)
                ? WEFT_BENCH_PRODUCTS
            : products ? WEFT_BENCH_INPUT
                       : group->shown[1],
            second, 64);
}

static void print_case(const weft_bench_group *group, const weft_bench_samples *samples, size_t c) {
  const weft_bench_case *const entry = &group->cases[c];
  char name[64], first[64], second[64], share[64] = "-";
  snprintf(name, sizeof name, "%s%s%s", entry->operation, entry->variant[0] ? " " : "",
           entry->variant);
  columns_text(group, entry, &samples[c], first, second);
  if (entry->ceiling >= 0) {
    const weft_bench_ratio ratio = ceiling_share(group, samples, c);
    weft_bench_ratio_text(&ratio, true, share, sizeof share);
  }
  printf("  %-30s %-20s %5zu %2zu  %-26s %-29s %s\n", name, entry->row, entry->m, entry->threads,
         first, second, share);
}

static void print_head(const weft_bench_group *group) {
  static const char *const columns[WEFT_BENCH_METRICS] = {
      "coded GB/s (min..max)", "multiplied or read, GB/s", "data GB/s (min..max)"};
  const bool products = shows_products(group);
  printf("\n%s\n  %-30s %-20s %5s %2s  %-26s %-29s %s\n", group->title, "operation", "row", "m",
         "t",
         group->times ? "us a call (min..max)"
                      : columns[products ? WEFT_BENCH_OUTPUT : group->shown[0]],
         group->times ? "ns for each of m (min..max)"
                      : columns[products ? WEFT_BENCH_PRODUCTS : group->shown[1]],
         "share of ceiling, %");
}

static void print_group(const weft_bench_group *group, const weft_bench_samples *samples) {
  size_t laps = 0, dropped = 0, cpu_timed = 0, disturbed = 0;
  print_head(group);
  for (size_t c = 0; c < group->case_count; c++) {
    print_case(group, samples, c);
    laps += samples[c].laps;
    dropped += samples[c].dropped;
    cpu_timed += samples[c].cpu_timed;
    disturbed += samples[c].disturbed;
  }
  for (size_t q = 0; q < group->question_count; q++) {
    const weft_bench_question *const question = &group->questions[q];
    const weft_bench_ratio ratio =
        ratio_between(group, samples, question->of, question->over, question->metric, 1);
    char text[64];
    weft_bench_ratio_text(&ratio, false, text, sizeof text);
    printf("  %-60s %s\n", question->name, text);
  }
  if (dropped + cpu_timed + disturbed > 0)
    printf(
        "  threads waited for a core: %zu of %zu laps dropped; %zu repetitions by the thread's own "
        "clock, %zu disturbed\n",
        dropped, laps, cpu_timed, disturbed);
  fflush(stdout);
}

// ---------------------------------------------------------------------------------------------
// JSON

static json_t *json_spread(const weft_bench_spread *spread) {
  return json_pack("{s:f, s:f, s:f}", "median", spread->median, "min", spread->min, "max",
                   spread->max);
}

json_t *weft_bench_ratio_json(const weft_bench_ratio *ratio) {
  json_t *const out = json_spread(&ratio->spread);
  json_object_set_new(out, "rounds", json_integer((json_int_t)ratio->rounds));
  json_object_set_new(out, "separable", json_boolean(ratio->separable));
  return out;
}

static json_t *json_id(const weft_bench_case *entry) {
  char *const text = weft_bench_text("%s%s%s %s n=%zu k=%zu m=%zu t=%zu", entry->operation,
                                     entry->variant[0] ? "-" : "", entry->variant, entry->row,
                                     entry->n, entry->k, entry->m, entry->threads);
  json_t *const out = json_string(text);
  free(text);
  return out;
}

json_t *weft_bench_technique_json(const char *row) {
  for (size_t i = 0; i < weft_backend_count; i++)
    if (strcmp(weft_backends[i].name, row) == 0)
      return json_string(weft_backends[i].technique);
  return json_null();
}

static json_t *json_case(const weft_bench_group *group, const weft_bench_samples *samples,
                         size_t c) {
  const weft_bench_case *const entry = &group->cases[c];
  json_t *const out = json_object(), *const amounts = json_object(), *const gbps = json_object();
  json_t *const seconds = json_array();
  json_object_set_new(out, "id", json_id(entry));
  json_object_set_new(out, "operation", json_string(entry->operation));
  json_object_set_new(out, "variant", json_string(entry->variant));
  json_object_set_new(out, "row", json_string(entry->row));
  json_object_set_new(out, "technique", weft_bench_technique_json(entry->row));
  json_object_set_new(out, "n", json_integer((json_int_t)entry->n));
  json_object_set_new(out, "k", json_integer((json_int_t)entry->k));
  json_object_set_new(out, "m", json_integer((json_int_t)entry->m));
  json_object_set_new(out, "threads", json_integer((json_int_t)entry->threads));
  json_object_set_new(out, "checked", json_string(entry->checked));
  for (int metric = 0; metric < WEFT_BENCH_METRICS; metric++) {
    if (entry->amount[metric] <= 0)
      continue;
    double *const values = rates(entry, &samples[c], (weft_bench_metric)metric, 1e-9);
    const weft_bench_spread spread = weft_bench_spread_of(values, samples[c].reps);
    json_object_set_new(amounts, metric_names[metric], json_real(entry->amount[metric]));
    json_object_set_new(gbps, metric_names[metric], json_spread(&spread));
    free(values);
  }
  json_object_set_new(out, "amount_per_call", amounts);
  json_object_set_new(out, "gigabytes_per_second", gbps);
  if (entry->ceiling >= 0) {
    const weft_bench_ratio ratio = ceiling_share(group, samples, c);
    json_t *const share = weft_bench_ratio_json(&ratio);
    json_object_set_new(share, "ceiling", json_id(&group->cases[entry->ceiling]));
    json_object_set_new(share, "metric", json_string(metric_names[entry->bound_by]));
    if (entry->also) {
      json_object_set_new(share, "or_ceiling", json_id(&group->cases[entry->also - 1]));
      json_object_set_new(share, "or_metric", json_string(metric_names[entry->also_by]));
    }
    json_object_set_new(out, "share_of_ceiling", share);
  }
  if (entry->notes)
    json_object_set_new(out, "notes", entry->notes(entry->work.user));
  json_object_set_new(out, "calls_per_lap", json_integer((json_int_t)samples[c].calls));
  json_object_set_new(out, "laps", json_integer((json_int_t)samples[c].laps));
  json_object_set_new(out, "laps_dropped", json_integer((json_int_t)samples[c].dropped));
  json_object_set_new(out, "repetitions_cpu_timed", json_integer((json_int_t)samples[c].cpu_timed));
  json_object_set_new(out, "repetitions_disturbed", json_integer((json_int_t)samples[c].disturbed));
  for (size_t i = 0; i < samples[c].reps; i++)
    json_array_append_new(seconds, json_real(samples[c].seconds[i]));
  json_object_set_new(out, "seconds_per_call", seconds);
  return out;
}

static json_t *json_group(const weft_bench_group *group, const weft_bench_samples *samples) {
  json_t *const cases = json_array(), *const ratios = json_array();
  for (size_t c = 0; c < group->case_count; c++)
    json_array_append_new(cases, json_case(group, samples, c));
  for (size_t q = 0; q < group->question_count; q++) {
    const weft_bench_question *const question = &group->questions[q];
    const weft_bench_ratio ratio =
        ratio_between(group, samples, question->of, question->over, question->metric, 1);
    json_t *const out = weft_bench_ratio_json(&ratio);
    json_object_set_new(out, "name", json_string(question->name));
    json_object_set_new(out, "metric", json_string(metric_names[question->metric]));
    json_object_set_new(out, "of", json_id(&group->cases[question->of]));
    json_object_set_new(out, "over", json_id(&group->cases[question->over]));
    json_array_append_new(ratios, out);
  }
  return json_pack("{s:s, s:o, s:o}", "title", group->title, "cases", cases, "ratios", ratios);
}

// ---------------------------------------------------------------------------------------------
// The report

enum { JSON_FORM = JSON_INDENT(1) | JSON_REAL_PRECISION(9) };

// Returns FILE.part, or NULL if there is no file to keep one next to.
static char *part_path(const weft_bench_options *options) {
  return options->json && !options->json_stdout && strncmp(options->json, "/dev/", 5) != 0
             ? weft_bench_text("%s.part", options->json)
             : NULL;
}

static int dump(const weft_bench_report *report, FILE *file) {
  errno = 0;
  const bool whole = json_dumpf(report->root, file, JSON_FORM) == 0;
  const int why = whole ? 0 : errno ? errno : EIO;
  return fclose(file) == 0 || why ? why : errno;
}

// Replaces a file as a whole or not at all: neither a kill nor a full disk may destroy its old
// contents. Returns 0 or an errno.
static int replace(const weft_bench_report *report, const char *path) {
  char *const fresh = weft_bench_text("%s.%ld", path, (long)getpid());
  FILE *const file = fopen(fresh, "wx");
  int why = file ? dump(report, file) : errno;
  if (!why && rename(fresh, path) != 0)
    why = errno;
  if (why && file)
    (void)unlink(fresh);
  free(fresh);
  return why;
}

void weft_bench_report_keep(const weft_bench_report *report, const weft_bench_options *options) {
  char *const path = part_path(options);
  if (path && replace(report, path) != 0)
    weft_print(stderr, "weft bench: %s could not be written\n", path);
  free(path);
}

void weft_bench_report_begin(weft_bench_report *report, const weft_bench_options *options,
                             const weft_bench_machine *machine) {
  report->start_s = weft_bench_now_s();
  report->root = weft_bench_provenance(options, machine);
  report->groups = json_array();
  json_object_set(report->root, "groups", report->groups);
  weft_bench_provenance_print(options, machine);
}

// Adds what a run that is to stop has measured of its group, and says how much that is.
static void keep_rounds(weft_bench_report *report, const weft_bench_options *options,
                        const weft_bench_group *group, const weft_bench_samples *samples) {
  const size_t rounds = group->case_count ? samples[0].reps : 0;
  char *const path = part_path(options);
  weft_print(stderr, "weft bench: stopped after %zu of %zu repetitions of '%s'%s%s\n", rounds,
             options->timing.reps, group->title, rounds && path ? ", which are in " : "",
             rounds && path ? path : "");
  free(path);
  if (rounds == 0)
    return;
  json_t *const out = json_group(group, samples);
  json_object_set_new(out, "stopped_after_repetitions", json_integer((json_int_t)rounds));
  json_array_append_new(report->groups, out);
  weft_bench_report_keep(report, options);
}

void weft_bench_report_run(weft_bench_report *report, const weft_bench_options *options,
                           const weft_bench_group *group) {
  weft_bench_candidate *const work = weft_bench_alloc(group->case_count, sizeof *work);
  weft_bench_samples *const samples = weft_bench_alloc(group->case_count, sizeof *samples);
  for (size_t c = 0; c < group->case_count; c++) {
    work[c] = group->cases[c].work;
    work[c].threads = group->cases[c].threads;
  }
  weft_bench_stop_begin();
  weft_bench_measure(&options->timing, work, group->case_count, samples);
  if (weft_bench_stop_asked())
    keep_rounds(report, options, group, samples);
  weft_bench_stop_end();
  print_group(group, samples);
  json_array_append_new(report->groups, json_group(group, samples));
  for (size_t c = 0; c < group->case_count; c++)
    weft_bench_samples_free(&samples[c]);
  free(work), free(samples);
  weft_bench_report_keep(report, options); // a run that is killed loses only its current group
}

void weft_bench_report_add(weft_bench_report *report, const weft_bench_options *options,
                           const char *title, json_t *cases) {
  json_array_append_new(report->groups,
                        json_pack("{s:s, s:o, s:[]}", "title", title, "cases", cases, "ratios"));
  weft_bench_report_keep(report, options);
}

// Whether a file is replaced; pipes, devices and targets of links are written to instead.
static bool is_replaced(const char *path) {
  struct stat about;
  return lstat(path, &about) != 0 ? errno == ENOENT : S_ISREG(about.st_mode);
}

static bool write_report(const weft_bench_report *report, const weft_bench_options *options) {
  if (!options->json)
    return true;
  if (!options->json_stdout) {
    const int why = is_replaced(options->json) ? replace(report, options->json) : EBUSY;
    if (why != EACCES && why != EPERM && why != EROFS && why != EBUSY)
      return why == 0;
    // It cannot be replaced: it is a link, or this user may not write to its folder.
    return json_dump_file(report->root, options->json, JSON_FORM) == 0;
  }
  const bool written = json_dumpf(report->root, options->json_stdout, JSON_FORM) == 0 &&
                       fputc('\n', options->json_stdout) != EOF;
  return fclose(options->json_stdout) == 0 && written;
}

int weft_bench_report_end(weft_bench_report *report, const weft_bench_options *options) {
  const double took_s = weft_bench_now_s() - report->start_s;
  int failed = 0;
  json_object_set_new(report->root, "took_s", json_real(took_s));
  printf("\n%.1f s\n", took_s);
  if (!write_report(report, options)) {
    weft_print(stderr, "weft bench: %s could not be written\n",
               options->json_stdout ? "standard output" : options->json);
    failed = WEFT_BENCH_IO;
  } else {
    char *const part = part_path(options);
    if (part)
      (void)unlink(part);
    free(part);
  }
  json_decref(report->groups);
  json_decref(report->root);
  return failed;
}
