// SPDX-License-Identifier: Apache-2.0
// Figures of a run.
#include "sim/report/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double weft_sim_metric_of(const weft_sim_metrics *metrics, const char *name) {
  for (size_t i = 0; i < metrics->count; i++)
    if (strcmp(metrics->items[i].name, name) == 0)
      return metrics->items[i].value;
  return (double)NAN;
}

static double ratio(double a, double b) { return b > 0 ? a / b : (double)NAN; }

// Adds the audience's figures; *watched: the bytes it watched (bulk: received). live_bytes: of a
// segment of a live stream; 0: the stream is not live.
static weft_status add_viewers(weft_sim_metrics *m, const weft_sim_result *r, double live_bytes,
                               double *watched) {
  static const char *const startup[] = {"startup_p50_s", "startup_p95_s", "startup_p99_s"};
  static const char *const lag[] = {"lag_p50_s", "lag_p95_s", "lag_p99_s"};
  static const char *const done[] = {"done_p50_s", "done_p95_s", "done_p99_s"};
  double *values = calloc(3 * r->viewer_count + 1, sizeof *values);
  if (!values)
    return WEFT_E_NOMEM;
  double *lags = values + r->viewer_count, *dones = lags + r->viewer_count;
  size_t started = 0, lagged = 0, finished = 0;
  double watched_h = 0, stalls = 0, due = 0, in_time = 0, skipped = 0, stalled_s = 0, never = 0;
  double delivered_bytes = 0, seek_wait_s = 0;
  for (size_t i = 0; i < r->viewer_count; i++) {
    const weft_sim_viewer *v = &r->viewers[i];
    if (!weft_sim_is_audience(v))
      continue;
    const int64_t end_us = v->left ? v->left_us : r->end_us;
    watched_h += (double)(end_us - v->joined_us) / 3600e6;
    due += (double)v->due;
    in_time += (double)v->in_time;
    skipped += (double)v->skipped;
    stalls += (double)v->stalls;
    stalled_s += (double)v->stalled_us / 1e6;
    seek_wait_s += (double)v->seek_wait_us / 1e6;
    delivered_bytes += (double)v->delivered_bytes;
    if (v->startup_us >= 0)
      values[started++] = (double)v->startup_us / 1e6;
    else
      never++;
    if (v->startup_us >= 0 && v->lag_us >= 0)
      lags[lagged++] = (double)v->lag_us / 1e6;
    if (v->done)
      dones[finished++] = (double)(v->done_us - v->joined_us) / 1e6;
  }
  const bool paced = r->segment_us > 0;
  weft_sim_add_metric(m, "continuity", paced ? ratio(in_time, due) : (double)NAN);
  weft_sim_add_metric(m, "skip_rate", paced ? ratio(skipped, due) : (double)NAN);
  weft_sim_add_metric(m, "stalls_per_hour", paced ? ratio(stalls, watched_h) : (double)NAN);
  weft_sim_add_metric(m, "stalled_share", paced ? ratio(stalled_s / 3600, watched_h) : (double)NAN);
  weft_sim_add_metric(m, "seek_wait_share",
                      paced ? ratio(seek_wait_s / 3600, watched_h) : (double)NAN);
  weft_sim_add_metric(m, "never_played", paced ? never : (double)NAN);
  weft_sim_add_quantiles(m, values, started, startup);
  weft_sim_add_quantiles(m, lags, lagged, lag);
  weft_sim_add_quantiles(m, dones, finished, done);
  weft_sim_add_metric(m, "done", (double)finished);
  *watched = live_bytes > 0 ? in_time * live_bytes : delivered_bytes;
  free(values);
  return WEFT_OK;
}

// Keeps only the figures that mean something if a run was ended because nobody made progress. The
// download times of the few peers that finished, and the traffic meanwhile, do not.
static void keep_what_is_known(weft_sim_metrics *m) {
  static const char *const known[] = {"viewers", "viewers_at_once", "done", "no_progress",
                                      "wrong_bytes"};
  for (size_t i = 0; i < m->count; i++) {
    bool keep = false;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
      keep = keep || strcmp(m->items[i].name, known[k]) == 0;
    if (!keep)
      m->items[i].value = (double)NAN;
  }
}

