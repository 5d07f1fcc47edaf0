// SPDX-License-Identifier: Apache-2.0
// Inversion, decoding, packets over GF(2) and expansion of seeds on a device, against references.
#include "tests/cuda/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/decode.h"
#include "kernels/cuda/expand.h"

static size_t below(size_t n) { return (size_t)(check_random() >> 16) % n; }

static void *host(size_t bytes) {
  void *memory = calloc(bytes + 1, 1);
  if (!memory)
    check_fail("no host memory");
  return memory;
}

// Makes one row a combination of the others, or zero.
static void make_singular(uint8_t *matrix, size_t k) {
  const size_t row = below(k);
  memset(matrix + row * k, 0, k);
  for (size_t i = 0; i < k; i++) {
    const uint8_t c = (uint8_t)(check_random() >> 24);
    for (size_t j = 0; j < k && i != row; j++)
      matrix[row * k + j] ^= check_mul(c, matrix[i * k + j]);
  }
}

// Makes matrices of several kinds: dense, sparse (many zero pivots), permuted diagonals, singular.
static bool make_matrix(uint8_t *matrix, size_t k, size_t kind) {
  if (kind == 1) { // a permutation times a diagonal: every pivot must be searched
    size_t *order = host(k * sizeof *order);
    memset(matrix, 0, k * k);
    for (size_t i = 0; i < k; i++)
      order[i] = i;
    for (size_t i = 0; i < k; i++) {
      const size_t j = i + below(k - i), other = order[j];
      order[j] = order[i];
      matrix[i * k + other] = (uint8_t)(1 + below(255));
    }
    free(order);
    return true;
  }
  check_fill(matrix, k * k, kind == 2 && k > 32 ? 80 : 0);
  if (kind != 3)
    return true; // almost certainly regular: the check finds out
  make_singular(matrix, k);
  return false;
}

// Whether inverse * (matrix * v) = v for four random v; the probability of a miss is at most
// 256^-4.
static bool is_inverse(const uint8_t *inverse, const uint8_t *matrix, size_t k) {
  enum { Vectors = 4 };
  uint8_t *v = host(k * Vectors), *w = host(k * Vectors), *u = host(k * Vectors);
  check_fill(v, k * Vectors, 0);
  check_product(w, matrix, v, k, k, Vectors);
  check_product(u, inverse, w, k, k, Vectors);
  const bool same = memcmp(u, v, k * Vectors) == 0;
  free(v), free(w), free(u);
  return same;
}

// Whether a reference elimination finds the matrix regular.
static bool has_inverse(const uint8_t *matrix, size_t k) {
  uint8_t *a = host(k * k);
  memcpy(a, matrix, k * k);
  bool regular = true;
  for (size_t p = 0; p < k && regular; p++) {
    size_t r = p;
    while (r < k && a[r * k + p] == 0)
      r++;
    regular = r < k;
    if (!regular)
      break;
    for (size_t j = 0; j < k; j++) {
      const uint8_t swap = a[r * k + j];
      a[r * k + j] = a[p * k + j];
      a[p * k + j] = swap;
    }
    uint8_t inverse = 1;
    while (check_mul(inverse, a[p * k + p]) != 1)
      inverse++;
    for (size_t i = p + 1; i < k; i++) {
      const uint8_t factor = check_mul(a[i * k + p], inverse);
      for (size_t j = p; factor && j < k; j++)
        a[i * k + j] ^= check_mul(factor, a[p * k + j]);
    }
  }
  free(a);
  return regular;
}

// How a batch is inverted: by the row, or with the paper's augmented matrix.
typedef struct Method {
  const weft_backend *row; // NULL: augmented
  unsigned per_sm;
  weft_cuda_pivoting pivoting;
} Method;

