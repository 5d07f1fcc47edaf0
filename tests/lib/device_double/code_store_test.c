// SPDX-License-Identifier: Apache-2.0
// What a device gets from the store that a caller gives its context: the code that was saved, or
// nothing, whatever the store returns. In it, damaged code would go to the driver.
#include <stdlib.h>
#include <string.h>

#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"
#include "weft/context.h"

static const char code[] = "machine code, of no machine";

// A store of one kernel in memory.
typedef struct shelf {
  uint8_t bytes[256];
  size_t count;
  bool refuses; // to load
} shelf;

static weft_status load(void *user, const weft_allocator *allocator, const char *machine,
                        const char *source, void **out, size_t *bytes) {
  const shelf *s = user;
  (void)machine;
  (void)source;
  *out = NULL;
  if (s->refuses)
    return WEFT_E_IO;
  // At the end of its block, so that a checker sees reads beyond it.
  void *memory = allocator->alloc(allocator->user, s->count ? s->count : 1, 16);
  if (!memory)
    return WEFT_E_NOMEM;
  *out = memcpy(memory, s->bytes, s->count);
  *bytes = s->count;
  return WEFT_OK;
}

static void save(void *user, const char *machine, const char *source, const void *from,
                 size_t bytes) {
  shelf *s = user;
  (void)machine;
  (void)source;
  ck_assert_uint_le(bytes, sizeof s->bytes);
  memcpy(s->bytes, from, bytes);
  s->count = bytes;
}

static weft_ctx *new_ctx(test_allocator *memory, const weft_code_store *store) {
  weft_ctx *ctx;
  const weft_ctx_options options = {
      .backend = "cuda", .allocator = &memory->allocator, .code_store = store};
  ck_assert_int_eq(weft_ctx_new(&ctx, &options), WEFT_OK);
  return ctx;
}

// Whether the device gets the code that was saved, whole; fails if it gets anything else.
static bool is_there(const test_allocator *memory) {
  const weft_code_store store = weft_double_code_store();
  void *found = NULL;
  size_t bytes = 0;
  const weft_status status =
      store.load(store.user, &memory->allocator, "machine", "source", &found, &bytes);
  if (!found || status != WEFT_OK)
    return false;
  ck_assert_uint_eq(bytes, sizeof code);
  ck_assert_mem_eq(found, code, sizeof code);
  memory->allocator.free(memory->allocator.user, found);
  return true;
}

START_TEST(damaged_code_counts_as_missing) {
  shelf s = {.refuses = false};
  test_allocator memory;
  test_allocator_init(&memory, 0);
  weft_ctx *ctx = new_ctx(&memory, &(weft_code_store){.user = &s, .load = load, .save = save});
  ck_assert(!is_there(&memory)); // nothing is saved yet
  const weft_code_store store = weft_double_code_store();
  store.save(store.user, "machine", "source", code, sizeof code);
  ck_assert(is_there(&memory));
  const size_t whole = s.count;
  for (size_t i = 0; i < whole; i++) {
    s.bytes[i] ^= 0x10;
    ck_assert_msg(!is_there(&memory), "byte %zu", i);
    s.bytes[i] ^= 0x10;
    s.count = i; // cut off
    ck_assert_msg(!is_there(&memory), "%zu bytes", i);
    s.count = whole;
  }
  s.count = whole + 1;
  ck_assert(!is_there(&memory));
  memcpy(s.bytes, code, sizeof code); // code as it is, without what weft puts before it
  s.count = sizeof code;
  ck_assert(!is_there(&memory));
  s.refuses = true;
  ck_assert(!is_there(&memory));
  weft_ctx_free(ctx);
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

START_TEST(a_store_may_lack_a_call) {
  shelf s = {.refuses = false};
  test_allocator memory;
  test_allocator_init(&memory, 0);
  weft_ctx *ctx = new_ctx(&memory, &(weft_code_store){.user = &s, .load = load});
  ck_assert(!weft_double_code_store().save && weft_double_code_store().load);
  weft_ctx_free(ctx);
  ctx = new_ctx(&memory, &(weft_code_store){.user = &s, .save = save});
  ck_assert(weft_double_code_store().save && !weft_double_code_store().load);
  weft_ctx_free(ctx);
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("a caller's store of kernels");
  TCase *tcase = tcase_create("store");
  tcase_add_test(tcase, damaged_code_counts_as_missing);
  tcase_add_test(tcase, a_store_may_lack_a_call);
  suite_add_tcase(suite, tcase);
  return test_main(suite);
}
