// SPDX-License-Identifier: Apache-2.0
// Old bytes with valid tags: shards from backups, shards that went through separate updates,
// journals and chunks that came back. None of them is taken for current.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/store/files.h"
#include "tests/support/test_main.h"

enum { LENGTH = 5000, STRIPE = 1000, AT = 1200, PATCH = 1500 };
enum { // of k = 4
  CHUNK = STRIPE / 4 + WEFT_STORE_TRAILER_BYTES,
  CHUNK_1 = 256 + CHUNK // where the chunk of stripe 1 begins
};

static uint8_t patch_a[PATCH], patch_b[PATCH];

static void begin(files *f, uint64_t salt, size_t k, size_t m) {
  files_start(f, salt, LENGTH);
  memset(patch_a, 0xA5, sizeof patch_a);
  memset(patch_b, 0x5B, sizeof patch_b);
  expect(WEFT_OK, files_encode(f, "cauchy", k, m, STRIPE), f);
}

static const char *aside(const files *f, size_t shard, int version) {
  static char path[400];
  snprintf(path, sizeof path, "%s/aside-%zu-%d", f->root, shard, version);
  return path;
}

static void copy_out(const files *f, size_t shard, int version) {
  files_copy(files_shard(f, shard), aside(f, shard, version));
}

static void move_out(const files *f, size_t shard, int version) {
  ck_assert_int_eq(rename(files_shard(f, shard), aside(f, shard, version)), 0);
}

static void move_in(const files *f, size_t shard, int version) {
  ck_assert_int_eq(rename(aside(f, shard, version), files_shard(f, shard)), 0);
}

// Restores a shard's chunk of stripe 1 to what it was when the shard was copied out.
static void chunk_back(const files *f, size_t shard, int version) {
  size_t bytes = 0, now = 0;
  uint8_t *old = files_get(aside(f, shard, version), &bytes);
  uint8_t *held = files_get(files_shard(f, shard), &now);
  memcpy(held + CHUNK_1, old + CHUNK_1, CHUNK);
  files_put(files_shard(f, shard), held, now);
  unlink(aside(f, shard, version));
  free(old);
  free(held);
}

static weft_status update(files *f, const uint8_t *patch) {
  return files_update(f, AT, patch, PATCH);
}

static void expect_patched(files *f, const uint8_t *patch) {
  memcpy(f->data + AT, patch, PATCH);
  files_expect_data(f);
}

static void expect_refused(files *f, const char *says) {
  uint8_t *out;
  size_t count;
  expect(WEFT_E_DAMAGED, files_read(f, 0, UINT64_MAX, &out, &count), f);
  ck_assert_msg(strstr(f->report.error, says), "%s", f->report.error);
  expect(WEFT_E_DAMAGED, files_mend(f, WEFT_STORE_VERIFY), f);
  expect(WEFT_E_DAMAGED, files_mend(f, WEFT_STORE_REPAIR), f);
  expect(WEFT_E_DAMAGED, update(f, patch_b), f);
}

static void expect_state(files *f, size_t shard, weft_shard_state wanted) {
  weft_shard_state state;
  char text[WEFT_STORE_TEXT_BYTES];
  expect(WEFT_OK, files_state(f, shard, &state, text), f);
  ck_assert_msg(state == wanted, "shard %zu is %s: %s", shard, weft_shard_state_name(state), text);
}

// Checks what `weft store info` shows of a shard, also of a set that is refused.
static void expect_look(files *f, size_t shard, weft_shard_state wanted, const char *says) {
  weft_store *store;
  f->report = (weft_store_report){0};
  expect(WEFT_OK, weft_store_open(&f->options, f->folder, WEFT_STORE_LOOK, &f->report, &store), f);
  const weft_store_info info = weft_store_get_info(store);
  ck_assert_int_eq(info.shards[shard].state, wanted);
  ck_assert_msg(strstr(info.shards[shard].text, says), "%s", info.shards[shard].text);
  weft_store_close(store);
}

