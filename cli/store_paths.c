// SPDX-License-Identifier: Apache-2.0
// `weft store`: resolves the names of its inputs and outputs.
#define _XOPEN_SOURCE 700 // realpath
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/store.h"

enum { MOST_LINKS = 40 };
// As store_descriptor_of, for `name` in a folder whose path contains no links.
static int descriptor_in(const char *folder, const char *name) {
  int pid = 0, tid = 0, end = 0;
  guint64 number;
  const bool known =
      (sscanf(folder, "/proc/%d/fd%n", &pid, &end) == 1 && end && !folder[end]) ||
      (sscanf(folder, "/proc/%d/task/%d/fd%n", &pid, &tid, &end) == 2 && end && !folder[end]);
  if (!known || !g_ascii_string_to_unsigned(name, 10, 0, G_MAXINT, &number, NULL))
    return -1;
  return pid == (int)getpid() ? (int)number : STORE_FOREIGN;
}

int store_descriptor_of(const char *output) {
  static const char *const names[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
  if (strcmp(output, "-") == 0)
    return STDOUT_FILENO;
  for (size_t i = 0; i < G_N_ELEMENTS(names); i++) // also without /proc
    if (strcmp(output, names[i]) == 0)
      return (int)i;
  int result = -1;
  char *path = g_strdup(output);
  for (int i = 0; path && result == -1 && i < MOST_LINKS; i++) {
    char *const folder = g_path_get_dirname(path), *const name = g_path_get_basename(path);
    char *const real = realpath(folder, NULL), *const link = g_file_read_link(path, NULL);
    result = real ? descriptor_in(real, name) : -1;
    g_free(path);
    path = real && link
               ? g_path_is_absolute(link) ? g_strdup(link) : g_build_filename(real, link, NULL)
               : NULL;
    free(real);
    g_free(link);
    g_free(folder);
    g_free(name);
  }
  g_free(path);
  return result;
}

bool store_is_stdout(const char *output) { return store_descriptor_of(output) == STDOUT_FILENO; }

static bool is_stdin(const char *input) {
  return strcmp(input, "-") == 0 || strcmp(input, "/dev/stdin") == 0;
}

bool store_same_source(const char *a, const char *b) {
  struct stat its, other;
  if (is_stdin(a) && is_stdin(b))
    return true;
  const bool known = (strcmp(a, "-") == 0 ? fstat(STDIN_FILENO, &its) : stat(a, &its)) == 0 &&
                     (strcmp(b, "-") == 0 ? fstat(STDIN_FILENO, &other) : stat(b, &other)) == 0;
  return known && its.st_dev == other.st_dev && its.st_ino == other.st_ino &&
         !S_ISREG(its.st_mode) && !S_ISBLK(its.st_mode) && !S_ISDIR(its.st_mode);
}
