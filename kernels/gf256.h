// SPDX-License-Identifier: Apache-2.0
// GF(2^8) with polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11D) and generator 2: the field's constants
// and tables that every technique shares. The tables are made at build time by gf256_tables_gen.c.
#ifndef WEFT_KERNELS_GF256_H
#define WEFT_KERNELS_GF256_H

#include <stdint.h>

#define WEFT_GF256_POLY 0x11Du

// exp[i] = 2^i for 0 <= i < 255, repeated so that a sum of two logs needs no modulo (i < 510).
extern const uint8_t weft_gf256_exp[512];
// log[x] for x != 0; log[0] is 255, which no nonzero element has.
extern const uint8_t weft_gf256_log[256];
// The same without a special case for 0: log_zero[0] is 510 and exp_zero is 0 from there on, so
// that exp_zero[log_zero[a] + log_zero[b]] = a * b for all a and b.
extern const uint16_t weft_gf256_log_zero[256];
extern const uint8_t weft_gf256_exp_zero[1021];
// product[a][b] = a * b.
extern const uint8_t weft_gf256_product[256][256];
// inv[x] * x = 1 for x != 0; inv[0] is 0.
extern const uint8_t weft_gf256_inv[256];
// nibble[c][i] = c * i and nibble[c][16 + i] = c * (i << 4), for 0 <= i < 16.
extern const uint8_t weft_gf256_nibble[256][32];
// affine[c]: multiplication by c as an 8x8 bit matrix for GF2P8AFFINEQB: byte 7 - b holds the mask
// of the input bits whose parity is output bit b.
extern const uint64_t weft_gf256_affine[256];
// The bit matrix, in the same form, of an isomorphism to the AES field (0x11B) and back, whose
// products and inverses GF2P8MULB and GF2P8AFFINEINVQB compute: aes(a * b) = aes(a) * aes(b) there.
extern const uint64_t weft_gf256_aes;

// The definition: multiply as polynomials over GF(2), reduce by 0x11D.
static inline uint8_t weft_gf256_mul(uint8_t a, uint8_t b) {
  unsigned product = 0;
  for (unsigned bit = 0; bit < 8; bit++)
    product ^= ((unsigned)(b >> bit) & 1u) * ((unsigned)a << bit);
  for (unsigned bit = 15; bit-- > 8;)
    product ^= ((product >> bit) & 1u) * (WEFT_GF256_POLY << (bit - 8));
  return (uint8_t)product;
}

#endif
