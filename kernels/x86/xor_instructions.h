// SPDX-License-Identifier: Apache-2.0
// Encodes the few instructions of which kernels/x86/xor_compiler.c makes loops, for vectors of
// 32 bytes (VEX) or 64 (EVEX).
//
// General registers have fixed uses: r10 and r11 point to the tables of inputs and outputs, rdx to
// one of their shards; rax is where the line begins, rsi where the vector does, r9 the line that is
// prefetched, rcx where the last line ends; r8 is the scratch and rdi the vector's place there.
// None of them needs to be preserved for callers.
#ifndef WEFT_KERNELS_X86_XOR_INSTRUCTIONS_H
#define WEFT_KERNELS_X86_XOR_INSTRUCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct xor_code_buffer {
  uint8_t *code; // the caller provides enough room: INSTRUCTION_MAX bytes per instruction
  size_t bytes;  // so far
  bool wide;     // vectors of 64 bytes, 32 registers of them
} xor_code_buffer;

enum { INSTRUCTION_MAX = 11 }; // bytes

static inline void put(xor_code_buffer *b, const void *bytes, size_t count) {
  memcpy(b->code + b->bytes, bytes, count);
  b->bytes += count;
}
#define PUT(b, ...) put(b, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static inline void put_le32(xor_code_buffer *b, size_t value) {
  PUT(b, (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24));
}

enum { P66 = 1, PF3 = 2, EVEX_W = 0x80 };         // prefixes, and a bit of wide opcodes
enum { LOAD = 0x6f, STORE = 0x7f, VPXOR = 0xef }; // VMOVDQU (F3), VMOVDQA (66), VPXOR (66)

// EVEX for vectors of 64 bytes: opcode `op` of map 1 (0F) or 3 (0F 3A).
static inline void put_evex(xor_code_buffer *b, unsigned map, unsigned prefix, uint8_t op,
                            unsigned reg, unsigned more, unsigned rm) {
  const unsigned r = reg & 8u ? 0 : 0x80u, x = rm & 16u ? 0 : 0x40u, base = rm & 8u ? 0 : 0x20u;
  PUT(b, 0x62, (uint8_t)(r | x | base | (reg & 16u ? 0 : 0x10u) | map),
      (uint8_t)(4u | (~more & 15u) << 3 | prefix), (uint8_t)(more & 16u ? 0x40u : 0x48u), op);
}

// Emits prefix and opcode, for operands reg and rm (0 for memory at the registers above) and a
// third one, 0 if there is none.
static inline void put_opcode(xor_code_buffer *b, unsigned prefix, uint8_t op, unsigned reg,
                              unsigned more, unsigned rm) {
  const unsigned third = (~more & 15u) << 3, r = reg & 8u ? 0 : 0x80u;
  if (b->wide)
    put_evex(b, 1, EVEX_W | prefix, op, reg, more, rm);
  else if (!(rm & 8u))
    PUT(b, 0xc5, (uint8_t)(r | third | 4u | prefix), op);
  else
    PUT(b, 0xc4, (uint8_t)(r | 0x41u), (uint8_t)(third | 4u | prefix), op);
}

static inline void put_registers(xor_code_buffer *b, unsigned reg, unsigned rm) {
  PUT(b, (uint8_t)(0xc0u | (reg & 7u) << 3 | (rm & 7u)));
}

// Emits ModRM, with the register, or 4 for a SIB byte, in `low`, and the offset in its shortest
// form: a byte counts whole vectors if they are wide.
static inline void put_memory(xor_code_buffer *b, unsigned reg, unsigned low, const uint8_t *sib,
                              size_t offset) {
  const size_t unit = b->wide ? 64 : 1;
  const bool is_short = offset % unit == 0 && offset / unit < 128;
  PUT(b, (uint8_t)((is_short ? 0x40u : 0x80u) | (reg & 7u) << 3 | low));
  if (sib)
    PUT(b, *sib);
  if (is_short)
    PUT(b, (uint8_t)(offset / unit));
  else
    put_le32(b, offset);
}

// Loads or stores a vector of the shard that rdx points to, or adds it to a register.
static inline void line_vector(xor_code_buffer *b, uint8_t op, unsigned reg, size_t offset) {
  const uint8_t rdx_rax = 0x02; // a SIB byte
  put_opcode(b, op == VPXOR ? P66 : PF3, op, reg, op == VPXOR ? reg : 0, 0);
  put_memory(b, reg, 4, &rdx_rax, offset);
}

static const uint8_t rdx_rsi = 0x32; // a SIB byte

static inline void store_output(xor_code_buffer *b, unsigned reg, size_t offset) {
  put_opcode(b, PF3, STORE, reg, 0, 0);
  put_memory(b, reg, 4, &rdx_rsi, offset);
}

// Stores an output past the caches, only wide and at the beginning of a line: VMOVNTDQ.
static inline void stream_output(xor_code_buffer *b, unsigned reg, size_t offset) {
  put_evex(b, 1, P66, 0xe7, reg, 0, 0);
  put_memory(b, reg, 4, &rdx_rsi, offset);
}

static inline void scratch_vector(xor_code_buffer *b, uint8_t op, unsigned reg, size_t offset) {
  put_opcode(b, op == VPXOR ? P66 : PF3, op, reg, op == VPXOR ? reg : 0, 0);
  put_memory(b, reg, 7, NULL, offset);
}

static inline void add_two(xor_code_buffer *b, unsigned sum, unsigned x, unsigned y) {
  const unsigned rm = x < y ? x : y;                 // the shorter form of VEX, where there is one
  put_opcode(b, P66, VPXOR, sum, x < y ? y : x, rm); // sum = x ^ y
  put_registers(b, sum, rm);
}

