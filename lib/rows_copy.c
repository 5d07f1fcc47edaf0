// SPDX-License-Identifier: Apache-2.0
#include "lib/rows_copy.h"

#include <stdbool.h>
#include <string.h>

#include "kernels/copy_past.h"
#include "kernels/smaller.h"

// Measured (docs/gpu/host.md).
enum {
  SHARED_BYTES = 128 << 10, // below it waking threads takes longer than it saves
  PIECE_BYTES = 32 << 10,
  PIECES = 128, // most at a time
  // Copied past the caches: to the device, which reads them next, and results that the caller would
  // not find in a cache anyway.
  READ_NEXT_BYTES = 128 << 10,
  FAR_BYTES = 2 << 20
};

static void move(uint8_t *to, const uint8_t *from, size_t bytes, bool past) {
  if (past)
    weft_copy_past(to, from, bytes);
  else
    memcpy(to, from, bytes);
}

// Copies `bytes` bytes of a part after its first `first`.
typedef void copy_some(const weft_rows_part *part, size_t first, size_t bytes, bool past);

static void gather(const weft_rows_part *part, size_t first, size_t bytes, bool past) {
  const weft_gathering *g = (const weft_gathering *)part;
  const size_t at = part->at + first;
  uint8_t *to = g->to + first;
  if (!g->from.ptr && g->from.stride == part->row_bytes) {
    move(to, g->from.base + at, bytes, past);
    return;
  }
  size_t row = at / part->row_bytes, in = at % part->row_bytes;
  for (size_t some; bytes > 0; bytes -= some, to += some, row++, in = 0) {
    some = weft_smaller(bytes, part->row_bytes - in);
    move(to, weft_const_row(&g->from, row) + in, some, past);
  }
}

static void deliver(const weft_rows_part *part, size_t first, size_t bytes, bool past) {
  const weft_delivery *d = (const weft_delivery *)part;
  const size_t at = part->at + first;
  const uint8_t *from = d->from + first;
  if (!d->to.ptr && d->to.stride == part->row_bytes) {
    move(d->to.base + at, from, bytes, past);
    return;
  }
  size_t row = at / part->row_bytes, in = at % part->row_bytes;
  for (size_t some; bytes > 0; bytes -= some, from += some, row++, in = 0) {
    some = weft_smaller(bytes, part->row_bytes - in);
    move(weft_row(&d->to, row) + in, from, some, past);
  }
}

// --- shared by a pool's threads ---

typedef struct sharing {
  copy_some *copy;
  bool past;
  size_t piece; // bytes
  // Where each piece begins: in this part, after so many of its bytes.
  const weft_rows_part *in[PIECES];
  size_t after[PIECES];
} sharing;

static void copy_piece(void *user, size_t index) {
  const sharing *s = user;
  const weft_rows_part *part = s->in[index];
  size_t first = s->after[index];
  for (size_t left = s->piece, some; part && left > 0; left -= some, part = part->next, first = 0) {
    some = weft_smaller(left, part->bytes - first);
    s->copy(part, first, some, s->past);
  }
}

static void share(weft_pool *pool, const weft_rows_part *first, size_t bytes, copy_some *copy,
                  bool past) {
  const size_t even = bytes / PIECES + (bytes % PIECES != 0);
  sharing s = {.copy = copy, .past = past, .piece = even > PIECE_BYTES ? even : PIECE_BYTES};
  size_t begin = 0, pieces = 0;
  for (const weft_rows_part *part = first; part; begin += part->bytes, part = part->next)
    for (; pieces * s.piece < begin + part->bytes; pieces++) {
      s.in[pieces] = part;
      s.after[pieces] = pieces * s.piece - begin;
    }
  weft_pool_run(pool, pieces, copy_piece, &s);
}

static void copy_all(weft_pool *pool, const weft_rows_part *first, copy_some *copy,
                     size_t past_from) {
  size_t bytes = 0;
  for (const weft_rows_part *part = first; part; part = part->next)
    bytes += part->bytes;
  if (bytes >= SHARED_BYTES && weft_pool_threads(pool) > 1) {
    share(pool, first, bytes, copy, bytes >= past_from);
    return;
  }
  for (const weft_rows_part *part = first; part; part = part->next)
    copy(part, 0, part->bytes, bytes >= past_from);
}

void weft_rows_gather(weft_pool *pool, const weft_gathering *first) {
  copy_all(pool, first ? &first->part : NULL, gather, READ_NEXT_BYTES);
}

void weft_rows_deliver(weft_pool *pool, const weft_delivery *first) {
  copy_all(pool, first ? &first->part : NULL, deliver, FAR_BYTES);
}
