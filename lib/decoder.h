// SPDX-License-Identifier: Apache-2.0
// The decoder's internals: one matrix that holds both what is known and what is still to be
// computed.
//
// Row p of the matrix M, for a pivot p, describes a combination of source blocks in reduced row
// echelon form, and how its payload follows from the payloads stored in the slots (slot p holds a
// payload for pivot p):
//
//   columns without pivot   M[p][c] = the combination's coefficient of block c
//   pivot columns           the combination itself has 1 at p and 0 elsewhere, which needs no
//                           storage; M[p][q] = T[p][q] instead, and
//                           payload of row p = sum over pivots q of T[p][q] * slot q
//
// One elimination step on whole rows of M therefore updates coefficients and T together. Payloads
// are multiplied by T in one product when they are needed (decoder_payload.c). A slot is clean when
// its row of T is a unit vector: the slot then holds the payload of row p itself.
//
// The contents of rows without a pivot do not matter. The newest pivots are pending
// (decoder_eliminate.c): rows of older pivots still treat their columns as columns without pivot,
// until weft_decoder_clear.
//
// On a device (decoder_device.c) slots keep the payloads as received and never become clean: T is
// applied whenever payloads are read.
#ifndef WEFT_LIB_DECODER_H
#define WEFT_LIB_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/ctx.h"
#include "lib/random.h"
#include "lib/vectors.h"
#include "weft/rlnc.h"

struct weft_decoder {
  weft_ctx *ctx;
  weft_segment_id id;
  bool eager;
  size_t rank;
  size_t cleared;  // the first `cleared` pivots are not pending
  size_t reduced;  // the first `reduced` pivots' rows of T were unit vectors at the last reduction
  size_t prefix;   // blocks known from block 0 on before the pending pivots came
  uint8_t *blocks; // slot p at blocks + p * stride
  size_t stride;
  bool own_blocks;
  uint8_t *matrix; // M (n, n), row stride matrix_stride; zeros from column n up to width
  size_t matrix_stride, width; // bytes
  // On a device: slot p is [vector of n bytes | payload of k bytes] as received, at slots + p *
  // stride + lead, so that payloads are aligned; zero where there is no pivot. `blocks` is NULL
  // then.
  weft_mem mem;
  uint8_t *slots;
  size_t lead;   // bytes
  bool zeroed;   // slots without pivot are zero once the queue has run
  size_t widest; // 1 + the largest pivot
  // During a call for many decoders: the first and last of this decoder's items, and their number.
  uint32_t first_item, last_item, item_count;
  // Parts of the handle's single allocation, n elements each.
  uint8_t **rows;   // row p of M
  uint16_t *pivots; // in order of arrival; `rank` are set
  uint8_t *unknown; // 0xFF for a column without pivot, else 0
  uint8_t *vector;  // the arriving packet's coefficients
  uint8_t *work;    // the same, reduced; zeros up to width
  uint8_t *factors; // of the current product
  weft_random random;
};

static inline uint8_t *weft_decoder_row(const weft_decoder *decoder, size_t pivot) {
  return decoder->matrix + pivot * decoder->matrix_stride;
}

static inline uint8_t *weft_decoder_slot(const weft_decoder *decoder, size_t pivot) {
  return decoder->blocks + pivot * decoder->stride;
}

// --- decoder_eliminate.c ---

// Eliminates a packet's coefficients, which stay in decoder->vector. WEFT_OK: innovative, and *slot
// gets its pivot; the caller still has to store the payload there. Otherwise nothing has changed.
// With `keep` the new pivot stays pending, along with those already pending.
weft_status weft_decoder_accept(weft_decoder *decoder, const weft_packet *packet, bool keep,
                                size_t *slot);
// Eliminates the columns of pending pivots from all rows. Required before rows are used in any
// other way.
weft_status weft_decoder_clear(weft_decoder *decoder);
// Undoes the pending pivots.
void weft_decoder_drop(weft_decoder *decoder);

// --- decoder_payload.c ---

// Multiplies payloads by T until every slot is clean, on the threads of `pool`. On error nothing
// has changed.
weft_status weft_decoder_reduce(weft_decoder *decoder, weft_pool *pool);
// Computes block `index`, which must be known, into its slot.
weft_status weft_decoder_settle(weft_decoder *decoder, size_t index, weft_pool *pool);
// Writes the coefficients of `count` random combinations of what the decoder knows to `out`, and
// their weights over the slots, in order of arrival, to weights (count, rank).
weft_status weft_decoder_combine(weft_decoder *decoder, size_t count, uint8_t *out,
                                 size_t out_stride, uint8_t *weights, weft_pool *pool);
// weft_decoder_recode_batch for a decoder in host memory with rank above 0, and a batch that has
// been checked and is not empty.
weft_status weft_decoder_recode_on_host(weft_decoder *decoder, const weft_batch *batch,
                                        weft_pool *pool);
// Returns the most memory weft_decoder_reduce takes while it runs.
size_t weft_decoder_reduce_bytes(const weft_segment_id *id);
// Whether slot p holds the payload of row p.
bool weft_decoder_is_clean(const weft_decoder *decoder, size_t pivot);

// --- decoder_many.c ---

#define WEFT_NO_ITEM UINT32_MAX

// --- decoder_device.c: decoders whose payloads lie on a device ---

static inline bool weft_decoder_on_device(const weft_decoder *decoder) {
  return decoder->mem == WEFT_MEM_DEVICE;
}

static inline uint8_t *weft_decoder_device_slot(const weft_decoder *decoder, size_t pivot) {
  return decoder->slots + pivot * decoder->stride + decoder->lead;
}

weft_status weft_decoder_take_slots(weft_decoder *decoder);
// Zeroes the slots without pivot in those decoders where that has not been done.
weft_status weft_decoders_clear(weft_call *call, weft_decoder *const *decoders, size_t count);
weft_status weft_decoders_recode_on_device(weft_call *call, weft_decoder *const *decoders,
                                           const weft_batch *batches, size_t count);
weft_status weft_decoders_read_on_device(weft_call *call, weft_reading *readings, size_t count);

#endif
