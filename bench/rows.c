// SPDX-License-Identifier: Apache-2.0
#include "bench/rows.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/buffers.h"
#include "tools/printable.h"

// Returns the host row of one name, which may be "best"; NULL after a message.
static const weft_backend *row_named(const char *command, const weft_machine *offered,
                                     const char *at, size_t length) {
  char name[32] = "?"; // an empty name would select the best row
  const weft_backend *row = NULL;
  if (length > 0 && length < sizeof name) {
    memcpy(name, at, length);
    name[length] = '\0';
  }
  const weft_status status =
      weft_backend_select(offered, WEFT_MEM_HOST, strcmp(name, "best") == 0 ? NULL : name, &row);
  if (status == WEFT_OK)
    return row;
  weft_print(stderr, "weft bench %s: row '%.*s': %s\n", command, (int)length, at,
             weft_status_text(status));
  return NULL;
}

static size_t names_in(const char *list) {
  size_t names = 1;
  for (; *list; list++)
    names += *list == ',';
  return names;
}

const weft_backend **weft_bench_rows_choose(const char *command, const char *list,
                                            uint32_t features, size_t *count) {
  const weft_machine offered = {.cpu = features};
  const weft_backend **const rows =
      weft_bench_alloc(names_in(list) + weft_backend_count, sizeof *rows);
  bool all = false, known = true;
  *count = 0;
  for (const char *at = list; known && *at;) {
    const size_t length = strcspn(at, ",");
    if (length == 3 && memcmp(at, "all", 3) == 0)
      all = true;
    else
      known = (rows[(*count)++] = row_named(command, &offered, at, length)) != NULL;
    at += length + (at[length] == ',');
  }
  if (all)
    *count = 0;
  for (size_t i = 0; all && i < weft_backend_count; i++)
    if (weft_backends[i].mem == WEFT_MEM_HOST && weft_backend_runs_on(&weft_backends[i], &offered))
      rows[(*count)++] = &weft_backends[i];
  if (known && *count > 0)
    return rows;
  if (known)
    fprintf(stderr, "weft bench %s: --rows names no row\n", command);
  free(rows);
  *count = 0;
  return NULL;
}

static void refuse_rows(const weft_bench_options *options) {
  weft_print(stderr, "weft bench %s: --rows needs one row, not '%s'\n", options->argv[0],
             options->rows);
}

const weft_backend *weft_bench_host_row(const weft_bench_options *options, uint32_t features) {
  const char *const name = options->rows ? options->rows : "best";
  if (!strchr(name, ',') && strcmp(name, "all") != 0)
    return row_named(options->argv[0], &(weft_machine){.cpu = features}, name, strlen(name));
  refuse_rows(options);
  return NULL;
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
