// SPDX-License-Identifier: Apache-2.0
// A UDP source that embeds weft's coder: streams one file, paced, to every client that joins.
//   streaming_server FILE PORT [KBPS]      KBPS: kbit/s to each client, 768 by default
// From a client: 'J' joins; 'N' and a segment number (u64, big-endian) reports that it is decoded.
// To a client: the file's length in bytes (u64, big-endian) answers a join; then datagrams as in
// docs/wire.md. A client that is silent for ten seconds is dropped.
//
// It trusts a datagram's source address, so anyone who can forge one can have the stream sent to
// any host. On the Internet, ask for a cookie first, as docs/session.md does.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "weft/server.h"
#include "weft/weft.h"

enum { STREAM = 1, CLIENTS = 256, BURST = 64, BLOCKS = 64, BLOCK_BYTES = 1024 };
enum { SEGMENT_BYTES = BLOCKS * BLOCK_BYTES, PACKET_CREDIT = BLOCK_BYTES * 1000000 };
enum { LIFETIME_US = 30000000, SILENCE_US = 10000000, HEARD_MOST = 1024 };

typedef struct client {
  struct sockaddr_in address; // port 0: the place is free
  uint64_t number;            // unique; modulo CLIENTS it is the place
  uint64_t segment;           // the one being sent to it
  int64_t heard_us, credit;   // credit in millionths of a byte
} client;
static client clients[CLIENTS];
static volatile sig_atomic_t stopped;

static void stop(int signal_number) { stopped = signal_number; }

static int64_t now_us(void *unused) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  (void)unused;
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static client *find(const struct sockaddr_in *from, bool join) {
  static uint64_t joined;
  client *place = NULL;
  for (client *c = clients; c < clients + CLIENTS; c++)
    if (memcmp(&c->address, from, sizeof *from) == 0)
      return c;
    else if (!c->address.sin_port)
      place = c;
  if (join && place)
    *place = (client){.address = *from, .number = joined++ * CLIENTS + (uint64_t)(place - clients)};
  return join ? place : NULL;
}

// Goes on to the client's next segment: what it still waits for of the last one is not coded.
static void next_segment(weft_server *server, client *c) {
  (void)weft_server_cancel_segment(server, c->number, STREAM, c->segment);
  c->segment++;
}

static void hear(weft_server *server, int udp, size_t file_bytes, int64_t now) {
  uint8_t in[16];
  for (int i = 0; i < HEARD_MOST; i++) { // clients may send faster than this reads
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    const ssize_t got = recvfrom(udp, in, sizeof in, 0, (struct sockaddr *)&from, &size);
    if (got <= 0)
      return;
    client *c = find(&from, in[0] == 'J');
    if (!c)
      continue;
    uint64_t number = htobe64(file_bytes);
    c->heard_us = now;
    if (in[0] == 'J')
      sendto(udp, &number, sizeof number, 0, (struct sockaddr *)&from, size);
    else if (in[0] == 'N' && got == 1 + (ssize_t)sizeof number)
      if (be64toh(*(uint64_t *)memcpy(&number, in + 1, sizeof number)) == c->segment)
        next_segment(server, c);
  }
}

// Ignores a lack of memory: the rest waits for the next tick.
static weft_status or_later(weft_status status) {
  return status == WEFT_E_NOMEM ? WEFT_OK : status;
}

// Requests the packets that each client's rate allows since the last tick; pushes segments on
// demand.
static weft_status pace(weft_server *server, const uint8_t *file, size_t file_bytes, int64_t kbps,
                        int64_t elapsed_us, int64_t now) {
  for (client *c = clients; c < clients + CLIENTS; c++) {
    const size_t at = (size_t)c->segment * SEGMENT_BYTES;
    if (c->address.sin_port && now - c->heard_us > SILENCE_US) {
      c->address.sin_port = 0;
      (void)weft_server_cancel(server, c->number); // no coding for a client that is gone
    }
    if (!c->address.sin_port || at >= file_bytes)
      continue;
    c->credit += elapsed_us * kbps * 125;
    const uint32_t packets = (uint32_t)(c->credit / PACKET_CREDIT);
    c->credit %= PACKET_CREDIT;
    if (packets == 0)
      continue;
    const weft_segment_id id = {STREAM, c->segment, BLOCKS, BLOCK_BYTES};
    const size_t bytes = file_bytes - at < SEGMENT_BYTES ? file_bytes - at : SEGMENT_BYTES;
    if (!weft_server_has(server, id.stream, id.segment))
      WEFT_TRY(or_later(weft_server_push(server, &id, file + at, bytes, now, now + LIFETIME_US)));
    const weft_server_request want = {id.stream, id.segment, c->number, packets};
    size_t accepted = 0;
    (void)weft_server_request_many(server, &want, 1, now, &accepted); // refused: on the next tick
  }
  return or_later(weft_server_process(server, now));
}

