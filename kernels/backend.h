// SPDX-License-Identifier: Apache-2.0
// A backend row: one technique for the three operations on rows of bytes (gemm, xorm, invert) that
// every code is built on.
//
// Codes only build matrices; a backend row only multiplies them. Backend rows are data in one table
// (table.c), chosen at run time by the machine's features or forced by name. The row `scalar` is
// the specification: every other row must produce the same bytes for every shape. Host rows run on
// the CPU, device rows on a GPU.
#ifndef WEFT_KERNELS_BACKEND_H
#define WEFT_KERNELS_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu.h"
#include "kernels/factors.h"
#include "kernels/pool.h"
#include "kernels/scratch.h"
#include "kernels/xor_code.h"
#include "weft/memory.h"
#include "weft/status.h"

typedef struct weft_backend weft_backend;
typedef struct weft_device weft_device;   // a GPU with its streams and arenas; kernels/cuda
typedef struct weft_operand weft_operand; // rows of bytes in a backend row's preferred layout

// Rows of bytes in one memory. Row i starts at ptr[i] when ptr is set, else at base + i * stride.
// The array ptr itself is always in host memory.
typedef struct weft_rows {
  uint8_t *base;
  size_t stride; // bytes
  uint8_t *const *ptr;
  weft_mem mem;
} weft_rows;

typedef struct weft_const_rows {
  const uint8_t *base;
  size_t stride; // bytes
  const uint8_t *const *ptr;
  weft_mem mem;
} weft_const_rows;

static inline uint8_t *weft_row(const weft_rows *rows, size_t i) {
  return rows->ptr ? rows->ptr[i] : rows->base + i * rows->stride;
}

static inline const uint8_t *weft_const_row(const weft_const_rows *rows, size_t i) {
  return rows->ptr ? rows->ptr[i] : rows->base + i * rows->stride;
}

// How host threads share a product (paper: "partitioned block" by columns, "full block" by rows).
typedef enum weft_partition {
  WEFT_PARTITION_AUTO,
  WEFT_PARTITION_COLUMNS, // every thread computes a range of byte columns of all output rows
  WEFT_PARTITION_ROWS     // every thread computes whole output rows
} weft_partition;

// Where a call runs. Host rows use the pool; device rows use the device and the stream.
typedef struct weft_exec {
  // Optional for gemm and invert on host rows: may be NULL or have no functions. Everything else
  // needs it.
  const weft_allocator *allocator;
  weft_scratch *scratch; // from that allocator, for host rows; NULL: nothing is kept between calls
  weft_pool *pool;       // NULL: the calling thread alone
  weft_partition partition;
  weft_device *device; // NULL for host rows
  void *stream;        // the device's stream that orders the work; host rows ignore it
} weft_exec;

// Y(m, len) = A(m, k) * X(k, len), or Y ^= A * X when accumulate, over GF(2^8).
// m, k and len may be 0: with k = 0 the product is zero. Y overlaps neither A, X nor itself.
typedef struct weft_gemm {
  size_t m, k, len;
  const uint8_t *a;               // (m, k), row stride a_stride bytes
  size_t a_stride;                // bytes, >= k
  weft_mem a_mem;                 // HOST or PINNED for host rows
  weft_const_rows x;              // (k, len); ignored when x_prepared is set
  const weft_operand *x_prepared; // X made resident by the same row's prepare, or NULL
  weft_rows y;                    // (m, len)
  bool accumulate;
  const weft_factors *factors; // of A, which a backend row may use instead of it; NULL: none known
} weft_gemm;

// Describes a product of rows in host memory given by pointers. Assigns member by member, since
// compilers clear a struct of this size with a string instruction, which takes as long as a product
// of 256 bytes.
static inline weft_gemm weft_gemm_of(size_t m, size_t k, size_t len, const uint8_t *a,
                                     size_t a_stride, const uint8_t *const *x, uint8_t *const *y) {
  weft_gemm gemm;
  gemm.m = m;
  gemm.k = k;
  gemm.len = len;
  gemm.a = a;
  gemm.a_stride = a_stride;
  gemm.a_mem = WEFT_MEM_HOST;
  gemm.x.base = NULL;
  gemm.x.stride = 0;
  gemm.x.ptr = x;
  gemm.x.mem = WEFT_MEM_HOST;
  gemm.x_prepared = NULL;
  gemm.y.base = NULL;
  gemm.y.stride = 0;
  gemm.y.ptr = y;
  gemm.y.mem = WEFT_MEM_HOST;
  gemm.accumulate = false;
  gemm.factors = NULL;
  return gemm;
}

