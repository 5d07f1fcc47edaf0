// SPDX-License-Identifier: Apache-2.0
// Compiles a bit matrix to straight AVX2 code (kernels/xor_code.h).
//
// The outputs are cut into passes of at most 13, whose sums stay in registers while all inputs go
// by; the other registers hold up to three inputs of a shard at a time, whose sums of two and three
// are made in place, each once however many outputs read it. A line of 64 bytes is two vectors of a
// packet. Packets that lie a power of two apart share few sets of the caches, so that a line is
// rarely still there when it is wanted again: the first pass copies the inputs' lines, as it reads
// them, to a scratch that all that follows reads instead.
//
// A block of the code works on one line of each packet:
//   pass 0 on the first vector, copying
//   pass 0 on the second vector
//   pass 1, 2, ... on both, a loop each
#include <stdbool.h>
#include <string.h>

#include "kernels/host_kernels.h"
#include "kernels/xor_code.h"

enum {
  VECTOR = 32,
  REGISTERS = 16,
  PASS_MAX = 13,       // sums at once; three registers are for inputs
  TOGETHER = 3,        // inputs at once
  INSTRUCTION_MAX = 10 // bytes
};

typedef struct compiler {
  const weft_xor_matrix *m;
  uint8_t *code; // with room for what code_bound says
  size_t bytes;  // so far
  size_t passes;
  // The pass at hand.
  size_t first, sums; // outputs
  bool copying;
  uint32_t begun;  // a bit for each sum that has something
  uint16_t mask[]; // (inputs): a bit for each sum that an input is part of
} compiler;

// ---------------------------------------------------------------------------------------------
// Instructions. In general registers: r10 and r11 point to the tables of inputs and outputs, rdx
// to a shard of them, rax is where the line begins and rsi where the vector does, rcx where the
// last line ends; r8 is the scratch and rdi the vector's place there.

static void put(compiler *c, const void *bytes, size_t count) {
  memcpy(c->code + c->bytes, bytes, count);
  c->bytes += count;
}
#define PUT(c, ...) put(c, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void put_le32(compiler *c, size_t value) {
  PUT(c, (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24));
}

// The prefix of an instruction on 256 bits: operands reg and rm, and one more; 15 is none.
static void put_vex(compiler *c, unsigned reg, unsigned more, unsigned rm, unsigned prefix) {
  const unsigned low = ((~more & 15u) << 3) | 4u | prefix, r = reg < 8 ? 0x80u : 0;
  if (rm < 8)
    PUT(c, 0xc5, (uint8_t)(r | low));
  else
    PUT(c, 0xc4, (uint8_t)(r | 0x41u), (uint8_t)low);
}

enum { P66 = 1, PF3 = 2 };                        // prefixes
enum { LOAD = 0x6f, STORE = 0x7f, VPXOR = 0xef }; // VMOVDQU (F3), VMOVDQA (66), VPXOR (66)
enum { AT_LINE = 0x02, AT_VECTOR = 0x32 };        // rdx + rax, rdx + rsi

static unsigned low3(unsigned reg) { return reg & 7u; }

// A vector of the shard that rdx points to.
static void shard_vector(compiler *c, uint8_t op, unsigned reg, uint8_t where, size_t offset) {
  put_vex(c, reg, 0, 0, PF3);
  PUT(c, op, (uint8_t)(0x84u | low3(reg) << 3), where);
  put_le32(c, offset);
}

// A vector of the scratch, from rdi on.
static void scratch_vector(compiler *c, unsigned prefix, uint8_t op, unsigned reg, unsigned more,
                           size_t offset) {
  put_vex(c, reg, more, 0, prefix);
  if (offset < 128) {
    PUT(c, op, (uint8_t)(0x47u | low3(reg) << 3), (uint8_t)offset);
  } else {
    PUT(c, op, (uint8_t)(0x87u | low3(reg) << 3));
    put_le32(c, offset);
  }
}

static void add_to(compiler *c, unsigned sum, unsigned x) { // sum ^= x
  const unsigned rm = sum < x ? sum : x;                    // the shorter form, where there is one
  put_vex(c, sum, sum < x ? x : sum, rm, P66);
  PUT(c, VPXOR, (uint8_t)(0xc0u | low3(sum) << 3 | low3(rm)));
}

static void copy_to(compiler *c, unsigned to, unsigned from) {
  const bool load = from < 8;
  put_vex(c, load ? to : from, 0, load ? from : to, P66);
  PUT(c, load ? LOAD : STORE,
      (uint8_t)(0xc0u | low3(load ? to : from) << 3 | low3(load ? from : to)));
}

static void point_to(compiler *c, bool output, size_t shard) { // mov rdx, [r10 or r11 + ...]
  PUT(c, 0x49, 0x8b, output ? 0x93 : 0x92);
  put_le32(c, shard * sizeof(void *));
}

static void jump_back(compiler *c, uint8_t condition, size_t to) {
  PUT(c, 0x0f, condition);
  put_le32(c, to - (c->bytes + 4));
}

