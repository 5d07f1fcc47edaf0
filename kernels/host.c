// SPDX-License-Identifier: Apache-2.0
// The driver of all host rows: cuts products into panels and shares them among threads. A technique
// supplies only the panel of one thread (weft_host_kernel).
//
// Work is shared in one of the paper's two ways: by byte columns ("partitioned block": threads read
// disjoint parts of every source) or by output rows ("full block": every thread reads all sources).
// Columns are faster unless rows are too short to cut.
#include <string.h>

#include "kernels/host_kernels.h"
#include "kernels/host_steps.h"
#include "kernels/host_winograd.h"
#include "kernels/smaller.h"
#include "kernels/unroll.h"

enum {
  LINE = 64,             // cuts by column are at multiples of a cache line
  ROW_STEP = 8,          // cuts by row keep register blocks whole
  COLUMNS_MIN = 512,     // shorter pieces cost more in overhead than they balance
  PIECES_PER_THREAD = 4, // so that a thread that starts late finds work left to share
  XOR_SOURCES = 256,     // pointers on the stack
  SPREAD_OUTPUTS = 64,   // likewise, and packets
  PACK_FROM = 64 * 1024  // bytes of sources; measured (docs/performance/cpu-kernels.md)
};

// A resident operand of a host row: rows in the technique's own domain, each starting on a cache
// line.
struct weft_operand {
  const weft_backend *row;
  size_t k, len, stride;
  uint8_t *bytes;
};

static size_t cut(size_t a, size_t pieces) { return a / pieces + (a % pieces != 0); }

// Returns the size of one of `pieces` pieces of `a`, a multiple of `step`.
static size_t cut_to(size_t a, size_t pieces, size_t step) {
  return cut(cut(a, pieces), step) * step;
}

static bool on_host(weft_mem mem) { return mem != WEFT_MEM_DEVICE; }

// --- gemm ---

typedef struct gemm_job {
  const weft_host_kernel *kernel;
  const weft_allocator *allocator;
  weft_scratch *scratch;
  const weft_gemm *gemms;
  size_t pieces; // of every product
  size_t threads;
  weft_partition partition;
} gemm_job;

typedef struct gemm_piece {
  size_t row_begin, row_end, begin, end; // rows of Y, columns
} gemm_piece;

static bool has_memory(const gemm_job *job) { return job->allocator && job->allocator->alloc; }

// Returns how much scratch makes the kernel faster; without memory for it, the kernel does without.
static size_t scratch_of(const gemm_job *job, const weft_gemm *g, size_t m, size_t columns,
                         size_t k_max) {
  return job->kernel->scratch && !g->x_prepared && has_memory(job)
             ? job->kernel->scratch(weft_smaller(m, WEFT_PANEL_ROWS), weft_smaller(g->k, k_max),
                                    columns, g->len)
             : 0;
}

