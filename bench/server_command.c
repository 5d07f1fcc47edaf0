// SPDX-License-Identifier: Apache-2.0
// `weft bench server`: the streaming server's coder with lanes on the host, on devices, and on
// both: latency from request to packet at the measured rate, the crossover between the lanes, and
// how many peers that serves.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "bench/check.h"
#include "bench/commands.h"
#include "bench/gpu_cases.h"
#include "bench/group.h"
#include "bench/rows.h"
#include "bench/server_load.h"
#include "lib/ctx.h"

enum { SETS_MAX = 4, SERVINGS = 2 };

static const double PEER_BYTES_PER_SECOND = 96e3; // 768 kbps, as in Shojania and Li

static const weft_bench_serving servings[SERVINGS] = {
    {"VoD, n = 128, k = 4096, 64 segments", 1, 128, 4096, 64, 128},
    {"live, n = 64, k = 1024, 4 segments", 2, 64, 1024, 4, 64},
};

// Contexts that serve together, a lane each.
typedef struct lane_set {
  const char *name;
  weft_ctx *lanes[WEFT_SERVER_MAX_LANES];
  size_t count;
  weft_server *server;
  double peak[SERVINGS]; // bytes per second
} lane_set;

typedef struct server_run {
  weft_bench_options options;
  weft_bench_machine machine;
  weft_bench_report report;
  const char *row;
  size_t threads; // of the host lane
  weft_ctx *host, *devices[WEFT_SERVER_MAX_LANES - 1];
  size_t device_count;
  lane_set sets[SETS_MAX];
  size_t set_count;
  int host_set, device_set, both_set; // -1: there is none
  double seconds;                     // per load
  json_t *out;
  json_t *cases; // the report's: the closed loop's, in the form that `weft bench compare` reads
} server_run;

// Results lie beside the report's groups, so each is kept as soon as it is there.
static void keep(const server_run *run) { weft_bench_report_keep(&run->report, &run->options); }

// --- lanes ---

static int add_set(server_run *run, const char *name, bool host, size_t devices) {
  lane_set *set = &run->sets[run->set_count];
  *set = (lane_set){.name = name};
  if (host)
    set->lanes[set->count++] = run->host;
  for (size_t i = 0; i < devices; i++)
    set->lanes[set->count++] = run->devices[i];
  const weft_server_options options = {.contexts = set->lanes,
                                       .context_count = set->count,
                                       .now_us = weft_bench_now_us,
                                       .memory_bytes = (size_t)4 << 30};
  weft_bench_must("server", weft_server_new(&options, &set->server));
  return (int)run->set_count++;
}

static void open_lanes(server_run *run) {
  while (run->device_count < WEFT_SERVER_MAX_LANES - 1 &&
         weft_ctx_new(&run->devices[run->device_count],
                      &(weft_ctx_options){.backend = run->row, .device = run->device_count}) ==
             WEFT_OK)
    run->device_count++;
  const size_t busy = run->device_count + 1; // threads of device lanes, and the clients'
  run->threads = run->machine.cpus > busy ? run->machine.cpus - busy : 1;
  if (run->options.threads.count > 0)
    run->threads = run->options.threads.value[0];
  weft_bench_must("host", weft_ctx_new(&run->host, &(weft_ctx_options){.threads = run->threads}));
  run->host_set = add_set(run, "host", true, 0);
  run->device_set = run->both_set = -1;
  if (run->device_count > 1)
    add_set(run, "one device", false, 1);
  if (run->device_count > 0) {
    run->device_set =
        add_set(run, run->device_count > 1 ? "devices" : "device", false, run->device_count);
    run->both_set = add_set(run, "host + device", true, run->device_count);
  }
  printf("host lane: %s, %zu threads; device lanes: %zu%s%s\n", weft_ctx_backend(run->host),
         run->threads, run->device_count, run->device_count ? " of " : "",
         run->device_count ? weft_ctx_backend(run->devices[0]) : "");
  json_object_set_new(run->out, "host_row", json_string(weft_ctx_backend(run->host)));
  json_object_set_new(run->out, "host_threads", json_integer((json_int_t)run->threads));
  json_object_set_new(run->out, "devices", json_integer((json_int_t)run->device_count));
}

