// SPDX-License-Identifier: Apache-2.0
// Storage products on a device against references: every published technique, the tensor kernel on
// unprepared rows, and kernels made for one matrix if NVRTC is present.
#include "tests/cuda/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/nvrtc.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/storage.h"
#include "kernels/cuda/storage_trial.h"
#include "tests/support/test_steps.h"

enum { Margin = 64 };

static const weft_backend rows[] = {WEFT_CUDA_STORAGE_ROWS};

static size_t below(size_t n) { return (size_t)(check_random() >> 16) % n; }

static void *host(size_t bytes) {
  void *memory = calloc(bytes + 1, 1);
  if (!memory)
    check_fail("no host memory");
  return memory;
}

// k inputs and m outputs of `len` bytes, dense in host memory. On the device the same, given by
// pointers, with margins around the outputs that must keep their poison.
typedef struct shards {
  size_t k, m, len, step; // step: between shards on the device
  uint8_t *x, *y, *poison;
  uint8_t *memory; // on the device
  const uint8_t *in[256];
  uint8_t *out[256];
} shards;

static void shards_new(check_device *device, shards *s, size_t k, size_t m, size_t len,
                       size_t off) {
  *s = (shards){.k = k, .m = m, .len = len, .step = (len + off + 2 * Margin + 15) / 16 * 16};
  const size_t bytes = (k + m) * s->step;
  s->x = host(k * len);
  s->y = host(m * len);
  s->poison = host(bytes);
  s->memory = check_memory(device, bytes);
  check_fill(s->x, k * len, 10);
  check_fill(s->poison, bytes, 0);
  for (size_t j = 0; j < k; j++)
    memcpy(s->poison + j * s->step + Margin + off, s->x + j * len, len);
  check_copy(device, s->memory, WEFT_MEM_DEVICE, s->poison, WEFT_MEM_HOST, bytes);
  for (size_t i = 0; i < k + m; i++) {
    uint8_t *at = s->memory + i * s->step + Margin + off;
    if (i < k)
      s->in[i] = at;
    else
      s->out[i - k] = at;
  }
  // Accumulation starts from the poison.
  for (size_t i = 0; i < m; i++)
    memcpy(s->y + i * len, s->poison + (k + i) * s->step + Margin + off, len);
}

// Compares the outputs with y.
static void shards_compare(check_device *device, shards *s, const char *what, size_t off) {
  const size_t bytes = (s->k + s->m) * s->step;
  uint8_t *got = host(bytes);
  check_copy(device, got, WEFT_MEM_HOST, s->memory, WEFT_MEM_DEVICE, bytes);
  check_wait(device);
  for (size_t i = 0; i < s->m; i++)
    memcpy(s->poison + (s->k + i) * s->step + Margin + off, s->y + i * s->len, s->len);
  for (size_t at = 0; at < bytes; at++)
    if (got[at] != s->poison[at])
      check_fail(
          "%s: k %zu m %zu len %zu: shard %zu byte %zu (of which %zu lie before it) is %02x, "
          "not %02x",
          what, s->k, s->m, s->len, at / s->step, at % s->step, Margin + off, got[at],
          s->poison[at]);
  free(got);
}

static void shards_free(check_device *device, shards *s) {
  weft_device_free(device->device, WEFT_MEM_DEVICE, s->memory);
  free(s->x), free(s->y), free(s->poison);
}

typedef weft_status (*gemm_call)(const weft_exec *exec, const weft_gemm *gemm);

static weft_status gibraltar(const weft_exec *exec, const weft_gemm *gemm) {
  return rows[0].gemm(&rows[0], exec, gemm, 1);
}

