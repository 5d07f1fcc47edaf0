// SPDX-License-Identifier: Apache-2.0
// Random linear network coding over GF(2^8): segment, encoder, recoder, decoder, batch decoder.
//
// A segment (generation) is n blocks (symbols) of k bytes. A coded packet is a linear combination
// of its blocks; any n innovative (linearly independent) packets rebuild it. A node that holds
// packets can mix them into fresh ones (recode) without decoding first.
//
// Strides. A stride is the distance in bytes from one row to the next, and does not matter for a
// single row. A stride shorter than its row, or with which all rows together would be longer than
// PTRDIFF_MAX, is WEFT_E_ARGUMENT.
//
// Sources. Random coefficients at every node: Ho et al., "A Random Linear Network Coding Approach
// to Multicast", IEEE Trans. Inf. Theory 52 (2006). Segments (there called generations), and
// coefficient vectors carried in packets: Chou, Wu and Jain, "Practical Network Coding", Allerton
// 2003. Progressive decoding by Gauss-Jordan elimination, and decoding many segments at once:
// Shojania and Li, "Extreme Network Coding".
#ifndef WEFT_RLNC_H
#define WEFT_RLNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/context.h"
#include "weft/packet.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---------------------------------------------------------------------------------------------
// Segment: n source blocks, stored where the context's row works on them.

typedef struct weft_segment weft_segment;

typedef struct weft_segment_options {
  weft_segment_id id;
  const uint8_t *data; // `bytes` bytes; block i starts at i * block_bytes
  size_t bytes;        // true length, 1..n * block_bytes; the rest up to n * k counts as zero
  weft_mem mem;        // of data
  // Host rows: true uses data in place, which must then stay unchanged until the segment is freed
  // (only a padded last block is copied); false copies it into rows whose length is a multiple of
  // 64 bytes, which makes single packets on demand faster. Device rows always make their own
  // layout.
  bool borrow;
  // true leaves the row's preprocessing to the products: each product preprocesses all its segments
  // in one launch and keeps none of the result. For segments that serve one batch.
  bool once;
} weft_segment_options;

// The row's preprocessing (log domain, tiles) happens here, once. With a queue the call only
// enqueues (it may wait to pass on HOST data, but not PINNED and DEVICE data: context.h). data must
// then stay until the queue has passed this work, and until then only calls on that queue may use
// the segment. queue == NULL: done on return.
// Errors: WEFT_E_ARGUMENT, WEFT_E_UNSUPPORTED (DEVICE data on a host row), WEFT_E_NOMEM,
// WEFT_E_DEVICE*.
weft_status weft_segment_new(weft_ctx *ctx, const weft_segment_options *options, weft_queue *queue,
                             weft_segment **out);
// The same for `count` segments, out[i] from options[i]. On a device, segments of one shape and
// full length need one allocation, and one copy where their data is contiguous in PINNED or DEVICE
// memory. Free each segment by itself. After an error no segment exists.
weft_status weft_segments_new(weft_ctx *ctx, const weft_segment_options *options, size_t count,
                              weft_queue *queue, weft_segment **out);
// Queues that still use the segment must be idle. Accepts NULL.
void weft_segment_free(weft_segment *segment);
const weft_segment_id *weft_segment_get_id(const weft_segment *segment); // the segment's own

// ---------------------------------------------------------------------------------------------
// Encoder

typedef struct weft_encoder weft_encoder;

typedef struct weft_encoder_options {
  bool systematic;     // the n source blocks first, then coded packets; else coded only
  bool seeded;         // packets name a seed (DENSE, SPARSE); else fresh coefficients (VECTOR)
  uint64_t first_seed; // seeded: packet_seed of the first coded packet; counts up from there
  // 0: dense, every coefficient nonzero. Otherwise each coefficient is nonzero with probability
  // density_q16 / 65536, and all-zero packets are skipped, which takes about 65536 / (n *
  // density_q16) draws a packet where n * density_q16 is small. From a density of 2 * ln(n) / n on
  // (0.35 for n = 16, 0.13 for 64, 0.043 for 256) a receiver needs on average at most 0.4 % more
  // packets than n. With half of that it needs 13 to 23 % more, with a quarter twice as many.
  uint16_t density_q16;
} weft_encoder_options;

