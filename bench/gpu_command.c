// SPDX-License-Identifier: Apache-2.0
// `weft bench gpu`: the library on one device, with the device's ceilings of the same run.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "bench/check.h"
#include "bench/commands.h"
#include "bench/gpu_cases.h"
#include "bench/gpu_ceilings.h"
#include "bench/gpu_ordinary.h"
#include "bench/gpu_relay.h"
#include "bench/rows.h"
#include "lib/ctx.h"

typedef struct gpu_run {
  weft_bench_options options;
  weft_bench_machine machine;
  weft_bench_report report;
  const char *row;
} gpu_run;

static weft_bench_gpu *open_gpu(const gpu_run *run) {
  weft_status status;
  weft_bench_gpu *gpu = weft_bench_gpu_new(run->row, 0, run->options.seed, &status);
  if (!gpu)
    fprintf(stderr, "weft bench gpu: %s: %s (%s)\n", run->row, weft_status_text(status),
            weft_device_absence());
  return gpu;
}

static int add_dram(weft_bench_gpu *gpu, weft_bench_group *group) {
  return weft_bench_gpu_add_copy(gpu, group, "copy in device memory, bytes copied", WEFT_MEM_DEVICE,
                                 WEFT_MEM_DEVICE, (size_t)1 << 30);
}

// Returns how many coded blocks of k bytes fill the device.
static size_t rows_for(const gpu_run *run, size_t k) {
  return ((size_t)1 << (run->options.quick ? 26 : 28)) / k;
}

static void encode_by_n(gpu_run *run) {
  static const size_t sizes[] = {16, 32, 64, 128, 256, 512, 1024};
  weft_bench_gpu *gpu = open_gpu(run);
  weft_bench_group *group = weft_bench_group_new("encode, device-resident, by n at k = 4096");
  const int dram = add_dram(gpu, group);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    weft_bench_gpu_add_product(gpu, group, 1, rows_for(run, 4096), sizes[i], 4096, false, dram);
  weft_bench_report_run(&run->report, &run->options, group);
  weft_bench_group_free(group);
  weft_bench_gpu_free(gpu);
}

static void encode_by_k(gpu_run *run) {
  static const size_t sizes[] = {128, 256, 512, 1024, 4096, 16384, 32768};
  weft_bench_gpu *gpu = open_gpu(run);
  weft_bench_group *group = weft_bench_group_new("encode, device-resident, by k at n = 128");
  const int dram = add_dram(gpu, group);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    weft_bench_gpu_add_product(gpu, group, 1, rows_for(run, sizes[i]), 128, sizes[i], false, dram);
  weft_bench_report_run(&run->report, &run->options, group);
  weft_bench_group_free(group);
  weft_bench_gpu_free(gpu);
}

static void server_shapes(gpu_run *run) {
  const size_t n = 128, k = 4096, live = 177333, vod = 512;
  weft_bench_gpu *gpu = open_gpu(run);
  weft_bench_group *group =
      weft_bench_group_new("live (177333 blocks of one segment) and VoD (n of each of 512)");
  const int dram = add_dram(gpu, group), tensor = weft_bench_gpu_add_tensor(gpu, group, n);
  const int bound = tensor < 0 ? dram : tensor;
  const int one = weft_bench_gpu_add_product(gpu, group, 1, live, n, k, false, bound);
  const int many = weft_bench_gpu_add_product(gpu, group, vod, n, n, k, false, bound);
  const int prepared = weft_bench_gpu_add_product(gpu, group, vod, n, n, k, true, bound);
  const int seeded = weft_bench_gpu_add_encode(gpu, group, 1, live, n, k, WEFT_MEM_DEVICE, bound);
  const int seeded_many =
      weft_bench_gpu_add_encode(gpu, group, vod, n, n, k, WEFT_MEM_DEVICE, bound);
  weft_bench_group_ask(group, "VoD / live, kernel", many, one, WEFT_BENCH_OUTPUT);
  weft_bench_group_ask(group, "preprocessing counted / not", prepared, many, WEFT_BENCH_OUTPUT);
  weft_bench_group_ask(group, "library with seeds / kernel, live", seeded, one, WEFT_BENCH_OUTPUT);
  weft_bench_group_ask(group, "library with seeds / kernel, VoD", seeded_many, many,
                       WEFT_BENCH_OUTPUT);
  weft_bench_report_run(&run->report, &run->options, group);
  weft_bench_group_free(group);
  weft_bench_gpu_free(gpu);
}

static void decode(gpu_run *run) {
  weft_bench_gpu *gpu = open_gpu(run);
  weft_bench_group *group = weft_bench_group_new("multi-segment decode, device-resident");
  const int dram = add_dram(gpu, group);
  for (size_t segments = 256; segments <= 2048; segments *= 8)
    for (size_t k = 4096; k <= 16384; k *= 4)
      weft_bench_gpu_add_decode(gpu, group, segments, 128, k, WEFT_MEM_DEVICE, dram);
  weft_bench_report_run(&run->report, &run->options, group);
  weft_bench_group_free(group);
  weft_bench_gpu_free(gpu);
}

