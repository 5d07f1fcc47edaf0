// SPDX-License-Identifier: Apache-2.0
// Coefficients of packets by a context's host row, where that makes them sooner than a library's
// cipher does (weft_backend.expand), else as coefficients.h has them.
#ifndef WEFT_LIB_EXPAND_H
#define WEFT_LIB_EXPAND_H

#include "lib/coefficients.h"
#include "lib/ctx.h"

// `count` rows, dense, of seeds that count up; threads of `pool` share them.
void weft_expand_counted(const weft_ctx *ctx, weft_pool *pool, const weft_segment_id *id,
                         uint64_t first_seed, size_t count, uint8_t *out, size_t stride);
// Those of a packet that weft_packet_check lets pass.
void weft_expand_packet(const weft_ctx *ctx, const weft_packet *packet, uint8_t *out);

#endif
