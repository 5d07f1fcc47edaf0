// SPDX-License-Identifier: Apache-2.0
// Calls on many decoders at once: requests are grouped by decoder, and each thread of the context
// takes decoders of its own. What arrives for decoders on a device: decoder_land.c.
#include <string.h>

#include "lib/batch.h"
#include "lib/decoder.h"
#include "lib/decoder_land.h"

enum { LINE = 64 };

static void chain(weft_by_decoder *by, uint32_t item, weft_decoder *decoder) {
  by->next[item] = WEFT_NO_ITEM;
  if (decoder->first_item == WEFT_NO_ITEM) {
    decoder->first_item = item;
    decoder->item_count = 0;
    by->decoders[by->count++] = decoder;
  } else {
    by->next[decoder->last_item] = item;
  }
  decoder->last_item = item;
  decoder->item_count++;
}

static void unchain(const weft_by_decoder *by) {
  for (size_t i = 0; i < by->count; i++)
    by->decoders[i]->first_item = WEFT_NO_ITEM;
}

// --- adding ---

static bool on_device(const weft_adding *a) {
  return weft_decoder_on_device(a->arrivals[0].decoder);
}

static weft_status check_arrivals(const weft_arrival *arrivals, size_t count, weft_mem mem) {
  if (!arrivals || count >= WEFT_NO_ITEM)
    return WEFT_E_ARGUMENT;
  const weft_decoder *first = arrivals[0].decoder;
  for (size_t i = 0; i < count; i++) {
    const weft_decoder *decoder = arrivals[i].decoder;
    if (!decoder || !arrivals[i].packet.payload || decoder->ctx != first->ctx ||
        decoder->mem != first->mem)
      return WEFT_E_ARGUMENT;
  }
  return weft_mem_check(mem, weft_decoder_on_device(first));
}

// --- in host memory ---

static void add_on_host(void *user, size_t index) {
  const weft_adding *a = user;
  weft_decoder *decoder = a->by.decoders[index];
  for (uint32_t i = decoder->first_item; i != WEFT_NO_ITEM; i = a->by.next[i])
    a->arrivals[i].status = weft_decoder_add(decoder, &a->arrivals[i].packet);
}

static void add_all_on_host(weft_adding *a, weft_pool *pool) {
  bool eager = false; // eager decoders' reductions use the pool themselves
  for (size_t i = 0; i < a->by.count; i++)
    eager = eager || a->by.decoders[i]->eager;
  weft_pool_run(eager ? NULL : pool, a->by.count, add_on_host, a);
}

// --- on a device ---

// Undoes the elimination after a failure, since payloads may not have reached their slots.
static void take_back(const weft_adding *a) {
  for (size_t i = 0; i < a->by.count; i++) {
    if (a->begun)
      weft_decoder_drop(a->by.decoders[i]);
    a->by.decoders[i]->zeroed = false;
  }
}

static weft_status add_all_on_device(weft_adding *a, weft_ctx *ctx, weft_queue *queue,
                                     size_t most_bytes) {
  weft_call call;
  WEFT_TRY(weft_call_begin(ctx, queue, &call));
  const weft_status status = weft_call_end(ctx, &call, weft_decoders_land(a, &call, most_bytes));
  if (status != WEFT_OK)
    take_back(a);
  return status;
}

static weft_status add_all(weft_arrival *arrivals, size_t count, weft_mem mem, weft_ctx *ctx,
                           weft_queue *queue) {
  weft_adding a = {.arrivals = arrivals, .count = count, .mem = mem};
  size_t most_bytes = 0;
  for (size_t i = 0; on_device(&a) && i < count; i++) {
    const weft_segment_id *id = &arrivals[i].decoder->id;
    a.most_blocks = id->blocks > a.most_blocks ? id->blocks : a.most_blocks;
    most_bytes = id->block_bytes > most_bytes ? id->block_bytes : most_bytes;
  }
  const size_t each =
      sizeof *a.by.decoders + sizeof *a.landings + sizeof *a.first_landing + sizeof *a.by.next;
  if (count > SIZE_MAX / (each + a.most_blocks + most_bytes + 64))
    return WEFT_E_NOMEM;
  uint8_t *memory = weft_ctx_take(ctx, count * each, LINE);
  if (!memory)
    return WEFT_E_NOMEM;
  a.by.decoders = (weft_decoder **)(void *)memory;
  a.landings = (weft_landing *)(void *)(a.by.decoders + count);
  a.first_landing = (uint32_t *)(a.landings + count);
  a.by.next = a.first_landing + count;
  for (uint32_t i = 0; i < count; i++)
    chain(&a.by, i, arrivals[i].decoder);
  for (uint32_t d = 0, landings = 0; d < a.by.count; d++) {
    a.first_landing[d] = landings;
    landings += a.by.decoders[d]->item_count;
  }
  weft_status status = WEFT_OK;
  if (on_device(&a))
    status = add_all_on_device(&a, ctx, queue, most_bytes);
  else
    add_all_on_host(&a, ctx->pool);
  unchain(&a.by);
  weft_ctx_give(ctx, memory);
  return status;
}