// Computes a piece, panel by panel. x_made and y_made: room for the rows of a panel, where those of
// g are not listed.
static void panels_of(const gemm_job *job, const weft_gemm *g, const gemm_piece *piece,
                      const uint8_t **x_made, uint8_t **y_made) {
  const weft_operand *operand = g->x_prepared;
  const uint8_t *const x_base = operand ? operand->bytes : g->x.base;
  const size_t x_stride = operand ? operand->stride : g->x.stride;
  const uint8_t *const *const x_ptr = operand ? NULL : g->x.ptr;
  // All but small sources are packed by the kernel, a limited number of them at a time.
  const bool packed = g->k > 1 && g->k * g->len > PACK_FROM;
  const size_t k_max = packed ? WEFT_PACK_ROWS : WEFT_PANEL_ROWS;
  const size_t bytes =
      scratch_of(job, g, piece->row_end - piece->row_begin, piece->end - piece->begin, k_max);
  uint8_t *scratch = bytes ? weft_scratch_take(job->scratch, job->allocator, bytes) : NULL;
  for (size_t k0 = 0; k0 < g->k; k0 += k_max) {
    const size_t k = weft_smaller(g->k - k0, k_max);
    const uint8_t *const *x = x_ptr ? x_ptr + k0 : x_made;
    if (!x_ptr) // a condition inside the loop would keep it from being vectorised
      for (size_t j = 0; j < k; j++)
        x_made[j] = x_base + (k0 + j) * x_stride;
    for (size_t m0 = piece->row_begin; m0 < piece->row_end; m0 += WEFT_PANEL_ROWS) {
      const size_t m = weft_smaller(piece->row_end - m0, WEFT_PANEL_ROWS);
      uint8_t *const *y = g->y.ptr ? g->y.ptr + m0 : y_made;
      if (!g->y.ptr)
        for (size_t i = 0; i < m; i++)
          y_made[i] = g->y.base + (m0 + i) * g->y.stride;
      const weft_panel panel = {.m = m,
                                .k = k,
                                .begin = piece->begin,
                                .end = piece->end,
                                .row_bytes = g->len,
                                .a = g->a + m0 * g->a_stride + k0,
                                .a_stride = g->a_stride,
                                .x = x,
                                .y = y,
                                .packed = packed,
                                .accumulate = g->accumulate || k0 > 0,
                                .scratch = scratch,
                                .scratch_bytes = scratch ? bytes : 0};
      (operand ? job->kernel->panel_prepared : job->kernel->panel)(&panel);
    }
  }
  if (scratch)
    weft_scratch_give(job->scratch, job->allocator, scratch);
}

// Not inlined, so that a caller who has lists of its own on the stack does not pay for these.
__attribute__((noinline)) static void listed_panels(const gemm_job *job, const weft_gemm *g,
                                                    const gemm_piece *piece) {
  const uint8_t *x[WEFT_PANEL_ROWS];
  uint8_t *y[WEFT_PANEL_ROWS];
  panels_of(job, g, piece, x, y);
}

static void panels(const gemm_job *job, const weft_gemm *g, const gemm_piece *piece) {
  if (g->x.ptr && g->y.ptr && !g->x_prepared)
    panels_of(job, g, piece, NULL, NULL);
  else
    listed_panels(job, g, piece);
}

// Computes a product that is one panel as it is, on one thread: packets on demand, updates, stripes
// of a few KiB, which come by the thousand.
static void one_panel(const weft_host_kernel *kernel, const weft_gemm *g) {
  uint8_t *const row = g->y.base;
  weft_panel panel = weft_panel_of(g->m, g->k, 0, g->len, g->a, g->a_stride, g->x.ptr,
                                   g->y.ptr ? g->y.ptr : &row, g->accumulate);
  panel.packed = g->k > 1 && g->k * g->len > PACK_FROM;
  kernel->panel(&panel);
}

static bool is_one_panel(const gemm_job *job, const weft_gemm *g) {
  return g->x.ptr && !g->x_prepared && (g->y.ptr || g->m == 1) && g->m - 1 < WEFT_PANEL_ROWS &&
         g->k - 1 < WEFT_PACK_ROWS && g->len > 0 &&
         scratch_of(job, g, g->m, g->len, WEFT_PACK_ROWS) == 0;
}

// Computes columns from `begin` on of all rows with fewer multiplications than the matrix has
// entries. Returns where it stopped.
static size_t by_fewer(const gemm_job *job, const weft_gemm *g, size_t begin, size_t end) {
  if (!has_memory(job))
    return begin;
  const size_t done =
      g->factors ? weft_host_steps(job->kernel, job->scratch, job->allocator, g, begin, end)
                 : begin;
  return done > begin || !weft_host_winograd_pays(job->kernel, g->m, g->k)
             ? done
             : weft_host_winograd(job->kernel, job->allocator, g, begin, end);
}

static void run_piece(const gemm_job *job, const weft_gemm *g, const gemm_piece *piece) {
  if (piece->begin >= piece->end || piece->row_begin >= piece->row_end)
    return;
  if (g->k > 0)
    panels(job, g, piece);
  else if (!g->accumulate)
    for (size_t i = piece->row_begin; i < piece->row_end; i++)
      memset(weft_row(&g->y, i) + piece->begin, 0, piece->end - piece->begin);
}

