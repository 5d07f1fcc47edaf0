// SPDX-License-Identifier: Apache-2.0
// RAID parities: P and Q, or the sum alone.
#include "isa-l/raid.h"

#include <string.h>

#include "integrations/isal/product.h"
#include "kernels/gf256.h"

enum { POWERS = 255, PIECE = 2048 }; // PIECE: bytes of parity computed at a time to be compared

static const uint8_t *const *rows_of(void **array) { return (const uint8_t *const *)array; }

static void add_up(size_t len, size_t k, const uint8_t *const *x, uint8_t *sum) {
  weft_isal_row()->host->xor_rows(sum, x, k, 0, len, false);
}

static void make_p_q(size_t len, size_t k, const uint8_t *const *x, uint8_t *const *p_q) {
  uint8_t matrix[2 * POWERS];
  memset(matrix, 1, k);
  memcpy(matrix + k, weft_gf256_exp, k);
  weft_isal_multiply(&(weft_isal_product){
      .len = len, .k = k, .m = 2, .a = matrix, .a_stride = k, .x = x, .y = p_q});
}

int xor_gen(int vects, int len, void **array) {
  if (vects < 3 || len < 0)
    return 1;
  add_up((size_t)len, (size_t)vects - 1, rows_of(array), array[vects - 1]);
  return 0;
}

int xor_check(int vects, int len, void **array) {
  static const uint8_t zeros[PIECE];
  if (vects < 2 || len < 0)
    return 1;
  const size_t bytes = (size_t)len;
  for (size_t at = 0; at < bytes; at += PIECE) {
    const size_t piece = bytes - at < PIECE ? bytes - at : PIECE;
    uint8_t sum[PIECE] = {0};
    for (int j = 0; j < vects; j++) {
      const uint8_t *const row = (const uint8_t *)array[j] + at;
      weft_isal_row()->host->xor_rows(sum, &row, 1, 0, piece, true);
    }
    if (memcmp(sum, zeros, piece) != 0)
      return 1;
  }
  return 0;
}

int pq_gen(int vects, int len, void **array) {
  if (vects < 4 || vects > POWERS + 2 || len < 0)
    return 1;
  const size_t k = (size_t)vects - 2;
  uint8_t *const p_q[2] = {array[k], array[k + 1]};
  make_p_q((size_t)len, k, rows_of(array), p_q);
  return 0;
}

int pq_check(int vects, int len, void **array) {
  if (vects < 4 || vects > POWERS + 2 || len < 0)
    return 1;
  const size_t k = (size_t)vects - 2, bytes = (size_t)len;
  for (size_t at = 0; at < bytes; at += PIECE) {
    const size_t piece = bytes - at < PIECE ? bytes - at : PIECE;
    const uint8_t *x[POWERS];
    uint8_t p[PIECE], q[PIECE], *const p_q[2] = {p, q};
    for (size_t j = 0; j < k; j++)
      x[j] = (const uint8_t *)array[j] + at;
    make_p_q(piece, k, x, p_q);
    if (memcmp(p, (const uint8_t *)array[k] + at, piece) != 0 ||
        memcmp(q, (const uint8_t *)array[k + 1] + at, piece) != 0)
      return 1;
  }
  return 0;
}

int xor_gen_base(int vects, int len, void **array) { return xor_gen(vects, len, array); }
int xor_check_base(int vects, int len, void **array) { return xor_check(vects, len, array); }
int pq_gen_base(int vects, int len, void **array) { return pq_gen(vects, len, array); }
int pq_check_base(int vects, int len, void **array) { return pq_check(vects, len, array); }
