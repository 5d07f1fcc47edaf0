// SPDX-License-Identifier: Apache-2.0
// Messages as records in a list of chunks, in the order they were appended, and a pool of chunks.
// Only one thread may write a log at a time.
#ifndef WEFT_SIM_CORE_LOG_H
#define WEFT_SIM_CORE_LOG_H

#include <stddef.h>
#include <stdint.h>

// What one actor sends to another. `bytes` bytes of content follow.
typedef struct weft_sim_message {
  int64_t time_us; // when it arrives
  uint32_t destination, source;
  uint32_t sequence;   // counts the source's messages
  uint32_t bytes;      // of the content
  uint32_t kind, word; // for the actors' own use
} weft_sim_message;

static inline const void *weft_sim_content(const weft_sim_message *m) { return m + 1; }

static inline size_t weft_sim_record_bytes(uint32_t content_bytes) {
  return sizeof(weft_sim_message) + ((size_t)content_bytes + 7) / 8 * 8;
}

typedef struct weft_sim_chunk {
  struct weft_sim_chunk *next;
  size_t used, capacity; // bytes of `data`
  uint64_t data[];
} weft_sim_chunk;

typedef struct weft_sim_chunks { // the pool
  weft_sim_chunk *spare;
  size_t capacity; // of an ordinary chunk
  uint64_t bytes;  // obtained from the system
} weft_sim_chunks;

typedef struct weft_sim_log {
  weft_sim_chunk *first, *last;
  size_t count; // records
} weft_sim_log;

// Returns room for `bytes` bytes (a multiple of 8) at the log's end; NULL: no memory.
void *weft_sim_log_append(weft_sim_log *log, weft_sim_chunks *pool, size_t bytes);
void weft_sim_log_clear(weft_sim_log *log, weft_sim_chunks *pool);
void weft_sim_chunks_free(weft_sim_chunks *pool);

#endif
