// SPDX-License-Identifier: Apache-2.0
// Plain-C definitions of the AVX-512, AVX2, SSE and GFNI intrinsics that kernels/x86 uses,
// following Intel's descriptions of the instructions, so that those files run unchanged on machines
// without them. A wrapper includes this first; the guard of kernels/x86/intrinsics.h then keeps the
// real ones out.
#ifndef WEFT_TESTS_KERNELS_EMULATED_INTRINSICS_H
#define WEFT_TESTS_KERNELS_EMULATED_INTRINSICS_H

#define WEFT_KERNELS_X86_INTRINSICS_H
#define INTRINSICS_APART(v) ((void)0)
#define INTRINSICS_IN_ORDER(v) ((void)0)

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Unused where a wrapper's source needs only some of them; not inlined, or compiling takes minutes.
#define EMULATED static __attribute__((unused, noinline))

typedef struct {
  uint8_t b[16];
} __m128i, __m128i_u;
typedef struct {
  uint8_t b[32];
} __m256i, __m256i_u;
typedef struct {
  uint8_t b[64];
} __m512i;
typedef uint64_t __mmask64;

// --- bytes of any width ---

EMULATED void emulated_xor(uint8_t *out, const uint8_t *a, const uint8_t *b, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    out[i] = a[i] ^ b[i];
}

EMULATED void emulated_set64(uint8_t *out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    out[i] = (uint8_t)(value >> 8 * (i % 8));
}

// GF2P8AFFINEQB: in each 8 bytes, bit i of a result byte is the parity of matrix byte 7 - i and the
// source byte, xored with bit i of the constant.
EMULATED void emulated_affine(uint8_t *out, const uint8_t *x, const uint8_t *matrix, int constant,
                              size_t bytes) {
  for (size_t at = 0; at < bytes; at++) {
    unsigned byte = 0;
    for (unsigned i = 0; i < 8; i++) {
      unsigned both = matrix[at / 8 * 8 + 7 - i] & x[at];
      both ^= both >> 4;
      both ^= both >> 2;
      both ^= both >> 1;
      byte |= (both & 1u) << i;
    }
    out[at] = (uint8_t)(byte ^ (unsigned)constant);
  }
}

// VPUNPCK: in each 16 bytes, interleaves elements of `size` bytes of the lower or upper halves of a
// and b.
EMULATED void emulated_unpack(uint8_t *out, const uint8_t *a, const uint8_t *b, size_t size,
                              size_t half, size_t bytes) {
  for (size_t at = 0; at < bytes; at++) {
    const size_t element = at % 16 / size; // of the result's 16 bytes
    const uint8_t *const from = element % 2 ? b : a;
    out[at] = from[at / 16 * 16 + half * 8 + element / 2 * size + at % size];
  }
}

#define EMULATED_UNPACK(prefix, vector, name, size, half)                                          \
  EMULATED vector prefix##_unpack##name(vector a, vector b) {                                      \
    vector v;                                                                                      \
    emulated_unpack(v.b, a.b, b.b, size, half, sizeof v.b);                                        \
    return v;                                                                                      \
  }
#define EMULATED_UNPACKS(prefix, vector)                                                           \
  EMULATED_UNPACK(prefix, vector, lo_epi8, 1, 0)                                                   \
  EMULATED_UNPACK(prefix, vector, hi_epi8, 1, 1)                                                   \
  EMULATED_UNPACK(prefix, vector, lo_epi16, 2, 0)                                                  \
  EMULATED_UNPACK(prefix, vector, hi_epi16, 2, 1)                                                  \
  EMULATED_UNPACK(prefix, vector, lo_epi32, 4, 0)                                                  \
  EMULATED_UNPACK(prefix, vector, hi_epi32, 4, 1)

// --- 128 bits ---

EMULATED __m128i _mm_loadu_si128(const __m128i_u *p) {
  __m128i v;
  memcpy(v.b, p, sizeof v.b);
  return v;
}

EMULATED __m128i _mm_setzero_si128(void) { return (__m128i){{0}}; }

EMULATED void _mm_storeu_si128(__m128i_u *p, __m128i v) { memcpy(p, v.b, sizeof v.b); }

