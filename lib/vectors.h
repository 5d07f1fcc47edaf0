// SPDX-License-Identifier: Apache-2.0
// Products of coefficient vectors, which lie in rows padded with zeros.
#ifndef WEFT_LIB_VECTORS_H
#define WEFT_LIB_VECTORS_H

#include "lib/ctx.h"

enum { WEFT_VECTOR_STEP = 32 }; // what a width is rounded up to, at most

// What the host row takes at once; 1 where it has masks for less. Rows of less would be copied
// aside by each product that reads them, which takes longer than the product.
static inline size_t weft_vector_step(const weft_ctx *ctx) {
  const size_t align = ctx->host->align;
  return align <= WEFT_VECTOR_STEP ? align : 1;
}

// How many bytes of a vector's row are multiplied.
static inline size_t weft_vector_width(const weft_ctx *ctx, size_t n) {
  const size_t align = ctx->host->align;
  const size_t step = align < WEFT_VECTOR_STEP ? align : WEFT_VECTOR_STEP;
  return (n + step - 1) / step * step;
}

// weft_mix_vectors where len is less than a step: by way of rows of a step.
weft_status weft_mix_narrow(const weft_ctx *ctx, const weft_exec *exec, const weft_gemm *product);

// A product of such rows, zero up to weft_vector_width(len), into rows of len bytes.
static inline weft_status weft_mix_vectors(const weft_ctx *ctx, const weft_exec *exec,
                                           const weft_gemm *product) {
  return product->len >= weft_vector_step(ctx) ? ctx->host->gemm(ctx->host, exec, product, 1)
                                               : weft_mix_narrow(ctx, exec, product);
}

#endif
