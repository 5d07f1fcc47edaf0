// SPDX-License-Identifier: Apache-2.0
// Updates whose input is not as expected, or that fail on a set that stays open: the state is
// reported, and nothing is sealed twice under one key.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/store/files.h"
#include "tests/support/test_main.h"

enum { LENGTH = 5000, STRIPE = 1000, AT = 1200, PATCH = 1500 };

static uint8_t patch[PATCH];

static void begin(files *f, uint64_t salt) {
  files_start(f, salt, LENGTH);
  memset(patch, 0xA5, sizeof patch);
  expect(WEFT_OK, files_encode(f, "cauchy", 4, 2, STRIPE), f);
}

static const char *journal(const files *f, const char *end) {
  static char path[400];
  snprintf(path, sizeof path, "%s/update.journal%s", f->folder, end);
  return path;
}

// Checks that nothing has changed, and nothing is left over.
static void expect_untouched(files *f) {
  ck_assert_int_ne(access(journal(f, ""), F_OK), 0);
  ck_assert_int_ne(access(journal(f, ".new"), F_OK), 0);
  files_expect_data(f);
  expect(WEFT_OK, files_mend(f, WEFT_STORE_VERIFY), f);
}

// An update through `io` fails, reports `why`, and changes nothing.
static void expect_refused(files *f, const weft_store_io *io, const uint8_t *bytes, size_t count,
                           const char *why) {
  f->options.io = io;
  expect(WEFT_E_IO, files_update(f, AT, bytes, count), f);
  ck_assert_msg(strstr(f->report.error, why), "%s", f->report.error);
  f->options.io = &files_faulty_io;
  expect_untouched(f);
}

// Reads from a terminal, a pipe with a second writer, or a file that is being appended to.
static int reads;

static ssize_t read_growing(int fd, void *out, size_t bytes) {
  if (++reads == 2)
    return 0;
  return read(fd, out, reads == 1 && bytes > 100 ? 100 : bytes);
}