static void invert_batch(check_device *device, const Method *method, size_t k, size_t count,
                         size_t offset, bool in_place) {
  const size_t bytes = count * k * k;
  uint8_t *in = host(bytes), *out = host(bytes), *singular = host(count);
  for (size_t i = 0; i < count; i++)
    make_matrix(in + i * k * k, k, (i + below(2)) % 4);
  uint8_t *device_in = check_memory(device, bytes + 16), *device_out = device_in;
  if (!in_place)
    device_out = check_memory(device, bytes + 16);
  uint8_t *device_singular = check_memory(device, count);
  memset(out, 0xA5, bytes);
  memset(singular, 0xA5, count);
  check_copy(device, device_out + offset, WEFT_MEM_DEVICE, out, WEFT_MEM_HOST, bytes);
  check_copy(device, device_singular, WEFT_MEM_DEVICE, singular, WEFT_MEM_HOST, count);
  check_copy(device, device_in + offset, WEFT_MEM_DEVICE, in, WEFT_MEM_HOST, bytes);
  const weft_invert invert = {
      count, k, device_in + offset, device_out + offset, device_singular, WEFT_MEM_DEVICE};
  check_status(method->row ? method->row->invert(method->row, &device->exec, &invert)
                           : weft_cuda_invert_augmented(&device->exec, &invert, method->per_sm,
                                                        method->pivoting),
               "invert");
  check_copy(device, out, WEFT_MEM_HOST, device_out + offset, WEFT_MEM_DEVICE, bytes);
  check_copy(device, singular, WEFT_MEM_HOST, device_singular, WEFT_MEM_DEVICE, count);
  check_wait(device);
  for (size_t i = 0; i < count; i++) {
    const bool regular = k > 300 ? singular[i] == 0 : has_inverse(in + i * k * k, k);
    if (singular[i] != !regular)
      check_fail("invert k %zu, matrix %zu of %zu: singular is %u, not %d", k, i, count,
                 singular[i], !regular);
    if (regular && !is_inverse(out + i * k * k, in + i * k * k, k))
      check_fail("invert k %zu, matrix %zu of %zu: not the inverse", k, i, count);
  }
  weft_device_free(device->device, WEFT_MEM_DEVICE, device_in);
  if (!in_place)
    weft_device_free(device->device, WEFT_MEM_DEVICE, device_out);
  weft_device_free(device->device, WEFT_MEM_DEVICE, device_singular);
  free(in), free(out), free(singular);
}

void check_invert(check_device *device, const weft_backend *row, unsigned rounds, size_t k_max) {
  const Method method = {row, 0, WEFT_CUDA_PIVOT_SCAN};
  const size_t sizes[] = {1,  2,   5,   16,  31,  32,  33,  64,  65,  96,
                          97, 127, 128, 129, 160, 192, 255, 256, 257, 1024};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (sizes[i] <= k_max)
      invert_batch(device, &method, sizes[i], sizes[i] > 300 ? 2 : 9, 0, i % 2);
  for (unsigned round = 0; round < rounds; round++) {
    const size_t k = 1 + below(round % 8 ? 128 : k_max < 300 ? k_max : 300);
    invert_batch(device, &method, k, 1 + below(12), below(2) * below(16), round % 2);
  }
  if (k_max >= 128)
    invert_batch(device, &method, 128, 1500, 0, false);
}

static void decode_once(check_device *device, weft_cuda_pivoting pivoting) {
  const size_t k = 1 + below(200), len = 1 + below(5000), stride = (len + 3) / 4 * 4;
  uint8_t *c = host(k * k), *x = host(k * stride), *y = host(k * stride), *got = host(k * stride);
  const bool regular = make_matrix(c, k, below(4));
  check_fill(x, k * stride, 0);
  check_product(y, c, x, k, k, stride);
  uint8_t *device_c = check_memory(device, k * k), *device_y = check_memory(device, k * stride);
  uint8_t *device_x = check_memory(device, k * stride), *device_flag = check_memory(device, 1);
  check_copy(device, device_c, WEFT_MEM_DEVICE, c, WEFT_MEM_HOST, k * k);
  check_copy(device, device_y, WEFT_MEM_DEVICE, y, WEFT_MEM_HOST, k * stride);
  check_copy(device, device_x, WEFT_MEM_DEVICE, y, WEFT_MEM_HOST, k * stride); // poison
  const weft_cuda_decode decode = {k,      len,    device_c,    device_y, device_x,
                                   stride, stride, device_flag, pivoting};
  check_status(weft_cuda_decode_single(&device->exec, &decode), "decode");
  uint8_t singular = 2;
  check_copy(device, got, WEFT_MEM_HOST, device_x, WEFT_MEM_DEVICE, k * stride);
  check_copy(device, &singular, WEFT_MEM_HOST, device_flag, WEFT_MEM_DEVICE, 1);
  check_wait(device);
  if (singular > 1 || (!regular && !singular) || singular == has_inverse(c, k))
    check_fail("decode k %zu: singular is %u", k, singular);
  for (size_t i = 0; i < k && !singular; i++)
    if (memcmp(got + i * stride, x + i * stride, len) != 0)
      check_fail("decode k %zu len %zu: row %zu differs", k, len, i);
  weft_device_free(device->device, WEFT_MEM_DEVICE, device_c);
  weft_device_free(device->device, WEFT_MEM_DEVICE, device_y);
  weft_device_free(device->device, WEFT_MEM_DEVICE, device_x);
  weft_device_free(device->device, WEFT_MEM_DEVICE, device_flag);
  free(c), free(x), free(y), free(got);
}

