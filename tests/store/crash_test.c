// SPDX-License-Identifier: Apache-2.0
// The process dies before each call that changes a file, in encode, repair and update: the old
// state or the new one is found afterwards. Then the same calls fail instead, and transfers are
// short and interrupted.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/store/files.h"
#include "tests/support/test_main.h"

enum { K = 3, M = 2, LENGTH = 2501, STRIPE = 600, AT = 500, PATCH = 1300, DIED = 99 };

typedef enum { ENCODE, REPAIR, REPAIR_SWAPPED, REPAIR_ASTRAY, UPDATE, UPDATE_DEGRADED, CALLS } call;

static void prepare(files *f, call which) {
  files_wipe(f);
  if (which == ENCODE)
    return;
  expect(WEFT_OK, files_encode(f, "cauchy", K, M, STRIPE), f);
  if (which == UPDATE)
    return;
  unlink(files_shard(f, 1));
  if (which == REPAIR_ASTRAY) { // one of the K left has shard 1's .new name
    char name[400], astray[410];
    snprintf(astray, sizeof astray, "%s.new", files_shard(f, 1));
    snprintf(name, sizeof name, "%s", files_shard(f, 4));
    unlink(files_shard(f, 3));
    ck_assert_int_eq(rename(name, astray), 0);
    return;
  }
  if (which == REPAIR_SWAPPED) { // of the K left two are swapped: each rename removes a copy
    char first[400], spare[400];
    snprintf(first, sizeof first, "%s", files_shard(f, 0));
    snprintf(spare, sizeof spare, "%s/spare", f->root);
    unlink(files_shard(f, 3));
    ck_assert_int_eq(rename(first, spare), 0);
    ck_assert_int_eq(rename(files_shard(f, 4), first), 0);
    ck_assert_int_eq(rename(spare, files_shard(f, 4)), 0);
    return;
  }
  files_flip(files_shard(f, 4), 300, 4);
}

static weft_status do_call(files *f, call which, const uint8_t *patch) {
  files_faults.changes = 0;
  weft_status status;
  if (which == ENCODE)
    status = files_encode(f, "cauchy", K, M, STRIPE);
  else if (which < UPDATE)
    status = files_mend(f, WEFT_STORE_REPAIR);
  else
    status = files_update(f, AT, patch, PATCH);
  return status;
}

// Whether the new state is found. Fails if it is neither the old nor the new one.
static bool settled(files *f, call which, const uint8_t *patch, long n) {
  uint8_t *out;
  size_t count = 0;
  const weft_status status = files_read(f, 0, UINT64_MAX, &out, &count);
  if (which == ENCODE && status != WEFT_OK) {
    ck_assert_msg(strstr(f->report.error, "there are no shards") ||
                      strstr(f->report.error, "No such file"),
                  "call %ld: %s", n, f->report.error);
    return false;
  }
  ck_assert_msg(status == WEFT_OK && count == f->length, "call %ld: %s", n, f->report.error);
  bool is_new = memcmp(out, f->data, count) == 0;
  if (which >= UPDATE) {
    const bool is_old = is_new;
    uint8_t *wanted = malloc(LENGTH);
    memcpy(wanted, f->data, LENGTH);
    memcpy(wanted + AT, patch, PATCH);
    is_new = memcmp(out, wanted, count) == 0;
    ck_assert_msg(is_new != is_old, "call %ld left a mixture", n);
    free(wanted);
  } else {
    ck_assert_msg(is_new, "call %ld lost bytes", n);
  }
  free(out);
  return is_new;
}

// Checks that everything is sound after the next writer.
static void recovers(files *f, call which, const uint8_t *patch, long n, bool is_new) {
  if (which == ENCODE && !is_new)
    expect(WEFT_OK, files_encode(f, "cauchy", K, M, STRIPE), f);
  expect(WEFT_OK, files_mend(f, WEFT_STORE_REPAIR), f);
  expect(WEFT_OK, files_mend(f, WEFT_STORE_VERIFY), f);
  ck_assert(settled(f, which, patch, n) == (is_new || which < UPDATE));
  char command[400];
  snprintf(command, sizeof command, "test $(ls '%s' | wc -l) = %d", f->folder, K + M);
  ck_assert_msg(system(command) == 0, "call %ld: leftovers in the folder", n);
}

