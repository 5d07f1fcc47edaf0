// SPDX-License-Identifier: Apache-2.0
// Runs a Check suite: prints the seed, honours Check's environment variables, returns main's exit
// status.
#ifndef WEFT_TESTS_TEST_MAIN_H
#define WEFT_TESTS_TEST_MAIN_H

#include <check.h>

int test_main(Suite *suite);

#endif
