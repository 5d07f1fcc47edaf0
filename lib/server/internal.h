// SPDX-License-Identifier: Apache-2.0
// Internals of the streaming server, for the files of lib/server.
//
// A lane is one context with its thread. A batch is one product (coded packets of one segment for
// some clients), a flight is the batches that a lane launches together, and a slab is the memory
// that holds a batch's datagrams. A want is a client's outstanding request for packets.
//
// One mutex guards everything below, except what is marked as belonging to a lane's thread. Coding,
// copying, waiting for devices and freeing segments happen without it.
#ifndef WEFT_LIB_SERVER_INTERNAL_H
#define WEFT_LIB_SERVER_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/ctx.h"
#include "weft/rlnc.h"
#include "weft/server.h"

enum {
  WEFT_LANE_DEPTH = 3,   // flights that a device lane keeps in progress
  WEFT_FLIGHT_MAX = 32,  // products per flight
  WEFT_LANE_SPARES = 64, // most spare slabs that a host lane keeps
  WEFT_FEW_SPARES = 8,   // this many are kept whatever their size
  WEFT_READY_PARTS = 4,  // parts of ready_bytes; a product may take one of them
  WEFT_COST_BUCKETS = 64 // by the logarithm of a product's multiply-accumulates
};

// What a product costs on a lane: a mean duration per size class, learnt as products finish.
typedef struct weft_lane_cost {
  double work[WEFT_COST_BUCKETS]; // mean multiply-accumulates of the class; 0: none seen
  double us[WEFT_COST_BUCKETS];   // mean duration
} weft_lane_cost;

typedef struct weft_server_want {
  uint64_t client;
  int64_t asked_us;
  uint32_t packets;
} weft_server_want;

typedef struct weft_server_segment {
  struct weft_server_segment *hash_next;
  struct weft_server_segment *older, *newer; // by last use
  weft_segment_id id;
  uint8_t *data;      // (n, k), padded
  size_t bytes;       // held, including copies on devices
  int64_t expires_us; // INT64_MIN: dropped
  uint64_t next_seed;
  size_t refs;                                   // batches being made
  weft_segment *resident[WEFT_SERVER_MAX_LANES]; // created and used by the lane's thread
  // Requests that wait to be batched with others, by age.
  weft_server_want *wants;
  size_t want_count, want_capacity, want_packets;
  size_t batch_packets;                            // most packets in one product
  struct weft_server_segment *due_prev, *due_next; // list of segments with wants, in order of turn
  bool dead; // removed from the map; freed with the last reference
} weft_server_segment;

// Products launched by one call, on one queue of a lane: launching many costs the same as one.
typedef struct weft_server_flight {
  struct weft_server_batch *batch[WEFT_FLIGHT_MAX];
  size_t count;
  double work;  // of all its products
  bool crowded; // not a single product on an otherwise idle lane
  int64_t start_us;
} weft_server_flight;

// One product: packets of one segment for some clients, in one slab of datagrams.
typedef struct weft_server_batch {
  struct weft_server_batch *next;
  weft_server_segment *segment; // NULL once the batch is made
  uint64_t stream, segment_id;
  weft_server_want *wants;
  size_t want_count;
  size_t packets;
  uint64_t first_seed;
  uint32_t tried;  // lanes that failed to make it, as bits
  size_t lane;     // index
  double work;     // multiply-accumulates
  double guess_us; // predicted duration
  weft_status status;
  // The slab: datagram i starts at slab + i * stride, its payload payload_at bytes into it.
  uint8_t *slab;
  weft_mem slab_mem;
  size_t slab_room; // allocated, >= slab_bytes
  size_t slab_bytes, stride, payload_at, datagram_bytes;
  weft_packet *headers; // sparse; NULL for dense packets
  weft_encoder *encoder;
  // Handing packets to the caller.
  struct weft_server_batch *before;     // previous in the list of taken batches
  size_t want_at, want_done, packet_at; // next packet to take
  size_t unreleased;                    // packets not yet released by the caller
} weft_server_batch;

typedef struct weft_server_spare {
  uint8_t *slab;
  size_t room;
} weft_server_spare;

typedef struct weft_server_lane {
  struct weft_server *server;
  size_t index;
  weft_ctx *ctx;
  pthread_t thread;
  bool started;
  bool failed;
  pthread_cond_t wake;
  weft_server_batch *head, *tail; // assigned, not started
  double backlog_us;              // predicted time of everything assigned and unfinished
  // What a product takes alone, and what each one adds while others are in progress: a device takes
  // hardly longer for several than for one.
  weft_lane_cost alone, crowded;
  weft_server_lane_stats stats;
  weft_server_spare spare[WEFT_LANE_SPARES]; // oldest first
  size_t spares;
  // Used by the lane's thread only.
  weft_queue *queue[WEFT_LANE_DEPTH];
  weft_server_flight flying[WEFT_LANE_DEPTH];
  size_t flying_first, flying_count;
  int64_t last_done_us;
} weft_server_lane;

struct weft_server {
  weft_allocator allocator;
  weft_server_options options;
  pthread_mutex_t lock;
  bool stopping;
  int fd;
  bool signalled; // fd is readable
  bool let_go;    // a release has let go on what was held up, and no process has come since
  weft_server_lane lane[WEFT_SERVER_MAX_LANES];
  size_t lanes;
  // Segments: a hash table with chains, a list by last use, a list of those with wants.
  weft_server_segment **table;
  size_t table_size; // a power of two
  weft_server_segment *oldest, *newest;
  weft_server_segment *due_head, *due_tail;
  size_t full;                 // segments whose wants fill a product
  weft_server_segment *buried; // to be freed without the lock; linked by hash_next
  int64_t next_expiry_us;
  int64_t now_us; // as the caller said last
  // Finished batches with packets to take.
  weft_server_batch *ready_head, *ready_tail;
  weft_server_batch *taken; // all packets handed out, not all released; caller's thread only
  size_t running;           // batches assigned and not finished
  size_t explored;          // counts products that could go to any lane
  weft_server_stats stats;
};

