// SPDX-License-Identifier: Apache-2.0
// Batch decoding on a device: one batch of inversions and one launch of products for all segments
// of one n. Payloads in device memory are multiplied in place. Payloads in host memory cross the
// bus in pieces, on alternating streams: while one piece arrives, another is multiplied and a third
// leaves.
#include "lib/chunks.h"
#include "lib/decode_batch.h"

// Bytes per piece: long enough to hide inverting and launching behind its copies. The first and
// last copies overlap with nothing, so the first and last pieces are small.
enum {
  PIECES = 32, // approximate number
  PIECE_LEAST = 4 << 20,
  PIECE_MOST = 16 << 20,
  PIECE_FIRST = 2 << 20,
  PIECE_SHARE = 3 // a piece is at most this fraction (1 / PIECE_SHARE) of the rest
};

// State of a run of jobs of equal n, until the queue has passed it.
typedef struct device_batch {
  weft_deferred deferred;
  weft_decode_job *jobs;
  size_t count;
  void *flags; // pinned: (count), 1 where singular
} device_batch;

static void finish_device(weft_deferred *self, weft_ctx *ctx, weft_status status) {
  device_batch *batch = (device_batch *)self;
  for (size_t i = 0; i < batch->count; i++)
    if (batch->jobs[i].status == WEFT_PENDING)
      batch->jobs[i].status = status != WEFT_OK                    ? status
                              : ((const uint8_t *)batch->flags)[i] ? WEFT_E_SINGULAR
                                                                   : WEFT_OK;
  weft_device_free(ctx->device, WEFT_MEM_PINNED, batch->flags);
  weft_ctx_give(ctx, batch);
}

// Jobs of a batch that are decoded together, on call->exec.stream.
typedef struct piece {
  weft_ctx *ctx;
  weft_call *call;
  weft_decode_job *jobs;
  size_t count;
  weft_stage *stage; // for ordinary memory
  // Device memory, dense.
  uint8_t *matrices; // (count, n, n)
  uint8_t *singular; // (count)
  uint8_t *in, *out; // (n, k) of each job; NULL where payloads are in device memory
} piece;

static size_t payload_bytes(const weft_decode_job *job) { return job->blocks * job->block_bytes; }

// --- coefficients ---

// Whether the matrices form one dense array that the device can access.
static bool matrices_follow(const piece *p) {
  const weft_decode_job *first = &p->jobs[0];
  const size_t n = first->blocks;
  for (size_t i = 0; i < p->count; i++) {
    const weft_decode_job *job = &p->jobs[i];
    if (job->coefficients_mem == WEFT_MEM_HOST ||
        job->coefficients_mem != first->coefficients_mem ||
        (n > 1 && job->coefficients_stride != n) ||
        job->coefficients != first->coefficients + i * n * n)
      return false;
  }
  return true;
}

// Makes dense copies of the matrices on the device.
static weft_status gather_matrices(const piece *p) {
  const size_t n = p->jobs[0].blocks, matrix_bytes = n * n;
  if (matrices_follow(p))
    return weft_device_copy(p->ctx->device, p->matrices, WEFT_MEM_DEVICE, p->jobs[0].coefficients,
                            p->jobs[0].coefficients_mem, p->count * matrix_bytes,
                            p->call->exec.stream);
  for (size_t i = 0; i < p->count; i++) {
    const weft_decode_job *job = &p->jobs[i];
    const size_t stride = n > 1 ? job->coefficients_stride : n;
    uint8_t *to = p->matrices + i * matrix_bytes;
    const weft_const_rows from = {.base = job->coefficients, .stride = stride};
    if (job->coefficients_mem == WEFT_MEM_DEVICE)
      WEFT_TRY(weft_device_copy_rows(p->ctx->device, to, n, WEFT_MEM_DEVICE, job->coefficients,
                                     stride, WEFT_MEM_DEVICE, n, n, p->call->exec.stream));
    else
      WEFT_TRY(weft_stage_in(p->stage, to, &from, n, n));
  }
  return WEFT_OK;
}

// --- payloads ---

