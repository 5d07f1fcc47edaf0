// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE // pwritev
#include "tests/store/power.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/store/files.h"

enum {
  INODES = 1024,
  NAMES = 64,
  NAME_BYTES = 64,
  FDS = 1024,
  CALLS = 4096,
  FOLDER = -2,
  SECTOR = 256,
  SHARDS = 16
};

// A file, whatever its names, as it certainly is on the disk.
typedef struct inode {
  uint8_t *bytes;
  size_t count;
} inode;

typedef struct entry { // name[0] == 0: free
  char name[NAME_BYTES];
  int inode;
} entry;

typedef struct call {
  enum { WRITE, TRUNCATE, SYNC, NAME, RENAME, UNLINK } kind;
  int inode; // FOLDER: of SYNC
  size_t at, count;
  uint8_t *bytes;
  char from[NAME_BYTES], to[NAME_BYTES];
  bool dropped; // by a failed sync
} call;

static struct {
  char folder[512];
  inode inodes[INODES];
  int inode_count;
  entry base[NAMES], now[NAMES]; // on the disk; as the system shows them
  int fds[FDS];                  // inode + 1; FOLDER; 0: not in the folder
  call calls[CALLS];
  size_t count, kill_at; // 0: never
  size_t fail_at;        // index of a sync; 0: none
  bool on, failed, forgets;
} log_;

// --- Names

static entry *find(entry *names, const char *name) {
  for (size_t i = 0; i < NAMES; i++)
    if (names[i].name[0] && strcmp(names[i].name, name) == 0)
      return &names[i];
  return NULL;
}

static void set(entry *names, const char *name, int file) {
  entry *e = find(names, name);
  for (size_t i = 0; !e && i < NAMES; i++)
    if (!names[i].name[0])
      e = &names[i];
  ck_assert_ptr_nonnull(e);
  snprintf(e->name, sizeof e->name, "%s", name);
  e->inode = file;
}

static void drop(entry *names, const char *name) {
  entry *e = find(names, name);
  if (e)
    e->name[0] = 0;
}

// Returns the name within the folder; NULL if elsewhere, "" for the folder itself.
static const char *inside(const char *path) {
  const size_t length = strlen(log_.folder);
  if (strncmp(path, log_.folder, length) != 0)
    return NULL;
  if (path[length] == 0)
    return "";
  const char *name = path + length + 1;
  return path[length] == '/' && !strchr(name, '/') && strcmp(name, "..") != 0 ? name : NULL;
}

static int new_inode(uint8_t *bytes, size_t count) {
  ck_assert_int_lt(log_.inode_count, INODES);
  log_.inodes[log_.inode_count] = (inode){.bytes = bytes, .count = count};
  return log_.inode_count++;
}

static call *record(int kind, int file) {
  ck_assert_uint_lt(log_.count, CALLS);
  call *c = &log_.calls[log_.count++];
  memset(c, 0, sizeof *c);
  c->kind = kind;
  c->inode = file;
  return c;
}

// --- The calls

static bool killed(void) {
  errno = EIO;
  return log_.on && log_.kill_at && log_.count >= log_.kill_at;
}

static int power_open(const char *path, int flags, mode_t mode) {
  const char *name = inside(path), *number = strstr(path, "/shard-");
  if (number && atoi(number + strlen("/shard-")) >= SHARDS) { // they would take most of the time
    errno = ENOENT;
    return -1;
  }
  if ((flags & (O_CREAT | O_TRUNC)) && name && killed())
    return -1;
  const int fd = open(path, flags, mode);
  if (fd < 0 || !log_.on || !name)
    return fd;
  ck_assert_int_lt(fd, FDS);
  if (!*name) {
    log_.fds[fd] = FOLDER;
    return fd;
  }
  const entry *e = find(log_.now, name);
  if (!e) {
    const int file = new_inode(NULL, 0);
    snprintf(record(NAME, file)->to, NAME_BYTES, "%s", name);
    set(log_.now, name, file);
    e = find(log_.now, name);
  } else if (flags & O_TRUNC) {
    record(TRUNCATE, e->inode);
  }
  log_.fds[fd] = e->inode + 1;
  return fd;
}

static ssize_t power_pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
  if (log_.fds[fd] > 0 && killed())
    return -1;
  const ssize_t n = pwritev(fd, parts, count, offset);
  if (n <= 0 || !log_.on || log_.fds[fd] <= 0)
    return n;
  call *c = record(WRITE, log_.fds[fd] - 1);
  c->at = (size_t)offset;
  c->bytes = malloc((size_t)n);
  ck_assert_ptr_nonnull(c->bytes);
  for (int i = 0; i < count; i++) {
    memcpy(c->bytes + c->count, parts[i].iov_base, parts[i].iov_len);
    c->count += parts[i].iov_len;
  }
  ck_assert_uint_eq(c->count, (size_t)n);
  return n;
}

