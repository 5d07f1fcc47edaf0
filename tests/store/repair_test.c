// SPDX-License-Identifier: Apache-2.0
// Repair that cannot rebuild everything: what is left is written to missing shards, nothing is
// overwritten, and losses are reported.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/format.h"
#include "tests/store/files.h"
#include "tests/support/test_main.h"

// Five whole stripes, and a last one with shorter chunks.
enum {
  K = 2,
  LENGTH = 5500,
  STRIPE = 1000,
  SEALED = 500 + 32,
  SHARD = 256 + 5 * SEALED + 250 + 32
};

static void begin(files *f, uint64_t salt) {
  files_start(f, salt, LENGTH);
  expect(WEFT_OK, files_encode(f, "cauchy", K, 1, STRIPE), f);
}

static size_t size_of(const files *f, size_t shard) {
  struct stat about;
  return stat(files_shard(f, shard), &about) == 0 ? (size_t)about.st_size : 0;
}

static void expect_no_scratch(const files *f) {
  char path[410];
  for (size_t i = 0; i < 4; i++) {
    snprintf(path, sizeof path, "%s.new", files_shard(f, i));
    ck_assert_msg(access(path, F_OK) != 0, "%s is left", path);
  }
}

static void expect_lost(files *f, uint64_t stripes, uint64_t made) {
  expect(WEFT_E_DAMAGED, files_mend(f, WEFT_STORE_REPAIR), f);
  ck_assert_uint_eq(f->report.lost_stripes, stripes);
  ck_assert_uint_eq(f->report.mended_shards, made);
  ck_assert_msg(strstr(f->report.error, "stripes lost"), "%s", f->report.error);
  expect_no_scratch(f);
}

