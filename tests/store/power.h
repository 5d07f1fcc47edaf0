// SPDX-License-Identifier: Apache-2.0
// What a power cut may leave. File calls go on to the system and are recorded; from the record come
// the states in which a disk may be found that lost some of what was not synced.
//
// Of a file, writes after its last fsync are there or not, each on its own, and may be torn between
// blocks of 256 bytes (disks write 512 at once). Of the folder, names that were made, changed and
// removed after its last fsync likewise. So this asks more of the order of calls than file systems
// with a journal do. One folder, one thread.
#ifndef WEFT_TESTS_STORE_POWER_H
#define WEFT_TESTS_STORE_POWER_H

#include <stdbool.h>

#include "store/io.h"
#include "tests/support/test_rng.h"

extern const weft_store_io power_io; // knows of no shard above 15

// Takes the folder as it is for what is on the disk, and begins a record.
void power_start(const char *folder);
size_t power_count(void); // calls that changed something, so far
void power_end(void);
// As if the process were killed after its first `calls` calls: those that follow do nothing, and
// fail. 0: another one goes on with what the system shows.
void power_kill(size_t calls);
// The sync of a file that would be call `index` fails, and what it was for never reaches the disk,
// though the system shows it still. True of power_sync_failed: that was a sync of a file.
void power_fail_sync(size_t index);
// From now on the system can be had to show no more than the disk has.
void power_can_forget(void);
bool power_sync_failed(void);

// Which of the calls that no sync followed have reached the disk.
typedef enum { POWER_NONE, POWER_ALL, POWER_ALL_BUT_ONE, POWER_ONE, POWER_SOME } power_luck;
// How many calls of the first `calls` no sync followed: which of them POWER_ONE may be about.
size_t power_loose(size_t calls);
// Ends recording, and leaves in the folder what may be there if power goes after the first `calls`
// calls. May be repeated.
void power_cut(size_t calls, power_luck luck, size_t one, test_rng *rng);

#endif
