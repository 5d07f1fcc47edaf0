// SPDX-License-Identifier: Apache-2.0
// Copies past the caches: every alignment and tail, between inaccessible pages.
#include <stdbool.h>
#include <string.h>

#include "kernels/copy_past.h"
#include "tests/support/test_guard.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

static void expect_copy(const test_guard *to, const test_guard *from, size_t bytes, bool at_end,
                        size_t shift) {
  const size_t room = (size_t)(to->end - to->begin);
  ck_assert_uint_le(bytes + shift, room);
  uint8_t *const y = at_end ? to->end - bytes - shift : to->begin + shift;
  const uint8_t *const x = at_end ? from->end - bytes : from->begin;
  memset(to->begin, 0xA5, room);
  weft_copy_past(y, x, bytes);
  ck_assert_msg(memcmp(y, x, bytes) == 0, "%zu bytes, shifted by %zu", bytes, shift);
  for (const uint8_t *p = to->begin; p < to->end; p++)
    if (p < y || p >= y + bytes)
      ck_assert_msg(*p == 0xA5, "%zu bytes, shifted by %zu: wrote outside", bytes, shift);
}

START_TEST(bytes_are_copied_and_no_others) {
  enum { MOST = 4096 };
  test_guard to = test_guard_new(MOST), from = test_guard_new(MOST);
  test_rng rng = test_rng_new(test_seed(), 84);
  test_rng_fill(&rng, from.begin, (size_t)(from.end - from.begin));
  for (size_t bytes = 0; bytes < 520; bytes++)
    for (int end = 0; end < 2; end++)
      expect_copy(&to, &from, bytes, end, test_rng_below(&rng, 65));
  for (size_t shift = 0; shift <= 64; shift++)
    for (int end = 0; end < 2; end++)
      expect_copy(&to, &from, MOST - shift, end, shift);
  test_guard_free(&from);
  test_guard_free(&to);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("copy_past");
  TCase *t = tcase_create("copy_past");
  tcase_add_test(t, bytes_are_copied_and_no_others);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