// The same product over GF(2), on packets: a shard is a sequence of groups, each of w packets of
// packet_bytes bytes. In every group, output packet (i, l) is the xor of the input packets (j, c)
// whose bit is set: bits[(i * w + l) * bits_stride + (j * w + c)] is 0 or 1. len is a multiple of
// w * packet_bytes.
typedef struct weft_xorm {
  size_t m, k;         // output and input shards
  size_t w;            // packets per group, 1..8
  size_t packet_bytes; // >= 1
  size_t len;          // bytes per shard
  const uint8_t *bits; // (m * w, k * w), row stride bits_stride bytes, host memory
  size_t bits_stride;  // bytes, >= k * w
  weft_const_rows x;   // (k, len)
  weft_rows y;         // (m, len)
  bool accumulate;
  const weft_factors *factors; // of the GF(2^8) matrix that these bits represent; or NULL
} weft_xorm;

#define WEFT_PANEL_ROWS 1024 // maximum number of outputs, and of sources, of a panel (weft_panel)
#define WEFT_PACK_ROWS 256   // maximum number of sources of a packed panel

// Inverts `count` k x k matrices, k <= WEFT_PANEL_ROWS. `out` may equal `in`.
typedef struct weft_invert {
  size_t count, k;
  const uint8_t *in; // (count, k, k), dense
  uint8_t *out;      // (count, k, k), dense; undefined where singular
  uint8_t *singular; // (count): 1 where there is no inverse, else 0
  weft_mem mem;      // of in, out and singular
} weft_invert;

#define WEFT_NO_PIVOT UINT16_MAX

// Progressive elimination of `count` states of one shape. A state is a matrix [C | X] in reduced
// row echelon form: where known[p] is set, row p has its leading 1 in column p; the other rows are
// undefined. Each state takes `arrivals` packets [a | y] in order. The known rows are subtracted
// from a packet; if nothing of its vector is left, the packet is dependent. Otherwise it becomes
// the row of its first nonzero column, and that column is then cleared in the other rows. All
// arrays are dense.
typedef struct weft_eliminate {
  size_t count, arrivals;
  size_t k, len;    // k: 1..WEFT_PANEL_ROWS
  uint8_t *c;       // (count, k, k)
  uint8_t *x;       // (count, k, len)
  uint8_t *known;   // (count, k): 0 or 1
  const uint8_t *a; // (count, arrivals, k)
  const uint8_t *y; // (count, arrivals, len)
  uint16_t *pivot;  // (count, arrivals): the row that a packet became, or WEFT_NO_PIVOT
  weft_mem mem;     // of all arrays
} weft_eliminate;

// What determines a seeded packet's coefficients: the keystream's key is these three numbers and a
// zero, each as a little-endian u64 (docs/wire.md).
typedef struct weft_seed {
  uint64_t stream, segment, seed;
} weft_seed;

// Generates `count` rows of k coefficients in the memory where they are used.
typedef struct weft_expansion {
  size_t count, k;
  bool fresh;             // true: random, from `key`; false: from seeds
  const weft_seed *seeds; // (count), PINNED or DEVICE for device rows; NULL: first.seed + i
  weft_seed first;
  uint8_t key[32];      // of fresh coefficients: random, used for one call only
  uint16_t density_q16; // 0: every coefficient is nonzero; d: each with probability d / 65536
  uint8_t *out;         // (count, k), in the backend row's memory, row stride out_stride bytes
  size_t out_stride;
} weft_expansion;

// Columns [begin, begin + bytes) of rows that will be read soon, to be prefetched (fetch.h).
typedef struct weft_fetch {
  const uint8_t *const *row;
  size_t rows, begin, bytes;
} weft_fetch;

// A panel: the part of a product that a host technique computes in one call, on one thread. host.c
// cuts a gemm into panels.
typedef struct weft_panel {
  size_t m, k;             // output rows, inner dimension, each 1..WEFT_PANEL_ROWS
  size_t begin, end;       // columns [begin, end) of every row
  size_t row_bytes;        // of whole rows; other threads may work on other columns of them
  const uint8_t *a;        // (m, k), row stride a_stride bytes
  size_t a_stride;         // bytes
  const uint8_t *const *x; // k rows
  uint8_t *const *y;       // m rows
  bool packed;             // copying the sources, tile by tile, pays; k <= WEFT_PACK_ROWS
  bool accumulate;
  bool apart;       // rows of x do not share sets of a cache
  uint8_t *scratch; // aligned to a cache line, what weft_host_kernel.scratch asked for; or NULL
  size_t scratch_bytes;
  const weft_fetch *fetch; // to prefetch meanwhile, where the technique can; or NULL
  bool past;               // where rows are aligned, better stored past the caches (non-temporal)
} weft_panel;

