// SPDX-License-Identifier: Apache-2.0
// Inside of codes and plans. Encoding is the plan whose inputs are the data shards and whose
// outputs are the parity shards; recovering is any other plan.
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

enum { WEFT_FACTORS_LEAST = 24 }; // entries of a matrix: fewer are no worse as they are

// Something that makes a plan quicker, once it has read enough to repay it.
typedef struct weft_improvement {
  atomic_size_t worked; // bytes read so far
  size_t after;         // bytes read that repay it; SIZE_MAX: there is none, or it is there
  atomic_flag begun;    // by one thread, once
} weft_improvement;

struct weft_plan {
  weft_code *code;
  atomic_size_t holders; // the cache, the caller, calls under way
  size_t inputs;         // k; what is needed of them where the code is not MDS
  size_t outputs;        // r
  size_t stand_ins;      // of the inputs, parity shards; of a byte code alone
  bool in_order;         // ids are 0, 1, 2, ...: encoding
  uint8_t *ids;          // inputs, then outputs; these and the matrix follow the struct
  uint8_t *matrix;       // (r, inputs)
  // A byte code's, or for a device, factors of the matrix, where they are known and pay; NULL until
  // then. Owned, as are all of these.
  _Atomic(weft_factors *) factors;
  // A CRS code's bit matrix, where the host row takes it so and that pays; else a program from the
  // start, and NULL until there is a reduced one.
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
  bool mds;            // any k shards suffice; else the matrix is the user's own
  bool device_inverse; // recovery matrices are made on the device
  bool rebuilds;       // the host row has its own way from a loss to the matrix
  bool zero_copy;      // the device works on PINNED shards in place
  char name[WEFT_CODE_NAME_BYTES];
  uint8_t *bits; // CRS: (m * w, k * w), the expanded parity matrix
  weft_plan *encode;
  weft_transform_memory transforms; // of recoveries
  weft_plan_cache cache;
  // Recoveries whose plan was made and not kept: misses, without a lock.
  atomic_uint_least64_t unkept;
};

// Whether encoding has factors, without which no recovery has.
static inline bool weft_code_has_factors(const weft_code *code) {
  return code->encode && atomic_load_explicit(&code->encode->factors, memory_order_relaxed);
}

static inline bool weft_code_is_crs(const weft_code *code) { return code->packet_bytes != 0; }

static inline uint8_t *weft_stripe_shard(const weft_stripe *stripe, size_t i) {
  if (stripe->shards)
    return stripe->shards[i];
  return stripe->base ? stripe->base + i * stripe->stride : NULL;
}

// What every call checks first: memory that the context reaches, shards that a stride keeps apart,
// and a queue of the same context.
weft_status weft_code_check(const weft_code *code, const weft_stripe *stripes, size_t count,
                            weft_queue *queue);

// Whether a loss can be made good: ids that there are, once each, and enough that is left.
weft_status weft_code_check_erasures(const weft_code *code, const weft_erasures *erasures);

// A plan held once, by the caller, of ids that are distinct and in range. `reduce`: at once.
weft_status weft_plan_make(weft_code *code, const uint8_t *inputs, size_t input_count,
                           const uint8_t *outputs, size_t output_count, bool reduce,
                           weft_plan **out);
void weft_plan_let_go(weft_plan *plan);
// Counts what is read of stripes by the host row towards what would make the plan quicker, and
// makes that once it is repaid.
void weft_plan_repay(weft_plan *plan, const weft_stripe *stripes, size_t count);

// What is read and written to make a loss good.
typedef struct weft_plan_request {
  uint8_t ids[2 * WEFT_MAX_SHARDS]; // inputs, then outputs
  size_t inputs, outputs;
  // Data shards, in whose place the last inputs stand. They are the first outputs where all that is
  // lost is wanted, otherwise apart.
  const uint8_t *absent;
  size_t absent_count;
  uint8_t apart[WEFT_MAX_SHARDS];
} weft_plan_request;

// Makes a plan on the stack and runs it: where no plans are kept, asking for memory would be a good
// part of a short recovery. For a plan that is small, of a byte code, on the host, and has no time
// to become quicker. The request has been made for the code.
enum { WEFT_SMALL_PLAN_BYTES = 2048 };
bool weft_plan_is_small(const weft_code *code, size_t inputs, size_t outputs, size_t stand_ins,
                        const uint8_t *ids, const weft_stripe *stripes, size_t count);
weft_status weft_plan_run_once(weft_code *code, weft_plan_request *request,
                               const weft_stripe *stripes, size_t count, weft_queue *queue);
// The same without a request, by the row's own way from a loss to its matrix, which it has for the
// code.
weft_status weft_plan_rebuild_once(weft_code *code, const weft_loss *loss,
                                   const weft_stripe *stripes, size_t count, weft_queue *queue);

// Runs a plan where its stripes lie; in_order: shards lie in the plan's order. WEFT_E_ARGUMENT: one
// that is read or written is NULL.
weft_status weft_plan_dispatch(weft_plan *plan, const weft_stripe *stripes, size_t count,
                               bool in_order, weft_queue *queue);
// Whether all shards that it reads or writes are there.
bool weft_plan_has_shards(const weft_plan *plan, const weft_stripe *stripe, bool in_order);
// The same as weft_plan_dispatch on the host row; what the stripes hold is there already.
weft_status weft_plan_execute(weft_plan *plan, const weft_stripe *stripes, size_t count,
                              bool in_order);
// Likewise part of a stripe, by the threads of `pool` (NULL: the caller's alone). far: CRS packets
// are in no near cache, which the part's own size does not tell.
weft_status weft_plan_execute_part(weft_plan *plan, const weft_stripe *part, bool far,
                                   weft_pool *pool);

#endif
