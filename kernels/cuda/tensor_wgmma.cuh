// SPDX-License-Identifier: Apache-2.0
// The binary tensor product on sm_90a: one persistent block per multiprocessor, warp-specialised.
//
// One warp streams pairs of tiles into a ring by bulk copies, three expand coefficients into slots,
// two groups of chunks deep where they fit, and two warpgroups multiply: M = 64 positions, N = 256
// bit rows (a chunk), K = 256 bits. A task is one chunk times one pair: two bursts, tile 0 and 1.
// Warpgroup i takes every second task of a unit.
//
// Tensor cores and the packing of their sums share the register file and its ports. So a warpgroup
// first squeezes 128 accumulators into 64 registers, starts its next burst, and packs while that
// runs; two warpgroups keep a burst queued all the time.
#ifndef WEFT_KERNELS_CUDA_TENSOR_WGMMA_CUH
#define WEFT_KERNELS_CUDA_TENSOR_WGMMA_CUH

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/tensor_expand.cuh"
#include "kernels/cuda/tensor_pack.cuh"
#include "kernels/cuda/tensor_ptx.cuh"

enum {
  WEFT_WGMMA_GROUPS = 2, // warpgroups that multiply
  WEFT_WGMMA_THREADS = 128 * (WEFT_WGMMA_GROUPS + 1),
  WEFT_WGMMA_EXPANDERS = 3,       // warps
  WEFT_WGMMA_REGISTERS_FEED = 56, // per thread of the first warpgroup
  WEFT_WGMMA_REGISTERS_MATH = 224 // and of the others: 56 + 2 * 224 = 3 * 168
};

struct weft_wgmma_shared {
  uint64_t full[WEFT_TENSOR_STAGES_MAX], empty[WEFT_TENSOR_STAGES_MAX]; // of the ring of tiles
  uint64_t ready[WEFT_TENSOR_SLOTS_MAX], spent[WEFT_TENSOR_SLOTS_MAX];  // of the ring of chunks
  uint32_t end;                                                         // of the block's run
};

// Position in a ring of barriers.
struct weft_wgmma_ring {
  uint32_t at = 0, parity = 0;
  __device__ void advance(uint32_t count) {
    if (++at == count) {
      at = 0;
      parity ^= 1;
    }
  }
};

// A block's run of units; an item is one group of chunks of one product.
struct weft_wgmma_run {
  uint32_t unit, end, pair, product, group;
  __device__ explicit weft_wgmma_run(const weft_tensor_plan &plan) {
    const uint64_t total = plan.total;
    unit = static_cast<uint32_t>(total * blockIdx.x / gridDim.x);
    end = static_cast<uint32_t>(total * (blockIdx.x + 1) / gridDim.x);
    const uint32_t item = unit / plan.pairs;
    pair = unit - item * plan.pairs;
    product = item / plan.groups;
    group = item - product * plan.groups;
  }
  __device__ void next_item(const weft_tensor_plan &plan) {
    pair = 0;
    if (++group == plan.groups) {
      group = 0;
      product++;
    }
  }
};

__device__ __forceinline__ const weft_tensor_job &weft_wgmma_job(const weft_tensor_batch &batch,
                                                                 uint32_t product) {
  return batch.jobs ? batch.jobs[product] : batch.few[product];
}

// One thread: pairs of tiles into the ring, each in Parts stages of `bytes`.
template <uint32_t Parts>
__device__ __forceinline__ void weft_wgmma_feed(const weft_tensor_args &args, uint32_t tiles,
                                                uint32_t bytes, weft_wgmma_shared *barriers) {
  weft_wgmma_run run(args.plan);
  weft_wgmma_ring stage;
  uint32_t product = ~0u;
  const uint8_t *x = nullptr;
  for (; run.unit < run.end; run.unit++) {
    if (run.product != product) {
      product = run.product;
      x = weft_wgmma_job(args.batch, product).x;
    }
#pragma unroll
    for (uint32_t part = 0; part < Parts; part++, stage.advance(args.plan.stages)) {
      const uint32_t full = weft_shared_address(&barriers->full[stage.at]);
      while (
          !weft_mbarrier_try(weft_shared_address(&barriers->empty[stage.at]), stage.parity ^ 1)) {
      }
      weft_mbarrier_expect(full, bytes);
      weft_bulk_load(tiles + stage.at * bytes,
                     x + (static_cast<size_t>(run.pair) * Parts + part) * bytes, bytes, full);
    }
    if (++run.pair == args.plan.pairs)
      run.next_item(args.plan);
  }
}

