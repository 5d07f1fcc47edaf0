// SPDX-License-Identifier: Apache-2.0
// The deferred half of the decoder: multiplies the payload slots by T, in place.
//
// Let O be the slots that were clean after the last reduction, with payloads P, and N those filled
// since, with payloads R as received. Elimination has made rows of T for both:
//
//   new payloads of N = T[N][O] * P + T[N][N] * R
//   new payloads of O = P + D * (new payloads of N)
//
// D is what rows O had in the columns N before elimination cleared them. It is not stored, but T[O]
// = I + D * T[N] holds in the columns O, and T[O][N] = D * T[N][N] in the columns N; T[N][N] is a
// product of elementary matrices, so D = T[O][N] * inverse(T[N][N]). With everything deferred, O is
// empty and this is a batch decode; with one packet at a time it is progressive elimination.
//
// Payloads are processed in panels (ranges of byte columns), so that scratch for the old R of one
// panel is enough; each thread takes panels of its own.
#include <stdatomic.h>
#include <string.h>

#include "lib/decoder.h"

enum {
  LINE = 64,
  PANEL_TOTAL = 2 * 1024 * 1024, // bytes of scratch for panels, all threads together
  PANEL_BYTES = 256 * 1024,      // of one panel: fits in a second-level cache
  WIDTH_MIN = 256                // narrower panels cost more in overhead than they save
};

typedef struct reduction {
  weft_decoder *decoder;
  weft_pool *pool;
  size_t old_count, new_count; // |O|, |N|
  // Only rows of T that are not unit vectors need work. These list pivots, not positions.
  uint16_t new_dirty[WEFT_MAX_BLOCKS], old_dirty[WEFT_MAX_BLOCKS];
  size_t new_dirty_count, old_dirty_count;
  // All pivots, in the order of new_dirty: order of arrival, or ascending if O is empty, so that a
  // complete decoder's rows can be used as T in place.
  uint16_t columns[WEFT_MAX_BLOCKS];
  const uint8_t *a; // (new_dirty, rank): T[N], row stride a_stride
  size_t a_stride;
  const uint8_t *d;   // (old_dirty, |N|)
  uint8_t *panels;    // one of panel_bytes per worker
  size_t width;       // bytes per row of a panel
  size_t panel_bytes; // new_dirty_count * width
  size_t panel_count;
  atomic_size_t next_panel;
  atomic_int status; // the first failure
} reduction;

bool weft_decoder_is_clean(const weft_decoder *decoder, size_t pivot) {
  if (decoder->reduced == decoder->rank)
    return true;
  const uint8_t *row = weft_decoder_row(decoder, pivot);
  uint8_t any = row[pivot] ^ 1;
  for (size_t c = 0; c < pivot; c++)
    any |= row[c] & (uint8_t)~decoder->unknown[c];
  for (size_t c = pivot + 1; c < decoder->id.blocks; c++)
    any |= row[c] & (uint8_t)~decoder->unknown[c];
  return any == 0;
}

static size_t collect_dirty(const weft_decoder *decoder, const uint16_t *pivots, size_t count,
                            uint16_t *out) {
  size_t dirty = 0;
  for (size_t i = 0; i < count; i++)
    if (!weft_decoder_is_clean(decoder, pivots[i]))
      out[dirty++] = pivots[i];
  return dirty;
}

static void order_columns(reduction *r) {
  const weft_decoder *decoder = r->decoder;
  size_t count = 0;
  if (r->old_count > 0)
    memcpy(r->columns, decoder->pivots, decoder->rank * sizeof *r->columns);
  for (size_t p = 0; r->old_count == 0 && p < decoder->widest; p++)
    if (!decoder->unknown[p])
      r->columns[count++] = (uint16_t)p;
}

static void pick(const uint8_t *restrict row, const uint16_t *restrict columns, size_t count,
                 uint8_t *restrict out) {
  for (size_t j = 0; j < count; j++)
    out[j] = row[columns[j]];
}

// out (count, column_count) = T[rows][columns].
static void gather(const weft_decoder *decoder, const uint16_t *rows, size_t count,
                   const uint16_t *columns, size_t column_count, uint8_t *out) {
  for (size_t i = 0; i < count; i++)
    pick(weft_decoder_row(decoder, rows[i]), columns, column_count, out + i * column_count);
}

// Sets r->a to T[N]: in place if possible, otherwise gathered in `out`.
static void gather_new(reduction *r, uint8_t *out) {
  const weft_decoder *decoder = r->decoder;
  const bool as_it_lies = r->new_dirty_count == decoder->id.blocks;
  r->a = as_it_lies ? decoder->matrix : out;
  r->a_stride = as_it_lies ? decoder->matrix_stride : decoder->rank;
  if (!as_it_lies)
    gather(decoder, r->new_dirty, r->new_dirty_count, r->columns, decoder->rank, out);
}

