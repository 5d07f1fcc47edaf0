// SPDX-License-Identifier: Apache-2.0
// Messages with text from outside (file names, arguments, what files say). A terminal obeys control
// characters, and a name with a newline would look like two messages.
#ifndef WEFT_TOOLS_PRINTABLE_H
#define WEFT_TOOLS_PRINTABLE_H

#include <stdio.h>

// Returns the text with each byte of a control character, and each that is not UTF-8, as \xHH. The
// caller frees it. NULL: out of memory.
char *weft_printable(const char *text);

// As fprintf, but the whole text is made printable, except for a newline at its end.
__attribute__((format(printf, 2, 3))) void weft_print(FILE *to, const char *format, ...);

#endif
