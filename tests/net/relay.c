// SPDX-License-Identifier: Apache-2.0
// A network for tests: makes network namespaces, each with one TUN device, and carries their
// packets between them with delay, jitter (hence reordering), loss and duplicates, all derived from
// one seed. Needs only a user namespace in which it is root (unshare -Ur).
//
//   net_relay FOLDER COUNT SEED LOSS_PPM DELAY_US JITTER_US DUPLICATE_PPM [NATS [I:BITS_PER_S...]]
//
// Namespace i is FOLDER/ns$i (nsenter --net=FOLDER/ns$i), its address 10.77.(i+1)/256.(i+1)%256.
// NATS has a letter for each of the first namespaces: - none, n a NAT, s a symmetric one.
// I:BITS_PER_S: packets to namespace I pass a link of that rate, with a queue of 300 ms. Prints
// "ready" when all exist. SIGTERM ends it; it then prints what it carried, and how much of that it
// delivered more than 5 ms late because the processor was busy.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/net/nat.h"

enum { NODES_MAX = 256, PACKET_MAX = 1600, QUEUE_MAX = 65536, QUEUE_LENGTH = 2000 };
enum { TARDY_US = 5000, LINK_QUEUE_US = 300000 };

typedef struct packet {
  int64_t due_us;
  uint64_t order; // packets of equal times stay in order
  size_t to, bytes;
  uint8_t data[PACKET_MAX];
} packet;

typedef struct relay {
  size_t count;
  int tun[NODES_MAX];
  nat nats[NODES_MAX];
  int64_t link_bits_per_s[NODES_MAX], link_free_us[NODES_MAX]; // 0: no limit
  uint64_t state;                                              // of the random numbers
  uint32_t loss_ppm, duplicate_ppm;
  int64_t delay_us, jitter_us;
  packet *heap[QUEUE_MAX];
  size_t queued;
  uint64_t order, carried, lost, duplicated, refused, tardy, shut; // shut: stopped by a NAT
  int64_t tardy_us_max; // the most that a packet was delivered late: the machine was busy
} relay;

static volatile sig_atomic_t stopped;
static void on_term(int number) { stopped = number; }

static void die(const char *what) {
  fprintf(stderr, "net_relay: %s: %s\n", what, strerror(errno));
  exit(3);
}

static uint64_t chance(relay *r) { // splitmix64
  uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static int64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

// --- Namespaces

static void set_address(struct ifreq *request, uint32_t address) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
  memcpy(&request->ifr_addr, &at, sizeof at);
}

static void up(int fd, const char *name) {
  struct ifreq request = {0};
  snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
  if (ioctl(fd, SIOCGIFFLAGS, &request) != 0)
    die("SIOCGIFFLAGS");
  request.ifr_flags = (short)(request.ifr_flags | IFF_UP);
  if (ioctl(fd, SIOCSIFFLAGS, &request) != 0)
    die("SIOCSIFFLAGS");
}

static int make_tun(uint32_t address) {
  struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
  const int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  snprintf(request.ifr_name, sizeof request.ifr_name, "weft0");
  if (tun < 0 || fd < 0 || ioctl(tun, TUNSETIFF, &request) != 0)
    die("/dev/net/tun");
  request.ifr_qlen = QUEUE_LENGTH;
  (void)ioctl(fd, SIOCSIFTXQLEN, &request);
  set_address(&request, address);
  if (ioctl(fd, SIOCSIFADDR, &request) != 0)
    die("SIOCSIFADDR");
  set_address(&request, UINT32_C(0xffff0000));
  if (ioctl(fd, SIOCSIFNETMASK, &request) != 0)
    die("SIOCSIFNETMASK");
  up(fd, "weft0");
  up(fd, "lo");
  close(fd);
  return tun;
}

static void make_namespace(relay *r, const char *folder, size_t i) {
  char path[4096];
  snprintf(path, sizeof path, "%s/ns%zu", folder, i);
  const int file = open(path, O_CREAT | O_RDONLY | O_CLOEXEC, 0600);
  if (file < 0 || unshare(CLONE_NEWNET) != 0 ||
      mount("/proc/self/ns/net", path, NULL, MS_BIND, NULL) != 0)
    die(path);
  close(file);
  r->tun[i] = make_tun((UINT32_C(10) << 24 | UINT32_C(77) << 16) + (uint32_t)i + 1);
}

// --- Packets under way: a heap by time

static bool before(const packet *a, const packet *b) {
  return a->due_us < b->due_us || (a->due_us == b->due_us && a->order < b->order);
}

static void push(relay *r, packet *p) {
  size_t at = r->queued++;
  for (; at && before(p, r->heap[(at - 1) / 2]); at = (at - 1) / 2)
    r->heap[at] = r->heap[(at - 1) / 2];
  r->heap[at] = p;
}

static packet *pop(relay *r) {
  packet *first = r->heap[0], *last = r->heap[--r->queued];
  size_t at = 0;
  for (size_t child; (child = 2 * at + 1) < r->queued; at = child) {
    child += child + 1 < r->queued && before(r->heap[child + 1], r->heap[child]);
    if (!before(r->heap[child], last))
      break;
    r->heap[at] = r->heap[child];
  }
  r->heap[at] = last;
  return first;
}

// Passes a packet through both NATs; returns the node that it is for, or none. IPv4 of this network
// only: other packets of the kernel are dropped.
static size_t way_of(relay *r, size_t from, uint8_t *data, size_t bytes) {
  if (bytes < 20 || bytes > PACKET_MAX || data[0] >> 4 != 4 || data[16] != 10 || data[17] != 77)
    return SIZE_MAX;
  const bool outer = data[18] & NAT_OUTER;
  const size_t to = ((size_t)(data[18] & ~NAT_OUTER) << 8 | data[19]) - 1;
  if (to >= r->count || (r->nats[from].there && !nat_out(&r->nats[from], data, bytes, now_us())))
    return SIZE_MAX;
  if (r->nats[to].there == outer && (!outer || nat_in(&r->nats[to], data, bytes, now_us())))
    return to;
  r->shut++;
  return SIZE_MAX;
}

