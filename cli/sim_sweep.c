// SPDX-License-Identifier: Apache-2.0
// `weft sim --sweep`, `--seeds`: runs each point of a grid of parameters with several seeds. Each
// run writes its own run.json, in a folder named by a hash of its parameters, before the next
// starts; a run whose file exists is not repeated.
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "cli/sim_sweep.h"
#include "tools/build_info.h"
#include "tools/printable.h"

#define NAME "sim"

// --- The grid

static int read_axis(sim_sweep_state *s, const char *text) {
  const char *equals = strchr(text, '=');
  if (!equals || s->axis_count == SIM_SWEEP_AXES)
    return cli_error(NAME, CLI_USAGE,
                     "--sweep needs KEY=VALUE,VALUE..., at most %d times, not '%s'", SIM_SWEEP_AXES,
                     text);
  const size_t length = (size_t)(equals - text);
  size_t key = 0;
  while (key < weft_sim_key_count() && (strlen(weft_sim_key_at(key).name) != length ||
                                        strncmp(weft_sim_key_at(key).name, text, length) != 0))
    key++;
  if (key == weft_sim_key_count())
    return cli_error(NAME, CLI_USAGE, "--sweep: there is no key '%.*s'", (int)length, text);
  // Each kind has figures of its own, which would not fit into one table.
  if (strcmp(weft_sim_key_at(key).name, "kind") == 0)
    return cli_error(NAME, CLI_USAGE, "--sweep: kind cannot be swept: sweep each kind by itself");
  // The axis would set the seed of all n runs of a point, which would be the same run, n times.
  if (s->seeds > 1 && strcmp(weft_sim_key_at(key).name, "seed") == 0)
    return cli_error(NAME, CLI_USAGE,
                     "--sweep: seed cannot be swept with --seeds, which counts it up itself");
  for (size_t i = 0; i < s->axis_count; i++)
    if (s->axes[i].key == key)
      return cli_error(NAME, CLI_USAGE, "--sweep: %s is given twice", weft_sim_key_at(key).name);
  sim_sweep_axis *a = &s->axes[s->axis_count++];
  a->key = key;
  a->values = g_strsplit(equals + 1, ",", 0);
  a->count = g_strv_length(a->values);
  for (size_t i = 0; i < a->count; i++)
    g_strstrip(a->values[i]);
  if (a->count < 1 || a->count > SIM_SWEEP_VALUES)
    return cli_error(NAME, CLI_USAGE, "--sweep: %s needs 1 to %d values", weft_sim_key_at(key).name,
                     SIM_SWEEP_VALUES);
  s->points *= a->count;
  return -1;
}

static int read_axes(sim_sweep_state *s, char *const *texts) {
  int code = -1;
  for (size_t i = 0; code < 0 && texts && texts[i]; i++)
    code = read_axis(s, texts[i]);
  return code;
}

size_t sim_sweep_index(const sim_sweep_state *s, size_t point, size_t axis) {
  for (size_t i = 0; i < axis; i++)
    point /= s->axes[i].count;
  return point % s->axes[axis].count;
}

const char *sim_sweep_value(const sim_sweep_state *s, size_t point, size_t axis) {
  return s->axes[axis].values[sim_sweep_index(s, point, axis)];
}

int sim_sweep_set_point(const sim_sweep_state *s, size_t point, uint64_t seed,
                        weft_sim_parameters *p) {
  char why[WEFT_SIM_TEXT];
  *p = *s->parameters;
  p->seed = seed;
  for (size_t i = 0; i < s->axis_count; i++)
    if (!weft_sim_set(p, weft_sim_key_at(s->axes[i].key).name, sim_sweep_value(s, point, i), why))
      return cli_error(NAME, CLI_USAGE, "--sweep: %s", why);
  return sim_check(s->settings, p, why) ? -1 : cli_error(NAME, CLI_USAGE, "%s: %s", p->name, why);
}

