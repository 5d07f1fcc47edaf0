// SPDX-License-Identifier: Apache-2.0
// A resident operand of the CUDA rows: X in the layout that one row made of it.
#ifndef WEFT_KERNELS_CUDA_OPERAND_CUH
#define WEFT_KERNELS_CUDA_OPERAND_CUH

extern "C" {
#include "kernels/backend.h"
}

struct weft_operand {
  const weft_backend *row; // whose layout it is
  void *data;              // device memory, from the device's arena
  size_t bytes;
  size_t k, len; // of X
  size_t stride; // between rows of data, in the row's own unit
};

#endif