START_TEST(death_at_every_call) {
  files f;
  files_start(&f, 10, LENGTH);
  f.options.threads = 1; // so that the n-th call is always the same
  uint8_t patch[PATCH];
  memset(patch, 0xA5, sizeof patch);
  bool is_new = false, before = false;
  for (long n = 1;; n++) {
    prepare(&f, (call)_i);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
      files_faults = (files_fault){.die_at = n};
      _exit(do_call(&f, (call)_i, patch) == WEFT_OK ? 0 : 1);
    }
    int how = 0;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert(WIFEXITED(how));
    before = is_new;
    is_new = settled(&f, (call)_i, patch, n);
    // Once it is committed, a later death does not undo it.
    ck_assert_msg(is_new || !before, "call %ld undid what call %ld committed", n, n - 1);
    recovers(&f, (call)_i, patch, n, is_new);
    if (WEXITSTATUS(how) != DIED) {
      ck_assert_int_eq(WEXITSTATUS(how), 0);
      ck_assert(is_new && n > 10);
      break;
    }
  }
  files_end(&f);
}
END_TEST

// On a disk that is full from the n-th call on, the call reports the failure, and leaves the old or
// the new state.
START_TEST(failure_at_every_call) {
  files f;
  files_start(&f, 11, LENGTH);
  f.options.threads = 1;
  uint8_t patch[PATCH];
  memset(patch, 0x5A, sizeof patch);
  bool said = false;
  for (long n = 1;; n++) {
    prepare(&f, (call)_i);
    files_faults = (files_fault){.fail_at = n, .error = n % 2 ? ENOSPC : EIO};
    const weft_status status = do_call(&f, (call)_i, patch);
    if (status == WEFT_OK)
      break;
    expect(WEFT_E_IO, status, &f);
    ck_assert_msg(strstr(f.report.error, strerror(files_faults.error)), "%s", f.report.error);
    const bool says_new = strstr(f.report.error, "is committed all the same");
    files_faults = (files_fault){0};
    const bool is_new = settled(&f, (call)_i, patch, n);
    const bool repairs = _i != ENCODE && _i < UPDATE; // a repair does not change the data
    ck_assert_msg(repairs || is_new == says_new, "call %ld: it does not say what is there", n);
    said = said || says_new;
    recovers(&f, (call)_i, patch, n, is_new);
  }
  ck_assert(said);
  files_end(&f);
}
END_TEST

// Short and interrupted transfers are continued.
START_TEST(short_and_interrupted) {
  files f;
  files_start(&f, 12, 100 * LENGTH);
  files_faults = (files_fault){.stingy = true};
  uint8_t patch[PATCH];
  memset(patch, 0x33, sizeof patch);
  expect(WEFT_OK, files_encode(&f, "cauchy", K, M, STRIPE), &f);
  files_expect_data(&f);
  expect(WEFT_OK, files_update(&f, AT, patch, PATCH), &f);
  memcpy(f.data + AT, patch, PATCH);
  unlink(files_shard(&f, 0));
  files_expect_data(&f);
  uint8_t *out;
  size_t count = 0;
  for (uint64_t offset = 777; offset < 779; offset++) { // to a pipe and to a file
    expect(WEFT_OK, files_read(&f, offset, 5000, &out, &count), &f);
    ck_assert(count == 5000 && memcmp(out, f.data + offset, count) == 0);
    free(out);
  }
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_end(&f);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("crash");
  TCase *tests = tcase_create("crash");
  tcase_add_loop_test(tests, death_at_every_call, 0, CALLS);
  tcase_add_loop_test(tests, failure_at_every_call, 0, CALLS);
  tcase_add_test(tests, short_and_interrupted);
  suite_add_tcase(suite, tests);
  return test_main(suite);
}