// Repeated calls on an open store report the damage that exists at that time.
START_TEST(each_call_judges_for_itself) {
  files f;
  weft_store *store;
  begin(&f, 56);
  unlink(files_shard(&f, 2));
  f.report = (weft_store_report){0};
  expect(WEFT_OK, weft_store_open(&f.options, f.folder, WEFT_STORE_WRITE, &f.report, &store), &f);
  expect(WEFT_OK, weft_store_mend(store, WEFT_STORE_REPAIR), &f);
  ck_assert(weft_store_get_info(store).shards[2].mended);
  const uint64_t written = f.report.shard_bytes_written;
  expect(WEFT_OK, weft_store_mend(store, WEFT_STORE_REPAIR), &f);
  ck_assert_uint_eq(f.report.mended_shards, 1);
  ck_assert_uint_eq(f.report.shard_bytes_written, written);
  for (size_t shard = 1; shard <= 2; shard++) { // one that was never rebuilt, and one that was
    files_flip(files_shard(&f, shard), 256 + 7, 1);
    expect(WEFT_E_DAMAGED, weft_store_mend(store, WEFT_STORE_VERIFY), &f);
    ck_assert_uint_eq(f.report.corrupt_chunks, 1);
    expect(WEFT_OK, weft_store_mend(store, WEFT_STORE_SCRUB), &f);
    ck_assert_uint_eq(f.report.mended_chunks, shard);
    expect(WEFT_OK, weft_store_mend(store, WEFT_STORE_VERIFY), &f);
    files_flip(files_shard(&f, shard), 256 + 7, 1);
    expect(WEFT_E_DAMAGED, weft_store_mend(store, WEFT_STORE_VERIFY), &f);
    files_flip(files_shard(&f, shard), 256 + 7, 1);
    expect(WEFT_OK, weft_store_mend(store, WEFT_STORE_VERIFY), &f);
    ck_assert_uint_eq(weft_store_get_info(store).shards[shard].corrupt_chunks, 0);
  }
  // Lost stripes are not remembered either.
  files_flip(files_shard(&f, 0), 256 + SEALED + 7, 1);
  files_flip(files_shard(&f, 1), 256 + SEALED + 7, 1);
  expect(WEFT_E_DAMAGED, weft_store_mend(store, WEFT_STORE_SCRUB), &f);
  expect(WEFT_E_DAMAGED, weft_store_mend(store, WEFT_STORE_VERIFY), &f);
  ck_assert_uint_eq(f.report.lost_stripes, 1);
  files_flip(files_shard(&f, 0), 256 + SEALED + 7, 1);
  expect(WEFT_OK, weft_store_mend(store, WEFT_STORE_SCRUB), &f);
  expect(WEFT_OK, weft_store_mend(store, WEFT_STORE_VERIFY), &f);
  weft_store_close(store);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// A shard is missing and one chunk of another has rotted, in the first stripe, in the middle, or in
// the last: only that stripe is lost.
START_TEST(one_stripe_is_lost) {
  files f;
  begin(&f, 50);
  const size_t stripe = (size_t)_i;
  unlink(files_shard(&f, 2));
  files_flip(files_shard(&f, 0), 256 + stripe * SEALED + 7, 1);
  expect_lost(&f, 1, 1);
  ck_assert_msg(strstr(f.report.error, "rebuilt shards lack them too"), "%s", f.report.error);
  ck_assert_uint_eq(size_of(&f, 2), SHARD);
  // The other stripes survive another loss.
  char spare[400];
  snprintf(spare, sizeof spare, "%s/spare", f.root);
  ck_assert_int_eq(rename(files_shard(&f, 1), spare), 0);
  for (size_t s = 0; s < 6; s++) {
    uint8_t *out;
    size_t count = 0;
    const size_t bytes = s < 5 ? STRIPE : LENGTH - 5 * STRIPE;
    expect(s == stripe ? WEFT_E_DAMAGED : WEFT_OK, files_read(&f, s * STRIPE, bytes, &out, &count),
           &f);
    ck_assert(!out || (count == bytes && memcmp(out, f.data + s * STRIPE, count) == 0));
    free(out);
  }
  ck_assert_int_eq(rename(spare, files_shard(&f, 1)), 0);
  expect_lost(&f, 1, 0);
  // When the chunk comes back, the missing one is mended in place.
  files_flip(files_shard(&f, 0), 256 + stripe * SEALED + 7, 1);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_SCRUB), &f);
  ck_assert_uint_eq(f.report.mended_chunks, 1);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// All stripes from one on are lost because a shard was truncated; it keeps the rest.
START_TEST(the_end_is_lost) {
  files f;
  begin(&f, 51);
  size_t bytes = 0;
  uint8_t *whole = files_get(files_shard(&f, 0), &bytes);
  unlink(files_shard(&f, 2));
  ck_assert_int_eq(truncate(files_shard(&f, 0), 256 + 2 * SEALED), 0);
  expect_lost(&f, 4, 1);
  ck_assert_uint_eq(size_of(&f, 2), SHARD);
  ck_assert_uint_eq(size_of(&f, 0), 256 + 2 * SEALED);
  files_put(files_shard(&f, 0), whole, bytes);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_SCRUB), &f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_expect_data(&f);
  free(whole);
  files_end(&f);
}
END_TEST

// How far repair reads is decided by the shards that are long enough, wherever the short one is.
START_TEST(one_shard_ends_early) {
  files f;
  begin(&f, 58);
  for (size_t i = 0; i < 3; i++) {
    ck_assert_int_eq(truncate(files_shard(&f, i), 256 + 10), 0);
    expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
    expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
    files_expect_data(&f);
  }
  files_end(&f);
}
END_TEST

static bool stop(void *user, uint64_t done, uint64_t total) {
  (void)user, (void)done, (void)total;
  return false;
}