// Chunks of `bytes` of coefficients into the slots, group after group, by this warp and its
// neighbours. make(to, job, chunk, warp, warps, wait) makes the share of one warp among some, and
// waits before it writes.
template <class Make>
__device__ __forceinline__ void weft_wgmma_expand(const weft_tensor_args &args, uint8_t *coef,
                                                  uint32_t bytes, weft_wgmma_shared *barriers,
                                                  uint32_t warp, Make make) {
  const uint32_t warps = args.plan.alone ? 1 : WEFT_WGMMA_EXPANDERS;
  const uint32_t share = args.plan.alone ? 0 : warp;
  uint32_t passed = warp; // chunks since one was this warp's alone
  weft_wgmma_run run(args.plan);
  weft_wgmma_ring slot;
  while (run.unit < run.end) {
    const weft_tensor_job job = weft_wgmma_job(args.batch, run.product);
    const uint32_t chunk0 = run.group * args.plan.group;
    for (uint32_t c = 0; c < args.plan.group; c++, slot.advance(args.plan.slots)) {
      if (args.plan.alone && passed != 0) {
        passed--;
        continue;
      }
      passed = WEFT_WGMMA_EXPANDERS - 1;
      const auto wait = [&]() {
        while (
            !weft_mbarrier_try(weft_shared_address(&barriers->spent[slot.at]), slot.parity ^ 1)) {
        }
      };
      if (chunk0 + c < args.plan.chunks) {
        make(coef + slot.at * bytes, job, chunk0 + c, share, warps, wait);
        weft_fence_async_proxy();
      } else {
        wait();
      }
      __syncwarp();
      if ((threadIdx.x & 31) == 0)
        weft_mbarrier_arrive(weft_shared_address(&barriers->ready[slot.at]), 1);
    }
    run.unit += args.plan.pairs - run.pair;
    run.next_item(args.plan);
  }
}

// All steps of a tile against a chunk. Steps is a constant because the tensor cores then get one
// burst; with a loop the compiler fences every step.
template <int Steps>
__device__ __forceinline__ void weft_wgmma_burst(uint32_t (&d)[128], uint32_t a, uint32_t b) {
  weft_wgmma_fence();
#pragma unroll
  for (int step = 0; step < Steps; step++)
    weft_wgmma_n256(d, weft_wgmma_descriptor(a + step * (2 * 1024 >> 4)),
                    weft_wgmma_descriptor(b + step * (2 * 4096 >> 4)), step);
  weft_wgmma_commit();
}

// A warpgroup's way through the tasks, with a pair of tiles in Parts stages. A warp gives back only
// what it has seen itself: its lane 0 arrives, so a warp that lags behind never waits for a phase
// that is over.
template <uint32_t Parts>
struct weft_wgmma_walk {
  const weft_tensor_args &args;
  const uint32_t barriers; // full, empty, ready, spent
  const bool arrives;
  weft_wgmma_run run;
  uint32_t stage, parity;  // of the ring of tiles: the unit's first
  uint32_t slot0, turn;    // slot of the item's first chunk, and the parity of its use
  uint32_t chunk0_, here_; // see chunk0() and here()
  uint32_t task;           // chunk of the item that is next
  uint32_t first;          // the item's first unit in this run
  uint32_t released;       // chunks of the item already given back

