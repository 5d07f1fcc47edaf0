// SPDX-License-Identifier: Apache-2.0
// Creates codes by name: the table of names, their parameters, and what a code holds.
#include "lib/storage/code.h"

#include <string.h>

enum { PACKET_DEFAULT = 512, PLANS_DEFAULT = 128, LONG_BYTES = 8 };

typedef struct family {
  const char *name;
  weft_generator_kind kind;
  bool crs;
  size_t packet_default; // bytes
  size_t packet_step;    // packet_bytes is a multiple of this
  size_t packet_most;    // bytes
} family;

static const family families[] = {
    {"vandermonde", WEFT_GENERATOR_VANDERMONDE, false, 0, 1, 0},
    {"cauchy", WEFT_GENERATOR_CAUCHY, false, 0, 1, 0},
    {"reed_sol_van", WEFT_GENERATOR_REED_SOL_VAN, false, 0, 1, 0},
    {"isal_rs", WEFT_GENERATOR_ISAL_RS, false, 0, 1, 0},
    {"par1", WEFT_GENERATOR_PAR1, false, 0, 1, 0},
    {"raid6", WEFT_GENERATOR_RAID6, false, 0, 1, 0},
    {"cauchy_orig", WEFT_GENERATOR_CAUCHY_ORIG, true, PACKET_DEFAULT, 1, SIZE_MAX / 8},
    {"cauchy_good", WEFT_GENERATOR_CAUCHY_GOOD, true, PACKET_DEFAULT, 1, SIZE_MAX / 8},
    {"gcrs", WEFT_GENERATOR_CAUCHY_ORIG, true, LONG_BYTES, LONG_BYTES, LONG_BYTES},
    {"perasure", WEFT_GENERATOR_CAUCHY_ORIG, true, PACKET_DEFAULT, LONG_BYTES, SIZE_MAX / 8},
};
// The family whose coefficients the caller supplies; not listed among the known names.
static const family own_matrix = {"matrix", WEFT_GENERATOR_CAUCHY, false, 0, 1, 0};

enum { FAMILIES = sizeof families / sizeof families[0] };

const char *weft_code_known_name(size_t index) {
  return index < FAMILIES ? families[index].name : NULL;
}

// Reads ":key=number" and advances past it; returns false if *text does not start with that.
static bool read_parameter(const char **text, const char *key, size_t *value) {
  const size_t length = strlen(key);
  const char *at = *text;
  if (*at++ != ':' || strncmp(at, key, length) != 0 || at[length] != '=')
    return false;
  at += length + 1;
  if (*at < '1' || *at > '9')
    return false;
  size_t number = 0;
  for (; *at >= '0' && *at <= '9'; at++) {
    if (number > (SIZE_MAX - 9) / 10)
      return false;
    number = number * 10 + (size_t)(*at - '0');
  }
  *value = number;
  *text = at;
  return true;
}

static const family *find_family(const char *name, size_t length) {
  for (size_t i = 0; i < FAMILIES; i++)
    if (strlen(families[i].name) == length && memcmp(families[i].name, name, length) == 0)
      return &families[i];
  if (strlen(own_matrix.name) == length && memcmp(own_matrix.name, name, length) == 0)
    return &own_matrix;
  return NULL;
}

static size_t smallest_w(size_t shards) {
  size_t w = WEFT_GFW_MIN;
  while (w < WEFT_GFW_MAX && ((size_t)1 << w) < shards)
    w++;
  return w;
}

// Sets w and packet_bytes from the name's own parameters, the options and the defaults.
static weft_status resolve(weft_code *code, const family *f, const char *parameters,
                           const weft_code_options *options) {
  code->w = options->w;
  code->packet_bytes = options->packet_bytes;
  if (*parameters) {
    size_t w = 0, packet = 0;
    if (!read_parameter(&parameters, "w", &w) || !read_parameter(&parameters, "packet", &packet) ||
        *parameters || !f->crs || (code->w && code->w != w) ||
        (code->packet_bytes && code->packet_bytes != packet))
      return WEFT_E_ARGUMENT;
    code->w = w;
    code->packet_bytes = packet;
  }
  if (!f->crs) {
    if ((code->w && code->w != 8) || code->packet_bytes)
      return WEFT_E_ARGUMENT;
    code->w = 8;
    return WEFT_OK;
  }
  if (!code->w)
    code->w = smallest_w(code->k + code->m);
  if (!code->packet_bytes)
    code->packet_bytes = f->packet_default;
  return code->w > WEFT_GFW_MAX || code->packet_bytes % f->packet_step ||
                 code->packet_bytes > f->packet_most
             ? WEFT_E_ARGUMENT
             : WEFT_OK;
}

