// SPDX-License-Identifier: Apache-2.0
// The disk of one shard fails while the others work: the file cannot be opened, or only for
// reading, refuses writes or syncs, or has unreadable bytes. Everything else is mended, and that
// shard is named.
#define _GNU_SOURCE // preadv, pwritev
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/store/files.h"
#include "tests/support/test_main.h"

enum { K = 3, M = 2, LENGTH = 2501, STRIPE = 600, SEALED = 200 + 32 };

// The operations that fail for files whose path ends with these; NULL: none.
static struct {
  const char *open, *open_to_write, *write, *sync, *read;
  off_t from; // where read and write fail
  int error;
} bad;

static bool ends(const char *path, const char *with) {
  const size_t a = strlen(path), b = with ? strlen(with) : 0;
  return with && a >= b && strcmp(path + a - b, with) == 0;
}

static bool is(int fd, const char *with) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, sizeof path - 1);
  path[n > 0 ? n : 0] = 0;
  errno = bad.error;
  return ends(path, with);
}

static int bad_open(const char *path, int flags, mode_t mode) {
  const bool writes = (flags & O_ACCMODE) != O_RDONLY && !(flags & O_CREAT);
  errno = bad.error;
  if (bad.open && strstr(path, bad.open) && access(path, F_OK) == 0 && (errno = bad.error))
    return -1;
  errno = bad.error;
  return writes && ends(path, bad.open_to_write) ? -1 : open(path, flags, mode);
}
static ssize_t bad_pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
  return offset >= bad.from && is(fd, bad.write) ? -1 : pwritev(fd, parts, count, offset);
}
static ssize_t bad_preadv(int fd, const struct iovec *parts, int count, off_t offset) {
  return offset >= bad.from && is(fd, bad.read) ? -1 : preadv(fd, parts, count, offset);
}
static int bad_fsync(int fd) { return is(fd, bad.sync) ? -1 : 0; }

static weft_store_io bad_io;

static void expect_says(const files *f, const char *what) {
  ck_assert_msg(strstr(f->report.error, what), "'%s' is not in '%s'", what, f->report.error);
}

static void begin(files *f, uint64_t salt) {
  memset(&bad, 0, sizeof bad);
  files_start(f, salt, LENGTH);
  bad_io = weft_store_posix_io;
  bad_io.open = bad_open;
  bad_io.pwritev = bad_pwritev;
  bad_io.preadv = bad_preadv;
  bad_io.fsync = bad_fsync;
  f->options.io = &bad_io;
  expect(WEFT_OK, files_encode(f, "cauchy", K, M, STRIPE), f);
}

// A set of which no shard can be read is not reported as damaged: that is unknown.
START_TEST(no_shard_can_be_read) {
  files f;
  uint8_t *out;
  size_t count;
  const int errors[] = {EACCES, EIO};
  begin(&f, 70);
  bad.error = errors[_i];
  bad.open = _i ? NULL : "/shard-";
  bad.read = _i ? ".weft" : NULL;
  expect(WEFT_E_IO, files_read(&f, 0, UINT64_MAX, &out, &count), &f);
  expect_says(&f, "shard-000.weft: ");
  expect_says(&f, strerror(bad.error));
  // If other shards are certainly damaged, both are reported.
  for (size_t i = 1; i < K + M; i++)
    files_flip(files_shard(&f, i), 100, 1);
  bad.open = _i ? NULL : "/shard-000";
  bad.read = _i ? "/shard-000.weft" : NULL;
  expect(WEFT_E_DAMAGED, files_read(&f, 0, UINT64_MAX, &out, &count), &f);
  expect_says(&f, "intact header");
  expect_says(&f, strerror(bad.error));
  // If all of them are.
  memset(&bad, 0, sizeof bad);
  files_flip(files_shard(&f, 0), 100, 1);
  expect(WEFT_E_DAMAGED, files_read(&f, 0, UINT64_MAX, &out, &count), &f);
  char none[64];
  snprintf(none, sizeof none, ": none of its %d shards has an intact header", K + M);
  ck_assert_msg(ends(f.report.error, none), "%s", f.report.error);
  files_end(&f);
}
END_TEST

