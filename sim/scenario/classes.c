// SPDX-License-Identifier: Apache-2.0
// Kinds of access: the built-in ones, and how a scenario changes them.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/decimal.h"
#include "sim/scenario/keys.h"

// Typical lines of each kind; docs/sim.md says where the figures come from.
static const weft_sim_class known[] = {
    {.name = "dsl",
     .up_bits_per_s = 1000000,
     .down_bits_per_s = 16000000,
     .delay_us = 12000,
     .loss = 0.001,
     .burst = 1,
     .nat = 0.5,
     .symmetric = 0.1},
    {.name = "cable",
     .up_bits_per_s = 5000000,
     .down_bits_per_s = 50000000,
     .delay_us = 7000,
     .loss = 0.001,
     .burst = 1,
     .nat = 0.5,
     .symmetric = 0.1},
    {.name = "fibre",
     .up_bits_per_s = 50000000,
     .down_bits_per_s = 100000000,
     .delay_us = 2000,
     .loss = 0.0002,
     .burst = 1,
     .nat = 0.4,
     .symmetric = 0.1},
    {.name = "lte",
     .up_bits_per_s = 5000000,
     .down_bits_per_s = 20000000,
     .delay_us = 25000,
     .loss = 0.02,
     .burst = 6,
     .nat = 0.95,
     .symmetric = 0.3},
    {.name = "server",
     .up_bits_per_s = 1000000000,
     .down_bits_per_s = 1000000000,
     .delay_us = 500,
     .loss = 0,
     .burst = 1,
     .nat = 0},
    {.name = "plain",
     .up_bits_per_s = 1200000,
     .down_bits_per_s = 20000000,
     .delay_us = 0,
     .loss = 0,
     .burst = 1,
     .nat = 0},
};

bool weft_sim_known_class(const char *name, weft_sim_class *out) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i].name, name) == 0) {
      *out = known[i];
      out->share = 1;
      return true;
    }
  return false;
}

static weft_sim_class *find(weft_sim_parameters *p, const char *name) {
  for (size_t i = 0; i < p->class_count; i++)
    if (strcmp(p->classes[i].name, name) == 0)
      return &p->classes[i];
  return NULL;
}

// Parses "dsl:40 cable:30". A name that is not built in starts as `plain` and needs its own
// section.
bool weft_sim_set_classes(weft_sim_parameters *p, const char *value, char error[WEFT_SIM_TEXT]) {
  const double most = 1e9; // so that sums stay finite
  weft_sim_class made[WEFT_SIM_MAX_CLASSES];
  size_t count = 0;
  for (const char *at = value; *at;) {
    const size_t length = strcspn(at, ": ");
    weft_sim_class class;
    char name[WEFT_SIM_NAME];
    if (count == WEFT_SIM_MAX_CLASSES || length == 0 || length >= sizeof name ||
        at[length] != ':') {
      snprintf(error, WEFT_SIM_TEXT,
               "classes must be up to %u names with weights, such as dsl:40 fibre:60",
               WEFT_SIM_MAX_CLASSES);
      return false;
    }
    memcpy(name, at, length);
    name[length] = '\0';
    const weft_sim_class *before = find(p, name);
    if (before)
      class = *before;
    else if (!weft_sim_known_class(name, &class)) {
      (void)weft_sim_known_class("plain", &class);
      snprintf(class.name, sizeof class.name, "%s", name);
      class.undescribed = true;
    }
    char *end;
    class.share = weft_sim_decimal(at + length + 1, &end);
    if (end == at + length + 1 || !(class.share > 0 && class.share <= most) ||
        (*end && *end != ' ')) {
      snprintf(error, WEFT_SIM_TEXT, "classes: the weight of %s must be above 0 and at most %g",
               name, most);
      return false;
    }
    for (size_t i = 0; i < count; i++)
      if (strcmp(made[i].name, name) == 0) {
        snprintf(error, WEFT_SIM_TEXT, "classes: %s is named twice", name);
        return false;
      }
    made[count++] = class;
    at = end + strspn(end, " ");
  }
  if (count == 0) {
    snprintf(error, WEFT_SIM_TEXT, "classes must name at least one class");
    return false;
  }
  memcpy(p->classes, made, count * sizeof *made);
  p->class_count = count;
  return true;
}

