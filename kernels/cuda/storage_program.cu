// SPDX-License-Identifier: Apache-2.0
// Bit matrices as straight-line kernels (storage_source.h): which shapes suit, and their launch.
#include "kernels/cuda/batch.cuh"
#include "kernels/cuda/nvrtc.h"
#include "kernels/cuda/storage.h"
#include "kernels/cuda/storage_overlap.cuh"
#include "kernels/cuda/storage_source.h"
#include "kernels/cuda/storage_trial.h"

extern "C" {
#include "kernels/gf256.h"
}

#include <string.h>

namespace {

enum { ShardsMax = WEFT_PROGRAM_SHARDS };

// As the source declares it.
struct Args {
  uint64_t own[ShardsMax];
  uint64_t length;
  uint32_t overlaps, two, four, sixteen;
};

// The shape and, behind it, the matrix: bits, 8 to a byte and rows of whole bytes, or coefficients.
// All that a plan follows from is in it, as a kernel is launched by the plan that it was made by:
// one matrix may come with factors of more slots or fewer, or with none (0).
struct Key {
  size_t k, m, w, packet_bytes, slots, accumulate;
  uint8_t matrix[];
};

// Puts the addresses of one stripe, k inputs and outputs [from, from + m); where the next one's go.
uint64_t *put_rows(uint64_t *own, const weft_const_rows &x, size_t k, const weft_rows &y,
                   size_t from, size_t m) {
  for (size_t j = 0; j < k; j++)
    *own++ = reinterpret_cast<uint64_t>(weft_const_row(&x, j));
  for (size_t i = 0; i < m; i++)
    *own++ = reinterpret_cast<uint64_t>(weft_row(&y, from + i));
  return own;
}

// What a kernel is for. Bytes have their matrix as coefficients until it is really needed as bits.
struct Wanted {
  const weft_exec *exec;
  weft_program_shape shape;
  weft_program_plan plan;
  const weft_gemm *gemm; // of bytes, else NULL
};

// The bit matrix of multiplication: column x of an element is element * 2^x.
void expand(uint8_t *bits, const weft_gemm &gemm) {
  const size_t stride = 8 * gemm.k;
  for (size_t i = 0; i < gemm.m; i++)
    for (size_t j = 0; j < gemm.k; j++) {
      const uint8_t c = gemm.a[i * gemm.a_stride + j];
      for (unsigned x = 0; x < 8; x++) {
        const unsigned column = weft_gf256_mul(c, static_cast<uint8_t>(1u << x));
        for (size_t l = 0; l < 8; l++)
          bits[(8 * i + l) * stride + 8 * j + x] = static_cast<uint8_t>(column >> l & 1);
      }
    }
}

weft_status write_source(void *user, const weft_allocator *allocator, char **out) {
  const Wanted *wanted = static_cast<const Wanted *>(user);
  weft_program_shape shape = wanted->shape;
  if (!wanted->gemm || shape.factors)
    return weft_program_source(&shape, &wanted->plan, allocator, out);
  uint8_t *bits =
      static_cast<uint8_t *>(allocator->alloc(allocator->user, 64 * shape.m * shape.k, 16));
  if (!bits)
    return WEFT_E_NOMEM;
  expand(bits, *wanted->gemm);
  shape.bits = bits;
  shape.bits_stride = 8 * shape.k;
  const weft_status status = weft_program_source(&shape, &wanted->plan, allocator, out);
  allocator->free(allocator->user, bits);
  return status;
}

// Bytes that are 0 or 1 to bits. The last byte may hold fewer than eight.
void pack_bits(uint8_t *to, const uint8_t *bits, size_t count) {
  for (size_t at = 0; at < count; at += 8) {
    uint64_t eight = 0;
    memcpy(&eight, bits + at, count - at < 8 ? count - at : 8);
    *to++ = static_cast<uint8_t>((eight & 0x0101010101010101u) * 0x0102040810204080u >> 56);
  }
}

// All rows of a launch: those that it reads, or those that it writes.
weft_device_span span_of(const Args &args, const weft_program_shape &shape, size_t stripes,
                         bool writes) {
  const size_t all = shape.k + shape.m,
               row_bytes = args.length * (shape.packet_bytes ? shape.w * shape.packet_bytes : 1);
  weft_device_span span;
  for (size_t s = 0; s < stripes; s++)
    for (size_t i = writes ? shape.k : 0; i < (writes ? all : shape.k); i++)
      span.add(args.own[s * all + i], row_bytes);
  return span;
}

// Blocks that the device holds at once, at most.
size_t fit(const weft_device_shape &device, const weft_program_shape &shape,
           const weft_program_plan &plan) {
  enum { ThreadsOfSm = 2048 };
  const size_t by_threads = ThreadsOfSm / plan.threads,
               by_memory = static_cast<size_t>(device.sm_shared_bytes) /
                           weft_program_ring_bytes(&shape, &plan);
  return static_cast<size_t>(device.sms) * (by_threads < by_memory ? by_threads : by_memory);
}

// `stripes` products by one launch: as many as their addresses have room for; `length` bytes or
// groups each.
weft_status launch(const Wanted &wanted, void *kernel, size_t length, size_t stripes, Args *args) {
  const weft_exec *exec = wanted.exec;
  const weft_program_shape &shape = wanted.shape;
  const weft_program_plan &plan = wanted.plan;
  const size_t blocks = weft_program_blocks(&shape, &plan, length);
  args->length = length;
  args->two = 2;
  args->four = 4;
  args->sixteen = 16;
  weft_storage_touch touch = {};
  touch.reads = span_of(*args, shape, stripes, false);
  touch.writes = span_of(*args, shape, stripes, true);
  touch.blocks = blocks * stripes;
  touch.fit = fit(*weft_device_get_shape(exec->device), shape, plan);
  args->overlaps = weft_storage_overlaps(exec, touch);
  void *list[] = {args};
  return weft_storage_launch(exec, kernel,
                             dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(stripes)),
                             static_cast<unsigned>(plan.threads), 0, list);
}

