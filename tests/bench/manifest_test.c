// SPDX-License-Identifier: Apache-2.0
// Checks bench/manifest.txt against the committed results: every line must have a result, measured
// with the row and the technique that it names; every backend row of this build must be named by
// some line. Lines that begin with "-" name what the issue asks for but no result contains, and
// what that needs; they are printed and counted as missing, never as passed.
#include <check.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "kernels/backend.h"
#include "tests/support/test_main.h"

enum { FILES_MAX = 256, WORDS_MAX = 16, REPETITIONS = 9 };

// A file of results: a report with cases, or a text with one object per line.
typedef struct result_file {
  const char *path; // relative to bench/results
  json_t *cases;    // array of objects
  long repetitions; // 0: each case holds its own times
} result_file;

static struct {
  int argc;
  char **argv; // the result files
} program;

static result_file files[FILES_MAX];
static size_t file_count;

static const char *text_at(const json_t *object, const char *key) {
  const char *const text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

static bool ends(const char *text, const char *end) {
  const size_t length = strlen(text), of = strlen(end);
  return length >= of && strcmp(text + length - of, end) == 0;
}

// Adds an entry that names no row, measured in as many rounds as the method says.
static void add_summary(json_t *all, const json_t *root, json_t *entry, const char *operation,
                        json_t *row) {
  json_object_set_new(entry, "operation", json_string(operation));
  json_object_set(entry, "row", row);
  json_object_set(entry, "rounds", json_object_get(json_object_get(root, "method"), "repetitions"));
  json_array_append(all, entry);
}

// Collects the cases of all groups, of the server's loops and of a peer's flood.
static json_t *cases_of(const json_t *root) {
  json_t *const all = json_array(), *const node = json_string("node");
  json_t *const flood = json_object_get(root, "flood"), *group = NULL, *loop = NULL;
  size_t i = 0;
  json_array_foreach(json_object_get(root, "groups"), i, group) {
    json_array_extend(all, json_object_get(group, "cases"));
  }
  json_array_foreach(json_object_get(json_object_get(root, "server"), "closed_loop"), i, loop) {
    add_summary(all, root, loop, "closed-loop", json_object_get(loop, "lanes"));
  }
  if (flood)
    add_summary(all, root, flood, "flood", node);
  json_decref(node);
  return all;
}

// Reads lines such as {"kind": "encode", "name": "cuda-loop", "n": 128, ...}; the first describes
// the method, "median, min and max of 9, ...".
static json_t *lines_of(const char *path, long *repetitions) {
  json_t *const all = json_array();
  FILE *const stream = fopen(path, "r");
  char text[4096];
  ck_assert_msg(stream != NULL, "%s cannot be read", path);
  while (fgets(text, sizeof text, stream)) {
    json_error_t error;
    json_t *const line = json_loads(text, 0, &error);
    ck_assert_msg(line != NULL, "%s: %s: %s", path, error.text, text);
    const char *const of = strstr(text_at(line, "method"), " of ");
    if (of)
      *repetitions = strtol(of + strlen(" of "), NULL, 10);
    json_object_set(line, "operation", json_object_get(line, "kind"));
    if (!json_object_get(line, "row"))
      json_object_set(line, "row", json_object_get(line, "name"));
    json_array_append_new(all, line);
  }
  fclose(stream);
  ck_assert_msg(*repetitions >= REPETITIONS, "%s tells no method of %d repetitions", path,
                REPETITIONS);
  return all;
}

static void load_results(void) {
  for (int i = 2; i < program.argc; i++) {
    const char *const below = strstr(program.argv[i], "bench/results/");
    const bool lines = ends(program.argv[i], ".jsonl");
    if (!below || (!lines && !ends(program.argv[i], ".json")))
      continue;
    ck_assert_uint_lt(file_count, FILES_MAX);
    result_file *const file = &files[file_count++];
    *file = (result_file){.path = below + strlen("bench/results/")};
    if (lines) {
      file->cases = lines_of(program.argv[i], &file->repetitions);
      continue;
    }
    json_error_t error;
    json_t *const root = json_load_file(program.argv[i], 0, &error);
    ck_assert_msg(root != NULL, "%s:%d: %s", program.argv[i], error.line, error.text);
    ck_assert_msg(!ends(text_at(root, "commit"), "-dirty"), "%s is of no commit: %s", below,
                  text_at(root, "commit"));
    file->cases = cases_of(root);
    json_decref(root);
  }
  ck_assert_uint_gt(file_count, 0);
}

// Whether `text` matches the manifest's pattern, which has _ for blanks and may have wildcards.
static bool reads(const char *text, const char *pattern) {
  char plain[160];
  snprintf(plain, sizeof plain, "%s", text);
  for (char *at = plain; *at; at++)
    if (*at == ' ')
      *at = '_';
  return fnmatch(pattern, plain, 0) == 0;
}

// Whether an entry satisfies a condition such as "n=128"; the value may be a number or a text.
static bool satisfies(const json_t *entry, const char *wish) {
  char key[32];
  const char *const equals = strchr(wish, '=');
  ck_assert_msg(equals && (size_t)(equals - wish) < sizeof key, "'%s' is not KEY=VALUE", wish);
  memcpy(key, wish, (size_t)(equals - wish));
  key[equals - wish] = '\0';
  const json_t *const value = json_object_get(entry, key);
  if (json_is_integer(value))
    return json_integer_value(value) == strtoll(equals + 1, NULL, 10);
  return json_is_string(value) && reads(json_string_value(value), equals + 1);
}

static const weft_backend *row_called(const char *name) {
  for (size_t i = 0; i < weft_backend_count; i++)
    if (strcmp(weft_backends[i].name, name) == 0)
      return &weft_backends[i];
  return NULL;
}

// Whether a case counts: it has undisturbed repetitions and was made by the technique that its row
// has today. Lines of the device programs name no technique: they call the kernel of the row that
// they name.
static bool case_counts(const result_file *file, const json_t *entry) {
  if (file->repetitions >= REPETITIONS)
    return true;
  if (json_integer_value(json_object_get(entry, "rounds")) >= REPETITIONS)
    return true;
  // Whole programs, of which coding is only a part, name the row that coded.
  const bool whole = json_object_get(entry, "coding_seconds_per_call") != NULL;
  const weft_backend *const row = row_called(text_at(entry, "row"));
  const char *const technique = text_at(entry, "technique");
  if (row && !whole && strcmp(technique, row->technique) != 0) {
    printf("%s: %s was measured as '%s', and is '%s'\n", file->path, row->name, technique,
           row->technique);
    return false;
  }
  const size_t disturbed =
      (size_t)json_integer_value(json_object_get(entry, "repetitions_disturbed"));
  return json_array_size(json_object_get(entry, "seconds_per_call")) >= REPETITIONS + disturbed ||
         json_array_size(json_object_get(entry, "conflicts_per_lookup")) >= REPETITIONS;
}

static bool file_has(const result_file *file, char *const *words, size_t count) {
  const json_t *entry = NULL;
  size_t c = 0;
  json_array_foreach(file->cases, c, entry) {
    bool same =
        reads(text_at(entry, "operation"), words[1]) && reads(text_at(entry, "row"), words[2]);
    for (size_t w = 3; same && w < count; w++)
      same = satisfies(entry, words[w]);
    if (same && case_counts(file, entry))
      return true;
  }
  return false;
}

static bool measured(char *const *words, size_t count) {
  for (size_t f = 0; f < file_count; f++)
    if (fnmatch(words[0], files[f].path, 0) == 0 && file_has(&files[f], words, count))
      return true;
  return false;
}

static void print_words(const char *what, char *const *words, size_t count) {
  printf("%s:", what);
  for (size_t w = 0; w < count; w++)
    printf(" %s", words[w]);
  printf("\n");
}

// A function called with each combination of a line's alternatives.
typedef struct visitor {
  void (*visit)(struct visitor *self, char *const *words, size_t count);
  bool open; // visit the lines that begin with "-" instead of the others
  size_t lines, found;
  bool *named;
} visitor;

// Expands alternatives: "n=16|32 k=128|512" stands for four lines. Words from `at` on may still
// have some.
static void expand(visitor *self, char **words, size_t at, size_t count) {
  while (at < count && !strchr(words[at], '|'))
    at++;
  if (at == count) {
    self->visit(self, words, count);
    return;
  }
  char *const all = words[at], *const equals = strchr(all, '=');
  const size_t key = at > 2 && equals ? (size_t)(equals - all) + 1 : 0;
  for (const char *value = all + key; value; value = strchr(value, '|')) {
    char word[WORDS_MAX][160], *chosen[WORDS_MAX];
    value += *value == '|';
    for (size_t w = 0; w < count; w++) {
      const size_t length = strcspn(value, "|");
      if (w == at)
        snprintf(word[w], sizeof word[w], "%.*s%.*s", (int)key, all, (int)length, value);
      else
        snprintf(word[w], sizeof word[w], "%s", words[w]);
      chosen[w] = word[w];
    }
    expand(self, chosen, at, count);
  }
}

static void each_line(visitor *self) {
  FILE *const manifest = fopen(program.argv[1], "r");
  char line[1024], *words[WORDS_MAX];
  ck_assert_msg(manifest != NULL, "%s cannot be read", program.argv[1]);
  while (fgets(line, sizeof line, manifest)) {
    size_t count = 0;
    bool open = false;
    char needs[160] = "";
    const char *const remark = strstr(line, "# needs ");
    if (remark)
      snprintf(needs, sizeof needs, "%.*s", (int)strcspn(remark + 2, "\n"), remark + 2);
    for (char *word = strtok(line, " \t\n"); word && *word != '#'; word = strtok(NULL, " \t\n")) {
      ck_assert_uint_lt(count, WORDS_MAX);
      if (count == 0 && strcmp(word, "-") == 0)
        open = true;
      else
        words[count++] = word;
    }
    if (count == 0 || open != self->open)
      continue;
    ck_assert_msg(count >= 3, "a line of the manifest has %zu words", count);
    const size_t before = self->lines - self->found;
    ck_assert_msg(needs[0] != '\0' || !open, "%s %s: what is not measured must tell what it needs",
                  words[0], words[1]);
    if (open)
      print_words("NOT MEASURED", words, count);
    expand(self, words, 0, count);
    if (open)
      printf("  %zu cases; %s\n", self->lines - self->found - before, needs);
  }
  fclose(manifest);
}

static void look_for(visitor *self, char *const *words, size_t count) {
  self->lines++;
  if (measured(words, count))
    self->found++;
  else
    print_words("NOT IN THE RESULTS", words, count);
}

START_TEST(every_line_is_measured) {
  visitor claims = {.visit = look_for};
  load_results();
  each_line(&claims);
  fflush(stdout);
  ck_assert_uint_gt(claims.lines, 0);
  ck_assert_msg(claims.found == claims.lines, "%zu lines of the manifest are in no result",
                claims.lines - claims.found);
}
END_TEST

static void tell(visitor *self, char *const *words, size_t count) {
  self->lines++;
  if (measured(words, count)) {
    self->found++;
    print_words("measured by now, its '-' can go", words, count);
  }
}

// What is still to be measured is printed and does not fail; a "-" line for an existing result
// does.
START_TEST(what_is_not_measured_is_told) {
  visitor debts = {.visit = tell, .open = true};
  load_results();
  each_line(&debts);
  printf("not measured yet: %zu cases in all\n", debts.lines - debts.found);
  fflush(stdout);
  ck_assert_msg(debts.found == 0, "%zu lines of the manifest ask for what is there", debts.found);
}
END_TEST

static void mark_row(visitor *self, char *const *words, size_t count) {
  (void)count;
  for (size_t i = 0; i < weft_backend_count; i++)
    self->named[i] = self->named[i] || strcmp(words[2], weft_backends[i].name) == 0;
}

START_TEST(every_row_has_a_line) {
  visitor rows = {.visit = mark_row, .named = calloc(weft_backend_count, sizeof *rows.named)};
  each_line(&rows);
  for (size_t i = 0; i < weft_backend_count; i++)
    ck_assert_msg(rows.named[i], "bench/manifest.txt has no line for row %s",
                  weft_backends[i].name);
  free(rows.named);
}
END_TEST

// Arguments: the manifest, then the result files.
int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: manifest_test MANIFEST RESULT...\n");
    return 2;
  }
  program.argc = argc;
  program.argv = argv;
  Suite *const suite = suite_create("manifest");
  TCase *const cases = tcase_create("manifest");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, every_line_is_measured);
  tcase_add_test(cases, what_is_not_measured_is_told);
  tcase_add_test(cases, every_row_has_a_line);
  suite_add_tcase(suite, cases);
  return test_main(suite);
}
