// SPDX-License-Identifier: Apache-2.0
// Accessors and checks of a weft_batch, for encoder, decoder and recoder.
#ifndef WEFT_LIB_BATCH_H
#define WEFT_LIB_BATCH_H

#include "kernels/backend.h"
#include "lib/ctx.h"
#include "weft/rlnc.h"

// Returns the payloads from packet `first` on, as rows of a product.
static inline weft_rows weft_batch_rows(const weft_batch *batch, size_t first) {
  return (weft_rows){.base = batch->payload ? batch->payload + first * batch->payload_stride : NULL,
                     .stride = batch->payload_stride,
                     .ptr = batch->payload_rows ? batch->payload_rows + first : NULL,
                     .mem = batch->mem};
}

// Returns payload i, or NULL if the CPU cannot read it.
static inline const uint8_t *weft_batch_payload(const weft_batch *batch, size_t i) {
  if (batch->mem == WEFT_MEM_DEVICE)
    return NULL;
  return batch->payload_rows ? batch->payload_rows[i] : batch->payload + i * batch->payload_stride;
}

// Returns vector i, likewise.
static inline const uint8_t *weft_batch_vector(const weft_batch *batch, size_t i) {
  return batch->coefficients_mem == WEFT_MEM_DEVICE
             ? NULL
             : batch->coefficients + i * batch->coefficients_stride;
}

static inline weft_status weft_batch_check_payloads(const weft_batch *batch,
                                                    const weft_segment_id *id, bool has_device) {
  if (!batch->payload_rows && !batch->payload)
    return WEFT_E_ARGUMENT;
  if (!batch->payload_rows &&
      !weft_stride_valid(batch->count, batch->payload_stride, id->block_bytes))
    return WEFT_E_ARGUMENT;
  for (size_t i = 0; batch->payload_rows && i < batch->count; i++)
    if (!batch->payload_rows[i])
      return WEFT_E_ARGUMENT;
  return weft_mem_check(batch->mem, has_device);
}

// Checks that the coefficients' memory can hold the batch's rows.
static inline weft_status
weft_batch_check_coefficients(const weft_batch *batch, const weft_segment_id *id, bool has_device) {
  if (!batch->coefficients ||
      !weft_stride_valid(batch->count, batch->coefficients_stride, id->blocks))
    return WEFT_E_ARGUMENT;
  return weft_mem_check(batch->coefficients_mem, has_device);
}

// Returns a batch of one packet whose coefficients and payload are at their places in a VECTOR
// datagram.
static inline weft_batch weft_batch_in_datagram(const weft_segment_id *id, weft_packet *packet,
                                                uint8_t *datagram) {
  uint8_t *coefficients = datagram + WEFT_WIRE_HEADER_BYTES;
  return (weft_batch){.count = 1,
                      .packets = packet,
                      .coefficients = coefficients,
                      .coefficients_stride = id->blocks,
                      .payload = coefficients + id->blocks,
                      .payload_stride = id->block_bytes};
}

// Fills in the packet descriptions, if the caller wants them: each packet's vector and payload are
// the batch's.
static inline void weft_batch_describe_vectors(const weft_batch *batch, const weft_segment_id *id) {
  for (size_t i = 0; batch->packets && i < batch->count; i++) {
    weft_packet *packet = &batch->packets[i]; // member by member: see set_product in recoder.c
    packet->id = *id;
    packet->mode = WEFT_PACKET_VECTOR;
    packet->index = 0;
    packet->seed = 0;
    packet->density_q16 = 0;
    packet->coefficients = weft_batch_vector(batch, i);
    packet->payload = weft_batch_payload(batch, i);
  }
}

#endif
