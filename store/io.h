// SPDX-License-Identifier: Apache-2.0
// Every call by which the store changes what files hold or are called, or reads it, as a table:
// tests put one of their own here that reads short, is interrupted, runs out of space or dies. What
// asks about a file (stat and the like), locks a folder, or gives a finished file its owner and
// mode is called as it is.
#ifndef WEFT_STORE_IO_H
#define WEFT_STORE_IO_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

// Each returns what its namesake does: -1 and errno on failure.
typedef struct weft_store_io {
  int (*open)(const char *path, int flags, mode_t mode);
  int (*close)(int fd);
  int (*poll)(struct pollfd *wanted, nfds_t count, int timeout_ms);
  ssize_t (*read)(int fd, void *out, size_t bytes);
  ssize_t (*write)(int fd, const void *in, size_t bytes);
  ssize_t (*preadv)(int fd, const struct iovec *parts, int count, off_t offset);
  ssize_t (*pwritev)(int fd, const struct iovec *parts, int count, off_t offset);
  int (*fsync)(int fd);
  // Asks for `bytes` of a file (0: all from `offset` on) to go to the disk, without waiting for
  // them. A hint: where the system has no such call it does nothing.
  int (*start_writing)(int fd, off_t offset, off_t bytes);
  // Has a file read from the disk again, but for what is still to be written. A hint, too.
  int (*forget)(int fd);
  int (*rename)(const char *from, const char *to);
  int (*unlink)(const char *path);
  int (*mkdir)(const char *path, mode_t mode);
} weft_store_io;

extern const weft_store_io weft_store_posix_io;

// Until all is done, the end of the file or an error; interrupted calls go on. 0 or an errno.
// *done may be NULL: then the end of the file is EIO.
int weft_store_read_at(const weft_store_io *io, int fd, uint64_t offset, uint8_t *out, size_t bytes,
                       uint8_t *then, size_t then_bytes, size_t *done);
int weft_store_write_at(const weft_store_io *io, int fd, uint64_t offset, const uint8_t *in,
                        size_t bytes, const uint8_t *then, size_t then_bytes);
// At the file's position, for pipes. While there is nothing to read, or no room to write, keep_on
// is asked now and then: EINTR once it says no.
typedef struct weft_store_patience {
  bool (*keep_on)(void *user);
  void *user;
} weft_store_patience;
int weft_store_read_next(const weft_store_io *io, int fd, uint8_t *out, size_t bytes, size_t *done,
                         const weft_store_patience *patience);
int weft_store_write_next(const weft_store_io *io, int fd, const uint8_t *in, size_t bytes,
                          const weft_store_patience *patience);
// A pipe opened anew, so that not to wait at it is a matter of this end alone: others may write
// through the one that was given. -1: it is no pipe, or the system cannot; the given one will do.
int weft_store_own_pipe(const weft_store_io *io, int fd);
int weft_store_sync(const weft_store_io *io, int fd);
// fsync of a folder, so that the names in it last.
int weft_store_sync_folder(const weft_store_io *io, int fd);
int weft_store_sync_folder_at(const weft_store_io *io, const char *path);

#endif
