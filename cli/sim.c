// SPDX-License-Identifier: Apache-2.0
// `weft sim`: its options, most of which are the keys of scenario files.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/sim.h"

#define NAME "sim"

static const char summary[] =
    "SCENARIO is a shipped one (--list), a file, or the run.json of a run to repeat; the default\n"
    "is flash-crowd. Runs it in virtual time with the peer's own engine, reports what viewers saw\n"
    "and what the source sent, and writes run.json, summary.csv, peers.csv, series.csv,\n"
    "trace.jsonl and report.html into a folder.";

static const char description[] =
    "In brackets: the default where neither the scenario nor a flag sets the key. Numbers accept\n"
    "k, M, G; times need a unit (20 ms, 5 s, 10 min, 2 h, 3 d); shares may be in percent (2 %).\n"
    "The same scenario and seed give the same state hash with any number of threads (except for a\n"
    "server with coding-rate 0, which codes as fast as this machine can). A sweep can be killed\n"
    "and started again: finished runs are kept.\n"
    "Exit codes: 0 done; 1 some byte came out wrong, or a bulk run made no progress; 2 command "
    "line\n"
    "or scenario; 3 input or output; 4 memory, backend or device; 130 interrupted by Ctrl-C,\n"
    "143 by SIGTERM, 129 by a terminal that closed.";

typedef struct words {
  char *out, *backend, *show;
  char **sweeps, **scenarios;
  gint64 threads, seeds;
  gboolean json, list, keys, no_files, gnuplot, quiet;
  char **values; // (keys)
} words;

static void free_words(words *w) {
  for (size_t i = 0; i < weft_sim_key_count(); i++)
    g_free(w->values[i]);
  g_free(w->values);
  g_free(w->out);
  g_free(w->show);
  g_free(w->backend);
  g_strfreev(w->sweeps);
  g_strfreev(w->scenarios);
}

static int parse(int argc, char **argv, words *w) {
  const GOptionEntry own[] = {
      {"out", 'o', 0, G_OPTION_ARG_FILENAME, &w->out, "Folder for the results (weft-sim-out)",
       "DIR"},
      {"no-files", 0, 0, G_OPTION_ARG_NONE, &w->no_files, "Write no files", NULL},
      {"sweep", 0, 0, G_OPTION_ARG_STRING_ARRAY, &w->sweeps,
       "Run once for each of these values; repeat the option for a grid", "KEY=V,V"},
      {"seeds", 0, 0, G_OPTION_ARG_INT64, &w->seeds,
       "Runs of each point, with consecutive seeds (1)", "N"},
      {"threads", 't', 0, G_OPTION_ARG_INT64, &w->threads, "Threads (one per processor)", "N"},
      {"backend", 'b', 0, G_OPTION_ARG_STRING, &w->backend,
       "Backend row for real bytes (the best one; see weft backends)", "NAME"},
      {"json", 0, 0, G_OPTION_ARG_NONE, &w->json, "Print run.json instead of the table", NULL},
      {"gnuplot", 0, 0, G_OPTION_ARG_NONE, &w->gnuplot,
       "Also write a gnuplot script that plots the tables", NULL},
      {"quiet", 'q', 0, G_OPTION_ARG_NONE, &w->quiet, "Print no table", NULL},
      {"list", 0, 0, G_OPTION_ARG_NONE, &w->list, "List the shipped scenarios", NULL},
      {"show", 0, 0, G_OPTION_ARG_STRING, &w->show,
       "Print the file of a shipped scenario, as a start for your own", "NAME"},
      {"keys", 0, 0, G_OPTION_ARG_NONE, &w->keys,
       "Print a scenario file with all keys in their groups, their meanings and defaults", NULL},
      {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &w->scenarios, NULL, "[SCENARIO]"}};
  const size_t keys = weft_sim_key_count(), fixed = G_N_ELEMENTS(own);
  GOptionEntry *entries = g_new0(GOptionEntry, fixed + keys + 1);
  memcpy(entries, own, sizeof own);
  char **about = g_new0(char *, keys + 1); // with defaults
  weft_sim_parameters defaults;
  weft_sim_defaults(&defaults);
  for (size_t i = 0; i < keys; i++) {
    const weft_sim_key key = weft_sim_key_at(i);
    char text[WEFT_SIM_TEXT];
    weft_sim_key_text(&defaults, i, text);
    about[i] = g_strdup_printf(*text ? "%s [%s]" : "%s", key.help, text);
    entries[fixed + i] =
        (GOptionEntry){key.name, 0, 0, G_OPTION_ARG_STRING, &w->values[i], about[i], "VALUE"};
  }
  const int code = cli_parse(NAME, summary, description, entries, argc, argv);
  g_strfreev(about);
  g_free(entries);
  return code;
}