// An update whose input grows past its first end is refused.
START_TEST(input_that_grows) {
  files f;
  begin(&f, 40);
  weft_store_io io = files_faulty_io;
  io.read = read_growing;
  reads = 0;
  expect_refused(&f, &io, patch, PATCH, "the input grew after its end was reached");
  expect(WEFT_OK, files_update(&f, AT, patch, PATCH), &f);
  memcpy(f.data + AT, patch, PATCH);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// An update that cannot be carried out is not committed.
static ssize_t write_spoilt(int fd, const struct iovec *parts, int count, off_t offset) {
  uint8_t spoilt[WEFT_STORE_RECORD_BYTES];
  if (count != 1 || parts[0].iov_len != sizeof spoilt)
    return files_faulty_io.pwritev(fd, parts, count, offset);
  memcpy(spoilt, parts[0].iov_base, sizeof spoilt);
  spoilt[7] ^= 1; // a record's head, on a bad disk
  const struct iovec part = {.iov_base = spoilt, .iov_len = sizeof spoilt};
  return files_faulty_io.pwritev(fd, &part, 1, offset);
}

START_TEST(journal_that_cannot_be_carried_out) {
  files f;
  begin(&f, 41);
  weft_store_io io = files_faulty_io;
  io.pwritev = write_spoilt;
  expect_refused(&f, &io, patch, PATCH, "update.journal.new is corrupt when read back");
  files_end(&f);
}
END_TEST

// A file that is truncated while it is read.
static ssize_t read_cut(int fd, void *out, size_t bytes) {
  if (++reads > 2)
    return 0;
  return read(fd, out, bytes);
}

START_TEST(input_that_is_cut) {
  files f;
  begin(&f, 44);
  weft_store_io io = files_faulty_io;
  io.read = read_cut;
  reads = 0;
  expect_refused(&f, &io, f.data, LENGTH - AT,
                 "the input had 3800 bytes when it was opened, and 1800 when it was read");
  files_end(&f);
}
END_TEST

static bool asked;

static int open_and_watch(const char *path, int flags, mode_t mode) {
  asked |= (flags & O_CREAT) != 0;
  return files_faulty_io.open(path, flags, mode);
}

// Input that reaches past the end of the data is refused before a journal of its size is written.
START_TEST(input_that_is_too_long) {
  files f;
  begin(&f, 45);
  weft_store_io io = files_faulty_io;
  io.open = open_and_watch;
  f.options.io = &io;
  expect(WEFT_E_ARGUMENT, files_update(&f, AT, f.data, LENGTH - AT + 1), &f);
  ck_assert_msg(strstr(f.report.error, "go past the end of the data"), "%s", f.report.error);
  expect(WEFT_E_ARGUMENT, files_update(&f, LENGTH + 1, f.data, 1), &f);
  ck_assert_msg(strstr(f.report.error, "offset 5001 is past the end"), "%s", f.report.error);
  ck_assert(!asked);
  f.options.io = &files_faulty_io;
  expect_untouched(&f);
  files_end(&f);
}
END_TEST

static bool committed;

static int rename_and_tell(const char *from, const char *to) {
  committed = true;
  return files_faulty_io.rename(from, to);
}

static int fsync_no_names(int fd) {
  struct stat about;
  if (committed && fstat(fd, &about) == 0 && S_ISDIR(about.st_mode)) {
    errno = EIO;
    return -1;
  }
  return files_faulty_io.fsync(fd);
}

// No chunk is written before the journal's name is on the disk: a power failure could otherwise
// leave chunks half written, and nothing to complete them from.
START_TEST(name_that_cannot_be_synced) {
  files f;
  begin(&f, 49);
  uint8_t *before[6];
  size_t bytes[6], count = 0;
  for (size_t i = 0; i < 6; i++)
    before[i] = files_get(files_shard(&f, i), &bytes[i]);
  weft_store_io io = files_faulty_io;
  io.rename = rename_and_tell;
  io.fsync = fsync_no_names;
  committed = false;
  f.options.io = &io;
  expect(WEFT_E_IO, files_update(&f, AT, patch, PATCH), &f);
  ck_assert_msg(strstr(f.report.error, "the update is committed"), "%s", f.report.error);
  for (size_t i = 0; i < 6; i++) {
    uint8_t *now = files_get(files_shard(&f, i), &count);
    ck_assert(count == bytes[i] && memcmp(now, before[i], count) == 0);
    free(now);
    free(before[i]);
  }
  f.options.io = &files_faulty_io;
  memcpy(f.data + AT, patch, PATCH);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// --- Several calls on one set that stays open

static weft_store *open_set(files *f) {
  weft_store *store;
  f->report = (weft_store_report){0};
  expect(WEFT_OK, weft_store_open(&f->options, f->folder, WEFT_STORE_WRITE, &f->report, &store), f);
  return store;
}

static weft_status update_open(files *f, weft_store *store, const uint8_t *bytes) {
  char path[300];
  snprintf(path, sizeof path, "%s/in", f->root);
  files_put(path, bytes, PATCH);
  const int fd = open(path, O_RDONLY);
  ck_assert_int_ge(fd, 0);
  const weft_status status = weft_store_update(store, AT, fd, 0);
  close(fd);
  return status;
}

// Keeps the journal and does not rename it.
static char kept[400];

static int keep_and_fail(const char *from, const char *to) {
  (void)to;
  files_copy(from, kept);
  errno = EIO;
  return -1;
}

// An update repeated with other bytes uses other nonces.
START_TEST(retried_with_other_bytes) {
  enum { FIRST = WEFT_STORE_JOURNAL_BYTES + WEFT_STORE_RECORD_BYTES, CHUNK = STRIPE / 4 };
  files f;
  uint8_t other[PATCH], *held[2];
  size_t bytes[2] = {0};
  begin(&f, 42);
  memset(other, 0x5B, sizeof other);
  weft_store_io io = files_faulty_io;
  io.rename = keep_and_fail;
  f.options.io = &io;
  weft_store *store = open_set(&f);
  for (int i = 0; i < 2; i++) {
    snprintf(kept, sizeof kept, "%s/kept-%d", f.root, i);
    expect(WEFT_E_IO, update_open(&f, store, i ? other : patch), &f);
    held[i] = files_get(kept, &bytes[i]);
    ck_assert(held[i] && bytes[i] > FIRST + CHUNK + WEFT_STORE_TRAILER_BYTES);
    unlink(kept);
  }
  weft_store_close(store);
  ck_assert_msg(memcmp(held[0] + FIRST, held[1] + FIRST, CHUNK) != 0, "the same chunk");
  ck_assert_msg(memcmp(held[0] + FIRST + CHUNK, held[1] + FIRST + CHUNK, 16) != 0,
                "two messages under one key: the same generation and nonce");
  free(held[0]);
  free(held[1]);
  f.options.io = &files_faulty_io;
  expect_untouched(&f);
  files_end(&f);
}
END_TEST

// Fails once the update is committed.
static int rename_and_fail(const char *from, const char *to) {
  const int done = rename(from, to);
  files_faults = (files_fault){.fail_at = 1, .error = EIO};
  return done;
}

// After an update that was committed but not carried out, the open store refuses every call.
START_TEST(nothing_after_one_that_holds) {
  files f;
  uint8_t other[PATCH];
  begin(&f, 43);
  memset(other, 0x5B, sizeof other);
  weft_store_io io = files_faulty_io;
  io.rename = rename_and_fail;
  f.options.io = &io;
  weft_store *store = open_set(&f);
  expect(WEFT_E_IO, update_open(&f, store, patch), &f);
  ck_assert_msg(strstr(f.report.error, "the update is committed"), "%s", f.report.error);
  files_faults = (files_fault){0};
  expect(WEFT_E_STATE, update_open(&f, store, other), &f);
  ck_assert_msg(strstr(f.report.error, "reopen it"), "%s", f.report.error);
  expect(WEFT_E_STATE, weft_store_mend(store, WEFT_STORE_SCRUB), &f);
  expect(WEFT_E_STATE, weft_store_read(store, 0, 1, -1, true), &f);
  expect(WEFT_E_STATE, weft_store_decode(store, 0, 1, "/nonexistent"), &f);
  weft_store_close(store);
  f.options.io = &files_faulty_io;
  memcpy(f.data + AT, patch, PATCH);
  files_expect_data(&f);
  expect(WEFT_OK, files_update(&f, AT, other, PATCH), &f);
  memcpy(f.data + AT, other, PATCH);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// --- Inconsistent stripes

enum { SEALED = STRIPE / 4 + WEFT_STORE_TRAILER_BYTES, FIRST_CHUNK = WEFT_STORE_HEADER_BYTES };

static weft_status put_data(files *f, uint64_t offset, size_t count) {
  return files_update(f, offset, f->data + offset, count);
}

// Updates stripe 1, and restores the chunks of `count` shards, as if their disks had lost the
// update.
static void leave_in_the_past(files *f, uint64_t salt, size_t first, size_t count) {
  uint8_t *old[6];
  size_t bytes = 0, now = 0;
  begin(f, salt);
  for (size_t i = 0; i < count; i++)
    old[i] = files_get(files_shard(f, first + i), &bytes);
  f->data[STRIPE + 250] ^= 1; // in shard 1
  expect(WEFT_OK, put_data(f, STRIPE + 250, 1), f);
  for (size_t i = 0; i < count; i++) {
    uint8_t *held = files_get(files_shard(f, first + i), &now);
    ck_assert(bytes == now);
    memcpy(held + FIRST_CHUNK + SEALED, old[i] + FIRST_CHUNK + SEALED, SEALED);
    files_put(files_shard(f, first + i), held, now);
    free(old[i]);
    free(held);
  }
}

// Makes stripe 1 inconsistent: shard 1 has a sound but old chunk, and shard 2 a rotted one.
static void contradict(files *f, uint64_t salt) {
  leave_in_the_past(f, salt, 1, 1);
  files_flip(files_shard(f, 2), FIRST_CHUNK + SEALED + 7, 1);
}

// Anything rebuilt with an old chunk is wrong, and must not be sealed as good.
START_TEST(stripe_that_contradicts_itself) {
  files f;
  contradict(&f, 46);
  expect(WEFT_E_DAMAGED, put_data(&f, STRIPE + 600, 10), &f); // in shard 2
  ck_assert_msg(strstr(f.report.error, "stripe 1: "), "%s", f.report.error);
  ck_assert_uint_eq(f.report.inconsistent_stripes, 1);
  ck_assert_int_ne(access(journal(&f, ""), F_OK), 0);
  ck_assert_int_ne(access(journal(&f, ".new"), F_OK), 0);
  expect(WEFT_OK, put_data(&f, 2 * STRIPE, 700), &f); // another stripe
  unlink(files_shard(&f, 1));                         // by a user who knows which it is
  expect(WEFT_OK, put_data(&f, STRIPE + 600, 10), &f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// An update that replaces all bytes of a stripe needs nothing that is left of it.
START_TEST(stripe_that_is_replaced) {
  files f;
  contradict(&f, 48);
  expect(WEFT_OK, put_data(&f, STRIPE, STRIPE), &f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_expect_data(&f);
  unlink(files_shard(&f, 1)); // k shards are left, with a chunk too few of this stripe
  unlink(files_shard(&f, 5));
  files_flip(files_shard(&f, 0), FIRST_CHUNK + SEALED + 7, 1);
  expect(WEFT_OK, put_data(&f, STRIPE, STRIPE), &f);
  files_expect_data(&f);
  files_wipe(&f);
  f.length = LENGTH - 300; // the last stripe is incomplete
  expect(WEFT_OK, files_encode(&f, "cauchy", 4, 2, STRIPE), &f);
  for (size_t i = 0; i < 3; i++)
    files_flip(files_shard(&f, i), FIRST_CHUNK + 4 * SEALED + 7, 1);
  expect(WEFT_E_DAMAGED, put_data(&f, f.length - 200, 200), &f);
  ck_assert_msg(strstr(f.report.error, "fewer than 4"), "%s", f.report.error);
  unlink(files_shard(&f, 5));
  expect(WEFT_OK, put_data(&f, 3 * STRIPE + 900, 800), &f); // as part of a longer update
  files_expect_data(&f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// An old parity chunk is recomputed rather than updated: sealed with the others, it would be as new
// as they, and nothing could tell any more which is wrong.
START_TEST(parity_of_the_past) {
  files f;
  leave_in_the_past(&f, 50, 4, 1);
  f.data[STRIPE + 600] ^= 1; // in shard 2
  expect(WEFT_OK, put_data(&f, STRIPE + 600, 1), &f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  unlink(files_shard(&f, 0));
  files_expect_data(&f);
  files_end(&f);
  // With k + 1 chunks, nothing tells which one is old.
  leave_in_the_past(&f, 51, 4, 1);
  char spare[400];
  snprintf(spare, sizeof spare, "%s/spare", f.root);
  ck_assert_int_eq(rename(files_shard(&f, 0), spare), 0);
  expect(WEFT_E_DAMAGED, put_data(&f, STRIPE + 600, 1), &f);
  ck_assert_msg(strstr(f.report.error, "stripe 1: "), "%s", f.report.error);
  ck_assert_int_eq(rename(spare, files_shard(&f, 0)), 0);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_SCRUB), &f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// All parity has lost an update: its chunk would count as older than the next update, and the other
// chunks, which agree without it, would undo it. The next update is therefore refused.
START_TEST(all_parity_of_the_past) {
  files f;
  leave_in_the_past(&f, 52, 4, 2);
  expect(WEFT_E_DAMAGED, put_data(&f, STRIPE + 600, 1), &f); // in shard 2
  ck_assert_msg(strstr(f.report.error, "stripe 1: "), "%s", f.report.error);
  expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_SCRUB), &f);
  ck_assert_uint_eq(f.report.inconsistent_stripes, 1);
  files_expect_data(&f);
  expect(WEFT_OK, put_data(&f, STRIPE, STRIPE), &f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_end(&f);
}
END_TEST

// An update of a consistent stripe reads the chunks that it changes, and trailers of the others if
// there was an update before, which a chunk could be older than.
START_TEST(reads_what_it_changes) {
  files f;
  begin(&f, 53);
  for (int i = 0; i < 2; i++) { // shards 0 and 1; 1 is then older than parity
    f.data[STRIPE + 250 * i] ^= 1;
    expect(WEFT_OK, put_data(&f, STRIPE + 250 * (uint64_t)i, 1), &f);
    ck_assert_uint_eq(f.report.shard_bytes_read,
                      3 * SEALED + (i > 0 ? 3 * WEFT_STORE_TRAILER_BYTES : 0));
  }
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// A set has either one writer or any number of readers.
START_TEST(writers_are_alone) {
  files f;
  begin(&f, 71);
  for (int first = 0; first < 2; first++)
    for (int second = 0; second < 2; second++) {
      weft_store *store;
      weft_store_report report = {0};
      const bool both_read = !first && !second;
      expect(WEFT_OK,
             weft_store_open(&f.options, f.folder, first ? WEFT_STORE_WRITE : WEFT_STORE_READ,
                             &report, &store),
             &f);
      expect(both_read ? WEFT_OK : WEFT_E_IO,
             files_mend(&f, second ? WEFT_STORE_SCRUB : WEFT_STORE_VERIFY), &f);
      ck_assert_msg(both_read || strstr(f.report.error, "another weft is at work"), "%s",
                    f.report.error);
      weft_store_close(store);
      expect(WEFT_OK, files_mend(&f, WEFT_STORE_SCRUB), &f);
    }
  files_end(&f);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("update");
  TCase *tests = tcase_create("update");
  tcase_add_test(tests, input_that_grows);
  tcase_add_test(tests, journal_that_cannot_be_carried_out);
  tcase_add_test(tests, input_that_is_cut);
  tcase_add_test(tests, input_that_is_too_long);
  tcase_add_test(tests, name_that_cannot_be_synced);
  tcase_add_test(tests, retried_with_other_bytes);
  tcase_add_test(tests, nothing_after_one_that_holds);
  tcase_add_test(tests, stripe_that_contradicts_itself);
  tcase_add_test(tests, stripe_that_is_replaced);
  tcase_add_test(tests, reads_what_it_changes);
  tcase_add_test(tests, parity_of_the_past);
  tcase_add_test(tests, all_parity_of_the_past);
  tcase_add_test(tests, writers_are_alone);
  suite_add_tcase(suite, tests);
  return test_main(suite);
}
