// SPDX-License-Identifier: Apache-2.0
// Random linear network coding over GF(2^8): segment, encoder, recoder, decoder, batch decoder.
//
// A segment (generation) is n blocks (symbols) of k bytes. A coded packet is a linear combination
// of its blocks; any n innovative (linearly independent) packets rebuild it. Whoever holds packets
// can mix them into fresh ones (recode) without decoding first.
//
// Sources. Random coefficients at every node: Ho et al., "A Random Linear Network Coding Approach
// to Multicast", IEEE Trans. Inf. Theory 52 (2006). Segments, and vectors that travel with the
// packets: Chou, Wu and Jain, "Practical Network Coding", Allerton 2003 (their generations).
// Progressive decoding by Gauss-Jordan elimination, and decoding many segments at once: Shojania
// and Li, "Extreme Network Coding".
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
// Segment: n source blocks, resident where the context's row works on them.

typedef struct weft_segment weft_segment;

typedef struct weft_segment_options {
  weft_segment_id id;
  const uint8_t *data; // `bytes` bytes; block i starts at i * block_bytes
  size_t bytes;        // true length, 1..n * block_bytes; what lacks to n * k counts as zero
  weft_mem mem;        // of data
  // Host rows: true uses data in place, which must then stay unchanged until the segment is freed
  // (only a padded last block is copied); false copies, into rows of multiples of 64 bytes, from
  // which a packet on demand is quicker. Device rows always make their own layout.
  bool borrow;
  // true leaves the row's preprocessing to the products, each of which does that of all its
  // segments in one launch and keeps nothing of it: for segments that serve one batch.
  bool once;
} weft_segment_options;

// The row's own preprocessing (log domain, tiles) happens here, once. With a queue the call only
// enqueues (data in HOST memory may be waited for; PINNED and DEVICE data is not); data must then
// stay until the queue has passed it, and until then the segment is good for calls on that queue
// alone. queue == NULL: done on return.
// Errors: WEFT_E_ARGUMENT, WEFT_E_UNSUPPORTED (DEVICE data on a host row), WEFT_E_NOMEM,
// WEFT_E_DEVICE*.
weft_status weft_segment_new(weft_ctx *ctx, const weft_segment_options *options, weft_queue *queue,
                             weft_segment **out);
// The same for `count` segments, out[i] of options[i]. On a device, those of one shape and full
// length in PINNED or DEVICE memory take one allocation, and one copy where their data follow each
// other. Each is freed by itself; after an error there are none.
weft_status weft_segments_new(weft_ctx *ctx, const weft_segment_options *options, size_t count,
                              weft_queue *queue, weft_segment **out);
// Queues that still work with the segment must be idle. Accepts NULL.
void weft_segment_free(weft_segment *segment);
const weft_segment_id *weft_segment_get_id(const weft_segment *segment); // the segment's own

// ---------------------------------------------------------------------------------------------
// Encoder

typedef struct weft_encoder weft_encoder;

typedef struct weft_encoder_options {
  bool systematic;     // the n source blocks first, then coded packets; else coded only
  bool seeded;         // packets name a seed (DENSE, SPARSE); else fresh coefficients (VECTOR)
  uint64_t first_seed; // seeded: packet_seed of the first coded packet; counts up from there
  // 0: dense, every coefficient nonzero; else each is nonzero with d / 65536, and packets of zeros
  // alone are passed over, which takes about 65536 / (n * d) draws a packet where n * d is small.
  uint16_t density_q16;
} weft_encoder_options;

// The segment must outlive the encoder; several encoders may share one, each on a thread of its
// own, once the queue that made it is idle. options may be NULL: coded only, dense, fresh. Fresh
// coefficients come from libsodium's randombytes. Errors: WEFT_E_ARGUMENT (NULL), WEFT_E_NOMEM.
weft_status weft_encoder_new(const weft_segment *segment, const weft_encoder_options *options,
                             weft_encoder **out);