// A kernel with its rows, as launch() wants them.
struct Tried {
  const Wanted *wanted;
  void *kernel;
};

weft_status run_trial(void *user, const weft_trial_rows *rows) {
  const Tried *tried = static_cast<const Tried *>(user);
  const Wanted &wanted = *tried->wanted;
  Args args;
  for (size_t i = 0; i < wanted.shape.k + wanted.shape.m; i++)
    args.own[i] = reinterpret_cast<uint64_t>(rows->first + i * rows->stride);
  const weft_status status = launch(wanted, tried->kernel, rows->length, 1, &args);
  weft_device_overlap_ends(wanted.exec);
  return status;
}

weft_status passes(void *user, void *kernel, bool *out) {
  const Wanted *wanted = static_cast<const Wanted *>(user);
  Tried tried = {wanted, kernel};
  weft_trial trial = {};
  trial.shape = &wanted->shape;
  trial.plan = &wanted->plan;
  trial.run = run_trial;
  trial.user = &tried;
  if (wanted->gemm) {
    trial.a = wanted->gemm->a;
    trial.a_stride = wanted->gemm->a_stride;
  }
  return weft_trial_passes(wanted->exec, &trial, out);
}

weft_status kernel_for(Wanted *wanted, size_t work, void **kernel) {
  const weft_exec *exec = wanted->exec;
  const weft_allocator *allocator = exec->allocator;
  const weft_program_shape &shape = wanted->shape;
  const weft_gemm *gemm = wanted->gemm;
  const size_t rows = gemm ? shape.m : shape.m * shape.w;
  const size_t row_bytes = gemm ? shape.k : (shape.k * shape.w + 7) / 8;
  const size_t bytes = sizeof(Key) + rows * row_bytes;
  Key *key = static_cast<Key *>(allocator->alloc(allocator->user, bytes, alignof(Key)));
  if (!key)
    return WEFT_E_NOMEM;
  key->k = shape.k;
  key->m = shape.m;
  key->w = shape.w;
  key->packet_bytes = shape.packet_bytes;
  key->slots = shape.factors ? shape.factors->slots : 0;
  key->accumulate = shape.accumulate;
  for (size_t r = 0; r < rows; r++)
    if (gemm)
      memcpy(key->matrix + r * row_bytes, gemm->a + r * gemm->a_stride, row_bytes);
    else
      pack_bits(key->matrix + r * row_bytes, shape.bits + r * shape.bits_stride, shape.k * shape.w);
  weft_kernel_want want = {};
  want.key = key;
  want.key_bytes = bytes;
  want.source = write_source;
  want.passes = passes;
  want.user = wanted;
  want.work = work;
  const weft_status status = weft_device_kernel(exec->device, &want, kernel);
  allocator->free(allocator->user, key);
  return status;
}

