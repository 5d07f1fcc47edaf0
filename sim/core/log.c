// SPDX-License-Identifier: Apache-2.0
#include "sim/core/log.h"

#include <stdlib.h>

static weft_sim_chunk *new_chunk(weft_sim_chunks *pool, size_t bytes) {
  weft_sim_chunk *c = pool->spare;
  if (bytes <= pool->capacity && c) {
    pool->spare = c->next;
  } else {
    const size_t capacity = bytes > pool->capacity ? bytes : pool->capacity;
    c = malloc(sizeof *c + capacity);
    if (!c)
      return NULL;
    c->capacity = capacity;
    pool->bytes += sizeof *c + capacity;
  }
  c->next = NULL;
  c->used = 0;
  return c;
}

void *weft_sim_log_append(weft_sim_log *log, weft_sim_chunks *pool, size_t bytes) {
  weft_sim_chunk *last = log->last;
  if (!last || last->capacity - last->used < bytes) {
    weft_sim_chunk *c = new_chunk(pool, bytes);
    if (!c)
      return NULL;
    if (last)
      last->next = c;
    else
      log->first = c;
    log->last = last = c;
  }
  void *out = (uint8_t *)last->data + last->used;
  last->used += bytes;
  log->count++;
  return out;
}

void weft_sim_log_clear(weft_sim_log *log, weft_sim_chunks *pool) {
  for (weft_sim_chunk *c = log->first; c;) {
    weft_sim_chunk *next = c->next;
    if (c->capacity == pool->capacity) {
      c->next = pool->spare;
      pool->spare = c;
    } else { // made for one record
      pool->bytes -= sizeof *c + c->capacity;
      free(c);
    }
    c = next;
  }
  *log = (weft_sim_log){0};
}

void weft_sim_chunks_free(weft_sim_chunks *pool) {
  for (weft_sim_chunk *c = pool->spare; c;) {
    weft_sim_chunk *next = c->next;
    free(c);
    c = next;
  }
  pool->spare = NULL;
}
