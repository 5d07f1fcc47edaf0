// SPDX-License-Identifier: Apache-2.0
// Where fresh coefficients come from, when not from the system's randomness: a caller that must be
// able to repeat a run (a simulation, a test) hands its own generator down.
#ifndef WEFT_RNG_H
#define WEFT_RNG_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_rng {
  void (*fill)(void *user, void *out, size_t bytes); // cannot fail; one thread at a time
  void *user;
} weft_rng;

#ifdef __cplusplus
}
#endif
#endif