bool weft_sim_set_class(weft_sim_parameters *p, const char *name, const char *key,
                        const char *value, char error[WEFT_SIM_TEXT]) {
  weft_sim_class *class = find(p, name);
  double n;
  if (!class) {
    snprintf(error, WEFT_SIM_TEXT, "class %.40s is not among classes", name);
    return false;
  }
  static const char *const keys[] = {"upload", "download", "line", "delay",
                                     "loss",   "burst",    "nat",  "symmetric"};
  bool is_key = false;
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    is_key = is_key || strcmp(key, keys[i]) == 0;
  if (!is_key) {
    size_t at = (size_t)snprintf(error, WEFT_SIM_TEXT, "a class has no key '%.40s'", key);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
      at += (size_t)snprintf(error + at, WEFT_SIM_TEXT - at, "%s%s", i ? ", " : ", but ", keys[i]);
    return false;
  }
  class->undescribed = false;
  const bool is_rate =
      strcmp(key, "upload") == 0 || strcmp(key, "download") == 0 || strcmp(key, "line") == 0;
  const bool is_time = strcmp(key, "delay") == 0;
  const bool is_share =
      strcmp(key, "loss") == 0 || strcmp(key, "nat") == 0 || strcmp(key, "symmetric") == 0;
  if (!(is_time    ? weft_sim_parse_time(value, 0, &n)
        : is_share ? weft_sim_parse_share(value, &n)
                   : weft_sim_parse_quantity(value, &n))) {
    snprintf(error, WEFT_SIM_TEXT, "%.40s needs %s, not '%.40s'", key,
             is_time    ? "a time such as 20 ms"
             : is_share ? "a share such as 0.05 or 5 %"
                        : "a number such as 20M",
             value);
    return false;
  }
  // A loss of 1 would let no packet through.
  const double least = is_rate ? 1000 : 0;
  const double most = is_rate                     ? 1e13
                      : is_time                   ? 10e6
                      : strcmp(key, "burst") == 0 ? 1000
                      : strcmp(key, "loss") == 0  ? 0.9999
                                                  : 1;
  if (!(n >= least && n <= most)) {
    if (is_time)
      snprintf(error, WEFT_SIM_TEXT, "%.40s must be 0 s to %g s", key, most / 1e6);
    else
      snprintf(error, WEFT_SIM_TEXT, "%.40s must be %.14g to %.14g", key, least, most);
    return false;
  }
  if (strcmp(key, "upload") == 0)
    class->up_bits_per_s = (uint64_t)llround(n);
  else if (strcmp(key, "download") == 0)
    class->down_bits_per_s = (uint64_t)llround(n);
  else if (strcmp(key, "line") == 0)
    class->line_bits_per_s = (uint64_t)llround(n);
  else if (is_time)
    class->delay_us = (int64_t)llround(n);
  else if (strcmp(key, "loss") == 0)
    class->loss = n;
  else if (strcmp(key, "burst") == 0)
    class->burst = n;
  else if (strcmp(key, "nat") == 0)
    class->nat = n;
  else
    class->symmetric = n;
  return true;
}

const char *weft_sim_undescribed_class(const weft_sim_parameters *p) {
  for (size_t i = 0; i < p->class_count; i++)
    if (p->classes[i].undescribed)
      return p->classes[i].name;
  return NULL;
}

void weft_sim_known_classes(char out[WEFT_SIM_TEXT]) {
  size_t at = 0;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    at += (size_t)snprintf(out + at, WEFT_SIM_TEXT - at, "%s%s", i ? ", " : "", known[i].name);
}