static void check_bytes(check_device *device, const char *what, gemm_call call, size_t k_most,
                        size_t m_most, bool any_address) {
  const size_t lens[] = {1, 3, 16, 100, 127, 128, 512, 541, 1024, 4095, 4096, 4100, 20000, 70001};
  shards s;
  const size_t k = 1 + below(k_most), m = 1 + below(m_most), off = any_address ? below(3) : 0;
  shards_new(device, &s, k, m, lens[below(sizeof lens / sizeof *lens)], off);
  uint8_t *a = host(m * k);
  check_fill(a, m * k, 10);
  if (below(4) == 0) // bit rows with very many or few ones
    memset(a, a[0], m * k);
  const bool accumulate = below(2);
  if (!accumulate)
    memset(s.y, 0, m * s.len);
  check_product(s.y, a, s.x, m, k, s.len);
  const weft_gemm gemm = {.m = m,
                          .k = k,
                          .len = s.len,
                          .a = a,
                          .a_stride = k,
                          .x = {.ptr = s.in, .mem = WEFT_MEM_DEVICE},
                          .y = {.ptr = s.out, .mem = WEFT_MEM_DEVICE},
                          .accumulate = accumulate};
  const weft_status status = call(&device->exec, &gemm);
  if (status != WEFT_E_UNSUPPORTED || any_address) {
    check_status(status, what);
    shards_compare(device, &s, what, off);
  }
  free(a);
  shards_free(device, &s);
}

static weft_status made(const weft_exec *exec, const weft_gemm *gemm) {
  return weft_storage_program_gemm(exec, gemm, 1);
}

// Checks a made kernel with the steps in `slots` slots, or with their matrix if it does not take
// the steps.
static void check_made_by(check_device *device, const test_steps *steps, size_t slots) {
  const size_t k = steps->k, m = steps->m;
  weft_factors *factors;
  check_status(weft_factors_new(steps->step, steps->count, slots, &check_allocator, &factors),
               "factors");
  shards s;
  shards_new(device, &s, k, m, 16 + below(9000), 0);
  const bool accumulate = below(3) == 0;
  if (!accumulate)
    memset(s.y, 0, m * s.len);
  check_product(s.y, steps->a, s.x, m, k, s.len);
  const weft_gemm gemm = {.m = m,
                          .k = k,
                          .len = s.len,
                          .a = steps->a,
                          .a_stride = k,
                          .x = {.ptr = s.in, .mem = WEFT_MEM_DEVICE},
                          .y = {.ptr = s.out, .mem = WEFT_MEM_DEVICE},
                          .accumulate = accumulate,
                          .factors = factors};
  const weft_status status = weft_storage_program_gemm(&device->exec, &gemm, 1);
  if (status != WEFT_E_UNSUPPORTED) {
    check_status(status, "made kernel by factors");
    shards_compare(device, &s, "made kernel by factors", 0);
  }
  weft_factors_free(factors, &check_allocator);
  shards_free(device, &s);
}

static void check_factors(check_device *device) {
  static test_steps steps;
  test_rng rng = test_rng_new(check_random(), 0);
  const size_t k = 1 + below(30), m = 1 + below(16);
  test_steps_random(&rng, k, m, 4 + below(26), below(60), &steps);
  check_made_by(device, &steps, steps.slots);
}

// Checks the same matrix by factors with few slots and with many, for which blocks have different
// numbers of threads: neither may be launched like the other.
static void check_factors_of_one_matrix(check_device *device) {
  static test_steps steps;
  test_rng rng = test_rng_new(check_random(), 0);
  test_steps_random(&rng, 1 + below(30), 1 + below(16), 4 + below(9), below(60), &steps);
  check_made_by(device, &steps, steps.slots);
  check_made_by(device, &steps, WEFT_PROGRAM_SLOTS);
  if (weft_storage_program_gemm(&device->exec, NULL, 0) != WEFT_E_UNSUPPORTED)
    check_fail("a made kernel for no product");
}

static void xor_reference(uint8_t *y, const weft_xorm *p, const uint8_t *x) {
  const size_t group = p->w * p->packet_bytes;
  for (size_t o = 0; o < p->m * p->w; o++)
    for (size_t c = 0; c < p->k * p->w; c++)
      for (size_t g = 0; p->bits[o * p->bits_stride + c] && g < p->len / group; g++)
        for (size_t b = 0; b < p->packet_bytes; b++)
          y[o / p->w * p->len + g * group + o % p->w * p->packet_bytes + b] ^=
              x[c / p->w * p->len + g * group + c % p->w * p->packet_bytes + b];
}

