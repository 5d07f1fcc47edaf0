// SPDX-License-Identifier: Apache-2.0
// A peer that spoils what it passes on: weft linked with this in place of the call that recodes.
// One byte of every fourth payload is changed, so that some of what it sends is correct.
#include "weft/rlnc.h"

weft_status __real_weft_decoder_recode_batch(weft_decoder *decoder, const weft_batch *batch);
weft_status __wrap_weft_decoder_recode_batch(weft_decoder *decoder, const weft_batch *batch);

weft_status __wrap_weft_decoder_recode_batch(weft_decoder *decoder, const weft_batch *batch) {
  static unsigned packets;
  const weft_status status = __real_weft_decoder_recode_batch(decoder, batch);
  for (size_t i = 0; status == WEFT_OK && i < batch->count; i++)
    if (packets++ % 4 == 0)
      batch->payload_rows[i][packets % 1024] ^= 0x5a;
  return status;
}
