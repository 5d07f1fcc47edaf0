// SPDX-License-Identifier: Apache-2.0
// `weft sim`: grids of parameters times seeds. Each run leaves its own run.json, named by all its
// parameters, before the next starts; what is there already is not run again.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "cli/sim.h"

#define NAME "sim"
enum { AXES = 8, VALUES = 64, ID_BYTES = 8 };

typedef struct axis {
  char *key;
  char **values;
  size_t count;
} axis;

typedef struct sweep {
  const sim_settings *settings;
  axis axes[AXES];
  size_t axis_count, points, seeds;
  GString *summary;     // of all runs that are done
  double *sum, *square; // (points, metrics)
  size_t *n;            // (points)
  weft_sim_metrics names;
} sweep;

// --- The grid

static int read_axes(sweep *s, char *const *texts) {
  s->points = 1;
  for (size_t i = 0; texts && texts[i]; i++) {
    const char *equals = strchr(texts[i], '=');
    if (!equals || s->axis_count == AXES)
      return cli_error(NAME, CLI_USAGE, "--sweep takes KEY=VALUE,VALUE..., %d times at most", AXES);
    axis *a = &s->axes[s->axis_count++];
    a->key = g_strndup(texts[i], (gsize)(equals - texts[i]));
    a->values = g_strsplit(equals + 1, ",", VALUES);
    a->count = g_strv_length(a->values);
    s->points *= a->count;
  }
  return -1;
}

static const char *value_at(const sweep *s, size_t point, size_t index) {
  for (size_t i = 0; i < index; i++)
    point /= s->axes[i].count;
  return s->axes[index].values[point % s->axes[index].count];
}

static int set_point(const sweep *s, size_t point, uint64_t seed, weft_sim_parameters *p) {
  char why[WEFT_SIM_TEXT];
  p->seed = seed;
  for (size_t i = 0; i < s->axis_count; i++)
    if (!weft_sim_set(p, s->axes[i].key, value_at(s, point, i), why))
      return cli_error(NAME, CLI_USAGE, "--sweep: %s", why);
  return weft_sim_check(p, why) ? -1 : cli_error(NAME, CLI_USAGE, "%s: %s", p->name, why);
}

static void id_of(const weft_sim_parameters *p, char out[2 * ID_BYTES + 1]) {
  uint8_t digest[crypto_generichash_BYTES];
  crypto_generichash_state state;
  char text[WEFT_SIM_TEXT];
  (void)crypto_generichash_init(&state, NULL, 0, sizeof digest);
  (void)crypto_generichash_update(&state, (const uint8_t *)p->name, sizeof p->name);
  (void)crypto_generichash_update(&state, (const uint8_t *)p->classes, sizeof p->classes);
  for (size_t i = 0; i < weft_sim_key_count(); i++) {
    weft_sim_key_text(p, i, text);
    (void)crypto_generichash_update(&state, (const uint8_t *)text, strlen(text) + 1);
  }
  (void)crypto_generichash_final(&state, digest, sizeof digest);
  sodium_bin2hex(out, 2 * ID_BYTES + 1, digest, ID_BYTES);
}

// --- One run's figures, from its file or by running it

// False: there is no such file, or it is not whole.
static bool read_metrics(const char *path, weft_sim_metrics *out) {
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
  json_decref(run);
  return out->count > 0;
}

static void add_row(sweep *s, const weft_sim_parameters *p, size_t point,
                    const weft_sim_metrics *m) {
  if (s->summary->len == 0) {
    g_string_append(s->summary, "scenario,seed");
    for (size_t i = 0; i < s->axis_count; i++)
      g_string_append_printf(s->summary, ",%s", s->axes[i].key);
    for (size_t i = 0; i < m->count; i++)
      g_string_append_printf(s->summary, ",%s", m->items[i].name);
    g_string_append_c(s->summary, '\n');
    s->names = *m;
  }
  g_string_append_printf(s->summary, "%s,%" G_GUINT64_FORMAT, p->name, p->seed);
  for (size_t i = 0; i < s->axis_count; i++)
    g_string_append_printf(s->summary, ",%s", value_at(s, point, i));
  for (size_t i = 0; i < m->count; i++) {
    if (isfinite(m->items[i].value))
      g_string_append_printf(s->summary, ",%.9g", m->items[i].value);
    else
      g_string_append_c(s->summary, ',');
    s->sum[point * WEFT_SIM_METRICS + i] += m->items[i].value;
    s->square[point * WEFT_SIM_METRICS + i] += m->items[i].value * m->items[i].value;
  }
  g_string_append_c(s->summary, '\n');
  s->n[point]++;
}

