// SPDX-License-Identifier: Apache-2.0
// Gibraltar's calls in terms of weft's. Its recovery takes intact buffers in any order, followed by
// the missing ones, which weft_plan_run_in_order supports directly: no copies, no indirection.
#include "integrations/gibraltar/weft_gibraltar.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "weft/weft.h"

enum { LINE = 64, PAGE = 4096 };

typedef struct coder {
  weft_ctx *ctx;
  weft_code *code;
  // Of the last recovery, or NULL: a rebuild recovers the same loss stripe after stripe, and making
  // a plan takes longer than recovering short buffers.
  weft_plan *plan;
  uint8_t ids[WEFT_MAX_SHARDS]; // the plan's: intact ones, then those to be made
  size_t made;
} coder;

static int code_of(weft_status status) {
  if (status == WEFT_OK)
    return GIB_SUC;
  return status == WEFT_E_NOMEM ? GIB_OOM : GIB_ERR;
}

static weft_status open_coder(coder *own, gib_context c) {
  const weft_code_options options = {
      .name = "vandermonde", .k = (size_t)c->k, .m = (size_t)c->m, .cached_plans = WEFT_NO_PLANS};
  WEFT_TRY(weft_ctx_new(&own->ctx, NULL));
  WEFT_TRY(weft_code_new(own->ctx, &options, &own->code));
  weft_code_parity_matrix(own->code, c->F);
  return WEFT_OK;
}

int gib_init(int n, int m, gib_context *out) {
  if (!out)
    return GIB_ERR;
  *out = NULL;
  if (n < 1 || m < 0 || n > (int)WEFT_MAX_SHARDS || m > (int)WEFT_MAX_SHARDS - n)
    return GIB_ERR;
  gib_context c = calloc(1, sizeof *c);
  if (!c)
    return GIB_OOM;
  c->k = n;
  c->m = m;
  c->F = malloc((size_t)n * (size_t)m + 1);
  coder *own = calloc(1, sizeof *own);
  c->acc_context = own;
  const int result = c->F && own ? code_of(open_coder(own, c)) : GIB_OOM;
  if (result == GIB_SUC)
    *out = c;
  else
    gib_destroy(c);
  return result;
}

int gib_destroy(gib_context c) {
  if (!c)
    return GIB_SUC;
  coder *own = c->acc_context;
  if (own) {
    weft_plan_free(own->plan);
    weft_code_free(own->code);
    weft_ctx_free(own->ctx);
  }
  free(own);
  free(c->F);
  free(c);
  return GIB_SUC;
}

int gib_alloc(void **buffers, int buf_size, int *ld, gib_context c) {
  if (!buffers || buf_size < 1 || buf_size > INT_MAX - 2 * LINE)
    return GIB_ERR;
  int stride = (buf_size + LINE - 1) / LINE * LINE;
  if (stride % PAGE == 0)
    stride += LINE;
  coder *own = c->acc_context;
  const int result =
      code_of(weft_alloc(own->ctx, WEFT_MEM_HOST, (size_t)(c->k + c->m) * (size_t)stride, buffers));
  if (result == GIB_SUC && ld)
    *ld = stride;
  return result;
}

int gib_free(void *buffers, gib_context c) {
  weft_free(((coder *)c->acc_context)->ctx, WEFT_MEM_HOST, buffers);
  return GIB_SUC;
}

static int check_sizes(const void *buffers, int buf_size, int work_size) {
  return buffers && work_size >= 0 && work_size <= buf_size;
}

int gib_generate_nc(void *buffers, int buf_size, int work_size, gib_context c) {
  if (!check_sizes(buffers, buf_size, work_size))
    return GIB_ERR;
  const weft_stripe stripe = {
      .base = buffers, .stride = (size_t)buf_size, .bytes = (size_t)work_size};
  return code_of(weft_code_encode(((coder *)c->acc_context)->code, &stripe, 1, NULL));
}

int gib_generate(void *buffers, int buf_size, gib_context c) {
  return gib_generate_nc(buffers, buf_size, buf_size, c);
}

// Has own->plan be the plan of these ids.
static weft_status plan_for(coder *own, const uint8_t *ids, size_t intact, size_t made) {
  if (own->plan && own->made == made && memcmp(own->ids, ids, intact + made) == 0)
    return WEFT_OK;
  weft_plan_free(own->plan);
  WEFT_TRY(weft_plan_new(own->code, ids, ids + intact, made, &own->plan)); // NULL after an error
  memcpy(own->ids, ids, intact + made);
  own->made = made;
  return WEFT_OK;
}

int gib_recover_nc(void *buffers, int buf_size, int work_size, int *buf_ids, int recover_last,
                   gib_context c) {
  if (!check_sizes(buffers, buf_size, work_size) || !buf_ids || recover_last < 0 ||
      recover_last > c->m)
    return GIB_ERR;
  uint8_t ids[WEFT_MAX_SHARDS];
  for (int i = 0; i < c->k + recover_last; i++) {
    if (buf_ids[i] < 0 || buf_ids[i] >= c->k + c->m)
      return GIB_ERR;
    ids[i] = (uint8_t)buf_ids[i];
  }
  const weft_stripe stripe = {
      .base = buffers, .stride = (size_t)buf_size, .bytes = (size_t)work_size};
  coder *own = c->acc_context;
  weft_status status = plan_for(own, ids, (size_t)c->k, (size_t)recover_last);
  if (status == WEFT_OK)
    status = weft_plan_run_in_order(own->plan, &stripe, 1, NULL);
  return code_of(status);
}

int gib_recover(void *buffers, int buf_size, int *buf_ids, int recover_last, gib_context c) {
  return gib_recover_nc(buffers, buf_size, buf_size, buf_ids, recover_last, c);
}
