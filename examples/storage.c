// SPDX-License-Identifier: Apache-2.0
// A block store on fourteen disks, any four of which may fail: encodes, loses four, rebuilds only
// the one that is needed, then all, changes one block in place, and checks everything. Prints only
// the outcome.
#include <stdio.h>
#include <string.h>

#include "weft/weft.h"

#define DATA 10
#define PARITY 4
#define SHARD_BYTES 4096

static uint8_t disk[DATA + PARITY][SHARD_BYTES]; // one shard of a stripe on each
static uint8_t original[DATA][SHARD_BYTES];

static weft_status store_and_lose(weft_code *code, size_t *wrong) {
  // Shards may be anywhere (an array of pointers) or, as here, contiguous.
  const weft_stripe stripe = {.base = disk[0], .stride = SHARD_BYTES, .bytes = SHARD_BYTES};
  WEFT_TRY(weft_code_encode(code, &stripe, 1, NULL));

  // Disks 0, 3, 7 and the first parity disk fail; a reader needs only disk 3.
  const uint8_t lost[] = {0, 3, 7, DATA}, wanted[] = {3};
  for (size_t i = 0; i < sizeof lost; i++)
    memset(disk[lost[i]], 0xEE, SHARD_BYTES);
  const weft_erasures degraded_read = {
      .lost = lost, .lost_count = sizeof lost, .wanted = wanted, .wanted_count = 1};
  WEFT_TRY(weft_code_recover(code, &degraded_read, &stripe, 1, NULL));
  if (memcmp(disk[3], original[3], SHARD_BYTES) != 0)
    return WEFT_E_SINGULAR;

  // Later the failed disks are replaced: data and parity are rebuilt in one pass.
  const weft_erasures rebuild = {.lost = lost, .lost_count = sizeof lost};
  WEFT_TRY(weft_code_recover(code, &rebuild, &stripe, 1, NULL));

  // A new version of block 5: updates the parity without reading the other nine.
  uint8_t changed[SHARD_BYTES];
  for (size_t i = 0; i < SHARD_BYTES; i++)
    changed[i] = (uint8_t)(original[5][i] * 3 + 1);
  WEFT_TRY(weft_code_update(code, 5, disk[5], changed, &stripe, NULL));
  memcpy(disk[5], changed, SHARD_BYTES);
  memcpy(original[5], changed, SHARD_BYTES);
  return weft_code_verify(code, &stripe, NULL, wrong, NULL);
}

int main(void) {
  weft_ctx *ctx = NULL;
  weft_code *code = NULL;
  size_t wrong = 0;
  for (size_t i = 0; i < sizeof original; i++)
    original[i / SHARD_BYTES][i % SHARD_BYTES] = (uint8_t)(i * i >> 9);
  memcpy(disk, original, sizeof original);

  weft_status status = weft_ctx_new(&ctx, NULL);
  if (status == WEFT_OK)
    status = weft_code_new(ctx, &(weft_code_options){.name = "vandermonde", .k = DATA, .m = PARITY},
                           &code);
  if (status == WEFT_OK)
    status = store_and_lose(code, &wrong);
  const int same = status == WEFT_OK && wrong == 0 && memcmp(disk, original, sizeof original) == 0;
  printf("%s: %s\n", weft_status_text(status), same ? "every byte came back" : "bytes differ");
  weft_code_free(code);
  weft_ctx_free(ctx);
  return same ? 0 : 1;
}
