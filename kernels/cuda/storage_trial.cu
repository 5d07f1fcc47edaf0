// SPDX-License-Identifier: Apache-2.0
// Compilers are wrong at times: ptxas 13.0 makes kernels with a wrong sum of about one in thirty
// random programs of steps, whose PTX is right. So no made kernel is believed: it is compared with
// the definition, once, in as many bytes as make two blocks and a part of one.
#include "kernels/cuda/storage_trial.h"

#include <string.h>

extern "C" {
#include "kernels/device.h"
#include "kernels/gf256.h"
}

namespace {

enum { SampleMost = 512 }; // bytes of a packet that are looked at

// Rows of host memory: of each shard or packet the first `sample` bytes.
struct Bench {
  const weft_exec *exec;
  const weft_trial *trial;
  weft_trial_rows rows;
  size_t packet, packets, sample; // bytes apart, of a shard, bytes of each
  uint8_t *x, *y;                 // (k * packets, sample), (m * packets, sample)
  uint8_t *got;                   // as y
};

void fill(uint8_t *bytes, size_t count) { // xorshift
  uint64_t state = 0x9E3779B97F4A7C15u;
  for (size_t i = 0; i < count; i++) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    bytes[i] = static_cast<uint8_t>(state >> 32);
  }
}

void multiply_add(uint8_t *y, uint8_t c, const uint8_t *x, size_t bytes) {
  uint8_t product[256];
  for (unsigned value = 0; value < 256; value++)
    product[value] = weft_gf256_mul(c, static_cast<uint8_t>(value));
  for (size_t i = 0; i < bytes; i++)
    y[i] ^= product[x[i]];
}

void add(uint8_t *y, const uint8_t *x, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    y[i] ^= x[i];
}

// The definition, added to y.
void define(const Bench &b) {
  const weft_program_shape &shape = *b.trial->shape;
  if (b.trial->a) {
    for (size_t i = 0; i < shape.m; i++)
      for (size_t j = 0; j < shape.k; j++)
        multiply_add(b.y + i * b.sample, b.trial->a[i * b.trial->a_stride + j], b.x + j * b.sample,
                     b.sample);
    return;
  }
  const size_t w = shape.w, groups = b.packets / w;
  for (size_t row = 0; row < shape.m * w; row++)
    for (size_t column = 0; column < shape.k * w; column++)
      for (size_t g = 0; g < groups && shape.bits[row * shape.bits_stride + column]; g++)
        add(b.y + ((row / w * groups + g) * w + row % w) * b.sample,
            b.x + ((column / w * groups + g) * w + column % w) * b.sample, b.sample);
}

weft_status copy(const Bench &b, void *to, size_t to_stride, weft_mem to_mem, const void *from,
                 size_t from_stride, weft_mem from_mem, size_t shards) {
  return weft_device_copy_rows(b.exec->device, to, to_stride, to_mem, from, from_stride, from_mem,
                               b.sample, shards * b.packets, b.exec->stream);
}

weft_status run(Bench &b, bool *passes) {
  const weft_program_shape &shape = *b.trial->shape;
  const size_t in = shape.k * b.packets * b.sample, out = shape.m * b.packets * b.sample;
  uint8_t *const outputs = b.rows.first + shape.k * b.rows.stride;
  fill(b.x, in + out); // y follows x
  WEFT_TRY(copy(b, b.rows.first, b.packet, WEFT_MEM_DEVICE, b.x, b.sample, WEFT_MEM_HOST,
                shape.k + shape.m));
  WEFT_TRY(b.trial->run(b.trial->user, &b.rows));
  if (!shape.accumulate)
    memset(b.y, 0, out);
  define(b);
  WEFT_TRY(copy(b, b.got, b.sample, WEFT_MEM_HOST, outputs, b.packet, WEFT_MEM_DEVICE, shape.m));
  WEFT_TRY(weft_device_stream_wait(b.exec->device, b.exec->stream));
  *passes = memcmp(b.got, b.y, out) == 0;
  return WEFT_OK;
}

} // namespace

extern "C" weft_status weft_trial_passes(const weft_exec *exec, const weft_trial *trial,
                                         bool *passes) {
  const weft_program_shape &shape = *trial->shape;
  const weft_allocator *allocator = exec->allocator;
  const size_t threads = trial->plan->threads;
  Bench b = {};
  b.exec = exec;
  b.trial = trial;
  *passes = false;
  if (trial->a) {
    b.packet = b.sample = b.rows.length = 32 * (2 * threads + 7) + 16;
    b.packets = 1;
  } else {
    b.packet = shape.packet_bytes;
    b.rows.length = 4 * (2 * threads + 33) / b.packet + 1;
    b.packets = b.rows.length * shape.w;
    b.sample = b.packet < SampleMost ? b.packet : size_t{SampleMost};
  }
  b.rows.stride = b.packet * b.packets;
  const size_t shards = shape.k + shape.m, of_one = b.packets * b.sample;
  b.x = static_cast<uint8_t *>(
      allocator->alloc(allocator->user, (shards + shape.m) * of_one, alignof(uint64_t)));
  if (!b.x)
    return WEFT_E_NOMEM;
  b.y = b.x + shape.k * of_one;
  b.got = b.x + shards * of_one;
  void *memory = nullptr;
  weft_status status = weft_device_scratch(exec, shards * b.rows.stride, &memory);
  if (status == WEFT_OK) {
    b.rows.first = static_cast<uint8_t *>(memory);
    status = run(b, passes);
    weft_device_scratch_free(exec, memory);
  }
  allocator->free(allocator->user, b.x);
  return status;
}
