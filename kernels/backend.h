// SPDX-License-Identifier: Apache-2.0
// A backend row: one technique for the three operations on rows of bytes that carry every code.
//
// Codes only make matrices; a row only multiplies them. Rows are data in one table (table.c),
// chosen at run time by the features of the machine, or forced by name. The row `scalar` is the
// specification: every other row must give its bytes for every shape.
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
typedef struct weft_operand weft_operand; // rows in the layout that one row of the table likes

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
  // A gemm of a host row does without, NULL or without its calls; others need it.
  const weft_allocator *allocator;
  weft_scratch *scratch; // of that allocator, for host rows; NULL: none is left for later calls
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
  weft_mem a_mem;                 // host rows take HOST or PINNED
  weft_const_rows x;              // (k, len); ignored when x_prepared is set
  const weft_operand *x_prepared; // X made resident by the same row's prepare, or NULL
  weft_rows y;                    // (m, len)
  bool accumulate;
  const weft_factors *factors; // of A, which rows may use instead of it; NULL: none known
} weft_gemm;

// A product of rows in host memory, given by pointers. Member by member: compilers clear a struct
// of this size by a string instruction, which takes as long as a product with 256 bytes.
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

// The same over GF(2), on packets: shard s is a run of groups, each of w packets of packet_bytes.
// Output packet (i, l) of every group = xor of the input packets (j, c) whose bit is set:
// bits[(i * w + l) * bits_stride + (j * w + c)] is 0 or 1. len is a multiple of w * packet_bytes.
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
  const weft_factors *factors; // the same matrix, of bits of GF(2^8), as steps; or NULL
} weft_xorm;

#define WEFT_PANEL_ROWS 1024
#define WEFT_PACK_ROWS 256 // sources of a packed panel, at most

// `count` inverses of k x k matrices, k <= WEFT_PANEL_ROWS. `out` may equal `in`.
typedef struct weft_invert {
  size_t count, k;
  const uint8_t *in; // (count, k, k), dense
  uint8_t *out;      // (count, k, k), dense; undefined where singular
  uint8_t *singular; // (count): 1 where there is no inverse, else 0
  weft_mem mem;      // of in, out and singular
} weft_invert;

#define WEFT_NO_PIVOT UINT16_MAX

// Progressive elimination: `count` states of one shape, each a matrix [C | X] in reduced row
// echelon form with row p, where known[p] is set, having its leading 1 in column p; other rows mean
// nothing. Each takes `arrivals` packets [a | y] one after the other: what the known rows say is
// taken out; if nothing of the vector is left the packet is dependent; else it becomes the row of
// its first column that is left, which is then taken out of the others. All arrays are dense.
typedef struct weft_eliminate {
  size_t count, arrivals;
  size_t k, len;    // k: 1..WEFT_PANEL_ROWS
  uint8_t *c;       // (count, k, k)
  uint8_t *x;       // (count, k, len)
  uint8_t *known;   // (count, k): 0 or 1
  const uint8_t *a; // (count, arrivals, k)
  const uint8_t *y; // (count, arrivals, len)
  uint16_t *pivot;  // (count, arrivals): the row that a packet became, or WEFT_NO_PIVOT
  weft_mem mem;     // of all of it
} weft_eliminate;

// What a seeded packet's coefficients follow from: the key of the keystream is these and a zero, as
// u64 little-endian each (docs/wire.md).
typedef struct weft_seed {
  uint64_t stream, segment, seed;
} weft_seed;

// `count` rows of k coefficients, made where they are used.
typedef struct weft_expansion {
  size_t count, k;
  bool fresh;             // true: random, from `key`; false: from seeds
  const weft_seed *seeds; // (count), for device rows PINNED or DEVICE; NULL: row i: first.seed + i
  weft_seed first;
  uint8_t key[32];      // of fresh coefficients: random, used for one call only
  uint16_t density_q16; // 0: dense, every coefficient nonzero; else nonzero with d / 65536
  uint8_t *out;         // (count, k), memory of the row's, row stride out_stride bytes
  size_t out_stride;
} weft_expansion;

