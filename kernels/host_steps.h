// SPDX-License-Identifier: Apache-2.0
// Acts: the steps of a factored matrix (factors.h) as host techniques execute them. An act is one
// pass over its operands, made of one or more steps: butterflies are joined four rows at a time,
// sums of the same slots are joined into a panel of a product, and rows of X are read and rows of Y
// written in place.
#ifndef WEFT_KERNELS_HOST_STEPS_H
#define WEFT_KERNELS_HOST_STEPS_H

#include "kernels/backend.h"

enum {
  WEFT_ACTS_MAX = 4096,         // maximum number of steps of one product
  WEFT_ACT_SLOTS = 64,          // maximum number of slots
  WEFT_ACT_ROWS = 256,          // maximum number of rows of X, and of Y
  WEFT_ACT_STEP = 128,          // columns are worked on in multiples of this
  WEFT_ACT_COLUMNS = 8192,      // maximum width of a strip, the columns worked on at once
  WEFT_ACT_SCRATCH = 256 << 10, // bytes of a strip's slots, to stay in the second-level cache
  WEFT_ACT_FIRST = 32 << 10,    // likewise in the first-level cache, where that pays
  WEFT_ACT_NARROW_PAST = 2048,  // minimum width of a strip then, with rows that no cache holds
  WEFT_ACT_APART = 192,         // bytes between slots, so that they share no sets of a cache
  WEFT_ACT_STRIDE = WEFT_ACT_COLUMNS + WEFT_ACT_APART // from one slot to the next
};

// Operands of acts are places, numbered in this order: slots, a row of zeros, rows of X, rows of Y.
enum {
  WEFT_PLACE_ZERO = WEFT_ACT_SLOTS,
  WEFT_PLACE_X,
  WEFT_PLACE_Y = WEFT_PLACE_X + WEFT_ACT_ROWS
};
enum { WEFT_ACT_WIDE = 16 }; // rows of the largest transform that takes one pass
enum { WEFT_PLACES = WEFT_PLACE_Y + WEFT_ACT_ROWS };

typedef enum weft_act_kind {
  WEFT_ACT_SET,     // out[0] = c[0] * in[0]
  WEFT_ACT_ADD,     // out[0] = in[0] ^ c[0] * in[1]
  WEFT_ACT_INVERSE, // a butterfly of in[0], in[1]
  WEFT_ACT_FORWARD,
  WEFT_ACT_INVERSE4, // butterflies of 0, 1 by c[0] and 2, 3 by c[1]; then of 0, 2 and 1, 3 by c[2]
  WEFT_ACT_FORWARD4, // butterflies of 0, 2 and 1, 3 by c[2]; then of 0, 1 by c[0] and 2, 3 by c[1]
  WEFT_ACT_PANEL     // a product entry by entry, as panels[in[0]] describes it
} weft_act_kind;

typedef struct weft_act {
  uint8_t kind, c[4];
  bool reads; // reads rows of X, which are worth prefetching
  // Butterflies join their results with other rows: inverse ones make out = more ^ c[3] * result,
  // forward ones out = result ^ c[3] * more.
  bool joins;
  // 16 or 8: this act and the 7 or 5 after it are one transform of that many rows. The fours (acts
  // on four rows) of its first two levels come first, then four acts for the other levels. Operand
  // i of the latter's act j is what four i leaves in place of its row j.
  uint8_t wide;
  uint16_t in[4], out[4], more[4];
} weft_act;

// Y(m, ) = or ^= A(m, k) X(k, ) on places.
typedef struct weft_act_panel {
  uint16_t m, k;
  uint16_t operand; // index of the first operand: sources, then outputs
  uint16_t entry;   // index of the first entry, row by row
  bool accumulate;
} weft_act_panel;

typedef struct weft_acts_work {
  size_t products, sums; // multiplications by constants other than 0 and 1; exclusive-ors
} weft_acts_work;

typedef struct weft_acts {
  size_t count, slots;
  bool zeros;          // the row of zeros is read
  weft_acts_work work; // of all acts but panels
  struct {
    size_t rows; // of all these transforms together
    weft_acts_work work;
  } wide[WEFT_ACT_WIDE / 8];   // transforms that are marked wide, of 8 rows and of 16
  size_t entries;              // of panels
  weft_act_panel *panels;      // indexed by act.in[0]
  uint16_t *operands;          // places, of panels
  uint8_t *a;                  // entries
  uint8_t home[WEFT_ACT_ROWS]; // slot of a row of Y that acts write directly; WEFT_PLACE_ZERO: none
  size_t homes;                // rows of Y that have a home
  weft_act act[];
} weft_acts;

// Returns how many rows an act writes. For panels, see weft_act_panel.m instead.
static inline size_t weft_act_outputs(const weft_act *act) {
  if (act->kind <= WEFT_ACT_ADD)
    return 1;
  return act->kind == WEFT_ACT_INVERSE4 || act->kind == WEFT_ACT_FORWARD4 ? 4 : 2;
}

// What a technique executes acts on: columns [begin, end), at least WEFT_ACT_STEP of them, in
// strips of at most `width` columns, a multiple of WEFT_ACT_STEP.
struct weft_strip {
  const weft_acts *acts;
  void (*panel)(const weft_panel *panel); // the technique's
  size_t k, m;
  const uint8_t *const *x;  // k rows
  uint8_t *const *y;        // m rows
  size_t begin, end, width; // width: columns worked on at once
  bool past;                // rows of Y are stored past the caches, where they are aligned
  uint8_t *scratch;         // slots of width bytes, WEFT_ACT_STRIDE apart, then a row of zeros
};

void weft_acts_widen(weft_acts *acts); // marks transforms that can take one pass (host_wide.c)

// Allocates factors with room for this much, without acts or steps yet; NULL: no memory.
typedef struct weft_factors_room {
  size_t acts, panels, operands, entries, steps;
} weft_factors_room;
weft_factors *weft_factors_take(const weft_factors_room *room, const weft_allocator *allocator,
                                weft_acts **acts, weft_step **steps);

// Multiplies columns [begin, ...) by factors and returns where it stopped: at `begin` if the
// technique has no steps, they do not pay or there is no memory.
size_t weft_host_steps(const weft_host_kernel *kernel, weft_scratch *scratch,
                       const weft_allocator *allocator, const weft_gemm *gemm, size_t begin,
                       size_t end);

#endif
