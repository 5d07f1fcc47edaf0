// SPDX-License-Identifier: Apache-2.0
// `weft sim --gnuplot`: scripts that draw a run's tables and a sweep's means.
#include <math.h>
#include <string.h>

#include "cli/sim_sweep.h"

// --- A run's

// Leaves out polluters, and viewers that never played, which have no delay.
#define AUDIENCE                                                                                   \
  "'peers.csv' using ($5==0?%s:NaN):(1.0) skip 1 smooth cnorm with lines title '%s'\n"

// With points, as there may be segments in some seconds only, or one second in all.
#define DOTTED "with linespoints pointtype 7 pointsize 0.2"

static void put_store(FILE *to) {
  fputs("set xlabel 'hours'\nset ylabel 'readable objects'\n"
        "plot 'series.csv' using 1:3 skip 1 with lines title 'coded', \\\n"
        "     '' using 1:4 skip 1 with lines title 'copied'\n"
        "set ylabel 'objects lost'\nset yrange [0:*]\n"
        "plot 'series.csv' using 1:5 skip 1 with lines title 'coded', \\\n"
        "     '' using 1:6 skip 1 with lines title 'copied'\n"
        "set ylabel 'MB moved by repairs per hour'\n"
        "plot 'series.csv' using 1:($7*1e-6) skip 1 with lines title 'coded', \\\n"
        "     '' using 1:($8*1e-6) skip 1 with lines title 'copied'\n",
        to);
}

// Returns whether there is a point to plot: to gnuplot a plot without one is an error that ends it.
static bool any_due(const weft_sim_result *r) {
  for (size_t i = 0; i < r->second_count; i++)
    if (r->seconds[i].due)
      return true;
  return false;
}

static bool any_of_audience(const weft_sim_result *r, bool paced) {
  for (size_t i = 0; i < r->viewer_count; i++) {
    const weft_sim_viewer *v = &r->viewers[i];
    if (weft_sim_is_audience(v) && (paced ? v->startup_us >= 0 : v->done))
      return true;
  }
  return false;
}

static void put_stream(const weft_sim_parameters *p, const weft_sim_result *r, FILE *to) {
  const bool paced = r->segment_us > 0;
  fputs("set xlabel 'seconds'\nset xrange [0:*]\n", to);
  if (paced && any_due(r))
    fputs("set ylabel 'continuity'\nset yrange [0:1.02]\n"
          "plot 'series.csv' using 1:($3>0?$4/$3:NaN) skip 1 " DOTTED " title 'continuity'\n",
          to);
  fputs("set ylabel 'Mbit/s'\nset yrange [0:*]\n"
        "plot 'series.csv' using 1:($6*8e-6) skip 1 " DOTTED " title 'source'",
        to);
  if (p->kind == WEFT_SIM_SWARM)
    fputs(", \\\n     '' using 1:($7*8e-6) skip 1 " DOTTED " title 'peers'", to);
  fputs("\nset xrange [*:*]\nset yrange [0:1.02]\n", to);
  if (!any_of_audience(r, paced))
    return;
  if (paced)
    fprintf(to,
            "set xlabel 'start-up delay, seconds'\nset ylabel 'share of viewers that played'\n"
            "plot " AUDIENCE,
            "$9", "start-up delay");
  else
    fprintf(to,
            "set xlabel 'seconds since joining'\nset ylabel 'share of viewers that have the whole "
            "stream'\n"
            "plot " AUDIENCE,
            "$8-$6", "time to fetch");
}

weft_status sim_put_gnuplot(void *user, FILE *to) {
  const weft_sim_report *report = user;
  fputs("# gnuplot figures.gp makes figures.pdf from the tables beside it\n"
        "set datafile separator ','\nset terminal pdfcairo size 12cm,8cm\n"
        "set datafile missing NaN\nset output 'figures.pdf'\nset key below\nset grid\n",
        to);
  if (report->parameters->kind == WEFT_SIM_STORE)
    put_store(to);
  else
    put_stream(report->parameters, report->result, to);
  return WEFT_OK;
}