// Describes a panel of whole rows. Assigns member by member, as weft_gemm_of does: a compiler may
// build the struct from words that were just stored and copy it in wider pieces, which store
// forwarding cannot serve.
static inline weft_panel weft_panel_of(size_t m, size_t k, size_t begin, size_t end,
                                       const uint8_t *a, size_t a_stride, const uint8_t *const *x,
                                       uint8_t *const *y, bool accumulate) {
  weft_panel panel;
  panel.m = m;
  panel.k = k;
  panel.begin = begin;
  panel.end = panel.row_bytes = end;
  panel.a = a;
  panel.a_stride = a_stride;
  panel.x = x;
  panel.y = y;
  panel.packed = false;
  panel.accumulate = accumulate;
  panel.apart = false;
  panel.scratch = NULL;
  panel.scratch_bytes = 0;
  panel.fetch = NULL;
  panel.past = false;
  return panel;
}

// The form in which a technique takes a block of 8 x 8 bits.
typedef enum weft_bit_form {
  WEFT_BIT_ROWS,  // one word: byte i is row i, whose bits are the columns, column 0 in the top bit
  WEFT_BIT_TABLES // four words: byte n is the sum, row i in bit i, of those of columns 0 to 3 whose
                  // bits are set in n; byte 16 + n likewise for columns 4 to 7
} weft_bit_form;
enum { WEFT_BIT_TABLE_WORDS = 4 };

// Packets times a bit matrix, on one thread: in every group, output packet i is the sum of the
// input packets j whose bit is set. Packet j of group g is at x[j] + g * group_bytes; likewise for
// outputs.
enum { WEFT_BIT_SCRATCH = 512 };
typedef struct weft_bit_panel {
  size_t m, k;                // output and input packets of a group, at least 1
  size_t groups, group_bytes; // group_bytes: from one group to the next
  size_t begin, end;          // bytes [begin, end) of every packet
  const uint64_t *blocks;     // (ceil(k / 8), ceil(m / 8)) blocks, made by weft_bit_blocks
  const uint8_t *const *x;    // k rounded up to a multiple of 8; past k any readable packets
  uint8_t *const *y;          // m, overlapping neither inputs nor each other
  bool far;                   // inputs are not in a near cache, outputs will not be read from one
  size_t gap;                 // when far: from byte `end` of a packet to what is worked on after it
  uint8_t *scratch;           // aligned to a cache line
  size_t scratch_bytes;       // at least ceil(k / 8) * WEFT_BIT_SCRATCH; a few times that is faster
} weft_bit_panel;

// Sums of one shard's packets into the packets of m other shards, on one thread: output packet l of
// shard i is the sum of the input packets c whose bit c is set in sources[i * w + l]. Packet l of
// group g of a shard starts (g * w + l) * packet_bytes after its first byte.
typedef struct weft_packet_spread {
  size_t m, w; // w at most 8
  size_t packet_bytes, groups;
  size_t begin, end;      // bytes [begin, end) of every packet
  const uint8_t *sources; // (m, w)
  const uint8_t *x;
  uint8_t *const *y; // m, overlapping neither x nor each other
  bool accumulate;
} weft_packet_spread;

// A generalised Reed-Solomon code of at most 64 shards, none of whose points is infinite. The
// matrix that rebuilds shards has the entry scale[c] W(c) / (scale[r] W(r) (point[c] + point[r]))
// for input c and output r. W(s) is the product of the differences between s and the lost data
// shards, divided by that of the differences between s and the parity shards read in their stead;
// both leave out s itself.
enum { WEFT_LOSS_SHARDS = 64 };
typedef struct weft_point_code {
  size_t k, m;          // k + m <= WEFT_LOSS_SHARDS
  const uint8_t *point; // (k + m); WEFT_LOSS_SHARDS bytes are readable
  const uint8_t *scale; // likewise
} weft_point_code;

typedef struct weft_acts weft_acts; // kernels/host_steps.h
typedef struct weft_strip weft_strip;

