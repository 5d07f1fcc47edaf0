// SPDX-License-Identifier: Apache-2.0
// Progressive elimination on a device against a plain reference, byte for byte, with packets in one
// call or in several.
#include "tests/cuda/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t below(size_t n) { return (size_t)(check_random() >> 16) % n; }

static void *host(size_t bytes) {
  void *memory = calloc(bytes + 1, 1);
  if (!memory)
    check_fail("no host memory");
  return memory;
}

// to (len) ^= factor * from
static void add(uint8_t *to, uint8_t factor, const uint8_t *from, size_t len) {
  for (size_t i = 0; i < len; i++)
    to[i] ^= check_mul(factor, from[i]);
}

static uint8_t inverse_of(uint8_t a) {
  uint8_t b = 1;
  while (check_mul(a, b) != 1)
    b++;
  return b;
}

// Adds one packet to one state; rows are [vector | payload], `width` bytes.
static uint16_t take(uint8_t *rows, uint8_t *known, const uint8_t *packet, size_t k, size_t width) {
  uint8_t *work = host(width);
  memcpy(work, packet, width);
  for (size_t p = 0; p < k; p++)
    if (known[p])
      add(work, packet[p], rows + p * width, width);
  size_t pivot = 0;
  while (pivot < k && work[pivot] == 0)
    pivot++;
  if (pivot < k) {
    uint8_t *row = rows + pivot * width;
    memset(row, 0, width);
    add(row, inverse_of(work[pivot]), work, width);
    for (size_t p = 0; p < k; p++)
      if (known[p])
        add(rows + p * width, rows[p * width + pivot], row, width);
    known[pivot] = 1;
  }
  free(work);
  return pivot < k ? (uint16_t)pivot : WEFT_NO_PIVOT;
}

typedef struct states {
  size_t count, arrivals, k, len;
  uint8_t *c, *x, *known, *a, *y; // device memory
  uint16_t *pivot;
} states;

static void fill_vectors(uint8_t *a, const states *s) {
  for (size_t i = 0; i < s->count * s->arrivals; i++) {
    uint8_t *vector = a + i * s->k;
    check_fill(vector, s->k, below(3) ? 0 : 90);
    if (i > 0 && below(5) == 0)
      memcpy(vector, vector - s->k, s->k);
  }
}

// Compares the rows of state i on the device with the reference's.
static void compare(const states *s, size_t i, const uint8_t *c, const uint8_t *x,
                    const uint8_t *rows, const uint8_t *known) {
  const size_t width = s->k + s->len;
  for (size_t p = 0; p < s->k; p++)
    if (known[p] && (memcmp(c + (i * s->k + p) * s->k, rows + p * width, s->k) != 0 ||
                     memcmp(x + (i * s->k + p) * s->len, rows + p * width + s->k, s->len) != 0))
      check_fail("eliminate: row %zu of state %zu of %zu, k %zu len %zu", p, i, s->count, s->k,
                 s->len);
}

static void compare_all(check_device *device, const states *s, const uint8_t *a, const uint8_t *y) {
  const size_t k = s->k, len = s->len, width = k + len;
  uint8_t *c = host(s->count * k * k), *x = host(s->count * k * len), *known = host(s->count * k);
  uint16_t *pivot = host(s->count * s->arrivals * sizeof *pivot);
  check_copy(device, c, WEFT_MEM_HOST, s->c, WEFT_MEM_DEVICE, s->count * k * k);
  check_copy(device, x, WEFT_MEM_HOST, s->x, WEFT_MEM_DEVICE, s->count * k * len);
  check_copy(device, known, WEFT_MEM_HOST, s->known, WEFT_MEM_DEVICE, s->count * k);
  check_copy(device, pivot, WEFT_MEM_HOST, s->pivot, WEFT_MEM_DEVICE,
             s->count * s->arrivals * sizeof *pivot);
  check_wait(device);
  uint8_t *rows = host(k * width), *mine = host(k), *packet = host(width);
  for (size_t i = 0; i < s->count; i++) {
    memset(mine, 0, k);
    for (size_t j = i * s->arrivals; j < (i + 1) * s->arrivals; j++) {
      memcpy(packet, a + j * k, k);
      memcpy(packet + k, y + j * len, len);
      const uint16_t want = take(rows, mine, packet, k, width);
      if (pivot[j] != want)
        check_fail("eliminate: packet %zu went to %u, not %u; k %zu", j, pivot[j], want, k);
    }
    if (memcmp(mine, known + i * k, k) != 0)
      check_fail("eliminate: known rows of state %zu, k %zu", i, k);
    compare(s, i, c, x, rows, mine);
  }
  free(c), free(x), free(known), free(pivot), free(rows), free(mine), free(packet);
}

