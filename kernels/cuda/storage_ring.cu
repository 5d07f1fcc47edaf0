// SPDX-License-Identifier: Apache-2.0
// How shards arrive at the threads of a made kernel: through a ring in shared memory, some shards
// ahead (cp.async). Loads into registers are put off by the compiler until their use, however early
// they stand in the text, and take registers from the sums. Rings filled by bulk copies for a whole
// block lost 5 to 15 % by barriers and first fills; these are a thread's or a warp's own.
//
// A place of the ring has one shard. The next one goes to the place of the shard before that which
// is waited for, once all of the warp have taken that one.
//
// Shards of bytes are sliced into bits where they lie, some at a time, by a loop. Written out for
// each of them, slices are a third of the code, and fetching code is what bounds these kernels. So
// outputs, too, are put into the ring as bits, and leave it as bytes by a loop.
#include "kernels/cuda/storage_sums.h"

namespace {

using weft_made::Text;

// 32 bytes of a shard, which the thread copies, slices and reads by itself.
const char byte_ring[] = R"(
  __shared__ uint4 ring_memory[RING * THREADS * 2];
  const u32 ring = (u32)__cvta_generic_to_shared(ring_memory) + threadIdx.x * 16;
  const auto ask = [&](u32 place, u64 row) {
    const u32 to = ring + place * 32 * THREADS;
    const u64 from = row + at;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + 16 * THREADS),
                 "l"(from + 512) : "memory");
  };
  const auto load = [&](u32 from, u32 (&s)[8]) {
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(s[0]), "=r"(s[1]), "=r"(s[2]), "=r"(s[3]) : "r"(from) : "memory");
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(s[4]), "=r"(s[5]), "=r"(s[6]), "=r"(s[7]) : "r"(from + 16 * THREADS)
                 : "memory");
  };
  const auto store = [&](u32 to, const u32 (&s)[8]) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};"
                 ::"r"(to), "r"(s[0]), "r"(s[1]), "r"(s[2]), "r"(s[3]) : "memory");
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};"
                 ::"r"(to + 16 * THREADS), "r"(s[4]), "r"(s[5]), "r"(s[6]), "r"(s[7]) : "memory");
  };
  const auto load_sliced = [&](u32 from, u32 (&s)[8]) {
    load(from, s);
    slice(s, args.two, args.four, args.sixteen);
  };
  const auto turn = [&](u32 place, u32 count) {
    u32 from = ring + place * 32 * THREADS;
#pragma unroll unroll
    for (u32 i = 0; i < count; i++, from += 32 * THREADS) {
      u32 s[8];
      load_sliced(from, s);
      store(from, s);
    }
  };
  const auto take = [&](u32 place, u32 (&s)[8]) { load(ring + place * 32 * THREADS, s); };
  const auto keep = [&](u32 place, const u32 (&s)[8]) { store(ring + place * 32 * THREADS, s); };
  const auto leave = [&](u32 place, u32 first, u32 count) {
    u32 from = ring + place * 32 * THREADS;
#pragma unroll unroll
    for (u32 i = 0; i < count; i++, from += 32 * THREADS) {
      u32 s[8];
      load_sliced(from, s);
      const u64 to = rows[first + i] + at;
      if (low_is_own) put(to, make_uint4(s[0], s[1], s[2], s[3]));
      if (high_is_own) put(to + 512, make_uint4(s[4], s[5], s[6], s[7]));
    }
  };
)";

// For every lane of a warp a word of each packet of a shard: in one of three ways, by what these
// lie like.
const char packet_ring[] = R"(
  __shared__ uint4 ring_memory[RING * (THREADS / 32) * W * 8];
  const u32 ring = (u32)__cvta_generic_to_shared(ring_memory) + threadIdx.x / 32 * (RING * W * 128);
)";

// Lines of 128 bytes: a lane copies 16 bytes of one, so that four packets are one instruction.
const char line_ring[] = R"(
  const u64 from = at + lane / 8 * PACKET + lane % 8 * 16 - lane * 4;
  const auto ask = [&](u32 place, u64 row) {
#pragma unroll
    for (u32 i = 0; i < (W + 3) / 4; i++)
      if (4 * i + 4 <= W || lane < 8 * (W % 4))
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                     ::"r"(ring + lane * 16 + place * (W * 128) + i * 512),
                       "l"(row + from + i * (4 * PACKET)) : "memory");
  };
)";

