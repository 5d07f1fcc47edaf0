// SPDX-License-Identifier: Apache-2.0
// A sweep's grid and the figures of its runs, for the tables and the page. An axis of the grid is a
// key with its values; a point has one value of each axis.
#ifndef WEFT_CLI_SIM_SWEEP_H
#define WEFT_CLI_SIM_SWEEP_H

#include "cli/sim.h"

enum { SIM_SWEEP_AXES = 8, SIM_SWEEP_VALUES = 64, SIM_SWEEP_ID_BYTES = 8 };

typedef struct sim_sweep_axis {
  size_t key; // of weft_sim_key_at
  char **values;
  size_t count;
} sim_sweep_axis;

// One run whose figures are known.
typedef struct sim_sweep_run {
  size_t point;
  uint64_t seed;
  char id[2 * SIM_SWEEP_ID_BYTES + 1];
  const char *revision;            // interned
  double values[WEFT_SIM_METRICS]; // in the order of the sweep's names; NaN: none
} sim_sweep_run;

typedef struct sim_sweep_state {
  const sim_settings *settings;
  const weft_sim_parameters *parameters; // which the axes change
  sim_sweep_axis axes[SIM_SWEEP_AXES];
  size_t axis_count, points, seeds;
  weft_sim_metrics names; // the figures of the first run
  GArray *runs;           // sim_sweep_run, point by point
  size_t *first, *n;      // (points) index and count of a point's runs in `runs`
  GString *summary;       // text of summary.csv
} sim_sweep_state;

// Index and text of an axis's value at a point of the grid. sim_sweep_set_point gives the point's
// parameters and returns -1, or reports why they cannot be run and returns an exit code.
size_t sim_sweep_index(const sim_sweep_state *s, size_t point, size_t axis);
const char *sim_sweep_value(const sim_sweep_state *s, size_t point, size_t axis);
int sim_sweep_set_point(const sim_sweep_state *s, size_t point, uint64_t seed,
                        weft_sim_parameters *p);

typedef struct sim_sweep_mean {
  size_t n;          // runs of the point
  double mean, half; // half of the 95 % interval: Student's t; NaN: none
} sim_sweep_mean;
sim_sweep_mean sim_sweep_mean_of(const sim_sweep_state *s, size_t point, size_t metric);

// Returns means.gp, which draws means.csv over the last axis; there must be at least one
// (sim_gnuplot.c).
char *sim_sweep_gnuplot(const sim_sweep_state *s);

// Returns report.html's data; NULL: no memory.
json_t *sim_sweep_json(const sim_sweep_state *s);

#endif
