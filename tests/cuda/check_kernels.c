// SPDX-License-Identifier: Apache-2.0
// Kernels compiled at run time are kept, and make room for others, but not while they are in use;
// if a kernel cannot be made, a general one does the work immediately.
#include "tests/cuda/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/nvrtc.h"

enum { Kept = 512 }; // kernel_cache.cu

// A store of the one kernel that is compiled here.
typedef struct store {
  void *code;
  size_t bytes, saved;
} store;

static void save(void *user, const char *machine, const char *source, const void *code,
                 size_t bytes) {
  store *s = user;
  (void)machine, (void)source;
  s->saved++;
  free(s->code);
  s->bytes = bytes;
  s->code = malloc(bytes);
  if (!s->code)
    check_fail("no host memory");
  memcpy(s->code, code, bytes);
}

static weft_status load(void *user, const weft_allocator *allocator, const char *machine,
                        const char *source, void **code, size_t *bytes) {
  const store *s = user;
  (void)machine, (void)source;
  if (!s->code)
    return WEFT_E_UNSUPPORTED;
  *code = allocator->alloc(allocator->user, s->bytes, 16);
  if (!*code)
    return WEFT_E_NOMEM;
  memcpy(*code, s->code, s->bytes);
  *bytes = s->bytes;
  return WEFT_OK;
}

static weft_status write_source(void *user, const weft_allocator *allocator, char **out) {
  static const char source[] =
      "extern \"C\" __global__ void weft_kernel(unsigned *to) { *to = 1; }";
  size_t *written = user;
  ++*written;
  *out = allocator->alloc(allocator->user, sizeof source, 16);
  if (!*out)
    return WEFT_E_NOMEM;
  memcpy(*out, source, sizeof source);
  return WEFT_OK;
}

static weft_status fetch(check_device *device, size_t number, size_t *written, void **kernel) {
  const struct {
    char name[16];
    size_t number;
  } key = {"check", number};
  const weft_kernel_want want = {
      .key = &key, .key_bytes = sizeof key, .source = write_source, .user = written, .now = true};
  return weft_device_kernel(device->device, &want, kernel);
}

// Fetches kernels first to first + count - 1, and returns each at once.
static void pass_by(check_device *device, size_t first, size_t count) {
  size_t written = 0;
  for (size_t i = first; i < first + count; i++) {
    void *kernel;
    check_status(fetch(device, i, &written, &kernel), "a kernel that passes by");
    weft_device_kernel_done(device->device, kernel);
  }
}

// A fetched kernel stays; once it is returned it can be dropped like any other.
static void check_holding(check_device *device) {
  size_t written = 0;
  void *kernel, *again;
  check_status(fetch(device, 0, &written, &kernel), "a kernel");
  pass_by(device, 1, Kept + 8);
  check_status(fetch(device, 0, &written, &again), "the kernel again");
  if (written != 1 || kernel != again)
    check_fail("a kernel that was about to be launched made room for another");
  weft_device_kernel_done(device->device, kernel);
  pass_by(device, 1, Kept + 8); // still held once
  weft_device_kernel_done(device->device, again);
  pass_by(device, Kept + 9, Kept + 8);
  check_status(fetch(device, 0, &written, &kernel), "the kernel once more");
  if (written != 2)
    check_fail("a kernel that was given back never made room");
  weft_device_kernel_done(device->device, kernel);
}

// If all kernels are in use, another is refused until one is returned.
static void check_all_held(check_device *device) {
  static void *held[Kept];
  size_t written = 0;
  void *one_more;
  for (size_t i = 0; i < Kept; i++)
    check_status(fetch(device, i, &written, &held[i]), "a kernel to hold");
  if (fetch(device, Kept, &written, &one_more) != WEFT_E_UNSUPPORTED || one_more)
    check_fail("more kernels held than there is room for");
  weft_device_kernel_done(device->device, held[Kept / 2]);
  check_status(fetch(device, Kept, &written, &held[Kept / 2]), "a kernel in the place of another");
  for (size_t i = 0; i < Kept; i++)
    weft_device_kernel_done(device->device, held[i]);
}

// A kernel that cannot be made, or not yet: its trial returns `answer` the first time.
typedef struct trouble {
  const char *source;
  weft_status answer;
  bool passes;
  size_t written, tried;
} trouble;