// ---------------------------------------------------------------------------------------------
// A pass

static unsigned count(unsigned bits) { return (unsigned)__builtin_popcount(bits); }

// The sums that want one of the combinations of up to three inputs, and what it takes to make it.
typedef struct combinations {
  unsigned only[TOGETHER]; // wanted by these sums
  unsigned ab, ac, bc, abc;
} combinations;

static combinations combine(const compiler *c, const size_t *x, size_t n) {
  const unsigned a = c->mask[x[0]], b = n > 1 ? c->mask[x[1]] : 0, d = n > 2 ? c->mask[x[2]] : 0;
  return (combinations){.only = {a & ~(b | d), b & ~(a | d), d & ~(a | b)},
                        .ab = a & b & ~d,
                        .ac = a & d & ~b,
                        .bc = b & d & ~a,
                        .abc = a & b & d};
}

static unsigned additions(const compiler *c, const size_t *x, size_t n) {
  const combinations w = combine(c, x, n);
  const bool pair = w.ab || w.abc, with_third = w.ac || w.abc;
  return count(w.only[0] | w.only[1] | w.only[2] | w.ab | w.ac | w.bc | w.abc) + pair + with_third +
         (w.ac && pair) + (w.bc != 0);
}

static void swap(size_t *x, size_t i, size_t j) {
  const size_t held = x[i];
  x[i] = x[j];
  x[j] = held;
}

// Of x[0] and up to two of the others those that save most additions for each; they go to the front
// of x. Returns how many.
static size_t choose(const compiler *c, size_t *x, size_t n) {
  size_t best_n = 1, best_i = 0, best_j = 0;
  unsigned best = 0; // saved, a sixth of an addition for each input
  for (size_t i = 1; i < n; i++) {
    const unsigned own = count(c->mask[x[0]]) + count(c->mask[x[i]]);
    const unsigned two = (own - additions(c, (size_t[]){x[0], x[i]}, 2)) * 3;
    if (two > best) {
      best = two;
      best_n = 2;
      best_i = i;
    }
    for (size_t j = i + 1; j < n; j++) {
      const unsigned of_three = additions(c, (size_t[]){x[0], x[i], x[j]}, 3);
      const unsigned all = own + count(c->mask[x[j]]);
      if (all > of_three && (all - of_three) * 2 > best) {
        best = (all - of_three) * 2;
        best_n = 3;
        best_i = i;
        best_j = j;
      }
    }
  }
  if (best_n > 1)
    swap(x, 1, best_i);
  if (best_n > 2)
    swap(x, 2, best_j); // which is beyond best_i, so where it was
  return best_n;
}

// Adds a register to each of these sums, or begins them with it.
static void give(compiler *c, unsigned reg, unsigned sums) {
  for (unsigned s = 0; s < c->sums; s++) {
    if (!(sums >> s & 1u))
      continue;
    if (c->begun >> s & 1u)
      add_to(c, s, reg);
    else
      copy_to(c, s, reg);
    c->begun |= 1u << s;
  }
}

static void read_input(compiler *c, unsigned reg, size_t x) {
  const size_t near = x * WEFT_XOR_LINE, offset = x % c->m->w * c->m->packet_bytes;
  if (!c->copying) {
    scratch_vector(c, PF3, LOAD, reg, 0, near);
    return;
  }
  shard_vector(c, LOAD, reg, AT_LINE, offset + VECTOR);
  scratch_vector(c, PF3, STORE, reg, 0, near + VECTOR);
  shard_vector(c, LOAD, reg, AT_LINE, offset);
  if (c->passes > 1)
    scratch_vector(c, PF3, STORE, reg, 0, near);
}

static void add_inputs(compiler *c, const size_t *x, size_t n) {
  const combinations w = combine(c, x, n);
  const unsigned r = REGISTERS - TOGETHER;
  if (n == 1 && !c->copying) {
    if (!w.only[0])
      return;
    if (count(w.only[0]) == 1 && (w.only[0] & c->begun)) {
      const unsigned sum = (unsigned)__builtin_ctz(w.only[0]);
      scratch_vector(c, P66, VPXOR, sum, sum, x[0] * WEFT_XOR_LINE);
      return;
    }
  }
  for (unsigned i = 0; i < n; i++)
    read_input(c, r + i, x[i]);
  for (unsigned i = 0; i < n; i++)
    give(c, r + i, w.only[i]);
  const bool pair = w.ab || w.abc;
  if (pair)
    add_to(c, r, r + 1);
  give(c, r, w.ab);
  if (w.ac || w.abc)
    add_to(c, r, r + 2);
  give(c, r, w.abc);
  if (w.ac && pair)
    add_to(c, r, r + 1);
  give(c, r, w.ac);
  if (w.bc)
    add_to(c, r + 1, r + 2);
  give(c, r + 1, w.bc);
}

static void add_shard(compiler *c, size_t shard) {
  size_t x[8], left = c->m->w;
  for (size_t p = 0; p < left; p++)
    x[p] = shard * c->m->w + p;
  if (c->copying)
    point_to(c, false, shard);
  while (left > 0) {
    const size_t n = choose(c, x, left);
    add_inputs(c, x, n);
    left -= n;
    memmove(x, x + n, left * sizeof *x);
  }
}