// Columns [begin, begin + bytes) of rows that will be read soon.
typedef struct weft_fetch {
  const uint8_t *const *row;
  size_t rows, begin, bytes;
} weft_fetch;

// The panel product of a host row on one thread; host.c cuts a gemm into panels.
typedef struct weft_panel {
  size_t m, k;             // output rows, inner dimension, each 1..WEFT_PANEL_ROWS
  size_t begin, end;       // columns [begin, end) of every row
  size_t row_bytes;        // of whole rows, of which other threads may work on other columns
  const uint8_t *a;        // (m, k), row stride a_stride bytes
  size_t a_stride;         // bytes
  const uint8_t *const *x; // k rows
  uint8_t *const *y;       // m rows
  bool packed;             // worth a copy of the sources, tile by tile; k <= WEFT_PACK_ROWS
  bool accumulate;
  bool apart;       // rows of x share no sets of a cache
  uint8_t *scratch; // on a line, for what weft_host_kernel.scratch asks; or NULL
  size_t scratch_bytes;
  const weft_fetch *fetch; // asked for meanwhile, where a technique can; or NULL
  bool past;               // better stored past the caches, where rows are aligned
} weft_panel;

// A panel of whole rows by itself. Member by member, as of weft_gemm: it may be made of words that
// were just stored, and copied in parts that stores still under way cannot serve.
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

// How a technique takes 8 x 8 bits.
typedef enum weft_bit_form {
  WEFT_BIT_ROWS,  // a word: byte i is row i, its bits are columns, the first one uppermost
  WEFT_BIT_TABLES // four: byte n is the sum, row i in bit i, of the columns that are bits of n, of
                  // columns 0 to 3; byte 16 + n likewise of columns 4 to 7
} weft_bit_form;
enum { WEFT_BIT_TABLE_WORDS = 4 };

// Packets times a bit matrix, on one thread: in every group, output packet i is the sum of the
// input packets j whose bit is set. Packet j of group g lies at x[j] + g * group_bytes, outputs
// likewise.
enum { WEFT_BIT_SCRATCH = 512 };
typedef struct weft_bit_panel {
  size_t m, k;                // output and input packets of a group, at least 1
  size_t groups, group_bytes; // group_bytes: from one group to the next
  size_t begin, end;          // bytes [begin, end) of every packet
  const uint64_t *blocks;     // (ceil(k / 8), ceil(m / 8)) blocks, by weft_bit_blocks
  const uint8_t *const *x;    // k rounded up to a multiple of 8; past k any that may be read
  uint8_t *const *y;          // m, overlapping neither inputs nor each other
  bool far;                   // packets are not in a near cache, nor will outputs be read from one
  size_t gap;                 // when far: from byte `end` of a packet to what is worked on after it
  uint8_t *scratch;           // on a line
  size_t scratch_bytes;       // at least ceil(k / 8) * WEFT_BIT_SCRATCH; some times that is better
} weft_bit_panel;

// Packets of one shard into those of m others, on one thread: output packet l of shard i is the sum
// of the input packets c whose bit c is set in sources[i * w + l]. Packet l of group g of a shard
// lies (g * w + l) * packet_bytes after its first byte.
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
// matrix that rebuilds shards has scale[c] W(c) / (scale[r] W(r) (point[c] + point[r])) for input c
// and output r, where W(s) is the product of the differences of s from the lost data shards, over
// that from the parity shards in their stead, but for s itself.
enum { WEFT_LOSS_SHARDS = 64 };
typedef struct weft_point_code {
  size_t k, m;          // k + m <= WEFT_LOSS_SHARDS
  const uint8_t *point; // (k + m), of WEFT_LOSS_SHARDS that may be read
  const uint8_t *scale; // likewise
} weft_point_code;

typedef struct weft_acts weft_acts; // kernels/host_steps.h
typedef struct weft_strip weft_strip;

