// SPDX-License-Identifier: Apache-2.0
// The decoder's elimination: Gauss-Jordan on coefficients as packets arrive (Shojania and Li,
// "Parallelized Progressive Network Coding with Hardware Acceleration", 2007). The payloads' share
// of the work is deferred and recorded in the same matrix (decoder.h).
//
// A full elimination step would change every row for a single packet, which is mostly loads and
// stores. The newest pivots are therefore pending: their rows are reduced by all pivots, but their
// columns are still present in the rows of older pivots. One product removes several such columns
// at once, when the rows are needed or once PENDING_MOST pivots are pending. Whether a packet is
// innovative is known immediately.
#include <string.h>

#include "kernels/gf256.h"
#include "lib/decoder.h"
#include "lib/expand.h"

enum {
  PENDING_MOST = 8,
  GROUP_ROWS = 128,     // rows per product
  GROUP_FACTORS = 8192, // factors per product
  // Vectors with fewer than one nonzero factor in SPARSE multiply only the rows of those.
  SPARSE = 4
};

// A product over rows of M and `work`, a few hundred bytes wide: one thread is fastest.
static weft_status add_product(const weft_decoder *decoder, size_t m, size_t k, const uint8_t *a,
                               const uint8_t *const *x, uint8_t *const *y) {
  const weft_ctx *ctx = decoder->ctx;
  const weft_exec exec = weft_ctx_host_exec(ctx, NULL);
  weft_gemm gemm = weft_gemm_of(m, k, decoder->width, a, k, x, y);
  gemm.accumulate = true;
  return m > 0 && k > 0 ? ctx->host->gemm(ctx->host, &exec, &gemm, 1) : WEFT_OK;
}

static size_t pending(const weft_decoder *decoder) { return decoder->rank - decoder->cleared; }

// Moves the row's entries in `columns` to `factors`. Returns whether any is nonzero.
static bool take_factors(const uint16_t *restrict columns, size_t count, uint8_t *restrict row,
                         uint8_t *restrict factors) {
  uint8_t any = 0;
  for (size_t j = 0; j < count; j++) {
    factors[j] = row[columns[j]];
    row[columns[j]] = 0; // the column now holds T's entry for that slot
    any |= factors[j];
  }
  return any != 0;
}

static const uint16_t *pending_columns(const weft_decoder *decoder) {
  return decoder->pivots + decoder->cleared;
}

static void list_pending(const weft_decoder *decoder, const uint8_t **rows) {
  for (size_t j = 0; j < pending(decoder); j++)
    rows[j] = weft_decoder_row(decoder, decoder->pivots[decoder->cleared + j]);
}

// --- pending pivots ---

// Whether the columns are consecutive, as the pivots of successive packets mostly are.
static bool are_in_line(const uint16_t *columns, size_t count) {
  for (size_t j = 1; j < count; j++)
    if (columns[j] != columns[0] + j)
      return false;
  return true;
}

// take_factors for PENDING_MOST consecutive columns, which start at `row`.
static bool take_line(uint8_t *restrict row, uint8_t *restrict factors) {
  uint64_t word;
  memcpy(&word, row, PENDING_MOST);
  memset(row, 0, PENDING_MOST);
  memcpy(factors, &word, PENDING_MOST);
  return word != 0;
}

_Static_assert(PENDING_MOST == sizeof(uint64_t), "a word of factors");

weft_status weft_decoder_clear(weft_decoder *decoder) {
  const size_t k = pending(decoder);
  if (k == 0)
    return WEFT_OK;
  const uint8_t *x[WEFT_MAX_BLOCKS];
  list_pending(decoder, x);
  const uint16_t *const columns = pending_columns(decoder);
  const bool line = k == PENDING_MOST && are_in_line(columns, k);
  uint8_t factors[GROUP_FACTORS], *y[GROUP_ROWS];
  const size_t most = GROUP_FACTORS / k < GROUP_ROWS ? GROUP_FACTORS / k : GROUP_ROWS;
  for (size_t i = 0; i < decoder->cleared;) {
    size_t m = 0;
    for (; m < most && i < decoder->cleared; i++) {
      y[m] = decoder->rows[decoder->pivots[i]];
      m += line ? take_line(y[m] + columns[0], factors + m * k)
                : take_factors(columns, k, y[m], factors + m * k);
    }
    WEFT_TRY(add_product(decoder, m, k, factors, x, y));
  }
  decoder->cleared = decoder->rank;
  decoder->prefix = weft_decoder_prefix(decoder);
  return WEFT_OK;
}

void weft_decoder_drop(weft_decoder *decoder) {
  while (decoder->rank > decoder->cleared)
    decoder->unknown[decoder->pivots[--decoder->rank]] = 0xFF;
}

// --- one packet ---

// known = from where `unknown` is 0, else 0; rest = from elsewhere. Returns how many of known are
// nonzero. The pointers are restrict, or the compiler would go byte by byte.
static size_t split(size_t n, const uint8_t *restrict from, const uint8_t *restrict unknown,
                    uint8_t *restrict known, uint8_t *restrict rest) {
  uint16_t count = 0;
  for (size_t c = 0; c < n; c++) {
    rest[c] = from[c] & unknown[c];
    known[c] = from[c] & (uint8_t)~unknown[c];
    count = (uint16_t)(count + (known[c] != 0));
  }
  return count;
}

// factors = vector in the columns of pivots that are not pending, else 0; work = the rest of it.
// Returns how many factors are nonzero.
static size_t split_vector(const weft_decoder *decoder) {
  size_t terms =
      split(decoder->id.blocks, decoder->vector, decoder->unknown, decoder->factors, decoder->work);
  for (size_t i = decoder->cleared; i < decoder->rank; i++) {
    const size_t p = decoder->pivots[i];
    terms -= decoder->factors[p] != 0;
    decoder->work[p] = decoder->factors[p];
    decoder->factors[p] = 0;
  }
  return terms;
}

