// SPDX-License-Identifier: Apache-2.0
#include "bench/peers/library.h"

#include <stdio.h>

bool weft_bench_library_import(void *library, const char *what, const char *file,
                               const weft_bench_import *imports, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!weft_bench_library_find(library, imports[i].name, imports[i].out,
                                 sizeof(void (*)(void)))) {
      printf("%s is left out: %s has no %s\n", what, file, imports[i].name);
      return false;
    }
  return true;
}
