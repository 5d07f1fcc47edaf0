// SPDX-License-Identifier: Apache-2.0
// Feeds arbitrary bytes to the parsers of shard and journal headers. Digests are corrected first,
// or nothing would get past them. A header that is accepted must be within its ranges, and be
// written back the same.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "store/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition) {
  if (!condition)
    abort();
}

static void shard_header(const uint8_t *in) {
  uint8_t again[WEFT_STORE_HEADER_BYTES], key[WEFT_STORE_KEY_BYTES];
  static const uint8_t user_key[WEFT_STORE_KEY_BYTES] = {1};
  weft_store_header h;
  const char *why = "";
  if (weft_store_header_read(in, &h, &why) != WEFT_OK) {
    require(why != NULL);
    return;
  }
  require(h.k >= 1 && h.k + h.m <= WEFT_STORE_MAX_SHARDS && h.shard < h.k + h.m);
  require(memchr(h.code, 0, sizeof h.code) != NULL && h.code[0] != 0);
  weft_store_file_key(&h, user_key, key);
  weft_store_header_write(&h, key, again);
  require(memcmp(in, again, 192) == 0);
  for (size_t unit = 1; unit <= 4096; unit *= 8) {
    weft_store_geometry g;
    if (weft_store_geometry_of(&h, unit, &g) != WEFT_OK)
      continue;
    require((g.stripes == 0) == (h.length == 0));
    if (g.stripes == 0)
      continue;
    const uint64_t last = g.stripes - 1, bytes = weft_store_data_bytes(&g, last);
    const size_t chunk = weft_store_chunk(&g, last);
    require(weft_store_data_offset(&g, last) + bytes == h.length && bytes > 0);
    require(chunk <= g.chunk_bytes && chunk % unit == 0 && (uint64_t)chunk * g.k >= bytes);
    require(weft_store_chunk_offset(&g, last) + chunk + WEFT_STORE_TRAILER_BYTES ==
            weft_store_shard_bytes(&g));
    require(weft_store_shard_bytes(&g) < UINT64_C(1) << 63);
  }
}

static void journal(const uint8_t *in, const uint8_t *record) {
  static const uint8_t key[WEFT_STORE_KEY_BYTES] = {2};
  uint8_t again[WEFT_STORE_JOURNAL_BYTES], fits[WEFT_STORE_RECORD_BYTES];
  weft_store_journal j;
  weft_store_record r;
  if (weft_store_journal_read(in, key, &j) != WEFT_OK)
    return;
  weft_store_journal_write(&j, key, again);
  require(memcmp(in, again, sizeof again) == 0);
  memcpy(fits, record, sizeof fits);
  uint8_t text[24];
  memcpy(text, fits, 16);
  memcpy(text + 16, in + 32, 8);
  (void)crypto_generichash(fits + 16, 16, text, sizeof text, key, sizeof key);
  if (weft_store_record_read(fits, &j, key, &r) == WEFT_OK) {
    uint8_t back[WEFT_STORE_RECORD_BYTES];
    weft_store_record_write(&r, &j, key, back);
    require(memcmp(fits, back, sizeof back) == 0);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t in[WEFT_STORE_HEADER_BYTES] = {0};
  memcpy(in, data, size < sizeof in ? size : sizeof in);
  shard_header(in);
  (void)crypto_generichash(in + 224, 32, in, 224, NULL, 0);
  shard_header(in);
  static const uint8_t key[WEFT_STORE_KEY_BYTES] = {2};
  uint8_t head[WEFT_STORE_JOURNAL_BYTES];
  memcpy(head, in, sizeof head);
  journal(head, in + sizeof head);
  (void)crypto_generichash(head + 96, 32, head, 96, key, sizeof key);
  journal(head, in + sizeof head);
  return 0;
}
