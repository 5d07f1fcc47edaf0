// SPDX-License-Identifier: Apache-2.0
// Replaces weft_decoder_read in the program (linker's --wrap): one byte of the third segment that
// any peer reads comes out wrong.
#include "weft/rlnc.h"

weft_status __real_weft_decoder_read(weft_decoder *, size_t, size_t, uint8_t *);
weft_status __wrap_weft_decoder_read(weft_decoder *, size_t, size_t, uint8_t *);

weft_status __wrap_weft_decoder_read(weft_decoder *decoder, size_t offset, size_t bytes,
                                     uint8_t *out) {
  static int reads;
  const weft_status status = __real_weft_decoder_read(decoder, offset, bytes, out);
  if (status == WEFT_OK && bytes > 0 && ++reads == 3)
    out[bytes / 2] ^= 1;
  return status;
}