static char *append(char *at, const char *text) {
  const size_t length = strlen(text);
  memcpy(at, text, length + 1);
  return at + length;
}

static char *append_number(char *at, size_t number) {
  char digits[24];
  size_t first = sizeof digits - 1;
  digits[first] = '\0';
  do
    digits[--first] = (char)('0' + number % 10);
  while (number /= 10);
  return append(at, digits + first);
}

static void write_name(weft_code *code, const family *f) {
  char *at = append(code->name, f->name);
  if (f->crs) {
    at = append_number(append(at, ":w="), code->w);
    append_number(append(at, ":packet="), code->packet_bytes);
  }
}

// Factors the encoding matrix into transforms, if they are known for the code and it is large
// enough to gain. The host computes CRS codes with XOR programs instead.
static weft_status factorise(weft_code *code, const uint8_t *ids) {
  weft_factors *factors = NULL;
  if ((weft_code_is_crs(code) && !code->ctx->device) || code->k * code->m < WEFT_FACTORS_LEAST)
    return WEFT_OK;
  const weft_status status = weft_transform_new(
      &code->generator, ids, ids + code->k, code->m,
      code->ctx->device ? &weft_transform_for_device : &weft_transform_for_host, NULL, &factors);
  atomic_init(&code->encode->factors, factors);
  return status == WEFT_E_UNSUPPORTED ? WEFT_OK : status;
}

static weft_status make_generator(weft_code *code, const family *f, const uint8_t *parity) {
  const weft_allocator *const allocator = &code->ctx->allocator;
  if (f == &own_matrix)
    return weft_generator_init_own(&code->generator, parity, code->k, code->m, allocator);
  return weft_generator_init(&code->generator, f->kind, code->k, code->m, (unsigned)code->w,
                             allocator);
}

static weft_status fill(weft_code *code, const weft_code_options *options) {
  const char *colon = strchr(options->name, ':');
  const size_t length = colon ? (size_t)(colon - options->name) : strlen(options->name);
  const family *f = find_family(options->name, length);
  if (!f || (f == &own_matrix ? !options->parity && options->m : options->parity != NULL) ||
      !options->k || options->k > WEFT_MAX_SHARDS || options->m > WEFT_MAX_SHARDS - options->k)
    return WEFT_E_ARGUMENT;
  code->k = options->k;
  code->m = options->m;
  WEFT_TRY(resolve(code, f, options->name + length, options));
  write_name(code, f);
  code->mds = f != &own_matrix;
  WEFT_TRY(make_generator(code, f, options->parity));
  code->rebuilds = !code->ctx->device && code->ctx->host->host->rebuild &&
                   code->generator.by_points && !f->crs &&
                   code->generator.infinite == WEFT_SHARDS_MAX &&
                   code->k + code->m <= WEFT_LOSS_SHARDS;
  if (f->crs && code->m) {
    code->bits = weft_ctx_take(code->ctx, code->m * code->w * code->k * code->w, 64);
    if (!code->bits)
      return WEFT_E_NOMEM;
    weft_matrix_to_bits(&code->generator.field, code->generator.parity, code->m, code->k,
                        code->bits);
  }
  uint8_t ids[WEFT_MAX_SHARDS];
  for (size_t i = 0; i < code->k + code->m; i++)
    ids[i] = (uint8_t)i;
  WEFT_TRY(weft_plan_make(code, ids, code->k, ids + code->k, code->m, false, &code->encode));
  WEFT_TRY(factorise(code, ids));
  if (options->device_inverse &&
      (code->w != 8 || !code->mds || !code->ctx->device || !code->ctx->row->invert))
    return WEFT_E_UNSUPPORTED;
  code->zero_copy = options->zero_copy;
  code->device_inverse = options->device_inverse; // only from here on: parity needs no inverse
  return weft_plan_cache_fill(&code->cache, code->k + code->m,
                              options->cached_plans ? options->cached_plans : PLANS_DEFAULT);
}

weft_status weft_code_new(weft_ctx *ctx, const weft_code_options *options, weft_code **out) {
  if (!out)
    return WEFT_E_ARGUMENT;
  *out = NULL;
  if (!ctx || !options || !options->name)
    return WEFT_E_ARGUMENT;
  weft_code *code = weft_ctx_take(ctx, sizeof *code, _Alignof(weft_code));
  if (!code)
    return WEFT_E_NOMEM;
  memset(code, 0, sizeof *code);
  code->ctx = ctx;
  atomic_init(&code->unkept, 0);
  weft_status status = weft_plan_cache_begin(&code->cache, ctx);
  if (status != WEFT_OK) {
    weft_ctx_give(ctx, code);
    return status;
  }
  status = fill(code, options);
  if (status == WEFT_OK)
    *out = code;
  else
    weft_code_free(code);
  return status;
}

