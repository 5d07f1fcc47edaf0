// SPDX-License-Identifier: Apache-2.0
// Compiles a bit matrix to straight code on vectors (kernels/xor_code.h), AVX2's or AVX-512's.
//
// The outputs are cut into passes, whose sums stay in registers while all inputs go by; the other
// registers hold up to three inputs of a shard at a time, whose sums of two and three are made in
// place, each once however many outputs read it. Packets that lie a power of two apart share few
// sets of the caches, so that a line is rarely still there when it is wanted again: the first pass
// copies the inputs' lines, as it reads them, to a scratch that all that follows reads instead.
//
// With AVX2 a line of 64 bytes is two vectors of a packet, and a block of the code, which works on
// one line of each packet, is
//   pass 0 on the first vector, copying
//   pass 0 on the second vector
//   pass 1, 2, ... on both, a loop each
// With AVX-512 it is each pass once, and nothing is copied where one pass is all.
#include <stdbool.h>
#include <string.h>

#include "kernels/host_kernels.h"
#include "kernels/x86/xor_instructions.h"
#include "kernels/xor_code.h"

enum {
  TOGETHER = 3,     // inputs at once
  NARROW_SUMS = 13, // at once; three registers are for inputs
  WIDE_SUMS = 28
};

typedef struct compiler {
  const weft_xor_matrix *m;
  xor_code_buffer to;
  size_t passes;
  // The pass at hand.
  size_t first, sums; // outputs
  bool copying;       // inputs are read where they are, and copied to the scratch
  uint32_t begun;     // a bit for each sum that has something
  uint32_t mask[];    // (inputs): a bit for each sum that an input is part of
} compiler;

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
      add_to(&c->to, s, reg);
    else
      copy_to(&c->to, s, reg);
    c->begun |= 1u << s;
  }
}

static size_t in_shard(const compiler *c, size_t x) { return x % c->m->w * c->m->packet_bytes; }

static void read_input(compiler *c, unsigned reg, size_t x) {
  const size_t near = x * WEFT_XOR_LINE;
  if (!c->copying) {
    scratch_vector(&c->to, LOAD, reg, near);
    return;
  }
  if (!c->to.wide) {
    line_vector(&c->to, LOAD, reg, in_shard(c, x) + HALF_LINE);
    scratch_vector(&c->to, STORE, reg, near + HALF_LINE);
  }
  line_vector(&c->to, LOAD, reg, in_shard(c, x));
  if (c->passes > 1)
    scratch_vector(&c->to, STORE, reg, near);
}

// An input that one sum wants, where nothing else is to be done with it, is added out of memory.
static bool add_from_memory(compiler *c, size_t x, unsigned sums) {
  if (c->copying && !(c->to.wide && c->passes == 1))
    return false;
  if (sums == 0)
    return true;
  if (count(sums) > 1 || !(sums & c->begun))
    return false;
  const unsigned sum = (unsigned)__builtin_ctz(sums);
  if (c->copying)
    line_vector(&c->to, VPXOR, sum, in_shard(c, x));
  else
    scratch_vector(&c->to, VPXOR, sum, x * WEFT_XOR_LINE);
  return true;
}

static void add_inputs(compiler *c, const size_t *x, size_t n) {
  const combinations w = combine(c, x, n);
  const unsigned r = (c->to.wide ? 32 : 16) - TOGETHER;
  if (n == 1 && add_from_memory(c, x[0], w.only[0]))
    return;
  for (unsigned i = 0; i < n; i++)
    read_input(c, r + i, x[i]);
  for (unsigned i = 0; i < n; i++)
    give(c, r + i, w.only[i]);
  const bool pair = w.ab || w.abc;
  if (pair)
    add_to(&c->to, r, r + 1);
  give(c, r, w.ab);
  if (w.ac || w.abc)
    add_to(&c->to, r, r + 2);
  give(c, r, w.abc);
  if (w.ac && pair)
    add_to(&c->to, r, r + 1);
  give(c, r, w.ac);
  if (w.bc)
    add_to(&c->to, r + 1, r + 2);
  give(c, r + 1, w.bc);
}

