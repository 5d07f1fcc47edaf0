// SPDX-License-Identifier: Apache-2.0
// A run's tables as CSV, JSON and JSONL.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glib.h>

#include "sim/report/report.h"
#include "sim/scenario/scenario.h"

weft_status weft_sim_write_file(const char *path, weft_sim_writer *write, void *user) {
  char *beside = malloc(strlen(path) + sizeof ".part");
  if (!beside)
    return WEFT_E_NOMEM;
  sprintf(beside, "%s.part", path);
  FILE *to = fopen(beside, "w");
  weft_status status = to ? write(user, to) : WEFT_E_IO;
  if (to) {
    const bool good = !ferror(to) && fflush(to) == 0;
    const int why = errno;
    if (fclose(to) != 0 || !good)
      status = status == WEFT_OK ? WEFT_E_IO : status;
    if (!good)
      errno = why;
  }
  if (status == WEFT_OK && rename(beside, path) != 0)
    status = WEFT_E_IO;
  if (status != WEFT_OK && to) {
    const int why = errno;
    unlink(beside);
    errno = why;
  }
  free(beside);
  return status;
}

static const char *hex(const weft_sim_result *r, char out[2 * WEFT_SIM_HASH_BYTES + 1]) {
  for (size_t i = 0; i < WEFT_SIM_HASH_BYTES; i++)
    sprintf(out + 2 * i, "%02x", r->hash[i]);
  return out;
}

// --- run.json

static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static json_t *metrics_json(const weft_sim_metrics *m) {
  json_t *out = json_object();
  for (size_t i = 0; i < m->count; i++)
    json_object_set_new(out, m->items[i].name, number(m->items[i].value));
  return out;
}

json_t *weft_sim_classes_json(const weft_sim_parameters *p) {
  json_t *classes = json_array();
  for (size_t i = 0; i < p->class_count; i++) {
    const weft_sim_class *c = &p->classes[i];
    json_array_append_new(
        classes,
        json_pack("{s:s, s:f, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f}", "name", c->name, "share",
                  c->share, "upload_bits_per_s", (json_int_t)c->up_bits_per_s,
                  "download_bits_per_s", (json_int_t)c->down_bits_per_s, "line_bits_per_s",
                  (json_int_t)c->line_bits_per_s, "delay_ms", (double)c->delay_us / 1000, "loss",
                  c->loss, "burst", c->burst, "nat", c->nat, "symmetric", c->symmetric));
  }
  return classes;
}

static json_t *parameters_json(const weft_sim_parameters *p) {
  json_t *out = json_object();
  char text[WEFT_SIM_TEXT];
  for (size_t i = 0; i < weft_sim_key_count(); i++) {
    const weft_sim_key key = weft_sim_key_at(i);
    weft_sim_key_text(p, i, text);
    json_t *group = json_object_get(out, key.group);
    if (!group) {
      group = json_object();
      json_object_set_new(out, key.group, group);
    }
    char *valid = g_utf8_make_valid(text, -1); // a file's name may be any bytes
    json_object_set_new(group, key.name, json_string(valid));
    g_free(valid);
  }
  json_object_set_new(out, "classes", weft_sim_classes_json(p));
  return out;
}

static json_t *effort_json(const weft_sim_effort *e) {
  return json_pack("{s:I, s:f, s:f, s:f}", "windows", (json_int_t)e->windows, "lanes_s",
                   (double)e->lanes_ns / 1e9, "longest_s", (double)e->longest_ns / 1e9, "between_s",
                   (double)e->between_ns / 1e9);
}

