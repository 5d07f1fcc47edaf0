// SPDX-License-Identifier: Apache-2.0
// Contexts: select a backend row, and own its threads, device and memory.
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "lib/code_folder.h"
#include "lib/ctx.h"
#include "weft/weft.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

const char *weft_version(void) {
  return TEXT(WEFT_VERSION_MAJOR) "." TEXT(WEFT_VERSION_MINOR) "." TEXT(WEFT_VERSION_PATCH);
}

// --- memory from the C library ---

static void *c_alloc(void *user, size_t bytes, size_t align) {
  (void)user;
  void *memory = NULL;
  if (align < sizeof(void *))
    align = sizeof(void *);
  return posix_memalign(&memory, align, bytes) == 0 ? memory : NULL;
}

static void c_free(void *user, void *memory) {
  (void)user;
  free(memory);
}

static const weft_allocator c_allocator = {.alloc = c_alloc, .free = c_free};

// --- selecting a row ---

// Returns the row that the caller or the environment asks for; NULL: none.
static const char *wanted_name(const weft_ctx_options *options) {
  const char *name = options->backend ? options->backend : getenv("WEFT_BACKEND");
  return name && name[0] != '\0' ? name : NULL;
}

// Whether the name is that of a device row in this build.
static bool names_device(const char *name) {
  if (strcmp(name, "cuda") == 0)
    return true;
  for (size_t i = 0; i < weft_backend_count; i++)
    if (strcmp(weft_backends[i].name, name) == 0)
      return weft_backends[i].mem == WEFT_MEM_DEVICE;
  return false;
}

static weft_status select_device_row(weft_ctx *ctx, const char *name, size_t index) {
  const char *forced = strcmp(name, "cuda") == 0 ? NULL : name;
  if (index >= weft_device_count())
    return WEFT_E_BACKEND_ABSENT;
  WEFT_TRY(weft_device_open(&ctx->device, index, &ctx->allocator));
  const weft_machine machine = {.cpu = weft_cpu_features(),
                                .sm = weft_device_sm(ctx->device),
                                .block_bytes = weft_device_block_bytes(ctx->device)};
  return weft_backend_select(&machine, WEFT_MEM_DEVICE, forced, &ctx->row);
}

// Sets where kernels compiled for the device are kept, and when it compiles.
static weft_status keep_code(weft_ctx *ctx, const weft_ctx_options *options) {
  const char *path = options->code_folder ? options->code_folder : getenv("WEFT_CODE_FOLDER");
  if (options->compile_after)
    weft_device_compile_after(ctx->device, options->compile_after);
  ctx->code_seal.allocator = &ctx->allocator;
  if (options->code_store) {
    ctx->code_seal.inner = *options->code_store;
  } else if (path && path[0] != '\0') {
    WEFT_TRY(weft_code_folder_new(&ctx->code_folder, path, &ctx->allocator));
    ctx->code_seal.inner = weft_code_folder_store(ctx->code_folder);
  } else {
    return WEFT_OK;
  }
  const weft_code_store store = weft_code_seal_store(&ctx->code_seal);
  weft_device_set_code_store(ctx->device, &store);
  return WEFT_OK;
}

static weft_status select_rows(weft_ctx *ctx, const weft_ctx_options *options) {
  const char *name = wanted_name(options);
  const weft_machine machine = {.cpu = weft_cpu_features()};
  ctx->compile_after = options->compile_after;
  if (name && names_device(name)) {
    WEFT_TRY(weft_backend_select(&machine, WEFT_MEM_HOST, NULL, &ctx->host));
    WEFT_TRY(select_device_row(ctx, name, options->device));
    return keep_code(ctx, options);
  }
  WEFT_TRY(weft_backend_select(&machine, WEFT_MEM_HOST, name, &ctx->host));
  ctx->row = ctx->host;
  return WEFT_OK;
}

static weft_partition partition_of(weft_split split) {
  switch (split) {
  case WEFT_SPLIT_COLUMNS:
    return WEFT_PARTITION_COLUMNS;
  case WEFT_SPLIT_ROWS:
    return WEFT_PARTITION_ROWS;
  default:
    return WEFT_PARTITION_AUTO;
  }
}

