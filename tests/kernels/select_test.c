// SPDX-License-Identifier: Apache-2.0
// The choice of a row is a pure function of the machine's features: all sets of features are tried,
// not only this machine's. Every subset of the detected features also computes real products.
#include <string.h>

#include "tests/kernels/row_check.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"
#include "tests/support/test_rows.h"

enum { FEATURES = 10, ROWS_MAX = 64 };

static const weft_backend *best(const weft_machine *machine) {
  for (size_t i = 0; i < weft_backend_count; i++)
    if (weft_backends[i].mem == WEFT_MEM_HOST && (weft_backends[i].cpu & ~machine->cpu) == 0)
      return &weft_backends[i];
  return NULL;
}

START_TEST(best_row_wins_on_every_set_of_features) {
  bool wins[ROWS_MAX] = {false};
  ck_assert_uint_le(weft_backend_count, ROWS_MAX);
  for (uint32_t set = 0; set < 1u << FEATURES; set++) {
    const weft_machine machine = {.cpu = set};
    const weft_backend *row = NULL;
    ck_assert_int_eq(weft_backend_select(&machine, WEFT_MEM_HOST, NULL, &row), WEFT_OK);
    ck_assert_ptr_eq(row, best(&machine));
    wins[row - weft_backends] = true;
    ck_assert_int_eq(weft_backend_select(&machine, WEFT_MEM_HOST, "", &row), WEFT_OK);
    ck_assert_ptr_eq(row, best(&machine));
  }
  // A row that never wins is kept for comparison: it must run wherever it can be forced.
  for (size_t i = 0; i < weft_backend_count; i++) {
    const weft_backend *row = &weft_backends[i], *chosen = NULL;
    const weft_machine machine = {
        .cpu = row->cpu, .sm = row->sm_min, .block_bytes = row->block_bytes};
    ck_assert_int_eq(weft_backend_select(&machine, row->mem, row->name, &chosen), WEFT_OK);
    ck_assert_ptr_eq(chosen, row);
    if (row->mem == WEFT_MEM_HOST && !wins[i])
      ck_assert_msg(best(&machine) != row && best(&machine) < row, "%s", row->name);
  }
}
END_TEST

// For example cuda-table-32 on sm_86, whose blocks have at most 99 KiB.
START_TEST(a_device_row_needs_its_shared_memory) {
  for (size_t i = 0; i < weft_backend_count; i++) {
    const weft_backend *row = &weft_backends[i];
    const weft_machine machine = {
        .cpu = row->cpu, .sm = row->sm_min, .block_bytes = row->block_bytes - 1};
    if (row->mem == WEFT_MEM_DEVICE)
      ck_assert_msg(!weft_backend_runs_on(row, &machine), "%s", row->name);
  }
}
END_TEST

START_TEST(names_are_unique_and_rows_are_whole) {
  for (size_t i = 0; i < weft_backend_count; i++) {
    const weft_backend *row = &weft_backends[i];
    for (size_t j = 0; j < i; j++)
      ck_assert_str_ne(row->name, weft_backends[j].name);
    ck_assert_ptr_nonnull(row->technique);
    ck_assert(row->gemm != NULL);
    ck_assert_int_eq(row->prepare != NULL, row->release != NULL);
    ck_assert_int_eq(row->mem == WEFT_MEM_DEVICE, strncmp(row->name, "cuda-", 5) == 0);
    if (row->mem == WEFT_MEM_HOST)
      ck_assert(row->host && row->xorm && row->invert && row->align > 0);
  }
  ck_assert_str_eq(weft_backends[weft_backend_count - 1].name, "scalar");
}
END_TEST

