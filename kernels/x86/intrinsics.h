// SPDX-License-Identifier: Apache-2.0
// The compiler's vector intrinsics. All x86 techniques include them through here, so that the tests
// can put plain-C definitions in their place (tests/kernels/emulated/) and run the same source on
// any machine.
#ifndef WEFT_KERNELS_X86_INTRINSICS_H
#define WEFT_KERNELS_X86_INTRINSICS_H

#include <immintrin.h>

// Keeps a broadcast qword out of the operands of GF2P8AFFINEQB: clang 14 encodes the displacement
// of such an operand in bytes, processors count it in qwords.
#if defined(__clang__)
#define INTRINSICS_APART(v) __asm__("" : "+v"(v))
#else
#define INTRINSICS_APART(v) ((void)0)
#endif

// The compiler makes this vector before any of which the same is said after it: where there are few
// registers it would start on more than they hold.
#define INTRINSICS_IN_ORDER(v) __asm__ volatile("" : "+x"(v))

#endif