// Indices of the copies that bound what travels over the bus.
typedef struct bus_copies {
  int in, out, both;
} bus_copies;

static bus_copies add_bus_copies(weft_bench_gpu *gpu, weft_bench_group *group) {
  const size_t bytes = (size_t)256 << 20;
  bus_copies bus;
  bus.in = weft_bench_gpu_add_copy(gpu, group, "pinned to device", WEFT_MEM_DEVICE, WEFT_MEM_PINNED,
                                   bytes);
  bus.out = weft_bench_gpu_add_copy(gpu, group, "device to pinned", WEFT_MEM_PINNED,
                                    WEFT_MEM_DEVICE, bytes);
  bus.both = weft_bench_gpu_add_duplex(gpu, group, bytes);
  return bus;
}

static void host_to_host(gpu_run *run) {
  const size_t n = 128, k = 4096;
  weft_bench_gpu *gpu = open_gpu(run);
  weft_bench_group *group = weft_bench_group_new("over PCIe, pinned memory");
  const bus_copies bus = add_bus_copies(gpu, group);
  const int copies =
      weft_bench_gpu_add_encode(gpu, group, 1, 65536, n, k, WEFT_MEM_PINNED, bus.out);
  const int direct = weft_bench_gpu_add_direct(gpu, group, 65536, n, k, bus.out);
  const int duplex = weft_bench_gpu_add_host_to_host(gpu, group, 2048, n, k, bus.both);
  const int large = weft_bench_gpu_add_host_to_host(gpu, group, 256, n, 8 * k, bus.both);
  const int decoded = weft_bench_gpu_add_decode(gpu, group, 256, n, k, WEFT_MEM_PINNED, bus.both);
  const int decoded_many =
      weft_bench_gpu_add_decode(gpu, group, 2048, n, k, WEFT_MEM_PINNED, bus.both);
  for (int preparing = 0; preparing < 2; preparing++) {
    weft_bench_gpu_add_upload(gpu, group, 2048, 64, 1024, preparing != 0, bus.in);
    weft_bench_gpu_add_upload(gpu, group, 256, n, k, preparing != 0, bus.in);
  }
  weft_bench_group_ask(group, "one way: library / copy", copies, bus.out, WEFT_BENCH_OUTPUT);
  weft_bench_group_ask(group, "one way: kernel's stores / copy", direct, bus.out,
                       WEFT_BENCH_OUTPUT);
  weft_bench_group_ask(group, "both ways: library / copies, k 4096", duplex, bus.both,
                       WEFT_BENCH_OUTPUT);
  weft_bench_group_ask(group, "both ways: library / copies, k 32768", large, bus.both,
                       WEFT_BENCH_OUTPUT);
  weft_bench_group_ask(group, "both ways: decode / copies, 256 segments", decoded, bus.both,
                       WEFT_BENCH_OUTPUT);
  weft_bench_group_ask(group, "both ways: decode / copies, 2,048 segments", decoded_many, bus.both,
                       WEFT_BENCH_OUTPUT);
  weft_bench_group_ask(group, "in / out", bus.in, bus.out, WEFT_BENCH_OUTPUT);
  weft_bench_report_run(&run->report, &run->options, group);
  weft_bench_group_free(group);
  weft_bench_gpu_free(gpu);
}

// Returns how many threads work on the host: some cores are left to the driver and the system.
static size_t host_threads(const gpu_run *run) {
  return run->machine.cpus > 3 ? run->machine.cpus - 2 : 1;
}

// The same from and to ordinary memory, by one thread of the host and by several.
static void ordinary(gpu_run *run) {
  static const size_t segments[] = {1, 16, 64, 1024};
  const size_t threads[] = {1, 4, host_threads(run)};
  for (size_t i = 0; i < sizeof segments / sizeof *segments; i++) {
    weft_bench_gpu *gpu = open_gpu(run);
    weft_bench_ordinary *cases[3] = {NULL};
    char *title = weft_bench_text("over PCIe, ordinary memory, n = 128, k = 4096, segments: %zu",
                                  segments[i]);
    weft_bench_group *group = weft_bench_group_new(title);
    const bus_copies bus = add_bus_copies(gpu, group);
    for (size_t t = 0; t < 3; t++)
      if (t == 0 || threads[t] > threads[t - 1]) {
        cases[t] = weft_bench_ordinary_new(run->row, threads[t], segments[i], 128, 4096,
                                           run->options.seed + t);
        weft_bench_ordinary_add(cases[t], group, bus.in, bus.out, bus.both);
      }
    weft_bench_report_run(&run->report, &run->options, group);
    weft_bench_group_free(group);
    for (size_t t = 0; t < 3; t++)
      weft_bench_ordinary_free(cases[t]);
    free(title);
    weft_bench_gpu_free(gpu);
  }
}

