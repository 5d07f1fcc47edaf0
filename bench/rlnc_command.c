// SPDX-License-Identifier: Apache-2.0
// `weft bench rlnc`: encode, recode and decode for shapes, rows, threads and ways to split work.
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "bench/ceiling_cases.h"
#include "bench/check.h"
#include "bench/commands.h"
#include "bench/group.h"
#include "bench/machine.h"
#include "bench/peers/isal.h"
#include "bench/rlnc_cases.h"
#include "bench/rlnc_peers.h"
#include "bench/rows.h"
#include "kernels/backend.h"

typedef struct rlnc_run {
  weft_bench_options options;
  weft_bench_machine machine;
  weft_bench_report report;
  weft_bench_isal *isal;
  weft_bench_rlnc_peers peers;
  const weft_backend **rows;
  size_t row_count;
} rlnc_run;

// What one group needs while it is being measured.
typedef struct rlnc_scene {
  const rlnc_run *run;
  const weft_bench_shape *shape;
  weft_bench_group *group;
  weft_bench_codec **codecs;
  size_t codec_count;
  weft_bench_isal_product products[2];
  uint8_t *isal_out; // (m, k)
  weft_bench_rlnc_coder *peers[WEFT_BENCH_RLNC_PEERS];
} rlnc_scene;

static bool wanted(const rlnc_scene *scene, weft_bench_operation operation) {
  return weft_bench_listed(scene->run->options.operations, weft_bench_operation_name(operation));
}

static weft_bench_codec *codec(rlnc_scene *scene, const char *row, size_t threads, weft_split split,
                               size_t segments) {
  return scene->codecs[scene->codec_count++] = weft_bench_codec_new(
             scene->shape, &scene->run->machine, row, threads, split, segments);
}

// Adds the operations of one row on one thread; index[operation] becomes the case's index, or -1.
static void add_single(rlnc_scene *scene, const char *row, int ceiling, int *index) {
  weft_bench_codec *const one = codec(scene, row, 1, WEFT_SPLIT_AUTO, scene->shape->segments);
  for (int o = 0; o < WEFT_BENCH_OPERATIONS; o++)
    index[o] =
        wanted(scene, (weft_bench_operation)o)
            ? weft_bench_add_operation(scene->group, one, (weft_bench_operation)o, "", ceiling)
            : -1;
}

// Adds cases on several threads: encoding with the automatic split and with both partitionings of
// the paper, and decoding of many segments.
static void add_threads(rlnc_scene *scene, const char *row, size_t threads, int ceiling,
                        const int *single) {
  static const struct {
    weft_split split;
    const char *variant, *question;
  } splits[] = {
      {WEFT_SPLIT_AUTO, "", "encode: threads / one"},
      {WEFT_SPLIT_COLUMNS, "columns", "encode, partitioned block: threads / one"},
      {WEFT_SPLIT_ROWS, "rows", "encode, full block: threads / one"},
  };
  int encoded[3] = {-1, -1, -1};
  for (size_t s = 0; s < 3 && wanted(scene, WEFT_BENCH_ENCODE); s++) {
    encoded[s] =
        weft_bench_add_operation(scene->group, codec(scene, row, threads, splits[s].split, 1),
                                 WEFT_BENCH_ENCODE, splits[s].variant, ceiling);
    weft_bench_group_ask(scene->group, splits[s].question, encoded[s], single[WEFT_BENCH_ENCODE],
                         WEFT_BENCH_OUTPUT);
  }
  weft_bench_group_ask(scene->group, "encode: full block / partitioned block", encoded[2],
                       encoded[1], WEFT_BENCH_OUTPUT);
  if (!wanted(scene, WEFT_BENCH_DECODE_MULTI))
    return;
  weft_bench_codec *const many =
      codec(scene, row, threads, WEFT_SPLIT_AUTO, scene->shape->segments);
  const int multi =
      weft_bench_add_operation(scene->group, many, WEFT_BENCH_DECODE_MULTI, "", ceiling);
  weft_bench_group_ask(scene->group, "decode many segments: threads / one", multi,
                       single[WEFT_BENCH_DECODE_MULTI], WEFT_BENCH_OUTPUT);
}

