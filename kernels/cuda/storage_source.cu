// SPDX-License-Identifier: Apache-2.0
// Writes the kernel of one bit matrix. Its threads load what they add straight into registers, some
// shards ahead: a thread has a word (or two) of each packet, or 32 bytes of each shard, and sums in
// registers for all outputs. Nothing is shared, no thread waits for another, and a block ends with
// its tile, so that the scheduler divides the work: rings in shared memory, filled by bulk copies,
// were measured to lose 5 to 15 % by their first fill and by tiles that do not come out even.
#include "kernels/cuda/storage_sums.h"

namespace {

using weft_made::Packets;
using weft_made::Text;

const char functions[] = R"(
__device__ __forceinline__ void get(u64 from, u32 &v) {
  asm volatile("ld.global.cs.u32 %0, [%1];" : "=r"(v) : "l"(from));
}
__device__ __forceinline__ void get(u64 from, uint4 &v) {
  asm volatile("ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from));
}
__device__ __forceinline__ void get(u64 from, uint2 &v) {
  asm volatile("ld.global.cs.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(from));
}
template <class V> __device__ __forceinline__ void put(u64 to, V v, u32 accumulate) {
  if (accumulate) {
    V old;
    get(to, old);
    v = X2(v, old);
  }
  __stcs((V *)to, v);
}
__device__ __forceinline__ void wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    weft_kernel(const __grid_constant__ Args args) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  const u64 *rows = args.own + blockIdx.y * (K + M);
)";

void add_load(Text &text, const weft_program_shape &shape, size_t j) {
  if (j >= shape.k)
    return;
  if (!shape.packet_bytes) {
    text.add("  uint4 l%zu, h%zu; get(rows[%zu] + low, l%zu); get(rows[%zu] + high, h%zu);\n", j, j,
             j, j, j, j);
    return;
  }
  text.add("  const u64 x%zu = rows[%zu] + at;\n", j, j);
  for (size_t c = 0; c < shape.w; c++)
    text.add("  W v%zu_%zu; get(x%zu + %zu, v%zu_%zu);\n", j, c, j, c * shape.packet_bytes, j, c);
}

void add_shard(Text &text, const weft_program_shape &shape, size_t j, Packets &p) {
  if (!shape.packet_bytes)
    text.add("  u32 b%zu[8] = {l%zu.x, l%zu.y, l%zu.z, l%zu.w, h%zu.x, h%zu.y, h%zu.z, h%zu.w};\n"
             "  slice(b%zu, args.two, args.four, args.sixteen);\n",
             j, j, j, j, j, j, j, j, j, j);
  for (size_t c = 0; c < shape.w; c++) {
    char value[32];
    snprintf(value, sizeof value, shape.packet_bytes ? "v%zu_%zu" : "b%zu[%zu]", j, c);
    weft_made::add_packet(text, shape, p, j * shape.w + c, value,
                          j + 1 == shape.k && c + 1 == shape.w);
  }
}

void add_outputs(Text &text, const weft_program_shape &shape) {
  for (size_t i = 0; i < shape.m; i++) {
    const size_t row = shape.k + i, y = i * shape.w;
    if (shape.packet_bytes) {
      for (size_t l = 0; l < shape.w; l++)
        text.add("  put(rows[%zu] + at + %zu, y%zu, args.accumulate);\n", row,
                 l * shape.packet_bytes, y + l);
      continue;
    }
    text.add("  { u32 v[8] = {");
    for (size_t l = 0; l < 8; l++)
      text.add("y%zu%s", y + l, l < 7 ? ", " : "};\n");
    text.add("    slice(v, args.two, args.four, args.sixteen);\n"
             "    if (some) put(rows[%zu] + low, make_uint4(v[0], v[1], v[2], v[3]), "
             "args.accumulate);\n"
             "    if (all) put(rows[%zu] + high, make_uint4(v[4], v[5], v[6], v[7]), "
             "args.accumulate); }\n",
             row, row);
  }
}

// Threads behind the end load what the last ones do.
void add_place(Text &text, const weft_program_shape &shape, const weft_program_plan &plan) {
  if (!shape.packet_bytes) {
    text.add(
        "  const u64 at = ((u64)blockIdx.x * %zu + threadIdx.x / 32) * 1024 + threadIdx.x %% 32 * "
        "16, last = args.length - 16;\n"
        "  const bool some = at <= last, all = at + 512 <= last;\n"
        "  const u64 low = some ? at : last, high = all ? at + 512 : last;\n",
        plan.threads / 32);
    return;
  }
  const size_t each = shape.packet_bytes / 4 / plan.words, group = shape.w * shape.packet_bytes;
  text.add(
      "  const u32 unit = blockIdx.x * THREADS + threadIdx.x, units = (u32)args.length * %zuu;\n"
      "  const bool some = unit < units;\n"
      "  const u32 place = some ? unit : units - 1;\n"
      "  const u64 at = (u64)(place / %zuu) * %zu + place %% %zuu * %zu;\n",
      each, each, group, each, 4 * plan.words);
}

// Registers for all slots and as much again as sums of one take; shards on their way in shared
// memory, of which there must be a lot. All measured on an H200, as below.
weft_status plan_steps(const weft_program_shape *shape, weft_program_plan *plan) {
  enum { LongCode = 16 }; // shards
  const size_t slots = shape->factors->slots;
  if (slots > WEFT_PROGRAM_SLOTS || shape->packet_bytes || shape->k + shape->m > 256)
    return WEFT_E_UNSUPPORTED;
  const bool few = slots <= 12, some = slots <= 16 && shape->m <= 8;
  const bool meet = !few && !some && shape->k > LongCode;
  plan->threads = meet ? 128 : 64;
  plan->blocks_per_sm = few ? 8 : some ? 6 : meet ? 2 : 4;
  plan->ahead = few || some ? 8 : meet ? 11 : 16;
  plan->words = 1;
  return WEFT_OK;
}

} // namespace

// As many threads as there are registers for sums and for words on their way, about 64 bytes of
// which each needs for memory never to wait. Small blocks divide the work best; the warps of larger
// ones share the code that they fetch, which is longer where bytes are sliced. All measured on an
// H200.
extern "C" weft_status weft_program_plan_for(const weft_program_shape *shape,
                                             weft_program_plan *plan) {
  enum { LongCode = 20 }; // shards of more than four outputs
  const size_t sums = shape->m * shape->w;
  *plan = {};
  if (shape->factors)
    return plan_steps(shape, plan);
  if (sums == 0 || shape->k == 0 || sums > WEFT_PROGRAM_SUMS || shape->k + shape->m > 256 ||
      shape->packet_bytes % 4)
    return WEFT_E_UNSUPPORTED;
  size_t resident = 256;
  plan->threads = shape->packet_bytes && sums > 16 ? 64 : 128;
  plan->ahead = 16 / shape->w;
  if (sums <= 16)
    resident = 768, plan->ahead = 24 / shape->w;
  else if (sums <= 32)
    resident = 640, plan->ahead = 24 / shape->w;
  else if (sums <= 64)
    resident = 512;
  else if (sums <= 96)
    resident = 384, plan->ahead = 18 / shape->w;
  else if (shape->packet_bytes)
    plan->ahead = 40 / shape->w;
  if (!shape->packet_bytes && sums > 32 && shape->k > LongCode)
    plan->threads = 256;
  plan->blocks_per_sm = resident / plan->threads;
  // Small products have little on its way in one word a thread.
  const bool short_column = shape->packet_bytes && shape->k * shape->w < 8;
  plan->words = short_column && shape->packet_bytes % 8 == 0 ? 2 : 1;
  return WEFT_OK;
}

extern "C" size_t weft_program_blocks(const weft_program_shape *shape,
                                      const weft_program_plan *plan, size_t length) {
  const size_t units =
      shape->packet_bytes ? length * (shape->packet_bytes / 4 / plan->words) : (length + 31) / 32;
  return (units + plan->threads - 1) / plan->threads;
}

extern "C" weft_status weft_program_source(const weft_program_shape *shape,
                                           const weft_program_plan *plan,
                                           const weft_allocator *allocator, char **source) {
  Text text(allocator);
  text.put(weft_made::prelude, strlen(weft_made::prelude));
  text.add("#define K %zuu\n#define M %zuu\n#define THREADS %zuu\n#define BLOCKS %zu\n", shape->k,
           shape->m, plan->threads, plan->blocks_per_sm);
  text.add("typedef %s W;\n", plan->words == 2 ? "uint2" : "u32");
  text.put(functions, sizeof functions - 1);
  add_place(text, *shape, *plan);
  if (shape->factors) { // which wait before they read: otherwise was not measured
    text.add("  wait();\n");
    weft_made::add_steps(text, *shape, *plan);
    text.add("}\n");
    return text.take(source);
  }
  // A kernel begins while the one before it in the stream ends, and waits for that one's last write
  // before it reads; or, where it touches nothing of the other's, only before it is over itself, so
  // that memory never rests between them.
  text.add("  if (!args.overlaps) wait();\n");
  for (size_t j = 0; j < plan->ahead; j++)
    add_load(text, *shape, j);
  for (size_t row = 0; row < shape->m * shape->w; row++)
    text.add("  W y%zu = {};\n", row);
  Packets packets = {};
  for (size_t j = 0; j < shape->k; j++) {
    add_load(text, *shape, j + plan->ahead);
    add_shard(text, *shape, j, packets);
  }
  if (shape->packet_bytes)
    text.add("  if (!some) return;\n");
  add_outputs(text, *shape);
  text.add("  if (args.overlaps) wait();\n}\n");
  return text.take(source);
}
