// SPDX-License-Identifier: Apache-2.0
// `weft bench decoder`: times the two parts of progressive decoding separately: the elimination of
// n packets as they arrive, and the reduction of their payloads to blocks once all are there. The
// same rounds time deferred decoding as a whole, and one packet recoded on demand.
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "bench/ceiling_cases.h"
#include "bench/check.h"
#include "bench/commands.h"
#include "bench/group.h"
#include "bench/machine.h"
#include "bench/rlnc_cases.h"
#include "bench/rows.h"

typedef struct decoder_run {
  weft_bench_options options;
  weft_bench_machine machine;
  weft_bench_report report;
  const weft_backend **rows;
  size_t row_count;
} decoder_run;

// A segment's packets and the decoder that takes them, on one thread.
typedef struct arrivals {
  const weft_bench_shape *shape;
  const char *row;
  weft_ctx *ctx;
  weft_packet *packets; // (n)
  uint8_t *blocks;      // (n, k)
  weft_decoder_options options;
  weft_decoder *decoder;
} arrivals;

static arrivals *arrivals_new(const weft_bench_shape *shape, const char *row) {
  arrivals *const a = weft_bench_alloc(1, sizeof *a);
  *a = (arrivals){.shape = shape,
                  .row = row,
                  .packets = weft_bench_alloc(shape->n, sizeof *a->packets),
                  .blocks = weft_bench_alloc(shape->n, shape->k)};
  a->options = (weft_decoder_options){.id = weft_bench_segment_id(shape), .blocks = a->blocks};
  weft_bench_shape_packets(shape, a->packets);
  const weft_ctx_options options = {
      .backend = row, .threads = 1, .allocator = &weft_bench_allocator};
  weft_bench_must(row, weft_ctx_new(&a->ctx, &options));
  return a;
}

static void arrivals_free(arrivals *a) {
  weft_decoder_free(a->decoder);
  weft_ctx_free(a->ctx);
  free(a->packets), free(a->blocks), free(a);
}

// ---------------------------------------------------------------------------------------------
// What is timed, and what precedes it

static void begin(void *user) {
  arrivals *const a = user;
  weft_decoder_free(a->decoder);
  weft_bench_must("decoder", weft_decoder_new(a->ctx, &a->options, &a->decoder));
}

static void eliminate(void *user) {
  const arrivals *const a = user;
  for (size_t i = 0; i < a->shape->n; i++)
    weft_bench_must("eliminate", weft_decoder_add(a->decoder, &a->packets[i]));
}

static void begin_and_eliminate(void *user) {
  begin(user);
  eliminate(user);
}

static void reduce(void *user) {
  const arrivals *const a = user;
  for (size_t i = 0; i < a->shape->n; i++) {
    const uint8_t *block = NULL;
    weft_bench_must("reduce", weft_decoder_block(a->decoder, i, &block));
  }
}

// Decodes once and compares every byte.
static const char *check(arrivals *a) {
  const size_t bytes = a->shape->n * a->shape->k;
  memset(a->blocks, 0xa5, bytes);
  begin_and_eliminate(a);
  reduce(a);
  return weft_bench_check_source("decoder", a->blocks, a->shape->data, bytes);
}

// ---------------------------------------------------------------------------------------------

static weft_bench_case part_of(arrivals *a, const char *operation, void (*prepare)(void *user),
                               void (*call)(void *user)) {
  const weft_bench_shape *const shape = a->shape;
  return (weft_bench_case){
      .operation = operation,
      .row = a->row,
      .variant = "",
      .n = shape->n,
      .k = shape->k,
      .m = shape->n,
      .threads = 1,
      .amount = {[WEFT_BENCH_INPUT] = (double)(shape->n * shape->k)},
      .ceiling = -1,
      .work = {.call = call, .user = a, .prepare = prepare},
      .checked = check(a),
  };
}

