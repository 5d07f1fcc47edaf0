// SPDX-License-Identifier: Apache-2.0
// A run's report.html: what its charts show, as JSON.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/model.h"
#include "sim/report/html.h"

// Made by the build from sim/report/page.*.
extern const unsigned char weft_sim_page_html[], weft_sim_page_js[];

enum { FRAMES = 600, LINES = 64 };
static const double FRAME_US = 500000;

static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static json_t *count(uint64_t value) { return json_integer((json_int_t)value); }

// --- Seconds

static json_t *series_json(const weft_sim_result *r) {
  const size_t used = weft_sim_whole_seconds(r);
  const size_t step =
      (used + WEFT_SIM_POINTS - 1) / WEFT_SIM_POINTS; // seconds that one point stands for
  json_t *second = json_array(), *online = json_array(), *due = json_array(),
         *in_time = json_array(), *stalls = json_array(), *source = json_array(),
         *peers = json_array(), *lost = json_array();
  for (size_t i = 0; i < used; i += step) {
    weft_sim_second sum = {0};
    double there = 0;
    size_t n = 0;
    for (; n < step && i + n < used; n++) {
      const weft_sim_second *s = &r->seconds[i + n];
      there += weft_sim_online(r, i + n);
      sum.due += s->due;
      sum.in_time += s->in_time;
      sum.stalls += s->stalls;
      sum.source_bytes += s->source_bytes;
      sum.peer_bytes += s->peer_bytes;
      sum.lost_bytes += s->lost_bytes;
    }
    json_array_append_new(second, count(i));
    json_array_append_new(online, number(there / (double)n));
    json_array_append_new(due, number((double)sum.due / (double)n));
    json_array_append_new(in_time, number((double)sum.in_time / (double)n));
    json_array_append_new(stalls, number((double)sum.stalls / (double)n));
    json_array_append_new(source, number((double)sum.source_bytes / (double)n));
    json_array_append_new(peers, number((double)sum.peer_bytes / (double)n));
    json_array_append_new(lost, number((double)sum.lost_bytes / (double)n));
  }
  return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "second", second, "online", online,
                   "due", due, "in_time", in_time, "stalls", stalls, "source_bytes", source,
                   "peer_bytes", peers, "lost_bytes", lost);
}

// --- Delays: the share of viewers at or below each of WEFT_SIM_STEPS times

static json_t *shares(const double *values, size_t n, size_t all, double most) {
  json_t *out = json_array();
  for (size_t i = 0; i <= WEFT_SIM_STEPS; i++) {
    size_t below = 0;
    for (size_t v = 0; v < n; v++)
      below += values[v] <= most * (double)i / WEFT_SIM_STEPS;
    json_array_append_new(out, number(all ? (double)below / (double)all : 0));
  }
  return out;
}

static json_t *quantiles_json(const weft_sim_result *r) {
  double *startup = calloc(2 * r->viewer_count + 2, sizeof *startup), most = 0;
  if (!startup)
    return NULL;
  double *lag = startup + r->viewer_count;
  size_t started = 0, lagged = 0, came = 0;
  for (size_t i = 0; i < r->viewer_count; i++) {
    const weft_sim_viewer *v = &r->viewers[i];
    came += weft_sim_is_audience(v);
    if (!weft_sim_is_audience(v) || v->startup_us < 0)
      continue;
    startup[started++] = (double)v->startup_us / 1e6;
    most = startup[started - 1] > most ? startup[started - 1] : most;
    if (v->lag_us >= 0) {
      lag[lagged++] = (double)v->lag_us / 1e6;
      most = lag[lagged - 1] > most ? lag[lagged - 1] : most;
    }
  }
  json_t *seconds = json_array();
  for (size_t i = 0; started && i <= WEFT_SIM_STEPS; i++)
    json_array_append_new(seconds, number(most * (double)i / WEFT_SIM_STEPS));
  json_t *out = json_pack("{s:o, s:o, s:o}", "seconds", seconds, "startup",
                          started ? shares(startup, started, came, most) : json_array(), "lag",
                          started ? shares(lag, lagged, came, most) : json_array());
  free(startup);
  return out;
}

// --- Classes

