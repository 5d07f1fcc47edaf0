// SPDX-License-Identifier: Apache-2.0
// Round trips, every loss, bit rot in every byte, and shards that are swapped, foreign, stale or
// forged.
#define _DEFAULT_SOURCE // flock
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/store/files.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

// Files of all lengths come back from shards of several codes.
START_TEST(round_trips) {
  static const struct {
    const char *code;
    size_t k, m;
    uint64_t stripe;
  } shapes[] = {
      {"cauchy", 4, 2, 1024}, {"vandermonde", 3, 2, 100}, {"cauchy_good:w=4:packet=8", 5, 3, 640},
      {"raid6", 6, 2, 777},   {"reed_sol_van", 10, 4, 0}, {"cauchy", 1, 1, 64},
      {"cauchy", 5, 0, 200}};
  static const size_t sizes[] = {0, 1, 2, 99, 1023, 1024, 1025, 2048, 5001};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      files f;
      files_start(&f, s * 100 + i, sizes[i]);
      expect(WEFT_OK, files_encode(&f, shapes[s].code, shapes[s].k, shapes[s].m, shapes[s].stripe),
             &f);
      ck_assert_uint_eq(f.report.data_bytes, f.length);
      files_expect_data(&f);
      expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
      expect(WEFT_E_STATE, files_encode(&f, "cauchy", 2, 1, 0), &f);
      files_end(&f);
    }
}
END_TEST

// Any up to M lost shards are rebuilt; more are reported as damage.
START_TEST(every_loss) {
  enum { K = 4, M = 3 };
  files f;
  files_start(&f, 1, 3001);
  for (unsigned lost = 0; lost < 1u << (K + M); lost++) {
    const int count = __builtin_popcount(lost);
    files_wipe(&f);
    expect(WEFT_OK, files_encode(&f, "cauchy", K, M, 1000), &f);
    for (size_t i = 0; i < K + M; i++)
      if (lost >> i & 1)
        unlink(files_shard(&f, i));
    if (count > M) {
      expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_REPAIR), &f);
      continue;
    }
    files_expect_data(&f);
    expect(count ? WEFT_E_DAMAGED : WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
    expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
    ck_assert_int_eq((int)f.report.mended_shards, count);
    expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
    files_expect_data(&f);
  }
  files_end(&f);
}
END_TEST

// A flipped bit in any byte of a shard is mended: in the header, chunks, generations, nonces and
// tags.
START_TEST(rot_in_every_byte) {
  files f;
  files_start(&f, 2, 150);
  expect(WEFT_OK, files_encode(&f, "cauchy", 2, 2, 60), &f);
  for (size_t shard = 0; shard < 4; shard += 3) {
    size_t bytes = 0;
    uint8_t *sound = files_get(files_shard(&f, shard), &bytes);
    ck_assert_uint_eq(bytes, 256 + 2 * (30 + 32) + 15 + 32);
    for (size_t at = 0; at < bytes; at++) {
      files_flip(files_shard(&f, shard), at, (uint8_t)(1u << at % 8));
      ck_assert_msg(files_mend(&f, WEFT_STORE_VERIFY) == WEFT_E_DAMAGED, "byte %zu", at);
      files_expect_data(&f);
      // A damaged header loses the shard; for a damaged chunk scrubbing suffices.
      expect(at < 256 ? WEFT_E_DAMAGED : WEFT_OK, files_mend(&f, WEFT_STORE_SCRUB), &f);
      expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
      expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
    }
    // Scrubbing has written the same data, under new nonces.
    size_t again = 0;
    uint8_t *now = files_get(files_shard(&f, shard), &again);
    ck_assert_uint_eq(again, bytes);
    ck_assert(memcmp(now, sound, 256) == 0 && memcmp(now + 256, sound + 256, 30) == 0);
    free(now);
    free(sound);
  }
  files_end(&f);
}
END_TEST

static void expect_state(files *f, size_t shard, weft_shard_state wanted, const char *says) {
  weft_shard_state state;
  char text[WEFT_STORE_TEXT_BYTES];
  expect(WEFT_OK, files_state(f, shard, &state, text), f);
  ck_assert_msg(state == wanted && strstr(text, says), "shard %zu is %s, not %s: %s", shard,
                weft_shard_state_name(state), weft_shard_state_name(wanted), text);
}

