// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_main.h"

#include <stdlib.h>

#include "tests/support/test_rng.h"

int test_main(Suite *suite) {
  test_seed(); // before Check forks, so that all tests of a run share it
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  const int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