// The segment must outlive the encoder. Several encoders may share a segment, each on its own
// thread, once the queue that made the segment is idle. options may be NULL: coded only, dense,
// fresh coefficients. Fresh coefficients come from libsodium's randombytes. Errors: WEFT_E_ARGUMENT
// (NULL), WEFT_E_NOMEM.
weft_status weft_encoder_new(const weft_segment *segment, const weft_encoder_options *options,
                             weft_encoder **out);
void weft_encoder_free(weft_encoder *encoder); // accepts NULL
// For simulations and tests: from now on fresh coefficients depend on key (32 bytes) alone, and are
// the same on every machine. Never use a key twice in one stream. The decoder and the recoder have
// the same call. Errors: WEFT_E_ARGUMENT (NULL).
weft_status weft_encoder_fix_random(weft_encoder *encoder, const uint8_t *key);

// Where a batch of m packets goes. Payload i is at payload_rows[i], or at payload + i *
// payload_stride when payload_rows is NULL.
typedef struct weft_batch {
  size_t count; // m
  // (m) filled in; pointers to DEVICE memory stay NULL. May be NULL when coefficients is not NULL,
  // and for dense seeds without source blocks: the seed of packet i is then the encoder's next seed
  // plus i.
  weft_packet *packets;
  // (m, n) the coefficients of each payload, row stride coefficients_stride; may be NULL when the
  // encoder is seeded. packets[i].coefficients of VECTOR packets points into it.
  uint8_t *coefficients;
  size_t coefficients_stride; // bytes
  // Memory of coefficients. HOST: filled in on return. On a device context the device can make
  // PINNED and DEVICE coefficients, which is far faster; they are ready when the payloads are.
  weft_mem coefficients_mem;
  uint8_t *const *payload_rows;
  uint8_t *payload;
  size_t payload_stride; // bytes
  weft_mem mem;          // of the payloads
} weft_batch;

// Makes the next m packets in one product. With a queue the payloads are ready when weft_queue_poll
// or weft_queue_wait has found the queue idle, and payload_rows, payloads and coefficients must
// stay until then; packets are filled in on return. A device writes PINNED and DEVICE payloads
// directly and HOST payloads by way of pinned memory, for which a long call waits (context.h).
// After an error the next call makes the same packets (but fresh coefficients differ). Errors:
// WEFT_E_ARGUMENT (an invalid stride, a NULL row, an unknown kind of memory),
// WEFT_E_UNSUPPORTED (DEVICE payloads or coefficients on a host row), WEFT_E_NOMEM, WEFT_E_DEVICE*.
weft_status weft_encoder_batch(weft_encoder *encoder, const weft_batch *batch, weft_queue *queue);

// The same for batch i of encoder i, i < count: one launch for many segments. All encoders must
// belong to one context. An encoder that is listed several times continues from batch to batch, as
// in separate calls. Errors: as weft_encoder_batch; no encoder has advanced then.
weft_status weft_encoder_batches(weft_encoder *const *encoders, const weft_batch *batches,
                                 size_t count, weft_queue *queue);

// Makes payloads for the caller's own coefficients: Y(m, k) = C(m, n) * X(n, k). coefficients: (m,
// n), row stride coefficients_stride bytes. From `payloads` the call reads count (= m), the places
// of the payloads and coefficients_mem. Errors: as weft_encoder_batch.
weft_status weft_encoder_combine(weft_encoder *encoder, size_t count, const uint8_t *coefficients,
                                 size_t coefficients_stride, const weft_batch *payloads,
                                 weft_queue *queue);

// Writes the next packet as one datagram, header included. It needs weft_packet_bytes() of its
// mode; WEFT_PACKET_ROOM_BYTES is always enough. With less room it returns WEFT_E_BUFFER, and the
// packet remains the next. Other errors: as weft_encoder_batch.
weft_status weft_encoder_next(weft_encoder *encoder, uint8_t *datagram, size_t capacity,
                              size_t *written);

// ---------------------------------------------------------------------------------------------
// Decoder: progressive Gauss-Jordan elimination, and a recoder at any rank.
//
// A packet's coefficients are eliminated at once, which shows whether it is innovative before its
// payload is touched. Payloads are stored as they arrive, and reduced by one blocked product when a
// known block or the whole segment is asked for. The total cost never exceeds that of reducing each
// payload on arrival, and equals that of a batch decode when nothing is asked for before full rank.
// Works on the context's host row. Memory: the segment and n * n bytes, rows rounded up to 64, and
// a bounded scratch while payloads are reduced (see weft_decoder_memory_bytes).