// Whole groups side by side, W lines in all, which are copied as they are. Their 16 bytes change
// places within a line, so that lanes of different groups find different banks.
const char group_ring[] = R"(
  const auto moved = [](u32 to) { return to ^ (to >> 7 & 7) << 4; };
  const u64 from = at - (lane / (PACKET / 4) * (W * PACKET) + lane % (PACKET / 4) * 4) + lane * 16;
  const auto ask = [&](u32 place, u64 row) {
#pragma unroll
    for (u32 i = 0; i < (W + 3) / 4; i++)
      if (4 * i + 4 <= W || lane < 8 * (W % 4))
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                     ::"r"(ring + place * (W * 128) + moved(lane * 16 + i * 512)),
                       "l"(row + from + i * 512) : "memory");
  };
  const auto where = [&](u32 place, u32 packet) {
    return ring + place * (W * 128) + moved(lane / (PACKET / 4) * (W * PACKET) + packet * PACKET +
                                            lane % (PACKET / 4) * 4);
  };
  const auto take = [&](u32 place, u32 packet) {
    u32 v;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(where(place, packet)) : "memory");
    return v;
  };
  const auto keep = [&](u32 place, u32 packet, u32 v) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(where(place, packet)), "r"(v) : "memory");
  };
  const auto leave = [&](u32 place, u64 row) {
    __syncwarp();
#pragma unroll
    for (u32 i = 0; i < (W + 3) / 4; i++)
      if (4 * i + 4 <= W || lane < 8 * (W % 4)) {
        uint4 v;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "r"(ring + place * (W * 128) + moved(lane * 16 + i * 512)) : "memory");
        put(row + from + i * 512, v);
      }
  };
)";

// Any: a lane copies its own words.
const char word_ring[] = R"(
  const auto ask = [&](u32 place, u64 row) {
#pragma unroll
    for (u32 i = 0; i < W; i++)
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                   ::"r"(ring + lane * 4 + place * (W * 128) + i * 128),
                     "l"(row + at + i * PACKET) : "memory");
  };
)";

const char take_word[] = R"(
  const auto take = [&](u32 place, u32 packet) {
    u32 v;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v)
                 : "r"(ring + lane * 4 + place * (W * 128) + packet * 128) : "memory");
    return v;
  };
)";

const char functions[] = R"(
  const auto sent = [] { asm volatile("cp.async.commit_group;" ::: "memory"); };
  const auto arrived = [] {
    asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory");
    if (WARP) __syncwarp();
  };
)";

} // namespace

weft_made::Ring::Ring(Text &text, const weft_program_shape &shape, const weft_program_plan &plan)
    : text_(text), shape_(shape), plan_(plan), bytes_(!shape.packet_bytes),
      slice_(bytes_ ? plan.slice : 1), groups_(plan.ahead / slice_), taken_(0), first_(0),
      kept_(0) {}

void weft_made::Ring::define_packets() {
  text_.put(packet_ring, sizeof packet_ring - 1);
  if (plan_.way == WEFT_PROGRAM_LINES)
    text_.put(line_ring, sizeof line_ring - 1);
  else if (plan_.way == WEFT_PROGRAM_GROUPS)
    text_.put(group_ring, sizeof group_ring - 1);
  else
    text_.put(word_ring, sizeof word_ring - 1);
  if (plan_.way != WEFT_PROGRAM_GROUPS)
    text_.put(take_word, sizeof take_word - 1);
}

void weft_made::Ring::begin() {
  text_.add("#define RING %zu\n#define LATER %zu\n#define WARP %d\n", plan_.ahead,
            bytes_ ? groups_ - 1 : groups_ - 2, !bytes_);
  if (bytes_)
    text_.add("  constexpr u32 unroll = %zu;\n", plan_.unroll);
  if (bytes_)
    text_.put(byte_ring, sizeof byte_ring - 1);
  else
    define_packets();
  text_.put(functions, sizeof functions - 1);
  for (size_t group = 0; group + 1 < groups_; group++)
    ask(group);
}

void weft_made::Ring::next(size_t j) {
  taken_ = j + 1;
  if (j % slice_)
    return;
  const size_t left = shape_.k - j, last = j / slice_ + groups_ - 1;
  if (bytes_)
    ask(last);
  text_.add("  arrived();\n");
  if (bytes_)
    text_.add("  turn(%zu, %zu);\n", place(j), left < slice_ ? left : slice_);
  else
    ask(last);
  if (plan_.meet && j % plan_.meet == plan_.meet - 1)
    text_.add("  __syncthreads();\n");
}

// Groups of shards are counted, so that there is one whether there are shards in it or not.
void weft_made::Ring::ask(size_t group) {
  for (size_t j = group * slice_; j < (group + 1) * slice_ && j < shape_.k; j++)
    text_.add("  ask(%zu, rows[%zu]);\n", place(j), j);
  text_.add("  sent();\n");
}

// While shards are on their way there is but the place of the one that was taken last.
size_t weft_made::Ring::place_for_output(size_t i) {
  if (kept_ && i != first_ + kept_)
    leave();
  if (!kept_)
    first_ = i;
  return taken_ < shape_.k ? place(taken_ - 1) : kept_;
}

void weft_made::Ring::kept() {
  kept_++;
  if (taken_ < shape_.k || kept_ == plan_.leave)
    leave();
}

void weft_made::Ring::leave() {
  if (kept_)
    text_.add("  leave(%zu, %zu, %zu);\n", taken_ < shape_.k ? place(taken_ - 1) : 0,
              shape_.k + first_, kept_);
  kept_ = 0;
}
