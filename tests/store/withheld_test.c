// SPDX-License-Identifier: Apache-2.0
// Shards that the system does not let this user open, though they may be intact: reading goes on
// without them, and no call replaces them. Other things under a shard's name are no shards.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "store/format.h"
#include "tests/store/files.h"
#include "tests/support/test_main.h"

enum { K = 3, M = 3, LENGTH = 2501, STRIPE = 600 };

// Files that cannot be opened: those whose names end with any of these.
static struct {
  const char *names[3];
  int error;
} refused;
static char journal[400]; // where an update is to end as soon as it is committed; "": nowhere

static bool is_refused(const char *path) {
  for (size_t i = 0; i < 3 && refused.names[i]; i++) {
    const size_t a = strlen(path), b = strlen(refused.names[i]);
    if (a >= b && strcmp(path + a - b, refused.names[i]) == 0)
      return true;
  }
  return false;
}

static int refusing_open(const char *path, int flags, mode_t mode) {
  if (!(flags & O_CREAT) && is_refused(path) && access(path, F_OK) == 0) {
    errno = refused.error;
    return -1;
  }
  return files_faulty_io.open(path, flags, mode);
}

static int rename_and_fail(const char *from, const char *to) {
  const int done = files_faulty_io.rename(from, to);
  if (journal[0] && strcmp(to, journal) == 0)
    files_faults = (files_fault){.fail_at = 1, .error = EIO};
  return done;
}

static weft_store_io io;

static void begin(files *f, uint64_t salt) {
  memset(&refused, 0, sizeof refused);
  journal[0] = 0;
  files_start(f, salt, LENGTH);
  io = files_faulty_io;
  io.open = refusing_open;
  io.rename = rename_and_fail;
  f->options.io = &io;
  expect(WEFT_OK, files_encode(f, "cauchy", K, M, STRIPE), f);
}

static void refuse(const char *name, int error) {
  refused.names[0] = name;
  refused.error = error;
}

static void says(const files *f, const char *what) {
  ck_assert_msg(strstr(f->report.error, what), "'%s' is not in '%s'", what, f->report.error);
}

static void commit_only(files *f, size_t at, const uint8_t *patch, size_t bytes) {
  snprintf(journal, sizeof journal, "%s/update.journal", f->folder);
  expect(WEFT_E_IO, files_update(f, at, patch, bytes), f);
  files_faults = (files_fault){0};
  memcpy(f->data + at, patch, bytes);
}

static ino_t file_of(const files *f, size_t shard) {
  struct stat about;
  ck_assert_int_eq(stat(files_shard(f, shard), &about), 0);
  return about.st_ino;
}

// Whether the shard of an open set is in this state, and withheld with this errno.
static void expect_state(files *f, size_t shard, weft_shard_state state, int error) {
  weft_store *store;
  f->report = (weft_store_report){0};
  expect(WEFT_OK, weft_store_open(&f->options, f->folder, WEFT_STORE_READ, &f->report, &store), f);
  const weft_store_shard *s = &weft_store_get_info(store).shards[shard];
  ck_assert_msg(s->state == state, "%s: %s", weft_shard_state_name(s->state), s->text);
  ck_assert_int_eq(s->read_error, error);
  weft_store_close(store);
}

// What says nothing about the shard: it is not replaced, while all others are mended.
static const int outside[] = {EACCES, EPERM,     EAGAIN,   ENOKEY,
                              ESTALE, ETIMEDOUT, ENOTCONN, EHOSTDOWN};
enum { OUTSIDE = sizeof outside / sizeof *outside };

