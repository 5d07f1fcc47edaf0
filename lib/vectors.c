// SPDX-License-Identifier: Apache-2.0
#include "lib/vectors.h"

#include <string.h>

enum { TOGETHER = 64 }; // vectors per product

weft_status weft_mix_narrow(const weft_ctx *ctx, const weft_exec *exec, const weft_gemm *product) {
  const size_t step = weft_vector_step(ctx);
  uint8_t whole[TOGETHER * WEFT_VECTOR_STEP];
  weft_gemm wide = *product;
  wide.len = step;
  wide.y = (weft_rows){.base = whole, .stride = step};
  for (size_t first = 0; first < product->m; first += TOGETHER) {
    const size_t left = product->m - first;
    wide.m = left < TOGETHER ? left : TOGETHER;
    wide.a = product->a + first * product->a_stride;
    WEFT_TRY(ctx->host->gemm(ctx->host, exec, &wide, 1));
    for (size_t i = 0; i < wide.m; i++)
      memcpy(weft_row(&product->y, first + i), whole + i * step, product->len);
  }
  return WEFT_OK;
}
