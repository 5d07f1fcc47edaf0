// SPDX-License-Identifier: Apache-2.0
// What few_rows_tables.h asks for, for techniques with bit matrices as tables and 16 registers. A
// technique's file first defines vec, src, con, con_of(bits) and product(src, con).
#ifndef WEFT_KERNELS_X86_FEW_ROWS_AFFINE_H
#define WEFT_KERNELS_X86_FEW_ROWS_AFFINE_H

#include <string.h>

#include "kernels/gf256.h"
#include "kernels/unroll.h"
#include "kernels/x86/intrinsics.h"

#define FEW_TABLE 8 // bytes
#define FEW_BLOCK_ROWS 6
WEFT_INLINE const void *few_table(uint8_t c) { return &weft_gf256_affine[c]; }
WEFT_INLINE void few_row(vec *acc, const src *x, const uint8_t *table, const bool begin,
                         const size_t vecs) {
  uint64_t bits;
  memcpy(&bits, table, sizeof bits);
  const con c = con_of(bits);
  WEFT_UNROLL for (size_t v = 0; v < vecs; v++) {
    acc[v] = begin ? product(x[v], c) : vec_xor(acc[v], product(x[v], c));
    INTRINSICS_IN_ORDER(acc[v]); // otherwise all products of a few sources come first, and spill
  }
}

#endif
