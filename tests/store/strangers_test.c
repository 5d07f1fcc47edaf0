// SPDX-License-Identifier: Apache-2.0
// Files in a set's folder that are not of the set, or that repair replaces although they are.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/format.h"
#include "tests/store/files.h"
#include "tests/support/test_main.h"

enum { LENGTH = 4000, STRIPE = 900 };

// Copies shards [first, end) of one folder to the same names of another.
static void put_among(const files *from, size_t first, size_t end, const files *to) {
  for (size_t i = first; i < end; i++) {
    char path[400];
    snprintf(path, sizeof path, "%s", files_shard(to, i));
    files_copy(files_shard(from, i), path);
  }
}

// Checks that the error names the file that a shard is of, by its identifier.
static void expect_named(const files *f, size_t shard) {
  weft_store_header h;
  const char *why;
  size_t bytes = 0;
  char id[2 * WEFT_STORE_ID_BYTES + 1];
  uint8_t *held = files_get(files_shard(f, shard), &bytes);
  expect(WEFT_OK, weft_store_header_read(held, &h, &why), f);
  for (size_t i = 0; i < WEFT_STORE_ID_BYTES; i++)
    snprintf(id + 2 * i, 3, "%02x", h.id[i]);
  ck_assert_msg(strstr(f->report.error, id), "%s is not in %s", id, f->report.error);
  free(held);
}

// Makes a set of (k, m), and among its shards [first, end) those of another, of (other_k, other_m).
static void begin(files *f, size_t k, size_t m, files *other, size_t other_k, size_t other_m,
                  size_t first, size_t end) {
  files_start(f, 91, LENGTH);
  files_start(other, 92, LENGTH);
  expect(WEFT_OK, files_encode(f, "cauchy", k, m, STRIPE), f);
  expect(WEFT_OK, files_encode(other, "cauchy", other_k, other_m, STRIPE), other);
  put_among(other, first, end, f);
}

// Two files whose shards are in one folder, enough of both. Repair would replace the shards of one
// by those of the other.
START_TEST(two_files_in_one_folder) {
  files large, small;
  begin(&large, 4, 2, &small, 2, 4, 4, 6);
  for (int care = WEFT_STORE_SCRUB; care <= WEFT_STORE_REPAIR; care++) {
    expect(WEFT_E_DAMAGED, files_mend(&large, (weft_store_care)care), &large);
    ck_assert_msg(strstr(large.report.error, "shards of two files"), "%s", large.report.error);
    expect_named(&large, 0);
    expect_named(&large, 4);
  }
  expect(WEFT_E_DAMAGED, files_update(&large, 0, (const uint8_t *)"x", 1), &large);
  files_expect_data(&large);
  for (size_t i = 0; i < 4; i++)
    unlink(files_shard(&large, i));
  memcpy(large.data, small.data, LENGTH);
  files_expect_data(&large); // nothing of the other was lost
  files_end(&small);
  files_end(&large);
}
END_TEST

// Checks that the file is read whatever the other one's shards, before and after a repair.
static void expect_read_and_mended(files *f, files *other) {
  files_expect_data(f);
  expect(WEFT_OK, files_mend(f, WEFT_STORE_REPAIR), f);
  files_expect_data(f);
  files_end(other);
  files_end(f);
}

// The larger number of shards does not count if it is too small to read the file.
START_TEST(whose_shards_are_enough_is_read) {
  files f, other;
  begin(&f, 2, 4, &other, 10, 4, 6, 14);
  expect_read_and_mended(&f, &other);
}
END_TEST

// Copies of a shard do not count, neither for which file is read nor as a second file.
START_TEST(copies_have_no_vote) {
  files f, other;
  begin(&f, 2, 4, &other, 3, 5, 6, 8);
  char copy[400];
  for (size_t i = 8; i < 16; i++) {
    snprintf(copy, sizeof copy, "%s", files_shard(&f, i));
    files_copy(files_shard(&other, 7), copy);
  }
  expect_read_and_mended(&f, &other);
}
END_TEST

// --- A header that claims to be of a shard beyond all sets

static int rename_and_fail(const char *from, const char *to) {
  const int done = rename(from, to);
  files_faults.fail_at = 1;
  files_faults.error = EIO;
  return done;
}

// Makes a set of (3, 2) with a pending update.
static void begin_pending(files *f, uint64_t salt) {
  files_start(f, salt, LENGTH);
  expect(WEFT_OK, files_encode(f, "cauchy", 3, 2, STRIPE), f);
  weft_store_io io = files_faulty_io;
  io.rename = rename_and_fail;
  f->options.io = &io;
  expect(WEFT_E_IO, files_update(f, 5, (const uint8_t *)"abc", 3), f);
  files_faults = (files_fault){0};
  f->options.io = &files_faulty_io;
  memcpy(f->data + 5, "abc", 3);
}

