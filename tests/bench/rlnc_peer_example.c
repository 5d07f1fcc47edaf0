// SPDX-License-Identifier: Apache-2.0
// The smallest library that `weft bench rlnc --peers` accepts (bench/peers/rlnc_peer.h): it codes
// symbol by symbol. WEFT_TEST_SPOIL=encode, recode or decode makes that call produce one wrong
// byte; =polynomial makes it name a field that it does not compute in.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct coder {
  size_t n, k, each; // each: bytes of a packet
  uint8_t *data;     // (n, k)
  uint8_t *given;    // (given_count, each)
  size_t given_count;
  uint8_t *made; // output of the last call
  size_t made_bytes;
  uint32_t random;
} coder;

const char *weft_rlnc_peer_version(void);
uint32_t weft_rlnc_peer_polynomial(void);
void *weft_rlnc_peer_new(size_t n, size_t k, uint8_t *data, size_t *data_bytes);
void weft_rlnc_peer_free(void *user);
bool weft_rlnc_peer_encode(void *user, size_t m);
bool weft_rlnc_peer_give(void *user, const uint8_t *packets, size_t bytes);
bool weft_rlnc_peer_recode(void *user, size_t m);
bool weft_rlnc_peer_decode(void *user);
size_t weft_rlnc_peer_take(const void *user, uint8_t *out, size_t room);

static bool spoils(const char *call) {
  const char *const spoil = getenv("WEFT_TEST_SPOIL");
  return spoil && strcmp(spoil, call) == 0;
}

static uint8_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (; b; b >>= 1, a = a << 1 ^ (a & 0x80 ? 0x11d : 0))
    product ^= b & 1 ? a : 0;
  return (uint8_t)product;
}

static void add(uint8_t *to, const uint8_t *from, uint8_t c, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    to[i] ^= multiply(from[i], c);
}

static void scale(uint8_t *row, uint8_t c, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    row[i] = multiply(row[i], c);
}

static uint8_t draw(coder *c) {
  c->random = c->random * 1664525u + 1013904223u;
  return (uint8_t)(c->random >> 24);
}

static void make_room(coder *c, size_t bytes) {
  free(c->made);
  c->made = calloc(1, bytes);
  if (!c->made)
    abort();
  c->made_bytes = bytes;
}

const char *weft_rlnc_peer_version(void) { return "example 1"; }
uint32_t weft_rlnc_peer_polynomial(void) { return spoils("polynomial") ? 0x11b : 0x11d; }

void *weft_rlnc_peer_new(size_t n, size_t k, uint8_t *data, size_t *data_bytes) {
  if (n > 64)
    return NULL;
  coder *const c = malloc(sizeof *c);
  if (!c)
    abort();
  *c = (coder){.n = n, .k = k, .each = n + k, .data = malloc(n * k), .random = 1};
  if (!c->data)
    abort();
  data[n * k - 1] = 0x81; // an end mark, as some libraries add
  *data_bytes = n * k - 1;
  memcpy(c->data, data, n * k);
  return c;
}

void weft_rlnc_peer_free(void *user) {
  coder *const c = user;
  free(c->data), free(c->given), free(c->made), free(c);
}

bool weft_rlnc_peer_encode(void *user, size_t m) {
  coder *const c = user;
  make_room(c, m * c->each);
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < c->n; j++) {
      uint8_t *const packet = c->made + i * c->each;
      packet[j] = draw(c);
      add(packet + c->n, c->data + j * c->k, packet[j], c->k);
    }
  c->made[c->each - 1] ^= spoils("encode");
  return true;
}

bool weft_rlnc_peer_give(void *user, const uint8_t *packets, size_t bytes) {
  coder *const c = user;
  free(c->given);
  c->given = malloc(bytes);
  if (!c->given)
    return false;
  memcpy(c->given, packets, bytes);
  c->given_count = bytes / c->each;
  return true;
}

bool weft_rlnc_peer_recode(void *user, size_t m) {
  coder *const c = user;
  make_room(c, m * c->each);
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < c->given_count; j++)
      add(c->made + i * c->each, c->given + j * c->each, draw(c), c->each);
  c->made[c->each - 1] ^= spoils("recode");
  return true;
}

static void swap(uint8_t *a, uint8_t *b, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    const uint8_t kept = a[i];
    a[i] = b[i];
    b[i] = kept;
  }
}

static uint8_t invert(uint8_t a) {
  uint8_t b = 1;
  while (multiply(a, b) != 1)
    b++;
  return b;
}

// Gauss-Jordan elimination on a copy of n packets.
static bool eliminate(const coder *c, uint8_t *rows) {
  for (size_t i = 0; i < c->n; i++) {
    size_t at = i;
    while (at < c->n && !rows[at * c->each + i])
      at++;
    if (at == c->n)
      return false;
    if (at != i)
      swap(rows + i * c->each, rows + at * c->each, c->each);
    scale(rows + i * c->each, invert(rows[i * c->each + i]), c->each);
    for (size_t r = 0; r < c->n; r++)
      if (r != i)
        add(rows + r * c->each, rows + i * c->each, rows[r * c->each + i], c->each);
  }
  return true;
}

bool weft_rlnc_peer_decode(void *user) {
  coder *const c = user;
  uint8_t *const rows = malloc(c->n * c->each);
  if (!rows || c->given_count < c->n)
    abort();
  memcpy(rows, c->given, c->n * c->each);
  const bool decoded = eliminate(c, rows);
  if (decoded) {
    make_room(c, c->n * c->k);
    for (size_t i = 0; i < c->n; i++)
      memcpy(c->made + i * c->k, rows + i * c->each + c->n, c->k);
    c->made_bytes--; // without the mark
    c->made[0] ^= spoils("decode");
  }
  free(rows);
  return decoded;
}

size_t weft_rlnc_peer_take(const void *user, uint8_t *out, size_t room) {
  const coder *const c = user;
  memcpy(out, c->made, c->made_bytes < room ? c->made_bytes : room);
  return c->made_bytes;
}
