// SPDX-License-Identifier: Apache-2.0
// `weft demo`: its options.
#include <string.h>

#include "cli/demo.h"
#include "sim/scenario/scenario.h"

#define NAME "demo"
enum { MAX_PEERS = 65535 };

static const char summary[] =
    "Streams an input from a source to peers that recode for each other: random push over a\n"
    "random graph with loss on every link, in one process and in virtual time, with real bytes.\n"
    "Checks every byte that each peer decodes against the input.";

static const char description[] =
    "Defaults are in parentheses. Rates and sizes accept k, M, G (powers of 1000) and Ki, Mi, Gi\n"
    "(of 1024); times accept a unit (20ms, 1s); a plain number is milliseconds.\n"
    "Memory: about (peers + 1) x window x segment-blocks x block-bytes; if the input is shorter\n"
    "than a window, (peers + 1) x its size in whole segments.\n"
    "Exit codes: 0 every peer holds the input; 1 some peer does not; 2 command line; 3 input or\n"
    "output; 4 memory, backend or device; 130 interrupted by Ctrl-C, 143 by SIGTERM,\n"
    "129 by a terminal that closed.";

// The values of the command line.
typedef struct demo_words {
  gint64 peers, blocks, block_bytes, degree, window, batch, threads, seed;
  char *input, *backend, *loss, *upload, *source_upload, *clip, *delay_min, *delay_max;
  gboolean json, coded_only;
} demo_words;

static int whole(const char *option, gint64 value, gint64 min, gint64 max) {
  if (value >= min && value <= max)
    return -1;
  return cli_error(NAME, CLI_USAGE,
                   "%s must be %" G_GINT64_FORMAT "..%" G_GINT64_FORMAT ", not %" G_GINT64_FORMAT,
                   option, min, max, value);
}

static int quantity(const char *option, const char *text, uint64_t *out) {
  if (!text || cli_parse_quantity(text, out))
    return -1;
  return cli_error(NAME, CLI_USAGE, "%s needs a number of at least 1, such as 20M, not '%s'",
                   option, text);
}

static int loss(const char *text, double *out) {
  if (text && !weft_sim_parse_share(text, out))
    return cli_error(NAME, CLI_USAGE, "--loss must be a share such as 0.05 or 5%%, not '%s'", text);
  if (!(*out >= 0 && *out <= 0.9))
    return cli_error(NAME, CLI_USAGE, "--loss must be 0..0.9, not %g", *out);
  return -1;
}

static int delay(const char *option, const char *text, int64_t *out_us) {
  double us;
  if (!text)
    return -1;
  if (!weft_sim_parse_time(text, 1e3, &us))
    return cli_error(NAME, CLI_USAGE, "%s needs milliseconds, or a time such as 20ms, not '%s'",
                     option, text);
  *out_us = us > 0 && us < 1e12 ? (int64_t)us : 0;
  return -1;
}

static int delays(const demo_words *w, weft_sim_parameters *o) {
  int code = delay("--delay-min", w->delay_min, &o->delay_min_us);
  if (code < 0)
    code = delay("--delay-max", w->delay_max, &o->delay_max_us);
  if (code < 0 &&
      (o->delay_min_us < 100 || o->delay_min_us > o->delay_max_us || o->delay_max_us > 10000000))
    code =
        cli_error(NAME, CLI_USAGE, "delays must be 0.1 ms <= --delay-min <= --delay-max <= 10 s");
  return code;
}

static int check(const demo_words *w, demo_settings *s) {
  const struct {
    const char *option;
    gint64 value, min, max;
  } ranges[] = {
      {"--peers", w->peers, 1, MAX_PEERS},
      {"--segment-blocks", w->blocks, 1, WEFT_MAX_BLOCKS},
      {"--block-bytes", w->block_bytes, 1, WEFT_MAX_BLOCK_BYTES},
      {"--degree", w->degree, 2, WEFT_ENGINE_MAX_NEIGHBOURS},
      {"--window", w->window, 1, WEFT_ENGINE_MAX_WINDOW},
      {"--batch", w->batch, 1, WEFT_ENGINE_MAX_BATCH},
      {"--threads", w->threads, 0, 1024},
      {"--seed", w->seed, 0, G_MAXINT64},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(ranges); i++) {
    const int code = whole(ranges[i].option, ranges[i].value, ranges[i].min, ranges[i].max);
    if (code >= 0)
      return code;
  }
  if (w->clip && w->input)
    return cli_error(NAME, CLI_USAGE,
                     "--clip generates the input, so it cannot be used with --input");
  weft_sim_parameters *o = &s->swarm;
  int code = loss(w->loss, &o->loss);
  if (code < 0)
    code = delays(w, o);
  if (code < 0)
    code = quantity("--upload", w->upload, &o->classes[0].up_bits_per_s);
  if (code < 0)
    code = quantity("--source-upload", w->source_upload, &o->source_bits_per_s);
  return code < 0 ? quantity("--clip", w->clip, &s->clip_bytes) : code;
}

