// SPDX-License-Identifier: Apache-2.0
// The random linear functions of checksums (docs/protocol.md).
#ifndef WEFT_PEER_CHECKSUM_ROWS_H
#define WEFT_PEER_CHECKSUM_ROWS_H

#include "weft/peer_codec.h"

// Computes the checksum of a payload: WEFT_CHECKSUM_ROWS bytes, linear over GF(2^8) in the payload.
void weft_checksum_of(uint64_t seed, const uint8_t *payload, size_t bytes,
                      uint8_t out[WEFT_CHECKSUM_ROWS]);
// Computes the checksum that a combination of blocks must have, from the blocks' own sums (blocks,
// WEFT_CHECKSUM_ROWS).
void weft_checksum_combine(const uint8_t *coefficients, size_t blocks, const uint8_t *sums,
                           uint8_t out[WEFT_CHECKSUM_ROWS]);

#endif
