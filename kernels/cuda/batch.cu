// SPDX-License-Identifier: Apache-2.0
// The host side that the table, loop and nibble techniques share; see batch.cuh.
#include "kernels/cuda/batch.cuh"

#include <string.h>

namespace {

struct RawLayout {
  __device__ static void write(const weft_cuda_pack &pack, uint32_t j, uint32_t column,
                               uint2 bytes) {
    *reinterpret_cast<uint2 *>(pack.out + j * pack.out_stride + column) = bytes;
  }
};

// Descriptors travel as kernel parameters: a copy from ordinary memory would wait for the stream.
// Lanes that read different words of the parameters take turns, so they are spread over blocks.
struct Parcel {
  static constexpr uint32_t Bytes = 32256; // of 32764 that a launch takes
  uint8_t *to;                             // aligned to words
  uint32_t bytes;
  uint32_t at[Bytes / 4];
};

__global__ void __launch_bounds__(256) parcel_kernel(const __grid_constant__ Parcel parcel) {
  const uint32_t i = 4 * (blockIdx.x * 256 + threadIdx.x);
  if (i + 4 <= parcel.bytes) {
    *reinterpret_cast<uint32_t *>(parcel.to + i) = parcel.at[i / 4];
    return;
  }
  for (uint32_t byte = i; byte < parcel.bytes; byte++)
    parcel.to[byte] = static_cast<uint8_t>(parcel.at[i / 4] >> (8 * (byte - i)));
}

// Whether a kernel may read the rows as they lie: aligned, and no column past the end.
bool rows_are_dense(const weft_const_rows &x, size_t len) {
  return !x.ptr && len % WEFT_CUDA_COLUMN_PAD == 0 && x.stride % 16 == 0 &&
         reinterpret_cast<uintptr_t>(x.base) % 16 == 0;
}

bool is_empty(const weft_gemm &gemm) { return gemm.m == 0 || gemm.len == 0; }

// Bytes from one row of a technique's layout to the next; of the longest rows more than 32 bits.
size_t layout_stride(const weft_cuda_technique &technique, size_t len) {
  return size_t{weft_cuda_padded(len)} / WEFT_CUDA_COLUMN_PAD * technique.group_bytes;
}

// Bytes of device scratch that one product needs beside its operands.
struct Needs {
  size_t a, x, x_ptr, y_ptr;
};

Needs needs_of(const weft_cuda_technique &technique, const weft_gemm &gemm) {
  Needs needs = {0, 0, 0, 0};
  if (gemm.a_mem != WEFT_MEM_DEVICE)
    needs.a = weft_align16(gemm.m * gemm.k);
  if (gemm.y.ptr)
    needs.y_ptr = weft_align16(gemm.m * sizeof(uint8_t *));
  if (!gemm.x_prepared && !(technique.raw && rows_are_dense(gemm.x, gemm.len))) {
    needs.x = gemm.k * layout_stride(technique, gemm.len);
    if (gemm.x.ptr)
      needs.x_ptr = weft_align16(gemm.k * sizeof(uint8_t *));
  }
  return needs;
}

// Brings X of one product into the layout, in scratch at *at.
weft_status pack_x(const weft_cuda_technique &technique, const weft_exec *exec,
                   const weft_const_rows &x, size_t k, size_t len, uint8_t *out, uint8_t *x_ptr) {
  weft_cuda_pack pack = {};
  pack.x = x.base;
  pack.x_stride = x.stride;
  pack.k = static_cast<uint32_t>(k);
  pack.len = static_cast<uint32_t>(len);
  pack.padded = weft_cuda_padded(len);
  pack.out = out;
  pack.out_stride = layout_stride(technique, len);
  if (x.ptr) {
    WEFT_TRY(weft_cuda_upload(exec, x_ptr, x.ptr, k * sizeof(uint8_t *)));
    pack.x_ptr = reinterpret_cast<const uint8_t *const *>(x_ptr);
  }
  return technique.pack(weft_cuda_stream(exec), pack);
}

weft_status job_of(const weft_cuda_technique &technique, const weft_exec *exec,
                   const weft_gemm &gemm, uint8_t **scratch, weft_cuda_job *job) {
  const Needs needs = needs_of(technique, gemm);
  uint8_t *const a = *scratch, *const x = a + needs.a, *const x_ptr = x + needs.x,
                 *const y_ptr = x_ptr + needs.x_ptr;
  *scratch = y_ptr + needs.y_ptr;
  job->m = static_cast<uint32_t>(gemm.m);
  job->k = static_cast<uint32_t>(gemm.k);
  job->len = static_cast<uint32_t>(gemm.len);
  job->accumulate = gemm.accumulate;
  job->a = gemm.a;
  job->a_stride = gemm.a_stride;
  if (needs.a) {
    WEFT_TRY(weft_cuda_bring_a(exec, gemm, a));
    job->a = a;
    job->a_stride = gemm.k;
  }
  job->x = gemm.x.base;
  job->x_stride = gemm.x.stride;
  if (gemm.x_prepared) {
    job->x = static_cast<const uint8_t *>(gemm.x_prepared->data);
    job->x_stride = gemm.x_prepared->stride;
  } else if (needs.x) {
    WEFT_TRY(pack_x(technique, exec, gemm.x, gemm.k, gemm.len, x, x_ptr));
    job->x = x;
    job->x_stride = layout_stride(technique, gemm.len);
  }
  job->y = gemm.y.base;
  job->y_stride = gemm.y.stride;
  if (gemm.y.ptr) {
    WEFT_TRY(weft_cuda_upload(exec, y_ptr, gemm.y.ptr, gemm.m * sizeof(uint8_t *)));
    job->y_ptr = reinterpret_cast<uint8_t *const *>(y_ptr);
  }
  return WEFT_OK;
}

// Cuts a job into tiles: 16 warps, in up to 4 groups of rows, the rest side by side; in more groups
// where the row would end before the tile does.
weft_status cut(const weft_cuda_technique &technique, weft_cuda_job *job, uint64_t *tiles) {
  uint32_t log = 0;
  while (log < WEFT_CUDA_GROUPS_LOG_MAX && job->m > technique.rows << log &&
         (log < WEFT_CUDA_GROUPS_LOG || job->len < 32 * technique.bytes * (WEFT_CUDA_WARPS >> log)))
    log++;
  job->groups_log = log;
  const uint64_t rows = static_cast<uint64_t>(technique.rows) << job->groups_log;
  const uint64_t columns = 32ull * technique.bytes * (WEFT_CUDA_WARPS >> job->groups_log);
  job->column_tiles = static_cast<uint32_t>((job->len + columns - 1) / columns);
  job->first_tile = static_cast<uint32_t>(*tiles);
  *tiles += job->column_tiles * ((job->m + rows - 1) / rows);
  return *tiles < UINT32_MAX / 2 ? WEFT_OK : WEFT_E_ARGUMENT;
}

weft_status enqueue(const weft_cuda_technique &technique, const weft_exec *exec,
                    const weft_gemm *gemms, size_t count, weft_cuda_job *jobs, size_t used,
                    size_t scratch_bytes) {
  weft_scratch scratch(exec);
  const size_t jobs_bytes = used > 1 ? weft_align16(used * sizeof(weft_cuda_job)) : 0;
  uint8_t *at = nullptr;
  if (jobs_bytes + scratch_bytes > 0) {
    WEFT_TRY(scratch.alloc(jobs_bytes + scratch_bytes));
    at = scratch.as<uint8_t>() + jobs_bytes;
  }
  uint64_t tiles = 0;
  weft_cuda_job *job = jobs;
  for (size_t i = 0; i < count; i++) {
    if (is_empty(gemms[i]))
      continue;
    WEFT_TRY(job_of(technique, exec, gemms[i], &at, job));
    WEFT_TRY(cut(technique, job++, &tiles));
  }
  weft_cuda_batch batch = {};
  batch.one = jobs[0];
  batch.count = static_cast<uint32_t>(used);
  batch.tiles = static_cast<uint32_t>(tiles);
  if (jobs_bytes) {
    WEFT_TRY(weft_cuda_upload(exec, scratch.as<void>(), jobs, used * sizeof *jobs));
    batch.jobs = scratch.as<const weft_cuda_job>();
  }
  return technique.launch(exec, batch);
}

} // namespace