// Uploads rows at separate addresses in pinned memory with one launch.
static weft_status upload_rows(const piece *p, const weft_decode_job *job, uint8_t *to) {
  weft_kept *kept;
  WEFT_TRY(weft_call_keep(p->ctx, p->call, job->blocks * sizeof(weft_device_piece), &kept));
  weft_device_piece *pieces = (weft_device_piece *)(void *)kept->bytes;
  for (size_t i = 0; i < job->blocks; i++)
    pieces[i] =
        (weft_device_piece){to + i * job->block_bytes, job->payload_rows[i], job->block_bytes};
  return weft_device_copy_pieces(&p->call->exec, pieces, job->blocks);
}

static weft_status upload_staged(const piece *p, const weft_decode_job *job, uint8_t *to) {
  const weft_const_rows from = {
      .base = job->payload, .stride = job->payload_stride, .ptr = job->payload_rows};
  return weft_stage_in(p->stage, to, &from, job->blocks, job->block_bytes);
}

static bool is_dense(const weft_decode_job *job, const uint8_t *base, size_t stride) {
  return base && job->mem == WEFT_MEM_PINNED && (job->blocks == 1 || stride == job->block_bytes);
}

// Returns how many jobs, from `first` on, have adjacent payloads, or results.
static size_t run_of(const piece *p, size_t first, bool results, size_t *bytes) {
  size_t run = 0;
  const uint8_t *next = NULL;
  *bytes = 0;
  for (; first + run < p->count; run++) {
    const weft_decode_job *job = &p->jobs[first + run];
    const uint8_t *base = results ? job->out : job->payload_rows ? NULL : job->payload;
    if (!is_dense(job, base, results ? job->out_stride : job->payload_stride) ||
        (run > 0 && base != next))
      break;
    next = base + payload_bytes(job);
    *bytes += payload_bytes(job);
  }
  return run;
}

static weft_status upload(const piece *p) {
  uint8_t *to = p->in;
  for (size_t i = 0; i < p->count;) {
    const weft_decode_job *job = &p->jobs[i];
    size_t bytes;
    const size_t run = run_of(p, i, false, &bytes);
    if (run > 0) {
      WEFT_TRY(weft_device_copy(p->ctx->device, to, WEFT_MEM_DEVICE, job->payload, WEFT_MEM_PINNED,
                                bytes, p->call->exec.stream));
      to += bytes;
      i += run;
      continue;
    }
    if (job->mem == WEFT_MEM_HOST)
      WEFT_TRY(upload_staged(p, job, to));
    else if (job->payload_rows)
      WEFT_TRY(upload_rows(p, job, to));
    else
      WEFT_TRY(weft_device_copy_rows(p->ctx->device, to, job->block_bytes, WEFT_MEM_DEVICE,
                                     job->payload, job->payload_stride, WEFT_MEM_PINNED,
                                     job->block_bytes, job->blocks, p->call->exec.stream));
    to += payload_bytes(job);
    i++;
  }
  return WEFT_OK;
}

static weft_status download_staged(const piece *p, const weft_decode_job *job,
                                   const uint8_t *from) {
  const weft_rows to = {.base = job->out, .stride = job->out_stride};
  return weft_stage_out(p->stage, &to, from, job->blocks, job->block_bytes);
}

static weft_status download(const piece *p) {
  const uint8_t *from = p->out;
  void *stream = p->call->exec.stream;
  for (size_t i = 0; i < p->count;) {
    const weft_decode_job *job = &p->jobs[i];
    size_t bytes;
    const size_t run = run_of(p, i, true, &bytes);
    if (run > 0) {
      WEFT_TRY(weft_device_copy(p->ctx->device, job->out, WEFT_MEM_PINNED, from, WEFT_MEM_DEVICE,
                                bytes, stream));
      from += bytes;
      i += run;
      continue;
    }
    if (job->mem == WEFT_MEM_HOST)
      WEFT_TRY(download_staged(p, job, from));
    else
      WEFT_TRY(weft_device_copy_rows(p->ctx->device, job->out,
                                     job->blocks > 1 ? job->out_stride : job->block_bytes,
                                     WEFT_MEM_PINNED, from, job->block_bytes, WEFT_MEM_DEVICE,
                                     job->block_bytes, job->blocks, stream));
    from += payload_bytes(job);
    i++;
  }
  return WEFT_OK;
}

// --- a piece ---