// Instructions of a kernel for packets, about: reading a shard, and for eight packets the subset
// sums and one addition for each output packet. Kernels that are far larger than the instruction
// cache crawl.
size_t instructions(size_t k, size_t w, size_t sums) {
  enum { ToRead = 12 };
  return k * ToRead + k * w * (22 + sums) / 8;
}

// LOP3s that a product takes by its factors, about, and entry by entry.
size_t lop3s_by_factors(const weft_factors &factors) {
  return 5 * factors.products + 8 * factors.sums - 3 * factors.repeated;
}
size_t lop3s_by_entries(size_t m, size_t k) { return k * (22 + 8 * m); }

// Whether packets are quicker by factors: where there are few, sums of them as they are keep more
// threads resident.
bool by_factors(const weft_xorm &xorm) {
  enum { LineBytes = 128, EntriesLeast = 3400, LOP3sMost = 8000 };
  if (!xorm.factors || xorm.w != 8 || xorm.packet_bytes % LineBytes)
    return false;
  const size_t entries = lop3s_by_entries(xorm.m, xorm.k), steps = lop3s_by_factors(*xorm.factors);
  return xorm.factors->slots <= WEFT_PROGRAM_SLOTS && entries >= EntriesLeast &&
         20 * steps <= 17 * entries && steps <= LOP3sMost;
}

// Output shards of one kernel for packets: as many as there are registers and instructions for.
size_t panel_outputs(const weft_xorm &xorm) {
  enum { InstructionsMost = 8000 };
  if (by_factors(xorm))
    return xorm.m;
  size_t most = size_t{WEFT_PROGRAM_SUMS} / xorm.w;
  most = most < xorm.m ? most : xorm.m;
  while (most > 8 && instructions(xorm.k, xorm.w, most * xorm.w) > InstructionsMost)
    most--;
  return most;
}

// Outputs [from, from + m) of a product on packets, as one kernel.
struct Panel {
  size_t from, m;
  Wanted wanted;
  weft_held_kernel held;
};

weft_status find_kernel(const weft_exec *exec, const weft_xorm &xorm, size_t count, Panel *panel) {
  weft_program_shape &shape = panel->wanted.shape;
  shape.k = xorm.k;
  shape.m = panel->m;
  shape.w = xorm.w;
  shape.packet_bytes = xorm.packet_bytes;
  shape.bits = xorm.bits + panel->from * xorm.w * xorm.bits_stride;
  shape.bits_stride = xorm.bits_stride;
  shape.factors = by_factors(xorm) ? xorm.factors : nullptr;
  shape.accumulate = xorm.accumulate;
  panel->wanted.exec = exec;
  panel->held.device = exec->device;
  WEFT_TRY(weft_program_plan_for(&shape, &panel->wanted.plan));
  WEFT_TRY(kernel_for(&panel->wanted, count * xorm.k * xorm.len, &panel->held.kernel));
  return panel->held.kernel ? WEFT_OK : WEFT_E_UNSUPPORTED;
}

weft_status run_panel(const weft_xorm *xorms, size_t count, const Panel &panel) {
  Args args;
  uint64_t *own = args.own;
  for (size_t s = 0; s < count; s++)
    own = put_rows(own, xorms[s].x, xorms->k, xorms[s].y, panel.from, panel.m);
  return launch(panel.wanted, panel.held.kernel, xorms->len / (xorms->w * xorms->packet_bytes),
                count, &args);
}