// Computes d = T[O][N] * inverse(T[N][N]) for the dirty rows of O. scratch: |N| * (|N| +
// old_dirty_count).
static weft_status make_d(const reduction *r, uint8_t *d, uint8_t *scratch) {
  const weft_decoder *decoder = r->decoder;
  const weft_ctx *ctx = decoder->ctx;
  const weft_exec exec = weft_ctx_host_exec(ctx, r->pool);
  const size_t n = r->new_count;
  uint8_t *inverse = scratch, *t = scratch + n * n;
  const uint16_t *const fresh = decoder->pivots + r->old_count;
  gather(decoder, fresh, n, fresh, n, inverse);
  uint8_t singular;
  const weft_invert invert = {
      .count = 1, .k = n, .in = inverse, .out = inverse, .singular = &singular};
  WEFT_TRY(ctx->host->invert(ctx->host, &exec, &invert));
  if (singular) // cannot happen: see above
    return WEFT_E_SINGULAR;
  gather(decoder, r->old_dirty, r->old_dirty_count, fresh, n, t);
  const weft_gemm product = {.m = r->old_dirty_count,
                             .k = n,
                             .len = n,
                             .a = t,
                             .a_stride = n,
                             .x = {.base = inverse, .stride = n},
                             .y = {.base = d, .stride = n}};
  return ctx->host->gemm(ctx->host, &exec, &product, 1);
}

// Computes the new payloads of N, from those of O and a copy of the received ones.
static weft_status reduce_new(const reduction *r, const weft_exec *exec, size_t begin, size_t len,
                              uint8_t *panel) {
  const weft_decoder *decoder = r->decoder;
  const uint8_t *x[WEFT_MAX_BLOCKS];
  uint8_t *y[WEFT_MAX_BLOCKS];
  size_t copied = 0;
  for (size_t j = 0; j < decoder->rank; j++) {
    const size_t p = r->columns[j];
    x[j] = weft_decoder_slot(decoder, p) + begin;
    if (copied < r->new_dirty_count && r->new_dirty[copied] == p) {
      y[copied] = weft_decoder_slot(decoder, p) + begin;
      x[j] = memcpy(panel + copied * r->width, y[copied], len);
      copied++;
    }
  }
  const weft_gemm product = {.m = r->new_dirty_count,
                             .k = decoder->rank,
                             .len = len,
                             .a = r->a,
                             .a_stride = r->a_stride,
                             .x = {.ptr = x},
                             .y = {.ptr = y}};
  return decoder->ctx->host->gemm(decoder->ctx->host, exec, &product, 1);
}

// Computes the new payloads of O, from the new ones of N.
static weft_status reduce_old(const reduction *r, const weft_exec *exec, size_t begin, size_t len) {
  const weft_decoder *decoder = r->decoder;
  const uint8_t *x[WEFT_MAX_BLOCKS];
  uint8_t *y[WEFT_MAX_BLOCKS];
  for (size_t j = 0; j < r->new_count; j++)
    x[j] = weft_decoder_slot(decoder, decoder->pivots[r->old_count + j]) + begin;
  for (size_t i = 0; i < r->old_dirty_count; i++)
    y[i] = weft_decoder_slot(decoder, r->old_dirty[i]) + begin;
  const weft_gemm product = {.m = r->old_dirty_count,
                             .k = r->new_count,
                             .len = len,
                             .a = r->d,
                             .a_stride = r->new_count,
                             .x = {.ptr = x},
                             .y = {.ptr = y},
                             .accumulate = true};
  return decoder->ctx->host->gemm(decoder->ctx->host, exec, &product, 1);
}

static void reduce_panels(void *user, size_t worker) {
  reduction *r = user;
  const size_t k = r->decoder->id.block_bytes;
  weft_exec exec = weft_ctx_host_exec(r->decoder->ctx, NULL);
  exec.allocator = NULL; // rlnc.h promises no memory beyond the panels
  size_t index;
  while ((index = atomic_fetch_add(&r->next_panel, 1)) < r->panel_count) {
    const size_t begin = index * r->width;
    const size_t len = r->width < k - begin ? r->width : k - begin;
    weft_status status = WEFT_OK;
    if (r->new_dirty_count > 0)
      status = reduce_new(r, &exec, begin, len, r->panels + worker * r->panel_bytes);
    if (status == WEFT_OK && r->old_dirty_count > 0)
      status = reduce_old(r, &exec, begin, len);
    if (status != WEFT_OK)
      atomic_store(&r->status, (int)status);
  }
}

