// SPDX-License-Identifier: Apache-2.0
// Answers of the HTTP server that are whole when they are made.
#ifndef WEFT_PEER_HTTP_ANSWER_H
#define WEFT_PEER_HTTP_ANSWER_H

#include <microhttpd.h>
#include <stdint.h>

extern const char weft_http_text[]; // the type of one

// Takes `text`.
enum MHD_Result weft_http_answer(struct MHD_Connection *connection, unsigned status,
                                 const char *type, char *text);
// One that ends the connection. `header` may be NULL.
enum MHD_Result weft_http_refuse(struct MHD_Connection *connection, unsigned status,
                                 const char *header, const char *value, const char *text);
// To who asks for bytes that a stream of so many has not.
enum MHD_Result weft_http_refuse_range(struct MHD_Connection *connection, uint64_t length);

#endif
