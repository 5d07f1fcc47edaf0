// SPDX-License-Identifier: Apache-2.0
// Scenario files and defaults.
#include <stdio.h>
#include <string.h>

#include <glib.h>

#include "sim/scenario/key_file.h"
#include "sim/scenario/keys.h"
#include "sim/scenario/run_file.h"
#include "sim/scenario/shipped.h"

void weft_sim_defaults(weft_sim_parameters *out) {
  *out = (weft_sim_parameters){.name = "custom",
                               .seed = 1,
                               .mode = WEFT_SIM_LIVE,
                               .scheme = WEFT_SIM_PUSH,
                               .fidelity_auto = true,
                               .blocks = 64,
                               .block_bytes = 1024,
                               .rate_bits_per_s = 768000,
                               .duration_us = 60000000,
                               .bulk_bytes = 32u << 20,
                               .window = 24,
                               .batch = 8,
                               .neighbours = 8,
                               .neighbours_max = 16,
                               .addresses = 32,
                               .lag_us = 6000000,
                               .startup_us = 1500000,
                               .map_us = 300000,
                               .map_idle_us = 1000000,
                               .silent_us = 10000000,
                               .overhead_bytes = 60, // IPv4 and UDP 28, the session's seal 32
                               .handshake_bytes = 1000,
                               .peers = 200,
                               .source_bits_per_s = 6000000,
                               .source_delay_us = WEFT_SIM_NEVER,
                               .class_count = 1,
                               .queue_us = 1000000,
                               .latency = WEFT_SIM_PLANE,
                               .delay_min_us = 5000,
                               .delay_max_us = 60000,
                               .isps = 1,
                               .arrivals_per_s = 10,
                               .flash_share = 0.8,
                               .flash_us = 10000000,
                               .stay_mean_s = 600,
                               .pareto_alpha = 1.5,
                               .polite = 0.7,
                               .failure_us = WEFT_SIM_NEVER,
                               .failure_share = 0.5,
                               .gather_us = 2000,
                               .ask_packets = 32,
                               .code = "cauchy",
                               .data_shards = 8,
                               .parity_shards = 8,
                               .shard_bytes = 16384,
                               .objects = 200,
                               .away_mean_s = 12 * 3600,
                               .gone_share = 0.1,
                               .repair_after_us = INT64_C(6) * 3600 * 1000000,
                               .repair_bits_per_s = 1000000,
                               .reads_per_hour = 20,
                               .sampled = 48};
  (void)weft_sim_known_class("plain", &out->classes[0]);
}

// --- Suggestions for unknown words

