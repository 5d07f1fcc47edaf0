// SPDX-License-Identifier: Apache-2.0
// Recognises a stream's type by its first bytes, and parses which part of it a request wants.
#ifndef WEFT_PEER_HTTP_MEDIA_H
#define WEFT_PEER_HTTP_MEDIA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Returns the Content-Type of a stream by its first bytes: [from, end) of the stream, whose byte i
// is at ring[i % size]. MPEG-TS is recognised even if they begin inside a packet, as they do for a
// viewer who joined a live stream. NULL: too few bytes to tell, and `more` will follow.
const char *weft_http_type_of(const uint8_t *ring, size_t size, uint64_t from, uint64_t end,
                              bool more);
bool weft_http_is_ts(const char *type); // whether `type` is the one returned for MPEG-TS
// Find the first or the last MPEG-TS packet in such bytes. They return false if there is none.
bool weft_http_first_packet(const uint8_t *ring, size_t size, uint64_t from, uint64_t end,
                            uint64_t *at);
bool weft_http_last_packet(const uint8_t *ring, size_t size, uint64_t from, uint64_t end,
                           uint64_t *at);

// Parses the header Range (`text`, may be NULL) for a stream of `length` bytes: bytes [*first,
// *end) are asked for. Without a header that is understood, that is the whole stream, and *partial
// is false. Returns false if the range cannot be satisfied.
bool weft_http_range(const char *text, uint64_t length, uint64_t *first, uint64_t *end,
                     bool *partial);

#endif