  __device__ weft_wgmma_walk(const weft_tensor_args &args_, uint32_t barriers_, uint32_t group)
      : args(args_), barriers(barriers_), arrives((threadIdx.x & 31) == 0), run(args_.plan),
        stage(0), parity(0), slot0(0), turn(0), task(group), first(run.unit), released(0) {
    enter();
  }
  __device__ __forceinline__ void enter() {
    chunk0_ = run.group * args.plan.group;
    here_ = min(args.plan.group, args.plan.chunks - chunk0_);
  }
  // First chunk of the item, and how many it has. With two stages to a pair registers are short:
  // both are computed again, and the end of the run is read again.
  __device__ __forceinline__ uint32_t chunk0() const {
    return Parts == 1 ? chunk0_ : run.group * args.plan.group;
  }
  __device__ __forceinline__ uint32_t here() const {
    return Parts == 1 ? here_ : min(args.plan.group, args.plan.chunks - chunk0());
  }
  __device__ __forceinline__ uint32_t full(uint32_t at) const { return barriers + 8 * at; }
  __device__ __forceinline__ uint32_t empty(uint32_t at) const {
    return barriers + 8 * (WEFT_TENSOR_STAGES_MAX + at);
  }
  __device__ __forceinline__ uint32_t ready(uint32_t at) const {
    return barriers + 8 * (2 * WEFT_TENSOR_STAGES_MAX + at);
  }
  __device__ __forceinline__ uint32_t spent(uint32_t at) const {
    return barriers + 8 * (2 * WEFT_TENSOR_STAGES_MAX + WEFT_TENSOR_SLOTS_MAX + at);
  }
  __device__ __forceinline__ uint32_t stage_of(uint32_t part) const {
    const uint32_t at = stage + part;
    if (part == 0)
      return at;
    if (Parts == 1)
      return at == args.plan.stages ? 0 : at;
    return at >= args.plan.stages ? at - args.plan.stages : at;
  }
  // Waits for a part of this unit's pair; part Parts + i is part i of the next unit's.
  __device__ __forceinline__ void await_part(uint32_t part) const {
    const uint32_t at = stage_of(part);
    weft_mbarrier_wait(full(at), at < part ? parity ^ 1 : parity);
  }
  __device__ __forceinline__ uint32_t slot_of(uint32_t chunk) const {
    const uint32_t at = slot0 + chunk;
    return at >= args.plan.slots ? at - args.plan.slots : at;
  }
  __device__ __forceinline__ void await_chunk(uint32_t chunk) const {
    const bool wrapped = slot0 + chunk >= args.plan.slots;
    weft_mbarrier_wait(ready(slot_of(chunk)), wrapped ? turn ^ 1 : turn);
  }
  __device__ __forceinline__ uint32_t end() const {
    if (Parts == 1)
      return run.end;
    uint32_t value;
    asm volatile("ld.shared.b32 %0, [%1];"
                 : "=r"(value)
                 : "r"(barriers + static_cast<uint32_t>(offsetof(weft_wgmma_shared, end))));
    return value;
  }
  __device__ __forceinline__ bool at_last_unit() const {
    return run.pair + 1 == args.plan.pairs || run.unit + 1 == end();
  }
  // Gives the item's chunks before `until` back. Nobody gives back what was not there yet, or an
  // arrival could count for the use before.
  __device__ __forceinline__ void release_chunks(uint32_t until) {
    for (; released < until; released++) {
      await_chunk(released);
      if (arrives)
        weft_mbarrier_arrive(spent(slot_of(released)), 1);
    }
  }
  __device__ __forceinline__ void release_part(uint32_t part) {
    if (arrives)
      weft_mbarrier_arrive(empty(stage_of(part)), 1);
  }
  // The unit's stages from `given` on; each must have been seen full.
  __device__ __forceinline__ void release_tiles(uint32_t given) {
#pragma unroll
    for (uint32_t part = 0; part < Parts; part++)
      if (part >= given)
        release_part(part);
    stage += Parts;
    if (stage >= args.plan.stages) {
      stage = Parts == 1 ? 0 : stage - args.plan.stages;
      parity ^= 1;
    }
  }
  // To the next unit, whichever item it belongs to.
  __device__ __forceinline__ void leave_unit(uint32_t given) {
    const bool ends = at_last_unit();
    release_tiles(given);
    run.unit++;
    run.pair++;
    if (!ends)
      return;
    release_chunks(args.plan.group);
    released = 0;
    first = run.unit;
    slot0 += args.plan.group;
    if (slot0 >= args.plan.slots) {
      slot0 -= args.plan.slots;
      turn ^= 1;
    }
    run.next_item(args.plan);
    enter();
  }
  // To the next task if there is one, with its operands in place.
  __device__ __forceinline__ void find_task() {
    while (run.unit < end()) {
      await_part(0);
      if (task < here()) {
        await_chunk(task);
        return;
      }
      for (uint32_t part = 1; part < Parts; part++)
        await_part(part);
      task -= here();
      leave_unit(0);
    }
  }
};

