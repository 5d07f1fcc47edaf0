// SPDX-License-Identifier: Apache-2.0
// Checks packets of one shard times bits, added to packets of others, against the definition: whole
// products, and runs of bytes by rows with their own method for it; any numbers of packets, groups
// and bytes, flush with guard pages.
#include <stdio.h>

#include "tests/kernels/row_check_internal.h"

enum { SHARDS = 20, PACKETS = 8 };

typedef struct spread_shape {
  size_t w, packet_bytes, groups, cut; // cut: where the first run of bytes of a packet ends
} spread_shape;

// Leaves the expected outputs in `want`; returns the product for the row.
static weft_xorm product(const row_check_rows *rows, const row_check_shape *c,
                         const spread_shape *shape, const uint8_t *bits, uint8_t **inner) {
  for (size_t i = 0; i < rows->m; i++)
    inner[i] = rows->want[i] + (rows->y[i] - (rows->y_memory[i].end - rows->bytes));
  weft_xorm xorm = {.m = rows->m,
                    .k = 1,
                    .w = shape->w,
                    .packet_bytes = shape->packet_bytes,
                    .len = c->len,
                    .bits = bits,
                    .bits_stride = shape->w,
                    .x = {.ptr = rows->x},
                    .y = {.ptr = inner},
                    .accumulate = c->accumulate};
  row_check_define_xorm(&xorm);
  xorm.y.ptr = (uint8_t *const *)rows->y;
  return xorm;
}

// Computes the same in two runs of bytes.
static void in_runs(const row_check *check, const weft_xorm *xorm, size_t cut, bool last_first) {
  uint8_t sources[SHARDS * PACKETS] = {0};
  for (size_t i = 0; i < xorm->m * xorm->w; i++)
    for (size_t c = 0; c < xorm->w; c++)
      sources[i] |= (uint8_t)(xorm->bits[i * xorm->w + c] << c);
  weft_packet_spread spread = {.m = xorm->m,
                               .w = xorm->w,
                               .packet_bytes = xorm->packet_bytes,
                               .groups = xorm->len / (xorm->w * xorm->packet_bytes),
                               .sources = sources,
                               .x = xorm->x.ptr[0],
                               .y = xorm->y.ptr,
                               .accumulate = xorm->accumulate};
  for (size_t half = 0; half < 2; half++) {
    const bool upper = (half == 1) != last_first;
    spread.begin = upper ? cut : 0;
    spread.end = upper ? xorm->packet_bytes : cut;
    if (spread.begin < spread.end)
      check->row->host->spread(&spread);
  }
}

static bool run(row_check *check, const row_check_shape *c, const spread_shape *shape,
                test_rng *rng) {
  uint8_t bits[SHARDS * PACKETS * PACKETS], *inner[SHARDS];
  test_rng_fill(rng, bits, c->m * shape->w * shape->w);
  const size_t mask = test_rng_below(rng, 3) ? 1 : 3; // one bit in two or in four
  for (size_t i = 0; i < c->m * shape->w * shape->w; i++)
    bits[i] = (bits[i] & mask) == mask;
  row_check_rows rows;
  row_check_rows_new(&rows, c, rng);
  const weft_xorm xorm = product(&rows, c, shape, bits, inner);
  const weft_exec alone = {0};
  const bool runs = check->row->host->spread && test_rng_below(rng, 4) != 0;
  if (runs)
    in_runs(check, &xorm, shape->cut, test_rng_below(rng, 2));
  else
    check->row->xorm(check->row, &alone, &xorm);
  char text[160];
  snprintf(text, sizeof text, "%zu shards, w %zu, %zu groups of %zu bytes cut at %zu, end - %zu%s",
           c->m, shape->w, shape->groups, shape->packet_bytes, runs ? shape->cut : 0, c->offset,
           c->accumulate ? ", accumulate" : "");
  return row_check_rows_end(&rows) || row_check_fail(check, "spread", text);
}

bool row_check_spread(row_check *check) {
  enum { ROUNDS = 600 };
  static const size_t known[] = {8, 16, 32, 64, 128, 192, 256, 512};
  test_rng rng = test_rng_new(check->seed, 11);
  for (size_t round = 0; round < ROUNDS; round += check->step) {
    const bool large = round % 8 == 0;
    spread_shape shape = {.w = 1 + test_rng_below(&rng, PACKETS),
                          .packet_bytes = 1 + test_rng_below(&rng, large ? 5000 : 600),
                          .groups = 1 + test_rng_below(&rng, large ? 3 : 9)};
    if (round % 4 == 1) {
      shape.packet_bytes = known[test_rng_below(&rng, sizeof known / sizeof *known)];
      shape.groups = 1 + test_rng_below(&rng, 70);
    }
    shape.cut = test_rng_below(&rng, 2) * test_rng_below(&rng, shape.packet_bytes + 1);
    const row_check_shape c = {.m = 1 + test_rng_below(&rng, round % 16 == 5 ? SHARDS : 8),
                               .k = 1,
                               .len = shape.groups * shape.w * shape.packet_bytes,
                               .offset = test_rng_below(&rng, 2) * test_rng_below(&rng, 64),
                               .accumulate = test_rng_below(&rng, 4) != 0};
    if (!run(check, &c, &shape, &rng))
      return false;
  }
  return true;
}