static weft_partition choose(const gemm_job *job, const weft_gemm *g) {
  if (job->partition != WEFT_PARTITION_AUTO)
    return job->partition;
  const bool few_rows = cut(g->m, ROW_STEP) < job->threads;
  const bool long_rows = g->len / job->threads >= COLUMNS_MIN;
  return few_rows || long_rows ? WEFT_PARTITION_COLUMNS : WEFT_PARTITION_ROWS;
}

static void gemm_task(void *user, size_t index) {
  const gemm_job *job = user;
  const weft_gemm *g = &job->gemms[index / job->pieces];
  const size_t part = index % job->pieces;
  gemm_piece piece = {.row_begin = 0, .row_end = g->m, .begin = 0, .end = g->len};
  if (job->pieces > 1 && choose(job, g) == WEFT_PARTITION_ROWS) {
    const size_t rows = cut_to(g->m, job->pieces, g->m >= job->threads * ROW_STEP ? ROW_STEP : 1);
    piece.row_begin = weft_smaller(part * rows, g->m);
    piece.row_end = weft_smaller(piece.row_begin + rows, g->m);
  } else if (job->pieces > 1) {
    size_t columns = cut_to(g->len, job->pieces, LINE);
    // Pieces are not narrower than this, unless a thread's share is. (With many products, each has
    // fewer pieces than there are threads.)
    const size_t least =
        weft_host_winograd_pays(job->kernel, g->m, g->k) ? WEFT_WINOGRAD_COLUMNS : COLUMNS_MIN;
    const size_t enough = weft_smaller(least, cut_to(g->len, job->threads, LINE));
    if (job->partition == WEFT_PARTITION_AUTO && columns < enough)
      columns = enough;
    piece.begin = weft_smaller(part * columns, g->len);
    piece.end = weft_smaller(piece.begin + columns, g->len);
  }
  if (piece.row_begin == 0 && piece.row_end == g->m)
    piece.begin = by_fewer(job, g, piece.begin, piece.end);
  run_piece(job, g, &piece);
}

static void run_alone(const gemm_job *job, const weft_gemm *g) {
  const bool whole = !g->factors && !weft_host_winograd_pays(job->kernel, g->m, g->k);
  const size_t done = whole ? 0 : by_fewer(job, g, 0, g->len);
  if (done == 0 && is_one_panel(job, g))
    one_panel(job->kernel, g);
  else
    run_piece(job, g, &(gemm_piece){.row_end = g->m, .begin = done, .end = g->len});
}

static weft_status check_gemm(const weft_backend *row, const weft_gemm *g) {
  if (!on_host(g->a_mem) || !on_host(g->y.mem) || (!g->x_prepared && !on_host(g->x.mem)))
    return WEFT_E_UNSUPPORTED;
  if (g->a_stride < g->k && g->m > 1)
    return WEFT_E_ARGUMENT;
  const weft_operand *operand = g->x_prepared;
  if (operand && (operand->row != row || operand->k != g->k || operand->len != g->len))
    return WEFT_E_ARGUMENT;
  return WEFT_OK;
}

weft_status weft_host_gemm(const weft_backend *row, const weft_exec *exec, const weft_gemm *gemms,
                           size_t count) {
  size_t macs = 0;
  for (size_t i = 0; i < count; i++) {
    WEFT_TRY(check_gemm(row, &gemms[i]));
    macs += gemms[i].m * (gemms[i].k + 1) * gemms[i].len;
  }
  gemm_job job = {.kernel = row->host,
                  .allocator = exec->allocator,
                  .scratch = exec->scratch,
                  .gemms = gemms,
                  .pieces = 1,
                  .threads = weft_pool_threads(exec->pool),
                  .partition = exec->partition};
  const bool alone =
      job.threads == 1 || (exec->partition == WEFT_PARTITION_AUTO && macs < WEFT_SHARED_MACS);
  if (alone) { // the path of many small products
    for (size_t i = 0; i < count; i++)
      run_alone(&job, &gemms[i]);
    return WEFT_OK;
  }
  if (count > 0)
    job.pieces = cut(job.threads * PIECES_PER_THREAD, count);
  weft_pool_run(exec->pool, count * job.pieces, gemm_task, &job);
  return WEFT_OK;
}