// A repair that was stopped made no shard: what it had rebuilt is incomplete.
START_TEST(repair_is_stopped) {
  files f;
  begin(&f, 59);
  unlink(files_shard(&f, 2));
  f.options.keep_on = stop;
  expect(WEFT_E_STOPPED, files_mend(&f, WEFT_STORE_REPAIR), &f);
  f.options.keep_on = NULL;
  ck_assert_uint_eq(f.report.mended_shards, 0);
  ck_assert_int_ne(access(files_shard(&f, 2), F_OK), 0);
  expect_no_scratch(&f);
  files_expect_data(&f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_end(&f);
}
END_TEST

// The name of the missing shard is the only copy of another, and is not reused.
START_TEST(no_name_is_taken) {
  files f;
  char path[400];
  size_t bytes = 0, now = 0;
  begin(&f, 52);
  snprintf(path, sizeof path, "%s", files_shard(&f, 2));
  ck_assert_int_eq(rename(path, files_shard(&f, 1)), 0);
  uint8_t *before = files_get(files_shard(&f, 1), &bytes);
  files_flip(files_shard(&f, 0), 256 + SEALED + 7, 1);
  expect_lost(&f, 1, 0);
  uint8_t *after = files_get(files_shard(&f, 1), &now);
  ck_assert(now == bytes && memcmp(after, before, bytes) == 0);
  files_flip(files_shard(&f, 0), 256 + SEALED + 7, 1);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  files_expect_data(&f);
  free(before);
  free(after);
  files_end(&f);
}
END_TEST

// A folder has the name of a shard or its .new name: it stays, the other shards are rebuilt, and
// calls that write still work.
START_TEST(a_folder_is_in_the_way) {
  files f;
  char text[WEFT_STORE_TEXT_BYTES], folder[512];
  weft_shard_state state;
  const size_t at = _i % 2 ? 2 : 0, missing = 1;
  files_start(&f, 56, LENGTH);
  snprintf(folder, sizeof folder, "%s%s", files_shard(&f, at), _i / 2 ? ".new" : "");
  expect(WEFT_OK, files_encode(&f, "cauchy", K, 2, STRIPE), &f);
  unlink(files_shard(&f, missing));
  unlink(files_shard(&f, at));
  ck_assert_int_eq(mkdir(folder, 0777), 0);
  expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_REPAIR), &f);
  ck_assert_uint_eq(f.report.mended_shards, 1);
  ck_assert_uint_eq(size_of(&f, missing), SHARD);
  if (_i < 2)
    expect_no_scratch(&f);
  memset(f.data, 7, 10);
  expect(WEFT_OK, files_update(&f, 0, f.data, 10), &f);
  expect(WEFT_OK, files_state(&f, at, &state, text), &f);
  ck_assert_int_eq(state, _i / 2 ? WEFT_SHARD_MISSING : WEFT_SHARD_UNREADABLE);
  ck_assert_int_eq(rmdir(folder), 0);
  expect_no_scratch(&f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  ck_assert_uint_eq(size_of(&f, at), SHARD);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// A shard left by an interrupted call under .new cannot get its name, which a folder has. It is
// read and kept, and calls that write fail and report that name until it is free.
START_TEST(a_folder_has_the_name_that_is_waited_for) {
  files f;
  char waits[512];
  const size_t at = 2 * (size_t)_i;
  files_start(&f, 57, LENGTH);
  snprintf(waits, sizeof waits, "%s.new", files_shard(&f, at));
  expect(WEFT_OK, files_encode(&f, "cauchy", K, 2, STRIPE), &f);
  for (size_t i = 1; i < 3; i++) // leave just as many as are needed
    if (i != at)
      unlink(files_shard(&f, i));
  ck_assert_int_eq(rename(files_shard(&f, at), waits), 0);
  ck_assert_int_eq(mkdir(files_shard(&f, at), 0777), 0);
  files_expect_data(&f);
  for (int update = 0; update < 2; update++) {
    expect(WEFT_E_IO, update ? files_update(&f, 0, f.data, 10) : files_mend(&f, WEFT_STORE_REPAIR),
           &f);
    ck_assert_msg(strstr(f.report.error, files_shard(&f, at)) && !strstr(f.report.error, ".new") &&
                      strstr(f.report.error, strerror(EISDIR)),
                  "%s", f.report.error);
    ck_assert_int_eq(access(waits, F_OK), 0);
  }
  files_expect_data(&f);
  ck_assert_int_eq(rmdir(files_shard(&f, at)), 0);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  expect_no_scratch(&f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// Nothing is rebuilt from fewer than k shards: empty shards would count as members of the set.
START_TEST(too_few_shards) {
  files f;
  begin(&f, 53);
  unlink(files_shard(&f, 1));
  unlink(files_shard(&f, 2));
  expect_lost(&f, 6, 0);
  ck_assert_uint_eq(size_of(&f, 1) + size_of(&f, 2), 0);
  files_end(&f);
}
END_TEST

// A leftover of an interrupted call that the disk cannot read right now may be a shard's only copy.
static ssize_t read_no_leftovers(int fd, const struct iovec *parts, int count, off_t offset) {
  char path[64], name[500];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(path, name, sizeof name - 1);
  if (n > 4 && memcmp(name + n - 4, ".new", 4) == 0) {
    errno = EIO;
    return -1;
  }
  return files_faulty_io.preadv(fd, parts, count, offset);
}

// Repair does not replace such a leftover, and uses it once it can be read.
START_TEST(a_leftover_cannot_be_read_for_a_while) {
  files f;
  begin(&f, 58);
  char left[410];
  snprintf(left, sizeof left, "%s.new", files_shard(&f, 0));
  ck_assert_int_eq(rename(files_shard(&f, 0), left), 0);
  unlink(files_shard(&f, 2));
  weft_store_io io = files_faulty_io;
  io.preadv = read_no_leftovers;
  f.options.io = &io;
  expect(WEFT_E_IO, files_mend(&f, WEFT_STORE_REPAIR), &f);
  ck_assert_msg(strstr(f.report.error, "only copy of shard 0"), "%s", f.report.error);
  f.options.io = &files_faulty_io;
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  files_expect_data(&f);
  expect_no_scratch(&f);
  files_end(&f);
}
END_TEST

// The last stripe is inconsistent: nothing rebuilt from it is sealed, but the rebuilt shard has its
// full size.
START_TEST(the_last_stripe_contradicts_itself) {
  enum { LAST = 256 + 5 * SEALED };
  files f;
  size_t bytes = 0, now = 0;
  files_start(&f, 54, 2 * LENGTH);
  expect(WEFT_OK, files_encode(&f, "cauchy", 2 * K, 2, 2 * STRIPE), &f);
  uint8_t *old = files_get(files_shard(&f, 1), &bytes);
  f.data[2 * LENGTH - 700] ^= 1; // in shard 1
  expect(WEFT_OK, files_update(&f, 2 * LENGTH - 700, f.data + 2 * LENGTH - 700, 1), &f);
  uint8_t *shard = files_get(files_shard(&f, 1), &now);
  ck_assert(bytes == SHARD && now == SHARD && memcmp(old + LAST, shard + LAST, 250) != 0);
  memcpy(old, shard, LAST); // only the last chunk is old
  files_put(files_shard(&f, 1), old, bytes);
  unlink(files_shard(&f, 5));
  expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_REPAIR), &f);
  ck_assert_uint_eq(f.report.inconsistent_stripes, 1);
  ck_assert_uint_eq(f.report.mended_shards, 1);
  ck_assert_uint_eq(size_of(&f, 5), SHARD);
  files_put(files_shard(&f, 1), shard, now);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_SCRUB), &f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_expect_data(&f);
  free(old);
  free(shard);
  files_end(&f);
}
END_TEST

