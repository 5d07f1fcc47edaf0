// SPDX-License-Identifier: Apache-2.0
// The HTTP output on the loopback: what clients may request, and that nothing is left over when
// they go, when the stream ends, or without descriptors. (Who may hold places, and for how long:
// http_places_test.c. Ranges and types: http_media_test.c.)
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

#include "tests/peer/http_client.h"
#include "tests/support/test_main.h"

enum { SECOND = 1000000 };

static const char ask_head[] = "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n";

// --- What a client can send

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
      {"GET / HTTP/1.1\r\nHost: x\r\nRange: bytes=5-1\r\n\r\n", 200}, // pages have no ranges
  };
  http_scene s;
  http_scene_new(&s, false, 0, 0);
  for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
    EXPECT(http_status_of(&s, 1, requests[i].says) == requests[i].status);
  g_autofree char *filler = g_strnfill(100000, 'y');
  g_autofree char *header = g_strdup_printf("GET / HTTP/1.1\r\nX: %s\r\n\r\n", filler);
  g_autofree char *path = g_strdup_printf("GET /%s HTTP/1.1\r\n\r\n", filler);
  EXPECT(http_status_of(&s, 1, header) >= 400);
  EXPECT(http_status_of(&s, 1, path) >= 400);
  // Many requests at once on one connection: all are answered, in order, and another connection
  // does not wait.
  GString *many = g_string_new(NULL);
  for (int i = 0; i < 300; i++)
    g_string_append(many, http_ask);
  const int fd = http_client(&s, 1, many->str);
  EXPECT(http_status_of(&s, 1, http_ask) == 200);
  size_t answers = 0;
  char got[4096];
  for (int i = 0; i < 500 && answers < 300; i++, http_run(2))
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