static void check_shape(check_device *device, const weft_backend *row, states s, size_t offset) {
  const size_t a_bytes = s.count * s.arrivals * s.k, y_bytes = s.count * s.arrivals * s.len;
  uint8_t *a = host(a_bytes), *y = host(y_bytes), *zero = host(s.count * s.k);
  fill_vectors(a, &s);
  check_fill(y, y_bytes, 0);
  s.c = check_memory(device, s.count * s.k * s.k);
  s.x = (uint8_t *)check_memory(device, s.count * s.k * s.len + offset) + offset;
  s.known = check_memory(device, s.count * s.k);
  s.a = check_memory(device, a_bytes);
  s.y = check_memory(device, y_bytes);
  s.pivot = check_memory(device, s.count * s.arrivals * sizeof *s.pivot);
  check_copy(device, s.known, WEFT_MEM_DEVICE, zero, WEFT_MEM_HOST, s.count * s.k);
  check_copy(device, s.a, WEFT_MEM_DEVICE, a, WEFT_MEM_HOST, a_bytes);
  check_copy(device, s.y, WEFT_MEM_DEVICE, y, WEFT_MEM_HOST, y_bytes);
  weft_eliminate o = {.count = s.count,
                      .arrivals = s.arrivals,
                      .k = s.k,
                      .len = s.len,
                      .c = s.c,
                      .x = s.x,
                      .known = s.known,
                      .a = s.a,
                      .y = s.y,
                      .pivot = s.pivot,
                      .mem = WEFT_MEM_DEVICE};
  if (s.count == 1 && s.arrivals > 1) { // in two calls
    o.arrivals = s.arrivals / 2;
    check_status(row->eliminate(row, &device->exec, &o), "eliminate");
    o.a += o.arrivals * s.k;
    o.y += o.arrivals * s.len;
    o.pivot += o.arrivals;
    o.arrivals = s.arrivals - o.arrivals;
  }
  check_status(row->eliminate(row, &device->exec, &o), "eliminate");
  compare_all(device, &s, a, y);
  weft_device_free(device->device, WEFT_MEM_DEVICE, s.c);
  weft_device_free(device->device, WEFT_MEM_DEVICE, s.x - offset);
  weft_device_free(device->device, WEFT_MEM_DEVICE, s.known);
  weft_device_free(device->device, WEFT_MEM_DEVICE, s.a);
  weft_device_free(device->device, WEFT_MEM_DEVICE, s.y);
  weft_device_free(device->device, WEFT_MEM_DEVICE, s.pivot);
  free(a), free(y), free(zero);
}

void check_eliminate(check_device *device, const weft_backend *row, unsigned rounds) {
  for (unsigned i = 0; i < rounds; i++) {
    const size_t k = 1 + below(i % 8 == 7 ? 200 : 40);
    const states s = {
        .count = 1 + below(5), .arrivals = 1 + below(2 * k), .k = k, .len = below(900)};
    check_shape(device, row, s, below(2) * below(8));
  }
  if (rounds > 1) // a single round is for tools that are very slow
    check_shape(device, row, (states){.count = 1, .arrivals = 40, .k = 1024, .len = 64}, 0);
}