static weft_status state_of(files *f, size_t shard, weft_shard_state *state) {
  char text[WEFT_STORE_TEXT_BYTES];
  return files_state(f, shard, state, text);
}

// One shard is missing, one has rotted, and a third has rotted and refuses writes or syncs.
static void spoil(files *f) {
  unlink(files_shard(f, 4));
  files_flip(files_shard(f, 0), 256 + 7, 1);
  files_flip(files_shard(f, 1), 256 + 2 * SEALED + 7, 1);
  bad.error = EIO;
}

static void refuse(int how) {
  bad.write = how == 0 ? "/shard-001.weft" : NULL;
  bad.sync = how == 1 ? "/shard-001.weft" : NULL;
  bad.open_to_write = how == 2 ? "/shard-001.weft" : NULL;
  bad.error = how == 2 ? EROFS : how ? EIO : ENOSPC;
}

START_TEST(scrub_goes_on_past_a_shard_that_takes_no_writes) {
  files f;
  begin(&f, 71);
  spoil(&f);
  refuse(_i);
  expect(WEFT_E_IO, files_mend(&f, WEFT_STORE_SCRUB), &f);
  expect_says(&f, "shard-001.weft: ");
  expect_says(&f, strerror(bad.error));
  expect_says(&f, ": repair rebuilds it");
  ck_assert_int_eq(strstr(f.report.error, "if the folder itself takes new files") != NULL, _i == 2);
  ck_assert_uint_eq(f.report.corrupt_chunks, 2);
  ck_assert_uint_eq(f.report.mended_chunks, 1);
  refuse(-1);
  expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_VERIFY), &f);
  ck_assert_uint_eq(f.report.corrupt_chunks, 1);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// Repair replaces a shard that refuses writes.
