// SPDX-License-Identifier: Apache-2.0
// Clients of the HTTP output that hold on to everything they can get, places and time, do not keep
// out others.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "tests/peer/http_client.h"
#include "tests/support/test_main.h"

// --- Places

// Connections that ask for nothing hold nothing that another client needs, whether from one address
// or from many.
START_TEST(silent_connections_give_way) {
  http_scene s;
  int fd[4 * ANSWERS];
  http_scene_new(&s, true, 0, 0);
  http_feed(&s, PIECE);
  for (size_t i = 0; i < 4 * ANSWERS; i++) {
    fd[i] = http_client(&s, (uint8_t)(i < 2 * ANSWERS ? 1 : i % 100 + 1), i % 3 ? NULL : "GET /");
    http_run(1);
  }
  EXPECT(http_status_of(&s, 1, http_ask) == 200);
  EXPECT(http_status_of(&s, 200, http_ask) == 200);
  http_let_go(fd, 4 * ANSWERS);
  weft_http_free(s.http);
}
END_TEST

// One address cannot take all places: another address gets one, one more client of that address
// does not.
static void share(bool begun) {
  http_scene s;
  int fd[ANSWERS + 1];
  http_scene_new(&s, true, 0, 0);
  if (begun)
    http_feed(&s, PIECE);
  http_hold(&s, 1, http_ask, fd, ANSWERS);
  const int one_more = http_client(&s, 1, http_ask);
  http_run(50);
  fd[ANSWERS] = http_client(&s, 2, http_ask);
  http_run(50);
  if (!begun)
    http_feed(&s, PIECE);
  EXPECT(http_status_within(fd[ANSWERS], 2000) == 200);
  EXPECT(http_status_within(one_more, 2000) == 503);
  size_t ended = 0;
  for (size_t i = 0; i < ANSWERS; i++)
    ended += http_over(fd[i]);
  EXPECT(ended == 1);
  http_let_go(fd, ANSWERS + 1);
  close(one_more);
  weft_http_free(s.http);
}

START_TEST(answers_of_one_address_make_room) { share(true); }
END_TEST

START_TEST(who_came_before_the_stream_makes_room) { share(false); }
END_TEST

