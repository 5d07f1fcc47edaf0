// SPDX-License-Identifier: Apache-2.0
// Parameters as text: one table of keys, which scenario files (GKeyFile) and flags share, and the
// check for what cannot be run. Error messages are for people and name file, line and key.
#ifndef WEFT_SIM_SCENARIO_SCENARIO_H
#define WEFT_SIM_SCENARIO_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/parameters.h"

enum { WEFT_SIM_TEXT = 1024 }; // of a message or value, such as eight regions' delays to 1 us

typedef struct weft_sim_key {
  const char *group, *name; // [group] name = value; --name value
  const char *help;         // one line, with the unit
} weft_sim_key;

size_t weft_sim_key_count(void);
weft_sim_key weft_sim_key_at(size_t index);
void weft_sim_key_text(const weft_sim_parameters *parameters, size_t index,
                       char out[WEFT_SIM_TEXT]);
// The same as a number, times in seconds; NaN: not a number (a name, a text, never).
double weft_sim_key_number(const weft_sim_parameters *parameters, size_t index);

void weft_sim_defaults(weft_sim_parameters *out);
// False: `error` says why; also for the functions below.
bool weft_sim_set(weft_sim_parameters *parameters, const char *name, const char *value,
                  char error[WEFT_SIM_TEXT]);
bool weft_sim_load_text(weft_sim_parameters *parameters, const char *text, const char *file,
                        char error[WEFT_SIM_TEXT]);
// Loads a shipped scenario, or else a file: of keys, or the run.json of a run to repeat.
bool weft_sim_load_scenario(weft_sim_parameters *parameters, const char *name,
                            char error[WEFT_SIM_TEXT]);
// Returns the name of a shipped scenario; NULL past the end. *about: the file's first comment.
const char *weft_sim_shipped(size_t index, const char **about);
// Returns a shipped scenario's text; NULL: there is none of that name, and `error` lists similar
// ones.
const char *weft_sim_shipped_text(const char *name, char error[WEFT_SIM_TEXT]);
// Refuses what no run can fulfil, and chooses what was left open (fidelity).
bool weft_sim_check(weft_sim_parameters *parameters, char error[WEFT_SIM_TEXT]);
// The same for ranks that share the peers and have so much memory each.
bool weft_sim_check_ranks(weft_sim_parameters *parameters, size_t ranks, double rank_bytes,
                          char error[WEFT_SIM_TEXT]);
// Returns a warning about a setting without effect in this run, or NULL.
const char *weft_sim_idle(const weft_sim_parameters *parameters);
// Returns the memory that the run takes at most, roughly.
double weft_sim_memory_bytes(const weft_sim_parameters *parameters);

// Parses 0.05 or 5 %.
bool weft_sim_parse_share(const char *text, double *out);
// Parses "20 ms", "1s", "10 min", "1.5h". A plain number counts in units of `plain_us`; if that is
// 0, only 0 may do without a unit.
bool weft_sim_parse_time(const char *text, double plain_us, double *us);

// Looks up a built-in kind of access, which needs no section of its own.
bool weft_sim_known_class(const char *name, weft_sim_class *out);

#endif
