// SPDX-License-Identifier: Apache-2.0
// The loops behind ceilings.c, one file per instruction set.
//
// Each arithmetic loop holds a few sources, a few coefficients and several sums in registers and
// forms all pairs, so that no two products are equal and no sum waits for the one before. In each
// step the sources pass through an empty asm statement, so the compiler must treat them as new
// values.
#ifndef WEFT_BENCH_CEILING_LOOPS_H
#define WEFT_BENCH_CEILING_LOOPS_H

#include <stddef.h>
#include <stdint.h>

// Byte x coefficient products per iteration.
#define WEFT_BENCH_GFNI512_PRODUCTS (2u * 16 * 64)
#define WEFT_BENCH_GFNI256_TERNARY_PRODUCTS (2u * 16 * 32)
#define WEFT_BENCH_GFNI128_PRODUCTS (4u * 8 * 16)
#define WEFT_BENCH_GFNI256_PRODUCTS (4u * 8 * 32)
#define WEFT_BENCH_AVX512_PRODUCTS (4u * 8 * 64)
#define WEFT_BENCH_AVX2_PRODUCTS (4u * 4 * 32)
#define WEFT_BENCH_SSSE3_PRODUCTS (4u * 4 * 16)
#define WEFT_BENCH_TABLE_PRODUCTS 64u

void weft_bench_loop_gfni512(size_t iterations);
void weft_bench_loop_gfni256_ternary(size_t iterations);
void weft_bench_loop_gfni128(size_t iterations);
void weft_bench_loop_gfni256(size_t iterations);
void weft_bench_loop_avx512(size_t iterations);
void weft_bench_loop_avx2(size_t iterations);
void weft_bench_loop_ssse3(size_t iterations);
void weft_bench_loop_table(size_t iterations);

void weft_bench_read_avx512(const uint8_t *data, size_t bytes);
void weft_bench_read_avx2(const uint8_t *data, size_t bytes);
void weft_bench_read_portable(const uint8_t *data, size_t bytes);

void weft_bench_write_avx512(uint8_t *data, size_t bytes);
void weft_bench_write_avx2(uint8_t *data, size_t bytes);
void weft_bench_write_portable(uint8_t *data, size_t bytes);
void weft_bench_stream_avx512(uint8_t *data, size_t bytes);
void weft_bench_stream_avx2(uint8_t *data, size_t bytes);
void weft_bench_change_avx512(uint8_t *data, size_t bytes);
void weft_bench_change_avx2(uint8_t *data, size_t bytes);
void weft_bench_change_portable(uint8_t *data, size_t bytes);

#endif