// Returns how many letters to add, drop, change or swap with the next one turn `a` into `b`;
// SIZE_MAX if a word is long.
static size_t distance(const char *a, const char *b) {
  enum { LETTERS = 32 };
  size_t rows[3][LETTERS + 1] = {{0}};
  const size_t la = strlen(a), lb = strlen(b);
  if (la > LETTERS || lb > LETTERS)
    return SIZE_MAX;
  for (size_t j = 0; j <= lb; j++)
    rows[0][j] = j;
  for (size_t i = 1; i <= la; i++) {
    size_t *now = rows[i % 3];
    const size_t *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
    now[0] = i;
    for (size_t j = 1; j <= lb; j++) {
      now[j] = MIN(MIN(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = MIN(now[j], before[j - 2] + 1);
    }
  }
  return rows[la % 3][lb];
}

// Whether a few typing errors turn one into the other.
static bool near(const char *name, const char *known) {
  return distance(name, known) <= (strlen(known) + 2) / 4;
}

static void tell_unknown_key(const char *group, const char *key, char error[WEFT_SIM_TEXT]) {
  int at = snprintf(error, WEFT_SIM_TEXT, "there is no key '%.60s' in [%.60s]", key, group);
  const char *before = "; similar: ";
  for (size_t i = 0; i < weft_sim_key_count() && at < WEFT_SIM_TEXT; i++)
    if (near(key, weft_sim_key_at(i).name)) {
      at +=
          snprintf(error + at, WEFT_SIM_TEXT - (size_t)at, "%s%s", before, weft_sim_key_at(i).name);
      before = ", ";
    }
}

static void tell_unknown_group(const char *file, int line, const char *group,
                               char error[WEFT_SIM_TEXT]) {
  int at = snprintf(error, WEFT_SIM_TEXT, "%.200s:%d: there is no group [%.60s], only", file, line,
                    group);
  const char *before = "";
  for (size_t i = 0; i < weft_sim_key_count() && at < WEFT_SIM_TEXT; i++)
    if (strcmp(weft_sim_key_at(i).group, before) != 0) { // a group's keys are adjacent
      before = weft_sim_key_at(i).group;
      at += snprintf(error + at, WEFT_SIM_TEXT - (size_t)at, " [%s]", before);
    }
  if (at < WEFT_SIM_TEXT)
    snprintf(error + at, WEFT_SIM_TEXT - (size_t)at, " [class NAME]");
}

// --- Files

static bool set_one(weft_sim_parameters *p, const char *group, const char *key, const char *value,
                    char error[WEFT_SIM_TEXT]) {
  if (strncmp(group, "class ", 6) == 0)
    return weft_sim_set_class(p, group + 6, key, value, error);
  const key_row *row = weft_sim_find_key(group, key);
  if (row)
    return weft_sim_set_row(p, row, value, error);
  const key_row *elsewhere = weft_sim_find_key(NULL, key);
  if (elsewhere)
    snprintf(error, WEFT_SIM_TEXT, "%s belongs in [%s]", key, elsewhere->group);
  else
    tell_unknown_key(group, key, error);
  return false;
}

static bool set_group(weft_sim_parameters *p, GKeyFile *keys, const char *group, const char *text,
                      const char *file, char error[WEFT_SIM_TEXT]) {
  gchar **names = g_key_file_get_keys(keys, group, NULL, NULL);
  bool good = true;
  for (size_t i = 0; names && names[i] && good; i++) {
    gchar *value = g_key_file_get_value(keys, group, names[i], NULL);
    char why[WEFT_SIM_TEXT];
    good = value && set_one(p, group, names[i], g_strstrip(value), why);
    if (!good)
      snprintf(error, WEFT_SIM_TEXT, "%.200s:%d: %.250s", file,
               weft_sim_key_file_line(text, group, names[i], 0),
               value ? why : "a value that is not UTF-8");
    g_free(value);
  }
  g_strfreev(names);
  return good;
}

bool weft_sim_load_text(weft_sim_parameters *parameters, const char *text, const char *file,
                        char error[WEFT_SIM_TEXT]) {
  GKeyFile *keys = weft_sim_key_file(text, file, error);
  if (!keys)
    return false;
  gchar **groups = g_key_file_get_groups(keys, NULL);
  bool good = true;
  // The list of classes first: groups [class NAME] refer to it.
  if (g_key_file_has_key(keys, "network", "classes", NULL)) {
    gchar *value = g_key_file_get_value(keys, "network", "classes", NULL);
    char why[WEFT_SIM_TEXT];
    good = weft_sim_set_classes(parameters, g_strstrip(value), why);
    if (!good)
      snprintf(error, WEFT_SIM_TEXT, "%.200s:%d: %.250s", file,
               weft_sim_key_file_line(text, "network", "classes", 0), why);
    g_free(value);
  }
  for (size_t i = 0; groups[i] && good; i++) {
    good = strncmp(groups[i], "class ", 6) == 0;
    for (size_t k = 0; k < weft_sim_key_count() && !good; k++)
      good = strcmp(weft_sim_key_at(k).group, groups[i]) == 0;
    if (!good)
      tell_unknown_group(file, weft_sim_key_file_line(text, groups[i], NULL, 0), groups[i], error);
    else
      good = set_group(parameters, keys, groups[i], text, file, error);
  }
  g_strfreev(groups);
  g_key_file_free(keys);
  return good;
}

const char *weft_sim_shipped(size_t index, const char **about) {
  if (index >= weft_sim_shipped_count)
    return NULL;
  *about = weft_sim_shipped_files[index].text + 2;
  return weft_sim_shipped_files[index].name;
}

// Reports that `name` is neither shipped nor a file, and suggests shipped names that are similar or
// contain it.
static void tell_unknown(const char *name, char error[WEFT_SIM_TEXT]) {
  GString *text = g_string_new("");
  for (size_t i = 0; i < weft_sim_shipped_count; i++) {
    const char *shipped = weft_sim_shipped_files[i].name;
    if (near(name, shipped) || (strlen(name) > 2 && strstr(shipped, name)))
      g_string_append_printf(text, "%s%s", text->len ? ", " : "; similar: ", shipped);
  }
  g_string_append_printf(text, " (weft sim --list shows %s)",
                         text->len ? "all" : "the shipped ones");
  snprintf(error, WEFT_SIM_TEXT, "there is no scenario '%.100s', and no file of that name%.300s",
           name, text->str);
  g_string_free(text, TRUE);
}

const char *weft_sim_shipped_text(const char *name, char error[WEFT_SIM_TEXT]) {
  for (size_t i = 0; i < weft_sim_shipped_count; i++)
    if (strcmp(weft_sim_shipped_files[i].name, name) == 0)
      return weft_sim_shipped_files[i].text;
  tell_unknown(name, error);
  return NULL;
}

bool weft_sim_load_scenario(weft_sim_parameters *parameters, const char *name,
                            char error[WEFT_SIM_TEXT]) {
  const char *shipped = weft_sim_shipped_text(name, error);
  if (shipped) {
    snprintf(parameters->name, sizeof parameters->name, "%s", name);
    return weft_sim_load_text(parameters, shipped, name, error);
  }
  gchar *text = NULL;
  gsize bytes;
  GError *wrong = NULL;
  if (!g_file_get_contents(name, &text, &bytes, &wrong)) {
    if (!g_error_matches(wrong, G_FILE_ERROR, G_FILE_ERROR_NOENT))
      snprintf(error, WEFT_SIM_TEXT, "%.400s (shipped scenarios: weft sim --list)", wrong->message);
    g_error_free(wrong);
    return false;
  }
  if (!g_utf8_validate(text, (gssize)bytes, NULL)) { // its bytes must not reach a terminal
    snprintf(error, WEFT_SIM_TEXT, "%.200s: not a text file (UTF-8)", name);
    g_free(text);
    return false;
  }
  gchar *base = g_path_get_basename(name);
  char *dot = strrchr(base, '.');
  if (dot)
    *dot = '\0';
  const gchar *end;
  if (!g_utf8_validate(base, (gssize)MIN(strlen(base), 40),
                       &end)) // also where a letter would be cut
    base[end - base] = '\0';
  snprintf(parameters->name, sizeof parameters->name, "%.40s", *base ? base : "custom");
  g_free(base);
  const bool good = weft_sim_is_run_file(text)
                        ? weft_sim_load_run_file(parameters, text, name, error)
                        : weft_sim_load_text(parameters, text, name, error);
  g_free(text);
  return good;
}
