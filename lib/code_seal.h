// SPDX-License-Identifier: Apache-2.0
// Keeps compiled GPU kernels in another store, each behind a hash of its bytes: what comes back cut
// off or damaged counts as missing. The driver is not given the length of what it loads.
#ifndef WEFT_LIB_CODE_SEAL_H
#define WEFT_LIB_CODE_SEAL_H

#include "weft/code_store.h"

typedef struct weft_code_seal {
  weft_code_store inner; // which may lack a call
  const weft_allocator *allocator;
} weft_code_seal;

// The seal must outlive the store.
weft_code_store weft_code_seal_store(const weft_code_seal *seal);

#endif
