// SPDX-License-Identifier: Apache-2.0
// Row `loop-word64`: the paper's loop-based multiplication on eight bytes in a general register,
// for any machine.
#include <stdint.h>
#include <string.h>

#include "kernels/gf256.h"
#include "kernels/host_kernels.h"
#include "kernels/xor_words.h"

#define VEC_BYTES 8
typedef uint64_t vec;

#define EACH_BYTE(value) (UINT64_C(0x0101010101010101) * (value))

static inline vec vec_zero(void) { return 0; }
static inline vec vec_load(const uint8_t *p) {
  vec v;
  memcpy(&v, p, sizeof v);
  return v;
}
static inline void vec_store(uint8_t *p, vec v) { memcpy(p, &v, sizeof v); }
static inline vec vec_xor(vec a, vec b) { return a ^ b; }

// The top bits are removed from their bytes before the shift; each adds the polynomial.
static inline vec vec_double(vec x) {
  const vec top = x & EACH_BYTE(0x80u);
  return ((x ^ top) << 1) ^ ((top >> 7) * (WEFT_GF256_POLY & 0xFFu));
}

#include "kernels/tail_copy.h"

#include "kernels/loop_tile.h"

const weft_host_kernel weft_host_loop_word64 = {.panel = loop_panel, .xor_rows = weft_xor_words};