static inline void *weft_server_take_memory(const weft_server *server, size_t bytes) {
  return server->allocator.alloc(server->allocator.user, bytes > 0 ? bytes : 1, 64);
}

static inline void weft_server_give_memory(const weft_server *server, void *memory) {
  if (memory)
    server->allocator.free(server->allocator.user, memory);
}

static inline int64_t weft_server_clock(const weft_server *server) {
  return server->options.now_us(server->options.user);
}

// Coding ahead is bounded by the packets not yet released; whatever product comes next, there is
// room for it. Lock held.
static inline bool weft_server_may_code(const weft_server *server) {
  const size_t bound = server->options.ready_bytes;
  return server->stats.ready_bytes <= bound - bound / WEFT_READY_PARTS;
}

// --- cost.c: how long a product takes on a lane ---

double weft_cost_work(const weft_segment_id *id, size_t packets);
double weft_cost_predict(const weft_lane_cost *cost,
                         double work); // microseconds; 0 if nothing seen
void weft_cost_learn(weft_lane_cost *cost, double work, double us);

// --- segments.c; all with the lock held ---

// Unlocks, then frees the segments that are no longer referenced.
void weft_server_unlock(weft_server *server);
weft_server_segment *weft_server_find(const weft_server *server, uint64_t stream, uint64_t segment);
void weft_server_insert(weft_server *server, weft_server_segment *segment);
void weft_server_remove(weft_server *server, weft_server_segment *segment);
void weft_server_touch(weft_server *server, weft_server_segment *segment);
void weft_server_unref(weft_server *server, weft_server_segment *segment);
void weft_server_expire(weft_server *server, int64_t now_us);
bool weft_server_make_room(weft_server *server, size_t bytes);

// --- wants.c: what clients wait for; all with the lock held ---

static inline bool weft_wants_full(const weft_server_segment *segment) {
  return segment->want_packets >= segment->batch_packets;
}

// Adds a want. A segment's first want appends the segment to the list of turns.
weft_status weft_wants_add(weft_server *server, weft_server_segment *segment,
                           const weft_server_want *want);
// Moves wants for up to `packets` packets to the batch, oldest first.
void weft_wants_move(weft_server *server, weft_server_segment *segment, size_t packets,
                     weft_server_batch *batch);
// After a product: moves the segment to the end of the list, or removes it if it has no wants left.
void weft_wants_pass_turn(weft_server *server, weft_server_segment *segment);
// Drops a client's wants from a segment that has wants.
void weft_wants_cancel(weft_server *server, weft_server_segment *segment, uint64_t client);
void weft_wants_drop(weft_server *server, weft_server_segment *segment);

// --- lane.c ---

weft_status weft_lane_start(weft_server *server, size_t index, weft_ctx *ctx);
// Measures the lane on synthetic data, on the caller's thread, before the lane starts.
weft_status weft_lane_calibrate(weft_server_lane *lane);
void weft_lane_stop(weft_server_lane *lane); // the lock must not be held

// Decides which lane should make packets now, and how many of up to `packets`; lock held.
typedef struct weft_server_share {
  weft_server_lane *lane; // NULL: no lane is left
  size_t packets;
} weft_server_share;
weft_server_share weft_server_next_share(weft_server *server, const weft_segment_id *id,
                                         size_t packets);
// Whether every lane has enough work for some time; lock held.
bool weft_server_busy(const weft_server *server);
// Assigns the batch to `lane`, or, if that is NULL, to the lane predicted to finish it first; lock
// held. Returns false if no lane is left for it, or the server is being freed.
bool weft_server_assign(weft_server *server, weft_server_lane *lane, weft_server_batch *batch);

// --- hand_out.c; with the lock held ---

void weft_server_signal(weft_server *server); // makes fd readable
void weft_server_quiet(weft_server *server);  // the opposite, unless there is a reason left

// --- batch.c ---

// Return the bytes that one packet of such a segment takes in a slab, and the most packets in one
// product.
size_t weft_batch_stride(const weft_server *server, const weft_segment_id *id);
size_t weft_batch_most(const weft_server *server, const weft_segment_id *id);
// Makes a batch from `packets` of the segment's wants; lock held.
weft_status weft_batch_new(weft_server *server, weft_server_segment *segment, size_t packets,
                           weft_server_batch **out);
// Provides what the product needs: its segment on the lane, its slab, its encoder; no lock.
weft_status weft_batch_prepare(weft_server_lane *lane, weft_server_batch *batch);
// Enqueues a flight's products, all of them prepared, in one call; no lock. After an error the
// queue is idle, and the products can be enqueued again.
weft_status weft_flight_begin(weft_server_lane *lane, const weft_server_flight *flight,
                              weft_queue *queue);
// Frees what was needed only to make the batch; no lock.
void weft_batch_end(weft_server_lane *lane, weft_server_batch *batch);
// Releases the slab of a batch that another lane must make again; no lock.
void weft_batch_drop_slab(weft_server *server, weft_server_batch *batch);
// Frees the lanes' spare slabs, for a caller that has run out of memory; returns false if there
// were none; no lock.
bool weft_server_free_spares(weft_server *server);
// Appends the batch to the ready list and signals the caller's event loop; lock held.
void weft_batch_ready(weft_server *server, weft_server_batch *batch);
void weft_batch_free(weft_server *server, weft_server_batch *batch);

#endif
