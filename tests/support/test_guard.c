// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE // MAP_ANONYMOUS
#include "tests/support/test_guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

test_guard test_guard_new(size_t bytes) {
  const size_t page = page_bytes();
  const size_t usable = (bytes + page - 1) / page * page;
  uint8_t *map = mmap(NULL, usable + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED ||
      (usable > 0 && mprotect(map + page, usable, PROT_READ | PROT_WRITE) != 0)) {
    perror("test_guard_new");
    exit(2);
  }
  return (test_guard){map + page, map + page + usable};
}

void test_guard_free(test_guard *guard) {
  const size_t page = page_bytes();
  munmap(guard->begin - page, (size_t)(guard->end - guard->begin) + 2 * page);
  *guard = (test_guard){0};
}
