// SPDX-License-Identifier: Apache-2.0
// What sessions and the nodes above them both need.
#ifndef WEFT_PEER_SESSION_COMMON_H
#define WEFT_PEER_SESSION_COMMON_H

#include <stdbool.h>
#include <stddef.h>

#include "weft/peer_session.h"

// Makes *out, a pointer to some kind of object, point to `count` of `bytes` bytes each, all zero;
// weft_free() them. Errors: as weft_alloc.
weft_status weft_session_allocate(weft_ctx *ctx, size_t count, size_t bytes, void *out);

bool weft_session_same_address(const weft_address *a, const weft_address *b);

#endif
