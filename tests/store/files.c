// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE // preadv, pwritev, mkdtemp
#include "tests/store/files.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/test_rng.h"

void files_start(files *f, uint64_t salt, size_t length) {
  const char *tmp = getenv("TEST_TMPDIR");
  memset(f, 0, sizeof *f);
  snprintf(f->root, sizeof f->root, "%s/storeXXXXXX", tmp ? tmp : "/tmp");
  ck_assert_ptr_nonnull(mkdtemp(f->root));
  snprintf(f->folder, sizeof f->folder, "%s/d", f->root);
  ck_assert_int_eq(weft_ctx_new(&f->ctx, NULL), WEFT_OK);
  f->options = (weft_store_options){.ctx = f->ctx, .io = &files_faulty_io, .threads = 2};
  f->length = length;
  f->data = malloc(length + 1);
  ck_assert_ptr_nonnull(f->data);
  test_rng rng = test_rng_new(test_seed(), salt);
  test_rng_fill(&rng, f->data, length);
}

void files_wipe(files *f) {
  DIR *d = opendir(f->folder);
  char path[600];
  for (struct dirent *e; d && (e = readdir(d));) {
    snprintf(path, sizeof path, "%s/%s", f->folder, e->d_name);
    unlink(path);
  }
  if (d)
    closedir(d);
  rmdir(f->folder);
}

void files_end(files *f) {
  char path[300];
  files_wipe(f);
  snprintf(path, sizeof path, "%s/in", f->root);
  unlink(path);
  snprintf(path, sizeof path, "%s/out", f->root);
  unlink(path);
  rmdir(f->root);
  weft_ctx_free(f->ctx);
  free(f->data);
}

const char *files_shard(const files *f, size_t shard) {
  static char path[400];
  snprintf(path, sizeof path, "%s/shard-%03zu.weft", f->folder, shard);
  return path;
}

void files_put(const char *path, const void *bytes, size_t count) {
  FILE *to = fopen(path, "wb");
  ck_assert_ptr_nonnull(to);
  ck_assert_uint_eq(fwrite(bytes, 1, count, to), count);
  ck_assert_int_eq(fclose(to), 0);
}

uint8_t *files_get(const char *path, size_t *count) {
  struct stat about;
  FILE *from = fopen(path, "rb");
  if (!from)
    return NULL;
  ck_assert_int_eq(fstat(fileno(from), &about), 0);
  *count = (size_t)about.st_size;
  uint8_t *bytes = malloc(*count + 1);
  ck_assert_ptr_nonnull(bytes);
  ck_assert_uint_eq(fread(bytes, 1, *count, from), *count);
  fclose(from);
  return bytes;
}

void files_flip(const char *path, size_t at, uint8_t mask) {
  size_t count = 0;
  uint8_t *bytes = files_get(path, &count);
  ck_assert(bytes && at < count);
  bytes[at] ^= mask;
  files_put(path, bytes, count);
  free(bytes);
}

void files_copy(const char *from, const char *to) {
  size_t count = 0;
  uint8_t *bytes = files_get(from, &count);
  ck_assert_ptr_nonnull(bytes);
  files_put(to, bytes, count);
  free(bytes);
}

// --- Calls

static int input_of(files *f, const uint8_t *bytes, size_t count) {
  char path[300];
  snprintf(path, sizeof path, "%s/in", f->root);
  files_put(path, bytes, count);
  const int fd = open(path, O_RDONLY);
  ck_assert_int_ge(fd, 0);
  return fd;
}

weft_status files_encode(files *f, const char *code, size_t k, size_t m, uint64_t stripe) {
  const int fd = input_of(f, f->data, f->length);
  const weft_store_shape shape = {.code = code, .k = k, .m = m, .stripe_bytes = stripe};
  f->report = (weft_store_report){0};
  const weft_status status =
      weft_store_encode(&f->options, &shape, fd, f->length, f->folder, &f->report);
  close(fd);
  return status;
}

static weft_status open_set(files *f, weft_store_access access, weft_store **store) {
  f->report = (weft_store_report){0};
  return weft_store_open(&f->options, f->folder, access, &f->report, store);
}

weft_status files_mend(files *f, weft_store_care care) {
  weft_store *store;
  WEFT_TRY(open_set(f, care == WEFT_STORE_VERIFY ? WEFT_STORE_READ : WEFT_STORE_WRITE, &store));
  const weft_status status = weft_store_mend(store, care);
  weft_store_close(store);
  return status;
}

weft_status files_update(files *f, uint64_t offset, const uint8_t *bytes, size_t count) {
  weft_store *store;
  const int fd = input_of(f, bytes, count);
  weft_status status = open_set(f, WEFT_STORE_WRITE, &store);
  if (status == WEFT_OK)
    status = weft_store_update(store, offset, fd, count);
  weft_store_close(store);
  close(fd);
  return status;
}

weft_status files_read(files *f, uint64_t offset, uint64_t length, uint8_t **out, size_t *count) {
  weft_store *store;
  char path[300];
  *out = NULL;
  WEFT_TRY(open_set(f, WEFT_STORE_READ, &store));
  snprintf(path, sizeof path, "%s/out", f->root);
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  ck_assert_int_ge(fd, 0);
  const weft_status status = weft_store_read(store, offset, length, fd, offset % 2 == 1);
  close(fd);
  weft_store_close(store);
  if (status == WEFT_OK)
    *out = files_get(path, count);
  return status;
}