static int list(void) {
  const char *about, *name;
  for (size_t i = 0; (name = weft_sim_shipped(i, &about)); i++)
    printf("%-16s %.*s\n", name, (int)strcspn(about, "\n"), about);
  return cli_flush(NAME, CLI_OK);
}

static int show(const char *name) {
  char why[WEFT_SIM_TEXT];
  const char *text = weft_sim_shipped_text(name, why);
  if (!text)
    return cli_error(NAME, CLI_USAGE, "%s", why);
  fputs(text, stdout);
  return cli_flush(NAME, CLI_OK);
}

// Prints a scenario with every key, which means the same as an empty one.
static int all_keys(void) {
  weft_sim_parameters defaults;
  const char *group = "";
  weft_sim_defaults(&defaults);
  puts("# Every key of a scenario, with its default.");
  for (size_t i = 0; i < weft_sim_key_count(); i++) {
    const weft_sim_key key = weft_sim_key_at(i);
    char text[WEFT_SIM_TEXT];
    weft_sim_key_text(&defaults, i, text);
    if (strcmp(key.group, group) != 0)
      printf("\n[%s]\n", key.group);
    group = key.group;
    printf(*text ? "# %s\n%s = %s\n" : "# %s\n#%s =%s\n", key.help, key.name, text);
  }
  puts("\n# An access class of your own, used if classes names it. Only upload and download "
       "(bits/s)\n# must be given.\n#[class mine]\n#upload = 3M\n#download = 20M\n"
       "# Rate of the uplink's line, if peers send more slowly than it carries (bits/s)\n#line =\n"
       "# One-way delay of the access\n#delay = 12 ms\n"
       "# Share of packets lost at the access, and how many are lost in a row on average\n"
       "#loss = 0.1 %\n#burst = 1\n"
       "# Share of peers behind a NAT, and share of these whose NAT is symmetric\n#nat = 70 %\n"
       "#symmetric = 10 %");
  return cli_flush(NAME, CLI_OK);
}

static int load(const char *scenario, const words *w, weft_sim_parameters *p) {
  char why[WEFT_SIM_TEXT];
  weft_sim_defaults(p);
  if (!weft_sim_load_scenario(p, scenario, why))
    return cli_error(NAME, CLI_USAGE, "%s", why);
  for (size_t i = 0; i < weft_sim_key_count(); i++)
    if (w->values[i] && !weft_sim_set(p, weft_sim_key_at(i).name, w->values[i], why))
      return cli_error(NAME, CLI_USAGE, "--%s", why);
  return -1;
}

bool sim_check(const sim_settings *settings, weft_sim_parameters *p, char why[WEFT_SIM_TEXT]) {
  const weft_sim_transport *t = settings->transport;
  return t ? weft_sim_check_ranks(p, t->ranks, t->rank_bytes, why) : weft_sim_check(p, why);
}

// Refuses a flag that has no effect because of another key's value, unless a sweep may set that
// key. Returns -1 to go on, else the exit code.
static int idle_flag(const words *w, const weft_sim_parameters *p) {
  const struct {
    const char *flag, *needs;
    bool used;
  } flags[] = {{"matrix", "latency = matrix", p->latency == WEFT_SIM_MATRIX},
               {"trace", "arrival = trace", p->arrival == WEFT_SIM_TRACE}};
  for (size_t i = 0; i < G_N_ELEMENTS(flags) && !w->sweeps; i++)
    for (size_t k = 0; k < weft_sim_key_count() && !flags[i].used; k++)
      if (w->values[k] && strcmp(weft_sim_key_at(k).name, flags[i].flag) == 0)
        return cli_error(NAME, CLI_USAGE, "--%s needs %s", flags[i].flag, flags[i].needs);
  return -1;
}