typedef struct weft_decoder weft_decoder;

typedef struct weft_decoder_options {
  weft_segment_id id;
  // (n, k) storage of the caller in host memory, which must outlive the decoder; NULL: the
  // decoder's own. Row i receives block i; until weft_decoder_block returns WEFT_OK for that block,
  // the row holds something else. On a complete decoder all blocks are in their rows once
  // weft_decoder_block for any block, or weft_decoder_read, has returned WEFT_OK.
  uint8_t *blocks;
  size_t blocks_stride; // bytes, >= k even for n = 1; 0: k
  // false: payloads are deferred (above). true: reduced as each packet arrives, as in the papers.
  bool eager;
  // HOST; or DEVICE on a device context: payloads then lie in device memory, n * (n + k) bytes and
  // up to 31 more for each row. A DEVICE decoder has no `blocks`, is never eager, and is meant for
  // the calls on many decoders below. Its single-decoder calls wait for the device, and
  // weft_decoder_block returns WEFT_E_UNSUPPORTED.
  weft_mem mem;
} weft_decoder_options;

// Errors: WEFT_E_ARGUMENT (NULL, an id out of range, an invalid stride, `mem` together with an
// option that it excludes), WEFT_E_UNSUPPORTED (DEVICE on a host context), WEFT_E_NOMEM,
// WEFT_E_DEVICE*.
weft_status weft_decoder_new(weft_ctx *ctx, const weft_decoder_options *options,
                             weft_decoder **out);
void weft_decoder_free(weft_decoder *decoder); // accepts NULL
// Empties the decoder and prepares it for segment `id`, which must have the same blocks and
// block_bytes. The decoder keeps its memory; a new decoder may get its memory from the system by
// page faults, which can take up to two thirds of the decoding time. It also keeps its options, the
// caller's `blocks` included, and continues its random numbers. Pointers from weft_decoder_block
// are no longer valid. Works while payloads are still deferred, and after any error except a
// queue's. Errors: WEFT_E_ARGUMENT (NULL, an id of another shape): nothing changed.
weft_status weft_decoder_reset(weft_decoder *decoder, const weft_segment_id *id);

// Adds one packet. WEFT_OK: innovative, the rank rose by one. WEFT_DEPENDENT: it adds nothing.
// WEFT_E_FOREIGN, WEFT_E_MALFORMED, WEFT_E_VERSION, WEFT_E_ARGUMENT: refused. Unless the call
// returns WEFT_OK, the decoder is unchanged. The packet's bytes are not needed after the call. It
// never fails for lack of memory: an eager decoder that cannot allocate its scratch defers the
// payload instead. With payloads in DEVICE memory it can fail (WEFT_E_NOMEM, WEFT_E_DEVICE*), and
// so can the calls below.
weft_status weft_decoder_add(weft_decoder *decoder, const weft_packet *packet);
weft_status weft_decoder_add_datagram(weft_decoder *decoder, const uint8_t *datagram, size_t bytes);

size_t weft_decoder_rank(const weft_decoder *decoder);                  // 0..n
bool weft_decoder_complete(const weft_decoder *decoder);                // rank == n
bool weft_decoder_has_block(const weft_decoder *decoder, size_t index); // block known already
// Number of consecutive known blocks from block 0 on: what can be released in order.
size_t weft_decoder_prefix(const weft_decoder *decoder);

// Block `index`, valid until the decoder is freed or reset; its row does not change until then.
// WEFT_PENDING: not yet known. WEFT_E_NOMEM: try again later, nothing is lost. WEFT_E_ARGUMENT:
// NULL, or index >= n.
weft_status weft_decoder_block(weft_decoder *decoder, size_t index, const uint8_t **out);
// Copies `bytes` bytes of the segment, starting at byte `offset`, into `out`. WEFT_PENDING: not
// complete yet. Errors: WEFT_E_ARGUMENT (NULL, or past n * k), WEFT_E_NOMEM (as above).
weft_status weft_decoder_read(weft_decoder *decoder, size_t offset, size_t bytes, uint8_t *out);

