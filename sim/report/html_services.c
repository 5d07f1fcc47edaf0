// SPDX-License-Identifier: Apache-2.0
// A server's seconds and delays, and a store's hours, for the page.
#include "sim/report/html.h"

static void append(json_t *array, double value) { json_array_append_new(array, json_real(value)); }

// Returns the shares of requests coded and answered within each of WEFT_SIM_STEPS times, up to the
// 0.999 quantile of the answer times. Both lists of times are ascending.
static json_t *distribution(const weft_sim_service *s) {
  const double *sets[2] = {s->codings.ms, s->answers.ms};
  const size_t counts[2] = {s->codings.count, s->answers.count};
  json_t *time = json_array(), *shares[2] = {json_array(), json_array()};
  const size_t n = counts[1];
  const double most = n ? sets[1][n - 1 - n / 1000] : 0;
  size_t below[2] = {0};
  for (size_t i = 0; n && i <= WEFT_SIM_STEPS; i++) {
    const double at = most * (double)i / WEFT_SIM_STEPS;
    append(time, at);
    for (size_t k = 0; k < 2; k++) {
      while (below[k] < counts[k] && sets[k][below[k]] <= at)
        below[k]++;
      append(shares[k], counts[k] ? (double)below[k] / (double)counts[k] : 0);
    }
  }
  return json_pack("{s:o, s:o, s:o}", "ms", time, "coded", shares[0], "answered", shares[1]);
}

json_t *weft_sim_server_json(const weft_sim_report *report) {
  const weft_sim_service *service = report->service;
  const weft_sim_result *r = &service->result;
  const size_t used = weft_sim_whole_seconds(r);
  const size_t step = (used + WEFT_SIM_POINTS - 1) / WEFT_SIM_POINTS;
  json_t *second = json_array(), *requests = json_array(), *again = json_array(),
         *coded = json_array(), *load = json_array();
  for (size_t i = 0; i < used; i += step) {
    weft_sim_served sum = {0};
    size_t n = 0;
    for (; n < step && i + n < used; n++) {
      const weft_sim_served *s = &service->served[i + n];
      sum.requests += s->requests;
      sum.again += s->again;
      sum.packets += s->packets;
      sum.coding_us += s->coding_us;
    }
    append(second, (double)i);
    append(requests, (double)sum.requests / (double)n);
    append(again, (double)sum.again / (double)n);
    append(coded, (double)sum.packets * (double)report->parameters->block_bytes / (double)n);
    append(load, sum.coding_us / 1e6 / (double)n);
  }
  return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "second", second, "requests", requests,
                   "again", again, "coded_bytes", coded, "coding_load", load, "delays",
                   distribution(service));
}

json_t *weft_sim_store_json(const weft_sim_report *report) {
  static const char *const names[] = {
      "online",      "coded_readable",     "copied_readable",    "coded_lost",
      "copied_lost", "coded_repair_bytes", "copied_repair_bytes"};
  enum { FIELDS = sizeof names / sizeof *names };
  const weft_sim_service *service = report->service;
  const size_t step = (service->hour_count + WEFT_SIM_POINTS - 1) / WEFT_SIM_POINTS;
  json_t *hours = json_array(), *fields[FIELDS];
  for (size_t f = 0; f < FIELDS; f++)
    fields[f] = json_array();
  // A point for several hours has the last hour's counts, and the sum of the bytes moved.
  for (size_t i = 0; i < service->hour_count; i += step) {
    uint64_t coded = 0, copied = 0;
    const weft_sim_hour *h = &service->hours[i];
    for (size_t n = 0; n < step && i + n < service->hour_count; n++) {
      h = &service->hours[i + n];
      coded += h->coded_repair_bytes;
      copied += h->copied_repair_bytes;
    }
    const uint64_t values[FIELDS] = {h->online,     h->coded_readable, h->copied_readable,
                                     h->coded_lost, h->copied_lost,    coded,
                                     copied};
    append(hours, (double)(h - service->hours) + 1);
    for (size_t f = 0; f < FIELDS; f++)
      append(fields[f], (double)values[f]);
  }
  json_t *out = json_pack("{s:I, s:I, s:o}", "objects", (json_int_t)report->parameters->objects,
                          "hours_per_point", (json_int_t)step, "hour", hours);
  for (size_t f = 0; f < FIELDS; f++)
    json_object_set_new(out, names[f], fields[f]);
  return out;
}