template <int Steps>
__device__ __forceinline__ void weft_wgmma_consume(const weft_tensor_args &args, uint32_t coef,
                                                   uint32_t tiles, uint32_t barriers,
                                                   uint32_t group) {
  enum { Pair = WEFT_TENSOR_PAIR_BYTES(Steps), Chunk = WEFT_TENSOR_CHUNK_BYTES(Steps) };
  const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & 3, r = lane >> 2, q = lane & 3;
  const weft_tensor_batch &batch = args.batch;
  const weft_tensor_powers &power = args.plan.power;
  const uint32_t a0 = weft_opaque(weft_wgmma_operand(tiles, 1024));
  const uint32_t b0 = weft_opaque(weft_wgmma_operand(coef, 4096));
  const bool simple = batch.y_words && !batch.accumulate;
  weft_wgmma_walk<1> walk(args, weft_opaque(barriers), group);
  uint32_t d[128], pair[64], tile0[8];
#pragma unroll
  for (int i = 0; i < 64; i++)
    pair[i] = 0;
#pragma unroll
  for (int i = 0; i < 8; i++)
    tile0[i] = 0;
  const uint32_t stride4 = static_cast<uint32_t>(batch.y_stride) * 4;
  uint32_t product = ~0u, row = 0, at = 0;
  uint8_t *y = nullptr;                // this thread's first byte of the product
  bool pending = false, plain = false; // words of the previous task wait to be stored; all of them

  const auto store = [&]() {
    uint32_t word[8];
#pragma unroll
    for (int g = 0; g < 8; g++)
      word[g] = weft_tensor_word(tile0[g], weft_tensor_nibbles(pair, g, power), power);
    if (!plain) {
      weft_tensor_store<8>(batch, weft_wgmma_job(batch, product), row + q, at + warp * 32 + r * 4,
                           word);
      return;
    }
    uint64_t to = reinterpret_cast<uint64_t>(y) + static_cast<uint64_t>(stride4) * (row / 4) + at;
#pragma unroll
    for (int g = 0; g < 8; g++, to += stride4)
      asm volatile("st.global.b32 [%0], %1;" ::"l"(to), "r"(word[g]) : "memory");
  };

  // To the next task and, if it is of another product, there.
  const auto move = [&]() {
    walk.find_task();
    if (walk.run.unit >= walk.run.end || walk.run.product == product)
      return;
    product = walk.run.product;
    y = weft_wgmma_job(batch, product).y + q * batch.y_stride + warp * 32 + r * 4;
  };

  move();
  while (walk.run.unit < walk.run.end) {
    const uint32_t a = weft_opaque(a0 + walk.stage * (Pair >> 4));
    const uint32_t b = weft_opaque(b0 + walk.slot_of(walk.task) * (Chunk >> 4));
    weft_pin_undefined(d);
    weft_wgmma_burst<Steps>(d, a, b);
    weft_pin(pair);
    if (pending)
      store();
    row = (walk.chunk0() + walk.task) * WEFT_TENSOR_CHUNK;
    at = walk.run.pair * WEFT_TENSOR_PAIR;
    plain = simple && at + WEFT_TENSOR_PAIR <= batch.len && row + WEFT_TENSOR_CHUNK <= batch.m;
    weft_wgmma_wait<0>();
    weft_pin(d);
    weft_tensor_pairs(pair, d, power);
    weft_pin(pair);
    weft_pin_undefined(d);
    weft_wgmma_burst<Steps>(d, a + (Pair >> 5), b);
    weft_pin(pair);
#pragma unroll
    for (int g = 0; g < 8; g++)
      tile0[g] = weft_tensor_nibbles(pair, g, power);
    // The next task of the same item is found, and waited for, while the product runs.
    const uint32_t next = walk.task + WEFT_WGMMA_GROUPS;
    const bool same = next < walk.here(), last = walk.at_last_unit();
    const uint32_t next_task = same ? next : next - walk.here();
    const uint32_t next_stage = same ? walk.stage : walk.stage_of(1);
    pending = same || (!last && next_task < walk.here());
    if (pending) {
      if (!same)
        weft_mbarrier_wait(walk.full(next_stage), next_stage ? walk.parity : walk.parity ^ 1);
      if (walk.run.unit < walk.first + WEFT_WGMMA_GROUPS) // later ones have met every chunk
        walk.await_chunk(next_task);
    }
    weft_wgmma_wait<0>();
    weft_pin(d);
    weft_tensor_pairs(pair, d, power);
    weft_pin(pair);
    if (last)
      walk.release_chunks(min(next, walk.here()));
    if (pending) {
      walk.task = next_task;
      if (!same) {
        walk.release_tiles(0);
        walk.run.unit++;
        walk.run.pair++;
      }
    } else {
      store();
      walk.task = next - walk.here();
      walk.leave_unit(0);
      move();
    }
  }
}