// Checks packets by random factors, for matrices so large that a row may choose factors.
static void check_packet_factors(check_device *device, const weft_backend *row) {
  static test_steps steps;
  test_rng rng = test_rng_new(check_random(), 0);
  const size_t k = 24 + below(16), m = 16 + below(8), packet = 128 * (1 + below(4));
  test_steps_random(&rng, k, m, 4 + below(26), below(60), &steps);
  weft_factors *factors;
  check_status(weft_factors_new(steps.step, steps.count, steps.slots, &check_allocator, &factors),
               "factors");
  shards s;
  shards_new(device, &s, k, m, 8 * packet * (1 + below(3 + 4000 / packet)), 0);
  uint8_t *bits = host(64 * m * k);
  test_steps_bits(steps.a, m, k, bits);
  const bool accumulate = below(3) == 0;
  if (!accumulate)
    memset(s.y, 0, m * s.len);
  const weft_xorm xorm = {.m = m,
                          .k = k,
                          .w = 8,
                          .packet_bytes = packet,
                          .len = s.len,
                          .bits = bits,
                          .bits_stride = 8 * k,
                          .x = {.ptr = s.in, .mem = WEFT_MEM_DEVICE},
                          .y = {.ptr = s.out, .mem = WEFT_MEM_DEVICE},
                          .accumulate = accumulate,
                          .factors = factors};
  xor_reference(s.y, &xorm, s.x);
  check_status(row->xorm(row, &device->exec, &xorm), "packets by factors");
  shards_compare(device, &s, "packets by factors", 0);
  free(bits);
  weft_factors_free(factors, &check_allocator);
  shards_free(device, &s);
}

// Checks packets of a random shape; returns whether the row accepted it.
static bool check_packets(check_device *device, const weft_backend *row, const char *what,
                          size_t packet, size_t k_most, size_t m_most) {
  const size_t w = 2 + below(7), k = 1 + below(k_most), m = 1 + below(m_most);
  const size_t stride = k * w + below(3);
  shards s;
  shards_new(device, &s, k, m, w * packet * (1 + below(3 + 2000 / packet)), 0);
  uint8_t *bits = host(m * w * stride);
  for (size_t i = 0; i < m * w * stride; i++)
    bits[i] = below(2) != 0;
  const bool accumulate = below(2);
  if (!accumulate)
    memset(s.y, 0, m * s.len);
  const weft_xorm xorm = {.m = m,
                          .k = k,
                          .w = w,
                          .packet_bytes = packet,
                          .len = s.len,
                          .bits = bits,
                          .bits_stride = stride,
                          .x = {.ptr = s.in, .mem = WEFT_MEM_DEVICE},
                          .y = {.ptr = s.out, .mem = WEFT_MEM_DEVICE},
                          .accumulate = accumulate};
  xor_reference(s.y, &xorm, s.x);
  const weft_status status = row->xorm(row, &device->exec, &xorm);
  const bool taken = status != WEFT_E_UNSUPPORTED;
  if (taken) {
    check_status(status, what);
    shards_compare(device, &s, what, 0);
  }
  free(bits);
  shards_free(device, &s);
  return taken;
}