// --- A sweep's

// Returns the first of these figures that some point of the grid has.
static size_t figure_of(const sim_sweep_state *s) {
  static const char *const figures[] = {"continuity", "done_p50_s", "coded_read_availability"};
  for (size_t f = 0; f < G_N_ELEMENTS(figures); f++)
    for (size_t i = 0; i < s->names.count; i++)
      for (size_t p = 0; p < s->points && strcmp(s->names.items[i].name, figures[f]) == 0; p++)
        if (isfinite(sim_sweep_mean_of(s, p, i).mean))
          return i;
  return 0;
}

// Returns whether gnuplot reads the values as the numbers they mean: none has a unit.
static bool is_plain(const sim_sweep_axis *axis) {
  for (size_t i = 0; i < axis->count; i++) {
    char *end;
    (void)g_ascii_strtod(axis->values[i], &end);
    if (end == axis->values[i] || *end)
      return false;
  }
  return true;
}

// Returns the title of a point's line, for gnuplot's single quotes, in which a quote is doubled.
// File names may contain any bytes.
static char *line_title(const sim_sweep_state *s, size_t point) {
  GString *out = g_string_new("");
  for (size_t i = 0; i + 1 < s->axis_count; i++)
    g_string_append_printf(out, "%s%s %s", i ? ", " : "", weft_sim_key_at(s->axes[i].key).name,
                           sim_sweep_value(s, point, i));
  (void)g_string_replace(out, "'", "''", 0);
  char *valid = g_utf8_make_valid(out->str, (gssize)out->len);
  g_string_free(out, TRUE);
  return valid;
}

char *sim_sweep_gnuplot(const sim_sweep_state *s) {
  const size_t last = s->axis_count - 1, figure = figure_of(s), y = s->axis_count + 2 + 2 * figure;
  const size_t lines = s->points / s->axes[last].count; // the last axis varies slowest
  const char *key = weft_sim_key_at(s->axes[last].key).name, *name = s->names.items[figure].name;
  const bool intervals = s->seeds > 1, plain = is_plain(&s->axes[last]);
  GString *out = g_string_new("# gnuplot means.gp makes means.pdf from means.csv\n"
                              "set datafile separator ','\n"
                              "set terminal pdfcairo noenhanced size 12cm,8cm\n"
                              "set output 'means.pdf'\nset grid\nset key below\n"
                              "set offsets graph 0.05, graph 0.05, graph 0.05, graph 0.05\n");
  g_string_append_printf(out, "set xlabel '%s'\nset ylabel '%s'\n%s", key, name,
                         intervals ? "set title 'means and 95 % intervals'\n" : "");
  if (strcmp(name, "done_p50_s") != 0) // shares, whose intervals may reach beyond all
    g_string_append(out, "set yrange [*:*<1.02]\n");
  for (size_t line = 0; line < lines; line++) {
    char *title = line_title(s, line);
    g_string_append(out, line ? ", \\\n     '' " : "plot 'means.csv' ");
    g_string_append_printf(out, "skip 1 every %zu::%zu using ", lines, line);
    if (plain)
      g_string_append_printf(out, "%zu:%zu", s->axis_count, y);
    else
      g_string_append_printf(out, "0:%zu", y);
    if (intervals)
      g_string_append_printf(out, ":%zu", y + 1);
    if (!plain)
      g_string_append_printf(out, ":xtic(%zu)", s->axis_count);
    g_string_append_printf(out, " with %s ", intervals ? "yerrorlines" : "linespoints");
    g_string_append_printf(out, *title ? "title '%s'" : "notitle%s", title);
    g_free(title);
  }
  g_string_append_c(out, '\n');
  return g_string_free(out, FALSE);
}
