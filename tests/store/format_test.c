// SPDX-License-Identifier: Apache-2.0
// The bytes that docs/format.md prescribes: places of the fields, known answers, and refusal of
// every flipped bit.
#include <string.h>

#include <sodium.h>

#include "store/format.h"
#include "tests/support/test_main.h"

static const weft_store_header sample = {.k = 10,
                                         .m = 4,
                                         .shard = 13,
                                         .chunk_bytes = 0x01020304,
                                         .length = 0x0102030405060708,
                                         .generation = 5,
                                         .id = {0xA0, [15] = 0xAF},
                                         .key = {0xB0, [31] = 0xBF},
                                         .code = "cauchy"};

START_TEST(header_bytes) {
  uint8_t key[WEFT_STORE_KEY_BYTES], bytes[WEFT_STORE_HEADER_BYTES];
  const char *why = NULL;
  weft_store_header back;
  weft_store_file_key(&sample, NULL, key);
  ck_assert_mem_eq(key, sample.key, sizeof key);
  weft_store_header_write(&sample, key, bytes);
  static const uint8_t front[40] = {'W', 'E', 'F', 'T', 'S', 'H', 'R', 'D', 0, 1, 1, 0, 0, 10,
                                    0,   4,   0,   13,  0,   0,   1,   2,   3, 4, 1, 2, 3, 4,
                                    5,   6,   7,   8,   0,   0,   0,   0,   0, 0, 0, 5};
  ck_assert_mem_eq(bytes, front, sizeof front);
  ck_assert_mem_eq(bytes + 40, sample.id, 16);
  ck_assert_mem_eq(bytes + 56, sample.key, 32);
  ck_assert_mem_eq(bytes + 88, sample.code, 64);
  uint8_t digest[32];
  crypto_generichash(digest, 32, bytes, 192, key, 32);
  ck_assert_mem_eq(bytes + 192, digest, 32);
  crypto_generichash(digest, 32, bytes, 224, NULL, 0);
  ck_assert_mem_eq(bytes + 224, digest, 32);
  ck_assert_int_eq(weft_store_header_read(bytes, &back, &why), WEFT_OK);
  ck_assert_mem_eq(&back.length, &sample.length, 8);
  ck_assert(back.k == 10 && back.m == 4 && back.shard == 13 && back.generation == 5);
  ck_assert(weft_store_header_authentic(bytes, key));
  for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
    bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    ck_assert_int_ne(weft_store_header_read(bytes, &back, &why), WEFT_OK);
    ck_assert_ptr_nonnull(why);
    bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
  }
}
END_TEST

// A matching digest does not make invalid fields valid.
START_TEST(nonsense) {
  static const struct {
    size_t at;
    uint8_t value;
    weft_status status;
  } edits[] = {{9, 2, WEFT_E_VERSION},      {10, 2, WEFT_E_MALFORMED},  {13, 0, WEFT_E_MALFORMED},
               {12, 1, WEFT_E_MALFORMED},   {17, 14, WEFT_E_MALFORMED}, {18, 2, WEFT_E_MALFORMED},
               {18, 1, WEFT_E_MALFORMED},   {19, 1, WEFT_E_MALFORMED},  {20, 255, WEFT_E_MALFORMED},
               {24, 255, WEFT_E_MALFORMED}, {39, 0, WEFT_E_MALFORMED},  {88, 0, WEFT_E_MALFORMED},
               {88, 27, WEFT_E_MALFORMED},  {151, 1, WEFT_E_MALFORMED}, {160, 1, WEFT_E_MALFORMED}};
  for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
    uint8_t bytes[WEFT_STORE_HEADER_BYTES];
    weft_store_header back;
    const char *why = NULL;
    weft_store_header_write(&sample, sample.key, bytes);
    bytes[edits[i].at] = edits[i].value;
    crypto_generichash(bytes + 224, 32, bytes, 224, NULL, 0);
    ck_assert_msg(weft_store_header_read(bytes, &back, &why) == edits[i].status, "edit %zu: %s", i,
                  why ? why : "accepted");
    ck_assert_ptr_nonnull(why);
  }
}
END_TEST

