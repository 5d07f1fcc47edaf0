// SPDX-License-Identifier: Apache-2.0
// The demo's parts: options (demo.c), the run (demo_run.c), the report (demo_report.c).
#ifndef WEFT_CLI_DEMO_H
#define WEFT_CLI_DEMO_H

#include "cli/cli.h"
#include "sim/codec_timed.h"
#include "sim/swarm/swarm.h"

enum { DEMO_DIGEST_BYTES = 32 };

typedef struct demo_settings {
  const char *input; // NULL: the clip
  const char *backend;
  uint64_t clip_bytes, seed;
  size_t threads;
  bool json;
  weft_sim_parameters swarm; // a run of the simulator with real bytes
} demo_settings;

// What one peer decoded.
typedef struct demo_peer {
  uint8_t digest[DEMO_DIGEST_BYTES];
  uint64_t bytes;
  bool same; // as the input
} demo_peer;

// What one node's engine counted. Node 0 is the source.
typedef struct demo_node {
  size_t degree;
  int64_t done_us; // when the last byte was decoded, or WEFT_SIM_NEVER
  uint64_t delivered_bytes;
  weft_engine_statistics statistics;
} demo_node;

typedef struct demo_outcome {
  bool complete;       // the run finished, and everything below is set
  const char *backend; // the row that computed
  size_t threads;
  uint8_t digest[DEMO_DIGEST_BYTES]; // of the input
  uint64_t input_bytes;
  demo_peer *peers; // (swarm.peers)
  demo_node *nodes; // (swarm.peers + 1)
  size_t same;      // peers that hold the input
  weft_sim_result result;
  weft_codec_cost encode, recode, decode;
  double wall_s;
} demo_outcome;

// Runs the demo. Returns an exit code; unless the outcome is complete, the error was reported.
int demo_run(const demo_settings *settings, demo_outcome *out);
void demo_outcome_clear(demo_outcome *outcome);

void demo_report_table(const demo_settings *settings, const demo_outcome *outcome);
void demo_report_json(const demo_settings *settings, const demo_outcome *outcome);

#endif