// --- xorm ---

typedef struct xorm_job {
  const weft_host_kernel *kernel;
  const weft_xorm *xorm;
  size_t groups;     // in a shard
  size_t group_step; // groups of one piece
  size_t byte_step;  // bytes of a packet in one piece
  size_t pieces_in_packet;
} xorm_job;

// Computes bytes [begin, end) of one output packet (i, l) in groups [first, last). The pointers are
// those of group 0; the kernel's column range moves from group to group.
static void xor_packet(const xorm_job *job, size_t packet, size_t first, size_t last, size_t begin,
                       size_t end) {
  const weft_xorm *o = job->xorm;
  const uint8_t *bits = o->bits + packet * o->bits_stride;
  const size_t group_bytes = o->w * o->packet_bytes;
  uint8_t *y = weft_row(&o->y, packet / o->w) + packet % o->w * o->packet_bytes;
  const uint8_t *x[XOR_SOURCES];
  bool accumulate = o->accumulate;
  size_t source = 0;
  do {
    size_t found = 0;
    for (; source < o->k * o->w && found < XOR_SOURCES; source++)
      if (bits[source])
        x[found++] = weft_const_row(&o->x, source / o->w) + source % o->w * o->packet_bytes;
    if (found > 0 || !accumulate)
      for (size_t g = first; g < last; g++)
        job->kernel->xor_rows(y, x, found, g * group_bytes + begin, g * group_bytes + end,
                              accumulate);
    accumulate = true;
  } while (source < o->k * o->w);
}

// Returns which packets of one shard an output packet adds up: a bit for each.
static uint8_t sources_of(const uint8_t *bits, size_t w) {
  uint8_t sources = 0;
  if (w == 8) { // as one word: bit c of byte c into bit 56 + c
    uint64_t word = 0;
    WEFT_UNROLL for (size_t c = 0; c < 8; c++) word |= (uint64_t)bits[c] << 8 * c;
    return (uint8_t)(word * UINT64_C(0x0102040810204080) >> 56);
  }
  for (size_t c = 0; c < w; c++)
    sources |= (uint8_t)(bits[c] << c);
  return sources;
}

// Computes a piece of a product with one source shard.
static void spread(const xorm_job *job, size_t first, size_t last, size_t begin, size_t end) {
  const weft_xorm *o = job->xorm;
  const size_t most = SPREAD_OUTPUTS / o->w, from = first * o->w * o->packet_bytes;
  uint8_t sources[SPREAD_OUTPUTS], *y[SPREAD_OUTPUTS];
  weft_packet_spread s = {.w = o->w,
                          .packet_bytes = o->packet_bytes,
                          .groups = last - first,
                          .begin = begin,
                          .end = end,
                          .sources = sources,
                          .x = weft_const_row(&o->x, 0) + from,
                          .y = y,
                          .accumulate = o->accumulate};
  const uint8_t *bits = o->bits;
  for (size_t i = 0; i < o->m; i += s.m) {
    s.m = weft_smaller(o->m - i, most);
    for (size_t j = 0; j < s.m; j++)
      y[j] = weft_row(&o->y, i + j) + from;
    for (size_t packet = 0; packet < s.m * o->w; packet++, bits += o->bits_stride)
      sources[packet] = sources_of(bits, o->w);
    job->kernel->spread(&s);
  }
}

static void xorm_task(void *user, size_t index) {
  const xorm_job *job = user;
  const weft_xorm *o = job->xorm;
  const size_t first = index / job->pieces_in_packet * job->group_step;
  const size_t last = weft_smaller(first + job->group_step, job->groups);
  const size_t begin = index % job->pieces_in_packet * job->byte_step;
  const size_t end = weft_smaller(begin + job->byte_step, o->packet_bytes);
  if (o->k == 1 && job->kernel->spread)
    spread(job, first, last, begin, end);
  else
    for (size_t packet = 0; packet < o->m * o->w; packet++)
      xor_packet(job, packet, first, last, begin, end);
}