void weft_encoder_free(weft_encoder *encoder); // accepts NULL
// For simulations and tests: from now on fresh coefficients follow from key (32 bytes) alone, the
// same on every machine. Never use one key twice in one stream. The decoder and the recoder have
// the like. Errors: WEFT_E_ARGUMENT (NULL).
weft_status weft_encoder_fix_random(weft_encoder *encoder, const uint8_t *key);

// Where a batch of m packets goes. Payload i is at payload_rows[i], or at payload + i *
// payload_stride when payload_rows is NULL. Strides do not matter for m = 1.
typedef struct weft_batch {
  size_t count; // m
  // (m) filled in; pointers into DEVICE memory stay NULL. May be NULL when coefficients is not, and
  // for dense seeds without source blocks: packet i then has the seed that counts i up from the
  // encoder's next.
  weft_packet *packets;
  // (m, n) what each payload is made of, row stride coefficients_stride; may be NULL when the
  // encoder is seeded. packets[i].coefficients of VECTOR packets points into it.
  uint8_t *coefficients;
  size_t coefficients_stride; // bytes
  // Of coefficients. HOST: filled in on return. On a device context PINNED and DEVICE coefficients
  // can be made by the device, which is far quicker, and are there with the payloads.
  weft_mem coefficients_mem;
  uint8_t *const *payload_rows;
  uint8_t *payload;
  size_t payload_stride; // bytes
  weft_mem mem;          // of the payloads
} weft_batch;

// Makes the next m packets in one product. With a queue the payloads are ready when weft_queue_poll
// or weft_queue_wait has found it idle, and payload_rows, payloads and coefficients must stay until
// then; packets are filled in on return. A device writes PINNED and DEVICE payloads directly;
// HOST ones take a detour through pinned memory. After an error the next call makes the same
// packets (fresh coefficients differ). Errors: WEFT_E_ARGUMENT (a stride below its row, a row that
// is NULL, memory of no known kind), WEFT_E_UNSUPPORTED (DEVICE payloads or coefficients on a host
// row), WEFT_E_NOMEM, WEFT_E_DEVICE*.
weft_status weft_encoder_batch(weft_encoder *encoder, const weft_batch *batch, weft_queue *queue);

// The same for batch i of encoder i, i < count: one launch for many segments. All encoders belong
// to one context; one that is there several times goes on from batch to batch, as in calls of their
// own. Errors: as weft_encoder_batch; no encoder has moved on then.
weft_status weft_encoder_batches(weft_encoder *const *encoders, const weft_batch *batches,
                                 size_t count, weft_queue *queue);

// Makes payloads for coefficients of the caller's own: Y(m, k) = C(m, n) * X(n, k).
// coefficients: (m, n), row stride coefficients_stride bytes. Of `payloads` count (= m), where the
// payloads go and coefficients_mem are read. Errors: as weft_encoder_batch.
weft_status weft_encoder_combine(weft_encoder *encoder, size_t count, const uint8_t *coefficients,
                                 size_t coefficients_stride, const weft_batch *payloads,
                                 weft_queue *queue);

// Writes the next packet as one datagram, header included; needs weft_packet_bytes() of its mode,
// which WEFT_PACKET_ROOM_BYTES never falls short of, else WEFT_E_BUFFER and the packet is still the
// next. Other errors: as weft_encoder_batch.
weft_status weft_encoder_next(weft_encoder *encoder, uint8_t *datagram, size_t capacity,
                              size_t *written);

// ---------------------------------------------------------------------------------------------
// Decoder: progressive Gauss-Jordan elimination, and a recoder at any rank.
//
// A packet's coefficients are eliminated at once, which tells whether it is innovative before its
// payload is touched. Payloads are stored as they came, and reduced by one blocked product when a
// block that is known is asked for, or the whole segment. The total cost is never above that of
// reducing each payload as it comes, and equals a batch decode's when nothing is asked for before
// full rank. Works on the context's host row. Memory: the segment and n * n bytes, rows rounded up
// to 64, and a bounded scratch while payloads are reduced (see weft_decoder_memory_bytes).

typedef struct weft_decoder weft_decoder;

