// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L // dlopen
#include "bench/peers/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

void *weft_bench_library_open(const char *what, const char *file, const char *package) {
  void *const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    printf("%s is left out: %s is not here%s%s%s\n", what, file, *package ? " (Debian: " : "",
           package, *package ? ")" : "");
  return library;
}

// ISO C has no cast from an object pointer to a function pointer; POSIX guarantees the same size.
bool weft_bench_library_find(void *library, const char *name, void *out, size_t room) {
  void *const symbol = dlsym(library, name);
  memcpy(out, &symbol, room);
  return symbol != NULL;
}
