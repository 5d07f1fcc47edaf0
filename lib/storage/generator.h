// SPDX-License-Identifier: Apache-2.0
// The generator matrix of a systematic code over GF(2^w), and the matrix that rebuilds shards.
//
// Nearly every code here is a generalised Reed-Solomon code: each shard s has a point z(s) and a
// scale u(s), and parity i is the sum over j of u(j) / (u(k+i) (z(k+i) + z(j))) * data j. One point
// may be infinite; a difference with it counts as 1. Distinct points make such a code MDS, and
// every entry of a recovery matrix a product of differences, so nothing has to be inverted. The two
// codes that are not of this kind (raw ISA-L and PAR1) keep only their matrix, are checked for MDS,
// and invert. A user's own matrix is taken as it is.
#ifndef WEFT_LIB_STORAGE_GENERATOR_H
#define WEFT_LIB_STORAGE_GENERATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/storage/gfw.h"
#include "weft/memory.h"
#include "weft/status.h"

#define WEFT_SHARDS_MAX 256u

typedef enum weft_generator_kind {
  WEFT_GENERATOR_VANDERMONDE,  // rows r^c, systematised
  WEFT_GENERATOR_CAUCHY,       // 1 / ((k + i) + j)
  WEFT_GENERATOR_REED_SOL_VAN, // Jerasure's extended Vandermonde, first row and column ones
  WEFT_GENERATOR_ISAL_RS,      // (2^i)^j
  WEFT_GENERATOR_PAR1,         // (j + 1)^i
  WEFT_GENERATOR_RAID6,        // 1 and 2^j
  WEFT_GENERATOR_CAUCHY_ORIG,  // 1 / (i + (m + j))
  WEFT_GENERATOR_CAUCHY_GOOD   // the same, scaled for few ones
} weft_generator_kind;

typedef struct weft_generator {
  weft_gfw field;
  size_t k, m;
  bool by_points;  // generalised Reed-Solomon: the members below except parity are set
  size_t infinite; // the shard whose point is infinite, or WEFT_SHARDS_MAX
  uint8_t point[WEFT_SHARDS_MAX]; // (k + m)
  uint8_t scale[WEFT_SHARDS_MAX]; // (k + m), nonzero
  uint8_t *parity;                // (m, k), row stride k; owned
  // (k + m + 1, lanes): logarithms, in 1..order, of the inverses of the differences of points; the
  // last row has those of the scales; padded with zeros. Stored behind parity; NULL without it.
  uint16_t *logarithms;
  const weft_allocator *allocator; // outlives the generator
} weft_generator;

// Returns the length of a row of logarithms: a multiple of eight, since eight are read at a time.
static inline size_t weft_generator_lanes(const weft_generator *generator) {
  return (generator->k + generator->m + 7) / 8 * 8;
}

// Requires 1 <= k, k + m <= 2^w (256 for w = 8). WEFT_E_ARGUMENT: the code does not have these
// sizes. WEFT_E_SINGULAR: the code would not be MDS. On failure nothing needs freeing.
weft_status weft_generator_init(weft_generator *generator, weft_generator_kind kind, size_t k,
                                size_t m, unsigned w, const weft_allocator *allocator);
// Takes the user's own parity(m, k), over GF(2^8).
weft_status weft_generator_init_own(weft_generator *generator, const uint8_t *parity, size_t k,
                                    size_t m, const weft_allocator *allocator);
void weft_generator_clear(weft_generator *generator);

// Computes matrix(count, k) such that shard out[r] = sum of matrix[r][c] * shard in[c]. `in` names
// k distinct shards in any order; out[r] may be any shard. WEFT_E_NOMEM, or WEFT_E_SINGULAR if `in`
// does not suffice.
weft_status weft_generator_solve(const weft_generator *generator, const uint8_t *in,
                                 const uint8_t *out, size_t count, uint8_t *matrix);

// The data shards that are absent, and as many parity shards that stand in for them.
typedef struct weft_absence {
  size_t count;
  const uint8_t *data, *parity; // ids, in any order
} weft_absence;

// The same for callers that already know the absence: `in` names the present data shards and the
// parity shards of `absence`. Rows for shards that are in `in` are undefined. For codes by points,
// with m > 0.
void weft_generator_solve_absence(const weft_generator *generator, const weft_absence *absence,
                                  const uint8_t *in, const uint8_t *out, size_t count,
                                  uint8_t *matrix);

// Computes the scales of all shards that make the matrices above Cauchy-like: their entries are
// scale[in[c]] / (scale[out[r]] * difference of the two points). For codes by points.
// WEFT_E_ARGUMENT: ids are not distinct or out of range.
weft_status weft_generator_weigh(const weft_generator *generator, const uint8_t *in,
                                 uint8_t *scale);

// weft_generator_solve by elimination, for any code: the specification of the closed form.
weft_status weft_generator_solve_by_elimination(const weft_generator *generator, const uint8_t *in,
                                                const uint8_t *out, size_t count, uint8_t *matrix);

// The same for any matrix, and from any number of distinct inputs: matrix(count, inputs), in which
// unneeded inputs have only zeros. WEFT_E_SINGULAR: an output does not follow from the inputs.
weft_status weft_generator_express(const weft_generator *generator, const uint8_t *in,
                                   size_t inputs, const uint8_t *out, size_t count,
                                   uint8_t *matrix);

// Checks that every square submatrix of (m, k) is regular, in order of increasing size, so that a
// bad matrix is detected early. WEFT_E_SINGULAR if one is not; WEFT_E_UNSUPPORTED if `budget`
// submatrices did not decide it.
weft_status weft_matrix_check_mds(const weft_gfw *field, const uint8_t *matrix, size_t m, size_t k,
                                  size_t budget);

// Iterate over the n-element subsets of 0..limit-1 in lexicographic order, limit at most 256;
// weft_next_subset returns false after the last one.
void weft_first_subset(uint8_t *set, size_t n);
bool weft_next_subset(uint8_t *set, size_t n, size_t limit);

// Expands a matrix to bits(rows * w, columns * w), row stride columns * w: entry (r, c) becomes the
// w x w bit matrix whose column x is entry * 2^x, bit l of it in row l.
void weft_matrix_to_bits(const weft_gfw *field, const uint8_t *matrix, size_t rows, size_t columns,
                         uint8_t *bits);

#endif
