// SPDX-License-Identifier: Apache-2.0
// Intel ISA-L's <isa-l.h>, limited to what weft implements.
#ifndef WEFT_ISA_L_H
#define WEFT_ISA_L_H

#include "isa-l/erasure_code.h"
#include "isa-l/gf_vect_mul.h"
#include "isa-l/raid.h"

#endif
