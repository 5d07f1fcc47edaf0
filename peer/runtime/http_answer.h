// SPDX-License-Identifier: Apache-2.0
// HTTP responses whose whole body is known when they are made (not streams).
#ifndef WEFT_PEER_HTTP_ANSWER_H
#define WEFT_PEER_HTTP_ANSWER_H

#include <microhttpd.h>
#include <stdint.h>

extern const char weft_http_text[]; // the Content-Type of plain text

// Answers with `text` (g_malloc), which it frees.
enum MHD_Result weft_http_answer(struct MHD_Connection *connection, unsigned status,
                                 const char *type, char *text);
// Refuses a request and closes the connection. `header` may be NULL.
enum MHD_Result weft_http_refuse(struct MHD_Connection *connection, unsigned status,
                                 const char *header, const char *value, const char *text);
// Answers a request for bytes beyond the end of a stream of `length` bytes.
enum MHD_Result weft_http_refuse_range(struct MHD_Connection *connection, uint64_t length);

#endif