// Adds a file's current content to the hash. If it cannot be read, the run will fail anyway.
static void hash_file(crypto_generichash_state *state, const char *path) {
  g_autofree char *content = NULL;
  gsize bytes = 0;
  if (g_file_get_contents(path, &content, &bytes, NULL))
    (void)crypto_generichash_update(state, (const uint8_t *)content, bytes);
}

static void hash_text(crypto_generichash_state *state, const char *text) {
  (void)crypto_generichash_update(state, (const uint8_t *)text, strlen(text) + 1);
}

// Adds an access class field by field: what lies behind its name and between its fields tells
// nothing of the run.
static void hash_class(crypto_generichash_state *state, const weft_sim_class *c) {
  g_autofree char *text =
      g_strdup_printf("%s %a %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %a %a %a %a", c->name,
                      c->share, c->up_bits_per_s, c->down_bits_per_s, c->line_bits_per_s,
                      c->delay_us, c->loss, c->burst, c->nat, c->symmetric);
  hash_text(state, text);
}

static void id_of(const weft_sim_parameters *p, char out[2 * SIM_SWEEP_ID_BYTES + 1]) {
  uint8_t digest[crypto_generichash_BYTES];
  crypto_generichash_state state;
  char text[WEFT_SIM_TEXT];
  (void)crypto_generichash_init(&state, NULL, 0, sizeof digest);
  hash_text(&state, p->name);
  for (size_t i = 0; i < p->class_count; i++)
    hash_class(&state, &p->classes[i]);
  for (size_t i = 0; i < weft_sim_key_count(); i++) {
    weft_sim_key_text(p, i, text);
    hash_text(&state, text);
  }
  if (p->arrival == WEFT_SIM_TRACE)
    hash_file(&state, p->trace_file);
  if (p->kind == WEFT_SIM_SWARM && p->scheme == WEFT_SIM_OWN)
    hash_file(&state, p->policy_file);
  (void)crypto_generichash_final(&state, digest, sizeof digest);
  sodium_bin2hex(out, 2 * SIM_SWEEP_ID_BYTES + 1, digest, SIM_SWEEP_ID_BYTES);
}

// --- One run's figures, from its file or by running it

// Reads the figures from a run.json. Returns false if there is no such file or it is incomplete.
static bool read_metrics(const char *path, weft_sim_metrics *out, const char **revision) {
  json_t *run = json_load_file(path, 0, NULL);
  json_t *metrics = json_object_get(run, "metrics"), *value;
  const char *name;
  out->count = 0;
  json_object_foreach(metrics, name, value) {
    if (out->count < WEFT_SIM_METRICS)
      out->items[out->count++] = (weft_sim_metric){
          .name = g_intern_string(name),
          .value = json_is_number(value) ? json_number_value(value) : (double)NAN};
  }
  const char *made_by = json_string_value(json_object_get(run, "revision"));
  *revision = g_intern_string(made_by ? made_by : "unknown");
  json_decref(run);
  return out->count > 0;
}

static void append_cell(GString *out, const char *text) {
  const size_t room = 3 * strlen(text) + 3;
  g_autofree char *cell = g_malloc(room);
  g_string_append(out, weft_sim_cell(text, cell, room));
}

static void add_heading(sim_sweep_state *s, const weft_sim_metrics *m) {
  g_string_append(s->summary, "scenario,seed");
  for (size_t i = 0; i < s->axis_count; i++)
    g_string_append_printf(s->summary, ",%s", weft_sim_key_at(s->axes[i].key).name);
  for (size_t i = 0; i < m->count; i++)
    g_string_append_printf(s->summary, ",%s", m->items[i].name);
  g_string_append_c(s->summary, '\n');
  s->names = *m;
}

