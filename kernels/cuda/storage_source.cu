// SPDX-License-Identifier: Apache-2.0
// Writes the kernel of one bit matrix. A thread has a word of each packet, or 32 bytes of each
// shard, and sums in registers for all outputs. Shards come through rings (storage_ring.cu); a
// block ends with its tile, so that the scheduler divides the work.
#include "kernels/cuda/storage_sums.h"
#include "kernels/smaller.h"

namespace {

using weft_made::Packets;
using weft_made::Ring;
using weft_made::Text;

const char functions[] = R"(
template <class V> __device__ __forceinline__ void put(u64 to, V v) {
#if ACCUMULATE
  v = X2(v, __ldcs((const V *)to));
#endif
  __stcs((V *)to, v);
}
__device__ __forceinline__ void wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    weft_kernel(const __grid_constant__ Args args) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  const u64 *rows = args.own + blockIdx.y * (K + M);
)";

// A warp has 1024 bytes, and a thread two times 16 of these. The last warps do again what others
// do, and write the same, unless that would be added twice.
const char place_of_bytes[] = R"(
  const u64 own = ((u64)blockIdx.x * (THREADS / 32) + threadIdx.x / 32) * 1024,
            last = args.length - 1024, at = (own < last ? own : last) + threadIdx.x % 32 * 16;
  const bool low_is_own = !ACCUMULATE || at >= own, high_is_own = !ACCUMULATE || at + 512 >= own;
)";

// Threads behind the end do what the last ones do.
const char place_of_packets[] = R"(
  const u32 lane = threadIdx.x % 32, unit = blockIdx.x * THREADS + threadIdx.x;
  const u32 units = (u32)args.length * (PACKET / 4);
  const bool is_own = unit < units;
  const u32 place = TOGETHER ? min(unit - lane, units - 32) + lane : is_own ? unit : units - 1;
  const u64 at = (u64)(place / (PACKET / 4)) * (W * PACKET) + place % (PACKET / 4) * 4;
)";

void add_place(Text &text, const weft_program_shape &shape, const weft_program_plan &plan) {
  if (!shape.packet_bytes) {
    text.put(place_of_bytes, sizeof place_of_bytes - 1);
    return;
  }
  text.add("#define W %zuu\n#define PACKET %zuu\n#define TOGETHER %d\n", shape.w,
           shape.packet_bytes, plan.way != WEFT_PROGRAM_WORDS);
  text.put(place_of_packets, sizeof place_of_packets - 1);
}

void add_shard(Text &text, const weft_program_shape &shape, Ring &ring, size_t j, Packets &p) {
  ring.next(j);
  if (!shape.packet_bytes)
    text.add("  u32 b%zu[8]; take(%zu, b%zu);\n", j, ring.place(j), j);
  for (size_t c = 0; c < shape.w; c++) {
    char value[48];
    if (shape.packet_bytes)
      snprintf(value, sizeof value, "take(%zu, %zu)", ring.place(j), c);
    else
      snprintf(value, sizeof value, "b%zu[%zu]", j, c);
    weft_made::add_packet(text, shape, p, j * shape.w + c, value,
                          j + 1 == shape.k && c + 1 == shape.w);
  }
}

// By way of places of the ring, which all lanes have read.
void add_outputs_of_groups(Text &text, const weft_program_shape &shape, const Ring &ring) {
  text.add("  __syncwarp();\n");
  for (size_t i = 0; i < shape.m; i++) {
    for (size_t l = 0; l < shape.w; l++)
      text.add("  keep(%zu, %zu, y%zu);\n", ring.place(i), l, i * shape.w + l);
    text.add("  leave(%zu, rows[%zu]);\n", ring.place(i), shape.k + i);
  }
}

void add_outputs_of_packets(Text &text, const weft_program_shape &shape) {
  text.add("  if (is_own) {\n");
  for (size_t i = 0; i < shape.m; i++)
    for (size_t l = 0; l < shape.w; l++)
      text.add("  put(rows[%zu] + at + %zu, y%zu);\n", shape.k + i, l * shape.packet_bytes,
               i * shape.w + l);
  text.add("  }\n");
}

void add_outputs_of_bytes(Text &text, const weft_program_shape &shape, Ring &ring) {
  for (size_t i = 0; i < shape.m; i++) {
    const size_t place = ring.place_for_output(i);
    text.add("  { u32 v[8] = {");
    for (size_t l = 0; l < 8; l++)
      text.add("y%zu%s", i * shape.w + l, l < 7 ? ", " : "};\n");
    text.add("    keep(%zu, v); }\n", place);
    ring.kept();
  }
  ring.leave();
}

// As wide as copies and stores can be. Adding to what is there asks whose each word is.
weft_program_way way_of(const weft_program_shape &shape) {
  enum { LineBytes = 128, Wide = 16 };
  const size_t packet = shape.packet_bytes;
  if (packet == 0 || packet % LineBytes == 0)
    return packet ? WEFT_PROGRAM_LINES : WEFT_PROGRAM_WORDS;
  const bool groups = LineBytes % packet == 0 && shape.w * packet % Wide == 0;
  return groups && !shape.accumulate ? WEFT_PROGRAM_GROUPS : WEFT_PROGRAM_WORDS;
}

