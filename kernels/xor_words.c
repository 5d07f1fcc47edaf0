// SPDX-License-Identifier: Apache-2.0
#include "kernels/xor_words.h"

#include <string.h>

enum { WORD = 8, WORDS = 4 };

void weft_xor_words(uint8_t *y, const uint8_t *const *x, size_t k, size_t begin, size_t end,
                    bool accumulate) {
  size_t c = begin;
  for (; end - c >= WORD * WORDS; c += WORD * WORDS) {
    uint64_t sum[WORDS] = {0}, word[WORDS];
    if (accumulate)
      memcpy(sum, y + c, sizeof sum);
    for (size_t j = 0; j < k; j++) {
      memcpy(word, x[j] + c, sizeof word);
      for (size_t i = 0; i < WORDS; i++)
        sum[i] ^= word[i];
    }
    memcpy(y + c, sum, sizeof sum);
  }
  for (; c < end; c++) {
    uint8_t sum = accumulate ? y[c] : 0;
    for (size_t j = 0; j < k; j++)
      sum ^= x[j][c];
    y[c] = sum;
  }
}