weft_status files_state(files *f, size_t shard, weft_shard_state *state, char *text) {
  weft_store *store;
  WEFT_TRY(open_set(f, WEFT_STORE_READ, &store));
  const weft_store_info info = weft_store_get_info(store);
  *state = info.shards[shard].state;
  snprintf(text, WEFT_STORE_TEXT_BYTES, "%s", info.shards[shard].text);
  weft_store_close(store);
  return WEFT_OK;
}

void expect(weft_status wanted, weft_status got, const files *f) {
  ck_assert_msg(got == wanted, "%s, not %s: %s", weft_status_name(got), weft_status_name(wanted),
                f->report.error);
}

void files_expect_data(files *f) {
  weft_store *store;
  char path[300];
  size_t count = 0;
  snprintf(path, sizeof path, "%s/out", f->root);
  unlink(path); // left by an earlier call
  weft_status status = open_set(f, WEFT_STORE_READ, &store);
  if (status == WEFT_OK)
    status = weft_store_decode(store, 0, UINT64_MAX, path);
  ck_assert_msg(status == WEFT_OK, "%s: %s", weft_status_name(status), f->report.error);
  weft_store_close(store);
  uint8_t *bytes = files_get(path, &count);
  ck_assert_uint_eq(count, f->length);
  ck_assert_msg(memcmp(bytes, f->data, count) == 0, "other bytes came back");
  free(bytes);
}

// --- Faults

files_fault files_faults;
static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER;

// Called before each operation that changes something. Returns 0, or -1 and sets errno.
static int change(void) {
  files_fault *f = &files_faults;
  pthread_mutex_lock(&fault_lock);
  const long n = ++f->changes;
  pthread_mutex_unlock(&fault_lock);
  if (f->die_at && n >= f->die_at)
    _exit(99);
  if (f->fail_at && n >= f->fail_at) {
    errno = f->error;
    return -1;
  }
  return 0;
}

// Returns how much a stingy transfer moves; 0: it is interrupted.
static size_t allowed(size_t bytes) {
  static unsigned calls;
  if (!files_faults.stingy)
    return bytes;
  pthread_mutex_lock(&fault_lock);
  const unsigned n = calls++;
  pthread_mutex_unlock(&fault_lock);
  errno = EINTR;
  return n % 2 ? 0 : bytes < 2 ? bytes : 1 + (n * 7919u) % (bytes - 1);
}

static int fault_open(const char *path, int flags, mode_t mode) {
  if ((flags & O_CREAT) && change() != 0)
    return -1;
  return open(path, flags, mode);
}
static ssize_t fault_read(int fd, void *out, size_t bytes) {
  const size_t n = allowed(bytes);
  return n || !bytes ? read(fd, out, n) : -1;
}
static ssize_t fault_write(int fd, const void *in, size_t bytes) {
  const size_t n = allowed(bytes);
  return n || !bytes ? write(fd, in, n) : -1;
}

static int shortened(struct iovec out[2], const struct iovec *parts, int count, size_t bytes) {
  int n = 0;
  for (; n < count && bytes; n++) {
    out[n] = parts[n];
    out[n].iov_len = out[n].iov_len < bytes ? out[n].iov_len : bytes;
    bytes -= out[n].iov_len;
  }
  return n;
}

static size_t total_of(const struct iovec *parts, int count) {
  size_t bytes = 0;
  for (int i = 0; i < count; i++)
    bytes += parts[i].iov_len;
  return bytes;
}

static ssize_t fault_preadv(int fd, const struct iovec *parts, int count, off_t offset) {
  struct iovec less[2];
  const size_t n = allowed(total_of(parts, count));
  return n ? preadv(fd, less, shortened(less, parts, count, n), offset) : -1;
}

static ssize_t fault_pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
  struct iovec less[2];
  const size_t bytes = total_of(parts, count), n = allowed(bytes);
  if (n == 0)
    return -1;
  // The process dies in the middle of a write.
  if (files_faults.die_at && files_faults.changes + 1 >= files_faults.die_at && bytes > 1)
    (void)!pwritev(fd, less, shortened(less, parts, count, bytes / 2), offset);
  if (change() != 0)
    return -1;
  return pwritev(fd, less, shortened(less, parts, count, n), offset);
}
// The page cache outlives the process, so nothing here needs to reach the disk.
static int fault_fsync(int fd) {
  (void)fd;
  return change();
}
// Only a hint: a system that refuses it loses nothing.
static int fault_start_writing(int fd, off_t offset, off_t bytes) {
  (void)fd, (void)offset, (void)bytes;
  errno = ENOSYS;
  return -1;
}
static int fault_forget(int fd) {
  (void)fd;
  errno = ENOSYS;
  return -1;
}
static int fault_rename(const char *from, const char *to) {
  return change() == 0 ? rename(from, to) : -1;
}
static int fault_unlink(const char *path) {
  if (files_faults.die_at && change() != 0)
    return -1;
  return unlink(path); // removing frees space, so a full disk allows it
}
static int fault_mkdir(const char *path, mode_t mode) {
  return change() == 0 ? mkdir(path, mode) : -1;
}

const weft_store_io files_faulty_io = {.open = fault_open,
                                       .close = close,
                                       .poll = poll,
                                       .read = fault_read,
                                       .write = fault_write,
                                       .preadv = fault_preadv,
                                       .pwritev = fault_pwritev,
                                       .fsync = fault_fsync,
                                       .start_writing = fault_start_writing,
                                       .forget = fault_forget,
                                       .rename = fault_rename,
                                       .unlink = fault_unlink,
                                       .mkdir = fault_mkdir};
