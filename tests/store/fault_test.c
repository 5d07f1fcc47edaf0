// SPDX-License-Identifier: Apache-2.0
// One shard's disk that fails while the others work: it opens for nobody or for reading alone,
// refuses writes or syncs, or has bytes that cannot be read. All else is mended, and that shard is
// named.
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

// What fails of files whose path ends with these; NULL: nothing.
static struct {
  const char *open, *open_to_write, *write, *sync, *read;
  off_t from; // of read and write
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

static void expect(weft_status wanted, weft_status got, const files *f) {
  ck_assert_msg(got == wanted, "%s, not %s: %s", weft_status_name(got), weft_status_name(wanted),
                f->report.error);
}

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

// Of a set that nobody may read nobody knows whether it is damaged.
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
  // Where others are damaged for certain, both are told.
  for (size_t i = 1; i < K + M; i++)
    files_flip(files_shard(&f, i), 100, 1);
  bad.open = _i ? NULL : "/shard-000";
  bad.read = _i ? "/shard-000.weft" : NULL;
  expect(WEFT_E_DAMAGED, files_read(&f, 0, UINT64_MAX, &out, &count), &f);
  expect_says(&f, "intact header");
  expect_says(&f, strerror(bad.error));
  files_end(&f);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("fault");
  TCase *tests = tcase_create("fault");
  tcase_add_loop_test(tests, no_shard_can_be_read, 0, 2);
  suite_add_tcase(suite, tests);
  return test_main(suite);
}
