// SPDX-License-Identifier: Apache-2.0
// A streaming server's coder: segments go in, coded datagrams ready for many clients come out.
//
// It embeds in the caller's event loop. No call blocks: coding runs on one library thread per
// context (a lane), and a file descriptor becomes readable when packets are ready:
//
//   push segments, request packets          weft_server_push, weft_server_request_many
//   wait for fd, or until the deadline      weft_server_fd, weft_server_deadline
//   hand time in                            weft_server_process
//   take packets, send them, release them   weft_server_take, weft_server_release
//
// Requests for one segment are gathered for a bounded time and coded in one product. Each product
// goes to the lane that is predicted to finish it first, from durations measured on this server; so
// a GPU gets large batches, the CPU small ones, and both work when there is work for both. For
// several GPUs, pass several contexts.
//
// When more packets are requested than the lanes can make, segments take turns, one product each: a
// client that requests a few packets of one segment does not wait for everything that was requested
// of another.
//
// Threads: one thread at a time may use a server. Its contexts may serve other handles meanwhile.
#ifndef WEFT_SERVER_H
#define WEFT_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/context.h"
#include "weft/packet.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_server weft_server;

#define WEFT_SERVER_MAX_LANES 16u

typedef struct weft_server_options {
  // (context_count) one lane each; they must outlive the server, the array need not. Whatever
  // belongs to no lane has
  // memory of contexts[0]'s allocator: the server, segments, requests.
  weft_ctx *const *contexts;
  size_t context_count; // 1..WEFT_SERVER_MAX_LANES
  // A monotonic clock in microseconds, also called from library threads. It is used only to measure
  // the lanes: the now_us of calls may come from another clock that does not go backwards.
  int64_t (*now_us)(void *user);
  void *user;
  size_t memory_bytes; // budget for segments, including their copies on devices; 0: 1 GiB
  // Bound on the bytes of packets that are coded or in the making and not yet released; 0: 256 MiB.
  // Each packet counts with what it takes in memory: its largest datagram, rounded up to a multiple
  // of 64 bytes. Never less than four of the largest packets of the segments pushed so far. A
  // product gets at most a quarter of it, and is begun while three quarters or less are in use. A
  // lane on the host keeps the memory of up to eight released products for the next ones, or of up
  // to 64 if together they take no more than a quarter of the bound, until memory is short. Not
  // counted are the coefficients of products in the making, packets * n bytes: a lane has those of
  // one product at a time, or of several that take up to 4 MiB with their packets; a device up to
  // three times that.
  size_t ready_bytes;
  // Longest time that a request waits for others to share its product while a lane has little to
  // do; 0: no wait.
  int64_t gather_us;
  size_t batch_packets; // most packets in one product; 0: 4096. ready_bytes may lower it
  // Most packets that may wait: requested and not begun; 0: 16 Mi. SIZE_MAX: limited only by
  // memory.
  size_t pending_packets;
  // 0: dense coefficients; else as weft_encoder_options, which says what it costs receivers.
  uint16_t density_q16;
  // What happens when a lane's device fails. true: its work goes to the other lanes, so that no
  // packet is lost while one lane works. false: that work ends with the device's status.
  bool fall_over;
  // For simulations, with one context (more are WEFT_E_ARGUMENT) and a clock that stands still
  // while the server codes: the packets of every segment are numbered from 0 and lanes are not
  // measured, so that runs are repeatable. Two servers of one stream would send the same packets.
  bool repeatable;
} weft_server_options;

// Measures each lane once on synthetic data, which takes some milliseconds and temporarily some
// tens of MiB. Errors: WEFT_E_ARGUMENT, WEFT_E_NOMEM, WEFT_E_THREAD, WEFT_E_DESCRIPTOR,
// WEFT_E_DEVICE*.
weft_status weft_server_new(const weft_server_options *options, weft_server **out);
// Drops pending requests and waits for running products; packets taken and not yet released become
// invalid.
void weft_server_free(weft_server *server); // accepts NULL

// Makes a segment available until expires_us. Copies `bytes` bytes of host memory (1..n * k); zeros
// follow up to n * k, and receivers decode them, too: no packet carries the true length. When
// the budget is exceeded, expired segments are evicted first, then the least recently requested
// ones; segments with packets pending or in the making stay. Errors: WEFT_E_NOMEM when eviction
// would not make enough room (nothing is evicted then) or memory cannot be allocated; WEFT_E_STATE
// when the segment is already there; WEFT_E_ARGUMENT (NULL, a size out of range, expires_us not
// after now_us). After an error nothing was pushed.
//
// A segment that expires while requests for it wait is like a dropped one (below): these packets
// are still made, weft_server_has returns true and a push returns WEFT_E_STATE until the last of
// them has begun, and a new request is refused (WEFT_E_FOREIGN).
weft_status weft_server_push(weft_server *server, const weft_segment_id *id, const uint8_t *data,
                             size_t bytes, int64_t now_us, int64_t expires_us);
