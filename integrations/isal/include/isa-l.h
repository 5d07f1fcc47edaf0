// SPDX-License-Identifier: Apache-2.0
// What <isa-l.h> has of Intel's ISA-L, as far as weft computes it.
#ifndef WEFT_ISA_L_H
#define WEFT_ISA_L_H

#include "isa-l/erasure_code.h"
#include "isa-l/gf_vect_mul.h"
#include "isa-l/raid.h"

#endif
