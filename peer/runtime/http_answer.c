// SPDX-License-Identifier: Apache-2.0
#include "peer/runtime/http_answer.h"

#include <glib.h>
#include <string.h>

const char weft_http_text[] = "text/plain; charset=utf-8";

enum MHD_Result weft_http_answer(struct MHD_Connection *connection, unsigned status,
                                 const char *type, char *text) {
  struct MHD_Response *response =
      MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_COPY);
  g_free(text);
  if (!response)
    return MHD_NO;
  (void)MHD_add_response_header(response, "Content-Type", type);
  (void)MHD_add_response_header(response, "Cache-Control", "no-store");
  const enum MHD_Result result = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return result;
}

enum MHD_Result weft_http_refuse(struct MHD_Connection *connection, unsigned status,
                                 const char *header, const char *value, const char *text) {
  struct MHD_Response *response = MHD_create_response_from_buffer(
      strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
  if (!response)
    return MHD_NO;
  (void)MHD_add_response_header(response, "Content-Type", weft_http_text);
  (void)MHD_add_response_header(response, "Connection", "close");
  if (header)
    (void)MHD_add_response_header(response, header, value);
  const enum MHD_Result result = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return result;
}

enum MHD_Result weft_http_refuse_range(struct MHD_Connection *connection, uint64_t length) {
  char text[64];
  struct MHD_Response *response =
      MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
  if (!response)
    return MHD_NO;
  g_snprintf(text, sizeof text, "bytes */%" G_GUINT64_FORMAT, length);
  (void)MHD_add_response_header(response, "Content-Range", text);
  const enum MHD_Result result =
      MHD_queue_response(connection, MHD_HTTP_RANGE_NOT_SATISFIABLE, response);
  MHD_destroy_response(response);
  return result;
}
