// SPDX-License-Identifier: Apache-2.0
// Runs examples/streaming_server and joins it with 16 clients on loopback: each is paced at
// 768 kbps, and decodes the file byte for byte.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"
#include "weft/weft.h"

enum { CLIENTS = 16, SEGMENT_BYTES = 64 * 1024, FILE_BYTES = 3 * SEGMENT_BYTES - 777, KBPS = 768 };
enum { LIMIT_US = 30000000, RETRY_US = 100000 };

static const char *server_path;

typedef struct viewer {
  int udp;
  bool joined;
  uint64_t segment;
  weft_decoder *decoder;
  uint8_t file[FILE_BYTES];
  size_t bytes; // decoded
  int64_t first_us, last_us, spoke_us;
} viewer;

static int64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void say(viewer *v, char what) {
  uint8_t out[9] = {(uint8_t)what};
  const uint64_t number = htobe64(v->segment - 1);
  memcpy(out + 1, &number, sizeof number);
  (void)!send(v->udp, out, what == 'N' ? sizeof out : 1, 0);
  v->spoke_us = now_us();
}

static void finish_segment(viewer *v) {
  const size_t left = FILE_BYTES - v->bytes;
  const size_t part = left < SEGMENT_BYTES ? left : SEGMENT_BYTES;
  ck_assert_int_eq(weft_decoder_read(v->decoder, 0, part, v->file + v->bytes), WEFT_OK);
  v->bytes += part;
  v->segment++;
  weft_decoder_free(v->decoder);
  v->decoder = NULL;
  v->last_us = now_us();
  say(v, 'N');
}

static void hear(viewer *v, weft_ctx *ctx, const uint8_t *datagram, size_t bytes) {
  weft_packet packet;
  if (!v->joined) {
    uint64_t facts = 0;
    ck_assert_uint_eq(bytes, sizeof facts);
    memcpy(&facts, datagram, sizeof facts);
    ck_assert_uint_eq(be64toh(facts), FILE_BYTES);
    v->joined = true;
    return;
  }
  if (weft_packet_parse(datagram, bytes, &packet) != WEFT_OK) // a second answer to a join
    return;
  if (v->first_us == 0)
    v->first_us = now_us();
  if (packet.id.segment != v->segment) { // sent before the server heard that it is decoded
    if (now_us() - v->spoke_us > RETRY_US)
      say(v, 'N');
    return;
  }
  if (!v->decoder) {
    const weft_decoder_options options = {.id = packet.id};
    ck_assert_int_eq(weft_decoder_new(ctx, &options, &v->decoder), WEFT_OK);
  }
  const weft_status status = weft_decoder_add(v->decoder, &packet);
  ck_assert_msg(status == WEFT_OK || status == WEFT_DEPENDENT, "%s", weft_status_name(status));
  if (weft_decoder_complete(v->decoder))
    finish_segment(v);
}

// A port that was free a moment ago.
static uint16_t free_port(void) {
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof here;
  const int probe = socket(AF_INET, SOCK_DGRAM, 0);
  ck_assert_int_eq(bind(probe, (struct sockaddr *)&here, size), 0);
  ck_assert_int_eq(getsockname(probe, (struct sockaddr *)&here, &size), 0);
  close(probe);
  return ntohs(here.sin_port);
}

static pid_t start_server(const char *file, uint16_t port) {
  char port_text[8], kbps_text[8];
  snprintf(port_text, sizeof port_text, "%u", port);
  snprintf(kbps_text, sizeof kbps_text, "%d", KBPS);
  const pid_t pid = fork();
  ck_assert_int_ge(pid, 0);
  if (pid == 0) {
    execl(server_path, server_path, file, port_text, kbps_text, (char *)NULL);
    _exit(127);
  }
  return pid;
}

static void make_file(char *path, uint8_t *bytes) {
  test_rng rng = test_rng_new(test_seed(), 1);
  test_rng_fill(&rng, bytes, FILE_BYTES);
  const int fd = mkstemp(path);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(write(fd, bytes, FILE_BYTES), FILE_BYTES);
  close(fd);
}

static void watch(viewer *viewers, weft_ctx *ctx) {
  const int64_t end = now_us() + LIMIT_US;
  for (size_t done = 0; done < CLIENTS;) {
    ck_assert_msg(now_us() < end, "%zu of %d clients are done", done, CLIENTS);
    struct pollfd fds[CLIENTS];
    for (size_t i = 0; i < CLIENTS; i++)
      fds[i] = (struct pollfd){.fd = viewers[i].udp, .events = POLLIN};
    poll(fds, CLIENTS, 50);
    done = 0;
    for (viewer *v = viewers; v < viewers + CLIENTS; v++) {
      uint8_t datagram[2048];
      for (ssize_t got; v->bytes < FILE_BYTES &&
                        (got = recv(v->udp, datagram, sizeof datagram, MSG_DONTWAIT)) > 0;)
        hear(v, ctx, datagram, (size_t)got);
      if (!v->joined && now_us() - v->spoke_us > RETRY_US)
        say(v, 'J'); // the server may not be up yet
      done += v->bytes == FILE_BYTES;
    }
  }
}