static demo_settings settings_of(const demo_words *w) {
  demo_settings s = {.input = w->input,
                     .backend = w->backend,
                     .clip_bytes = 32u << 20,
                     .seed = (uint64_t)w->seed,
                     .threads = w->threads ? (size_t)w->threads : g_get_num_processors(),
                     .json = w->json};
  weft_sim_defaults(&s.swarm);
  weft_sim_parameters *o = &s.swarm;
  o->mode = WEFT_SIM_BULK;
  o->fidelity = WEFT_SIM_BYTES;
  o->topology = WEFT_SIM_GRAPH;
  o->latency = WEFT_SIM_UNIFORM;
  o->seed = (uint64_t)w->seed;
  o->peers = (uint32_t)w->peers;
  o->neighbours = o->neighbours_max = (uint32_t)w->degree;
  o->blocks = (uint32_t)w->blocks;
  o->block_bytes = (uint32_t)w->block_bytes;
  o->window = (uint32_t)w->window;
  o->batch = (uint32_t)w->batch;
  o->coded_only = w->coded_only;
  o->overhead_bytes = 0; // counts the engine's datagrams only, no headers below them
  o->queue_us = INT64_C(3600000000);
  o->source_bits_per_s = 40000000;
  o->classes[0] = (weft_sim_class){.name = "peer", .share = 1, .up_bits_per_s = 20000000};
  o->delay_min_us = 5000;
  o->delay_max_us = 40000;
  o->loss = 0.05;
  o->map_us = o->map_idle_us = 0;     // the engine's defaults
  o->silent_us = INT64_C(3600000000); // no peer leaves, and a lost one could not be replaced
  o->sampled = 0;
  return s;
}

static int parse(int argc, char **argv, demo_words *w) {
  const GOptionEntry entries[] = {
      {"input", 'i', 0, G_OPTION_ARG_FILENAME, &w->input,
       "File to stream; - is standard input; default: a clip generated from the seed", "FILE"},
      {"clip", 0, 0, G_OPTION_ARG_STRING, &w->clip, "Length of the generated clip in bytes (32Mi)",
       "SIZE"},
      {"peers", 'p', 0, G_OPTION_ARG_INT64, &w->peers, "Peers besides the source (16)", "N"},
      {"segment-blocks", 'n', 0, G_OPTION_ARG_INT64, &w->blocks,
       "Blocks in a segment, 1..1024 (128)", "N"},
      {"block-bytes", 'k', 0, G_OPTION_ARG_INT64, &w->block_bytes,
       "Bytes in a block, 1..1048576 (4096)", "N"},
      {"loss", 'l', 0, G_OPTION_ARG_STRING, &w->loss,
       "Probability that a link loses a datagram, 0..0.9 or in percent (5%)", "P"},
      {"seed", 's', 0, G_OPTION_ARG_INT64, &w->seed,
       "Random seed: same seed and options, same run, bit for bit (1)", "N"},
      {"degree", 0, 0, G_OPTION_ARG_INT64, &w->degree, "Most neighbours of a node (4)", "N"},
      {"window", 0, 0, G_OPTION_ARG_INT64, &w->window, "Window of a node, in segments (16)", "N"},
      {"batch", 0, 0, G_OPTION_ARG_INT64, &w->batch, "Packets coded in one product (8)", "N"},
      {"upload", 0, 0, G_OPTION_ARG_STRING, &w->upload, "Uplink of a peer, bits/s (20M)", "RATE"},
      {"source-upload", 0, 0, G_OPTION_ARG_STRING, &w->source_upload,
       "Uplink of the source, bits/s (40M)", "RATE"},
      {"delay-min", 0, 0, G_OPTION_ARG_STRING, &w->delay_min,
       "Smallest one-way delay of a link (5ms)", "TIME"},
      {"delay-max", 0, 0, G_OPTION_ARG_STRING, &w->delay_max,
       "Largest one-way delay of a link (40ms)", "TIME"},
      {"coded-only", 0, 0, G_OPTION_ARG_NONE, &w->coded_only,
       "The source sends coded packets only, no uncoded blocks", NULL},
      {"backend", 'b', 0, G_OPTION_ARG_STRING, &w->backend,
       "Backend row to use (the best one; see weft backends)", "NAME"},
      {"threads", 't', 0, G_OPTION_ARG_INT64, &w->threads,
       "Threads among which peers are divided (one per processor)", "N"},
      {"json", 0, 0, G_OPTION_ARG_NONE, &w->json, "Print one JSON object instead of the tables",
       NULL},
      {0}};
  return cli_parse(NAME, summary, description, entries, argc, argv);
}

int cli_demo(int argc, char **argv) {
  demo_words words = {.peers = 16,
                      .blocks = 128,
                      .block_bytes = 4096,
                      .seed = 1,
                      .degree = 4,
                      .window = 16,
                      .batch = 8};
  int code = parse(argc, argv, &words);
  demo_settings settings = settings_of(&words);
  if (code < 0)
    code = check(&words, &settings);
  if (code < 0) {
    demo_outcome outcome = {0};
    code = demo_run(&settings, &outcome);
    if (outcome.complete) {
      cli_leave_by_signals();
      cli_json_errors_end();
      (settings.json ? demo_report_json : demo_report_table)(&settings, &outcome);
      code = cli_flush(NAME, code);
    }
    demo_outcome_clear(&outcome);
  }
  g_free(words.input);
  g_free(words.backend);
  g_free(words.loss);
  g_free(words.upload);
  g_free(words.source_upload);
  g_free(words.clip);
  g_free(words.delay_min);
  g_free(words.delay_max);
  return code;
}
