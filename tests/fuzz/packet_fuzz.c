// SPDX-License-Identifier: Apache-2.0
// Feeds arbitrary bytes to the packet parsers. A packet that is accepted must be written back as
// the same bytes, and its coefficients must be available.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "weft/weft.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition) {
  if (!condition)
    abort();
}

static void check(const weft_packet *packet, const uint8_t *data, size_t size, int session) {
  uint8_t coefficients[WEFT_MAX_BLOCKS];
  require(packet->payload >= data && packet->payload + packet->id.block_bytes == data + size);
  require(weft_packet_coefficients(packet, coefficients) == WEFT_OK);
  uint8_t *again = malloc(size);
  size_t bytes = 0;
  require(again != NULL);
  require((session ? weft_packet_write_session : weft_packet_write)(packet, again, size, &bytes) ==
          WEFT_OK);
  require(bytes == size && memcmp(again, data, size) == 0);
  require((session ? weft_packet_write_session : weft_packet_write)(packet, again, size - 1,
                                                                    &bytes) == WEFT_E_BUFFER);
  free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  weft_packet packet;
  const weft_status status = weft_packet_parse(data, size, &packet);
  if (status == WEFT_OK)
    check(&packet, data, size, 0);
  else
    require(status == WEFT_E_MALFORMED || status == WEFT_E_VERSION);
  // In a session k is known in advance; a few values cover all sorts of lengths.
  for (uint32_t k = 1; k <= 64; k *= 4) {
    const weft_status in_session = weft_packet_parse_session(data, size, 7, k, &packet);
    if (in_session == WEFT_OK)
      check(&packet, data, size, 1);
    else
      require(in_session == WEFT_E_MALFORMED || in_session == WEFT_E_VERSION);
  }
  return 0;
}