// Shards that are misplaced, foreign, truncated, overlong or missing are recognised, and repaired.
START_TEST(wrong_shards) {
  files f, other;
  char first[400], second[400], spare[400];
  files_start(&f, 3, 5000);
  files_start(&other, 4, 5000);
  expect(WEFT_OK, files_encode(&f, "cauchy", 4, 2, 1000), &f);
  expect(WEFT_OK, files_encode(&other, "cauchy", 4, 2, 1000), &other);
  snprintf(first, sizeof first, "%s", files_shard(&f, 1));
  snprintf(second, sizeof second, "%s", files_shard(&f, 2));
  snprintf(spare, sizeof spare, "%s/spare", f.root);
  // Swapped.
  rename(first, spare);
  rename(second, first);
  rename(spare, second);
  expect_state(&f, 1, WEFT_SHARD_MISPLACED, "shard 1 has the name shard-002.weft");
  expect_state(&f, 2, WEFT_SHARD_MISPLACED, "shard 2 has the name shard-001.weft");
  files_expect_data(&f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  // Copied over another one.
  files_copy(first, second);
  expect_state(&f, 1, WEFT_SHARD_GOOD, "");
  expect_state(&f, 2, WEFT_SHARD_MISSING,
               "shard-002.weft: it holds shard 1, and shard 2 is missing");
  files_expect_data(&f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  // Foreign.
  files_copy(files_shard(&other, 1), first);
  expect_state(&f, 1, WEFT_SHARD_FOREIGN, "belongs to another file");
  files_expect_data(&f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  // Truncated in a chunk and in the header; too long.
  ck_assert_int_eq(truncate(first, 700), 0);
  expect_state(&f, 1, WEFT_SHARD_TRUNCATED, "it has 700 bytes instead of 1666");
  files_expect_data(&f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  ck_assert_int_eq(truncate(first, 100), 0);
  expect_state(&f, 1, WEFT_SHARD_CORRUPT, "ends within its header");
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  ck_assert_int_eq(truncate(first, 1667), 0);
  expect_state(&f, 1, WEFT_SHARD_OVERLONG, "it has 1667 bytes instead of 1666");
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  // A chunk of the same shard in place of another stripe's.
  size_t bytes = 0;
  uint8_t *shard = files_get(first, &bytes);
  memcpy(shard + 256, shard + 256 + 282, 282);
  files_put(first, shard, bytes);
  free(shard);
  expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_VERIFY), &f);
  ck_assert_uint_eq(f.report.corrupt_chunks, 1);
  files_expect_data(&f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_SCRUB), &f);
  // Missing.
  unlink(first);
  expect_state(&f, 1, WEFT_SHARD_MISSING, "shard-001.weft: it is missing");
  files_end(&other);
  files_end(&f);
}
END_TEST

// Two shards lie under each other's names, one of them under a .new name, so that no name is free.
START_TEST(names_in_a_ring) {
  files f;
  char first[400], astray[410], third[400];
  files_start(&f, 15, 3000);
  expect(WEFT_OK, files_encode(&f, "cauchy", 2, 1, 900), &f);
  snprintf(first, sizeof first, "%s", files_shard(&f, 0));
  snprintf(astray, sizeof astray, "%s.new", first);
  snprintf(third, sizeof third, "%s", files_shard(&f, 2));
  unlink(files_shard(&f, 1));
  ck_assert_int_eq(rename(third, astray), 0);
  ck_assert_int_eq(rename(first, third), 0);
  expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_REPAIR), &f);
  ck_assert_msg(strstr(f.report.error, "shard-000.weft.new holds shard 2"), "%s", f.report.error);
  files_expect_data(&f);
  ck_assert_int_eq(rename(astray, files_shard(&f, 3)), 0);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// Forges the headers of shards [first, end) as an attacker without the key can: with the right
// digest.
static void forge(const files *f, size_t first, size_t end, bool keyed, const char *code) {
  static const uint8_t other_key[WEFT_STORE_KEY_BYTES] = {1};
  for (size_t i = first; i < end; i++) {
    size_t bytes = 0;
    uint8_t *shard = files_get(files_shard(f, i), &bytes);
    weft_store_header header;
    const char *why;
    expect(WEFT_OK, weft_store_header_read(shard, &header, &why), f);
    header.keyed = keyed;
    header.length--;
    snprintf(header.code, sizeof header.code, "%s", code);
    weft_store_header_write(&header, keyed ? other_key : header.key, shard);
    files_put(files_shard(f, i), shard, bytes);
    free(shard);
  }
}