// More shards come from a backup than the set can miss: the rest show that there was an update.
START_TEST(rolled_back) {
  files f;
  begin(&f, 30, 4, 2);
  for (size_t i = 0; i < 4; i++)
    copy_out(&f, i, 1);
  expect(WEFT_OK, update(&f, patch_a), &f);
  move_in(&f, 0, 1);
  expect_state(&f, 0, WEFT_SHARD_STALE);
  for (size_t i = 1; i < 4; i++)
    move_in(&f, i, 1);
  expect_refused(&f, "have generation 2");
  expect_look(&f, 4, WEFT_SHARD_NEWER, "they are from before an update");
  expect_look(&f, 0, WEFT_SHARD_GOOD, "");
  move_out(&f, 4, 2);
  move_out(&f, 5, 2);
  files_expect_data(&f); // the user chose the old state
  // And continued from it: shards that come back then belong to another history, though of the same
  // generation.
  expect(WEFT_OK, update(&f, patch_b), &f);
  move_in(&f, 4, 2);
  move_in(&f, 5, 2);
  expect_state(&f, 4, WEFT_SHARD_STALE);
  expect_state(&f, 5, WEFT_SHARD_STALE);
  expect_patched(&f, patch_b);
  unlink(files_shard(&f, 0));
  unlink(files_shard(&f, 1));
  uint8_t *out;
  size_t count;
  expect(WEFT_E_DAMAGED, files_read(&f, 0, UINT64_MAX, &out, &count), &f);
  files_end(&f);
}
END_TEST

// Either half of the shards is sufficient, and each went through an update without the other: the
// set is refused.
START_TEST(updated_apart) {
  files f;
  begin(&f, 31, 2, 2);
  move_out(&f, 2, 1);
  move_out(&f, 3, 1);
  expect(WEFT_OK, update(&f, patch_a), &f);
  move_out(&f, 0, 2);
  move_out(&f, 1, 2);
  move_in(&f, 2, 1);
  move_in(&f, 3, 1);
  expect(WEFT_OK, update(&f, patch_b), &f);
  move_in(&f, 0, 2);
  move_in(&f, 1, 2);
  expect_refused(&f, "different updates");
  expect_look(&f, 0, WEFT_SHARD_GOOD, "");
  expect_look(&f, 2, WEFT_SHARD_STALE, "it received a different update");
  move_out(&f, 0, 2);
  move_out(&f, 1, 2);
  expect_patched(&f, patch_b);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  unlink(aside(&f, 0, 2));
  unlink(aside(&f, 1, 2));
  files_end(&f);
}
END_TEST

// Fails as soon as the update is committed, before any of its chunks has reached a shard.
static char committed[400];

static int rename_and_fail(const char *from, const char *to) {
  const int done = rename(from, to);
  if (strcmp(to, committed) == 0)
    files_faults = (files_fault){.fail_at = 1, .error = EIO};
  return done;
}

static void leave_pending(files *f, const uint8_t *patch) {
  weft_store_io io = files_faulty_io;
  snprintf(committed, sizeof committed, "%s/update.journal", f->folder);
  io.rename = rename_and_fail;
  f->options.io = &io;
  expect(WEFT_E_IO, update(f, patch), f);
  files_faults = (files_fault){0};
  f->options.io = &files_faulty_io;
  ck_assert_int_eq(access(committed, F_OK), 0);
}

// A journal that was carried out long ago is refused when it comes back.
START_TEST(journal_that_came_back) {
  files f;
  begin(&f, 32, 4, 2);
  leave_pending(&f, patch_a);
  char kept[400];
  snprintf(kept, sizeof kept, "%s", aside(&f, 0, 1));
  files_copy(committed, kept);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_SCRUB), &f);
  expect(WEFT_OK, update(&f, patch_b), &f);
  ck_assert_int_eq(rename(kept, committed), 0);
  expect_refused(&f, "update.journal has generation 2");
  unlink(committed);
  expect_patched(&f, patch_b);
  // The same generation, but another update.
  for (int i = 0; i < 2; i++) {
    if (i == 0)
      for (size_t shard = 0; shard < 6; shard++)
        copy_out(&f, shard, 3);
    leave_pending(&f, i ? patch_b : patch_a);
    if (i == 0)
      files_copy(committed, kept);
    expect(WEFT_OK, files_mend(&f, WEFT_STORE_SCRUB), &f);
    for (size_t shard = 0; i == 0 && shard < 6; shard++)
      move_in(&f, shard, 3);
  }
  ck_assert_int_eq(rename(kept, committed), 0);
  expect_refused(&f, "update.journal belongs to another update");
  unlink(committed);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// A journal that has rotted somewhere: its contents are rebuilt from other chunks, or it is