START_TEST(one_is_withheld_and_the_others_are_mended) {
  files f;
  uint8_t patch[100];
  memset(patch, 0x5A, sizeof patch);
  begin(&f, 120);
  const ino_t before = file_of(&f, 1);
  files_flip(files_shard(&f, 1), 256 + 7, 1); // withheld, and damaged too: no one can know
  size_t bytes = 0, now = 0;
  uint8_t *held = files_get(files_shard(&f, 1), &bytes);
  unlink(files_shard(&f, 4));
  files_flip(files_shard(&f, 2), 256 + 7, 1);
  refuse("/shard-001.weft", outside[_i]);
  expect_state(&f, 1, WEFT_SHARD_UNREADABLE, outside[_i]);
  files_expect_data(&f);
  expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_VERIFY), &f);
  says(&f, "3 of 6 shards are damaged, missing or unreadable; the file is whole");
  expect(WEFT_E_IO, files_update(&f, 700, patch, sizeof patch), &f);
  says(&f, "nothing was changed");
  files_expect_data(&f);
  expect(WEFT_E_IO, files_mend(&f, WEFT_STORE_SCRUB), &f);
  ck_assert_uint_eq(f.report.mended_chunks, 1);
  says(&f, strerror(outside[_i]));
  expect(WEFT_E_IO, files_mend(&f, WEFT_STORE_REPAIR), &f);
  ck_assert_uint_eq(f.report.mended_shards, 1);
  says(&f, "/shard-001.weft: ");
  says(&f, strerror(outside[_i]));
  says(&f, "it was left as it is");
  ck_assert_uint_eq(file_of(&f, 1), before);
  uint8_t *after = files_get(files_shard(&f, 1), &now);
  ck_assert(now == bytes && memcmp(held, after, bytes) == 0);
  refuse(NULL, 0);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  ck_assert_uint_eq(f.report.mended_chunks, 1);
  ck_assert_uint_eq(f.report.mended_shards, 0);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  free(held);
  free(after);
  files_end(&f);
}
END_TEST