static void add_parts(weft_bench_group *group, arrivals *a, int ceiling) {
  const weft_bench_case packets = part_of(a, "eliminate", begin, eliminate);
  weft_bench_case blocks = part_of(a, "reduce", begin_and_eliminate, reduce);
  const double bytes = blocks.amount[WEFT_BENCH_INPUT];
  blocks.amount[WEFT_BENCH_OUTPUT] = bytes;
  blocks.amount[WEFT_BENCH_PRODUCTS] = bytes * (double)a->shape->n;
  blocks.ceiling = ceiling;
  blocks.bound_by = WEFT_BENCH_PRODUCTS;
  weft_bench_group_add(group, &packets);
  weft_bench_group_add(group, &blocks);
}

static void add_row(weft_bench_group *group, const char *row, weft_bench_codec *codec,
                    arrivals *parts, int read) {
  const int ceiling = weft_bench_add_row_ceiling(group, row);
  add_parts(group, parts, ceiling);
  weft_bench_add_operation(group, codec, WEFT_BENCH_DECODE_DEFERRED, "", ceiling);
  const int one = weft_bench_add_operation(group, codec, WEFT_BENCH_RECODE_ONE, "", ceiling);
  weft_bench_group_ask(group, "rate of source bytes: one recoded packet / read", one, read,
                       WEFT_BENCH_INPUT);
}

static void run_shape(decoder_run *run, size_t n, size_t k) {
  weft_bench_shape shape;
  weft_bench_shape_make(&shape, n, k, n, run->options.seed);
  char *const title = weft_bench_text("n = %zu, k = %zu; m: packets, or blocks of them", n, k);
  weft_bench_group *const group = weft_bench_group_new(title);
  weft_bench_codec **const codecs = weft_bench_alloc(run->row_count, sizeof(weft_bench_codec *));
  arrivals **const parts = weft_bench_alloc(run->row_count, sizeof *parts);
  group->times = true;
  const int read = weft_bench_add_read(group, run->machine.features, shape.data, n * k);
  for (size_t r = 0; r < run->row_count; r++) {
    const char *const row = run->rows[r]->name;
    codecs[r] = weft_bench_codec_new(&shape, &run->machine, row, 1, WEFT_SPLIT_AUTO, 1);
    parts[r] = arrivals_new(&shape, row);
    add_row(group, row, codecs[r], parts[r], read);
  }
  weft_bench_report_run(&run->report, &run->options, group);
  for (size_t r = 0; r < run->row_count; r++) {
    weft_bench_codec_free(codecs[r]);
    arrivals_free(parts[r]);
  }
  weft_bench_group_free(group);
  weft_bench_shape_free(&shape);
  free(codecs), free(parts), free(title);
}

static int measure(decoder_run *run) {
  weft_bench_options *const options = &run->options;
  weft_bench_sizes_default(&options->n, (const size_t[]){16, 64, 128, 256, 1024},
                           options->quick ? 3 : 5);
  weft_bench_sizes_default(&options->k, (const size_t[]){1024}, 1);
  weft_bench_pin(&run->machine, 0);
  weft_bench_report_begin(&run->report, options, &run->machine);
  for (size_t n = 0; n < options->n.count; n++)
    for (size_t k = 0; k < options->k.count; k++)
      run_shape(run, options->n.value[n], options->k.value[k]);
  weft_bench_unpin(&run->machine);
  return weft_bench_report_end(&run->report, options);
}

int weft_bench_decoder_command(int argc, char **argv) {
  decoder_run *const run = weft_bench_alloc(1, sizeof *run);
  weft_bench_options *const options = &run->options;
  const int parsed = weft_bench_options_parse(options, argc, argv);
  int failed = parsed == 1 ? 0 : parsed;
  if (parsed == 0) {
    weft_bench_machine_read(&run->machine);
    run->rows = weft_bench_rows_choose("decoder", options->rows ? options->rows : "best",
                                       run->machine.features, &run->row_count);
    failed = run->rows ? measure(run) : WEFT_BENCH_USAGE;
  }
  free(run->rows), free(run);
  return failed;
}
