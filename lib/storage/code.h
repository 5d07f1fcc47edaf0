// SPDX-License-Identifier: Apache-2.0
// Internals of codes and plans. A plan computes some shards (outputs) from others (inputs):
// encoding is the plan from the data shards to the parity shards; recovery is any other plan.
#ifndef WEFT_LIB_STORAGE_CODE_H
#define WEFT_LIB_STORAGE_CODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/ctx.h"
#include "lib/storage/generator.h"
#include "lib/storage/plan_cache.h"
#include "lib/storage/transform.h"
#include "lib/storage/xor_program.h"
#include "weft/storage.h"

enum { WEFT_FACTORS_LEAST = 24 }; // matrices with fewer entries gain nothing from factors

// A faster form of a plan, made once the plan has read enough to repay it.
typedef struct weft_improvement {
  atomic_size_t worked; // bytes read so far
  size_t after;         // bytes read that repay it; SIZE_MAX: none, or done
  atomic_flag begun;    // by one thread, once
} weft_improvement;

struct weft_plan {
  weft_code *code;
  atomic_size_t holders; // the cache, the caller, calls in progress
  size_t inputs;         // k; only those needed where the code is not MDS
  size_t outputs;        // r
  size_t stand_ins;      // parity shards among the inputs; byte codes only
  bool in_order;         // ids are 0, 1, 2, ...: encoding
  uint8_t *ids;          // inputs, then outputs; these and the matrix follow the struct
  uint8_t *matrix;       // (r, inputs)
  // For byte codes and devices: factors of the matrix, where they are known and pay off; NULL until
  // then. Owned, like all of these.
  _Atomic(weft_factors *) factors;
  // A CRS code's bit matrix, where the host row has kernels for it and it pays off; otherwise
  // `plain`, the program used from the start. `reduced` is NULL until that program exists.
  uint64_t *blocks;
  weft_xor_program *plain;
  _Atomic(weft_xor_program *) reduced;
  _Atomic(weft_xor_code *) compiled;
  weft_improvement on_host, on_device;
};

struct weft_code {
  weft_ctx *ctx;
  weft_generator generator;
  size_t k, m, w;
  size_t packet_bytes; // 0: RS
  bool mds;            // any k shards suffice; otherwise the user's own matrix
  bool device_inverse; // recovery matrices are computed on the device
  bool rebuilds;       // the host row can compute recovery matrices from a loss itself
  bool zero_copy;      // the device works on PINNED shards in place
  char name[WEFT_CODE_NAME_BYTES];
  uint8_t *bits; // CRS: (m * w, k * w), the expanded parity matrix
  weft_plan *encode;
  weft_transform_memory transforms; // for recoveries
  weft_plan_cache cache;
  // Recoveries whose plan was not cached: misses, counted without a lock.
  atomic_uint_least64_t unkept;
};

// Whether encoding has factors; if not, no recovery has any.
static inline bool weft_code_has_factors(const weft_code *code) {
  return code->encode && atomic_load_explicit(&code->encode->factors, memory_order_relaxed);
}

static inline bool weft_code_is_crs(const weft_code *code) { return code->packet_bytes != 0; }

static inline uint8_t *weft_stripe_shard(const weft_stripe *stripe, size_t i) {
  if (stripe->shards)
    return stripe->shards[i];
  return stripe->base ? stripe->base + i * stripe->stride : NULL;
}

// Checks what every call requires: memory that the context can access, a stride that keeps shards
// apart, and a queue of the same context.
weft_status weft_code_check(const weft_code *code, const weft_stripe *stripes, size_t count,
                            weft_queue *queue);

// Checks whether the lost shards can be recovered: all ids valid and distinct, and enough shards
// left.
weft_status weft_code_check_erasures(const weft_code *code, const weft_erasures *erasures);

// Makes a plan, held once, by the caller, for ids that are distinct and in range. `reduce`: build
// its improved form at once.
weft_status weft_plan_make(weft_code *code, const uint8_t *inputs, size_t input_count,
                           const uint8_t *outputs, size_t output_count, bool reduce,
                           weft_plan **out);
void weft_plan_let_go(weft_plan *plan);
// Counts what the host row reads of these stripes towards the plan's improvement, and makes the
// improvement once it is repaid.
void weft_plan_repay(weft_plan *plan, const weft_stripe *stripes, size_t count);

// The shards that a recovery reads and writes.
typedef struct weft_plan_request {
  uint8_t ids[2 * WEFT_MAX_SHARDS]; // inputs, then outputs
  size_t inputs, outputs;
  // Absent data shards, for which the last inputs stand in. They are the first outputs if
  // everything lost is wanted; otherwise they are listed in `apart`.
  const uint8_t *absent;
  size_t absent_count;
  uint8_t apart[WEFT_MAX_SHARDS];
} weft_plan_request;

// Makes a plan on the stack and runs it: where no plans are cached, allocating memory would take a
// good part of a short recovery. For small plans of a byte code, on the host, that do not run long
// enough to be improved. The request has been made for the code.
enum { WEFT_SMALL_PLAN_BYTES = 2048 };
bool weft_plan_is_small(const weft_code *code, size_t inputs, size_t outputs, size_t stand_ins,
                        const uint8_t *ids, const weft_stripe *stripes, size_t count);
weft_status weft_plan_run_once(weft_code *code, weft_plan_request *request,
                               const weft_stripe *stripes, size_t count, weft_queue *queue);
// The same without a request, for codes whose host row computes the matrix from the loss itself
// (weft_code.rebuilds).
weft_status weft_plan_rebuild_once(weft_code *code, const weft_loss *loss,
                                   const weft_stripe *stripes, size_t count, weft_queue *queue);

// Runs a plan wherever its stripes are stored; in_order: shards are listed in the plan's order.
// WEFT_E_ARGUMENT: a shard that is read or written is NULL.
weft_status weft_plan_dispatch(weft_plan *plan, const weft_stripe *stripes, size_t count,
                               bool in_order, weft_queue *queue);
// Whether all shards that the plan reads or writes are there.
bool weft_plan_has_shards(const weft_plan *plan, const weft_stripe *stripe, bool in_order);
// weft_plan_dispatch on the host row, for shards that are known to be there.
weft_status weft_plan_execute(weft_plan *plan, const weft_stripe *stripes, size_t count,
                              bool in_order);
// The same for part of a stripe, with the threads of `pool` (NULL: the caller's alone). far: CRS
// packets are in no near cache, which the part's own size does not show.
weft_status weft_plan_execute_part(weft_plan *plan, const weft_stripe *part, bool far,
                                   weft_pool *pool);

#endif
