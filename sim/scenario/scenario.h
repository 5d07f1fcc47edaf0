// SPDX-License-Identifier: Apache-2.0
// Parameters as text: one table of keys, which scenario files (GKeyFile) and flags share, and what
// cannot be run. Messages of errors are for people and name the file, line and key.
#ifndef WEFT_SIM_SCENARIO_SCENARIO_H
#define WEFT_SIM_SCENARIO_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/parameters.h"

enum { WEFT_SIM_TEXT = 1024 }; // of a message, or of a value: eight regions' delays, to 1 us

typedef struct weft_sim_key {
  const char *group, *name; // [group] name = value; --name value
  const char *help;         // one line, with the unit
} weft_sim_key;

size_t weft_sim_key_count(void);
weft_sim_key weft_sim_key_at(size_t index);
void weft_sim_key_text(const weft_sim_parameters *parameters, size_t index,
                       char out[WEFT_SIM_TEXT]);
// The same as a number, a time in seconds; NaN: it is none (a name, a text, never).
double weft_sim_key_number(const weft_sim_parameters *parameters, size_t index);

void weft_sim_defaults(weft_sim_parameters *out);
// False: `error` tells why.
bool weft_sim_set(weft_sim_parameters *parameters, const char *name, const char *value,
                  char error[WEFT_SIM_TEXT]);
bool weft_sim_load_text(weft_sim_parameters *parameters, const char *text, const char *file,
                        char error[WEFT_SIM_TEXT]);
// A shipped scenario's name, or else a file.
bool weft_sim_load_scenario(weft_sim_parameters *parameters, const char *name,
                            char error[WEFT_SIM_TEXT]);
// The shipped ones; NULL past the end. *about: the file's first comment.
const char *weft_sim_shipped(size_t index, const char **about);
// The text of one; NULL: there is none of that name, `error` tells which are near.
const char *weft_sim_shipped_text(const char *name, char error[WEFT_SIM_TEXT]);
// What no run can fulfil. Fills in what was left to be chosen (fidelity).
bool weft_sim_check(weft_sim_parameters *parameters, char error[WEFT_SIM_TEXT]);
// The same where ranks of so much memory each share the peers.
bool weft_sim_check_ranks(weft_sim_parameters *parameters, size_t ranks, double rank_bytes,
                          char error[WEFT_SIM_TEXT]);
// NULL, or what is set and comes to nothing in a run that can be.
const char *weft_sim_idle(const weft_sim_parameters *parameters);
// Memory that the run takes at most, about.
double weft_sim_memory_bytes(const weft_sim_parameters *parameters);

// 0.05 or 5 %.
bool weft_sim_parse_share(const char *text, double *out);
// "20 ms", "1s", "10 min", "1.5h". A number alone counts `plain_us` each; 0: it must have a unit.
bool weft_sim_parse_time(const char *text, double plain_us, double *us);

// Kinds of access that need no section of their own.
bool weft_sim_known_class(const char *name, weft_sim_class *out);

#endif
