// SPDX-License-Identifier: Apache-2.0
// Xor of rows in 8-byte words, for techniques without a vector version of it.
#ifndef WEFT_KERNELS_XOR_WORDS_H
#define WEFT_KERNELS_XOR_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void weft_xor_words(uint8_t *y, const uint8_t *const *x, size_t k, size_t begin, size_t end,
                    bool accumulate);

#endif
