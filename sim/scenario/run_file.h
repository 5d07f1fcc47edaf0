// SPDX-License-Identifier: Apache-2.0
#ifndef WEFT_SIM_SCENARIO_RUN_FILE_H
#define WEFT_SIM_SCENARIO_RUN_FILE_H

#include "sim/scenario/scenario.h"

// Whether a scenario's text is that of a run.json, which begins with a brace: a key file cannot.
bool weft_sim_is_run_file(const char *text);
bool weft_sim_load_run_file(weft_sim_parameters *parameters, const char *text, const char *file,
                            char error[WEFT_SIM_TEXT]);

#endif