// Clients that come and go, before or during their answer, leave nothing behind.
START_TEST(opens_and_closes_leave_nothing) {
  http_scene s;
  const struct linger reset = {.l_onoff = 1};
  http_scene_new(&s, true, 0, 0);
  http_feed(&s, PIECE);
  const size_t before = open_files();
  for (int i = 0; i < 1500; i++) {
    const int fd = http_client(&s, 1, i % 3 ? http_ask : NULL);
    if (i % 4 == 0)
      (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    if (i % 5)
      http_run(1);
    close(fd);
    if (i % 50 == 0)
      http_feed(&s, PIECE);
  }
  http_run(1000);
  EXPECT(open_files() == before);
  EXPECT(http_status_of(&s, 1, http_ask) == 200);
  weft_http_free(s.http);
}
END_TEST

// --- A stream paced by its readers

static void count_room(void *user) { (*(int *)user)++; }

// Writes while there is room, which is what a client is owed at most, including the kernel's share.
static size_t feed_while_room(http_scene *s) {
  size_t pieces = 0;
  for (; weft_http_has_room(s->http) && pieces < 400; pieces++)
    http_feed(s, PIECE);
  return pieces;
}

static uint64_t read_from(int fd, uint64_t most) {
  static char got[1 << 16];
  uint64_t bytes = 0;
  for (int i = 0; i < 2000 && bytes < most; i++) {
    const ssize_t n = recv(fd, got, sizeof got, MSG_DONTWAIT);
    bytes += n > 0 ? (uint64_t)n : 0;
    http_run(1);
  }
  return bytes;
}

// A paced stream has no room before a client asks, nor beyond what its fastest reader is owed; once
// all readers have been gone for a while, it has room for everything.
START_TEST(a_paced_stream_waits_for_its_readers) {
  enum { OWED = 4 << 20 };
  int told = 0;
  http_scene s;
  http_scene_with(&s,
                  &(weft_http_options){
                      .stream = true, .room = count_room, .user = &told, .silence_ms = SILENCE_MS});
  weft_http_begin(s.http, 0, true);
  EXPECT(!weft_http_has_room(s.http));
  const int page = http_client(&s, 1, ask_head);
  EXPECT(http_status_within(page, 2000) == 200);
  EXPECT(!weft_http_has_room(s.http) && told == 0); // a HEAD request reads nothing
  const int quick = http_client(&s, 1, http_ask), slow = http_client(&s, 2, http_ask),
            room = 1 << 20;
  (void)setsockopt(quick, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  http_run(50);
  EXPECT(told > 0 && weft_http_has_room(s.http));
  size_t pieces = feed_while_room(&s);
  EXPECT(pieces >= OWED / PIECE && pieces < 400);
  told = 0;
  EXPECT(read_from(quick, OWED) >= OWED); // from its beginning, headers included
  EXPECT(told > 0);
  pieces = feed_while_room(&s); // the slow one holds nothing up
  EXPECT(pieces > 0 && pieces < 400);
  EXPECT(!weft_http_has_room(s.http));
  const int fd[] = {page, quick, slow};
  http_let_go(fd, 3);
  http_run(SILENCE_MS / 4);
  EXPECT(!weft_http_has_room(s.http)); // the client may come back
  http_run(2 * SILENCE_MS);
  EXPECT(feed_while_room(&s) == 400);             // there is no client to wait for
  EXPECT(http_status_of(&s, 1, http_ask) == 410); // nor one that comes for the rest
  EXPECT(weft_http_has_room(s.http));
  weft_http_free(s.http);
}
END_TEST

// HEAD of a paced stream is answered before any client has requested the stream, when waiting would
// be for ever, and as soon as the stream is known to be paced.
START_TEST(the_head_of_a_paced_stream_is_not_waited_for) {
  http_scene s;
  char got[1024] = "";
  http_scene_new(&s, true, 0, 0);
  const int early = http_client(&s, 1, ask_head);
  http_run(50);
  EXPECT(recv(early, got, sizeof got, MSG_DONTWAIT) < 0);
  weft_http_begin(s.http, 0, true);
  EXPECT(http_status_within(early, 2000) == 200);
  EXPECT(recv(early, got, sizeof got - 1, MSG_DONTWAIT) > 0 && !strstr(got, "Content-Type"));
  EXPECT(!weft_http_asked(s.http));
  const int reader = http_client(&s, 1, http_ask);
  http_run(50);
  http_feed(&s, PIECE);
  EXPECT(http_status_within(reader, 2000) == 200);
  const int later = http_client(&s, 1, ask_head);
  EXPECT(http_status_within(later, 2000) == 200);
  EXPECT(recv(later, got, sizeof got - 1, MSG_DONTWAIT) > 0 && strstr(got, "Content-Type"));
  const int fd[] = {early, reader, later};
  http_let_go(fd, 3);
  weft_http_free(s.http);
}
END_TEST

// A client that comes while all of a paced stream is kept gets it from its beginning; later ones do
// not get its end.
START_TEST(no_part_of_a_paced_stream_is_taken_for_it) {
  enum { KEPT = 8 << 20 };
  http_scene s;
  http_scene_new(&s, true, 0, 0);
  weft_http_begin(s.http, 0, true);
  const int first = http_client(&s, 1, http_ask);
  http_run(50);
  while (s.written < KEPT)
    http_feed(&s, PIECE);
  const int in_time = http_client(&s, 1, http_ask);
  EXPECT(http_status_within(in_time, 2000) == 200);
  http_feed(&s, 1);
  EXPECT(http_status_of(&s, 1, http_ask) == 410);
  EXPECT(http_status_of(&s, 1, ask_head) == 410);
  weft_http_end(s.http);
  EXPECT(weft_http_has_room(s.http)); // the output waits for no client after the end
  EXPECT(http_status_of(&s, 1, http_ask) == 410);
  const int fd[] = {first, in_time};
  http_let_go(fd, 2);
  weft_http_free(s.http);
}
END_TEST

// --- A stream that moves where a client wants it

static bool go_on_at(void *user, uint64_t position) {
  http_scene *s = user;
  s->written = position;
  weft_http_move(s->http, position);
  return true;
}

static int ask_from(const http_scene *s, uint64_t first) {
  g_autofree char *says =
      g_strdup_printf("GET / HTTP/1.1\r\nHost: x\r\nRange: bytes=%ju-\r\n\r\n", (uintmax_t)first);
  return http_client(s, 1, says);
}

static bool over_within(int fd, int for_ms) {
  for (int i = 0; i < for_ms / 5 && !http_over(fd); i++)
    http_run(5);
  return http_over(fd);
}

// Clients at another position are soon told that the stream has moved, forwards or back, so that
// they can ask again, even if it would have reached them later.
START_TEST(who_is_left_behind_is_told) {
  enum { SOME = 1000, LENGTH = 1000 * PIECE };
  static const uint64_t places[] = {LENGTH / 2, LENGTH / 2 - PIECE, 3, LENGTH - SOME};
  http_scene s;
  http_scene_with(&s, &(weft_http_options){.stream = true, .seek = go_on_at, .user = &s});
  weft_http_begin(s.http, LENGTH, false);
  http_feed(&s, SOME);
  int fd = ask_from(&s, 0);
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    http_run(50);
    EXPECT(!http_over(fd)); // it waits for more
    const int other = ask_from(&s, places[i]);
    EXPECT(over_within(fd, 1000));
    http_feed(&s, SOME);
    EXPECT(http_status_within(other, 2000) == 206);
    close(fd);
    fd = other;
  }
  close(fd);
  weft_http_free(s.http);
}
END_TEST

// --- The end

// A client that reads next to nothing keeps a finished peer running for the time limit only, as do
// others that come after that one after another; a client that reads gets everything.
START_TEST(readers_have_some_time_after_the_end) {
  enum { END_MS = 1500 };
  http_scene s;
  http_scene_with(&s, &(weft_http_options){.stream = true, .page = http_page, .end_ms = END_MS});
  http_feed(&s, PIECE);
  const int slow = http_client(&s, 1, http_ask), quick = http_client(&s, 1, http_ask),
            room = 1 << 20;
  static char got[1 << 16];
  (void)setsockopt(quick, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  http_run(50);
  for (int i = 0; i < 120; i++) // less than is kept, and more than the kernel takes
    http_feed(&s, PIECE);
  weft_http_end(s.http);
  const gint64 end_us = g_get_monotonic_time();
  uint64_t bytes = 0;
  while (g_get_monotonic_time() - end_us < 1000 * (END_MS - 200)) {
    (void)recv(slow, got, 100, MSG_DONTWAIT);
    for (ssize_t n; (n = recv(quick, got, sizeof got, MSG_DONTWAIT)) > 0;)
      bytes += (uint64_t)n;
    http_run(1);
  }
  EXPECT(bytes >= s.written);
  EXPECT(!weft_http_drained(s.http));
  http_run(600);
  EXPECT(weft_http_drained(s.http));
  EXPECT(http_over(slow));
  const int late = http_client(&s, 1, http_ask);
  http_run(50);
  EXPECT(weft_http_drained(s.http));
  EXPECT(http_status_within(late, 1000) == 200); // the peer may stay for other reasons
  const int fd[] = {slow, quick, late};
  http_let_go(fd, 3);
  weft_http_free(s.http);
}
END_TEST

// Takes what there is of an answer; keeps its last bytes.
static uint64_t take(int fd, char last[8]) {
  static char got[1 << 16];
  uint64_t bytes = 0;
  for (ssize_t n; (n = recv(fd, got, sizeof got, MSG_DONTWAIT)) > 0; bytes += (uint64_t)n)
    if (n >= 7)
      memcpy(last, got + n - 7, 7);
  return bytes;
}

// Who asks without a range while another watches a stream of known length gets it from where it is,
// to an end that its client takes for one: the last chunk.
START_TEST(who_watches_along_gets_the_end) {
  enum { PIECES = 4 };
  http_scene s;
  http_scene_with(&s, &(weft_http_options){.stream = true, .seek = go_on_at, .user = &s});
  weft_http_begin(s.http, PIECES * PIECE, false);
  http_feed(&s, PIECE);
  char last[8] = "";
  const int first = http_client(&s, 1, http_ask);
  http_run(50);
  const int along = http_client(&s, 1, http_ask);
  http_run(50);
  for (int i = 1; i < PIECES; i++)
    http_feed(&s, PIECE);
  weft_http_end(s.http);
  uint64_t bytes = 0;
  for (int i = 0; i < 100; i++) {
    char other[8];
    (void)take(first, other);
    bytes += take(along, last);
    http_run(5);
  }
  EXPECT(bytes > (PIECES - 1) * PIECE);
  EXPECT(memcmp(last, "\r\n0\r\n\r\n", 7) == 0);
  close(first);
  close(along);
  weft_http_free(s.http);
}
END_TEST

// --- Descriptors

// Without a descriptor for a first connection, the server does next to nothing; the waiting client
// is served once there is one.
START_TEST(no_descriptor_left_is_waited_for) {
  http_scene s;
  struct rlimit before;
  http_scene_new(&s, true, 0, 0);
  http_feed(&s, PIECE);
  EXPECT(getrlimit(RLIMIT_NOFILE, &before) == 0);
  for (int held = 0; held < 2; held++) {
    const int other = held ? http_client(&s, 1, http_ask) : -1;
    http_run(20);
    const int fd = socket(AF_INET, SOCK_STREAM, 0), next = dup(fd);
    const struct rlimit none = {.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
    close(next);
    EXPECT(setrlimit(RLIMIT_NOFILE, &none) == 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(s.port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    EXPECT(connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    EXPECT(send(fd, http_ask, strlen(http_ask), MSG_NOSIGNAL) == (ssize_t)strlen(http_ask));
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
    EXPECT(http_status_within(fd, 2000) == 200);
    close(fd);
    http_run(300);
  }
  weft_http_free(s.http);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("http");
  TCase *tc = tcase_create("http");
  tcase_set_timeout(tc, 60);
  tcase_add_test(tc, requests_of_all_kinds);
  tcase_add_test(tc, opens_and_closes_leave_nothing);
  tcase_add_test(tc, a_paced_stream_waits_for_its_readers);
  tcase_add_test(tc, the_head_of_a_paced_stream_is_not_waited_for);
  tcase_add_test(tc, no_part_of_a_paced_stream_is_taken_for_it);
  tcase_add_test(tc, who_is_left_behind_is_told);
  tcase_add_test(tc, readers_have_some_time_after_the_end);
  tcase_add_test(tc, who_watches_along_gets_the_end);
  tcase_add_test(tc, no_descriptor_left_is_waited_for);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
