// SPDX-License-Identifier: Apache-2.0
// A code of your own: twelve data disks in two groups, each with a parity disk of its own, and two
// parity disks over all. A failed disk is rebuilt from the six others of its group instead of from
// twelve; the code survives any three failures and 86 % of all quadruple ones.
#include <stdio.h>
#include <string.h>

#include "weft/weft.h"

#define GROUPS 2
#define EACH 6
#define DATA (GROUPS * EACH)
#define PARITY (GROUPS + 2)
#define SHARD_BYTES 4096

static uint8_t disk[DATA + PARITY][SHARD_BYTES], original[DATA + PARITY][SHARD_BYTES];

// Makes local rows of ones and global rows 2^j and 4^j, with which any three failures are solvable.
static void make_matrix(uint8_t parity[PARITY][DATA]) {
  unsigned power = 1, square = 1;
  memset(parity, 0, PARITY * DATA);
  for (size_t j = 0; j < DATA; j++) {
    parity[j / EACH][j] = 1;
    parity[GROUPS][j] = (uint8_t)power;
    parity[GROUPS + 1][j] = (uint8_t)square;
    power = power << 1 ^ (power & 0x80 ? 0x11d : 0);
    for (int twice = 0; twice < 2; twice++)
      square = square << 1 ^ (square & 0x80 ? 0x11d : 0);
  }
}

// Erases the lost disks, rebuilds them and compares all; sets *read to the number of disks read.
static weft_status fail(weft_code *code, const uint8_t *lost, size_t count, size_t *read) {
  const weft_stripe stripe = {.base = disk[0], .stride = SHARD_BYTES, .bytes = SHARD_BYTES};
  const weft_erasures erasures = {.lost = lost, .lost_count = count};
  weft_plan *plan;
  for (size_t i = 0; i < count; i++)
    memset(disk[lost[i]], 0xEE, SHARD_BYTES);
  WEFT_TRY(weft_plan_for(code, &erasures, &plan));
  *read = weft_plan_input_count(plan); // weft_plan_inputs(plan) has their ids
  const weft_status status = weft_plan_run(plan, &stripe, 1, NULL);
  weft_plan_free(plan);
  WEFT_TRY(status);
  return memcmp(disk, original, sizeof disk) == 0 ? WEFT_OK : WEFT_E_DAMAGED;
}

static weft_status run(weft_code *code) {
  const weft_stripe stripe = {.base = disk[0], .stride = SHARD_BYTES, .bytes = SHARD_BYTES};
  WEFT_TRY(weft_code_encode(code, &stripe, 1, NULL));
  memcpy(original, disk, sizeof disk);
  size_t one, three;
  WEFT_TRY(fail(code, (const uint8_t[]){4}, 1, &one));
  WEFT_TRY(fail(code, (const uint8_t[]){1, 4, 9}, 3, &three));
  printf("one failed disk: %zu read; three: %zu\n", one, three);
  return one == EACH ? WEFT_OK : WEFT_E_STATE;
}

int main(void) {
  uint8_t parity[PARITY][DATA];
  weft_ctx *ctx = NULL;
  weft_code *code = NULL;
  make_matrix(parity);
  for (size_t i = 0; i < DATA; i++)
    for (size_t b = 0; b < SHARD_BYTES; b++)
      disk[i][b] = (uint8_t)(b * 31 + i * 17 + (b >> 8));
  const weft_code_options options = {.name = "matrix", .k = DATA, .m = PARITY, .parity = parity[0]};
  weft_status status = weft_ctx_new(&ctx, NULL);
  if (status == WEFT_OK)
    status = weft_code_new(ctx, &options, &code);
  if (status == WEFT_OK)
    status = run(code);
  if (status != WEFT_OK)
    fprintf(stderr, "local_repair: %s\n", weft_status_text(status));
  weft_code_free(code);
  weft_ctx_free(ctx);
  return status != WEFT_OK;
}