// Recodes: writes a fresh random combination of all packets that the decoder holds, as one VECTOR
// datagram. WEFT_PENDING at rank 0. Errors: WEFT_E_ARGUMENT (NULL), WEFT_E_BUFFER (less room than
// weft_packet_bytes()), WEFT_E_NOMEM.
weft_status weft_decoder_recode(weft_decoder *decoder, uint8_t *datagram, size_t capacity,
                                size_t *written);
// m recoded packets in one product, all of mode VECTOR. batch->coefficients is required, and the
// payloads go to HOST or PINNED memory. No packet is all zero. WEFT_PENDING at rank 0. Errors:
// WEFT_E_ARGUMENT, WEFT_E_UNSUPPORTED (DEVICE memory with a decoder in host memory), WEFT_E_NOMEM.
weft_status weft_decoder_recode_batch(weft_decoder *decoder, const weft_batch *batch);

// Recoded packets then depend only on key and on the packets that arrived, in their order. They are
// the same in host memory and on a device.
weft_status weft_decoder_fix_random(weft_decoder *decoder, const uint8_t *key);

// The most host memory that a decoder of this shape ever holds: its handle, its own blocks
// (own_blocks: its options have no `blocks`) and n * n bytes of matrix, each row rounded up to 64;
// and while payloads are reduced, another n * n bytes, rounded up to 64, and at most 2 MiB more. 0
// for an id out of range. Not included: recoding m > 1 packets in one product takes m bytes for
// each packet held and, with a row that gains by it and if the memory is available, for each of the
// context's threads up to 272 KiB (m and n of 128), 1 MiB (512) or 3 MiB (1,024).
size_t weft_decoder_memory_bytes(const weft_segment_id *id, bool own_blocks);

// ---------------------------------------------------------------------------------------------
// Many decoders at once: what a relay does with the packets that have arrived since its last call.
// All decoders of a call belong to one context and have their payloads in the same kind of memory.
// In host memory each of the context's threads works on its own decoders; where decoders are few or
// differ much in work, all threads work together on one after the other. The call is done on
// return. On a device, the context's threads eliminate the coefficients, which shows at once which
// packets are innovative; payloads are only moved, and multiplied when the caller reads or recodes,
// all in one launch. With a queue these calls only enqueue, and until the queue is idle only calls
// on that queue may use the decoders. If the queue then reports an error, the decoders can only be
// freed.

typedef struct weft_arrival {
  weft_decoder *decoder;
  weft_packet packet; // its coefficients, if any, lie in host memory, PINNED or not
  weft_status status; // result: as weft_decoder_add returns it
} weft_arrival;

// Adds packets, each to its decoder, in their order. mem: of all payloads; PINNED only if the
// coefficients are PINNED as well. A coefficient vector that lies directly before its payload, as
// in a datagram, is moved together with it. HOST memory is not needed after the call, because a
// device gets it by way of pinned memory (context.h); PINNED and DEVICE memory must stay until the
// queue is idle. The call returns WEFT_OK when all packets could be tried. Otherwise no decoder has
// changed, and each arrival gets the same status, except where the call itself was refused. Errors:
// WEFT_E_ARGUMENT, WEFT_E_UNSUPPORTED (DEVICE payloads for decoders in host memory), which are
// refusals; WEFT_E_NOMEM, WEFT_E_DEVICE*.
weft_status weft_decoders_add(weft_arrival *arrivals, size_t count, weft_mem mem,
                              weft_queue *queue);

// Recodes: batch i is m packets of decoder i, in any memory (for decoders in host memory: HOST or
// PINNED). A decoder may be listed several times. As weft_decoder_recode_batch, except that on a
// device coefficients are ready when the payloads are, and without a fixed key the packets mix what
// arrived rather than the reduced rows. Coefficients that lie directly before their payload, as in
// a datagram, are made together with it. WEFT_PENDING: a decoder is at rank 0; nothing was made.
weft_status weft_decoders_recode(weft_decoder *const *decoders, const weft_batch *batches,
                                 size_t count, weft_queue *queue);

typedef struct weft_reading {
  weft_decoder *decoder;
  size_t first, count; // blocks [first, first + count)
  uint8_t *out;        // (count, k), row stride out_stride bytes
  size_t out_stride;   // bytes
  weft_mem mem;        // of out
  // Result: WEFT_OK; or WEFT_PENDING: not all of these blocks are known, and none was read. If the
  // call fails, WEFT_OK only where the blocks were read; a call that is refused read none.
  weft_status status;
} weft_reading;