// Repair continues from whatever state a kill at any of its calls leaves.
START_TEST(killed_at_every_call) {
  files f;
  files_start(&f, 55, LENGTH);
  f.options.threads = 1;
  for (long n = 1, done = 0; !done; n++) {
    files_wipe(&f);
    expect(WEFT_OK, files_encode(&f, "cauchy", K, 1, STRIPE), &f);
    unlink(files_shard(&f, 2));
    files_flip(files_shard(&f, 0), 256 + SEALED + 7, 1);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
      files_faults = (files_fault){.die_at = n};
      _exit(files_mend(&f, WEFT_STORE_REPAIR) == WEFT_E_DAMAGED ? 0 : 1);
    }
    int how = 0;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert_msg(WIFEXITED(how) && WEXITSTATUS(how) != 1, "call %ld: %d", n, how);
    done = WEXITSTATUS(how) == 0;
    const bool named = size_of(&f, 2) != 0;
    ck_assert(!named || size_of(&f, 2) == SHARD);
    expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_REPAIR), &f);
    ck_assert_uint_eq(f.report.lost_stripes, 1);
    ck_assert_uint_eq(size_of(&f, 2), SHARD);
    expect_no_scratch(&f);
    files_flip(files_shard(&f, 0), 256 + SEALED + 7, 1);
    expect(WEFT_OK, files_mend(&f, WEFT_STORE_SCRUB), &f);
    ck_assert_uint_eq(f.report.mended_chunks, 1);
    files_expect_data(&f);
  }
  files_end(&f);
}
END_TEST

