// SPDX-License-Identifier: Apache-2.0
// What the files that read and write messages share.
#ifndef WEFT_PEER_MESSAGES_PARSE_H
#define WEFT_PEER_MESSAGES_PARSE_H

#include "peer/engine/messages.h"

// The greatest segment number: sums of it and a window cannot wrap, and times of segments fit into
// 63 bits.
#define WEFT_MESSAGE_MAX_SEGMENT (UINT64_C(1) << 48)

void weft_message_start(uint8_t *p, unsigned kind, uint16_t word);
weft_status weft_manifest_parse(const uint8_t *d, size_t bytes, weft_manifest *out);
weft_status weft_checksum_parse(const uint8_t *d, size_t bytes, weft_checksum *out);
weft_status weft_revealed_parse(const uint8_t *d, size_t bytes, weft_revealed *out);
weft_status weft_requests_parse(const uint8_t *d, size_t bytes, weft_requests *out);
weft_status weft_refer_parse(const uint8_t *d, size_t bytes, weft_refer *out);

#endif
