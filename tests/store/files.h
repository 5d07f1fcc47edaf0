// SPDX-License-Identifier: Apache-2.0
// What the suites of the store share: a folder per test, data, calls in one line, and file calls
// that fail on purpose.
#ifndef WEFT_TESTS_STORE_FILES_H
#define WEFT_TESTS_STORE_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

typedef struct files {
  weft_ctx *ctx;
  char root[256], folder[300]; // root/d
  weft_store_options options;
  weft_store_report report; // of the last call
  uint8_t *data;
  size_t length;
} files;

// Makes an empty folder and `length` random bytes; calls use two threads and files_faulty_io.
void files_start(files *f, uint64_t salt, size_t length);
void files_end(files *f);

// Returns the path of a shard, in a static buffer.
const char *files_shard(const files *f, size_t shard);
void files_put(const char *path, const void *bytes, size_t count);
uint8_t *files_get(const char *path, size_t *count); // malloc'd; NULL: no such file
// XORs one byte of a file with `mask`.
void files_flip(const char *path, size_t at, uint8_t mask);
void files_copy(const char *from, const char *to);
void files_wipe(files *f); // removes the folder and everything in it

// Each of these resets the report.
weft_status files_encode(files *f, const char *code, size_t k, size_t m, uint64_t stripe);
weft_status files_mend(files *f, weft_store_care care);
weft_status files_update(files *f, uint64_t offset, const uint8_t *bytes, size_t count);
weft_status files_read(files *f, uint64_t offset, uint64_t length, uint8_t **out, size_t *count);
weft_status files_state(files *f, size_t shard, weft_shard_state *state, char *text);
// Fails with the call's error message unless it ended with `wanted`.
void expect(weft_status wanted, weft_status got, const files *f);
// Decodes, and checks that the data comes back.
void files_expect_data(files *f);

// --- File calls that fail on demand. They are passed on to the system, except fsync.
typedef struct files_fault {
  bool stingy;  // transfers move few bytes, and every other one is interrupted
  long die_at;  // the n-th call that would change something: _exit; 0: never
  long fail_at; // such calls fail with `error` from the n-th on
  int error;
  long changes; // such calls so far
} files_fault;
extern files_fault files_faults;
extern const weft_store_io files_faulty_io;

#endif
