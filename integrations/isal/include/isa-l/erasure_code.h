// SPDX-License-Identifier: Apache-2.0
// The interface of ISA-L's erasure codes on weft: a program written for <isa-l/erasure_code.h> is
// compiled with this folder's include path and linked with //integrations/isal instead, or is
// started with LD_PRELOAD=libweft_isal.so. The bytes are the same.
//
// Any matrix over GF(2^8), polynomial 0x11d. `len`, and thereby addresses, need no alignment;
// outputs overlap neither inputs nor each other. All calls may come from several threads at once,
// and none allocates memory. The row of weft's table that computes is the best of the machine, or
// the one that WEFT_BACKEND names; a name that cannot be had ends the program with a message.
//
// Tables are ISA-L's of 32 bytes a coefficient, and may come from either library (ISA-L's own from
// 2.31 on has another form of them where the processor has GFNI; these are not taken).
#ifndef WEFT_ISAL_ERASURE_CODE_H
#define WEFT_ISAL_ERASURE_CODE_H

#include "isa-l/gf_vect_mul.h"

#ifdef __cplusplus
extern "C" {
#endif

// g_tbls(rows, k, 32) of the coefficients a(rows, k).
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
unsigned char gf_inv(unsigned char a); // of 0: 0

// a(m, k): k rows of the identity, then (2^i)^j, which is not MDS for every m and k; m counts all
// rows, k + parity, as in ISA-L.
void gf_gen_rs_matrix(unsigned char *a, int m, int k);
// Likewise with 1 / (i ^ j), which always is.
void gf_gen_cauchy1_matrix(unsigned char *a, int m, int k);

// out(n, n) = inverse of in(n, n), n at most 1024, which keeps its values here. 0, or -1 where
// there is none: out means nothing then.
int gf_invert_matrix(unsigned char *in, unsigned char *out, const int n);

#ifdef __cplusplus
}
#endif
#endif