typedef struct weft_decoder_options {
  weft_segment_id id;
  // (n, k) storage of the caller's own in host memory, which must outlive the decoder; or NULL: the
  // decoder's. It receives block i in row i; until weft_decoder_block says so, a row holds
  // something else. Every block is in its row once weft_decoder_block of any, or weft_decoder_read,
  // has returned WEFT_OK on a complete decoder.
  uint8_t *blocks;
  size_t blocks_stride; // bytes, >= k; 0: k
  // false: payloads are deferred (above). true: reduced as each packet arrives, as in the papers.
  bool eager;
  // HOST, or DEVICE on a device context: payloads then lie in device memory, n * (n + k) bytes and
  // up to 31 more a row. Such a decoder has no `blocks`, is never eager, and is meant for the calls
  // on many decoders below; of the others each waits for the device, and weft_decoder_block is
  // WEFT_E_UNSUPPORTED.
  weft_mem mem;
} weft_decoder_options;

// Errors: WEFT_E_ARGUMENT (NULL, an id out of range, a stride below k, `mem` with what it
// excludes), WEFT_E_UNSUPPORTED (DEVICE on a host context), WEFT_E_NOMEM, WEFT_E_DEVICE*.
weft_status weft_decoder_new(weft_ctx *ctx, const weft_decoder_options *options,
                             weft_decoder **out);
void weft_decoder_free(weft_decoder *decoder); // accepts NULL
// Makes the decoder one that has nothing yet, of segment `id`, which has the blocks and block_bytes
// of the one before. It keeps its memory, which for a new one may come from the system by page
// faults, and these take up to two thirds of decoding; and its options, `blocks` of the caller's
// among them; and goes on with its random numbers. What weft_decoder_block gave is no longer valid.
// Works with payloads that are still deferred, and after any error but a queue's. Errors:
// WEFT_E_ARGUMENT (NULL, an id of another shape): nothing changed.
weft_status weft_decoder_reset(weft_decoder *decoder, const weft_segment_id *id);

// Takes one packet. WEFT_OK: innovative, rank rose by one. WEFT_DEPENDENT: it adds nothing.
// WEFT_E_FOREIGN, WEFT_E_MALFORMED, WEFT_E_VERSION, WEFT_E_ARGUMENT: refused. In every case but
// WEFT_OK the decoder is unchanged. The packet's bytes are not needed after the call. Never fails
// for want of memory: an eager decoder that cannot get its scratch defers the payload instead. With
// payloads in DEVICE memory it can (WEFT_E_NOMEM, WEFT_E_DEVICE*), and so can what follows.
weft_status weft_decoder_add(weft_decoder *decoder, const weft_packet *packet);
weft_status weft_decoder_add_datagram(weft_decoder *decoder, const uint8_t *datagram, size_t bytes);

size_t weft_decoder_rank(const weft_decoder *decoder);                  // 0..n
bool weft_decoder_complete(const weft_decoder *decoder);                // rank == n
bool weft_decoder_has_block(const weft_decoder *decoder, size_t index); // block known already
// How many blocks from block 0 on are known: what can be released in order.
size_t weft_decoder_prefix(const weft_decoder *decoder);

// Block `index`, valid until the decoder is freed or reset (until then its row does not change any
// more).
// WEFT_PENDING while it is not known; WEFT_E_NOMEM: try again later, nothing is lost;
// WEFT_E_ARGUMENT: NULL, or index >= n.
weft_status weft_decoder_block(weft_decoder *decoder, size_t index, const uint8_t **out);
// Copies `bytes` bytes of the segment from byte `offset` on into `out`; WEFT_PENDING while not
// complete. Errors: WEFT_E_ARGUMENT (NULL, or past n * k), WEFT_E_NOMEM (as above).
weft_status weft_decoder_read(weft_decoder *decoder, size_t offset, size_t bytes, uint8_t *out);

// Recodes: writes a fresh random combination of all that the decoder holds, as one VECTOR datagram.
// WEFT_PENDING at rank 0. Errors: WEFT_E_ARGUMENT (NULL), WEFT_E_BUFFER (less room than
// weft_packet_bytes()), WEFT_E_NOMEM.
weft_status weft_decoder_recode(weft_decoder *decoder, uint8_t *datagram, size_t capacity,
                                size_t *written);