// A chunk's trailer is as in docs/format.md and fits only its place, generation and length.
START_TEST(chunks) {
  uint8_t chunk[100] = {1, 2, 3}, trailer[WEFT_STORE_TRAILER_BYTES], key[32] = {7};
  const weft_store_trailer about = {.generation = 3, .nonce = 0x1122334455667788};
  weft_store_chunk_seal(key, 5, 9, about, chunk, sizeof chunk, trailer);
  // As in docs/format.md.
  uint8_t text[32] = {[7] = 9, [9] = 5, [23] = 3}, once[32], tag[16];
  memcpy(text + 24, trailer + 8, 8);
  ck_assert(trailer[7] == 3 && trailer[8] == 0x11 && trailer[15] == 0x88);
  crypto_generichash(once, 32, text, 32, key, 32);
  crypto_onetimeauth(tag, chunk, sizeof chunk, once);
  ck_assert_mem_eq(trailer + 16, tag, 16);
  ck_assert(weft_store_chunk_good(key, 5, 9, 3, chunk, sizeof chunk, trailer));
  ck_assert(!weft_store_chunk_good(key, 5, 9, 2, chunk, sizeof chunk, trailer)); // from the future
  ck_assert(!weft_store_chunk_good(key, 4, 9, 3, chunk, sizeof chunk, trailer));
  ck_assert(!weft_store_chunk_good(key, 5, 8, 3, chunk, sizeof chunk, trailer));
  ck_assert(!weft_store_chunk_good(key, 5, 9, 3, chunk, sizeof chunk - 1, trailer));
}
END_TEST

// The sizes of stripes, chunks and shards follow from the header.
START_TEST(geometry) {
  weft_store_geometry g;
  weft_store_header h = {.k = 4, .m = 2, .chunk_bytes = 100, .length = 1001, .generation = 1};
  ck_assert_int_eq(weft_store_geometry_of(&h, 1, &g), WEFT_OK);
  ck_assert(g.stripes == 3 && g.last_chunk_bytes == 51 && weft_store_chunk(&g, 1) == 100);
  ck_assert_uint_eq(weft_store_shard_bytes(&g), 256 + 2 * 132 + 51 + 32);
  ck_assert_uint_eq(weft_store_data_bytes(&g, 2), 201);
  ck_assert_int_eq(weft_store_geometry_of(&h, 20, &g), WEFT_OK);
  ck_assert_uint_eq(g.last_chunk_bytes, 60);
  ck_assert_int_eq(weft_store_geometry_of(&h, 30, &g), WEFT_E_MALFORMED);
  h.length = 800;
  ck_assert_int_eq(weft_store_geometry_of(&h, 1, &g), WEFT_OK);
  ck_assert(g.stripes == 2 && g.last_chunk_bytes == 100);
  h.length = 0;
  ck_assert_int_eq(weft_store_geometry_of(&h, 1, &g), WEFT_OK);
  ck_assert(g.stripes == 0 && weft_store_shard_bytes(&g) == 256);
  h = (weft_store_header){.k = 1, .chunk_bytes = 1, .length = WEFT_STORE_MAX_LENGTH};
  ck_assert_int_eq(weft_store_geometry_of(&h, 1, &g), WEFT_E_MALFORMED);
}
END_TEST

START_TEST(journals) {
  uint8_t key[32] = {9}, head[WEFT_STORE_JOURNAL_BYTES], record[WEFT_STORE_RECORD_BYTES];
  const weft_store_journal journal = {
      .id = {1, 2}, .generation = 8, .records = 3, .bytes = 999, .shards = {0x81, 0x01}};
  const weft_store_record about = {.stripe = 77, .shard = 12};
  weft_store_journal j;
  weft_store_record r;
  weft_store_journal_write(&journal, key, head);
  ck_assert_int_eq(weft_store_journal_read(head, key, &j), WEFT_OK);
  ck_assert(j.generation == 8 && j.records == 3 && j.bytes == 999 && j.id[1] == 2);
  ck_assert(weft_store_takes_part(&j, 0) && weft_store_takes_part(&j, 7) &&
            weft_store_takes_part(&j, 8) && !weft_store_takes_part(&j, 1));
  weft_store_record_write(&about, &journal, key, record);
  ck_assert_int_eq(weft_store_record_read(record, &journal, key, &r), WEFT_OK);
  ck_assert(r.stripe == 77 && r.shard == 12);
  for (size_t bit = 0; bit < 8 * sizeof head; bit++) {
    head[bit / 8] ^= (uint8_t)(1u << bit % 8);
    ck_assert_int_eq(weft_store_journal_read(head, key, &j), WEFT_E_MALFORMED);
    head[bit / 8] ^= (uint8_t)(1u << bit % 8);
  }
  for (size_t bit = 0; bit < 8 * sizeof record; bit++) {
    record[bit / 8] ^= (uint8_t)(1u << bit % 8);
    ck_assert_int_eq(weft_store_record_read(record, &journal, key, &r), WEFT_E_MALFORMED);
    record[bit / 8] ^= (uint8_t)(1u << bit % 8);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("format");
  TCase *tests = tcase_create("format");
  tcase_add_test(tests, header_bytes);
  tcase_add_test(tests, nonsense);
  tcase_add_test(tests, chunks);
  tcase_add_test(tests, geometry);
  tcase_add_test(tests, journals);
  suite_add_tcase(suite, tests);
  return test_main(suite);
}