void check_decode(check_device *device, unsigned rounds) {
  for (unsigned round = 0; round < rounds; round++) {
    decode_once(device, round % 2 ? WEFT_CUDA_PIVOT_SCAN : WEFT_CUDA_PIVOT_ATOMIC_MIN);
    const Method method = {NULL, 1 + round % 2,
                           round % 4 < 2 ? WEFT_CUDA_PIVOT_SCAN : WEFT_CUDA_PIVOT_ATOMIC_MIN};
    invert_batch(device, &method, 4 * (1 + below(32)), 1 + below(9), 0, round % 2);
  }
}

void check_xorm(check_device *device, const weft_backend *row, unsigned rounds) {
  for (unsigned round = 0; round < rounds; round++) {
    const size_t m = 1 + below(5), k = below(9), w = 1 + below(8);
    const size_t packet = round % 3 == 0 ? 16 * (1 + below(40)) : 1 + below(300);
    const size_t len = w * packet * below(5), bits_stride = k * w + below(3);
    uint8_t *bits = host(m * w * bits_stride), *x = host(k * len), *y = host(m * len);
    uint8_t *expect = host(m * len);
    for (size_t i = 0; i < m * w * bits_stride; i++)
      bits[i] = (uint8_t)below(2);
    check_fill(x, k * len, 0);
    check_fill(y, m * len, 0);
    const bool accumulate = below(2);
    if (accumulate)
      memcpy(expect, y, m * len);
    for (size_t out = 0; out < m * w; out++)
      for (size_t in = 0; in < k * w; in++)
        for (size_t group = 0; bits[out * bits_stride + in] && group < len / (w * packet); group++)
          for (size_t at = 0; at < packet; at++)
            expect[out / w * len + (group * w + out % w) * packet + at] ^=
                x[in / w * len + (group * w + in % w) * packet + at];
    uint8_t *device_x = check_memory(device, k * len), *device_y = check_memory(device, m * len);
    check_copy(device, device_x, WEFT_MEM_DEVICE, x, WEFT_MEM_HOST, k * len);
    check_copy(device, device_y, WEFT_MEM_DEVICE, y, WEFT_MEM_HOST, m * len);
    const weft_xorm xorm = {m,
                            k,
                            w,
                            packet,
                            len,
                            bits,
                            bits_stride,
                            {device_x, len, NULL, WEFT_MEM_DEVICE},
                            {device_y, len, NULL, WEFT_MEM_DEVICE},
                            accumulate,
                            NULL};
    check_status(row->xorm(row, &device->exec, &xorm), "xorm");
    check_copy(device, y, WEFT_MEM_HOST, device_y, WEFT_MEM_DEVICE, m * len);
    check_wait(device);
    if (memcmp(y, expect, m * len) != 0)
      check_fail("xorm m %zu k %zu w %zu packet %zu len %zu", m, k, w, packet, len);
    weft_device_free(device->device, WEFT_MEM_DEVICE, device_x);
    weft_device_free(device->device, WEFT_MEM_DEVICE, device_y);
    free(bits), free(x), free(y), free(expect);
  }
}

