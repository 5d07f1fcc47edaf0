// SPDX-License-Identifier: Apache-2.0
// The system's file calls, and complete transfers.
#define _GNU_SOURCE // preadv, pwritev, sync_file_range
#include "store/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int posix_open(const char *path, int flags, mode_t mode) {
  return open(path, flags | O_CLOEXEC, mode);
}

static int posix_start_writing(int fd, off_t offset, off_t bytes) {
#ifdef SYNC_FILE_RANGE_WRITE
  return sync_file_range(fd, offset, bytes, SYNC_FILE_RANGE_WRITE);
#else
  (void)fd, (void)offset, (void)bytes;
  return 0;
#endif
}

static int posix_forget(int fd) {
#ifdef POSIX_FADV_DONTNEED
  return posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
#else
  (void)fd;
  return 0;
#endif
}

const weft_store_io weft_store_posix_io = {.open = posix_open,
                                           .close = close,
                                           .poll = poll,
                                           .read = read,
                                           .write = write,
                                           .preadv = preadv,
                                           .pwritev = pwritev,
                                           .fsync = fsync,
                                           .start_writing = posix_start_writing,
                                           .forget = posix_forget,
                                           .rename = rename,
                                           .unlink = unlink,
                                           .mkdir = mkdir};

// Lists what is left of two parts after `done` bytes; returns the number of parts.
static int parts_left(struct iovec out[2], uint8_t *a, size_t a_bytes, uint8_t *b, size_t b_bytes,
                      size_t done) {
  int count = 0;
  if (done < a_bytes)
    out[count++] = (struct iovec){.iov_base = a + done, .iov_len = a_bytes - done};
  const size_t skip = done < a_bytes ? 0 : done - a_bytes;
  if (skip < b_bytes)
    out[count++] = (struct iovec){.iov_base = b + skip, .iov_len = b_bytes - skip};
  return count;
}

int weft_store_read_at(const weft_store_io *io, int fd, uint64_t offset, uint8_t *out, size_t bytes,
                       uint8_t *then, size_t then_bytes, size_t *done) {
  size_t at = 0;
  int error = 0;
  while (at < bytes + then_bytes) {
    struct iovec parts[2];
    const int count = parts_left(parts, out, bytes, then, then_bytes, at);
    const ssize_t n = io->preadv(fd, parts, count, (off_t)(offset + at));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      error = errno;
    if (n <= 0)
      break;
    at += (size_t)n;
  }
  if (done)
    *done = at;
  else if (!error && at < bytes + then_bytes)
    error = EIO;
  return error;
}

int weft_store_write_at(const weft_store_io *io, int fd, uint64_t offset, const uint8_t *in,
                        size_t bytes, const uint8_t *then, size_t then_bytes) {
  for (size_t at = 0; at < bytes + then_bytes;) {
    struct iovec parts[2]; // pwritev only reads them
    const int count = parts_left(parts, (uint8_t *)(uintptr_t)in, bytes, (uint8_t *)(uintptr_t)then,
                                 then_bytes, at);
    const ssize_t n = io->pwritev(fd, parts, count, (off_t)(offset + at));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return errno;
    if (n == 0)
      return EIO;
    at += (size_t)n;
  }
  return 0;
}

// Waits until fd is ready; returns false if told to stop. A signal may be delivered to another
// thread than the waiting one, so it waits in short turns.
static bool awaited(const weft_store_io *io, int fd, short events,
                    const weft_store_patience *patience) {
  enum { TURN_MS = 100 };
  struct pollfd wanted = {.fd = fd, .events = events};
  for (;;) {
    const int ready = io->poll(&wanted, 1, TURN_MS);
    if (ready > 0 || (ready < 0 && errno != EINTR))
      return true; // errors are reported by read() or write()
    if (!patience->keep_on(patience->user))
      return false;
  }
}

int weft_store_read_next(const weft_store_io *io, int fd, uint8_t *out, size_t bytes, size_t *done,
                         const weft_store_patience *patience) {
  for (*done = 0; *done < bytes;) {
    if (!awaited(io, fd, POLLIN, patience))
      return EINTR;
    const ssize_t n = io->read(fd, out + *done, bytes - *done);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (n < 0)
      return errno;
    if (n == 0)
      return 0;
    *done += (size_t)n;
  }
  return 0;
}

int weft_store_own_pipe(const weft_store_io *io, int fd) {
  char path[32];
  struct stat about;
  if (fstat(fd, &about) != 0 || !S_ISFIFO(about.st_mode))
    return -1;
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return io->open(path, O_WRONLY | O_NONBLOCK, 0);
}

// Returns how much write() takes without waiting once poll() has reported room.
static size_t patient_bytes(int fd) {
  struct stat about;
  const bool file = fstat(fd, &about) == 0 && (S_ISREG(about.st_mode) || S_ISBLK(about.st_mode));
  return file || (fcntl(fd, F_GETFL) & O_NONBLOCK) ? SIZE_MAX : PIPE_BUF;
}

int weft_store_write_next(const weft_store_io *io, int fd, const uint8_t *in, size_t bytes,
                          const weft_store_patience *patience) {
  const size_t most = patient_bytes(fd);
  for (size_t at = 0; at < bytes;) {
    if (!awaited(io, fd, POLLOUT, patience))
      return EINTR;
    const ssize_t n = io->write(fd, in + at, bytes - at < most ? bytes - at : most);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (n < 0)
      return errno;
    if (n == 0)
      return EIO; // as in weft_store_write_at: retrying might never end
    at += (size_t)n;
  }
  return 0;
}

int weft_store_sync(const weft_store_io *io, int fd) {
  while (io->fsync(fd) != 0)
    if (errno != EINTR)
      return errno;
  return 0;
}

int weft_store_sync_folder(const weft_store_io *io, int fd) {
  const int error = weft_store_sync(io, fd);
  return error == EINVAL ? 0 : error; // the file system does not support it
}

int weft_store_sync_folder_at(const weft_store_io *io, const char *path) {
  const int fd = io->open(path, O_RDONLY | O_DIRECTORY, 0);
  if (fd < 0)
    return errno;
  const int error = weft_store_sync_folder(io, fd);
  io->close(fd);
  return error;
}
