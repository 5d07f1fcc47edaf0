// SPDX-License-Identifier: Apache-2.0
// Straight-line programs of XORs over packets, compiled from bit matrices.
//
// A product over GF(2) contains many sums more than once. The builder finds shared pairs greedily
// (Paar), undoes those that cost more to store than they save, and orders the rest so that few
// intermediate packets are alive at once.
#ifndef WEFT_LIB_STORAGE_XOR_PROGRAM_H
#define WEFT_LIB_STORAGE_XOR_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/memory.h"
#include "weft/status.h"

// Packets are numbered: inputs, then outputs, then slots for intermediate sums.
typedef struct weft_xor_step {
  uint16_t target; // an output or a slot
  uint16_t count;  // sources; 0 makes the packet zero
  uint32_t first;  // index of its first source in weft_xor_program.sources
} weft_xor_step;

typedef struct weft_xor_program {
  size_t inputs, outputs, slots;
  size_t step_count, source_count;
  weft_xor_step *steps;
  uint16_t *sources; // a step reads what earlier steps wrote, never its own target
  const weft_allocator *allocator;
} weft_xor_program;

// Builds a program from bits(outputs, inputs + again), each 0 or 1; at most 2048 outputs and 2048
// inputs. The last `again` columns stand for the first `again` outputs, which all other outputs may
// add. With `reduce`, sums are shared; without it every output is a single step, which is cheap to
// build. Errors: WEFT_E_NOMEM.
weft_status weft_xor_program_new(weft_xor_program **out, const uint8_t *bits, size_t outputs,
                                 size_t inputs, size_t again, bool reduce,
                                 const weft_allocator *allocator);
void weft_xor_program_free(weft_xor_program *program); // accepts NULL

#endif
