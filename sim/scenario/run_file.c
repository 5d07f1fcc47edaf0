// SPDX-License-Identifier: Apache-2.0
// Reads the parameters of a run back from its run.json, so that it can be repeated.
#include "sim/scenario/run_file.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "sim/scenario/keys.h"

// What run.json has of a class, and the key that sets it.
static const struct {
  const char *name, *key, *unit;
} class_fields[] = {{"upload_bits_per_s", "upload", ""},
                    {"download_bits_per_s", "download", ""},
                    {"line_bits_per_s", "line", ""},
                    {"delay_ms", "delay", "ms"},
                    {"loss", "loss", ""},
                    {"burst", "burst", ""},
                    {"nat", "nat", ""},
                    {"symmetric", "symmetric", ""}};

static bool set_class(weft_sim_parameters *p, const json_t *class, char why[WEFT_SIM_TEXT]) {
  const char *name = json_string_value(json_object_get(class, "name"));
  if (!name) {
    snprintf(why, WEFT_SIM_TEXT, "a class has no name");
    return false;
  }
  for (size_t i = 0; i < sizeof class_fields / sizeof *class_fields; i++) {
    const json_t *field = json_object_get(class, class_fields[i].name);
    const double value = json_number_value(field);
    char text[64];
    if (!json_is_number(field)) {
      snprintf(why, WEFT_SIM_TEXT, "class %.40s has no number %s", name, class_fields[i].name);
      return false;
    }
    if (value == 0 && strcmp(class_fields[i].key, "line") == 0)
      continue; // it has no line of its own
    snprintf(text, sizeof text, "%.17g%s", value, class_fields[i].unit);
    if (!weft_sim_set_class(p, name, class_fields[i].key, text, why))
      return false;
  }
  return true;
}

static bool set_keys(weft_sim_parameters *p, json_t *parameters, char why[WEFT_SIM_TEXT]) {
  const char *group, *name;
  json_t *keys, *value;
  json_object_foreach(parameters, group, keys) {
    json_object_foreach(keys, name, value) {
      const key_row *row = weft_sim_find_key(group, name);
      const char *text = json_string_value(value);
      if (!row || !text) {
        snprintf(why, WEFT_SIM_TEXT,
                 row ? "%.60s in [%.60s] is not a text" : "there is no key '%.60s' in [%.60s]",
                 name, group);
        return false;
      }
      if (*text && !weft_sim_set_row(p, row, text, why)) // an empty one has its default: none
        return false;
    }
  }
  return true;
}

bool weft_sim_is_run_file(const char *text) { return text[strspn(text, " \t\r\n")] == '{'; }

bool weft_sim_load_run_file(weft_sim_parameters *parameters, const char *text, const char *file,
                            char error[WEFT_SIM_TEXT]) {
  json_error_t wrong;
  json_t *run = json_loads(text, 0, &wrong);
  if (!run) {
    snprintf(error, WEFT_SIM_TEXT, "%.200s:%d: this is not JSON", file, wrong.line);
    return false;
  }
  char why[WEFT_SIM_TEXT] = "it has no parameters: it is not a run.json";
  json_t *values = json_object_get(run, "parameters"), *class;
  const char *name = json_string_value(json_object_get(run, "scenario"));
  size_t i;
  bool good = json_is_object(values) && name && set_keys(parameters, values, why);
  json_array_foreach(json_object_get(values, "classes"), i, class) {
    good = good && set_class(parameters, class, why);
  }
  if (good)
    snprintf(parameters->name, sizeof parameters->name, "%.40s", name);
  else
    snprintf(error, WEFT_SIM_TEXT, "%.200s: %.250s", file, why);
  json_decref(run);
  return good;
}
