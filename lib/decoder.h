// SPDX-License-Identifier: Apache-2.0
// Inside of a decoder: one matrix that says both what is known and what is still to be computed.
//
// A pivot row p of the matrix M stands for a combination of source blocks in reduced row echelon
// form, and for how its payload follows from the payloads that lie in the slots:
//
//   columns without pivot   M[p][c] = the combination's coefficient of block c
//   pivot columns           the combination itself has 1 at p and 0 elsewhere, which needs no
//                           storage; M[p][q] = T[p][q] instead, and
//                           payload of row p = sum over pivots q of T[p][q] * slot q
//
// So one elimination step on whole rows of M brings coefficients and T up to date at once, and
// payloads are multiplied by T in one product when somebody wants them (decoder_payload.c). A slot
// is clean when its row of T is the unit vector: it holds what row p stands for.
#ifndef WEFT_LIB_DECODER_H
#define WEFT_LIB_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/ctx.h"
#include "lib/random.h"
#include "weft/rlnc.h"

struct weft_decoder {
  weft_ctx *ctx;
  weft_segment_id id;
  bool eager;
  size_t rank;
  size_t reduced;  // the first `reduced` pivots' rows of T were unit vectors at the last reduction
  size_t prefix;   // blocks known from block 0 on
  uint8_t *blocks; // slot p at blocks + p * stride
  size_t stride;
  bool own_blocks;
  uint8_t *matrix; // M (n, n), dense
  // Views into the handle's one allocation of n of each.
  uint8_t **rows;   // pointers of the product at hand
  uint16_t *pivots; // in order of arrival; `rank` are set
  uint8_t *unknown; // 0xFF for a column without pivot, else 0
  uint8_t *vector;  // the arriving packet's coefficients
  uint8_t *work;    // the same, reduced
  uint8_t *factors; // of the product at hand
  weft_random random;
};

static inline uint8_t *weft_decoder_row(const weft_decoder *decoder, size_t pivot) {
  return decoder->matrix + pivot * decoder->id.blocks;
}

static inline uint8_t *weft_decoder_slot(const weft_decoder *decoder, size_t pivot) {
  return decoder->blocks + pivot * decoder->stride;
}

// Multiplies payloads by T until every slot is clean. On error nothing has changed.
weft_status weft_decoder_reduce(weft_decoder *decoder);
// The most memory that it takes while it runs.
size_t weft_decoder_reduce_bytes(const weft_segment_id *id);
// Whether slot p holds what row p stands for.
bool weft_decoder_is_clean(const weft_decoder *decoder, size_t pivot);

#endif
