// SPDX-License-Identifier: Apache-2.0
// Bit matrices as straight-line kernels (storage_source.h): which shapes suit, and their launch.
#include "kernels/cuda/batch.cuh"
#include "kernels/cuda/nvrtc.h"
#include "kernels/cuda/storage.h"
#include "kernels/cuda/storage_source.h"

#include <string.h>

namespace {

enum { ShardsMax = 256, SumsMax = 128 };

// As the source declares it.
struct Args {
  uint64_t own[ShardsMax];
  const uint64_t *table;
  uint64_t length;
  uint32_t tiles, last;
  uint32_t accumulate, two, four, sixteen;
};

// The shape and, behind it, the bits: 8 to a byte.
struct Key {
  uint32_t k, m, w, packet_bytes;
  uint8_t bits[];
};

weft_status write_source(void *user, const weft_allocator *allocator, char **out) {
  const weft_program_shape *shape = static_cast<const weft_program_shape *>(user);
  weft_program_plan plan;
  WEFT_TRY(weft_program_plan_for(shape, shape->sm_shared_bytes, &plan));
  return weft_program_source(shape, &plan, allocator, out);
}

weft_status kernel_for(const weft_exec *exec, weft_program_shape *shape,
                       const weft_program_plan &plan, size_t work, void **kernel) {
  const weft_allocator *allocator = exec->allocator;
  const size_t rows = shape->m * shape->w, columns = shape->k * shape->w;
  const size_t bytes = sizeof(Key) + (rows * columns + 7) / 8;
  Key *key = static_cast<Key *>(allocator->alloc(allocator->user, bytes, alignof(Key)));
  if (!key)
    return WEFT_E_NOMEM;
  memset(key, 0, bytes);
  key->k = static_cast<uint32_t>(shape->k);
  key->m = static_cast<uint32_t>(shape->m);
  key->w = static_cast<uint32_t>(shape->w);
  key->packet_bytes = static_cast<uint32_t>(shape->packet_bytes);
  for (size_t r = 0, at = 0; r < rows; r++)
    for (size_t c = 0; c < columns; c++, at++)
      key->bits[at / 8] = static_cast<uint8_t>(
          key->bits[at / 8] | (shape->bits[r * shape->bits_stride + c] & 1u) << (at % 8));
  weft_kernel_want want = {};
  want.key = key;
  want.key_bytes = bytes;
  want.source = write_source;
  want.user = shape;
  want.work = work;
  want.shared_bytes = plan.shared_bytes;
  const weft_status status = weft_device_kernel(exec->device, &want, kernel);
  allocator->free(allocator->user, key);
  return status;
}

// A block takes a few tiles, then another block does: multiprocessors do not all read memory at the
// same rate, and those that are ahead take more. With few stages in a tile a block takes several,
// for its ring to fill once.
weft_status launch(const weft_exec *exec, void *kernel, const weft_program_plan &plan, size_t k,
                   Args *args) {
  enum { ShardsOfBlock = 16 };
  const size_t resident =
      static_cast<size_t>(weft_device_get_shape(exec->device)->sms) * plan.blocks_per_sm;
  const size_t each = (ShardsOfBlock + k - 1) / k, blocks = (args->tiles + each - 1) / each;
  args->two = 2;
  args->four = 4;
  args->sixteen = 16;
  const size_t all = blocks > resident ? blocks : resident;
  const unsigned grid = static_cast<unsigned>(all < args->tiles ? all : args->tiles);
  void *list[] = {args};
  return WEFT_CUDA(cudaLaunchKernel(static_cast<const void *>(kernel), dim3(grid),
                                    dim3(static_cast<unsigned>(plan.threads)), list,
                                    plan.shared_bytes, weft_cuda_stream(exec)));
}

bool aligned(const void *pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

bool rows_aligned(const weft_const_rows &x, size_t k, const weft_rows &y, size_t m) {
  for (size_t j = 0; j < k; j++)
    if (!aligned(weft_const_row(&x, j)))
      return false;
  for (size_t i = 0; i < m; i++)
    if (!aligned(weft_row(&y, i)))
      return false;
  return true;
}

// The bit matrix of multiplication: column x of an element is element * 2^x.
void expand(uint8_t *bits, const weft_gemm &gemm) {
  const size_t stride = 8 * gemm.k;
  for (size_t i = 0; i < gemm.m; i++)
    for (size_t j = 0; j < gemm.k; j++) {
      unsigned c = gemm.a[i * gemm.a_stride + j];
      for (size_t x = 0; x < 8; x++) {
        for (size_t l = 0; l < 8; l++)
          bits[(8 * i + l) * stride + 8 * j + x] = static_cast<uint8_t>(c >> l & 1);
        c = c << 1 ^ (c & 0x80 ? 0x11Du : 0);
      }
    }
}

// Outputs [from, from + m) of a product on packets, as one kernel.
struct Panel {
  size_t from, m;
  weft_program_plan plan;
  void *kernel;
};

weft_status find_kernel(const weft_exec *exec, const weft_xorm &xorm, Panel *panel) {
  weft_program_shape shape = {};
  shape.k = xorm.k;
  shape.m = panel->m;
  shape.w = xorm.w;
  shape.packet_bytes = xorm.packet_bytes;
  shape.bits = xorm.bits + panel->from * xorm.w * xorm.bits_stride;
  shape.bits_stride = xorm.bits_stride;
  shape.sm_shared_bytes = static_cast<size_t>(weft_device_get_shape(exec->device)->sm_shared_bytes);
  WEFT_TRY(weft_program_plan_for(&shape, shape.sm_shared_bytes, &panel->plan));
  WEFT_TRY(kernel_for(exec, &shape, panel->plan, xorm.k * xorm.len, &panel->kernel));
  return panel->kernel ? WEFT_OK : WEFT_E_UNSUPPORTED;
}

// `groups` of every shard.
weft_status run_panel(const weft_exec *exec, const weft_xorm &xorm, const Panel &panel,
                      size_t groups) {
  const weft_program_plan &plan = panel.plan;
  Args args = {};
  for (size_t j = 0; j < xorm.k; j++)
    args.own[j] = reinterpret_cast<uint64_t>(weft_const_row(&xorm.x, j));
  for (size_t i = 0; i < panel.m; i++)
    args.own[xorm.k + i] = reinterpret_cast<uint64_t>(weft_row(&xorm.y, panel.from + i));
  args.length = groups;
  const size_t tiles =
      plan.groups ? (groups + plan.groups - 1) / plan.groups : groups * plan.tiles_per_group;
  if (tiles > UINT32_MAX / 4)
    return WEFT_E_ARGUMENT;
  args.tiles = static_cast<uint32_t>(tiles);
  if (plan.groups)
    args.last = static_cast<uint32_t>(groups - (tiles - 1) * plan.groups);
  args.accumulate = xorm.accumulate;
  return launch(exec, panel.kernel, plan, xorm.k, &args);
}

} // namespace

extern "C" weft_status weft_storage_program_xorm(const weft_exec *exec, const weft_xorm *xorm,
                                                 size_t *done_groups) {
  *done_groups = 0;
  if (!xorm->k || !xorm->m || xorm->k + xorm->m > ShardsMax || xorm->w > 8 ||
      xorm->x.mem == WEFT_MEM_HOST || xorm->y.mem == WEFT_MEM_HOST ||
      weft_device_sm(exec->device) < 90 || !rows_aligned(xorm->x, xorm->k, xorm->y, xorm->m))
    return WEFT_E_UNSUPPORTED;
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  // Panels of about one size; all kernels are there before the first runs.
  Panel panels[2 * ShardsMax * 8 / SumsMax];
  const size_t most = SumsMax / xorm->w, count = (xorm->m + most - 1) / most;
  for (size_t p = 0; p < count; p++) {
    panels[p].from = p * xorm->m / count;
    panels[p].m = (p + 1) * xorm->m / count - panels[p].from;
    WEFT_TRY(find_kernel(exec, *xorm, &panels[p]));
  }
  const size_t group = xorm->w * xorm->packet_bytes, groups = xorm->len / group;
  const size_t together = panels[0].plan.groups; // the same for all
  // The copies of a tile are whole 16 bytes.
  const size_t whole =
      together && groups % together * group % 16 ? groups - groups % together : groups;
  for (size_t p = 0; p < count && whole; p++)
    WEFT_TRY(run_panel(exec, *xorm, panels[p], whole));
  *done_groups = whole;
  return WEFT_OK;
}

extern "C" weft_status weft_storage_program_gemm(const weft_exec *exec, const weft_gemm *gemm) {
  if (gemm->x_prepared || gemm->a_mem == WEFT_MEM_DEVICE || !gemm->k || !gemm->m ||
      gemm->m > SumsMax / 8 || gemm->k + gemm->m > ShardsMax || gemm->x.mem == WEFT_MEM_HOST ||
      gemm->y.mem == WEFT_MEM_HOST || weft_device_sm(exec->device) < 90 ||
      !rows_aligned(gemm->x, gemm->k, gemm->y, gemm->m))
    return WEFT_E_UNSUPPORTED;
  const size_t whole = gemm->len / 16 * 16;
  if (!whole)
    return WEFT_E_UNSUPPORTED;
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  const weft_allocator *allocator = exec->allocator;
  uint8_t *bits =
      static_cast<uint8_t *>(allocator->alloc(allocator->user, 64 * gemm->m * gemm->k, 16));
  if (!bits)
    return WEFT_E_NOMEM;
  expand(bits, *gemm);
  weft_program_shape shape = {};
  shape.k = gemm->k;
  shape.m = gemm->m;
  shape.w = 8;
  shape.bits = bits;
  shape.bits_stride = 8 * gemm->k;
  shape.sm_shared_bytes = static_cast<size_t>(weft_device_get_shape(exec->device)->sm_shared_bytes);
  weft_program_plan plan;
  void *kernel = nullptr;
  weft_status status = weft_program_plan_for(&shape, shape.sm_shared_bytes, &plan);
  if (status == WEFT_OK)
    status = kernel_for(exec, &shape, plan, gemm->k * gemm->len, &kernel);
  allocator->free(allocator->user, bits);
  WEFT_TRY(status);
  if (!kernel)
    return WEFT_E_UNSUPPORTED;
  Args args = {};
  for (size_t j = 0; j < gemm->k; j++)
    args.own[j] = reinterpret_cast<uint64_t>(weft_const_row(&gemm->x, j));
  for (size_t i = 0; i < gemm->m; i++)
    args.own[gemm->k + i] = reinterpret_cast<uint64_t>(weft_row(&gemm->y, i));
  args.length = whole;
  const size_t tile = 32 * plan.threads;
  const size_t tiles = (whole + tile - 1) / tile;
  if (tiles > UINT32_MAX / 4)
    return WEFT_E_ARGUMENT;
  args.tiles = static_cast<uint32_t>(tiles);
  args.last = static_cast<uint32_t>(whole - (tiles - 1) * tile);
  args.accumulate = gemm->accumulate;
  WEFT_TRY(launch(exec, kernel, plan, gemm->k, &args));
  if (whole == gemm->len)
    return WEFT_OK;
  const uint8_t *x[ShardsMax];
  uint8_t *y[ShardsMax];
  for (size_t j = 0; j < gemm->k; j++)
    x[j] = weft_const_row(&gemm->x, j) + whole;
  for (size_t i = 0; i < gemm->m; i++)
    y[i] = weft_row(&gemm->y, i) + whole;
  weft_gemm tail = *gemm;
  tail.len = gemm->len - whole;
  tail.x.ptr = x;
  tail.y.ptr = y;
  return weft_storage_tensor(exec, &tail);
}

extern "C" bool weft_storage_suits(const weft_gemm *gemm, size_t count) {
  enum { LongRow = 4096, LongBatch = 256 << 10 };
  return !gemm->x_prepared && gemm->a_mem != WEFT_MEM_DEVICE && gemm->m <= WEFT_STORAGE_OUTPUTS &&
         gemm->k > 0 && gemm->k <= WEFT_STORAGE_SOURCES &&
         gemm->len >= (count > 4 ? LongBatch : LongRow);
}

extern "C" weft_status weft_storage_gemm(const weft_exec *exec, const weft_gemm *gemm) {
  // Making bytes of tensor sums costs more than the sums where sources are few or outputs many;
  // where neither is so, tensor cores are quicker. Measured on an H200.
  const size_t sources_most = gemm->m <= 2 ? 13 : gemm->m <= 4 ? 10 : SIZE_MAX;
  if (gemm->k <= sources_most) {
    const weft_status status = weft_storage_program_gemm(exec, gemm);
    if (status != WEFT_E_UNSUPPORTED)
      return status;
  }
  return weft_storage_tensor(exec, gemm);
}