weft_status weft_decoders_add(weft_arrival *arrivals, size_t count, weft_mem mem,
                              weft_queue *queue) {
  if (count == 0)
    return WEFT_OK;
  WEFT_TRY(check_arrivals(arrivals, count, mem));
  weft_ctx *ctx = arrivals[0].decoder->ctx;
  if (queue && queue->ctx != ctx)
    return WEFT_E_ARGUMENT;
  const weft_status status = add_all(arrivals, count, mem, ctx, queue);
  for (size_t i = 0; status != WEFT_OK && i < count; i++)
    arrivals[i].status = status;
  return status;
}

// --- recoding and reading in host memory ---

// Batches to recode, or readings.
typedef struct host_call {
  weft_decoder *const *decoders;
  const weft_batch *batches;
  weft_reading *readings;
  size_t count;
  weft_by_decoder by;
  weft_status *status; // (count)
} host_call;

static weft_decoder *decoder_of(const host_call *c, size_t i) {
  return c->readings ? c->readings[i].decoder : c->decoders[i];
}

static bool is_wanted(const host_call *c, size_t i) {
  return c->readings ? c->readings[i].status == WEFT_OK : c->batches[i].count > 0;
}

static weft_status read_on_host(const weft_reading *reading, weft_pool *pool) {
  weft_decoder *decoder = reading->decoder;
  for (size_t i = 0; i < reading->count; i++) {
    WEFT_TRY(weft_decoder_settle(decoder, reading->first + i, pool));
    memcpy(reading->out + i * reading->out_stride, weft_decoder_slot(decoder, reading->first + i),
           decoder->id.block_bytes);
  }
  return WEFT_OK;
}

static weft_status do_item(const host_call *c, size_t i, weft_pool *pool) {
  return c->readings ? read_on_host(&c->readings[i], pool)
                     : weft_decoder_recode_on_host(c->decoders[i], &c->batches[i], pool);
}

// Processes one item after the other, each with all threads. Items after an error are skipped.
static weft_status in_turn(const host_call *c, weft_pool *pool) {
  weft_status status = WEFT_OK;
  for (size_t i = 0; i < c->count; i++) {
    if (!is_wanted(c, i))
      continue;
    if (status == WEFT_OK)
      status = do_item(c, i, pool);
    if (c->readings)
      c->readings[i].status = status;
  }
  return status;
}

static void do_items_of(void *user, size_t index) {
  const host_call *c = user;
  weft_status status = WEFT_OK;
  for (uint32_t i = c->by.decoders[index]->first_item; i != WEFT_NO_ITEM; i = c->by.next[i]) {
    if (status == WEFT_OK)
      status = do_item(c, i, NULL);
    c->status[i] = status;
  }
}

// Processes decoders in parallel, one thread each.
static weft_status at_once(host_call *c, weft_pool *pool) {
  weft_status status = WEFT_OK;
  weft_pool_run(pool, c->by.count, do_items_of, c);
  for (size_t i = 0; i < c->count; i++) {
    if (!is_wanted(c, i))
      continue;
    if (status == WEFT_OK)
      status = c->status[i];
    if (c->readings)
      c->readings[i].status = c->status[i];
  }
  return status;
}

// Estimates the work of an item. `reduced`: an earlier item has already multiplied the payloads.
static size_t macs_of(const host_call *c, size_t i, bool reduced) {
  enum { OF_A_COPIED_BYTE = 8 };
  const weft_decoder *decoder = decoder_of(c, i);
  const size_t n = decoder->id.blocks, k = decoder->id.block_bytes;
  if (!c->readings)
    return c->batches[i].count * decoder->rank * (n + k);
  const size_t rows = reduced ? 0 : decoder->rank - decoder->reduced;
  return (rows * decoder->rank + c->readings[i].count * OF_A_COPIED_BYTE) * k;
}

static bool has_much_to_do(const host_call *c) {
  size_t macs = 0;
  for (size_t i = 0; i < c->count && macs < WEFT_SHARED_MACS; i++)
    macs += is_wanted(c, i) ? macs_of(c, i, false) : 0;
  return macs >= WEFT_SHARED_MACS;
}

// Whether the work is even enough for a thread per decoder. If one decoder kept its thread busy
// while the others had nothing left to do, its products should be shared instead.
static bool is_even(const host_call *c, size_t threads) {
  enum { PARTS = 4 };
  size_t all = 0, largest = 0;
  for (size_t d = 0; d < c->by.count; d++) {
    const uint32_t first = c->by.decoders[d]->first_item;
    size_t macs = 0;
    for (uint32_t i = first; i != WEFT_NO_ITEM; i = c->by.next[i])
      macs += macs_of(c, i, i != first);
    all += macs;
    largest = macs > largest ? macs : largest;
  }
  return c->by.count >= threads &&
         (largest < WEFT_SHARED_MACS || largest <= all / (PARTS * threads));
}

