// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "peer/runtime/udp.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer/session/datagram.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum {
  MESSAGES = 8,            // per recvmmsg
  MESSAGE_BYTES = 1 << 16, // a run joined by GRO
  SOCKET_BYTES = 4 << 20
};

static const uint8_t nowhere[16]; // no address

static bool is_any(const uint8_t ip[16]) { return memcmp(ip, nowhere, sizeof nowhere) == 0; }

// A machine may have several addresses, and a node accepts answers only from the address that it
// dialled. The kernel chooses the source address by the route alone, so it has to report which
// address each datagram was sent to.
static void learn_own_addresses(const weft_udp *udp) {
  const int on = 1;
  if (udp->family == AF_INET6)
    (void)setsockopt(udp->fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on);
  else
    (void)setsockopt(udp->fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
}

static int open_socket(weft_udp *udp, const weft_address *address) {
  const int on = 1, room = SOCKET_BYTES;
  udp->family = weft_kernel_family();
  udp->fd = weft_kernel_datagrams(udp->family);
  if (udp->fd < 0)
    return errno;
  (void)setsockopt(udp->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  (void)setsockopt(udp->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  (void)setsockopt(udp->fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on); // older kernels: no runs
  if (is_any(address->ip))
    learn_own_addresses(udp);
  return weft_kernel_bind(udp->fd, udp->family, address);
}

weft_status weft_udp_open(weft_ctx *ctx, const weft_address *address, weft_udp *out, int *error) {
  void *queue, *in;
  *out = (weft_udp){.ctx = ctx, .fd = -1};
  WEFT_TRY(weft_alloc(ctx, WEFT_MEM_HOST, WEFT_UDP_QUEUE * WEFT_SESSION_DATAGRAM_BYTES, &queue));
  out->queue = queue;
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
    weft_free(udp->ctx, WEFT_MEM_HOST, udp->queue);
    weft_free(udp->ctx, WEFT_MEM_HOST, udp->in);
  }
  *udp = (weft_udp){.fd = -1};
}

weft_status weft_udp_own_address(const weft_udp *udp, weft_address *out) {
  weft_kernel_address own;
  socklen_t bytes = sizeof own;
  if (getsockname(udp->fd, &own.any, &bytes) != 0)
    return WEFT_E_IO;
  weft_from_kernel(&own.any, out);
  return WEFT_OK;
}

// --- What strangers send

void weft_udp_filter(weft_udp *udp, size_t places) {
  // Jump targets in the program. A jump's offset counts from the line after it.
  enum { UDP_HEADER = 8, INIT = 9, REFUSE = 15, TAKE = 16, LINES = 17 };
  // Lengths are minimums: the filter sees a run joined by GRO as one packet.
  struct sock_filter program[LINES] = {
      [0] = BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
      [1] =
          BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, UDP_HEADER + WEFT_SESSION_LEAST_BYTES, 0, REFUSE - 2),
      [2] = BPF_STMT(BPF_LD | BPF_B | BPF_ABS, UDP_HEADER),
      [3] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, WEFT_SESSION_INIT, INIT - 4, 0),
      [4] = BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, WEFT_SESSION_LAST, REFUSE - 5, 0),
      [5] = BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, WEFT_SESSION_FIRST, 0, REFUSE - 6),
      [6] = BPF_STMT(BPF_LD | BPF_H | BPF_ABS, UDP_HEADER + 2), // the key id's low 16 bits
      [7] = BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (1u << WEFT_SLOT_BITS) - 1),
      [8] = BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)places, REFUSE - 9, TAKE - 9),
      [INIT] = BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
      [10] = BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, UDP_HEADER + WEFT_INIT_BYTES, 0, REFUSE - 11),
      [11] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, UDP_HEADER), // its key id is 0
      [12] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)WEFT_SESSION_INIT << 24, 0, REFUSE - 13),
      [13] = BPF_STMT(BPF_LD | BPF_B | BPF_ABS, UDP_HEADER + WEFT_SESSION_VERSION_AT),
      [14] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, WEFT_SESSION_VERSION, TAKE - 15, 0),
      [REFUSE] = BPF_STMT(BPF_RET | BPF_K, 0),
      [TAKE] = BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
  };
  const struct sock_fprog all = {.len = LINES, .filter = program};
  // Without filters, the same is checked in user space alone.
  (void)setsockopt(udp->fd, SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof all);
}

// --- Sending

enum {
  SEND_MESSAGES = 16, // per sendmmsg
  REFUSED_MOST = 4,   // runs refused in a row before runs are given up
  PLAIN_TURNS = 1024  // flushes until they are tried again; each refusal costs a call
};

// One run of a way: a message for sendmmsg, and the memory it refers to.
typedef struct run {
  struct iovec parts[WEFT_UDP_RUN];
  weft_kernel_address to;
  _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(uint16_t)) +
                                        CMSG_SPACE(sizeof(struct in6_pktinfo))];
  size_t way, count;
  uint16_t after; // the place in the queue that follows
} run;