static void store_sums(compiler *c) {
  const size_t w = c->m->w;
  for (unsigned s = 0; s < c->sums; s++) {
    const size_t output = c->first + s;
    if (s == 0 || output % w == 0)
      point_to(c, true, output / w);
    if (!(c->begun >> s & 1u))
      add_to(c, s, s); // nothing is part of it
    shard_vector(c, STORE, s, AT_VECTOR, output % w * c->m->packet_bytes);
  }
}

static void begin_pass(compiler *c, size_t pass) {
  const weft_xor_matrix *m = c->m;
  const size_t share = (m->outputs + c->passes - 1) / c->passes;
  c->first = pass * share;
  c->sums = m->outputs - c->first < share ? m->outputs - c->first : share;
  for (size_t x = 0; x < m->inputs; x++) {
    unsigned mask = 0;
    for (size_t s = 0; s < c->sums; s++)
      mask |= (unsigned)m->bits[(c->first + s) * m->inputs + x] << s;
    c->mask[x] = (uint16_t)mask;
  }
}

static void sweep(compiler *c, bool copying) {
  c->begun = 0;
  c->copying = copying;
  for (size_t shard = 0; shard < c->m->inputs / c->m->w; shard++)
    add_shard(c, shard);
  store_sums(c);
}

// ---------------------------------------------------------------------------------------------
// The whole

static void compile(compiler *c) {
  PUT(c, 0xf3, 0x0f, 0x1e, 0xfa); // endbr64
  PUT(c, 0x49, 0x89, 0xfa);       // mov r10, rdi
  PUT(c, 0x49, 0x89, 0xf3);       // mov r11, rsi
  PUT(c, 0x48, 0x89, 0xd0);       // mov rax, rdx
  const size_t block = c->bytes;
  for (size_t pass = 0; pass < c->passes; pass++) {
    begin_pass(c, pass);
    PUT(c, 0x4c, 0x89, 0xc7); // mov rdi, r8
    PUT(c, 0x48, 0x89, 0xc6); // mov rsi, rax
    if (pass == 0) {
      sweep(c, true);
      PUT(c, 0x48, 0x83, 0xc7, VECTOR); // add rdi, 32
      PUT(c, 0x48, 0x83, 0xc6, VECTOR); // add rsi, 32
    }
    const size_t vector = c->bytes;
    sweep(c, false);
    if (pass > 0) {
      PUT(c, 0x48, 0x83, 0xc7, VECTOR); // add rdi, 32
      PUT(c, 0x48, 0x83, 0xc6, VECTOR); // add rsi, 32
      PUT(c, 0x40, 0xf6, 0xc7, VECTOR); // test dil, 32
      jump_back(c, 0x85, vector);       // jnz
    }
  }
  PUT(c, 0x48, 0x83, 0xc0, WEFT_XOR_LINE); // add rax, 64
  PUT(c, 0x48, 0x39, 0xc8);                // cmp rax, rcx
  jump_back(c, 0x82, block);               // jb
  PUT(c, 0xc5, 0xf8, 0x77);                // vzeroupper
  PUT(c, 0xc3);                            // ret
}

// Bytes of code at most: for each input of a sweep eight instructions beside additions (two of
// them make combinations), for each output three, and an addition for each one of the matrix.
static size_t code_bound(const weft_xor_matrix *m, size_t passes) {
  size_t instructions = 64 + 3 * 2 * m->outputs + 8 * (passes + 1) * m->inputs;
  for (size_t i = 0; i < m->outputs * m->inputs; i++)
    instructions += m->bits[i];
  for (size_t i = 0; i < PASS_MAX * m->inputs && i < m->outputs * m->inputs; i++)
    instructions += m->bits[i];
  return instructions * INSTRUCTION_MAX;
}

weft_status weft_xor_compile_avx2(weft_xor_code **out, const weft_xor_matrix *m,
                                  const weft_allocator *allocator) {
  const size_t passes = (m->outputs + PASS_MAX - 1) / PASS_MAX;
  const size_t room = sizeof(compiler) + m->inputs * sizeof(uint16_t);
  if (m->packet_bytes == 0 || m->packet_bytes % WEFT_XOR_LINE || passes == 0 || m->inputs == 0 ||
      m->w > 8 || m->packet_bytes > INT32_MAX / 8)
    return WEFT_E_UNSUPPORTED;
  uint8_t *memory =
      allocator->alloc(allocator->user, room + code_bound(m, passes), _Alignof(compiler));
  if (!memory)
    return WEFT_E_NOMEM;
  compiler *c = (compiler *)(void *)memory;
  *c = (compiler){.m = m, .code = memory + room, .passes = passes};
  compile(c);
  const weft_status status =
      weft_xor_code_new(out, c->code, c->bytes, m->inputs * WEFT_XOR_LINE, allocator);
  allocator->free(allocator->user, memory);
  return status;
}