// m recoded packets in one product. Only VECTOR packets; batch->coefficients is required, and the
// payloads go to HOST or PINNED memory. A packet is never zero. WEFT_PENDING at rank 0. Errors:
// WEFT_E_ARGUMENT, WEFT_E_UNSUPPORTED (DEVICE memory, of a decoder in host memory), WEFT_E_NOMEM.
weft_status weft_decoder_recode_batch(weft_decoder *decoder, const weft_batch *batch);

// The packets that it recodes then follow from key and from what arrived, in its order: the same in
// host memory and on a device.
weft_status weft_decoder_fix_random(weft_decoder *decoder, const uint8_t *key);

// The most host memory that a decoder of this shape ever holds: its handle, its own blocks
// (own_blocks: no `blocks` in its options) and n * n bytes of matrix, each row rounded up to 64;
// and while payloads are reduced, n * n bytes, rounded up to 64, and at most 2 MiB more. 0 for an
// id out of range. While m > 1 packets are recoded in one product, that takes m bytes for each
// packet held and, of a row that gains by it and where it can be had, up to 272 KiB for each of the
// context's threads.
size_t weft_decoder_memory_bytes(const weft_segment_id *id, bool own_blocks);

// ---------------------------------------------------------------------------------------------
// Many decoders at once: what a relay does with the packets that arrived since it last looked. All
// decoders of a call belong to one context and have their payloads in memory of one kind. In host
// memory each of the context's threads works on decoders of its own, or, where they are few or
// differ much, all of them on one after the other; the call is done on return. On a device,
// coefficients are eliminated by the context's threads, which tells at once what is innovative;
// payloads are only moved, and multiplied when somebody reads or recodes, all by one launch. With a
// queue such calls only enqueue, and until it is idle the decoders are good for calls on that queue
// alone; should it then report an error, they are good for freeing alone.

typedef struct weft_arrival {
  weft_decoder *decoder;
  weft_packet packet; // its coefficients, if any, lie in host memory, PINNED or not
  weft_status status; // result: as weft_decoder_add has it
} weft_arrival;

// Takes packets, each for its decoder, in their order. mem: of all payloads, and PINNED only if the
// coefficients are as well; a vector right before its payload, as in a datagram, moves in one piece
// with it. HOST memory is not needed after the call, PINNED and DEVICE memory must stay until the
// queue is idle. The call's own status is WEFT_OK when all packets could be tried; after any other
// no decoder has changed, and that is the status of each arrival, unless the call was refused as it
// is. Errors: WEFT_E_ARGUMENT, WEFT_E_UNSUPPORTED (DEVICE payloads for decoders in host memory),
// both of them refusals; WEFT_E_NOMEM, WEFT_E_DEVICE*.
weft_status weft_decoders_add(weft_arrival *arrivals, size_t count, weft_mem mem,
                              weft_queue *queue);

// Recodes: batch i is m packets of decoder i, in any memory (decoders in host memory: HOST or
// PINNED). A decoder may be there several times. As weft_decoder_recode_batch, but that on a device
// coefficients are there with the payloads, and without a fixed key mix what arrived rather than
// what was reduced.
// Coefficients right before their payload, as in a datagram, are made in one piece with it.
// WEFT_PENDING: a decoder is at rank 0, nothing was made.
weft_status weft_decoders_recode(weft_decoder *const *decoders, const weft_batch *batches,
                                 size_t count, weft_queue *queue);

typedef struct weft_reading {
  weft_decoder *decoder;
  size_t first, count; // blocks [first, first + count)
  uint8_t *out;        // (count, k), row stride out_stride bytes
  size_t out_stride;   // bytes; does not matter for count = 1
  weft_mem mem;        // of out
  // Result: WEFT_OK, or WEFT_PENDING: not all of them are known, none was read; where the call
  // fails, WEFT_OK only of what was read.
  weft_status status;
} weft_reading;

