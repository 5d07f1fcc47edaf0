// SPDX-License-Identifier: Apache-2.0
// A minimal coding program: 64 blocks are sent as coded packets, one in four is lost on the way,
// and any 64 innovative packets that arrive restore the data. Prints only the result. An error ends
// the program, so nothing is freed then.
#include <stdio.h>
#include <string.h>

#include "weft/weft.h"

#define BLOCKS 64
#define BLOCK_BYTES 1024

static weft_status send_and_lose(uint8_t *received, const uint8_t *data, size_t bytes) {
  const weft_segment_id id = {
      .stream = 1, .segment = 0, .blocks = BLOCKS, .block_bytes = BLOCK_BYTES};
  weft_ctx *ctx;
  weft_segment *segment;
  weft_encoder *encoder;
  weft_decoder *decoder;
  WEFT_TRY(weft_ctx_new(&ctx, NULL));
  WEFT_TRY(weft_segment_new(ctx, &(weft_segment_options){.id = id, .data = data, .bytes = bytes},
                            NULL, &segment));
  WEFT_TRY(weft_encoder_new(segment, NULL, &encoder));
  WEFT_TRY(weft_decoder_new(ctx, &(weft_decoder_options){.id = id}, &decoder));

  for (int packet = 0; !weft_decoder_complete(decoder); packet++) {
    uint8_t datagram[WEFT_PACKET_ROOM_BYTES(BLOCKS, BLOCK_BYTES)];
    size_t length;
    WEFT_TRY(weft_encoder_next(encoder, datagram, sizeof datagram, &length));
    if (packet % 4 == 3) // every fourth packet is lost
      continue;
    const weft_status added = weft_decoder_add_datagram(decoder, datagram, length);
    if (added != WEFT_DEPENDENT) // a few packets are not innovative
      WEFT_TRY(added);
  }
  WEFT_TRY(weft_decoder_read(decoder, 0, bytes, received));

  weft_decoder_free(decoder);
  weft_encoder_free(encoder);
  weft_segment_free(segment);
  weft_ctx_free(ctx);
  return WEFT_OK;
}

int main(void) {
  static uint8_t data[BLOCKS * BLOCK_BYTES - 100], received[sizeof data];
  for (size_t i = 0; i < sizeof data; i++)
    data[i] = (uint8_t)(i * i >> 7);
  const weft_status status = send_and_lose(received, data, sizeof data);
  const int same = status == WEFT_OK && memcmp(received, data, sizeof data) == 0;
  printf("%s: %s\n", weft_status_text(status), same ? "every byte came back" : "bytes differ");
  return same ? 0 : 1;
}
