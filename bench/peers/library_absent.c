// SPDX-License-Identifier: Apache-2.0
// Replaces library.c in a statically linked program, which cannot open libraries at run time.
#include "bench/peers/library.h"

#include <stdio.h>
#include <string.h>

void *weft_bench_library_open(const char *what, const char *file, const char *package) {
  (void)file, (void)package;
  printf("%s is left out: this program is linked statically and opens no libraries\n", what);
  return NULL;
}

bool weft_bench_library_find(void *library, const char *name, void *out, size_t room) {
  (void)library, (void)name;
  memset(out, 0, room);
  return false;
}
