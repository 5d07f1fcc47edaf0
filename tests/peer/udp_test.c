// SPDX-License-Identifier: Apache-2.0
// The UDP socket on a kernel without IPv6: what is sent to an address of IPv6 goes to nobody.
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer/runtime/udp.h"
#include "tests/peer/fixture.h"
#include "tests/support/no_ipv6.h"
#include "tests/support/test_main.h"

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

// Each test has a process of its own (CK_FORK): the filter stays in it.
static weft_ctx *without_ipv6(void) {
  weft_ctx *ctx;
  if (!test_no_ipv6()) {
    (void)printf("SKIPPED: needs seccomp filters without privileges: %s\n", strerror(errno));
    return NULL;
  }
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  return ctx;
}

// Bound to 127.0.0.1; *port is where.
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

int main(void) {
  Suite *suite = suite_create("udp");
  TCase *tc = tcase_create("without IPv6");
  tcase_add_test(tc, an_address_of_ipv6_is_nobody);
  tcase_add_test(tc, any_address_is_that_of_ipv4);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
