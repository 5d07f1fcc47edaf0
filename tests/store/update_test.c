// SPDX-License-Identifier: Apache-2.0
// Updates whose input is not what it was taken for, or that fail on a set that stays open: what
// holds is said, and nothing is sealed twice under one key.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/store/files.h"
#include "tests/support/test_main.h"

enum { LENGTH = 5000, STRIPE = 1000, AT = 1200, PATCH = 1500 };

static uint8_t patch[PATCH];

static void expect(weft_status wanted, weft_status got, const files *f) {
  ck_assert_msg(got == wanted, "%s, not %s: %s", weft_status_name(got), weft_status_name(wanted),
                f->report.error);
}

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

// Nothing was changed, and nothing is left.
static void expect_untouched(files *f) {
  ck_assert_int_ne(access(journal(f, ""), F_OK), 0);
  ck_assert_int_ne(access(journal(f, ".new"), F_OK), 0);
  files_expect_data(f);
  expect(WEFT_OK, files_mend(f, WEFT_STORE_VERIFY), f);
}

// A terminal, a pipe with a second writer, a file that somebody appends to.
static int reads;

static ssize_t read_growing(int fd, void *out, size_t bytes) {
  if (++reads == 2)
    return 0;
  return read(fd, out, reads == 1 && bytes > 100 ? 100 : bytes);
}

START_TEST(input_that_grows) {
  files f;
  begin(&f, 40);
  weft_store_io io = files_faulty_io;
  io.read = read_growing;
  f.options.io = &io;
  expect(WEFT_E_IO, files_update(&f, AT, patch, PATCH), &f);
  ck_assert_msg(strstr(f.report.error, "the input grew after its end was met"), "%s",
                f.report.error);
  f.options.io = &files_faulty_io;
  expect_untouched(&f);
  expect(WEFT_OK, files_update(&f, AT, patch, PATCH), &f);
  memcpy(f.data + AT, patch, PATCH);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// What cannot be carried out does not begin to hold.
static ssize_t write_spoilt(int fd, const struct iovec *parts, int count, off_t offset) {
  uint8_t spoilt[WEFT_STORE_RECORD_BYTES];
  if (count != 1 || parts[0].iov_len != sizeof spoilt)
    return files_faulty_io.pwritev(fd, parts, count, offset);
  memcpy(spoilt, parts[0].iov_base, sizeof spoilt);
  spoilt[7] ^= 1; // a record's head on a bad disk
  const struct iovec part = {.iov_base = spoilt, .iov_len = sizeof spoilt};
  return files_faulty_io.pwritev(fd, &part, 1, offset);
}

START_TEST(journal_that_cannot_be_carried_out) {
  files f;
  begin(&f, 41);
  weft_store_io io = files_faulty_io;
  io.pwritev = write_spoilt;
  f.options.io = &io;
  expect(WEFT_E_IO, files_update(&f, AT, patch, PATCH), &f);
  ck_assert_msg(strstr(f.report.error, "update.journal.new is corrupt as it is read back"), "%s",
                f.report.error);
  f.options.io = &files_faulty_io;
  expect_untouched(&f);
  files_end(&f);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("update");
  TCase *tests = tcase_create("update");
  tcase_add_test(tests, input_that_grows);
  tcase_add_test(tests, journal_that_cannot_be_carried_out);
  suite_add_tcase(suite, tests);
  return test_main(suite);
}
