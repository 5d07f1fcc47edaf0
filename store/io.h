// SPDX-License-Identifier: Apache-2.0
// The table of all calls by which the store reads files, or changes their contents or names. Tests
// supply a table that reads short, is interrupted, runs out of space or dies. Calls that query a
// file (stat and others), lock a folder, or set a finished file's owner and mode are made directly.
#ifndef WEFT_STORE_IO_H
#define WEFT_STORE_IO_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

// Each behaves like its namesake: -1 and errno on failure.
typedef struct weft_store_io {
  int (*open)(const char *path, int flags, mode_t mode);
  int (*close)(int fd);
  int (*poll)(struct pollfd *wanted, nfds_t count, int timeout_ms);
  ssize_t (*read)(int fd, void *out, size_t bytes);
  ssize_t (*write)(int fd, const void *in, size_t bytes);
  ssize_t (*preadv)(int fd, const struct iovec *parts, int count, off_t offset);
  ssize_t (*pwritev)(int fd, const struct iovec *parts, int count, off_t offset);
  int (*fsync)(int fd);
  // Asks for `bytes` of a file (0: all from `offset` on) to be written to the disk, without
  // waiting. A hint: does nothing where the system has no such call.
  int (*start_writing)(int fd, off_t offset, off_t bytes);
  // Drops the system's cache of a file, except data still to be written. A hint, too.
  int (*forget)(int fd);
  int (*rename)(const char *from, const char *to);
  int (*unlink)(const char *path);
  int (*mkdir)(const char *path, mode_t mode);
} weft_store_io;

extern const weft_store_io weft_store_posix_io;

// Transfer everything, up to the end of the file or an error; interrupted calls are continued.
// Return 0 or an errno. *done may be NULL: then reaching the end of the file is EIO.
int weft_store_read_at(const weft_store_io *io, int fd, uint64_t offset, uint8_t *out, size_t bytes,
                       uint8_t *then, size_t then_bytes, size_t *done);
int weft_store_write_at(const weft_store_io *io, int fd, uint64_t offset, const uint8_t *in,
                        size_t bytes, const uint8_t *then, size_t then_bytes);
// The same at the file's position, for pipes. While there is nothing to read, or no room to write,
// keep_on is called now and then; once it returns false, the result is EINTR.
typedef struct weft_store_patience {
  bool (*keep_on)(void *user);
  void *user;
} weft_store_patience;
int weft_store_read_next(const weft_store_io *io, int fd, uint8_t *out, size_t bytes, size_t *done,
                         const weft_store_patience *patience);
int weft_store_write_next(const weft_store_io *io, int fd, const uint8_t *in, size_t bytes,
                          const weft_store_patience *patience);
// Reopens a pipe without blocking, which then concerns this end alone: others may write through the
// given descriptor. Returns -1 if it is no pipe, or the system cannot; use the given one then.
int weft_store_own_pipe(const weft_store_io *io, int fd);
int weft_store_sync(const weft_store_io *io, int fd);
// Syncs a folder, so that the names in it last.
int weft_store_sync_folder(const weft_store_io *io, int fd);
int weft_store_sync_folder_at(const weft_store_io *io, const char *path);

#endif
