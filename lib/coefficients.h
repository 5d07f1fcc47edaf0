// SPDX-License-Identifier: Apache-2.0
// Expands a seed into a packet's coefficients (docs/wire.md), and checks a packet's fields.
#ifndef WEFT_LIB_COEFFICIENTS_H
#define WEFT_LIB_COEFFICIENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "weft/packet.h"

// Writes n = id->blocks coefficients, all nonzero.
void weft_coefficients_dense(const weft_segment_id *id, uint64_t seed, uint8_t *out);
// Writes n coefficients, each nonzero with probability density_q16 / 65536; all may be zero.
void weft_coefficients_sparse(const weft_segment_id *id, uint64_t seed, uint16_t density_q16,
                              uint8_t *out);
// Whether all of those are zero.
bool weft_coefficients_sparse_none(const weft_segment_id *id, uint64_t seed, uint16_t density_q16);

// Writes the coefficients that the packet's mode fields describe, for any mode but VECTOR.
void weft_coefficients_named(const weft_packet *packet, uint8_t *out);

bool weft_segment_id_valid(const weft_segment_id *id);
bool weft_segment_id_equal(const weft_segment_id *a, const weft_segment_id *b);
// Whether two segments have the same number of blocks and the same block size.
static inline bool weft_segment_id_alike(const weft_segment_id *a, const weft_segment_id *b) {
  return a->blocks == b->blocks && a->block_bytes == b->block_bytes;
}
// Checks the fields of a packet. WEFT_E_ARGUMENT: a pointer that the mode needs is missing.
// WEFT_E_MALFORMED: a field is out of range.
weft_status weft_packet_check(const weft_packet *packet);
bool weft_all_zero(const uint8_t *bytes, size_t count);

#endif
