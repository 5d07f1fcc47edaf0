// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "tests/peer/http_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

const char http_ask_page[] = "GET /x HTTP/1.1\r\nHost: x\r\n\r\n";
const char http_ask[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

char *http_page(void *user, const char *path, const char **type, unsigned *status) {
  (void)user, (void)type, (void)status;
  return strcmp(path, "/long") == 0 ? g_strnfill(16 << 20, 'x') : g_strdup("fine\n");
}

void http_scene_with(http_scene *s, const weft_http_options *options) {
  char *error = NULL;
  *s = (http_scene){0};
  s->http = weft_http_new(options, &error);
  EXPECT(s->http != NULL);
  s->port = weft_http_port(s->http);
}

void http_scene_new(http_scene *s, bool stream, unsigned request_ms, unsigned silence_ms) {
  http_scene_with(s, &(weft_http_options){.stream = stream,
                                          .page = http_page,
                                          .request_ms = request_ms,
                                          .silence_ms = silence_ms});
}

uint8_t http_byte_at(uint64_t at) { return (uint8_t)(at * 167 >> 8 ^ at); }

void http_feed(http_scene *s, size_t bytes) {
  uint8_t piece[PIECE];
  for (size_t i = 0; i < bytes; i++)
    piece[i] = http_byte_at(s->written + i);
  weft_http_write(s->http, piece, bytes);
  s->written += bytes;
}

void http_run(int for_ms) {
  for (const gint64 until = g_get_monotonic_time() + for_ms * 1000; g_get_monotonic_time() < until;)
    if (!g_main_context_iteration(NULL, FALSE))
      g_usleep(200);
}

int http_client(const http_scene *s, uint8_t host, const char *says) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0), room = 4096;
  struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000000u | host)};
  struct sockaddr_in to = {
      .sin_family = AF_INET, .sin_port = htons(s->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  EXPECT(bind(fd, (struct sockaddr *)&from, sizeof from) == 0);
  EXPECT(connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
  if (says)
    EXPECT(send(fd, says, strlen(says), MSG_NOSIGNAL) == (ssize_t)strlen(says));
  return fd;
}

bool http_over(int fd) {
  char got[4096];
  ssize_t n;
  while ((n = recv(fd, got, sizeof got, MSG_DONTWAIT)) > 0)
    ;
  return n == 0 || errno != EAGAIN;
}

int http_status_within(int fd, int for_ms) {
  char got[64] = "";
  for (int i = 0; i < for_ms / 5; i++) {
    http_run(5);
    if (recv(fd, got, sizeof got - 1, MSG_DONTWAIT | MSG_PEEK) >= 12)
      return atoi(got + 9);
  }
  return 0;
}

int http_status_of(const http_scene *s, uint8_t host, const char *says) {
  const int fd = http_client(s, host, says);
  const int status = http_status_within(fd, 2000);
  close(fd);
  return status;
}

void http_hold(const http_scene *s, uint8_t host, const char *says, int *fd, size_t count) {
  for (size_t i = 0; i < count; i++) {
    fd[i] = http_client(s, host, says);
    http_run(2);
  }
}

void http_let_go(const int *fd, size_t count) {
  for (size_t i = 0; i < count; i++)
    close(fd[i]);
}