static weft_status multiply(const piece *p) {
  weft_gemm *products = weft_ctx_take(p->ctx, p->count * sizeof *products, _Alignof(weft_gemm));
  if (!products)
    return WEFT_E_NOMEM;
  const size_t n = p->jobs[0].blocks;
  size_t at = 0;
  for (size_t i = 0; i < p->count; i++) {
    const weft_decode_job *job = &p->jobs[i];
    products[i] = weft_decode_product(job, p->matrices + i * n * n, WEFT_MEM_DEVICE);
    if (p->in) {
      products[i].x =
          (weft_const_rows){.base = p->in + at, .stride = job->block_bytes, .mem = WEFT_MEM_DEVICE};
      products[i].y =
          (weft_rows){.base = p->out + at, .stride = job->block_bytes, .mem = WEFT_MEM_DEVICE};
    }
    at += payload_bytes(job);
  }
  const weft_status status = p->ctx->row->gemm(p->ctx->row, &p->call->exec, products, p->count);
  weft_ctx_give(p->ctx, products);
  return status;
}

static weft_status decode_piece(const piece *p) {
  if (p->in)
    WEFT_TRY(upload(p));
  WEFT_TRY(gather_matrices(p));
  WEFT_TRY(weft_stage_flush(p->stage));
  const weft_invert invert = {.count = p->count,
                              .k = p->jobs[0].blocks,
                              .in = p->matrices,
                              .out = p->matrices,
                              .singular = p->singular,
                              .mem = WEFT_MEM_DEVICE};
  WEFT_TRY(p->ctx->row->invert(p->ctx->row, &p->call->exec, &invert));
  WEFT_TRY(multiply(p));
  if (p->in)
    WEFT_TRY(download(p));
  return weft_stage_flush(p->stage);
}

// Returns how much a piece stages at most.
static size_t staged_bytes(const piece *p) {
  const bool matrices = !matrices_follow(p);
  size_t bytes = 0;
  for (size_t i = 0; i < p->count; i++) {
    const weft_decode_job *job = &p->jobs[i];
    if (job->mem == WEFT_MEM_HOST)
      bytes += 2 * (payload_bytes(job) + WEFT_LINE);
    if (matrices && job->coefficients_mem != WEFT_MEM_DEVICE)
      bytes += job->blocks * job->blocks + WEFT_LINE;
  }
  return bytes;
}

// Enqueues a piece; its device memory is allocated and freed in stream order. `bytes`: of payloads
// that must be uploaded.
static weft_status enqueue_piece(piece p, size_t bytes) {
  enum { ALIGN = 64 };
  const size_t n = p.jobs[0].blocks;
  const size_t payloads = (bytes + ALIGN - 1) / ALIGN * ALIGN;
  void *scratch;
  WEFT_TRY(weft_device_scratch(&p.call->exec, 2 * payloads + p.count * n * n, &scratch));
  p.in = bytes > 0 ? scratch : NULL;
  p.out = (uint8_t *)scratch + payloads;
  p.matrices = p.out + payloads;
  weft_stage stage;
  weft_stage_open(&stage, p.call, p.call->exec.stream, staged_bytes(&p));
  p.stage = &stage;
  const weft_status status = decode_piece(&p);
  if (status != WEFT_OK)
    weft_stage_drop(&stage);
  weft_stage_close(&stage);
  weft_device_scratch_free(&p.call->exec, scratch);
  return status;
}

// --- a sequence of pieces ---

// Returns the desired size of the next piece.
static size_t next_piece(size_t done, size_t left, size_t all) {
  size_t bytes = all / PIECES > PIECE_LEAST ? all / PIECES : PIECE_LEAST;
  bytes = bytes < PIECE_MOST ? bytes : PIECE_MOST;
  if (bytes > done + PIECE_FIRST) // doubles up to that size
    bytes = done + PIECE_FIRST;
  if (bytes > left / PIECE_SHARE)
    bytes = left / PIECE_SHARE;
  return bytes > PIECE_FIRST ? bytes : PIECE_FIRST;
}

