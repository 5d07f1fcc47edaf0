// SPDX-License-Identifier: Apache-2.0
// What a stream is by its first bytes, and which part of it a request wants.
#ifndef WEFT_PEER_HTTP_MEDIA_H
#define WEFT_PEER_HTTP_MEDIA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The type that players go by. Of MPEG-TS also where they begin within a packet, as where a viewer
// came to a live stream.
const char *weft_http_type_of(const uint8_t *data, size_t bytes);
bool weft_http_is_ts(const char *type); // one of those
// Where a packet of MPEG-TS begins, first or last, in bytes [from, end) of a stream of which byte i
// is at i % size. False: none was found.
bool weft_http_first_packet(const uint8_t *ring, size_t size, uint64_t from, uint64_t end,
                            uint64_t *at);
bool weft_http_last_packet(const uint8_t *ring, size_t size, uint64_t from, uint64_t end,
                           uint64_t *at);

// Of a stream of `length` bytes, what the header Range asks for (`text`, which may be NULL): bytes
// [*first, *end). Without one that is understood: all, and *partial is false. False: it cannot be
// had.
bool weft_http_range(const char *text, uint64_t length, uint64_t *first, uint64_t *end,
                     bool *partial);

#endif
