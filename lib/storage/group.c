// SPDX-License-Identifier: Apache-2.0
// Runs one code on several contexts at once: GPUs share the stripes, their columns, or the rows of
// the matrix (Gibraltar, section 6, splits rows; its alternative is to split data).
#include <string.h>

#include "lib/storage/code.h"

struct weft_code_group {
  weft_ctx *ctx; // the first member's, whose allocator the group uses
  size_t members;
  weft_pool *pool; // one thread per member
  weft_code *codes[];
};

static bool alike(const weft_code *a, const weft_code *b) {
  return a->k == b->k && a->m == b->m && strcmp(a->name, b->name) == 0 &&
         (!a->m || memcmp(a->generator.parity, b->generator.parity, a->m * a->k) == 0);
}

// One call: member i works on part[i].count stripes from part[i].stripes on, for outputs of its
// own.
typedef struct shared_call {
  const weft_code_group *group;
  uint8_t lost[WEFT_MAX_SHARDS], outputs[WEFT_MAX_SHARDS];
  size_t lost_count, output_count;
  bool by_rows;
  bool encode; // all parity is lost: a member that computes all of it uses the encoding plan
  struct {
    const weft_stripe *stripes;
    size_t count;
    size_t first_output, outputs;
    weft_status status;
  } part[WEFT_MAX_GROUP];
} shared_call;

static size_t share(size_t all, size_t members, size_t i) { return all * i / members; }

weft_status weft_code_group_new(weft_code *const *codes, size_t count, weft_code_group **out) {
  if (!out)
    return WEFT_E_ARGUMENT;
  *out = NULL;
  if (!codes || count < 1 || count > WEFT_MAX_GROUP)
    return WEFT_E_ARGUMENT;
  for (size_t i = 0; i < count; i++)
    if (!codes[i] || !alike(codes[i], codes[0]))
      return WEFT_E_ARGUMENT;
  weft_ctx *ctx = codes[0]->ctx;
  weft_code_group *group =
      weft_ctx_take(ctx, sizeof *group + count * sizeof group->codes[0], _Alignof(weft_code_group));
  if (!group)
    return WEFT_E_NOMEM;
  *group = (weft_code_group){.ctx = ctx, .members = count};
  memcpy(group->codes, codes, count * sizeof group->codes[0]);
  const weft_status status = weft_pool_new(&group->pool, count, &ctx->allocator);
  if (status != WEFT_OK) {
    weft_ctx_give(ctx, group);
    return status;
  }
  *out = group;
  return WEFT_OK;
}

void weft_code_group_free(weft_code_group *group) {
  if (!group)
    return;
  weft_ctx *ctx = group->ctx;
  weft_pool_free(group->pool);
  weft_ctx_give(ctx, group);
}

static void work(void *user, size_t member) {
  shared_call *call = user;
  weft_code *code = call->group->codes[member];
  if (call->encode && call->part[member].outputs == code->m) {
    call->part[member].status =
        weft_code_encode(code, call->part[member].stripes, call->part[member].count, NULL);
    return;
  }
  const weft_erasures erasures = {.lost = call->lost,
                                  .lost_count = call->lost_count,
                                  .wanted = call->outputs + call->part[member].first_output,
                                  .wanted_count = call->part[member].outputs};
  call->part[member].status = weft_code_recover(code, &erasures, call->part[member].stripes,
                                                call->part[member].count, NULL);
}

// Returns the member's columns of a stripe, in units of `step` bytes; the last member gets the
// rest.
static weft_stripe columns_of(const weft_code *code, const weft_stripe *stripe, size_t member,
                              size_t members, uint8_t **shards) {
  const size_t unit = weft_code_unit_bytes(code), step = unit == 1 ? 256 : unit;
  const size_t steps = stripe->bytes / step;
  const size_t from = share(steps, members, member) * step;
  const size_t to =
      member + 1 == members ? stripe->bytes : share(steps, members, member + 1) * step;
  weft_stripe columns = *stripe;
  columns.bytes = to - from;
  if (!stripe->shards) { // still evenly spaced, which is faster to copy
    columns.base += from;
    return columns;
  }
  for (size_t i = 0; i < code->k + code->m; i++)
    shards[i] = stripe->shards[i] ? stripe->shards[i] + from : NULL;
  columns.shards = shards;
  return columns;
}