typedef struct reads {
  int forwards, turning;
} reads;

static void ask(rlnc_scene *scene, const int *at, reads read) {
  weft_bench_group *const group = scene->group;
  const int encode = at[WEFT_BENCH_ENCODE];
  static const struct {
    const char *name;
    weft_bench_operation over;
  } times[] = {
      {"time per byte: decode progressive, deferred / encode", WEFT_BENCH_DECODE_DEFERRED},
      {"time per byte: decode progressive, eager / encode", WEFT_BENCH_DECODE_EAGER},
      {"time per byte: decode batch / encode", WEFT_BENCH_DECODE_BATCH},
      {"time per byte: decode many segments / encode", WEFT_BENCH_DECODE_MULTI},
      {"time per byte: recode / encode", WEFT_BENCH_RECODE},
      {"time per byte: fresh coefficients / given ones", WEFT_BENCH_ENCODE_FRESH},
      {"time per byte: seeded coefficients / given ones", WEFT_BENCH_ENCODE_SEEDED},
  };
  for (size_t i = 0; i < sizeof times / sizeof *times; i++)
    weft_bench_group_ask(group, times[i].name, encode, at[times[i].over], WEFT_BENCH_OUTPUT);
  weft_bench_group_ask(group, "rate of source bytes: one recoded packet / read",
                       at[WEFT_BENCH_RECODE_ONE], read.forwards, WEFT_BENCH_INPUT);
  weft_bench_group_ask(group, "rate of source bytes: one recoded packet / turning read",
                       at[WEFT_BENCH_RECODE_ONE], read.turning, WEFT_BENCH_INPUT);
  weft_bench_group_ask(group, "rate of source bytes: one coded packet / read",
                       at[WEFT_BENCH_ENCODE_ONE], read.forwards, WEFT_BENCH_INPUT);
}

static void add_isal(rlnc_scene *scene, const int *best) {
  static const weft_bench_operation like[] = {WEFT_BENCH_ENCODE, WEFT_BENCH_ENCODE_ONE};
  static const char *const questions[] = {"encode: best row / isa-l",
                                          "one coded packet: best row / isa-l"};
  const weft_bench_shape *const shape = scene->shape;
  for (size_t i = 0; scene->run->isal && i < 2; i++) {
    if (best[like[i]] < 0)
      continue;
    weft_bench_case entry = scene->group->cases[best[like[i]]];
    weft_bench_isal_prepare(scene->run->isal, &scene->products[i], entry.m, shape->n, shape->k,
                            shape->mixing, shape->n, shape->data, shape->k, scene->isal_out,
                            shape->k);
    weft_bench_isal_call(&scene->products[i]);
    entry.row = "isa-l"; // its share is of the best row's ceiling
    entry.work = (weft_bench_candidate){
        .call = weft_bench_isal_call,
        .user = &scene->products[i],
        .regions = {{shape->data, shape->n * shape->k}, {scene->isal_out, entry.m * shape->k}},
        .region_count = 2};
    entry.checked =
        weft_bench_check_product("isa-l", entry.m, shape->n, shape->k, shape->mixing, shape->n,
                                 shape->data, shape->k, scene->isal_out, shape->k);
    weft_bench_group_ask(scene->group, questions[i], best[like[i]],
                         weft_bench_group_add(scene->group, &entry), WEFT_BENCH_OUTPUT);
  }
}

static void add_peers(rlnc_scene *scene, const int *best) {
  const weft_bench_rlnc_peers *const peers = &scene->run->peers;
  for (size_t i = 0; i < peers->count; i++) {
    scene->peers[i] =
        weft_bench_rlnc_coder_new(&peers->peer[i], scene->shape, scene->run->options.seed);
    weft_bench_rlnc_coder_add(scene->peers[i], scene->group, best);
  }
}

