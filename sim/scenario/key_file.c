// SPDX-License-Identifier: Apache-2.0
// Reads key files with GLib and adds what GLib does not report: the line of an error, and keys that
// are set twice.
#include "sim/scenario/key_file.h"

#include <stdio.h>
#include <string.h>

// Skips the byte order mark that some editors put first.
static const char *behind_mark(const char *text) {
  return strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text;
}

int weft_sim_key_file_line(const char *text, const char *group, const char *key, int after) {
  text = behind_mark(text);
  int line = 1;
  bool inside = false;
  for (const char *at = text; at && *at; line++) {
    const char *end = strchr(at, '\n');
    at += strspn(at, " \t\r");
    const size_t length = end ? (size_t)(end - at) : strlen(at);
    if (*at == '[') {
      inside = strlen(group) + 2 <= length && strncmp(at + 1, group, strlen(group)) == 0 &&
               at[1 + strlen(group)] == ']';
      if (inside && !key && line > after)
        return line;
    } else if (inside && key && line > after && strncmp(at, key, strlen(key)) == 0) {
      const char next = at[strlen(key)];
      if (next == '=' || next == ' ' || next == '\t')
        return line;
    }
    at = end ? end + 1 : NULL;
  }
  return 0;
}

// Whether a line ends with a group's name: nothing may follow it, not even a comment.
static bool ends_group(const char *line, size_t length) {
  while (length > 0 && strchr(" \t\r", line[length - 1]))
    length--;
  return length > 0 && line[length - 1] == ']' && !memchr(line, '\r', length);
}

// Returns the first line that is not a key, a group or a comment. GLib reports that there is one,
// but not where.
static int bad_line(const char *text) {
  int line = 1;
  bool grouped = false;
  for (const char *at = text; at && *at; line++) {
    const char *end = strchr(at, '\n');
    const size_t length = end ? (size_t)(end - at) : strlen(at);
    const size_t blank = strspn(at, " \t\r");
    if (*at == '[' && ends_group(at, length))
      grouped = true;
    else if (blank < length && *at != '#' && (!grouped || !memchr(at, '=', length)))
      return line;
    at = end ? end + 1 : NULL;
  }
  return 0;
}

// Refuses a key that is set twice in a group; GLib silently takes the last value.
static bool refuse_twice(GKeyFile *keys, const char *text, const char *file,
                         char error[WEFT_SIM_TEXT]) {
  gchar **groups = g_key_file_get_groups(keys, NULL);
  int second = 0;
  for (size_t g = 0; groups[g] && !second; g++) {
    gchar **names = g_key_file_get_keys(keys, groups[g], NULL, NULL);
    for (size_t i = 0; names && names[i] && !second; i++) {
      const int first = weft_sim_key_file_line(text, groups[g], names[i], 0);
      second = weft_sim_key_file_line(text, groups[g], names[i], first);
      if (second)
        snprintf(error, WEFT_SIM_TEXT, "%.200s:%d: %.60s is already set in [%.60s] on line %d",
                 file, second, names[i], groups[g], first);
    }
    g_strfreev(names);
  }
  g_strfreev(groups);
  return !second;
}

GKeyFile *weft_sim_key_file(const char *text, const char *file, char error[WEFT_SIM_TEXT]) {
  GKeyFile *keys = g_key_file_new();
  GError *wrong = NULL;
  text = behind_mark(text);
  // Without this flag GLib would silently drop keys with names such as peers[de].
  if (!g_key_file_load_from_data(keys, text, strlen(text), G_KEY_FILE_KEEP_TRANSLATIONS, &wrong)) {
    const int line = bad_line(text);
    if (line > 0) // not quoting the line, as GLib's message does: it may hold a secret
      snprintf(error, WEFT_SIM_TEXT, "%.200s:%d: this is not a [group], name = value or # comment",
               file, line);
    else
      snprintf(error, WEFT_SIM_TEXT, "%.200s: %.250s", file, wrong->message);
    g_error_free(wrong);
  } else if (refuse_twice(keys, text, file, error)) {
    return keys;
  }
  g_key_file_free(keys);
  return NULL;
}
