// SPDX-License-Identifier: Apache-2.0
// Checks machine code for random bit matrices, by rows that compile it, against the definition: any
// numbers of packets of any shards, alignments, and runs of lines, flush with guard pages.
#include <stdio.h>
#include <stdlib.h>

#include "tests/kernels/row_check_internal.h"
#include "tests/support/test_allocator.h"

enum { PACKETS = 8, SHARDS = 40 };

typedef struct code_shape {
  size_t w, packet_bytes, groups, cut; // cut: where the first run of bytes of a packet ends
  unsigned density;                    // so many of 256 bits are set
  size_t folded;                       // shards, as in weft_xor_matrix
  size_t ahead;                        // prefetch distance
} code_shape;

static void random_bits(uint8_t *bits, size_t count, unsigned density, test_rng *rng) {
  test_rng_fill(rng, bits, count);
  for (size_t i = 0; i < count; i++)
    bits[i] = bits[i] < density;
}

// Leaves the expected outputs in `want`.
static void define(const row_check_rows *rows, const row_check_shape *c, const code_shape *shape,
                   const uint8_t *bits) {
  uint8_t *inner[SHARDS];
  for (size_t i = 0; i < rows->m; i++)
    inner[i] = rows->want[i] + (rows->y[i] - (rows->y_memory[i].end - rows->bytes));
  const weft_xorm xorm = {.m = rows->m,
                          .k = rows->k,
                          .w = shape->w,
                          .packet_bytes = shape->packet_bytes,
                          .len = c->len,
                          .bits = bits,
                          .bits_stride = rows->k * shape->w,
                          .x = {.ptr = rows->x},
                          .y = {.ptr = inner}};
  row_check_define_xorm(&xorm);
}

// Adds the rows of the shards before the last folded one to its rows, or removes them again.
static void fold(uint8_t *bits, const code_shape *shape, size_t inputs) {
  const size_t all = shape->w * inputs; // bits of a shard's rows
  for (size_t i = 0; shape->folded > 1 && i < (shape->folded - 1) * all; i++)
    bits[(shape->folded - 1) * all + i % all] ^= bits[i];
}

// Codes all groups but the last in one call, and the last in two, divided at `cut`. Prefetched
// addresses need not exist.
static void run_code(const weft_xor_code *code, const row_check_rows *rows,
                     const code_shape *shape) {
  test_guard memory = test_guard_new(code->scratch_bytes); // of whole lines
  uint8_t *scratch = memory.end - code->scratch_bytes, *const *out = (uint8_t *const *)rows->y;
  const size_t last = (shape->groups - 1) * shape->w * shape->packet_bytes;
  const size_t cut = last + shape->cut, end = last + shape->packet_bytes;
  if (last > 0)
    code->run(rows->x, out, 0, last, scratch, shape->ahead);
  if (cut > last)
    code->run(rows->x, out, last, cut, scratch, shape->ahead);
  if (cut < end)
    code->run(rows->x, out, cut, end, scratch, shape->ahead);
  test_guard_free(&memory);
}

static bool run(row_check *check, const row_check_shape *c, const code_shape *shape,
                test_rng *rng) {
  const size_t bit_count = c->m * c->k * shape->w * shape->w;
  uint8_t *bits = row_check_memory(bit_count);
  random_bits(bits, bit_count, shape->density, rng);
  row_check_rows rows;
  row_check_rows_new(&rows, c, rng);
  fold(bits, shape, c->k * shape->w);
  define(&rows, c, shape, bits);
  fold(bits, shape, c->k * shape->w);
  const weft_xor_matrix matrix = {.bits = bits,
                                  .outputs = c->m * shape->w,
                                  .inputs = c->k * shape->w,
                                  .w = shape->w,
                                  .packet_bytes = shape->packet_bytes,
                                  .folded = shape->folded};
  test_allocator memory;
  test_allocator_init(&memory, 0);
  weft_xor_code *code = NULL;
  const weft_status status = check->row->host->compile(&code, &matrix, &memory.allocator);
  if (status == WEFT_OK)
    run_code(code, &rows, shape);
  weft_xor_code_free(code);
  free(bits);
  char text[200];
  snprintf(text, sizeof text,
           "%s: %zu shards of %zu, w = %zu, %zu groups of packets of %zu bytes cut at %zu, %u of "
           "256 bits, %zu folded, %zu ahead, end - %zu%s",
           weft_status_name(status), c->m, c->k, shape->w, shape->groups, shape->packet_bytes,
           shape->cut, shape->density, shape->folded, shape->ahead, c->offset,
           c->uneven ? ", uneven" : "");
  const bool same = row_check_rows_end(&rows);
  return (status == WEFT_OK && same && test_allocator_live(&memory) == 0) ||
         row_check_fail(check, "code", text);
}