static void send_ready(weft_server *server, int udp) {
  weft_server_packet ready[BURST];
  size_t count = 0;
  while (weft_server_take(server, ready, BURST, &count) == WEFT_OK && count > 0) {
    for (size_t i = 0; i < count; i++) {
      const client *c = &clients[ready[i].client % CLIENTS];
      const struct sockaddr_in *to = &c->address;
      if (ready[i].status == WEFT_OK && to->sin_port && c->number == ready[i].client)
        sendto(udp, ready[i].datagram, ready[i].bytes, 0, (const struct sockaddr *)to, sizeof *to);
    }
    weft_server_release(server, ready, count);
  }
}

// Returns the text's whole number; -1 if it is not one from 1 to `most`.
static long number(const char *text, long most) {
  char *end;
  const long value = strtol(text, &end, 10);
  return *text && !*end && value >= 1 && value <= most ? value : -1;
}

static void complain(const char *about) {
  fprintf(stderr, "streaming_server: %s: %s\n", about, strerror(errno));
}

// Returns the mapped file, or NULL after reporting an error.
static const uint8_t *map_file(const char *path, size_t *bytes) {
  struct stat info;
  const int fd = open(path, O_RDONLY);
  if (fd < 0 || fstat(fd, &info) != 0) {
    complain(path);
    return NULL;
  }
  if (!S_ISREG(info.st_mode) || info.st_size == 0) {
    fprintf(stderr, "streaming_server: %s: no file, or an empty one\n", path);
    return NULL;
  }
  *bytes = (size_t)info.st_size;
  const void *file = mmap(NULL, *bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (file != MAP_FAILED)
    return file;
  complain(path);
  return NULL;
}

static int open_port(const char *text, uint16_t port) {
  const struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
  const int udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  if (udp >= 0 && bind(udp, (const struct sockaddr *)&here, sizeof here) == 0)
    return udp;
  complain(text);
  return -1;
}

static weft_status serve(int udp, const uint8_t *file, size_t bytes, int64_t kbps) {
  weft_ctx *ctx = NULL;
  weft_server *server = NULL;
  weft_status status = weft_ctx_new(&ctx, NULL);
  const weft_server_options how = {&ctx, 1, now_us, .gather_us = 1000, .fall_over = true};
  if (status == WEFT_OK)
    status = weft_server_new(&how, &server);
  for (int64_t last = now_us(NULL), now = last; status == WEFT_OK && !stopped; last = now) {
    struct pollfd fds[2] = {{udp, POLLIN, 0}, {weft_server_fd(server), POLLIN, 0}};
    poll(fds, 2, 1); // pacing is due sooner than weft_server_deadline()
    now = now_us(NULL);
    hear(server, udp, bytes, now);
    status = pace(server, file, bytes, kbps, now - last, now);
    send_ready(server, udp);
  }
  weft_server_free(server);
  weft_ctx_free(ctx);
  return status;
}

int main(int argc, char **argv) {
  const long port = argc > 2 ? number(argv[2], UINT16_MAX) : -1;
  const long kbps = argc > 3 ? number(argv[3], 1000000) : 768;
  if (port < 0 || kbps < 0 || argc > 4) {
    fprintf(stderr, "usage: streaming_server FILE PORT [KBPS]\n");
    return 2;
  }
  size_t bytes;
  const uint8_t *file = map_file(argv[1], &bytes);
  const int udp = file ? open_port(argv[2], (uint16_t)port) : -1;
  if (udp < 0)
    return 1;
  signal(SIGINT, stop);
  signal(SIGTERM, stop);
  const weft_status status = serve(udp, file, bytes, kbps);
  if (status != WEFT_OK)
    fprintf(stderr, "streaming_server: %s\n", weft_status_text(status));
  return status == WEFT_OK ? 0 : 1;
}
