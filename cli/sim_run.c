// SPDX-License-Identifier: Apache-2.0
// `weft sim`: one run, its progress, its table.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "cli/policy.h"
#include "cli/sim.h"
#include "tools/build_info.h"
#include "tools/printable.h"

#define NAME "sim"

typedef struct progress {
  bool shown;
  gint64 start_us, next_us;
  int64_t end_us;    // end of the run in virtual time; 0: unknown
  size_t trace_line; // the one that is wrong
} progress;

static void put_progress(const progress *p, int64_t now_us, double seconds) {
  const double now_s = (double)now_us / 1e6, end_s = (double)p->end_us / 1e6;
  g_autoptr(GString) line = g_string_new(NULL);
  if (p->end_us == 0) {
    g_string_append_printf(line, "%.1f s virtual", now_s);
  } else {
    const double share = now_s / end_s;
    g_string_append_printf(line, "%3.0f %%  %.1f s of %.1f s virtual", 100 * share, now_s, end_s);
    if (share > 0.01)
      g_string_append_printf(line, ", %.0f s left", seconds / share - seconds);
  }
  cli_progress_line(line->str);
}

static bool keep_on(void *user, int64_t now_us) {
  progress *p = user;
  const gint64 clock_us = p->shown ? g_get_monotonic_time() : 0;
  if (p->shown && clock_us >= p->next_us) {
    p->next_us = clock_us + 200000;
    put_progress(p, now_us, (double)(clock_us - p->start_us) / 1e6);
  }
  return cli_signal() == 0;
}

static void end_progress(const progress *p) {
  if (p->shown)
    cli_progress_line("");
}

static void put_table(const weft_sim_report *report, const char *folder) {
  const weft_sim_result *r = report->result;
  const bool bytes = report->service || report->parameters->fidelity == WEFT_SIM_BYTES;
  weft_print(stdout,
             "scenario %s, seed %" G_GUINT64_FORMAT ", %s %s: %.1f s of virtual time in %.2f s\n",
             report->parameters->name, report->parameters->seed, bytes ? "bytes by" : "fidelity",
             report->backend, (double)r->end_us / 1e6, report->wall_s);
  for (size_t i = 0; i < report->metrics->count; i++) {
    const weft_sim_metric *m = &report->metrics->items[i];
    // Whole numbers with all digits, others with six.
    if (isfinite(m->value) && fabs(m->value) < 1e15 && floor(m->value) == m->value)
      printf("  %-26s %.0f\n", m->name, m->value);
    else if (isfinite(m->value))
      printf("  %-26s %.6g\n", m->name, m->value);
  }
  printf("  %-26s %.0f events/s, %.0f packets/s, in %.0f MiB\n", "speed",
         (double)r->totals.events / report->wall_s, (double)r->totals.packets / report->wall_s,
         (double)r->memory_bytes / 0x1p20);
  fputs("state hash ", stdout);
  for (size_t i = 0; i < WEFT_SIM_HASH_BYTES; i++)
    printf("%02x", r->hash[i]);
  putchar('\n');
  if (folder)
    weft_print(stdout, "report: %s/report.html\n", folder);
}

static void machine_text(char *out, size_t room) {
  struct utsname u;
  if (uname(&u) != 0)
    snprintf(out, room, "unknown");
  else
    snprintf(out, room, "%.40s %.40s, %u processors", u.sysname, u.machine, g_get_num_processors());
}

// Writes the run's results into their folder.
static weft_status write_files(const sim_settings *settings, weft_sim_report *report,
                               const char *folder, bool all) {
  if (all && g_mkdir_with_parents(folder, 0777) != 0)
    return WEFT_E_IO;
  char *path = g_build_filename(folder, all ? "figures.gp" : "run.json", NULL);
  weft_status status =
      all ? weft_sim_write_all(report, folder) : weft_sim_write_run_json(report, path);
  if (status == WEFT_OK && all && settings->gnuplot)
    status = weft_sim_write_file(path, sim_put_gnuplot, report);
  else if (status == WEFT_OK && all)
    (void)unlink(path); // left by an earlier run, which had other tables
  g_free(path);
  return status;
}

static int bad_trace(const char *path, size_t line, weft_status status) {
  char at[32] = "";
  if (line > 0)
    snprintf(at, sizeof at, ":%zu", line);
  if (status == WEFT_E_BUFFER)
    return cli_error(NAME, CLI_USAGE, "%s%s: more arrivals than peers: raise peers", path, at);
  return cli_error(NAME, CLI_USAGE,
                   "%s%s: a trace has one arrival per line: its time in seconds, never decreasing, "
                   "and optionally, after a blank, the length of the stay in seconds",
                   path, at);
}