// Sizes that are zero or not whole lines are refused, and failed allocations are reported.
static bool refuses(row_check *check) {
  const uint8_t bits[4] = {1, 0, 0, 1};
  weft_xor_matrix matrix = {.bits = bits, .outputs = 2, .inputs = 2, .w = 2, .packet_bytes = 64};
  test_allocator memory;
  weft_xor_code *code = NULL;
  for (long fails = 1; fails <= 2; fails++) {
    test_allocator_init(&memory, fails);
    if (check->row->host->compile(&code, &matrix, &memory.allocator) != WEFT_E_NOMEM ||
        test_allocator_live(&memory) != 0)
      return row_check_fail(check, "code", "an allocation failed");
  }
  test_allocator_init(&memory, 0);
  const size_t sizes[] = {0, 8, 63, 96, SIZE_MAX - 63};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    matrix.packet_bytes = sizes[i];
    if (check->row->host->compile(&code, &matrix, &memory.allocator) != WEFT_E_UNSUPPORTED)
      return row_check_fail(check, "code", "a packet that is not whole lines");
  }
  matrix.packet_bytes = 64;
  matrix.folded = 2;
  if (check->row->host->compile(&code, &matrix, &memory.allocator) != WEFT_E_UNSUPPORTED)
    return row_check_fail(check, "code", "more shards folded than there are");
  return test_allocator_live(&memory) == 0 || row_check_fail(check, "code", "memory was left");
}

bool row_check_code(row_check *check) {
  enum { ROUNDS = 400 };
  static const unsigned densities[] = {0, 3, 60, 110, 128, 256};
  test_rng rng = test_rng_new(check->seed, 15);
  if (!check->row->host->compile)
    return true;
  for (size_t round = 0; round < ROUNDS; round += check->step) {
    const bool large = round % 16 == 0;
    const size_t lines = 1 + test_rng_below(&rng, 4), m = 1 + test_rng_below(&rng, large ? 16 : 6);
    // With some, one pass handles folded shards only.
    const size_t folded[] = {0, test_rng_below(&rng, m + 1), m};
    const code_shape shape = {.w = 1 + test_rng_below(&rng, PACKETS),
                              .packet_bytes = lines * WEFT_XOR_LINE,
                              .groups = 1 + test_rng_below(&rng, 4),
                              .cut = test_rng_below(&rng, lines + 1) * WEFT_XOR_LINE,
                              .density = densities[test_rng_below(&rng, 6)],
                              .folded = folded[test_rng_below(&rng, 3)],
                              .ahead = test_rng_below(&rng, 2) * test_rng_below(&rng, 1 << 14)};
    const row_check_shape c = {.m = m,
                               .k = 1 + test_rng_below(&rng, large ? SHARDS : 12),
                               .len = shape.groups * shape.w * shape.packet_bytes,
                               .offset = test_rng_below(&rng, 2) * test_rng_below(&rng, 64),
                               .uneven = test_rng_below(&rng, 2)};
    if (!run(check, &c, &shape, &rng))
      return false;
  }
  return refuses(check);
}