// A file that a disk cannot open is replaced.
START_TEST(a_bad_disk_is_no_refusal) {
  files f;
  begin(&f, 121);
  refuse("/shard-001.weft", EIO);
  files_expect_data(&f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  ck_assert_uint_eq(f.report.mended_shards, 1);
  files_end(&f);
}
END_TEST

// Too few are left without those that are withheld: that is no damage, unless they would not
// suffice either.
START_TEST(too_many_are_withheld) {
  files f;
  uint8_t *out;
  size_t count;
  begin(&f, 122);
  unlink(files_shard(&f, 5));
  files_flip(files_shard(&f, 4), 256 + 7, 1);
  refused.names[0] = "/shard-000.weft";
  refused.names[1] = "/shard-001.weft";
  refused.error = EACCES;
  for (int damaged = 0; damaged < 2; damaged++) {
    expect(damaged ? WEFT_E_DAMAGED : WEFT_E_IO, files_read(&f, 0, UINT64_MAX, &out, &count), &f);
    says(&f, "2 cannot be read (shard-000.weft: Permission denied)");
    ck_assert_uint_eq(f.report.lost_stripes, damaged ? 1 : 0);
    for (int care = WEFT_STORE_VERIFY; care <= WEFT_STORE_REPAIR; care++) {
      expect(WEFT_E_IO, files_mend(&f, (weft_store_care)care), &f);
      says(&f, "/shard-000.weft: Permission denied (and 1 other shard): it is needed");
      ck_assert_uint_eq(f.report.lost_stripes, 1);
    }
    for (size_t i = 2; i < 4; i++)
      files_flip(files_shard(&f, i), 256 + 7, 1);
  }
  memset(&refused, 0, sizeof refused);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// A pending update is carried out without the shard only if more than k others are there.
START_TEST(withheld_while_an_update_is_pending) {
  files f;
  uint8_t patch[900];
  memset(patch, 0xA5, sizeof patch);
  begin(&f, 123);
  commit_only(&f, 100, patch, sizeof patch);
  refuse("/shard-001.weft", EACCES);
  files_expect_data(&f);
  if (_i) {
    unlink(files_shard(&f, 3));
    unlink(files_shard(&f, 4));
    for (int scrubs = 0; scrubs < 2; scrubs++) {
      expect(WEFT_E_IO, files_mend(&f, scrubs ? WEFT_STORE_SCRUB : WEFT_STORE_REPAIR), &f);
      says(&f, "/shard-001.weft: Permission denied; an update needs it");
      ck_assert_int_eq(access(journal, F_OK), 0);
    }
  } else {
    expect(WEFT_E_IO, files_mend(&f, WEFT_STORE_REPAIR), &f);
    says(&f, "it was left as it is");
    ck_assert_int_ne(access(journal, F_OK), 0);
  }
  files_expect_data(&f);
  refuse(NULL, 0);
  if (!_i)
    expect_state(&f, 1, WEFT_SHARD_STALE, 0);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// The disk with the journal goes away while it is read: that is no damage, and nothing is done
// without it.
static off_t cut_off;

static ssize_t read_journal_up_to(int fd, const struct iovec *parts, int count, off_t offset) {
  struct stat its, about;
  if (offset >= cut_off && fstat(fd, &its) == 0 && stat(journal, &about) == 0 &&
      its.st_ino == about.st_ino) {
    errno = ETIMEDOUT;
    return -1;
  }
  return files_faulty_io.preadv(fd, parts, count, offset);
}

START_TEST(the_journal_is_withheld) {
  files f;
  uint8_t patch[900], *out;
  size_t count;
  memset(patch, 0x5A, sizeof patch);
  begin(&f, 128);
  commit_only(&f, 100, patch, sizeof patch);
  io.preadv = read_journal_up_to;
  cut_off = _i ? WEFT_STORE_JOURNAL_BYTES : 0; // its first record, or its head
  expect(WEFT_E_IO, files_read(&f, 0, UINT64_MAX, &out, &count), &f);
  says(&f, "/update.journal: Connection timed out");
  expect(WEFT_E_IO, files_mend(&f, WEFT_STORE_SCRUB), &f);
  ck_assert_int_eq(access(journal, F_OK), 0);
  io.preadv = files_faulty_io.preadv;
  files_expect_data(&f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_SCRUB), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// What a killed call left under .new stays, too: it may be the shard's only copy.
START_TEST(a_leftover_is_withheld) {
  files f;
  char fresh[410];
  begin(&f, 124);
  snprintf(fresh, sizeof fresh, "%s.new", files_shard(&f, 1));
  if (_i == 0) // the only copy
    ck_assert_int_eq(rename(files_shard(&f, 1), fresh), 0);
  else // beside a truncated one
    files_copy(files_shard(&f, 1), fresh);
  if (_i == 1)
    ck_assert_int_eq(truncate(files_shard(&f, 1), 300), 0);
  refuse("/shard-001.weft.new", EACCES);
  if (_i == 2) { // of no use
    expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  } else {
    expect(WEFT_E_IO, files_mend(&f, WEFT_STORE_REPAIR), &f);
    says(&f, "shard-001.weft.new: Permission denied");
  }
  ck_assert_int_eq(access(fresh, F_OK), 0);
  refuse(NULL, 0);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  ck_assert_int_ne(access(fresh, F_OK), 0);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// A leftover that counts does not take the name of a withheld file.
START_TEST(the_name_is_withheld) {
  files f;
  char fresh[410];
  begin(&f, 125);
  const ino_t before = file_of(&f, 1);
  snprintf(fresh, sizeof fresh, "%s.new", files_shard(&f, 1));
  files_copy(files_shard(&f, 1), fresh);
  refuse("/shard-001.weft", EACCES);
  files_expect_data(&f);
  for (int care = WEFT_STORE_SCRUB; care <= WEFT_STORE_REPAIR; care++) {
    expect(WEFT_E_IO, files_mend(&f, (weft_store_care)care), &f);
    says(&f, "/shard-001.weft: Permission denied");
    ck_assert_uint_eq(file_of(&f, 1), before);
    ck_assert_int_eq(access(fresh, F_OK), 0);
  }
  refuse(NULL, 0);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_SCRUB), &f);
  ck_assert_int_ne(access(fresh, F_OK), 0);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_end(&f);
}
END_TEST

// In the folder itself: the address of a socket has no room for long paths.
static void put_socket(const files *f, const char *name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0), here = open(".", O_RDONLY | O_DIRECTORY);
  ck_assert(fd >= 0 && here >= 0 && chdir(f->folder) == 0);
  snprintf(address.sun_path, sizeof address.sun_path, "%s", name);
  ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  ck_assert_int_eq(fchdir(here), 0);
  close(fd);
  close(here);
}

// Whatever else has a shard's name is named, never waited for, and replaced by repair, which also
// reports links.
START_TEST(something_else_has_the_name) {
  static const char *const texts[] = {"it is a pipe", "it is a socket",
                                      "Too many levels of symbolic links",
                                      "it is missing: its link leads nowhere"};
  files f;
  weft_shard_state state;
  char text[WEFT_STORE_TEXT_BYTES];
  weft_store *store = NULL;
  begin(&f, 126);
  const char *path = files_shard(&f, 1);
  unlink(path);
  if (_i == 0)
    ck_assert_int_eq(mkfifo(path, 0666), 0);
  else if (_i == 1)
    put_socket(&f, "shard-001.weft");
  else
    ck_assert_int_eq(symlink(_i == 2 ? "shard-001.weft" : "/nowhere/at/all", path), 0);
  files_expect_data(&f);
  expect(WEFT_OK, files_state(&f, 1, &state, text), &f);
  ck_assert_int_eq(state, _i < 3 ? WEFT_SHARD_UNREADABLE : WEFT_SHARD_MISSING);
  ck_assert_msg(strstr(text, texts[_i]), "%s", text);
  expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_VERIFY), &f);
  f.report = (weft_store_report){0};
  expect(WEFT_OK, weft_store_open(&f.options, f.folder, WEFT_STORE_WRITE, &f.report, &store), &f);
  expect(WEFT_OK, weft_store_mend(store, WEFT_STORE_REPAIR), &f);
  ck_assert_int_eq(weft_store_get_info(store).shards[1].was_link, _i >= 2);
  weft_store_close(store);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  // As a journal it is refused at once, too.
  snprintf(journal, sizeof journal, "%s/update.journal", f.folder);
  if (_i == 0) {
    ck_assert_int_eq(mkfifo(journal, 0666), 0);
    expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_VERIFY), &f);
    says(&f, "update.journal is not a regular file");
  }
  files_end(&f);
}
END_TEST