static weft_status take_turns(weft_ctx *ctx, const device_batch *batch, weft_call *call,
                              uint8_t *singular, size_t all) {
  size_t some, turn = 0, done = 0;
  for (size_t first = 0; first < batch->count; first += some, turn++) {
    weft_call beside = *call; // the same queue, another stream
    const size_t wanted = next_piece(done, all - done, all);
    size_t bytes = payload_bytes(&batch->jobs[first]);
    for (some = 1; first + some < batch->count; some++) {
      const size_t more = payload_bytes(&batch->jobs[first + some]);
      if (bytes + more > wanted)
        break;
      bytes += more;
    }
    done += bytes;
    WEFT_TRY(weft_queue_side(call->queue, turn % WEFT_SIDE_STREAMS, &beside.exec.stream));
    if (turn < WEFT_SIDE_STREAMS)
      WEFT_TRY(weft_device_stream_order(ctx->device, beside.exec.stream, call->exec.stream));
    const piece p = {.ctx = ctx,
                     .call = &beside,
                     .jobs = batch->jobs + first,
                     .count = some,
                     .singular = singular + first};
    WEFT_TRY(enqueue_piece(p, bytes));
  }
  return WEFT_OK;
}

// Makes waiting for the queue wait for its side streams too.
static weft_status join(weft_ctx *ctx, const weft_call *call) {
  weft_status status = WEFT_OK;
  for (size_t i = 0; i < WEFT_SIDE_STREAMS; i++) {
    void *side = call->queue->side[i];
    if (!side)
      continue;
    const weft_status joined = weft_device_stream_order(ctx->device, call->exec.stream, side);
    if (joined != WEFT_OK) {
      (void)weft_device_stream_wait(ctx->device, side);
      status = joined;
    }
  }
  return status;
}

static weft_status enqueue_all(weft_ctx *ctx, const device_batch *batch, weft_call *call,
                               uint8_t *singular) {
  size_t bytes = 0;
  for (size_t i = 0; batch->jobs[0].mem != WEFT_MEM_DEVICE && i < batch->count; i++)
    bytes += payload_bytes(&batch->jobs[i]);
  if (bytes <= PIECE_FIRST)
    return enqueue_piece((piece){.ctx = ctx,
                                 .call = call,
                                 .jobs = batch->jobs,
                                 .count = batch->count,
                                 .singular = singular},
                         bytes);
  const weft_status status = take_turns(ctx, batch, call, singular, bytes);
  const weft_status joined = join(ctx, call);
  return status != WEFT_OK ? status : joined;
}

// Enqueues a batch. The flags are copied last, all at once: any earlier they would wait behind
// payloads on the bus, and products would wait for them.
static weft_status enqueue(weft_ctx *ctx, device_batch *batch, weft_call *call) {
  void *singular;
  WEFT_TRY(weft_device_alloc(ctx->device, WEFT_MEM_PINNED, batch->count, &batch->flags));
  WEFT_TRY(weft_device_scratch(&call->exec, batch->count, &singular));
  weft_status status = enqueue_all(ctx, batch, call, singular);
  if (status == WEFT_OK)
    status = weft_device_copy(ctx->device, batch->flags, WEFT_MEM_PINNED, singular, WEFT_MEM_DEVICE,
                              batch->count, call->exec.stream);
  weft_device_scratch_free(&call->exec, singular);
  return status;
}

// Whether two jobs have the same n, and both or neither have payloads on the device.
static bool belong_together(const weft_decode_job *a, const weft_decode_job *b) {
  return a->blocks == b->blocks && (a->mem == WEFT_MEM_DEVICE) == (b->mem == WEFT_MEM_DEVICE);
}

weft_status weft_decode_on_device(weft_ctx *ctx, weft_decode_job *jobs, size_t count,
                                  weft_call *call) {
  size_t equal;
  for (size_t first = 0; first < count; first += equal) {
    for (equal = 1; first + equal < count && belong_together(&jobs[first], &jobs[first + equal]);)
      equal++;
    device_batch *batch = weft_ctx_take(ctx, sizeof *batch, _Alignof(device_batch));
    if (!batch) {
      for (size_t i = first; i < count; i++)
        jobs[i].status = WEFT_E_NOMEM;
      return WEFT_E_NOMEM;
    }
    *batch =
        (device_batch){.deferred = {.finish = finish_device}, .jobs = jobs + first, .count = equal};
    weft_call_defer(call, &batch->deferred); // the queue owns it from here on
    const weft_status status = enqueue(ctx, batch, call);
    if (status != WEFT_OK) {
      for (size_t i = first; i < count; i++)
        jobs[i].status = status;
      return status;
    }
  }
  return WEFT_OK;
}