json_t *weft_sim_run_json(const weft_sim_report *report) {
  const weft_sim_result *r = report->result;
  char hash[2 * WEFT_SIM_HASH_BYTES + 1];
  json_t *out = json_pack(
      "{s:i, s:s, s:I, s:s, s:s, s:s, s:I, s:I, s:s, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:b}",
      "version", 1, "scenario", report->parameters->name, "seed",
      (json_int_t)report->parameters->seed, "revision", report->revision, "machine",
      report->machine, "backend", report->backend, "ranks", (json_int_t)report->ranks, "threads",
      (json_int_t)report->threads, "state_hash", hex(r, hash), "wall_s", report->wall_s,
      "virtual_s", (double)r->end_us / 1e6, "events", (json_int_t)r->totals.events, "packets",
      (json_int_t)r->totals.packets, "messages", (json_int_t)r->totals.messages, "memory_bytes",
      (json_int_t)r->memory_bytes, "window_us", (json_int_t)r->window_us, "trace_cut",
      r->trace_cut);
  if (!out)
    return NULL;
  if (report->policy)
    json_object_set_new(
        out, "policy",
        json_pack("{s:s, s:s}", "name", report->policy, "blake2b", report->policy_hash));
  if (r->effort.lanes_ns)
    json_object_set_new(out, "effort", effort_json(&r->effort));
  json_object_set_new(out, "parameters", parameters_json(report->parameters));
  json_object_set_new(out, "metrics", metrics_json(report->metrics));
  return out;
}

static weft_status put_json(void *user, FILE *to) {
  json_t *run = weft_sim_run_json(user);
  if (!run)
    return WEFT_E_NOMEM;
  const int failed = json_dumpf(run, to, JSON_INDENT(2));
  json_decref(run);
  fputc('\n', to);
  return failed ? WEFT_E_IO : WEFT_OK;
}

weft_status weft_sim_write_run_json(const weft_sim_report *report, const char *path) {
  return weft_sim_write_file(path, put_json, (void *)(uintptr_t)report);
}

// --- summary.csv

enum { // bytes of a cell with a name, and with a scheme's file name
  CELL = 3 * WEFT_SIM_NAME + 3,
  FILE_CELL = 3 * sizeof((weft_sim_parameters){0}.policy_file) + 3
};

const char *weft_sim_cell(const char *text, char *out, size_t room) {
  char *valid = g_utf8_make_valid(text, -1); // a file's name may be any bytes
  size_t at = 0;
  const bool quoted = strpbrk(valid, ",\"\r\n") != NULL;
  if (quoted)
    out[at++] = '"';
  for (const char *c = valid; *c && at + 4 <= room; c++) {
    if (*c == '"')
      out[at++] = '"';
    out[at++] = *c;
  }
  if (quoted)
    out[at++] = '"';
  out[at] = '\0';
  g_free(valid);
  return out;
}

// Returns a key's value as scenario files write it.
static const char *value(const weft_sim_parameters *p, const char *key, char out[WEFT_SIM_TEXT]) {
  *out = '\0';
  for (size_t i = 0; i < weft_sim_key_count(); i++)
    if (strcmp(weft_sim_key_at(i).name, key) == 0)
      weft_sim_key_text(p, i, out);
  return out;
}

static char *text_of(const weft_sim_report *report, bool heading) {
  const weft_sim_metrics *m = report->metrics;
  const size_t room = 256 + FILE_CELL + 2 * WEFT_SIM_HASH_BYTES + m->count * 40;
  char *out = malloc(room), hash[2 * WEFT_SIM_HASH_BYTES + 1], name[CELL];
  char text[WEFT_SIM_TEXT], scheme[FILE_CELL], fidelity[WEFT_SIM_TEXT];
  if (!out)
    return NULL;
  const weft_sim_parameters *p = report->parameters;
  size_t at = heading ? (size_t)snprintf(out, room, "scenario,seed,scheme,fidelity,state_hash")
                      : (size_t)snprintf(out, room, "%s,%" PRIu64 ",%s,%s,%s",
                                         weft_sim_cell(p->name, name, CELL), p->seed,
                                         weft_sim_cell(value(p, "scheme", text), scheme, FILE_CELL),
                                         value(p, "fidelity", fidelity), hex(report->result, hash));
  for (size_t i = 0; i < m->count; i++)
    at += (size_t)(heading ? snprintf(out + at, room - at, ",%s", m->items[i].name)
                   : isfinite(m->items[i].value)
                       ? snprintf(out + at, room - at, ",%.15g", m->items[i].value)
                       : snprintf(out + at, room - at, ","));
  snprintf(out + at, room - at, "\n");
  return out;
}

