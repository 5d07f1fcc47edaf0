// SPDX-License-Identifier: Apache-2.0
// A program that uses its GPUs itself while it uses weft: the context current to a thread stays
// current, devices that the program did not name are not opened, and memory is allocated in the
// size requested.
#define _GNU_SOURCE // dlopen in older C libraries' headers
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device.h"
#include "tests/cuda/gpu.h"
#include "tests/support/test_main.h"

static struct { // of the driver
  int (*device)(int *device, int index);
  int (*current)(void **context);
  int (*make_current)(void *context);
  int (*context_new)(void **context, unsigned flags, int device);
  int (*context_free)(void *context);
  int (*primary_state)(int device, unsigned *flags, int *active);
  int (*memory)(size_t *left, size_t *total);
} driver;

static void find(void *library, const char *name, void *slot) {
  void *const at = dlsym(library, name);
  if (!at)
    ck_abort_msg("libcuda.so.1 has no %s", name);
  memcpy(slot, &at, sizeof at);
}

// Opens the driver. Returns false, after printing why, if there are fewer than `devices` devices.
static bool start(const char *test, size_t devices) {
  if (gpu_skip(test))
    return false;
  if (weft_device_count() < devices) {
    printf("SKIPPED %s: it needs %zu GPUs, there is %zu\n", test, devices, weft_device_count());
    fflush(stdout);
    return false;
  }
  void *const library = dlopen("libcuda.so.1", RTLD_NOW);
  ck_assert_ptr_nonnull(library);
  find(library, "cuDeviceGet", &driver.device);
  find(library, "cuCtxGetCurrent", &driver.current);
  find(library, "cuCtxSetCurrent", &driver.make_current);
  find(library, "cuCtxCreate_v2", &driver.context_new);
  find(library, "cuCtxDestroy_v2", &driver.context_free);
  find(library, "cuDevicePrimaryCtxGetState", &driver.primary_state);
  find(library, "cuMemGetInfo_v2", &driver.memory);
  ck_assert_int_eq(driver.make_current(NULL), 0); // as in a thread that has not used CUDA yet
  return true;
}

static void *current(void) {
  void *context = NULL;
  ck_assert_int_eq(driver.current(&context), 0);
  return context;
}

static int device_at(int index) {
  int device = -1;
  ck_assert_int_eq(driver.device(&device, index), 0);
  return device;
}

static bool is_active(int index) {
  unsigned flags;
  int active = -1;
  ck_assert_int_eq(driver.primary_state(device_at(index), &flags, &active), 0);
  return active != 0;
}

// Creates a context of the program's own, and makes it current.
static void *context_on(int index) {
  void *context = NULL;
  ck_assert_int_eq(driver.context_new(&context, 0, device_at(index)), 0);
  ck_assert_ptr_eq(current(), context);
  return context;
}

static weft_ctx *open_on(size_t index) {
  weft_ctx *ctx = NULL;
  EXPECT_OK(weft_ctx_new(&ctx, &(weft_ctx_options){.backend = "cuda", .device = index}));
  return ctx;
}

// Codes and decodes on the device, with all kinds of memory; checks that `stays` is always current.
static void work(weft_ctx *ctx, const void *stays) {
  enum { N = 24, K = 4096 };
  fixture_start(700);
  fixture_source source = fixture_source_new(ctx, N, K, N * K, NULL);
  uint8_t vectors[N * N];
  for (size_t i = 0; i < N * N; i++) // triangular, so it has an inverse
    vectors[i] = i % N <= i / N ? (uint8_t)(1 + fixture_below(255)) : 0;
  for (int mem = 0; mem < 3; mem++) {
    weft_queue *queue;
    EXPECT_OK(weft_queue_new(ctx, &queue));
    gpu_buffer coded = gpu_output(ctx, (weft_mem)mem, N * K);
    gpu_buffer out = gpu_output(ctx, (weft_mem)mem, N * K);
    EXPECT(current() == stays);
    const weft_batch batch = {
        .count = N, .payload = coded.at, .payload_stride = K, .mem = (weft_mem)mem};
    EXPECT_OK(weft_encoder_combine(source.encoder, N, vectors, N, &batch, queue));
    EXPECT(current() == stays);
    weft_decode_job job = {.blocks = N,
                           .block_bytes = K,
                           .coefficients = vectors,
                           .coefficients_stride = N,
                           .payload = coded.at,
                           .payload_stride = K,
                           .out = out.at,
                           .out_stride = K,
                           .mem = (weft_mem)mem};
    EXPECT_OK(weft_queue_wait(queue));
    EXPECT_OK(weft_decode_batch(ctx, &job, 1, NULL));
    EXPECT_OK(job.status);
    uint8_t *got = gpu_read(&out);
    EXPECT(memcmp(got, source.data, N * K) == 0);
    free(got);
    gpu_buffer_free(&coded);
    gpu_buffer_free(&out);
    weft_queue_free(queue);
    EXPECT(current() == stays);
  }
  fixture_source_free(&source);
  EXPECT(current() == stays);
}

// Must be the first test: a later one would find device 0 open if tests share a process
// (CK_FORK=no).
START_TEST(work_on_one_device_opens_no_other) {
  if (!start("work_on_one_device_opens_no_other", 2))
    return;
  ck_assert(!is_active(0) && !is_active(1));
  weft_ctx *ctx = open_on(1);
  ck_assert(is_active(1));
  work(ctx, NULL);
  weft_ctx_free(ctx);
  ck_assert_ptr_null(current());
  ck_assert(!is_active(0));
}
END_TEST

