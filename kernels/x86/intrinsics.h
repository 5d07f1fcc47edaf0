// SPDX-License-Identifier: Apache-2.0
// The compiler's vector intrinsics. All x86 techniques include them through here, so that the tests
// can put plain-C definitions in their place (tests/kernels/emulated/) and run the same source on
// any machine.
#ifndef WEFT_KERNELS_X86_INTRINSICS_H
#define WEFT_KERNELS_X86_INTRINSICS_H

#include <immintrin.h>

#endif
