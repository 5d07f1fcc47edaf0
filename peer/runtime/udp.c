// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "peer/runtime/udp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum {
  MESSAGES = 8,            // of one recvmmsg
  MESSAGE_BYTES = 1 << 16, // a run that GRO joined
  SOCKET_BYTES = 4 << 20
};

typedef union any_address {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
} any_address;

static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

static socklen_t to_kernel(const weft_udp *udp, const weft_address *a, any_address *out) {
  memset(out, 0, sizeof *out);
  if (udp->v4) {
    out->v4.sin_family = AF_INET;
    out->v4.sin_port = htons(a->port);
    memcpy(&out->v4.sin_addr, a->ip + 12, 4);
    return sizeof out->v4;
  }
  out->v6.sin6_family = AF_INET6;
  out->v6.sin6_port = htons(a->port);
  memcpy(&out->v6.sin6_addr, a->ip, 16);
  return sizeof out->v6;
}

static void from_kernel(const any_address *from, weft_address *out) {
  if (from->any.sa_family == AF_INET) {
    memcpy(out->ip, v4_prefix, 12);
    memcpy(out->ip + 12, &from->v4.sin_addr, 4);
    out->port = ntohs(from->v4.sin_port);
  } else {
    memcpy(out->ip, &from->v6.sin6_addr, 16);
    out->port = ntohs(from->v6.sin6_port);
  }
}

static int open_socket(weft_udp *udp, const weft_address *address) {
  const int off = 0, on = 1, room = SOCKET_BYTES;
  any_address bound;
  udp->fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (udp->fd < 0 && errno == EAFNOSUPPORT) {
    udp->v4 = true;
    udp->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  }
  if (udp->fd < 0)
    return errno;
  if (!udp->v4)
    (void)setsockopt(udp->fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  (void)setsockopt(udp->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  (void)setsockopt(udp->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  (void)setsockopt(udp->fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on); // older kernels: one by one
  const socklen_t bytes = to_kernel(udp, address, &bound);
  return bind(udp->fd, &bound.any, bytes) == 0 ? 0 : errno;
}

weft_status weft_udp_open(weft_ctx *ctx, const weft_address *address, weft_udp *out, int *error) {
  void *run, *in;
  *out = (weft_udp){.ctx = ctx, .fd = -1};
  WEFT_TRY(weft_alloc(ctx, WEFT_MEM_HOST, WEFT_UDP_RUN * WEFT_SESSION_DATAGRAM_BYTES, &run));
  out->run = run;
  const weft_status status = weft_alloc(ctx, WEFT_MEM_HOST, MESSAGES * MESSAGE_BYTES, &in);
  if (status == WEFT_OK)
    out->in = in;
  *error = status == WEFT_OK ? open_socket(out, address) : 0;
  if (status == WEFT_OK && *error == 0)
    return WEFT_OK;
  weft_udp_close(out);
  return status == WEFT_OK ? WEFT_E_IO : status;
}

void weft_udp_close(weft_udp *udp) {
  if (udp->fd >= 0)
    close(udp->fd);
  if (udp->ctx) {
    weft_free(udp->ctx, WEFT_MEM_HOST, udp->run);
    weft_free(udp->ctx, WEFT_MEM_HOST, udp->in);
  }
  *udp = (weft_udp){.fd = -1};
}

weft_status weft_udp_own_address(const weft_udp *udp, weft_address *out) {
  any_address own;
  socklen_t bytes = sizeof own;
  if (getsockname(udp->fd, &own.any, &bytes) != 0)
    return WEFT_E_IO;
  from_kernel(&own, out);
  return WEFT_OK;
}

// --- What strangers send

void weft_udp_filter(weft_udp *udp, size_t places) {
  enum { UDP_HEADER = 8, FIRST = 0x71, LAST = 0x76, LEAST = 28, INIT_BYTES = 192 };
  // Lengths are "at least": a run that GRO joined is looked at as one. 15 refuses, 16 takes; jumps
  // count from the line after.
  struct sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, UDP_HEADER + LEAST, 0, 15 - 2),
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, UDP_HEADER),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FIRST, 9 - 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, LAST, 15 - 5, 0),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FIRST, 0, 15 - 6),
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, UDP_HEADER + 2), // the key id's low 16 bits
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xfff),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)places, 15 - 9, 16 - 9),
      BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0), // INIT
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, UDP_HEADER + INIT_BYTES, 0, 15 - 11),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, UDP_HEADER),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)FIRST << 24, 0, 15 - 13),
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, UDP_HEADER + 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 16 - 15, 0),
      BPF_STMT(BPF_RET | BPF_K, 0),
      BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
  };
  const struct sock_fprog all = {.len = sizeof program / sizeof *program, .filter = program};
  // Where there are no filters, everything is only checked here.
  (void)setsockopt(udp->fd, SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof all);
}

// --- Sending

// How many of the datagrams from run_at on one call can take: all as long as the first, but for a
// shorter one at the end.
static size_t run_length(const weft_udp *udp) {
  size_t count = 1;
  while (!udp->no_segmenting && udp->run_at + count < udp->run_count) {
    const size_t first = udp->run_bytes[udp->run_at], next = udp->run_bytes[udp->run_at + count];
    if (next > first)
      break;
    count++;
    if (next < first)
      break;
  }
  return count;
}