// What a host technique supplies; the driver in host.c does the rest.
typedef struct weft_host_kernel {
  void (*panel)(const weft_panel *panel); // over GF(2^8)
  // Optional: bytes of scratch that a panel of this shape gains by; 0: none. It does without, too.
  size_t (*scratch)(size_t m, size_t k, size_t columns, size_t row_bytes);
  // Optional: a panel that accumulates, of k = 2, whose sources' sum is multiplied by a (m, 1): an
  // update by what was and what is, without the difference in between.
  void (*difference)(const weft_panel *panel);
  // y[begin..end) ^= or = xor of x[0..k) [begin..end)
  void (*xor_rows)(uint8_t *y, const uint8_t *const *x, size_t k, size_t begin, size_t end,
                   bool accumulate);
  // Optional: bytes into the technique's own domain (for example logarithms), len bytes to len
  // bytes; panel_prepared then takes such rows as x.
  void (*prepare_row)(uint8_t *out, const uint8_t *in, size_t len);
  void (*panel_prepared)(const weft_panel *panel);
  // Optional: products by factors. They are worth it where eight times the entries of the matrix
  // are more than these for each product and sum among the steps, and for each entry of the panels
  // that are made of them (measured). Transforms of 8 rows, and of up to wide_rows, take one pass:
  // these count steps_wide for each row instead. Matrices of fewer than steps_least entries are
  // quicker as they are. From steps_past bytes of X and Y on, Y is stored past the caches. Where
  // slots are kept in the first-level cache, strips have at least steps_narrow columns.
  void (*steps)(const weft_strip *strip);
  // Optional: what an entry of a matrix (m, k) takes, where that is not always 8. row_bytes may be
  // 0: not known yet.
  size_t (*entry)(size_t m, size_t k, size_t row_bytes);
  size_t steps_product, steps_sum, steps_wide, steps_entry, steps_least, steps_past, steps_narrow;
  size_t wide_rows;
  // From halves of so many rows and sources on, large products take seven of half the size instead
  // of eight (measured); 0: never. As 2 / (1 / m + 1 / k) where the halves (m, k) are not square.
  size_t winograd_half;
  // Optional: packets times a matrix of bits. Blocks take these quarters of a cycle, for each
  // vector of a packet; a program of the same matrix takes that for each bit that is set
  // (measured).
  void (*bits)(const weft_bit_panel *panel);
  weft_bit_form bits_form;
  size_t bits_one, bits_input, bits_output, bits_block;
  // Likewise for each packet that a program gathers and scatters; 0: blocks are always quicker
  // where a program would gather.
  size_t bits_gather;
  // Optional: machine code for packets times a matrix of bits (kernels/xor_code.h). Errors:
  // WEFT_E_NOMEM; WEFT_E_UNSUPPORTED: not for such a matrix, or not in this process.
  weft_status (*compile)(weft_xor_code **out, const weft_xor_matrix *matrix,
                         const weft_allocator *allocator);
  // Where there are blocks too, these are quicker once the bits that are set times the input
  // packets are more than this, as both code and scratch outgrow the first-level caches (measured);
  // 0: never.
  size_t compile_most;
  // Optional: where there is one source, this instead of xor_rows for each packet.
  void (*spread)(const weft_packet_spread *spread);
  // Optional: ids becomes the k shards to read, which are the data shards that are there and the
  // first parity shards, in order, and the wanted ones behind them; matrix (wanted, k) what
  // rebuilds these. Both have room for WEFT_LOSS_SHARDS bytes more than that. A bit for each shard:
  // lost ones, at most m, and those of them that are wanted. In registers: out of a struct that was
  // just written they would be read as a vector, which waits for the words.
  void (*rebuild)(const weft_point_code *code, uint64_t lost, uint64_t wanted, uint8_t *ids,
                  uint8_t *matrix);
  // Optional: rows [begin, end) of dense coefficients of seeds.
  void (*expand)(const weft_expansion *expansion, size_t begin, size_t end);
  // Optional, for comparisons: y[i] = a[i] * b[i], where no operand repeats. y may equal a or b.
  void (*pairs)(uint8_t *y, const uint8_t *a, const uint8_t *b, size_t len);
} weft_host_kernel;