// What a host technique supplies; the driver (host.c and others) does the rest.
typedef struct weft_host_kernel {
  void (*panel)(const weft_panel *panel); // over GF(2^8)
  // Optional: bytes of scratch that make a panel of this shape faster; 0: none. Panels work without
  // it, too.
  size_t (*scratch)(size_t m, size_t k, size_t columns, size_t row_bytes);
  // Optional: an accumulating panel with k = 2 that multiplies the sum of its sources by a (m, 1):
  // an update from a shard's old and new bytes that does not store their difference.
  void (*difference)(const weft_panel *panel);
  // y[begin..end) ^= or = xor of x[0..k) [begin..end)
  void (*xor_rows)(uint8_t *y, const uint8_t *const *x, size_t k, size_t begin, size_t end,
                   bool accumulate);
  // Optional: converts bytes to the technique's own domain (for example logarithms), len bytes to
  // len bytes; panel_prepared then takes such rows as x.
  void (*prepare_row)(uint8_t *out, const uint8_t *in, size_t len);
  void (*panel_prepared)(const weft_panel *panel);
  // Optional: products by factors (factors.h). They pay where the matrix's entries, at 8 or `entry`
  // each, cost at least as much as the steps: steps_product for each product, steps_sum for each
  // sum, and steps_entry for each entry of the panels made from steps (measured). Transforms of 8
  // rows or more, up to wide_rows, take one pass and cost steps_wide per row instead. All that is
  // per column; steps_act is what an act costs however few columns there are. Matrices of fewer
  // than steps_least entries are faster entry by entry. From steps_past bytes of X and Y on,
  // Y is stored past the caches. Where slots are kept in the first-level cache, strips have at
  // least steps_narrow columns; steps_near of them where only near rows' slots are (0: none are).
  void (*steps)(const weft_strip *strip);
  // Optional: the cost of an entry of a matrix (m, k), in the same units, where it is not always 8.
  // row_bytes is 0 if not known yet.
  size_t (*entry)(size_t m, size_t k, size_t row_bytes);
  size_t steps_product, steps_sum, steps_wide, steps_entry, steps_act, steps_least, steps_past,
      steps_narrow, steps_near;
  size_t wide_rows;
  // How many products (input bytes times outputs, of each thread) repay making the factors of a
  // recovery: from encoding's acts, or anew (measured).
  size_t detour_repays, factors_repay;
  // Products whose halves have at least this many rows and sources are computed as seven products
  // of half the size instead of eight (host_winograd.h; measured); 0: never. Where the halves
  // (m, k) are not square, 2 / (1 / m + 1 / k) counts.
  size_t winograd_half;
  // Optional: packets times a bit matrix. Costs in quarters of a cycle per vector of a packet
  // (measured): bits_input for eight input packets, bits_output for eight output packets,
  // bits_block for each block; an XOR program of the same matrix costs bits_one for each bit that
  // is set.
  void (*bits)(const weft_bit_panel *panel);
  weft_bit_form bits_form;
  size_t bits_one, bits_input, bits_output, bits_block;
  // Likewise for each packet that a program gathers or scatters; 0: blocks are always faster where
  // a program would gather.
  size_t bits_gather;
  // Optional: compiles machine code for packets times a bit matrix (kernels/xor_code.h). Errors:
  // WEFT_E_NOMEM; WEFT_E_UNSUPPORTED: not for such a matrix, or not in this process.
  weft_status (*compile)(weft_xor_code **out, const weft_xor_matrix *matrix,
                         const weft_allocator *allocator);
  // Where the technique has `bits` as well, that is faster once the number of set bits times that
  // of input packets exceeds this, since both code and scratch outgrow the first-level caches
  // (measured); 0: never.
  size_t compile_most;
  // Optional: used instead of xor_rows for each packet where there is one source shard.
  void (*spread)(const weft_packet_spread *spread);
  // Optional: finds how to rebuild shards. `lost` has a bit for each lost shard, at most m of them,
  // `wanted` for those to rebuild. Writes to ids the k shards to read, in order: the data shards
  // that are left and the first parity shards that are; the wanted shards follow. Writes to matrix
  // (wanted, k) what rebuilds them. Both have room for WEFT_LOSS_SHARDS bytes more than that. The
  // bits are passed in registers: from a struct that was just written they would be read as a
  // vector, which has to wait for the words to be stored.
  void (*rebuild)(const weft_point_code *code, uint64_t lost, uint64_t wanted, uint8_t *ids,
                  uint8_t *matrix);
  // Optional: generates rows [begin, end) of dense coefficients from seeds.
  void (*expand)(const weft_expansion *expansion, size_t begin, size_t end);
  // Optional, for comparisons: y[i] = a[i] * b[i], where no operand repeats. y may equal a or b.
  void (*pairs)(uint8_t *y, const uint8_t *a, const uint8_t *b, size_t len);
} weft_host_kernel;