// Clients that wait for the stream to begin or to go on are sent nothing, so those that go must be
// noticed otherwise, and are forgotten.
START_TEST(who_waits_and_goes_is_forgotten) {
  for (int begun = 0; begun < 2; begun++) {
    http_scene s;
    int fd[ANSWERS];
    http_scene_new(&s, true, 0, 0);
    if (begun)
      http_feed(&s, PIECE);
    http_hold(&s, 1, http_ask, fd, ANSWERS);
    http_let_go(fd, ANSWERS);
    http_run(1000);
    EXPECT(http_status_of(&s, 2, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n") == 200);
    weft_http_free(s.http);
  }
}
END_TEST

// A client that has closed its sending side still gets the answer.
START_TEST(who_asks_for_no_more_gets_the_answer) {
  for (int begun = 0; begun < 2; begun++) {
    http_scene s;
    static char got[1 << 19];
    size_t bytes = 0;
    http_scene_new(&s, true, 0, 0);
    if (begun)
      http_feed(&s, PIECE);
    const int fd = http_client(&s, 1, "GET / HTTP/1.0\r\n\r\n"), room = 1 << 20;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if (begun)
      http_run(100);
    EXPECT(shutdown(fd, SHUT_WR) == 0);
    for (int i = 0; i < 5; i++) {
      http_run(500);
      http_feed(&s, PIECE);
    }
    weft_http_end(s.http);
    http_run(100);
    for (ssize_t n; (n = recv(fd, got + bytes, sizeof got - bytes, MSG_DONTWAIT)) > 0;)
      bytes += (size_t)n;
    const uint8_t *body = memmem(got, bytes, "\r\n\r\n", 4);
    EXPECT(body && (uint8_t *)got + bytes - (body + 4) == (ptrdiff_t)s.written);
    for (size_t i = 0; i < s.written; i++)
      EXPECT((uint8_t)body[4 + i] == http_byte_at(i));
    close(fd);
    weft_http_free(s.http);
  }
}
END_TEST

// But while nothing is sent that would show whether it is still there, it keeps its place only for
// the time limit of silence, and only while no other client needs the place.
START_TEST(who_may_have_gone_makes_room) {
  http_scene s;
  int fd[ANSWERS];
  http_scene_new(&s, true, REQUEST_MS, SILENCE_MS);
  for (size_t i = 0; i < ANSWERS; i++)
    fd[i] = http_client(&s, (uint8_t)(i + 1), http_ask);
  http_run(100);
  for (size_t i = 1; i < ANSWERS; i++)
    EXPECT(shutdown(fd[i], SHUT_WR) == 0);
  EXPECT(http_status_of(&s, 100, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n") == 200);
  size_t ended = 0;
  for (size_t i = 0; i < ANSWERS; i++)
    ended += http_over(fd[i]);
  EXPECT(ended == 1);
  http_run(2 * SILENCE_MS);
  for (size_t i = 0; i < ANSWERS; i++)
    EXPECT(http_over(fd[i]) == (i > 0));
  http_let_go(fd, ANSWERS);
  weft_http_free(s.http);
}
END_TEST

static size_t count_over(const int *fd, size_t count) {
  size_t ended = 0;
  for (size_t i = 0; i < count; i++)
    ended += http_over(fd[i]);
  return ended;
}

// A newcomer gets the place of the newest answer of the address with most, but not if that has
// hardly more than the newcomer's.
START_TEST(the_newest_answer_of_who_has_most_gives_way) {
  enum { SOME = ANSWERS / 3, MORE = ANSWERS - 2 * SOME };
  http_scene s;
  int fd[ANSWERS];
  http_scene_new(&s, true, 0, 0);
  http_feed(&s, PIECE);
  http_hold(&s, 1, http_ask, fd, MORE);
  http_hold(&s, 2, http_ask, fd + MORE, SOME);
  http_hold(&s, 3, http_ask, fd + MORE + SOME, SOME);
  EXPECT(http_status_of(&s, 2, http_ask) == 503);
  EXPECT(count_over(fd, ANSWERS) == 0);
  const int other = http_client(&s, 4, http_ask);
  EXPECT(http_status_within(other, 2000) == 200);
  EXPECT(http_over(fd[MORE - 1]) && count_over(fd, ANSWERS) == 1);
  http_let_go(fd, ANSWERS);
  close(other);
  weft_http_free(s.http);
}
END_TEST

// Of the connections that ask for nothing, the oldest give way one after another as others come,
// however many at once.
START_TEST(who_has_waited_longest_gives_way) {
  enum { WAITING = 64, FEW = 20, MANY = WAITING - FEW, BURST = 100 };
  http_scene s;
  int fd[WAITING], burst[BURST];
  http_scene_new(&s, true, 0, 0);
  http_hold(&s, 2, NULL, fd, FEW);
  http_hold(&s, 1, NULL, fd + FEW, MANY);
  http_run(50);
  EXPECT(count_over(fd, WAITING) == 0);
  for (size_t come = 1; come <= 3; come++) {
    burst[come] = http_client(&s, 3, NULL);
    http_run(50);
    EXPECT(http_over(fd[FEW + come - 1]) && count_over(fd, WAITING) == come);
    close(burst[come]);
    http_run(50);
    burst[come] = http_client(&s, 1, NULL); // else there would be room
    http_run(50);
    EXPECT(count_over(fd, WAITING) == come);
  }
  http_let_go(burst + 1, 3);
  http_run(50);
  for (size_t i = 0; i < BURST; i++)
    burst[i] = http_client(&s, 1, NULL);
  http_run(100);
  EXPECT(count_over(fd, WAITING) + count_over(burst, BURST) == BURST); // of 64 and 100
  EXPECT(count_over(fd, FEW) == 0);
  http_let_go(fd, WAITING);
  http_let_go(burst, BURST);
  weft_http_free(s.http);
}
END_TEST

// A connection that is kept open after its answer holds no answer's place, nor does the end of a
// stream.
START_TEST(answers_that_ended_hold_no_place) {
  http_scene s;
  int fd[ANSWERS];
  http_scene_with(&s, &(weft_http_options){.stream = true,
                                           .page = http_page,
                                           .length = PIECE,
                                           .request_ms = REQUEST_MS,
                                           .silence_ms = 10 * SILENCE_MS});
  http_feed(&s, PIECE);
  http_hold(&s, 1, http_ask_page, fd, ANSWERS);
  EXPECT(http_status_of(&s, 1, http_ask_page) == 200);
  http_let_go(fd, ANSWERS);
  weft_http_free(s.http);
  http_scene_with(
      &s, &(weft_http_options){
              .stream = true, .length = PIECE, .request_ms = REQUEST_MS, .silence_ms = SILENCE_MS});
  http_feed(&s, PIECE);
  fd[0] = http_client(&s, 1, "GET / HTTP/1.1\r\nHost: x\r\nRange: bytes=0-9\r\n\r\n");
  EXPECT(http_status_within(fd[0], 2000) == 206);
  http_run(2 * SILENCE_MS);
  EXPECT(http_over(fd[0]));
  close(fd[0]);
  weft_http_free(s.http);
}
END_TEST

// --- Time

// Reads until nothing comes for 200 ms. Returns the bytes.
static size_t read_all(int fd) {
  static char got[1 << 16];
  size_t bytes = 0;
  for (int quiet = 0; quiet < 100; quiet++, http_run(2))
    for (ssize_t n; (n = recv(fd, got, sizeof got, MSG_DONTWAIT)) > 0; quiet = 0)
      bytes += (size_t)n;
  return bytes;
}

// Each wait has its own time limit, from its own beginning: little for the first request, more for
// the next one and for reading an answer.
START_TEST(each_wait_has_its_time) {
  enum { FIRST_MS = 300, NEXT_MS = 4000, PART_MS = 2400, PAGE = 16 << 20 };
  static const char long_page[] = "GET /long HTTP/1.1\r\nHost: x\r\n\r\n";
  const int room = 1 << 20;
  http_scene s;
  http_scene_new(&s, false, FIRST_MS, NEXT_MS);
  const int silent = http_client(&s, 1, NULL), slow = http_client(&s, 1, long_page);
  const int patient = http_client(&s, 1, http_ask_page);
  (void)setsockopt(slow, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  (void)setsockopt(patient, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  EXPECT(http_status_within(patient, 2000) == 200 && read_all(patient) > 0);
  http_run(3 * FIRST_MS);
  EXPECT(http_over(silent));
  http_run(PART_MS - 3 * FIRST_MS);
  EXPECT(read_all(slow) > PAGE); // it took longer than a first request may
  EXPECT(send(patient, long_page, strlen(long_page), MSG_NOSIGNAL) > 0);
  http_run(PART_MS);
  EXPECT(send(slow, http_ask_page, strlen(http_ask_page), MSG_NOSIGNAL) > 0);
  EXPECT(read_all(slow) > 0);
  EXPECT(read_all(patient) > PAGE);
  const int fd[] = {silent, slow, patient};
  http_let_go(fd, 3);
  weft_http_free(s.http);
}
END_TEST

// A client that has closed its sending side counts as present as long as it is sent something now
// and then.
START_TEST(who_asks_for_no_more_and_reads_is_there) {
  http_scene s;
  static char got[PIECE];
  http_scene_new(&s, true, REQUEST_MS, SILENCE_MS);
  http_feed(&s, PIECE);
  const int fd = http_client(&s, 1, "GET / HTTP/1.0\r\n\r\n");
  EXPECT(shutdown(fd, SHUT_WR) == 0);
  for (int i = 0; i < 3 * SILENCE_MS / 100; i++) {
    http_feed(&s, PIECE / 64);
    http_run(100);
    while (recv(fd, got, sizeof got, MSG_DONTWAIT) > 0)
      ;
  }
  EXPECT(!http_over(fd));
  close(fd);
  weft_http_free(s.http);
}
END_TEST

START_TEST(a_request_is_made_in_time) {
  http_scene s;
  http_scene_new(&s, false, REQUEST_MS, SILENCE_MS);
  const int silent = http_client(&s, 1, NULL),
            dribbles = http_client(&s, 1, "GET / HTTP/1.1\r\nX: ");
  const int body = http_client(&s, 1, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n");
  const int again = http_client(&s, 1, http_ask), long_page = http_client(&s, 1,
                                                                          "GET /long HTTP/1.1\r\n"
                                                                          "Host: x\r\n\r\n");
  for (int i = 0; i < 4 * SILENCE_MS / 20; i++) { // all but the first send something all the time
    (void)send(dribbles, "x", 1, MSG_NOSIGNAL);
    (void)send(body, "x", 1, MSG_NOSIGNAL);
    if (i > 10)
      (void)send(again, "G", 1, MSG_NOSIGNAL);
    uint8_t one;
    (void)recv(long_page, &one, 1, MSG_DONTWAIT);
    http_run(20);
  }
  EXPECT(http_over(silent));
  EXPECT(http_over(dribbles));
  EXPECT(http_over(body));
  EXPECT(http_over(again));
  EXPECT(http_over(long_page));
  EXPECT(http_status_of(&s, 1, http_ask) == 200);
  const int fd[] = {silent, dribbles, body, again, long_page};
  http_let_go(fd, 5);
  weft_http_free(s.http);
}
END_TEST

// A reader that keeps up on the whole gets everything; one that is owed more than is kept, or takes
// nothing for long, is cut off, even if it reads a byte now and then.
START_TEST(readers_of_next_to_nothing_are_cut_off) {
  enum { STEPS = 400 };
  http_scene s;
  http_scene_new(&s, true, REQUEST_MS, SILENCE_MS);
  http_feed(&s, PIECE);
  const int behind = http_client(&s, 1, http_ask), honest = http_client(&s, 1, http_ask);
  static char got[1 << 20];
  uint64_t honest_bytes = 0;
  for (int i = 0; i < STEPS; i++) { // more than twice what is kept
    http_feed(&s, PIECE);
    http_run(5);
    (void)recv(behind, got, 1, MSG_DONTWAIT);
    ssize_t n;
    if (i % 60 == 59) // pauses, and catches up
      for (int look = 0; look < 400 && honest_bytes < s.written; look++, http_run(1))
        while ((n = recv(honest, got, sizeof got, MSG_DONTWAIT)) > 0)
          honest_bytes += (uint64_t)n;
  }
  EXPECT(http_over(behind));
  EXPECT(!http_over(honest));
  const int idle = http_client(&s, 1, http_ask);
  http_run(20);
  for (int i = 0; i < 2 * SILENCE_MS / 20; i++) {
    for (int k = 0; k < 20 && i < 5; k++) // less than is kept, and more than the kernel takes
      http_feed(&s, PIECE);
    http_run(20);
    (void)recv(idle, got, 1, MSG_DONTWAIT);
    (void)http_over(honest);
  }
  EXPECT(http_over(idle));
  EXPECT(!http_over(honest));
  const int fd[] = {behind, honest, idle};
  http_let_go(fd, 3);
  weft_http_free(s.http);
}
END_TEST

// A client that reads slowly what the library has given to the kernel gets all of it, however long
// that takes.
START_TEST(what_the_kernel_holds_is_read_at_leisure) {
  enum { PIECES = 16, SHARE = 8 << 10, STEP_MS = 40 };
  http_scene s;
  static char got[SHARE];
  size_t bytes = 0;
  http_scene_with(&s, &(weft_http_options){.stream = true,
                                           .length = PIECES * PIECE,
                                           .request_ms = REQUEST_MS,
                                           .silence_ms = SILENCE_MS});
  for (int i = 0; i < PIECES; i++)
    http_feed(&s, PIECE);
  weft_http_end(s.http);
  const int slow = http_client(&s, 1, http_ask);
  ssize_t n = 1;
  for (int i = 0; i < 800 && n != 0 && bytes <= PIECES * PIECE; i++) { // some seconds
    http_run(STEP_MS);
    n = recv(slow, got, sizeof got, MSG_DONTWAIT);
    bytes += n > 0 ? (size_t)n : 0;
  }
  EXPECT(bytes > PIECES * PIECE);
  close(slow);
  weft_http_free(s.http);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("http places");
  TCase *tc = tcase_create("places");
  tcase_set_timeout(tc, 60);
  tcase_add_test(tc, silent_connections_give_way);
  tcase_add_test(tc, answers_of_one_address_make_room);
  tcase_add_test(tc, who_came_before_the_stream_makes_room);
  tcase_add_test(tc, who_waits_and_goes_is_forgotten);
  tcase_add_test(tc, who_asks_for_no_more_gets_the_answer);
  tcase_add_test(tc, who_may_have_gone_makes_room);
  tcase_add_test(tc, the_newest_answer_of_who_has_most_gives_way);
  tcase_add_test(tc, who_has_waited_longest_gives_way);
  tcase_add_test(tc, answers_that_ended_hold_no_place);
  tcase_add_test(tc, each_wait_has_its_time);
  tcase_add_test(tc, who_asks_for_no_more_and_reads_is_there);
  tcase_add_test(tc, a_request_is_made_in_time);
  tcase_add_test(tc, readers_of_next_to_nothing_are_cut_off);
  tcase_add_test(tc, what_the_kernel_holds_is_read_at_leisure);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