// Checks several stripes in one launch: stripes of bytes if `packet` is a multiple of 1024,
// otherwise of packets.
static void check_stripes(check_device *device, size_t packet) {
  enum { Stripes = 5 };
  const bool bytes = packet % 1024 == 0;
  const size_t w = bytes ? 8 : 2 + below(7), unit = bytes ? 1 : w * packet;
  const size_t k = 1 + below(6), m = 1 + below(5), count = 1 + below(Stripes);
  const size_t len = bytes ? 16 + below(9000) : unit * (1 + below(3 + 2000 / packet));
  const size_t rows_of = bytes ? m : m * w, columns = bytes ? k : k * w;
  uint8_t *matrix = host(rows_of * columns);
  for (size_t i = 0; i < rows_of * columns; i++)
    matrix[i] = (uint8_t)below(bytes ? 256 : 2);
  shards s[Stripes];
  weft_gemm gemms[Stripes];
  weft_xorm xorms[Stripes];
  for (size_t i = 0; i < count; i++) {
    shards_new(device, &s[i], k, m, len, 0);
    memset(s[i].y, 0, m * len);
    const weft_const_rows x = {.ptr = s[i].in, .mem = WEFT_MEM_DEVICE};
    const weft_rows y = {.ptr = s[i].out, .mem = WEFT_MEM_DEVICE};
    gemms[i] = (weft_gemm){.m = m, .k = k, .len = len, .a = matrix, .a_stride = k, .x = x, .y = y};
    xorms[i] = (weft_xorm){.m = m,
                           .k = k,
                           .w = w,
                           .packet_bytes = packet,
                           .len = len,
                           .bits = matrix,
                           .bits_stride = columns,
                           .x = x,
                           .y = y};
    if (bytes)
      check_product(s[i].y, matrix, s[i].x, m, k, len);
    else
      xor_reference(s[i].y, &xorms[i], s[i].x);
  }
  const weft_status status = bytes ? weft_storage_program_gemm(&device->exec, gemms, count)
                                   : weft_storage_program_xorm(&device->exec, xorms, count);
  if (status != WEFT_E_UNSUPPORTED)
    check_status(status, "made kernel for stripes");
  for (size_t i = 0; i < count; i++) {
    if (status == WEFT_OK)
      shards_compare(device, &s[i], "made kernel for stripes", 0);
    shards_free(device, &s[i]);
  }
  free(matrix);
}

// What a made kernel is compared with in its trial; rows are side by side.
typedef struct candidate {
  check_device *device;
  const weft_backend *general;
  const weft_program_shape *shape;
  const uint8_t *a, *bits; // one of the two
  bool wrong;              // one coefficient or bit is wrong
} candidate;

static weft_status run_candidate(void *user, const weft_trial_rows *on) {
  const candidate *c = user;
  const weft_program_shape *shape = c->shape;
  const weft_const_rows x = {.base = on->first, .stride = on->stride, .mem = WEFT_MEM_DEVICE};
  const weft_rows y = {
      .base = on->first + shape->k * on->stride, .stride = on->stride, .mem = WEFT_MEM_DEVICE};
  const size_t entries = c->a ? shape->m * shape->k : shape->m * shape->w * shape->k * shape->w;
  uint8_t *matrix = host(entries);
  memcpy(matrix, c->a ? c->a : c->bits, entries);
  if (c->wrong)
    matrix[below(entries)] ^= 1;
  const weft_gemm gemm = {.m = shape->m,
                          .k = shape->k,
                          .len = on->length,
                          .a = matrix,
                          .a_stride = shape->k,
                          .x = x,
                          .y = y,
                          .accumulate = shape->accumulate};
  const weft_xorm xorm = {.m = shape->m,
                          .k = shape->k,
                          .w = shape->w,
                          .packet_bytes = shape->packet_bytes,
                          .len = on->length * shape->w * shape->packet_bytes,
                          .bits = matrix,
                          .bits_stride = shape->k * shape->w,
                          .x = x,
                          .y = y,
                          .accumulate = shape->accumulate};
  const weft_status status = c->a ? c->general->gemm(c->general, &c->device->exec, &gemm, 1)
                                  : c->general->xorm(c->general, &c->device->exec, &xorm);
  check_wait(c->device);
  free(matrix);
  return status;
}

