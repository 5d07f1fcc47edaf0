// SPDX-License-Identifier: Apache-2.0
// `weft bench storage`: its parts, and the libraries that it compares weft with.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "bench/commands.h"
#include "bench/rows.h"
#include "bench/storage.h"
#include "bench/storage_gpu.h"
#include "bench/storage_gpu_papers.h"
#include "kernels/device.h"
#include "tools/printable.h"

enum { ON_DEVICE = 1, BY_NAME = 2 };

static const struct {
  const char *name, *what;
  void (*run)(weft_bench_storage_run *run);
  unsigned where; // ON_DEVICE: needs a device; BY_NAME: only on request
} parts[] = {
    {"encode", "Reed-Solomon encoding and recovery", weft_bench_storage_encode, 0},
    {"small", "the same with shards of 4 KiB", weft_bench_storage_small, 0},
    {"layout", "the same of shards side by side and weft_code_stride apart",
     weft_bench_storage_layout, BY_NAME},
    {"update", "one source into the parity", weft_bench_storage_update, 0},
    {"crs", "Cauchy Reed-Solomon: machine code, blocks of bits, XOR programs",
     weft_bench_storage_crs, 0},
    {"crs-update", "Cauchy Reed-Solomon: one source into the parity, source by source",
     weft_bench_storage_crs_update, 0},
    {"threads", "encoding on several threads", weft_bench_storage_threads, 0},
    {"parity", "updates and verification on several threads", weft_bench_storage_parity, 0},
    {"gpu-device", "the GPU and its ceilings", weft_bench_storage_gpu_device, ON_DEVICE},
    {"gpu-rs", "Reed-Solomon on a GPU, resident", weft_bench_storage_gpu_rs, ON_DEVICE},
    {"gpu-crs", "Cauchy Reed-Solomon on a GPU, smallest w", weft_bench_storage_gpu_crs, ON_DEVICE},
    {"gpu-crs8", "Cauchy Reed-Solomon on a GPU, w = 8", weft_bench_storage_gpu_crs8, ON_DEVICE},
    {"gpu-rows", "the published GPU techniques", weft_bench_storage_gpu_rows, ON_DEVICE},
    {"gpu-host", "a GPU from and to host memory", weft_bench_storage_gpu_host, ON_DEVICE},
    {"gpu-model", "what a model of encoding on a GPU needs", weft_bench_storage_gpu_model,
     ON_DEVICE | BY_NAME},
    {"gpu-inverse", "recovery matrices by the CPU and the GPU", weft_bench_storage_gpu_inverse,
     ON_DEVICE | BY_NAME},
    {"gpu-gibraltar", "Gibraltar's figures", weft_bench_storage_gpu_gibraltar, ON_DEVICE | BY_NAME},
    {"gpu-perasure", "PErasure's figures", weft_bench_storage_gpu_perasure, ON_DEVICE | BY_NAME},
    {"gpu-gcrs", "G-CRS's figures", weft_bench_storage_gpu_gcrs, ON_DEVICE | BY_NAME},
    {"gpu-slides", "GPU-RSCode's slides", weft_bench_storage_gpu_slides, ON_DEVICE | BY_NAME},
    {"gpu-devices", "one code on several GPUs", weft_bench_storage_gpu_devices, ON_DEVICE},
};

enum { PARTS = sizeof parts / sizeof *parts, SHARDS_MOST = 256 };

// Reads a number of shards and moves *at past it; 0: there is none.
static size_t read_shards(const char **at) {
  size_t shards = 0;
  for (; **at >= '0' && **at <= '9' && shards <= SHARDS_MOST; ++*at)
    shards = shards * 10 + (size_t)(**at - '0');
  return shards;
}

// Reads at most `capacity` shapes such as "10+4,32+8"; false if one is invalid.
static bool read_shapes(const char *at, weft_bench_sizes_of_code *out, size_t capacity,
                        size_t *count) {
  *count = 0;
  do {
    const size_t k = read_shards(&at);
    const bool parted = *at == '+';
    at += parted;
    const size_t m = parted ? read_shards(&at) : 0;
    if (k == 0 || m == 0 || k + m > SHARDS_MOST || (*at && *at != ','))
      return false;
    out[(*count)++] = (weft_bench_sizes_of_code){k, m};
    at += *at == ',';
  } while (*at && *count < capacity);
  return true;
}

size_t weft_bench_storage_shapes(const weft_bench_storage_run *run,
                                 const weft_bench_sizes_of_code *preset, size_t preset_count,
                                 weft_bench_sizes_of_code *out, size_t capacity) {
  size_t count = 0;
  if (run->options.shapes && read_shapes(run->options.shapes, out, capacity, &count))
    return count;
  for (count = 0; count < preset_count && count < capacity; count++)
    out[count] = preset[count];
  return count;
}

static bool shapes_known(const char *list) {
  weft_bench_sizes_of_code shape[1];
  size_t shapes = 0;
  for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
    size_t count = 0;
    if (++shapes > WEFT_BENCH_STORAGE_SHAPES) {
      fprintf(stderr, "weft bench storage: --shapes accepts at most %u shapes\n",
              WEFT_BENCH_STORAGE_SHAPES);
      return false;
    }
    if (!read_shapes(at, shape, 1, &count)) {
      weft_print(stderr, "weft bench storage: --shapes: '%s' is not a shape such as 10+4\n", at);
      return false;
    }
  }
  return true;
}

static void add_peer(weft_bench_storage_run *run, weft_bench_storage_peer *peer) {
  if (peer && run->peer_count < WEFT_BENCH_STORAGE_PEERS)
    run->peers[run->peer_count++] = peer;
  else
    weft_bench_peer_close(peer);
}

