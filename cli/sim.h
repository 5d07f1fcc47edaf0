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
  const char *command; // as a shell would take it again
  bool json, quiet, gnuplot;
  weft_sim_transport *transport; // NULL: one rank
} sim_settings;

// The figures of a run that has ended; everything else is in files by then.
typedef struct sim_outcome {
  weft_sim_metrics metrics;
  char *row, *heading; // of summary.csv
} sim_outcome;

// weft_sim_check, of the ranks there are.
bool sim_check(const sim_settings *settings, weft_sim_parameters *parameters,
               char why[WEFT_SIM_TEXT]);

// Says what of them comes to nothing, and goes on.
void sim_remark_idle(const sim_settings *settings, const weft_sim_parameters *parameters);

// Runs it and writes into `folder` (NULL: nowhere); all: every file, else run.json alone, also of a
// run that made no progress, which is an error with `all`. Returns an exit code, and has told what
// went wrong.
int sim_run(const sim_settings *settings, const weft_sim_parameters *parameters, const char *folder,
            bool all, sim_outcome *out);
void sim_outcome_clear(sim_outcome *outcome);

// figures.gp, which draws a run's tables; a weft_sim_writer, `user`: the report (sim_gnuplot.c).
weft_status sim_put_gnuplot(void *user, FILE *to);

// `sweeps`: "key=value,value,..."; each point of their grid `seeds` times, from parameters->seed
// on.
int sim_sweep(const sim_settings *settings, const weft_sim_parameters *parameters,
              char *const *sweeps, size_t seeds);

// The whole command, as a rank of `transport` (NULL: alone).
int sim_command(int argc, char **argv, weft_sim_transport *transport);

#endif
