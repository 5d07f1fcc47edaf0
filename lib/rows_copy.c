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
  PIECES = 128,       // most at a time
  FAR_BYTES = 2 << 20 // results that the caller will not find in a cache anyway
};

// Pinned memory is read by the device next, so all but little goes there past the caches.
static void copy(uint8_t *to, const uint8_t *from, size_t bytes, bool past) {
  if (past)
    weft_copy_past(to, from, bytes);
  else
    memcpy(to, from, bytes);
}

// Returns the size of the pieces in which so many bytes are shared.
static size_t piece_of(size_t bytes) {
  const size_t even = bytes / PIECES + (bytes % PIECES != 0);
  return even > PIECE_BYTES ? even : PIECE_BYTES;
}

static size_t pieces_of(size_t bytes, size_t piece) { return bytes / piece + (bytes % piece != 0); }

static bool is_shared(const weft_pool *pool, size_t bytes) {
  return bytes >= SHARED_BYTES && weft_pool_threads(pool) > 1;
}

// --- from rows ---

typedef struct gathering {
  uint8_t *to;
  const weft_const_rows *from;
  size_t row_bytes, at, bytes, piece;
  bool past;
} gathering;

static void gather(const gathering *g, size_t first, size_t bytes) {
  const size_t at = g->at + first;
  uint8_t *to = g->to + first;
  if (!g->from->ptr && g->from->stride == g->row_bytes) {
    copy(to, g->from->base + at, bytes, g->past);
    return;
  }
  size_t row = at / g->row_bytes, in = at % g->row_bytes;
  for (size_t some; bytes > 0; bytes -= some, to += some, row++, in = 0) {
    some = weft_smaller(bytes, g->row_bytes - in);
    copy(to, weft_const_row(g->from, row) + in, some, g->past);
  }
}

static void gather_piece(void *user, size_t index) {
  const gathering *g = user;
  const size_t first = index * g->piece;
  gather(g, first, weft_smaller(g->bytes - first, g->piece));
}

void weft_rows_gather(weft_pool *pool, uint8_t *to, const weft_const_rows *from, size_t row_bytes,
                      size_t at, size_t bytes) {
  gathering g = {to, from, row_bytes, at, bytes, piece_of(bytes), bytes >= SHARED_BYTES};
  if (is_shared(pool, bytes))
    weft_pool_run(pool, pieces_of(bytes, g.piece), gather_piece, &g);
  else
    gather(&g, 0, bytes);
}

// --- to rows ---

static void deliver(const weft_delivery *d, size_t first, size_t bytes, bool past) {
  const size_t at = d->at + first;
  const uint8_t *from = d->from + first;
  if (!d->to.ptr && d->to.stride == d->row_bytes) {
    copy(d->to.base + at, from, bytes, past);
    return;
  }
  size_t row = at / d->row_bytes, in = at % d->row_bytes;
  for (size_t some; bytes > 0; bytes -= some, from += some, row++, in = 0) {
    some = weft_smaller(bytes, d->row_bytes - in);
    copy(weft_row(&d->to, row) + in, from, some, past);
  }
}

typedef struct delivering {
  size_t piece;
  bool past;
  // Where each piece begins: in this delivery, after so many of its bytes.
  const weft_delivery *at[PIECES];
  size_t after[PIECES];
} delivering;

static void deliver_piece(void *user, size_t index) {
  const delivering *job = user;
  const weft_delivery *d = job->at[index];
  size_t first = job->after[index];
  for (size_t left = job->piece, some; d && left > 0; left -= some, d = d->next, first = 0) {
    some = weft_smaller(left, d->bytes - first);
    deliver(d, first, some, job->past);
  }
}

void weft_rows_deliver(weft_pool *pool, const weft_delivery *first) {
  size_t bytes = 0, begin = 0, pieces = 0;
  for (const weft_delivery *d = first; d; d = d->next)
    bytes += d->bytes;
  if (!is_shared(pool, bytes)) {
    for (const weft_delivery *d = first; d; d = d->next)
      deliver(d, 0, d->bytes, bytes >= FAR_BYTES);
    return;
  }
  delivering job = {.piece = piece_of(bytes), .past = bytes >= FAR_BYTES};
  for (const weft_delivery *d = first; d; begin += d->bytes, d = d->next)
    for (; pieces * job.piece < begin + d->bytes; pieces++) {
      job.at[pieces] = d;
      job.after[pieces] = pieces * job.piece - begin;
    }
  weft_pool_run(pool, pieces, deliver_piece, &job);
}
