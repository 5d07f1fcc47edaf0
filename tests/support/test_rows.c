// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_rows.h"

#include <stdlib.h>
#include <string.h>

const weft_backend *test_host_row(size_t i) {
  const weft_machine machine = {.cpu = weft_cpu_features()};
  for (size_t r = 0; r < weft_backend_count; r++) {
    const weft_backend *row = &weft_backends[r];
    if (row->mem == WEFT_MEM_HOST && weft_backend_runs_on(row, &machine) && i-- == 0)
      return row;
  }
  return NULL;
}

size_t test_host_row_count(void) {
  size_t count = 0;
  while (test_host_row(count))
    count++;
  return count;
}

bool test_only_ends(void) {
  const char *rows = getenv("TEST_ROWS");
  return rows && strcmp(rows, "ends") == 0;
}

const weft_backend *test_looped_row(size_t i) {
  return test_host_row(i > 0 && test_only_ends() ? test_host_row_count() - 1 : i);
}

size_t test_looped_row_count(void) {
  const size_t all = test_host_row_count();
  return all > 2 && test_only_ends() ? 2 : all;
}

const weft_backend *test_row_named(const char *name) {
  for (size_t r = 0; r < weft_backend_count; r++)
    if (strcmp(weft_backends[r].name, name) == 0)
      return &weft_backends[r];
  return NULL;
}
