// SPDX-License-Identifier: Apache-2.0
// A made kernel on random bytes, before anything that matters is left to it (no CUDA types here).
#ifndef WEFT_KERNELS_CUDA_STORAGE_TRIAL_H
#define WEFT_KERNELS_CUDA_STORAGE_TRIAL_H

#include "kernels/cuda/storage_source.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a kernel is tried on: k inputs, then m outputs, side by side in DEVICE memory.
typedef struct weft_trial_rows {
  uint8_t *first;
  size_t stride, length; // bytes; bytes or groups of packets
} weft_trial_rows;

// Whether what `run` enqueues for `rows` is the product with the matrix, which is the shape's bits
// or, for bytes of GF(2^8), `a` (m, k). The definition is computed on the host; the stream is
// waited for. Errors: WEFT_E_NOMEM, and what the device or `run` reports.
typedef struct weft_trial {
  const weft_program_shape *shape;
  const weft_program_plan *plan;
  const uint8_t *a; // NULL: packets
  size_t a_stride;
  weft_status (*run)(void *user, const weft_trial_rows *rows);
  void *user;
} weft_trial;
weft_status weft_trial_passes(const weft_exec *exec, const weft_trial *trial, bool *passes);

#ifdef __cplusplus
}
#endif
#endif
