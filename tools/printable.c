// SPDX-License-Identifier: Apache-2.0
#include "tools/printable.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Returns how many bytes of UTF-8 the character at `text` has; 0 if it is not one, in the shortest
// form, or is a control character.
static size_t character(const unsigned char *text) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const unsigned char lead = *text;
  if (lead < 0x80)
    return lead >= ' ' && lead != 0x7F;
  const size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  uint32_t code = lead & (0x7Fu >> bytes);
  if (lead < 0xC0 || lead > 0xF7)
    return 0;
  for (size_t i = 1; i < bytes; i++) {
    if ((text[i] & 0xC0) != 0x80) // the terminating zero, too
      return 0;
    code = code << 6 | (text[i] & 0x3Fu);
  }
  const int is_valid = code >= least[bytes] && code <= 0x10FFFF && code >> 11 != 0xD800 >> 11;
  return is_valid && code >= 0xA0 ? bytes : 0; // 0x80 to 0x9F are control characters
}

char *weft_printable(const char *text) {
  static const char digits[] = "0123456789abcdef";
  char *const out = malloc(4 * strlen(text) + 1), *to = out;
  if (!out)
    return NULL;
  for (const unsigned char *at = (const unsigned char *)text; *at;) {
    const size_t bytes = character(at);
    memcpy(to, at, bytes);
    to += bytes;
    at += bytes;
    if (bytes > 0)
      continue;
    memcpy(to, "\\x", 2);
    to[2] = digits[*at >> 4];
    to[3] = digits[*at & 15];
    to += 4;
    at++;
  }
  *to = '\0';
  return out;
}

void weft_print(FILE *to, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  char *const text = length < 0 ? NULL : malloc((size_t)length + 1);
  char *shown = NULL;
  if (text) {
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    const int ends = length > 0 && text[length - 1] == '\n';
    text[length - ends] = '\0';
    shown = weft_printable(text);
    // In one call, as MPI ranks share their output.
    if (shown)
      fprintf(to, ends ? "%s\n" : "%s", shown);
  }
  if (!shown) // out of memory
    fputs(format, to);
  free(shown);
  free(text);
}