static void run_shape(rlnc_run *run, size_t n, size_t k, size_t m) {
  weft_bench_shape shape;
  weft_bench_shape_make(&shape, n, k, m, run->options.seed);
  char *const title = weft_bench_text("n = %zu, k = %zu; %zu segments at once in decode-multi", n,
                                      k, shape.segments);
  weft_bench_group *const group = weft_bench_group_new(title);
  rlnc_scene scene = {
      .run = run, .shape = &shape, .group = group, .isal_out = weft_bench_alloc(m, k)};
  // One for a row alone and four for each number of threads.
  scene.codecs = weft_bench_alloc(run->row_count * (1 + 4 * run->options.threads.count),
                                  sizeof(weft_bench_codec *));
  const size_t bytes = shape.n * shape.k;
  const reads read = {weft_bench_add_read(group, run->machine.features, shape.data, bytes),
                      weft_bench_add_read_turning(group, run->machine.features, shape.data, bytes)};
  for (size_t r = 0; r < run->row_count; r++) {
    int single[WEFT_BENCH_OPERATIONS];
    const int ceiling = weft_bench_add_row_ceiling(group, run->rows[r]->name);
    add_single(&scene, run->rows[r]->name, ceiling, single);
    ask(&scene, single, read);
    for (size_t t = 0; t < run->options.threads.count; t++)
      if (run->options.threads.value[t] > 1)
        add_threads(&scene, run->rows[r]->name, run->options.threads.value[t], ceiling, single);
    if (r > 0)
      continue;
    add_isal(&scene, single);
    add_peers(&scene, single);
  }
  weft_bench_report_run(&run->report, &run->options, group);
  for (size_t c = 0; c < scene.codec_count; c++)
    weft_bench_codec_free(scene.codecs[c]);
  weft_bench_isal_release(&scene.products[0]);
  weft_bench_isal_release(&scene.products[1]);
  for (size_t i = 0; i < run->peers.count; i++)
    weft_bench_rlnc_coder_free(scene.peers[i]);
  weft_bench_shape_free(&shape);
  weft_bench_group_free(group);
  free(scene.codecs), free(scene.isal_out), free(title);
}

static bool operations_known(const weft_bench_options *options) {
  const char *names[WEFT_BENCH_OPERATIONS];
  for (int o = 0; o < WEFT_BENCH_OPERATIONS; o++)
    names[o] = weft_bench_operation_name((weft_bench_operation)o);
  return weft_bench_operations_known(options, names, WEFT_BENCH_OPERATIONS);
}

int weft_bench_rlnc_command(int argc, char **argv) {
  rlnc_run *const run = weft_bench_alloc(1, sizeof *run);
  weft_bench_options *const options = &run->options;
  const int parsed = weft_bench_options_parse(options, argc, argv);
  int failed = parsed == 1 ? 0 : parsed;
  weft_bench_machine_read(&run->machine);
  if (parsed == 0)
    run->rows = weft_bench_rows_choose("rlnc", options->rows ? options->rows : "best",
                                       run->machine.features, &run->row_count);
  if (parsed == 0 && (!run->rows || !operations_known(options)))
    failed = WEFT_BENCH_USAGE;
  if (parsed == 0 && failed == 0 && !weft_bench_rlnc_peers_open(options->peers, &run->peers))
    failed = WEFT_BENCH_USAGE;
  if (parsed == 0 && failed == 0) {
    weft_bench_sizes_default(&options->n, (const size_t[]){128}, 1);
    weft_bench_sizes_default(&options->k, (const size_t[]){1024, 4096, 16384},
                             options->quick ? 2 : 3);
    weft_bench_sizes_default(&options->threads, (const size_t[]){1, 2},
                             run->machine.cpus > 1 ? 2 : 1);
    weft_bench_pin(&run->machine, 0);
    weft_bench_report_begin(&run->report, options, &run->machine);
    run->isal = weft_bench_isal_open(options->isal);
    for (size_t n = 0; n < options->n.count; n++)
      for (size_t k = 0; k < options->k.count; k++)
        for (size_t m = 0; m < options->m.count || m == 0; m++)
          run_shape(run, options->n.value[n], options->k.value[k],
                    options->m.count ? options->m.value[m] : options->n.value[n]);
    weft_bench_isal_close(run->isal);
    weft_bench_unpin(&run->machine);
    failed = weft_bench_report_end(&run->report, options);
  }
  free(run->rows), free(run);
  return failed;
}
