// SPDX-License-Identifier: Apache-2.0
// The double's row: operations recorded on a stream and done by the best host row; and the table
// that puts it before the host rows.
#define WEFT_DOUBLE_OWN
#include "tests/lib/device_double/names.h"

#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "lib/coefficients.h"
#include "tests/lib/device_double/device_double.h"

// X in the row's own layout, which only the row may interpret.
struct weft_operand {
  uint8_t *bytes; // device memory: (k, len), each byte complemented
  size_t k, len;
};

// Returns the best host row: the scalar row would take minutes for shapes meant for a device.
static const weft_backend *host_row(void) {
  const weft_machine machine = {.cpu = weft_cpu_features()};
  const weft_backend *row = NULL;
  if (weft_backend_select(&machine, WEFT_MEM_HOST, NULL, &row) != WEFT_OK)
    abort();
  return row;
}

static void *c_alloc(void *user, size_t bytes, size_t align) {
  (void)user;
  return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void c_free(void *user, void *memory) {
  (void)user;
  free(memory);
}

static const weft_allocator c_allocator = {.alloc = c_alloc, .free = c_free};
static const weft_exec host_exec = {.allocator = &c_allocator};

static void *must(void *memory) {
  if (!memory)
    abort();
  return memory;
}

// Allocates as the host part of a launch does for its descriptors; this can fail.
static weft_status describe(const weft_exec *exec) {
  void *memory = exec->allocator->alloc(exec->allocator->user, 64, 16);
  if (!memory)
    return WEFT_E_NOMEM;
  exec->allocator->free(exec->allocator->user, memory);
  return WEFT_OK;
}

// --- gemm ---

typedef struct product {
  double_op op;
  weft_gemm gemm;
  const uint8_t **x_ptr; // copies, or NULL
  uint8_t **y_ptr;
  uint8_t *a; // a copy of the coefficients in host memory, which are passed with a launch
  weft_factors *factors; // likewise
} product;

static void for_rows(void (*what)(weft_mem, const void *, size_t), weft_mem mem,
                     const uint8_t *base, size_t stride, const uint8_t *const *ptr, size_t rows,
                     size_t bytes) {
  for (size_t i = 0; i < rows; i++)
    what(mem, ptr ? ptr[i] : base + i * stride, bytes);
}

static void for_operands(void (*what)(weft_mem, const void *, size_t), const weft_gemm *g) {
  for_rows(what, g->a_mem, g->a, g->a_stride, NULL, g->m, g->k);
  if (g->x_prepared)
    what(WEFT_MEM_DEVICE, g->x_prepared->bytes, g->k * g->len);
  else
    for_rows(what, g->x.mem, g->x.base, g->x.stride, g->x.ptr, g->k, g->len);
  for_rows(what, g->y.mem, g->y.base, g->y.stride, (const uint8_t *const *)g->y.ptr, g->m, g->len);
}

static void free_copies(const product *p) {
  free(p->x_ptr);
  free(p->y_ptr);
  free(p->a);
  weft_factors_free(p->factors, &c_allocator);
}

// What preparing does to bytes. By words, as sanitizers check each access.
static void turn(uint8_t *to, const uint8_t *from, size_t bytes) {
  size_t i = 0;
  for (uint64_t word; i + sizeof word <= bytes; i += sizeof word) {
    memcpy(&word, from + i, sizeof word);
    word = ~word;
    memcpy(to + i, &word, sizeof word);
  }
  for (; i < bytes; i++)
    to[i] = (uint8_t)~from[i];
}

static void run_product(double_op *op) {
  const product *p = (const product *)op;
  weft_gemm g = p->gemm;
  g.factors = p->factors;
  g.x.ptr = p->x_ptr;
  g.y.ptr = p->y_ptr;
  if (p->a) {
    g.a = p->a;
    g.a_stride = g.k;
  }
  for_operands(double_open, &g);
  weft_gemm plain = g;
  uint8_t *turned = NULL;
  if (g.x_prepared) {
    turned = must(malloc(g.k * g.len + 1));
    turn(turned, g.x_prepared->bytes, g.k * g.len);
    plain.x_prepared = NULL;
    plain.x = (weft_const_rows){.base = turned, .stride = g.len};
  }
  plain.a_mem = plain.x.mem = plain.y.mem = WEFT_MEM_HOST;
  if (host_row()->gemm(host_row(), &host_exec, &plain, 1) != WEFT_OK)
    abort();
  for_operands(double_close, &g);
  free(turned);
  free_copies(p);
}

static void *copy_of(const void *from, size_t bytes) {
  return from ? memcpy(must(malloc(bytes + 1)), from, bytes) : NULL;
}

static weft_status gemm(const weft_backend *row, const weft_exec *exec, const weft_gemm *gemms,
                        size_t count) {
  (void)row;
  WEFT_TRY(describe(exec));
  for (size_t i = 0; i < count; i++) {
    const weft_gemm *g = &gemms[i];
    if (g->m == 0 || g->len == 0)
      continue;
    if (g->k > 0 && g->len > WEFT_RANGE_BYTES) // without terms: the padding of a segment
      return WEFT_E_ARGUMENT;
    if (g->y.mem == WEFT_MEM_HOST || (g->k > 0 && !g->x_prepared && g->x.mem == WEFT_MEM_HOST))
      return WEFT_E_UNSUPPORTED;
    product p = {.op = {.run = run_product}, .gemm = *g};
    if (!g->x_prepared)
      p.x_ptr = copy_of(g->x.ptr, g->k * sizeof *p.x_ptr);
    p.y_ptr = copy_of(g->y.ptr, g->m * sizeof *p.y_ptr);
    if (g->a_mem == WEFT_MEM_HOST) {
      p.a = must(malloc(g->m * g->k + 1));
      for (size_t r = 0; r < g->m && g->k > 0; r++)
        memcpy(p.a + r * g->k, g->a + r * g->a_stride, g->k);
    }
    if (g->factors && weft_factors_new(g->factors->steps, g->factors->count, g->factors->slots,
                                       &c_allocator, &p.factors) != WEFT_OK)
      abort();
    const weft_status status = double_enqueue(exec->stream, &p.op, sizeof p);
    if (status != WEFT_OK) {
      free_copies(&p);
      return status;
    }
  }
  return WEFT_OK;
}

// --- packets ---

typedef struct packets {
  double_op op;
  weft_xorm xorm;
  const uint8_t **x_ptr;
  uint8_t **y_ptr;
  uint8_t *bits;
} packets;

static void for_packets(void (*what)(weft_mem, const void *, size_t), const weft_xorm *p) {
  for_rows(what, p->x.mem, p->x.base, p->x.stride, p->x.ptr, p->k, p->len);
  for_rows(what, p->y.mem, p->y.base, p->y.stride, (const uint8_t *const *)p->y.ptr, p->m, p->len);
}

static void run_packets(double_op *op) {
  const packets *p = (const packets *)op;
  weft_xorm xorm = p->xorm;
  xorm.x.ptr = p->x_ptr;
  xorm.y.ptr = p->y_ptr;
  xorm.bits = p->bits;
  for_packets(double_open, &xorm);
  weft_xorm plain = xorm;
  plain.x.mem = plain.y.mem = WEFT_MEM_HOST;
  if (host_row()->xorm(host_row(), &host_exec, &plain) != WEFT_OK)
    abort();
  for_packets(double_close, &xorm);
  free(p->x_ptr);
  free(p->y_ptr);
  free(p->bits);
}

static weft_status xorm(const weft_backend *row, const weft_exec *exec, const weft_xorm *xorm) {
  (void)row;
  WEFT_TRY(describe(exec));
  if (xorm->m == 0 || xorm->len == 0)
    return WEFT_OK;
  if (xorm->y.mem == WEFT_MEM_HOST || (xorm->k > 0 && xorm->x.mem == WEFT_MEM_HOST))
    return WEFT_E_UNSUPPORTED;
  packets p = {.op = {.run = run_packets}, .xorm = *xorm};
  p.x_ptr = copy_of(xorm->x.ptr, xorm->k * sizeof *p.x_ptr);
  p.y_ptr = copy_of(xorm->y.ptr, xorm->m * sizeof *p.y_ptr);
  p.bits = copy_of(xorm->bits, xorm->m * xorm->w * xorm->bits_stride);
  const weft_status status = double_enqueue(exec->stream, &p.op, sizeof p);
  if (status != WEFT_OK) {
    free(p.x_ptr);
    free(p.y_ptr);
    free(p.bits);
  }
  return status;
}

static weft_status xorm_many(const weft_backend *row, const weft_exec *exec, const weft_xorm *xorms,
                             size_t count) {
  for (size_t i = 0; i < count; i++)
    WEFT_TRY(xorm(row, exec, &xorms[i]));
  return WEFT_OK;
}

typedef struct comparison {
  double_op op;
  const uint8_t *a, *b;
  size_t bytes;
  void *flag;
} comparison;

static void run_comparison(double_op *op) {
  const comparison *c = (const comparison *)op;
  const uint32_t one = 1;
  double_open(WEFT_MEM_DEVICE, c->a, c->bytes);
  double_open(WEFT_MEM_DEVICE, c->b, c->bytes);
  double_open(WEFT_MEM_DEVICE, c->flag, sizeof one);
  if (memcmp(c->a, c->b, c->bytes) != 0)
    memcpy(c->flag, &one, sizeof one);
  double_close(WEFT_MEM_DEVICE, c->a, c->bytes);
  double_close(WEFT_MEM_DEVICE, c->b, c->bytes);
  double_close(WEFT_MEM_DEVICE, c->flag, sizeof one);
}

weft_status weft_device_compare(const weft_exec *exec, const uint8_t *a, const uint8_t *b,
                                size_t bytes, void *flag) {
  const comparison c = {{.run = run_comparison}, a, b, bytes, flag};
  return bytes ? double_enqueue(exec->stream, &c.op, sizeof c) : WEFT_OK;
}

// The double compiles no kernels.
void weft_device_compile_after(weft_device *device, size_t bytes) {
  (void)device;
  (void)bytes;
}

static weft_code_store code_store;

void weft_device_set_code_store(weft_device *device, const weft_code_store *store) {
  (void)device;
  code_store = store ? *store : (weft_code_store){0};
}

weft_code_store weft_double_code_store(void) { return code_store; }

// --- the other operations ---

typedef struct inversion {
  double_op op;
  weft_invert invert;
} inversion;

static void for_matrices(void (*what)(weft_mem, const void *, size_t), const weft_invert *invert) {
  const size_t bytes = invert->count * invert->k * invert->k;
  what(invert->mem, invert->in, bytes);
  what(invert->mem, invert->out, bytes);
  what(invert->mem, invert->singular, invert->count);
}

static void run_inversion(double_op *op) {
  const weft_invert *invert = &((const inversion *)op)->invert;
  for_matrices(double_open, invert);
  weft_invert plain = *invert;
  plain.mem = WEFT_MEM_HOST;
  if (host_row()->invert(host_row(), &host_exec, &plain) != WEFT_OK)
    abort();
  for_matrices(double_close, invert);
}

static weft_status invert(const weft_backend *row, const weft_exec *exec,
                          const weft_invert *invert) {
  (void)row;
  if (invert->mem == WEFT_MEM_HOST)
    return WEFT_E_UNSUPPORTED;
  WEFT_TRY(describe(exec));
  const inversion i = {{.run = run_inversion}, *invert};
  return double_enqueue(exec->stream, &i.op, sizeof i);
}

typedef struct expanding {
  double_op op;
  weft_expansion expansion;
} expanding;

static void run_expansion(double_op *op) {
  const weft_expansion *e = &((const expanding *)op)->expansion;
  if (e->seeds)
    double_open(WEFT_MEM_PINNED, e->seeds, e->count * sizeof *e->seeds);
  uint8_t *fresh = must(malloc(e->count * e->k + 1));
  randombytes_buf_deterministic(fresh, e->count * e->k, e->key);
  for (size_t i = 0; i < e->count; i++) {
    uint8_t *out = e->out + i * e->out_stride;
    double_open(WEFT_MEM_DEVICE, out, e->k);
    weft_seed seed = e->first;
    seed.seed += i;
    if (e->seeds)
      seed = e->seeds[i];
    const weft_segment_id id = {
        .stream = seed.stream, .segment = seed.segment, .blocks = (uint32_t)e->k};
    if (e->fresh)
      for (size_t j = 0; j < e->k; j++)
        out[j] = fresh[i * e->k + j] ? fresh[i * e->k + j] : 1;
    else if (e->density_q16 > 0)
      weft_coefficients_sparse(&id, seed.seed, e->density_q16, out);
    else
      weft_coefficients_dense(&id, seed.seed, out);
    double_close(WEFT_MEM_DEVICE, out, e->k);
  }
  free(fresh);
}

static weft_status expand(const weft_backend *row, const weft_exec *exec,
                          const weft_expansion *expansion) {
  (void)row;
  const expanding e = {{.run = run_expansion}, *expansion};
  return double_enqueue(exec->stream, &e.op, sizeof e);
}

typedef struct preparing {
  double_op op;
  weft_const_rows x;
  uint8_t *to;
  size_t k, len;
} preparing;

static void run_preparation(double_op *op) {
  const preparing *p = (const preparing *)op;
  double_open(WEFT_MEM_DEVICE, p->to, p->k * p->len);
  for_rows(double_open, p->x.mem, p->x.base, p->x.stride, NULL, p->k, p->len);
  for (size_t j = 0; j < p->k; j++)
    turn(p->to + j * p->len, p->x.base + j * p->x.stride, p->len);
  for_rows(double_close, p->x.mem, p->x.base, p->x.stride, NULL, p->k, p->len);
  double_close(WEFT_MEM_DEVICE, p->to, p->k * p->len);
}

static void release(const weft_backend *row, const weft_exec *exec, weft_operand *operand) {
  (void)row;
  if (!operand)
    return;
  weft_device_free(exec->device, WEFT_MEM_DEVICE, operand->bytes);
  exec->allocator->free(exec->allocator->user, operand);
}

static weft_status prepare(const weft_backend *row, const weft_exec *exec, size_t k, size_t len,
                           const weft_const_rows *x, weft_operand **out) {
  *out = NULL;
  if (x->mem == WEFT_MEM_HOST || x->ptr)
    return WEFT_E_UNSUPPORTED;
  weft_operand *operand =
      exec->allocator->alloc(exec->allocator->user, sizeof *operand, _Alignof(weft_operand));
  if (!operand)
    return WEFT_E_NOMEM;
  *operand = (weft_operand){.k = k, .len = len};
  void *bytes = NULL;
  weft_status status = weft_device_alloc(exec->device, WEFT_MEM_DEVICE, k * len, &bytes);
  operand->bytes = bytes;
  if (status == WEFT_OK) {
    const preparing p = {{.run = run_preparation}, *x, operand->bytes, k, len};
    status = double_enqueue(exec->stream, &p.op, sizeof p);
  }
  if (status != WEFT_OK)
    release(row, exec, operand);
  else
    *out = operand;
  return status;
}

static weft_status prepare_many(const weft_backend *row, const weft_exec *exec, size_t k,
                                size_t len, const uint8_t *const *x, size_t x_stride, size_t count,
                                weft_operand **out) {
  weft_status status = WEFT_OK;
  size_t made = 0;
  for (; made < count && status == WEFT_OK; made += status == WEFT_OK) {
    const weft_const_rows rows = {.base = x[made], .stride = x_stride, .mem = WEFT_MEM_DEVICE};
    status = prepare(row, exec, k, len, &rows, &out[made]);
  }
  if (status != WEFT_OK) // the operands made so far are about to be filled
    (void)weft_device_stream_wait(exec->device, exec->stream);
  while (status != WEFT_OK && made > 0)
    release(row, exec, out[--made]);
  return status;
}

// --- the table ---

enum { ROWS_MAX = 64 };
static weft_backend table[ROWS_MAX];
static size_t table_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_table(void) {
  table[table_count++] = (weft_backend){.name = "cuda-double",
                                        .technique = "a host row, later",
                                        .sm_min = 1,
                                        .sm_max = 999,
                                        .mem = WEFT_MEM_DEVICE,
                                        .align = 16,
                                        .gemm = gemm,
                                        .xorm = xorm,
                                        .xorm_many = xorm_many,
                                        .invert = invert,
                                        .prepare = prepare,
                                        .prepare_many = prepare_many,
                                        .release = release,
                                        .expand = expand};
  for (size_t i = 0; i < weft_backend_count; i++)
    if (weft_backends[i].mem == WEFT_MEM_HOST && table_count < ROWS_MAX)
      table[table_count++] = weft_backends[i];
}

const weft_backend *weft_double_table(size_t *count) {
  pthread_once(&once, fill_table);
  if (count)
    *count = table_count;
  return table;
}

bool weft_double_runs_on(const weft_backend *row, const weft_machine *machine) {
  return weft_backend_runs_on(row, machine);
}

weft_status weft_double_select(const weft_machine *machine, weft_mem mem, const char *forced,
                               const weft_backend **out) {
  if (mem == WEFT_MEM_HOST)
    return weft_backend_select(machine, mem, forced, out);
  *out = NULL;
  const weft_backend *row = weft_double_table(NULL);
  if (forced && strcmp(forced, row->name) != 0)
    return WEFT_E_BACKEND_UNKNOWN;
  *out = row;
  return WEFT_OK;
}
