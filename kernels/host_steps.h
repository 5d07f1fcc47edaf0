// SPDX-License-Identifier: Apache-2.0
// Steps of a factored matrix as host techniques execute them: butterflies joined four rows at a
// time, sums of the same slots joined to a panel of a product, rows of X read and rows of Y written
// where they lie.
#ifndef WEFT_KERNELS_HOST_STEPS_H
#define WEFT_KERNELS_HOST_STEPS_H

#include "kernels/backend.h"

enum {
  WEFT_ACTS_MAX = 4096,         // steps of one product
  WEFT_ACT_SLOTS = 64,          // slots, at most
  WEFT_ACT_ROWS = 256,          // rows of X, and of Y
  WEFT_ACT_STEP = 128,          // columns are worked on in multiples of this
  WEFT_ACT_COLUMNS = 8192,      // that are worked on at once, at most,
  WEFT_ACT_SCRATCH = 256 << 10, // or as many as leave the slots in the second-level cache,
  WEFT_ACT_FIRST = 32 << 10,    // or in the first where that is worth it,
  WEFT_ACT_NARROW_PAST = 2048,  // and not fewer with rows that no cache keeps
  WEFT_ACT_APART = 192,         // bytes between slots, which then share no sets of a cache
  WEFT_ACT_STRIDE = WEFT_ACT_COLUMNS + WEFT_ACT_APART // from one slot to the next
};

// Operands are places: slots, a row of zeros, then rows of X, then rows of Y.
enum {
  WEFT_PLACE_ZERO = WEFT_ACT_SLOTS,
  WEFT_PLACE_X,
  WEFT_PLACE_Y = WEFT_PLACE_X + WEFT_ACT_ROWS
};
enum { WEFT_ACT_WIDE = 16 }; // rows of the largest transform that is one pass
enum { WEFT_PLACES = WEFT_PLACE_Y + WEFT_ACT_ROWS };

typedef enum weft_act_kind {
  WEFT_ACT_SET,     // out[0] = c[0] * in[0]
  WEFT_ACT_ADD,     // out[0] = in[0] ^ c[0] * in[1]
  WEFT_ACT_INVERSE, // a butterfly of in[0], in[1]
  WEFT_ACT_FORWARD,
  WEFT_ACT_INVERSE4, // of 0, 1 by c[0] and 2, 3 by c[1]; then of 0, 2 and 1, 3 by c[2]
  WEFT_ACT_FORWARD4, // of 0, 2 and 1, 3 by c[2]; then of 0, 1 by c[0] and 2, 3 by c[1]
  WEFT_ACT_PANEL     // a product entry by entry, of the operands and entries that its panel names
} weft_act_kind;

typedef struct weft_act {
  uint8_t kind, c[4];
  bool reads; // rows of X, which are worth fetching ahead
  // Butterflies, what they make in result: inverse ones out = more ^ c[3] * result, forward ones
  // out = result ^ c[3] * more.
  bool joins;
  // 16 or 8: this act and the 7 or 5 after it are one transform of so many rows, fours before the
  // others. Operand i of the others' act j is what four i leaves in place of its row j.
  uint8_t wide;
  uint16_t in[4], out[4], more[4];
} weft_act;

// Y(m, ) = or ^= A(m, k) X(k, ) on places.
typedef struct weft_act_panel {
  uint16_t m, k;
  uint16_t operand; // the first of them: sources, then outputs
  uint16_t entry;   // the first of them, row by row
  bool accumulate;
} weft_act_panel;

typedef struct weft_acts_work {
  size_t products, sums; // multiplications by anything but 0 and 1; exclusive-ors
} weft_acts_work;

typedef struct weft_acts {
  size_t count, slots;
  bool zeros;          // are read
  weft_acts_work work; // of all acts but panels
  struct {
    size_t rows; // of all transforms
    weft_acts_work work;
  } wide[WEFT_ACT_WIDE / 8];   // of those that are wide, of 8 rows and of 16
  size_t entries;              // of panels
  weft_act_panel *panels;      // act.in[0] says which
  uint16_t *operands;          // places
  uint8_t *a;                  // entries
  uint8_t home[WEFT_ACT_ROWS]; // the slot that a row of Y would be left in, or WEFT_PLACE_ZERO
  size_t homes;                // rows of Y that have one
  weft_act act[];
} weft_acts;

// How many rows an act makes; a panel's are its own.
static inline size_t weft_act_outputs(const weft_act *act) {
  if (act->kind <= WEFT_ACT_ADD)
    return 1;
  return act->kind == WEFT_ACT_INVERSE4 || act->kind == WEFT_ACT_FORWARD4 ? 4 : 2;
}

// What a technique executes acts on: columns [begin, end), a multiple of WEFT_ACT_STEP of them.
struct weft_strip {
  const weft_acts *acts;
  void (*panel)(const weft_panel *panel); // the technique's
  size_t k, m;
  const uint8_t *const *x;  // k rows
  uint8_t *const *y;        // m rows
  size_t begin, end, width; // width: columns worked on at once
  bool past;                // rows of Y are stored past the caches, where they are aligned
  uint8_t *scratch;         // slots of width bytes, WEFT_ACT_STRIDE apart, and one of zeros
};

void weft_acts_widen(weft_acts *acts); // finds those that are wide (host_wide.c)

// Factors with room for so much, without any acts and steps yet; NULL: no memory.
typedef struct weft_factors_room {
  size_t acts, panels, operands, entries, steps;
} weft_factors_room;
weft_factors *weft_factors_take(const weft_factors_room *room, const weft_allocator *allocator,
                                weft_acts **acts, weft_step **steps);

// Multiplies columns [begin, ...) by factors and answers where it ended: at `begin` where the
// technique has no steps or the matrix is not worth them.
size_t weft_host_steps(const weft_host_kernel *kernel, weft_scratch *scratch,
                       const weft_allocator *allocator, const weft_gemm *gemm, size_t begin,
                       size_t end);

#endif
