// SPDX-License-Identifier: Apache-2.0
// Machine code for one bit matrix over packets, made at run time. Its sums stay in registers,
// whereas an interpreted program loads and stores them packet by packet.
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
  size_t w;               // packets of each shard; divides both
  size_t packet_bytes;    // a multiple of WEFT_XOR_LINE
  size_t folded;          // 0, or the number of a shard, counted from 1, to which all output shards
                          // before it are added, whole, besides what its rows of the matrix say
} weft_xor_matrix;

// Computes the product at bytes [begin, end) of each shard's first packet, and at as many bytes of
// the other packets after it: whole lines of one group, or whole groups, which then begin and end
// there. Outputs do not overlap inputs.
typedef void weft_xor_loop(const uint8_t *const *in, // inputs / w shards
                           uint8_t *const *out,      // outputs / w shards
                           size_t begin, size_t end,
                           uint8_t *scratch, // scratch_bytes, at a multiple of WEFT_XOR_LINE
                           size_t ahead); // 0; or, if packets are in no near cache, how many bytes
                                          // ahead inputs are prefetched; outputs may then be
                                          // stored past the caches

typedef struct weft_xor_code {
  weft_xor_loop *run;
  size_t scratch_bytes;
  size_t groups_ahead; // best distance to prefetch inputs; 0: what a second-level cache holds
  void *pages;         // of code, readable and executable
  size_t page_bytes;
  const weft_allocator *allocator;
} weft_xor_code;

// Copies machine code to executable pages, which are never writable at the same time. Errors:
// WEFT_E_NOMEM; WEFT_E_UNSUPPORTED: this process gets no such pages, or no more of them.
weft_status weft_xor_code_new(weft_xor_code **out, const uint8_t *machine_code, size_t bytes,
                              size_t scratch_bytes, const weft_allocator *allocator);
void weft_xor_code_free(weft_xor_code *code); // accepts NULL

#endif
