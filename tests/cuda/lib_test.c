// SPDX-License-Identifier: Apache-2.0
// The library on a device, against the specification, byte for byte (lib_cases.h).
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/cuda/lib_cases.h"
#include "tests/support/test_main.h"

bool lib_reduced(void) { return getenv("WEFT_GPU_REDUCED") != NULL; }

weft_mem lib_any_memory(void) { return (weft_mem)fixture_below(3); }

// Runs random shapes for WEFT_SOAK_SECONDS, by default for 2 s.
START_TEST(soak) {
  if (gpu_skip("soak"))
    return;
  const char *text = getenv("WEFT_SOAK_SECONDS");
  const time_t until = time(NULL) + (text ? atoi(text) : 2);
  unsigned long rounds = 0;
  fixture_start(400);
  weft_ctx *ctx = fixture_ctx("cuda", 1);
  do {
    lib_encode_once(ctx);
    if (!lib_reduced() && rounds++ % 8 == 0)
      lib_decode_once(ctx, 20, rounds % 128 == 65 ? 1024 : 200);
  } while (time(NULL) < until);
  printf("soak: %lu rounds of random shapes\n", rounds);
  weft_ctx_free(ctx);
}
END_TEST

static void add_soak(TCase *cases) { tcase_add_test(cases, soak); }

int main(void) {
  Suite *suite = suite_create("library on a device");
  // Each part has its own case, so that slow checkers can run one each (CK_RUN_CASE).
  static const struct {
    const char *name;
    void (*add)(TCase *);
  } parts[] = {{"encode", lib_add_encode_tests},
               {"queue", lib_add_queue_tests},
               {"decode", lib_add_decode_tests},
               {"relay", lib_add_relay_tests},
               {"staging", lib_add_staging_tests},
               {"failed", lib_add_failed_tests},
               {"soak", add_soak}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    TCase *cases = tcase_create(parts[i].name);
    parts[i].add(cases);
    suite_add_tcase(suite, cases);
  }
  return test_main(suite);
}