// As many shards as may be lost can be forged, even if they are the majority.
START_TEST(forgers_have_no_vote) {
  enum { K = 2, M = 4 };
  files f;
  uint8_t right[WEFT_STORE_KEY_BYTES];
  files_start(&f, 13, 3000);
  weft_store_user_key((const uint8_t *)"0123456789abcdef", 16, right);
  f.options.key = right;
  for (int keyed = 0; keyed < 2; keyed++) {
    files_wipe(&f);
    expect(WEFT_OK, files_encode(&f, "cauchy", K, M, 900), &f);
    forge(&f, 0, M, keyed, "cauchy");
    expect_state(&f, 0, WEFT_SHARD_FOREIGN,
                 "its header is of this file, but differs from the others");
    files_expect_data(&f);
    expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
    expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  }
  forge(&f, 0, K + M, true, "cauchy");
  expect(WEFT_E_KEY, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_end(&f);
}
END_TEST

// A set whose headers name an unknown code is damaged.
START_TEST(a_code_that_there_is_not) {
  files f;
  files_start(&f, 14, 3000);
  expect(WEFT_OK, files_encode(&f, "cauchy", 2, 1, 900), &f);
  forge(&f, 0, 3, false, "cauchier");
  expect(WEFT_E_DAMAGED, files_mend(&f, WEFT_STORE_VERIFY), &f);
  ck_assert_msg(strstr(f.report.error, "an unknown code: cauchier with k = 2, m = 1"), "%s",
                f.report.error);
  files_end(&f);
}
END_TEST

// A set with a key can be read only with that key.
START_TEST(keys) {
  files f;
  uint8_t right[WEFT_STORE_KEY_BYTES], wrong[WEFT_STORE_KEY_BYTES];
  files_start(&f, 5, 3000);
  weft_store_user_key((const uint8_t *)"0123456789abcdef", 16, right);
  weft_store_user_key((const uint8_t *)"0123456789abcdeg", 16, wrong);
  f.options.key = right;
  expect(WEFT_OK, files_encode(&f, "cauchy", 3, 2, 900), &f);
  files_expect_data(&f);
  f.options.key = wrong;
  expect(WEFT_E_KEY, files_mend(&f, WEFT_STORE_VERIFY), &f);
  f.options.key = NULL;
  expect(WEFT_E_KEY, files_mend(&f, WEFT_STORE_VERIFY), &f);
  f.options.key = right;
  // Without the key an attacker can make the digest fit, but not the authentication.
  size_t bytes = 0;
  const char *path = files_shard(&f, 2);
  uint8_t *shard = files_get(path, &bytes);
  weft_store_header header;
  const char *why;
  expect(WEFT_OK, weft_store_header_read(shard, &header, &why), &f);
  weft_store_header_write(&header, wrong, shard);
  files_put(path, shard, bytes);
  free(shard);
  expect_state(&f, 2, WEFT_SHARD_FORGED, "was not made with this key");
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  files_wipe(&f);
  f.options.key = NULL;
  expect(WEFT_OK, files_encode(&f, "cauchy", 3, 2, 900), &f);
  f.options.key = right; // a set without the key is not accepted as one with it
  expect(WEFT_E_KEY, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_end(&f);
}
END_TEST

// A read fetches only the chunks it needs, k of a stripe if one is lost.
START_TEST(reads_touch_what_they_need) {
  enum { K = 4, CHUNK = 250, SEALED = CHUNK + WEFT_STORE_TRAILER_BYTES };
  files f;
  files_start(&f, 6, 20 * K * CHUNK);
  expect(WEFT_OK, files_encode(&f, "cauchy", K, 2, K * CHUNK), &f);
  for (int degraded = 0; degraded < 2; degraded++) {
    static const struct {
      uint64_t offset, length, chunks, degraded_chunks;
    } reads[] = {{5 * K * CHUNK + 10, 20, 1, K},    // in shard 0, which is lost later
                 {5 * K * CHUNK + CHUNK, 20, 1, 1}, // in shard 1
                 {7 * K * CHUNK - 1, 2, 2, K + 1},  // across two stripes
                 {3 * K * CHUNK, K * CHUNK, K, K},  // a stripe
                 {100, 0, 0, 0}};
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
      uint8_t *out;
      size_t count = 0;
      expect(WEFT_OK, files_read(&f, reads[i].offset, reads[i].length, &out, &count), &f);
      ck_assert_uint_eq(count, reads[i].length);
      ck_assert_int_eq(memcmp(out, f.data + reads[i].offset, count), 0);
      const uint64_t chunks = degraded ? reads[i].degraded_chunks : reads[i].chunks;
      ck_assert_msg(f.report.shard_bytes_read == chunks * SEALED, "read %zu, degraded %d: %zu", i,
                    degraded, (size_t)f.report.shard_bytes_read);
      free(out);
    }
    unlink(files_shard(&f, 0));
  }
  uint8_t *out;
  size_t count;
  expect(WEFT_E_ARGUMENT, files_read(&f, f.length - 1, 2, &out, &count), &f);
  expect(WEFT_E_ARGUMENT, files_read(&f, f.length + 1, 0, &out, &count), &f);
  files_end(&f);
}
END_TEST

// Random updates change the data and keep the set sound.
START_TEST(updates) {
  files f;
  files_start(&f, 7, 5003);
  test_rng rng = test_rng_new(test_seed(), 70);
  static const char *const codes[] = {"cauchy", "cauchy_good:w=4:packet=8", "raid6"};
  for (size_t c = 0; c < 3; c++) {
    files_wipe(&f);
    expect(WEFT_OK, files_encode(&f, codes[c], 4, 2, 1000), &f);
    for (int i = 0; i < 12; i++) {
      uint8_t bytes[2500];
      const size_t count = test_rng_below(&rng, i % 3 ? sizeof bytes : 8);
      const size_t offset = test_rng_below(&rng, f.length - count + 1);
      test_rng_fill(&rng, bytes, count);
      if (i == 5) // a rotted data chunk that the update reads is rebuilt first
        files_flip(files_shard(&f, 1), 300, 1);
      expect(WEFT_OK, files_update(&f, offset, bytes, count), &f);
      memcpy(f.data + offset, bytes, count);
      files_expect_data(&f);
    }
    expect(WEFT_OK, files_mend(&f, WEFT_STORE_SCRUB), &f);
    expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
    ck_assert_uint_eq(f.report.inconsistent_stripes, 0);
  }
  expect(WEFT_E_ARGUMENT, files_update(&f, f.length - 1, (const uint8_t *)"ab", 2), &f);
  files_expect_data(&f);
  // A shard that was absent during an update must not be used again.
  char spare[400];
  snprintf(spare, sizeof spare, "%s/spare", f.root);
  rename(files_shard(&f, 1), spare);
  f.data[4000] ^= 1;
  expect(WEFT_OK, files_update(&f, 4000, f.data + 4000, 1), &f);
  rename(spare, files_shard(&f, 1));
  expect_state(&f, 1, WEFT_SHARD_STALE, "it missed an update");
  files_expect_data(&f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_REPAIR), &f);
  expect(WEFT_OK, files_mend(&f, WEFT_STORE_VERIFY), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

START_TEST(refusals) {
  files f;
  files_start(&f, 8, 100);
  expect(WEFT_E_DAMAGED, (mkdir(f.folder, 0777), files_mend(&f, WEFT_STORE_VERIFY)), &f);
  expect(WEFT_E_ARGUMENT, files_encode(&f, "cauchy", 0, 2, 0), &f);
  expect(WEFT_E_ARGUMENT, files_encode(&f, "cauchy", 200, 57, 0), &f);
  expect(WEFT_E_ARGUMENT, files_encode(&f, "no such code", 4, 2, 0), &f);
  static const struct {
    const char *code;
    size_t k;
    uint64_t stripe;
  } vast[] = {
      {"cauchy", 1, UINT64_MAX},
      {"cauchy", 2, (UINT64_C(2) << 30) + 1},
      {"cauchy_good:w=8:packet=2305843009213693951", 2, 0}, // 2^64 - 8 bytes a unit
      {"cauchy_good:w=8:packet=1152921504606846976", 2, 0},
  };
  for (size_t i = 0; i < sizeof vast / sizeof *vast; i++) {
    expect(WEFT_E_ARGUMENT, files_encode(&f, vast[i].code, vast[i].k, 1, vast[i].stripe), &f);
    ck_assert_msg(strstr(f.report.error, "chunks of more than 1 GiB"), "%s", f.report.error);
  }
  expect(WEFT_E_SINGULAR, files_encode(&f, "isal_rs", 30, 5, 0), &f);
  files_end(&f);
}
END_TEST

// Another call locks the folder as soon as it exists.
static int other_call = -1;

static int mkdir_for_another(const char *path, mode_t mode) {
  const int made = mkdir(path, mode);
  other_call = open(path, O_RDONLY | O_DIRECTORY);
  ck_assert(other_call >= 0 && flock(other_call, LOCK_EX) == 0);
  return made;
}

// If another call locks the new folder first, encode fails and leaves the folder.
START_TEST(a_folder_of_two) {
  files f;
  files_start(&f, 9, 100);
  weft_store_io io = files_faulty_io;
  io.mkdir = mkdir_for_another;
  f.options.io = &io;
  expect(WEFT_E_IO, files_encode(&f, "cauchy", 2, 1, 0), &f);
  ck_assert_msg(access(f.folder, F_OK) == 0, "the folder that another works in was removed");
  close(other_call);
  f.options.io = &files_faulty_io;
  expect(WEFT_OK, files_encode(&f, "cauchy", 2, 1, 0), &f);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// The process has no file descriptor left for a shard.
static int open_no_more(const char *path, int flags, mode_t mode) {
  if (strstr(path, "/shard-")) {
    errno = EMFILE;
    return -1;
  }
  return files_faulty_io.open(path, flags, mode);
}

static int folders_opened;

static int open_folder_once(const char *path, int flags, mode_t mode) {
  if ((flags & O_DIRECTORY) && folders_opened++) {
    errno = EMFILE;
    return -1;
  }
  return files_faulty_io.open(path, flags, mode);
}

// Running out of file descriptors is an I/O error, not damage.
START_TEST(too_many_open_files) {
  files f;
  files_start(&f, 10, 100);
  expect(WEFT_OK, files_encode(&f, "cauchy", 2, 1, 0), &f);
  weft_store_io io = files_faulty_io;
  io.open = open_no_more;
  f.options.io = &io;
  expect(WEFT_E_IO, files_mend(&f, WEFT_STORE_VERIFY), &f);
  expect(WEFT_E_IO, files_mend(&f, WEFT_STORE_REPAIR), &f);
  // As many files as an update needs up to its commit suffice for the rest of it.
  io.open = open_folder_once;
  expect(WEFT_OK, files_update(&f, 3, f.data, 7), &f);
  memmove(f.data + 3, f.data, 7);
  f.options.io = &files_faulty_io;
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

// The name of a folder that was just created is not on the disk yet.
static int parents_opened;

static int open_and_count(const char *path, int flags, mode_t mode) {
  const size_t length = strlen(path);
  parents_opened += length > 3 && strcmp(path + length - 3, "/..") == 0;
  return files_faulty_io.open(path, flags, mode);
}

// Encode syncs the parent of a folder that was just created.
START_TEST(a_folder_just_made) {
  files f;
  files_start(&f, 12, 100);
  weft_store_io io = files_faulty_io;
  io.open = open_and_count;
  f.options.io = &io;
  ck_assert_int_eq(mkdir(f.folder, 0777), 0);
  expect(WEFT_OK, files_encode(&f, "cauchy", 2, 1, 0), &f);
  ck_assert_int_eq(parents_opened, 1);
  files_end(&f);
}
END_TEST

// Some file systems sync no folders.
static int sync_no_folder(int fd) {
  struct stat about;
  if (fstat(fd, &about) == 0 && S_ISDIR(about.st_mode)) {
    errno = EINVAL;
    return -1;
  }
  return 0;
}

// The store works on file systems that cannot sync folders.
START_TEST(folders_without_sync) {
  files f;
  files_start(&f, 11, 100);
  weft_store_io io = files_faulty_io;
  io.fsync = sync_no_folder;
  f.options.io = &io;
  expect(WEFT_OK, files_encode(&f, "cauchy", 2, 1, 0), &f);
  expect(WEFT_OK, files_update(&f, 3, f.data, 7), &f);
  memmove(f.data + 3, f.data, 7);
  files_expect_data(&f);
  files_end(&f);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("damage");
  TCase *tests = tcase_create("damage");
  tcase_add_test(tests, round_trips);
  tcase_add_test(tests, every_loss);
  tcase_add_test(tests, rot_in_every_byte);
  tcase_add_test(tests, wrong_shards);
  tcase_add_test(tests, names_in_a_ring);
  tcase_add_test(tests, forgers_have_no_vote);
  tcase_add_test(tests, a_code_that_there_is_not);
  tcase_add_test(tests, keys);
  tcase_add_test(tests, reads_touch_what_they_need);
  tcase_add_test(tests, updates);
  tcase_add_test(tests, refusals);
  tcase_add_test(tests, a_folder_of_two);
  tcase_add_test(tests, too_many_open_files);
  tcase_add_test(tests, folders_without_sync);
  tcase_add_test(tests, a_folder_just_made);
  suite_add_tcase(suite, tests);
  return test_main(suite);
}
