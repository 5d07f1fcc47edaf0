// SPDX-License-Identifier: Apache-2.0
// Machine code for one bit matrix over packets, made at run time: sums stay in registers, where a
// program that is interpreted loads and stores them packet by packet.
#ifndef WEFT_KERNELS_XOR_CODE_H
#define WEFT_KERNELS_XOR_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "weft/memory.h"
#include "weft/status.h"

enum { WEFT_XOR_LINE = 64 }; // bytes of each packet that the code works on at once

typedef struct weft_xor_matrix {
  const uint8_t *bits;    // (outputs, inputs), each 0 or 1
  size_t outputs, inputs; // packets of a group
  size_t w;               // of them in each shard; it divides both
  size_t packet_bytes;    // a multiple of WEFT_XOR_LINE
  size_t folded;          // 0, or to the last of the first so many output shards the others of them
                          // are added, whole, beside what its rows of the matrix say
} weft_xor_matrix;

// out = the product, at bytes [begin, end) of the first packet of each shard and as many of the
// others behind it, whole lines of one group; or of whole groups, which begin there and end there.
// Outputs do not overlap inputs.
typedef void weft_xor_loop(const uint8_t *const *in, // inputs / w shards
                           uint8_t *const *out,      // outputs / w shards
                           size_t begin, size_t end,
                           uint8_t *scratch, // scratch_bytes, at a multiple of WEFT_XOR_LINE
                           size_t ahead);    // 0, or packets are in no near cache: inputs are
                                             // fetched so many bytes before they are read, and
                                             // outputs may be stored past the caches

typedef struct weft_xor_code {
  weft_xor_loop *run;
  size_t scratch_bytes;
  size_t groups_ahead; // that inputs are best fetched; 0: as many as a second-level cache holds
  void *pages;         // of code, readable and executable
  size_t page_bytes;
  const weft_allocator *allocator;
} weft_xor_code;

// Copies machine code to pages that can be executed; they are never writable at the same time.
// Errors: WEFT_E_NOMEM; WEFT_E_UNSUPPORTED: this process gets no such pages, or no more of them.
weft_status weft_xor_code_new(weft_xor_code **out, const uint8_t *machine_code, size_t bytes,
                              size_t scratch_bytes, const weft_allocator *allocator);
void weft_xor_code_free(weft_xor_code *code); // accepts NULL

#endif