static json_t *class_json(const weft_sim_report *report, size_t index, double *room) {
  const weft_sim_result *r = report->result;
  double due = 0, in_time = 0, sent = 0, received = 0;
  size_t viewers = 0, started = 0;
  for (size_t i = 0; i < r->viewer_count; i++) {
    const weft_sim_viewer *v = &r->viewers[i];
    if (!weft_sim_is_audience(v) || v->class_index != index)
      continue;
    viewers++;
    due += (double)v->due;
    in_time += (double)v->in_time;
    sent += (double)v->sent_bytes / 1e6;
    received += (double)v->received_bytes / 1e6;
    if (v->startup_us >= 0)
      room[started++] = (double)v->startup_us / 1e6;
  }
  weft_sim_sort(room, started);
  const double each = viewers ? (double)viewers : (double)NAN;
  return json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "name",
                   report->parameters->classes[index].name, "viewers", (json_int_t)viewers,
                   "continuity", number(due > 0 ? in_time / due : (double)NAN), "startup_p50_s",
                   number(weft_sim_quantile(room, started, 0.5)), "sent_mb", number(sent / each),
                   "received_mb", number(received / each));
}

static json_t *classes_json(const weft_sim_report *report) {
  double *room = calloc(report->result->viewer_count + 1, sizeof *room);
  json_t *out = json_array();
  for (size_t i = 0; room && i < report->parameters->class_count; i++)
    json_array_append_new(out, class_json(report, i, room));
  free(room);
  return out;
}

// --- Sampled peers: their ranks, and the swarm in frames

static size_t frames_of(const weft_sim_result *r, size_t *step) {
  const size_t all = (size_t)((double)r->end_us / FRAME_US) + 1;
  *step = (all + FRAMES - 1) / FRAMES;
  return (all + *step - 1) / *step;
}

static size_t frame_at(int64_t time_us, size_t step) {
  return (size_t)((double)time_us / FRAME_US) / step;
}

static json_t *rank_json(const weft_sim_report *report) {
  const weft_sim_result *r = report->result;
  const uint32_t sampled = report->parameters->sampled;
  size_t step;
  const size_t frames = frames_of(r, &step);
  json_t *time = json_array(), *mean = json_array(), *peers = json_array();
  double *last = calloc((size_t)sampled * frames + 1, sizeof *last);
  for (size_t i = 0; last && i < (size_t)sampled * frames; i++)
    last[i] = -1;
  for (size_t i = 0; last && i < r->sample_count; i++) {
    const weft_sim_sample *s = &r->samples[i];
    const size_t f = frame_at(s->time_us, step);
    if (s->peer && s->peer < sampled && f < frames)
      last[s->peer * frames + f] = (double)s->innovative;
  }
  for (size_t f = 0; last && f < frames && r->sample_count; f++) {
    double sum = 0, n = 0;
    for (size_t p = 1; p < sampled; p++)
      if (last[p * frames + f] >= 0) {
        sum += last[p * frames + f];
        n++;
      }
    json_array_append_new(time, number((double)(f * step) * FRAME_US / 1e6));
    json_array_append_new(mean, number(n > 0 ? sum / n : (double)NAN));
  }
  for (size_t p = 1; last && p < sampled && p < LINES && r->sample_count; p++) {
    json_t *packets = json_array();
    for (size_t f = 0; f < frames; f++)
      json_array_append_new(packets,
                            last[p * frames + f] < 0 ? json_null() : number(last[p * frames + f]));
    json_array_append_new(peers, json_pack("{s:i, s:o}", "peer", (int)p, "packets", packets));
  }
  free(last);
  return json_pack("{s:o, s:o, s:o}", "time", time, "mean", mean, "peers", peers);
}

static json_t *nodes_json(const weft_sim_report *report) {
  const weft_sim_model model = {.parameters = report->parameters};
  json_t *nodes = json_array();
  for (uint32_t p = 0; p < report->parameters->sampled && p <= report->parameters->peers; p++) {
    double x, y;
    weft_sim_place_of(&model, p, &x, &y);
    json_array_append_new(nodes, json_pack("{s:i, s:f, s:f, s:i}", "peer", (int)p, "x", p ? x : 0.5,
                                           "y", p ? y : 0.5, "mark",
                                           weft_sim_is_polluter(&model, p)     ? 2
                                           : weft_sim_is_free_rider(&model, p) ? 1
                                                                               : 0));
  }
  return nodes;
}

