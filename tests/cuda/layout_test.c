// SPDX-License-Identifier: Apache-2.0
// Panels of the binary tensor product fit into the shared memory of every device that a row
// supports.
#include "kernels/cuda/tensor_layout.h"
#include "tests/support/test_main.h"

// KiB of shared memory available to a block.
enum { SM_86 = 99, SM_80 = 163, SM_90 = 227 }; // sm_89 has as much as sm_86, sm_87 as sm_80

static uint32_t steps_on(uint32_t kib) {
  const uint32_t step = WEFT_TENSOR_CHUNK_BYTES(1) + 2 * WEFT_TENSOR_PAIR_BYTES(1);
  return weft_tensor_steps_most(WEFT_TENSOR_STEPS_MAX, step, kib << 10);
}

START_TEST(panels_fit_the_device) {
  static const uint32_t kib[] = {SM_86, SM_80, SM_90};
  for (size_t i = 0; i < sizeof kib / sizeof *kib; i++) {
    const uint32_t steps = steps_on(kib[i]);
    ck_assert_uint_ge(steps, 1);
    ck_assert_uint_le(WEFT_TENSOR_CHUNK_BYTES(steps) + 2 * WEFT_TENSOR_PAIR_BYTES(steps),
                      kib[i] << 10);
  }
  ck_assert_uint_eq(steps_on(SM_86), 6);
  ck_assert_uint_eq(steps_on(1), 1); // the device refuses it; no division by 0
}
END_TEST

// Where they fit, panels have their full size, with which performance was measured.
START_TEST(panels_are_whole_where_they_fit) {
  const uint32_t step = WEFT_KARATSUBA_CHUNK_BYTES(1) + 4 * WEFT_KARATSUBA_TILE_BYTES(1);
  ck_assert_uint_eq(steps_on(SM_80), WEFT_TENSOR_STEPS_MAX);
  ck_assert_uint_eq(steps_on(SM_90), WEFT_TENSOR_STEPS_MAX);
  ck_assert_uint_eq(weft_tensor_steps_most(WEFT_KARATSUBA_STEPS_MAX, step, SM_90 << 10),
                    WEFT_KARATSUBA_STEPS_MAX);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("layout of the binary tensor product");
  TCase *cases = tcase_create("panels");
  tcase_add_test(cases, panels_fit_the_device);
  tcase_add_test(cases, panels_are_whole_where_they_fit);
  suite_add_tcase(suite, cases);
  return test_main(suite);
}