EMULATED void _mm_stream_si128(__m128i *p, __m128i v) {
  if ((uintptr_t)p % sizeof v.b != 0) // the real instruction faults
    abort();
  memcpy(p, v.b, sizeof v.b);
}

EMULATED __m128i _mm_xor_si128(__m128i a, __m128i b) {
  emulated_xor(a.b, a.b, b.b, sizeof a.b);
  return a;
}

EMULATED __m128i _mm_set1_epi64x(long long value) {
  __m128i v;
  emulated_set64(v.b, (uint64_t)value, sizeof v.b);
  return v;
}

EMULATED __m128i _mm_gf2p8affine_epi64_epi8(__m128i x, __m128i matrix, int constant) {
  __m128i v;
  emulated_affine(v.b, x.b, matrix.b, constant, sizeof v.b);
  return v;
}

// --- 256 bits ---

EMULATED __m256i _mm256_setzero_si256(void) { return (__m256i){{0}}; }

EMULATED __m256i _mm256_loadu_si256(const __m256i_u *p) {
  __m256i v;
  memcpy(v.b, p, sizeof v.b);
  return v;
}

EMULATED void _mm256_storeu_si256(__m256i_u *p, __m256i v) { memcpy(p, v.b, sizeof v.b); }

EMULATED void _mm256_stream_si256(__m256i *p, __m256i v) {
  if ((uintptr_t)p % sizeof v.b != 0) // the real instruction faults
    abort();
  memcpy(p, v.b, sizeof v.b);
}

EMULATED void _mm_sfence(void) {}

EMULATED __m256i _mm256_xor_si256(__m256i a, __m256i b) {
  emulated_xor(a.b, a.b, b.b, sizeof a.b);
  return a;
}

EMULATED __m256i _mm256_set1_epi64x(long long value) {
  __m256i v;
  emulated_set64(v.b, (uint64_t)value, sizeof v.b);
  return v;
}

EMULATED __m256i _mm256_gf2p8affine_epi64_epi8(__m256i x, __m256i matrix, int constant) {
  __m256i v;
  emulated_affine(v.b, x.b, matrix.b, constant, sizeof v.b);
  return v;
}

EMULATED_UNPACKS(_mm256, __m256i)

// --- 512 bits ---

EMULATED_UNPACKS(_mm512, __m512i)

EMULATED __m512i _mm512_setzero_si512(void) { return (__m512i){{0}}; }

EMULATED __m512i _mm512_loadu_si512(const void *p) {
  __m512i v;
  memcpy(v.b, p, sizeof v.b);
  return v;
}

EMULATED void _mm512_storeu_si512(void *p, __m512i v) { memcpy(p, v.b, sizeof v.b); }

EMULATED void _mm512_stream_si512(__m512i *p, __m512i v) {
  if ((uintptr_t)p % sizeof v.b != 0) // the real instruction faults
    abort();
  memcpy(p, v.b, sizeof v.b);
}

EMULATED __m512i _mm512_maskz_loadu_epi8(__mmask64 mask, const void *p) {
  __m512i v = {{0}};
  for (size_t i = 0; i < sizeof v.b; i++)
    if (mask >> i & 1)
      v.b[i] = ((const uint8_t *)p)[i];
  return v;
}

EMULATED void _mm512_mask_storeu_epi8(void *p, __mmask64 mask, __m512i v) {
  for (size_t i = 0; i < sizeof v.b; i++)
    if (mask >> i & 1)
      ((uint8_t *)p)[i] = v.b[i];
}

EMULATED __m512i _mm512_xor_si512(__m512i a, __m512i b) {
  emulated_xor(a.b, a.b, b.b, sizeof a.b);
  return a;
}

EMULATED __m512i _mm512_and_si512(__m512i a, __m512i b) {
  for (size_t i = 0; i < sizeof a.b; i++)
    a.b[i] &= b.b[i];
  return a;
}

// Each bit of the table is the result for one of the eight values of three input bits.
EMULATED __m512i _mm512_ternarylogic_epi64(__m512i a, __m512i b, __m512i c, int table) {
  __m512i v = {{0}};
  for (size_t i = 0; i < 8 * sizeof v.b; i++) {
    const unsigned bit = i % 8;
    const unsigned x = a.b[i / 8], y = b.b[i / 8], z = c.b[i / 8];
    const unsigned chosen = (x >> bit & 1u) << 2 | (y >> bit & 1u) << 1 | (z >> bit & 1u);
    v.b[i / 8] |= (uint8_t)(((unsigned)table >> chosen & 1u) << bit);
  }
  return v;
}

