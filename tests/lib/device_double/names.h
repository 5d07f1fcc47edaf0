// SPDX-License-Identifier: Apache-2.0
// Replaces kernels/device.h, the table of rows and the injected faults by the device double
// (device_double.h), in every source that is compiled with `-include` of this file: lib/, compiled
// a second time, and the suites of tests/cuda. Everything else links as usual, together with real
// devices if the build has them.
#ifndef WEFT_TESTS_DEVICE_DOUBLE_NAMES_H
#define WEFT_TESTS_DEVICE_DOUBLE_NAMES_H

#define _GNU_SOURCE // included first: the sources' own feature macros come too late

#define weft_device_count weft_double_count
#define weft_device_absence weft_double_absence
#define weft_device_open weft_double_open
#define weft_device_close weft_double_close
#define weft_device_sm weft_double_sm
#define weft_device_block_bytes weft_double_block_bytes
#define weft_device_name weft_double_name
#define weft_device_alloc weft_double_alloc
#define weft_device_free weft_double_free
#define weft_device_stream_new weft_double_stream_new
#define weft_device_stream_free weft_double_stream_free
#define weft_device_stream_poll weft_double_stream_poll
#define weft_device_stream_wait weft_double_stream_wait
#define weft_device_compare weft_double_compare
#define weft_device_compile_after weft_double_compile_after
#define weft_device_set_code_store weft_double_set_code_store
#define weft_device_copy weft_double_copy
#define weft_device_copy_rows weft_double_copy_rows
#define weft_device_copy_pieces weft_double_copy_pieces
#define weft_device_stream_order weft_double_stream_order
#define weft_device_pinned_peak weft_double_pinned_peak
#define weft_device_trim weft_double_trim
#define weft_device_mark_new weft_double_mark_new
#define weft_device_mark_wait weft_double_mark_wait
#define weft_device_mark_free weft_double_mark_free
#define weft_device_scratch weft_double_scratch
#define weft_device_scratch_free weft_double_scratch_free
#define weft_cuda_inject weft_double_inject
#define weft_cuda_calls weft_double_calls

// The most columns that the double's row accepts, and lib/storage passes it; 2^30 for real devices.
#define WEFT_RANGE_BYTES ((size_t)64 << 10)

// Little memory for staging, so that small calls run out of it; 64 MiB for real devices.
#define WEFT_STAGED_MOST ((size_t)256 << 10)

#include "kernels/cuda/runtime.h"
#include "kernels/device.h"

// Returns the store of the device that got one last.
weft_code_store weft_double_code_store(void);

// Counts the waits for all of a stream so far.
size_t weft_double_stream_waits(void);

// Returns the double's row followed by the host rows of the real table.
const weft_backend *weft_double_table(size_t *count);
weft_status weft_double_select(const weft_machine *machine, weft_mem mem, const char *forced,
                               const weft_backend **out);
bool weft_double_runs_on(const weft_backend *row, const weft_machine *machine);

#ifndef WEFT_DOUBLE_OWN // the double's own sources see the real table
#define weft_backends (weft_double_table(NULL))
#define weft_backend_count (weft_double_table_count())
#define weft_backend_select weft_double_select
#define weft_backend_runs_on weft_double_runs_on
static inline size_t weft_double_table_count(void) {
  size_t count;
  (void)weft_double_table(&count);
  return count;
}
#endif

#endif
