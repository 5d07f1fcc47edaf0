// SPDX-License-Identifier: Apache-2.0
// Structured logs on standard error: "level event key=value ..." or one JSON object a line.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cli/peer.h"
#include "tools/printable.h"

static peer_log_level shown = PEER_INFO;
static bool as_json;

// Returns whether a field is text even if it looks like a number, as hexadecimal digits may.
static bool is_text(const char *name) {
  static const char *const names[] = {"id", "key", "source_key", NULL};
  return g_strv_contains(names, name);
}

static json_t *value_of(const char *name, const char *text) {
  char *end;
  const gint64 number = g_ascii_strtoll(text, &end, 10);
  g_autofree char *valid = g_utf8_make_valid(text, -1); // file names
  return *text && !*end && !is_text(name) ? json_integer(number) : json_string(valid);
}

static json_t *begin_json(const char *level, const char *event) {
  json_t *line = json_object();
  g_autoptr(GDateTime) now = g_date_time_new_now_utc();
  g_autofree char *time = g_date_time_format(now, "%Y-%m-%dT%H:%M:%S.%fZ");
  json_object_set_new(line, "time", json_string(time));
  json_object_set_new(line, "level", json_string(level));
  json_object_set_new(line, "event", json_string(event));
  return line;
}

static void end_json(json_t *line) {
  g_autofree char *text = cli_json_text(line, JSON_COMPACT);
  fprintf(stderr, "%s\n", text ? text : "{}");
  json_decref(line);
}

static void write_json(const char *level, const char *event, const char *fields) {
  json_t *line = begin_json(level, event);
  g_auto(GStrv) words = g_strsplit(fields, " ", -1);
  for (char **w = words; *w; w++) {
    char *equals = strchr(*w, '=');
    if (!equals)
      continue;
    *equals = '\0';
    json_object_set_new(line, *w, value_of(*w, equals + 1));
  }
  end_json(line);
}

static void tell_error(const char *command, int code, const char *text) {
  json_t *line = begin_json("error", "failed");
  cli_error_describe(line, command, code, text);
  end_json(line);
}

void peer_log_set(peer_log_level level, bool json) {
  shown = level;
  as_json = json;
  cli_tell_errors(json ? tell_error : NULL);
}

bool peer_log_is_json(void) { return as_json; }

void peer_log(peer_log_level level, const char *event, const char *format, ...) {
  static const char *const names[] = {"error", "warning", "info", "debug"};
  static const char *const syslog_prefix[] = {"<3>", "<4>", "<6>", "<7>"};
  va_list arguments;
  if (level > shown)
    return;
  va_start(arguments, format);
  g_autofree char *fields = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  if (as_json) {
    write_json(names[level], event, fields);
    return;
  }
  // The journal takes the level from this prefix, and stamps the line itself.
  const bool journal = getenv("JOURNAL_STREAM") != NULL;
  weft_print(stderr, "%s%s %s%s%s\n", journal ? syslog_prefix[level] : "", names[level], event,
             *fields ? " " : "", fields);
}
