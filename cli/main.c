// SPDX-License-Identifier: Apache-2.0
// The program `weft`. So far it only says what it was built from.
#include <stdio.h>
#include <string.h>

#include "tools/build_info.h"

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--version") == 0) {
    printf("weft, commit %s, %s, %s\n", weft_build_commit(), weft_build_compiler(),
           weft_build_flags());
    return 0;
  }
  fprintf(stderr, "usage: weft --version\n");
  return 2;
}
