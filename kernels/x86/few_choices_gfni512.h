// SPDX-License-Identifier: Apache-2.0
// The bounds by which few_rows_gfni512.h chooses, some of them per core, as measured. A core that
// is not named takes the last alternative of each. docs/performance/storage-few-rows.md says where
// the numbers come from.
#ifndef WEFT_KERNELS_X86_FEW_CHOICES_GFNI512_H
#define WEFT_KERNELS_X86_FEW_CHOICES_GFNI512_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/x86/cores.h"

enum {
  FEW_ROWS = 16,         // maximum number of outputs
  FEW_SOURCES = 256,     // maximum number of sources
  FEW_AT_ONCE = 16,      // more sources than this, or than FEW_STREAMS, are taken in groups
  FEW_FOLLOWED = 24,     // sources that hardware prefetches from memory at once (Zen 4)
  FEW_GROUP = 8,         // sources
  FEW_RUN = 8192,        // bytes of all output rows in a run of columns
  FEW_STEP = 128,        // columns are whole multiples of this
  FEW_PAIRED = 8,        // maximum number of outputs whose two vectors of columns fit registers
  FEW_STREAMED_ROWS = 8, // maximum number of outputs of more than FEW_AT_ONCE sources at once
  FEW_DEMANDING = 4      // up to so many outputs, sources are what is waited for, not products
};

// Tests set smaller values, to get here with short rows.
#ifndef FEW_COLUMNS
#define FEW_COLUMNS 2048 // in shorter rows the matrices do not pay,
#define FEW_GROUPED 8192 // and in rows shorter than this groups do not
// FEW_COLUMNS for sources that are taken at once. Measured only on AMD's cores.
#define FEW_COLUMNS_AT_ONCE(p)                                                                     \
  (core_is_zen4() || (core_is_zen5() && ((p)->m <= FEW_PAIRED || (p)->apart)) ? 1024 : FEW_COLUMNS)
// Bytes of all rows that caches serve without prefetching, and how many columns ahead one group is
// prefetched beyond that; fewer on AMD's cores, whose hardware follows strides of any length and is
// misled by prefetches farther ahead.
#define FEW_CACHED ((size_t)3 << 19)
#define FEW_AHEAD 512
#define FEW_FOLLOWS __builtin_cpu_is("amd")
#define FEW_FOLLOWED_AHEAD 256
// Where the hardware follows as many streams as there are loading instructions, and from how many
// bytes of all rows on it matters that it does not mistake them for others: below that loops are
// faster.
#define FEW_STREAMED (core_is_zen5() || core_is_zen4())
#define FEW_STREAMED_FROM(m) ((size_t)(core_is_zen4() ? 12 : (m) <= FEW_DEMANDING ? 6 : 24) << 20)
// Bytes of all rows that a third-level cache may hold; beyond that, few outputs wait longer for
// more than FEW_FOLLOWED sources at once than for groups.
#define FEW_THIRD_LEVEL (core_is_zen4() ? (size_t)32 << 20 : SIZE_MAX)
// Where prefetched lines evict each other if they share a set of the first-level cache.
#define FEW_CROWDED core_is_zen4()
// Where groups are better twice as large, if rows are in a near cache and lines do not evict each
// other.
#define FEW_WIDER(quiet) (core_is_zen4() && !(quiet))
// Where short rows of many sources are better taken in large groups than by tiles: on Zen 4 not
// where tiles of four and two rows leave no remainder.
#define FEW_SHORT(m, k)                                                                            \
  (core_is_zen5() || (core_is_zen4() && ((k) <= FEW_STREAMS || (m) % 2 || (m) > 4)))
// Where nine to fifteen outputs are better computed as one block, of one vector of columns, than as
// two blocks of two vectors.
#define FEW_ONE_BLOCK(rows) core_is_zen4()
// Where sources that share no sets of a cache are best multiplied like copies of many sources
// (many_sources_gfni512.h): with one vector of columns a matrix is loaded for each product.
#define FEW_APART(p)                                                                               \
  ((p)->apart && !(p)->fetch && (core_is_zen5() || (core_is_zen4() && (p)->m > FEW_PAIRED)))
// From how many bytes of all rows on results are stored past the caches; more where the third-level
// cache is written as fast as it is read (Zen 4).
#define FEW_PAST_CACHE ((size_t)(core_is_zen4() ? 12 : 4) << 20)
// The cost of a matrix entry in comparison with steps (weft_host_kernel.entry), as measured.
#define FEW_ENTRIES                                                                                \
  (core_is_zen4()   ? (few_entries){10, 3, 18, 10, 10, 11, 7, 10, 18, 0, (size_t)16 << 20}         \
   : core_is_zen5() ? (few_entries){8, 3, 3, 7, 4, 8, 3, 4, 4, 6, (size_t)24 << 20}                \
                    : (few_entries){8, 5, 5, 8, 8, 9, 8, 0, 0, 0, MANY_NEAR})
#endif

// The cost of a matrix entry.
// - Sources in place: `few` in a near cache; otherwise `followed`, or `lost` with more than
//   FEW_FOLLOWED sources.
// - Copied sources: `near` in a near cache; otherwise `far`, which slows some cores' steps
//   more.
// - More rows than FEW_ROWS: `wide`.
// - Up to FEW_STREAMS sources at once, in a near cache: `streamed`.
// - Rows shorter than FEW_GROUPED: `short_few` for few outputs in groups, `short_tiles` by tiles,
//   `short_many` if copied or for many outputs; 0: as for longer rows.
// With more than far_from bytes of all rows, caches are not near.
typedef struct few_entries {
  uint8_t few, followed, lost, near, far, wide, streamed, short_few, short_tiles, short_many;
  size_t far_from;
} few_entries;

#endif
