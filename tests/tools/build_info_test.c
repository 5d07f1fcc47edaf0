// SPDX-License-Identifier: Apache-2.0
// The provenance that every binary carries: a commit id of git's form, or the word "unknown".
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tools/build_info.h"

START_TEST(commit_is_an_id_or_unknown) {
  const char *commit = weft_build_commit();
  if (strcmp(commit, "unknown") == 0) {
    return;
  }
  const size_t digits = strspn(commit, "0123456789abcdef");
  ck_assert_uint_eq(digits, 40);
  ck_assert_msg(commit[digits] == '\0' || strcmp(commit + digits, "-dirty") == 0, "commit is '%s'",
                commit);
}
END_TEST

START_TEST(compiler_and_flags_are_named) {
  ck_assert_msg(strncmp(weft_build_compiler(), "gcc ", 4) == 0 ||
                    strncmp(weft_build_compiler(), "clang ", 6) == 0,
                "compiler is '%s'", weft_build_compiler());
  ck_assert_ptr_null(strchr(weft_build_flags(), '@'));
  ck_assert_uint_gt(strlen(weft_build_flags()), 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("build_info");
  TCase *tcase = tcase_create("build_info");
  tcase_add_test(tcase, commit_is_an_id_or_unknown);
  tcase_add_test(tcase, compiler_and_flags_are_named);
  suite_add_tcase(suite, tcase);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  const int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
