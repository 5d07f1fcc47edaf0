// SPDX-License-Identifier: Apache-2.0
// How a CRS plan computes on the host. It starts with a form that is cheap to build: bit blocks or
// an XOR program without shared sums. Once the plan has done enough work to repay a better form, it
// is upgraded: to machine code, where the row can compile and the process may, otherwise to a
// program with shared sums.
#ifndef WEFT_LIB_STORAGE_PLAN_PACKETS_H
#define WEFT_LIB_STORAGE_PLAN_PACKETS_H

#include "lib/storage/code.h"
#include "lib/storage/packet_run.h"

void weft_plan_packets_init(weft_plan *plan);
void weft_plan_packets_free(weft_plan *plan);

// Sets *after to how many bytes must be read before improving the plan pays, or to SIZE_MAX if
// there is nothing better. Errors: WEFT_E_NOMEM.
weft_status weft_plan_packets_begin(weft_plan *plan, size_t *after);
// Improves the plan. Called once, by one thread, while others keep using the plan. Errors:
// WEFT_E_NOMEM, after which it may be tried again.
weft_status weft_plan_packets_improve(weft_plan *plan);
bool weft_plan_packets_improved(const weft_plan *plan);

weft_packet_product weft_plan_packets_product(const weft_plan *plan); // in its best form so far

#endif