START_TEST(sixteen_paced_clients_decode_the_file) {
  static viewer viewers[CLIENTS];
  static uint8_t file[FILE_BYTES];
  char path[] = "/tmp/weft-streaming-XXXXXX";
  make_file(path, file);
  weft_ctx *ctx = NULL;
  ck_assert_int_eq(weft_ctx_new(&ctx, NULL), WEFT_OK);
  const uint16_t port = free_port();
  const pid_t pid = start_server(path, port);
  const struct sockaddr_in there = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  for (viewer *v = viewers; v < viewers + CLIENTS; v++) {
    v->udp = socket(AF_INET, SOCK_DGRAM, 0);
    ck_assert_int_eq(connect(v->udp, (const struct sockaddr *)&there, sizeof there), 0);
  }
  watch(viewers, ctx);
  for (viewer *v = viewers; v < viewers + CLIENTS; v++) {
    ck_assert_mem_eq(v->file, file, FILE_BYTES);
    // Never sent faster than paced (a slow machine may be slower; 2 % for the first burst).
    const double kbps = (double)FILE_BYTES * 8e3 / (double)(v->last_us - v->first_us);
    ck_assert_msg(kbps < KBPS * 1.02, "%.0f kbps", kbps);
    close(v->udp);
  }
  int state = 0;
  kill(pid, SIGTERM);
  ck_assert_int_eq(waitpid(pid, &state, 0), pid);
  ck_assert(WIFEXITED(state) && WEXITSTATUS(state) == 0);
  unlink(path);
  weft_ctx_free(ctx);
}
END_TEST

// How it ends with these arguments, and what it says; not later than in ten seconds.
static void expect_end(int status, const char *text, const char *file, const char *port,
                       const char *kbps) {
  int ends[2], state = 0;
  char said[512] = "";
  ck_assert_int_eq(pipe(ends), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDERR_FILENO);
    alarm(10);
    execl(server_path, server_path, file, port, kbps, (char *)NULL);
    _exit(127);
  }
  close(ends[1]);
  for (ssize_t got, at = 0; (got = read(ends[0], said + at, sizeof said - 1 - (size_t)at)) > 0;)
    at += got;
  close(ends[0]);
  ck_assert_int_eq(waitpid(pid, &state, 0), pid);
  ck_assert_msg(WIFEXITED(state) && WEXITSTATUS(state) == status && strstr(said, text),
                "%s %s %s: state %#x and \"%s\", not %d and \"%s\"", file, port, kbps, state, said,
                status, text);
}

START_TEST(what_cannot_be_served_is_named) {
  struct sockaddr_in here = {.sin_family = AF_INET};
  socklen_t size = sizeof here;
  char taken[8];
  const int other = socket(AF_INET, SOCK_DGRAM, 0);
  ck_assert_int_eq(bind(other, (struct sockaddr *)&here, size), 0);
  ck_assert_int_eq(getsockname(other, (struct sockaddr *)&here, &size), 0);
  snprintf(taken, sizeof taken, "%u", ntohs(here.sin_port));
  static const char *const wrong[][2] = {{"0", "768"},        {"65536", "768"},
                                         {"-1", "768"},       {"70o", "768"},
                                         {"", "768"},         {"7000", "abc"},
                                         {"7000", "-5"},      {"7000", "0"},
                                         {"7000", "1000001"}, {"7000", "99999999999999999999"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    expect_end(2, "usage: streaming_server FILE PORT", server_path, wrong[i][0], wrong[i][1]);
  expect_end(1, "/none: No such file", "/none", taken, "768");
  expect_end(1, "/dev: no file, or an empty one", "/dev", taken, "768");
  expect_end(1, "/dev/null: no file, or an empty one", "/dev/null", taken, "768");
  expect_end(1, "Address already in use", server_path, taken, "768");
  close(other);
}
END_TEST

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: streaming_server_test PATH-OF-STREAMING-SERVER\n");
    return 2;
  }
  server_path = argv[1];
  Suite *suite = suite_create("streaming_server");
  TCase *tests = tcase_create("streaming_server");
  tcase_add_test(tests, sixteen_paced_clients_decode_the_file);
  tcase_add_test(tests, what_cannot_be_served_is_named);
  suite_add_tcase(suite, tests);
  return test_main(suite);
}
