// SPDX-License-Identifier: Apache-2.0
// What the session layer and the nodes above it share.
#ifndef WEFT_PEER_SESSION_COMMON_H
#define WEFT_PEER_SESSION_COMMON_H

#include <stdbool.h>
#include <stddef.h>

#include "weft/peer_session.h"

// Allocates `count` elements of `bytes` bytes each, all zero, and stores their address in *out, an
// object pointer; free them with weft_free(). Errors: as weft_alloc.
weft_status weft_session_allocate(weft_ctx *ctx, size_t count, size_t bytes, void *out);

bool weft_session_same_address(const weft_address *a, const weft_address *b);

#endif