bool weft_server_has(const weft_server *server, uint64_t stream, uint64_t segment);
// Ends a segment before its expiry. As on expiry, packets already requested are still made. Until
// that has begun, weft_server_has returns true and a push finds the segment there; new requests are
// refused at once. Errors: WEFT_E_FOREIGN: no such segment; WEFT_E_ARGUMENT (NULL).
weft_status weft_server_drop(weft_server *server, uint64_t stream, uint64_t segment);

typedef struct weft_server_request {
  uint64_t stream;
  uint64_t segment;
  uint64_t client;  // chosen by the caller; returned with each packet
  uint32_t packets; // >= 1
} weft_server_request;

// Requests coded packets. *accepted receives how many requests were accepted, in order (0 if the
// call itself was refused); the first error is that of requests[*accepted], and none after it was
// tried. Errors: WEFT_E_FOREIGN: no such segment (never pushed, expired, dropped or evicted); go on
// with the next request.
// WEFT_E_BUFFER: more than pending_packets would wait; request again when some packets have come.
// WEFT_E_ARGUMENT (NULL, no packets, more of them than pending_packets), WEFT_E_NOMEM.
weft_status weft_server_request_many(weft_server *server, const weft_server_request *requests,
                                     size_t count, int64_t now_us, size_t *accepted);
// Drops what `client` still waits for, in all segments; it is no error if there is nothing. Packets
// that are ready or in the making still come. Takes time in proportion to all waiting requests.
// Errors: WEFT_E_ARGUMENT (NULL).
weft_status weft_server_cancel(weft_server *server, uint64_t client);

// The same for one segment, for example one that the client has decoded. No such segment is no
// error either. Takes time in proportion to the requests that wait for the segment.
weft_status weft_server_cancel_segment(weft_server *server, uint64_t client, uint64_t stream,
                                       uint64_t segment);

// Readable while packets wait to be taken, and from a release that lets work go on which unreleased
// packets held up until weft_server_process is called. The descriptor belongs to the server; do not
// close it.
int weft_server_fd(const weft_server *server);
// When weft_server_process must be called next; INT64_MAX if nothing waits for time to pass. Never
// before the last now_us that a call was given; that time means at once, for example when the
// requests for a segment fill a product.
int64_t weft_server_deadline(const weft_server *server);
// Starts what is due and drops what has expired. WEFT_E_NOMEM: what could not be started is kept
// for the next call. Later failures of a product are reported in the status of its packets.
weft_status weft_server_process(weft_server *server, int64_t now_us);

typedef struct weft_server_packet {
  uint64_t client;
  uint64_t stream;
  uint64_t segment;
  const uint8_t *datagram; // a seeded packet of docs/wire.md, header included; NULL on failure
  size_t bytes;
  weft_status status; // WEFT_OK, or why this packet could not be made
  void *lease;        // the server's own
} weft_server_packet;

// Hands out up to `capacity` ready packets; *count receives how many (0 is no error; after
// an error it is 0). Their bytes
// are valid until they are released; every packet must be released, in any order. Errors:
// WEFT_E_ARGUMENT (NULL).
weft_status weft_server_take(weft_server *server, weft_server_packet *packets, size_t capacity,
                             size_t *count);
// Makes room in ready_bytes. If requests waited for that, the descriptor becomes readable, since
// the deadline may now be earlier than the caller knows.
void weft_server_release(weft_server *server, const weft_server_packet *packets, size_t count);

typedef struct weft_server_lane_stats {
  const char *backend; // static
  bool failed;
  uint64_t batches;
  uint64_t packets;
  uint64_t coded_bytes;
  uint64_t busy_us;
} weft_server_lane_stats;

typedef struct weft_server_stats {
  size_t segments;
  size_t segment_bytes; // held now, including copies on devices
  size_t ready_bytes;   // of packets coded or in the making and not yet released
  size_t pending_packets;
  uint64_t evicted;     // segments, to keep to the budget
  uint64_t expired;     // segments expired or dropped
  uint64_t fallen_over; // batches that another lane had to make
  size_t lanes;
  weft_server_lane_stats lane[WEFT_SERVER_MAX_LANES];
} weft_server_stats;

void weft_server_get_stats(weft_server *server, weft_server_stats *out);

// The lane that would get a product of `packets` packets of this shape if all lanes were idle:
// shows where the crossover between CPU and GPU lies. Index into weft_server_options.contexts.
size_t weft_server_predict_lane(weft_server *server, const weft_segment_id *id, size_t packets);

#ifdef __cplusplus
}
#endif
#endif