// A ring of at most `ahead` shards of bytes, which are sliced `slice` at a time.
void slice_by_loops(const weft_program_shape &shape, weft_program_plan *plan, size_t ahead,
                    size_t slice, size_t unroll, size_t leave) {
  const size_t all = (shape.k + slice - 1) / slice * slice;
  plan->ahead = weft_smaller(ahead, all);
  plan->slice = slice;
  plan->unroll = unroll;
  plan->leave = weft_smaller(leave, plan->ahead);
}

// Registers for all slots and as much again as sums of one take; shards on their way in shared
// memory, of which there must be a lot. All measured on an H200, as below.
weft_status plan_steps(const weft_program_shape *shape, weft_program_plan *plan) {
  enum { FewSlots = 12, SomeSlots = 17, ManySlots = 26 };
  const size_t slots = shape->factors->slots;
  plan->way = way_of(*shape);
  if (slots > WEFT_PROGRAM_SLOTS || shape->w != 8 || shape->k + shape->m > WEFT_PROGRAM_SHARDS ||
      plan->way == WEFT_PROGRAM_GROUPS)
    return WEFT_E_UNSUPPORTED;
  if (shape->packet_bytes) {
    plan->threads = 128;
    plan->blocks_per_sm = 2;
    plan->ahead = 11;
    plan->meet = 2;
    return WEFT_OK;
  }
  const bool few = slots <= FewSlots, some = slots <= SomeSlots;
  plan->threads = few || (some && shape->m <= 8) ? 64 : 128;
  plan->blocks_per_sm = (few ? 512 : some ? 384 : 256) / plan->threads;
  const bool room = !few && !some && slots <= ManySlots; // for registers of two shards at once
  slice_by_loops(*shape, plan, plan->threads == 64 ? 8 : 12, room ? 4 : 2, room ? 2 : 1, 8);
  return WEFT_OK;
}

} // namespace

// As many threads as there are registers for sums. Small blocks divide the work best; the warps of
// larger ones, which meet now and then, share the code that they fetch: kernels as long as the
// instruction cache are bound by that. All measured on an H200.
extern "C" weft_status weft_program_plan_for(const weft_program_shape *shape,
                                             weft_program_plan *plan) {
  enum { LongCode = 20, ShortColumn = 32 }; // shards, packets
  const size_t sums = shape->m * shape->w;
  const bool bytes = !shape->packet_bytes, is_long = shape->k > LongCode;
  *plan = {};
  if (shape->factors)
    return plan_steps(shape, plan);
  if (sums == 0 || shape->k == 0 || sums > WEFT_PROGRAM_SUMS ||
      shape->k + shape->m > WEFT_PROGRAM_SHARDS || shape->packet_bytes % 4)
    return WEFT_E_UNSUPPORTED;
  const size_t resident = sums <= 16 ? 1024 : sums <= 32 ? 768 : sums <= 64 ? 512 : 384;
  const bool large = sums > 64 && (is_long || bytes);
  plan->threads = large || (bytes && sums > 16 && is_long) ? 128 : 64;
  if (!bytes && shape->k * shape->w <= ShortColumn)
    plan->threads = 256;
  plan->blocks_per_sm = resident / plan->threads;
  plan->way = way_of(*shape);
  if (bytes) {
    slice_by_loops(*shape, plan, plan->threads == 64 && sums > 32 ? 8 : 12, large ? 3 : 2, 1, 12);
    return WEFT_OK;
  }
  plan->ahead = shape->k < 8 ? shape->k + 1 : 8;
  plan->meet = plan->threads == 128 ? 4 : sums > 96 ? 2 : 0;
  return WEFT_OK;
}

extern "C" size_t weft_program_ring_bytes(const weft_program_shape *shape,
                                          const weft_program_plan *plan) {
  return plan->ahead * plan->threads * (shape->packet_bytes ? 4 * shape->w : 32);
}

extern "C" size_t weft_program_blocks(const weft_program_shape *shape,
                                      const weft_program_plan *plan, size_t length) {
  const size_t units =
      shape->packet_bytes ? length * (shape->packet_bytes / 4) : (length + 31) / 32;
  return (units + plan->threads - 1) / plan->threads;
}

extern "C" weft_status weft_program_source(const weft_program_shape *shape,
                                           const weft_program_plan *plan,
                                           const weft_allocator *allocator, char **source) {
  Text text(allocator);
  text.put(weft_made::prelude, strlen(weft_made::prelude));
  text.add("#define K %zuu\n#define M %zuu\n#define THREADS %zuu\n#define BLOCKS %zu\n", shape->k,
           shape->m, plan->threads, plan->blocks_per_sm);
  text.add("#define ACCUMULATE %d\n", shape->accumulate);
  text.put(functions, sizeof functions - 1);
  add_place(text, *shape, *plan);
  text.add("  if (!args.overlaps) wait();\n"); // storage_overlap.cuh
  if (shape->factors) {
    weft_made::add_steps(text, *shape, *plan);
    text.add("  if (args.overlaps) wait();\n}\n");
    return text.take(source);
  }
  Ring ring(text, *shape, *plan);
  ring.begin();
  Packets packets = {};
  for (size_t j = 0; j < shape->k; j++)
    add_shard(text, *shape, ring, j, packets);
  if (!shape->packet_bytes)
    add_outputs_of_bytes(text, *shape, ring);
  else if (plan->way == WEFT_PROGRAM_GROUPS)
    add_outputs_of_groups(text, *shape, ring);
  else
    add_outputs_of_packets(text, *shape);
  text.add("  if (args.overlaps) wait();\n}\n");
  return text.take(source);
}