static weft_status write_trouble(void *user, const weft_allocator *allocator, char **out) {
  trouble *t = user;
  const size_t bytes = strlen(t->source) + 1;
  t->written++;
  *out = allocator->alloc(allocator->user, bytes, 16);
  if (!*out)
    return WEFT_E_NOMEM;
  memcpy(*out, t->source, bytes);
  return WEFT_OK;
}

static weft_status try_trouble(void *user, void *kernel, bool *passes) {
  trouble *t = user;
  (void)kernel;
  *passes = t->passes;
  return t->tried++ ? WEFT_OK : t->answer;
}

// Asks for the kernel twice: the caller must use a general kernel the first time, and unless
// `later` also the second time. The source is written and compiled only once.
static void check_trouble(check_device *device, const char *what, trouble t, bool later) {
  const weft_kernel_want want = {.key = what,
                                 .key_bytes = strlen(what),
                                 .source = write_trouble,
                                 .passes = try_trouble,
                                 .user = &t,
                                 .now = true};
  for (unsigned i = 0; i < 2; i++) {
    void *kernel;
    const weft_status status = weft_device_kernel(device->device, &want, &kernel);
    const bool had = later && i == 1;
    if (status != (had ? WEFT_OK : WEFT_E_UNSUPPORTED) || (kernel != NULL) != had)
      check_fail("%s, call %u: status %d and %s kernel", what, i, (int)status, kernel ? "a" : "no");
    weft_device_kernel_done(device->device, kernel);
  }
  if (t.written != 1)
    check_fail("%s: compiled %zu times", what, t.written);
}

static void check_troubles(check_device *device) {
  static const char good[] = "extern \"C\" __global__ void weft_kernel(unsigned *to) { *to = 2; }";
  static const char other[] = "extern \"C\" __global__ void another(unsigned *to) { *to = 3; }";
  const size_t failed = weft_device_kernels_failed(device->device);
  check_trouble(device, "does not compile", (trouble){.source = "no CUDA"}, false);
  check_trouble(device, "does not load", (trouble){.source = other}, false);
  check_trouble(device, "does not pass", (trouble){.source = good}, false);
  check_trouble(device, "cannot be tried",
                (trouble){.source = good, .answer = WEFT_E_DEVICE, .passes = true}, false);
  check_trouble(device, "no room on the device to try it",
                (trouble){.source = good, .answer = WEFT_E_DEVICE_NOMEM, .passes = true}, true);
  check_trouble(device, "no room on the host to try it",
                (trouble){.source = good, .answer = WEFT_E_NOMEM, .passes = true}, true);
  if (weft_device_kernels_failed(device->device) != failed + 1)
    check_fail("%zu kernels did not pass, not 1",
               weft_device_kernels_failed(device->device) - failed);
  printf("ok storage: made kernels that cannot be had leave the work to others\n");
}

// Finds no memory for the source the first time.
static weft_status write_later(void *user, const weft_allocator *allocator, char **out) {
  size_t *written = user;
  if (*written == 0) {
    ++*written;
    return WEFT_E_NOMEM;
  }
  return write_source(user, allocator, out);
}

// A kernel in the store is used as soon as there is memory to ask for it, even if it is not worth
// compiling yet.
static void check_asked_again(check_device *device) {
  static const char name[] = "asked again";
  size_t written = 0;
  const weft_kernel_want want = {
      .key = name, .key_bytes = sizeof name, .source = write_later, .user = &written};
  void *kernel;
  if (weft_device_kernel(device->device, &want, &kernel) != WEFT_E_NOMEM || kernel)
    check_fail("a kernel without memory for its source");
  check_status(weft_device_kernel(device->device, &want, &kernel), "a kernel asked for again");
  if (!kernel)
    check_fail("the store was not asked again when there was memory");
  weft_device_kernel_done(device->device, kernel);
}

void check_kernels(check_device *device) {
  store s = {0};
  weft_device_set_code_store(device->device,
                             &(weft_code_store){.user = &s, .load = load, .save = save});
  check_holding(device);
  check_all_held(device);
  check_asked_again(device);
  weft_device_set_code_store(device->device, NULL);
  if (s.saved != 1)
    check_fail("compiled %zu times what the store holds", s.saved);
  free(s.code);
  printf("ok storage: made kernels stay until they are given back\n");
  check_troubles(device);
}
