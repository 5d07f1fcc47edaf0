// SPDX-License-Identifier: Apache-2.0
// Compiled kernels kept in a folder: what was saved is loaded again, and any other file in the
// folder is ignored.
#define _DEFAULT_SOURCE // mkdtemp
#include "lib/code_folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/code_seal.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"

static const char code[] = "machine code, of no machine", machine[] = "sm_90", source[] = "kernel";

typedef struct shelf {
  char path[256];
  test_allocator memory;
  weft_code_folder *folder;
  weft_code_seal seal; // as in a context
  weft_code_store store;
} shelf;

static void shelf_open(shelf *s) {
  const char *tmp = getenv("TEST_TMPDIR");
  snprintf(s->path, sizeof s->path, "%s/code-XXXXXX", tmp ? tmp : "/tmp");
  ck_assert_ptr_nonnull(mkdtemp(s->path));
  test_allocator_init(&s->memory, 0);
  ck_assert_int_eq(weft_code_folder_new(&s->folder, s->path, &s->memory.allocator), WEFT_OK);
  s->seal = (weft_code_seal){weft_code_folder_store(s->folder), &s->memory.allocator};
  s->store = weft_code_seal_store(&s->seal);
}

// Counts the files; `name` gets the name of the last one.
static size_t files_in(const shelf *s, char name[600]) {
  size_t count = 0;
  DIR *folder = opendir(s->path);
  ck_assert_ptr_nonnull(folder);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
    if (entry->d_name[0] != '.') {
      snprintf(name, 600, "%s/%s", s->path, entry->d_name);
      count++;
    }
  closedir(folder);
  return count;
}

static void shelf_close(shelf *s) {
  char name[600];
  while (files_in(s, name) > 0)
    ck_assert_int_eq(unlink(name), 0);
  ck_assert_int_eq(rmdir(s->path), 0);
  weft_code_folder_free(s->folder);
  ck_assert_int_eq(test_allocator_live(&s->memory), 0);
}

static void save(const shelf *s) {
  s->store.save(s->store.user, machine, source, code, sizeof code);
}

// Whether the store returns the saved code, whole; fails if it returns anything else.
static bool is_there(shelf *s, const char *for_machine, const char *for_source) {
  void *found = &found;
  size_t bytes = 7;
  ck_assert_int_eq(
      s->store.load(s->store.user, &s->memory.allocator, for_machine, for_source, &found, &bytes),
      WEFT_OK);
  if (!found)
    return false;
  ck_assert_uint_eq(bytes, sizeof code);
  ck_assert_mem_eq(found, code, sizeof code);
  s->memory.allocator.free(s->memory.allocator.user, found);
  return true;
}

START_TEST(what_was_kept_comes_back) {
  shelf s;
  char name[600];
  shelf_open(&s);
  ck_assert(!is_there(&s, machine, source));
  save(&s);
  ck_assert(is_there(&s, machine, source));
  ck_assert(!is_there(&s, "sm_100", source) && !is_there(&s, machine, "another"));
  ck_assert(!is_there(&s, "sm_90kernel", "")); // the boundary between the two names counts
  save(&s);
  ck_assert_uint_eq(files_in(&s, name), 1); // no temporary file is left
  shelf_close(&s);
}
END_TEST

static size_t read_file(const char *name, uint8_t *bytes, size_t most) {
  FILE *file = fopen(name, "rb");
  ck_assert_ptr_nonnull(file);
  const size_t count = fread(bytes, 1, most, file);
  fclose(file);
  return count;
}

static void write_file(const char *name, const uint8_t *bytes, size_t count) {
  FILE *file = fopen(name, "wb");
  ck_assert_ptr_nonnull(file);
  ck_assert_uint_eq(fwrite(bytes, 1, count, file), count);
  ck_assert_int_eq(fclose(file), 0);
}

START_TEST(damaged_files_count_as_missing) {
  shelf s;
  char name[600];
  uint8_t whole[256] = {0};
  shelf_open(&s);
  save(&s);
  ck_assert_uint_eq(files_in(&s, name), 1);
  const size_t bytes = read_file(name, whole, sizeof whole - 1);
  for (size_t i = 0; i < bytes; i++) {
    whole[i] ^= 0x10;
    write_file(name, whole, bytes);
    whole[i] ^= 0x10;
    ck_assert_msg(!is_there(&s, machine, source), "byte %zu", i);
    write_file(name, whole, i); // cut off
    ck_assert_msg(!is_there(&s, machine, source), "%zu bytes", i);
  }
  write_file(name, whole, bytes + 1);
  ck_assert(!is_there(&s, machine, source));
  save(&s); // replaces the damaged file
  ck_assert(is_there(&s, machine, source));
  shelf_close(&s);
}
END_TEST

// A folder in place of the file, or a missing folder, only means that nothing is kept.
START_TEST(folders_that_keep_nothing) {
  shelf s;
  char name[600], away[300];
  shelf_open(&s);
  save(&s);
  ck_assert_uint_eq(files_in(&s, name), 1);
  ck_assert_int_eq(unlink(name), 0);
  ck_assert_int_eq(mkdir(name, 0700), 0); // a folder in the file's place
  save(&s);
  ck_assert(!is_there(&s, machine, source));
  ck_assert_uint_eq(files_in(&s, name), 1);
  ck_assert_int_eq(rmdir(name), 0);
  snprintf(away, sizeof away, "%s-away", s.path);
  ck_assert_int_eq(rename(s.path, away), 0); // the folder does not exist
  save(&s);
  ck_assert(!is_there(&s, machine, source));
  ck_assert_int_eq(rename(away, s.path), 0);
  shelf_close(&s);
}
END_TEST

START_TEST(a_failed_allocation_is_a_status) {
  shelf s;
  shelf_open(&s);
  save(&s);
  for (long n = 1;; n++) {
    test_allocator memory;
    weft_code_folder *folder;
    void *found = NULL;
    size_t bytes;
    test_allocator_init(&memory, n);
    weft_status status = weft_code_folder_new(&folder, s.path, &memory.allocator);
    if (status == WEFT_OK) {
      const weft_code_seal seal = {weft_code_folder_store(folder), &memory.allocator};
      const weft_code_store store = weft_code_seal_store(&seal);
      // A failed save only costs a compilation.
      store.save(store.user, machine, source, code, sizeof code);
      status = store.load(store.user, &memory.allocator, machine, source, &found, &bytes);
    }
    const bool failed = test_allocator_failed(&memory);
    ck_assert(status == WEFT_OK ? found != NULL : status == WEFT_E_NOMEM && !found && failed);
    if (found)
      memory.allocator.free(memory.allocator.user, found);
    weft_code_folder_free(folder);
    ck_assert_int_eq(test_allocator_live(&memory), 0);
    if (!failed)
      break;
  }
  ck_assert(is_there(&s, machine, source));
  shelf_close(&s);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("kernels in a folder");
  TCase *tcase = tcase_create("folder");
  tcase_add_test(tcase, what_was_kept_comes_back);
  tcase_add_test(tcase, damaged_files_count_as_missing);
  tcase_add_test(tcase, folders_that_keep_nothing);
  tcase_add_test(tcase, a_failed_allocation_is_a_status);
  suite_add_tcase(suite, tcase);
  return test_main(suite);
}