// Whether a technique takes factors rather than a matrix (m, k) of which they are, or could be with
// so many more entries of panels; in rows of fewer columns than these it never does.
enum { WEFT_STEPS_COLUMNS = 2048 };
bool weft_host_steps_pay(const weft_host_kernel *kernel, size_t m, size_t k, size_t row_bytes,
                         const weft_factors *factors, size_t entries);

// Blocks of a bit matrix (m, k) for weft_bit_panel: bits[i * stride + j] is 0 or 1; out has as
// many words as weft_bit_words says.
size_t weft_bit_words(weft_bit_form form, size_t m, size_t k);
void weft_bit_blocks(weft_bit_form form, const uint8_t *bits, size_t stride, size_t m, size_t k,
                     uint64_t *out);

struct weft_backend {
  const char *name;      // WEFT_BACKEND=name forces it
  const char *technique; // one line: what it does and whose idea it is
  uint32_t cpu;          // WEFT_CPU_* that it needs, all of them
  int sm_min, sm_max;    // device rows: compute capability as major * 10 + minor, both ends in
  weft_mem mem;          // HOST: runs on the CPU; DEVICE: on a GPU
  size_t align;          // bytes; alignment that buys speed, never needed
  const weft_host_kernel *host;

  // `count` independent products. Device rows only enqueue on exec->stream.
  weft_status (*gemm)(const weft_backend *row, const weft_exec *exec, const weft_gemm *gemms,
                      size_t count);
  weft_status (*xorm)(const weft_backend *row, const weft_exec *exec, const weft_xorm *xorm);
  // `count` of them that differ in x and y alone; optional.
  weft_status (*xorm_many)(const weft_backend *row, const weft_exec *exec, const weft_xorm *xorms,
                           size_t count);
  weft_status (*invert)(const weft_backend *row, const weft_exec *exec, const weft_invert *invert);

  // Makes X(k, len) resident in the layout that gemm likes; NULL where rows are used as they are.
  // The operand keeps no reference to x once the stream has passed this call.
  weft_status (*prepare)(const weft_backend *row, const weft_exec *exec, size_t k, size_t len,
                         const weft_const_rows *x, weft_operand **out);
  // The same for `count` operands of one shape at once, whose rows begin at x[i] in DEVICE memory;
  // optional. After an error there are none.
  weft_status (*prepare_many)(const weft_backend *row, const weft_exec *exec, size_t k, size_t len,
                              const uint8_t *const *x, size_t x_stride, size_t count,
                              weft_operand **out);
  void (*release)(const weft_backend *row, const weft_exec *exec, weft_operand *operand);
  // Packets that arrive one by one; optional.
  weft_status (*eliminate)(const weft_backend *row, const weft_exec *exec,
                           const weft_eliminate *eliminate);
  // Seeds to coefficients. Host rows have dense ones of seeds at most: WEFT_E_UNSUPPORTED is for
  // the caller's own way, which is the specification (lib/coefficients.c).
  weft_status (*expand)(const weft_backend *row, const weft_exec *exec,
                        const weft_expansion *expansion);
};

// The table, best row first.
extern const weft_backend *const weft_backends;
extern const size_t weft_backend_count;

// What a machine offers to choose from: a set of CPU features and the GPU's capability (0: none).
typedef struct weft_machine {
  uint32_t cpu;
  int sm; // major * 10 + minor
} weft_machine;

// Whether the machine has all that the row needs.
bool weft_backend_runs_on(const weft_backend *row, const weft_machine *machine);

// The first row of the wanted memory whose needs are met; or the row called `forced` (NULL or "":
// none), which is WEFT_E_BACKEND_UNKNOWN or WEFT_E_BACKEND_ABSENT rather than replaced.
weft_status weft_backend_select(const weft_machine *machine, weft_mem mem, const char *forced,
                                const weft_backend **out);

#endif
