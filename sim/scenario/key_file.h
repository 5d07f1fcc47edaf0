// SPDX-License-Identifier: Apache-2.0
// Files of keys in groups (GKeyFile), of scenarios and of `weft peer`; messages name file and line.
#ifndef WEFT_SIM_SCENARIO_KEY_FILE_H
#define WEFT_SIM_SCENARIO_KEY_FILE_H

#include <glib.h>

#include "sim/scenario/scenario.h"

// NULL: it is none, or sets a key twice in one group; `error` tells where.
GKeyFile *weft_sim_key_file(const char *text, const char *file, char error[WEFT_SIM_TEXT]);
// The first line after `after` on which a key of a group is set, or the group begins (key NULL); 0:
// none.
int weft_sim_key_file_line(const char *text, const char *group, const char *key, int after);

#endif
