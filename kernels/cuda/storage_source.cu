// SPDX-License-Identifier: Apache-2.0
// Writes the kernel of one bit matrix. Every thread has one word of each packet: output packets are
// sums in its registers, input packets pass by. Input packets are taken four at a time; the sums of
// subsets of four that any output wants are made once, so that an output adds two such sums, one
// LOP3, for eight input packets. Shards arrive in shared memory by bulk copies, a ring of stages
// ahead, because registers full of sums leave none to wait for memory with.
#include "kernels/cuda/storage_source.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

namespace {

enum {
  Lag = 2,            // stages that are not being filled
  ShardsPerStage = 2, // fewer waits
  StagesMax = 24,
  StagesMin = Lag + 2,
  Bits = 8
};

class Text {
public:
  explicit Text(const weft_allocator *allocator)
      : allocator_(allocator), text_(nullptr), used_(0), room_(0), failed_(false) {}
  ~Text() {
    if (text_)
      allocator_->free(allocator_->user, text_);
  }
  Text(const Text &) = delete;
  Text &operator=(const Text &) = delete;

  __attribute__((format(printf, 2, 3))) void add(const char *format, ...) {
    char line[1024];
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if (length < 0 || static_cast<size_t>(length) >= sizeof line)
      failed_ = true;
    else
      put(line, static_cast<size_t>(length));
  }
  void put(const char *bytes, size_t count) {
    if (used_ + count + 1 > room_ && !grow(used_ + count + 1))
      return;
    memcpy(text_ + used_, bytes, count + 1);
    used_ += count;
  }
  weft_status take(char **out) {
    *out = nullptr;
    if (failed_)
      return WEFT_E_NOMEM;
    *out = text_;
    text_ = nullptr;
    return WEFT_OK;
  }

private:
  bool grow(size_t wanted) {
    size_t room = room_ ? 2 * room_ : 16384;
    while (room < wanted)
      room *= 2;
    char *more =
        failed_ ? nullptr : static_cast<char *>(allocator_->alloc(allocator_->user, room, 16));
    if (!more) {
      failed_ = true;
      return false;
    }
    if (text_) {
      memcpy(more, text_, used_);
      allocator_->free(allocator_->user, text_);
    }
    text_ = more;
    room_ = room;
    return true;
  }

  const weft_allocator *allocator_;
  char *text_;
  size_t used_, room_;
  bool failed_;
};

// What every kernel begins with. XOR goes through asm, so that the compiler does not rearrange
// sums that were arranged with care.
const char prelude[] = R"(
typedef unsigned int u32;
typedef unsigned long long u64;
struct Args {
  u64 own[256];      // addresses of k inputs, then m outputs
  const u64 *table;  // the same of every stripe, blockIdx.y; or 0
  u64 length;        // RS: bytes; packets: groups
  u32 tiles, last;   // last: bytes (RS) or groups of the last tile
  u32 accumulate, two, four, sixteen;
};
__device__ __forceinline__ u32 X2(u32 a, u32 b) {
  u32 r; asm("xor.b32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r;
}
__device__ __forceinline__ u32 X3(u32 a, u32 b, u32 c) {
  u32 r; asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); return r;
}
__device__ __forceinline__ u32 SEL(u32 mask, u32 a, u32 b) {
  u32 r; asm("lop3.b32 %0, %1, %2, %3, 0xe2;" : "=r"(r) : "r"(a), "r"(mask), "r"(b)); return r;
}
__device__ __forceinline__ u32 address_of(const void *p) {
  return (u32)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void wait(u32 barrier, u32 parity) {
  asm volatile("{\n.reg .pred done;\nagain:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@!done bra again;\n}\n" ::"r"(barrier), "r"(parity) : "memory");
}
__device__ __forceinline__ u32 load(u32 at) {
  u32 r; asm volatile("ld.shared.u32 %0, [%1];" : "=r"(r) : "r"(at) : "memory"); return r;
}
__device__ __forceinline__ void copy(u32 to, u64 from, u32 bytes, u32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}
// Eight words of bytes to eight words of bits and back: swaps of an 8 x 8 matrix in every byte
// column. Left shifts are products, which have a pipe of their own.
__device__ __forceinline__ void swap(u32 &a, u32 &b, u32 mask, u32 shift, u32 power) {
  const u32 low = SEL(mask, a, b * power), high = SEL(mask, a >> shift, b);
  a = low; b = high;
}
__device__ __forceinline__ void slice(u32 (&v)[8], const u32 two, const u32 four, const u32 sixteen) {
#pragma unroll
  for (int i = 0; i < 4; i++) swap(v[i], v[i + 4], 0x0f0f0f0fu, 4, sixteen);
#pragma unroll
  for (int i = 0; i < 8; i++) if (!(i & 2)) swap(v[i], v[i + 2], 0x33333333u, 2, four);
#pragma unroll
  for (int i = 0; i < 8; i += 2) swap(v[i], v[i + 1], 0x55555555u, 1, two);
}
)";

// The ring: while a warp works on one stage, a lane of one of the warps fills the stage that was
// read LAG stages ago. Which shard that is is known here. Every warp gives a stage back.
const char ring[] = R"(
__device__ __forceinline__ void expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
// Stage `stage` of a tile: PER_STAGE shards, the last stage of an odd number one.
__device__ __forceinline__ void fill(const Args &args, const u64 *rows, u32 data, u32 barriers,
                                     u32 slot, u32 tile, u32 stage) {
  const u32 barrier = barriers + 8 * slot, first = stage * PER_STAGE;
  const u32 some = K - first < PER_STAGE ? K - first : PER_STAGE;
  GEOMETRY
  expect(barrier, some * SHARD_BYTES);
#pragma unroll
  for (u32 i = 0; i < PER_STAGE; i++)
    if (first + i < K) {
      const u64 from = rows[first + i];
      const u32 to = data + STAGE * slot + i * SHARD;
      COPY
    }
}
#define FILL_AT(lane, stage, tiles_on) if (tid == lane) { \
  const u32 t = tile + tiles_on * gridDim.x; \
  if (t < args.tiles) { \
    const bool same = slot >= LAG; \
    const u32 s = same ? slot - LAG : slot + STAGES - LAG; \
    wait(empty + 8 * s, same ? parity : parity ^ 1); /* of the first round none waits */ \
    fill(args, rows, data, full, s, t, stage); \
  } }