// A warp's words of each packet must be there (weft_program_way).
bool suits_program(const weft_exec *exec, const weft_xorm &xorm) {
  enum { WarpBytes = 128 };
  return xorm.k && xorm.len >= xorm.w * WarpBytes && xorm.m && xorm.k + xorm.m <= ShardsMax &&
         xorm.w <= 8 && xorm.x.mem != WEFT_MEM_HOST && xorm.y.mem != WEFT_MEM_HOST &&
         xorm.len / 4 <= UINT32_MAX / 2 && weft_device_sm(exec->device) >= 90 &&
         weft_storage_address_bits(xorm.x, xorm.k, xorm.y, xorm.m) % 16 == 0;
}

bool has_factors(const weft_gemm &gemm) {
  return gemm.factors && gemm.factors->slots <= WEFT_PROGRAM_SLOTS;
}

// Whether its factors are quicker than its bits, as measured on an H200: few outputs cost little as
// they are, and entries leave room for more threads.
bool by_factors(const weft_gemm &gemm) {
  enum { OutputsLeast = 5, Percent = 83 };
  return has_factors(gemm) && gemm.m >= OutputsLeast &&
         100 * lop3s_by_factors(*gemm.factors) <= Percent * lop3s_by_entries(gemm.m, gemm.k);
}

// A warp's bytes of each shard must be there, and no more blocks than a grid may have.
bool suits_program(const weft_exec *exec, const weft_gemm &gemm) {
  enum { WarpBytes = 1024, BlockBytesLeast = 2 * WarpBytes };
  return !gemm.x_prepared && gemm.a_mem != WEFT_MEM_DEVICE && gemm.k && gemm.m &&
         (has_factors(gemm) || gemm.m <= WEFT_PROGRAM_SUMS / 8) && gemm.k + gemm.m <= ShardsMax &&
         gemm.x.mem != WEFT_MEM_HOST && gemm.y.mem != WEFT_MEM_HOST && gemm.len >= WarpBytes &&
         gemm.len / BlockBytesLeast < INT32_MAX && weft_device_sm(exec->device) >= 90 &&
         weft_storage_address_bits(gemm.x, gemm.k, gemm.y, gemm.m) % 16 == 0;
}

// Bytes from `from` on, fewer than 16.
weft_status run_tail(const weft_exec *exec, const weft_gemm &gemm, size_t from) {
  const uint8_t *x[ShardsMax];
  uint8_t *y[ShardsMax];
  for (size_t j = 0; j < gemm.k; j++)
    x[j] = weft_const_row(&gemm.x, j) + from;
  for (size_t i = 0; i < gemm.m; i++)
    y[i] = weft_row(&gemm.y, i) + from;
  weft_gemm tail = gemm;
  tail.len = gemm.len - from;
  tail.x.ptr = x;
  tail.y.ptr = y;
  return weft_storage_tensor(exec, &tail);
}

} // namespace

extern "C" size_t weft_storage_program_stripes(size_t k, size_t m) {
  return k + m ? ShardsMax / (k + m) : 0;
}

extern "C" weft_status weft_storage_program_xorm(const weft_exec *exec, const weft_xorm *xorms,
                                                 size_t count) {
  enum { PanelsMax = 4 };
  const weft_xorm &like = xorms[0];
  if (count == 0 || count > weft_storage_program_stripes(like.k, like.m))
    return WEFT_E_UNSUPPORTED;
  for (size_t s = 0; s < count; s++)
    if (!suits_program(exec, xorms[s]))
      return WEFT_E_UNSUPPORTED;
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  // Panels of about one size; all kernels are there before the first runs.
  Panel panels[PanelsMax] = {};
  const size_t most = panel_outputs(like), number = (like.m + most - 1) / most;
  if (number > PanelsMax)
    return WEFT_E_UNSUPPORTED;
  for (size_t p = 0; p < number; p++) {
    panels[p].from = p * like.m / number;
    panels[p].m = (p + 1) * like.m / number - panels[p].from;
    WEFT_TRY(find_kernel(exec, like, count, &panels[p]));
  }
  for (size_t p = 0; p < number; p++)
    WEFT_TRY(run_panel(xorms, count, panels[p]));
  return WEFT_OK;
}

