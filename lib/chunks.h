// SPDX-License-Identifier: Apache-2.0
// Pinned memory through which ordinary memory reaches a device and returns. Copies from or to
// ordinary memory would make the caller wait; those from and to these chunks do not. A queue has
// chunks of WEFT_STAGED_MOST bytes at most, unless those being filled, or one for a single longer
// row, are more: a call that needs more waits for the oldest ones, delivers what they hold, and
// continues with their memory.
#ifndef WEFT_LIB_CHUNKS_H
#define WEFT_LIB_CHUNKS_H

#include "lib/ctx.h"
#include "lib/rows_copy.h"

enum { WEFT_STAGE_GATHERINGS = 32 };

// The chunk that is being filled for one stream.
typedef struct weft_stage {
  weft_call *call;
  void *stream;
  size_t done, left;        // bytes in chunks, and still expected
  bool tapers;              // its first and its last chunks are smaller
  struct weft_chunk *chunk; // NULL: none yet
  // A copy to the device, or from it, that is not enqueued yet, as it may go on.
  uint8_t *to;
  const uint8_t *from;
  bool leaves;    // the device
  size_t pending; // bytes
  // Rows of ordinary memory that are not gathered in the chunk yet, so that all of the pool's
  // threads copy them together; linked, without gaps.
  weft_gathering gatherings[WEFT_STAGE_GATHERINGS];
  size_t gathering_count;
} weft_stage;

// Starts staging about `bytes` bytes for the stream; each use below counts WEFT_LINE bytes more.
void weft_stage_open(weft_stage *stage, weft_call *call, void *stream, size_t bytes);
// The same for copies that nothing but the caller's copies of the chunks overlaps with: the first
// and the last are smaller, so that the bus and the caller wait less for each other.
void weft_stage_open_tapered(weft_stage *stage, weft_call *call, void *stream, size_t bytes);
// Once the stream's work on what was staged is enqueued. Needed also after a failure.
void weft_stage_close(weft_stage *stage);

// Copies rows of ordinary memory to dense rows on the device. Calls whose rows on the device follow
// each other make one copy, enqueued by weft_stage_flush at the latest; the rows (and a list of
// pointers to them) are needed until then.
weft_status weft_stage_in(weft_stage *stage, void *to, const weft_const_rows *from, size_t rows,
                          size_t row_bytes);
weft_status weft_stage_flush(weft_stage *stage);
// Copies dense rows on the device to ordinary memory, likewise. They arrive while a later call
// needs memory to stage, or when the queue is found idle.
weft_status weft_stage_out(weft_stage *stage, const weft_rows *to, const void *from, size_t rows,
                           size_t row_bytes);

// Provides pinned memory in one piece, to be filled in, for the stream's work until the stage is
// closed. All that a stage does in this way and the next two must fit into one chunk, and its size
// be stated when the stage is opened.
weft_status weft_stage_take(weft_stage *stage, size_t bytes, uint8_t **out);
// The same, with a copy of rows of ordinary memory in it, dense, once weft_stage_flush has
// returned, until which the rows are needed.
weft_status weft_stage_memory(weft_stage *stage, const weft_const_rows *from, size_t rows,
                              size_t row_bytes, uint8_t **out);
// The same for dense rows that the stream's work makes there, and that arrive in `to` as above.
weft_status weft_stage_results(weft_stage *stage, const weft_rows *to, size_t rows,
                               size_t row_bytes, uint8_t **out);
// Drops all results that the stage was to deliver: where the work that makes them is not enqueued,
// what lies there is of earlier calls. Before the stage is closed.
void weft_stage_drop(weft_stage *stage);

// Waits for all chunks with results but the last, and delivers those while later work goes on,
// until the queue's work has failed.
void weft_chunks_wait(weft_queue *queue);
// Delivers what all chunks of an idle queue hold, unless its work has failed, and frees them.
void weft_chunks_finish(weft_queue *queue, weft_status status);

#endif