static bool synced(size_t index, size_t calls);

// Linux still shows the pages after a failed sync, and considers them written.
static int fail_sync(int file) {
  for (size_t i = 0; i < log_.count; i++)
    log_.calls[i].dropped |=
        log_.calls[i].kind == WRITE && log_.calls[i].inode == file && !synced(i, log_.count);
  log_.failed = true;
  errno = EIO;
  return -1;
}

static int power_fsync(int fd) {
  if (log_.fds[fd] && killed())
    return -1;
  if (log_.on && log_.fds[fd] > 0 && !log_.failed && log_.fail_at && log_.count == log_.fail_at)
    return fail_sync(log_.fds[fd] - 1);
  if (log_.on && log_.fds[fd])
    record(SYNC, log_.fds[fd] == FOLDER ? FOLDER : log_.fds[fd] - 1);
  return 0;
}

static int power_start_writing(int fd, off_t offset, off_t bytes) {
  (void)fd, (void)offset, (void)bytes;
  return 0;
}

static void apply_write(inode *file, const call *c, size_t from, size_t to);

// Stops showing what a failed sync dropped: the file has its previous contents, plus the other
// calls.
static int power_forget(int fd) {
  const int file = log_.fds[fd] - 1;
  if (!log_.on || !log_.forgets || file < 0)
    return -1;
  const inode *base = &log_.inodes[file];
  inode shown = {.bytes = malloc(base->count + 1), .count = base->count};
  ck_assert_ptr_nonnull(shown.bytes);
  if (base->count)
    memcpy(shown.bytes, base->bytes, base->count);
  for (size_t i = 0; i < log_.count; i++) {
    const call *c = &log_.calls[i];
    if (c->inode != file || c->dropped)
      continue;
    if (c->kind == WRITE)
      apply_write(&shown, c, 0, c->count);
    else if (c->kind == TRUNCATE)
      shown.count = 0;
  }
  ck_assert_int_eq(ftruncate(fd, (off_t)shown.count), 0);
  ck_assert_int_eq(pwrite(fd, shown.bytes, shown.count, 0), (ssize_t)shown.count);
  free(shown.bytes);
  return 0;
}

static int power_rename(const char *from, const char *to) {
  const char *a = inside(from), *b = inside(to);
  if (a && b && killed())
    return -1;
  const int done = rename(from, to);
  if (done != 0 || !log_.on || !a || !b)
    return done;
  const int file = find(log_.now, a)->inode;
  call *c = record(RENAME, file);
  snprintf(c->from, sizeof c->from, "%s", a);
  snprintf(c->to, sizeof c->to, "%s", b);
  drop(log_.now, a);
  set(log_.now, b, file);
  return 0;
}

static int power_unlink(const char *path) {
  const char *name = inside(path);
  if (name && killed())
    return -1;
  const int done = unlink(path);
  if (done != 0 || !log_.on || !name)
    return done;
  snprintf(record(UNLINK, -1)->from, NAME_BYTES, "%s", name);
  drop(log_.now, name);
  return 0;
}

static int power_close(int fd) {
  if (log_.on)
    log_.fds[fd] = 0;
  return close(fd);
}

const weft_store_io power_io = {.open = power_open,
                                .close = power_close,
                                .poll = poll,
                                .read = read,
                                .write = write,
                                .preadv = preadv,
                                .pwritev = power_pwritev,
                                .fsync = power_fsync,
                                .start_writing = power_start_writing,
                                .forget = power_forget,
                                .rename = power_rename,
                                .unlink = power_unlink,
                                .mkdir = mkdir};

// --- The record

void power_end(void) {
  for (int i = 0; i < log_.inode_count; i++)
    free(log_.inodes[i].bytes);
  for (size_t i = 0; i < log_.count; i++)
    free(log_.calls[i].bytes);
  memset(&log_, 0, sizeof log_);
}

void power_start(const char *folder) {
  power_end();
  snprintf(log_.folder, sizeof log_.folder, "%s", folder);
  DIR *d = opendir(folder);
  ck_assert_ptr_nonnull(d);
  for (struct dirent *e; (e = readdir(d));) {
    char path[1024];
    size_t count = 0;
    if (e->d_name[0] == '.')
      continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    uint8_t *bytes = files_get(path, &count);
    ck_assert_ptr_nonnull(bytes);
    set(log_.base, e->d_name, new_inode(bytes, count));
  }
  closedir(d);
  memcpy(log_.now, log_.base, sizeof log_.now);
  log_.on = true;
}