static weft_status put_text(void *user, FILE *to) {
  fputs(user, to);
  return WEFT_OK;
}

static int write_text(const sweep *s, const char *name, const char *text) {
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

static int do_run(sweep *s, const weft_sim_parameters *p, size_t point) {
  char id[2 * ID_BYTES + 1];
  id_of(p, id);
  char *folder = g_build_filename(s->settings->folder, "runs", id, NULL);
  char *path = g_build_filename(folder, "run.json", NULL);
  sim_outcome outcome = {0};
  int code = -1;
  if (g_mkdir_with_parents(folder, 0777) != 0)
    code = cli_error(NAME, CLI_IO, "%s: %s", folder, g_strerror(errno));
  else if (!read_metrics(path, &outcome.metrics)) {
    code = sim_run(s->settings, p, folder, false, &outcome);
    code = code == CLI_OK ? -1 : code;
  }
  if (code < 0) {
    add_row(s, p, point, &outcome.metrics);
    code = write_text(s, "summary.csv", s->summary->str);
  }
  sim_outcome_clear(&outcome);
  g_free(folder);
  g_free(path);
  return code;
}

// --- Means

// Half of the 95 % confidence interval of a mean of n values: Student's t.
static double half_width(double sum, double square, size_t n) {
  static const double t[] = {0,     0,     12.706, 4.303, 3.182, 2.776, 2.571,
                             2.447, 2.365, 2.306,  2.262, 2.228, 2.201, 2.179,
                             2.160, 2.145, 2.131,  2.120, 2.110, 2.101, 2.093};
  if (n < 2)
    return (double)NAN;
  const double count = (double)n, mean = sum / count;
  const double variance = (square - count * mean * mean) / (count - 1);
  const double factor = n < G_N_ELEMENTS(t) ? t[n] : 1.96 + 2.5 / (count - 1);
  return factor * sqrt(variance > 0 ? variance / count : 0);
}

static char *means_text(const sweep *s) {
  GString *out = g_string_new("");
  for (size_t i = 0; i < s->axis_count; i++)
    g_string_append_printf(out, "%s,", s->axes[i].key);
  g_string_append(out, "runs");
  for (size_t i = 0; i < s->names.count; i++)
    g_string_append_printf(out, ",%s,%s_ci95", s->names.items[i].name, s->names.items[i].name);
  g_string_append_c(out, '\n');
  for (size_t point = 0; point < s->points; point++) {
    for (size_t i = 0; i < s->axis_count; i++)
      g_string_append_printf(out, "%s,", value_at(s, point, i));
    g_string_append_printf(out, "%zu", s->n[point]);
    for (size_t i = 0; i < s->names.count; i++) {
      const double sum = s->sum[point * WEFT_SIM_METRICS + i];
      const double half = half_width(sum, s->square[point * WEFT_SIM_METRICS + i], s->n[point]);
      if (isfinite(sum) && s->n[point])
        g_string_append_printf(out, ",%.9g", sum / (double)s->n[point]);
      else
        g_string_append_c(out, ',');
      if (isfinite(half))
        g_string_append_printf(out, ",%.3g", half);
      else
        g_string_append_c(out, ',');
    }
    g_string_append_c(out, '\n');
  }
  return g_string_free(out, FALSE);
}

static void put_means(const sweep *s) {
  static const char *const shown[] = {"continuity",    "startup_p95_s",     "stalls_per_hour",
                                      "server_saving", "source_streams",    "share_useful",
                                      "coding_load",   "answer_p95_ms",     "coded_lost",
                                      "copied_lost",   "coded_repair_bytes"};
  for (size_t i = 0; i < s->axis_count; i++)
    printf("%-14s ", s->axes[i].key);
  for (size_t m = 0; m < G_N_ELEMENTS(shown); m++)
    for (size_t i = 0; i < s->names.count; i++)
      if (strcmp(s->names.items[i].name, shown[m]) == 0)
        printf("%22s", shown[m]);
  putchar('\n');
  for (size_t point = 0; point < s->points; point++) {
    for (size_t i = 0; i < s->axis_count; i++)
      printf("%-14s ", value_at(s, point, i));
    for (size_t m = 0; m < G_N_ELEMENTS(shown); m++)
      for (size_t i = 0; i < s->names.count; i++)
        if (strcmp(s->names.items[i].name, shown[m]) == 0) {
          const double sum = s->sum[point * WEFT_SIM_METRICS + i];
          const double half = half_width(sum, s->square[point * WEFT_SIM_METRICS + i], s->n[point]);
          char text[40] = "-";
          if (isfinite(half))
            g_snprintf(text, sizeof text, "%.4g +- %.2g", sum / (double)s->n[point], half);
          else if (isfinite(sum))
            g_snprintf(text, sizeof text, "%.4g", sum / (double)s->n[point]);
          printf("%22s", text);
        }
    putchar('\n');
  }
  printf("%zu runs in %s: summary.csv, means.csv (95 %% confidence intervals)\n",
         s->points * s->seeds, s->settings->folder);
}

static int finish(sweep *s) {
  char *means = means_text(s);
  int code = write_text(s, "means.csv", means);
  g_free(means);
  if (code < 0 && s->settings->gnuplot && s->axis_count) {
    size_t column = 0;
    while (column < s->names.count && strcmp(s->names.items[column].name, "continuity") != 0)
      column++;
    const size_t first = s->axis_count + 2 + 2 * column;
    char *script = g_strdup_printf(
        "# gnuplot means.gp makes means.pdf from means.csv\nset datafile separator ','\n"
        "set terminal pdfcairo size 12cm,8cm\nset output 'means.pdf'\nset grid\n"
        "set xlabel '%s'\nset ylabel 'continuity'\n"
        "plot 'means.csv' using %zu:%zu:%zu skip 1 with yerrorlines title 'mean, 95 %% interval'\n",
        s->axes[s->axis_count - 1].key, s->axis_count, first, first + 1);
    code = write_text(s, "means.gp", script);
    g_free(script);
  }
  if (code >= 0)
    return code;
  if (!s->settings->quiet)
    put_means(s);
  return cli_flush(NAME, CLI_OK);
}

int sim_sweep(const sim_settings *settings, const weft_sim_parameters *parameters,
              char *const *sweeps, size_t seeds) {
  sweep s = {.settings = settings, .seeds = seeds, .summary = g_string_new("")};
  int code = settings->transport
                 ? cli_error(NAME, CLI_USAGE, "a sweep runs on one rank: start several instead")
                 : read_axes(&s, sweeps);
  if (code < 0) {
    s.sum = g_new0(double, s.points *WEFT_SIM_METRICS);
    s.square = g_new0(double, s.points *WEFT_SIM_METRICS);
    s.n = g_new0(size_t, s.points);
  }
  // All points before the first run: what cannot be run is told at once.
  for (size_t i = 0; code < 0 && i < s.points; i++) {
    weft_sim_parameters p = *parameters;
    code = set_point(&s, i, parameters->seed, &p);
  }
  for (size_t i = 0; code < 0 && i < s.points * seeds; i++) {
    weft_sim_parameters p = *parameters;
    code = set_point(&s, i / seeds, parameters->seed + i % seeds, &p);
    if (code < 0)
      code = do_run(&s, &p, i / seeds);
  }
  if (code < 0)
    code = finish(&s);
  for (size_t i = 0; i < s.axis_count; i++) {
    g_free(s.axes[i].key);
    g_strfreev(s.axes[i].values);
  }
  g_free(s.sum);
  g_free(s.square);
  g_free(s.n);
  g_string_free(s.summary, TRUE);
  return code;
}
