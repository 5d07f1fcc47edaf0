// SPDX-License-Identifier: Apache-2.0
// The interface of ISA-L's erasure codes on weft: a program written for <isa-l/erasure_code.h> is
// compiled with this folder's include path and linked with //integrations/isal instead, or is
// started with LD_PRELOAD=libweft_isal.so. The bytes are the same.
//
// Any matrix over GF(2^8), polynomial 0x11d. Neither `len` nor addresses need alignment; outputs
// must overlap neither inputs nor each other. All calls are thread-safe, and none allocates memory.
// The best backend row of the machine computes, or the one that WEFT_BACKEND names; if that one is
// not available, the program ends with a message.
//
// Tables are ISA-L's with 32 bytes per coefficient, and may come from either library, except for
// the other form that ISA-L uses from 2.31 on if the processor has GFNI.
#ifndef WEFT_ISAL_ERASURE_CODE_H
#define WEFT_ISAL_ERASURE_CODE_H

#include "isa-l/gf_vect_mul.h"

#ifdef __cplusplus
extern "C" {
#endif

// Makes g_tbls(rows, k, 32) from the coefficients a(rows, k).
void ec_init_tables(int k, int rows, unsigned char *a, unsigned char *g_tbls);

// coding[i] = sum of a[i][j] * data[j], i < rows, j < k, len bytes each.
void ec_encode_data(int len, int k, int rows, unsigned char *g_tbls, unsigned char **data,
                    unsigned char **coding);
// Adds what source vec_i of k contributes: coding[i] += a[i][vec_i] * data.
void ec_encode_data_update(int len, int k, int rows, int vec_i, unsigned char *g_tbls,
                           unsigned char *data, unsigned char **coding);

// dest = sum of a[j] * src[j], j < vlen.
void gf_vect_dot_prod(int len, int vlen, unsigned char *g_tbls, unsigned char **src,
                      unsigned char *dest);
// dest += a[vec_i] * src, where g_tbls has vec coefficients.
void gf_vect_mad(int len, int vec, int vec_i, unsigned char *g_tbls, unsigned char *src,
                 unsigned char *dest);

// ISA-L's names for its portable versions: the same functions here.
void ec_init_tables_base(int k, int rows, unsigned char *a, unsigned char *g_tbls);
void ec_encode_data_base(int len, int k, int rows, unsigned char *g_tbls, unsigned char **data,
                         unsigned char **coding);
void ec_encode_data_update_base(int len, int k, int rows, int vec_i, unsigned char *g_tbls,
                                unsigned char *data, unsigned char **coding);
void gf_vect_dot_prod_base(int len, int vlen, unsigned char *g_tbls, unsigned char **src,
                           unsigned char *dest);
void gf_vect_mad_base(int len, int vec, int vec_i, unsigned char *g_tbls, unsigned char *src,
                      unsigned char *dest);

unsigned char gf_mul(unsigned char a, unsigned char b);
unsigned char gf_inv(unsigned char a); // 0 for 0

// Makes a(m, k): k rows of the identity, then (2^i)^j, which is not MDS for every m and k. m counts
// all rows, k + parity, as in ISA-L.
void gf_gen_rs_matrix(unsigned char *a, int m, int k);
// The same with 1 / (i ^ j), which is always MDS.
void gf_gen_cauchy1_matrix(unsigned char *a, int m, int k);

// out(n, n) = inverse of in(n, n), n at most 1024. Unlike ISA-L's, keeps `in` unchanged. Returns 0,
// or -1 if there is no inverse; out is then undefined.
int gf_invert_matrix(unsigned char *in, unsigned char *out, const int n);

#ifdef __cplusplus
}
#endif
#endif