static void close_lanes(server_run *run) {
  for (size_t i = 0; i < run->set_count; i++)
    weft_server_free(run->sets[i].server);
  for (size_t i = 0; i < run->device_count; i++)
    weft_ctx_free(run->devices[i]);
  weft_ctx_free(run->host);
}

// --- results of a load ---

static json_t *json_spread(const weft_bench_spread *spread, double unit) {
  return json_pack("{s:f, s:f, s:f}", "median", spread->median * unit, "min", spread->min * unit,
                   "max", spread->max * unit);
}

// Returns the share of packets that each lane made since `before`.
static json_t *lane_shares(const lane_set *set, const weft_server_stats *before, char *text,
                           size_t room) {
  weft_server_stats now;
  weft_server_get_stats(set->server, &now);
  double all = 0;
  for (size_t i = 0; i < now.lanes; i++)
    all += (double)(now.lane[i].packets - before->lane[i].packets);
  json_t *out = json_array();
  size_t at = 0;
  for (size_t i = 0; i < now.lanes && at < room; i++) {
    const double part = (double)(now.lane[i].packets - before->lane[i].packets) / (all + 1e-9);
    at += (size_t)snprintf(text + at, room - at, "%s%.0f", i ? "/" : "", 100 * part);
    json_array_append_new(out, json_real(part));
  }
  return out;
}

static void report_load(json_t *list, const lane_set *set, const weft_bench_serving *serving,
                        const weft_bench_load *load, const weft_bench_spread *rate,
                        weft_bench_latencies *latencies, const weft_server_stats *before) {
  char shares[128] = "";
  json_t *lanes = lane_shares(set, before, shares, sizeof shares);
  const double p50 = weft_bench_latency(latencies, 0.50), p99 = weft_bench_latency(latencies, 0.99);
  char offered[32];
  snprintf(offered, sizeof offered, load->rate > 0 ? "%.0f/s" : "%.0f in flight",
           load->rate > 0 ? load->rate : (double)load->requests);
  printf("  %-14s %15s  %8.3f (%.3f..%.3f)  p50 %8.0f  p99 %8.0f us  lanes %s %%\n", set->name,
         offered, rate->median * 1e-9, rate->min * 1e-9, rate->max * 1e-9, p50, p99, shares);
  fflush(stdout);
  json_array_append_new(
      list, json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:f, s:o, s:f, s:f, s:i, s:o}", "lanes",
                      set->name, "serving", serving->name, "n", (int)serving->n, "k",
                      (int)serving->k, "packets_per_request", (int)load->packets, "in_flight_most",
                      (int)load->requests, "requests_per_second", load->rate,
                      "gigabytes_per_second", json_spread(rate, 1e-9), "p50_us", p50, "p99_us", p99,
                      "latencies", (int)latencies->count, "lane_shares", lanes));
  free(latencies->us);
}

// --- at full speed ---

static void ask_together(server_run *run, double (*rates)[WEFT_BENCH_MARKS], size_t reps,
                         size_t serving, size_t requests) {
  if (run->both_set < 0)
    return;
  double alone[WEFT_BENCH_MARKS];
  bool usable[WEFT_BENCH_MARKS];
  for (size_t r = 0; r < reps; r++) {
    alone[r] = rates[run->host_set][r] + rates[run->device_set][r];
    usable[r] = true;
  }
  const weft_bench_ratio ratio =
      weft_bench_ratio_of(rates[run->both_set], usable, alone, usable, reps, WEFT_BENCH_MIN_REPS);
  char text[64];
  weft_bench_ratio_text(&ratio, false, text, sizeof text);
  printf("  together / sum of both alone: %s\n", text);
  json_t *out = json_spread(&ratio.spread, 1);
  json_object_set_new(out, "separable", json_boolean(ratio.separable));
  json_object_set_new(out, "serving", json_string(servings[serving].name));
  json_object_set_new(out, "in_flight", json_integer((json_int_t)requests));
  json_array_append_new(json_object_get(run->out, "together"), out);
}

