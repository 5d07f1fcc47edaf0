// SPDX-License-Identifier: Apache-2.0
// The folder of a set: its lock, and leftovers of calls that were killed.
#ifndef WEFT_STORE_FOLDER_H
#define WEFT_STORE_FOLDER_H

#include <sys/stat.h>

#include "store/set.h"

// Opens the folder and locks it: readers share it, a writer has it alone.
weft_status weft_store_folder_open(const weft_store_io *io, const char *folder, bool write,
                                   weft_store_report *report, int *fd);
// Makes the file, in the place of what was there, and opens it for reading and writing.
weft_status weft_store_create(const weft_store_io *io, const char *path, mode_t mode,
                              weft_store_report *report, int *fd);
// The same of a file that gets bytes of an open set, with a mode that the shards allow, and their
// owner and group where all have the same, as far as the system lets us. 0 or an errno.
int weft_store_create_beside(const weft_store *store, const char *path, int *fd);
// The mode of a file of `group` with the same bytes as `like`: nobody gets what he did not have.
// Where it is another group, its members and those of the old one get what both had.
mode_t weft_store_mode_like(const struct stat *like, gid_t group);
gid_t weft_store_group(const char *folder); // of a file that is made there
// Of files that are made in `folder` and get bytes of the set: nobody may read them who may not
// read every shard.
mode_t weft_store_mode(const weft_store *store, const char *folder);
// fsync; where it fails the system is asked to forget what it shows. 0 or an errno.
int weft_store_try_sync(const weft_store_io *io, int fd);
// The same, with the report's error set.
weft_status weft_store_sync_file(const weft_store_io *io, int fd, const char *what,
                                 weft_store_report *report);
weft_status weft_store_sync_shard(weft_store *store, size_t shard); // the file that is read from
// Of the set's folder, which is open: a call that has changed it must not fail for want of files.
weft_status weft_store_sync_names(weft_store *store);
weft_status weft_store_rename(const weft_store_io *io, const char *from, const char *to,
                              weft_store_report *report);

#endif
