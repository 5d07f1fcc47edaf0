// SPDX-License-Identifier: Apache-2.0
// A peer whose disk reports only when a file is closed that it was full, as NFS and quotas do.
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

int __real_close(int fd);
int __wrap_close(int fd);

int __wrap_close(int fd) {
  struct stat about;
  const int how = fcntl(fd, F_GETFL);
  const int late =
      how >= 0 && (how & O_ACCMODE) != O_RDONLY && fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
  if (__real_close(fd) != 0 || !late)
    return late ? -1 : 0;
  errno = ENOSPC;
  return -1;
}