#define STAGE_BEGIN wait(full + 8 * slot, parity); at = data + STAGE * slot + offset;
#define STAGE_END __syncwarp(); if (tid % 32 == 0) \
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 1;" ::"r"(empty + 8 * slot) : "memory"); \
  if (++slot == STAGES) { slot = 0; parity ^= 1; }
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) weft_kernel(const __grid_constant__ Args args) {
  extern __shared__ uint4 shared[];
  __shared__ u64 rows[K + M];
  const u32 tid = threadIdx.x, full = address_of(shared), empty = full + 8 * STAGES, data = empty + 8 * STAGES;
  const u32 place = tid < TILE_WORDS ? tid : 0, offset = OFFSET; // threads without work read too
  const u64 *given = args.table ? args.table + (u64)blockIdx.y * (K + M) : args.own;
  for (u32 i = tid; i < K + M; i += THREADS) rows[i] = given[i];
  if (tid == 0) {
    for (u32 s = 0; s < STAGES; s++) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(full + 8 * s) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(empty + 8 * s), "n"(THREADS / 32) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (tid == 0) {
    for (u32 s = 0; s < STAGES - LAG; s++) {
      const u32 t = blockIdx.x + s / TILE_STAGES * gridDim.x;
      if (t < args.tiles) fill(args, rows, data, full, s, t, s % TILE_STAGES);
    }
  }
  u32 at, slot = 0, parity = 0;
  for (u32 tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
)";

// The subset sums of one group of four packets that outputs want: bit p of `made` says whether
// t<p> is there.
struct Table {
  unsigned made;
  char prefix;
};

void name_of(char *out, size_t bytes, char prefix, unsigned pattern, size_t batch) {
  snprintf(out, bytes, "%c%u_%zu", prefix, pattern, batch);
}

void make_sum(Text &text, Table &table, unsigned pattern, size_t batch) {
  if (table.made >> pattern & 1)
    return;
  const unsigned ones = static_cast<unsigned>(__builtin_popcount(pattern));
  unsigned part[3] = {0, 0, 0}, parts = 0;
  if (ones == 4) {
    // One more than a sum that is there; else a pair first.
    for (unsigned bit = 0; bit < 4 && !part[0]; bit++)
      if (table.made >> (pattern ^ 1u << bit) & 1)
        part[0] = pattern ^ 1u << bit, part[1] = 1u << bit, parts = 2;
    if (!parts) {
      make_sum(text, table, 3, batch);
      part[0] = 3, part[1] = 4, part[2] = 8, parts = 3;
    }
  } else {
    for (unsigned bit = 0; bit < 4; bit++)
      if (pattern >> bit & 1)
        part[parts++] = 1u << bit;
  }
  char name[3][32];
  for (unsigned i = 0; i < parts; i++)
    name_of(name[i], sizeof name[i], table.prefix, part[i], batch);
  if (parts == 2)
    text.add("  const u32 %c%u_%zu = X2(%s, %s);\n", table.prefix, pattern, batch, name[0],
             name[1]);
  else
    text.add("  const u32 %c%u_%zu = X3(%s, %s, %s);\n", table.prefix, pattern, batch, name[0],
             name[1], name[2]);
  table.made |= 1u << pattern;
}

size_t stages_of(const weft_program_shape &shape) {
  return (shape.k + ShardsPerStage - 1) / ShardsPerStage;
}

struct Packets {
  size_t column[Bits]; // of the bit matrix
  size_t count, batch;
};

unsigned pattern_of(const weft_program_shape &shape, size_t row, const Packets &p, size_t first) {
  unsigned pattern = 0;
  for (size_t i = first; i < first + 4 && i < p.count; i++)
    pattern |= (shape.bits[row * shape.bits_stride + p.column[i]] & 1u) << (i - first);
  return pattern;
}

// Adds up to eight input packets to all outputs.
void add_packets(Text &text, const weft_program_shape &shape, const Packets &p) {
  Table low = {1u << 1 | 1u << 2 | 1u << 4 | 1u << 8, 's'}, high = low;
  high.prefix = 't';
  for (size_t row = 0; row < shape.m * shape.w; row++) {
    const unsigned a = pattern_of(shape, row, p, 0), b = pattern_of(shape, row, p, 4);
    char left[32], right[32];
    name_of(left, sizeof left, 's', a, p.batch);
    name_of(right, sizeof right, 't', b, p.batch);
    if (a)
      make_sum(text, low, a, p.batch);
    if (b)
      make_sum(text, high, b, p.batch);
    if (a && b)
      text.add("  y%zu = X3(y%zu, %s, %s);\n", row, row, left, right);
    else if (a || b)
      text.add("  y%zu = X2(y%zu, %s);\n", row, row, a ? left : right);
  }
}

void add_stage(Text &text, const weft_program_shape &shape, const weft_program_plan &plan,
               size_t stage, Packets &p) {
  const size_t first = stage * ShardsPerStage, stages = stages_of(shape);
  const size_t some = shape.k - first < ShardsPerStage ? shape.k - first : size_t{ShardsPerStage};
  const size_t ahead = stage + plan.stages - Lag;
  text.add("  FILL_AT(%zu, %zu, %zu)\n  STAGE_BEGIN\n", stage % (plan.threads / 32) * 32,
           ahead % stages, ahead / stages);
  for (size_t j = first; j < first + some; j++)
    if (shape.packet_bytes)
      for (size_t c = 0; c < shape.w; c++)
        text.add("  const u32 v%zu_%zu = load(at + %zu * SHARD + %zu * PLANE);\n", j, c, j - first,
                 c);
    else
      text.add("  u32 b%zu[8];\n  for (int i = 0; i < 8; i++) "
               "b%zu[i] = load(at + %zu * SHARD + i * PLANE);\n",
               j, j, j - first);
  text.add("  STAGE_END\n");
  for (size_t j = first; j < first + some; j++) {
    if (!shape.packet_bytes)
      text.add("  slice(b%zu, args.two, args.four, args.sixteen);\n", j);
    for (size_t c = 0; c < shape.w; c++) {
      const char prefix = p.count < 4 ? 's' : 't';
      if (shape.packet_bytes)
        text.add("  const u32 %c%u_%zu = v%zu_%zu;\n", prefix, 1u << (p.count & 3), p.batch, j, c);
      else
        text.add("  const u32 %c%u_%zu = b%zu[%zu];\n", prefix, 1u << (p.count & 3), p.batch, j, c);
      p.column[p.count++] = j * shape.w + c;
      if (p.count == Bits || (j + 1 == shape.k && c + 1 == shape.w)) {
        add_packets(text, shape, p);
        p.count = 0;
        p.batch++;
      }
    }
  }
}

// Word l of output i, for each of both ways to write it.
void add_outputs(Text &text, const weft_program_shape &shape, const weft_program_plan &plan,
                 bool accumulate) {
  const char *const store = accumulate ? "ADD" : "PUT";
  for (size_t i = 0; i < shape.m; i++) {
    text.add("    { u32 *to = (u32 *)rows[%zu] + word;\n", shape.k + i);
    if (shape.packet_bytes) {
      for (size_t l = 0; l < shape.w; l++)
        text.add("      %s(to + %zu, y%zu)\n", store, l * (shape.packet_bytes / 4),
                 i * shape.w + l);
    } else {
      text.add("      u32 v[8] = {");
      for (size_t l = 0; l < 8; l++)
        text.add("y%zu%s", i * 8 + l, l < 7 ? ", " : "};\n");
      text.add("      slice(v, args.two, args.four, args.sixteen);\n"
               "      for (int i = 0; i < 8; i++) if (word + i * %zu < args.length / 4) "
               "%s(to + i * %zu, v[i])\n",
               plan.threads, store, plan.threads);
    }
    text.add("    }\n");
  }
}

void add_geometry(Text &text, const weft_program_shape &shape, const weft_program_plan &plan) {
  text.add("#define K %zuu\n#define M %zuu\n#define STAGES %zuu\n#define STAGE %zuu\n", shape.k,
           shape.m, plan.stages, plan.stage_bytes);
  text.add("#define THREADS %zu\n#define BLOCKS %zu\n#define LAG %du\n#define PER_STAGE %du\n"
           "#define TILE_STAGES %zuu\n#define SHARD %zuu\n",
           plan.threads, plan.blocks_per_sm, static_cast<int>(Lag),
           static_cast<int>(ShardsPerStage), stages_of(shape), plan.stage_bytes / ShardsPerStage);
  text.add("#define TILE_WORDS %zuu\n", plan.tile_words);
  text.add("#define PUT(p, v) __stcs(p, v);\n#define ADD(p, v) __stcs(p, __ldcs(p) ^ (v));\n");
  const size_t group = shape.w * shape.packet_bytes, threads = plan.threads;
  if (!shape.packet_bytes) {
    text.add("#define PLANE %zuu\n#define OFFSET 4 * place\n#define ACTIVE true\n"
             "#define WORD ((u64)tile * %zu + tid)\n",
             4 * threads, 8 * threads);
    text.add("#define GEOMETRY const u32 bytes = tile + 1 == args.tiles ? args.last : %zuu;\n"
             "#define SHARD_BYTES bytes\n"
             "#define COPY copy(to, from + (u64)tile * %zu, bytes, barrier);\n",
             32 * threads, 32 * threads);
    return;
  }
  const size_t words = shape.packet_bytes / 4;
  if (plan.groups) {
    text.add("#define PLANE %zuu\n#define OFFSET (place / %zu * %zu + place %% %zu * 4)\n"
             "#define ACTIVE (tid < %zu && (u64)tile * %zu + tid / %zu < args.length)\n"
             "#define WORD (((u64)tile * %zu + tid / %zu) * %zu + tid %% %zu)\n",
             shape.packet_bytes, words, group, words, plan.tile_words, plan.groups, words,
             plan.groups, words, group / 4, words);
    text.add(
        "#define GEOMETRY const u32 bytes = (tile + 1 == args.tiles ? args.last : %zuu) * %zuu;\n"
        "#define SHARD_BYTES bytes\n"
        "#define COPY copy(to, from + (u64)tile * %zu, bytes, barrier);\n",
        plan.groups, group, plan.groups * group);
    return;
  }
  const size_t part = 4 * plan.tile_words;
  text.add("#define PLANE %zuu\n#define OFFSET 4 * place\n"
           "#define ACTIVE (tid < %zu && tile %% %zu * %zu + tid < %zu)\n"
           "#define WORD ((u64)(tile / %zu) * %zu + tile %% %zu * %zu + tid)\n",
           part, plan.tile_words, plan.tiles_per_group, plan.tile_words, words,
           plan.tiles_per_group, group / 4, plan.tiles_per_group, plan.tile_words);
  text.add("#define GEOMETRY const u32 group = tile / %zu, part = tile %% %zu * %zu; "
           "const u32 bytes = %zuu - part < %zuu ? %zuu - part : %zuu;\n"
           "#define SHARD_BYTES (%zu * bytes)\n",
           plan.tiles_per_group, plan.tiles_per_group, part, shape.packet_bytes, part,
           shape.packet_bytes, part, shape.w);
  text.add("#define COPY for (u32 c = 0; c < %zu; c++) "
           "copy(to + c * PLANE, from + ((u64)group * %zu + c) * %zu + part, bytes, barrier);\n",
           shape.w, shape.w, shape.packet_bytes);
}

} // namespace

// The tile that a block's threads make.
static weft_status cut(const weft_program_shape *shape, weft_program_plan *plan) {
  const size_t words = shape->packet_bytes / 4, group = shape->w * shape->packet_bytes;
  plan->groups = plan->tiles_per_group = 0;
  plan->tile_words = plan->threads;
  if (!shape->packet_bytes) {
    plan->stage_bytes = ShardsPerStage * 32 * plan->threads;
    return WEFT_OK;
  }
  if (shape->packet_bytes % 4)
    return WEFT_E_UNSUPPORTED;
  if (words <= plan->threads) {
    plan->groups = plan->threads / words;
    while (plan->groups && plan->groups * group % 16)
      plan->groups--;
    if (!plan->groups)
      return WEFT_E_UNSUPPORTED;
    plan->tile_words = plan->groups * words;
    plan->threads = (plan->tile_words + 31) / 32 * 32;
    plan->stage_bytes = ShardsPerStage * plan->groups * group;
    return WEFT_OK;
  }
  if (shape->packet_bytes % 16)
    return WEFT_E_UNSUPPORTED;
  plan->tiles_per_group = (words + plan->threads - 1) / plan->threads;
  // Parts of one size, in 16-byte steps.
  const size_t part = (words + plan->tiles_per_group - 1) / plan->tiles_per_group;
  plan->tile_words = (part + 3) / 4 * 4;
  plan->threads = (plan->tile_words + 31) / 32 * 32;
  plan->stage_bytes = ShardsPerStage * shape->w * plan->tile_words * 4;
  return WEFT_OK;
}

extern "C" weft_status weft_program_plan_for(const weft_program_shape *shape,
                                             size_t sm_shared_bytes, weft_program_plan *plan) {
  enum { Reserved = 1024, BarrierBytes = 16, Spare = 44, Registers = 65536, ThreadsMax = 1024 };
  memset(plan, 0, sizeof *plan);
  const size_t sums = shape->m * shape->w;
  if (sums == 0 || shape->k == 0 || sums > 136 || shape->k + shape->m > 256)
    return WEFT_E_UNSUPPORTED;
  const size_t registers = (sums + Spare + (shape->packet_bytes ? 0 : 8) + 7) / 8 * 8;
  // Few sums leave registers for small blocks, which divide the work best; much code is shared best
  // by the warps of one large block.
  const size_t best = sums <= 32 ? 4 : shape->k > 24 ? 1 : 2;
  plan->blocks_per_sm = shape->blocks_per_sm ? shape->blocks_per_sm : best;
  plan->threads = Registers / registers / plan->blocks_per_sm / 32 * 32;
  if (plan->threads > ThreadsMax / plan->blocks_per_sm)
    plan->threads = ThreadsMax / plan->blocks_per_sm;
  // Threads that the ring has room for.
  for (;; plan->threads -= 32) {
    if (plan->threads < 32)
      return WEFT_E_UNSUPPORTED;
    WEFT_TRY(cut(shape, plan));
    plan->stages = (sm_shared_bytes / plan->blocks_per_sm - Reserved - 8 * (shape->k + shape->m)) /
                   (plan->stage_bytes + BarrierBytes);
    if (plan->stages >= StagesMin)
      break;
  }
  if (plan->stages > StagesMax)
    plan->stages = StagesMax;
  plan->stages -= plan->stages & 1; // data stays aligned to 16 bytes
  plan->shared_bytes = plan->stages * (plan->stage_bytes + BarrierBytes);
  return WEFT_OK;
}

extern "C" weft_status weft_program_source(const weft_program_shape *shape,
                                           const weft_program_plan *plan,
                                           const weft_allocator *allocator, char **source) {
  Text text(allocator);
  text.put(prelude, sizeof prelude - 1);
  add_geometry(text, *shape, *plan);
  text.put(ring, sizeof ring - 1);
  for (size_t row = 0; row < shape->m * shape->w; row++)
    text.add("%su32 y%zu = 0;%s", row % 8 ? " " : "  ", row, row % 8 == 7 ? "\n" : "");
  text.add("\n");
  Packets packets = {};
  for (size_t stage = 0; stage < stages_of(*shape); stage++)
    add_stage(text, *shape, *plan, stage, packets);
  text.add("  const u64 word = WORD;\n  if (!(ACTIVE)) continue;\n  if (args.accumulate) {\n");
  add_outputs(text, *shape, *plan, true);
  text.add("  } else {\n");
  add_outputs(text, *shape, *plan, false);
  text.add("  }\n  }\n}\n");
  return text.take(source);
}