// Adds a case whose call is one request: its repetitions' times follow from their rates.
static void add_case(server_run *run, const lane_set *set, const weft_bench_serving *serving,
                     size_t requests, const double *rates, const weft_bench_spread *spread) {
  const double bytes = (double)serving->packets * (double)serving->k;
  char *const variant = weft_bench_text("%zu in flight", requests);
  char *const id = weft_bench_text("serve-%s %s n=%zu k=%zu m=%u t=%zu", variant, set->name,
                                   serving->n, serving->k, serving->packets, run->threads);
  json_t *const seconds = json_array();
  for (size_t r = 0; r < run->options.timing.reps; r++)
    json_array_append_new(seconds, json_real(bytes / rates[r]));
  json_array_append_new(
      run->cases,
      json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:O, s:{s:f}, s:{s:o}, s:o}", "id", id,
                "operation", "serve", "variant", variant, "row", set->name, "n", (int)serving->n,
                "k", (int)serving->k, "m", (int)serving->packets, "threads", (int)run->threads,
                "checked", json_object_get(run->out, "checked"), "amount_per_call", "output", bytes,
                "gigabytes_per_second", "output", json_spread(spread, 1e-9), "seconds_per_call",
                seconds));
  free(id), free(variant);
}

static void closed_loop(server_run *run, size_t serving, size_t requests) {
  const weft_bench_load load = {
      .requests = requests, .packets = servings[serving].packets, .seconds = run->seconds};
  const size_t reps = run->options.timing.reps;
  double rates[SETS_MAX][WEFT_BENCH_MARKS];
  weft_bench_latencies latencies[SETS_MAX] = {{0}};
  weft_server_stats before[SETS_MAX];
  for (size_t r = 0; r < reps + 1; r++) // the first warms up memory and the lanes' estimates
    for (size_t s = 0; s < run->set_count; s++) {
      weft_server *server = run->sets[s].server;
      const double rate = weft_bench_load_run(server, &servings[serving], &load, &latencies[s]);
      if (r == 0) {
        weft_server_get_stats(server, &before[s]);
        latencies[s].count = 0;
      } else {
        rates[s][r - 1] = rate;
      }
    }
  for (size_t s = 0; s < run->set_count; s++) {
    const weft_bench_spread spread = weft_bench_spread_of(rates[s], reps);
    report_load(json_object_get(run->out, "closed_loop"), &run->sets[s], &servings[serving], &load,
                &spread, &latencies[s], &before[s]);
    add_case(run, &run->sets[s], &servings[serving], requests, rates[s], &spread);
    if (spread.median > run->sets[s].peak[serving])
      run->sets[s].peak[serving] = spread.median;
  }
  ask_together(run, rates, reps, serving, requests);
  keep(run);
}

// --- at a given rate ---

static void paced(server_run *run, size_t serving) {
  static const double shares[] = {0.25, 0.5, 0.75, 0.9};
  const weft_bench_serving *what = &servings[serving];
  for (size_t s = 0; s < run->set_count; s++)
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
      weft_bench_latencies latencies = {0};
      weft_server_stats before;
      weft_server_get_stats(run->sets[s].server, &before);
      const double bytes = (double)what->packets * (double)what->k;
      const weft_bench_load load = {.requests = 4096,
                                    .packets = what->packets,
                                    .rate = shares[i] * run->sets[s].peak[serving] / bytes,
                                    .seconds = 3 * run->seconds};
      const double rate = weft_bench_load_run(run->sets[s].server, what, &load, &latencies);
      const weft_bench_spread spread = weft_bench_spread_of(&rate, 1);
      report_load(json_object_get(run->out, "paced"), &run->sets[s], what, &load, &spread,
                  &latencies, &before);
      keep(run);
    }
}

// --- which lane takes a product of a given size ---

