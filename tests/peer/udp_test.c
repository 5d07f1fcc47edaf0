// SPDX-License-Identifier: Apache-2.0
// The UDP socket: what is sent arrives once, whole and in order, in few calls, and waits while the
// socket is full; on a kernel without IPv6, datagrams to IPv6 addresses go nowhere; kernels,
// devices and paths may refuse runs of datagrams; and a machine may have several addresses.
#define _GNU_SOURCE // sendmmsg
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer/runtime/udp.h"
#include "peer/session/datagram.h"
#include "tests/peer/fixture.h"
#include "tests/support/no_ipv6.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { DATAGRAMS = 3 };

static const uint8_t any[16] = {0};
static const uint8_t loopback[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
// 2001:db8::7f00:1, which ends as 127.0.0.1 does.
static const uint8_t stranger[16] = {0x20, 0x01, 0x0d, 0xb8, [12] = 127, [15] = 1};

static weft_address address_of(const uint8_t ip[16], uint16_t port) {
  weft_address address = {.port = port};
  memcpy(address.ip, ip, sizeof address.ip);
  return address;
}

// Each test runs in a process of its own (CK_FORK), so the filter stays there.
static weft_ctx *without_ipv6(void) {
  weft_ctx *ctx;
  if (!test_no_ipv6()) {
    (void)printf("SKIPPED: needs seccomp filters without privileges: %s\n", strerror(errno));
    return NULL;
  }
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  return ctx;
}

// Opens a socket bound to 127.0.0.1; sets *port.
static int listener(uint16_t *port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t bytes = sizeof at;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  EXPECT(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
  EXPECT(getsockname(fd, (struct sockaddr *)&at, &bytes) == 0);
  *port = ntohs(at.sin_port);
  return fd;
}

static void send_to(weft_udp *udp, const weft_address *to, const char *text) {
  for (int i = 0; i < DATAGRAMS; i++) {
    uint8_t *room = weft_udp_room(udp, to);
    EXPECT(room != NULL);
    memcpy(room, text, strlen(text));
    weft_udp_filled(udp, strlen(text));
  }
}

START_TEST(an_address_of_ipv6_is_nobody) {
  weft_ctx *ctx = without_ipv6();
  if (!ctx)
    return;
  weft_udp udp;
  uint16_t port;
  int error;
  const weft_address here = address_of(any, 0);
  EXPECT_OK(weft_udp_open(ctx, &here, &udp, &error));
  const int fd = listener(&port);
  const weft_address to = address_of(loopback, port), nobody = address_of(stranger, port);
  send_to(&udp, &nobody, "astray");
  send_to(&udp, &to, "here");
  send_to(&udp, &nobody, "astray, too");
  weft_udp_flush(&udp);
  for (int i = 0; i < DATAGRAMS; i++) {
    char got[16] = "";
    EXPECT(recv(fd, got, sizeof got - 1, 0) == 4 && strcmp(got, "here") == 0);
  }
  char more[16];
  EXPECT(recv(fd, more, sizeof more, 0) < 0 && errno == EAGAIN);
  EXPECT(udp.statistics.sent == DATAGRAMS);
  EXPECT(udp.statistics.send_errors == 2 * DATAGRAMS);
  close(fd);
  weft_udp_close(&udp);
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(any_address_is_that_of_ipv4) {
  weft_ctx *ctx = without_ipv6();
  if (!ctx)
    return;
  weft_udp udp;
  weft_address here = address_of(any, 0), own;
  const uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff};
  int error;
  EXPECT_OK(weft_udp_open(ctx, &here, &udp, &error));
  EXPECT_OK(weft_udp_own_address(&udp, &own));
  EXPECT(memcmp(own.ip, mapped, sizeof mapped) == 0 && own.port != 0);
  weft_udp_close(&udp);
  here = address_of(stranger, 0);
  EXPECT_STATUS(weft_udp_open(ctx, &here, &udp, &error), WEFT_E_IO);
  EXPECT(error == EAFNOSUPPORT);
  weft_ctx_free(ctx);
}
END_TEST

// --- What strangers send

enum { PLACES = 8 };

// One datagram for each line of the kernel's filter, `taken` or refused.
static const struct {
  const char *what;
  size_t bytes;
  uint8_t begin[5];
  bool taken;
} strangers[] = {
    {"INIT", WEFT_INIT_BYTES, {WEFT_SESSION_INIT, 0, 0, 0, WEFT_SESSION_VERSION}, true},
    {"an INIT that is too short",
     WEFT_INIT_BYTES - 1,
     {WEFT_SESSION_INIT, 0, 0, 0, WEFT_SESSION_VERSION},
     false},
    {"an INIT to a key id",
     WEFT_INIT_BYTES,
     {WEFT_SESSION_INIT, 0, 0, 1, WEFT_SESSION_VERSION},
     false},
    {"an INIT of another version",
     WEFT_INIT_BYTES,
     {WEFT_SESSION_INIT, 0, 0, 0, WEFT_SESSION_VERSION + 1},
     false},
    {"the first type but one", 40, {WEFT_SESSION_RETRY, 1, 0, PLACES - 1}, true},
    {"DATA of the last place", 40, {WEFT_SESSION_DATA, 0xab, 0xc0, PLACES - 1}, true},
    {"DATA beyond the places", 40, {WEFT_SESSION_DATA, 0xab, 0xc0, PLACES}, false},
    {"DATA far beyond the places", 40, {WEFT_SESSION_DATA, 0xab, 0xc1, 0}, false},
    {"the shortest", WEFT_SESSION_LEAST_BYTES, {WEFT_SESSION_DATA, 0, 0x10, 0}, true},
    {"shorter", WEFT_SESSION_LEAST_BYTES - 1, {WEFT_SESSION_DATA, 0, 0x10, 0}, false},
    {"the last type", 40, {WEFT_SESSION_LAST, 0, 0x10, 1}, true},
    {"a type beyond the last", 40, {WEFT_SESSION_LAST + 1, 0, 0x10, 1}, false},
    {"a type below the first", 40, {WEFT_SESSION_FIRST - 1, 0, 0x10, 1}, false},
    {"nothing", 0, {0}, false},
};
enum { STRANGERS = sizeof strangers / sizeof *strangers };

static void take_stranger(void *user, const weft_address *from, uint8_t *datagram, size_t bytes) {
  bool *came = user;
  (void)from;
  came[datagram[bytes - 1]] = true;
}

START_TEST(the_kernel_drops_what_is_no_sessions) {
  weft_ctx *ctx;
  weft_udp udp;
  weft_address own;
  const weft_address here = address_of(loopback, 0);
  bool came[STRANGERS] = {false};
  int error;
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  EXPECT_OK(weft_udp_open(ctx, &here, &udp, &error));
  weft_udp_filter(&udp, PLACES);
  EXPECT_OK(weft_udp_own_address(&udp, &own));
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  const struct sockaddr_in to = {.sin_family = AF_INET,
                                 .sin_port = htons(own.port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  for (size_t i = 0; i < STRANGERS; i++) {
    uint8_t datagram[WEFT_INIT_BYTES] = {0};
    memcpy(datagram, strangers[i].begin, sizeof strangers[i].begin);
    if (strangers[i].bytes)
      datagram[strangers[i].bytes - 1] = (uint8_t)i;
    EXPECT(sendto(fd, datagram, strangers[i].bytes, 0, (const struct sockaddr *)&to, sizeof to) >=
           0);
  }
  while (weft_udp_receive(&udp, STRANGERS, take_stranger, came))
    continue;
  for (size_t i = 0; i < STRANGERS; i++)
    ck_assert_msg(came[i] == strangers[i].taken, "%s: %s", strangers[i].what,
                  came[i] ? "taken" : "refused");
  close(fd);
  weft_udp_close(&udp);
  weft_ctx_free(ctx);
}
END_TEST

// --- Runs that are refused

// The kernel as the sender sees it: runs to `port` (0: to any) fail with `error`; with `narrow`, it
// has room for `room` more messages.
static struct {
  int error;
  uint16_t port;
  size_t refused, taken; // runs
  bool narrow;
  unsigned room;
} kernel;

int __real_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags) {
  unsigned before = 0;
  if (kernel.narrow && kernel.room == 0) {
    errno = EAGAIN;
    return -1;
  }
  count = kernel.narrow && kernel.room < count ? kernel.room : count;
  for (; before < count; before++) {
    const struct msghdr *m = &messages[before].msg_hdr;
    const struct sockaddr_in6 *to = m->msg_name; // the port is at the same place for IPv4
    if (m->msg_controllen && kernel.error && (!kernel.port || kernel.port == ntohs(to->sin6_port)))
      break;
  }
  if (before == 0) {
    kernel.refused++;
    errno = kernel.error;
    return -1;
  }
  const int sent = __real_sendmmsg(fd, messages, before, flags);
  for (int i = 0; i < sent; i++)
    kernel.taken += messages[i].msg_hdr.msg_controllen > 0;
  kernel.room -= kernel.narrow && sent > 0 ? (unsigned)sent : 0;
  return sent;
}

typedef struct line {
  weft_ctx *ctx;
  weft_udp udp;
  weft_address near, far;
  int near_fd, far_fd;
} line;

static void line_start(line *l) {
  const weft_address here = address_of(any, 0);
  uint16_t port;
  int error;
  EXPECT_OK(weft_ctx_new(&l->ctx, NULL));
  EXPECT_OK(weft_udp_open(l->ctx, &here, &l->udp, &error));
  l->near_fd = listener(&port);
  l->near = address_of(loopback, port);
  l->far_fd = listener(&port);
  l->far = address_of(loopback, port);
}

static void line_end(line *l) {
  close(l->near_fd);
  close(l->far_fd);
  weft_udp_close(&l->udp);
  weft_ctx_free(l->ctx);
}

// Sends a run and expects all of it to arrive.
static void expect_run(line *l, bool far) {
  send_to(&l->udp, far ? &l->far : &l->near, "a run");
  weft_udp_flush(&l->udp);
  for (int i = 0; i < DATAGRAMS; i++) {
    char got[16];
    EXPECT(recv(far ? l->far_fd : l->near_fd, got, sizeof got, 0) == 5);
  }
}

// A bad address does not end the use of runs: port 0 gives EINVAL, as runs do where the kernel has
// none.
START_TEST(a_bad_address_does_not_end_runs) {
  line l;
  line_start(&l);
  const weft_address bad = address_of(loopback, 0);
  for (int times = 0; times < 20; times++) {
    send_to(&l.udp, &bad, "astray");
    weft_udp_flush(&l.udp);
  }
  EXPECT(l.udp.statistics.send_errors == 20 * DATAGRAMS);
  kernel.taken = 0;
  expect_run(&l, false);
  EXPECT(kernel.taken == 1);
  line_end(&l);
}
END_TEST

START_TEST(a_path_without_runs_does_not_end_those_of_others) {
  static const int errors[] = {EINVAL, EIO, EMSGSIZE};
  for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
    line l;
    line_start(&l);
    kernel.error = errors[e];
    kernel.port = l.far.port;
    kernel.taken = 0;
    for (size_t times = 1; times <= 20; times++) {
      expect_run(&l, true);
      expect_run(&l, false);
      EXPECT(kernel.taken == times);
    }
    EXPECT(l.udp.statistics.send_errors == 0);
    kernel.error = 0;
    line_end(&l);
  }
}
END_TEST

// A kernel without runs is tried seldom, as a refusal costs a call, but it is tried, as a route may
// change.
START_TEST(a_kernel_without_runs_is_asked_seldom) {
  static const int errors[] = {EINVAL, EIO, ENOPROTOOPT};
  for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
    line l;
    line_start(&l);
    kernel.error = errors[e];
    kernel.port = 0;
    kernel.refused = kernel.taken = 0;
    for (int times = 0; times < 1000; times++)
      expect_run(&l, times % 2);
    EXPECT(kernel.refused > 0 && kernel.refused < 10);
    EXPECT(l.udp.statistics.send_errors == 0);
    kernel.error = 0;
    for (int times = 0; times < 2000; times++)
      expect_run(&l, times % 2);
    EXPECT(kernel.taken > 500);
    line_end(&l);
  }
}
END_TEST

// --- What is sent arrives

enum { NUMBERED = 4000, TURN_MOST = 150, NETWORKS = WEFT_UDP_WAYS + 8, LONGEST = 300 };

// Numbered datagrams on their way to 127.0.0.1 and the addresses after it, all of one socket.
typedef struct numbered {
  weft_ctx *ctx;
  weft_udp from, to;
  test_rng rng;
  uint16_t bytes[NUMBERED];
  uint8_t network[NUMBERED]; // the address's last byte
  bool came[NUMBERED];
  size_t sent, sent_bytes;
} numbered;

static void fill_numbered(const numbered *n, size_t number, uint8_t *out) {
  for (size_t i = 0; i < n->bytes[number]; i++)
    out[i] = (uint8_t)(number >> 8 * (i % 2) ^ i / 2);
}

// Expects a datagram that was sent, for the first time, and after those sent before it that are as
// long and go to the same address.
static void take_numbered(void *user, const weft_address *from, uint8_t *datagram, size_t bytes) {
  numbered *n = user;
  uint8_t expected[LONGEST];
  EXPECT(bytes >= 2);
  const size_t number = datagram[0] | (size_t)datagram[1] << 8;
  EXPECT(number < n->sent && n->bytes[number] == bytes && !n->came[number]);
  fill_numbered(n, number, expected);
  EXPECT(memcmp(datagram, expected, bytes) == 0);
  EXPECT(from->own[15] == n->network[number]);
  for (size_t i = number; i-- > 0 && number - i < TURN_MOST;)
    EXPECT(n->came[i] || n->bytes[i] != bytes || n->network[i] != n->network[number]);
  n->came[number] = true;
}

// Queues one datagram. Where the socket is full, there is no room until it takes the queue again.
static void send_numbered(numbered *n, const weft_address *to) {
  static const uint16_t lengths[] = {LONGEST, LONGEST, LONGEST, LONGEST, 120, 60, 2};
  const size_t choices = sizeof lengths / sizeof *lengths;
  uint8_t *room = weft_udp_room(&n->from, to);
  if (!room) {
    EXPECT(n->from.blocked && kernel.narrow);
    kernel.narrow = false;
    room = weft_udp_room(&n->from, to);
  }
  EXPECT(room && n->sent < NUMBERED);
  n->network[n->sent] = to->ip[15];
  n->bytes[n->sent] = lengths[test_rng_below(&n->rng, choices)];
  fill_numbered(n, n->sent, room);
  weft_udp_filled(&n->from, n->bytes[n->sent]);
  n->sent_bytes += n->bytes[n->sent++];
}

// Queues bursts to some of the addresses, in turn, more than the queue holds now and then, and
// expects all of them.
static void turn_of_numbered(numbered *n, uint16_t port) {
  weft_address to = address_of(loopback, port);
  const size_t end = n->sent + 1 + test_rng_below(&n->rng, TURN_MOST);
  const size_t networks = 1 + test_rng_below(&n->rng, NETWORKS);
  kernel.narrow = test_rng_below(&n->rng, 2);
  kernel.room = (unsigned)test_rng_below(&n->rng, 8);
  while (n->sent < end && n->sent < NUMBERED) {
    to.ip[15] = (uint8_t)(1 + test_rng_below(&n->rng, networks));
    for (size_t left = 1 + test_rng_below(&n->rng, 16); left && n->sent < end; left--)
      if (n->sent < NUMBERED)
        send_numbered(n, &to);
  }
  weft_udp_flush(&n->from);
  EXPECT(n->from.blocked == (n->from.statistics.sent < n->sent));
  kernel.narrow = false;
  weft_udp_flush(&n->from);
  EXPECT(!n->from.blocked && n->from.statistics.sent == n->sent);
  while (weft_udp_receive(&n->to, 1, take_numbered, n))
    continue;
  EXPECT(n->to.statistics.received == n->sent);
}

START_TEST(what_is_sent_arrives_once_whole_and_in_order) {
  static numbered n;
  const weft_address here = address_of(any, 0);
  weft_address own;
  int error;
  n.rng = test_rng_new(fixture_seed(), 1);
  EXPECT_OK(weft_ctx_new(&n.ctx, NULL));
  EXPECT_OK(weft_udp_open(n.ctx, &here, &n.from, &error));
  EXPECT_OK(weft_udp_open(n.ctx, &here, &n.to, &error));
  EXPECT_OK(weft_udp_own_address(&n.to, &own));
  while (n.sent < NUMBERED)
    turn_of_numbered(&n, own.port);
  const weft_udp_statistics *const in = &n.to.statistics, *const out = &n.from.statistics;
  EXPECT(out->sent_bytes == n.sent_bytes && in->received_bytes == n.sent_bytes);
  EXPECT(out->send_errors == 0);
  EXPECT(out->send_calls < NUMBERED / 4 && in->receive_calls < NUMBERED / 4 && kernel.taken > 0);
  weft_udp_close(&n.from);
  weft_udp_close(&n.to);
  weft_ctx_free(n.ctx);
}
END_TEST

static void count_empty(void *user, const weft_address *from, uint8_t *datagram, size_t bytes) {
  (void)from, (void)datagram;
  EXPECT(bytes == 0);
  ++*(size_t *)user;
}

// Empty datagrams count like others: a flood of them, where the kernel has no filter, must not keep
// the node from its other work.
START_TEST(empty_datagrams_count) {
  enum { EMPTY = 100, FEW = 10 };
  line l;
  weft_address own;
  size_t came = 0;
  line_start(&l);
  EXPECT_OK(weft_udp_own_address(&l.udp, &own));
  const struct sockaddr_in to = {.sin_family = AF_INET,
                                 .sin_port = htons(own.port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  for (int i = 0; i < EMPTY; i++)
    EXPECT(sendto(l.near_fd, "", 0, 0, (const struct sockaddr *)&to, sizeof to) == 0);
  const size_t first = weft_udp_receive(&l.udp, 1, count_empty, &came);
  EXPECT(first == came && came >= 1 && came <= FEW);
  while (weft_udp_receive(&l.udp, 1, count_empty, &came))
    continue;
  EXPECT(came == EMPTY && l.udp.statistics.received == EMPTY);
  line_end(&l);
}
END_TEST

// --- Several addresses

enum { OTHER = 2 }; // 127.0.0.2 belongs to every machine

static void keep_address(void *user, const weft_address *from, uint8_t *datagram, size_t bytes) {
  (void)datagram, (void)bytes;
  *(weft_address *)user = *from;
}

// Has the near end call 127.0.0.OTHER. Returns its address, and the one that it called.
static weft_address called_at_another(line *l) {
  weft_address own, from = {.port = 0};
  EXPECT_OK(weft_udp_own_address(&l->udp, &own));
  const struct sockaddr_in to = {.sin_family = AF_INET,
                                 .sin_port = htons(own.port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + OTHER)};
  EXPECT(sendto(l->near_fd, "call", 4, 0, (const struct sockaddr *)&to, sizeof to) == 4);
  EXPECT(weft_udp_receive(&l->udp, 1, keep_address, &from) == 1);
  EXPECT(from.port == l->near.port && memcmp(from.ip, l->near.ip, sizeof from.ip) == 0);
  return from;
}

// Sends a run to the near end and expects all of it to come from 127.0.0.last.
static void expect_run_from(line *l, const weft_address *to, uint8_t last) {
  send_to(&l->udp, to, "answer");
  weft_udp_flush(&l->udp);
  for (int i = 0; i < DATAGRAMS; i++) {
    struct sockaddr_in from;
    socklen_t bytes = sizeof from;
    char got[16];
    EXPECT(recvfrom(l->near_fd, got, sizeof got, 0, (struct sockaddr *)&from, &bytes) == 6);
    EXPECT(ntohl(from.sin_addr.s_addr) == INADDR_LOOPBACK - 1 + last);
  }
}

static void expect_answers(void) {
  line l;
  line_start(&l);
  const weft_address called = called_at_another(&l);
  weft_address fresh = called, gone = called;
  memset(fresh.own, 0, sizeof fresh.own);
  gone.own[12] = 192; // 192.0.0.2 is no address of this machine
  kernel.taken = 0;
  expect_run_from(&l, &called, OTHER);
  expect_run_from(&l, &fresh, 1); // as the kernel chooses
  expect_run_from(&l, &gone, 1);
  expect_run_from(&l, &called, OTHER);
  EXPECT(kernel.taken == 4 && l.udp.statistics.send_errors == 0);
  line_end(&l);
}

START_TEST(who_is_called_answers_from_there) { expect_answers(); }
END_TEST

START_TEST(who_is_called_answers_from_there_without_ipv6) {
  weft_ctx *ctx = without_ipv6();
  if (ctx)
    expect_answers();
  weft_ctx_free(ctx);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("udp");
  TCase *tc = tcase_create("without IPv6");
  tcase_add_test(tc, an_address_of_ipv6_is_nobody);
  tcase_add_test(tc, any_address_is_that_of_ipv4);
  suite_add_tcase(suite, tc);
  TCase *filter = tcase_create("filter");
  tcase_add_test(filter, the_kernel_drops_what_is_no_sessions);
  suite_add_tcase(suite, filter);
  TCase *runs = tcase_create("runs");
  tcase_add_test(runs, a_bad_address_does_not_end_runs);
  tcase_add_test(runs, a_path_without_runs_does_not_end_those_of_others);
  tcase_add_test(runs, a_kernel_without_runs_is_asked_seldom);
  suite_add_tcase(suite, runs);
  TCase *all = tcase_create("all that is sent");
  tcase_add_test(all, what_is_sent_arrives_once_whole_and_in_order);
  tcase_add_test(all, empty_datagrams_count);
  suite_add_tcase(suite, all);
  TCase *addresses = tcase_create("several addresses");
  tcase_add_test(addresses, who_is_called_answers_from_there);
  tcase_add_test(addresses, who_is_called_answers_from_there_without_ipv6);
  suite_add_tcase(suite, addresses);
  return test_main(suite);
}