// All threads of the block.
__device__ __forceinline__ void weft_wgmma_start(const weft_tensor_plan &plan,
                                                 weft_wgmma_shared *barriers) {
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < plan.stages; i++) {
      weft_mbarrier_init(weft_shared_address(&barriers->full[i]), 1);
      weft_mbarrier_init(weft_shared_address(&barriers->empty[i]), 4 * WEFT_WGMMA_GROUPS);
    }
    for (uint32_t i = 0; i < plan.slots; i++) {
      weft_mbarrier_init(weft_shared_address(&barriers->ready[i]),
                         plan.alone ? 1 : WEFT_WGMMA_EXPANDERS);
      weft_mbarrier_init(weft_shared_address(&barriers->spent[i]), 4 * WEFT_WGMMA_GROUPS);
    }
    weft_mbarrier_init_done();
    barriers->end = weft_wgmma_run(plan).end;
  }
  __syncthreads();
}

template <int Steps>
__global__ void __launch_bounds__(WEFT_WGMMA_THREADS, 1)
    weft_wgmma_kernel(const __grid_constant__ weft_tensor_args args) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint8_t memory[];
  __shared__ weft_wgmma_shared barriers;
  uint8_t *tiles = memory + args.plan.slots * WEFT_TENSOR_CHUNK_BYTES(Steps);
  weft_wgmma_start(args.plan, &barriers);
  const uint32_t warpgroup = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
  if (warpgroup == 0) {
    weft_registers_give<WEFT_WGMMA_REGISTERS_FEED>();
    const uint32_t warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
    if (warp > 0)
      weft_wgmma_expand(args, memory, WEFT_TENSOR_CHUNK_BYTES(Steps), &barriers, warp - 1,
                        [&](uint8_t *to, const weft_tensor_job &job, uint32_t chunk, uint32_t share,
                            uint32_t warps, auto wait) {
                          weft_tensor_expand_chunk(to, args.batch, job, chunk * WEFT_TENSOR_CHUNK,
                                                   share, warps, wait);
                        });
    else if (threadIdx.x == 0)
      weft_wgmma_feed<1>(args, weft_shared_address(tiles), WEFT_TENSOR_PAIR_BYTES(Steps),
                         &barriers);
  } else {
    weft_registers_take<WEFT_WGMMA_REGISTERS_MATH>();
    weft_wgmma_consume<Steps>(args, weft_shared_address(memory), weft_shared_address(tiles),
                              weft_shared_address(&barriers), warpgroup - 1);
  }
#else
  (void)args;
#endif
}

// Cuts the batch and launches one such kernel on it, a block per multiprocessor. `aside_bytes`: of
// static shared memory beside the barriers.
weft_status weft_wgmma_launch(const weft_exec *exec, const weft_tensor_batch &batch,
                              const weft_tensor_sizes &sizes, uint32_t aside_bytes,
                              void (*kernel)(weft_tensor_args));

#endif
