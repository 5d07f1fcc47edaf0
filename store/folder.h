// SPDX-License-Identifier: Apache-2.0
// The folder of a set: its lock, and files in it. ".new" names belong to calls in progress or
// killed.
#ifndef WEFT_STORE_FOLDER_H
#define WEFT_STORE_FOLDER_H

#include <sys/stat.h>

#include "store/set.h"

// Opens the folder and locks it: shared for readers, exclusive for writers.
weft_status weft_store_folder_open(const weft_store_io *io, const char *folder, bool write,
                                   weft_store_report *report, int *fd);
// Creates the file, replacing any old one, and opens it for reading and writing.
weft_status weft_store_create(const weft_store_io *io, const char *path, mode_t mode,
                              weft_store_report *report, int *fd);
// The same for a file that will hold bytes of an open set: with a mode that the shards permit and,
// as far as the system allows, with their owner and group if those are the same for all. Returns 0
// or an errno.
int weft_store_create_beside(const weft_store *store, const char *path, int *fd);
// Returns the mode for a file of `group` with the same bytes as `like`, such that no one gains
// access. If the group differs, group and others get only what both had.
mode_t weft_store_mode_like(const struct stat *like, gid_t group);
gid_t weft_store_group(const char *folder); // of files created there
// Returns the mode for files that are created in `folder` and hold bytes of the set: readable only
// by those who may read every shard.
mode_t weft_store_mode(const weft_store *store, const char *folder);
// Calls fsync; if it fails, asks the system to drop its cache of the file. Returns 0 or an errno.
int weft_store_try_sync(const weft_store_io *io, int fd);
// The same, with the report's error set.
weft_status weft_store_sync_file(const weft_store_io *io, int fd, const char *what,
                                 weft_store_report *report);
weft_status weft_store_sync_shard(weft_store *store, size_t shard); // the file that is read from
// Syncs the set's folder through its open descriptor: a call that has changed it must not fail for
// lack of descriptors.
weft_status weft_store_sync_names(weft_store *store);
weft_status weft_store_rename(const weft_store_io *io, const char *from, const char *to,
                              weft_store_report *report);

#endif