weft_status weft_cuda_check(const weft_backend *row, const weft_gemm &gemm) {
  if (gemm.m > UINT32_MAX / 2 || gemm.k > UINT32_MAX / 2 || gemm.len > UINT32_MAX / 2)
    return WEFT_E_ARGUMENT;
  if (gemm.y.mem == WEFT_MEM_HOST)
    return WEFT_E_UNSUPPORTED;
  if (!gemm.x_prepared)
    return gemm.x.mem == WEFT_MEM_HOST && gemm.k ? WEFT_E_UNSUPPORTED : WEFT_OK;
  const weft_operand *x = gemm.x_prepared;
  return x->row == row && x->k == gemm.k && x->len == gemm.len ? WEFT_OK : WEFT_E_ARGUMENT;
}

weft_status weft_cuda_bring_a(const weft_exec *exec, const weft_gemm &gemm, void *to) {
  return weft_device_copy_rows(exec->device, to, gemm.k, WEFT_MEM_DEVICE, gemm.a, gemm.a_stride,
                               gemm.a_mem, gemm.k, gemm.m, exec->stream);
}

weft_status weft_cuda_pack_raw(cudaStream_t stream, const weft_cuda_pack &pack) {
  return weft_cuda_pack_launch<RawLayout>(stream, pack);
}