// weft works on a device while a context that the program has created on device 0 is current.
static void beside_own_context(size_t index) {
  void *const own = context_on(0);
  weft_ctx *ctx = open_on(index);
  ck_assert_ptr_eq(current(), own);
  work(ctx, own);
  ck_assert_int_eq(driver.make_current(NULL), 0); // as in a thread without a context
  work(ctx, NULL);
  ck_assert_int_eq(driver.make_current(own), 0);
  weft_ctx_free(ctx);
  ck_assert_ptr_eq(current(), own);
  ck_assert_int_eq(driver.context_free(own), 0);
}

START_TEST(weft_works_in_the_context_it_was_opened_in) {
  if (start("weft_works_in_the_context_it_was_opened_in", 1))
    beside_own_context(0);
}
END_TEST

START_TEST(a_context_of_another_device_stays) {
  if (start("a_context_of_another_device_stays", 2))
    beside_own_context(1);
}
END_TEST

// A context created after weft has opened the device, which weft therefore does not use, stays
// current.
START_TEST(a_later_context_of_the_device_stays) {
  if (!start("a_later_context_of_the_device_stays", 1))
    return;
  weft_ctx *ctx = open_on(0);
  void *const own = context_on(0);
  work(ctx, own);
  weft_ctx_free(ctx);
  ck_assert_ptr_eq(current(), own);
  ck_assert_int_eq(driver.context_free(own), 0);
}
END_TEST

// Returns the free memory of the device whose primary context is current.
static size_t left_bytes(void) {
  size_t left = 0, total = 0;
  ck_assert_int_eq(driver.memory(&left, &total), 0);
  return left;
}

// Checks that about `wanted` bytes were taken since `before` bytes were free. Other programs may
// use the device.
static void taken(size_t before, size_t wanted) {
  const size_t left = left_bytes(), slack = (size_t)64 << 20;
  const size_t gone = before > left ? before - left : 0;
  if (gone > wanted + slack || wanted > gone + slack)
    ck_abort_msg("%zu MiB are gone, not %zu", gone >> 20, wanted >> 20);
}

// Large memory is not rounded up to a size class, and a kept block is freed if it is too small.
START_TEST(large_memory_is_taken_as_asked) {
  const size_t gib = (size_t)1 << 30;
  if (!start("large_memory_is_taken_as_asked", 1))
    return;
  weft_ctx *ctx = open_on(0);
  ck_assert_ptr_nonnull(current());
  work(ctx, current()); // loads what is loaded at first use
  const size_t before = left_bytes();
  if (before < 6 * gib) {
    printf("SKIPPED large_memory_is_taken_as_asked: it needs 6 GiB, %zu MiB are left\n",
           before >> 20);
    weft_ctx_free(ctx);
    return;
  }
  void *memory, *again;
  EXPECT_OK(weft_alloc(ctx, WEFT_MEM_DEVICE, 4 * gib + 1, &memory));
  taken(before, 4 * gib);
  weft_free(ctx, WEFT_MEM_DEVICE, memory);
  EXPECT_OK(weft_alloc(ctx, WEFT_MEM_DEVICE, 4 * gib + 1, &again));
  ck_assert_ptr_eq(again, memory);
  weft_free(ctx, WEFT_MEM_DEVICE, again);
  EXPECT_OK(weft_alloc(ctx, WEFT_MEM_DEVICE, 4 * gib + gib / 2, &again));
  taken(before, 4 * gib + gib / 2);
  weft_free(ctx, WEFT_MEM_DEVICE, again);
  // The larger kept block suffices.
  EXPECT_OK(weft_alloc(ctx, WEFT_MEM_DEVICE, 4 * gib + 1, &memory));
  ck_assert_ptr_eq(again, memory);
  weft_free(ctx, WEFT_MEM_DEVICE, memory);
  weft_ctx_free(ctx);
}
END_TEST

// Memory that was freed stays with the context until it is trimmed, scratch of calls included;
// pinned memory can be allocated again afterwards.
START_TEST(a_trim_gives_back_what_is_kept) {
  const size_t gib = (size_t)1 << 30, pinned_bytes = (size_t)8 << 20;
  if (!start("a_trim_gives_back_what_is_kept", 1))
    return;
  weft_ctx_trim(NULL);
  weft_ctx *ctx = open_on(0);
  work(ctx, current());
  const size_t before = left_bytes();
  if (before < 2 * gib) {
    printf("SKIPPED a_trim_gives_back_what_is_kept: it needs 2 GiB, %zu MiB are left\n",
           before >> 20);
    weft_ctx_free(ctx);
    return;
  }
  void *memory, *pinned;
  EXPECT_OK(weft_alloc(ctx, WEFT_MEM_DEVICE, gib, &memory));
  EXPECT_OK(weft_alloc(ctx, WEFT_MEM_PINNED, pinned_bytes, &pinned));
  weft_free(ctx, WEFT_MEM_DEVICE, memory);
  weft_free(ctx, WEFT_MEM_PINNED, pinned);
  taken(before, gib);
  weft_ctx_trim(ctx);
  taken(before, 0);
  EXPECT_OK(weft_alloc(ctx, WEFT_MEM_PINNED, pinned_bytes, &pinned));
  memset(pinned, 1, pinned_bytes);
  weft_free(ctx, WEFT_MEM_PINNED, pinned);
  work(ctx, current());
  weft_ctx_free(ctx);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("beside a program's own CUDA");
  TCase *cases = tcase_create("beside");
  tcase_add_test(cases, work_on_one_device_opens_no_other);
  tcase_add_test(cases, weft_works_in_the_context_it_was_opened_in);
  tcase_add_test(cases, a_context_of_another_device_stays);
  tcase_add_test(cases, a_later_context_of_the_device_stays);
  tcase_add_test(cases, large_memory_is_taken_as_asked);
  tcase_add_test(cases, a_trim_gives_back_what_is_kept);
  suite_add_tcase(suite, cases);
  return test_main(suite);
}
