// SPDX-License-Identifier: Apache-2.0
// Generates packet coefficients with the context's host row where its own cipher is faster than the
// library's (weft_backend.expand), otherwise with the functions of coefficients.h.
#ifndef WEFT_LIB_EXPAND_H
#define WEFT_LIB_EXPAND_H

#include "lib/coefficients.h"
#include "lib/ctx.h"

// Writes `count` rows of dense coefficients, for consecutive seeds; the threads of `pool` share the
// work.
void weft_expand_counted(const weft_ctx *ctx, weft_pool *pool, const weft_segment_id *id,
                         uint64_t first_seed, size_t count, uint8_t *out, size_t stride);
// Writes the coefficients of a packet that has passed weft_packet_check.
void weft_expand_packet(const weft_ctx *ctx, const weft_packet *packet, uint8_t *out);

#endif