// Returns the median latency of single requests of `packets` packets.
static double lone_us(server_run *run, int set, size_t serving, uint32_t packets) {
  weft_bench_latencies latencies = {0};
  const weft_bench_load load = {.requests = 1, .packets = packets, .seconds = run->seconds};
  weft_bench_load_run(run->sets[set].server, &servings[serving], &load, &latencies);
  const double us = weft_bench_latency(&latencies, 0.5);
  free(latencies.us);
  return us;
}

static void crossover(server_run *run, size_t serving) {
  const weft_bench_serving *what = &servings[serving];
  const weft_segment_id id = {
      .stream = what->stream, .blocks = (uint32_t)what->n, .block_bytes = (uint32_t)what->k};
  printf("  %8s %10s %10s %10s  %-9s %-9s\n", "packets", "host us", "device us", "both us",
         "quicker", "predicted");
  for (uint32_t packets = 1; packets <= 4096; packets *= 2) {
    const double host = lone_us(run, run->host_set, serving, packets);
    const double device = lone_us(run, run->device_set, serving, packets);
    const double both = lone_us(run, run->both_set, serving, packets);
    const size_t lane = weft_server_predict_lane(run->sets[run->both_set].server, &id, packets);
    const char *quicker = host <= device ? "host" : "device", *guess = lane ? "device" : "host";
    printf("  %8u %10.0f %10.0f %10.0f  %-9s %-9s\n", packets, host, device, both, quicker, guess);
    json_array_append_new(json_object_get(run->out, "crossover"),
                          json_pack("{s:s, s:i, s:f, s:f, s:f, s:s, s:s}", "serving", what->name,
                                    "packets", (int)packets, "host_us", host, "device_us", device,
                                    "both_us", both, "quicker", quicker, "predicted", guess));
    keep(run);
  }
  fflush(stdout);
}

// --- peers ---

static double output_of(const json_t *group, size_t index) {
  const json_t *entry = json_array_get(json_object_get(group, "cases"), index);
  return json_real_value(json_object_get(
      json_object_get(json_object_get(entry, "gigabytes_per_second"), "output"), "median"));
}

static void print_peers(server_run *run, const char *name, double gigabytes) {
  const double peers = gigabytes * 1e9 / PEER_BYTES_PER_SECOND;
  printf("  %-60s %9.3f GB/s %12.0f peers\n", name, gigabytes, peers);
  json_array_append_new(json_object_get(run->out, "peers"),
                        json_pack("{s:s, s:f, s:f}", "what", name, "gigabytes_per_second",
                                  gigabytes, "peers", peers));
  keep(run);
}

// Raw: the kernel alone, everything resident. Over PCIe: the server's packets in host memory.
static void peers(server_run *run) {
  printf("\npeers served at 96 KB/s (768 kbps)\n");
  for (size_t s = 0; s < run->set_count; s++)
    for (size_t i = 0; i < SERVINGS; i++) {
      char *name = weft_bench_text("server, %s: %s", run->sets[s].name, servings[i].name);
      print_peers(run, name, run->sets[s].peak[i] * 1e-9);
      free(name);
    }
  if (run->device_count == 0)
    return;
  weft_status status;
  weft_bench_gpu *gpu = weft_bench_gpu_new(run->row, 0, run->options.seed, &status);
  weft_bench_must("device", status);
  weft_bench_group *group = weft_bench_group_new("one device, for comparison");
  const size_t bytes = (size_t)256 << 20;
  const int out = weft_bench_gpu_add_copy(gpu, group, "device to pinned", WEFT_MEM_PINNED,
                                          WEFT_MEM_DEVICE, bytes);
  const int vod = weft_bench_gpu_add_product(gpu, group, 1, 177333, 128, 4096, false, -1);
  const int live = weft_bench_gpu_add_product(gpu, group, 1, 262144, 64, 1024, false, -1);
  weft_bench_report_run(&run->report, &run->options, group);
  const json_t *measured =
      json_array_get(run->report.groups, json_array_size(run->report.groups) - 1);
  print_peers(run, "raw, one device: n = 128, k = 4096", output_of(measured, (size_t)vod));
  print_peers(run, "raw, one device: n = 64, k = 1024", output_of(measured, (size_t)live));
  print_peers(run, "PCIe's own rate, one device", output_of(measured, (size_t)out));
  weft_bench_group_free(group);
  weft_bench_gpu_free(gpu);
}

