// SPDX-License-Identifier: Apache-2.0
// The compiler's vector intrinsics. All x86 techniques include them through this file, so that
// tests can replace them with plain-C definitions (tests/kernels/emulated/) and run the same source
// on any machine.
#ifndef WEFT_KERNELS_X86_INTRINSICS_H
#define WEFT_KERNELS_X86_INTRINSICS_H

#include <immintrin.h>

// Keeps a broadcast qword out of the operands of GF2P8AFFINEQB: clang 14 encodes the displacement
// of such an operand in bytes, but processors count it in qwords.
#if defined(__clang__)
#define INTRINSICS_APART(v) __asm__("" : "+v"(v))
#else
#define INTRINSICS_APART(v) ((void)0)
#endif

// Makes the compiler compute this vector before any that is marked later: with few registers it
// would otherwise start on more vectors than they hold.
#define INTRINSICS_IN_ORDER(v) __asm__ volatile("" : "+x"(v))

#endif