// refused.
START_TEST(journal_that_rots) {
  files f;
  begin(&f, 35, 4, 2);
  leave_pending(&f, patch_a);
  uint8_t *held, *out;
  size_t bytes = 0, count = 0;
  held = files_get(committed, &bytes);
  memcpy(f.data + AT, patch_a, PATCH);
  size_t refused = 0, cut = 0;
  for (size_t at = 0; at < bytes; at += 1 + at % 23) {
    files_flip(committed, at, (uint8_t)(1u << at % 8));
    const weft_status status = files_read(&f, 0, UINT64_MAX, &out, &count);
    ck_assert(status == WEFT_OK || status == WEFT_E_DAMAGED);
    refused += status != WEFT_OK;
    if (status == WEFT_OK)
      ck_assert_msg(memcmp(out, f.data, LENGTH) == 0, "other bytes, by byte %zu", at);
    free(out);
    files_put(committed, held, bytes);
  }
  ck_assert(refused > 10 && refused < bytes / 16);
  for (size_t length = 0; length < bytes; length += 1 + length % 197, cut++) {
    files_put(committed, held, length);
    expect(WEFT_E_DAMAGED, files_read(&f, 0, UINT64_MAX, &out, &count), &f);
  }
  ck_assert_uint_gt(cut, 10);
  // If it is carried out with a rotted chunk, that chunk is lost, and mended.
  files_put(committed, held, bytes);
  files_flip(committed, bytes - 100, 1);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_SCRUB), &f);
  ck_assert_uint_eq(f.report.mended_chunks, 1);
  files_expect_data(&f);
  free(held);
  files_end(&f);
}
END_TEST

// A journal with more records than there is initially room for.
START_TEST(journal_of_many_chunks) {
  enum { SMALL = 40 };
  files f;
  begin(&f, 38, 4, 2);
  files_wipe(&f);
  expect(WEFT_OK, files_encode(&f, "cauchy", 4, 2, SMALL), &f);
  leave_pending(&f, patch_a);
  size_t bytes = 0;
  free(files_get(committed, &bytes));
  ck_assert_uint_gt(bytes, 200 * (WEFT_STORE_RECORD_BYTES + SMALL / 4 + WEFT_STORE_TRAILER_BYTES));
  expect_patched(&f, patch_a);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_SCRUB), &f);
  ck_assert_int_ne(access(committed, F_OK), 0);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// An unreadable sector of the journal loses one chunk, and does not prevent further writing.
static off_t bad_sector;

static ssize_t read_around(int fd, const struct iovec *parts, int count, off_t offset) {
  char path[64], name[500];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(path, name, sizeof name - 1);
  ssize_t total = 0;
  for (int i = 0; i < count; i++)
    total += (ssize_t)parts[i].iov_len;
  if (n > 7 && memcmp(name + n - 7, "journal", 7) == 0 && offset <= bad_sector &&
      offset + total > bad_sector) {
    errno = EIO;
    return -1;
  }
  return files_faulty_io.preadv(fd, parts, count, offset);
}

// The old chunk is replaced: if it stayed, nothing could tell which of k + 1 chunks is old.
START_TEST(journal_with_a_bad_sector) {
  files f;
  begin(&f, 36, 4, (size_t)_i);
  leave_pending(&f, patch_a);
  weft_store_io io = files_faulty_io;
  io.preadv = read_around;
  f.options.io = &io;
  bad_sector = WEFT_STORE_JOURNAL_BYTES + WEFT_STORE_RECORD_BYTES + 20;
  memcpy(f.data + AT, patch_a, PATCH);
  files_expect_data(&f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_SCRUB), &f);
  ck_assert_uint_eq(f.report.mended_chunks, 1);
  files_expect_data(&f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_end(&f);
}
END_TEST

// Some shards are absent for a while when a writer comes: the journal is kept, since only it can
// update them.
START_TEST(pending_with_too_few) {
  files f;
  begin(&f, 33, 4, 2);
  leave_pending(&f, patch_a);
  for (size_t i = 0; i < 3; i++)
    move_out(&f, i, 1);
  expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_SCRUB), &f);
  expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_REPAIR), &f);
  for (size_t i = 0; i < 3; i++)
    move_in(&f, i, 1);
  expect_patched(&f, patch_a);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_SCRUB), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// The journal does not update a shard that was absent when it was written.