// Opens each file of a comma-separated list; returns whether any could be opened.
static bool open_list(weft_bench_storage_run *run, const char *list,
                      weft_bench_storage_peer *(*open)(const char *file)) {
  const size_t before = run->peer_count;
  for (char *file; (file = weft_bench_list_next(&list)); free(file))
    add_peer(run, open(file));
  return run->peer_count > before;
}

// Opens the libraries to compare with in parts on the CPU.
static void open_peers(weft_bench_storage_run *run) {
  const weft_bench_options *const o = &run->options;
  bool wanted = false;
  for (size_t p = 0; p < PARTS; p++)
    wanted = wanted ||
             (!(parts[p].where & ON_DEVICE) && weft_bench_listed(o->operations, parts[p].name));
  if (!wanted)
    return;
  const char *const jerasure = o->jerasure ? o->jerasure : "libJerasure.so.2";
  open_list(run, o->isal ? o->isal : "libisal.so.2", weft_bench_peer_isal);
  open_list(run, o->klauspost, weft_bench_peer_klauspost);
  if (open_list(run, jerasure, weft_bench_peer_jerasure_rs))
    open_list(run, jerasure, weft_bench_peer_jerasure_crs);
}

static bool parts_known(const char *list) {
  const char *at = list;
  while (at) {
    const size_t length = strcspn(at, ",");
    size_t p = 0;
    while (p < PARTS && (strlen(parts[p].name) != length || memcmp(parts[p].name, at, length) != 0))
      p++;
    if (p == PARTS) {
      weft_print(stderr, "weft bench storage: --operations: there is no part '%.*s'; there are:\n",
                 (int)length, at);
      for (p = 0; p < PARTS; p++)
        fprintf(stderr, "  %-14s %s\n", parts[p].name, parts[p].what);
      return false;
    }
    at = at[length] == ',' ? at + length + 1 : NULL;
  }
  return true;
}

// Whether --operations names a part that needs a GPU.
static bool names_device_part(const char *list) {
  bool wanted = false;
  for (size_t p = 0; p < PARTS && list; p++)
    wanted = wanted || ((parts[p].where & ON_DEVICE) && weft_bench_listed(list, parts[p].name));
  return wanted;
}

static bool device_missing(const char *list) {
  if (!names_device_part(list) || weft_device_count() > 0)
    return false;
  fprintf(stderr, "weft bench storage: there is no GPU (%s)\n", weft_device_absence());
  return true;
}

// Refuses --cold for parts on a GPU, whose data is in no cache of the CPU.
static bool cold_device(const weft_bench_options *options) {
  if (!options->timing.cold || !names_device_part(options->operations))
    return false;
  fprintf(stderr, "weft bench storage: --cold is for parts on the CPU, not for those on a GPU\n");
  return true;
}

// Refuses --m where no part uses it: on the CPU, with --shapes, and in the other parts on a GPU.
static bool m_unused(const weft_bench_options *options) {
  const char *const list = options->operations;
  if (options->m.count == 0 ||
      (list && !options->shapes &&
       (weft_bench_listed(list, "gpu-rs") || weft_bench_listed(list, "gpu-crs") ||
        weft_bench_listed(list, "gpu-crs8"))))
    return false;
  fprintf(stderr, "weft bench storage: --m is for --operations gpu-rs, gpu-crs and gpu-crs8, "
                  "without --shapes\n");
  return true;
}

static int measure(weft_bench_storage_run *run) {
  if (device_missing(run->options.operations))
    return WEFT_BENCH_MACHINE;
  weft_bench_options *const options = &run->options;
  size_t threads[WEFT_BENCH_THREAD_COUNTS];
  const size_t thread_counts = weft_bench_thread_counts(&run->machine, threads);
  weft_bench_sizes_default(&options->threads, threads, thread_counts);
  weft_bench_pin(&run->machine, 0);
  weft_bench_report_begin(&run->report, options, &run->machine);
  open_peers(run);
  for (size_t p = 0; p < PARTS; p++)
    if (!weft_bench_listed(options->operations, parts[p].name) ||
        ((parts[p].where & BY_NAME) && !options->operations))
      continue;
    else if ((parts[p].where & ON_DEVICE) && options->timing.cold)
      printf("%s: left out, --cold is for parts on the CPU\n", parts[p].name);
    else if (!(parts[p].where & ON_DEVICE) || weft_device_count() > 0)
      parts[p].run(run);
    else
      printf("%s: left out, it needs a GPU (%s)\n", parts[p].name, weft_device_absence());
  for (size_t p = 0; p < run->peer_count; p++)
    weft_bench_peer_close(run->peers[p]);
  weft_bench_unpin(&run->machine);
  const bool empty = json_array_size(run->report.groups) == 0 &&
                     !json_object_get(run->report.root, "device"); // that of gpu-device
  const int failed = weft_bench_report_end(&run->report, options);
  if (empty)
    fprintf(stderr, "weft bench storage: no part has a shape to measure\n");
  return failed ? failed : empty ? WEFT_BENCH_USAGE : 0;
}

int weft_bench_storage_command(int argc, char **argv) {
  weft_bench_storage_run *const run = weft_bench_alloc(1, sizeof *run);
  const int parsed = weft_bench_options_parse(&run->options, argc, argv);
  int failed = parsed == 1 ? 0 : parsed;
  if (parsed == 0) {
    weft_bench_machine_read(&run->machine);
    run->row = weft_bench_host_row(&run->options, run->machine.features);
    failed = run->row && parts_known(run->options.operations) &&
                     shapes_known(run->options.shapes) && !cold_device(&run->options) &&
                     !m_unused(&run->options)
                 ? measure(run)
                 : WEFT_BENCH_USAGE;
  }
  free(run);
  return failed;
}
