// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/plan_packets.h"

#include <string.h>

// Bytes read per one in the bit matrix, as measured.
enum { REDUCE_REPAYS = 4096, COMPILE_REPAYS = 2048 };

// The bit matrix of a plan, expanded only while something is built from it.
typedef struct bit_matrix {
  size_t rows, columns;
  uint8_t *bits; // (rows, columns)
} bit_matrix;

static weft_status expand(const weft_plan *plan, bit_matrix *out) {
  const weft_code *code = plan->code;
  out->rows = plan->outputs * code->w;
  out->columns = plan->inputs * code->w;
  out->bits = weft_ctx_take(code->ctx, out->rows * out->columns, 64);
  if (!out->bits)
    return WEFT_E_NOMEM;
  weft_matrix_to_bits(&code->generator.field, plan->matrix, plan->outputs, plan->inputs, out->bits);
  return WEFT_OK;
}

static size_t ones(const bit_matrix *m) {
  size_t count = 0;
  for (size_t i = 0; i < m->rows * m->columns; i++)
    count += m->bits[i];
  return count;
}

static const weft_host_kernel *kernel_of(const weft_plan *plan) {
  return plan->code->ctx->host->host;
}

// Whether machine code would be faster than the plan's initial form, and is allowed.
static bool compiles(const weft_plan *plan, const bit_matrix *m) {
  const weft_code *code = plan->code;
  const weft_host_kernel *kernel = kernel_of(plan);
  if (!kernel->compile || code->ctx->compile_after == SIZE_MAX ||
      code->packet_bytes % WEFT_XOR_LINE != 0)
    return false;
  return !plan->blocks || !kernel->compile_most || ones(m) * m->columns <= kernel->compile_most;
}

// Adds the rows of the first `shards` - 1 output shards to those of the last one; doing it again
// undoes it.
static void fold(const bit_matrix *m, size_t shards, size_t w) {
  const size_t all = w * m->columns;
  uint8_t *const last = m->bits + (shards - 1) * all;
  for (size_t s = 0; s + 1 < shards; s++) // no division per bit: plans are made inside calls
    for (size_t i = 0; i < all; i++)
      last[i] ^= m->bits[s * all + i];
}

static size_t ones_of_shard(const bit_matrix *m, size_t shard, size_t w) {
  const bit_matrix rows = {w, m->columns, m->bits + shard * w * m->columns};
  return ones(&rows);
}

// If a parity shard that is the sum of all data, as cauchy_good has, is read, then the lost data
// shards add up to a sum of inputs: the last of these outputs is then cheaper to compute from the
// others. Folds its rows and returns the number of such outputs, or 0 if it does not pay.
static size_t fold_data(const weft_plan *plan, const bit_matrix *m) {
  const size_t k = plan->code->k, w = plan->code->w;
  size_t data = 0;
  while (data < plan->outputs && plan->ids[plan->inputs + data] < k)
    data++;
  if (data < 2)
    return 0;
  const size_t before = ones_of_shard(m, data - 1, w);
  fold(m, data, w);
  if (ones_of_shard(m, data - 1, w) + (data - 1) * w < before)
    return data;
  fold(m, data, w);
  return 0;
}

// Builds the same matrix with extra columns for the outputs that the last of the first `folded`
// shards adds.
static weft_status widen(const weft_plan *plan, const bit_matrix *m, size_t folded,
                         bit_matrix *out) {
  const size_t w = plan->code->w, again = (folded - 1) * w;
  out->rows = m->rows;
  out->columns = m->columns + again;
  out->bits = weft_ctx_take(plan->code->ctx, out->rows * out->columns, 64);
  if (!out->bits)
    return WEFT_E_NOMEM;
  for (size_t r = 0; r < m->rows; r++) {
    uint8_t *const row = out->bits + r * out->columns;
    memcpy(row, m->bits + r * m->columns, m->columns);
    memset(row + m->columns, 0, again);
    for (size_t o = r % w; r / w == folded - 1 && o < again; o += w)
      row[m->columns + o] = 1;
  }
  return WEFT_OK;
}

static weft_status make_program(const weft_plan *plan, const bit_matrix *m, bool reduce,
                                weft_xor_program **out) {
  const size_t w = plan->code->w, folded = fold_data(plan, m);
  bit_matrix wide = *m;
  weft_status status = folded ? widen(plan, m, folded, &wide) : WEFT_OK;
  if (status == WEFT_OK)
    status = weft_xor_program_new(out, wide.bits, m->rows, m->columns, wide.columns - m->columns,
                                  reduce, &plan->code->ctx->allocator);
  if (folded) {
    weft_ctx_give(plan->code->ctx, wide.bits);
    fold(m, folded, w);
  }
  return status;
}