START_TEST(pending_without_one) {
  files f;
  begin(&f, 46, 4, 2);
  move_out(&f, 1, 1);
  leave_pending(&f, patch_a);
  move_in(&f, 1, 1);
  expect_state(&f, 1, WEFT_SHARD_STALE);
  expect_patched(&f, patch_a);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// A disk lost one write of an update: the chunk is sound, but old. Anything rebuilt with it is
// wrong, and must not be sealed as good.
START_TEST(chunk_of_the_past) {
  for (int repair = 0; repair < 2; repair++) {
    files f;
    begin(&f, 34, 4, 2);
    size_t bytes = 0, now = 0;
    uint8_t *old = files_get(files_shard(&f, 1), &bytes);
    expect(WEFT_OK, update(&f, patch_a), &f);
    uint8_t *shard = files_get(files_shard(&f, 1), &now);
    memcpy(shard + CHUNK_1, old + CHUNK_1, CHUNK);
    files_put(files_shard(&f, 1), shard, now);
    expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_VERIFY), &f);
    ck_assert_uint_eq(f.report.corrupt_chunks, 1); // the others agree without it
    expect(WEFT_OK, files_mend(&f, repair ? WEFT_STORE_REPAIR : WEFT_STORE_SCRUB), &f);
    ck_assert_uint_eq(f.report.mended_chunks, 1);
    expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
    expect_patched(&f, patch_a);
    // With one chunk less, any of them may be the old one, and what is rebuilt may be wrong.
    files_put(files_shard(&f, 1), shard, now);
    files_flip(files_shard(&f, 2), CHUNK_1 + 7, 1);
    expect(WEFT_E_DAMAGED, files_mend(&f, repair ? WEFT_STORE_REPAIR : WEFT_STORE_SCRUB), &f);
    ck_assert_uint_eq(f.report.inconsistent_stripes, 1);
    ck_assert_uint_eq(f.report.mended_chunks, 0);
    files_put(files_shard(&f, 1), old, bytes); // a shard known to be old: all is well again
    expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
    expect_patched(&f, patch_a);
    // Nor does a rebuilt shard get such a chunk.
    files_put(files_shard(&f, 1), shard, now);
    unlink(files_shard(&f, 2));
    expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_REPAIR), &f);
    ck_assert_uint_eq(f.report.mended_shards, 1);
    expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_VERIFY), &f);
    ck_assert_uint_eq(f.report.corrupt_chunks, 1);
    files_put(files_shard(&f, 1), old, bytes);
    expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
    files_expect_data(&f);
    free(old);
    free(shard);
    files_end(&f);
  }
}
END_TEST

// An old chunk is found in any shard, since the update wrote all of them, even if a parity shard is
// absent.
START_TEST(chunk_of_the_past_of_any_shard) {
  const size_t shard = (size_t)_i;
  files f;
  begin(&f, 39, 4, 3);
  copy_out(&f, shard, 1);
  expect(WEFT_OK, update(&f, patch_a), &f);
  chunk_back(&f, shard, 1);
  unlink(files_shard(&f, shard == 6 ? 5 : 6));
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  ck_assert_uint_eq(f.report.mended_chunks, 1);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  expect_patched(&f, patch_a);
  files_end(&f);
}
END_TEST

// A read does not rebuild old data from old parity, whether the update changed the lost chunk or
// another. If all parity but one is old, nothing can tell which is.
START_TEST(parity_of_the_past_rebuilds_nothing) {
  enum { IN_1 = 1000 + 250 };
  const size_t lost = (size_t)_i;
  for (size_t past = 1; past <= 2; past++) {
    files f;
    begin(&f, 42, 4, 3);
    for (size_t i = 0; i < past; i++)
      copy_out(&f, 4 + i, 1);
    f.data[IN_1] ^= 1; // stripe 1, shard 1
    expect(WEFT_OK, files_update(&f, IN_1, f.data + IN_1, 1), &f);
    for (size_t i = 0; i < past; i++)
      chunk_back(&f, 4 + i, 1);
    unlink(files_shard(&f, lost));
    if (past == 1) {
      files_expect_data(&f);
    } else {
      uint8_t *out = NULL;
      size_t count = 0;
      expect(WEFT_E_DAMAGED, files_read(&f, 0, UINT64_MAX, &out, &count), &f);
      ck_assert_msg(strstr(f.report.error, "stripe 1: some of its chunks are lost"), "%s",
                    f.report.error);
      free(out);
    }
    files_end(&f);
  }
}
END_TEST