static void add_run(sim_sweep_state *s, const weft_sim_parameters *p, sim_sweep_run *run,
                    const weft_sim_metrics *m) {
  if (s->summary->len == 0)
    add_heading(s, m);
  append_cell(s->summary, p->name);
  g_string_append_printf(s->summary, ",%" G_GUINT64_FORMAT, p->seed);
  for (size_t i = 0; i < s->axis_count; i++) {
    g_string_append_c(s->summary, ',');
    append_cell(s->summary, sim_sweep_value(s, run->point, i));
  }
  // By name: an earlier build's run.json may have other figures.
  for (size_t i = 0; i < s->names.count; i++) {
    run->values[i] = weft_sim_metric_of(m, s->names.items[i].name);
    g_string_append_c(s->summary, ',');
    if (isfinite(run->values[i]))
      g_string_append_printf(s->summary, "%.15g", run->values[i]);
  }
  g_string_append_c(s->summary, '\n');
  if (s->n[run->point]++ == 0)
    s->first[run->point] = s->runs->len;
  g_array_append_vals(s->runs, run, 1);
}

// Reads a run's figures or, if there are none yet and `make` is set, makes the run.
static int do_run(sim_sweep_state *s, size_t point, uint64_t seed, bool make) {
  weft_sim_parameters p;
  sim_sweep_run run = {.point = point};
  sim_outcome outcome = {0};
  int code = sim_sweep_set_point(s, point, seed, &p);
  if (code >= 0)
    return code;
  run.seed = p.seed;
  id_of(&p, run.id);
  char *folder = g_build_filename(s->settings->folder, "runs", run.id, NULL);
  char *path = g_build_filename(folder, "run.json", NULL);
  bool there = read_metrics(path, &outcome.metrics, &run.revision);
  if (!there && make) {
    run.revision = g_intern_string(weft_build_commit());
    code = g_mkdir_with_parents(folder, 0777) != 0
               ? cli_error(NAME, CLI_IO, "%s: %s", folder, g_strerror(errno))
               : sim_run(s->settings, &p, folder, false, &outcome);
    // A run with wrong bytes is an error, but has written its figures.
    there = code == CLI_OK || read_metrics(path, &outcome.metrics, &run.revision);
    code = code == CLI_OK ? -1 : code;
  }
  if (there)
    add_run(s, &p, &run, &outcome.metrics);
  sim_outcome_clear(&outcome);
  g_free(folder);
  g_free(path);
  return code;
}

// --- Means

sim_sweep_mean sim_sweep_mean_of(const sim_sweep_state *s, size_t point, size_t metric) {
  static const double t[] = {0,     0,     12.706, 4.303, 3.182, 2.776, 2.571,
                             2.447, 2.365, 2.306,  2.262, 2.228, 2.201, 2.179,
                             2.160, 2.145, 2.131,  2.120, 2.110, 2.101, 2.093};
  sim_sweep_mean out = {.mean = (double)NAN, .half = (double)NAN};
  const sim_sweep_run *runs = &g_array_index(s->runs, sim_sweep_run, s->first[point]);
  const size_t n = s->n[point];
  const double count = (double)n;
  double sum = 0, square = 0;
  for (size_t i = 0; i < n; i++)
    sum += runs[i].values[metric];
  if (n == 0 || !isfinite(sum))
    return out;
  out.mean = sum / count;
  for (size_t i = 0; i < n; i++) // the sum of large squares would cancel
    square += (runs[i].values[metric] - out.mean) * (runs[i].values[metric] - out.mean);
  if (n > 1)
    out.half = (n < G_N_ELEMENTS(t) ? t[n] : 1.96 + 2.5 / (count - 1)) *
               sqrt(square / (count - 1) / count);
  return out;
}

static const char *axis_name(const sim_sweep_state *s, size_t axis) {
  return weft_sim_key_at(s->axes[axis].key).name;
}