static bool of_code(weft_status status) {
  return status == WEFT_E_ARGUMENT || status == WEFT_E_SINGULAR || status == WEFT_E_UNSUPPORTED;
}

static int bad_code(const weft_sim_parameters *p) {
  return cli_error(NAME, CLI_USAGE,
                   "code %s with %u data and %u parity shards of %u bytes is not possible: there "
                   "is no such code or setting, or it does not support these sizes",
                   p->code, p->data_shards, p->parity_shards, p->shard_bytes);
}

// Reports why a run failed. path: what could not be written or read.
static int failed(weft_status status, const char *backend, const char *path) {
  if (cli_signal())
    return cli_error(NAME, CLI_SIGNAL + cli_signal(), "interrupted; earlier results are unchanged");
  if (status == WEFT_E_IO)
    return cli_error(NAME, CLI_IO, "%s: %s", path, strerror(errno));
  if (status == WEFT_E_STATE)
    return cli_error(
        NAME, CLI_DIFFERS,
        "the swarm made no progress for ten minutes: peers that lack data have no neighbour that "
        "sends it (as with --scheme source-only if the source does not know all peers)");
  if (status == WEFT_E_BACKEND_UNKNOWN || status == WEFT_E_BACKEND_ABSENT)
    return cli_error_backend(NAME, backend, status);
  return cli_error(NAME, CLI_MACHINE, "%s", weft_status_text(status));
}

static int finish(const sim_settings *settings, weft_sim_report *report, const char *folder,
                  bool all, sim_outcome *out) {
  weft_status status = WEFT_OK;
  out->metrics.count = 0;
  if (report->parameters->kind != WEFT_SIM_STORE)
    status = weft_sim_measure(report->parameters, report->result, &out->metrics);
  if (status != WEFT_OK)
    return failed(status, settings->backend, folder);
  for (size_t i = 0; report->service && i < report->service->own.count; i++)
    weft_sim_add_metric(&out->metrics, report->service->own.items[i].name,
                        report->service->own.items[i].value);
  report->metrics = &out->metrics;
  out->heading = weft_sim_summary_heading(report);
  out->row = weft_sim_summary_row(report);
  if (folder)
    status = write_files(settings, report, folder, all);
  if (status != WEFT_OK)
    return failed(status, settings->backend, folder);
  if (all)
    cli_leave_by_signals();
  if (all && settings->json) {
    cli_json_errors_end();
    json_t *run = weft_sim_run_json(report);
    char *const text = cli_json_text(run, JSON_COMPACT);
    printf("%s\n", text ? text : "{}");
    g_free(text);
    json_decref(run);
  } else if (all && !settings->quiet) {
    put_table(report, folder);
  }
  if (report->result->totals.wrong_bytes > 0)
    return cli_error(NAME, CLI_DIFFERS, "%" G_GUINT64_FORMAT " bytes came out wrong",
                     report->result->totals.wrong_bytes);
  return CLI_OK;
}

static uint64_t processor_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

// Returns processor time: a server's rate is what one core codes, even if the machine is busy.
static int64_t process_us(void *user) {
  (void)user;
  return (int64_t)(processor_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000);
}

// Runs a server or a store, in one process and on one thread.
static weft_status run_service(const sim_settings *settings, const weft_sim_parameters *parameters,
                               progress *p, weft_sim_service *service) {
  const weft_sim_service_options options = {.parameters = parameters,
                                            .backend = settings->backend,
                                            .user = p,
                                            .clock_us = process_us,
                                            .keep_on = keep_on,
                                            .trace_line = &p->trace_line};
  return parameters->kind == WEFT_SIM_STORE ? weft_sim_keep(&options, service)
                                            : weft_sim_serve(&options, service);
}

static uint64_t thread_ns(void) { return processor_ns(CLOCK_THREAD_CPUTIME_ID); }

static weft_status run_swarm(const sim_settings *settings, const weft_sim_parameters *parameters,
                             const weft_policy *policy, progress *p, weft_sim_swarm **swarm,
                             weft_sim_result *result) {
  const weft_sim_options options = {.parameters = parameters,
                                    .policy = policy,
                                    .threads = settings->threads,
                                    .backend = settings->backend,
                                    .transport = settings->transport,
                                    .thread_ns = thread_ns,
                                    .hooks = {.user = p, .keep_on = keep_on},
                                    .trace_line = &p->trace_line};
  WEFT_TRY(weft_sim_swarm_new(&options, swarm));
  const weft_status status = weft_sim_swarm_run(*swarm);
  if (status != WEFT_OK && status != WEFT_E_STATE) // a swarm that stalled has figures, too
    return status;
  WEFT_TRY(weft_sim_swarm_result(*swarm, result));
  return status;
}

