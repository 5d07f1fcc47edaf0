// SPDX-License-Identifier: Apache-2.0
// The scenario files of sim/scenarios/, embedded by the build.
#ifndef WEFT_SIM_SCENARIO_SHIPPED_H
#define WEFT_SIM_SCENARIO_SHIPPED_H

#include <stddef.h>

typedef struct weft_sim_shipped_file {
  const char *name, *text;
} weft_sim_shipped_file;

extern const weft_sim_shipped_file weft_sim_shipped_files[];
extern const size_t weft_sim_shipped_count;

#endif
