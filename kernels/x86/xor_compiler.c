// SPDX-License-Identifier: Apache-2.0
// Compiles a bit matrix to straight-line vector code (kernels/xor_code.h) for AVX2 or AVX-512.
//
// The sums are divided into passes. The sums of a pass stay in registers while all inputs go by;
// the other registers hold a few inputs at a time, and those sums of them that several of the
// pass's sums want, computed once. Packets that are a power of two apart share few sets of the
// caches, so that a line is rarely still cached when it is needed again: the first pass copies the
// inputs' lines, as it reads them, to a scratch that everything after it reads instead.
//
// With AVX2 a line of 64 bytes is two vectors of a packet, and a block of the code, which works on
// one line of each packet, is
//   pass 0 on the first vector, copying
//   pass 0 on the second vector
//   pass 1, 2, ... on both, a loop each
// With AVX-512 it is each pass once. Then nothing is copied if there is only one pass, nor are the
// last few shards if their packets do not share sets: that many lines stay in eight ways.
//
// The loop over lines exists twice: for packets in a near cache, and for others, whose inputs it
// prefetches and, with AVX-512, whose outputs it stores past the caches if they begin on a line.
#include <stdbool.h>
#include <string.h>

#include "kernels/host_kernels.h"
#include "kernels/smaller.h"
#include "kernels/x86/cores.h"
#include "kernels/x86/xor_instructions.h"
#include "kernels/x86/xor_together.h"
#include "kernels/xor_code.h"

enum {
  NARROW_SUMS = 13, // in a pass; the other three registers are for inputs
  WIDE_SUMS = 26,   // likewise; six are for four inputs and the sums of two pairs
  LOOPS_FETCH = 4,  // number of passes from which on those that are loops prefetch, too
  STAY = 5,         // shards that are read in place in all passes
  WAY_BYTES = 4096  // lines that far apart share a set of a first-level cache
};

typedef struct compiler {
  const weft_xor_matrix *m;
  xor_code_buffer to;
  bool far; // the current loop is for packets that no near cache holds
  size_t passes;
  bool apart;    // the last pass is the folded shard's
  size_t copied; // number of inputs that are copied, the first ones
  // The current pass.
  size_t pass;
  size_t first, sums; // outputs
  bool copying;       // inputs to copy are read in place, and copied to the scratch
  size_t shard;       // the input shard that rdx points to, or NONE
  uint32_t begun;     // a bit for each sum that has begun
  uint32_t mask[];    // (inputs): a bit for each sum that an input is part of
} compiler;

// ---------------------------------------------------------------------------------------------
// Vectors of inputs

static size_t in_shard(const compiler *c, size_t x) { return x % c->m->w * c->m->packet_bytes; }

// Makes rdx point to the shard of an input.
static void point_to_input(compiler *c, size_t x) {
  if (x / c->m->w == c->shard)
    return;
  c->shard = x / c->m->w;
  point_to(&c->to, false, c->shard);
}

// Returns whether an input has to be read to be copied, even if no sum of the pass wants it.
static bool is_copied_now(const compiler *c, size_t x) { return c->copying && x < c->copied; }

// Prefetches an input if that is due in this sweep over the inputs. Each sweep prefetches some
// shards, so that memory is always busy. With AVX2 the two sweeps of the first pass do, and the
// others only if there are many, since as loops they prefetch twice. A pass for the folded shard is
// too short for it.
static void fetch_input(compiler *c, size_t x) {
  const size_t passes = c->passes - c->apart;
  const size_t sweeps = c->to.wide ? passes : passes < LOOPS_FETCH ? 2 : passes + 1;
  const size_t sweep = c->pass + (!c->to.wide && !c->copying);
  if (!c->far || x / c->m->w % sweeps != sweep)
    return;
  point_to_input(c, x);
  fetch_line(&c->to, in_shard(c, x));
}

static void read_input(compiler *c, unsigned reg, size_t x) {
  const size_t near = x * WEFT_XOR_LINE;
  if (!c->copying && x < c->copied) {
    scratch_vector(&c->to, LOAD, reg, near);
    return;
  }
  point_to_input(c, x);
  if (!c->to.wide) {
    line_vector(&c->to, LOAD, reg, in_shard(c, x) + HALF_LINE);
    scratch_vector(&c->to, STORE, reg, near + HALF_LINE);
  }
  line_vector(&c->to, LOAD, reg, in_shard(c, x));
  if (is_copied_now(c, x))
    scratch_vector(&c->to, STORE, reg, near);
}