// With the factors, or with the bits of the matrix.
static weft_status program_gemm(const weft_exec *exec, const weft_gemm *gemms, size_t count,
                                bool factored) {
  const weft_gemm &like = gemms[0];
  if (count == 0 || count > weft_storage_program_stripes(like.k, like.m))
    return WEFT_E_UNSUPPORTED;
  for (size_t s = 0; s < count; s++)
    if (!suits_program(exec, gemms[s]))
      return WEFT_E_UNSUPPORTED;
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  Wanted wanted = {};
  wanted.exec = exec;
  wanted.gemm = &like;
  wanted.shape.k = like.k;
  wanted.shape.m = like.m;
  wanted.shape.w = 8;
  wanted.shape.accumulate = like.accumulate;
  wanted.shape.factors = factored ? like.factors : nullptr;
  weft_held_kernel held(exec->device);
  WEFT_TRY(weft_program_plan_for(&wanted.shape, &wanted.plan));
  WEFT_TRY(kernel_for(&wanted, count * like.k * like.len, &held.kernel));
  if (!held.kernel)
    return WEFT_E_UNSUPPORTED;
  Args args;
  uint64_t *own = args.own;
  for (size_t s = 0; s < count; s++)
    own = put_rows(own, gemms[s].x, like.k, gemms[s].y, 0, like.m);
  const size_t whole = like.len / 16 * 16;
  WEFT_TRY(launch(wanted, held.kernel, whole, count, &args));
  for (size_t s = 0; s < count && whole < like.len; s++)
    WEFT_TRY(run_tail(exec, gemms[s], whole));
  return WEFT_OK;
}

extern "C" weft_status weft_storage_program_gemm(const weft_exec *exec, const weft_gemm *gemms,
                                                 size_t count) {
  return count ? program_gemm(exec, gemms, count, has_factors(gemms[0])) : WEFT_E_UNSUPPORTED;
}

extern "C" bool weft_storage_suits(const weft_gemm *gemm, size_t count) {
  enum { LongRow = 4096, LongBatch = 256 << 10 };
  return !gemm->x_prepared && gemm->a_mem != WEFT_MEM_DEVICE && gemm->m <= WEFT_STORAGE_OUTPUTS &&
         gemm->k > 0 && gemm->k <= WEFT_STORAGE_SOURCES &&
         gemm->len >= (count > 4 ? LongBatch : LongRow);
}

// Whether a kernel of its own is quicker than the tensor kernel, as measured on an H200: its work
// grows with the matrix, where tensor cores have some to spare, and code that is longer than the
// instruction cache crawls.
static bool program_is_quicker(const weft_gemm &gemm) {
  enum { ByFactorsMost = 4500, ByEntriesMost = 3700, SourcesMost = 48 }; // LOP3s, LOP3s
  if (by_factors(gemm))
    return gemm.k <= SourcesMost && lop3s_by_factors(*gemm.factors) <= ByFactorsMost;
  return lop3s_by_entries(gemm.m, gemm.k) <= ByEntriesMost;
}

static bool same_but_rows(const weft_gemm &a, const weft_gemm &b) {
  return a.m == b.m && a.k == b.k && a.len == b.len && a.a == b.a && a.a_stride == b.a_stride &&
         a.accumulate == b.accumulate && a.factors == b.factors;
}

extern "C" weft_status weft_storage_gemm(const weft_exec *exec, const weft_gemm *gemms,
                                         size_t count, size_t *done) {
  const weft_gemm &like = gemms[0];
  *done = 1;
  if (program_is_quicker(like)) {
    const size_t most = weft_storage_program_stripes(like.k, like.m);
    while (*done < count && *done < most && same_but_rows(like, gemms[*done]))
      ++*done;
    const weft_status status = program_gemm(exec, gemms, *done, by_factors(like));
    if (status != WEFT_E_UNSUPPORTED)
      return status;
    *done = 1;
  }
  return weft_storage_tensor(exec, gemms);
}
