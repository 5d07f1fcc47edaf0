// SPDX-License-Identifier: Apache-2.0
#include "bench/rows.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

size_t weft_bench_rows_choose(const char *command, const char *list, uint32_t features,
                              const weft_backend **rows, size_t capacity) {
  const weft_machine offered = {.cpu = features};
  size_t count = 0;
  bool all = false;
  for (const char *at = list; *at;) {
    const size_t length = strcspn(at, ",");
    char name[32] = "";
    const weft_backend *row = NULL;
    if (length < sizeof name)
      memcpy(name, at, length);
    const bool best = strcmp(name, "best") == 0, every = strcmp(name, "all") == 0;
    // An empty name would select the best row.
    const weft_status status = every ? WEFT_OK
                                     : weft_backend_select(&offered, WEFT_MEM_HOST,
                                                           best    ? NULL
                                                           : *name ? name
                                                                   : "?",
                                                           &row);
    if (status != WEFT_OK) {
      fprintf(stderr, "weft bench %s: row '%.*s': %s\n", command, (int)length, at,
              weft_status_text(status));
      return 0;
    }
    all = all || every;
    if (row && count < capacity)
      rows[count++] = row;
    at += length + (at[length] == ',');
  }
  if (all)
    count = 0;
  for (size_t i = 0; all && i < weft_backend_count && count < capacity; i++)
    if (weft_backends[i].mem == WEFT_MEM_HOST && weft_backend_runs_on(&weft_backends[i], &offered))
      rows[count++] = &weft_backends[i];
  if (count == 0)
    fprintf(stderr, "weft bench %s: --rows names no row\n", command);
  return count;
}

static void refuse_rows(const weft_bench_options *options) {
  fprintf(stderr, "weft bench %s: --rows needs one row, not '%s'\n", options->argv[0],
          options->rows);
}

const weft_backend *weft_bench_host_row(const weft_bench_options *options, uint32_t features) {
  const char *const name = options->rows ? options->rows : "best";
  const weft_backend *row = NULL;
  if (strchr(name, ',') || strcmp(name, "all") == 0)
    refuse_rows(options);
  else
    (void)weft_bench_rows_choose(options->argv[0], name, features, &row, 1);
  return row;
}

const char *weft_bench_device_row(const weft_bench_options *options) {
  const char *names[64] = {"cuda"};
  size_t count = 1;
  for (size_t i = 0; i < weft_backend_count && count < sizeof names / sizeof *names; i++)
    if (weft_backends[i].mem == WEFT_MEM_DEVICE)
      names[count++] = weft_backends[i].name;
  if (!options->rows)
    return names[0];
  if (!strchr(options->rows, ','))
    return weft_bench_names_known(options, "rows", options->rows, names, count) ? options->rows
                                                                                : NULL;
  refuse_rows(options);
  return NULL;
}
