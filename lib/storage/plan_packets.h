// SPDX-License-Identifier: Apache-2.0
// What a plan of a CRS code works with on the host. It begins with what is cheap to make, blocks of
// bits or a program without shared sums, and is improved once it has worked enough to repay that:
// to machine code, where the row compiles and the process may, else to a program of shared sums.
#ifndef WEFT_LIB_STORAGE_PLAN_PACKETS_H
#define WEFT_LIB_STORAGE_PLAN_PACKETS_H

#include "lib/storage/code.h"
#include "lib/storage/packet_run.h"

void weft_plan_packets_init(weft_plan *plan);
void weft_plan_packets_free(weft_plan *plan);

// *after: bytes read that repay improving it; SIZE_MAX: nothing is better. Errors: WEFT_E_NOMEM.
weft_status weft_plan_packets_begin(weft_plan *plan, size_t *after);
// Once, by one thread; others go on meanwhile. Errors: WEFT_E_NOMEM, which may be tried again.
weft_status weft_plan_packets_improve(weft_plan *plan);
bool weft_plan_packets_improved(const weft_plan *plan);

weft_packet_product weft_plan_packets_product(const weft_plan *plan); // of the best there is now

#endif