// Datagrams in, recoded datagrams out: decoders with payloads on the device.
static void relay(gpu_run *run) {
  static const struct { size_t segments, n, k; } shapes[] = {{256, 128, 4096}, {1024, 64, 1024}};
  const size_t threads = host_threads(run);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    weft_bench_gpu *gpu = open_gpu(run);
    weft_bench_relay *r = weft_bench_relay_new(run->row, threads, shapes[i].segments, shapes[i].n,
                                               shapes[i].k, run->options.seed);
    char *title = weft_bench_text("relay, n = %zu, k = %zu, %zu segments", shapes[i].n, shapes[i].k,
                                  shapes[i].segments);
    weft_bench_group *group = weft_bench_group_new(title);
    const bus_copies bus = add_bus_copies(gpu, group);
    weft_bench_relay_add(r, group, bus.in, bus.out, bus.both);
    weft_bench_report_run(&run->report, &run->options, group);
    weft_bench_group_free(group);
    free(title);
    weft_bench_relay_free(r);
    weft_bench_gpu_free(gpu);
  }
}

// Segments spread over 1, 2, 4, ... devices, and over all.
static void devices(gpu_run *run) {
  enum { MOST = 16 };
  weft_bench_gpu *gpus[MOST];
  weft_bench_crowd *crowds[MOST];
  weft_status status = WEFT_OK;
  size_t count = 0, sizes = 0;
  while (count < MOST && count < weft_device_count()) {
    gpus[count] = weft_bench_gpu_new(run->row, count, run->options.seed + count, &status);
    weft_bench_must("device", status);
    count++;
  }
  weft_bench_group *group = weft_bench_group_new("one live product on each of several devices");
  int one = -1;
  for (size_t some = 1; some <= count; some = some < count && some * 2 > count ? count : some * 2) {
    int index;
    crowds[sizes++] = weft_bench_gpu_add_devices(gpus, some, group, 177333, 128, 4096, &index);
    one = some == 1 ? index : one;
    static const char *const names[] = {"", "", "two devices / one", "", "four devices / one"};
    if (some > 1)
      weft_bench_group_ask(group, some < 5 && names[some][0] ? names[some] : "all devices / one",
                           index, one, WEFT_BENCH_OUTPUT);
  }
  weft_bench_report_run(&run->report, &run->options, group);
  weft_bench_group_free(group);
  while (sizes > 0)
    weft_bench_crowd_free(crowds[--sizes]);
  while (count > 0)
    weft_bench_gpu_free(gpus[--count]);
}

static const struct {
  const char *name;
  void (*run)(gpu_run *run);
} parts[] = {{"n", encode_by_n}, {"k", encode_by_k},     {"shapes", server_shapes},
             {"decode", decode}, {"host", host_to_host}, {"ordinary", ordinary},
             {"relay", relay},   {"devices", devices}};

enum { PARTS = sizeof parts / sizeof *parts };

int weft_bench_gpu_command(int argc, char **argv) {
  gpu_run run = {0};
  const int parsed = weft_bench_options_parse(&run.options, argc, argv);
  if (parsed != 0)
    return parsed == 1 ? 0 : parsed;
  const char *names[PARTS];
  for (size_t i = 0; i < PARTS; i++)
    names[i] = parts[i].name;
  run.row = weft_bench_device_row(&run.options);
  if (!run.row || !weft_bench_operations_known(&run.options, names, PARTS))
    return WEFT_BENCH_USAGE;
  weft_bench_gpu *gpu = open_gpu(&run);
  if (!gpu)
    return WEFT_BENCH_MACHINE;
  weft_bench_machine_read(&run.machine);
  weft_bench_report_begin(&run.report, &run.options, &run.machine);
  json_t *device = json_object();
  json_object_set_new(device, "name",
                      json_string(weft_device_name(weft_bench_gpu_ctx(gpu)->device)));
  json_object_set_new(device, "sm", json_integer(weft_device_sm(weft_bench_gpu_ctx(gpu)->device)));
  json_object_set_new(device, "driver", weft_bench_gpu_driver());
  json_object_set_new(device, "ceilings", weft_bench_gpu_ceilings(weft_bench_gpu_ctx(gpu)));
  json_object_set_new(run.report.root, "device", device);
  weft_bench_gpu_free(gpu);
  for (size_t i = 0; i < PARTS; i++)
    if (weft_bench_listed(run.options.operations, parts[i].name))
      parts[i].run(&run);
  return weft_bench_report_end(&run.report, &run.options);
}