// All chunks of a stripe but one are old: they agree with each other, and are wrong.
START_TEST(the_past_has_no_vote) {
  for (size_t newest = 0; newest < 6; newest++) {
    files f;
    begin(&f, 37, 4, 2);
    for (size_t i = 0; i < 6; i++)
      copy_out(&f, i, 1);
    expect(WEFT_OK, update(&f, patch_a), &f);
    for (size_t i = 0; i < 6; i++)
      if (i != newest)
        chunk_back(&f, i, 1);
    unlink(aside(&f, newest, 1));
    expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_SCRUB), &f);
    ck_assert_uint_eq(f.report.inconsistent_stripes, 1);
    ck_assert_uint_eq(f.report.mended_chunks, 0);
    files_end(&f);
  }
}
END_TEST

// Old chunks do not win if a chunk that the update did not change is newer because it was mended
// later.
START_TEST(mended_chunks_lend_the_past_no_vote) {
  enum { IN_1 = 1000 + 250 };
  files f;
  begin(&f, 40, 4, 2);
  copy_out(&f, 4, 1);
  copy_out(&f, 5, 1);
  f.data[IN_1] ^= 1; // stripe 1, shard 1
  expect(WEFT_OK, files_update(&f, IN_1, f.data + IN_1, 1), &f);
  expect(WEFT_OK, files_update(&f, 0, f.data, 1), &f);
  files_flip(files_shard(&f, 3), CHUNK_1 + 7, 1);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_SCRUB), &f);
  chunk_back(&f, 4, 1);
  chunk_back(&f, 5, 1);
  expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_SCRUB), &f);
  ck_assert_uint_eq(f.report.inconsistent_stripes, 1);
  ck_assert_uint_eq(f.report.mended_chunks, 0);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// A chunk of an update that was undone, and whose generation another update has: it is no older
// than the others.
START_TEST(chunk_of_another_update) {
  files f;
  begin(&f, 41, 4, 2);
  for (size_t i = 0; i < 6; i++)
    copy_out(&f, i, 1);
  expect(WEFT_OK, update(&f, patch_a), &f);
  size_t bytes = 0, now = 0;
  uint8_t *other = files_get(files_shard(&f, 1), &bytes);
  for (size_t i = 0; i < 6; i++)
    move_in(&f, i, 1);
  expect(WEFT_OK, update(&f, patch_b), &f);
  uint8_t *shard = files_get(files_shard(&f, 1), &now);
  memcpy(shard + CHUNK_1, other + CHUNK_1, CHUNK);
  files_put(files_shard(&f, 1), shard, now);
  expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_SCRUB), &f);
  ck_assert_uint_eq(f.report.inconsistent_stripes, 1);
  ck_assert_uint_eq(f.report.mended_chunks, 0);
  free(other);
  free(shard);
  files_end(&f);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("stale");
  TCase *tests = tcase_create("stale");
  tcase_add_test(tests, rolled_back);
  tcase_add_test(tests, updated_apart);
  tcase_add_test(tests, journal_that_came_back);
  tcase_add_test(tests, journal_that_rots);
  tcase_add_test(tests, journal_of_many_chunks);
  tcase_add_loop_test(tests, journal_with_a_bad_sector, 1, 3);
  tcase_add_test(tests, pending_with_too_few);
  tcase_add_test(tests, pending_without_one);
  tcase_add_test(tests, chunk_of_the_past);
  tcase_add_loop_test(tests, chunk_of_the_past_of_any_shard, 0, 7);
  tcase_add_loop_test(tests, parity_of_the_past_rebuilds_nothing, 0, 4);
  tcase_add_test(tests, the_past_has_no_vote);
  tcase_add_test(tests, mended_chunks_lend_the_past_no_vote);
  tcase_add_test(tests, chunk_of_another_update);
  suite_add_tcase(suite, tests);
  return test_main(suite);
}