static weft_status make_blocks(weft_plan *plan, const bit_matrix *m) {
  const weft_bit_form form = kernel_of(plan)->bits_form;
  plan->blocks = weft_ctx_take(plan->code->ctx,
                               weft_bit_words(form, m->rows, m->columns) * sizeof *plan->blocks,
                               _Alignof(uint64_t));
  if (!plan->blocks)
    return WEFT_E_NOMEM;
  weft_bit_blocks(form, m->bits, m->columns, m->rows, m->columns, plan->blocks);
  return WEFT_OK;
}

static weft_status give_code(weft_plan *plan, const bit_matrix *m) {
  const weft_code *code = plan->code;
  const size_t folded = fold_data(plan, m);
  const weft_xor_matrix matrix = {.bits = m->bits,
                                  .outputs = m->rows,
                                  .inputs = m->columns,
                                  .w = code->w,
                                  .packet_bytes = code->packet_bytes,
                                  .folded = folded};
  weft_xor_code *compiled = NULL;
  const weft_status status = kernel_of(plan)->compile(&compiled, &matrix, &code->ctx->allocator);
  if (folded)
    fold(m, folded, code->w);
  WEFT_TRY(status);
  atomic_store_explicit(&plan->compiled, compiled, memory_order_release);
  return WEFT_OK;
}

static weft_status give_program(weft_plan *plan, const bit_matrix *m) {
  weft_xor_program *reduced = NULL;
  WEFT_TRY(make_program(plan, m, true, &reduced));
  atomic_store_explicit(&plan->reduced, reduced, memory_order_release);
  return WEFT_OK;
}

void weft_plan_packets_init(weft_plan *plan) {
  plan->blocks = NULL;
  plan->plain = NULL;
  atomic_init(&plan->reduced, NULL);
  atomic_init(&plan->compiled, NULL);
}

void weft_plan_packets_free(weft_plan *plan) {
  weft_ctx_give(plan->code->ctx, plan->blocks);
  weft_xor_program_free(plan->plain);
  weft_xor_program_free(atomic_load(&plan->reduced));
  weft_xor_code_free(atomic_load(&plan->compiled));
}

weft_status weft_plan_packets_begin(weft_plan *plan, size_t *after) {
  const size_t compile_after = plan->code->ctx->compile_after;
  bit_matrix matrix;
  WEFT_TRY(expand(plan, &matrix));
  const bool by_blocks = weft_packet_blocks_pay(kernel_of(plan), matrix.bits, matrix.rows,
                                                matrix.columns, plan->code->packet_bytes);
  const weft_status status =
      by_blocks ? make_blocks(plan, &matrix) : make_program(plan, &matrix, false, &plan->plain);
  if (compiles(plan, &matrix))
    *after = compile_after ? compile_after : ones(&matrix) * COMPILE_REPAYS;
  else
    *after = by_blocks ? SIZE_MAX : ones(&matrix) * REDUCE_REPAYS;
  weft_ctx_give(plan->code->ctx, matrix.bits);
  return status;
}

weft_status weft_plan_packets_improve(weft_plan *plan) {
  bit_matrix matrix;
  WEFT_TRY(expand(plan, &matrix));
  weft_status status = compiles(plan, &matrix) ? give_code(plan, &matrix) : WEFT_E_UNSUPPORTED;
  if (status == WEFT_E_UNSUPPORTED)
    status = plan->blocks ? WEFT_OK : give_program(plan, &matrix);
  weft_ctx_give(plan->code->ctx, matrix.bits);
  return status;
}

bool weft_plan_packets_improved(const weft_plan *plan) {
  return atomic_load_explicit(&plan->compiled, memory_order_acquire) ||
         atomic_load_explicit(&plan->reduced, memory_order_acquire);
}

weft_packet_product weft_plan_packets_product(const weft_plan *plan) {
  const weft_xor_program *reduced = atomic_load_explicit(&plan->reduced, memory_order_acquire);
  return (weft_packet_product){.inputs = plan->inputs * plan->code->w,
                               .outputs = plan->outputs * plan->code->w,
                               .code = atomic_load_explicit(&plan->compiled, memory_order_acquire),
                               .program = reduced ? reduced : plan->plain,
                               .blocks = plan->blocks};
}
