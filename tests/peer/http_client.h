// SPDX-License-Identifier: Apache-2.0
// The HTTP output on the loopback, and clients of it that hold what they are told to.
#ifndef WEFT_TESTS_PEER_HTTP_CLIENT_H
#define WEFT_TESTS_PEER_HTTP_CLIENT_H

#include <sys/socket.h>
#include <unistd.h>

#include "peer/runtime/http.h"
#include "tests/peer/fixture.h"

enum { ANSWERS = 64, PIECE = 1 << 16, REQUEST_MS = 400, SILENCE_MS = 700 };

extern const char http_ask[], http_ask_page[]; // requests for the stream and for a page

typedef struct http_scene {
  weft_http *http;
  uint16_t port;
  uint64_t written;
} http_scene;

// Makes pages: "/long" has 16 MiB.
char *http_page(void *user, const char *path, const char **type, unsigned *status);
void http_scene_with(http_scene *s, const weft_http_options *options);
void http_scene_new(http_scene *s, bool stream, unsigned request_ms, unsigned silence_ms);
uint8_t http_byte_at(uint64_t at); // the stream's byte at that position
// Writes the next bytes of the stream, PIECE at most.
void http_feed(http_scene *s, size_t bytes);
void http_run(int for_ms);

// Connects from 127.0.0.host and sends `says`, if it is not NULL.
int http_client(const http_scene *s, uint8_t host, const char *says);
bool http_over(int fd); // whether the server has closed it; reads what there is
// Returns the status of the answer; 0: none within the time.
int http_status_within(int fd, int for_ms);
int http_status_of(const http_scene *s, uint8_t host, const char *says);
void http_hold(const http_scene *s, uint8_t host, const char *says, int *fd, size_t count);
void http_let_go(const int *fd, size_t count);

#endif