// ---------------------------------------------------------------------------------------------
// AVX2: up to three inputs, whose sums of two and three are made in place, one after the other

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

// Adds an input from memory if only one sum wants it and it is not copied. Returns whether the
// input is done.
static bool add_from_memory(compiler *c, size_t x, unsigned sums) {
  if (c->copying)
    return false;
  if (sums == 0)
    return true;
  if (count(sums) > 1 || !(sums & c->begun))
    return false;
  const unsigned sum = (unsigned)__builtin_ctz(sums);
  scratch_vector(&c->to, VPXOR, sum, x * WEFT_XOR_LINE);
  return true;
}

static void add_three(compiler *c, const size_t *x, size_t n) {
  const combinations w = combine(c->mask, x, n);
  const unsigned r = NARROW_SUMS; // the first of three registers
  const bool done = n == 1 && add_from_memory(c, x[0], w.only[0]);
  for (unsigned i = 0; i < n; i++) {
    fetch_input(c, x[i]);
    if (!done)
      read_input(c, r + i, x[i]);
  }
  if (done)
    return;
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

static void add_narrow(compiler *c, size_t *x, size_t left) {
  while (left > 0) {
    const size_t n = choose(c->mask, x, left);
    add_three(c, x, n);
    left -= n;
    memmove(x, x + n, left * sizeof *x);
  }
}

// ---------------------------------------------------------------------------------------------
// AVX-512: two pairs of inputs and their sums, of which one instruction adds two

// Finds the registers, up to two, that add up to what sum s wants of a quad. A pair has three: its
// inputs' and their sum's. Returns how many.
static size_t terms(const quad *q, unsigned s, unsigned *reg) {
  size_t n = 0;
  bool both[2];
  for (unsigned p = 0; p < 2; p++) {
    const unsigned wants = (q->mask[2 * p] >> s & 1u) | (q->mask[2 * p + 1] >> s & 1u) << 1;
    both[p] = wants == 3;
    if (wants)
      reg[n++] = WIDE_SUMS + 3 * p + wants - 1;
  }
  if (n > 1 || !(both[0] || both[1]))
    return n;
  reg[0] = WIDE_SUMS + (both[1] ? 3 : 0); // a pair alone is added as its two inputs
  reg[1] = reg[0] + 1;
  return 2;
}

static void add_quad(compiler *c, const quad *q) {
  for (unsigned i = 0; i < 4; i++) {
    if (q->x[i] == NONE)
      continue;
    fetch_input(c, q->x[i]);
    if (q->mask[i] || is_copied_now(c, q->x[i]))
      read_input(c, WIDE_SUMS + i / 2 * 3 + i % 2, q->x[i]);
  }
  for (unsigned p = 0; p < 2; p++)
    if (pair_with_others(q, 2 * p))
      add_two(&c->to, WIDE_SUMS + 3 * p + 2, WIDE_SUMS + 3 * p, WIDE_SUMS + 3 * p + 1);
  for (unsigned s = 0; s < c->sums; s++) {
    unsigned reg[2];
    const size_t n = terms(q, s, reg);
    const bool begun = c->begun >> s & 1u;
    if (n == 2)
      begun ? add_both_to(&c->to, s, reg[0], reg[1]) : add_two(&c->to, s, reg[0], reg[1]);
    else if (n == 1)
      begun ? add_to(&c->to, s, reg[0]) : copy_to(&c->to, s, reg[0]);
    c->begun |= (uint32_t)(n > 0) << s;
  }
}

static void add_wide(compiler *c, size_t *x, size_t n) {
  quad q[2];
  for (size_t i = n; i < AT_ONCE; i++)
    x[i] = NONE;
  part(c->mask, x, q);
  for (size_t i = 0; i < 2; i++)
    add_quad(c, &q[i]);
}

// ---------------------------------------------------------------------------------------------
// A pass

// Stores sums [first, last) of the pass, packets of the output shard that rdx points to.
static void store_packets(compiler *c, unsigned first, unsigned last, bool past_caches) {
  for (unsigned s = first; s < last; s++) {
    const size_t offset = (c->first + s) % c->m->w * c->m->packet_bytes;
    if (past_caches)
      stream_output(&c->to, s, offset);
    else
      store_output(&c->to, s, offset);
  }
}

static void store_sums(compiler *c) {
  const size_t w = c->m->w;
  for (unsigned s = 0, next; s < c->sums; s = next) {
    const size_t output = c->first + s, left = w - output % w;
    next = left < c->sums - s ? s + (unsigned)left : (unsigned)c->sums;
    point_to(&c->to, true, output / w);
    if (!c->far || !c->to.wide) {
      store_packets(c, s, next, false);
      continue;
    }
    const size_t unaligned = jump_unless_aligned(&c->to);
    store_packets(c, s, next, true);
    const size_t stored = jump_always(&c->to);
    land(&c->to, unaligned);
    store_packets(c, s, next, false);
    land(&c->to, stored);
  }
}

// Clears sums that no input is part of.
static void clear_empty(compiler *c) {
  for (unsigned i = 0; i < c->sums; i++)
    if (!(c->begun >> i & 1u))
      add_to(&c->to, i, i);
}

// Adds packet `at` of shards before the folded one to that of the folded shard; or, in passes
// before the one that has it, to their sum so far in the scratch, which the first pass begins.
static void fold_packet(compiler *c, size_t at) {
  const size_t w = c->m->w, shard = c->m->folded - 1, output = shard * w + at;
  const size_t end = c->first + c->sums, near = (c->copied + at) * WEFT_XOR_LINE;
  const bool here = output < end;
  const unsigned spare = c->to.wide ? WIDE_SUMS : NARROW_SUMS; // a register for inputs
  const unsigned sum = here ? (unsigned)(output - c->first) : spare;
  bool some = here;
  if (output < c->first)
    return;
  for (size_t o = at; o < end && o < shard * w; o += w) {
    if (o < c->first)
      continue;
    some ? add_to(&c->to, sum, (unsigned)(o - c->first))
         : copy_to(&c->to, sum, (unsigned)(o - c->first));
    some = true;
  }
  if (some && at < c->first)
    scratch_vector(&c->to, VPXOR, sum, near);
  if (some && !here)
    scratch_vector(&c->to, STORE, sum, near);
}

static size_t cut(size_t a, size_t pieces) { return (a + pieces - 1) / pieces; }

// Returns whether the folded shard has a pass of its own. Its sums have one input of each shard and
// share nothing: without them, other passes have more sums each and share more. That pays if it
// makes no more passes.
static bool fold_apart(const weft_xor_matrix *m, size_t passes, size_t most) {
  return m->folded > 1 && m->folded * m->w == m->outputs && cut(m->outputs - m->w, most) < passes;
}

static void begin_pass(compiler *c, size_t pass) {
  const weft_xor_matrix *m = c->m;
  const size_t passes = c->passes - c->apart, outputs = m->outputs - (c->apart ? m->w : 0);
  const size_t share = cut(outputs, passes);
  c->pass = pass;
  c->first = weft_smaller(pass * share, outputs);
  c->sums = pass < passes ? weft_smaller(share, outputs - c->first) : m->w;
  for (size_t x = 0; x < m->inputs; x++) {
    c->mask[x] = 0;
    for (size_t s = 0; s < c->sums; s++)
      c->mask[x] |= (uint32_t)m->bits[(c->first + s) * m->inputs + x] << s;
  }
}

static void sweep(compiler *c, bool copying) {
  c->begun = 0;
  c->copying = copying;
  c->shard = NONE;
  for (size_t done = 0, n; done < c->m->inputs; done += n) {
    size_t x[AT_ONCE];
    for (n = 0; n < AT_ONCE && done + n < c->m->inputs; n++)
      x[n] = done + n;
    if (c->to.wide)
      add_wide(c, x, n);
    else
      add_narrow(c, x, n);
  }
  clear_empty(c);
  for (size_t at = 0; at < c->m->w && c->m->folded > 1; at++)
    fold_packet(c, at);
  store_sums(c);
}

// ---------------------------------------------------------------------------------------------
// The whole

// Computes both vectors of a line, by a loop over them; a copying pass has separate code for the
// first one, which copies.
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

static void compile_loop(compiler *c, bool far) {
  const size_t packet = c->m->packet_bytes;
  c->far = far;
  count_lines(&c->to, packet / WEFT_XOR_LINE);
  const size_t line = c->to.bytes;
  for (size_t pass = 0; pass < c->passes; pass++) {
    begin_pass(c, pass);
    first_vector(&c->to);
    if (c->to.wide)
      sweep(c, pass == 0);
    else
      sweep_halves(c, pass == 0);
  }
  end_loop(&c->to, far, packet / WEFT_XOR_LINE, (c->m->w - 1) * packet, line);
}

static void compile(compiler *c) {
  begin_function(&c->to);
  const size_t near = jump_unless_far(&c->to);
  begin_fetching(&c->to);
  compile_loop(c, true);
  land(&c->to, near);
  compile_loop(c, false);
}

// Returns the maximum number of bytes of code: for each input of a sweep eight instructions besides
// additions (two of them make combinations), for each output seven and one to fold it, two for each
// packet of a shard that is left to be folded, and an addition for each set bit of the matrix; all
// of it twice.
static size_t code_bound(const weft_xor_matrix *m, size_t passes) {
  size_t instructions =
      64 + 8 * passes + 8 * 2 * m->outputs + 8 * (passes + 1) * m->inputs + 2 * (passes + 1) * m->w;
  for (size_t i = 0; i < m->outputs * m->inputs; i++)
    instructions += m->bits[i];
  for (size_t i = 0; i < NARROW_SUMS * m->inputs && i < m->outputs * m->inputs; i++)
    instructions += m->bits[i];
  return 2 * instructions * INSTRUCTION_MAX;
}

static size_t copied_inputs(const weft_xor_matrix *m, bool wide, size_t passes) {
  if (!wide || (passes > 1 && m->w * m->packet_bytes > WAY_BYTES))
    return m->inputs;
  return passes == 1 || m->inputs < STAY * m->w ? 0 : m->inputs - STAY * m->w;
}

// Returns the lines of the scratch: copied inputs, then sums of packets that passes leave to be
// folded.
static size_t scratch_lines(const compiler *c) {
  return c->copied + (c->m->folded > 1 && c->passes > 1 ? c->m->w : 0);
}

// Returns how many groups ahead to prefetch. Zen 5 loses a tenth to a quarter with more
// (docs/performance/crs-machine-code.md); Zen 4 gains from as many as there is room for, and to
// Intel's cores it makes no difference.
static size_t groups_ahead(void) { return core_is_zen5() ? 2 : 0; }

static weft_status compile_for(bool wide, weft_xor_code **out, const weft_xor_matrix *m,
                               const weft_allocator *allocator) {
  const size_t most = wide ? WIDE_SUMS : NARROW_SUMS, passes = cut(m->outputs, most);
  const size_t room = sizeof(compiler) + m->inputs * sizeof(uint32_t);
  if (m->packet_bytes == 0 || m->packet_bytes % WEFT_XOR_LINE || passes == 0 || m->inputs == 0 ||
      m->w > 8 || m->packet_bytes > INT32_MAX / 8 || m->folded * m->w > m->outputs)
    return WEFT_E_UNSUPPORTED;
  uint8_t *memory =
      allocator->alloc(allocator->user, room + code_bound(m, passes), _Alignof(compiler));
  if (!memory)
    return WEFT_E_NOMEM;
  compiler *c = (compiler *)(void *)memory;
  *c = (compiler){.m = m,
                  .to = {.code = memory + room, .wide = wide},
                  .passes = passes,
                  .apart = fold_apart(m, passes, most),
                  .copied = copied_inputs(m, wide, passes)};
  compile(c);
  const weft_status status =
      weft_xor_code_new(out, c->to.code, c->to.bytes, scratch_lines(c) * WEFT_XOR_LINE, allocator);
  if (status == WEFT_OK)
    (*out)->groups_ahead = groups_ahead();
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
