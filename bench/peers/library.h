// SPDX-License-Identifier: Apache-2.0
// Other libraries, opened at run time if present: weft never requires them. A statically linked
// program cannot open any; it uses library_absent.c.
#ifndef WEFT_BENCH_PEERS_LIBRARY_H
#define WEFT_BENCH_PEERS_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

// Opens a library until the program ends, because Jerasure makes tables that it cannot free. `what`
// names the library, `package` is its Debian package ("": none). Returns NULL after a message if
// the file cannot be opened.
void *weft_bench_library_open(const char *what, const char *file, const char *package);

// Writes a function's address to `out`, `room` bytes; NULL and false if there is no such function.
bool weft_bench_library_find(void *library, const char *name, void *out, size_t room);

typedef struct weft_bench_import {
  const char *name; // of the function
  void *out;        // the function pointer to fill in
} weft_bench_import;

// Imports all functions; false, after a message, if the library lacks one: the file is that of
// another library.
bool weft_bench_library_import(void *library, const char *what, const char *file,
                               const weft_bench_import *imports, size_t count);

#endif