void weft_code_free(weft_code *code) {
  if (!code)
    return;
  weft_plan_cache_clear(&code->cache);
  weft_plan_let_go(code->encode);
  weft_ctx_give(code->ctx, code->bits);
  weft_generator_clear(&code->generator);
  weft_ctx_give(code->ctx, code);
}

const char *weft_code_name(const weft_code *code) { return code->name; }
size_t weft_code_data_shards(const weft_code *code) { return code->k; }
size_t weft_code_parity_shards(const weft_code *code) { return code->m; }
size_t weft_code_word_bits(const weft_code *code) { return code->w; }

size_t weft_code_unit_bytes(const weft_code *code) {
  return weft_code_is_crs(code) ? code->w * code->packet_bytes : 1;
}

size_t weft_code_parity_bytes(const weft_code *code, size_t bytes) {
  const size_t unit = weft_code_unit_bytes(code), over = bytes % unit;
  const size_t lacks = over ? unit - over : 0;
  return lacks <= SIZE_MAX - bytes ? bytes + lacks : SIZE_MAX;
}

// Returns the distance between shards, in cache lines, such that shards share as few sets as
// possible of a first-level cache with 64 sets. One or two lines past a multiple of 4 KiB can be
// just as slow.
static size_t lines_apart(size_t lines) {
  enum { SETS = 64, LEAST = 5, SHARED = 16, SHORT = 32 };
  const size_t past = lines % SETS;
  if (lines < SHORT) // all shards fit
    return lines;
  if (past < LEAST)
    return lines - past + LEAST;
  if (past > SETS - LEAST)
    return lines - past + SETS + LEAST;
  return past % SHARED ? lines : lines + LEAST;
}

size_t weft_code_stride(const weft_code *code, size_t bytes) {
  enum { LINE = 64, DEVICE = 256, MORE = 512 };
  const size_t whole = weft_code_parity_bytes(code, bytes);
  if (whole > SIZE_MAX - MORE)
    return SIZE_MAX;
  if (code->ctx->device)
    return (whole + DEVICE - 1) / DEVICE * DEVICE;
  return lines_apart((whole + LINE - 1) / LINE) * LINE;
}

void weft_code_parity_matrix(const weft_code *code, uint8_t *parity) {
  if (code->m)
    memcpy(parity, code->generator.parity, code->m * code->k);
}

// Whether shards exceed the size of any object, as their length may by a difference below zero, or
// evenly spaced ones overlap. Without a division, which would be noticeable for small stripes.
static bool shape_is_wrong(const weft_code *code, const weft_stripe *stripe) {
  const size_t stride = stripe->stride, bytes = stripe->bytes;
  if (bytes > PTRDIFF_MAX / 2 && weft_code_parity_bytes(code, bytes) > PTRDIFF_MAX)
    return true;
  if (stripe->shards || !bytes || code->k + code->m == 1)
    return false;
  return stride < bytes || stride > PTRDIFF_MAX / WEFT_MAX_SHARDS ||
         (weft_code_is_crs(code) && stride < weft_code_parity_bytes(code, bytes));
}

weft_status weft_code_check(const weft_code *code, const weft_stripe *stripes, size_t count,
                            weft_queue *queue) {
  if (!code || (count && !stripes) || (queue && queue->ctx != code->ctx))
    return WEFT_E_ARGUMENT;
  // No machine has memory for one unit of this size per shard, and sizes derived from it could
  // overflow.
  const bool endless = weft_code_unit_bytes(code) > PTRDIFF_MAX / WEFT_MAX_SHARDS;
  for (size_t i = 0; i < count; i++) {
    WEFT_TRY(weft_mem_check(stripes[i].mem, code->ctx->device != NULL));
    if ((!stripes[i].shards && !stripes[i].base && stripes[i].bytes) ||
        shape_is_wrong(code, &stripes[i]))
      return WEFT_E_ARGUMENT;
    if (endless && stripes[i].bytes)
      return WEFT_E_NOMEM;
  }
  return WEFT_OK;
}

weft_status weft_code_encode(weft_code *code, const weft_stripe *stripes, size_t count,
                             weft_queue *queue) {
  WEFT_TRY(weft_code_check(code, stripes, count, queue));
  return weft_plan_dispatch(code->encode, stripes, count, false, queue);
}
