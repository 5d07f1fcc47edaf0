// SPDX-License-Identifier: Apache-2.0
// The interface of ISA-L's RAID parities on weft; see erasure_code.h. `array` has `vects` rows of
// len bytes: sources, then parity. Neither len nor addresses need be multiples of anything.
#ifndef WEFT_ISAL_RAID_H
#define WEFT_ISAL_RAID_H

#ifdef __cplusplus
extern "C" {
#endif

// The last row becomes the sum of the others, vects >= 3. 0, or 1 where vects is out of range.
int xor_gen(int vects, int len, void **array);
// 0 where all rows add up to zero, 1 where not.
int xor_check(int vects, int len, void **array);

// The last two rows become P and Q of the others, 4 <= vects <= 257: P the sum, Q that of 2^j times
// source j. 0, or 1 where vects is out of range.
int pq_gen(int vects, int len, void **array);
// 0 where both are right; else not 0.
int pq_check(int vects, int len, void **array);

// ISA-L's names for its portable versions: the same functions here.
int xor_gen_base(int vects, int len, void **array);
int xor_check_base(int vects, int len, void **array);
int pq_gen_base(int vects, int len, void **array);
int pq_check_base(int vects, int len, void **array);

#ifdef __cplusplus
}
#endif
#endif