// --- all of it ---

static void serve(server_run *run) {
  // A repetition ends when all are answered, so with 512 even the shortest takes long.
  static const size_t all[] = {1, 32, 512}, few[] = {1, 8, 64};
  const size_t *in_flight = run->options.quick ? few : all;
  const char *checked = "";
  for (size_t s = 0; s < run->set_count; s++)
    for (size_t i = 0; i < SERVINGS; i++)
      checked = weft_bench_serve(run->sets[s].server, &servings[i], run->options.seed + i);
  json_object_set_new(run->out, "checked", json_string(checked));
  const char *const parts = run->options.operations;
  const bool with_peers = weft_bench_listed(parts, "peers");
  const bool with_paced = weft_bench_listed(parts, "paced");
  // These two are based on the peak rate that the closed loop finds.
  const bool closed = with_peers || with_paced || weft_bench_listed(parts, "closed");
  if (closed)
    weft_bench_report_add(&run->report, &run->options, "closed loop", run->cases = json_array());
  for (size_t i = 0; i < SERVINGS; i++) {
    printf("\n%s, requests of %u packets: coded GB/s (min..max)\n", servings[i].name,
           servings[i].packets);
    if (run->device_set >= 0 && weft_bench_listed(parts, "crossover"))
      crossover(run, i);
    else if (!parts)
      printf("  crossover: left out, it needs a GPU (%s)\n", weft_device_absence());
    for (size_t f = 0; closed && f < sizeof all / sizeof *all; f++)
      closed_loop(run, i, in_flight[f]);
    if (with_paced)
      paced(run, i);
  }
  if (with_peers)
    peers(run);
}

// Whether a device was requested, by its row's name or by a part that needs one, but is missing.
static bool device_missing(const server_run *run) {
  const char *const parts = run->options.operations;
  if (!run->options.rows && !(parts && weft_bench_listed(parts, "crossover")))
    return false;
  weft_ctx *device;
  const weft_status status = weft_ctx_new(&device, &(weft_ctx_options){.backend = run->row});
  weft_ctx_free(device);
  if (status != WEFT_OK)
    fprintf(stderr, "weft bench server: %s: %s (%s)\n", run->row, weft_status_text(status),
            weft_device_absence());
  return status != WEFT_OK;
}

int weft_bench_server_command(int argc, char **argv) {
  server_run *run = weft_bench_alloc(1, sizeof *run);
  const int parsed = weft_bench_options_parse(&run->options, argc, argv);
  int failed = parsed == 1 ? 0 : parsed;
  static const char *const parts[] = {"crossover", "closed", "paced", "peers"};
  if (parsed == 0)
    run->row = weft_bench_device_row(&run->options);
  if (parsed == 0 && (!run->row || !weft_bench_operations_known(&run->options, parts,
                                                                sizeof parts / sizeof *parts)))
    failed = WEFT_BENCH_USAGE;
  else if (parsed == 0 && device_missing(run))
    failed = WEFT_BENCH_MACHINE;
  else if (parsed == 0) {
    run->seconds = 4 * run->options.timing.rep_s;
    weft_bench_machine_read(&run->machine);
    weft_bench_report_begin(&run->report, &run->options, &run->machine);
    run->out = json_pack("{s:[], s:[], s:[], s:[], s:[]}", "closed_loop", "paced", "together",
                         "crossover", "peers");
    json_object_set_new(run->report.root, "server", run->out);
    open_lanes(run);
    serve(run);
    close_lanes(run);
    failed = weft_bench_report_end(&run->report, &run->options);
  }
  free(run);
  return failed;
}