// ChaCha20 as in RFC 8439, one block.
static void chacha20_block(uint32_t out[16], const uint32_t key[8], const uint32_t nonce[3],
                           uint32_t counter) {
  uint32_t in[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  memcpy(in + 4, key, 32);
  in[12] = counter;
  memcpy(in + 13, nonce, 12);
  memcpy(out, in, 64);
  for (int round = 0; round < 20; round++)
    for (int i = 0; i < 4; i++) {
      const int shift = round % 2;
      uint32_t *a = out + i, *b = out + 4 + (i + shift) % 4, *c = out + 8 + (i + 2 * shift) % 4,
               *d = out + 12 + (i + 3 * shift) % 4;
      *a += *b, *d ^= *a, *d = *d << 16 | *d >> 16;
      *c += *d, *b ^= *c, *b = *b << 12 | *b >> 20;
      *a += *b, *d ^= *a, *d = *d << 8 | *d >> 24;
      *c += *d, *b ^= *c, *b = *b << 7 | *b >> 25;
    }
  for (int i = 0; i < 16; i++)
    out[i] += in[i];
}

static void expand_reference(uint8_t *out, size_t k, const uint32_t key[8], const uint32_t nonce[3],
                             uint16_t density) {
  const size_t blocks = (2 * k + 31) / 32;
  uint32_t *words = host(64 * blocks);
  for (size_t b = 0; b < blocks; b++)
    chacha20_block(words + 16 * b, key, nonce, (uint32_t)b);
  size_t at = 0;
  for (size_t i = 0; i < k; i++) {
    uint32_t u = words[at / 2] >> (16 * (at % 2)) & 0xffff;
    at++;
    out[i] = 0;
    if (density && u >= density)
      continue;
    if (density) {
      u = words[at / 2] >> (16 * (at % 2)) & 0xffff;
      at++;
    }
    out[i] = (uint8_t)(1 + (u * 255 >> 16));
  }
  free(words);
}

void check_expand(check_device *device, unsigned rounds) {
  for (unsigned round = 0; round < rounds; round++) {
    const size_t count = 1 + below(60), k = 1 + below(round % 2 ? 1500 : 200);
    const size_t stride = k + below(20);
    weft_seed *seeds = host(count * sizeof *seeds);
    for (size_t i = 0; i < count; i++)
      seeds[i] = (weft_seed){check_random(), check_random(), check_random()};
    uint8_t *got = host(count * stride), *expect = host(k);
    weft_seed *device_seeds = check_memory(device, count * sizeof *seeds);
    uint8_t *device_out = check_memory(device, count * stride);
    check_copy(device, device_seeds, WEFT_MEM_DEVICE, seeds, WEFT_MEM_HOST, count * sizeof *seeds);
    const uint16_t densities[] = {0, 1, 655, 6554, 32768, 60000, 65535};
    weft_expansion expansion = {.count = count,
                                .k = k,
                                .fresh = round % 5 == 4,
                                .seeds = round % 5 >= 3 ? NULL : device_seeds,
                                .first = {check_random(), check_random(), check_random()},
                                .density_q16 = densities[below(7)],
                                .out = device_out,
                                .out_stride = stride};
    for (size_t i = 0; i < 32; i++)
      expansion.key[i] = (uint8_t)(check_random() >> 24);
    check_status(weft_cuda_expand(&device->exec, &expansion), "expand");
    check_copy(device, got, WEFT_MEM_HOST, device_out, WEFT_MEM_DEVICE, count * stride);
    check_wait(device);
    for (size_t i = 0; i < count; i++) {
      uint32_t key[8] = {0}, nonce[3] = {0x7362694c, 0x7569646f, 0x4752446d};
      if (expansion.seeds) {
        memcpy(key, &seeds[i], 24);
      } else if (!expansion.fresh) {
        const weft_seed seed = {expansion.first.stream, expansion.first.segment,
                                expansion.first.seed + i};
        memcpy(key, &seed, 24);
      } else {
        memcpy(key, expansion.key, 32);
        nonce[0] = (uint32_t)i, nonce[1] = nonce[2] = 0;
      }
      expand_reference(expect, k, key, nonce, expansion.density_q16);
      if (memcmp(expect, got + i * stride, k) != 0)
        check_fail("expand k %zu density %u row %zu", k, expansion.density_q16, i);
    }
    weft_device_free(device->device, WEFT_MEM_DEVICE, device_seeds);
    weft_device_free(device->device, WEFT_MEM_DEVICE, device_out);
    free(seeds), free(got), free(expect);
  }
}