static inline void add_to(xor_code_buffer *b, unsigned sum, unsigned x) { // sum ^= x
  add_two(b, sum, sum, x);
}

// sum ^= x ^ y, only wide: VPTERNLOGQ, whose table of all eight cases is that of exclusive or.
static inline void add_both_to(xor_code_buffer *b, unsigned sum, unsigned x, unsigned y) {
  put_evex(b, 3, EVEX_W | P66, 0x25, sum, x, y);
  put_registers(b, sum, y);
  PUT(b, 0x96);
}

static inline void copy_to(xor_code_buffer *b, unsigned to, unsigned from) {
  const bool load = from < 8; // likewise the shorter form
  const unsigned reg = load ? to : from, rm = load ? from : to;
  put_opcode(b, P66, load ? LOAD : STORE, reg, 0, rm);
  put_registers(b, reg, rm);
}

static inline void point_to(xor_code_buffer *b, bool output, size_t shard) {
  PUT(b, 0x49, 0x8b, output ? 0x93 : 0x92); // mov rdx, [r10 or r11 + ...]
  put_le32(b, shard * sizeof(void *));
}

// Prefetches line r9 of the shard that rdx points to: PREFETCHT1.
static inline void fetch_line(xor_code_buffer *b, size_t offset) {
  PUT(b, 0x42, 0x0f, 0x18, 0x94, 0x0a);
  put_le32(b, offset);
}

static inline void begin_function(xor_code_buffer *b) {
  PUT(b, 0xf3, 0x0f, 0x1e, 0xfa); // endbr64
  PUT(b, 0x49, 0x89, 0xfa);       // mov r10, rdi
  PUT(b, 0x49, 0x89, 0xf3);       // mov r11, rsi
  PUT(b, 0x48, 0x89, 0xd0);       // mov rax, rdx
}

static inline void first_vector(xor_code_buffer *b) {
  PUT(b, 0x4c, 0x89, 0xc7); // mov rdi, r8
  PUT(b, 0x48, 0x89, 0xc6); // mov rsi, rax
}

enum { HALF_LINE = 32 };
static inline void next_half(xor_code_buffer *b) {
  PUT(b, 0x48, 0x83, 0xc7, HALF_LINE); // add rdi, 32
  PUT(b, 0x48, 0x83, 0xc6, HALF_LINE); // add rsi, 32
}

static inline void jump(xor_code_buffer *b, uint8_t condition, size_t to) {
  PUT(b, 0x0f, condition);
  put_le32(b, to - (b->bytes + 4));
}

// Emits a jump to where its result is passed to land().
static inline size_t jump_ahead(xor_code_buffer *b, uint8_t condition) {
  jump(b, condition, 0);
  return b->bytes;
}

static inline void land(xor_code_buffer *b, size_t jumped) {
  xor_code_buffer at = {.code = b->code, .bytes = jumped - 4};
  put_le32(&at, b->bytes - jumped);
}

static inline void repeat_for_second_half(xor_code_buffer *b, size_t from) {
  PUT(b, 0x40, 0xf6, 0xc7, HALF_LINE); // test dil, 32
  jump(b, 0x85, from);                 // jnz
}

static inline size_t jump_unless_far(xor_code_buffer *b) {
  PUT(b, 0x4d, 0x85, 0xc9);   // test r9, r9
  return jump_ahead(b, 0x84); // jz
}

// Jumps unless the shard that rdx points to begins on a cache line.
static inline size_t jump_unless_aligned(xor_code_buffer *b) {
  PUT(b, 0xf6, 0xc2, 63);     // test dl, 63
  return jump_ahead(b, 0x85); // jnz
}

static inline size_t jump_always(xor_code_buffer *b) {
  PUT(b, 0xe9);
  put_le32(b, 0);
  return b->bytes;
}

static inline void begin_fetching(xor_code_buffer *b) { PUT(b, 0x49, 0x01, 0xc1); } // add r9, rax

// Sets the number of lines left of the packet, which is counted in the red zone below the stack,
// since signals leave that alone.
static inline void count_lines(xor_code_buffer *b, size_t lines) {
  PUT(b, 0xc7, 0x44, 0x24, 0xf8); // mov dword ptr [rsp - 8], lines
  put_le32(b, lines);
}

static inline void go_on(xor_code_buffer *b, bool far, size_t bytes) {
  PUT(b, 0x48, 0x05); // add rax, bytes
  put_le32(b, bytes);
  if (far) {
    PUT(b, 0x49, 0x81, 0xc1); // add r9, bytes
    put_le32(b, bytes);
  }
  PUT(b, 0x48, 0x39, 0xc8); // cmp rax, rcx
}

// Goes on to the packet's next line, or to the next group's, until the end.
static inline void end_loop(xor_code_buffer *b, bool far, size_t packet_lines, size_t gap,
                            size_t next_line) {
  go_on(b, far, 64);
  const size_t done = jump_ahead(b, 0x83); // jae
  PUT(b, 0xff, 0x4c, 0x24, 0xf8);          // dec dword ptr [rsp - 8]
  jump(b, 0x85, next_line);                // jnz
  count_lines(b, packet_lines);
  go_on(b, far, gap);
  jump(b, 0x82, next_line); // jb
  land(b, done);
  if (far)
    PUT(b, 0x0f, 0xae, 0xf8); // sfence: stores past the caches are not ordered
  PUT(b, 0xc5, 0xf8, 0x77);   // vzeroupper
  PUT(b, 0xc3);               // ret
}

#endif