// Checks, as far as possible before a run that may take hours, whether results can be written to
// the folder. Returns 0 or an errno. Creates nothing yet, as the run may be interrupted.
static int folder_possible(const char *folder) {
  struct stat about;
  g_autofree char *place = g_strdup(folder); // then its nearest parent that exists
  while (stat(place, &about) != 0) {
    if (errno != ENOENT)
      return errno;
    char *above = g_path_get_dirname(place);
    g_free(place);
    place = above;
  }
  if (!S_ISDIR(about.st_mode))
    return ENOTDIR;
  return access(place, W_OK | X_OK) == 0 ? 0 : errno;
}

// Loads the policy if the scheme is a file. Ranks go on together or not at all. Returns -1 to go
// on, else the exit code.
static int find_policy(const weft_sim_parameters *parameters, const weft_sim_transport *t,
                       cli_policy *out) {
  if (parameters->kind != WEFT_SIM_SWARM || parameters->scheme != WEFT_SIM_OWN)
    return -1;
  const int code = cli_policy_load(NAME, parameters->policy_file, out);
  uint64_t failed = code >= 0;
  if (t && code < 0 && (t->sum(t->user, &failed, 1) != WEFT_OK || failed))
    return CLI_OK; // another rank reports why
  if (t && code >= 0)
    (void)t->sum(t->user, &failed, 1);
  return code;
}

int sim_run(const sim_settings *settings, const weft_sim_parameters *parameters, const char *folder,
            bool all, sim_outcome *out) {
  const weft_sim_transport *t = settings->transport;
  cli_policy own = {0};
  const bool services = parameters->kind != WEFT_SIM_SWARM;
  if (services && t && t->ranks > 1)
    return cli_error(NAME, CLI_USAGE, "a server or a store must run on one rank");
  const int barred = all && folder && !t ? folder_possible(folder) : 0; // ranks must agree here
  if (barred)
    return cli_error(NAME, CLI_IO, "%s: %s", folder, strerror(barred));
  const int unfit = find_policy(parameters, t, &own);
  if (unfit >= 0)
    return unfit;
  const bool bulk = !services && parameters->mode == WEFT_SIM_BULK; // ends when all have everything
  progress p = {.shown = isatty(STDERR_FILENO) == 1 && !(t && t->rank),
                .start_us = g_get_monotonic_time(),
                .end_us = bulk ? 0 : parameters->duration_us};
  weft_sim_swarm *swarm = NULL;
  weft_sim_service service = {0};
  weft_sim_result result = {0};
  cli_catch_signals();
  const weft_status status = services
                                 ? run_service(settings, parameters, &p, &service)
                                 : run_swarm(settings, parameters, own.policy, &p, &swarm, &result);
  end_progress(&p);
  char machine[128];
  machine_text(machine, sizeof machine);
  weft_sim_report report = {.parameters = parameters,
                            .result = services ? &service.result : &result,
                            .service = services ? &service : NULL,
                            .policy = own.policy ? own.policy->name : NULL,
                            .policy_hash = own.hash,
                            .revision = weft_build_commit(),
                            .backend = services ? service.backend
                                       : swarm  ? weft_sim_swarm_backend(swarm)
                                                : "",
                            .machine = machine,
                            .ranks = t ? t->ranks : 1,
                            .threads = services ? 1 : settings->threads,
                            .wall_s = (double)(g_get_monotonic_time() - p.start_us) / 1e6};
  int code = CLI_OK;
  if ((status == WEFT_E_MALFORMED || (status == WEFT_E_BUFFER && p.trace_line)) && !cli_signal())
    code = bad_trace(parameters->trace_file, p.trace_line, status);
  else if (parameters->kind == WEFT_SIM_STORE && of_code(status))
    code = bad_code(parameters);
  else if (own.policy && status == WEFT_E_ARGUMENT && swarm)
    code = cli_policy_wrong(NAME, own.policy);
  else if (t && status == WEFT_E_ARGUMENT)
    code = cli_error(NAME, CLI_USAGE,
                     "all ranks need the same number of threads: set it with --threads");
  else if (status == WEFT_E_STOPPED && !cli_signal())
    code = CLI_OK; // another rank reports why
  else if (status != WEFT_OK && !(status == WEFT_E_STATE && result.no_progress && !all))
    // Nothing has been written by then, and only the trace is read.
    code = failed(status, settings->backend, parameters->trace_file);
  else if (!t || t->rank == 0)
    code = finish(settings, &report, folder, all, out);
  weft_sim_swarm_free(swarm);
  weft_sim_service_clear(&service);
  return code == CLI_OK && all ? cli_flush(NAME, code) : code;
}

void sim_outcome_clear(sim_outcome *outcome) {
  free(outcome->row);
  free(outcome->heading);
  *outcome = (sim_outcome){0};
}
