// SPDX-License-Identifier: Apache-2.0
// The interface of ISA-L's RAID parities on weft; see erasure_code.h. `array` has `vects` rows of
// len bytes: sources, then parity. Neither len nor addresses need alignment.
#ifndef WEFT_ISAL_RAID_H
#define WEFT_ISAL_RAID_H

#ifdef __cplusplus
extern "C" {
#endif

// Sets the last row to the sum of the others, vects >= 3. Returns 0, or 1 if vects is out of range.
int xor_gen(int vects, int len, void **array);
// Returns 0 if all rows add up to zero, else 1.
int xor_check(int vects, int len, void **array);

// Sets the last two rows to P and Q of the others, 4 <= vects <= 257: P is their sum, Q the sum of
// 2^j times source j. Returns 0, or 1 if vects is out of range.
int pq_gen(int vects, int len, void **array);
// Returns 0 if both are right, else a nonzero value.
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
