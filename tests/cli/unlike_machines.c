// SPDX-License-Identifier: Apache-2.0
// Stands between a rank and its machine (linker's --wrap): UNLIKE says of which kind that of the
// second rank is, "memory" (little of it) or "processors" (one); those of others have plenty.
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

long __real_sysconf(int);
long __wrap_sysconf(int);
guint __wrap_g_get_num_processors(void);

static bool lacks(const char *what) {
  const char *const unlike = getenv("UNLIKE"), *const rank = getenv("OMPI_COMM_WORLD_RANK");
  return unlike && rank && strcmp(unlike, what) == 0 && strcmp(rank, "1") == 0;
}

long __wrap_sysconf(int name) {
  return name == _SC_PHYS_PAGES && lacks("memory") ? 4096 : __real_sysconf(name);
}

guint __wrap_g_get_num_processors(void) { return lacks("processors") ? 1 : 64; }
