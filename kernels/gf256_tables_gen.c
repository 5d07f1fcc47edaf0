// SPDX-License-Identifier: Apache-2.0
// Prints gf256_tables.c: every table of gf256.h, each entry from the definition weft_gf256_mul.
// Runs on the build machine only.
#include <stdio.h>

#include "kernels/gf256.h"

static void bytes(const char *declaration, const uint8_t *value, size_t rows, size_t columns) {
  printf("\n_Alignas(64) const uint8_t %s = {\n", declaration);
  for (size_t r = 0; r < rows; r++) {
    printf(rows > 1 ? "{" : "");
    for (size_t c = 0; c < columns; c++)
      printf("%u,%s", value[r * columns + c], c % 16 == 15 ? "\n" : " ");
    printf(rows > 1 ? "},\n" : "");
  }
  printf("};\n");
}

static void powers(void) {
  uint8_t exp[512] = {0}, log[256] = {0}, inv[256] = {0};
  uint8_t power = 1;
  log[0] = 255;
  for (unsigned i = 0; i < 255; i++) {
    exp[i] = exp[i + 255] = power;
    log[power] = (uint8_t)i;
    power = weft_gf256_mul(power, 2);
  }
  for (unsigned x = 1; x < 256; x++)
    inv[x] = exp[(255 - log[x]) % 255];
  bytes("weft_gf256_exp[512]", exp, 1, 512);
  bytes("weft_gf256_log[256]", log, 1, 256);
  bytes("weft_gf256_inv[256]", inv, 1, 256);
  uint8_t exp_zero[1021] = {0};
  for (unsigned i = 0; i < 510; i++)
    exp_zero[i] = exp[i];
  bytes("weft_gf256_exp_zero[1021]", exp_zero, 1, 1021);
  printf("\n_Alignas(64) const uint16_t weft_gf256_log_zero[256] = {510,");
  for (unsigned x = 1; x < 256; x++)
    printf("%u,%s", log[x], x % 16 == 15 ? "\n" : " ");
  printf("};\n");
}

static void products(void) {
  static uint8_t product[256][256];
  for (unsigned a = 0; a < 256; a++)
    for (unsigned b = 0; b < 256; b++)
      product[a][b] = weft_gf256_mul((uint8_t)a, (uint8_t)b);
  bytes("weft_gf256_product[256][256]", product[0], 256, 256);
}

static void nibbles(void) {
  static uint8_t nibble[256][32];
  for (unsigned c = 0; c < 256; c++)
    for (unsigned i = 0; i < 16; i++) {
      nibble[c][i] = weft_gf256_mul((uint8_t)c, (uint8_t)i);
      nibble[c][16 + i] = weft_gf256_mul((uint8_t)c, (uint8_t)(i << 4));
    }
  bytes("weft_gf256_nibble[256][32]", nibble[0], 256, 32);
}

// Makes a bit matrix from its columns; byte 7 - b collects bit b of every column.
static uint64_t bit_matrix(const uint8_t column[8]) {
  uint64_t matrix = 0;
  for (unsigned j = 0; j < 8; j++)
    for (unsigned b = 0; b < 8; b++)
      matrix |= (uint64_t)((column[j] >> b) & 1u) << (8 * (7 - b) + j);
  return matrix;
}

// The bit matrix of multiplication by c: column j is c * 2^j.
static uint64_t affine(uint8_t c) {
  uint8_t column[8];
  for (unsigned j = 0; j < 8; j++)
    column[j] = weft_gf256_mul(c, (uint8_t)(1u << j));
  return bit_matrix(column);
}

static void affines(void) {
  printf("\n_Alignas(64) const uint64_t weft_gf256_affine[256] = {\n");
  for (unsigned c = 0; c < 256; c++)
    printf("0x%016llx,%s", (unsigned long long)affine((uint8_t)c), c % 4 == 3 ? "\n" : " ");
  printf("};\n");
}

// Multiplies in the AES field, GF(2^8) with polynomial 0x11b.
static uint8_t aes_mul(uint8_t a, uint8_t b) {
  unsigned product = 0;
  for (unsigned bit = 8; bit-- > 0;) {
    product = product << 1 ^ (product >> 7 & 1u ? 0x11bu : 0);
    product ^= b >> bit & 1u ? a : 0u;
  }
  return (uint8_t)product;
}

// The map to the AES field and back: 2^j to 3^j. In GF(2^8) by 0x11d, where 2 is a root of 0x11d, 3
// is one of 0x11b, and vice versa, so that the map is its own inverse.
static void aes_field(void) {
  uint8_t column[8] = {1};
  for (unsigned j = 1; j < 8; j++)
    column[j] = aes_mul(column[j - 1], 3);
  printf("\nconst uint64_t weft_gf256_aes = 0x%016llx;\n", (unsigned long long)bit_matrix(column));
}

int main(void) {
  printf("// SPDX-License-Identifier: Apache-2.0\n"
         "// Made by gf256_tables_gen.c at build time.\n"
         "#include \"kernels/gf256.h\"\n");
  powers();
  products();
  nibbles();
  affines();
  aes_field();
  return fflush(stdout) != 0 || ferror(stdout);
}
