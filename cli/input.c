// SPDX-License-Identifier: Apache-2.0
// Input of the subcommands: a file, standard input, or the demo's generated clip.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "cli/cli.h"

enum {
  CLIP_PIECE = 65536, // bytes of the clip generated from one key
  LOOK_MS = 100       // how often a wait for input checks for a signal
};

int cli_input_open(cli_input *input) {
  input->at = 0;
  input->cut = false;
  input->fd = -1;
  if (!input->path)
    return 0;
  input->total = 0;
  input->fd =
      strcmp(input->path, "-") == 0 ? STDIN_FILENO : open(input->path, O_RDONLY | O_CLOEXEC);
  if (input->fd < 0)
    return errno;
  struct stat about;
  if (fstat(input->fd, &about) != 0)
    return errno;
  if (S_ISDIR(about.st_mode))
    return EISDIR;
  if (S_ISREG(about.st_mode)) { // standard input may have been read in part
    const off_t at = lseek(input->fd, 0, SEEK_CUR);
    input->total = at < about.st_size ? (uint64_t)(about.st_size - (at > 0 ? at : 0)) : 0;
  }
  return 0;
}

// Piece i of the clip is libsodium's keystream under BLAKE2b(seed, i): any part of the clip can be
// generated on its own, however the clip is cut into segments.
static void clip_piece(uint64_t seed, uint64_t piece, uint8_t out[CLIP_PIECE]) {
  uint8_t text[16], key[randombytes_SEEDBYTES];
  for (unsigned i = 0; i < 8; i++) {
    text[i] = (uint8_t)(seed >> (8 * i));
    text[8 + i] = (uint8_t)(piece >> (8 * i));
  }
  (void)crypto_generichash(key, sizeof key, text, sizeof text, NULL, 0);
  randombytes_buf_deterministic(out, CLIP_PIECE, key);
}

static void read_clip(cli_input *input, uint8_t *out, size_t capacity, size_t *bytes) {
  uint8_t piece[CLIP_PIECE];
  *bytes = 0;
  while (*bytes < capacity && input->at < input->total) {
    const size_t offset = (size_t)(input->at % CLIP_PIECE);
    size_t n = CLIP_PIECE - offset;
    n = n < capacity - *bytes ? n : capacity - *bytes;
    n = n < input->total - input->at ? n : (size_t)(input->total - input->at);
    clip_piece(input->seed, input->at / CLIP_PIECE, piece);
    memcpy(out + *bytes, piece + offset, n);
    *bytes += n;
    input->at += n;
  }
}

// Waits until there is something to read, or the end, or an error, which read() then returns.
// Returns 0, or EINTR after a signal. Waits in short turns, since the signal may reach another
// thread.
static int wait_for_input(int fd) {
  struct pollfd wanted = {.fd = fd, .events = POLLIN};
  while (cli_signal() == 0)
    if (poll(&wanted, 1, LOOK_MS) > 0)
      return 0;
  return EINTR;
}

int cli_input_read(cli_input *input, uint8_t *out, size_t capacity, size_t *bytes) {
  if (!input->path) {
    read_clip(input, out, capacity, bytes);
    return 0;
  }
  *bytes = 0;
  while (*bytes < capacity) {
    const int waited = wait_for_input(input->fd);
    if (waited != 0)
      return waited;
    const ssize_t n = read(input->fd, out + *bytes, capacity - *bytes);
    if (n < 0 && errno == EINTR && cli_signal() == 0)
      continue;
    if (n < 0)
      return errno;
    if (n == 0)
      break;
    *bytes += (size_t)n;
  }
  input->at += *bytes;
  input->cut = *bytes < capacity && input->at < input->total;
  return 0;
}

void cli_input_close(cli_input *input) {
  if (input->fd > STDIN_FILENO)
    close(input->fd);
  input->fd = -1;
}