size_t power_count(void) { return log_.count; }

void power_kill(size_t calls) { log_.kill_at = calls; }

void power_fail_sync(size_t index) { log_.fail_at = index; }

void power_can_forget(void) { log_.forgets = true; }

bool power_sync_failed(void) { return log_.failed; }

// --- States

static bool about_names(const call *c) { return c->kind >= NAME; }

// Whether the call is certainly on the disk if power fails after the first `calls` calls.
static bool synced(size_t index, size_t calls) {
  const call *c = &log_.calls[index];
  if (c->kind == SYNC)
    return true;
  const int file = about_names(c) ? FOLDER : c->inode;
  for (size_t i = index + 1; i < calls; i++)
    if (log_.calls[i].kind == SYNC && log_.calls[i].inode == file)
      return true;
  return false;
}

size_t power_loose(size_t calls) {
  size_t count = 0;
  for (size_t i = 0; i < calls; i++)
    count += !log_.calls[i].dropped && !synced(i, calls);
  return count;
}

static void apply_write(inode *file, const call *c, size_t from, size_t to) {
  if (c->at + to > file->count) {
    file->bytes = realloc(file->bytes, c->at + to + 1);
    ck_assert_ptr_nonnull(file->bytes);
    memset(file->bytes + file->count, 0, c->at + to - file->count);
    file->count = c->at + to;
  }
  memcpy(file->bytes + c->at + from, c->bytes + from, to - from);
}

static void apply(inode *disk, entry *names, const call *c, test_rng *torn) {
  size_t from = 0, to = c->count;
  switch (c->kind) {
  case WRITE: // in part: the beginning or the end
    if (torn) {
      const size_t at = (c->at + test_rng_below(torn, c->count + 1)) / SECTOR * SECTOR;
      *(test_rng_below(torn, 2) ? &from : &to) = at > c->at ? at - c->at : 0;
    }
    apply_write(&disk[c->inode], c, from, to);
    break;
  case TRUNCATE:
    disk[c->inode].count = 0;
    break;
  case NAME:
    set(names, c->to, c->inode);
    break;
  case RENAME: {
    const entry *e = find(names, c->from);
    if (e && e->inode == c->inode)
      drop(names, c->from);
    set(names, c->to, c->inode);
    break;
  }
  case UNLINK:
    drop(names, c->from);
    break;
  case SYNC:
    break;
  }
}

static bool lucky(power_luck luck, size_t index, size_t one, test_rng *rng) {
  switch (luck) {
  case POWER_NONE:
    return false;
  case POWER_ALL:
    return true;
  case POWER_ALL_BUT_ONE:
    return index != one;
  case POWER_ONE:
    return index == one;
  case POWER_SOME:
    break;
  }
  return test_rng_below(rng, 2);
}

static void put_folder(const entry *names, const inode *disk) {
  DIR *d = opendir(log_.folder);
  char path[1024];
  for (struct dirent *e; d && (e = readdir(d));) {
    snprintf(path, sizeof path, "%s/%s", log_.folder, e->d_name);
    if (e->d_name[0] != '.')
      ck_assert_int_eq(unlink(path), 0);
  }
  closedir(d);
  for (size_t i = 0; i < NAMES; i++)
    if (names[i].name[0]) {
      snprintf(path, sizeof path, "%s/%.63s", log_.folder, names[i].name);
      files_put(path, disk[names[i].inode].bytes, disk[names[i].inode].count);
    }
}

void power_cut(size_t calls, power_luck luck, size_t one, test_rng *rng) {
  static inode disk[INODES];
  entry names[NAMES];
  log_.on = false;
  memcpy(names, log_.base, sizeof names);
  for (int i = 0; i < log_.inode_count; i++) {
    const inode *from = &log_.inodes[i];
    disk[i] = (inode){.bytes = malloc(from->count + 1), .count = from->count};
    ck_assert_ptr_nonnull(disk[i].bytes);
    if (from->count)
      memcpy(disk[i].bytes, from->bytes, from->count);
  }
  for (size_t i = 0, loose = 0; i < calls; i++) {
    const bool sure = synced(i, calls);
    if (log_.calls[i].dropped)
      continue;
    if (sure || lucky(luck, loose++, one, rng))
      apply(disk, names, &log_.calls[i],
            !sure && luck == POWER_SOME && test_rng_below(rng, 4) == 0 ? rng : NULL);
  }
  put_folder(names, disk);
  for (int i = 0; i < log_.inode_count; i++)
    free(disk[i].bytes);
}
