// SPDX-License-Identifier: Apache-2.0
// What the self-contained device checks share: random inputs, a reference product, device buffers.
// They run on machines that have a GPU and nothing else, so they use no test framework.
#ifndef WEFT_TESTS_CUDA_CHECK_H
#define WEFT_TESTS_CUDA_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/device.h"

typedef struct check_device {
  weft_device *device;
  void *stream;
  weft_exec exec;
} check_device;

extern const weft_allocator check_allocator;

uint64_t check_random(void); // xorshift; check_seed sets it
void check_seed(uint64_t seed);
void check_fill(uint8_t *bytes, size_t count, unsigned zero_percent);

// Prints what failed, with the seed, and ends the program.
void check_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void check_status(weft_status status, const char *what);

uint8_t check_mul(uint8_t a, uint8_t b);
// y (m, len) ^= a (m, k) * x (k, len), all dense.
void check_product(uint8_t *y, const uint8_t *a, const uint8_t *x, size_t m, size_t k, size_t len);

void *check_memory(check_device *device, size_t bytes); // on the device
void check_copy(check_device *device, void *to, weft_mem to_mem, const void *from,
                weft_mem from_mem, size_t bytes);
void check_wait(check_device *device);

// Each file's own checks.
void check_products(check_device *device, const weft_backend *row, unsigned rounds);
// Large shapes of a binary tensor row against another row.
void check_tensor(check_device *device, const weft_backend *row, const weft_backend *reference,
                  unsigned rounds);
void check_xorm(check_device *device, const weft_backend *row, unsigned rounds);
void check_invert(check_device *device, const weft_backend *row, unsigned rounds, size_t k_max);
void check_eliminate(check_device *device, const weft_backend *row, unsigned rounds);
void check_decode(check_device *device, unsigned rounds);
void check_expand(check_device *device, unsigned rounds);
// Storage techniques; `first`: a row whose xorm may make kernels.
void check_storage(check_device *device, const weft_backend *first, unsigned rounds);
void check_kernels(check_device *device); // kernels made at run time and kept; needs NVRTC
void check_faults(check_device *device, const weft_backend *row);

#endif