// Chooses the pieces: as many groups as stay in the second-level cache, or part of one group's
// packets.
static void cut_xorm(xorm_job *job, size_t threads) {
  enum { CACHED = 256 * 1024, PACKET_MIN = 1024 };
  const weft_xorm *o = job->xorm;
  const size_t group_total = (o->k + o->m) * o->w * o->packet_bytes;
  job->group_step = CACHED / group_total;
  if (job->group_step == 0)
    job->group_step = 1;
  const size_t per_thread = cut(job->groups, threads);
  if (job->group_step > per_thread)
    job->group_step = per_thread;
  job->byte_step = o->packet_bytes;
  if (group_total > CACHED || job->groups < threads) {
    const size_t cached = cut(group_total, CACHED);
    job->byte_step = cut_to(o->packet_bytes, cached > threads ? cached : threads, LINE);
    if (job->byte_step < PACKET_MIN)
      job->byte_step = PACKET_MIN;
  }
  job->pieces_in_packet = cut(o->packet_bytes, job->byte_step);
}

weft_status weft_host_xorm(const weft_backend *row, const weft_exec *exec, const weft_xorm *o) {
  if (!on_host(o->x.mem) || !on_host(o->y.mem))
    return WEFT_E_UNSUPPORTED;
  if (o->w < 1 || o->w > 8 || o->packet_bytes == 0 || o->len % (o->w * o->packet_bytes) != 0 ||
      (o->bits_stride < o->k * o->w && o->m > 0))
    return WEFT_E_ARGUMENT;
  if (o->m == 0 || o->len == 0)
    return WEFT_OK;
  xorm_job job = {.kernel = row->host, .xorm = o, .groups = o->len / (o->w * o->packet_bytes)};
  cut_xorm(&job, weft_pool_threads(exec->pool));
  weft_pool_run(exec->pool, cut(job.groups, job.group_step) * job.pieces_in_packet, xorm_task,
                &job);
  return WEFT_OK;
}

// --- prepare ---

typedef struct prepare_job {
  const weft_operand *operand;
  const weft_const_rows *x;
} prepare_job;

static void prepare_task(void *user, size_t index) {
  const prepare_job *job = user;
  const weft_operand *operand = job->operand;
  operand->row->host->prepare_row(operand->bytes + index * operand->stride,
                                  weft_const_row(job->x, index), operand->len);
}

weft_status weft_host_prepare(const weft_backend *row, const weft_exec *exec, size_t k, size_t len,
                              const weft_const_rows *x, weft_operand **out) {
  const weft_allocator *allocator = exec->allocator;
  *out = NULL;
  if (!on_host(x->mem))
    return WEFT_E_UNSUPPORTED;
  const size_t stride = cut(len, LINE) * LINE;
  if (stride < len || (k > 0 && stride > (SIZE_MAX - LINE) / k))
    return WEFT_E_NOMEM;
  weft_operand *operand =
      allocator->alloc(allocator->user, sizeof *operand, _Alignof(weft_operand));
  if (!operand)
    return WEFT_E_NOMEM;
  *operand = (weft_operand){.row = row, .k = k, .len = len, .stride = stride};
  operand->bytes = allocator->alloc(allocator->user, k * stride + LINE, LINE);
  if (!operand->bytes) {
    allocator->free(allocator->user, operand);
    return WEFT_E_NOMEM;
  }
  prepare_job job = {.operand = operand, .x = x};
  weft_pool_run(exec->pool, k, prepare_task, &job);
  *out = operand;
  return WEFT_OK;
}

void weft_host_release(const weft_backend *row, const weft_exec *exec, weft_operand *operand) {
  (void)row;
  if (!operand)
    return;
  exec->allocator->free(exec->allocator->user, operand->bytes);
  exec->allocator->free(exec->allocator->user, operand);
}
