// SPDX-License-Identifier: Apache-2.0
// Refuses parameters that no run can fulfil, before it starts.
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "sim/model.h"
#include "sim/scenario/keys.h"
#include "sim/swarm/swarm.h"

enum { BYTES_UP_TO = 100, COEFFICIENTS_UP_TO = 5000 }; // peers, for fidelity = auto

// Returns the memory of one engine; 0: the engine does not accept these options.
static double engine_bytes(const weft_sim_parameters *p) {
  weft_codec_rlnc rlnc = {0};
  weft_codec_blocks uncoded = {0};
  const weft_codec codec = p->scheme == WEFT_SIM_RAREST ? weft_codec_blocks_table(&uncoded)
                                                        : weft_codec_rlnc_table(&rlnc);
  const weft_engine_options engine = weft_sim_engine_options(p, &codec);
  return (double)weft_engine_memory_bytes(&engine);
}

double weft_sim_memory_bytes(const weft_sim_parameters *p) {
  const double n = p->blocks, k = p->block_bytes;
  if (p->kind == WEFT_SIM_STORE) // as shards, and as copies
    return 2.0 * p->objects * (p->data_shards + p->parity_shards) * p->shard_bytes;
  if (p->kind == WEFT_SIM_SERVER)
    return (double)p->peers * (n * (n + k) + 2000) + 2.0 * 64 * 1048576;
  double segment = 104.0 + (n > 256 ? 2.0 : 1.0) * p->neighbours_max;
  if (p->fidelity == WEFT_SIM_COEFFICIENTS)
    segment = n * n + 2 * n;
  if (p->fidelity == WEFT_SIM_BYTES || p->scheme == WEFT_SIM_RAREST)
    segment = n * (n + k);
  return (double)p->peers * (engine_bytes(p) + p->window * segment + 730 + 4.0 * p->neighbours_max);
}

static bool fits(const weft_sim_parameters *p, size_t ranks, double have,
                 char error[WEFT_SIM_TEXT]) {
  const double need = weft_sim_memory_bytes(p) / (double)ranks;
  if (need <= 0.95 * have)
    return true;
  static const char *const advice[] = {
      [WEFT_SIM_SWARM] = "lower peers, window or neighbours-max, or choose fidelity = rank",
      [WEFT_SIM_SERVER] = "lower peers, segment-blocks or block-bytes",
      [WEFT_SIM_STORE] = "lower objects, shard-bytes or the number of shards"};
  const bool many = ranks > 1;
  snprintf(error, WEFT_SIM_TEXT, "the run may need %.1f GiB%s and %s machine has %.1f GiB%s; %s",
           need / 0x1p30, many ? " a rank" : "", many ? "the smallest" : "this", have / 0x1p30,
           many ? " for one" : "", advice[p->kind]);
  return false;
}

// A peer's region is its provider's number modulo the number of regions.
static const char *impossible_matrix(const weft_sim_parameters *p) {
  if (p->latency != WEFT_SIM_MATRIX)
    return NULL;
  if (p->regions == 0)
    return "latency = matrix needs a matrix";
  if (p->isps < p->regions)
    return "isps must be at least the number of rows of matrix, so that each region has a provider";
  return NULL;
}

static double segment_us_of(const weft_sim_parameters *p) {
  return (double)p->blocks * p->block_bytes * 8e6 / (double)p->rate_bits_per_s;
}

// Virtual time counts whole microseconds.
static const char *impossible_segment(const weft_sim_parameters *p) {
  return segment_us_of(p) < 1
             ? "a segment is shorter than 1 us (segment-blocks * block-bytes * 8 / rate)"
             : NULL;
}