// Gives each member columns of every stripe, for fewer stripes than members.
static void cut_columns(shared_call *call, const weft_stripe *stripes, size_t count,
                        weft_stripe *cut, uint8_t **shards) {
  const weft_code_group *group = call->group;
  const weft_code *code = group->codes[0];
  for (size_t i = 0; i < group->members; i++) {
    call->part[i].stripes = cut;
    call->part[i].count = count;
    for (size_t s = 0; s < count; s++, shards += code->k + code->m)
      *cut++ = columns_of(code, &stripes[s], i, group->members, shards);
  }
}

static weft_status finish(shared_call *call) {
  weft_pool_run(call->group->pool, call->group->members, work, call);
  for (size_t i = 0; i < call->group->members; i++)
    WEFT_TRY(call->part[i].status);
  return WEFT_OK;
}

static weft_status run(shared_call *call, const weft_stripe *stripes, size_t count) {
  const weft_code_group *group = call->group;
  const weft_code *code = group->codes[0];
  const size_t members = group->members;
  for (size_t i = 0; i < members; i++) {
    const size_t from = share(count, members, i), outputs = call->output_count;
    const size_t first = call->by_rows ? share(outputs, members, i) : 0;
    call->part[i].first_output = first;
    call->part[i].outputs = (call->by_rows ? share(outputs, members, i + 1) : outputs) - first;
    call->part[i].stripes = call->by_rows ? stripes : stripes + from;
    call->part[i].count = call->by_rows ? count : share(count, members, i + 1) - from;
  }
  if (call->by_rows || count >= members)
    return finish(call);
  const size_t cuts = members * count, all = code->k + code->m;
  weft_stripe *cut = weft_ctx_take(group->ctx, cuts * (sizeof *cut + all * sizeof(uint8_t *)),
                                   _Alignof(weft_stripe));
  if (!cut)
    return WEFT_E_NOMEM;
  cut_columns(call, stripes, count, cut, (uint8_t **)(void *)(cut + cuts));
  const weft_status status = finish(call);
  weft_ctx_give(group->ctx, cut);
  return status;
}

static weft_status check(const weft_code_group *group, weft_code_split split,
                         const weft_stripe *stripes, size_t count) {
  if (!group || (split != WEFT_CODE_SPLIT_STRIPES && split != WEFT_CODE_SPLIT_ROWS))
    return WEFT_E_ARGUMENT;
  for (size_t i = 0; i < count && stripes; i++)
    if (stripes[i].mem == WEFT_MEM_DEVICE)
      return WEFT_E_UNSUPPORTED;
  return weft_code_check(group->codes[0], stripes, count, NULL);
}

weft_status weft_code_group_encode(weft_code_group *group, weft_code_split split,
                                   const weft_stripe *stripes, size_t count) {
  WEFT_TRY(check(group, split, stripes, count));
  shared_call call = {.group = group, .by_rows = split == WEFT_CODE_SPLIT_ROWS, .encode = true};
  const weft_code *code = group->codes[0];
  for (size_t i = 0; i < code->m; i++)
    call.lost[i] = call.outputs[i] = (uint8_t)(code->k + i);
  call.lost_count = call.output_count = code->m;
  return run(&call, stripes, count);
}

weft_status weft_code_group_recover(weft_code_group *group, weft_code_split split,
                                    const weft_erasures *erasures, const weft_stripe *stripes,
                                    size_t count) {
  WEFT_TRY(check(group, split, stripes, count));
  const weft_code *code = group->codes[0];
  const size_t all = code->k + code->m;
  if (!erasures || erasures->lost_count > all || (erasures->lost_count && !erasures->lost) ||
      (erasures->wanted && erasures->wanted_count > all))
    return WEFT_E_ARGUMENT;
  if (split == WEFT_CODE_SPLIT_ROWS) // a member sees only some rows; the others would have started
    WEFT_TRY(weft_code_check_erasures(code, erasures));
  shared_call call = {.group = group, .by_rows = split == WEFT_CODE_SPLIT_ROWS};
  const uint8_t *wanted = erasures->wanted ? erasures->wanted : erasures->lost;
  call.lost_count = erasures->lost_count;
  call.output_count = erasures->wanted ? erasures->wanted_count : erasures->lost_count;
  if (call.lost_count)
    memcpy(call.lost, erasures->lost, call.lost_count);
  if (call.output_count)
    memcpy(call.outputs, wanted, call.output_count);
  return run(&call, stripes, count);
}
