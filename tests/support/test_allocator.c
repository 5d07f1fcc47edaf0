// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "tests/support/test_allocator.h"

#include <stdlib.h>

static void *take(void *user, size_t bytes, size_t align) {
  test_allocator *memory = user;
  void *block;
  if (atomic_fetch_add(&memory->calls, 1) + 1 == memory->fail_at)
    return NULL;
  if (align < sizeof(void *))
    align = sizeof(void *);
  if (posix_memalign(&block, align, bytes) != 0)
    return NULL;
  atomic_fetch_add(&memory->live, 1);
  return block;
}

static void give(void *user, void *block) {
  test_allocator *memory = user;
  atomic_fetch_sub(&memory->live, 1);
  free(block);
}

void test_allocator_init(test_allocator *memory, long fail_at) {
  memory->allocator = (weft_allocator){.alloc = take, .free = give, .user = memory};
  memory->fail_at = fail_at;
  atomic_init(&memory->calls, 0);
  atomic_init(&memory->live, 0);
}

long test_allocator_live(test_allocator *memory) { return atomic_load(&memory->live); }

bool test_allocator_failed(test_allocator *memory) {
  return memory->fail_at > 0 && atomic_load(&memory->calls) >= memory->fail_at;
}
