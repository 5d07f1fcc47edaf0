// SPDX-License-Identifier: Apache-2.0
// Files of keys in groups (GKeyFile), for scenarios and `weft peer`; messages name file and line.
#ifndef WEFT_SIM_SCENARIO_KEY_FILE_H
#define WEFT_SIM_SCENARIO_KEY_FILE_H

#include <glib.h>

#include "sim/scenario/scenario.h"

// Returns NULL if the text is not a key file or sets a key twice in one group; `error` says where.
GKeyFile *weft_sim_key_file(const char *text, const char *file, char error[WEFT_SIM_TEXT]);
// Returns the first line after `after` that sets a key of a group, or that begins the group (key
// NULL); 0: none.
int weft_sim_key_file_line(const char *text, const char *group, const char *key, int after);

#endif
