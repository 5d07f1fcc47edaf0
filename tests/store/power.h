// SPDX-License-Identifier: Apache-2.0
// Simulates power failures. File calls are passed on to the system and recorded; the record gives
// the possible states of a disk that has lost some of what was not synced.
//
// For a file, each write after its last fsync may or may not be there, independently, and may be
// torn between blocks of 256 bytes (disks write 512 at once). For the folder, the same holds for
// names created, changed and removed after its last fsync. This demands more of the order of calls
// than file systems with a journal do. One folder, one thread.
#ifndef WEFT_TESTS_STORE_POWER_H
#define WEFT_TESTS_STORE_POWER_H

#include <stdbool.h>

#include "store/io.h"
#include "tests/support/test_rng.h"

extern const weft_store_io power_io; // hides shards above 15

// Takes the folder's present state as what is on the disk, and starts a record.
void power_start(const char *folder);
size_t power_count(void); // recorded calls, which change something, so far
void power_end(void);
// Simulates that the process is killed after its first `calls` calls: later ones do nothing and
// fail. 0: another process goes on with what the system shows.
void power_kill(size_t calls);
// Makes the sync of a file fail if it is call `index`; the data never reach the disk, though the
// system still shows them. power_sync_failed returns whether that call was a sync of a file.
void power_fail_sync(size_t index);
// From now on io->forget can make the system show only what is on the disk.
void power_can_forget(void);
bool power_sync_failed(void);

// Which of the calls not followed by a sync have reached the disk.
typedef enum { POWER_NONE, POWER_ALL, POWER_ALL_BUT_ONE, POWER_ONE, POWER_SOME } power_luck;
// Returns how many of the first `calls` calls no sync has followed, the range of POWER_ONE.
size_t power_loose(size_t calls);
// Ends recording, and changes the folder to a state that is possible if power fails after the first
// `calls` calls. May be called repeatedly.
void power_cut(size_t calls, power_luck luck, size_t one, test_rng *rng);

#endif