START_TEST(repair_makes_a_shard_anew_that_takes_no_writes) {
  files f;
  weft_shard_state state;
  begin(&f, 72);
  spoil(&f);
  refuse(_i);
  // A disk whose sync failed may have lost more: that is reported.
  expect(_i == 1 ? WEFT_E_IO : WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  if (_i == 1)
    expect_says(&f, "; it was rebuilt");
  ck_assert_uint_eq(f.report.mended_shards, 2);
  ck_assert_uint_eq(f.report.corrupt_chunks, 2);
  ck_assert_uint_eq(f.report.mended_chunks, 2);
  refuse(-1);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  expect(WEFT_OK, state_of(&f, 4, &state), &f);
  ck_assert_int_eq(state, WEFT_SHARD_GOOD);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// If the replacement of one shard cannot be written either, the other is still rebuilt.
START_TEST(repair_leaves_out_what_cannot_be_made) {
  files f;
  weft_shard_state state;
  begin(&f, 73);
  spoil(&f);
  ck_assert_int_eq(truncate(files_shard(&f, 1), 256 + 2 * SEALED), 0);
  bad.error = ENOSPC;
  bad.write = _i ? NULL : "/shard-001.weft.new";
  bad.sync = _i ? "/shard-001.weft.new" : NULL;
  expect(WEFT_E_IO, files_mend(&f, WEFT_STORE_REPAIR), &f);
  expect_says(&f, "shard-001.weft.new: No space left");
  ck_assert_uint_eq(f.report.mended_shards, 1);
  ck_assert_uint_eq(f.report.mended_chunks, 1);
  expect(WEFT_OK, state_of(&f, 1, &state), &f);
  ck_assert_int_eq(state, WEFT_SHARD_TRUNCATED);
  expect(WEFT_OK, state_of(&f, 4, &state), &f);
  ck_assert_int_eq(state, WEFT_SHARD_GOOD);
  bad.write = bad.sync = NULL;
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// Two shards have each other's names. If one cannot be rebuilt, its file keeps the name that the
// other should have.
START_TEST(the_only_copy_keeps_its_name) {
  files f;
  char spare[400], first[400];
  begin(&f, 74);
  snprintf(spare, sizeof spare, "%s/spare", f.root);
  snprintf(first, sizeof first, "%s", files_shard(&f, 0));
  ck_assert_int_eq(rename(first, spare), 0);
  ck_assert_int_eq(rename(files_shard(&f, 1), first), 0);
  ck_assert_int_eq(rename(spare, files_shard(&f, 1)), 0);
  bad.error = ENOSPC;
  bad.write = "/shard-001.weft.new";
  expect(WEFT_E_IO, files_mend(&f, WEFT_STORE_REPAIR), &f);
  unlink(files_shard(&f, 2));
  unlink(files_shard(&f, 3));
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// If stripes are lost, nothing is replaced, not even a shard that refuses writes.
START_TEST(nothing_is_replaced_where_stripes_are_lost) {
  files f;
  size_t count = 0;
  begin(&f, 75);
  spoil(&f);
  files_flip(files_shard(&f, 2), 256 + 7, 1);
  files_flip(files_shard(&f, 3), 256 + 7, 1);
  uint8_t *before = files_get(files_shard(&f, 1), &count);
  refuse(2);
  expect(WEFT_E_IO, files_mend(&f, WEFT_STORE_REPAIR), &f);
  ck_assert_uint_eq(f.report.lost_stripes, 1);
  ck_assert_uint_eq(f.report.mended_shards, 1);
  uint8_t *after = files_get(files_shard(&f, 1), &count);
  ck_assert(memcmp(before, after, count) == 0);
  free(before);
  free(after);
  files_end(&f);
}
END_TEST

// Nor if a stripe is inconsistent, as it may still be found out which of its chunks is old.
START_TEST(nothing_is_copied_where_stripes_contradict_themselves) {
  enum { CHUNK = 256 + SEALED };
  files f;
  size_t count = 0, now = 0;
  uint8_t patch[600];
  memset(patch, 0x5A, sizeof patch);
  begin(&f, 81);
  uint8_t *old = files_get(files_shard(&f, 1), &count);
  expect(WEFT_OK, files_update(&f, STRIPE + 10, patch, sizeof patch - 20), &f);
  uint8_t *before = files_get(files_shard(&f, 1), &now);
  memcpy(before + CHUNK, old + CHUNK, SEALED);
  files_put(files_shard(&f, 1), before, now);
  files_flip(files_shard(&f, 2), CHUNK + 7, 1);
  refuse(_i);
  if (_i == 0) // a chunk that could be mended
    files_flip(files_shard(&f, 1), 256 + 7, 1), before[256 + 7] ^= 1;
  expect(WEFT_E_IO, files_mend(&f, WEFT_STORE_REPAIR), &f);
  ck_assert_uint_eq(f.report.inconsistent_stripes, 1);
  uint8_t *after = files_get(files_shard(&f, 1), &now);
  ck_assert(memcmp(before, after, now) == 0);
  free(old);
  free(before);
  free(after);
  files_end(&f);
}
END_TEST

// Unreadable chunks are counted apart from other corrupt ones.
START_TEST(chunks_that_cannot_be_read_are_told_as_such) {
  files f;
  weft_store *store;
  begin(&f, 76);
  bad.error = EIO;
  bad.read = "/shard-001.weft";
  bad.from = 256 + 2 * SEALED;
  f.report = (weft_store_report){0};
  expect(WEFT_OK, weft_store_open(&f.options, f.folder, WEFT_STORE_READ, &f.report, &store), &f);
  expect(WEFT_E_DAMAGED, weft_store_mend(store, WEFT_STORE_VERIFY), &f);
  const weft_store_shard *shard = &weft_store_get_info(store).shards[1];
  ck_assert_uint_gt(shard->corrupt_chunks, 0);
  ck_assert_uint_eq(shard->unread_chunks, shard->corrupt_chunks);
  weft_store_close(store);
  files_end(&f);
}
END_TEST

// No update is committed that could not be carried out.
START_TEST(no_update_of_a_shard_that_is_read_only) {
  files f;
  begin(&f, 77);
  refuse(2);
  expect(WEFT_E_IO, files_update(&f, 5, (const uint8_t *)"abc", 3), &f);
  expect_says(&f, "shard-001.weft: ");
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// A shard accepted writes when the update was committed, and refuses them now. The next call fails
// for it once; then the others go on without it.
START_TEST(a_pending_update_leaves_behind_what_takes_no_writes) {
  files f;
  char journal[400];
  weft_shard_state state;
  uint8_t patch[900];
  memset(patch, 0x5A, sizeof patch);
  begin(&f, 78);
  refuse(_i % 3);
  bad.open_to_write = NULL;
  bad.from = 256;
  bad.write = _i % 3 == 1 ? NULL : "/shard-001.weft";
  expect(WEFT_E_IO, files_update(&f, 100, patch, sizeof patch), &f);
  expect_says(&f, "is committed all the same");
  memcpy(f.data + 100, patch, sizeof patch);
  snprintf(journal, sizeof journal, "%s/update.journal", f.folder);
  ck_assert_int_eq(access(journal, F_OK), 0);
  files_expect_data(&f);
  if (_i % 3 == 2)
    refuse(2);
  const bool repairs = _i >= 3;
  const weft_status status = files_mend(&f, repairs ? WEFT_STORE_REPAIR : WEFT_STORE_SCRUB);
  expect(repairs ? WEFT_OK : WEFT_E_DAMAGED, status, &f);
  ck_assert_int_ne(access(journal, F_OK), 0);
  files_expect_data(&f);
  memset(&bad, 0, sizeof bad);
  expect(WEFT_OK, state_of(&f, 1, &state), &f);
  ck_assert_int_eq(state, repairs ? WEFT_SHARD_GOOD : WEFT_SHARD_STALE);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// If only k shards accept it, the update waits: one of them may have rotted.
START_TEST(a_pending_update_waits_for_one_to_spare) {
  files f;
  uint8_t patch[900];
  memset(patch, 0xA5, sizeof patch);
  begin(&f, 79);
  unlink(files_shard(&f, 3));
  if (_i)
    unlink(files_shard(&f, 4));
  refuse(0);
  expect(WEFT_E_IO, files_update(&f, 100, patch, sizeof patch), &f);
  memcpy(f.data + 100, patch, sizeof patch);
  expect(WEFT_E_IO, files_mend(&f, WEFT_STORE_REPAIR), &f);
  expect_says(&f, "shard-001.weft: No space left");
  expect_says(&f, "or move it away and repair");
  files_expect_data(&f);
  refuse(-1);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

static char grows[400];

static ssize_t growing_read(int fd, void *out, size_t bytes) {
  const ssize_t n = read(fd, out, bytes);
  FILE *const to = n == 0 ? fopen(grows, "ab") : NULL;
  if (to) {
    fputs("more", to);
    fclose(to);
  }
  return n;
}

// An input is encoded up to the end first seen, even if it grows right after.
START_TEST(an_input_that_grows_is_taken_to_its_end) {
  files f;
  begin(&f, 80);
  files_wipe(&f);
  snprintf(grows, sizeof grows, "%s/in", f.root);
  bad_io.read = growing_read;
  expect(WEFT_OK, files_encode(&f, "cauchy", K, M, STRIPE), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("fault");
  TCase *tests = tcase_create("fault");
  tcase_add_loop_test(tests, no_shard_can_be_read, 0, 2);
  tcase_add_loop_test(tests, scrub_goes_on_past_a_shard_that_takes_no_writes, 0, 3);
  tcase_add_loop_test(tests, repair_makes_a_shard_anew_that_takes_no_writes, 0, 3);
  tcase_add_loop_test(tests, repair_leaves_out_what_cannot_be_made, 0, 2);
  tcase_add_test(tests, the_only_copy_keeps_its_name);
  tcase_add_test(tests, nothing_is_replaced_where_stripes_are_lost);
  tcase_add_loop_test(tests, nothing_is_copied_where_stripes_contradict_themselves, 0, 3);
  tcase_add_test(tests, chunks_that_cannot_be_read_are_told_as_such);
  tcase_add_loop_test(tests, a_pending_update_leaves_behind_what_takes_no_writes, 0, 6);
  tcase_add_loop_test(tests, a_pending_update_waits_for_one_to_spare, 0, 2);
  tcase_add_test(tests, no_update_of_a_shard_that_is_read_only);
  tcase_add_test(tests, an_input_that_grows_is_taken_to_its_end);
  suite_add_tcase(suite, tests);
  return test_main(suite);
}
