// SPDX-License-Identifier: Apache-2.0
// Text from outside in messages: nothing in it controls a terminal, and what is readable stays.
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test_main.h"
#include "tools/printable.h"

static const struct {
  const char *text, *shown;
} cases[] = {
    {"", ""},
    {"a name ~\\'\"", "a name ~\\'\""},
    {"\x1b[2J\a\t\r\n\x7f", "\\x1b[2J\\x07\\x09\\x0d\\x0a\\x7f"},
    {"\u00a0\u00e9\u07ff\u0800\u2260\ud7ff\ue000\U0001f600\U0010ffff",
     "\u00a0\u00e9\u07ff\u0800\u2260\ud7ff\ue000\U0001f600\U0010ffff"},
    {"\xc2\x9b"
     "31m\xc2\x80",
     "\\xc2\\x9b31m\\xc2\\x80"},                  // control characters of Latin-1
    {"\x9b[\xe9t\xe9", "\\x9b[\\xe9t\\xe9"},      // Latin-1
    {"\xc0\x8a\xc1\xbf", "\\xc0\\x8a\\xc1\\xbf"}, // longer than need be
    {"\xe0\x80\x8a\xe0\x9f\xbf", "\\xe0\\x80\\x8a\\xe0\\x9f\\xbf"},
    {"\xf0\x80\x80\x8a", "\\xf0\\x80\\x80\\x8a"},
    {"\xed\xa0\x80", "\\xed\\xa0\\x80"},                            // a surrogate
    {"\xf4\x90\x80\x80\xf8\xff", "\\xf4\\x90\\x80\\x80\\xf8\\xff"}, // beyond Unicode
    {"\xc3", "\\xc3"},                                              // cut off
    {"\xe2\x89", "\\xe2\\x89"},
    {"\xf0\x9f\x98", "\\xf0\\x9f\\x98"},
    {"\xe2\x1b\x89", "\\xe2\\x1b\\x89"},
};

START_TEST(controls_are_escaped_and_text_stays) {
  char *const shown = weft_printable(cases[_i].text);
  ck_assert_str_eq(shown, cases[_i].shown);
  free(shown);
}
END_TEST

START_TEST(only_the_last_newline_is_one) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *const to = open_memstream(&text, &bytes);
  ck_assert_ptr_nonnull(to);
  weft_print(to, "%s: %d%%\n", "a\nb", 5);
  weft_print(to, "%s, ", "c\x1b");
  weft_print(to, "%s", "");
  weft_print(to, "%s\n", "d\n");
  ck_assert_int_eq(fclose(to), 0);
  ck_assert_str_eq(text, "a\\x0ab: 5%\nc\\x1b, d\\x0a\n");
  free(text);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("printable");
  TCase *tcase = tcase_create("text");
  tcase_add_loop_test(tcase, controls_are_escaped_and_text_stays, 0,
                      (int)(sizeof cases / sizeof cases[0]));
  tcase_add_test(tcase, only_the_last_newline_is_one);
  suite_add_tcase(suite, tcase);
  return test_main(suite);
}