// Decodes blocks that are known, of a complete decoder any. Errors: WEFT_E_ARGUMENT,
// WEFT_E_UNSUPPORTED (DEVICE memory with a decoder in host memory), WEFT_E_NOMEM, WEFT_E_DEVICE*.
weft_status weft_decoders_read(weft_reading *readings, size_t count, weft_queue *queue);

// ---------------------------------------------------------------------------------------------
// Recoder: mixes packets as they came, without elimination; the cheapest relay.

typedef struct weft_recoder weft_recoder;

// Keeps up to `capacity` packets (1..n); each further one is mixed into one of those held, in turn,
// so that nothing received is wasted. Works on the context's host row. Memory: capacity * (n + k)
// bytes, n and k rounded up to 64 each, pointers: 2 + 2 for each 4 KiB of k, times capacity, and
// some 4 KiB for the handle.
// Errors: WEFT_E_ARGUMENT (NULL, an id or capacity out of range), WEFT_E_NOMEM.
weft_status weft_recoder_new(weft_ctx *ctx, const weft_segment_id *id, size_t capacity,
                             weft_recoder **out);
void weft_recoder_free(weft_recoder *recoder); // accepts NULL
weft_status weft_recoder_fix_random(weft_recoder *recoder, const uint8_t *key);
// As weft_decoder_reset: holds nothing, for segment `id` of the same shape.
weft_status weft_recoder_reset(weft_recoder *recoder, const weft_segment_id *id);

// WEFT_DEPENDENT: the packet's coefficients are all zero. Errors as weft_decoder_add has them.
weft_status weft_recoder_add(weft_recoder *recoder, const weft_packet *packet);
weft_status weft_recoder_add_datagram(weft_recoder *recoder, const uint8_t *datagram, size_t bytes);
size_t weft_recoder_held(const weft_recoder *recoder);
// WEFT_PENDING while nothing is held. As weft_decoder_recode_batch and weft_decoder_recode.
weft_status weft_recoder_batch(weft_recoder *recoder, const weft_batch *batch);
weft_status weft_recoder_next(weft_recoder *recoder, uint8_t *datagram, size_t capacity,
                              size_t *written);

// ---------------------------------------------------------------------------------------------
// Batch decoding: gather n packets, invert once, multiply once; many segments at a time.

typedef struct weft_decode_job {
  size_t blocks, block_bytes;  // n, k
  const uint8_t *coefficients; // (n, n), row stride coefficients_stride bytes
  size_t coefficients_stride;
  // Of coefficients. Dense matrices that follow each other in PINNED or DEVICE memory, job by job,
  // go to the device in one piece; HOST ones are copied aside first.
  weft_mem coefficients_mem;
  const uint8_t *const *payload_rows; // n rows of k bytes, or
  const uint8_t *payload;             // payload + i * payload_stride
  size_t payload_stride;
  uint8_t *out;       // (n, k), row stride out_stride bytes; no overlap with the payloads
  size_t out_stride;  // bytes
  weft_mem mem;       // of payloads and out
  weft_status status; // result: WEFT_OK or WEFT_E_SINGULAR; out is then undefined
} weft_decode_job;

// Decodes `count` segments, in parallel on the context's threads or on its device. Each job has its
// own status; the call's is WEFT_OK when all could be tried. With a queue, `jobs` and all that they
// name must stay until it is idle, and each status is WEFT_PENDING until weft_queue_poll or
// weft_queue_wait has said so; HOST payloads are read before return. On a host context with fewer
// jobs than threads the threads share each job; otherwise each thread decodes jobs of its own.
// Errors: WEFT_E_ARGUMENT (NULL, also of a row; a shape out of range, a stride below its row,
// memory of no known kind), WEFT_E_UNSUPPORTED (DEVICE memory on a host row): no job was tried
// then; WEFT_E_NOMEM, WEFT_E_DEVICE*.
weft_status weft_decode_batch(weft_ctx *ctx, weft_decode_job *jobs, size_t count,
                              weft_queue *queue);

#ifdef __cplusplus
}
#endif
#endif
