// SPDX-License-Identifier: Apache-2.0
// Runs a program as if on a kernel without IPv6: without_ipv6 PROGRAM [ARGUMENT...]. Exit code 125:
// that is impossible here.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/no_ipv6.h"

enum { CANNOT = 125, NO_PROGRAM = 127 };

int main(int argc, char **argv) {
  if (argc < 2) {
    (void)fputs("without_ipv6 PROGRAM [ARGUMENT...]\n", stderr);
    return 2;
  }
  if (!test_no_ipv6()) {
    (void)fprintf(stderr, "no seccomp filter: %s\n", strerror(errno));
    return CANNOT;
  }
  (void)execvp(argv[1], argv + 1);
  (void)fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
  return NO_PROGRAM;
}