// As long as an update is pending, verify does not report that all is well: everything depends on
// one journal.
START_TEST(verify_reports_a_pending_update) {
  files f;
  uint8_t patch[900];
  memset(patch, 0x3C, sizeof patch);
  begin(&f, 127);
  commit_only(&f, 100, patch, sizeof patch);
  expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_VERIFY), &f);
  says(&f, "the file is whole, but an update is pending");
  ck_assert_uint_eq(f.report.corrupt_chunks + f.report.lost_stripes, 0);
  files_expect_data(&f);
  unlink(files_shard(&f, 1));
  expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_VERIFY), &f);
  says(&f, "1 of 6 shards is damaged, missing or unreadable");
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("withheld");
  TCase *tests = tcase_create("withheld");
  tcase_add_loop_test(tests, one_is_withheld_and_the_others_are_mended, 0, OUTSIDE);
  tcase_add_test(tests, a_bad_disk_is_no_refusal);
  tcase_add_test(tests, too_many_are_withheld);
  tcase_add_loop_test(tests, withheld_while_an_update_is_pending, 0, 2);
  tcase_add_loop_test(tests, the_journal_is_withheld, 0, 2);
  tcase_add_loop_test(tests, a_leftover_is_withheld, 0, 3);
  tcase_add_test(tests, the_name_is_withheld);
  tcase_add_loop_test(tests, something_else_has_the_name, 0, 4);
  tcase_add_test(tests, verify_reports_a_pending_update);
  suite_add_tcase(suite, tests);
  return test_main(suite);
}
