// SPDX-License-Identifier: Apache-2.0
// Other libraries, opened at run time when they are there: weft never needs them. A statically
// linked program can open none; it gets library_absent.c.
#ifndef WEFT_BENCH_PEERS_LIBRARY_H
#define WEFT_BENCH_PEERS_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

// It stays open until the program ends, as Jerasure makes tables that it cannot give back.
// NULL, after a line that says so, when the file cannot be opened; `what` names the library and
// `package` Debian's package of it ("": there is none).
void *weft_bench_library_open(const char *what, const char *file, const char *package);

// Writes a function's address to `out`, `room` bytes; NULL and false where there is none.
bool weft_bench_library_find(void *library, const char *name, void *out, size_t room);

typedef struct weft_bench_import {
  const char *name; // of a function
  void *out;        // the pointer to it that is filled in
} weft_bench_import;

// All of them; false, after a line that says so, when the library lacks one: another library's file
// was named.
bool weft_bench_library_import(void *library, const char *what, const char *file,
                               const weft_bench_import *imports, size_t count);

#endif