// Sets the width of panels; returns how many threads get one.
static size_t plan_panels(reduction *r) {
  const weft_decoder *decoder = r->decoder;
  const size_t k = decoder->id.block_bytes;
  const size_t rows = r->new_dirty_count > 0 ? r->new_dirty_count : 1;
  size_t workers = weft_pool_threads(r->pool);
  const size_t fits = PANEL_TOTAL / (rows * WIDTH_MIN);
  const size_t wanted = (k + WIDTH_MIN - 1) / WIDTH_MIN;
  workers = workers < fits ? workers : fits;
  workers = workers < wanted ? workers : wanted;
  const size_t share = ((k + workers - 1) / workers + LINE - 1) / LINE * LINE;
  size_t width = PANEL_TOTAL / (rows * workers) / LINE * LINE;
  width = width < PANEL_BYTES / rows ? width : PANEL_BYTES / rows / LINE * LINE;
  width = width < share ? width : share;
  width = width > WIDTH_MIN ? width : WIDTH_MIN;
  r->width = width < k ? width : k;
  r->panel_bytes = r->new_dirty_count * r->width;
  r->panel_count = (k + r->width - 1) / r->width;
  return workers;
}

static void keep(uint8_t *restrict row, const uint8_t *restrict mask, size_t n) {
  for (size_t c = 0; c < n; c++)
    row[c] &= mask[c];
}

static void clean_row(const weft_decoder *decoder, size_t pivot) {
  uint8_t *row = weft_decoder_row(decoder, pivot);
  keep(row, decoder->unknown, decoder->id.blocks);
  row[pivot] = 1;
}

static weft_status reduce_with(reduction *r, uint8_t *scratch, size_t workers) {
  weft_decoder *decoder = r->decoder;
  uint8_t *d = scratch, *rest = d + r->old_dirty_count * r->new_count;
  if (r->old_dirty_count > 0)
    WEFT_TRY(make_d(r, d, rest));
  r->d = d;
  gather_new(r, rest);
  weft_pool_run(r->pool, workers, reduce_panels, r);
  WEFT_TRY((weft_status)atomic_load(&r->status));
  for (size_t i = 0; i < r->new_dirty_count; i++)
    clean_row(decoder, r->new_dirty[i]);
  for (size_t i = 0; i < r->old_dirty_count; i++)
    clean_row(decoder, r->old_dirty[i]);
  return WEFT_OK;
}

// Member by member: an initialiser would clear the arrays, 6 KiB.
static void begin(reduction *r, weft_decoder *decoder, weft_pool *pool) {
  r->decoder = decoder;
  r->pool = pool;
  r->old_count = decoder->reduced;
  r->new_count = decoder->rank - decoder->reduced;
  order_columns(r);
  r->new_dirty_count =
      collect_dirty(decoder, r->columns + r->old_count, r->new_count, r->new_dirty);
  r->old_dirty_count = collect_dirty(decoder, decoder->pivots, r->old_count, r->old_dirty);
  atomic_init(&r->next_panel, 0);
  atomic_init(&r->status, WEFT_OK);
}

static weft_status multiply(reduction *r) {
  const weft_ctx *ctx = r->decoder->ctx;
  const size_t workers = plan_panels(r);
  const size_t for_d =
      r->old_dirty_count > 0 ? r->new_count * (r->new_count + r->old_dirty_count) : 0;
  const size_t for_a = r->new_dirty_count * r->decoder->rank;
  const size_t matrices = r->old_dirty_count * r->new_count + (for_d > for_a ? for_d : for_a);
  const size_t before_panels = (matrices + LINE - 1) / LINE * LINE;
  uint8_t *scratch = weft_ctx_take(ctx, before_panels + workers * r->panel_bytes, LINE);
  if (!scratch)
    return WEFT_E_NOMEM;
  r->panels = scratch + before_panels;
  const weft_status status = reduce_with(r, scratch, workers);
  weft_ctx_give(ctx, scratch);
  return status;
}

weft_status weft_decoder_reduce(weft_decoder *decoder, weft_pool *pool) {
  if (decoder->reduced == decoder->rank)
    return WEFT_OK;
  WEFT_TRY(weft_decoder_clear(decoder));
  reduction r;
  begin(&r, decoder, pool);
  if (r.new_dirty_count + r.old_dirty_count > 0)
    WEFT_TRY(multiply(&r));
  decoder->reduced = decoder->rank;
  return WEFT_OK;
}

size_t weft_decoder_reduce_bytes(const weft_segment_id *id) {
  // d, inverse and T[O][N] take |N|^2 + 2 |O| |N| <= n^2 bytes; d and a take no more.
  const size_t n = id->blocks;
  const size_t k = id->block_bytes;
  const size_t rounded_up = n * (k + k / 4 + 2 * WIDTH_MIN); // every worker's share, at most
  const size_t panels = rounded_up < PANEL_TOTAL ? rounded_up : PANEL_TOTAL;
  return (n * n + LINE - 1) / LINE * LINE + panels;
}