// The trial of made kernels accepts the right product and no other.
static void check_trial(check_device *device, const weft_backend *general, bool bytes) {
  const size_t w = bytes ? 8 : 2 + below(7), k = 1 + below(20), m = 1 + below(10);
  const size_t packets[] = {8, 48, 512, 4096};
  const size_t entries = bytes ? m * k : m * w * k * w;
  uint8_t *matrix = host(entries);
  for (size_t i = 0; i < entries; i++)
    matrix[i] = (uint8_t)below(bytes ? 256 : 2);
  const weft_program_shape shape = {.k = k,
                                    .m = m,
                                    .w = w,
                                    .packet_bytes = bytes ? 0 : packets[below(4)],
                                    .bits = bytes ? NULL : matrix,
                                    .bits_stride = k * w,
                                    .accumulate = below(2)};
  weft_program_plan plan;
  check_status(weft_program_plan_for(&shape, &plan), "plan");
  candidate c = {.device = device,
                 .general = general,
                 .shape = &shape,
                 .a = bytes ? matrix : NULL,
                 .bits = matrix};
  const weft_trial trial = {
      .shape = &shape, .plan = &plan, .a = c.a, .a_stride = k, .run = run_candidate, .user = &c};
  for (unsigned i = 0; i < 2; i++) {
    bool passes;
    c.wrong = i == 1;
    check_status(weft_trial_passes(&device->exec, &trial, &passes), "trial");
    if (passes == c.wrong)
      check_fail("trial: k %zu m %zu w %zu packet %zu: a %s product %s", k, m, w,
                 shape.packet_bytes, c.wrong ? "wrong" : "right", passes ? "passes" : "fails");
  }
  free(matrix);
}

static void check_row(check_device *device, const weft_backend *row, unsigned rounds) {
  const size_t packets[] = {8, 8, 8, 16, 64, 1000, 1024, 4096};
  unsigned taken = 0;
  for (unsigned i = 0; i < rounds; i++)
    taken += check_packets(device, row, row->name, packets[below(i ? 8 : 1)], 12, 9);
  if (!taken)
    check_fail("%s took none of %u shapes", row->name, rounds);
}

void check_storage(check_device *device, const weft_backend *first, unsigned rounds) {
  for (unsigned i = 0; i < rounds; i++)
    check_bytes(device, "tensor kernel", weft_storage_tensor, i % 4 ? 40 : 200, 20, false);
  printf("ok storage: tensor\n");
  for (unsigned i = 0; i < rounds; i++)
    check_bytes(device, rows[0].name, gibraltar, i % 4 ? 12 : 60, 8, true);
  printf("ok storage: %s\n", rows[0].name);
  for (size_t r = 1; r < sizeof rows / sizeof *rows; r++) {
    check_row(device, &rows[r], rounds);
    printf("ok storage: %s\n", rows[r].name);
  }
  for (unsigned i = 0; i < rounds; i++)
    check_trial(device, first, i % 2);
  printf("ok storage: trial of made kernels\n");
  if (!weft_nvrtc_version()[0]) {
    printf("skipped storage: made kernels need NVRTC (libnvrtc.so)\n");
    return;
  }
  check_kernels(device);
  const size_t failed = weft_device_kernels_failed(device->device);
  weft_device_compile_after(device->device, 0);
  const size_t packets[] = {8, 16, 64, 512, 1008, 2048, 4096, 12};
  for (unsigned i = 0; i < rounds / 2 + 1; i++) {
    const size_t k_most = i % 3 ? 12 : 50; // few and many shards are handled differently
    check_bytes(device, "made kernel", made, k_most, 16, false);
    check_factors(device);
    check_factors_of_one_matrix(device);
    check_packet_factors(device, first);
    check_stripes(device, packets[below(8)]);
    check_packets(device, first, "made kernel for packets", packets[below(8)], k_most, 16);
  }
  weft_device_compile_after(device->device, SIZE_MAX);
  printf("ok storage: made kernels, NVRTC %s, of which %zu did not pass their trial\n",
         weft_nvrtc_version(), weft_device_kernels_failed(device->device) - failed);
}
