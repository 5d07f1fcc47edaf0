// SPDX-License-Identifier: Apache-2.0
// What a sweep's report.html shows, as JSON: axes, points with their means, single runs, and what
// is common to all.
#include <math.h>
#include <string.h>

#include "cli/sim_sweep.h"

static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

// Command lines and file names may contain any bytes.
static json_t *text_json(const char *text) {
  char *valid = g_utf8_make_valid(text, -1);
  json_t *out = json_string(valid);
  g_free(valid);
  return out;
}

// Returns an axis with its values as they were given and, where they are numbers, as numbers.
static json_t *axis_json(const sim_sweep_state *s, size_t axis) {
  const sim_sweep_axis *a = &s->axes[axis];
  const weft_sim_key key = weft_sim_key_at(a->key);
  json_t *values = json_array(), *numbers = json_array();
  for (size_t i = 0; i < a->count; i++) {
    weft_sim_parameters p = *s->parameters;
    char why[WEFT_SIM_TEXT];
    const bool good = weft_sim_set(&p, key.name, a->values[i], why);
    const double value = weft_sim_key_number(&p, a->key);
    json_array_append_new(values, text_json(a->values[i]));
    json_array_append_new(numbers, good ? number(value) : json_null());
  }
  return json_pack("{s:s, s:s, s:o, s:o}", "key", key.name, "help", key.help, "values", values,
                   "numbers", numbers);
}

static json_t *point_json(const sim_sweep_state *s, size_t point) {
  json_t *at = json_array(), *mean = json_array(), *half = json_array();
  for (size_t i = 0; i < s->axis_count; i++)
    json_array_append_new(at, json_integer((json_int_t)sim_sweep_index(s, point, i)));
  for (size_t i = 0; i < s->names.count; i++) {
    const sim_sweep_mean m = sim_sweep_mean_of(s, point, i);
    json_array_append_new(mean, number(m.mean));
    json_array_append_new(half, number(m.half));
  }
  return json_pack("{s:o, s:I, s:o, s:o}", "at", at, "runs", (json_int_t)s->n[point], "mean", mean,
                   "half", half);
}

static json_t *run_json(const sim_sweep_state *s, const sim_sweep_run *run) {
  json_t *values = json_array();
  for (size_t i = 0; i < s->names.count; i++)
    json_array_append_new(values, number(run->values[i]));
  // As text: a seed may exceed what JavaScript's numbers hold exactly.
  char seed[24];
  g_snprintf(seed, sizeof seed, "%" G_GUINT64_FORMAT, run->seed);
  return json_pack("{s:I, s:s, s:s, s:o}", "point", (json_int_t)run->point, "seed", seed, "id",
                   run->id, "values", values);
}

static bool is_axis(const sim_sweep_state *s, size_t key) {
  for (size_t i = 0; i < s->axis_count; i++)
    if (s->axes[i].key == key)
      return true;
  return strcmp(weft_sim_key_at(key).name, "seed") == 0 && s->seeds > 1;
}

// Returns what all points have in common. Keys that differ without being an axis, such as a
// fidelity that is chosen automatically, go into `differs`.
static json_t *common_json(const sim_sweep_state *s, json_t *differs) {
  const size_t keys = weft_sim_key_count();
  char(*first)[WEFT_SIM_TEXT] = g_malloc0_n(keys, sizeof *first);
  bool *alike = g_new0(bool, keys);
  for (size_t point = 0; point < s->points; point++) {
    weft_sim_parameters p;
    (void)sim_sweep_set_point(s, point, s->parameters->seed, &p); // checked at the start
    for (size_t i = 0; i < keys; i++) {
      char text[WEFT_SIM_TEXT];
      weft_sim_key_text(&p, i, text);
      if (point == 0) {
        memcpy(first[i], text, sizeof text);
        alike[i] = true;
      }
      alike[i] = alike[i] && strcmp(first[i], text) == 0;
    }
  }
  json_t *out = json_array();
  for (size_t i = 0; i < keys; i++) {
    const weft_sim_key key = weft_sim_key_at(i);
    if (!is_axis(s, i) && alike[i])
      json_array_append_new(out, json_pack("[s, s, o]", key.group, key.name, text_json(first[i])));
    else if (!is_axis(s, i))
      json_array_append_new(differs, json_string(key.name));
  }
  g_free(first);
  g_free(alike);
  return out;
}

// Adds what the classes are, unless they differ between points.
static void add_classes(const sim_sweep_state *s, json_t *common) {
  size_t i, key = 0;
  while (strcmp(weft_sim_key_at(key).name, "classes") != 0)
    key++;
  if (is_axis(s, key))
    return;
  json_t *classes = weft_sim_classes_json(s->parameters), *class, *value;
  json_array_foreach(classes, i, class) {
    const char *field, *name = json_string_value(json_object_get(class, "name"));
    g_autofree char *group = g_strdup_printf("class %s", name);
    json_object_foreach(class, field, value) {
      if (json_is_number(value) && strcmp(field, "share") != 0)
        json_array_append_new(common, json_pack("[s, s, O]", group, field, value));
    }
  }
  json_decref(classes);
}

static json_t *revisions_json(const sim_sweep_state *s) {
  json_t *out = json_array();
  for (size_t r = 0; r < s->runs->len; r++) {
    const char *revision = g_array_index(s->runs, sim_sweep_run, r).revision;
    size_t i = 0;
    while (i < json_array_size(out) &&
           strcmp(json_string_value(json_array_get(out, i)), revision) != 0)
      i++;
    if (i == json_array_size(out))
      json_array_append_new(out, text_json(revision));
  }
  return out;
}

json_t *sim_sweep_json(const sim_sweep_state *s) {
  static const char *const kinds[] = {
      [WEFT_SIM_SWARM] = "swarm", [WEFT_SIM_SERVER] = "server", [WEFT_SIM_STORE] = "store"};
  json_t *axes = json_array(), *metrics = json_array(), *points = json_array(),
         *runs = json_array(), *differs = json_array();
  for (size_t i = 0; i < s->axis_count; i++)
    json_array_append_new(axes, axis_json(s, i));
  for (size_t i = 0; i < s->names.count; i++)
    json_array_append_new(metrics, text_json(s->names.items[i].name));
  for (size_t i = 0; i < s->points; i++)
    json_array_append_new(points, point_json(s, i));
  for (size_t i = 0; i < s->runs->len; i++)
    json_array_append_new(runs, run_json(s, &g_array_index(s->runs, sim_sweep_run, i)));
  json_t *common = common_json(s, differs);
  add_classes(s, common);
  return json_pack("{s:i, s:o, s:s, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "version", 1,
                   "scenario", text_json(s->parameters->name), "kind", kinds[s->parameters->kind],
                   "command", text_json(s->settings->command), "revisions", revisions_json(s),
                   "seeds", (json_int_t)s->seeds, "axes", axes, "metrics", metrics, "points",
                   points, "runs", runs, "common", common, "differs", differs);
}