// Collects into one message datagrams of a way from place `first` on, of which `left` are queued:
// all as long as the first, except for a shorter one at the end.
static void gather(const weft_udp *udp, const weft_udp_way *way, size_t first, size_t left,
                   run *out) {
  const bool joins = udp->plain_turns == 0 && !way->one_by_one;
  const size_t bytes = udp->bytes[first];
  size_t at = first;
  out->count = 0;
  for (bool more = true; more;) {
    out->parts[out->count++] = (struct iovec){
        .iov_base = udp->queue + at * WEFT_SESSION_DATAGRAM_BYTES, .iov_len = udp->bytes[at]};
    const bool shorter = udp->bytes[at] < bytes;
    at = udp->next[at];
    more = joins && !shorter && out->count < left && out->count < WEFT_UDP_RUN &&
           udp->bytes[at] <= bytes;
  }
  out->after = (uint16_t)at;
}

// Adds a control message; `message->msg_control` has room for it.
static void add_control(struct msghdr *message, int level, int type, const void *data,
                        size_t bytes) {
  struct cmsghdr *c = (void *)((char *)message->msg_control + message->msg_controllen);
  c->cmsg_level = level;
  c->cmsg_type = type;
  c->cmsg_len = CMSG_LEN(bytes);
  memcpy(CMSG_DATA(c), data, bytes);
  message->msg_controllen += CMSG_SPACE(bytes);
}

static void add_own_address(const weft_udp *udp, const uint8_t own[16], struct msghdr *message) {
  struct in6_pktinfo v6 = {.ipi6_ifindex = 0};
  struct in_pktinfo v4 = {.ipi_ifindex = 0};
  memcpy(&v6.ipi6_addr, own, sizeof v6.ipi6_addr);
  memcpy(&v4.ipi_spec_dst, own + WEFT_V4_PREFIX_BYTES, sizeof v4.ipi_spec_dst);
  if (udp->family == AF_INET6)
    add_control(message, IPPROTO_IPV6, IPV6_PKTINFO, &v6, sizeof v6);
  else
    add_control(message, IPPROTO_IP, IP_PKTINFO, &v4, sizeof v4);
}

static void address_run(const weft_udp *udp, run *r, struct msghdr *message) {
  const weft_address *to = &udp->ways[r->way].to;
  const uint16_t segment = (uint16_t)r->parts[0].iov_len;
  *message = (struct msghdr){.msg_name = &r->to,
                             .msg_namelen = weft_to_kernel(udp->family, to, &r->to),
                             .msg_iov = r->parts,
                             .msg_iovlen = r->count,
                             .msg_control = r->control};
  memset(r->control, 0, sizeof r->control);
  if (!is_any(to->own))
    add_own_address(udp, to->own, message);
  if (r->count > 1)
    add_control(message, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment);
}

// Turns queued datagrams into messages, as many as fit into one call.
static size_t make_messages(const weft_udp *udp, run *runs, struct mmsghdr *messages) {
  size_t count = 0;
  for (size_t w = 0; w < udp->way_count; w++) {
    uint16_t at = udp->ways[w].first;
    for (size_t left = udp->ways[w].count; left && count < SEND_MESSAGES; count++) {
      run *r = &runs[count];
      r->way = w;
      gather(udp, &udp->ways[w], at, left, r);
      address_run(udp, r, &messages[count].msg_hdr);
      at = r->after;
      left -= r->count;
    }
  }
  return count;
}

static void gone(weft_udp *udp, const run *r) {
  weft_udp_way *way = &udp->ways[r->way];
  way->first = r->after;
  way->count = (uint16_t)(way->count - r->count);
}

// Updates what is known about runs, after a run was sent or the first datagram of a refused run. An
// address, path or device that refuses everything looks like a kernel without runs: the errno does
// not tell them apart, so a refusal counts only once a single datagram has been sent.
static void learn(weft_udp *udp, const run *r) {
  weft_udp_way *way = &udp->ways[r->way];
  if (r->count > 1)
    udp->refused = 0;
  else if (way->doubted && ++udp->refused >= REFUSED_MOST)
    udp->plain_turns = PLAIN_TURNS;
  way->doubted = false;
}

// Stops using the address that the other side sent to as the source: this machine may not have it
// any more, or it may be that of many machines (a broadcast). Returns false if none was in use.
static bool leave_own_address(weft_udp_way *way) {
  if (is_any(way->to.own))
    return false;
  memset(way->to.own, 0, sizeof way->to.own);
  way->one_by_one = false; // that address may have been the only problem
  return true;
}