weft_status weft_ctx_new(weft_ctx **out, const weft_ctx_options *options) {
  static const weft_ctx_options defaults;
  if (!out)
    return WEFT_E_ARGUMENT;
  *out = NULL;
  if (!options)
    options = &defaults;
  if ((unsigned)options->split > WEFT_SPLIT_ROWS ||
      (options->allocator && (!options->allocator->alloc || !options->allocator->free)))
    return WEFT_E_ARGUMENT;
  if (sodium_init() < 0)
    return WEFT_E_RANDOM;
  const weft_allocator *allocator = options->allocator ? options->allocator : &c_allocator;
  weft_ctx *ctx = allocator->alloc(allocator->user, sizeof *ctx, _Alignof(weft_ctx));
  if (!ctx)
    return WEFT_E_NOMEM;
  *ctx = (weft_ctx){.allocator = *allocator, .partition = partition_of(options->split)};
  if (pthread_mutex_init(&ctx->spare_lock, NULL) != 0) {
    allocator->free(allocator->user, ctx);
    return WEFT_E_THREAD;
  }
  weft_status status = select_rows(ctx, options);
  if (status == WEFT_OK)
    status =
        weft_pool_new(&ctx->pool, options->threads > 0 ? options->threads : 1, &ctx->allocator);
  if (status == WEFT_OK)
    status = weft_scratch_new(&ctx->allocator, &ctx->scratch);
  if (status != WEFT_OK) {
    weft_ctx_free(ctx);
    return status;
  }
  *out = ctx;
  return WEFT_OK;
}

void weft_ctx_free(weft_ctx *ctx) {
  if (!ctx)
    return;
  const weft_allocator allocator = ctx->allocator;
  for (size_t i = 0; i < ctx->spares; i++)
    weft_device_stream_free(ctx->device, ctx->spare[i]);
  weft_device_close(ctx->device);
  weft_code_folder_free(ctx->code_folder);
  weft_pool_free(ctx->pool);
  weft_scratch_free(ctx->scratch, &allocator);
  pthread_mutex_destroy(&ctx->spare_lock);
  allocator.free(allocator.user, ctx);
}

const char *weft_ctx_backend(const weft_ctx *ctx) { return ctx->row->name; }
const char *weft_ctx_host_backend(const weft_ctx *ctx) { return ctx->host->name; }
size_t weft_ctx_threads(const weft_ctx *ctx) { return weft_pool_threads(ctx->pool); }

// --- what is available ---

// What the first device can do, queried once: opening a device is slow.
static pthread_once_t first_device_once = PTHREAD_ONCE_INIT;
static int first_device_sm, first_device_block_bytes;

static void ask_first_device(void) {
  weft_device *device = NULL;
  if (weft_device_count() > 0 && weft_device_open(&device, 0, &c_allocator) == WEFT_OK) {
    first_device_sm = weft_device_sm(device);
    first_device_block_bytes = weft_device_block_bytes(device);
    weft_device_close(device);
  }
}

size_t weft_backend_count_all(void) { return weft_backend_count; }

weft_status weft_backend_describe(size_t index, weft_backend_info *out) {
  if (!out || index >= weft_backend_count)
    return WEFT_E_ARGUMENT;
  const weft_backend *row = &weft_backends[index];
  weft_machine machine = {.cpu = weft_cpu_features()};
  if (row->mem == WEFT_MEM_DEVICE) {
    pthread_once(&first_device_once, ask_first_device);
    machine.sm = first_device_sm;
    machine.block_bytes = first_device_block_bytes;
  }
  *out = (weft_backend_info){.name = row->name,
                             .technique = row->technique,
                             .mem = row->mem,
                             .align = row->align,
                             .available = weft_backend_runs_on(row, &machine)};
  return WEFT_OK;
}

// --- memory ---

weft_status weft_alloc(weft_ctx *ctx, weft_mem mem, size_t bytes, void **out) {
  enum { LINE = 64 };
  if (!out)
    return WEFT_E_ARGUMENT;
  *out = NULL;
  if (!ctx || bytes == 0)
    return WEFT_E_ARGUMENT;
  if (mem == WEFT_MEM_HOST) {
    *out = weft_ctx_take(ctx, bytes, ctx->host->align > LINE ? ctx->host->align : LINE);
    return *out ? WEFT_OK : WEFT_E_NOMEM;
  }
  WEFT_TRY(weft_mem_check(mem, ctx->device != NULL));
  if (!ctx->device)
    return WEFT_E_UNSUPPORTED;
  return weft_device_alloc(ctx->device, mem, bytes, out);
}

void weft_free(weft_ctx *ctx, weft_mem mem, void *memory) {
  if (!memory)
    return;
  if (mem == WEFT_MEM_HOST)
    weft_ctx_give(ctx, memory);
  else
    weft_device_free(ctx->device, mem, memory);
}

void weft_ctx_trim(weft_ctx *ctx) {
  if (ctx && ctx->device)
    weft_device_trim(ctx->device);
}