START_TEST(forcing_an_absent_row_fails) {
  const weft_backend *row = &weft_backends[0];
  for (uint32_t set = 0; set < 1u << FEATURES; set++)
    for (size_t i = 0; i < weft_backend_count; i++) {
      const weft_machine machine = {.cpu = set};
      const weft_backend *wanted = &weft_backends[i];
      const bool there = wanted->mem == WEFT_MEM_HOST && (wanted->cpu & ~set) == 0;
      const weft_status status = weft_backend_select(&machine, wanted->mem, wanted->name, &row);
      ck_assert_msg(status == (there ? WEFT_OK : WEFT_E_BACKEND_ABSENT), "%s on features %#x: %s",
                    wanted->name, set, weft_status_name(status));
      ck_assert_ptr_eq(row, there ? wanted : NULL);
    }
  const weft_machine machine = {.cpu = weft_cpu_features()};
  ck_assert_int_eq(weft_backend_select(&machine, WEFT_MEM_HOST, "no-such-row", &row),
                   WEFT_E_BACKEND_UNKNOWN);
  ck_assert_int_eq(weft_backend_select(&machine, WEFT_MEM_DEVICE, "scalar", &row),
                   WEFT_E_UNSUPPORTED);
  ck_assert_int_eq(weft_backend_select(&machine, WEFT_MEM_DEVICE, NULL, &row),
                   WEFT_E_BACKEND_ABSENT);
  ck_assert_ptr_null(row);
}
END_TEST

START_TEST(every_subset_of_this_machine_multiplies) {
  const uint32_t here = weft_cpu_features();
  bool tried[ROWS_MAX] = {false};
  for (uint32_t set = here;; set = (set - 1) & here) {
    const weft_machine machine = {.cpu = set};
    const weft_backend *row = NULL;
    ck_assert_int_eq(weft_backend_select(&machine, WEFT_MEM_HOST, NULL, &row), WEFT_OK);
    if (!tried[row - weft_backends]) {
      row_check check = {.row = row, .seed = test_seed(), .step = 64};
      ck_assert_msg(row_check_lengths(&check), "%s", check.failure);
      tried[row - weft_backends] = true;
    }
    if (set == 0)
      break;
  }
}
END_TEST

// The compiler's runtime detects the same features.
START_TEST(features_are_those_the_compiler_finds) {
  const uint32_t here = weft_cpu_features();
#if defined(__x86_64__)
  __builtin_cpu_init();
  ck_assert_int_eq((here & WEFT_CPU_SSE2) != 0, __builtin_cpu_supports("sse2") != 0);
  ck_assert_int_eq((here & WEFT_CPU_SSSE3) != 0, __builtin_cpu_supports("ssse3") != 0);
  ck_assert_int_eq((here & WEFT_CPU_AVX2) != 0, __builtin_cpu_supports("avx2") != 0);
  ck_assert_int_eq((here & WEFT_CPU_AVX512F) != 0, __builtin_cpu_supports("avx512f") != 0);
  ck_assert_int_eq((here & WEFT_CPU_AVX512BW) != 0, __builtin_cpu_supports("avx512bw") != 0);
  ck_assert_int_eq((here & WEFT_CPU_AVX512VL) != 0, __builtin_cpu_supports("avx512vl") != 0);
  ck_assert_int_eq((here & WEFT_CPU_AVX512VBMI) != 0, __builtin_cpu_supports("avx512vbmi") != 0);
  ck_assert_int_eq((here & WEFT_CPU_AVX512VBMI2) != 0, __builtin_cpu_supports("avx512vbmi2") != 0);
  ck_assert_int_eq((here & WEFT_CPU_GFNI) != 0, __builtin_cpu_supports("gfni") != 0);
  ck_assert_int_eq((here & WEFT_CPU_NEON) != 0, 0);
#endif
  ck_assert_uint_lt(here, 1u << FEATURES);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("select");
  TCase *cases = tcase_create("table");
  tcase_add_test(cases, best_row_wins_on_every_set_of_features);
  tcase_add_test(cases, a_device_row_needs_its_shared_memory);
  tcase_add_test(cases, names_are_unique_and_rows_are_whole);
  tcase_add_test(cases, forcing_an_absent_row_fails);
  tcase_add_test(cases, every_subset_of_this_machine_multiplies);
  tcase_add_test(cases, features_are_those_the_compiler_finds);
  suite_add_tcase(suite, cases);
  return test_main(suite);
}