// Returns when a packet that comes to a link at `at_us` has passed it; -1: its queue is full.
static int64_t pass_link(relay *r, size_t to, size_t bytes, int64_t at_us) {
  if (r->link_bits_per_s[to] == 0)
    return at_us;
  int64_t *free_us = &r->link_free_us[to];
  if (*free_us - at_us > LINK_QUEUE_US)
    return -1;
  *free_us =
      (*free_us > at_us ? *free_us : at_us) + (int64_t)bytes * 8000000 / r->link_bits_per_s[to];
  return *free_us;
}

static void carry(relay *r, size_t from, uint8_t *data, size_t bytes) {
  const size_t to = way_of(r, from, data, bytes);
  if (to == SIZE_MAX)
    return;
  const int copies = chance(r) % 1000000 < r->loss_ppm        ? 0
                     : chance(r) % 1000000 < r->duplicate_ppm ? 2
                                                              : 1;
  r->lost += copies == 0;
  r->duplicated += copies == 2;
  for (int i = 0; i < copies; i++) {
    const int64_t jitter =
        r->jitter_us ? (int64_t)(chance(r) % (uint64_t)(2 * r->jitter_us + 1)) - r->jitter_us : 0;
    const int64_t due_us = pass_link(r, to, bytes, now_us() + r->delay_us + jitter);
    if (due_us < 0) {
      r->lost++;
      continue;
    }
    packet *p = r->queued < QUEUE_MAX ? malloc(sizeof *p) : NULL;
    if (!p) {
      r->refused++;
      return;
    }
    p->due_us = due_us;
    p->order = r->order++;
    p->to = to;
    p->bytes = bytes;
    memcpy(p->data, data, bytes);
    push(r, p);
    r->carried++;
  }
}

static void deliver_due(relay *r) {
  const int64_t now = now_us();
  while (r->queued && r->heap[0]->due_us <= now) {
    packet *p = pop(r);
    const int64_t tardy_us = now - p->due_us;
    r->tardy += tardy_us > TARDY_US;
    r->tardy_us_max = tardy_us > r->tardy_us_max ? tardy_us : r->tardy_us_max;
    if (write(r->tun[p->to], p->data, p->bytes) < 0)
      r->refused++;
    free(p);
  }
}

static void run(relay *r) {
  const int set = epoll_create1(EPOLL_CLOEXEC);
  for (size_t i = 0; i < r->count; i++) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = i};
    if (epoll_ctl(set, EPOLL_CTL_ADD, r->tun[i], &event) != 0)
      die("epoll");
  }
  while (!stopped) {
    struct epoll_event events[64];
    const int64_t left = r->queued ? r->heap[0]->due_us - now_us() : 100000;
    const struct timespec wait = {.tv_nsec = left <= 0       ? 0
                                             : left < 100000 ? left * 1000
                                                             : 100000000};
    const int ready = epoll_pwait2(set, events, 64, &wait, NULL);
    for (int i = 0; i < ready; i++) {
      uint8_t data[PACKET_MAX];
      ssize_t bytes;
      for (int some = 0;
           some < 64 && (bytes = read(r->tun[events[i].data.u64], data, sizeof data)) > 0; some++)
        carry(r, events[i].data.u64, data, (size_t)bytes);
    }
    deliver_due(r);
  }
  close(set);
}

int main(int argc, char **argv) {
  static relay r;
  if (argc < 8) {
    fputs("usage: net_relay FOLDER COUNT SEED LOSS_PPM DELAY_US JITTER_US DUPLICATE_PPM "
          "[NATS [I:BITS_PER_S...]]\n",
          stderr);
    return 2;
  }
  r.count = strtoul(argv[2], NULL, 10);
  r.state = strtoull(argv[3], NULL, 0);
  r.loss_ppm = (uint32_t)strtoul(argv[4], NULL, 10);
  r.delay_us = strtol(argv[5], NULL, 10);
  r.jitter_us = strtol(argv[6], NULL, 10);
  r.duplicate_ppm = (uint32_t)strtoul(argv[7], NULL, 10);
  if (r.count < 1 || r.count > NODES_MAX)
    return 2;
  struct sigaction action = {.sa_handler = on_term};
  sigaction(SIGTERM, &action, NULL);
  for (size_t i = 0; i < r.count; i++)
    make_namespace(&r, argv[1], i);
  for (size_t i = 0; argc > 8 && i < r.count && argv[8][i]; i++)
    r.nats[i] = (nat){.there = argv[8][i] != '-', .symmetric = argv[8][i] == 's'};
  for (int i = 9; i < argc; i++) {
    char *colon;
    const size_t node = strtoul(argv[i], &colon, 10);
    if (node >= r.count || *colon != ':')
      return 2;
    r.link_bits_per_s[node] = strtoll(colon + 1, NULL, 10);
  }
  puts("ready");
  fflush(stdout);
  run(&r);
  printf("carried=%llu lost=%llu duplicated=%llu refused=%llu shut=%llu tardy=%llu "
         "tardy_ms_max=%lld\n",
         (unsigned long long)r.carried, (unsigned long long)r.lost,
         (unsigned long long)r.duplicated, (unsigned long long)r.refused,
         (unsigned long long)r.shut, (unsigned long long)r.tardy,
         (long long)(r.tardy_us_max / 1000));
  while (r.queued)
    free(pop(&r));
  return 0;
}
