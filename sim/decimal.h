// SPDX-License-Identifier: Apache-2.0
// Numbers that people write.
#ifndef WEFT_SIM_DECIMAL_H
#define WEFT_SIM_DECIMAL_H

#include <stdlib.h>
#include <string.h>

// As strtod, but for decimal numbers without a plus sign alone: of 0x10, +3 or inf nothing is taken
// (*end is `text`).
static inline double weft_sim_decimal(const char *text, char **end) {
  const double number = strtod(text, end);
  const char *at = text + strspn(text, " \t\r\n");
  at += *at == '-';
  if (!strchr(".0123456789", *at) || (at[0] == '0' && (at[1] | 0x20) == 'x'))
    *end = (char *)text;
  return number;
}

#endif