EMULATED __m512i _mm512_set1_epi64(long long value) {
  __m512i v;
  emulated_set64(v.b, (uint64_t)value, sizeof v.b);
  return v;
}

EMULATED __m512i _mm512_set1_epi8(char value) {
  __m512i v;
  memset(v.b, value, sizeof v.b);
  return v;
}

EMULATED __m512i _mm512_srli_epi64(__m512i a, unsigned bits) {
  for (size_t lane = 0; lane < sizeof a.b; lane += 8) {
    uint64_t word;
    memcpy(&word, a.b + lane, sizeof word);
    word = bits < 64 ? word >> bits : 0;
    memcpy(a.b + lane, &word, sizeof word);
  }
  return a;
}

EMULATED __m512i _mm512_broadcast_i32x4(__m128i a) {
  __m512i v;
  for (size_t i = 0; i < sizeof v.b; i++)
    v.b[i] = a.b[i % 16];
  return v;
}

// VPSHUFB: in each 16 bytes, a byte chosen by the low four bits, or 0 where bit 7 is set.
EMULATED __m512i _mm512_shuffle_epi8(__m512i a, __m512i index) {
  __m512i v;
  for (size_t i = 0; i < sizeof v.b; i++)
    v.b[i] = index.b[i] & 0x80 ? 0 : a.b[i / 16 * 16 + (index.b[i] & 15)];
  return v;
}

EMULATED __m512i _mm512_gf2p8affine_epi64_epi8(__m512i x, __m512i matrix, int constant) {
  __m512i v;
  emulated_affine(v.b, x.b, matrix.b, constant, sizeof v.b);
  return v;
}

// The product in the AES field.
EMULATED uint8_t emulated_aes_product(uint8_t a, uint8_t b) {
  unsigned product = 0;
  for (unsigned i = 8; i-- > 0;)
    product = (product << 1 ^ (product & 0x80 ? 0x11b : 0) ^ (b >> i & 1 ? a : 0)) & 0xff;
  return (uint8_t)product;
}

EMULATED __m512i _mm512_gf2p8mul_epi8(__m512i a, __m512i b) {
  for (size_t i = 0; i < sizeof a.b; i++)
    a.b[i] = emulated_aes_product(a.b[i], b.b[i]);
  return a;
}

// The inverse in the AES field, 0 for 0, then the affine map.
EMULATED __m512i _mm512_gf2p8affineinv_epi64_epi8(__m512i x, __m512i matrix, int constant) {
  __m512i inverse = {{0}}, v;
  for (size_t i = 0; i < sizeof x.b; i++)
    for (unsigned y = 1; y < 256; y++)
      if (emulated_aes_product(x.b[i], (uint8_t)y) == 1)
        inverse.b[i] = (uint8_t)y;
  emulated_affine(v.b, inverse.b, matrix.b, constant, sizeof v.b);
  return v;
}

EMULATED __m512i _mm512_load_si512(const void *p) {
  if ((uintptr_t)p % sizeof(__m512i))
    abort();
  return _mm512_loadu_si512(p);
}

EMULATED __m512i _mm512_mask_mov_epi8(__m512i old, __mmask64 mask, __m512i v) {
  for (size_t i = 0; i < sizeof v.b; i++)
    v.b[i] = mask >> i & 1 ? v.b[i] : old.b[i];
  return v;
}

EMULATED __m512i _mm512_permutexvar_epi8(__m512i index, __m512i a) {
  __m512i v;
  for (size_t i = 0; i < sizeof v.b; i++)
    v.b[i] = a.b[index.b[i] % sizeof a.b];
  return v;
}

EMULATED __m512i _mm512_maskz_compress_epi8(__mmask64 mask, __m512i a) {
  __m512i v = {{0}};
  for (size_t i = 0, at = 0; i < sizeof a.b; i++)
    if (mask >> i & 1)
      v.b[at++] = a.b[i];
  return v;
}

#endif
