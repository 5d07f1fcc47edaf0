// SPDX-License-Identifier: Apache-2.0
// `weft sim`: options (sim.c), one run (sim_run.c), many (sim_sweep.c), scripts
// (sim_gnuplot.c).
#ifndef WEFT_CLI_SIM_H
#define WEFT_CLI_SIM_H

#include "cli/cli.h"
#include "sim/core/transport.h"
#include "sim/report/report.h"
#include "sim/scenario/scenario.h"

typedef struct sim_settings {
  const char *backend;
  size_t threads;
  const char *folder;  // NULL: no files
  const char *command; // the command line, quoted for a shell
  bool json, quiet, gnuplot;
  weft_sim_transport *transport; // NULL: one rank
} sim_settings;

// The figures of a run that has ended; everything else has been written to files.
typedef struct sim_outcome {
  weft_sim_metrics metrics;
  char *row, *heading; // of summary.csv
} sim_outcome;

// Checks the parameters like weft_sim_check, for as many ranks as there are.
bool sim_check(const sim_settings *settings, weft_sim_parameters *parameters,
               char why[WEFT_SIM_TEXT]);

// Prints a remark if some of the parameters have no effect.
void sim_remark_idle(const sim_settings *settings, const weft_sim_parameters *parameters);

// Runs a scenario and writes its results into `folder` (NULL: nowhere). all: every file, and a run
// that made no progress is an error; else run.json alone, also of such a run. Returns an exit code,
// having reported what went wrong.
int sim_run(const sim_settings *settings, const weft_sim_parameters *parameters, const char *folder,
            bool all, sim_outcome *out);
void sim_outcome_clear(sim_outcome *outcome);

// Writes figures.gp, which draws a run's tables. A weft_sim_writer; `user`: the report
// (sim_gnuplot.c).
weft_status sim_put_gnuplot(void *user, FILE *to);

// Runs each point of a grid `seeds` times, with seeds from parameters->seed on. `sweeps`, which
// span the grid: "key=value,value,...".
int sim_sweep(const sim_settings *settings, const weft_sim_parameters *parameters,
              char *const *sweeps, size_t seeds);

// Runs the whole command, as a rank of `transport` (NULL: alone).
int sim_command(int argc, char **argv, weft_sim_transport *transport);

#endif
