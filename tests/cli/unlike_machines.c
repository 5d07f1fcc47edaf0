// SPDX-License-Identifier: Apache-2.0
// Replaces what a rank learns of its machine (linker's --wrap). UNLIKE gives the kind of the second
// rank's machine: "memory" (little of it) or "processors" (one); the others have plenty. Or GIVES
// says how many times the second rank's malloc() and calloc() succeed once ranks meet; by then,
// what is linked in has started, and CUDA's runtime does not tolerate failures.
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "sim/mpi/transport_mpi.h"

weft_status __real_weft_sim_mpi_new(weft_sim_transport *);
weft_status __wrap_weft_sim_mpi_new(weft_sim_transport *);
long __real_sysconf(int);
long __wrap_sysconf(int);
guint __wrap_g_get_num_processors(void);
void *__real_malloc(size_t);
void *__wrap_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__wrap_calloc(size_t, size_t);

static bool second(void) {
  const char *const rank = getenv("OMPI_COMM_WORLD_RANK");
  return rank && strcmp(rank, "1") == 0;
}

static bool lacks(const char *what) {
  const char *const unlike = getenv("UNLIKE");
  return unlike && strcmp(unlike, what) == 0 && second();
}

static bool met;

static bool gives(void) { // one thread
  static long calls;
  const char *const most = getenv("GIVES");
  return !met || !most || !second() || calls++ < atol(most);
}

weft_status __wrap_weft_sim_mpi_new(weft_sim_transport *out) {
  met = true;
  return __real_weft_sim_mpi_new(out);
}

long __wrap_sysconf(int name) {
  return name == _SC_PHYS_PAGES && lacks("memory") ? 4096 : __real_sysconf(name);
}

guint __wrap_g_get_num_processors(void) { return lacks("processors") ? 1 : 64; }

void *__wrap_malloc(size_t bytes) { return gives() ? __real_malloc(bytes) : NULL; }

void *__wrap_calloc(size_t count, size_t bytes) {
  return gives() ? __real_calloc(count, bytes) : NULL;
}