char *weft_sim_summary_heading(const weft_sim_report *report) { return text_of(report, true); }
char *weft_sim_summary_row(const weft_sim_report *report) { return text_of(report, false); }

static weft_status put_summary(void *user, FILE *to) {
  char *heading = weft_sim_summary_heading(user), *row = weft_sim_summary_row(user);
  if (heading && row)
    fprintf(to, "%s%s", heading, row);
  const weft_status status = heading && row ? WEFT_OK : WEFT_E_NOMEM;
  free(heading);
  free(row);
  return status;
}

weft_status weft_sim_write_summary_csv(const weft_sim_report *report, const char *path) {
  return weft_sim_write_file(path, put_summary, (void *)(uintptr_t)report);
}

// --- The others

size_t weft_sim_whole_seconds(const weft_sim_result *r) {
  const size_t whole = r->end_us < 1000000 ? 1 : (size_t)(r->end_us / 1000000);
  return whole < r->second_count ? whole : r->second_count;
}

double weft_sim_online(const weft_sim_result *r, size_t second) {
  const int64_t left_us = r->end_us - (int64_t)second * 1000000; // less than 1 s in a shorter run
  const int64_t us = left_us < 1000000 ? left_us : 1000000;
  return us > 0 ? (double)r->seconds[second].online_us / (double)us : 0;
}

// Writes a time in seconds, or an empty cell if there is none.
static void put_time(FILE *to, int64_t us) {
  if (us >= 0 && us != WEFT_SIM_NEVER)
    fprintf(to, ",%.6f", (double)us / 1e6);
  else
    fputc(',', to);
}

static weft_status put_peers(void *user, FILE *to) {
  const weft_sim_report *report = user;
  const weft_sim_result *r = report->result;
  char class[CELL];
  fputs(
      "peer,class,nat,free_rider,polluter,joined_s,left_s,done_s,startup_s,lag_s,due,in_time,"
      "skipped,stalls,stalled_s,seek_wait_s,delivered_bytes,wrong_bytes,sent_bytes,received_bytes,"
      "innovative,dependent,late,banned,hash_failures\n",
      to);
  for (size_t i = 0; i < r->viewer_count; i++) {
    const weft_sim_viewer *v = &r->viewers[i];
    if (!v->came)
      continue;
    fprintf(to, "%" PRIu32 ",%s,%d,%d,%d", v->peer,
            weft_sim_cell(report->parameters->classes[v->class_index].name, class, CELL), v->nat,
            v->free_rider, v->polluter);
    put_time(to, v->joined_us);
    put_time(to, v->left_us);
    put_time(to, v->done_us);
    put_time(to, v->startup_us);
    put_time(to, v->lag_us);
    fprintf(to, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.6f,%.6f", v->due, v->in_time,
            v->skipped, v->stalls, (double)v->stalled_us / 1e6, (double)v->seek_wait_us / 1e6);
    const uint64_t rest[] = {v->delivered_bytes, v->wrong_bytes, v->sent_bytes, v->received_bytes,
                             v->innovative,      v->dependent,   v->late,       v->banned,
                             v->hash_failures};
    for (size_t f = 0; f < sizeof rest / sizeof *rest; f++)
      fprintf(to, ",%" PRIu64, rest[f]);
    fputc('\n', to);
  }
  return WEFT_OK;
}

weft_status weft_sim_write_peers_csv(const weft_sim_report *report, const char *path) {
  return weft_sim_write_file(path, put_peers, (void *)(uintptr_t)report);
}