static weft_status run_on_host(host_call *c, weft_ctx *ctx) {
  const size_t threads = weft_pool_threads(ctx->pool);
  const size_t each = sizeof *c->by.decoders + sizeof *c->by.next + sizeof *c->status;
  if (threads == 1 || c->count < threads || c->count >= WEFT_NO_ITEM || !has_much_to_do(c))
    return in_turn(c, ctx->pool);
  c->by.decoders = weft_ctx_take(ctx, c->count * each, LINE);
  if (!c->by.decoders) // only needed for sharing
    return in_turn(c, ctx->pool);
  c->by.next = (uint32_t *)(c->by.decoders + c->count);
  c->status = (weft_status *)(c->by.next + c->count);
  for (uint32_t i = 0; i < c->count; i++)
    if (is_wanted(c, i))
      chain(&c->by, i, decoder_of(c, i));
  const weft_status status = is_even(c, threads) ? at_once(c, ctx->pool) : in_turn(c, ctx->pool);
  unchain(&c->by);
  weft_ctx_give(ctx, c->by.decoders);
  return status;
}

// --- recoding ---

static weft_status check_batch(const weft_decoder *decoder, const weft_decoder *first,
                               const weft_batch *batch) {
  if (!decoder || decoder->ctx != first->ctx || decoder->mem != first->mem)
    return WEFT_E_ARGUMENT;
  if (batch->count == 0)
    return WEFT_OK;
  const bool on_device = weft_decoder_on_device(decoder);
  WEFT_TRY(weft_batch_check_payloads(batch, &decoder->id, on_device));
  return weft_batch_check_coefficients(batch, &decoder->id, on_device);
}

weft_status weft_decoders_recode(weft_decoder *const *decoders, const weft_batch *batches,
                                 size_t count, weft_queue *queue) {
  if (count == 0)
    return WEFT_OK;
  if (!decoders || !batches || !decoders[0])
    return WEFT_E_ARGUMENT;
  for (size_t i = 0; i < count; i++)
    WEFT_TRY(check_batch(decoders[i], decoders[0], &batches[i]));
  weft_ctx *ctx = decoders[0]->ctx;
  if (queue && queue->ctx != ctx)
    return WEFT_E_ARGUMENT;
  for (size_t i = 0; i < count; i++) // report errors before missing packets
    if (batches[i].count > 0 && decoders[i]->rank == 0)
      return WEFT_PENDING;
  if (!weft_decoder_on_device(decoders[0]))
    return run_on_host(&(host_call){.decoders = decoders, .batches = batches, .count = count}, ctx);
  weft_call call;
  WEFT_TRY(weft_call_begin(ctx, queue, &call));
  return weft_call_end(ctx, &call, weft_decoders_recode_on_device(&call, decoders, batches, count));
}

// --- reading ---

static weft_status check_reading(const weft_reading *reading, const weft_decoder *first) {
  const weft_decoder *decoder = reading->decoder;
  if (!decoder || decoder->ctx != first->ctx || decoder->mem != first->mem)
    return WEFT_E_ARGUMENT;
  const size_t n = decoder->id.blocks;
  if (reading->first > n || reading->count > n - reading->first ||
      (reading->count > 0 && !reading->out) ||
      !weft_stride_valid(reading->count, reading->out_stride, decoder->id.block_bytes))
    return WEFT_E_ARGUMENT;
  return weft_mem_check(reading->mem, weft_decoder_on_device(decoder));
}

static weft_status check_readings(const weft_reading *readings, size_t count,
                                  const weft_queue *queue) {
  const weft_decoder *first = readings[0].decoder;
  if (!first || (queue && queue->ctx != first->ctx))
    return WEFT_E_ARGUMENT;
  for (size_t i = 0; i < count; i++)
    WEFT_TRY(check_reading(&readings[i], first));
  return WEFT_OK;
}

static bool all_known(const weft_reading *reading) {
  bool known = true;
  for (size_t i = 0; known && i < reading->count; i++)
    known = weft_decoder_has_block(reading->decoder, reading->first + i);
  return known;
}

weft_status weft_decoders_read(weft_reading *readings, size_t count, weft_queue *queue) {
  if (count == 0)
    return WEFT_OK;
  if (!readings)
    return WEFT_E_ARGUMENT;
  weft_status status = check_readings(readings, count, queue);
  for (size_t i = 0; i < count; i++)
    readings[i].status = status != WEFT_OK         ? status
                         : all_known(&readings[i]) ? WEFT_OK
                                                   : WEFT_PENDING;
  WEFT_TRY(status);
  weft_ctx *ctx = readings[0].decoder->ctx;
  if (!weft_decoder_on_device(readings[0].decoder))
    return run_on_host(&(host_call){.readings = readings, .count = count}, ctx);
  weft_call call;
  status = weft_call_begin(ctx, queue, &call);
  if (status == WEFT_OK)
    status = weft_call_end(ctx, &call, weft_decoders_read_on_device(&call, readings, count));
  for (size_t i = 0; i < count; i++)
    if (readings[i].status == WEFT_OK)
      readings[i].status = status;
  return status;
}