weft_status weft_sim_measure(const weft_sim_parameters *o, const weft_sim_result *r,
                             weft_sim_metrics *m) {
  const weft_sim_totals *t = &r->totals;
  const weft_engine_statistics *s = &t->source, *p = &t->peers;
  const double k = o->block_bytes, overhead = o->overhead_bytes;
  m->count = 0;
  weft_sim_add_metric(m, "viewers", (double)t->viewers);
  weft_sim_add_metric(m, "viewers_at_once", (double)t->online_most);
  double watched;
  WEFT_TRY(add_viewers(m, r, o->mode == WEFT_SIM_LIVE ? (double)o->blocks * k : 0, &watched));
  // What left the source, compared with what the audience watched.
  const double source_bytes =
      (double)(s->sent_payload_bytes + s->sent_header_bytes + s->sent_control_bytes) +
      overhead * (double)(s->sent_packets + s->sent_control) + (double)t->source_handshake_bytes -
      (double)t->source_unsent_bytes;
  weft_sim_add_metric(m, "source_bytes", source_bytes);
  weft_sim_add_metric(m, "source_streams", ratio(source_bytes, (double)r->stream_bytes));
  weft_sim_add_metric(m, "server_saving", watched > 0 ? 1 - source_bytes / watched : (double)NAN);
  // What became of every byte that left an uplink.
  const double packets = (double)(s->sent_packets + p->sent_packets - t->unsent_packets);
  const double datagrams =
      (double)(s->sent_packets + p->sent_packets + s->sent_control + p->sent_control);
  const double header = (double)(s->sent_header_bytes + p->sent_header_bytes) +
                        overhead * datagrams - (double)t->unsent_header_bytes;
  const double control_bytes = (double)(s->sent_control_bytes + p->sent_control_bytes +
                                        t->handshake_bytes - t->unsent_control_bytes);
  const double payload =
      (double)(s->sent_payload_bytes + p->sent_payload_bytes - t->unsent_payload_bytes);
  const double all = payload + header + control_bytes;
  weft_sim_add_metric(m, "sent_bytes", all);
  weft_sim_add_metric(m, "share_useful", ratio((double)p->received_innovative * k, all));
  weft_sim_add_metric(m, "share_dependent", ratio((double)p->received_dependent * k, all));
  weft_sim_add_metric(m, "share_duplicate",
                      ratio((double)(p->received_late + p->received_outside) * k, all));
  weft_sim_add_metric(m, "share_polluted", ratio((double)p->received_polluted * k, all));
  weft_sim_add_metric(m, "share_header", ratio(header, all));
  weft_sim_add_metric(m, "share_control", ratio(control_bytes, all));
  const double arrived = (double)(p->received_innovative + p->received_dependent +
                                  p->received_late + p->received_outside + p->received_polluted);
  weft_sim_add_metric(m, "share_lost", ratio(packets > arrived ? (packets - arrived) * k : 0, all));
  weft_sim_add_metric(m, "dependent_per_innovative",
                      ratio((double)p->received_dependent, (double)p->received_innovative));
  weft_sim_add_metric(m, "wrong_bytes", (double)t->wrong_bytes);
  weft_sim_add_metric(m, "banned", (double)p->banned);
  weft_sim_add_metric(m, "hash_failures", (double)p->hash_failures);
  weft_sim_add_metric(m, "gathered_segments", (double)p->gathered_segments);
  weft_sim_add_metric(m, "segments_per_batch",
                      ratio((double)p->gathered_segments, (double)p->gathered_runs));
  weft_sim_add_metric(m, "events", (double)t->events);
  weft_sim_add_metric(m, "packets", (double)t->packets);
  weft_sim_add_metric(m, "no_progress", r->segment_us ? (double)NAN : (double)r->no_progress);
  if (r->no_progress)
    keep_what_is_known(m);
  return WEFT_OK;
}