// Returns whether a technique multiplies by factors rather than by the matrix (m, k) that they
// represent, if their panels had `entries` more entries. row_bytes is 0 if not known yet. In rows
// of fewer columns than WEFT_STEPS_COLUMNS it never does.
enum { WEFT_STEPS_COLUMNS = 256 };
bool weft_host_steps_pay(const weft_host_kernel *kernel, size_t m, size_t k, size_t row_bytes,
                         const weft_factors *factors, size_t entries);

// Makes the blocks of a bit matrix (m, k) for weft_bit_panel: bits[i * stride + j] is 0 or 1; out
// has weft_bit_words words.
size_t weft_bit_words(weft_bit_form form, size_t m, size_t k);
void weft_bit_blocks(weft_bit_form form, const uint8_t *bits, size_t stride, size_t m, size_t k,
                     uint64_t *out);

struct weft_backend {
  const char *name;      // WEFT_BACKEND=name forces it
  const char *technique; // one line: what it does and whose idea it is
  uint32_t cpu;          // WEFT_CPU_* features that it needs, all of them
  int sm_min, sm_max;    // device rows: compute capability as major * 10 + minor, inclusive
  int block_bytes;       // device rows: shared memory of a block that they need
  weft_mem mem;          // HOST: runs on the CPU; DEVICE: on a GPU
  size_t align;          // bytes; alignment for speed, never required
  const weft_host_kernel *host;

  // `count` independent products. Device rows only enqueue on exec->stream.
  weft_status (*gemm)(const weft_backend *row, const weft_exec *exec, const weft_gemm *gemms,
                      size_t count);
  weft_status (*xorm)(const weft_backend *row, const weft_exec *exec, const weft_xorm *xorm);
  // Optional: `count` of them at once, which differ only in x and y.
  weft_status (*xorm_many)(const weft_backend *row, const weft_exec *exec, const weft_xorm *xorms,
                           size_t count);
  weft_status (*invert)(const weft_backend *row, const weft_exec *exec, const weft_invert *invert);

  // Makes X(k, len) resident in the layout that gemm prefers; NULL where rows are used as they are.
  // The operand keeps no reference to x once the stream has passed this call.
  weft_status (*prepare)(const weft_backend *row, const weft_exec *exec, size_t k, size_t len,
                         const weft_const_rows *x, weft_operand **out);
  // Optional: the same for `count` operands of one shape at once, whose rows begin at x[i] in
  // DEVICE memory. After an error no operand exists.
  weft_status (*prepare_many)(const weft_backend *row, const weft_exec *exec, size_t k, size_t len,
                              const uint8_t *const *x, size_t x_stride, size_t count,
                              weft_operand **out);
  void (*release)(const weft_backend *row, const weft_exec *exec, weft_operand *operand);
  // Optional: progressive elimination of packets as they arrive.
  weft_status (*eliminate)(const weft_backend *row, const weft_exec *exec,
                           const weft_eliminate *eliminate);
  // Generates coefficients. Host rows support at most dense ones from seeds. On WEFT_E_UNSUPPORTED
  // the caller generates them itself, which is the specification (lib/coefficients.c).
  weft_status (*expand)(const weft_backend *row, const weft_exec *exec,
                        const weft_expansion *expansion);
};

// The table, best row first.
extern const weft_backend *const weft_backends;
extern const size_t weft_backend_count;

// What a machine offers: a set of CPU features, and what its GPU can do.
typedef struct weft_machine {
  uint32_t cpu;
  int sm;          // compute capability, major * 10 + minor; 0: no GPU
  int block_bytes; // most shared memory of a block
} weft_machine;

// Returns whether the machine has everything that the row needs.
bool weft_backend_runs_on(const weft_backend *row, const weft_machine *machine);

// Selects the first row for memory `mem` that runs on the machine, or the row named `forced` (NULL
// or "": none), which is never replaced by another. Errors: WEFT_E_BACKEND_UNKNOWN;
// WEFT_E_BACKEND_ABSENT; WEFT_E_UNSUPPORTED: the forced row is for other memory.
weft_status weft_backend_select(const weft_machine *machine, weft_mem mem, const char *forced,
                                const weft_backend **out);

#endif