weft_status weft_cuda_upload(const weft_exec *exec, void *to, const void *from, size_t bytes) {
  Parcel parcel;
  for (size_t at = 0; at < bytes; at += Parcel::Bytes) {
    const size_t some = bytes - at < Parcel::Bytes ? bytes - at : Parcel::Bytes;
    parcel.to = static_cast<uint8_t *>(to) + at;
    parcel.bytes = static_cast<uint32_t>(some);
    memcpy(parcel.at, static_cast<const uint8_t *>(from) + at, some);
    parcel_kernel<<<static_cast<unsigned>((some + 1023) / 1024), 256, 0, weft_cuda_stream(exec)>>>(
        parcel);
    WEFT_TRY(WEFT_CUDA_LAUNCHED());
  }
  return WEFT_OK;
}

weft_status weft_cuda_product(const weft_cuda_technique &technique, const weft_backend *row,
                              const weft_exec *exec, const weft_gemm *gemms, size_t count) {
  size_t used = 0, bytes = 0;
  for (size_t i = 0; i < count; i++) {
    if (is_empty(gemms[i]))
      continue;
    WEFT_TRY(weft_cuda_check(row, gemms[i]));
    const Needs needs = needs_of(technique, gemms[i]);
    bytes += needs.a + needs.x + needs.x_ptr + needs.y_ptr;
    used++;
  }
  if (used == 0)
    return WEFT_OK;
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  weft_cuda_job single = {};
  weft_cuda_job *jobs = &single;
  const weft_allocator *allocator = exec->allocator;
  if (used > 1) {
    jobs = static_cast<weft_cuda_job *>(
        allocator->alloc(allocator->user, used * sizeof *jobs, alignof(weft_cuda_job)));
    if (!jobs)
      return WEFT_E_NOMEM;
    memset(static_cast<void *>(jobs), 0, used * sizeof *jobs);
  }
  const weft_status status = enqueue(technique, exec, gemms, count, jobs, used, bytes);
  if (jobs != &single)
    allocator->free(allocator->user, jobs);
  return status;
}

weft_status weft_cuda_check_source(size_t k, size_t len, const weft_const_rows &x) {
  if (k > UINT32_MAX / 2 || len > UINT32_MAX / 2)
    return WEFT_E_ARGUMENT;
  return k && x.mem == WEFT_MEM_HOST ? WEFT_E_UNSUPPORTED : WEFT_OK;
}

weft_status weft_cuda_operand_new(const weft_backend *row, const weft_exec *exec, size_t k,
                                  size_t len, size_t stride, size_t bytes, weft_operand **out) {
  *out = nullptr;
  const weft_allocator *allocator = exec->allocator;
  weft_operand *operand = static_cast<weft_operand *>(
      allocator->alloc(allocator->user, sizeof *operand, alignof(weft_operand)));
  if (!operand)
    return WEFT_E_NOMEM;
  *operand = {row, nullptr, bytes, k, len, stride};
  if (bytes) {
    const weft_status status =
        weft_device_alloc(exec->device, WEFT_MEM_DEVICE, bytes, &operand->data);
    if (status != WEFT_OK) {
      weft_cuda_release(row, exec, operand);
      return status;
    }
  }
  *out = operand;
  return WEFT_OK;
}

weft_status weft_cuda_prepare(const weft_cuda_technique &technique, const weft_backend *row,
                              const weft_exec *exec, size_t k, size_t len, const weft_const_rows *x,
                              weft_operand **out) {
  *out = nullptr;
  WEFT_TRY(weft_cuda_check_source(k, len, *x));
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  const size_t stride = layout_stride(technique, len);
  weft_operand *operand;
  WEFT_TRY(weft_cuda_operand_new(row, exec, k, len, stride, k * stride, &operand));
  weft_scratch pointers(exec);
  weft_status status = WEFT_OK;
  if (x->ptr)
    status = pointers.alloc(k * sizeof(uint8_t *));
  if (status == WEFT_OK && operand->bytes)
    status = pack_x(technique, exec, *x, k, len, static_cast<uint8_t *>(operand->data),
                    pointers.as<uint8_t>());
  if (status != WEFT_OK) {
    (void)weft_device_stream_wait(exec->device, exec->stream); // it may be about to be filled
    weft_cuda_release(row, exec, operand);
    return status;
  }
  *out = operand;
  return WEFT_OK;
}

extern "C" void weft_cuda_release(const weft_backend *row, const weft_exec *exec,
                                  weft_operand *operand) {
  (void)row;
  if (!operand)
    return;
  weft_device_free(exec->device, WEFT_MEM_DEVICE, operand->data);
  exec->allocator->free(exec->allocator->user, operand);
}
