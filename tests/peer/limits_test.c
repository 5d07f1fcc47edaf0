// SPDX-License-Identifier: Apache-2.0
// What an engine does with numbers at their limits, and when the machine fails it.
#include "tests/peer/scene.h"
#include "tests/support/test_main.h"

// Messages have no higher numbers: everybody would refuse what such an engine says.
START_TEST(segments_that_no_message_can_name_are_refused) {
  const uint64_t most = UINT64_C(1) << 48;
  const struct {
    weft_engine_self self;
    weft_status status;
  } cases[] = {{{.start = most}, WEFT_OK},
               {{.start = most + 1}, WEFT_E_ARGUMENT},
               {{.start = WEFT_START_OLDEST - 1}, WEFT_E_ARGUMENT},
               {{.start = WEFT_START_OLDEST}, WEFT_OK},
               {{.source = true, .start = most + 1}, WEFT_OK}, // which is of receivers
               {{.source = true, .stream_bytes = most * N * K - 1}, WEFT_OK},
               {{.source = true, .stream_bytes = UINT64_MAX}, WEFT_E_ARGUMENT}};
  scene s;
  scene_new(&s, WEFT_MODE_VOD, false, false, 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    weft_engine *engine;
    weft_engine_self self = cases[i].self;
    self.rng = weft_rng_chacha_table(&s.chacha);
    EXPECT_STATUS(weft_engine_new(s.ctx, &s.options, &self, &engine), cases[i].status);
    weft_engine_free(engine);
  }
  scene_free(&s);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("limits");
  TCase *t = tcase_create("limits");
  tcase_add_test(t, segments_that_no_message_can_name_are_refused);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
