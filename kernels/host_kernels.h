// SPDX-License-Identifier: Apache-2.0
// The host techniques and the driver that makes whole backend rows of the table from them. Which of
// them a build has is decided in table.c alone.
#ifndef WEFT_KERNELS_HOST_KERNELS_H
#define WEFT_KERNELS_HOST_KERNELS_H

#include "kernels/backend.h"

extern const weft_host_kernel weft_host_scalar;
extern const weft_host_kernel weft_host_logexp;
extern const weft_host_kernel weft_host_logdomain;
extern const weft_host_kernel weft_host_loop_word64;
extern const weft_host_kernel weft_host_mul_peasant;
extern const weft_host_kernel weft_host_mul_full_table;
extern const weft_host_kernel weft_host_mul_half_tables;
extern const weft_host_kernel weft_host_mul_exp_modulo;
extern const weft_host_kernel weft_host_mul_exp_fold;
extern const weft_host_kernel weft_host_mul_exp_doubled;
extern const weft_host_kernel weft_host_mul_exp_branch_free;
extern const weft_host_kernel weft_host_loop_sse2;
extern const weft_host_kernel weft_host_loop_avx2;
extern const weft_host_kernel weft_host_ssse3;
extern const weft_host_kernel weft_host_avx2;
extern const weft_host_kernel weft_host_avx512;
extern const weft_host_kernel weft_host_gfni128;
extern const weft_host_kernel weft_host_gfni256;
extern const weft_host_kernel weft_host_gfni512;
extern const weft_host_kernel weft_host_neon;

weft_status weft_xor_compile_avx2(weft_xor_code **out, const weft_xor_matrix *matrix,
                                  const weft_allocator *allocator);
weft_status weft_xor_compile_avx512(weft_xor_code **out, const weft_xor_matrix *matrix,
                                    const weft_allocator *allocator);

// The driver (host.c, host_invert.c, host_eliminate.c, host_expand.c): operations of backend.h on
// row->host.
weft_status weft_host_gemm(const weft_backend *row, const weft_exec *exec, const weft_gemm *gemms,
                           size_t count);
weft_status weft_host_xorm(const weft_backend *row, const weft_exec *exec, const weft_xorm *xorm);
weft_status weft_host_invert(const weft_backend *row, const weft_exec *exec,
                             const weft_invert *invert);
weft_status weft_host_eliminate(const weft_backend *row, const weft_exec *exec,
                                const weft_eliminate *eliminate);
weft_status weft_host_expand(const weft_backend *row, const weft_exec *exec,
                             const weft_expansion *expansion);
weft_status weft_host_prepare(const weft_backend *row, const weft_exec *exec, size_t k, size_t len,
                              const weft_const_rows *x, weft_operand **out);
void weft_host_release(const weft_backend *row, const weft_exec *exec, weft_operand *operand);

#endif
