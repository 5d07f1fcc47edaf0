// SPDX-License-Identifier: Apache-2.0
// The interface of ISA-L's products of one row with one coefficient; see erasure_code.h.
#ifndef WEFT_ISAL_GF_VECT_MUL_H
#define WEFT_ISAL_GF_VECT_MUL_H

#ifdef __cplusplus
extern "C" {
#endif

// Makes gftbl(32) from the coefficient c.
void gf_vect_mul_init(unsigned char c, unsigned char *gftbl);
// dest = c * src. Returns 0, or 1, without writing anything, if len is not a multiple of 32.
int gf_vect_mul(int len, unsigned char *gftbl, void *src, void *dest);
void gf_vect_mul_init_base(unsigned char c, unsigned char *gftbl);
int gf_vect_mul_base(int len, unsigned char *gftbl, unsigned char *src, unsigned char *dest);

#ifdef __cplusplus
}
#endif
#endif
