// SPDX-License-Identifier: Apache-2.0
// The folder of a set and its files; failures set the report's error.
#define _DEFAULT_SOURCE // flock
#include "store/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

weft_status weft_store_folder_open(const weft_store_io *io, const char *folder, bool write,
                                   weft_store_report *report, int *fd) {
  *fd = io->open(folder, O_RDONLY | O_DIRECTORY, 0);
  if (*fd < 0)
    return weft_store_fail_io(report, folder, errno);
  // File systems without locks are used unlocked.
  if (flock(*fd, (write ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0 || errno != EWOULDBLOCK)
    return WEFT_OK;
  io->close(*fd);
  *fd = -1;
  return weft_store_fail(report, WEFT_E_IO, "%s: another weft is at work in this folder", folder);
}

static int try_create(const weft_store_io *io, const char *path, mode_t mode, int *fd) {
  // Neither follow an existing link nor write to a file that has another name too.
  *fd = -1;
  if (io->unlink(path) == 0 || errno == ENOENT)
    *fd = io->open(path, O_RDWR | O_CREAT | O_EXCL, mode);
  return *fd < 0 ? errno : 0;
}

weft_status weft_store_create(const weft_store_io *io, const char *path, mode_t mode,
                              weft_store_report *report, int *fd) {
  const int error = try_create(io, path, mode, fd);
  return error ? weft_store_fail_io(report, path, error) : WEFT_OK;
}

// Gives a file the shards' owner and group: otherwise root, when mending a set, would take it from
// its owner file by file.
static void take_owner(const weft_store *store, int fd) {
  struct stat its, about = {0}, all = {.st_mode = 0666};
  bool any = false;
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++) {
    if (store->files[i].fd < 0)
      continue;
    if (fstat(store->files[i].fd, &about) != 0 ||
        (any && (about.st_uid != all.st_uid || about.st_gid != all.st_gid)))
      return;
    any = true;
    all.st_uid = about.st_uid;
    all.st_gid = about.st_gid;
    all.st_mode &= about.st_mode;
  }
  if (!any || fstat(fd, &its) != 0 || (its.st_uid == all.st_uid && its.st_gid == all.st_gid))
    return;
  if (fchown(fd, all.st_uid, all.st_gid) != 0)
    (void)!fchown(fd, (uid_t)-1, all.st_gid);
  if (fstat(fd, &its) == 0 && its.st_gid == all.st_gid) // until here no one has gained access
    (void)fchmod(fd, 0600 | all.st_mode);
}

// The owner may write it, even if it replaces a shard that was read-only.
int weft_store_create_beside(const weft_store *store, const char *path, int *fd) {
  const int error = try_create(store->io, path, 0600 | weft_store_mode(store, store->folder), fd);
  if (!error)
    take_owner(store, *fd);
  return error;
}

mode_t weft_store_mode_like(const struct stat *like, gid_t group) {
  const mode_t mode = like->st_mode & 0777, both = (mode >> 3) & mode & 07;
  return like->st_gid == group ? mode : (mode & 0700) | both << 3 | both;
}

gid_t weft_store_group(const char *folder) {
  struct stat about;
  return stat(folder, &about) == 0 && (about.st_mode & S_ISGID) ? about.st_gid : getegid();
}

mode_t weft_store_mode(const weft_store *store, const char *folder) {
  const gid_t group = weft_store_group(folder);
  mode_t mode = 0666;
  struct stat about;
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++)
    if (store->files[i].fd >= 0 && fstat(store->files[i].fd, &about) == 0)
      mode &= weft_store_mode_like(&about, group);
  return mode;
}

int weft_store_try_sync(const weft_store_io *io, int fd) {
  const int error = weft_store_sync(io, fd);
  // The cache may show data that the disk lacks, including what a killed call wrote unnoticed. Once
  // it is dropped, tags reveal that.
  if (error)
    (void)io->forget(fd);
  return error;
}

weft_status weft_store_sync_file(const weft_store_io *io, int fd, const char *what,
                                 weft_store_report *report) {
  const int error = weft_store_try_sync(io, fd);
  return error ? weft_store_fail_io(report, what, error) : WEFT_OK;
}

weft_status weft_store_sync_shard(weft_store *store, size_t shard) {
  char path[WEFT_STORE_PATH_BYTES];
  WEFT_TRY(weft_store_shard_path(store->folder, shard, store->files[shard].fresh, path));
  return weft_store_sync_file(store->io, store->files[shard].fd, path, store->report);
}

weft_status weft_store_sync_names(weft_store *store) {
  const int error = weft_store_sync_folder(store->io, store->folder_fd);
  return error ? weft_store_fail_io(store->report, store->folder, error) : WEFT_OK;
}

weft_status weft_store_rename(const weft_store_io *io, const char *from, const char *to,
                              weft_store_report *report) {
  return io->rename(from, to) == 0 ? WEFT_OK : weft_store_fail_io(report, to, errno);
}
