// SPDX-License-Identifier: Apache-2.0
// Memory runs out at any allocation of any call: the call says so, leaks nothing, and what was
// stored is as it was.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/store/files.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { K = 3, M = 2, LENGTH = 2501, STRIPE = 600, AT = 100, PATCH = 1300 };

typedef enum { ENCODE, VERIFY, REPAIR, READ, UPDATE, CALLS } call;

static weft_status do_call(files *f, call which, const uint8_t *patch) {
  uint8_t *out = NULL;
  size_t count = 0;
  weft_status status = WEFT_OK;
  switch (which) {
  case ENCODE:
    files_wipe(f);
    return files_encode(f, "cauchy", K, M, STRIPE);
  case VERIFY:
    return files_mend(f, WEFT_STORE_VERIFY);
  case REPAIR:
    return files_mend(f, WEFT_STORE_REPAIR);
  case READ:
    status = files_read(f, AT, PATCH, &out, &count);
    ck_assert(status != WEFT_OK || (count == PATCH && memcmp(out, f->data + AT, PATCH) == 0));
    free(out);
    return status;
  default:
    return files_update(f, AT, patch, PATCH);
  }
}

// Makes a set, of which reads and repairs have to rebuild a shard.
static void prepare(files *f, call which) {
  files_wipe(f);
  ck_assert_int_eq(files_encode(f, "cauchy", K, M, STRIPE), WEFT_OK);
  if (which == REPAIR || which == READ)
    unlink(files_shard(f, 0));
}

START_TEST(every_call_says_that_memory_ran_out) {
  const call which = (call)_i;
  test_allocator memory;
  files f;
  uint8_t patch[PATCH];
  bool failed = true;
  long n = 1;
  files_start(&f, 90, LENGTH);
  f.options.threads = 1;
  weft_ctx *const plenty = f.ctx;
  for (; failed; n++) {
    prepare(&f, which);
    memcpy(patch, f.data + AT, PATCH);
    patch[n % PATCH] ^= 1;
    test_allocator_init(&memory, 0);
    ck_assert_int_eq(
        weft_ctx_new(&f.options.ctx, &(weft_ctx_options){.allocator = &memory.allocator}), WEFT_OK);
    memory.fail_at = memory.calls + n;
    const weft_status status = do_call(&f, which, patch);
    failed = test_allocator_failed(&memory);
    weft_ctx_free(f.options.ctx);
    f.options.ctx = plenty;
    // What only makes work faster may fail unnoticed.
    ck_assert_msg(status == WEFT_OK || (failed && status == WEFT_E_NOMEM),
                  "call %d, allocation %ld: %s (WEFT_TEST_SEED=%#llx)", _i, n,
                  weft_status_name(status), (unsigned long long)test_seed());
    ck_assert_msg((status == WEFT_OK) == (f.report.error[0] == '\0'),
                  "call %d, allocation %ld: %s, but '%s' (WEFT_TEST_SEED=%#llx)", _i, n,
                  weft_status_name(status), f.report.error, (unsigned long long)test_seed());
    ck_assert_int_eq(test_allocator_live(&memory), 0);
    const bool holds = status == WEFT_OK || strstr(f.report.error, "committed all the same");
    if (which == UPDATE && holds)
      memcpy(f.data + AT, patch, PATCH);
    if (which != ENCODE || holds)
      files_expect_data(&f);
  }
  ck_assert_int_gt(n, 4);
  files_end(&f);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("nomem");
  TCase *t = tcase_create("nomem");
  tcase_add_loop_test(t, every_call_says_that_memory_ran_out, 0, CALLS);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
