// SPDX-License-Identifier: Apache-2.0
// What few_rows_gfni512.h chooses by: its bounds, and what was measured on each core. A core that
// is not named takes the last of each choice. docs/performance/storage-few-rows.md says where the
// numbers come from.
#ifndef WEFT_KERNELS_X86_FEW_CHOICES_GFNI512_H
#define WEFT_KERNELS_X86_FEW_CHOICES_GFNI512_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/x86/cores.h"

enum {
  FEW_ROWS = 16,         // outputs, at most
  FEW_SOURCES = 256,     // at most
  FEW_AT_ONCE = 16,      // more sources than this are taken in groups, or than FEW_STREAMS
  FEW_FOLLOWED = 24,     // and hardware fetches so many out of memory (Zen 4)
  FEW_GROUP = 8,         // sources
  FEW_RUN = 8192,        // bytes of all output rows in a run of columns
  FEW_STEP = 128,        // columns are whole multiples of this
  FEW_PAIRED = 8,        // outputs, at most, of which two vectors of columns fit registers
  FEW_STREAMED_ROWS = 8, // outputs, at most, of more sources than FEW_AT_ONCE at once
  FEW_DEMANDING = 4      // outputs, up to which it is sources that are waited for, not products
};

// Tests set less, so as to come by.
#ifndef FEW_COLUMNS
#define FEW_COLUMNS 2048 // in shorter rows the matrices do not pay,
#define FEW_GROUPED 8192 // and in rows shorter than this groups do not
// The same of sources that are at once. Not measured but on Zen 4.
#define FEW_COLUMNS_AT_ONCE (core_is_zen4() ? 1024 : FEW_COLUMNS)
// Bytes of all rows that the caches serve unasked, and columns to fetch ahead of one group beyond;
// fewer on AMD's cores, whose hardware follows strides of any length: what is asked for farther
// ahead leads it astray.
#define FEW_CACHED ((size_t)3 << 19)
#define FEW_AHEAD 512
#define FEW_FOLLOWS __builtin_cpu_is("amd")
#define FEW_FOLLOWED_AHEAD 256
// Where the hardware follows as many streams as instructions load, and bytes of all rows from where
// on it matters that they do not seem to be others: loops are quicker before that.
#define FEW_STREAMED (core_is_zen5() || core_is_zen4())
#define FEW_STREAMED_FROM(m) ((size_t)(core_is_zen4() ? 12 : (m) <= FEW_DEMANDING ? 6 : 24) << 20)
// Bytes of all rows that a third level may hold; beyond, few outputs wait for more than
// FEW_FOLLOWED sources longer than for groups.
#define FEW_THIRD_LEVEL (core_is_zen4() ? (size_t)32 << 20 : SIZE_MAX)
// Where lines that are asked for ahead drive each other out, if they share a set of the first
// cache.
#define FEW_CROWDED core_is_zen4()
// Where groups are better twice as large, near caches and where lines do not.
#define FEW_WIDER(quiet) (core_is_zen4() && !(quiet))
// Where short rows of many sources are better taken in large groups than by tiles: on Zen 4 not
// what tiles of four and two rows take without a rest.
#define FEW_SHORT(m, k)                                                                            \
  (core_is_zen5() || (core_is_zen4() && ((k) <= FEW_STREAMS || (m) % 2 || (m) > 4)))
// Where nine to fifteen outputs are better one block, of one vector of columns, than two of two.
#define FEW_ONE_BLOCK(rows) core_is_zen4()
// Where sources that share no sets of a cache are best multiplied as copies of many are: with one
// vector of columns a matrix is loaded for each product.
#define FEW_APART(p)                                                                               \
  ((p)->apart && !(p)->fetch && (core_is_zen5() || (core_is_zen4() && (p)->m > FEW_PAIRED)))
// Bytes of all rows from where on results are stored past the caches; more where the third level
// takes them as quickly as it gives (Zen 4).
#define FEW_PAST_CACHE ((size_t)(core_is_zen4() ? 12 : 4) << 20)
// What an entry of a matrix takes beside steps (weft_host_kernel.entry), as was measured.
#define FEW_ENTRIES                                                                                \
  (core_is_zen4()   ? (few_entries){10, 3, 18, 10, 10, 11, 7, 10, 18, 0, (size_t)16 << 20}         \
   : core_is_zen5() ? (few_entries){8, 3, 3, 7, 4, 8, 3, 4, 4, 6, (size_t)24 << 20}                \
                    : (few_entries){8, 5, 5, 8, 8, 9, 8, 0, 0, 0, MANY_NEAR})
#endif

// An entry's weight where sources lie as they are: in a near cache, or not and at most FEW_FOLLOWED
// of them or more; where they are copied: in a near cache, or not, which slows some cores' steps
// more; among more rows than that; where up to FEW_STREAMS sources are at once, in a near cache;
// and in rows shorter than FEW_GROUPED, of few outputs in groups or by tiles, and copied or of
// many, or 0: as in longer ones. Caches are not near from so many bytes of all rows on.
typedef struct few_entries {
  uint8_t few, followed, lost, near, far, wide, streamed, short_few, short_tiles, short_many;
  size_t far_from;
} few_entries;

#endif
