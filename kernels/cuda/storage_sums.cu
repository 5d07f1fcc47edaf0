// SPDX-License-Identifier: Apache-2.0
// Sums of packets as text. Input packets are taken four at a time; the sums of subsets of four that
// any output wants are made once, so that an output adds two such sums, one LOP3, for eight input
// packets.
#include "kernels/cuda/storage_sums.h"

// What every kernel begins with. XOR goes through asm, so that the compiler does not rearrange
// sums that were arranged with care.
extern const char weft_made::prelude[] = R"(
typedef unsigned int u32;
typedef unsigned long long u64;
struct Args {
  u64 own[256]; // addresses of k inputs, then m outputs, of each stripe, blockIdx.y
  u64 length; // bytes, or groups of packets
  u32 overlaps, two, four, sixteen;
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
__device__ __forceinline__ uint4 X2(uint4 a, uint4 b) {
  return {X2(a.x, b.x), X2(a.y, b.y), X2(a.z, b.z), X2(a.w, b.w)};
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

namespace {

using weft_made::Packets;
using weft_made::Text;

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

unsigned pattern_of(const weft_program_shape &shape, size_t row, const Packets &p, size_t first) {
  unsigned pattern = 0;
  for (size_t i = first; i < first + 4 && i < p.count; i++)
    pattern |= (shape.bits[row * shape.bits_stride + p.column[i]] & 1u) << (i - first);
  return pattern;
}

// Adds up to eight input packets to all outputs; the first ones are what these begin with.
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
    const char *const one = a ? left : b ? right : "0";
    if (p.batch == 0 && a && b)
      text.add("  u32 y%zu = X2(%s, %s);\n", row, left, right);
    else if (p.batch == 0)
      text.add("  u32 y%zu = %s;\n", row, one);
    else if (a && b)
      text.add("  y%zu = X3(y%zu, %s, %s);\n", row, row, left, right);
    else if (a || b)
      text.add("  y%zu = X2(y%zu, %s);\n", row, row, one);
  }
}

} // namespace

void weft_made::add_packet(Text &text, const weft_program_shape &shape, Packets &p, size_t column,
                           const char *value, bool last) {
  text.add("  const u32 %c%u_%zu = %s;\n", p.count < 4 ? 's' : 't', 1u << (p.count & 3), p.batch,
           value);
  p.column[p.count++] = column;
  if (p.count < Packets::Most && !last)
    return;
  add_packets(text, shape, p);
  p.count = 0;
  p.batch++;
}