static void add_shard(compiler *c, size_t shard) {
  size_t x[8], left = c->m->w;
  for (size_t p = 0; p < left; p++)
    x[p] = shard * c->m->w + p;
  if (c->copying)
    point_to(&c->to, false, shard);
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
      point_to(&c->to, true, output / w);
    if (!(c->begun >> s & 1u))
      add_to(&c->to, s, s); // nothing is part of it
    store_output(&c->to, s, output % w * c->m->packet_bytes);
  }
}

static void begin_pass(compiler *c, size_t pass) {
  const weft_xor_matrix *m = c->m;
  const size_t share = (m->outputs + c->passes - 1) / c->passes;
  c->first = pass * share;
  c->sums = m->outputs - c->first < share ? m->outputs - c->first : share;
  for (size_t x = 0; x < m->inputs; x++) {
    c->mask[x] = 0;
    for (size_t s = 0; s < c->sums; s++)
      c->mask[x] |= (uint32_t)m->bits[(c->first + s) * m->inputs + x] << s;
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

// Both vectors of a line, of which a copying pass has the first one before the second one's loop.
static void sweep_halves(compiler *c, bool copying) {
  if (copying) {
    sweep(c, true);
    next_half(&c->to);
  }
  const size_t vector = c->to.bytes;
  sweep(c, false);
  next_half(&c->to);
  if (!copying)
    repeat_for_second_half(&c->to, vector);
}

static void compile(compiler *c) {
  begin_function(&c->to);
  const size_t line = c->to.bytes;
  for (size_t pass = 0; pass < c->passes; pass++) {
    begin_pass(c, pass);
    first_vector(&c->to);
    if (c->to.wide)
      sweep(c, pass == 0);
    else
      sweep_halves(c, pass == 0);
  }
  end_function(&c->to, line);
}

// Bytes of code at most: for each input of a sweep eight instructions beside additions (two of
// them make combinations), for each output three, and an addition for each one of the matrix.
static size_t code_bound(const weft_xor_matrix *m, size_t passes) {
  size_t instructions = 64 + 8 * passes + 3 * 2 * m->outputs + 8 * (passes + 1) * m->inputs;
  for (size_t i = 0; i < m->outputs * m->inputs; i++)
    instructions += m->bits[i];
  for (size_t i = 0; i < NARROW_SUMS * m->inputs && i < m->outputs * m->inputs; i++)
    instructions += m->bits[i];
  return instructions * INSTRUCTION_MAX;
}

static weft_status compile_for(bool wide, weft_xor_code **out, const weft_xor_matrix *m,
                               const weft_allocator *allocator) {
  const size_t most = wide ? WIDE_SUMS : NARROW_SUMS, passes = (m->outputs + most - 1) / most;
  const size_t room = sizeof(compiler) + m->inputs * sizeof(uint32_t);
  if (m->packet_bytes == 0 || m->packet_bytes % WEFT_XOR_LINE || passes == 0 || m->inputs == 0 ||
      m->w > 8 || m->packet_bytes > INT32_MAX / 8)
    return WEFT_E_UNSUPPORTED;
  uint8_t *memory =
      allocator->alloc(allocator->user, room + code_bound(m, passes), _Alignof(compiler));
  if (!memory)
    return WEFT_E_NOMEM;
  compiler *c = (compiler *)(void *)memory;
  *c = (compiler){.m = m, .to = {.code = memory + room, .wide = wide}, .passes = passes};
  compile(c);
  const weft_status status =
      weft_xor_code_new(out, c->to.code, c->to.bytes, m->inputs * WEFT_XOR_LINE, allocator);
  allocator->free(allocator->user, memory);
  return status;
}

weft_status weft_xor_compile_avx2(weft_xor_code **out, const weft_xor_matrix *matrix,
                                  const weft_allocator *allocator) {
  return compile_for(false, out, matrix, allocator);
}

weft_status weft_xor_compile_avx512(weft_xor_code **out, const weft_xor_matrix *matrix,
                                    const weft_allocator *allocator) {
  return compile_for(true, out, matrix, allocator);
}