static ssize_t send_run(weft_udp *udp, size_t count) {
  any_address to;
  struct iovec parts[WEFT_UDP_RUN];
  union {
    char bytes[CMSG_SPACE(sizeof(uint16_t))];
    struct cmsghdr align;
  } control;
  struct msghdr message = {.msg_name = &to,
                           .msg_namelen = to_kernel(udp, &udp->to, &to),
                           .msg_iov = parts,
                           .msg_iovlen = count};
  for (size_t i = 0; i < count; i++)
    parts[i] =
        (struct iovec){.iov_base = udp->run + (udp->run_at + i) * WEFT_SESSION_DATAGRAM_BYTES,
                       .iov_len = udp->run_bytes[udp->run_at + i]};
  if (count > 1) {
    const uint16_t segment = (uint16_t)udp->run_bytes[udp->run_at];
    memset(&control, 0, sizeof control);
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = IPPROTO_UDP;
    c->cmsg_type = UDP_SEGMENT;
    c->cmsg_len = CMSG_LEN(sizeof segment);
    memcpy(CMSG_DATA(c), &segment, sizeof segment);
  }
  udp->statistics.send_calls++;
  return sendmsg(udp->fd, &message, MSG_NOSIGNAL);
}

void weft_udp_flush(weft_udp *udp) {
  udp->blocked = false;
  while (udp->run_at < udp->run_count) {
    const size_t count = run_length(udp);
    const ssize_t sent = send_run(udp, count);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      udp->blocked = true;
      return;
    }
    if (sent < 0 && count > 1 && (errno == EIO || errno == EINVAL || errno == ENOPROTOOPT)) {
      udp->no_segmenting = true; // a device or kernel without it
      continue;
    }
    if (sent < 0) { // unreachable, too long for the path: as good as lost on the way
      udp->statistics.send_errors += count;
    } else {
      udp->statistics.sent += count;
      udp->statistics.sent_bytes += (uint64_t)sent;
    }
    udp->run_at += count;
  }
  udp->run_at = udp->run_count = 0;
}

uint8_t *weft_udp_room(weft_udp *udp, const weft_address *to) {
  const bool other = udp->run_count &&
                     (udp->to.port != to->port || memcmp(udp->to.ip, to->ip, sizeof to->ip) != 0);
  if (udp->blocked || other || udp->run_count == WEFT_UDP_RUN)
    weft_udp_flush(udp);
  if (udp->blocked)
    return NULL;
  udp->to = *to;
  return udp->run + udp->run_count * WEFT_SESSION_DATAGRAM_BYTES;
}

void weft_udp_filled(weft_udp *udp, size_t bytes) { udp->run_bytes[udp->run_count++] = bytes; }

// --- Receiving

static size_t segment_bytes(struct msghdr *message, size_t bytes) {
  for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
    if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
      int segment;
      memcpy(&segment, CMSG_DATA(c), sizeof segment);
      return segment > 0 ? (size_t)segment : bytes;
    }
  return bytes;
}

size_t weft_udp_receive(weft_udp *udp, size_t most,
                        void (*take)(void *user, const weft_address *from, uint8_t *datagram,
                                     size_t bytes),
                        void *user) {
  size_t taken = 0;
  while (taken < most) {
    struct mmsghdr messages[MESSAGES];
    struct iovec parts[MESSAGES];
    any_address from[MESSAGES];
    _Alignas(struct cmsghdr) char control[MESSAGES][CMSG_SPACE(sizeof(int))];
    memset(messages, 0, sizeof messages);
    for (size_t i = 0; i < MESSAGES; i++) {
      parts[i] = (struct iovec){.iov_base = udp->in + i * MESSAGE_BYTES, .iov_len = MESSAGE_BYTES};
      messages[i].msg_hdr = (struct msghdr){.msg_name = &from[i],
                                            .msg_namelen = sizeof from[i],
                                            .msg_iov = &parts[i],
                                            .msg_iovlen = 1,
                                            .msg_control = control[i],
                                            .msg_controllen = sizeof control[i]};
    }
    const int count = recvmmsg(udp->fd, messages, MESSAGES, MSG_DONTWAIT, NULL);
    udp->statistics.receive_calls++;
    for (int i = 0; i < count; i++) {
      const size_t bytes = messages[i].msg_len;
      const size_t segment = segment_bytes(&messages[i].msg_hdr, bytes);
      weft_address address;
      from_kernel(&from[i], &address);
      for (size_t at = 0; at < bytes; at += segment) {
        const size_t left = bytes - at;
        take(user, &address, udp->in + (size_t)i * MESSAGE_BYTES + at,
             left < segment ? left : segment);
        taken++;
      }
      udp->statistics.received_bytes += bytes;
    }
    if (count < MESSAGES) // an error (a neighbour's port is closed) or nothing more
      break;
  }
  udp->statistics.received += taken;
  return taken;
}