static const char *impossible(const weft_sim_parameters *p) {
  if (p->mode != WEFT_SIM_BULK && impossible_segment(p))
    return impossible_segment(p);
  if (p->neighbours_max < p->neighbours)
    return "neighbours-max must be at least neighbours";
  if (p->gather_segments && (p->mode == WEFT_SIM_LIVE || p->fidelity != WEFT_SIM_BYTES ||
                             p->scheme == WEFT_SIM_RAREST || !p->manifests))
    return "gather-segments needs mode = vod or bulk, a coded scheme, fidelity = bytes and "
           "manifests = true";
  if (p->ahead && p->mode != WEFT_SIM_BULK)
    return "ahead needs mode = bulk";
  if (p->source_neighbours > p->neighbours_max)
    return "source-neighbours is more than neighbours-max";
  if (p->topology == WEFT_SIM_GRAPH && p->source_neighbours && p->source_neighbours < p->neighbours)
    return "source-neighbours is below neighbours, but in a graph the source has that many, too";
  if (p->topology == WEFT_SIM_GRAPH && p->neighbours < 2)
    return "neighbours must be at least 2 in a graph";
  if (p->delay_max_us < p->delay_min_us)
    return "delay-max must be at least delay-min";
  if (impossible_matrix(p))
    return impossible_matrix(p);
  if (p->arrival == WEFT_SIM_TRACE && !p->trace_file[0])
    return "arrival = trace needs trace, a file";
  if (p->topology == WEFT_SIM_GRAPH && p->arrival != WEFT_SIM_TOGETHER)
    return "topology = graph is fixed from the start: arrival must be together";
  if (p->mode != WEFT_SIM_BULK && p->source_bits_per_s < p->rate_bits_per_s)
    return "source-upload is below rate: the stream cannot leave the source";
  if (p->source_line_bits_per_s && p->source_line_bits_per_s < p->source_bits_per_s)
    return "source-line is below source-upload";
  if (p->scheme == WEFT_SIM_RAREST && p->neighbours < 4)
    return "rarest needs neighbours of at least 4 (30 to 50 are usual)";
  if (p->scheme == WEFT_SIM_RAREST && p->fidelity != WEFT_SIM_BYTES)
    return "scheme = rarest needs fidelity = bytes or auto: its blocks are whole";
  if (p->seeks_per_hour > 0 && p->mode != WEFT_SIM_VOD)
    return "seeks-per-hour needs mode = vod";
  if (p->polluters > 0 && p->scheme == WEFT_SIM_RAREST)
    return "polluters are modelled for the coded schemes only";
  if (p->coded_only && p->scheme == WEFT_SIM_RAREST)
    return "coded-only needs a coded scheme";
  if (p->checksum_us && p->blocks > WEFT_CHECKSUM_MAX_BLOCKS)
    return "checksum-every needs segment-blocks of at most 128: one datagram holds a checksum";
  return engine_bytes(p) > 0 ? NULL : "these settings exceed the limits of a peer's engine";
}

static const char *impossible_server(const weft_sim_parameters *p) {
  if (impossible_segment(p))
    return impossible_segment(p);
  if (p->source_bits_per_s < p->rate_bits_per_s)
    return "source-upload is below rate: the stream cannot leave the server";
  if (impossible_matrix(p))
    return impossible_matrix(p);
  return p->arrival == WEFT_SIM_TRACE && !p->trace_file[0] ? "arrival = trace needs trace, a file"
                                                           : NULL;
}

static const char *impossible_store(const weft_sim_parameters *p) {
  if (p->data_shards + p->parity_shards > 256)
    return "data-shards and parity-shards must be at most 256 together";
  if (p->peers < 2 * (p->data_shards + p->parity_shards))
    return "peers must be at least twice data-shards + parity-shards: each shard has its own peer";
  if (p->duration_us < INT64_C(2) * 3600 * 1000000)
    return "a store must run for at least 2 h";
  if (p->repair_below > p->data_shards + p->parity_shards)
    return "repair-below is more than all shards";
  if (p->repair_below && p->repair_below <= p->data_shards)
    return "repair-below must be 0 (all) or above data-shards: once fewer are left nothing can be "
           "made";
  return NULL;
}

static bool holds_two_segments(const weft_sim_parameters *p, const char *key, int64_t us,
                               char error[WEFT_SIM_TEXT]) {
  const double segment_us = segment_us_of(p);
  if ((double)us >= 2 * segment_us)
    return true;
  snprintf(error, WEFT_SIM_TEXT,
           "%s must be at least two segments, and one lasts %.4g s (segment-blocks * block-bytes * "
           "8 / rate)",
           key, segment_us / 1e6);
  return false;
}

// The window must hold the lag and two more segments: the one being played and the one that the
// source is making.
static bool window_holds_lag(const weft_sim_parameters *p, char error[WEFT_SIM_TEXT]) {
  const double segment_us = segment_us_of(p), needed = ceil((double)p->lag_us / segment_us) + 2;
  if (p->window >= needed)
    return true;
  snprintf(error, WEFT_SIM_TEXT,
           "window holds less than lag: a lag of %.4g s needs %.0f segments of %.4g s each, but "
           "window is %zu; raise window%s, or lower lag",
           (double)p->lag_us / 1e6, needed, segment_us / 1e6, (size_t)p->window,
           needed > WEFT_ENGINE_MAX_WINDOW ? " and segment-blocks" : " or segment-blocks");
  return false;
}

static bool segments_fit(const weft_sim_parameters *p, char error[WEFT_SIM_TEXT]) {
  const bool swarm = p->kind == WEFT_SIM_SWARM;
  if (p->kind == WEFT_SIM_STORE || (swarm && p->mode == WEFT_SIM_BULK))
    return true;
  return holds_two_segments(p, "duration", p->duration_us, error) &&
         (!swarm || p->mode != WEFT_SIM_LIVE ||
          (holds_two_segments(p, "lag", p->lag_us, error) && window_holds_lag(p, error)));
}

