// SPDX-License-Identifier: Apache-2.0
// Products of coefficient vectors, which are stored in rows padded with zeros.
#ifndef WEFT_LIB_VECTORS_H
#define WEFT_LIB_VECTORS_H

#include "lib/ctx.h"

enum { WEFT_VECTOR_STEP = 32 }; // the largest multiple that widths are rounded up to

// Returns the host row's alignment step, or 1 where the row can mask partial steps. Rows shorter
// than a step would be copied by every product that reads them, which takes longer than the product
// itself.
static inline size_t weft_vector_step(const weft_ctx *ctx) {
  const size_t align = ctx->host->align;
  return align <= WEFT_VECTOR_STEP ? align : 1;
}

// Returns how many bytes of a vector's row take part in products.
static inline size_t weft_vector_width(const weft_ctx *ctx, size_t n) {
  const size_t align = ctx->host->align;
  const size_t step = align < WEFT_VECTOR_STEP ? align : WEFT_VECTOR_STEP;
  return (n + step - 1) / step * step;
}

// weft_mix_vectors for len below one step: goes through temporary rows of one step each.
weft_status weft_mix_narrow(const weft_ctx *ctx, const weft_exec *exec, const weft_gemm *product);

// Computes a product of such rows, which are zero up to weft_vector_width(len), into rows of len
// bytes.
static inline weft_status weft_mix_vectors(const weft_ctx *ctx, const weft_exec *exec,
                                           const weft_gemm *product) {
  return product->len >= weft_vector_step(ctx) ? ctx->host->gemm(ctx->host, exec, product, 1)
                                               : weft_mix_narrow(ctx, exec, product);
}

#endif
