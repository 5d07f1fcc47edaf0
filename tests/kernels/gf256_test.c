// SPDX-License-Identifier: Apache-2.0
// The field: its definition against long division, and every table against the definition.
#include "kernels/backend.h"
#include "kernels/cpu.h"
#include "kernels/gf256.h"
#include "tests/support/test_main.h"
#include "weft/status.h"

#include <string.h>

// Multiplies by shift and add, reducing on the way: written differently from weft_gf256_mul.
static unsigned multiply(unsigned a, unsigned b) {
  unsigned sum = 0;
  for (; b; b >>= 1) {
    if (b & 1)
      sum ^= a;
    a <<= 1;
    if (a & 0x100)
      a ^= WEFT_GF256_POLY;
  }
  return sum;
}

static unsigned parity(unsigned x) { return (unsigned)__builtin_parity(x); }

START_TEST(all_products) {
  for (unsigned a = 0; a < 256; a++)
    for (unsigned b = 0; b < 256; b++)
      ck_assert_uint_eq(weft_gf256_mul((uint8_t)a, (uint8_t)b), multiply(a, b));
}
END_TEST

START_TEST(all_inverses) {
  ck_assert_uint_eq(weft_gf256_inv[0], 0);
  for (unsigned a = 1; a < 256; a++)
    ck_assert_uint_eq(multiply(a, weft_gf256_inv[a]), 1);
}
END_TEST

START_TEST(logarithms) {
  ck_assert_uint_eq(weft_gf256_log[0], 255);
  for (unsigned i = 0, power = 1; i < 510; i++, power = multiply(power, 2)) {
    ck_assert_uint_eq(weft_gf256_exp[i], power);
    ck_assert_uint_eq(weft_gf256_log[power], i % 255);
  }
  for (unsigned a = 1; a < 256; a++)
    for (unsigned b = 1; b < 256; b++)
      ck_assert_uint_eq(weft_gf256_exp[weft_gf256_log[a] + weft_gf256_log[b]], multiply(a, b));
}
END_TEST

// Tables that need no special case for zero give all products.
START_TEST(tables_without_special_cases) {
  for (unsigned a = 0; a < 256; a++)
    for (unsigned b = 0; b < 256; b++) {
      ck_assert_uint_eq(weft_gf256_exp_zero[weft_gf256_log_zero[a] + weft_gf256_log_zero[b]],
                        multiply(a, b));
      ck_assert_uint_eq(weft_gf256_product[a][b], multiply(a, b));
    }
}
END_TEST

// Rows that multiply byte by byte give the right product for all pairs.
START_TEST(pairs) {
  static uint8_t a[65536], b[65536], y[65536];
  size_t rows = 0;
  for (unsigned i = 0; i < 65536; i++)
    a[i] = (uint8_t)(i >> 8), b[i] = (uint8_t)i;
  for (size_t r = 0; r < weft_backend_count; r++) {
    const weft_backend *const row = &weft_backends[r];
    if (!row->host || !row->host->pairs)
      continue;
    rows++;
    memset(y, 0xa5, sizeof y);
    row->host->pairs(y, a, b, sizeof y);
    for (unsigned i = 0; i < 65536; i++)
      ck_assert_msg(y[i] == multiply(a[i], b[i]), "row %s: %u * %u is not %u", row->name, a[i],
                    b[i], y[i]);
  }
  ck_assert_uint_ge(rows, 7);
}
END_TEST

// The tables of products by the low and the high four bits are right.
START_TEST(nibbles) {
  for (unsigned c = 0; c < 256; c++)
    for (unsigned i = 0; i < 16; i++) {
      ck_assert_uint_eq(weft_gf256_nibble[c][i], multiply(c, i));
      ck_assert_uint_eq(weft_gf256_nibble[c][16 + i], multiply(c, i << 4));
    }
}
END_TEST

// Returns the bit matrix `rows` times x: bit b of the result is the parity of byte 7 - b of `rows`
// and x.
static uint8_t mapped(uint64_t rows, uint8_t x) {
  unsigned y = 0;
  for (unsigned b = 0; b < 8; b++)
    y |= parity((unsigned)(rows >> 8 * (7 - b)) & x) << b;
  return (uint8_t)y;
}

// The bit matrix of each constant multiplies by it.
START_TEST(affine_matrices) {
  for (unsigned c = 0; c < 256; c++)
    for (unsigned x = 0; x < 256; x++) {
      ck_assert_uint_eq(mapped(weft_gf256_affine[c], (uint8_t)x), multiply(c, x));
    }
}
END_TEST

// Each status has a name of its own and a text.
START_TEST(status_words) {
  for (int s = 0; s < WEFT_STATUS_COUNT; s++) {
    ck_assert_ptr_nonnull(weft_status_text((weft_status)s));
    ck_assert_msg(strncmp(weft_status_name((weft_status)s), "WEFT_", 5) == 0, "status %d", s);
    for (int t = 0; t < s; t++)
      ck_assert_str_ne(weft_status_name((weft_status)s), weft_status_name((weft_status)t));
  }
  ck_assert_str_eq(weft_status_text(WEFT_STATUS_COUNT), "unknown status");
  ck_assert_ptr_nonnull(weft_status_name((weft_status)-1));
}
END_TEST

static uint8_t aes_multiply(uint8_t a, uint8_t b) {
  unsigned sum = 0, shifted = a;
  for (unsigned bit = 0; bit < 8;
       bit++, shifted = (shifted << 1 ^ (shifted & 0x80 ? 0x11b : 0)) & 0xff)
    sum ^= b >> bit & 1 ? shifted : 0;
  return (uint8_t)sum;
}

// The map to the AES field is its own inverse and preserves products.
START_TEST(the_aes_field) {
  for (unsigned a = 0; a < 256; a++) {
    const uint8_t there = mapped(weft_gf256_aes, (uint8_t)a);
    ck_assert_uint_eq(mapped(weft_gf256_aes, there), a);
    for (unsigned b = 0; b < 256; b++)
      ck_assert_uint_eq(aes_multiply(there, mapped(weft_gf256_aes, (uint8_t)b)),
                        mapped(weft_gf256_aes, weft_gf256_mul((uint8_t)a, (uint8_t)b)));
  }
}
END_TEST

START_TEST(feature_names) {
  for (unsigned bit = 0; bit < 32; bit++)
    ck_assert_int_eq(weft_cpu_feature_name(1u << bit) != NULL, bit < 10);
  ck_assert_ptr_null(weft_cpu_feature_name(3));
  for (unsigned bit = 0; bit < 32; bit++)
    if (weft_cpu_features() >> bit & 1)
      ck_assert_ptr_nonnull(weft_cpu_feature_name(1u << bit));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("gf256");
  TCase *cases = tcase_create("tables");
  tcase_add_test(cases, all_products);
  tcase_add_test(cases, all_inverses);
  tcase_add_test(cases, logarithms);
  tcase_add_test(cases, tables_without_special_cases);
  tcase_add_test(cases, pairs);
  tcase_add_test(cases, nibbles);
  tcase_add_test(cases, affine_matrices);
  tcase_add_test(cases, status_words);
  tcase_add_test(cases, the_aes_field);
  tcase_add_test(cases, feature_names);
  suite_add_tcase(suite, cases);
  return test_main(suite);
}
