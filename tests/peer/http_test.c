// SPDX-License-Identifier: Apache-2.0
// The HTTP output on the loopback, and clients who hold what they can get: places, and time.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer/runtime/http.h"
#include "tests/peer/fixture.h"
#include "tests/support/test_main.h"

enum { ANSWERS = 64, PIECE = 1 << 16, KEPT = 8 << 20, REQUEST_MS = 400, SILENCE_MS = 700 };
enum { SECOND = 1000000 };

static const char ask[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

typedef struct scene {
  weft_http *http;
  uint16_t port;
  uint64_t written;
} scene;

static char *page(void *user, const char *path, const char **type, unsigned *status) {
  (void)user, (void)type, (void)status;
  return strcmp(path, "/long") == 0 ? g_strnfill(16 << 20, 'x') : g_strdup("fine\n");
}

static void scene_with(scene *s, const weft_http_options *options) {
  char *error = NULL;
  *s = (scene){0};
  s->http = weft_http_new(options, &error);
  EXPECT(s->http != NULL);
  s->port = weft_http_port(s->http);
}

static void scene_new(scene *s, bool stream, unsigned request_ms, unsigned silence_ms) {
  scene_with(
      s, &(weft_http_options){
             .stream = stream, .page = page, .request_ms = request_ms, .silence_ms = silence_ms});
}

// What the stream has at `at`.
static uint8_t byte_at(uint64_t at) { return (uint8_t)(at * 167 >> 8 ^ at); }

static void feed(scene *s, size_t bytes) {
  uint8_t piece[PIECE];
  for (size_t i = 0; i < bytes; i++)
    piece[i] = byte_at(s->written + i);
  weft_http_write(s->http, piece, bytes);
  s->written += bytes;
}

static void run(int for_ms) {
  for (const gint64 until = g_get_monotonic_time() + for_ms * 1000; g_get_monotonic_time() < until;)
    if (!g_main_context_iteration(NULL, FALSE))
      g_usleep(200);
}

// --- Clients, of 127.0.0.host

static int client_new(const scene *s, uint8_t host, const char *says) {
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

// Whether the server has ended it.
static bool over(int fd) {
  char got[4096];
  ssize_t n;
  while ((n = recv(fd, got, sizeof got, MSG_DONTWAIT)) > 0)
    ;
  return n == 0 || errno != EAGAIN;
}

// The status of the answer; 0: none within the time.
static int status_within(int fd, int for_ms) {
  char got[64] = "";
  for (int i = 0; i < for_ms / 5; i++) {
    run(5);
    if (recv(fd, got, sizeof got - 1, MSG_DONTWAIT | MSG_PEEK) >= 12)
      return atoi(got + 9);
  }
  return 0;
}

static int status_of(const scene *s, uint8_t host, const char *says) {
  const int fd = client_new(s, host, says);
  const int status = status_within(fd, 2000);
  close(fd);
  return status;
}

static void hold(const scene *s, uint8_t host, const char *says, int *fd, size_t count) {
  for (size_t i = 0; i < count; i++) {
    fd[i] = client_new(s, host, says);
    run(2);
  }
}

static void let_go(const int *fd, size_t count) {
  for (size_t i = 0; i < count; i++)
    close(fd[i]);
}

// --- Places

// Whoever only connects holds nothing that another needs, be they of one address or of many.
START_TEST(silent_connections_give_way) {
  scene s;
  int fd[4 * ANSWERS];
  scene_new(&s, true, 0, 0);
  feed(&s, PIECE);
  for (size_t i = 0; i < 4 * ANSWERS; i++) {
    fd[i] = client_new(&s, (uint8_t)(i < 2 * ANSWERS ? 1 : i % 100 + 1), i % 3 ? NULL : "GET /");
    run(1);
  }
  EXPECT(status_of(&s, 1, ask) == 200);
  EXPECT(status_of(&s, 200, ask) == 200);
  let_go(fd, 4 * ANSWERS);
  weft_http_free(s.http);
}
END_TEST

// Of one address none takes all: another gets a place, and one more of that address does not.
static void share(bool begun) {
  scene s;
  int fd[ANSWERS + 1];
  scene_new(&s, true, 0, 0);
  if (begun)
    feed(&s, PIECE);
  hold(&s, 1, ask, fd, ANSWERS);
  const int one_more = client_new(&s, 1, ask);
  run(50);
  fd[ANSWERS] = client_new(&s, 2, ask);
  run(50);
  if (!begun)
    feed(&s, PIECE);
  EXPECT(status_within(fd[ANSWERS], 2000) == 200);
  EXPECT(status_within(one_more, 2000) == 503);
  size_t ended = 0;
  for (size_t i = 0; i < ANSWERS; i++)
    ended += over(fd[i]);
  EXPECT(ended == 1);
  let_go(fd, ANSWERS + 1);
  close(one_more);
  weft_http_free(s.http);
}

START_TEST(answers_of_one_address_make_room) { share(true); }
END_TEST

START_TEST(who_came_before_the_stream_makes_room) { share(false); }
END_TEST

// Nothing is sent to them before the stream begins, or goes on: that they went must be looked for.
START_TEST(who_waits_and_goes_is_forgotten) {
  for (int begun = 0; begun < 2; begun++) {
    scene s;
    int fd[ANSWERS];
    scene_new(&s, true, 0, 0);
    if (begun)
      feed(&s, PIECE);
    hold(&s, 1, ask, fd, ANSWERS);
    let_go(fd, ANSWERS);
    run(1000);
    EXPECT(status_of(&s, 2, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n") == 200);
    weft_http_free(s.http);
  }
}
END_TEST

// Who says that it will ask for nothing more reads on all the same.
START_TEST(who_asks_for_no_more_gets_the_answer) {
  for (int begun = 0; begun < 2; begun++) {
    scene s;
    static char got[1 << 19];
    size_t bytes = 0;
    scene_new(&s, true, 0, 0);
    if (begun)
      feed(&s, PIECE);
    const int fd = client_new(&s, 1, "GET / HTTP/1.0\r\n\r\n"), room = 1 << 20;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if (begun)
      run(100);
    EXPECT(shutdown(fd, SHUT_WR) == 0);
    for (int i = 0; i < 5; i++) {
      run(500);
      feed(&s, PIECE);
    }
    weft_http_end(s.http);
    run(100);
    for (ssize_t n; (n = recv(fd, got + bytes, sizeof got - bytes, MSG_DONTWAIT)) > 0;)
      bytes += (size_t)n;
    const uint8_t *body = memmem(got, bytes, "\r\n\r\n", 4);
    EXPECT(body && (uint8_t *)got + bytes - (body + 4) == (ptrdiff_t)s.written);
    for (size_t i = 0; i < s.written; i++)
      EXPECT((uint8_t)body[4 + i] == byte_at(i));
    close(fd);
    weft_http_free(s.http);
  }
}
END_TEST

// But where nothing can be sent that would tell, for no longer than others may be silent, and while
// nobody else wants the place.
START_TEST(who_may_have_gone_makes_room) {
  scene s;
  int fd[ANSWERS];
  scene_new(&s, true, REQUEST_MS, SILENCE_MS);
  for (size_t i = 0; i < ANSWERS; i++)
    fd[i] = client_new(&s, (uint8_t)(i + 1), ask);
  run(100);
  for (size_t i = 1; i < ANSWERS; i++)
    EXPECT(shutdown(fd[i], SHUT_WR) == 0);
  EXPECT(status_of(&s, 100, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n") == 200);
  size_t ended = 0;
  for (size_t i = 0; i < ANSWERS; i++)
    ended += over(fd[i]);
  EXPECT(ended == 1);
  run(2 * SILENCE_MS);
  for (size_t i = 0; i < ANSWERS; i++)
    EXPECT(over(fd[i]) == (i > 0));
  let_go(fd, ANSWERS);
  weft_http_free(s.http);
}
END_TEST

// --- Time

START_TEST(a_request_is_made_in_time) {
  scene s;
  scene_new(&s, false, REQUEST_MS, SILENCE_MS);
  const int silent = client_new(&s, 1, NULL), dribbles = client_new(&s, 1, "GET / HTTP/1.1\r\nX: ");
  const int body = client_new(&s, 1, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n");
  const int again = client_new(&s, 1, ask), long_page = client_new(&s, 1,
                                                                   "GET /long HTTP/1.1\r\n"
                                                                   "Host: x\r\n\r\n");
  for (int i = 0; i < 4 * SILENCE_MS / 20; i++) { // all but the first say something all the time
    (void)send(dribbles, "x", 1, MSG_NOSIGNAL);
    (void)send(body, "x", 1, MSG_NOSIGNAL);
    if (i > 10)
      (void)send(again, "G", 1, MSG_NOSIGNAL);
    uint8_t one;
    (void)recv(long_page, &one, 1, MSG_DONTWAIT);
    run(20);
  }
  EXPECT(over(silent));
  EXPECT(over(dribbles));
  EXPECT(over(body));
  EXPECT(over(again));
  EXPECT(over(long_page));
  EXPECT(status_of(&s, 1, ask) == 200);
  const int fd[] = {silent, dribbles, body, again, long_page};
  let_go(fd, 5);
  weft_http_free(s.http);
}
END_TEST

// A reader who keeps up on the whole gets everything; one who is owed more than is kept, or takes
// nothing for long, is cut off, though he reads a byte now and then.
START_TEST(readers_of_next_to_nothing_are_cut_off) {
  enum { STEPS = 400 };
  scene s;
  scene_new(&s, true, REQUEST_MS, SILENCE_MS);
  feed(&s, PIECE);
  const int behind = client_new(&s, 1, ask), honest = client_new(&s, 1, ask);
  static char got[1 << 20];
  uint64_t honest_bytes = 0;
  for (int i = 0; i < STEPS; i++) { // twice what is kept, and more
    feed(&s, PIECE);
    run(5);
    (void)recv(behind, got, 1, MSG_DONTWAIT);
    ssize_t n;
    if (i % 60 == 59) // pauses, and catches up
      for (int look = 0; look < 400 && honest_bytes < s.written; look++, run(1))
        while ((n = recv(honest, got, sizeof got, MSG_DONTWAIT)) > 0)
          honest_bytes += (uint64_t)n;
  }
  EXPECT(over(behind));
  EXPECT(!over(honest));
  const int idle = client_new(&s, 1, ask);
  run(20);
  for (int i = 0; i < 2 * SILENCE_MS / 20; i++) {
    for (int k = 0; k < 20 && i < 5; k++) // less than is kept, and more than the kernel takes
      feed(&s, PIECE);
    run(20);
    (void)recv(idle, got, 1, MSG_DONTWAIT);
    (void)over(honest);
  }
  EXPECT(over(idle));
  EXPECT(!over(honest));
  const int fd[] = {behind, honest, idle};
  let_go(fd, 3);
  weft_http_free(s.http);
}
END_TEST

// --- What else a client can say

START_TEST(requests_of_all_kinds) {
  static const struct {
    const char *says;
    int status;
  } requests[] = {
      {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 200},
      {"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", 200},
      {"GET / HTTP/1.0\r\n\r\n", 200},
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 405},
      {"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n", 405},
      {"BREW / HTTP/1.1\r\nHost: x\r\n\r\n", 405},
      {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 413},
      {"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", 413},
      {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 200},
      {"GET / HTTP/1.1\r\nHost: x\r\nRange: bytes=5-1\r\n\r\n", 200}, // pages have none
  };
  scene s;
  scene_new(&s, false, 0, 0);
  for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
    EXPECT(status_of(&s, 1, requests[i].says) == requests[i].status);
  g_autofree char *filler = g_strnfill(100000, 'y');
  g_autofree char *header = g_strdup_printf("GET / HTTP/1.1\r\nX: %s\r\n\r\n", filler);
  g_autofree char *path = g_strdup_printf("GET /%s HTTP/1.1\r\n\r\n", filler);
  EXPECT(status_of(&s, 1, header) >= 400);
  EXPECT(status_of(&s, 1, path) >= 400);
  // Many at once on one connection: all are answered, in order, and another is not kept waiting.
  GString *many = g_string_new(NULL);
  for (int i = 0; i < 300; i++)
    g_string_append(many, ask);
  const int fd = client_new(&s, 1, many->str);
  EXPECT(status_of(&s, 1, ask) == 200);
  size_t answers = 0;
  char got[4096];
  for (int i = 0; i < 500 && answers < 300; i++, run(2))
    for (ssize_t n; (n = recv(fd, got, sizeof got, MSG_DONTWAIT)) > 0;)
      for (ssize_t k = 0; k < n; k++)
        answers += got[k] == 'f'; // of "fine"
  EXPECT(answers >= 300);
  close(fd);
  g_string_free(many, TRUE);
  weft_http_free(s.http);
}
END_TEST

static size_t open_files(void) {
  size_t count = 0;
  for (int fd = 0; fd < 1024; fd++)
    count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

// Who comes and goes, mid-answer or before it, leaves nothing behind.
START_TEST(opens_and_closes_leave_nothing) {
  scene s;
  const struct linger reset = {.l_onoff = 1};
  scene_new(&s, true, 0, 0);
  feed(&s, PIECE);
  const size_t before = open_files();
  for (int i = 0; i < 1500; i++) {
    const int fd = client_new(&s, 1, i % 3 ? ask : NULL);
    if (i % 4 == 0)
      (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    if (i % 5)
      run(1);
    close(fd);
    if (i % 50 == 0)
      feed(&s, PIECE);
  }
  run(1000);
  EXPECT(open_files() == before);
  EXPECT(status_of(&s, 1, ask) == 200);
  weft_http_free(s.http);
}
END_TEST

// --- The end

// One who reads next to nothing keeps a peer that has finished for so long and no longer, nor do
// those who come after that, one after the other; who reads gets all.
START_TEST(readers_have_some_time_after_the_end) {
  enum { END_MS = 1500 };
  scene s;
  scene_with(&s, &(weft_http_options){.stream = true, .page = page, .end_ms = END_MS});
  feed(&s, PIECE);
  const int slow = client_new(&s, 1, ask), quick = client_new(&s, 1, ask), room = 1 << 20;
  static char got[1 << 16];
  (void)setsockopt(quick, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  run(50);
  for (int i = 0; i < 120; i++) // less than is kept, and more than the kernel takes
    feed(&s, PIECE);
  weft_http_end(s.http);
  const gint64 end_us = g_get_monotonic_time();
  uint64_t bytes = 0;
  while (g_get_monotonic_time() - end_us < 1000 * (END_MS - 200)) {
    (void)recv(slow, got, 100, MSG_DONTWAIT);
    for (ssize_t n; (n = recv(quick, got, sizeof got, MSG_DONTWAIT)) > 0;)
      bytes += (uint64_t)n;
    run(1);
  }
  EXPECT(bytes >= s.written);
  EXPECT(!weft_http_drained(s.http));
  run(600);
  EXPECT(weft_http_drained(s.http));
  EXPECT(over(slow));
  const int late = client_new(&s, 1, ask);
  run(50);
  EXPECT(weft_http_drained(s.http));
  EXPECT(status_within(late, 1000) == 200); // the peer may stay for other reasons
  const int fd[] = {slow, quick, late};
  let_go(fd, 3);
  weft_http_free(s.http);
}
END_TEST

// --- Descriptors

// Without one for a first connection nothing can be done about it, and little is; who waits is
// served once there is one.
START_TEST(no_descriptor_left_is_waited_for) {
  scene s;
  struct rlimit before;
  scene_new(&s, true, 0, 0);
  feed(&s, PIECE);
  EXPECT(getrlimit(RLIMIT_NOFILE, &before) == 0);
  for (int held = 0; held < 2; held++) {
    const int other = held ? client_new(&s, 1, ask) : -1;
    run(20);
    const int fd = socket(AF_INET, SOCK_STREAM, 0), next = dup(fd);
    const struct rlimit none = {.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
    close(next);
    EXPECT(setrlimit(RLIMIT_NOFILE, &none) == 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(s.port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    EXPECT(connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    EXPECT(send(fd, ask, strlen(ask), MSG_NOSIGNAL) == (ssize_t)strlen(ask));
    size_t turns = 0;
    for (const gint64 until = g_get_monotonic_time() + SECOND; g_get_monotonic_time() < until;)
      if (g_main_context_iteration(NULL, FALSE))
        turns++;
      else
        g_usleep(200);
    EXPECT(setrlimit(RLIMIT_NOFILE, &before) == 0);
    if (other >= 0)
      close(other);
    EXPECT(turns <= 50);
    EXPECT(status_within(fd, 2000) == 200);
    close(fd);
    run(300);
  }
  weft_http_free(s.http);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("http");
  TCase *tc = tcase_create("http");
  tcase_set_timeout(tc, 60);
  tcase_add_test(tc, silent_connections_give_way);
  tcase_add_test(tc, answers_of_one_address_make_room);
  tcase_add_test(tc, who_came_before_the_stream_makes_room);
  tcase_add_test(tc, who_waits_and_goes_is_forgotten);
  tcase_add_test(tc, who_asks_for_no_more_gets_the_answer);
  tcase_add_test(tc, who_may_have_gone_makes_room);
  tcase_add_test(tc, a_request_is_made_in_time);
  tcase_add_test(tc, readers_of_next_to_nothing_are_cut_off);
  tcase_add_test(tc, requests_of_all_kinds);
  tcase_add_test(tc, opens_and_closes_leave_nothing);
  tcase_add_test(tc, readers_have_some_time_after_the_end);
  tcase_add_test(tc, no_descriptor_left_is_waited_for);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
