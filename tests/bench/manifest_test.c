// SPDX-License-Identifier: Apache-2.0
// bench/manifest.txt against the committed results: every line must be there, measured by the row
// and the technique that it names; every backend row of this build must be named by some line.
#include <check.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "kernels/backend.h"

enum { FILES_MAX = 256, WORDS_MAX = 12 };

typedef struct result_file {
  const char *path; // below bench/results
  json_t *root;
} result_file;

static struct {
  int argc;
  char **argv; // the result files
} program;

static result_file files[FILES_MAX];
static size_t file_count;

static void load_results(void) {
  for (int i = 2; i < program.argc; i++) {
    const char *const below = strstr(program.argv[i], "bench/results/");
    const char *const end = strrchr(program.argv[i], '.');
    if (!below || !end || strcmp(end, ".json") != 0)
      continue;
    json_error_t error;
    json_t *const root = json_load_file(program.argv[i], 0, &error);
    ck_assert_msg(root != NULL, "%s:%d: %s", program.argv[i], error.line, error.text);
    ck_assert_uint_lt(file_count, FILES_MAX);
    files[file_count++] = (result_file){below + strlen("bench/results/"), root};
  }
  ck_assert_uint_gt(file_count, 0);
}

static const char *text_at(const json_t *object, const char *key) {
  const char *const text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

// "n=128" and the like; `key` may be of a number or of a text.
static bool satisfies(const json_t *entry, const char *wish) {
  char key[32];
  const char *const equals = strchr(wish, '=');
  ck_assert_msg(equals && (size_t)(equals - wish) < sizeof key, "'%s' is not KEY=VALUE", wish);
  memcpy(key, wish, (size_t)(equals - wish));
  key[equals - wish] = '\0';
  const json_t *const value = json_object_get(entry, key);
  ck_assert_msg(value != NULL, "cases have no '%s'", key);
  if (json_is_integer(value))
    return json_integer_value(value) == strtoll(equals + 1, NULL, 10);
  char plain[128]; // blanks cannot stand in a line
  snprintf(plain, sizeof plain, "%s", json_string_value(value));
  for (char *at = plain; *at; at++)
    if (*at == ' ')
      *at = '_';
  return fnmatch(equals + 1, plain, 0) == 0;
}

static const weft_backend *row_called(const char *name) {
  for (size_t i = 0; i < weft_backend_count; i++)
    if (strcmp(weft_backends[i].name, name) == 0)
      return &weft_backends[i];
  return NULL;
}

// A case counts when it has repetitions and was made by the technique that its row has today.
static bool case_counts(const char *path, const json_t *entry) {
  const weft_backend *const row = row_called(text_at(entry, "row"));
  const char *const technique = text_at(entry, "technique");
  if (row && strcmp(technique, row->technique) != 0) {
    printf("%s: %s was measured as '%s', and is '%s'\n", path, row->name, technique,
           row->technique);
    return false;
  }
  return json_array_size(json_object_get(entry, "seconds_per_call")) >= 9;
}

static bool file_has(const result_file *file, char *const *words, size_t count) {
  const json_t *group = NULL, *entry = NULL;
  size_t g = 0, c = 0;
  json_array_foreach(json_object_get(file->root, "groups"), g, group) {
    json_array_foreach(json_object_get(group, "cases"), c, entry) {
      bool same = strcmp(text_at(entry, "operation"), words[1]) == 0 &&
                  strcmp(text_at(entry, "row"), words[2]) == 0;
      for (size_t w = 3; same && w < count; w++)
        same = satisfies(entry, words[w]);
      if (same && case_counts(file->path, entry))
        return true;
    }
  }
  return false;
}

static size_t split(char *line, char **words) {
  size_t count = 0;
  for (char *word = strtok(line, " \t\n"); word && *word != '#'; word = strtok(NULL, " \t\n")) {
    ck_assert_uint_lt(count, WORDS_MAX);
    words[count++] = word;
  }
  return count;
}

static void each_line(void (*visit)(char **words, size_t count, void *user), void *user) {
  FILE *const manifest = fopen(program.argv[1], "r");
  char line[512], *words[WORDS_MAX];
  ck_assert_msg(manifest != NULL, "%s cannot be read", program.argv[1]);
  while (fgets(line, sizeof line, manifest)) {
    const size_t count = split(line, words);
    if (count > 0)
      visit(words, count, user);
  }
  fclose(manifest);
}

static void look_for(char **words, size_t count, void *user) {
  size_t *const missing = user;
  ck_assert_msg(count >= 3, "a line of the manifest has %zu words", count);
  for (size_t f = 0; f < file_count; f++)
    if (fnmatch(words[0], files[f].path, 0) == 0 && file_has(&files[f], words, count))
      return;
  ++*missing;
  printf("not measured:");
  for (size_t w = 0; w < count; w++)
    printf(" %s", words[w]);
  printf("\n");
}

START_TEST(every_line_is_measured) {
  size_t missing = 0;
  load_results();
  each_line(look_for, &missing);
  fflush(stdout);
  ck_assert_msg(missing == 0, "%zu lines of the manifest are in no result", missing);
}
END_TEST

static void mark_row(char **words, size_t count, void *user) {
  bool *const named = user;
  for (size_t i = 0; count >= 3 && i < weft_backend_count; i++)
    named[i] = named[i] || strcmp(words[2], weft_backends[i].name) == 0;
}

START_TEST(every_row_has_a_line) {
  bool *const named = calloc(weft_backend_count, sizeof *named);
  each_line(mark_row, named);
  for (size_t i = 0; i < weft_backend_count; i++)
    ck_assert_msg(named[i], "bench/manifest.txt has no line for row %s", weft_backends[i].name);
  free(named);
}
END_TEST

// argv: the manifest, then the result files.
int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: manifest_test MANIFEST RESULT...\n");
    return 2;
  }
  program.argc = argc;
  program.argv = argv;
  Suite *const suite = suite_create("manifest");
  TCase *const cases = tcase_create("manifest");
  tcase_add_test(cases, every_line_is_measured);
  tcase_add_test(cases, every_row_has_a_line);
  suite_add_tcase(suite, cases);
  SRunner *const runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  const int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