static bool classes_possible(const weft_sim_parameters *p, char error[WEFT_SIM_TEXT]) {
  for (size_t i = 0; i < p->class_count; i++) {
    const weft_sim_class *class = &p->classes[i];
    const bool short_line = p->kind == WEFT_SIM_SWARM && class->line_bits_per_s &&
                            class->line_bits_per_s < class->up_bits_per_s;
    const bool never_plays = p->mode == WEFT_SIM_VOD && class->down_bits_per_s < p->rate_bits_per_s;
    if (short_line || never_plays) {
      snprintf(error, WEFT_SIM_TEXT, "class %s: %s", class->name,
               short_line ? "line is below its upload"
                          : "download is below rate: it can never play");
      return false;
    }
  }
  return true;
}

// After a packet that got through, a run of losses begins with probability loss / (burst * (1 -
// loss)), which cannot exceed 1.
static bool losses_possible(const weft_sim_parameters *p, char error[WEFT_SIM_TEXT]) {
  for (size_t i = 0; i < p->class_count; i++) {
    const weft_sim_class *class = &p->classes[i];
    if (class->burst > 1 && class->loss > class->burst / (1 + class->burst)) {
      snprintf(error, WEFT_SIM_TEXT,
               "class %s: loss is more than burst / (1 + burst) = %.4g, the most that bursts with "
               "a mean of burst packets allow",
               class->name, class->burst / (1 + class->burst));
      return false;
    }
  }
  return true;
}

// Otherwise a misspelled class name would silently get the values of `plain`.
static bool classes_described(const weft_sim_parameters *p, char error[WEFT_SIM_TEXT]) {
  const char *name = weft_sim_undescribed_class(p);
  if (!name)
    return true;
  char known[WEFT_SIM_TEXT];
  weft_sim_known_classes(known);
  snprintf(error, WEFT_SIM_TEXT, "class %s is not one of %.200s, and there is no [class %s]", name,
           known, name);
  return false;
}

bool weft_sim_check_ranks(weft_sim_parameters *p, size_t ranks, double rank_bytes,
                          char error[WEFT_SIM_TEXT]) {
  if (p->fidelity_auto)
    p->fidelity = p->peers <= BYTES_UP_TO          ? WEFT_SIM_BYTES
                  : p->peers <= COEFFICIENTS_UP_TO ? WEFT_SIM_COEFFICIENTS
                                                   : WEFT_SIM_RANK;
  if (p->kind != WEFT_SIM_SWARM || (p->fidelity_auto && p->scheme == WEFT_SIM_RAREST))
    p->fidelity = WEFT_SIM_BYTES; // only real bytes are simulated here
  p->fidelity_auto = false;
  const char *why = p->kind == WEFT_SIM_STORE    ? impossible_store(p)
                    : p->kind == WEFT_SIM_SERVER ? impossible_server(p)
                                                 : impossible(p);
  if (why) {
    snprintf(error, WEFT_SIM_TEXT, "%s", why);
    return false;
  }
  return segments_fit(p, error) && classes_described(p, error) &&
         (p->kind == WEFT_SIM_STORE || (classes_possible(p, error) && losses_possible(p, error))) &&
         fits(p, ranks, rank_bytes, error);
}

// Whether no dial lasts until the answer to its second message, which takes four delays.
static bool nobody_connects(const weft_sim_parameters *p) {
  return p->kind == WEFT_SIM_SWARM && p->topology != WEFT_SIM_GRAPH &&
         4 * weft_sim_least_delay_us(p) >= WEFT_SIM_DIAL_US;
}

const char *weft_sim_idle(const weft_sim_parameters *p) {
  const bool ends = p->kind == WEFT_SIM_SERVER || p->mode != WEFT_SIM_BULK;
  if (p->kind != WEFT_SIM_STORE && p->failure_us == 0)
    return "failure-at is 0 s, before any peer arrives: no peer fails";
  if (p->kind != WEFT_SIM_STORE && ends && p->failure_us != WEFT_SIM_NEVER &&
      p->failure_us >= p->duration_us)
    return "failure-at is not before the end of the run (duration): no peer fails";
  if (nobody_connects(p))
    return "every path takes 1.25 s or more, which a dial does not wait for: no session opens";
  return p->kind == WEFT_SIM_SWARM && p->mode == WEFT_SIM_LIVE && p->duration_us <= p->lag_us
             ? "duration is not longer than lag: nothing is played"
             : NULL;
}

bool weft_sim_check(weft_sim_parameters *p, char error[WEFT_SIM_TEXT]) {
  const double have = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  return weft_sim_check_ranks(p, 1, have, error);
}