// Compacts the nonzero factors, and lists their rows.
static size_t gather_factors(const weft_decoder *decoder, const uint8_t **rows) {
  size_t found = 0;
  for (size_t p = 0; p < decoder->widest; p++) {
    rows[found] = decoder->rows[p];
    decoder->factors[found] = decoder->factors[p];
    found += decoder->factors[found] != 0;
  }
  return found;
}

// work = vector with every pivot column eliminated; its pivot columns then record which payloads
// were added for that. For a dense vector all rows up to the last pivot's are multiplied, rows
// without pivot by zero: skipping those would take longer.
static weft_status reduce_vector(weft_decoder *decoder) {
  const size_t terms = split_vector(decoder);
  const bool dense = terms * SPARSE >= decoder->widest;
  const uint8_t *rows[WEFT_MAX_BLOCKS];
  const size_t k = dense ? decoder->widest : gather_factors(decoder, rows);
  const uint8_t *const *const x = dense ? (const uint8_t *const *)decoder->rows : rows;
  WEFT_TRY(add_product(decoder, 1, k, decoder->factors, x, &decoder->work));
  take_factors(pending_columns(decoder), pending(decoder), decoder->work, decoder->factors);
  list_pending(decoder, rows);
  return add_product(decoder, 1, pending(decoder), decoder->factors, rows, &decoder->work);
}

// Returns the first column without pivot where work is nonzero; n if the packet is dependent.
static size_t find_pivot(const weft_decoder *decoder) {
  const size_t n = decoder->id.blocks;
  size_t c = 0;
  for (uint64_t work, unknown; c + 8 <= n; c += 8) {
    memcpy(&work, decoder->work + c, 8);
    memcpy(&unknown, decoder->unknown + c, 8);
    if (work & unknown)
      break;
  }
  while (c < n && (decoder->work[c] & decoder->unknown[c]) == 0)
    c++;
  return c;
}

// Makes work the row of pivot s, and eliminates column s from the other pending rows; all are
// products of one source, work.
static weft_status install(weft_decoder *decoder, size_t s) {
  const uint8_t inverse = weft_gf256_inv[decoder->work[s]];
  const uint8_t *const scaled = weft_gf256_product[inverse];
  const uint8_t *const work = decoder->work;
  uint8_t *targets[WEFT_MAX_BLOCKS];
  size_t m = 1;
  decoder->work[s] = 1; // T's entry for the payload of slot s, before scaling
  decoder->factors[0] = inverse;
  targets[0] = memset(weft_decoder_row(decoder, s), 0, decoder->width);
  for (size_t i = decoder->cleared; i < decoder->rank; i++) {
    uint8_t *row = weft_decoder_row(decoder, decoder->pivots[i]);
    decoder->factors[m] = scaled[row[s]];
    targets[m] = row;
    m += row[s] != 0;
    row[s] = 0;
  }
  WEFT_TRY(add_product(decoder, m, 1, decoder->factors, &work, targets));
  decoder->unknown[s] = 0;
  decoder->pivots[decoder->rank++] = (uint16_t)s;
  for (; decoder->widest < s; decoder->widest++) // never written, but multiplied by zero
    memset(decoder->rows[decoder->widest], 0, decoder->width);
  if (decoder->widest == s)
    decoder->widest++;
  return WEFT_OK;
}

weft_status weft_decoder_accept(weft_decoder *decoder, const weft_packet *packet, bool keep,
                                size_t *slot) {
  if (!weft_segment_id_equal(&packet->id, &decoder->id))
    return WEFT_E_FOREIGN;
  WEFT_TRY(weft_packet_check(packet));
  if (decoder->rank == decoder->id.blocks)
    return WEFT_DEPENDENT;
  if (!keep && pending(decoder) >= PENDING_MOST)
    WEFT_TRY(weft_decoder_clear(decoder));
  weft_expand_packet(decoder->ctx, packet, decoder->vector);
  WEFT_TRY(reduce_vector(decoder));
  const size_t s = find_pivot(decoder);
  if (s == decoder->id.blocks)
    return WEFT_DEPENDENT;
  WEFT_TRY(install(decoder, s));
  *slot = s;
  return WEFT_OK;
}

// --- what is known ---

static bool any_unknown(const weft_decoder *decoder, const uint8_t *row) {
  uint8_t any = 0;
  for (size_t c = 0; c < decoder->id.blocks; c++)
    any |= row[c] & decoder->unknown[c];
  return any != 0;
}

bool weft_decoder_has_block(const weft_decoder *decoder, size_t index) {
  const size_t n = decoder->id.blocks;
  if (index >= n || decoder->unknown[index])
    return false;
  if (decoder->rank == n)
    return true;
  uint8_t row[WEFT_MAX_BLOCKS], *const y = row;
  const uint8_t *x[WEFT_MAX_BLOCKS];
  memcpy(row, weft_decoder_row(decoder, index), decoder->width);
  bool is_pending = false;
  for (size_t i = decoder->cleared; i < decoder->rank; i++)
    is_pending = is_pending || decoder->pivots[i] == index;
  if (!is_pending) {
    take_factors(pending_columns(decoder), pending(decoder), row, decoder->factors);
    list_pending(decoder, x);
    if (add_product(decoder, 1, pending(decoder), decoder->factors, x, &y) != WEFT_OK)
      return false;
  }
  return !any_unknown(decoder, row);
}

size_t weft_decoder_prefix(const weft_decoder *decoder) {
  size_t prefix = decoder->prefix;
  while (prefix < decoder->id.blocks && weft_decoder_has_block(decoder, prefix))
    prefix++;
  return prefix;
}