// Coded packets from each to each in one frame.
static json_t *edges_json(const weft_sim_result *r, size_t *next, size_t frame, size_t step,
                          uint32_t sampled, uint32_t *packets) {
  json_t *edges = json_array();
  memset(packets, 0, (size_t)sampled * sampled * sizeof *packets);
  for (; *next < r->trace_count && frame_at(r->trace[*next].time_us, step) <= frame; (*next)++) {
    const weft_sim_trace *t = &r->trace[*next];
    if (t->kind == WEFT_SIM_TRACE_DATA && t->peer < sampled && t->other < sampled)
      packets[(size_t)t->other * sampled + t->peer] += t->packets;
  }
  for (uint32_t from = 0; from < sampled; from++)
    for (uint32_t to = 0; to < sampled; to++)
      if (packets[(size_t)from * sampled + to])
        json_array_append_new(edges, json_pack("[i, i, i]", (int)from, (int)to,
                                               (int)packets[(size_t)from * sampled + to]));
  return edges;
}

static json_t *swarm_json(const weft_sim_report *report) {
  const weft_sim_result *r = report->result;
  uint32_t sampled = report->parameters->sampled;
  sampled = sampled < 256 ? sampled : 256; // more would hide each other
  uint32_t *packets = calloc((size_t)sampled * sampled + 1, sizeof *packets);
  json_t *frames = json_array();
  size_t step, edge = 0, sample = 0;
  const size_t count_of_frames = frames_of(r, &step);
  for (size_t f = 0; packets && f < count_of_frames && r->sample_count; f++) {
    json_t *peers = json_array();
    for (; sample < r->sample_count && frame_at(r->samples[sample].time_us, step) <= f; sample++) {
      const weft_sim_sample *s = &r->samples[sample];
      if (s->peer < sampled && frame_at(s->time_us + (int64_t)FRAME_US, step) > f)
        json_array_append_new(peers, json_pack("[i, I]", (int)s->peer, (json_int_t)s->ahead));
    }
    json_array_append_new(
        frames, json_pack("{s:f, s:o, s:o}", "t", (double)(f * step) * FRAME_US / 1e6, "peers",
                          peers, "edges", edges_json(r, &edge, f, step, sampled, packets)));
  }
  free(packets);
  return json_pack("{s:o, s:o, s:f}", "nodes", nodes_json(report), "frames", frames, "frame_s",
                   (double)step * FRAME_US / 1e6);
}

// --- The file

// What the page's charts show of a run of its kind.
static void add_charts(json_t *run, const weft_sim_report *report) {
  if (report->parameters->kind == WEFT_SIM_STORE) {
    json_object_set_new(run, "store", weft_sim_store_json(report));
    return;
  }
  json_object_set_new(run, "segment_s", json_real((double)report->result->segment_us / 1e6));
  json_object_set_new(run, "rate_bits_per_s", count(report->parameters->rate_bits_per_s));
  json_object_set_new(run, "series", series_json(report->result));
  json_object_set_new(run, "quantiles", quantiles_json(report->result));
  json_object_set_new(run, "classes", classes_json(report));
  if (report->parameters->kind == WEFT_SIM_SERVER) {
    json_object_set_new(run, "server", weft_sim_server_json(report));
    return;
  }
  json_object_set_new(run, "rank", rank_json(report));
  json_object_set_new(run, "swarm", swarm_json(report));
}

static weft_status put_html(void *user, FILE *to) {
  const weft_sim_report *report = user;
  json_t *run = weft_sim_run_json(report);
  if (!run)
    return WEFT_E_NOMEM;
  static const char *const kinds[] = {
      [WEFT_SIM_SWARM] = "swarm", [WEFT_SIM_SERVER] = "server", [WEFT_SIM_STORE] = "store"};
  json_object_set_new(run, "kind", json_string(kinds[report->parameters->kind]));
  add_charts(run, report);
  const weft_sim_page page = {
      .html = weft_sim_page_html, .js = weft_sim_page_js, .name = "run", .data = run};
  const weft_status status = weft_sim_put_page(to, &page);
  json_decref(run);
  return status;
}

weft_status weft_sim_write_html(const weft_sim_report *report, const char *path) {
  return weft_sim_write_file(path, put_html, (void *)(uintptr_t)report);
}