// Decodes known blocks; on a complete decoder, any blocks. Errors: WEFT_E_ARGUMENT,
// WEFT_E_UNSUPPORTED (DEVICE memory with a decoder in host memory), WEFT_E_NOMEM, WEFT_E_DEVICE*.
weft_status weft_decoders_read(weft_reading *readings, size_t count, weft_queue *queue);

// ---------------------------------------------------------------------------------------------
// Recoder: mixes packets as they arrive, without elimination; the cheapest relay.

typedef struct weft_recoder weft_recoder;

// Keeps up to `capacity` packets (1..n); each further packet is mixed into one of the packets held,
// which take turns, so that nothing received is wasted. Works on the context's host row. Memory:
// capacity * (n + k) bytes, n and k each rounded up to 64; pointers, capacity * (2 + 2 for each 4
// KiB of k); and about 4 KiB for the handle.
// Errors: WEFT_E_ARGUMENT (NULL, an id or capacity out of range), WEFT_E_NOMEM.
weft_status weft_recoder_new(weft_ctx *ctx, const weft_segment_id *id, size_t capacity,
                             weft_recoder **out);
void weft_recoder_free(weft_recoder *recoder); // accepts NULL
weft_status weft_recoder_fix_random(weft_recoder *recoder, const uint8_t *key);
// As weft_decoder_reset: empties the recoder and prepares it for segment `id` of the same shape.
weft_status weft_recoder_reset(weft_recoder *recoder, const weft_segment_id *id);

// WEFT_DEPENDENT: the packet's coefficients are all zero. Errors: as weft_decoder_add.
weft_status weft_recoder_add(weft_recoder *recoder, const weft_packet *packet);
weft_status weft_recoder_add_datagram(weft_recoder *recoder, const uint8_t *datagram, size_t bytes);
size_t weft_recoder_held(const weft_recoder *recoder);
// WEFT_PENDING while nothing is held. Otherwise as weft_decoder_recode_batch, weft_decoder_recode.
weft_status weft_recoder_batch(weft_recoder *recoder, const weft_batch *batch);
weft_status weft_recoder_next(weft_recoder *recoder, uint8_t *datagram, size_t capacity,
                              size_t *written);

// ---------------------------------------------------------------------------------------------
// Batch decoding: gather n packets, invert once, multiply once; many segments at a time.

typedef struct weft_decode_job {
  size_t blocks, block_bytes;  // n, k
  const uint8_t *coefficients; // (n, n), row stride coefficients_stride bytes
  size_t coefficients_stride;
  // Memory of coefficients. Dense matrices that are contiguous in PINNED or DEVICE memory, job by
  // job, go to the device in one piece; HOST matrices are copied aside first.
  weft_mem coefficients_mem;
  const uint8_t *const *payload_rows; // n rows of k bytes, or
  const uint8_t *payload;             // payload + i * payload_stride
  size_t payload_stride;
  uint8_t *out;      // (n, k), row stride out_stride bytes; no overlap with the payloads
  size_t out_stride; // bytes
  weft_mem mem;      // of payloads and out
  // Result: WEFT_OK or WEFT_E_SINGULAR; out is then undefined. If the call fails, WEFT_OK only
  // where the job was done.
  weft_status status;
} weft_decode_job;

// Decodes `count` segments, in parallel on the context's threads or on its device. Each job has its
// own status; the call returns WEFT_OK when all jobs could be tried. With a queue, `jobs` and all
// that they refer to must stay until the queue is idle, and each status is WEFT_PENDING until
// weft_queue_poll or weft_queue_wait has found it idle; HOST payloads are read before the call
// returns, which waits for a part of its own work if there are more of them than a queue passes on
// at a time (context.h). On a host context with fewer jobs than threads, the threads share each
// job; otherwise each thread decodes its own jobs. Errors: WEFT_E_ARGUMENT (NULL, also of a row; a
// shape out of range, an invalid stride, an unknown kind of memory), WEFT_E_UNSUPPORTED
// (DEVICE memory on a host row): no job was tried then; WEFT_E_NOMEM, WEFT_E_DEVICE*.
weft_status weft_decode_batch(weft_ctx *ctx, weft_decode_job *jobs, size_t count,
                              weft_queue *queue);

#ifdef __cplusplus
}
#endif
#endif
