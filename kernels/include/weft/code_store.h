// SPDX-License-Identifier: Apache-2.0
// Where kernels compiled for a GPU at run time are kept between runs of a program.
#ifndef WEFT_CODE_STORE_H
#define WEFT_CODE_STORE_H

#include <stddef.h>

#include "weft/memory.h"
#include "weft/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Several threads may call both, of which either may be NULL. What weft saves begins with a hash of
// the rest, which it checks: bytes that come back cut off or changed count as missing. But whoever
// can write to the store can run code on the GPU. `machine` names device, driver and compiler.
typedef struct weft_code_store {
  void *user;
  // Returns the code saved earlier for this source, in memory from the allocator; sets *code to
  // NULL when there is none.
  weft_status (*load)(void *user, const weft_allocator *allocator, const char *machine,
                      const char *source, void **code, size_t *code_bytes);
  void (*save)(void *user, const char *machine, const char *source, const void *code,
               size_t code_bytes);
} weft_code_store;

#ifdef __cplusplus
}
#endif
#endif