void sim_remark_idle(const sim_settings *settings, const weft_sim_parameters *p) {
  const char *idle = weft_sim_idle(p);
  if (idle && (!settings->transport || settings->transport->rank == 0))
    cli_error(NAME, CLI_OK, "%s: %s", p->name, idle);
}

static int run(const char *scenario, const words *w, const char *command,
               weft_sim_transport *transport) {
  weft_sim_parameters p;
  char why[WEFT_SIM_TEXT];
  if (w->seeds < 1 || w->seeds > 100000 || w->threads < 0 || w->threads > 1024)
    return cli_error(NAME, CLI_USAGE,
                     "--seeds must be 1..100000 and --threads 0..1024, not %" G_GINT64_FORMAT
                     " and %" G_GINT64_FORMAT,
                     w->seeds, w->threads);
  if (w->no_files && (w->gnuplot || w->out))
    return cli_error(NAME, CLI_USAGE, "--%s is for files, so it cannot be used with --no-files",
                     w->gnuplot ? "gnuplot" : "out");
  int code = load(scenario, w, &p);
  if (code < 0)
    code = idle_flag(w, &p);
  if (code >= 0)
    return code;
  const sim_settings settings = {.backend = w->backend,
                                 .threads =
                                     w->threads ? (size_t)w->threads : g_get_num_processors(),
                                 .folder = w->no_files ? NULL
                                           : w->out    ? w->out
                                                       : "weft-sim-out",
                                 .command = command,
                                 .json = w->json,
                                 .quiet = w->quiet,
                                 .gnuplot = w->gnuplot,
                                 .transport = transport};
  if (w->sweeps || w->seeds > 1) {
    if (!settings.folder)
      return cli_error(NAME, CLI_USAGE,
                       "a sweep needs its files, so it cannot be used with --no-files");
    if (w->json)
      return cli_error(NAME, CLI_USAGE,
                       "--json is for one run; a sweep writes a run.json for each run");
    if (w->gnuplot && !w->sweeps)
      return cli_error(NAME, CLI_USAGE,
                       "--gnuplot plots runs over a swept key, so it needs --sweep");
    return sim_sweep(&settings, &p, w->sweeps, (size_t)w->seeds);
  }
  if (!sim_check(&settings, &p, why))
    return cli_error(NAME, CLI_USAGE, "%s: %s", p.name, why);
  sim_remark_idle(&settings, &p);
  sim_outcome outcome = {0};
  const int result = sim_run(&settings, &p, settings.folder, true, &outcome);
  sim_outcome_clear(&outcome);
  return result;
}

// Returns the command line; words that a shell would change are quoted.
static char *command_text(int argc, char **argv) {
  GString *out = g_string_new("weft");
  for (int i = 0; i < argc; i++) {
    char *word = i ? g_utf8_make_valid(argv[i], -1) : g_strdup(NAME);
    const size_t plain = strspn(word, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_@%+=:,./-");
    char *quoted = *word && !word[plain] ? g_strdup(word) : g_shell_quote(word);
    g_string_append_printf(out, " %s", quoted);
    g_free(quoted);
    g_free(word);
  }
  return g_string_free(out, FALSE);
}

int sim_command(int argc, char **argv, weft_sim_transport *transport) {
  char *command = command_text(argc, argv); // before parsing removes words
  words w = {.seeds = 1, .values = g_new0(char *, weft_sim_key_count())};
  int code = parse(argc, argv, &w);
  if (code < 0 && w.scenarios && w.scenarios[1])
    code = cli_error(NAME, CLI_USAGE,
                     "accepts one scenario, but '%s' is another (see weft help " NAME ")",
                     w.scenarios[1]);
  if (code < 0)
    code = w.list   ? list()
           : w.keys ? all_keys()
           : w.show ? show(w.show)
                    : run(w.scenarios ? w.scenarios[0] : "flash-crowd", &w, command, transport);
  free_words(&w);
  g_free(command);
  return code;
}

int cli_sim(int argc, char **argv) { return sim_command(argc, argv, NULL); }