static weft_status put_hours(void *user, FILE *to) {
  const weft_sim_service *service = ((const weft_sim_report *)user)->service;
  fputs("hour,online,coded_readable,copied_readable,coded_lost,copied_lost,coded_repair_bytes,"
        "copied_repair_bytes\n",
        to);
  for (size_t i = 0; i < service->hour_count; i++) {
    const weft_sim_hour *h = &service->hours[i];
    const uint64_t fields[] = {
        h->online,      h->coded_readable,     h->copied_readable,    h->coded_lost,
        h->copied_lost, h->coded_repair_bytes, h->copied_repair_bytes};
    fprintf(to, "%zu", i + 1);
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
      fprintf(to, ",%" PRIu64, fields[f]);
    fputc('\n', to);
  }
  return WEFT_OK;
}

static weft_status put_series(void *user, FILE *to) {
  const weft_sim_result *r = ((const weft_sim_report *)user)->result;
  fputs("second,online,due,in_time,stalls,source_bytes,peer_bytes,lost_bytes\n", to);
  for (size_t i = 0; i < weft_sim_whole_seconds(r); i++) {
    const weft_sim_second *s = &r->seconds[i];
    const uint64_t fields[] = {s->due,          s->in_time,    s->stalls,
                               s->source_bytes, s->peer_bytes, s->lost_bytes};
    fprintf(to, "%zu,%.10g", i, weft_sim_online(r, i));
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
      fprintf(to, ",%" PRIu64, fields[f]);
    fputc('\n', to);
  }
  return WEFT_OK;
}

weft_status weft_sim_write_series_csv(const weft_sim_report *report, const char *path) {
  const bool hours = report->parameters->kind == WEFT_SIM_STORE;
  return weft_sim_write_file(path, hours ? put_hours : put_series, (void *)(uintptr_t)report);
}

static weft_status put_trace(void *user, FILE *to) {
  static const char *const kinds[] = {"join", "leave", "data", "play", "skip", "stall"};
  const weft_sim_result *r = ((const weft_sim_report *)user)->result;
  for (size_t i = 0; i < r->trace_count; i++) {
    const weft_sim_trace *t = &r->trace[i];
    fprintf(to, "{\"t\":%.6f,\"peer\":%" PRIu32 ",\"event\":\"%s\"", (double)t->time_us / 1e6,
            t->peer, kinds[t->kind]);
    if (t->other != t->peer)
      fprintf(to, ",\"from\":%" PRIu32 ",\"packets\":%" PRIu32, t->other, t->packets);
    if (t->kind != WEFT_SIM_TRACE_JOIN && t->kind != WEFT_SIM_TRACE_LEAVE)
      fprintf(to, ",\"segment\":%" PRIu64, t->segment);
    fputs("}\n", to);
  }
  return WEFT_OK;
}

weft_status weft_sim_write_trace_jsonl(const weft_sim_report *report, const char *path) {
  return weft_sim_write_file(path, put_trace, (void *)(uintptr_t)report);
}

weft_status weft_sim_write_all(const weft_sim_report *report, const char *folder) {
  static const struct {
    const char *name;
    weft_status (*write)(const weft_sim_report *report, const char *path);
    bool store; // a store has it, too
  } files[] = {{"peers.csv", weft_sim_write_peers_csv, false},
               {"series.csv", weft_sim_write_series_csv, true},
               {"trace.jsonl", weft_sim_write_trace_jsonl, false},
               {"report.html", weft_sim_write_html, true},
               {"summary.csv", weft_sim_write_summary_csv, true},
               {"run.json", weft_sim_write_run_json, true}};
  const bool store = report->parameters->kind == WEFT_SIM_STORE;
  if (mkdir(folder, 0777) != 0 && errno != EEXIST)
    return WEFT_E_IO;
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    char *path = malloc(strlen(folder) + 32);
    if (!path)
      return WEFT_E_NOMEM;
    sprintf(path, "%s/%s", folder, files[i].name);
    weft_status status = WEFT_OK;
    if (!store || files[i].store)
      status = files[i].write(report, path);
    else if (unlink(path) != 0 && errno != ENOENT) // of an earlier run of another kind
      status = WEFT_E_IO;
    free(path);
    WEFT_TRY(status);
  }
  return WEFT_OK;
}