static char *means_text(const sim_sweep_state *s) {
  GString *out = g_string_new("");
  for (size_t i = 0; i < s->axis_count; i++)
    g_string_append_printf(out, "%s,", axis_name(s, i));
  g_string_append(out, "runs");
  for (size_t i = 0; i < s->names.count; i++)
    g_string_append_printf(out, ",%s,%s_ci95", s->names.items[i].name, s->names.items[i].name);
  g_string_append_c(out, '\n');
  for (size_t point = 0; point < s->points; point++) {
    for (size_t i = 0; i < s->axis_count; i++) {
      append_cell(out, sim_sweep_value(s, point, i));
      g_string_append_c(out, ',');
    }
    g_string_append_printf(out, "%zu", s->n[point]);
    for (size_t i = 0; i < s->names.count; i++) {
      const sim_sweep_mean m = sim_sweep_mean_of(s, point, i);
      g_string_append_c(out, ',');
      if (isfinite(m.mean))
        g_string_append_printf(out, "%.15g", m.mean);
      g_string_append_c(out, ',');
      if (isfinite(m.half))
        g_string_append_printf(out, "%.3g", m.half);
    }
    g_string_append_c(out, '\n');
  }
  return g_string_free(out, FALSE);
}

static void put_means(const sim_sweep_state *s) {
  static const char *const shown[] = {"continuity",    "startup_p95_s",     "stalls_per_hour",
                                      "server_saving", "source_streams",    "share_useful",
                                      "coding_load",   "answer_p95_ms",     "coded_lost",
                                      "copied_lost",   "coded_repair_bytes"};
  for (size_t i = 0; i < s->axis_count; i++)
    printf("%-14s ", axis_name(s, i));
  for (size_t m = 0; m < G_N_ELEMENTS(shown); m++)
    for (size_t i = 0; i < s->names.count; i++)
      if (strcmp(s->names.items[i].name, shown[m]) == 0)
        printf("%22s", shown[m]);
  putchar('\n');
  for (size_t point = 0; point < s->points; point++) {
    for (size_t i = 0; i < s->axis_count; i++)
      printf("%-14s ", sim_sweep_value(s, point, i));
    for (size_t m = 0; m < G_N_ELEMENTS(shown); m++)
      for (size_t i = 0; i < s->names.count; i++)
        if (strcmp(s->names.items[i].name, shown[m]) == 0) {
          const sim_sweep_mean mean = sim_sweep_mean_of(s, point, i);
          char text[40] = "-";
          if (isfinite(mean.half))
            g_snprintf(text, sizeof text, "%.4g +- %.2g", mean.mean, mean.half);
          else if (isfinite(mean.mean))
            g_snprintf(text, sizeof text, "%.4g", mean.mean);
          printf("%22s", text);
        }
    putchar('\n');
  }
  weft_print(stdout, "%u runs in %s: summary.csv, means.csv (95 %% confidence intervals)\n",
             s->runs->len, s->settings->folder);
  weft_print(stdout, "report: %s/report.html\n", s->settings->folder);
}

// --- Files of the whole sweep

static weft_status put_text(void *user, FILE *to) {
  fputs(user, to);
  return WEFT_OK;
}

static int write_text(const sim_sweep_state *s, const char *name, const char *text) {
  char *path = g_build_filename(s->settings->folder, name, NULL);
  union {
    const char *in;
    void *out;
  } pass = {.in = text};
  const weft_status status = weft_sim_write_file(path, put_text, pass.out);
  const int code =
      status == WEFT_OK ? -1 : cli_error(NAME, CLI_IO, "%s: %s", path, g_strerror(errno));
  g_free(path);
  return code;
}

static int write_page(const sim_sweep_state *s) {
  json_t *data = sim_sweep_json(s);
  char *path = g_build_filename(s->settings->folder, "report.html", NULL);
  const weft_status status = data ? weft_sim_write_sweep_html(data, path) : WEFT_E_NOMEM;
  int code = -1;
  if (status == WEFT_E_IO)
    code = cli_error(NAME, CLI_IO, "%s: %s", path, g_strerror(errno));
  else if (status != WEFT_OK)
    code = cli_error(NAME, CLI_MACHINE, "%s", weft_status_text(status));
  g_free(path);
  json_decref(data);
  return code;
}

// Writes the means and the page of the runs so far.
static int write_whole(const sim_sweep_state *s) {
  char *means = means_text(s);
  int code = write_text(s, "means.csv", means);
  g_free(means);
  return code < 0 ? write_page(s) : code;
}

