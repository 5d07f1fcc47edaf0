// SPDX-License-Identifier: Apache-2.0
// What the files of scenario/ share: the rows of the table of keys.
#ifndef WEFT_SIM_SCENARIO_KEYS_H
#define WEFT_SIM_SCENARIO_KEYS_H

#include "sim/scenario/scenario.h"

typedef enum key_kind {
  KEY_U32,
  KEY_U64,
  KEY_REAL,
  KEY_TIME,    // int64_t, microseconds
  KEY_TIME_OR, // the same, or the word names[0] for WEFT_SIM_NEVER
  KEY_STAY,    // double, seconds, written as a time
  KEY_BOOL,
  KEY_NAME, // an enumeration
  KEY_FIDELITY,
  KEY_SCHEME, // an enumeration, or a file's name
  KEY_TEXT,   // a file's name
  KEY_NAMED,  // a short name
  KEY_CLASSES,
  KEY_MATRIX
} key_kind;

typedef struct key_row {
  const char *group, *name, *help;
  key_kind kind;
  size_t offset;
  double min, max;
  const char *const *names;
} key_row;

const key_row *weft_sim_row_at(size_t index); // the row that weft_sim_key_at describes
// group NULL: any group.
const key_row *weft_sim_find_key(const char *group, const char *name);
bool weft_sim_set_row(weft_sim_parameters *p, const key_row *row, const char *value,
                      char error[WEFT_SIM_TEXT]);
bool weft_sim_set_classes(weft_sim_parameters *p, const char *value, char error[WEFT_SIM_TEXT]);
bool weft_sim_set_class(weft_sim_parameters *p, const char *name, const char *key,
                        const char *value, char error[WEFT_SIM_TEXT]);
// Returns the first class that is not built in and has no section; NULL: none.
const char *weft_sim_undescribed_class(const weft_sim_parameters *p);
void weft_sim_known_classes(char out[WEFT_SIM_TEXT]);
bool weft_sim_parse_quantity(const char *text, double *out);

#endif