START_TEST(a_header_of_no_shard_while_an_update_is_pending) {
  files f;
  weft_store_header h;
  const char *why;
  size_t bytes = 0;
  begin_pending(&f, 95);
  uint8_t *shard = files_get(files_shard(&f, 1), &bytes);
  expect(WEFT_OK, weft_store_header_read(shard, &h, &why), &f);
  h.shard = UINT16_MAX;
  weft_store_header_write(&h, h.key, shard);
  ck_assert_int_eq(weft_store_header_read(shard, &h, &why), WEFT_E_MALFORMED);
  files_put(files_shard(&f, 200), shard, bytes);
  free(shard);
  files_expect_data(&f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// A journal whose first record is of a chunk that the set does not have, sealed as it should be.
START_TEST(a_journal_of_a_chunk_that_there_is_not) {
  files f;
  weft_store_header h;
  weft_store_journal head;
  weft_store_record record;
  const char *why;
  size_t bytes = 0, count = 0;
  begin_pending(&f, 99);
  uint8_t *out, *shard = files_get(files_shard(&f, 0), &bytes);
  expect(WEFT_OK, weft_store_header_read(shard, &h, &why), &f);
  free(shard);
  char path[400];
  snprintf(path, sizeof path, "%s/update.journal", f.folder);
  uint8_t *journal = files_get(path, &bytes), *first = journal + WEFT_STORE_JOURNAL_BYTES;
  expect(WEFT_OK, weft_store_journal_read(journal, h.key, &head), &f);
  expect(WEFT_OK, weft_store_record_read(first, &head, h.key, &record), &f);
  const weft_store_record none[] = {{.stripe = record.stripe, .shard = 5},
                                    {.stripe = (LENGTH + STRIPE - 1) / STRIPE, .shard = 0}};
  for (size_t i = 0; i < 2; i++) {
    weft_store_record_write(&none[i], &head, h.key, first);
    files_put(path, journal, bytes);
    expect(WEFT_E_DAMAGED, files_read(&f, 0, UINT64_MAX, &out, &count), &f);
    ck_assert_msg(strstr(f.report.error, "update.journal is corrupt"), "%s", f.report.error);
  }
  weft_store_record_write(&record, &head, h.key, first);
  files_put(path, journal, bytes);
  free(journal);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// --- What repair makes in place of a file

// Verify promises repair only where repair keeps that: not for a folder that has a shard's name.
START_TEST(no_promise_for_what_repair_refuses) {
  files f;
  files_start(&f, 98, LENGTH);
  expect(WEFT_OK, files_encode(&f, "cauchy", 3, 2, STRIPE), &f);
  unlink(files_shard(&f, 2));
  expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_VERIFY), &f);
  ck_assert_msg(strstr(f.report.error, "and repair fixes that"), "%s", f.report.error);
  ck_assert_int_eq(mkdir(files_shard(&f, 2), 0700), 0);
  expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_VERIFY), &f);
  ck_assert_msg(!strstr(f.report.error, "repair fixes"), "%s", f.report.error);
  expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_REPAIR), &f);
  files_end(&f);
}
END_TEST

// Otherwise update would refuse the rebuilt shard again, and repair rebuild it each time.
START_TEST(a_rebuilt_shard_can_be_written) {
  files f;
  struct stat about;
  files_start(&f, 96, LENGTH);
  expect(WEFT_OK, files_encode(&f, "cauchy", 3, 2, STRIPE), &f);
  for (size_t i = 0; i < 5; i++)
    ck_assert_int_eq(chmod(files_shard(&f, i), 0440), 0);
  unlink(files_shard(&f, 1));
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  ck_assert_int_eq(stat(files_shard(&f, 1), &about), 0);
  ck_assert_msg((about.st_mode & 0777) == 0640, "%o", (unsigned)about.st_mode);
  files_end(&f);
}
END_TEST

// Corrupt chunks are rewritten where a link leads; a shard that is made anew takes the link's name.
START_TEST(a_link_is_replaced_only_by_a_shard_made_anew) {
  files f;
  struct stat about;
  char away[400], name[400];
  files_start(&f, 97, LENGTH);
  expect(WEFT_OK, files_encode(&f, "cauchy", 3, 2, STRIPE), &f);
  snprintf(name, sizeof name, "%s", files_shard(&f, 4));
  snprintf(away, sizeof away, "%s/away", f.root);
  ck_assert_int_eq(rename(name, away), 0);
  ck_assert_int_eq(symlink(away, name), 0);
  files_flip(away, WEFT_STORE_HEADER_BYTES + 3, 1);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  ck_assert(lstat(name, &about) == 0 && S_ISLNK(about.st_mode));
  files_flip(away, 9, 1);
  weft_store *store = NULL;
  expect(WEFT_OK, weft_store_open(&f.options, f.folder, WEFT_STORE_WRITE, &f.report, &store), &f);
  expect(WEFT_OK, weft_store_mend(store, WEFT_STORE_REPAIR), &f);
  for (size_t i = 0; i < 5; i++)
    ck_assert_int_eq(weft_store_get_info(store).shards[i].was_link, i == 4);
  weft_store_close(store);
  ck_assert(lstat(name, &about) == 0 && S_ISREG(about.st_mode));
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_end(&f);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("strangers");
  TCase *tests = tcase_create("strangers");
  tcase_add_test(tests, two_files_in_one_folder);
  tcase_add_test(tests, whose_shards_are_enough_is_read);
  tcase_add_test(tests, copies_have_no_vote);
  tcase_add_test(tests, a_header_of_no_shard_while_an_update_is_pending);
  tcase_add_test(tests, a_journal_of_a_chunk_that_there_is_not);
  tcase_add_test(tests, no_promise_for_what_repair_refuses);
  tcase_add_test(tests, a_rebuilt_shard_can_be_written);
  tcase_add_test(tests, a_link_is_replaced_only_by_a_shard_made_anew);
  suite_add_tcase(suite, tests);
  return test_main(suite);
}
