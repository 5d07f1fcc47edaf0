// SPDX-License-Identifier: Apache-2.0
// Figures of a run.
#include "sim/report/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add(weft_sim_metrics *m, const char *name, double value) {
  if (m->count < WEFT_SIM_METRICS)
    m->items[m->count++] = (weft_sim_metric){.name = name, .value = value};
}

double weft_sim_metric_of(const weft_sim_metrics *metrics, const char *name) {
  for (size_t i = 0; i < metrics->count; i++)
    if (strcmp(metrics->items[i].name, name) == 0)
      return metrics->items[i].value;
  return (double)NAN;
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// The value that a share q of them does not exceed (nearest rank).
static double quantile(const double *sorted, size_t count, double q) {
  if (count == 0)
    return (double)NAN;
  const double at = ceil(q * (double)count);
  return sorted[at < 1 ? 0 : (size_t)at - 1];
}

static void add_quantiles(weft_sim_metrics *m, double *values, size_t count,
                          const char *const names[3]) {
  static const double q[] = {0.5, 0.95, 0.99};
  qsort(values, count, sizeof *values, ascending);
  for (size_t i = 0; i < 3; i++)
    add(m, names[i], quantile(values, count, q[i]));
}

static double ratio(double a, double b) { return b > 0 ? a / b : (double)NAN; }

static weft_status add_viewers(weft_sim_metrics *m, const weft_sim_result *r) {
  static const char *const startup[] = {"startup_p50_s", "startup_p95_s", "startup_p99_s"};
  static const char *const lag[] = {"lag_p50_s", "lag_p95_s", "lag_p99_s"};
  static const char *const done[] = {"done_p50_s", "done_p95_s", "done_p99_s"};
  double *values = calloc(3 * r->viewer_count + 1, sizeof *values);
  if (!values)
    return WEFT_E_NOMEM;
  double *lags = values + r->viewer_count, *dones = lags + r->viewer_count;
  size_t started = 0, lagged = 0, finished = 0;
  double watched_h = 0, stalls = 0, due = 0, in_time = 0, skipped = 0, stalled_s = 0, never = 0;
  for (size_t i = 0; i < r->viewer_count; i++) {
    const weft_sim_viewer *v = &r->viewers[i];
    if (!v->came || v->polluter) // whoever spoils the stream is no audience
      continue;
    const int64_t end_us = v->left ? v->left_us : r->end_us;
    watched_h += (double)(end_us - v->joined_us) / 3600e6;
    due += (double)v->due;
    in_time += (double)v->in_time;
    skipped += (double)v->skipped;
    stalls += (double)v->stalls;
    stalled_s += (double)v->stalled_us / 1e6;
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
  add(m, "continuity", paced ? ratio(in_time, due) : (double)NAN);
  add(m, "skip_rate", paced ? ratio(skipped, due) : (double)NAN);
  add(m, "stalls_per_hour", paced ? ratio(stalls, watched_h) : (double)NAN);
  add(m, "stalled_share", paced ? ratio(stalled_s / 3600, watched_h) : (double)NAN);
  add(m, "never_played", paced ? never : (double)NAN);
  add_quantiles(m, values, started, startup);
  add_quantiles(m, lags, lagged, lag);
  add_quantiles(m, dones, finished, done);
  add(m, "done", (double)finished);
  free(values);
  return WEFT_OK;
}

weft_status weft_sim_measure(const weft_sim_parameters *o, const weft_sim_result *r,
                             weft_sim_metrics *m) {
  const weft_sim_totals *t = &r->totals;
  const weft_engine_statistics *s = &t->source, *p = &t->peers;
  const double k = o->block_bytes, overhead = o->overhead_bytes;
  m->count = 0;
  add(m, "viewers", (double)t->viewers);
  add(m, "viewers_at_once", (double)t->online_most);
  WEFT_TRY(add_viewers(m, r));
  // What left the source, and what the audience watched of it.
  const double source_bytes =
      (double)(s->sent_payload_bytes + s->sent_header_bytes + s->sent_control_bytes) +
      overhead * (double)(s->sent_packets + s->sent_control);
  const double watched =
      r->segment_us > 0 ? (double)p->in_time * (double)o->blocks * k : (double)t->delivered_bytes;
  add(m, "source_bytes", source_bytes);
  add(m, "source_streams", ratio(source_bytes, (double)r->stream_bytes));
  add(m, "server_saving", watched > 0 ? 1 - source_bytes / watched : (double)NAN);
  // Where every byte went that left an uplink.
  const double packets = (double)(s->sent_packets + p->sent_packets);
  const double control = (double)(s->sent_control + p->sent_control);
  const double header =
      (double)(s->sent_header_bytes + p->sent_header_bytes) + overhead * (packets + control);
  const double control_bytes =
      (double)(s->sent_control_bytes + p->sent_control_bytes) + (double)t->handshake_bytes;
  const double payload = (double)(s->sent_payload_bytes + p->sent_payload_bytes);
  const double all = payload + header + control_bytes;
  add(m, "sent_bytes", all);
  add(m, "share_useful", ratio((double)p->received_innovative * k, all));
  add(m, "share_dependent", ratio((double)p->received_dependent * k, all));
  add(m, "share_duplicate", ratio((double)(p->received_late + p->received_outside) * k, all));
  add(m, "share_polluted", ratio((double)p->received_polluted * k, all));
  add(m, "share_header", ratio(header, all));
  add(m, "share_control", ratio(control_bytes, all));
  const double arrived =
      (double)(p->received_innovative + p->received_dependent + p->received_late +
               p->received_outside + p->received_polluted + p->received_waiting);
  add(m, "share_lost", ratio(packets > arrived ? (packets - arrived) * k : 0, all));
  add(m, "dependent_per_innovative",
      ratio((double)p->received_dependent, (double)p->received_innovative));
  add(m, "wrong_bytes", (double)t->wrong_bytes);
  add(m, "banned", (double)p->banned);
  add(m, "hash_failures", (double)p->hash_failures);
  add(m, "events", (double)t->events);
  add(m, "packets", (double)t->packets);
  return WEFT_OK;
}