// Makes one system call. Returns false when nothing is queued any more, or the socket is full.
static bool send_some(weft_udp *udp) {
  run runs[SEND_MESSAGES];
  struct mmsghdr messages[SEND_MESSAGES];
  const size_t count = make_messages(udp, runs, messages);
  if (count == 0)
    return false;
  udp->statistics.send_calls++;
  const int sent = sendmmsg(udp->fd, messages, (unsigned)count, MSG_NOSIGNAL);
  for (int i = 0; i < sent; i++) {
    udp->statistics.sent += runs[i].count;
    udp->statistics.sent_bytes += messages[i].msg_len;
    learn(udp, &runs[i]);
    gone(udp, &runs[i]);
  }
  if (sent >= 0 || errno == EINTR)
    return true;
  if (errno == EAGAIN || errno == EWOULDBLOCK) {
    udp->blocked = true;
    return false;
  }
  if (runs[0].count > 1 &&
      (errno == EIO || errno == EINVAL || errno == ENOPROTOOPT || errno == EMSGSIZE)) {
    udp->ways[runs[0].way].one_by_one = true;
    udp->ways[runs[0].way].doubted = errno != EMSGSIZE; // EMSGSIZE is about the path alone
    return true;
  }
  udp->ways[runs[0].way].doubted = false; // the run was not the reason
  if (leave_own_address(&udp->ways[runs[0].way]))
    return true;
  udp->statistics.send_error = errno;
  udp->statistics.send_errors += runs[0].count; // unreachable, or too long for the path:
  gone(udp, &runs[0]);                          // treated as lost on the way
  return true;
}

void weft_udp_flush(weft_udp *udp) {
  udp->blocked = false;
  if (udp->plain_turns > 0 && udp->queued > 0)
    udp->plain_turns--;
  while (send_some(udp))
    ;
  if (!udp->blocked)
    udp->queued = udp->way_count = 0;
}

static bool same_place(const weft_address *a, const weft_address *b) {
  return a->port == b->port && memcmp(a->ip, b->ip, sizeof a->ip) == 0 &&
         memcmp(a->own, b->own, sizeof a->own) == 0;
}

uint8_t *weft_udp_room(weft_udp *udp, const weft_address *to) {
  if (udp->blocked || udp->queued == WEFT_UDP_QUEUE)
    weft_udp_flush(udp);
  if (udp->blocked)
    return NULL;
  if (udp->way >= udp->way_count || !same_place(&udp->ways[udp->way].to, to)) {
    for (udp->way = 0; udp->way < udp->way_count; udp->way++)
      if (same_place(&udp->ways[udp->way].to, to))
        break;
    if (udp->way == WEFT_UDP_WAYS) {
      weft_udp_flush(udp);
      if (udp->blocked)
        return NULL;
      udp->way = 0;
    }
    if (udp->way == udp->way_count)
      udp->ways[udp->way_count++] = (weft_udp_way){.to = *to};
  }
  return udp->queue + udp->queued * WEFT_SESSION_DATAGRAM_BYTES;
}

void weft_udp_filled(weft_udp *udp, size_t bytes) {
  weft_udp_way *way = &udp->ways[udp->way];
  if (!weft_kernel_reaches(udp->family, &way->to)) {
    udp->statistics.send_error = EAFNOSUPPORT;
    udp->statistics.send_errors++;
    return;
  }
  const uint16_t at = (uint16_t)udp->queued++;
  udp->bytes[at] = (uint16_t)bytes;
  const size_t longest = way->count ? udp->bytes[way->run_last] : 0;
  if (way->count && bytes == longest && way->run_last != way->last) {
    udp->next[at] = udp->next[way->run_last];
    udp->next[way->run_last] = at;
  } else {
    if (way->count == 0)
      way->first = at;
    else
      udp->next[way->last] = at;
    way->last = at;
  }
  way->count++;
  if (bytes >= longest)
    way->run_last = at;
}

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

// Finds which of this machine's addresses a datagram was sent to, where the kernel reports it.
static void own_address(struct msghdr *message, uint8_t own[16]) {
  struct in6_pktinfo v6;
  struct in_pktinfo v4;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
    if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
      memcpy(&v6, CMSG_DATA(c), sizeof v6);
      memcpy(own, &v6.ipi6_addr, sizeof v6.ipi6_addr);
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
      memcpy(&v4, CMSG_DATA(c), sizeof v4);
      weft_v4_from_kernel(v4.ipi_spec_dst, own);
    }
}

size_t weft_udp_receive(weft_udp *udp, size_t most,
                        void (*take)(void *user, const weft_address *from, uint8_t *datagram,
                                     size_t bytes),
                        void *user) {
  size_t taken = 0;
  while (taken < most) {
    struct mmsghdr messages[MESSAGES];
    struct iovec parts[MESSAGES];
    weft_kernel_address from[MESSAGES];
    _Alignas(struct cmsghdr) char
        control[MESSAGES][CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct in6_pktinfo))];
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
      weft_from_kernel(&from[i].any, &address);
      own_address(&messages[i].msg_hdr, address.own);
      size_t at = 0;
      do { // once for an empty one, too, or those would not count towards `most`
        const size_t left = bytes - at;
        take(user, &address, udp->in + (size_t)i * MESSAGE_BYTES + at,
             left < segment ? left : segment);
        taken++;
        at += segment;
      } while (at < bytes);
      udp->statistics.received_bytes += bytes;
    }
    if (count < MESSAGES) // an error (a neighbour's port is closed), or nothing more
      break;
  }
  udp->statistics.received += taken;
  return taken;
}