// Changes one field that all headers of a set have in common in shard 1, as an attacker with write
// access can. Each of these fields counts.
enum { COMMON = 7 };

static void change_header(const files *f, int what) {
  size_t bytes = 0;
  uint8_t *shard = files_get(files_shard(f, 1), &bytes), none[WEFT_STORE_KEY_BYTES] = {0};
  weft_store_header h;
  const char *why;
  expect(WEFT_OK, weft_store_header_read(shard, &h, &why), f);
  h.k = (uint16_t)(h.k - (what == 0));
  h.m = (uint16_t)(h.m + (what == 1));
  h.chunk_bytes += what == 2;
  h.length -= what == 3;
  h.key[5] ^= (uint8_t)(what == 4);
  if (what == 5)
    snprintf(h.code, sizeof h.code, "vandermonde");
  h.keyed = what == 6;
  memcpy(h.key, h.keyed ? none : h.key, sizeof h.key);
  weft_store_header_write(&h, h.key, shard);
  files_put(files_shard(f, 1), shard, bytes);
  free(shard);
}

// The changed shard counts as foreign, and is rebuilt.
START_TEST(a_header_that_is_not_as_others_have_it) {
  files f;
  weft_shard_state state;
  char text[WEFT_STORE_TEXT_BYTES];
  files_start(&f, 57, LENGTH);
  expect(WEFT_OK, files_encode(&f, "cauchy", 3, 2, 900), &f);
  change_header(&f, _i);
  expect(WEFT_OK, files_state(&f, 1, &state, text), &f);
  ck_assert_msg(state == WEFT_SHARD_FOREIGN && strstr(text, "differs from the others"), "%d: %s %s",
                _i, weft_shard_state_name(state), text);
  files_expect_data(&f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  ck_assert_uint_eq(f.report.mended_shards, 1);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_end(&f);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("repair");
  TCase *tests = tcase_create("repair");
  tcase_add_test(tests, each_call_judges_for_itself);
  tcase_add_loop_test(tests, one_stripe_is_lost, 0, 6);
  tcase_add_test(tests, the_end_is_lost);
  tcase_add_test(tests, one_shard_ends_early);
  tcase_add_test(tests, repair_is_stopped);
  tcase_add_test(tests, no_name_is_taken);
  tcase_add_loop_test(tests, a_folder_is_in_the_way, 0, 4);
  tcase_add_loop_test(tests, a_folder_has_the_name_that_is_waited_for, 0, 2);
  tcase_add_test(tests, too_few_shards);
  tcase_add_test(tests, a_leftover_cannot_be_read_for_a_while);
  tcase_add_test(tests, killed_at_every_call);
  tcase_add_test(tests, the_last_stripe_contradicts_itself);
  tcase_add_loop_test(tests, a_header_that_is_not_as_others_have_it, 0, COMMON);
  suite_add_tcase(suite, tests);
  return test_main(suite);
}