static int write_gnuplot(const sim_sweep_state *s) {
  char *script = sim_sweep_gnuplot(s);
  const int code = write_text(s, "means.gp", script);
  g_free(script);
  return code;
}

// Returns the id of the first run in which that figure is above zero, and counts such runs.
static const char *first_with(const sim_sweep_state *s, const char *name, size_t *count) {
  const char *first = NULL;
  *count = 0;
  for (size_t i = 0; i < s->names.count; i++)
    for (size_t r = 0; r < s->runs->len && strcmp(s->names.items[i].name, name) == 0; r++) {
      const sim_sweep_run *run = &g_array_index(s->runs, sim_sweep_run, r);
      if (run->values[i] > 0) {
        first = first ? first : run->id;
        ++*count;
      }
    }
  return first;
}

static int finish(const sim_sweep_state *s) {
  int code = write_whole(s);
  if (code < 0 && s->settings->gnuplot && s->axis_count)
    code = write_gnuplot(s);
  if (code >= 0)
    return code;
  cli_leave_by_signals();
  if (!s->settings->quiet)
    put_means(s);
  size_t count = 0;
  const char *first = first_with(s, "wrong_bytes", &count);
  if (count > 0)
    return cli_error(NAME, CLI_DIFFERS, "bytes came out wrong in run %s", first);
  first = first_with(s, "no_progress", &count);
  if (count > 0)
    return cli_error(NAME, CLI_DIFFERS,
                     "%zu of %u runs made no progress for ten minutes (no_progress in "
                     "summary.csv); the first of them is %s",
                     count, s->runs->len, first);
  return cli_flush(NAME, CLI_OK);
}

// Makes all runs, point by point. Writes what there is at intervals, and also when the sweep ends
// early.
static int run_all(sim_sweep_state *s) {
  enum { PAGE_EVERY_US = 10000000 };
  gint64 page_us = g_get_monotonic_time() + PAGE_EVERY_US;
  int code = -1;
  for (size_t i = 0; i < s->points * s->seeds; i++) {
    const size_t before = s->runs->len;
    const int result = do_run(s, i / s->seeds, s->parameters->seed + i % s->seeds, code < 0);
    code = code < 0 ? result : code;
    if (code < 0 && s->runs->len > before)
      code = write_text(s, "summary.csv", s->summary->str);
    if (code < 0 && g_get_monotonic_time() > page_us) {
      code = write_whole(s);
      page_us = g_get_monotonic_time() + PAGE_EVERY_US;
    }
  }
  if (code < 0)
    return finish(s);
  if (code != CLI_IO && s->runs->len && write_text(s, "summary.csv", s->summary->str) < 0)
    (void)write_whole(s);
  return code;
}

int sim_sweep(const sim_settings *settings, const weft_sim_parameters *parameters,
              char *const *sweeps, size_t seeds) {
  sim_sweep_state s = {.settings = settings,
                       .parameters = parameters,
                       .points = 1,
                       .seeds = seeds,
                       .summary = g_string_new(""),
                       .runs = g_array_new(FALSE, FALSE, sizeof(sim_sweep_run))};
  int code =
      settings->transport
          ? cli_error(NAME, CLI_USAGE, "a sweep runs on one rank; start several sweeps instead")
          : read_axes(&s, sweeps);
  // Check all points before the first run: errors are reported at once, idle parameters only once.
  bool told = false;
  for (size_t i = 0; code < 0 && i < s.points; i++) {
    weft_sim_parameters p;
    code = sim_sweep_set_point(&s, i, parameters->seed, &p);
    if (code < 0 && !told && weft_sim_idle(&p)) {
      sim_remark_idle(settings, &p);
      told = true;
    }
  }
  if (code < 0) {
    s.first = g_new0(size_t, s.points);
    s.n = g_new0(size_t, s.points);
    code = run_all(&s);
  }
  for (size_t i = 0; i < s.axis_count; i++)
    g_strfreev(s.axes[i].values);
  g_free(s.first);
  g_free(s.n);
  g_array_free(s.runs, TRUE);
  g_string_free(s.summary, TRUE);
  return code;
}
