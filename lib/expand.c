// SPDX-License-Identifier: Apache-2.0
#include "lib/expand.h"

#include <string.h>

enum {
  TOGETHER = 64, // rows that a thread takes at a time
  // Up to this many coefficients, a row needs a single block of keystream: nothing to parallelise.
  ALONE_BLOCKS = 32
};

typedef struct counted {
  const weft_segment_id *id;
  uint64_t first_seed;
  size_t count;
  uint8_t *out;
  size_t stride;
} counted;

static void count_up(void *user, size_t piece) {
  const counted *c = user;
  const size_t from = piece * TOGETHER, left = c->count - from;
  const size_t upto = from + (left < TOGETHER ? left : TOGETHER);
  for (size_t i = from; i < upto; i++)
    weft_coefficients_dense(c->id, c->first_seed + i, c->out + i * c->stride);
}

void weft_expand_counted(const weft_ctx *ctx, weft_pool *pool, const weft_segment_id *id,
                         uint64_t first_seed, size_t count, uint8_t *out, size_t stride) {
  const weft_expansion expansion = {.count = count,
                                    .k = id->blocks,
                                    .first = {id->stream, id->segment, first_seed},
                                    .out = out,
                                    .out_stride = stride};
  const weft_exec exec = weft_ctx_host_exec(ctx, pool);
  const bool alone = count == 1 && id->blocks <= ALONE_BLOCKS;
  if (!alone && ctx->host->expand(ctx->host, &exec, &expansion) == WEFT_OK)
    return;
  counted c = {id, first_seed, count, out, stride};
  weft_pool_run(pool, count / TOGETHER + (count % TOGETHER != 0), count_up, &c);
}

void weft_expand_packet(const weft_ctx *ctx, const weft_packet *packet, uint8_t *out) {
  if (packet->mode == WEFT_PACKET_DENSE)
    weft_expand_counted(ctx, NULL, &packet->id, packet->seed, 1, out, packet->id.blocks);
  else if (packet->mode == WEFT_PACKET_VECTOR)
    memmove(out, packet->coefficients, packet->id.blocks);
  else
    weft_coefficients_named(packet, out);
}
